// The draft model's side of speculative decoding: it drafts a tree of tokens, level by level.
//   chain     k_config 1,1,1: classic speculative sampling
//   tree      k_config 2,2,1: entry j + 1 is the number of children of every node at depth j
//   cache     the keys and values of every fed node are in a cache of its own path. A first child
//             continues its parent's cache, its siblings fork it, so each row is computed once. The
//             last level is never fed: after full acceptance the next step feeds two rows
//   prompt    read just before the first tree; a sequence without drafts needs no cache
//   noise     greedy and coupled: the draft picks with the target's Gumbel noise (Gumbel-max
//             coupling), which makes both models agree as often as possible. Rejection sampling
//             draws candidates with independent random numbers (separate Philox streams)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/decode/options.h"
#include "engine/decode/step/prompt_caches.h"
#include "engine/decode/step/sequence.h"
#include "engine/decode/verify/draft_rules.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/language_model.h"
#include "kernels/device.h"

namespace engine {

/// How a draft model drafts.
struct DraftSettings {
  // children of every node at depth 0, 1, ...; empty: nothing is drafted
  LevelCounts k_config = {1};
  DraftRule rule = DraftRule::Without;
  // temperature and filters of the draft; penalty, seed and mode of the target
  Sampling sampling;
  // the verification needs q: rejection sampling with a temperature
  bool with_distributions = false;
  // a node gets no children if the draft's likeliest token is less probable
  float stop_below = 0;
  /// As the published programs: at temperature 0, q is a softmax over the k likeliest tokens,
  /// although they were not drawn from it. Not lossless.
  bool as_released = false;
  /// The draft model's device draws the candidates and keeps their distributions for the target to
  /// read. Requires random numbers that ignore their thresholds (UniformSource), and both models on
  /// one GPU.
  bool distributions_stay = false;
};

/// The draft of one step.
struct Drafts {
  /// An empty draft: the step is one of plain decoding.
  static Drafts none(TokenId last);

  TokenTree tree;                      // row 0: the last committed token
  std::vector<Candidates> candidates;  // [n_rows]
  // [n_rows] the probability that each row was drawn with; 1 for row 0
  std::vector<float> q;
  std::vector<DraftForward> forwards;  // timed on the engine's clock
};

/// Drafts with a second, smaller model, and keeps that model's KV cache.
class Drafter {
 public:
  /// @param model    with the target's vocabulary; owned by the engine, outlives its drafters
  /// @param prompts  prompts that the model has read for other drafters, or null
  Drafter(LanguageModel& model, DraftSettings settings, PromptCaches* prompts = nullptr);

  /// Starts a sequence. The draft model does not read the prompt yet.
  void begin();
  /// True if the draft model has read the prompt.
  bool has_read() const { return cache_ != nullptr; }
  /// Runs the prompt through the draft model, without the tokens after it: propose() feeds those.
  void read_prompt(const Sequence& prefix);
  /// Reads the whole sequence again after a failed forward, whose partial results are dropped.
  void begin_again(const Sequence& prefix);
  /// Sets k_config for the following steps.
  void set_tree(const LevelCounts& k_config) { settings_.k_config = k_config; }
  /// Drafts the tree of one step. The first one reads the prompt if read_prompt() has not.
  /// @param max_depth  the largest number of tokens on a path after the last committed one; 0:
  ///                   nothing is drafted
  /// @param uniforms   random numbers of rejection sampling
  /// @return  distributions on a device are valid until the next call
  Drafts propose(const Sequence& prefix, int max_depth, UniformSource& uniforms);
  /// True if the model's context has no room to draft after `n_tokens` tokens.
  bool is_full(std::size_t n_tokens) const {
    return !settings_.k_config.empty() && !has_room(n_tokens);
  }
  /// True if the model's context has room for one more token after `n_tokens`.
  bool has_room(std::size_t n_tokens) const { return room_after(n_tokens) >= 1; }
  /// The children of every node, level by level.
  const LevelCounts& tree() const { return settings_.k_config; }
  /// Positions of the draft model's context.
  int context() const { return model_.max_seq_len(); }
  /// Keeps the keys and values of the accepted path, drops the others.
  /// @param path  the kept rows of the last proposed tree, from row 0
  void committed(std::span<const int> path);

  /// draft_forwards, draft_rows (both without the prompt), draft_stops: nodes that stop_below left
  /// without children.
  std::map<std::string, std::int64_t> counts() const;
  /// The draft model's cache of committed tokens; null before the prompt is read.
  const SequenceCache* cache() const { return cache_.get(); }

 private:
  /// A row of the tree with the cache of its path.
  struct Branch {
    int row = 0;
    std::shared_ptr<SequenceCache> cache;
    std::vector<TokenId> text;  // committed tokens, then the path to the row
    TokenTree feed;             // the rows of this branch in the next forward
  };

  void read(std::span<const TokenId> tokens, PromptCaches* prompts);
  int room_after(std::size_t n_tokens) const;
  int usable_depth(std::size_t n_tokens, int max_depth) const;
  Wants wants_for(int n_children, Sampling& sampling) const;
  /// True if candidates are drawn from the draft's distribution and the verification needs that
  /// whole distribution.
  bool draws() const { return settings_.with_distributions && !settings_.sampling.greedy(); }
  /// [vocab_size] device memory for the distribution at the i-th node of a tree.
  double* device_distribution(std::size_t i);
  /// The requests with which the device draws candidates, one for each node of a level.
  std::vector<DrawRequest> draw_requests(std::span<const Branch> level,
                                         int n_children,
                                         UniformSource& uniforms);
  std::vector<StepOutput> feed(std::span<Branch> level,
                               int n_children,
                               Drafts& drafts,
                               UniformSource& uniforms);
  /// A node that gets children.
  struct Parent {
    const Branch& branch;
    int depth = 0;  // of its children
    int n = 0;      // number of children
    Drafts& drafts;

    std::uint32_t position() const { return static_cast<std::uint32_t>(branch.text.size()); }
    void add(TokenId token, double q) const;
  };

  void add_children(const Parent& parent, const StepOutput& out, UniformSource& uniforms);
  bool is_unsure(double p);
  void add_likeliest(const Parent& parent, const RankedTokens& ranked, int vocab_size);
  void add_drawn(const Parent& parent, std::vector<double> distribution, UniformSource& uniforms);
  void add_drawn_on_device(const Parent& parent,
                           const DrawnCandidates& drawn,
                           const double* distribution);
  std::vector<Branch> next_level(std::span<Branch> level, const Drafts& drafts) const;

  LanguageModel& model_;
  DraftSettings settings_;
  PromptCaches* prompts_;
  std::shared_ptr<SequenceCache> cache_;  // of committed tokens; null: the prompt is not read
  std::vector<Branch> fed_;               // of the current step
  // requests of the current level, if distributions stay on the device
  std::vector<DrawRequest> drawing_;
  std::vector<kernels::DeviceBuffer> distributions_;
  std::size_t n_distributions_ = 0;  // buffers in use by the current tree
  std::uint32_t n_draws_ = 0;        // at the current depth
  std::int64_t n_forwards_ = 0, n_rows_ = 0, n_stops_ = 0;
};

}  // namespace engine
