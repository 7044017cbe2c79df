#include "engine/decode/draft/tree_choice.h"

#include <algorithm>

#include "engine/base/types.h"

namespace engine {
namespace {

/// Assumed time of a draft's forward before one is measured, relative to a plain step.
constexpr double kDraftShare = 0.1;
constexpr int kLongestChain = 16;
/// Weight of earlier prompts and sequences, per prompt or sequence.
constexpr double kForget = 0.98;

/// Expected tokens of a step with this tree, the target's own included.
/// @param share  of a node's verifications that accept its candidate of a rank
template <class Share>
double expected_tokens(const LevelCounts& tree, std::size_t n_ranks, const Share& share) {
  double below = 1;
  for (auto k = tree.rbegin(); k != tree.rend(); ++k) {
    double kept = 0;
    for (std::size_t rank = 0; rank < std::min(n_ranks, static_cast<std::size_t>(*k)); rank++)
      kept += share(rank);
    below = 1 + std::min(kept, 1.0) * below;
  }
  return below;
}

}  // namespace

const std::vector<LevelCounts>& chains_to_choose() {
  static const std::vector<LevelCounts> chains = [] {
    std::vector<LevelCounts> all;
    for (std::size_t n = 0; n <= kLongestChain; n++) all.push_back(LevelCounts(n, 1));
    return all;
  }();
  return chains;
}

const std::vector<LevelCounts>& trees_to_choose() {
  static const std::vector<LevelCounts> trees = {
      {},          {1},          {1, 1},    {1, 1, 1}, {2, 1},       {1, 1, 1, 1}, {1, 1, 1, 1, 1},
      {2, 1, 1},   {2, 1, 1, 1}, {3, 1, 1}, {2, 2, 1}, {3, 1, 1, 1}, {2, 2, 1, 1}, {3, 2, 1, 1},
      {4, 2, 1, 1}};
  return trees;
}

int rows_of(const LevelCounts& tree) {
  return 1 + shape_of(tree).n_tokens;
}

DraftKnowledge::DraftKnowledge() {
  for (const double prior : {0.6, 0.12, 0.05, 0.03}) ranks_.emplace_back(prior, 8);
}

void DraftKnowledge::add_verified(int n_children, int kept) {
  ensure(kept < n_children, "the accepted candidate must be one of the node's");
  for (std::size_t rank = 0; rank < ranks_.size() && static_cast<int>(rank) < n_children; rank++)
    ranks_[rank].add(static_cast<int>(rank) == kept);
}

void DraftKnowledge::add_forward(const DraftForward& forward, bool is_beside) {
  forwards_.of(is_beside).add(std::max(forward.n_rows, 1),
                              static_cast<double>(forward.ended - forward.begun) * 1e-6);
}

void DraftKnowledge::came(int n_tokens, double plain_share) {
  for (Rate& rate : ranks_) rate.fade();
  chooser_.came(n_tokens, plain_share);
}

/// Time of the forwards that draft a tree: the root's, then one for each level but the last.
double DraftKnowledge::drafting_ms(const LevelCounts& tree, const StepControl& control) const {
  const CostModel& forwards = forwards_.of(control.is_overlapped());
  // Times of the draft say nothing beside a target whose steps are not measured.
  const bool is_known = forwards.n_measured() > 0 && control.costs().n_measured() > 0;
  const double unit = is_known ? 1 : kDraftShare * control.ms(1);
  double ms = 0;
  int width = 1;
  for (const int k : tree) {
    ms += unit * (is_known ? forwards.ms(width) : 1);
    width *= k;
  }
  return ms;
}

void DraftKnowledge::add_reading(int n_prompt, double ms) {
  prompts_ms_ = kForget * prompts_ms_ + ms;
  prompt_tokens_ = kForget * prompt_tokens_ + n_prompt;
  trust_ = 1;
}

void DraftKnowledge::sequence_ended(int n_tokens, bool has_read) {
  n_sequences_ = kForget * n_sequences_ + 1;
  sequence_tokens_ = kForget * sequence_tokens_ + n_tokens;
  if (!has_read) trust_ *= kForget;
}

// Assumes that every token ends a sequence with the same probability. The expected number of further
// tokens is then the mean length of sequences, however long this one is.
double DraftKnowledge::reading_ms(int n_prompt, int n_left, const StepControl& control) const {
  // Without measured steps of the target there is nothing to compare the time with.
  if (prompt_tokens_ <= 0 || control.costs().n_measured() == 0) return 0;
  double n_tokens = n_left;
  if (n_sequences_ > 0) n_tokens = std::min(n_tokens, sequence_tokens_ / n_sequences_);
  return trust_ * prompts_ms_ / prompt_tokens_ * n_prompt / std::max(n_tokens, 1.0);
}

std::vector<SizePlan> DraftKnowledge::plans(std::span<const LevelCounts> trees,
                                            const StepControl& control,
                                            double reading_ms) const {
  std::vector<SizePlan> plans;
  for (const LevelCounts& tree : trees) {
    const auto mean = [this](std::size_t rank) { return ranks_[rank].mean(); };
    const auto hoped = [this](std::size_t rank) { return ranks_[rank].hoped(); };
    const double tokens = expected_tokens(tree, ranks_.size(), mean);
    const double draft_ms = drafting_ms(tree, control) + (tree.empty() ? 0 : reading_ms * tokens);
    plans.push_back({tokens, expected_tokens(tree, ranks_.size(), hoped),
                     control.round_ms(draft_ms, control.ms(rows_of(tree)))});
  }
  return plans;
}

}  // namespace engine
