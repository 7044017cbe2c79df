// Writes a trace in Perfetto's own format (.pftrace): track events as protocol buffers
// (https://perfetto.dev/docs/reference/synthetic-track-event).
//   process  a track with the process's name; an instant "settings" on it has what JSON traces
//            have in their metadata
//   lane     a child track; slices, block ends and instants are its events
//   counter  a child track for each name and series
//   flow     an id at the slices around its two ends
//   step     the correlation id of every slice of the step, in all lanes of the run
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/trace/trace_writer.h"

namespace engine {

/// Writes the packets of the trace, one after another.
class PerfettoWriter final : public TraceWriter {
 public:
  using TraceWriter::TraceWriter;

  void process(int pid, const std::string& title) override;
  void lane(int pid, int tid, int place, const std::string& name) override;
  void about(int pid, const std::string& object) override;
  void finish() override;

 private:
  /// Writes a packet, its content as fill() adds it.
  template <typename Fill>
  void put(Fill fill);
  /// Declares a track.
  template <typename Fill>
  void put_track(std::uint64_t uuid, Fill fill);
  /// @param type  perfetto::EventType
  template <typename Fill>
  void put_event(Nanoseconds t, std::uint64_t track, int type, Fill fill);
  void write_event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i) override;
  /// Ends the open slices that end at or before `t`, the innermost first.
  void end_slices(std::uint64_t track, Nanoseconds t);
  void begin_slice(std::uint64_t track, int pid, std::span<const TraceItem> lane, std::size_t i);
  void write_counters(int pid, const TraceItem& item);
  /// The track of a counter; declares it at its first use.
  std::uint64_t counter_track(int pid, const std::string& name);

  std::string bytes_;  // of the last packet; kept for its memory
  bool is_empty_ = true;
  std::vector<Nanoseconds> open_;  // ends of the current lane's open slices; the innermost is last
  std::map<std::pair<int, std::string>, std::uint64_t> counters_;
};

}  // namespace engine
