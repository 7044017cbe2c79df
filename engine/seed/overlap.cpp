#include "engine/seed/overlap.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::size_t kLookSamples = 3;
constexpr std::size_t kKeptSamples = 5;
constexpr int kFirstPause = 48, kLongestPause = 768;
constexpr double kQuicker = 1.03;   // by so much the other way must be, to be kept
constexpr double kChanged = 1.25;   // times what it was, or the other way: the load is another
constexpr double kHopeless = 1.3;   // one sample like this ends a look
constexpr double kUnlikely = 1.15;  // so do two; and where a look has it, others are rarer
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
  if (looking_) {
    const Nanoseconds least = std::ranges::min(samples_, {}, &RoundTime::whole).whole;
    const double quickest = ratio(least, of_kept());
    const bool is_slower = quickest > (samples_.size() == 1 ? kHopeless : kUnlikely);
    if (is_slower || samples_.size() == kLookSamples) judge(median(samples_));
    return;
  }
  if (candidate_ > 0) {
    if (samples_.size() == kLookSamples) confirm();
    return;
  }
  n_since_++;
  if (!knows()) {
    if (samples_.size() == kLookSamples) look_if_it_may_pay();
    return;
  }
  if (samples_.size() > kKeptSamples) samples_.erase(samples_.begin());
  if (samples_.size() < kKeptSamples) return;
  if (of_kept() == 0) of_kept() = median(samples_);  // of another number of branches so far
  const double now = ratio(median(samples_), of_kept());
  const bool has_changed =
      (now > kChanged || now * kChanged < 1) && (!lost_ || n_since_ >= kFirstPause);
  if (has_changed) pause_ = kFirstPause / 2;  // begins anew where the look changes nothing
  if (has_changed || n_since_ >= pause_) look_if_it_may_pay();
}

void OverlapTuner::look_if_it_may_pay() {
  of_kept() = median(samples_);
  const Nanoseconds drafting = kept_ ? 0 : median(samples_, &RoundTime::drafting);
  spared_ = !kept_ && !is_quicker(of_kept() - drafting);
  if (spared_) return settle(/*changed=*/false);
  samples_.clear();
  looking_ = true;
  n_looks_++;
}

void OverlapTuner::judge(Nanoseconds other) {
  looking_ = false;
  median_[kept_ ? 0 : 1] = other;
  lost_ = ratio(other, of_kept()) > kUnlikely;
  if (is_quicker(other)) {
    candidate_ = other;
    samples_.clear();
  } else {
    settle(/*changed=*/false);
  }
}

// Steps grow quicker behind a prompt, and what is looked at comes later than what it is held
// against: it must be quicker than the way that is kept once more, behind the look.
void OverlapTuner::confirm() {
  of_kept() = median(samples_);
  const bool changed = is_quicker(candidate_);
  if (changed) {
    kept_ = !kept_;
    n_changes_++;
  }
  candidate_ = 0;
  settle(changed);
}

void OverlapTuner::settle(bool changed) {
  const int first = kFirstPause * (lost_ ? kRarer : 1);
  const bool anew = changed || pause_ < kFirstPause;  // for the first time, or for another load
  pause_ = anew ? first : std::min((lost_ ? kRarer : 2) * pause_, kLongestPause);
  samples_.clear();
  n_since_ = 0;
}

bool OverlapTuner::is_quicker(Nanoseconds other) {
  return static_cast<double>(other) * kQuicker < static_cast<double>(of_kept());
}

const OverlapTuner* MeasuredOverlap::nearest_that_knows(int n_branches) const {
  const OverlapTuner* nearest = nullptr;
  int distance = 0;
  for (const auto& [n, tuner] : tuners_) {
    const int d = std::abs(n - n_branches);
    if (!tuner.knows() || (nearest && d > distance)) continue;
    nearest = &tuner;
    distance = d;
  }
  return nearest;
}

const OverlapTuner* MeasuredOverlap::most_that_measured() const {
  // One that began like another has not measured the way that it keeps, or not the other one.
  const OverlapTuner* found = nullptr;
  for (const auto& [n, tuner] : tuners_)
    if (tuner.in_turn() > 0 && (tuner.overlapped() > 0 || tuner.was_spared())) found = &tuner;
  return found;
}

bool MeasuredOverlap::at_once(int n_branches) const {
  if (n_branches < 2) return false;
  const auto found = tuners_.find(n_branches);
  if (found != tuners_.end()) return found->second.at_once();
  const OverlapTuner* nearest = nearest_that_knows(n_branches);
  return nearest && nearest->keeps_at_once();
}

void MeasuredOverlap::measured(int n_branches, const RoundTime& per_text) {
  if (n_branches < 2) return;
  tuners_.try_emplace(n_branches, nearest_that_knows(n_branches)).first->second.measured(per_text);
}

const std::vector<std::string>& overlap_names() {
  static const std::vector<std::string> names{"auto", "always", "never"};
  return names;
}

std::unique_ptr<Overlap> overlap_named(const std::string& name) {
  ensure(std::ranges::count(overlap_names(), name) == 1, "there is no such overlap");
  if (name == "auto") return std::make_unique<MeasuredOverlap>();
  return std::make_unique<FixedOverlap>(name == "always");
}

}  // namespace engine
