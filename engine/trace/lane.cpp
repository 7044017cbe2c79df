#include "engine/trace/lane.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace engine {

LaneChanges sort_and_nest(std::vector<TraceItem>& lane) {
  std::ranges::stable_sort(lane, [](const TraceItem& a, const TraceItem& b) {
    if (a.ts != b.ts) return a.ts < b.ts;
    return a.ph == 'X' && b.ph == 'X' && a.end > b.end;
  });
  LaneChanges changes;
  std::vector<TraceItem> nested;
  nested.reserve(lane.size());
  std::vector<Nanoseconds> open;  // ends of the enclosing slices; the innermost is last
  Nanoseconds last = -1;
  for (TraceItem& item : lane) {
    const Nanoseconds wanted = item.ts;
    item.ts = std::max(item.ts, last + 1);
    while (!open.empty() && open.back() <= item.ts) open.pop_back();
    if (item.ph == 'X') {
      item.end = std::max(item.end, item.ts + 1);
      if (!open.empty() && item.end > open.back()) item.end = open.back();
    }
    // A flow must lie strictly inside a slice; a slice must not be empty.
    const bool flow = item.ph == 's' || item.ph == 'f';
    if ((flow && open.empty()) || (item.ph == 'X' && item.end <= item.ts)) {
      ++changes.n_left_out;
      continue;
    }
    changes.n_nudges += item.ts != wanted ? 1 : 0;
    if (item.ph == 'X') open.push_back(item.end);
    last = item.ts;
    nested.push_back(std::move(item));
  }
  lane = std::move(nested);
  return changes;
}

std::string as_microseconds(std::int64_t ns) {
  std::string text = fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace engine
