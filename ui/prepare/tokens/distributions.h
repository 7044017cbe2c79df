// The distributions that P/Q shows, at another temperature. A distribution at T is its power T0 / T, scaled to sum 1;
// a recording holds a few tokens of each distribution, so what the others share is known within bounds only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace ui {

/// What is known of a number.
struct Within {
  double low = 0, high = 0;

  double wide() const { return high - low; }
  double middle() const { return (low + high) / 2; }
};
/// "0.312"; "0.30 to 0.34" where it is not known to a thousandth.
std::string words_of(const Within& value);

/// Tokens of a distribution that were not told by name.
struct Untold {
  double n = 0;     // at most so many have any of it
  double most = 1;  // and none more than this
};

struct DistributionAt {
  std::vector<Within> of;  // [told]
  Within rest;             // of all the others together
};
/// @param distribution       probabilities told, at temperature `from`; what they lack to 1 is the others'
/// @param from, to  above 0
DistributionAt distribution_at(std::span<const float> distribution,
                               const Untold& untold,
                               double from,
                               double to);

/// Two distributions of one place, and how far they lie apart.
struct DistributionsAt {
  DistributionAt p, q;  // q.of empty: proposed without a distribution
  Within kept;          // the chance that one token drawn from q is kept: sum of min(p, q)
  Within apart;         // their total variation, 1 - kept
};

/// Temperatures, filters and vocabulary that a step's distributions were recorded with.
struct DistributionsSource {
  float temperature = 0, draft_temperature = 0;
  bool draft_follows = true;       // its temperature is the target's
  int top_k = 0, draft_top_k = 0;  // 0: all
  std::string cut, draft_cut;      // "top p", "top p and min p"; empty: nothing depends on them
  int vocab_size = 0;              // 0: unknown
};
DistributionsSource distributions_source(const engine::Timeline& timeline,
                                         const engine::RunRecord& run);

/// Behind one row, at a temperature of the target; the draft's is the same unless it has its own.
/// @param step  that weighed it
DistributionsAt distributions_at(const DistributionsSource& source,
                                 const engine::StepRecord& step,
                                 const engine::RejectionDetail& rejection_details,
                                 float temperature);

/// Why a run's distributions cannot be recomputed at another temperature; empty: they can.
std::string why_no_other_temperature(const engine::RunStarted& started,
                                     const engine::StepRecord& step);
/// What the figures of another temperature leave out, in a sentence or two; empty: nothing.
std::string what_is_left_out(const DistributionsSource& source,
                             const DistributionsAt& distributions,
                             float temperature);

}  // namespace ui
