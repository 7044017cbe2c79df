#include "engine/seed/overlap.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::size_t kProbeSamples = 3;
constexpr std::size_t kKeptSamples = 5;
constexpr int kFirstPause = 48, kLongestPause = 768;
// The other mode becomes the kept one only if it is faster by this factor.
constexpr double kQuicker = 1.03;
// If the kept mode's time changes by this factor, the load has changed.
constexpr double kChanged = 1.25;
// A probe ends after its first round if that is slower by this factor.
constexpr double kHopeless = 1.3;
// A probe ends after its second round if both rounds are slower by this factor. The pauses until
// later probes are then multiplied by kRarer.
constexpr double kUnlikely = 1.15;
constexpr int kRarer = 4;

Nanoseconds median(std::vector<RoundTime> samples, Nanoseconds RoundTime::*of) {
  const auto middle = samples.begin() + std::ssize(samples) / 2;
  std::ranges::nth_element(samples, middle, {}, of);
  return (*middle).*of;
}

Nanoseconds median(const std::vector<RoundTime>& samples) {
  return median(samples, &RoundTime::whole);
}

double ratio(Nanoseconds a, Nanoseconds b) {
  return static_cast<double>(a) / static_cast<double>(std::max<Nanoseconds>(b, 1));
}

}  // namespace

OverlapTuner::OverlapTuner(const OverlapTuner* like) {
  if (!like) return;
  kept_ = like->kept_;
  lost_ = like->lost_;
  pause_ = kFirstPause * (lost_ ? kRarer : 1);
}

void OverlapTuner::measured(const RoundTime& per_text) {
  samples_.push_back(per_text);
  if (probing_) {
    const Nanoseconds least = std::ranges::min(samples_, {}, &RoundTime::whole).whole;
    const double quickest = ratio(least, of_kept());
    const bool is_slower = quickest > (samples_.size() == 1 ? kHopeless : kUnlikely);
    if (is_slower || samples_.size() == kProbeSamples) finish_probe(median(samples_));
    return;
  }
  if (candidate_ > 0) {
    if (samples_.size() == kProbeSamples) confirm();
    return;
  }
  n_since_++;
  if (!has_measurements()) {
    if (samples_.size() == kProbeSamples) probe_if_it_may_pay();
    return;
  }
  if (samples_.size() > kKeptSamples) samples_.erase(samples_.begin());
  if (samples_.size() < kKeptSamples) return;
  // 0: this tuner copied the kept mode from another tuner and has not measured it yet
  if (of_kept() == 0) of_kept() = median(samples_);
  const double now = ratio(median(samples_), of_kept());
  const bool has_changed =
      (now > kChanged || now * kChanged < 1) && (!lost_ || n_since_ >= kFirstPause);
  // sets the pause back to the shortest one, even if the next probe changes nothing
  if (has_changed) pause_ = kFirstPause / 2;
  if (has_changed || n_since_ >= pause_) probe_if_it_may_pay();
}

void OverlapTuner::probe_if_it_may_pay() {
  of_kept() = median(samples_);
  const Nanoseconds drafting = kept_ ? 0 : median(samples_, &RoundTime::drafting);
  probe_skipped_ = !kept_ && !is_quicker(of_kept() - drafting);
  if (probe_skipped_) return schedule_next_probe(/*changed=*/false);
  samples_.clear();
  probing_ = true;
  n_probes_++;
}

void OverlapTuner::finish_probe(Nanoseconds other) {
  probing_ = false;
  median_[kept_ ? 0 : 1] = other;
  lost_ = ratio(other, of_kept()) > kUnlikely;
  if (is_quicker(other)) {
    candidate_ = other;
    samples_.clear();
  } else {
    schedule_next_probe(/*changed=*/false);
  }
}

// Steps become faster for some time after a prompt, which favours a probe over the earlier rounds
// that it is compared with. So the other mode must also be faster than the rounds of the kept mode
// after the probe.
void OverlapTuner::confirm() {
  of_kept() = median(samples_);
  const bool changed = is_quicker(candidate_);
  if (changed) {
    kept_ = !kept_;
    n_changes_++;
  }
  candidate_ = 0;
  schedule_next_probe(changed);
}

void OverlapTuner::schedule_next_probe(bool changed) {
  const int first = kFirstPause * (lost_ ? kRarer : 1);
  // the first probe, or the load has changed
  const bool restarts = changed || pause_ < kFirstPause;
  pause_ = restarts ? first : std::min((lost_ ? kRarer : 2) * pause_, kLongestPause);
  samples_.clear();
  n_since_ = 0;
}

bool OverlapTuner::is_quicker(Nanoseconds other) {
  return static_cast<double>(other) * kQuicker < static_cast<double>(of_kept());
}

const OverlapTuner* MeasuredOverlap::nearest_measured(int n_branches) const {
  const OverlapTuner* nearest = nullptr;
  int distance = 0;
  for (const auto& [n, tuner] : tuners_) {
    const int d = std::abs(n - n_branches);
    if (!tuner.has_measurements() || (nearest && d > distance)) continue;
    nearest = &tuner;
    distance = d;
  }
  return nearest;
}

const OverlapTuner* MeasuredOverlap::largest_measured() const {
  // A tuner that copied its mode from another one may not have measured both modes.
  const OverlapTuner* found = nullptr;
  for (const auto& [n, tuner] : tuners_)
    if (tuner.in_turn() > 0 && (tuner.overlapped() > 0 || tuner.was_probe_skipped()))
      found = &tuner;
  return found;
}

bool MeasuredOverlap::at_once(int n_branches) const {
  if (n_branches < 2) return false;
  const auto found = tuners_.find(n_branches);
  if (found != tuners_.end()) return found->second.at_once();
  const OverlapTuner* nearest = nearest_measured(n_branches);
  return nearest && nearest->keeps_overlapped();
}

void MeasuredOverlap::measured(int n_branches, const RoundTime& per_text) {
  if (n_branches < 2) return;
  tuners_.try_emplace(n_branches, nearest_measured(n_branches)).first->second.measured(per_text);
}

const std::vector<std::string>& overlap_names() {
  static const std::vector<std::string> names{"auto", "always", "never"};
  return names;
}

std::unique_ptr<Overlap> overlap_named(const std::string& name) {
  ensure(std::ranges::count(overlap_names(), name) == 1, "there is no overlap mode with this name");
  if (name == "auto") return std::make_unique<MeasuredOverlap>();
  return std::make_unique<FixedOverlap>(name == "always");
}

}  // namespace engine
