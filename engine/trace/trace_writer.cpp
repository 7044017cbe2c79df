#include "engine/trace/trace_writer.h"

namespace engine {

void TraceWriter::event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i) {
  ++report_.n_events;
  switch (lane[i].ph) {
    case 'X':
      ++report_.n_slices;
      break;
    case 'b':
    case 'e':
      ++report_.n_async;
      break;
    case 'i':
      ++report_.n_instants;
      break;
    case 'C':
      ++report_.n_counters;
      break;
    default:
      ++report_.n_flows;
      break;
  }
  write_event(pid, tid, lane, i);
}

}  // namespace engine
