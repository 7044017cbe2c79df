// The output folder of a training, of `model random` or of `model scale`. Before any work the
// command refuses a folder that holds files of another origin, that overlaps with an input, or that
// another process writes to.
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
  /// A file, a model's folder, or the folder of the open texts.
  enum class Kind : std::uint8_t { File, Model, Data } kind = Kind::Model;
};

/// Contents that an existing, non-empty folder may have.
enum class Existing : std::uint8_t {
  Nothing,  // none
  NoRun,    // none; if the folder holds a saved run, the message names --resume
  ARun      // the files of a training that can be resumed
};

/// Refuses an output folder that overlaps with an input. Resolves symbolic links.
/// @param out  may not exist yet
/// @throws Error(Usage)  if `out` is, contains or lies inside a model folder; if it is or contains the
///         folder of the open texts; if a training would overwrite an input file inside `out`
void refuse_inputs_as_output(const std::string& out, const std::vector<InputPath>& inputs);

/// The same for an output file.
/// @throws Error(Usage)  if `file` lies in one of the model folders or is a file of the inputs
void refuse_inputs_as_output_file(const std::string& file, const std::vector<InputPath>& inputs);

/// Refuses an output folder with contents that it may not have. Ignores hidden files and temporary
/// files of a killed process.
/// @throws Error(Usage)  also if `out` is not a folder
void refuse_foreign_output(const std::string& out, Existing may_hold);

/// A checked and locked output folder.
class OutputFolder {
 public:
  /// Creates the folder if it does not exist, and locks it.
  /// @throws Error(Usage)      as refuse_inputs_as_output() and refuse_foreign_output(), or if
  ///                           another process writes to the folder
  /// @throws Error(Resources)  if it cannot be created
  OutputFolder(const std::string& out, Existing may_hold, const std::vector<InputPath>& inputs);
  /// Removes the folder if it was created here and is still empty.
  ~OutputFolder();
  /// Removes all files of a folder that was empty before: an incomplete model is of no use.
  void remove_written_files() const;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  std::string path_;
  bool was_made_ = false;
  OutputLock lock_;
};

}  // namespace engine
