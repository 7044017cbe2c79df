// Decides whether the draft model works while the target verifies (overlapped, SEED's schedule) or
// in turn with it. If both models share cores and memory bandwidth, working in turn, each with all
// threads, may be faster. No token depends on the decision.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// Duration of one branch's round.
struct RoundTime {
  Nanoseconds whole = 0;
  Nanoseconds drafting = 0;  // the draft's part of it
  double tokens = 1;         // expected tokens of the branch's tree; 1 if all trees are equal
};

/// Decides between overlapped and in-turn rounds.
class Overlap {
 public:
  virtual ~Overlap() = default;
  /// True if both models work at the same time while `n_branches` branches are active.
  virtual bool at_once(int n_branches) const = 0;
  /// Reports a branch's round time with `n_branches` active branches, in the mode that at_once()
  /// chose.
  virtual void measured(int /*n_branches*/, const RoundTime& /*per_text*/) {}
};

/// Always chooses the same mode.
class FixedOverlap final : public Overlap {
 public:
  /// @param at_once  the mode
  explicit FixedOverlap(bool at_once) : at_once_(at_once) {}
  bool at_once(int /*n_branches*/) const override { return at_once_; }

 private:
  bool at_once_;
};

/// Chooses the mode with the most expected tokens per time, for one number of branches.
///   time    the mean logarithm of a mode's time per expected token; older rounds weigh less. If the
///           time of the kept mode changes, half of the change is assumed for the other mode too,
///           because load and context affect both
///   choice  if an optimistic estimate of the other mode (1.5 standard deviations) is 3 % better, the
///           other mode runs for three rounds (fewer if it is much slower), and is kept if its mean is
///           then 3 % better. The uncertainty of the mode that is not used grows, so a slightly slower
///           mode is tried again soon and a much slower one rarely
///   bound   an overlapped round takes at least the longest of a verification, a draft / the number of
///           drafters, and the time of a branch alone / the number of branches. Overlapped rounds are
///           not tried if this bound leaves a gain below 3 %
class ModeChoice {
 public:
  enum Mode : std::uint8_t { InTurn, Overlapped };

  /// Starts in turn, without measurements.
  ModeChoice() = default;
  /// Starts with the measurements of `like`, the choice for another number of branches. The first
  /// round measured rescales its times, so only their ratio is used.
  explicit ModeChoice(const ModeChoice& like, int n_branches);
  /// @param n_drafters  most branches that draft at the same time
  explicit ModeChoice(int n_branches, int n_drafters = 1)
      : n_branches_(n_branches), n_drafters_(n_drafters) {}

  /// The mode of the next round.
  Mode mode() const { return mode_; }
  /// The better mode so far.
  Mode kept() const { return kept_; }
  /// Reports a branch's round time in mode().
  void measured(const RoundTime& per_text);

  /// Expected time of a branch's round in ms; 0: never measured.
  double ms(Mode mode) const;
  /// True if overlapped rounds were not tried because they could not gain enough.
  bool cannot_gain() const;
  /// True if measurements support the kept mode.
  bool is_decided() const;
  int n_probes() const { return n_probes_; }    ///< number of rounds in the mode that was not kept
  int n_changes() const { return n_changes_; }  ///< number of changes of the kept mode

 private:
  /// The time of a round in one mode, as the logarithm of ms per expected token.
  struct Estimate {
    double log_ms = 0;
    double weight = 0;   // number of recent measurements; 0: none
    double tokens = 1;   // of the last round
    int n_outliers = 0;  // in a row, positive: slow ones; negative: fast ones
  };
  double hoped(Mode mode) const;
  double least_overlapped() const;
  void add(double log_ms);
  void choose();

  int n_branches_ = 2;
  int n_drafters_ = 1;
  Mode mode_ = InTurn, kept_ = InTurn;
  Estimate estimates_[2];
  bool is_copied_ = false;     // no round was measured since the estimates were copied
  int n_probe_rounds_ = 0;     // of the current probe
  double drafting_share_ = 0;  // of rounds in turn
  int n_probes_ = 0, n_changes_ = 0;
};

/// overlap=auto: one choice per number of active branches, because this number changes a round's
/// time. A new choice starts from the one with the nearest number; otherwise, at the end of a search,
/// each smaller number of branches would have to be measured first. A single branch works in turn,
/// because there is nothing to overlap with.
class ChosenOverlap final : public Overlap {
 public:
  /// @param n_drafters  most branches that draft at the same time
  explicit ChosenOverlap(int n_drafters = 1) : n_drafters_(n_drafters) {}
  bool at_once(int n_branches) const override;
  void measured(int n_branches, const RoundTime& per_text) override;
  /// The choices by number of branches.
  const std::map<int, ModeChoice>& choices() const { return choices_; }
  /// The decided choice with the most branches; null: none.
  const ModeChoice* largest_decided() const;

 private:
  /// The choice with the nearest number of branches; null: none has measured.
  const ModeChoice* nearest(int n_branches) const;
  int n_drafters_;
  std::map<int, ModeChoice> choices_;
};

/// The names of the modes: "auto", "always", "never".
const std::vector<std::string>& overlap_names();
/// Makes the decision rule with this name.
/// @param n_drafters  most branches that draft at the same time
/// @throws ContractError  if there is none; parse_options() has checked the name
std::unique_ptr<Overlap> overlap_named(const std::string& name, int n_drafters = 1);

}  // namespace engine
