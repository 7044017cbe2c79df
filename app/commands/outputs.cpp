#include "app/commands/outputs.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/terminal.h"
#include "app/commands/attempts.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/event/clock.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/timeline.h"
#include "engine/store/model_store.h"
#include "engine/trace/export.h"
#include "kernels/error.h"

namespace app {

namespace {

/// Checks the extension of a file name.
/// @param endings  valid extensions; the message suggests the first
void check_ending(const char* option,
                  const std::string& path,
                  std::initializer_list<std::string_view> endings) {
  const auto ends = [&](std::string_view ending) { return path.ends_with(ending); };
  if (path.empty() || std::ranges::any_of(endings, ends)) return;
  std::filesystem::path other(path);
  other.replace_extension(*endings.begin());
  throw kernels::Error(kernels::ErrorCode::Usage,
                       fmt::format("{}: found {}, expected a name ending in {}; try {}", option,
                                   engine::escaped(path), fmt::join(endings, " or "),
                                   engine::escaped(other.string())));
}

}  // namespace

void check_outputs(const std::string& record, const std::string& trace) {
  check_ending("--record", record, {".pdrun"});
  check_ending("--trace", trace, {".json", ".json.gz", ".pftrace", ".pftrace.gz"});
  for (const std::string& path : {record, trace})
    if (!path.empty()) engine::check_can_be_written(path);
}

Outputs::Outputs(const std::string& record, std::string trace)
    : record_(record), trace_(std::move(trace)) {
  if (!record_.empty()) recorder_ = std::make_unique<engine::Recorder>(record_);
  if (!trace_.empty()) timeline_ = std::make_unique<engine::Timeline>();
}

Outputs::~Outputs() = default;

void Outputs::push(engine::Event event) {
  if (timeline_) timeline_->apply(event);
  if (!recorder_) return;
  recorder_->push(std::move(event));
  n_recorded_++;
}

void Outputs::announce(const engine::RunModels& models) {
  if (!wanted()) return;
  for (const engine::LoadedModel* loaded : {&models.target, models.draft}) {
    if (!loaded || !announced_.insert(loaded->id).second) continue;
    for (const std::string& text : loaded->files.notices)
      push(engine::Notice{engine::now_ns(), engine::Notice::Level::Info, text});
    push(engine::describe(*loaded));
  }
  if (models.draft && announced_pairs_.emplace(models.target.id, models.draft->id).second)
    for (const std::string& text : engine::pair_notices(models))
      push(engine::Notice{engine::now_ns(), engine::Notice::Level::Warning, text});
  for (const engine::LoadedHeads* heads : {models.medusa, models.chimera}) {
    if (!heads || !announced_.insert(heads->id).second) continue;
    for (const std::string& text : heads->files.notices)
      push(engine::Notice{engine::now_ns(), engine::Notice::Level::Info, text});
    push(engine::describe(*heads, models.target));
  }
}

void Outputs::print_notes(engine::ModelStore& store) {
  for (const std::string& note : store.take_notes()) {
    print_error("note: " + note);
    if (wanted()) push(engine::Notice{engine::now_ns(), engine::Notice::Level::Warning, note});
  }
}

void Outputs::close_recording() {
  if (!recorder_) return;
  const std::unique_ptr<engine::Recorder> recorder = std::move(recorder_);
  recorder->close();
  if (const auto trouble = recorder->trouble())
    throw engine::Error(engine::ErrorCode::Resources, *trouble);
  if (recorder->path() != record_)
    print_error("note: " + record_ + " exists; recorded to " + recorder->path());
  print_error(fmt::format("{}: recording of {}, {} bytes", recorder->path(),
                          engine::counted(n_recorded_, "event"), recorder->n_bytes_written()));
}

void Outputs::write_trace() {
  if (!timeline_) return;
  const engine::TraceReport report = engine::export_trace(
      *timeline_, trace_, {.if_exists = engine::OutputFile::IfExists::NewName});
  if (report.path != trace_)
    print_error("note: " + trace_ + " exists; the trace is written to " + report.path);
  print_error(report.path + ": " + report.summary() + "; checked: valid");
  for (const std::string& notice : report.notices) print_error("note: " + notice);
}

void Outputs::close() {
  Attempts attempts;
  attempts.run([this] { close_recording(); });
  attempts.run([this] { write_trace(); });
  attempts.rethrow();
}

void print_and_close(const std::string& text, Outputs& outputs, std::exception_ptr failure) {
  Attempts attempts;
  attempts.add(std::move(failure));
  attempts.run([&] {
    if (!text.empty()) print(text);
  });
  attempts.run([&] { outputs.close(); });
  attempts.rethrow();
}

}  // namespace app
