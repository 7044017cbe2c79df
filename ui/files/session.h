// What is shown: the live session's events, or an opened recording in its place. Also the files a
// person asks for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/event/recording/recording.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/saving.h"

namespace ui {

struct Document {
  engine::Timeline timeline;  // the one place where events are kept
  std::string source;         // path of a recording; empty: live
};

class Session {
 public:
  /// New events of the live engine.
  void take(std::vector<engine::Event> events);
  Document& shown() { return opened_ ? *opened_ : live_; }
  const Document& shown() const { return opened_ ? *opened_ : live_; }
  bool live_is_shown() const { return !opened_; }
  Document& live() { return live_; }
  const Document& live() const { return live_; }
  /// Shows a recording; what is whole in it is there, the rest is told as notices.
  /// @throws Error(BadInput)  it is no recording, or nothing in it can be read
  void open(const std::string& path);
  /// The same in pieces: shows an empty recording, then what is read of it, then what was found.
  void begin(const std::string& path);
  void grow(const std::vector<engine::Event>& events);
  void finish(const engine::RecordingReport& report);
  void show_live() { opened_.reset(); }
  /// Begins to write what is shown as a .pdrun recording, never over another file: of a live
  /// session what its timeline holds, which must not change until then; of an opened recording what
  /// is whole in that file.
  std::unique_ptr<Saving> save(const std::string& path) const;

 private:
  Document live_;
  std::unique_ptr<Document> opened_;
};

}  // namespace ui
