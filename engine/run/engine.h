// The engine thread's loop: takes commands, decodes, emits events. It never sleeps while there is
// work and never waits for the window. A failure becomes a RunFailed event, and the loop continues.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/decode/guess/pool_text.h"
#include "engine/event/queue.h"
#include "engine/event/recording/recorder.h"
#include "engine/run/load_sampler.h"
#include "engine/run/race.h"
#include "engine/run/reasoning.h"
#include "engine/run/run.h"

namespace engine {

struct Failure;

/// Serves the window's commands: loads models, races lanes, runs reasoning commands.
class Engine {
 public:
  /// @param assets_dir        as for ModelStore
  /// @param n_threads         of the CPU device; 0: all
  /// @param commands, events  outlive the engine
  Engine(std::string assets_dir, int n_threads, CommandQueue& commands, EventSink& events);
  ~Engine();

  /// Allows models with shards outside their folder. Call it before serve().
  void allow_external_shards(bool allow) { allow_external_shards_ = allow; }
  /// Sets the limits of model files. Call it before serve().
  void set_file_limits(const FileLimits& limits) { limits_ = limits; }
  /// Sets the function that runs StartReasoning commands; without one they fail. Call it before
  /// serve().
  void reason_with(Reasoner reasoner) { reasoner_ = std::move(reasoner); }
  /// Serves commands until the queue is closed. Call it on the engine's thread.
  void serve();

 private:
  struct ActiveRun {
    RunRequest request;
    double prefill_ms = 0;
    bool reported = false;
    LoadedModel* model = nullptr;  // owned by the store, which keeps it until the race ends
  };
  /// A finished run's data for a later comparison with plain decoding.
  struct Finished {
    ModelRequest model;
    RunRequest request;
    std::vector<TokenId> tokens;
    bool whole = false;  // the run ended by itself, so its length is compared too
  };

  /// A run whose RunStarted event was emitted and that has not begun to decode.
  struct RunBegun {
    RunId id = 0;
    RunRequest request;
    RunModels models;
  };
  /// A prefilled prompt and the time it took.
  struct Read {
    Sequence sequence;
    double ms = 0;
  };

  /// The races of a StartRun command.
  struct RaceSet {
    std::shared_ptr<const StartRun> command;  // its prompts include the only one
    std::uint32_t id = 0;                     // 0: a single race
    std::size_t next = 0;    // index of the next race; the repeats of a prompt follow each other
    bool has_begun = false;  // a race has begun

    /// Number of races.
    std::size_t n_races() const {
      return command->prompts.size() * static_cast<std::size_t>(command->n_repeats);
    }
    /// The place of the next race.
    PlaceInSet place() const;
    /// True if the next race repeats the prompt of the race before it.
    bool repeats_prompt() const { return next % static_cast<std::size_t>(command->n_repeats) != 0; }
  };

  void handle(const Command& command);
  void start(const StartRun& command);
  /// Begins the next race of the set; after the last one the set ends.
  void begin_next_race();
  /// @param is_first  of its set
  void start_race(const StartRun& command, const PlaceInSet& place, bool is_first);
  /// Begins the next race after one has ended; a failure becomes an event and ends the set.
  void continue_set();
  /// Ends the current race and the set that it belongs to.
  void end_set();
  /// Removes the races of the set that have not begun.
  void drop_set();
  /// Emits the number of races of the set that have begun, as a phase "set" of no run.
  void report_set();
  Read read_prompt(LoadedModel& model, const std::vector<RunBegun>& runs);
  void begin_race(const std::vector<RunBegun>& runs);
  void reason(const StartReasoning& command);
  void load(const LoadModel& command);
  void check_agreement(RunId run);
  void stop(RunId run);
  void hold(bool held);
  void step_race();
  void report_finished();
  void keep_texts();
  void end_race();
  void fail_race(const Failure& failure);
  /// Discards the race's state, even if the race has not begun.
  void discard_race();
  void fail(RunId run, const Failure& failure);
  void notice(Notice::Level level, std::string text);
  LoadedModel& loaded(const ModelRequest& request);
  /// Loads the models of each lane, in order. All stay in memory until the next race.
  std::vector<RunModels> loaded_by_lane(const StartRun& command);
  LoadProgress load_progress(const std::string& name);
  void describe_once(const LoadedModel& model);
  void describe_once(const RunModels& models);
  void keep_tracked(const RunTracker& tracker, const ModelRequest& model);
  void fail_reasoning(const RunTracker& tracker, const Failure& failure);
  /// Queues a command that arrived while the engine was busy.
  /// @return  true if it is a stop command, which also drops the queued starts
  bool queue_command(Command command);
  /// Queues the commands that have arrived. @return  true if one of them was a stop command
  bool stop_requested();
  /// Does the same between two steps of a reasoning command, and waits while the engine is held.
  bool reasoning_stop_requested(RunTracker& tracker);
  /// True if a queued command ends the current reasoning command, in the same way as it would end a
  /// race.
  bool is_superseded() const;
  /// Applies queued hold, step and record commands to the current work.
  void apply_queued_controls();

  CommandQueue& commands_;
  RecordingTap events_;  // sends events to the window and, during a recording, to its file
  ModelStore store_;
  Reasoner reasoner_;
  PoolTexts pool_texts_;
  std::deque<Command> pending_;  // arrived during long work

  std::unique_ptr<Race> race_;
  std::map<RunId, ActiveRun> active_;
  std::map<RunId, Finished> finished_;
  RunId n_runs_ = 0;
  std::uint32_t n_races_ = 0, n_sets_ = 0;
  std::optional<RaceSet>
      set_;  // the set of the current race, also while the race starts; nullopt: none
  SearchId n_searches_ = 0;
  // models whose ModelLoaded event was emitted
  std::set<std::uint32_t> described_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> described_pairs_;  // target and draft
  bool held_ = false;
  bool allow_external_shards_ = false;
  FileLimits limits_;
  int steps_requested_ = 0;

  std::optional<LoadSampler> sampler_;  // of the current race
  Nanoseconds race_compute_ = 0;        // compute of the current race's lanes
};

}  // namespace engine
