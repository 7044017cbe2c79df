// A decoder is a policy over a token tree: it decides which rows the target evaluates in a step,
// and what to keep of the results. It never touches the model's internals or the cache layout.
// engine/decode/step/stepper.h runs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/decode/step/sequence.h"
#include "engine/event/event.h"
#include "engine/model/language_model.h"

namespace engine {

class DraftHeads;      // engine/model/draft_heads.h
class EarlierTexts;    // engine/decode/guess/earlier_texts.h
class KeptSuccessors;  // engine/decode/guess/successor_table.h
class PromptCaches;    // engine/decode/step/prompt_caches.h
class StepControl;     // engine/decode/control/step_control.h
class UniformSource;   // engine/decode/verify/sampling.h

/// Input of FastCoT's answer probe (stop=probe). It depends on the question, so it is not a decoder
/// option.
struct ProbeSettings {
  std::vector<TokenId> trigger;   // fed after the window, never emitted; empty: no probe
  std::vector<TokenId> keywords;  // tokens that can be an answer
};

/// The inputs of a decoder besides its options.
struct DecoderContext {
  LanguageModel& target;  // owned by the engine, which outlives its decoders
  Sampling sampling;
  Limits limits;
  LanguageModel* draft_model = nullptr;
  ProbeSettings probe;
  // random numbers of rejection sampling; null: Philox from the seed
  UniformSource* uniforms = nullptr;
  /// Prompts that the draft model has read, for decoders that draft on one thread; null: nothing is
  /// shared.
  PromptCaches* draft_prompts = nullptr;
  /// Costs and statistics of guesses that all runs of the target share, for sizes on "auto"; null:
  /// the run learns alone and assumes a cost of rows.
  StepControl* control = nullptr;
  std::uint32_t draft_id = 0;  // id of the draft model or heads; names their statistics
  /// Successors shared by all runs of this target, for recycling with keep=true; null: the run collects its
  /// own.
  KeptSuccessors* successors = nullptr;
  DraftHeads* heads = nullptr;  // of the decoder's kind
  std::string trees_dir;        // directory of the bundled trees
  std::string heads_tree;       // file of the tree beside the heads; empty: there is none
  /// Texts of earlier runs of this model and of a file, for decoders that copy from them (suffix);
  /// null: there are none.
  std::shared_ptr<const EarlierTexts> texts = nullptr;
  /// The choices of a recorded run, in order (Drafted::choices). This run repeats them; after the last
  /// one it chooses by itself.
  std::vector<std::int32_t> choices = {};
  int n_processes = 1;  // that share the rows of every step, if options.shares_over_mpi()
};

/// The interface of all decoders. Per step the stepper calls propose(), verify() and committed(),
/// in this order.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Called once, after the prefill and before the first propose(), on the thread that verifies.
  virtual void begin(const Sequence& /*prefix*/) {}
  /// Number of prompt tokens that a draft model must read before the next propose(), if that is the
  /// first one that drafts; else 0.
  virtual int n_unread(const Sequence& /*prefix*/) const { return 0; }
  /// Reads these tokens before the step, so that the step's time does not contain their reading. If
  /// the caller does not call this function, propose() reads them.
  virtual void read_prompt(const Sequence& /*prefix*/) {}
  /// Outputs of the target's forward that verify() needs besides the picks.
  virtual Wants wants() const { return {}; }
  /// The rows that the target evaluates in this step. Row 0 (with some decoders also further
  /// leading rows) holds committed tokens whose keys and values are not cached yet. The deepest row
  /// fits the model's context.
  virtual TokenTree propose(const Sequence& prefix) = 0;
  /// True if propose() runs a model or heads. It may then take long, or hang in a device.
  virtual bool drafts() const { return false; }
  /// [n_rows] for display: the probability with which each row of the last proposed tree was drawn,
  /// and 1 for row 0. Empty if the proposals were not drawn.
  virtual std::vector<float> proposal_probabilities() const { return {}; }
  /// [n_rows] where each row of the last proposed tree was copied from; empty if the decoder copies
  /// no text.
  virtual std::vector<GuessSource> guess_sources() const { return {}; }
  /// The request with which the target's device verifies the last proposed tree, if its
  /// distributions can stay on the device (LanguageModel::distributions_device()). verify() then
  /// needs no logits, even if wants() asks for them.
  /// @return  valid until the next proposal; null: the host verifies
  virtual const VerifyRequest* verify_request(const Sequence& /*prefix*/,
                                              const TokenTree& /*tree*/) {
    return nullptr;
  }
  /// Forwards of a draft model or heads in the last proposal, timed on the engine's clock.
  virtual std::vector<DraftForward> draft_forwards() const { return {}; }
  /// The size that the last propose() chose, and its expected tokens and time.
  virtual SizeDecision size_decision() const { return {}; }
  /// The choices since the last call, on which the next step's tree depends (ControlUse::decide()).
  virtual std::vector<std::int32_t> take_choices() { return {}; }
  /// Decides what to keep and emit. With one leading row, path.size() == emitted.size(). A step may
  /// emit no token while the decoder refines guesses, but the run must end at some point.
  /// @param out  the target's outputs, one per row
  virtual Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) = 0;
  /// Called after the decision was cut (at an end token or the length limit) and committed. Must
  /// not run a model.
  /// @param cut  the decision after cutting
  virtual void committed(const Sequence& /*prefix*/, const Decision& /*cut*/) {}
  /// Guesses after the last emitted token, left by a run that its decoder ended early. They are
  /// unverified and may differ from AR's tokens.
  virtual std::vector<TokenId> approximate() const { return {}; }
  /// Events of the last committed step that only this decoder can make (pool changes, blocks). The
  /// stepper adds time, run and step.
  virtual std::vector<Event> take_events() { return {}; }
  /// Counters for a result's "metrics" ("pool_hits": 40). They add up over runs.
  virtual std::map<std::string, std::int64_t> counts() const { return {}; }
  /// Metrics that do not add up over runs: rates, means, final values (n-grams in the pool).
  virtual std::map<std::string, double> figures() const { return {}; }
};

}  // namespace engine
