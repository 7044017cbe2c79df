// The folder that a training, `model random` or `model scale` writes. Before any work it is refused
// if it holds files that the command did not make, if it is an input of the command, and while
// another process writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/output_file.h"

namespace engine {

/// A file or folder that a command reads.
struct InputPath {
  std::string what;  // for messages: "--target", "the recipe's target"
  std::string path;  // empty: none
  enum class Kind : std::uint8_t { File, Model, Data } kind = Kind::Model;
};

/// Contents that an existing, non-empty folder may have.
enum class Existing : std::uint8_t {
  Nothing,  // it is refused
  NoRun,    // it is refused, and where a run was saved there the message names --resume
  ARun      // the files of a training that can go on
};

/// @param out  a folder to be written, perhaps not there yet
/// @throws Error(Usage)  if `out` is one of the model folders, lies inside one or holds one; if it
///         is or holds the folder of the open texts; if a file of the inputs is one that a training
///         writes into `out`. Compared by what the names lead to, through links
void refuse_inputs_as_output(const std::string& out, const std::vector<InputPath>& inputs);

/// The same for one file that is written, in any folder.
/// @throws Error(Usage)  if `file` lies in one of the model folders or is a file of the inputs
void refuse_inputs_as_output_file(const std::string& file, const std::vector<InputPath>& inputs);

/// Hidden files do not count, nor do half-written ones that a kill left.
/// @throws Error(Usage)  where `out` is no folder, or holds what it may not
void refuse_foreign_output(const std::string& out, Existing may_hold);

class OutputFolder {
 public:
  /// Makes the folder if it is not there, and locks it.
  /// @throws Error(Usage)      as the two functions, or another process writes there
  /// @throws Error(Resources)  it cannot be made
  OutputFolder(const std::string& out, Existing may_hold, const std::vector<InputPath>& inputs);
  /// Removes the folder if it was made and nothing was written into it.
  ~OutputFolder();
  /// Removes what a command wrote into a folder that was empty before: a model without its last
  /// files is none.
  void remove_what_was_written() const;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  std::string path_;
  bool was_made_ = false;
  OutputLock lock_;
};

}  // namespace engine
