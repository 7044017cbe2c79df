#include "engine/decode/ranks/lookahead_rank.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "engine/decode/verify/verify.h"
#include "engine/event/clock.h"

namespace engine {
namespace {

// Rank 0's messages before each step.
constexpr std::int32_t kEnd = 0, kStep = 1, kShownStep = 2;

constexpr std::size_t kNumbersOfPick = 5;

/// Appends a pick as kNumbersOfPick numbers.
void put(Numbers& numbers, const kernels::Picked& answer) {
  numbers.push_back(answer.id);
  for (const float value : {answer.score, answer.margin, answer.logp, answer.logit})
    numbers.push_back(std::bit_cast<std::int32_t>(value));
}

/// The pick that put() wrote at this index.
kernels::Picked pick_at(const Numbers& numbers, std::size_t at) {
  const auto value = [&](std::size_t i) { return std::bit_cast<float>(numbers.at(at + i)); };
  kernels::Picked answer;
  answer.id = numbers.at(at);
  answer.score = value(1), answer.margin = value(2), answer.logp = value(3),
  answer.logit = value(4);
  return answer;
}

/// [n_rows] true for the rows of the window's lowest level. The picks after these rows form the
/// window's new level.
std::vector<bool> makes_new_level(const TokenTree& tree) {
  int lowest = -1;
  for (const RowTag& tag : tree.tag)
    if (tag.kind == RowTag::Kind::Window) lowest = std::max<int>(lowest, tag.a);
  std::vector<bool> makes;
  for (const RowTag& tag : tree.tag)
    makes.push_back(tag.kind == RowTag::Kind::Window && tag.a == lowest);
  return makes;
}

/// A hash of a tree and its prefix's length (FNV-1a). Ranks with different hashes have diverged.
std::int32_t fingerprint(const TokenTree& tree, int kv_len) {
  std::uint32_t hash = 2166136261u;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint32_t>(value)) * 16777619u;
  };
  mix(kv_len);
  for (std::size_t r = 0; r < tree.token.size(); r++)
    mix(tree.token[r]), mix(tree.parent[r]), mix(tree.owner[r]);
  return std::bit_cast<std::int32_t>(hash);
}

}  // namespace

LookaheadRankCache::LookaheadRankCache(std::unique_ptr<SequenceCache> own)
    : own_(std::move(own)), length_(own_->length()) {}

void LookaheadRankCache::set_staged(int n_again, std::vector<int> place) {
  n_again_ = n_again;
  place_ = std::move(place);
}

void LookaheadRankCache::commit(std::span<const int> path) {
  path_.clear();
  for (int r = 0; r < n_again_; r++) path_.push_back(r);
  // A rank computes all ancestors of its rows, so if it lacks rows of the path, they are the last
  // ones.
  for (const int row : path) {
    const int place = place_.at(static_cast<std::size_t>(row));
    if (place < 0) break;
    path_.push_back(place);
  }
  own_->commit(path_);
  length_ += static_cast<int>(path.size());
  n_again_ = 0;
  place_.clear();
}

void LookaheadRankCache::truncate(int length) {
  if (own_->length() > length) own_->truncate(length);
  length_ = length;
}

std::unique_ptr<SequenceCache> LookaheadRankCache::fork() const {
  auto copy = std::make_unique<LookaheadRankCache>(own_->fork());
  copy->length_ = length_;
  return copy;
}

Sequence ranked(const Sequence& sequence) {
  return sequence.over(std::make_unique<LookaheadRankCache>(sequence.cache().fork()));
}

LookaheadRank::LookaheadRank(LanguageModel& model, Exchange& exchange)
    : model_(model), exchange_(exchange) {
  totals_.n_rows.resize(static_cast<std::size_t>(exchange.n_ranks()));
}

std::unique_ptr<SequenceCache> LookaheadRank::make_cache() {
  return std::make_unique<LookaheadRankCache>(model_.make_cache());
}

Numbers LookaheadRank::broadcast(int from, Numbers numbers) {
  exchange_.broadcast(from, numbers);
  totals_.n_sent += std::ssize(numbers);
  return numbers;
}

std::vector<Numbers> LookaheadRank::all_gather(std::span<const std::int32_t> own) {
  std::vector<Numbers> all = exchange_.all_gather(own);
  for (const Numbers& numbers : all) totals_.n_sent += std::ssize(numbers);
  return all;
}

bool LookaheadRank::wait_for_step() {
  const std::int32_t message = broadcast(0, {}).at(0);
  shown_ = message == kShownStep;
  return message != kEnd;
}

void LookaheadRank::end_steps() {
  broadcast(0, {kEnd});
}

int LookaheadRank::select_rows(const BatchItem& whole, const SequenceCache& own) {
  const TokenTree& tree = *whole.tree;
  const auto n = tree.token.size();
  ensure(tree.owner.size() == n, "every row needs an owner among the ranks");
  const int rank = exchange_.rank();
  std::vector<bool> needed(n);
  for (std::size_t r = n; r-- > 0;) {
    // The last token is an ancestor of all rows, and every rank's cache needs it.
    if (r == 0 || tree.owner[r] == rank) needed[r] = true;
    if (needed[r] && tree.parent[r] >= 0) needed[static_cast<std::size_t>(tree.parent[r])] = true;
  }
  part_.clear();
  greedy_rows_.clear();
  place_.assign(n, -1);
  for (const TokenId token : whole.prefix.subspan(static_cast<std::size_t>(own.length())))
    part_.add(token, part_.n_rows() - 1, RowTag{});
  const int n_again = part_.n_rows();
  if (!whole.greedy_rows.empty()) greedy_rows_.assign(static_cast<std::size_t>(n_again), 0);
  for (std::size_t r = 0; r < n; r++) {
    if (!needed[r]) continue;
    const int parent =
        tree.parent[r] < 0 ? n_again - 1 : place_[static_cast<std::size_t>(tree.parent[r])];
    place_[r] = part_.add(tree.token[r], parent, tree.tag[r]);
    if (!whole.greedy_rows.empty()) greedy_rows_.push_back(whole.greedy_rows[r]);
  }
  return n_again;
}

std::vector<StepOutput> LookaheadRank::forward(std::span<const BatchItem> items, Wants wants) {
  ensure(items.size() == 1 && items[0].pick_rows, "ranks can only share a step of one sequence");
  ensure(!wants.logits && !wants.hidden && !wants.row_p && wants.n_ranked == 0 && wants.n_top == 0,
         "ranks can exchange picks only, not logits");
  const BatchItem& whole = items[0];
  const std::int64_t n_sent_before = totals_.n_sent;
  step_.forward.clear();
  if (exchange_.rank() == 0) {
    shown_ = whole.shown;
    broadcast(0, {shown_ ? kShownStep : kStep});
  }
  auto& cache = static_cast<LookaheadRankCache&>(*whole.cache);
  const int n_again = select_rows(whole, cache.own());
  BatchItem own = whole;
  own.cache = &cache.own();
  own.tree = &part_;
  own.prefix = whole.prefix.first(static_cast<std::size_t>(cache.own().length()));
  own.greedy_rows = greedy_rows_;
  const Nanoseconds begun = now_ns();
  std::vector<StepOutput> outs = model_.forward(std::span(&own, 1), wants);
  const Nanoseconds ended = now_ns();
  cache.set_staged(n_again, place_);

  const TokenTree& tree = *whole.tree;
  StepOutput& output = outs.at(0);
  const std::vector<kernels::Picked> picked =
      std::exchange(output.picked, std::vector<kernels::Picked>(tree.token.size()));
  for (std::size_t r = 0; r < place_.size(); r++)
    if (place_[r] >= 0) output.picked[r] = picked[static_cast<std::size_t>(place_[r])];
  Numbers first;
  put(first, output.picked[0]);
  output.picked[0] = pick_at(broadcast(0, std::move(first)), 0);
  exchange_match(
      output,
      {.tree = fingerprint(tree, cache.length()), .n_again = n_again, .forward = ended - begun});
  exchange_window(tree, output);
  if (shown_) exchange_displayed_rows(tree, output);
  step_.time = now_ns() - ended;
  step_.n_bytes =
      (totals_.n_sent - n_sent_before) * static_cast<std::int64_t>(sizeof(Numbers::value_type));
  totals_.exchanging += step_.time;
  return outs;
}

/// The longest match among the rank's own rows: row indices in the whole tree, starting with the
/// last token's row.
std::vector<int> LookaheadRank::own_match(const StepOutput& out, int n_again) const {
  StepOutput own;
  own.picked.resize(part_.token.size());
  std::vector<int> whole(part_.token.size(), -1);
  for (std::size_t r = 0; r < place_.size(); r++) {
    if (place_[r] < 0) continue;
    const auto row = static_cast<std::size_t>(place_[r]);
    own.picked[row] = out.picked[r];
    whole[row] = static_cast<int>(r);
  }
  std::vector<int> match;
  for (const int row : verify_exact_match(part_, own, n_again + 1).path)
    if (row >= n_again) match.push_back(whole[static_cast<std::size_t>(row)]);
  return match;
}

void LookaheadRank::exchange_match(StepOutput& out, const Own& step) {
  const std::vector<int> match = own_match(out, step.n_again);
  const Nanoseconds us = std::min<Nanoseconds>(step.forward / 1000, 1 << 30);
  const Numbers own{static_cast<std::int32_t>(match.size()), part_.n_rows(),
                    static_cast<std::int32_t>(us), step.tree, step.n_again};
  const std::vector<Numbers> all = all_gather(own);
  std::size_t winner = 0;
  std::int32_t longest_us = 0;
  for (std::size_t rank = 0; rank < all.size(); rank++) {
    ensure(all[rank].at(3) == step.tree, "the ranks of a run have diverged");
    if (all[rank].at(0) > all[winner].at(0)) winner = rank;
    totals_.n_rows[rank] += all[rank].at(1);
    totals_.n_again += all[rank].at(4);
    step_.forward.push_back(Nanoseconds{all[rank].at(2)} * 1000);
    longest_us = std::max(longest_us, all[rank].at(2));
  }
  totals_.longest += Nanoseconds{longest_us} * 1000;
  // no guess matched, so only the pick after the last token is used
  if (all[winner].at(0) == 1) return;
  totals_.n_won_elsewhere += winner != 0;
  Numbers rows;
  if (static_cast<int>(winner) == exchange_.rank()) {
    for (std::size_t i = 1; i < match.size(); i++) {
      rows.push_back(match[i]);
      put(rows, out.picked[static_cast<std::size_t>(match[i])]);
    }
  }
  rows = broadcast(static_cast<int>(winner), std::move(rows));
  for (std::size_t at = 0; at < rows.size(); at += 1 + kNumbersOfPick)
    out.picked.at(static_cast<std::size_t>(rows[at])) = pick_at(rows, at + 1);
}

void LookaheadRank::exchange_window(const TokenTree& tree, StepOutput& out) {
  const std::vector<bool> wanted = makes_new_level(tree);
  Numbers own;
  for (std::size_t r = 0; r < wanted.size(); r++)
    if (wanted[r] && tree.owner[r] == exchange_.rank()) own.push_back(out.picked[r].id);
  const std::vector<Numbers> all = all_gather(own);
  std::vector<std::size_t> next(all.size());
  for (std::size_t r = 0; r < wanted.size(); r++) {
    const std::size_t rank = tree.owner[r];
    if (wanted[r]) out.picked[r].id = all.at(rank).at(next[rank]++);
  }
}

/// Exchanges the picks of rows that did not decide anything, for display.
void LookaheadRank::exchange_displayed_rows(const TokenTree& tree, StepOutput& out) {
  Numbers own;
  for (std::size_t r = 1; r < tree.token.size(); r++)
    if (tree.owner[r] == exchange_.rank()) put(own, out.picked[r]);
  const std::vector<Numbers> all = exchange_.all_gather(own);
  std::vector<std::size_t> next(all.size());
  for (std::size_t r = 1; r < tree.token.size(); r++) {
    const std::size_t rank = tree.owner[r];
    out.picked[r] = pick_at(all.at(rank), next[rank]);
    next[rank] += kNumbersOfPick;
  }
}

}  // namespace engine
