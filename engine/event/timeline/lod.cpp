#include "engine/event/timeline/lod.h"

#include <algorithm>
#include <limits>

#include "engine/base/types.h"

namespace engine {
namespace {

/// With at most this many slices per pixel, all are drawn as slices, even narrow ones.
constexpr double kSlicesPerPixel = 1.0 / kMinPixels;
/// A level with fewer slices per bucket than this is dropped. The check is made once per
/// kCheckEvery slices.
constexpr std::size_t kSlicesPerBucket = 16, kCheckEvery = 1024;

/// Keeps the kind with most time so far by majority vote (Boyer and Moore): a kind with more than
/// half of the time always wins.
void vote_for(Bucket& bucket, SliceKind kind, Nanoseconds time) {
  const std::int64_t weight = std::max<Nanoseconds>(time, 1);
  if (bucket.vote == 0 || bucket.kind == kind) {
    bucket.kind = kind;
    bucket.vote += weight;
  } else if (weight > bucket.vote) {
    bucket.kind = kind;
    bucket.vote = weight - bucket.vote;
  } else {
    bucket.vote -= weight;
  }
}

void count_in(Bucket& bucket, const Slice& slice) {
  ++bucket.n_slices;
  bucket.n_rejected += (slice.flags & kFlagRejected) != 0 ? 1 : 0;
  bucket.n_errors += (slice.flags & kFlagError) != 0 ? 1 : 0;
  bucket.n_pool_hits += (slice.flags & kFlagPoolHit) != 0 ? 1 : 0;
  bucket.n_pool_added += (slice.flags & kFlagPoolAdded) != 0 ? 1 : 0;
  if (slice.kind == SliceKind::Forward) {
    bucket.wasted += (slice.end - slice.start) / 100 * slice.percent;
  }
}

/// Adds a bucket of the same time. Combines the majority votes: a kind that leads in both keeps the
/// lead.
void add_to_bucket(Bucket& sum, const Bucket& bucket) {
  sum.busy += bucket.busy;
  sum.n_slices += bucket.n_slices;
  sum.n_rejected += bucket.n_rejected;
  sum.n_errors += bucket.n_errors;
  sum.n_pool_hits += bucket.n_pool_hits;
  sum.n_pool_added += bucket.n_pool_added;
  sum.wasted += bucket.wasted;
  if (sum.kind == bucket.kind || sum.vote == 0) {
    sum.kind = bucket.vote > 0 ? bucket.kind : sum.kind;
    sum.vote += bucket.vote;
  } else if (bucket.vote > sum.vote) {
    sum.kind = bucket.kind;
    sum.vote = bucket.vote - sum.vote;
  } else {
    sum.vote -= bucket.vote;
  }
}

/// The lowest level whose buckets are at least kMinPixels wide; -1 if even a quarter of a bucket of
/// level 0 is that wide.
int level_for(double ns_per_px) {
  const double wanted = ns_per_px * kMinPixels;
  if (wanted <= static_cast<double>(kBaseBucket) / 4) return -1;
  int level = 0;
  while (level + 1 < kLevels && static_cast<double>(bucket_width(level)) < wanted) ++level;
  return level;
}

}  // namespace

Nanoseconds bucket_width(int level) {
  ensure(level >= 0 && level < kLevels, "no such level");
  return kBaseBucket << (2 * level);
}

void LodLane::add(Slice slice) {
  if (!slices_.empty()) slice.start = std::max(slice.start, slices_.back().start);
  slice.end = std::max(slice.end, slice.start);
  const auto index = static_cast<std::uint32_t>(slices_.size());
  if (slice.end < end_ && max_end_.empty()) {
    for (const Slice& before : slices_) max_end_.push_back(before.end);
  }
  end_ = std::max(end_, slice.end);
  if (slice.end < end_ || !max_end_.empty()) max_end_.push_back(end_);
  slices_.push_back(slice);
  int home = 0;  // the lowest level whose bucket is wider than the slice
  const Nanoseconds length = slice.end - slice.start;
  while (home < kLevels && length >= kBaseBucket << (2 * home)) ++home;
  if (home > 0) levels_[at(home - 1)].longer.push_back(index);
  home = std::max(home, lowest_);
  // A bucket that ends before this slice begins cannot change any more.
  for (int level = lowest_; level + 1 < kLevels; ++level) {
    if (!fold(level, slice.start) && level >= home) break;
  }
  if (home < kLevels) add_to(home, slice);
  if (slices_.size() % kCheckEvery == 0) drop_thin_levels();
}

void LodLane::drop_thin_levels() {
  int thin = kLevels - 2;
  while (thin >= lowest_ && levels_[at(thin)].buckets.size() * kSlicesPerBucket <= slices_.size()) {
    --thin;
  }
  for (; lowest_ <= thin; ++lowest_) {
    fold(lowest_, std::numeric_limits<Nanoseconds>::max());
    levels_[at(lowest_)].buckets = {};
    levels_[at(lowest_)].n_folded = 0;
  }
}

std::size_t LodLane::n_buckets() const {
  std::size_t n = 0;
  for (const Level& level : levels_) n += level.buckets.size();
  return n;
}

bool LodLane::fold(int level, Nanoseconds t) {
  Level& from = levels_[at(level)];
  const std::int64_t now = t >> (16 + 2 * level);
  const std::size_t before = from.n_folded;
  while (from.n_folded < from.buckets.size() && from.buckets[from.n_folded].index < now) {
    const Bucket& done = from.buckets[from.n_folded++];
    add_to_bucket(bucket(levels_[at(level + 1)].buckets, done.index >> 2), done);
  }
  return from.n_folded > before;
}

void LodLane::add_unfolded(int level,
                           std::int64_t first,
                           std::int64_t last,
                           std::vector<Bucket>& buckets) const {
  for (int lower = level - 1; lower >= 0; --lower) {
    const Level& from = levels_[at(lower)];
    for (std::size_t i = from.n_folded; i < from.buckets.size(); ++i) {
      const std::int64_t index = from.buckets[i].index >> (2 * (level - lower));
      if (index < first || index > last) continue;
      const auto place = std::ranges::lower_bound(buckets, index, {}, &Bucket::index);
      const bool is_there = place != buckets.end() && place->index == index;
      Bucket& sum = is_there ? *place : *buckets.insert(place, Bucket{.index = index});
      add_to_bucket(sum, from.buckets[i]);
    }
  }
}

std::vector<Bucket> LodLane::buckets(int level) const {
  ensure(level >= lowest_, "this level is dropped");
  std::vector<Bucket> all = levels_[at(level)].buckets;
  add_unfolded(level, 0, std::numeric_limits<std::int64_t>::max(), all);
  return all;
}

Bucket& LodLane::bucket(std::vector<Bucket>& buckets, std::int64_t index) {
  // Slices arrive in the order of their starts, and a slice touches at most two buckets, so a
  // bucket that exists is one of the last two.
  for (std::size_t back = 1; back <= 2 && back <= buckets.size(); ++back) {
    Bucket& found = buckets[buckets.size() - back];
    if (found.index == index) return found;
  }
  buckets.push_back({.index = index});
  return buckets.back();
}

void LodLane::add_to(int level, const Slice& slice) {
  const int shift = 16 + 2 * level;
  const std::int64_t first = slice.start >> shift;
  const std::int64_t last = slice.end > slice.start ? (slice.end - 1) >> shift : first;
  const Nanoseconds inside = std::min(slice.end, (first + 1) << shift) - slice.start;
  Bucket& begun = bucket(levels_[at(level)].buckets, first);
  count_in(begun, slice);
  begun.busy += inside;
  vote_for(begun, slice.kind, inside);
  if (last == first) return;
  const Nanoseconds rest = slice.end - slice.start - inside;
  Bucket& next = bucket(levels_[at(level)].buckets, last);
  next.busy += rest;
  vote_for(next, slice.kind, rest);
}

std::vector<Slice> LodLane::long_slices(int level) const {
  std::vector<std::uint32_t> indices;
  for (int l = level; l < kLevels; ++l) {
    indices.insert(indices.end(), levels_[at(l)].longer.begin(), levels_[at(l)].longer.end());
  }
  std::ranges::sort(indices);
  std::vector<Slice> found;
  found.reserve(indices.size());
  for (const std::uint32_t index : indices) found.push_back(slices_[index]);
  return found;
}

std::size_t LodLane::first_reaching(Nanoseconds t) const {
  const auto first = max_end_.empty()
                         ? std::ranges::upper_bound(slices_, t, {}, &Slice::end) - slices_.begin()
                         : std::ranges::upper_bound(max_end_, t) - max_end_.begin();
  return static_cast<std::size_t>(first);
}

void LodLane::merge_close(Nanoseconds t0,
                          Nanoseconds t1,
                          Nanoseconds width,
                          VisibleLane& out) const {
  std::vector<Bucket> merged;
  for (std::size_t i = first_reaching(t0); i < slices_.size() && slices_[i].start < t1; ++i) {
    const Slice& slice = slices_[i];
    if (slice.end - slice.start >= width) {
      out.slices.push_back(slice);
      continue;
    }
    Bucket& in = bucket(merged, slice.start / width);
    count_in(in, slice);
    in.busy += slice.end - slice.start;
    vote_for(in, slice.kind, slice.end - slice.start);
  }
  out.buckets = std::move(merged);
}

VisibleLane LodLane::visible(Nanoseconds t0, Nanoseconds t1, double px) const {
  VisibleLane out;
  if (slices_.empty() || t1 <= t0 || !(px > 0)) return out;
  const double ns_per_px = static_cast<double>(t1 - t0) / px;
  const std::size_t first = first_reaching(t0);
  const auto past = static_cast<std::size_t>(
      std::ranges::lower_bound(slices_, t1, {}, &Slice::start) - slices_.begin());
  const std::size_t n = past > first ? past - first : 0;
  const int level = level_for(ns_per_px);
  const bool few = static_cast<double>(n) <= std::max(px * kSlicesPerPixel, 64.0);
  if (few) {
    out.slices.assign(slices_.begin() + static_cast<std::ptrdiff_t>(first),
                      slices_.begin() + static_cast<std::ptrdiff_t>(first + n));
    std::erase_if(out.slices, [t0](const Slice& slice) { return slice.end < t0; });
    return out;
  }
  if (level < lowest_) {
    // If the view needs a level below the lowest one, there are so few slices that each is scanned.
    out.width = std::max<Nanoseconds>(1, static_cast<Nanoseconds>(ns_per_px * kMinPixels));
    merge_close(t0, t1, out.width, out);
    return out;
  }
  out.level = level;
  out.width = bucket_width(level);
  const std::vector<Bucket>& all = levels_[at(level)].buckets;
  const int shift = 16 + 2 * level;
  auto b = std::ranges::lower_bound(all, t0 >> shift, {}, &Bucket::index);
  for (; b != all.end() && b->index <= (t1 - 1) >> shift; ++b) out.buckets.push_back(*b);
  add_unfolded(level, t0 >> shift, (t1 - 1) >> shift, out.buckets);
  for (int l = level; l < kLevels; ++l) {
    const std::vector<std::uint32_t>& longer = levels_[at(l)].longer;
    const auto from = std::ranges::lower_bound(longer, static_cast<std::uint32_t>(first), {},
                                               [](std::uint32_t i) { return i; });
    for (auto i = from; i != longer.end() && slices_[*i].start < t1; ++i) {
      if (slices_[*i].end >= t0) out.slices.push_back(slices_[*i]);
    }
  }
  std::ranges::sort(out.slices, {}, &Slice::start);
  return out;
}

void RunLod::update(const RunRecord& run, unsigned lanes) {
  const auto is_wanted = [lanes](std::size_t lane) { return (lanes >> lane & 1U) != 0; };
  std::size_t first = run.steps.size();
  for (std::size_t lane = 0; lane < kLaneKinds; ++lane) {
    if (is_wanted(lane)) first = std::min(first, n_steps_[lane]);
  }
  const std::size_t phases = static_cast<std::size_t>(LaneKind::Phases), before = n_steps_[phases];
  for (std::size_t i = first; i < run.steps.size(); ++i) {
    const StepHead step = run.steps.head(i);
    const bool still_running = i + 1 == run.steps.size() && !run.over();
    if (!step.complete && still_running) break;
    for (const LaneSlice& part : slices_of(run, step, clock_)) {
      const auto lane = static_cast<std::size_t>(part.lane);
      if (is_wanted(lane) && n_steps_[lane] == i) lanes_[lane].add(part.slice);
    }
    for (std::size_t lane = 0; lane < kLaneKinds; ++lane) {
      if (is_wanted(lane) && n_steps_[lane] == i) ++n_steps_[lane];
    }
  }
  if (!is_wanted(phases)) return;
  const bool is_new = n_steps_[phases] != before || n_phases_ != run.phases.size();
  if (!is_new && over_ == run.over()) return;
  n_phases_ = run.phases.size();
  over_ = run.over();
  // Rebuilds the lane of phases each time: there are few phases, and the last one grows.
  lanes_[phases] = {};
  for (const Slice& slice : phase_slices(run, clock_)) lanes_[phases].add(slice);
}

Nanoseconds RunLod::end() const {
  Nanoseconds end = 0;
  for (const LodLane& lane : lanes_) end = std::max(end, lane.end());
  return end;
}

}  // namespace engine
