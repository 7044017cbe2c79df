// Chooses the size of a step's guess: the one that yields the most tokens for its time.
//   per step  sizes of this step alone. A step's time is worth the tokens that decoding has lately
//             yielded in that time, so each guessed token must be worth the time of its row
//   lasting   sizes that are kept for several steps (blocks, windows). The size with the most tokens
//             per time is best
//   none      the first size is plain decoding and always a choice
//   probes    another size is tried while it could be better than the best one by an optimistic
//             estimate. Probes may cost 0.8 % of the time. If nothing was guessed for a while, the best
//             guess is tried, and again while it succeeds. A plain step is made from time to time too,
//             because it shows the cost of the other rows
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/decode/control/rate.h"
#include "engine/decode/control/step_control.h"
#include "engine/event/event.h"

namespace engine {

/// The expected tokens and time of a size.
struct SizePlan {
  double tokens = 1;  // expected tokens, the target's own included
  double hoped = 1;   // an optimistic estimate of them
  double ms = 0;      // expected time
  double steps = 1;   // in which they come
};

/// The chosen size.
struct SizeChoice {
  std::size_t index = 0;
  bool probe = false;  // chosen for what can be learned
};

/// The choice for a step's event, with the mean of its steps.
/// @param size  in the decoder's unit
SizeDecision decision_of(const SizeChoice& choice, std::span<const SizePlan> plans, int size);

/// Chooses sizes and keeps the budget of probes. Lasts over the texts of a run.
class SizeChooser {
 public:
  /// @param plain_every  after this many steps with guesses one without is made
  explicit SizeChooser(int plain_every = 64) : plain_every_(plain_every) {}
  /// Chooses the size of one step.
  /// @param plans     plans[0] is plain decoding, or has no guesses
  /// @param plain_ms  time of a plain step; 0: that of plans[0]
  SizeChoice choose(std::span<const SizePlan> plans, double plain_ms = 0);
  /// Chooses a size that is kept for some steps; a plan has the tokens and the time of all of them.
  SizeChoice choose_lasting(std::span<const SizePlan> plans);
  /// Reports the result of a step.
  /// @param plain_share  its expected time / the time of a plain step
  void came(int n_tokens, double plain_share);

  /// True if the next step will have no guesses, to learn what the rows cost.
  bool plain_is_due() const { return n_since_plain_ >= plain_every_; }
  /// Tokens per time lately, relative to plain decoding; at least 1.
  double rate() const;

 private:
  SizeChoice choose_at(double tokens_per_ms, std::span<const SizePlan> plans);

  double tokens_ = 16, time_ = 16;  // of the last steps; the time in plain steps
  double budget_ = 0.5;             // tokens that probes may lose
  int plain_every_;
  int n_since_plain_ = 0, n_since_guess_ = 0;  // steps
  double probed_ = 0;  // expected tokens of a probe that has not come yet; 0: none
};

/// Tokens of lasting sizes and the rows of their steps, with forgetting.
class SizeHistory {
 public:
  /// @param sizes    ascending; the first is plain decoding, with one row a step
  /// @param shrinks  the rows become fewer during a use, as those of a block
  SizeHistory(std::vector<int> sizes, bool shrinks);

  const std::vector<int>& sizes() const { return sizes_; }
  /// Adds one use of a size, a block or a step.
  /// @param rows  [steps] rows of each step
  void add(std::size_t index, int n_tokens, std::span<const int> rows);
  /// Adds a step of a block other than its first one. Learns how often guesses that were refined at
  /// least once are right.
  void add_refined(int n_rows, int n_tokens);
  /// Reduces the weight of all uses; called once a step.
  void fade();
  /// The plans of all sizes. A window without a recent use is expected to yield as many tokens as
  /// the next smaller one, and more if every row of that one often yielded a token; its optimistic
  /// estimate is 1.5 times as many. The steps expected of a block without a recent use follow from the
  /// share of refined guesses that were right. Of sizes above the largest one in use, only those up to
  /// twice that size (at least 4) are plans.
  std::vector<SizePlan> plans(const StepControl& control) const;

 private:
  struct Use {
    double n = 0, tokens = 0, steps = 0;
    double full = 0;           // uses of one step in which every row yielded a token
    std::vector<double> rows;  // [n_rows] number of steps with this many rows
  };
  SizePlan unknown_block(int size, const StepControl& control) const;

  std::vector<int> sizes_;
  bool shrinks_;
  Rate refined_{0.3};  // of guesses that were refined at least once
  std::vector<Use> uses_;
};

/// Statistics of lasting sizes, shared by all runs of a decoder.
struct LastingKnowledge : Learned {
  LastingKnowledge(bool shrinks, int plain_every);
  SizeHistory history;
  SizeChooser chooser;
};
struct BlockKnowledge final : LastingKnowledge {
  BlockKnowledge() : LastingKnowledge(true, 64) {}
};
/// A plain step ends the window's guesses, so it is rare.
struct WindowKnowledge final : LastingKnowledge {
  WindowKnowledge() : LastingKnowledge(false, 400) {}
};

/// The number of rows of one run's blocks or windows, chosen by their tokens per time.
///   block   shrinks as its tokens become final; chosen when it is opened
///   window  keeps its size for as many steps as it has rows, because new guesses must be refined
///           before they can be right
/// A row does not depend on the rows after it. So each block and window also shows what all smaller
/// ones would have yielded.
class LastingSize {
 public:
  enum class Kind { Block, Window };
  /// @param control     outlives this object
  /// @param knowledge   its name in `control`
  /// @param repeatable  as of ControlUse::knowledge(): the choices are recorded
  LastingSize(ControlUse& control,
              const std::string& knowledge,
              Kind kind,
              bool repeatable = false);

  /// The rows of the block to be opened, or of the next step's window.
  int choose();
  SizeDecision decision() const { return decision_; }
  /// Counts a step.
  void came(int n_rows, int n_tokens);
  /// Counts the block whose steps came() counted; it had this many rows when it was opened.
  void block_ended(int n_rows);

 private:
  ControlUse& control_;
  LastingKnowledge& known_;
  Kind kind_;
  SizeDecision decision_;
  int n_rows_ = 1;
  int n_left_ = 0;              // steps for which a window is kept
  std::vector<int> n_emitted_;  // tokens of each step of the open block
};

}  // namespace engine
