// Chooses the tree of draft heads (tree=auto; our addition).
//   draft or not  by the tokens and the time of the last steps with a draft, beside plain decoding
//   nodes         of the drafted candidates, those whose tokens are worth the time of their rows. A
//                 candidate's chance follows from the probability that its head gives it: the share
//                 of candidates with about this probability, of this head, that were right
// The choice depends on the heads' distributions and on earlier steps, on nothing that is drawn in the
// step. It changes no token with exact-match verification.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/decode/control/rate.h"
#include "engine/decode/control/size_choice.h"

namespace engine {

/// A drafted candidate.
struct HeadCandidate {
  int parent = 0;  // row of the tree of all candidates
  TokenId token = 0;
  int depth = 0;     // from 1
  double p = 0;      // that the head gives it, after its parent
  double right = 0;  // chance that its whole path is right; set by HeadKnowledge::rate()
};

/// Statistics about a model's draft heads.
class HeadKnowledge final : public Learned {
 public:
  HeadKnowledge();

  /// Decides whether the next step drafts; the choice's index is 0 or 1.
  SizeChoice choose(std::span<const SizePlan> plans) { return chooser_.choose(plans); }
  /// Plain decoding, and a step with a draft.
  std::vector<SizePlan> plans(const StepControl& control) const;
  /// Sets the chance of every candidate.
  /// @param candidates  of rows 1, 2, ...; a parent comes before its children
  void rate(std::span<HeadCandidate> candidates) const;
  /// The number of rows, beside the root, that are worth their time.
  /// @param right  chances, descending
  int choose_rows(std::span<const double> right, const StepControl& control) const;
  /// Counts the candidates that the emitted tokens confirm or refute, verified or not.
  void learn(std::span<const HeadCandidate> candidates, std::span<const TokenId> emitted);
  /// Counts a step.
  /// @param ms        its expected time; plain_ms: that of a plain step
  /// @param drafting  measured share of a plain step's time that the heads took; below 0: they did
  ///                  not run
  void came(int n_tokens, double ms, double plain_ms, double drafting);
  /// Expected time of the heads in ms.
  double drafting_ms(const StepControl& control) const;

 private:
  static constexpr std::size_t kHeads = 6, kBuckets = 10;
  static std::size_t bucket(double p);
  const Rate& rate_of(const HeadCandidate& candidate) const;

  std::array<std::array<Rate, kBuckets>, kHeads> rates_;  // by head and probability
  // of steps with a draft, with forgetting: their number, tokens, and times in plain steps
  double n_ = 0, tokens_ = 0, share_ = 0, drafting_ = 0;
  SizeChooser chooser_;
};

}  // namespace engine
