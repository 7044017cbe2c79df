// The draft model's side of drafting and verifying: it proposes a tree of tokens, level by level.
//   chain     k_config 1,1,1: classic speculative decoding
//   tree      k_config 2,2,1: every node at depth j has as many children as place j + 1 says
//   cache     every node that is fed keeps its keys and values in a cache of its own path: the
//             first child goes on in its parent's, the others fork it, so a row is computed once.
//             The last level is never fed: after full acceptance the next step feeds two rows
//   noise     where the target's picks decide (greedy, coupled), the draft picks with the target's
//             own noise, which makes them agree as often as possible; rejection sampling draws its
//             candidates with numbers of their own (streams never shared)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/verify/draft_rules.h"
#include "engine/decode/step/prompt_caches.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"
#include "engine/base/token_tree.h"
#include "kernels/device.h"

namespace engine {

struct DraftSettings {
  std::vector<int> k_config = {1};  // children of every node at depth 0, 1, ...; none: no draft
  DraftRule rule = DraftRule::Without;
  Sampling sampling;       // the draft's temperature and filters; the target's penalty, seed, mode
  bool with_distributions =
      false;               // the verification needs q: rejection sampling of a target that samples
  float stop_below = 0;    // no children where the draft is less sure of its own token than this
  /// As the published programs have it: at temperature 0 q is the softmax over the k likeliest
  /// tokens, although they were not drawn from it. Not lossless.
  bool as_released = false;
  /// Candidates are drawn by the draft model's device, where their distributions stay for the target's to
  /// read: numbers are known ahead, and one GPU has both.
  bool distributions_stay = false;
};

/// What a draft proposes for one step.
struct Drafts {
  /// Of no token: plain decoding.
  static Drafts none(TokenId last);

  TokenTree tree;                      // row 0: the last committed token
  std::vector<Candidates> candidates;  // [n_rows]
  std::vector<float> q;                // [n_rows] the probability each was drawn with; 1 for row 0
  std::vector<DraftForward> forwards;  // on the engine's clock
};

class Drafter {
 public:
  /// @param model    owned by the engine, outlives its drafters; the target's vocabulary
  /// @param prompts  that the model has read for other drafters, or null
  Drafter(LanguageModel& model, DraftSettings settings, PromptCaches* prompts = nullptr);

  /// Runs the prompt through the draft model.
  void begin(const Sequence& prefix);
  /// After a forward that failed: what it left half done is let go, and the text is read anew.
  void begin_again(const Sequence& prefix);
  /// The tree of the steps to come: k_config of the settings.
  void draft_by(const std::vector<int>& k_config) { settings_.k_config = k_config; }
  /// @param max_depth  at most so many tokens below the last committed one; 0: nothing is drafted
  /// @param uniforms   of rejection sampling
  /// @return  distributions that stay on a device are the next call's to write over
  Drafts propose(const Sequence& prefix, int max_depth, UniformSource& uniforms);
  /// Whether nothing is drafted behind a text of so many tokens because the model's context ends.
  bool is_full(std::size_t n_tokens) const {
    return !settings_.k_config.empty() && room_behind(n_tokens) < 1;
  }
  int context() const { return model_.max_seq_len(); }
  /// Keeps the keys and values of the path that the text took.
  /// @param path  rows of the tree last proposed that were kept, from row 0
  void committed(std::span<const int> path);

  /// draft_forwards, draft_rows (both without the prompt), draft_stops: nodes that stop_below left
  /// without children.
  std::map<std::string, std::int64_t> counts() const;
  /// Positions with keys and values in the draft's cache.
  const SequenceCache* cache() const { return cache_.get(); }

 private:
  /// A row whose keys and values exist, in a cache that a longer path may share.
  struct Branch {
    int row = 0;
    std::shared_ptr<SequenceCache> cache;
    std::vector<TokenId> text;  // committed tokens and the path down to the row
    TokenTree feed;             // what of it the next forward computes
  };

  int room_behind(std::size_t n_tokens) const;
  int usable_depth(std::size_t n_tokens, int max_depth) const;
  Wants wants_for(int n_children, Sampling& sampling) const;
  /// Whether candidates are drawn from the draft's distribution, which the verification then needs whole.
  bool draws() const { return settings_.with_distributions && !settings_.sampling.greedy(); }
  /// Memory for the distribution of the i-th node of a tree that is drawn from.
  double* device_distribution(std::size_t i);
  /// What is to be drawn on the device behind each node of a level.
  std::vector<DrawRequest> draws_of(std::span<const Branch> level,
                                    int n_children,
                                    UniformSource& uniforms);
  std::vector<StepOutput> feed(std::span<Branch> level,
                               int n_children,
                               Drafts& drafts,
                               UniformSource& uniforms);
  /// A node that gets children, and where they go.
  struct Parent {
    const Branch& branch;
    int depth = 0;  // of its children
    int n = 0;      // that many
    Drafts& drafts;

    std::uint32_t position() const { return static_cast<std::uint32_t>(branch.text.size()); }
    void add(TokenId token, double q) const;
  };

  void add_children(const Parent& parent, const StepOutput& out, UniformSource& uniforms);
  bool is_unsure(double p);
  void add_likeliest(const Parent& parent, const RankedTokens& ranked, int vocab_size);
  void add_drawn(const Parent& parent, std::vector<double> distribution, UniformSource& uniforms);
  void add_drawn_there(const Parent& parent,
                       const DrawnCandidates& drawn,
                       const double* distribution);
  std::vector<Branch> next_level(std::span<Branch> level, const Drafts& drafts) const;

  LanguageModel& model_;
  DraftSettings settings_;
  PromptCaches* prompts_;
  std::shared_ptr<SequenceCache> cache_;  // of committed tokens
  std::vector<Branch> fed_;               // of the step under way
  std::vector<DrawRequest> drawing_;      // of the level under way, where distributions stay
  std::vector<kernels::DeviceBuffer> distributions_;
  std::size_t n_distributions_ = 0;  // of these, in use by the tree under way
  std::uint32_t n_draws_ = 0;  // at the depth under way
  std::int64_t n_forwards_ = 0, n_rows_ = 0, n_stops_ = 0;
};

}  // namespace engine
