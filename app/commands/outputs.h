// Where the events of a command's runs go: a recording, a trace, both or neither.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "engine/event/queue.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/timeline.h"

namespace engine {
class ModelStore;
struct RunModels;
}  // namespace engine

namespace app {

/// Whether both paths can be written, asked before anything is loaded. Leaves nothing there.
/// @throws Error(Resources)  naming the file and the system's reason
/// @throws Error(Usage)      if the ending of one is not that of its format
void check_outputs(const std::string& record, const std::string& trace);

class Outputs : public engine::EventSink {
 public:
  /// @param record  path of a .pdrun, or empty
  /// @param trace   path of a .json or .json.gz, or empty
  /// @throws Error(Resources)  if the recording cannot be begun
  Outputs(const std::string& record, std::string trace);

  void push(engine::Event event) override;
  /// The models of the runs to come, and what was odd in their files; each is told once.
  void tell(const engine::RunModels& models);
  /// Prints what the store's devices did otherwise than asked since this was last called.
  void tell_notes(engine::ModelStore& store);
  bool wanted() const { return recorder_ || !trace_.empty(); }
  /// Itself if anything is wanted, else null.
  engine::EventSink* sink() { return wanted() ? this : nullptr; }
  /// Ends the recording and writes the trace, each even if the other failed; prints the path and
  /// size of each, and the warnings of the trace's self-check.
  /// @throws Error(Resources)  if either is not whole on disk; of two failures one is printed
  void close();

 private:
  void close_recording();
  void write_trace();

  std::string record_, trace_;
  engine::Timeline timeline_;
  std::unique_ptr<engine::Recorder> recorder_;
  std::int64_t n_recorded_ = 0;   // events
  std::set<std::uint32_t> told_;  // models, by the ids of their events
  std::set<std::pair<std::uint32_t, std::uint32_t>> told_pairs_;  // of target and draft
};

/// Prints a command's result (nothing if it is empty) and closes its outputs, each even if another
/// failed: a full disk does not hide the result, and a closed standard output does not truncate the
/// files. Reports every failure.
/// @param failure  of the runs before, null where there is none
/// @throws  the first failure: of the runs, of print(), of close()
void print_and_close(const std::string& text, Outputs& outputs, std::exception_ptr failure = {});

}  // namespace app
