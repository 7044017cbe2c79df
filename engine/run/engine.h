// The engine thread's loop: commands in, real decoding, events out. It never sleeps while there is
// work and never waits for the picture; every failure ends as a RunFailed event and the loop goes
// on.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/event/queue.h"
#include "engine/event/recording/recorder.h"
#include "engine/run/load_sampler.h"
#include "engine/run/race.h"
#include "engine/run/reasoning.h"
#include "engine/run/run.h"

namespace engine {

struct Failure;

class Engine {
 public:
  /// @param commands, events  outlive the engine
  Engine(std::string assets_dir, int n_threads, CommandQueue& commands, EventSink& events);
  ~Engine();

  /// Whether models may have shards outside their folder, and how much their files may ask for;
  /// before serve().
  void allow_external_shards(bool allow) { allow_external_shards_ = allow; }
  void set_file_limits(const FileLimits& limits) { limits_ = limits; }
  /// What StartReasoning is done by; before serve(). Without one the command fails.
  void reason_with(Reasoner reasoner) { reasoner_ = std::move(reasoner); }
  /// Serves commands until the queue is closed. Call on the engine's thread.
  void serve();

 private:
  struct ActiveRun {
    RunRequest request;
    double prefill_ms = 0;
    bool reported = false;
    LoadedModel* model = nullptr;  // owned by the store, which keeps it for the race
  };
  /// What a finished run must keep so that it can be checked against plain decoding later.
  struct Finished {
    ModelRequest model;
    RunRequest request;
    std::vector<TokenId> tokens;
    bool whole = false;  // ended by itself: its end counts in a comparison
  };

  /// A run that was told and has not begun to decode.
  struct RunBegun {
    RunId id = 0;
    RunRequest request;
    RunModels models;
  };
  /// A prompt that a model has read.
  struct Read {
    Sequence sequence;
    double ms = 0;
  };

  void handle(const Command& command);
  void start(const StartRun& command);
  Read read_prompt(LoadedModel& model, const std::vector<RunBegun>& runs);
  void begin_race(const std::vector<RunBegun>& runs);
  void reason(const StartReasoning& command);
  void load(const LoadModel& command);
  void check_agreement(RunId run);
  void stop(RunId run);
  void hold(bool held);
  void step_race();
  void report_finished();
  void end_race();
  void fail_race(const Failure& failure);
  /// Whatever way the race under way ended, or one that was about to be: no part of it stays.
  void let_go_of_race();
  void fail(RunId run, const Failure& failure);
  void notice(Notice::Level level, std::string text);
  LoadedModel& loaded(const ModelRequest& request);
  /// Of each lane, in order. All stay in memory until the next race.
  std::vector<RunModels> loaded_by_lane(const StartRun& command);
  LoadProgress load_progress(const std::string& name);
  void describe_once(const LoadedModel& model);
  void describe_once(const RunModels& models);
  void keep_tracked(const RunTracker& tracker, const ModelRequest& model);
  void fail_reasoning(const RunTracker& tracker, const Failure& failure);
  /// Keeps a command for later. @return  true if it is one to stop: then nothing is kept
  bool put_off(Command command);
  /// Takes what the window asked meanwhile. @return  true if it asked to stop
  bool stop_asked();
  /// The same between two steps of a reasoning: waits there while the engine is held.
  bool reasoning_stop_asked(RunTracker& tracker);
  /// Whether something was put off that ends a reasoning, as it would end a race.
  bool asked_anew() const;
  /// Of what was put off: holding, stepping and recording mean what goes on now.
  void obey_at_once();

  CommandQueue& commands_;
  RecordingTap events_;  // to the window and, while a recording is on, to its file
  ModelStore store_;
  Reasoner reasoner_;
  std::deque<Command> pending_;  // taken while something long was running

  std::unique_ptr<Race> race_;
  std::map<RunId, ActiveRun> active_;
  std::map<RunId, Finished> finished_;
  RunId n_runs_ = 0;
  std::uint32_t n_races_ = 0;
  SearchId n_searches_ = 0;
  std::set<std::uint32_t> described_;                                  // models the stream knows
  std::set<std::pair<std::uint32_t, std::uint32_t>> described_pairs_;  // of target and draft
  bool held_ = false;
  bool allow_external_shards_ = false;
  FileLimits limits_;
  int steps_asked_ = 0;

  std::optional<LoadSampler> sampler_;  // of the race under way
  Nanoseconds race_compute_ = 0;        // own compute of its lanes
};

}  // namespace engine
