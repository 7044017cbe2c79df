#include "engine/decode/draft/drafter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "engine/event/clock.h"
#include "kernels/philox.h"

namespace engine {
namespace {

/// Only this many of the likeliest tokens get Gumbel noise. Noise for all tokens would cost time,
/// and less likely tokens are hardly ever picked.
constexpr int kPerturbed = 64;

/// Number of leading tokens with a positive probability; only these may be proposed.
std::size_t n_possible(const RankedTokens& ranked) {
  const auto end = std::ranges::find_if(ranked.p, [](double p) { return p <= 0; });
  return static_cast<std::size_t>(end - ranked.p.begin());
}

/// Gumbel-top-k: indices in `ranked` of the n tokens with the largest log p + Gumbel noise of the
/// target. This draws n tokens without replacement, in the order in which the target would pick
/// them if it had the draft's distribution.
std::vector<std::size_t> perturbed(const RankedTokens& ranked,
                                   const Sampling& sampling,
                                   std::uint32_t position,
                                   std::size_t n) {
  std::vector<std::size_t> places(n_possible(ranked));
  std::iota(places.begin(), places.end(), 0);
  std::vector<double> score;
  for (const std::size_t i : places)
    score.push_back(
        std::log(ranked.p[i]) +
        kernels::gumbel_from_bits(kernels::random_bits(
            sampling.seed, static_cast<std::uint32_t>(kernels::RandomStream::TargetGumbel),
            position, static_cast<std::uint32_t>(ranked.token[i]))));
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>(std::min(n, places.size()));
  std::partial_sort(places.begin(), middle, places.end(), [&](std::size_t a, std::size_t b) {
    return score[a] != score[b] ? score[a] > score[b] : ranked.token[a] < ranked.token[b];
  });
  places.erase(middle, places.end());
  return places;
}

/// True if the rule draws candidates with replacement.
bool draws_with_replacement(DraftRule rule) {
  return rule == DraftRule::With || rule == DraftRule::KSeq;
}

}  // namespace

Drafter::Drafter(LanguageModel& model, DraftSettings settings, PromptCaches* prompts)
    : model_(model), settings_(std::move(settings)), prompts_(prompts) {}

Drafts Drafts::none(TokenId last) {
  Drafts drafts;
  drafts.tree.add(last, -1, RowTag{});
  drafts.candidates.resize(1);
  drafts.q.push_back(1);
  return drafts;
}

void Drafter::begin() {
  fed_.clear();
  cache_ = nullptr;
}

void Drafter::read(std::span<const TokenId> tokens, PromptCaches* prompts) {
  PromptCaches own(model_, 0);
  cache_ = (prompts ? *prompts : own).read(tokens).cache().fork();
}

// The tokens after the prompt are fed as rows, as after any steps without drafts. So the draft's keys
// and values do not depend on the step at which it reads the prompt.
void Drafter::read_prompt(const Sequence& prefix) {
  read(prefix.prompt(), prompts_);
}

void Drafter::begin_again(const Sequence& prefix) {
  begin();
  if (usable_depth(prefix.tokens().size(), 1) >= 1) read(prefix.tokens(), nullptr);
}

/// The number of tokens that can be drafted after `n_tokens`. Rows at depth d - 1 are fed to draft
/// tokens at depth d, and the last fed row must fit the context.
int Drafter::room_after(std::size_t n_tokens) const {
  return model_.max_seq_len() - static_cast<int>(n_tokens) + 1;
}

int Drafter::usable_depth(std::size_t n_tokens, int max_depth) const {
  return std::min({max_depth, room_after(n_tokens), static_cast<int>(settings_.k_config.size())});
}

Drafts Drafter::propose(const Sequence& prefix, int max_depth, UniformSource& uniforms) {
  Drafts drafts = Drafts::none(prefix.last());
  fed_.clear();
  n_distributions_ = 0;
  const int depth = usable_depth(prefix.tokens().size(), max_depth);
  if (depth < 1) return drafts;
  if (!has_read()) read_prompt(prefix);

  Branch root{.row = 0, .cache = cache_};
  root.text.assign(prefix.tokens().begin(), prefix.tokens().end());
  for (int i = cache_->length(); i < static_cast<int>(root.text.size()); i++)
    root.feed.add(root.text[static_cast<std::size_t>(i)], root.feed.n_rows() - 1, RowTag{});
  std::vector<Branch> level;
  level.push_back(std::move(root));
  for (int d = 1; d <= depth && !level.empty(); d++) {
    const int n_children = settings_.k_config[static_cast<std::size_t>(d) - 1];
    const std::vector<StepOutput> outs = feed(level, n_children, drafts, uniforms);
    n_draws_ = 0;
    for (std::size_t i = 0; i < level.size(); i++) {
      const Parent parent{level[i], d, n_children, drafts};
      if (draws() && settings_.distributions_stay)
        add_drawn_on_device(parent, outs[i].drawn, drawing_[i].distribution);
      else
        add_children(parent, outs[i], uniforms);
      n_draws_ += static_cast<std::uint32_t>(n_children);
    }
    std::vector<Branch> next;
    if (d < depth) next = next_level(level, drafts);
    for (Branch& branch : level) fed_.push_back(std::move(branch));
    level = std::move(next);
  }
  return drafts;
}

/// Outputs that a level's forward must return: logits to draw candidates from q, the likeliest
/// tokens for deterministic candidates, or just the pick for a single one. Adapts `sampling`
/// accordingly.
/// @param n_children  children of each node
Wants Drafter::wants_for(int n_children, Sampling& sampling) const {
  if (draws()) {
    if (settings_.distributions_stay) return {.draws = true};
    sampling.temperature = 0;  // the pick is not used, so it needs no noise
    return {.logits = true};
  }
  const bool model_can_pick = sampling.greedy() || model_.output_tokens().empty();
  if (!settings_.with_distributions && n_children == 1 && model_can_pick) return {};
  if (!sampling.greedy()) return {.n_ranked = std::max(n_children, kPerturbed)};
  sampling.temperature = 1;
  return {.n_ranked = n_children};
}

// The buffers grow to the largest tree so far; later steps allocate nothing.
double* Drafter::device_distribution(std::size_t i) {
  if (i == distributions_.size())
    distributions_.emplace_back(*model_.distributions_device(),
                                std::int64_t{model_.vocab_size()} * 8, "distributions of drafts");
  return static_cast<double*>(distributions_[i].data());
}

std::vector<DrawRequest> Drafter::draw_requests(std::span<const Branch> level,
                                                int n_children,
                                                UniformSource& uniforms) {
  std::vector<DrawRequest> all;
  std::uint32_t n_draws = 0;
  for (const Branch& branch : level) {
    const auto position = static_cast<std::uint32_t>(branch.text.size());
    DrawRequest one{.uniforms = {},
                    .again = draws_with_replacement(settings_.rule),
                    .distribution = device_distribution(n_distributions_++)};
    for (int i = 0; i < n_children; i++)
      one.uniforms.push_back(uniforms.proposal(position, n_draws++, {}));
    all.push_back(std::move(one));
  }
  return all;
}

/// One forward over all branches of a level; their rows stay in the cache.
/// @param n_children  children that each branch gets afterwards
std::vector<StepOutput> Drafter::feed(std::span<Branch> level,
                                      int n_children,
                                      Drafts& drafts,
                                      UniformSource& uniforms) {
  Sampling sampling = settings_.sampling;
  const Wants wants = wants_for(n_children, sampling);
  if (wants.draws) drawing_ = draw_requests(level, n_children, uniforms);
  DraftForward forward{.begun = now_ns()};
  std::vector<BatchItem> items;
  for (const Branch& branch : level) {
    BatchItem item{.cache = branch.cache.get(), .tree = &branch.feed};
    item.prefix = std::span(branch.text).first(static_cast<std::size_t>(branch.cache->length()));
    item.sampling = sampling;
    if (wants.draws) item.draw = &drawing_[items.size()];
    items.push_back(item);
    forward.n_rows += branch.feed.n_rows();
  }
  n_rows_ += forward.n_rows;
  n_forwards_++;
  std::vector<StepOutput> outs = model_.forward(items, wants);
  forward.ended = now_ns();
  drafts.forwards.push_back(forward);
  for (const Branch& branch : level) {
    std::vector<int> path(branch.feed.token.size());
    std::iota(path.begin(), path.end(), 0);
    branch.cache->commit(path);
  }
  return outs;
}

/// A token that was drawn twice is listed as a candidate twice, but has only one row.
void Drafter::Parent::add(TokenId token, double q) const {
  std::vector<int>& rows = drafts.candidates[static_cast<std::size_t>(branch.row)].rows;
  const std::set<int> distinct(rows.begin(), rows.end());
  for (const int row : distinct) {
    if (drafts.tree.token[static_cast<std::size_t>(row)] != token) continue;
    rows.push_back(row);
    return;
  }
  const RowTag tag{RowTag::Kind::Draft, static_cast<std::int16_t>(depth),
                   static_cast<std::int16_t>(distinct.size())};
  rows.push_back(drafts.tree.add(token, branch.row, tag));
  drafts.q.push_back(static_cast<float>(q));
  drafts.candidates.emplace_back();
}

/// True if stop_below leaves the node without children. Counts such nodes.
/// @param p  the probability of the draft's own token
bool Drafter::is_unsure(double p) {
  const bool stops = p < static_cast<double>(settings_.stop_below);
  n_stops_ += stops;
  return stops;
}

void Drafter::add_children(const Parent& parent, const StepOutput& out, UniformSource& uniforms) {
  const int last = parent.branch.feed.n_rows() - 1;
  const auto row = static_cast<std::size_t>(last);
  if (draws()) {
    std::vector<double> distribution =
        token_distribution(out.logits_of(last), settings_.sampling, parent.branch.text);
    // Compares the largest probability, not that of the drawn token. Comparing the drawn token's
    // probability would change the distribution of the candidates, which must be q.
    if (!is_unsure(std::ranges::max(distribution)))
      add_drawn(parent, std::move(distribution), uniforms);
  } else if (out.ranked.empty()) {
    const double q = std::exp(static_cast<double>(out.picked[row].logp));
    if (!is_unsure(q)) parent.add(out.picked[row].id, q);
  } else if (!is_unsure(out.ranked[row].p.front())) {
    add_likeliest(parent, out.ranked[row], out.vocab_size);
  }
}

/// Adds deterministic candidates. Greedy: the draft's likeliest tokens. Coupled: the draft's
/// Gumbel-top-k with the target's noise.
void Drafter::add_likeliest(const Parent& parent, const RankedTokens& ranked, int vocab_size) {
  const Sampling& sampling = settings_.sampling;
  const auto n = static_cast<std::size_t>(parent.n);
  std::vector<std::size_t> places(std::min(n, n_possible(ranked)));
  std::iota(places.begin(), places.end(), 0);
  if (!sampling.greedy()) places = perturbed(ranked, sampling, parent.position(), n);
  for (const std::size_t i : places) parent.add(ranked.token[i], ranked.p[i]);
  if (!settings_.with_distributions || !settings_.as_released) return;
  double sum = 0;
  for (const std::size_t i : places) sum += ranked.p[i];
  std::vector<double> released(static_cast<std::size_t>(vocab_size));
  for (const std::size_t i : places)
    released[static_cast<std::size_t>(ranked.token[i])] = ranked.p[i] / sum;
  parent.drafts.candidates[static_cast<std::size_t>(parent.branch.row)].distribution =
      std::move(released);
}

/// Draws candidates from `distribution` and keeps it for the verification.
void Drafter::add_drawn(const Parent& parent,
                        std::vector<double> distribution,
                        UniformSource& uniforms) {
  const bool replaced = draws_with_replacement(settings_.rule);
  std::vector<double> left = distribution;
  for (int i = 0; i < parent.n; i++) {
    const double mass = std::accumulate(left.begin(), left.end(), 0.0);
    if (!(mass > 0)) break;
    const std::uint32_t index = n_draws_ + static_cast<std::uint32_t>(i);
    const TokenId id = draw(left, uniforms.proposal(parent.position(), index, left));
    parent.add(id, distribution[static_cast<std::size_t>(id)]);
    if (!replaced) left[static_cast<std::size_t>(id)] = 0;
  }
  parent.drafts.candidates[static_cast<std::size_t>(parent.branch.row)].distribution =
      std::move(distribution);
}

/// Adds candidates that the device drew. Their distribution stays in device memory.
void Drafter::add_drawn_on_device(const Parent& parent,
                                  const DrawnCandidates& drawn,
                                  const double* distribution) {
  if (is_unsure(drawn.largest)) return;
  for (const kernels::DrawnToken& token : drawn.tokens) parent.add(token.id, token.p);
  parent.drafts.candidates[static_cast<std::size_t>(parent.branch.row)].device_distribution =
      distribution;
}

/// The branches below a level that was fed. A first child continues its parent's cache, its
/// siblings fork it.
std::vector<Drafter::Branch> Drafter::next_level(std::span<Branch> level,
                                                 const Drafts& drafts) const {
  std::vector<Branch> next;
  for (const Branch& branch : level) {
    std::shared_ptr<SequenceCache> free = branch.cache;
    const int first = branch.row + 1;
    for (int row = first; row < drafts.tree.n_rows(); row++) {
      const auto r = static_cast<std::size_t>(row);
      if (drafts.tree.parent[r] != branch.row) continue;
      Branch child{.row = row};
      child.cache = free ? std::move(free) : branch.cache->fork();
      free = nullptr;
      child.text = branch.text;
      child.text.push_back(drafts.tree.token[r]);
      child.feed.add(drafts.tree.token[r], -1, RowTag{});
      next.push_back(std::move(child));
    }
  }
  return next;
}

void Drafter::committed(std::span<const int> path) {
  const Branch* deepest = nullptr;
  for (const Branch& branch : fed_) {
    if (std::ranges::find(path, branch.row) == path.end()) continue;
    if (!deepest || branch.text.size() > deepest->text.size()) deepest = &branch;
  }
  if (deepest) {
    cache_ = deepest->cache;
    cache_->truncate(static_cast<int>(deepest->text.size()));
  }
  fed_.clear();
}

std::map<std::string, std::int64_t> Drafter::counts() const {
  return {{"draft_forwards", n_forwards_}, {"draft_rows", n_rows_}, {"draft_stops", n_stops_}};
}

}  // namespace engine
