// Speculative decoding with a draft model: the draft proposes a tree, and the target verifies all
// of it in one forward. The decoders of this kind (speculative.h, mcsd.h, seed.h) differ only in
// their DraftSettings.
//   greedy, coupled  verify_exact_match(): tokens are kept while they equal the target's picks
//   rejection        reject_drafted(): the rules of draft_rules.h. If both models compute on one
//                    GPU, the draft's distributions stay on that GPU, which also verifies
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/decode/control/step_control.h"
#include "engine/decode/decoder.h"
#include "engine/decode/draft/drafter.h"
#include "engine/decode/draft/tree_choice.h"

namespace engine {

/// Speculative sampling with a draft model: drafts a chain or a tree and verifies it.
class DraftVerifyDecoder : public Decoder {
 public:
  /// @param context  with a draft model
  /// @param trees    the trees from which every step's is chosen by costs and acceptance
  ///                 (tree_choice.h); null: every step drafts the tree of the settings. Static
  DraftVerifyDecoder(const DecoderContext& context,
                     DraftSettings settings,
                     const std::vector<LevelCounts>* trees = nullptr);
  void begin(const Sequence& prefix) override;
  int n_unread(const Sequence& prefix) const override;
  void read_prompt(const Sequence& prefix) override;
  Wants wants() const override { return {.logits = rejects_, .row_p = !rejects_}; }
  TokenTree propose(const Sequence& prefix) override;
  bool drafts() const override { return true; }
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  std::vector<float> proposal_probabilities() const override { return drafts_.q; }
  std::vector<DraftForward> draft_forwards() const override { return drafts_.forwards; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  /// Notices, each about one of: the draft model's context is full (reported once); a draft failed
  /// although the one before it succeeded; the decoder stops drafting.
  std::vector<Event> take_events() override { return std::exchange(events_, {}); }
  /// The drafter's counts; draft_depth: sum over steps of the drafted tree's depth.
  std::map<std::string, std::int64_t> counts() const override;
  /// depth_accepted: accepted tokens / draft_depth; if trees are chosen also tree_tokens: the number
  /// of tokens in the last one.
  std::map<std::string, double> figures() const override;

  /// The drafter, after its cache was updated to the committed tokens.
  const Drafter& drafter() {
    commit_to_draft();
    return drafter_;
  }

 private:
  LanguageModel& target_;  // owned by the engine
  Sampling sampling_;
  Limits limits_;
  DraftRule rule_;
  bool rejects_;
  Uniforms uniforms_;
  Drafter drafter_;
  Drafts drafts_;  // of the current step
  VerifyRequest verify_request_;
  /// Rows that the last step kept. The draft's cache takes them just before the next draft, because
  /// verify() and committed() must not touch the draft model: it may be drafting for another
  /// sequence at that time.
  std::vector<int> kept_;
  std::int64_t n_depth_ = 0, n_kept_ = 0;
  bool is_full_ = false;   // a notice has reported that the draft's context is full
  bool is_begun_ = false;  // false: the draft must read the sequence again
  double reading_ms_ = 0;  // time in which the draft read the prompt, until learn() counts it
  ControlUse control_;
  const std::vector<LevelCounts>* trees_;  // null: every step drafts the tree of the settings
  DraftKnowledge* known_ = nullptr;        // for trees_
  /// The choice for a step. It is made as soon as the step before has ended, on the thread that
  /// verifies: that thread owns the statistics, and SEED drafts on another one.
  struct Choice {
    std::size_t tree = 0;  // index in trees_
    SizeDecision decision;
  };
  Choice next_;
  SizeDecision decision_;  // of the current step
  int n_failed_in_a_row_ = 0;
  std::vector<Event> events_;

  void commit_to_draft();
  int n_more(const Sequence& prefix) const;
  Drafts draft(const Sequence& prefix, int room);
  void report_failure(const std::string& why);
  void choose_tree(const Sequence& prefix);
  void learn(const Sequence& prefix, const Decision& cut);
};

}  // namespace engine
