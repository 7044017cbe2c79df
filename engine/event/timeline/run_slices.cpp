#include "engine/event/timeline/run_slices.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/event/timeline/schedule_turns.h"

namespace engine {
namespace {

/// The start of a step on a clock, and the lengths of its parts.
struct Parts {
  Nanoseconds start = 0;
  Nanoseconds propose = 0, forward = 0, verify = 0, commit = 0;
  Nanoseconds sum() const { return propose + forward + verify + commit; }
};

Nanoseconds share(Nanoseconds part, Nanoseconds length, Nanoseconds whole) {
  if (whole <= 0) return 0;
  return static_cast<Nanoseconds>(static_cast<double>(part) / static_cast<double>(whole) *
                                  static_cast<double>(length));
}

/// Scales the parts of a step so that they fill `length`. Without measured times the forward part
/// fills it.
Parts filling(const Parts& measured, Nanoseconds start, Nanoseconds length) {
  const Nanoseconds sum = measured.sum();
  Parts parts{.start = start};
  parts.propose = share(measured.propose, length, sum);
  parts.verify = share(measured.verify, length, sum);
  parts.commit = share(measured.commit, length, sum);
  parts.forward = length - parts.propose - parts.verify - parts.commit;
  return parts;
}

Parts parts_of(const StepHead& step, Clock clock) {
  const StepEnded& e = step.ended;
  const Parts measured{.start = step.begun.t,
                       .propose = e.propose,
                       .forward = e.forward,
                       .verify = e.verify,
                       .commit = e.commit};
  switch (clock) {
    case Clock::Wall: {
      const Nanoseconds wall = e.t - step.begun.t;
      return measured.sum() <= wall ? measured : filling(measured, step.begun.t, wall);
    }
    case Clock::Compute: {
      Parts parts = measured;
      parts.start = step.begun.compute;
      return parts;
    }
    case Clock::Step:
      return filling(measured, step.begun.step * kUnit, kUnit);
    case Clock::Position:
      break;
  }
  return filling(measured, step.first_pos * kUnit, step.n_tokens * kUnit);
}

SliceKind verify_kind(const StepHead& v) {
  if (v.n_proposed == 0) return SliceKind::VerifyPlain;
  return v.n_accepted > 0 ? SliceKind::VerifyAccepted : SliceKind::VerifyRejected;
}

SliceKind phase_kind(const std::string& name) {
  if (name == "load") return SliceKind::Load;
  if (name == "prefill" || name == "draft prefill") return SliceKind::Prefill;
  if (name == "decode") return SliceKind::Decode;
  return SliceKind::OtherPhase;
}

/// Share of the rows of a step that it did not commit.
std::int16_t percent_wasted(const StepHead& step) {
  const int n_rows = std::max(step.begun.n_rows, step.n_rows);
  if (n_rows <= step.n_tokens) return 0;
  return static_cast<std::int16_t>(100 - (std::int64_t{100} * step.n_tokens) / n_rows);
}

Nanoseconds end_of(const RunRecord& run, Clock clock) {
  for (std::size_t i = run.steps.size(); i-- > 0;) {
    const StepHead step = run.steps.head(i);
    if (!step.complete) continue;
    const Parts parts = parts_of(step, clock);
    return clock == Clock::Wall ? step.ended.t : saturated_sum(parts.start, parts.sum());
  }
  return 0;
}

}  // namespace

const char* name_of(LaneKind lane) {
  constexpr std::array<const char*, kLaneKinds> kNames{"phases", "propose", "target", "verify",
                                                       "commit", "pool",    "device"};
  return kNames[static_cast<std::size_t>(lane)];
}

LaneSlices slices_of(const StepHead& step, Clock clock) {
  if (!step.complete) return {};
  const bool has_span = clock != Clock::Position || step.n_tokens > 0;
  if (!has_span) return {};
  const Parts parts = parts_of(step, clock);
  LaneSlices slices;
  Nanoseconds t = parts.start;
  const auto add = [&](LaneKind lane, Nanoseconds length, SliceKind kind, int flags = 0) {
    slices.all[slices.n++] = {lane,
                              {.start = t,
                               .end = t + length,
                               .step = step.begun.step,
                               .kind = kind,
                               .flags = static_cast<std::uint8_t>(flags)}};
  };
  add(LaneKind::Propose, parts.propose, SliceKind::Propose);
  t += parts.propose;
  const int rejected = step.n_rejected > 0 ? kFlagRejected : 0;
  add(LaneKind::Target, parts.forward, SliceKind::Forward, rejected);
  slices.all[slices.n - 1].slice.percent = percent_wasted(step);
  t += parts.forward;
  add(LaneKind::Verify, parts.verify, verify_kind(step), rejected);
  t += parts.verify;
  const bool kept = step.n_tokens > 0;
  add(LaneKind::Commit, parts.commit, kept ? SliceKind::Commit : SliceKind::Rollback);
  const int added = step.n_pool_added > 0 ? kFlagPoolAdded : 0;
  if (step.n_pool_hits > 0) {
    add(LaneKind::Pool, parts.commit, SliceKind::PoolHit, kFlagPoolHit | added);
  } else if (step.tried_guesses) {
    add(LaneKind::Pool, parts.commit, SliceKind::PoolMiss, added);
  } else if (step.has_pool) {
    add(LaneKind::Pool, parts.commit, SliceKind::PoolFill, added);
  }
  return slices;
}

LaneSlices slices_of(const RunRecord& run, const StepHead& step, Clock clock) {
  LaneSlices slices = slices_of(step, clock);
  if (!has_schedule({&run, 1}) || clock != Clock::Wall || slices.n == 0) return slices;
  const Nanoseconds proposed = slices.all[0].slice.end;
  const Nanoseconds waited = std::max<Nanoseconds>(0, time_at_target(run, step) - proposed);
  for (std::size_t i = 1; i < slices.n; i++) {
    slices.all[i].slice.start += waited;
    slices.all[i].slice.end += waited;
  }
  return slices;
}

std::vector<Slice> phase_slices(const RunRecord& run, Clock clock) {
  std::vector<Slice> slices;
  const bool stepped = !run.steps.empty();
  if (clock == Clock::Wall) {
    for (std::size_t i = 0; i < run.phases.size(); ++i) {
      const Phase& phase = run.phases[i];
      const SliceKind kind = phase_kind(phase.name);
      if (kind == SliceKind::Decode) continue;  // the steps show this phase in more detail
      const bool continues = i > 0 && run.phases[i - 1].name == phase.name && !slices.empty();
      if (continues) {
        slices.back().end = phase.t;
      } else {
        slices.push_back(
            {.start = phase.t, .end = phase.t, .step = static_cast<StepId>(i), .kind = kind});
      }
    }
  }
  if (stepped) {
    const StepHead first = run.steps.head(0);
    const Nanoseconds start =
        clock == Clock::Wall ? first.begun.t : (first.complete ? parts_of(first, clock).start : 0);
    slices.push_back(
        {.start = start, .end = std::max(start, end_of(run, clock)), .kind = SliceKind::Decode});
  }
  if (run.failed) {
    const Nanoseconds t = clock == Clock::Wall ? run.failed->t : end_of(run, clock);
    slices.push_back({.start = t, .end = t, .kind = SliceKind::Failed, .flags = kFlagError});
  }
  std::ranges::stable_sort(slices, {}, &Slice::start);
  return slices;
}

std::vector<Slice> device_slices(std::span<const Sampled> samples) {
  std::vector<Slice> slices;
  for (const Sampled& sample : samples) {
    if (sample.busy_percent < 0 || sample.period <= 0) continue;
    slices.push_back({.start = std::max<Nanoseconds>(0, sample.t - sample.period),
                      .end = sample.t,
                      .kind = SliceKind::Busy,
                      .percent = static_cast<std::int16_t>(std::min(sample.busy_percent, 1e4))});
  }
  std::ranges::stable_sort(slices, {}, &Slice::start);
  return slices;
}

std::string label_of(const RunRecord& run, LaneKind lane, const Slice& slice) {
  if (lane == LaneKind::Device) return fmt::format("busy {} %", slice.percent);
  const auto at = static_cast<std::size_t>(slice.step);
  if (lane == LaneKind::Phases) {
    if (slice.kind == SliceKind::Failed) return "failed";
    if (slice.kind == SliceKind::Decode) return "decode";
    return slice.step >= 0 && at < run.phases.size() ? run.phases[at].name : "phase";
  }
  if (slice.step < 0 || at >= run.steps.size()) return name_of(lane);
  const StepHead step = run.steps.head(at);
  switch (slice.kind) {
    case SliceKind::Propose:
      return fmt::format("propose {}", step.n_proposed);
    case SliceKind::Forward:
      return fmt::format("forward {}", step.begun.n_rows);
    case SliceKind::VerifyAccepted:
      return fmt::format("verify accepted {}/{}", step.n_accepted, step.n_proposed);
    case SliceKind::VerifyRejected:
      return fmt::format("verify rejected 0/{}", step.n_proposed);
    case SliceKind::VerifyPlain:
      return "verify";
    case SliceKind::Commit:
      return fmt::format("commit {}", step.n_tokens);
    case SliceKind::Rollback:
      return "rollback";
    case SliceKind::PoolHit:
      return fmt::format("pool hit {}", step.n_pool_hits);
    case SliceKind::PoolMiss:
      return "pool miss";
    case SliceKind::PoolFill:
      return fmt::format("pool fill {}", step.n_pool_added);
    default:
      return name_of(lane);
  }
}

}  // namespace engine
