#include "app/outputs.h"

#include <exception>

#include "app/terminal.h"
#include "engine/event/clock.h"
#include "engine/event/output_file.h"
#include "engine/event/trace_export.h"
#include "engine/schedule/model_store.h"
#include "kernels/error.h"

namespace app {

void check_outputs(const std::string& record, const std::string& trace) {
  if (!record.empty() && record == trace) {
    throw kernels::Error(kernels::ErrorCode::Usage,
                         "--record and --trace: found " + record + " for both, expected two files");
  }
  // Begun and never finished, an output file leaves what was there as it was.
  if (!record.empty()) engine::OutputFile begun(record);
  if (!trace.empty()) engine::OutputFile begun(trace);
}

Outputs::Outputs(const std::string& record, std::string trace)
    : record_(record), trace_(std::move(trace)) {
  if (!record_.empty()) recorder_ = std::make_unique<engine::Recorder>(record_);
}

void Outputs::push(engine::Event event) {
  if (!trace_.empty()) timeline_.apply(event);
  if (recorder_) recorder_->push(std::move(event));
}

void Outputs::tell(const engine::RunModels& models) {
  if (!wanted()) return;
  for (const engine::LoadedModel* loaded : {&models.target, models.draft}) {
    if (!loaded) continue;
    for (const std::string& text : loaded->files.notices)
      push(engine::Notice{engine::now_ns(), engine::Notice::Level::Info, text});
    push(engine::describe(*loaded));
  }
  for (const engine::LoadedHeads* heads : {models.medusa, models.chimera}) {
    if (!heads) continue;
    for (const std::string& text : heads->files.notices)
      push(engine::Notice{engine::now_ns(), engine::Notice::Level::Info, text});
    push(engine::describe(*heads, models.target));
  }
}

void Outputs::close() {
  if (recorder_) {
    recorder_->close();
    if (const auto trouble = recorder_->trouble())
      throw engine::Error(engine::ErrorCode::Resources, *trouble);
    if (recorder_->path() != record_)
      print_error("note: " + record_ + " exists; recorded to " + recorder_->path());
    recorder_.reset();
  }
  if (!trace_.empty()) {
    const engine::TraceReport report = engine::export_trace(
        timeline_, trace_, {.if_exists = engine::OutputFile::IfExists::NewName});
    if (report.path != trace_)
      print_error("note: " + trace_ + " exists; the trace is written to " + report.path);
    print_error(report.path + ": " + report.summary() + "; read again: no rule broken");
    for (const std::string& notice : report.notices) print_error("note: " + notice);
  }
}

void print_and_close(const std::string& text, Outputs& outputs) {
  std::exception_ptr unread;
  try {
    if (!text.empty()) print(text);
  } catch (...) {
    unread = std::current_exception();
  }
  outputs.close();
  if (unread) std::rethrow_exception(unread);
}

}  // namespace app
