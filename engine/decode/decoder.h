// A decoder is a policy: which rows to evaluate, and what to make of the answers. It never touches
// the model's inside or the cache's layout; engine/decode/step/stepper.h runs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/step/sequence.h"
#include "engine/event/event.h"
#include "engine/model/language_model.h"
#include "engine/base/token_tree.h"

namespace engine {

/// Option values as given, `--set name=value`. Checked by the decoder's schema (registry.h).
using OptionValues = std::map<std::string, std::string>;

class DraftHeads;     // engine/model/draft_heads.h
class PromptCaches;   // engine/decode/step/prompt_caches.h
class TreeTuner;      // engine/decode/draft/tree_tuner.h
class UniformSource;  // engine/decode/verify/sampling.h

/// What FastCoT's stop=probe asks and looks for; a question's own, so not an option's text.
struct ProbeSettings {
  std::vector<TokenId> trigger;   // fed behind the window, never emitted; empty: no probe
  std::vector<TokenId> keywords;  // tokens that can be an answer
};

/// What a decoder is made with.
struct DecoderContext {
  LanguageModel& target;  // owned by the engine, which outlives its decoders
  Sampling sampling;
  Limits limits;
  OptionValues options;  // complete: defaults filled in, values valid
  LanguageModel* draft_model = nullptr;
  ProbeSettings probe;
  UniformSource* uniforms = nullptr;  // of the rejection mode; null: Philox from the seed
  /// Prompts the draft model has read, of decoders that draft on one thread; null: none are shared.
  PromptCaches* draft_prompts = nullptr;
  /// What trees of this draft and target cost and bring, learnt by the texts before; null: each
  /// text learns it anew. For k_config=auto.
  TreeTuner* tree_tuner = nullptr;
  DraftHeads* heads = nullptr;  // of decoders that need them, of their kind
  std::string trees_dir;        // where the trees lie that are known by name
  std::string heads_tree;       // the file of the tree beside the heads; empty: there is none
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Called once, after prefill, before the first propose.
  virtual void begin(const Sequence& /*prefix*/) {}
  virtual Wants wants() const { return {}; }
  /// The rows to evaluate. Row 0 (and further leading rows of a decoder that says so) are committed
  /// tokens without keys and values; the deepest row stays inside the model's context.
  virtual TokenTree propose(const Sequence& prefix) = 0;
  /// Whether propose() computes with a model or heads, and so may take long, or hang in a device.
  virtual bool drafts() const { return false; }
  /// [n_rows] of the tree just proposed: the probability each row was drawn with, 1 for row 0;
  /// empty where proposals have none. For display.
  virtual std::vector<float> proposal_probabilities() const { return {}; }
  /// Of the tree just proposed, what the target is to judge by distributions that stay on its device
  /// (LanguageModel::laws_device()); verify() then needs no logits, whatever wants() says. Null:
  /// nothing. Stays until the next proposal.
  virtual const VerifyRequest* verify_request(const Sequence& /*prefix*/,
                                              const TokenTree& /*tree*/) {
    return nullptr;
  }
  /// Forwards of a draft model that the proposal took, timed on the engine's clock.
  virtual std::vector<DraftForward> draft_forwards() const { return {}; }
  /// What the answers mean: emitted tokens, path.size() == emitted.size() for a decoder with one
  /// leading row. A step may emit none while the decoder refines guesses; it must come to an end.
  virtual Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) = 0;
  /// After end-of-sequence and length were applied to the decision. Like verify(), without a model.
  virtual void committed(const Sequence& /*prefix*/, const Decision& /*cut*/) {}
  /// Guesses behind the last emitted token that a run which ended by the decoder's own wish leaves:
  /// not verified, not AR's.
  virtual std::vector<TokenId> approximate() const { return {}; }
  /// Events only this decoder can write (pool changes, blocks), of the step just committed; the
  /// stepper stamps run and step and sends them.
  virtual std::vector<Event> take_events() { return {}; }
  /// What it counted, for a result's "metrics" ("pool_hits": 40). Of several runs it adds up.
  virtual std::map<std::string, std::int64_t> counts() const { return {}; }
  /// For them too, what does not: rates, means, and what stood so at the end (a pool's n-grams).
  virtual std::map<std::string, double> figures() const { return {}; }
};

}  // namespace engine
