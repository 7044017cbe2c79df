// Reads the files of a training's folder while the training runs or after its end: training.jsonl,
// and for consistency training probe_trajectories.jsonl. A line of the latter holds one probe: the
// states of the Jacobi blocks of the answer to an unseen prompt.
//   {"step":40,"prompt":"..","ends":["</s>"],"blocks":[[["She"," has",..],..],..]}
// The presence of other files in the folder shows the stage of the training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/types.h"
#include "engine/event/recording/growing_lines.h"
#include "engine/event/recording/training_report.h"

namespace engine {

inline constexpr const char* kTrainingLogName = "training.jsonl";
inline constexpr const char* kProbeTrajectoriesName = "probe_trajectories.jsonl";

/// The answer to one unseen prompt at a probe. Tokens are indices into TrainingHistory::pieces.
struct ProbeTrajectory {
  std::int64_t step = 0;
  std::string prompt;
  std::vector<TokenId> end_ids;  // tokens that end a text; empty: unknown
  /// [block][state][position]: state 0 is the initial guess of a block, the last the fixed point.
  std::vector<std::vector<std::vector<TokenId>>> blocks;
};

/// The stage of a training, as its files show it.
enum class TrainingStage : std::uint8_t {
  NotBegun,      ///< no file of a stage exists
  WritingTexts,  ///< the target writes the texts that draft heads learn from
  Collecting,    ///< the target answers prompts; their Jacobi trajectories are collected
  Measuring,     ///< the target is scored before the training
  Training,      ///< the log has reports of steps
  Written        ///< the trained weights are in the folder
};

/// The state of a training's folder.
struct TrainingHistory {
  std::string folder;                   // the folder of the log
  std::string name;                     // the folder's last component
  std::vector<TrainingReport> reports;  // by ascending step
  std::vector<std::string> pieces;      // the text of each token in UTF-8, without repetition
  std::vector<ProbeTrajectory> probes;  // by ascending step
  TrainingStage stage = TrainingStage::NotBegun;
  double silent_seconds = -1;         // since the last change of a file; -1: no file
  std::vector<std::string> refusals;  // errors of reading, "file:line: field: found ..."
  // grows with every change of a member above except silent_seconds
  std::uint64_t version = 0;
};

/// Reads a training's folder, as often as the caller asks.
class TrainingReader {
 public:
  /// @param path  a training's folder, or its log
  /// @throws Error(BadInput)   no such path, a folder without files of a training, or a log that
  ///                           does not begin with a report
  /// @throws Error(Resources)  the log cannot be read
  explicit TrainingReader(const std::string& path);

  /// The history as of the last read().
  const TrainingHistory& history() const { return history_; }
  /// True if read() may find something new. Opens no file.
  bool may_have_changed() const;
  /// Reads at most `max_bytes` new bytes of each file. An error becomes a refusal: the lines before
  /// it stay, and the file is ignored until it is replaced.
  /// @return  true if a file has further bytes
  bool read(std::size_t max_bytes = std::size_t{256} << 10);

 private:
  /// One of the two files.
  struct Source {
    GrowingLines lines;
    std::string refusal;  // not empty: the file is ignored
    ErrorCode code = ErrorCode::BadInput;
  };
  template <typename Take, typename Forget>
  bool read_source(Source& source, std::size_t max_bytes, Take take, Forget forget);
  void take_report(const std::string& line, const std::string& where);
  void take_probe(const std::string& line, const std::string& where);
  void forget_probes();
  TokenId id_of(const std::string& piece);
  void find_stage();

  Source log_, probes_;
  std::unordered_map<std::string, TokenId> ids_;  // of pieces
  TrainingHistory history_;
};

/// True if `path` looks like a training: a folder with one of a training's files, or a file
/// *.jsonl.
bool looks_like_training(const std::string& path);

}  // namespace engine
