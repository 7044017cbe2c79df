// Writes a trace in Chrome's JSON format, profile PD-1 (docs/contracts.md).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/trace/trace_writer.h"

namespace engine {

/// Writes the text of the trace.
class JsonTraceWriter final : public TraceWriter {
 public:
  /// Begins the trace. Parameters: as TraceWriter
  JsonTraceWriter(TraceReport& report,
                  const char* clock,
                  std::function<void(std::string_view)> write);

  void process(int pid, const std::string& title) override;
  void lane(int pid, int tid, int place, const std::string& name) override;
  void about(int pid, const std::string& object) override;
  void finish() override;

 private:
  void write_event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i) override;
  /// Writes the JSON object of an event, after it was counted.
  void put(const std::string& object);
  /// Writes a metadata event of a process or lane: its name or its sort index.
  void put_name(int pid, int tid, const char* what, const std::string& args);

  std::string runs_, only_;  // entries of the metadata
  bool has_process_ = false;
};

}  // namespace engine
