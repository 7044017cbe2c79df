// The document shown: the events of the live session, or an opened recording instead.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/timeline/timeline.h"

namespace engine {
struct RecordingReport;
}

namespace ui {

class Saving;

/// A session or a recording.
struct Document {
  engine::Timeline timeline;  // all events of the document
  std::string source;         // path of the recording; empty: the live session
  std::string damage;         // the parts of the recording that could not be read; empty: none
};

/// The live session and the opened recording.
class Session {
 public:
  /// Limits the details of steps (payload) that each document keeps, bytes.
  void limit_payload(std::size_t bytes);
  /// Takes new events of the live engine.
  void take(std::vector<engine::Event> events);
  /// Returns the document shown.
  Document& shown() { return opened_ ? *opened_ : live_; }
  /// Returns the document shown.
  const Document& shown() const { return opened_ ? *opened_ : live_; }
  /// Returns true if the live session is shown.
  bool live_is_shown() const { return !opened_; }
  /// Returns the live session.
  Document& live() { return live_; }
  /// Returns the live session.
  const Document& live() const { return live_; }
  /// Shows a recording. Notices report the parts that cannot be read.
  /// @throws Error(BadInput)  the file is not a recording, or nothing in it can be read
  void open(const std::string& path);
  /// open() in three parts: begin() shows an empty recording, grow() adds events, finish() adds notices.
  void begin(const std::string& path);
  /// Adds events that were read.
  void grow(const std::vector<engine::Event>& events);
  /// Adds the notices of the reader.
  void finish(const engine::RecordingReport& report);
  /// Shows the live session.
  void show_live() { opened_.reset(); }
  /// Starts to write the document shown as a recording, without replacing a file. The live timeline must not change meanwhile; of an opened
  /// recording the readable part is copied.
  std::unique_ptr<Saving> save(const std::string& path) const;

 private:
  std::unique_ptr<Document> begun(const std::string& path) const;

  std::size_t payload_limit_ = engine::kPayloadBudget;
  Document live_;
  std::unique_ptr<Document> opened_;
};

}  // namespace ui
