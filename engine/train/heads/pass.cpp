#include "engine/train/heads/pass.h"
#include "engine/checkpoint/shared/output_tokens.h"

namespace engine {

int HeadsText::n_targets(int head) const {
  if (rows.empty()) return n_places(head);
  int n = 0;
  for (int i = 0; i < n_places(head); i++) n += row_of(n_prompt + 1 + i + head) >= 0;
  return n;
}

std::vector<std::int32_t> output_rows_of(std::span<const TokenId> tokens,
                                         const HeadsConfig& config) {
  const std::vector<TokenId>& ranked = config.output_tokens;
  std::vector<std::int32_t> rows;
  if (ranked.empty()) return rows;
  for (const TokenId token : tokens) {
    rows.push_back(output_row(ranked, token).value_or(kNotRanked));
  }
  return rows;
}

void HeadsSums::operator+=(const HeadsSums& other) {
  for (std::size_t k = 0; k < loss.size(); k++) {
    loss[k] += other.loss[k];
    n[k] += other.n[k];
  }
  feature += other.feature;
  n_feature += other.n_feature;
}

void HeadsRanks::add(int head, int rank) {
  const auto k = static_cast<std::size_t>(head);
  n[k]++;
  if (rank < kRanks) hits[k][static_cast<std::size_t>(rank)]++;
}

double HeadsRanks::top(int head, int best) const {
  const auto k = static_cast<std::size_t>(head);
  std::int64_t among = 0;
  for (int r = 0; r < std::min(best, kRanks); r++) among += hits[k][static_cast<std::size_t>(r)];
  return n[k] ? static_cast<double>(among) / static_cast<double>(n[k]) : 0;
}

void MeasuredRanks::add_place(std::span<const int> ranks) {
  bool all_right = true;
  for (std::size_t head = 0; head < ranks.size(); head++) {
    all.add(static_cast<int>(head), ranks[head]);
    if (all_right) after_right.add(static_cast<int>(head), ranks[head]);
    all_right = all_right && ranks[head] == 0;
  }
}

int rows_of(const HeadsText& text, const HeadsConfig& c) {
  if (c.kind == HeadsKind::Medusa) return text.n_places(0);
  const int n_hidden = std::max(0, static_cast<int>(text.tokens.size()) - 2);
  int rows = n_hidden + (c.sees_committed_grams ? n_hidden : text.n_places(0));
  for (int k = 1; k < c.n_heads; k++) rows += text.n_places(k);
  return rows;
}

std::vector<std::span<const HeadsText>> passes_of(std::span<const HeadsText> texts,
                                                  const HeadsConfig& config,
                                                  int max_rows) {
  std::vector<std::span<const HeadsText>> passes;
  std::size_t first = 0;
  int rows = 0;
  for (std::size_t i = 0; i < texts.size(); i++) {
    const int more = rows_of(texts[i], config);
    if (i > first && rows + more > max_rows) {
      passes.push_back(texts.subspan(first, i - first));
      first = i;
      rows = 0;
    }
    rows += more;
  }
  if (first < texts.size()) passes.push_back(texts.subspan(first));
  return passes;
}

std::unique_ptr<HeadsPass> make_heads_pass(const TrainDevice& on,
                                           const HeadsConfig& config,
                                           const TargetMatrices& target,
                                           int max_rows) {
  if (config.kind == HeadsKind::Medusa) return make_medusa_pass(on, config, target, max_rows);
  return make_chimera_pass(on, config, target, max_rows);
}

}  // namespace engine
