// Writes the events of a command's runs to a recording, a trace, both or neither.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "engine/event/queue.h"

namespace engine {
class ModelStore;
class Recorder;
struct RunModels;
class Timeline;
}  // namespace engine

namespace app {

/// Checks that both paths can be written, before models are loaded. Creates no file.
/// @throws Error(Resources)  cannot be written; the message has the file and the system's reason
/// @throws Error(Usage)      the file name does not have the extension of its format
void check_outputs(const std::string& record, const std::string& trace);

/// The output files of a command.
class Outputs : public engine::EventSink {
 public:
  /// @param record  path of a .pdrun, or empty
  /// @param trace   path of a trace (.json or .pftrace, both perhaps with .gz), or empty
  /// @throws Error(Resources)  the recording cannot be created
  Outputs(const std::string& record, std::string trace);
  ~Outputs() override;

  /// Writes an event; throws nothing after the recording has failed.
  void push(engine::Event event) override;
  /// Before runs of these models: writes events that describe the models, and prints their notices.
  /// Does so once for each model.
  void announce(const engine::RunModels& models);
  /// Prints the notes of the store's devices since the last call.
  void print_notes(engine::ModelStore& store);
  /// True if a recording or a trace was requested.
  bool wanted() const { return recorder_ || !trace_.empty(); }
  /// Returns this object if wanted(), else null.
  engine::EventSink* sink() { return wanted() ? this : nullptr; }
  /// Finishes the recording and writes the trace, each even if the other failed. Prints their paths
  /// and sizes, and the warnings of the trace's check.
  /// @throws Error(Resources)  a file is incomplete; the message of a second failure is printed
  void close();

 private:
  void close_recording();
  void write_trace();

  std::string record_, trace_;
  std::unique_ptr<engine::Timeline> timeline_;  // of the events, for the trace; null without one
  std::unique_ptr<engine::Recorder> recorder_;
  std::int64_t n_recorded_ = 0;                                        // events
  std::set<std::uint32_t> announced_;                                  // ids of models
  std::set<std::pair<std::uint32_t, std::uint32_t>> announced_pairs_;  // target and draft
};

/// Prints the result of a command, unless it is empty, and closes its outputs. A failure of one
/// does not prevent the others: the result is printed even if the disk is full, and the files are
/// complete even if standard output is closed.
/// @param failure  an error of the runs; null: none
/// @throws  the first failure: of the runs, of print() or of close(); prints the others
void print_and_close(const std::string& text, Outputs& outputs, std::exception_ptr failure = {});

}  // namespace app
