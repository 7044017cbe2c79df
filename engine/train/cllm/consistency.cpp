#include "engine/train/cllm/consistency.h"

#include <algorithm>
#include <span>

#include "engine/base/types.h"

namespace engine {
namespace {

struct Block {
  int begin = 0;  // index of the block's first token in the output
  const BlockPoints* points = nullptr;
  int n_known = 0;  // number of the block's positions that are within the output
};

Block block_at(const Trajectory& t, int index) {
  Block block;
  for (int i = 0; i < index; i++)
    block.begin += static_cast<int>(t.blocks[static_cast<std::size_t>(i)].back().size());
  block.points = &t.blocks[static_cast<std::size_t>(index)];
  block.n_known = std::min(static_cast<int>(block.points->back().size()),
                           static_cast<int>(t.output.size()) - block.begin);
  return block;
}

int first_wrong(const Block& block, int point) {
  return n_correct_prefix((*block.points)[static_cast<std::size_t>(point)], block.points->back());
}

/// Appends the rows of a chain, without loss. The chain has a row for each guess from the first
/// wrong one on, but none for the last guess, because its prediction has no training target.
/// @param begin  position in the output of guess 0
/// @return  the chain's first row
int append_chain(GuidedRows& rows,
                 const Trajectory& t,
                 int begin,
                 std::span<const TokenId> guesses,
                 int first,
                 int n_known) {
  const int at = static_cast<int>(t.prompt.size()) + begin, base = rows.n_rows();
  for (int k = first; k + 1 < n_known; k++) {
    const auto target = static_cast<std::size_t>(begin + k + 1);
    rows.add(guesses[static_cast<std::size_t>(k)], t.output[target], at + k, {at + first, base}, {},
             0, LossPart::Consistency);
  }
  return base;
}

RowGoal goal_of(const ConsistencyLoss& loss, std::int32_t teacher) {
  if (loss.by == ConsistencyLoss::By::HardLabels)
    return {.kind = RowGoal::Kind::Target, .smoothing = static_cast<float>(loss.smoothing)};
  RowGoal goal{.kind = RowGoal::Kind::Forward, .teacher = teacher};
  if (loss.by == ConsistencyLoss::By::ReverseKl) goal.kind = RowGoal::Kind::Reverse;
  if (loss.by == ConsistencyLoss::By::JensenShannon) goal.kind = RowGoal::Kind::JensenShannon;
  return goal;
}

// The rows of a point's chain: row `base + k` holds the guess at position `first + k` of the block.
struct Chain {
  PointPlace place;
  int base = 0, first = 0;
};

class ChainBuilder {
 public:
  ChainBuilder(GuidedRows& rows, const Trajectory& trajectory, const ConsistencyLoss& loss)
      : rows_(rows), t_(trajectory), loss_(loss) {}

  /// Number of rows that add(place) would append, including the chain of the teacher if it is
  /// missing.
  int cost(PointPlace place) const {
    int rows = has(place) ? 0 : chain_rows(t_, place);
    const PointPlace next{place.block, place.point + 1};
    if (loss_.towards == ConsistencyLoss::Towards::NextPoint && !has(next))
      rows += chain_rows(t_, next);
    return rows;
  }
  void add(PointPlace place) {
    const PointPlace next{place.block, place.point + 1};
    if (loss_.towards == ConsistencyLoss::Towards::NextPoint && chain_rows(t_, next) > 0) lay(next);
    learn(lay(place));
  }

 private:
  bool has(PointPlace place) const { return find(place) != nullptr; }
  const Chain* find(PointPlace place) const {
    const auto found = std::ranges::find(chains_, place, &Chain::place);
    return found == chains_.end() ? nullptr : &*found;
  }
  int n_prompt() const { return static_cast<int>(t_.prompt.size()); }

  /// Returns the point's chain. Appends it first, without loss, if it is not among the rows.
  Chain lay(PointPlace place) {
    if (const Chain* known = find(place)) return *known;
    const Block block = block_at(t_, place.block);
    const auto& point = (*block.points)[static_cast<std::size_t>(place.point)];
    const int first = first_wrong(block, place.point);
    const int base = append_chain(rows_, t_, block.begin, point, first, block.n_known);
    return chains_.emplace_back(Chain{place, base, first});
  }

  /// The teacher of a point's row at position k of the block, if points are trained towards the
  /// next point. It is the next point's row; at positions up to which that point equals the text,
  /// it is the text's row.
  std::int32_t teacher_of(PointPlace place, int k) const {
    const Block block = block_at(t_, place.block);
    if (loss_.towards == ConsistencyLoss::Towards::NextPoint) {
      const Chain* next = find({place.block, place.point + 1});
      if (next && k >= next->first) return next->base + k - next->first;
    }
    return n_prompt() + block.begin + k;
  }

  void learn(const Chain& chain) {
    const int n = chain_rows(t_, chain.place);
    double weight = 1;
    for (int i = 0; i < n; i++, weight *= loss_.chain_decay) {
      const auto row = static_cast<std::size_t>(chain.base + i);
      rows_.weight[row] = static_cast<float>(weight);
      rows_.goal[row] = goal_of(loss_, teacher_of(chain.place, chain.first + i));
    }
  }

  GuidedRows& rows_;
  const Trajectory& t_;
  const ConsistencyLoss& loss_;
  std::vector<Chain> chains_;
};

}  // namespace

const char* name_of(LossPart part) {
  switch (part) {
    case LossPart::Autoregressive:
      return "ar";
    case LossPart::Consistency:
      return "consistency";
    case LossPart::Replay:
      return "replay";
  }
  return "?";
}

void GuidedRows::add(TokenId input,
                     TokenId output,
                     std::int32_t position,
                     RowView sees,
                     RowGoal pulled,
                     float counts,
                     LossPart in) {
  token.push_back(input);
  target.push_back(output);
  pos.push_back(position);
  view.push_back(sees);
  goal.push_back(pulled);
  weight.push_back(counts);
  part.push_back(in);
  iterations.push_back(0);
}

GuidedRows plain_rows(
    const TokenText& text, double prompt_weight, double smoothing, LossPart part, int context) {
  GuidedRows rows;
  const int n = std::min(static_cast<int>(text.tokens.size()) - 1, context);
  for (int i = 0; i < n; i++) {
    const auto at = static_cast<std::size_t>(i);
    rows.add(text.tokens[at], text.tokens[at + 1], i, {},
             {.kind = RowGoal::Kind::Target, .smoothing = static_cast<float>(smoothing)},
             i + 1 < text.n_prompt ? static_cast<float>(prompt_weight) : 1.0f, part);
  }
  return rows;
}

GuidedRows rows_of(const Trajectory& t, const ConsistencyLoss& loss) {
  TokenText text;
  text.tokens = t.prompt;
  text.tokens.insert(text.tokens.end(), t.output.begin(), t.output.end());
  text.n_prompt = static_cast<int>(t.prompt.size());
  const int n = static_cast<int>(text.tokens.size());
  GuidedRows rows =
      plain_rows(text, loss.prompt_weight, loss.smoothing, LossPart::Autoregressive, n);
  if (!loss.own_labels) std::ranges::fill(rows.weight, 0.0f);
  return rows;
}

TokenText truth_of(const Trajectory& t) {
  TokenText text;
  text.tokens = t.prompt;
  text.tokens.insert(text.tokens.end(), t.truth.begin(), t.truth.end());
  text.n_prompt = static_cast<int>(t.prompt.size());
  return text;
}

int chain_rows(const Trajectory& trajectory, PointPlace place) {
  const Block block = block_at(trajectory, place.block);
  if (place.point + 1 >= static_cast<int>(block.points->size())) return 0;
  return std::max(0, block.n_known - 1 - first_wrong(block, place.point));
}

std::vector<PointPlace> points_with_targets(const Trajectory& trajectory) {
  std::vector<PointPlace> places;
  for (int block = 0; block < static_cast<int>(trajectory.blocks.size()); block++) {
    const auto n = trajectory.blocks[static_cast<std::size_t>(block)].size();
    for (int point = 0; point + 1 < static_cast<int>(n); point++)
      if (chain_rows(trajectory, {block, point}) > 0) places.push_back({block, point});
  }
  return places;
}

int add_chains(GuidedRows& rows,
               const Trajectory& trajectory,
               const std::vector<PointPlace>& places,
               const ConsistencyLoss& loss,
               int max_rows) {
  ChainBuilder builder(rows, trajectory, loss);
  int n_added = 0;
  for (const PointPlace place : places) {
    if (rows.n_rows() + builder.cost(place) > max_rows) continue;
    builder.add(place);
    n_added++;
  }
  return n_added;
}

int add_fresh_chains(GuidedRows& rows,
                     const Trajectory& t,
                     const FreshChains& wanted,
                     const ConsistencyLoss& loss,
                     int max_rows,
                     Random& rng) {
  const int n_prompt = static_cast<int>(t.prompt.size()), n = static_cast<int>(t.output.size());
  if (n < 2) return 0;
  int n_added = 0;
  for (int i = 0; i < wanted.n; i++) {
    const int begin = rng.below(n - 1), size = std::min(wanted.block, n - begin);
    const int percent_right = i % 2 ? rng.below(100) : 0;
    std::vector<TokenId> guesses;
    int first = size;
    for (int k = 0; k < size; k++) {
      const TokenId right = t.output[static_cast<std::size_t>(begin + k)];
      const auto from = static_cast<std::size_t>(rng.below(n_prompt + begin));
      const TokenId drawn =
          from < t.prompt.size() ? t.prompt[from] : t.output[from - t.prompt.size()];
      guesses.push_back(rng.chance(percent_right) ? right : drawn);
      if (guesses.back() != right) first = std::min(first, k);
    }
    const int n_rows = size - 1 - first;
    if (n_rows <= 0 || rows.n_rows() + n_rows > max_rows) continue;
    const int base = append_chain(rows, t, begin, guesses, first, size);
    double weight = 1;
    for (int k = 0; k < n_rows; k++, weight *= loss.chain_decay) {
      const auto row = static_cast<std::size_t>(base + k);
      rows.weight[row] = static_cast<float>(weight);
      rows.goal[row] = goal_of(loss, n_prompt + begin + first + k);
      rows.iterations[row] = static_cast<std::uint8_t>(wanted.iterations);
    }
    n_added++;
  }
  return n_added;
}

bool has_chains_to_refine(const GuidedRows& rows) {
  return std::ranges::any_of(rows.iterations, [](std::uint8_t n) { return n > 0; });
}

void refine_chains(GuidedRows& rows, std::span<const TokenId> picks, const ConsistencyLoss& loss) {
  bool right = true;  // true while all guesses of the chain are correct
  double weight = 1;
  for (int r = 0; r < rows.n_rows(); r++) {
    const auto row = static_cast<std::size_t>(r);
    if (rows.iterations[row] == 0) continue;
    rows.iterations[row]--;
    // Row i of a segment is position i of the text, so this is the token of the text.
    const TokenId in_text = rows.token[static_cast<std::size_t>(rows.pos[row])];
    const bool begins = r == rows.view[row].own_begin;
    rows.token[row] = begins ? in_text : picks[row - 1];
    right = (begins || right) && rows.token[row] == in_text;
    if (begins) weight = 1;
    rows.weight[row] = right ? 0.0f : static_cast<float>(weight);
    if (!right) weight *= loss.chain_decay;
  }
}

}  // namespace engine
