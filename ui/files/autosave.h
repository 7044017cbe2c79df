// The autosave of the live session: a recording in the user's state folder that is written while events arrive. After a crash the next
// window offers it.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/output_file.h"
#include "engine/event/event.h"

namespace engine {
class Recorder;
}

namespace ui {

/// Returns $XDG_STATE_HOME/decoscope, else $HOME/.local/state/decoscope; empty if neither is set.
std::filesystem::path state_folder();

/// The autosave of one window. A thread of the recorder appends the events; the file stays readable if the process is killed.
class Autosave {
 public:
  /// @param folder  empty: nothing is saved
  explicit Autosave(std::filesystem::path folder);
  /// Closes the file and keeps it.
  ~Autosave();
  Autosave(const Autosave&) = delete;
  Autosave& operator=(const Autosave&) = delete;

  /// Appends an event. The file begins with the first run; models that were loaded before it are written first.
  /// @return why the session is no longer saved; reported once
  std::optional<std::string> push(const engine::Event& event);
  /// Ends the autosave and removes the file.
  void discard();

 private:
  std::filesystem::path folder_;
  std::vector<engine::Event> before_;  // events before the first run
  std::unique_ptr<engine::Recorder> recorder_;
};

/// A session that an earlier window did not save.
struct UnsavedSession {
  std::string path;
  std::time_t changed = 0;  // when its last event was written
  std::uintmax_t n_bytes = 0;
  engine::OutputLock lock;  // held by this window, so other windows do not offer the session
};

/// Returns the sessions in a folder that no running window writes, newest first.
std::vector<UnsavedSession> unsaved_sessions(const std::filesystem::path& folder);
/// Removes the files of a session.
void remove_session(const UnsavedSession& session);
/// Returns "the session of 27 Nov 17:42 (1,300 kB)".
std::string description_of(const UnsavedSession& session);

}  // namespace ui
