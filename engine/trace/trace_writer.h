// The parts of an exported trace, independent of the file's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/trace/lane.h"
#include "engine/trace/trace_report.h"

namespace engine {

/// Writes processes, lanes and events in a format, and counts them.
class TraceWriter {
 public:
  /// @param report  receives the counts; outlives the writer
  /// @param clock   the name of the clock of all times
  /// @param write   receives the bytes of the trace in parts
  TraceWriter(TraceReport& report, const char* clock, std::function<void(std::string_view)> write)
      : clock_(clock), write_(std::move(write)), report_(report) {}
  virtual ~TraceWriter() = default;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Names a process. Viewers order processes by pid.
  virtual void process(int pid, const std::string& title) = 0;
  /// Names a lane of a process that was named before, and sets its place among the lanes.
  virtual void lane(int pid, int tid, int place, const std::string& name) = 0;
  /// Writes lane[i]. The events of a lane come in order, without another lane's between them.
  /// @param lane  as sort_and_nest() returns it
  void event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i);
  /// Receives the settings and results of a run, after its events.
  /// @param object  JSON
  virtual void about(int pid, const std::string& object) = 0;
  /// Ends the trace, after everything else.
  virtual void finish() = 0;

 protected:
  virtual void write_event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i) = 0;
  void count_name() { ++report_.n_metadata, ++report_.n_events; }
  /// Counts the series of a counter beyond its first.
  void count_series(std::int64_t n) { report_.n_counters += n, report_.n_events += n; }
  const TraceReport& report() const { return report_; }

  const char* const clock_;
  const std::function<void(std::string_view)> write_;

 private:
  TraceReport& report_;
};

}  // namespace engine
