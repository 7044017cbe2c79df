#include "engine/decode/control/size_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr double kProbeShare = 0.008;  // of the time
constexpr double kMostBudget = 0.8;    // tokens
/// After this many steps without guesses the best guess is tried.
constexpr int kGuessEvery = 40;
constexpr double kRemembered = 0.97;  // weight of earlier steps, per step
constexpr double kFade = 0.995;       // weight of earlier uses of a size, per step
constexpr double kRecent = 0.3;       // a size with fewer uses counts as unknown
constexpr double kHope = 1.5;         // for the tokens of unknown sizes

/// Expected tokens of further rows.
/// @param full    share of the steps in which all of the first rows yielded a token
/// @param n_rows  number of these rows; the first one always yields one
double tokens_after(double full, int n_rows, int n_more) {
  if (full <= 0 || n_rows < 2) return 0;
  const double right = std::pow(full, 1.0 / (n_rows - 1));
  double tokens = 0, path = full;
  for (int i = 0; i < n_more; i++) tokens += path *= right;
  return tokens;
}

/// The steps of a block until all of its tokens are final. The first one makes one token final, as its
/// guesses are not refined.
/// @param right  probability that a refined guess is right
SizePlan block_plan(int size, double right, const StepControl& control) {
  SizePlan plan{1.0 * size, 0, 0, 0};
  double tokens = 1;
  for (double left = size; left > 1e-9; left -= tokens) {
    const int n_rows = static_cast<int>(std::ceil(left - 1e-9));
    plan.ms += control.ms(n_rows);
    if (plan.steps++ == 0) continue;
    tokens = 1;
    for (double path = right, n = 1; n < n_rows; n++, path *= right) tokens += path;
  }
  return plan;
}

}  // namespace

SizeDecision decision_of(const SizeChoice& choice, std::span<const SizePlan> plans, int size) {
  const SizePlan& plan = plans[choice.index];
  return {.size = size,
          .tokens = static_cast<float>(plan.tokens / plan.steps),
          .ms = static_cast<float>(plan.ms / plan.steps),
          .plain_ms = static_cast<float>(plans.front().ms),
          .probe = choice.probe};
}

double SizeChooser::rate() const {
  return std::max(1.0, tokens_ / time_);
}

void SizeChooser::came(int n_tokens, double plain_share) {
  n_since_plain_ = plain_share > 1 ? n_since_plain_ + 1 : 0;
  n_since_guess_ = plain_share > 1 ? 0 : n_since_guess_ + 1;
  if (probed_ > 0 && n_tokens > probed_) {
    n_since_guess_ = kGuessEvery;
    budget_ += n_tokens - probed_;
  }
  probed_ = 0;
  tokens_ = kRemembered * tokens_ + n_tokens;
  time_ = kRemembered * time_ + plain_share;
  budget_ = std::min(kMostBudget, budget_ + kProbeShare * n_tokens);
}

SizeChoice SizeChooser::choose(std::span<const SizePlan> plans, double plain_ms) {
  return choose_at(rate() / (plain_ms > 0 ? plain_ms : plans.front().ms), plans);
}

SizeChoice SizeChooser::choose_lasting(std::span<const SizePlan> plans) {
  double most = 0;
  for (const SizePlan& plan : plans) most = std::max(most, plan.tokens / plan.ms);
  return choose_at(most, plans);
}

/// @param tokens_per_ms  the tokens that the time is worth
SizeChoice SizeChooser::choose_at(double tokens_per_ms, std::span<const SizePlan> plans) {
  ensure(!plans.empty() && plans.front().ms > 0, "plain decoding must be among the plans");
  if (plain_is_due()) {
    n_since_plain_ = 0;
    return {0, true};
  }
  const auto gain = [&](std::size_t i) { return plans[i].tokens - tokens_per_ms * plans[i].ms; };
  std::size_t best = 0, hopeful = 0;
  double most = gain(0), hoped = most;
  for (std::size_t i = 1; i < plans.size(); i++) {
    if (gain(i) > most) most = gain(i), best = i;
    const double at_best = plans[i].hoped - tokens_per_ms * plans[i].ms;
    if (at_best > hoped) hoped = at_best, hopeful = i;
  }
  if (best == 0 && n_since_guess_ >= kGuessEvery && plans.size() > 1) {
    hopeful = 1;
    for (std::size_t i = 2; i < plans.size(); i++)
      if (gain(i) > gain(hopeful)) hopeful = i;
    hoped = most + 1;
  }
  const double loss = most - gain(hopeful);
  if (hopeful == best || hoped <= most || loss > budget_) return {best, false};
  budget_ -= loss;
  probed_ = plans[hopeful].tokens / plans[hopeful].steps;
  return {hopeful, true};
}

SizeHistory::SizeHistory(std::vector<int> sizes, bool shrinks)
    : sizes_(std::move(sizes)), shrinks_(shrinks), uses_(sizes_.size()) {
  ensure(!sizes_.empty() && std::ranges::is_sorted(sizes_), "sizes must ascend");
}

void SizeHistory::add(std::size_t index, int n_tokens, std::span<const int> rows) {
  Use& use = uses_[index];
  use.n++;
  use.tokens += n_tokens;
  use.full += rows.size() == 1 && n_tokens == rows[0];
  use.steps += static_cast<double>(rows.size());
  for (const int n_rows : rows) {
    const auto n = static_cast<std::size_t>(n_rows);
    if (use.rows.size() <= n) use.rows.resize(n + 1);
    use.rows[n]++;
  }
}

void SizeHistory::fade() {
  refined_.fade();
  for (Use& use : uses_) {
    use.n *= kFade, use.tokens *= kFade, use.steps *= kFade, use.full *= kFade;
    for (double& n : use.rows) n *= kFade;
  }
}

SizePlan SizeHistory::unknown_block(int size, const StepControl& control) const {
  SizePlan plan = block_plan(size, refined_.mean(), control);
  plan.hoped = plan.tokens * plan.ms / block_plan(size, refined_.hoped(), control).ms;
  return plan;
}

void SizeHistory::add_refined(int n_rows, int n_tokens) {
  for (int i = 1; i < n_tokens; i++) refined_.add(true);
  if (n_tokens < n_rows) refined_.add(false);
}

std::vector<SizePlan> SizeHistory::plans(const StepControl& control) const {
  std::vector<SizePlan> plans{{1, 1, control.ms(1)}};
  double tokens_per_step = 1, full = 0;
  int largest = sizes_.front();  // in use
  for (std::size_t i = 1; i < sizes_.size(); i++) {
    const Use& use = uses_[i];
    if (use.n < kRecent) {
      if (sizes_[i] > std::max(4, 2 * largest)) break;
      const double tokens = tokens_per_step + tokens_after(full, largest, sizes_[i] - largest);
      plans.push_back(shrinks_ ? unknown_block(sizes_[i], control)
                               : SizePlan{tokens, kHope * tokens, control.ms(sizes_[i])});
      continue;
    }
    SizePlan plan{use.tokens / use.n, 0, 0, use.steps / use.n};
    for (std::size_t n = 1; n < use.rows.size(); n++)
      if (use.rows[n] > 0) plan.ms += use.rows[n] / use.n * control.ms(static_cast<int>(n));
    plan.hoped = plan.tokens * (1 + 0.3 / std::sqrt(1 + use.n));
    plans.push_back(plan);
    tokens_per_step = use.tokens / use.steps;
    full = use.full / use.n;
    largest = sizes_[i];
  }
  return plans;
}

LastingKnowledge::LastingKnowledge(bool shrinks, int plain_every)
    : history({1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, shrinks), chooser(plain_every) {}

LastingSize::LastingSize(ControlUse& control,
                         const std::string& knowledge,
                         Kind kind,
                         bool repeatable)
    : control_(control),
      known_(kind == Kind::Block ? static_cast<LastingKnowledge&>(
                                       control.knowledge<BlockKnowledge>(knowledge, repeatable))
                                 : control.knowledge<WindowKnowledge>(knowledge, repeatable)),
      kind_(kind) {}

int LastingSize::choose() {
  if (n_left_-- > 0) return n_rows_;
  const std::vector<int>& sizes = known_.history.sizes();
  std::vector<SizePlan> plans = known_.history.plans(*control_);
  for (std::size_t i = 0; kind_ == Kind::Window && i < plans.size(); i++) {
    const int n = sizes[i];
    plans[i] = {plans[i].tokens * n, plans[i].hoped * n, plans[i].ms * n, 1.0 * n};
  }
  SizeChoice choice = known_.chooser.choose_lasting(plans);
  choice.index = control_.decide_if_repeatable(choice.index, plans.size());
  n_rows_ = sizes[choice.index];
  decision_ = decision_of(choice, plans, n_rows_ - 1);
  n_left_ = kind_ == Kind::Window ? n_rows_ - 1 : 0;
  return n_rows_;
}

void LastingSize::came(int n_rows, int n_tokens) {
  known_.history.fade();
  known_.chooser.came(n_tokens, control_->ms(n_rows) / control_->ms(1));
  if (kind_ == Kind::Block) return n_emitted_.push_back(n_tokens);
  const std::vector<int>& sizes = known_.history.sizes();
  for (std::size_t i = 0; i < sizes.size() && sizes[i] <= n_rows; i++)
    known_.history.add(i, std::min(n_tokens, sizes[i]), std::span(&sizes[i], 1));
}

void LastingSize::block_ended(int n_rows) {
  const std::vector<int>& sizes = known_.history.sizes();
  for (std::size_t i = 0; i < sizes.size() && sizes[i] <= n_rows; i++) {
    std::vector<int> rows;  // of each step of a block of this size
    int n_final = 0;
    for (const int n_tokens : n_emitted_) {
      if (n_final >= sizes[i]) break;
      rows.push_back(sizes[i] - n_final);
      n_final += n_tokens;
    }
    known_.history.add(i, std::min(n_final, sizes[i]), rows);
  }
  int left = n_rows;
  for (std::size_t step = 0; step < n_emitted_.size(); left -= n_emitted_[step++])
    if (step > 0) known_.history.add_refined(left, n_emitted_[step]);
  n_emitted_.clear();
}

}  // namespace engine
