// A training as its folder tells it, under way or over, read while it grows: the reports of
// training.jsonl; of a consistency training also probe_trajectories.jsonl, a line a probe with the
// states that the blocks of one unseen prompt's answer pass through:
//   {"step":40,"prompt":"..","ends":["</s>"],"blocks":[[["She"," has",..],..],..]}
// and from the other files there how far it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/event/recording/growing_lines.h"
#include "engine/event/recording/training_report.h"
#include "engine/base/types.h"

namespace engine {

inline constexpr const char* kTrainingLogName = "training.jsonl";
inline constexpr const char* kProbeTrajectoriesName = "probe_trajectories.jsonl";

/// How one unseen prompt was answered at a probe. Tokens are indices into TrainingHistory::pieces.
struct ProbeTrajectory {
  std::int64_t step = 0;
  std::string prompt;
  std::vector<TokenId> end_ids;  // tokens that end a text; none: the line does not say
  /// [block][state][position]: state 0 is the guess a block began with, the last the fixed point.
  std::vector<std::vector<std::vector<TokenId>>> blocks;
};

/// What a training does, as far as its files tell.
enum class TrainingStage : std::uint8_t {
  NotBegun,      ///< nothing is told yet
  WritingTexts,  ///< the target writes the texts that heads learn from
  Collecting,    ///< it answers the prompts whose trajectories are learnt from
  Measuring,     ///< it is measured before it is changed
  Training,      ///< steps are told
  Written        ///< what was trained lies beside the log
};

struct TrainingHistory {
  std::string folder;                   // where the log lies
  std::string name;                     // of the folder
  std::vector<TrainingReport> reports;  // by step, each larger than the one before
  std::vector<std::string> pieces;      // of tokens, in UTF-8; each once
  std::vector<ProbeTrajectory> probes;  // by step, likewise
  TrainingStage stage = TrainingStage::NotBegun;
  double silent_seconds = -1;         // since anything was told; -1: nothing was
  std::vector<std::string> refusals;  // what could not be read, "file:line: field: found ..."
  std::uint64_t version = 0;          // grows with every change of the above but the silence
};

class TrainingReader {
 public:
  /// @param path  a training's folder, or its log
  /// @throws Error(BadInput)   neither is there, the folder has nothing of a training, or the log
  ///                           does not begin with a report
  /// @throws Error(Resources)  it cannot be read
  explicit TrainingReader(const std::string& path);

  const TrainingHistory& history() const { return history_; }
  /// Whether look() might find something new. Cheap: it opens nothing.
  bool may_have_news() const;
  /// Reads on, at most so many bytes of each file. What cannot be read becomes a refusal, and that
  /// file is let alone until it is written anew; what was read before stays.
  /// @return  whether there is more to read at once
  bool look(std::size_t max_bytes = std::size_t{256} << 10);

 private:
  /// One of the two files, and whether it is let alone.
  struct Source {
    GrowingLines lines;
    std::string refusal;  // empty: it is read
    ErrorCode code = ErrorCode::BadInput;
  };
  template <typename Take, typename Forget>
  bool look_at(Source& source, std::size_t max_bytes, Take take, Forget forget);
  void take_report(const std::string& line, const std::string& where);
  void take_probe(const std::string& line, const std::string& where);
  void forget_probes();
  TokenId id_of(const std::string& piece);
  void find_stage();

  Source log_, probes_;
  std::unordered_map<std::string, TokenId> ids_;  // of pieces
  TrainingHistory history_;
};

/// Whether a path is what TrainingReader opens, by names alone: a folder with one of a training's
/// files, or a file named as a log is (*.jsonl).
bool looks_like_training(const std::string& path);

}  // namespace engine
