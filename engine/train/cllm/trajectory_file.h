// A file of collected trajectories, one frame per prompt, appended as answers end. A killed process
// loses at most the frame it was writing; collecting can be resumed.
//   header  a frame whose body describes the model and the settings
//   frame   as in a recording (event/recording_format.h): "PE", length, CRC-32, body
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/cllm/trajectories.h"

namespace engine {

/// Reason why a trajectory is not used for training.
enum class Drop : std::uint8_t { None, Wrong, TokenRun, SentenceRun, TooLong, Evaluation };

/// The trajectory of a prompt, or the reason why it was dropped.
struct CollectedText {
  Drop drop = Drop::None;
  bool checked = false;   // true if its task's checker could run
  Trajectory trajectory;  // of a dropped text only index, part and number of tokens are used
};

/// Counts over collected texts.
struct CollectCounts {
  std::int64_t n_texts = 0, n_kept = 0;
  std::int64_t n_unchecked = 0, n_not_ended = 0;                                    // of those kept
  std::int64_t n_wrong = 0, n_token_runs = 0, n_sentence_runs = 0, n_too_long = 0;  // dropped
  std::int64_t n_blocks = 0, n_points = 0,
               n_tokens = 0;      // of those kept; points include first guesses
  std::int64_t n_evaluation = 0;  // not answered: requests that overlap an evaluation question
  double n_iterations = 0;        // of those kept, to the fixed point
};
/// Counts the texts.
CollectCounts counts_of(const std::vector<CollectedText>& texts);
/// The counts as a sentence.
std::string words_of(const CollectCounts& counts);

/// A file of trajectories, open for appending.
class TrajectoryFile {
 public:
  /// Opens or creates the file. Reads the texts of an existing file and removes a partial last
  /// frame.
  /// @param header  written to a new file; an existing file must have the same header
  /// @throws Error(BadInput)   if the file has another header
  /// @throws Error(Resources)  if it cannot be read or written
  TrajectoryFile(const std::string& path, const std::string& header);

  /// Appends a text and flushes the file.
  void add(const CollectedText& text);
  /// All texts, ordered by index.
  std::vector<CollectedText> texts() const;
  /// True if the file has the text of this index.
  bool has(std::int64_t index) const;
  /// Number of texts whose index is below `end`.
  std::int64_t count_below(std::int64_t end) const;
  /// Number of texts.
  std::size_t size() const { return texts_.size(); }

 private:
  void append(const std::string& bytes);

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<CollectedText> texts_;
  std::vector<std::int64_t> indices_;  // sorted
};

}  // namespace engine
