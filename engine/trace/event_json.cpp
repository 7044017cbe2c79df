#include "engine/trace/event_json.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"

namespace engine {
namespace {

/// Metadata of a process or lane: its name or its place in the order.
void put_name(int pid,
              int tid,
              const char* what,
              const std::string& args,
              TraceReport& report,
              const PutEvent& put) {
  ++report.n_metadata, ++report.n_events;
  put(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{{}}}}}", pid,
                  tid, what, args));
}

}  // namespace

void count_event(const TraceItem& item, TraceReport& report) {
  ++report.n_events;
  switch (item.ph) {
    case 'X':
      ++report.n_slices;
      break;
    case 'b':
    case 'e':
      ++report.n_async;
      break;
    case 'i':
      ++report.n_instants;
      break;
    case 'C':
      ++report.n_counters;
      break;
    default:
      ++report.n_flows;
      break;
  }
}

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

void put_lane_name(int pid,
                   int tid,
                   int place,
                   const std::string& name,
                   TraceReport& report,
                   const PutEvent& put) {
  put_name(pid, tid, "thread_name", "\"name\":" + json_quoted(name), report, put);
  put_name(pid, tid, "thread_sort_index", fmt::format("\"sort_index\":{}", place), report, put);
}

void put_process_name(int pid, const std::string& title, TraceReport& report, const PutEvent& put) {
  put_name(pid, 1, "process_name", "\"name\":" + json_quoted(title), report, put);
  put_name(pid, 1, "process_sort_index", fmt::format("\"sort_index\":{}", pid), report, put);
}

}  // namespace engine
