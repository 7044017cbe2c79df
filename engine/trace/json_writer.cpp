#include "engine/trace/json_writer.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/recording_format.h"

namespace engine {
namespace {

/// The JSON object of an event. Ids of "token" flows get the pid in their upper 32 bits, as flow
/// ids must be unique in a file.
std::string event_json(const TraceItem& item, int pid, int tid) {
  std::string text = fmt::format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}", item.ph, pid,
                                 tid, as_microseconds(item.ts));
  if (item.ph == 'X') text += ",\"dur\":" + as_microseconds(item.end - item.ts);
  if (!item.cat.empty()) text += ",\"cat\":" + json_quoted(item.cat);
  text += ",\"name\":" + json_quoted(item.name);
  const bool has_id = item.ph == 's' || item.ph == 'f' || item.ph == 'b' || item.ph == 'e';
  if (has_id) {
    const std::int64_t run_part = item.cat == "token" ? static_cast<std::int64_t>(pid) << 32 : 0;
    text += fmt::format(",\"id\":{}", run_part + item.id);
  }
  if (item.ph == 'f') text += ",\"bp\":\"e\"";
  if (item.ph == 'i') text += ",\"s\":\"t\"";
  if (!item.args.empty()) text += ",\"args\":" + item.args;
  return text + "}";
}

}  // namespace

JsonTraceWriter::JsonTraceWriter(TraceReport& report,
                                 const char* clock,
                                 std::function<void(std::string_view)> write)
    : TraceWriter(report, clock, std::move(write)) {
  write_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
}

void JsonTraceWriter::put(const std::string& object) {
  write_(report().n_events <= 1 ? "\n" : ",\n");
  write_(object);
}

void JsonTraceWriter::put_name(int pid, int tid, const char* what, const std::string& args) {
  count_name();
  put(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{{}}}}}", pid,
                  tid, what, args));
}

void JsonTraceWriter::process(int pid, const std::string& title) {
  has_process_ = true;
  put_name(pid, 1, "process_name", "\"name\":" + json_quoted(title));
  put_name(pid, 1, "process_sort_index", fmt::format("\"sort_index\":{}", pid));
}

void JsonTraceWriter::lane(int pid, int tid, int place, const std::string& name) {
  put_name(pid, tid, "thread_name", "\"name\":" + json_quoted(name));
  put_name(pid, tid, "thread_sort_index", fmt::format("\"sort_index\":{}", place));
}

void JsonTraceWriter::write_event(int pid,
                                  int tid,
                                  std::span<const TraceItem> lane,
                                  std::size_t i) {
  put(event_json(lane[i], pid, tid));
}

void JsonTraceWriter::about(int, const std::string& object) {
  // Viewers show the top level of the metadata, so a single run's entry goes there too.
  only_ = runs_.empty() ? object.substr(1, object.size() - 2) + "," : "";
  runs_ += (runs_.empty() ? "" : ",") + object;
}

void JsonTraceWriter::finish() {
  // Viewers do not recognise a trace without events.
  if (!has_process_) put_name(1, 1, "process_name", "\"name\":\"no run\"");
  write_(
      fmt::format("\n],\"metadata\":{{\"profile\":\"PD-1\",\"app\":\"decoscope\","
                  "\"app_version\":{},\"clock\":\"{}\",\"nudged_times\":{},"
                  "\"left_out\":{},\"events\":{},{}\"runs\":[{}]}}}}\n",
                  json_quoted(program_version()), clock_, report().n_nudges, report().n_left_out,
                  report().n_events, only_, runs_));
}

}  // namespace engine
