#include "ui/files/session.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/recording.h"
#include "engine/trace/describe.h"
#include "ui/files/saving.h"

namespace ui {

namespace {

// Returns the parts of a recording that could not be read; empty if there are none. A recording that was not closed is not damaged.
std::string damage_in(const engine::RecordingReport& report) {
  std::string text;
  if (report.n_damaged > 0)
    text = fmt::format("{} left out ({} bytes)", engine::counted(report.n_damaged, "event"),
                       report.skipped_bytes);
  if (report.incomplete_bytes > 0)
    text += fmt::format("{}the last {} bytes are incomplete", text.empty() ? "" : "; ",
                        report.incomplete_bytes);
  return text;
}

// Adds a notice to an opened recording if its weights differ from those of the loaded model. @return whether they differ
bool compare_weights(Document& opened, const engine::ModelLoaded& live) {
  engine::Timeline& timeline = opened.timeline;
  for (const auto& [id, model] : timeline.models()) {
    const auto sentence =
        engine::other_weights(model.name, model.weights_hash, live.name, live.weights_hash);
    if (!sentence) continue;
    timeline.apply(
        engine::Notice{timeline.last_event(), engine::Notice::Level::Warning, *sentence});
    return true;
  }
  return false;
}

}  // namespace

void Session::limit_payload(std::size_t bytes) {
  payload_limit_ = bytes;
  live_.timeline.set_payload_budget(bytes);
  if (opened_) opened_->timeline.set_payload_budget(bytes);
}

// Returns an empty document for a recording.
std::unique_ptr<Document> Session::begun(const std::string& path) const {
  auto document = std::make_unique<Document>();
  document->source = path;
  document->timeline.set_payload_budget(payload_limit_);
  return document;
}

void Session::take(std::vector<engine::Event> events) {
  for (const engine::Event& event : events) {
    const auto* model = std::get_if<engine::ModelLoaded>(&event);
    if (model && opened_) compare_weights(*opened_, *model);
    live_.timeline.apply(event);
  }
}

void Session::open(const std::string& path) {
  auto document = begun(path);
  const engine::RecordingReport report = engine::load_recording(path, document->timeline);
  opened_ = std::move(document);
  finish(report);
}

void Session::begin(const std::string& path) {
  opened_ = begun(path);
}

void Session::grow(const std::vector<engine::Event>& events) {
  if (!opened_) return;
  for (const engine::Event& event : events) opened_->timeline.apply(event);
}

void Session::finish(const engine::RecordingReport& report) {
  if (!opened_) return;
  opened_->damage = damage_in(report);
  // Notices of the reader are not part of the recording and are not saved again.
  for (const std::string& notice : report.notices())
    opened_->timeline.apply(
        engine::Notice{opened_->timeline.last_event(), engine::Notice::Level::Warning, notice});
  // Newest model first: a target and its draft may both be loaded.
  const auto& live = live_.timeline.models();
  for (auto model = live.rbegin(); model != live.rend(); ++model)
    if (compare_weights(*opened_, model->second)) break;
}

std::unique_ptr<Saving> Session::save(const std::string& path) const {
  if (shown().source.empty()) return std::make_unique<Saving>(shown().timeline, path);
  return std::make_unique<Saving>(shown().source, path);
}

}  // namespace ui
