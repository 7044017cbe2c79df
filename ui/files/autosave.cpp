#include "ui/files/autosave.h"

#include <sys/stat.h>
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "engine/base/types.h"
#include "engine/event/recording/recorder.h"
#include "ui/files/notes.h"
#include "ui/prepare/figure.h"

namespace ui {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBegin = "session-";

// Formats a local time as strftime does.
std::string local_time(std::time_t at, const char* format) {
  std::tm parts{};
  char text[64] = "";
  if (localtime_r(&at, &parts)) std::strftime(text, sizeof text, format, &parts);
  return text;
}

// Returns true for events that a reader needs although they precede the first run.
bool is_needed(const engine::Event& event) {
  return std::holds_alternative<engine::ModelLoaded>(event) ||
         std::holds_alternative<engine::Notice>(event);
}

}  // namespace

fs::path state_folder() {
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg && *xdg)
    return fs::path(xdg) / "decoscope";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".local" / "state" / "decoscope";
  return {};
}

Autosave::Autosave(fs::path folder) : folder_(std::move(folder)) {}

Autosave::~Autosave() = default;

std::optional<std::string> Autosave::push(const engine::Event& event) {
  if (folder_.empty()) return std::nullopt;
  if (!recorder_ && !std::holds_alternative<engine::RunStarted>(event)) {
    if (is_needed(event)) before_.push_back(event);
    return std::nullopt;
  }
  try {
    if (!recorder_) {
      std::error_code ignored;  // a failure is reported when the file is created
      fs::create_directories(folder_, ignored);
      fs::permissions(folder_, fs::perms::owner_all, ignored);  // it holds the user's prompts
      const std::string name = kBegin + local_time(std::time(nullptr), "%Y%m%d-%H%M%S") + ".pdrun";
      recorder_ = std::make_unique<engine::Recorder>((folder_ / name).string());
      for (engine::Event& earlier : before_) recorder_->push(std::move(earlier));
      before_.clear();
    }
    recorder_->push(event);
    return recorder_->trouble();
  } catch (const engine::Error& error) {
    folder_.clear();
    return error.what();
  }
}

void Autosave::discard() {
  folder_.clear();
  if (!recorder_) return;
  recorder_->close();
  std::error_code ignored;  // without a file there is nothing to remove
  for (const std::string& path : {recorder_->path(), engine::partial_name(recorder_->path())})
    fs::remove(path, ignored);
  recorder_.reset();
}

std::vector<UnsavedSession> unsaved_sessions(const fs::path& folder) {
  std::vector<UnsavedSession> left;
  if (folder.empty()) return left;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (!path.filename().string().starts_with(kBegin) || path.extension() != ".pdrun") continue;
    try {
      engine::OutputLock lock = engine::OutputLock::on(path.string());  // makes a missing file
      struct stat facts {};
      if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
      if (facts.st_size == 0) {
        std::error_code ignored;
        fs::remove(path, ignored);
        continue;
      }
      left.push_back({path.string(), facts.st_mtime, static_cast<std::uintmax_t>(facts.st_size),
                      std::move(lock)});
    } catch (const engine::Error&) {
      // A running window writes this file or offers it.
    }
  }
  std::ranges::sort(left, std::greater<>(), &UnsavedSession::changed);
  return left;
}

void remove_session(const UnsavedSession& session) {
  std::error_code ignored;  // a file that cannot be removed is offered again
  fs::remove(session.path, ignored);
  fs::remove(notes_path(session.path), ignored);
}

std::string description_of(const UnsavedSession& session) {
  return fmt::format("the session of {} ({} kB)", local_time(session.changed, "%d %b %H:%M"),
                     with_commas(static_cast<std::int64_t>((session.n_bytes + 999) / 1000)));
}

}  // namespace ui
