// Chooses the tree of a draft model (gamma=auto, k_config=auto; our addition).
//   tokens  from the acceptance rates of the draft's best, second best, ... token over all verified
//           nodes, at any depth
//   time    the target's step by its rows plus a forward of the draft for each level; if both models
//           work at the same time (SEED), about the longer of the two (StepControl::round_ms)
//   prompt  until the draft has read a sequence's prompt, every expected token of a tree also costs
//           the expected time of reading / the expected tokens of the sequence
// No tree is a choice too. With exact-match verification the choice changes no token. Under rejection
// sampling it depends only on earlier steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/decode/control/rate.h"
#include "engine/decode/control/size_choice.h"
#include "engine/decode/control/step_control.h"
#include "engine/decode/options.h"

namespace engine {

/// The trees that gamma=auto chooses from: none, and chains of up to 16 tokens.
const std::vector<LevelCounts>& chains_to_choose();
/// The trees that k_config=auto chooses from: none, chains, and trees of up to 28 tokens with more
/// candidates near the root.
const std::vector<LevelCounts>& trees_to_choose();
/// Rows of a step with such a tree, including the root.
int rows_of(const LevelCounts& tree);

/// Statistics about a draft model: its acceptance and the time of its forwards.
class DraftKnowledge final : public Learned {
 public:
  DraftKnowledge();

  /// Chooses the tree of the next step.
  SizeChoice choose(std::span<const SizePlan> plans) { return chooser_.choose(plans); }
  /// The plans of these trees, of which the first is none.
  /// @param reading_ms  time added for each expected token of a step that drafts, by reading_ms(); 0:
  ///                    the draft has read the prompt
  std::vector<SizePlan> plans(std::span<const LevelCounts> trees,
                              const StepControl& control,
                              double reading_ms = 0) const;
  /// Expected time in which the draft reads a prompt / the expected number of further tokens of the
  /// sequence, which is the mean length of finished sequences, at most n_left. 0 before a prompt is
  /// timed.
  double reading_ms(int n_prompt, int n_left, const StepControl& control) const;
  /// Counts a prompt that the draft read.
  void add_reading(int n_prompt, double ms);
  /// Counts a finished sequence. If the draft never read its prompt, the expected time of reading
  /// decays towards 0, so that a later prompt is read and timed again.
  void sequence_ended(int n_tokens, bool has_read);
  /// Counts the verification of a node on the accepted path.
  /// @param n_children  its candidates, likeliest first
  /// @param kept        index of the accepted candidate; -1: none
  void add_verified(int n_children, int kept);
  /// Counts a forward of the draft model.
  /// @param is_beside  the target verified at the same time
  void add_forward(const DraftForward& forward, bool is_beside = false);
  /// Counts a step.
  /// @param plain_share  its expected time / that of a plain step
  void came(int n_tokens, double plain_share);

 private:
  double drafting_ms(const LevelCounts& tree, const StepControl& control) const;

  std::vector<Rate> ranks_;  // acceptance by rank
  StageCosts forwards_;      // of the draft model, by rows
  // with forgetting: prompts that the draft read, and finished sequences
  double prompts_ms_ = 0, prompt_tokens_ = 0, n_sequences_ = 0, sequence_tokens_ = 0;
  double trust_ = 1;  // factor of prompts_ms_; falls with every sequence whose prompt is not read
  SizeChooser chooser_;
};

}  // namespace engine
