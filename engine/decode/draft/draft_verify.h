// What decoders with a draft model share: the draft proposes a tree, the target judges all of it in
// one forward. A decoder of this kind is a set of DraftSettings.
//   greedy, coupled  verify_exact_match(): kept while equal to the target's pick
//   rejection        reject_drafted(): the rules of draft_rules.h. Where both models compute on one
//                    GPU distributions stay there: the draft's, and the target's that judges by them
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/draft/drafter.h"
#include "engine/decode/draft/tree_tuner.h"

namespace engine {

/// Reads the options every such decoder has: draft_temperature, draft_top_k, draft_top_p,
/// draft_min_p (below 0: the target's) and stop_below. k_config and rule are the caller's.
/// @param target  how the target samples
DraftSettings draft_settings(const OptionValues& options, const Sampling& target);

class DraftVerifyDecoder : public Decoder {
 public:
  /// @param context  with a draft model
  /// @param sized    the trees are chosen step by step, by what they cost and bring here
  DraftVerifyDecoder(const DecoderContext& context, DraftSettings settings, bool sized = false);
  void begin(const Sequence& prefix) override;
  Wants wants() const override { return {.logits = rejects_, .row_p = !rejects_}; }
  TokenTree propose(const Sequence& prefix) override;
  bool drafts() const override { return true; }
  std::vector<float> proposal_probabilities() const override { return drafts_.q; }
  std::vector<DraftForward> draft_forwards() const override { return drafts_.forwards; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  /// That the draft's context has become full, once; that the draft failed, where the step before
  /// had its drafts; that it is asked no more.
  std::vector<Event> take_events() override { return std::exchange(events_, {}); }
  /// The drafter's; draft_depth: tokens the deepest paths could have had.
  std::map<std::string, std::int64_t> counts() const override;
  /// depth_accepted: tokens accepted of draft_depth, a share; tree_tokens: of the tree that was
  /// found best, where trees are sized.
  std::map<std::string, double> figures() const override;

  const Drafter& drafter() {
    settle();
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
  Drafts drafts_;  // of the step under way
  VerifyRequest verify_request_;
  /// Rows the last step kept. The draft's cache takes them when the draft works next: verify() and
  /// committed() leave its model alone, which may be at work for another text by then.
  std::vector<int> kept_;
  std::int64_t n_depth_ = 0, n_kept_ = 0;
  bool is_full_ = false;  // the draft's context, and that was told
  bool is_begun_ = false;
  std::unique_ptr<TreeTuner> own_tuner_;            // where texts share none
  TreeTuner* tuner_ = nullptr;                      // null: the tree stays as the settings have it
  int sized_ = 0;                                   // the tuner's tree of the step under way
  std::chrono::steady_clock::time_point proposed_;  // when its drafting began
  int n_failed_in_a_row_ = 0;
  std::vector<Event> events_;

  void settle();
  Drafts drafted(const Sequence& prefix, int room);
  void tell_failed(const std::string& why);
  void learn_cost();
  void learn_kept(const Decision& cut);
};

}  // namespace engine
