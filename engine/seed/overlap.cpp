#include "engine/seed/overlap.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

/// A mode must be better by this factor.
constexpr double kMargin = 1.03;
constexpr double kSpread = 0.08;      // standard deviation of one logarithm of a time
constexpr double kHope = 1.5;         // standard deviations
constexpr double kRemembered = 0.75;  // weight of earlier rounds, per round in the mode
constexpr double kFade = 0.995;       // of the weight of a mode that is not used, per round
/// Larger changes count as this one, unless there are this many in a row: then the load has changed,
/// and the other mode's time is less certain too.
constexpr double kOutlier = 0.3;
constexpr int kOutliers = 2;
constexpr double kChangedFade = 0.5;
constexpr double kCommon = 0.5;  // share of a change that both modes have
constexpr int kProbeRounds = 3;
constexpr double kHopeless = 0.25;  // ends a probe
/// The first probe waits for this weight.
constexpr double kFirst = 2.2;

}  // namespace

ModeChoice::ModeChoice(const ModeChoice& like, int n_branches) : ModeChoice(like) {
  n_branches_ = n_branches;
  mode_ = kept_;
  is_copied_ = true;
  n_probes_ = n_changes_ = 0;
}

double ModeChoice::ms(Mode mode) const {
  const Estimate& of = estimates_[mode];
  return of.weight > 0 ? of.tokens * std::exp(of.log_ms) : 0;
}

/// The shortest possible round with overlap, relative to one in turn.
double ModeChoice::least_overlapped() const {
  return std::max({1.0 / n_branches_, drafting_share_ / n_drafters_, 1 - drafting_share_});
}

bool ModeChoice::cannot_gain() const {
  return estimates_[Overlapped].weight == 0 && least_overlapped() * kMargin > 1;
}

bool ModeChoice::is_decided() const {
  const bool has_both = estimates_[InTurn].weight > 0 && estimates_[Overlapped].weight > 0;
  return !is_copied_ && (has_both || (estimates_[InTurn].weight >= kFirst && cannot_gain()));
}

/// An optimistic estimate of the logarithm of a time. A mode without measurements could be as fast
/// as it is possible at all.
double ModeChoice::hoped(Mode mode) const {
  const Estimate &of = estimates_[mode], &other = estimates_[1 - mode];
  const double least =
      mode == Overlapped ? estimates_[InTurn].log_ms + std::log(least_overlapped()) : -1e9;
  if (of.weight == 0) return mode == Overlapped ? least : other.log_ms;
  return std::max(least, of.log_ms - kHope * kSpread / std::sqrt(of.weight));
}

void ModeChoice::measured(const RoundTime& per_text) {
  const double whole = std::max(static_cast<double>(per_text.whole), 1.0);
  if (mode_ == InTurn) {
    const double share = static_cast<double>(per_text.drafting) / whole;
    drafting_share_ += (estimates_[InTurn].weight > 0 ? 0.3 : 1.0) * (share - drafting_share_);
  }
  estimates_[mode_].tokens = per_text.tokens;
  add(std::log(whole * 1e-6 / per_text.tokens));
  choose();
}

/// Adds the logarithm of a round's time in the current mode.
void ModeChoice::add(double log_ms) {
  Estimate &own = estimates_[mode_], &other = estimates_[1 - mode_];
  if (own.weight == 0) own.log_ms = log_ms;
  if (std::exchange(is_copied_, false)) {
    other.log_ms += log_ms - own.log_ms;
    own.log_ms = log_ms;
  }
  double change = log_ms - own.log_ms;
  const int side = change > kOutlier ? 1 : change < -kOutlier ? -1 : 0;
  own.n_outliers = side * own.n_outliers > 0 ? own.n_outliers + side : side;
  if (std::abs(own.n_outliers) >= kOutliers)  // the machine has changed
    own.weight = 0, other.weight *= kChangedFade;
  else
    change = std::clamp(change, -kOutlier, kOutlier);
  own.weight = kRemembered * own.weight + 1;
  own.log_ms += change / own.weight;
  if (mode_ != kept_) return;
  other.log_ms += kCommon * change / own.weight;
  other.weight *= kFade;
}

void ModeChoice::choose() {
  const auto rival = static_cast<Mode>(1 - kept_);
  const double to_beat = estimates_[kept_].log_ms - std::log(kMargin);
  if (mode_ != kept_) {
    n_probes_++;
    const bool is_hopeless = estimates_[rival].log_ms > estimates_[kept_].log_ms + kHopeless;
    if (++n_probe_rounds_ < kProbeRounds && !is_hopeless) return;
    if (estimates_[rival].log_ms < to_beat) {
      kept_ = rival;
      n_changes_++;
    }
    mode_ = kept_;
  } else if (estimates_[kept_].weight > kFirst && hoped(rival) < to_beat) {
    mode_ = rival;
    n_probe_rounds_ = 0;
  }
}

const ModeChoice* ChosenOverlap::nearest(int n_branches) const {
  const ModeChoice* found = nullptr;
  int distance = 0;
  for (const auto& [n, choice] : choices_) {
    const int d = std::abs(n - n_branches);
    if (found && d > distance) continue;
    found = &choice;
    distance = d;
  }
  return found;
}

const ModeChoice* ChosenOverlap::largest_decided() const {
  const ModeChoice* found = nullptr;
  for (const auto& [n, choice] : choices_)
    if (choice.is_decided()) found = &choice;
  return found;
}

bool ChosenOverlap::at_once(int n_branches) const {
  if (n_branches < 2) return false;
  const auto found = choices_.find(n_branches);
  if (found != choices_.end()) return found->second.mode() == ModeChoice::Overlapped;
  const ModeChoice* const like = nearest(n_branches);
  return like && like->kept() == ModeChoice::Overlapped;
}

void ChosenOverlap::measured(int n_branches, const RoundTime& per_text) {
  if (n_branches < 2) return;
  auto found = choices_.find(n_branches);
  if (found == choices_.end()) {
    const ModeChoice* const like = nearest(n_branches);
    found = choices_
                .emplace(n_branches,
                         like ? ModeChoice(*like, n_branches) : ModeChoice(n_branches, n_drafters_))
                .first;
  }
  found->second.measured(per_text);
}

const std::vector<std::string>& overlap_names() {
  static const std::vector<std::string> names{"auto", "always", "never"};
  return names;
}

std::unique_ptr<Overlap> overlap_named(const std::string& name, int n_drafters) {
  ensure(std::ranges::count(overlap_names(), name) == 1, "there is no overlap mode with this name");
  if (name == "auto") return std::make_unique<ChosenOverlap>(n_drafters);
  return std::make_unique<FixedOverlap>(name == "always");
}

}  // namespace engine
