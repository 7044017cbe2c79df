// Collected trajectories on disk, a frame a prompt, appended as answers end: a kill costs the frame
// it hit, and collecting goes on where it was.
//   header  a frame whose body is the text that says what was collected, and from which model
//   frame   as in a recording (event/recording_format.h): "PE", length, CRC-32, body
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/cllm/trajectories.h"

namespace engine {

/// Why a prompt's trajectory is not learnt from.
enum class Drop : std::uint8_t { None, Wrong, TokenRun, SentenceRun, TooLong };
const char* name_of(Drop drop);

/// What became of one prompt.
struct CollectedText {
  Drop drop = Drop::None;
  bool checked = false;   // its task's checker could run
  Trajectory trajectory;  // of a dropped one index, part and the number of tokens alone matter
};

struct CollectCounts {
  std::int64_t n_texts = 0, n_kept = 0;
  std::int64_t n_unchecked = 0, n_not_ended = 0;                                    // of those kept
  std::int64_t n_wrong = 0, n_token_runs = 0, n_sentence_runs = 0, n_too_long = 0;  // dropped
  std::int64_t n_blocks = 0, n_points = 0, n_tokens = 0;  // of those kept; points with the guesses
  double n_iterations = 0;                                // of those kept, to the fixed point
};
CollectCounts counts_of(const std::vector<CollectedText>& texts);
/// A sentence for a person.
std::string words_of(const CollectCounts& counts);

class TrajectoryFile {
 public:
  /// Opens or makes the file. What was collected before is read; half a frame at the end goes.
  /// @param header  of a file that is made; one that is there must begin with the same
  /// @throws Error(BadInput)   if the file is another's, or was collected in another way
  /// @throws Error(Resources)  if it cannot be read or written
  TrajectoryFile(const std::string& path, const std::string& header);

  /// There for readers when this returns.
  void add(const CollectedText& text);
  /// By index of the text, whatever the order in which their answers ended.
  std::vector<CollectedText> texts() const;
  bool has(std::int64_t index) const;
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
