#include "ui/prepare/time/walk.h"

#include <algorithm>

#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

using engine::BlockRefined;
using engine::RowTag;
using engine::StepRecord;

// flow_of() visits at most this many steps.
constexpr std::size_t kMaxFlow = 512;

// Returns true if a block has reached its fixed point in this step.
bool converges(const StepRecord& step) {
  return std::any_of(step.blocks.begin(), step.blocks.end(),
                     [](const BlockRefined& b) { return b.converged; });
}

// Returns true if a block of this step contains the position.
bool covers(const StepRecord& step, int position) {
  return std::any_of(step.blocks.begin(), step.blocks.end(), [position](const BlockRefined& b) {
    return b.first_pos <= position && position < b.first_pos + static_cast<int>(b.tokens.size());
  });
}

// Returns the first row that the step proposed for a position; row 0 is at the position after the cache.
int row_at(const StepRecord& step, int position) {
  const engine::TokenTree& tree = step.drafted.tree;
  std::vector<int> depth(tree.token.size(), 0);
  for (int i = 1; i < tree.n_rows(); ++i) {
    if (tree.parent[i] >= 0 && tree.parent[i] < i) depth[i] = depth[tree.parent[i]] + 1;
    const RowTag::Kind kind = tree.tag[i].kind;
    const bool proposed = kind == RowTag::Kind::Guess || kind == RowTag::Kind::Draft;
    if (proposed && step.begun.kv_len + depth[i] == position) return i;
  }
  return -1;
}

const engine::TokenRecord* token_at(const engine::RunRecord& run, int position) {
  const auto at =
      std::lower_bound(run.tokens.begin(), run.tokens.end(), position,
                       [](const engine::TokenRecord& token, int pos) { return token.pos < pos; });
  return at != run.tokens.end() && at->pos == position ? &*at : nullptr;
}

// Returns the step that added the token's n-gram to the pool; -1 if the n-gram is from the prompt or there is none.
engine::StepId insert_of(const StepRecord& step, const engine::TokenRecord& token) {
  if (token.origin.kind != RowTag::Kind::Guess || !step.pool) return -1;
  engine::StepId born = -1;
  for (const engine::PoolNgram& ngram : step.pool->tried) {
    const auto place = static_cast<std::size_t>(std::max<int>(0, token.origin.b));
    if (place < ngram.rest.size() && ngram.rest[place] == token.id && ngram.born >= 0 &&
        ngram.born < step.begun.step)
      born = std::max(born, ngram.born);
  }
  return born;
}

}  // namespace

std::size_t index_of(const engine::RunRecord& run, engine::StepId step) {
  std::size_t low = 0, high = run.steps.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (run.steps.head(middle).begun.step < step)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::optional<std::size_t> next_boundary(const engine::RunRecord& run,
                                         std::size_t n_steps,
                                         int direction) {
  const auto size = static_cast<std::ptrdiff_t>(run.steps.size());
  bool has_blocks = false, has_ends = false;
  for (std::size_t i = 0; i < run.steps.size() && !has_ends; ++i) {
    if (run.steps.head(i).n_blocks == 0) continue;  // known without unpacking the step
    has_blocks = true;
    has_ends = converges(run.steps[i]);
  }
  if (!has_blocks) return std::nullopt;
  for (auto n = static_cast<std::ptrdiff_t>(n_steps) + direction; n >= 0 && n <= size;
       n += direction)
    if (n == 0 || n == size || !has_ends || converges(run.steps[n - 1]))
      return static_cast<std::size_t>(n);
  return std::nullopt;
}

std::optional<std::size_t> next_in_lane(const RunTimes& times,
                                        LaneKind lane,
                                        std::size_t from,
                                        int direction) {
  const auto size = static_cast<std::ptrdiff_t>(times.steps.size());
  for (auto i = static_cast<std::ptrdiff_t>(from) + direction; i >= 0 && i < size; i += direction) {
    const StepSpan& s = times.steps[i];
    if (lane == LaneKind::PoolHit && !s.has_pool_hit) continue;
    if (lane == LaneKind::PoolInsert && !s.has_pool_insert) continue;
    return static_cast<std::size_t>(i);
  }
  return std::nullopt;
}

std::vector<FlowStop> flow_of(const engine::RunRecord& run, int position) {
  std::vector<FlowStop> flow;
  if (run.steps.empty()) return flow;
  const engine::TokenRecord* token = token_at(run, position);
  std::size_t at = run.steps.size() - 1;
  if (token) {
    at = std::min(at, index_of(run, token->step));
    flow.push_back({FlowStop::Kind::Committed, token->step, -1});
  }
  for (std::size_t n = 0; n < kMaxFlow; ++n) {
    const StepRecord& step = run.steps[at];
    const int row = row_at(step, position);
    const bool refined = covers(step, position);
    const bool commits = token && step.begun.step == token->step;
    if (row < 0 && !refined && !commits && !flow.empty()) break;
    if (!commits && (row >= 0 || refined))
      flow.push_back(
          {row >= 0 ? FlowStop::Kind::Proposed : FlowStop::Kind::Refined, step.begun.step, row});
    if (at == 0) break;
    --at;
  }
  if (token) {
    const engine::StepId born = insert_of(run.steps[index_of(run, token->step)], *token);
    if (born >= 0 && born < flow.back().step)
      flow.push_back({FlowStop::Kind::PoolInsert, born, -1});
  }
  std::reverse(flow.begin(), flow.end());
  return flow;
}

}  // namespace ui
