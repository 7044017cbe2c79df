#include "ui/prepare/time/flow_arrows.h"

#include <algorithm>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/walk.h"

namespace ui {
namespace {

bool was_proposed(const engine::RunRecord& run, int position) {
  const auto token = std::ranges::lower_bound(run.tokens, position, {}, &engine::TokenRecord::pos);
  return token != run.tokens.end() && token->pos == position &&
         token->origin.kind != engine::RowTag::Kind::Current;
}

// Returns the lanes that a position passes through, in order.
std::vector<FlowEnd> path_of(const engine::RunRecord& run, int position) {
  std::vector<FlowEnd> way;
  for (const FlowStop& stop : flow_of(run, position)) {
    const std::size_t i = index_of(run, stop.step);
    if (i >= run.steps.size()) continue;
    switch (stop.kind) {
      case FlowStop::Kind::PoolInsert:
        way.push_back({LaneKind::PoolInsert, i});
        break;
      case FlowStop::Kind::Proposed:
      case FlowStop::Kind::Refined:
        way.push_back({LaneKind::Propose, i});
        break;
      case FlowStop::Kind::Committed:
        // A token that was not proposed begins with the target's forward; a proposal begins earlier.
        if (was_proposed(run, position)) way.push_back({LaneKind::Propose, i});
        way.push_back({LaneKind::Target, i});
        way.push_back({LaneKind::Verify, i});
        way.push_back({LaneKind::Commit, i});
        break;
    }
  }
  return way;
}

}  // namespace

std::vector<FlowArrow> arrows_of(const engine::RunRecord& run, const Place& place) {
  std::vector<FlowArrow> arrows;
  if (place.run != run.id()) return arrows;
  int first = place.position, last = place.position;
  if (first < 0) {
    const std::size_t i = index_of(run, place.step);
    if (place.step < 0 || i >= run.steps.size()) return arrows;
    const engine::StepHead step = run.steps.head(i);
    if (step.begun.step != place.step) return arrows;
    first = step.first_pos, last = step.first_pos + step.n_tokens - 1;
  }
  for (int position = first; position <= last; ++position) {
    const std::vector<FlowEnd> way = path_of(run, position);
    for (std::size_t i = 1; i < way.size(); ++i) arrows.push_back({way[i - 1], way[i], position});
  }
  if (arrows.size() > kMaxArrows)
    arrows.erase(arrows.begin(), arrows.end() - static_cast<std::ptrdiff_t>(kMaxArrows));
  return arrows;
}

}  // namespace ui
