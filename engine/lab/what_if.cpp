#include "engine/lab/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "engine/lab/acceptance.h"

namespace engine {
namespace {

constexpr int kDeepest = 16, kWidestWindow = 2;  // of chains; times the recorded window

RecordedShape::Step shape_of(const StepRecord& step, int& n_columns) {
  const TokenTree& tree = step.drafted.tree;
  RecordedShape::Step shape;
  std::vector<RecordedShape::Row> all(static_cast<std::size_t>(tree.n_rows()));
  std::vector<std::int16_t> n_children(all.size() + 1);  // [parent + 1] proposals so far
  for (int i = 0; i < tree.n_rows(); ++i) {
    if (tree.tag[i].kind == RowTag::Kind::Window) {
      ++shape.n_window;
      n_columns = std::max(n_columns, tree.tag[i].b + 1);
      continue;
    }
    if (!is_proposal(tree.tag[i].kind)) {
      ++shape.n_fixed;
      continue;
    }
    const int parent = tree.parent[i];
    const RecordedShape::Row above = parent < 0 ? RecordedShape::Row{} : all[parent];
    RecordedShape::Row& row = all[i];
    row.depth = static_cast<std::int16_t>(above.depth + 1);
    row.rank = std::max(above.rank, n_children[parent + 1]++);
    row.accepted = i < std::ssize(step.verified.fate) && step.verified.fate[i] == RowFate::Accepted;
    shape.rows.push_back(row);
  }
  return shape;
}

bool is_chain(const RecordedShape& shape) {
  return shape.recorded.width == 1;
}

}  // namespace

const char* name_of(Knob knob) {
  static constexpr std::array<const char*, kKnobs> kNames{"depth", "width", "nodes", "window"};
  return kNames[static_cast<std::size_t>(knob)];
}

const char* help_of(Knob knob) {
  static constexpr std::array<const char*, kKnobs> kHelp{
      "depth of the proposals: gamma of a draft, the length of a block or of an n-gram",
      "alternatives at one depth: candidates of a node, n-grams of a step",
      "number of proposals of a step; later rows are left out",
      "columns of Lookahead's window; the n-grams that it yields stay those of the recording"};
  return kHelp[static_cast<std::size_t>(knob)];
}

int& WhatIfSizes::of(Knob knob) {
  return knob == Knob::Depth   ? depth
         : knob == Knob::Width ? width
         : knob == Knob::Nodes ? nodes
                               : window;
}

RecordedShape recorded_shape(const Timeline& timeline, const RunRecord& run) {
  const Acceptance acceptance = acceptance_of(run);
  const SpeedAccount account = speed_account(timeline, run, acceptance);
  if (!account.why.empty()) return {.why = account.why};
  if (acceptance.reached == 0)
    return {.why = run.over() ? "This run proposed no tokens."
                              : "This run has proposed no tokens so far."};
  RecordedShape shape;
  double n_levels = 0;
  for (const StepRecord& step : run.steps) {
    if (!step.complete) continue;
    shape.steps.push_back(shape_of(step, shape.recorded.window));
    int deepest = 0;
    for (const RecordedShape::Row& row : shape.steps.back().rows) {
      deepest = std::max<int>(deepest, row.depth);
      shape.recorded.width = std::max(shape.recorded.width, row.rank + 1);
    }
    n_levels += deepest;
    shape.recorded.depth = std::max(shape.recorded.depth, deepest);
    shape.recorded.nodes =
        std::max(shape.recorded.nodes, static_cast<int>(shape.steps.back().rows.size()));
  }
  const StepCost cost = step_cost_of(run), plain = step_cost_of(*timeline.baseline_of(run));
  shape.rate = static_cast<double>(acceptance.passed) / acceptance.reached;
  shape.plain_ms = plain.total();
  shape.plain_forward = plain.forward;
  shape.draft_ms = n_levels > 0 ? cost.draft * cost.n_steps / n_levels : 0;
  shape.other_ms = cost.propose - cost.draft + cost.finish;
  for (int i = 0; i < kRowCosts; ++i)
    shape.cost[i] = row_curve(static_cast<RowCost>(i), timeline, run);
  return shape;
}

int largest(const RecordedShape& shape, Knob knob) {
  switch (knob) {
    case Knob::Depth:
      return is_chain(shape) ? std::max(kDeepest, shape.recorded.depth) : shape.recorded.depth;
    case Knob::Width:
      return is_chain(shape) ? 0 : shape.recorded.width;
    case Knob::Nodes:
      return is_chain(shape) ? 0 : shape.recorded.nodes;
    case Knob::Window:
      break;
  }
  return kWidestWindow * shape.recorded.window;
}

WhatIf what_if(const RecordedShape& shape, const WhatIfSizes& sizes, RowCost cost) {
  WhatIf sum;
  const int n_more = is_chain(shape) ? std::max(0, sizes.depth - shape.recorded.depth) : 0;
  const double more_tokens = expected_tokens(shape.rate, n_more) - 1;
  for (const RecordedShape::Step& step : shape.steps) {
    int n = 0, n_accepted = 0, deepest = 0;
    for (const RecordedShape::Row& row : step.rows) {
      if (n == sizes.nodes) break;
      if (row.depth > sizes.depth || row.rank >= sizes.width) continue;
      ++n;
      n_accepted += row.accepted;
      deepest = std::max<int>(deepest, row.depth);
    }
    sum.tokens += 1 + n_accepted;
    // A chain of the full recorded length would have gone on.
    if (n_more > 0 && deepest == shape.recorded.depth) {
      if (n_accepted == deepest) sum.tokens += more_tokens;
      n += n_more;
      deepest += n_more;
    }
    const double window = shape.recorded.window > 0 ? static_cast<double>(step.n_window) *
                                                          sizes.window / shape.recorded.window
                                                    : 0;
    const double rows = step.n_fixed + window + n;
    sum.rows += rows;
    sum.ms += shape.plain_forward * shape.cost[static_cast<int>(cost)].at(rows) +
              deepest * shape.draft_ms + shape.other_ms;
  }
  const double n = std::max(1.0, static_cast<double>(shape.steps.size()));
  sum.tokens /= n, sum.rows /= n, sum.ms /= n;
  sum.speedup = sum.ms > 0 ? sum.tokens * shape.plain_ms / sum.ms : 0;
  return sum;
}

int smallest(Knob knob) {
  return knob == Knob::Width ? 1 : 0;
}

std::vector<double> speedups_over(const RecordedShape& shape,
                                  Knob knob,
                                  WhatIfSizes sizes,
                                  RowCost cost) {
  // The limits of width and nodes do not apply to a chain: its extra depth adds nodes.
  if (is_chain(shape)) sizes.width = 1, sizes.nodes = std::max(sizes.nodes, shape.recorded.nodes);
  std::vector<double> speedups;
  for (int value = smallest(knob); value <= largest(shape, knob); ++value) {
    sizes.of(knob) = value;
    speedups.push_back(what_if(shape, sizes, cost).speedup);
  }
  return speedups;
}

std::optional<std::size_t> below_one_from(std::span<const double> speedups) {
  std::size_t from = speedups.size();
  while (from > 0 && speedups[from - 1] < 1) --from;
  return from < speedups.size() ? std::optional(from) : std::nullopt;
}

}  // namespace engine
