// The only loop: one step of one or several lanes in one forward.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/stop_texts.h"
#include "engine/event/queue.h"

namespace engine {

/// A model that answers one lane alone, as several ranks do that share its rows.
class LaneModel : public LanguageModel {
 public:
  /// A sequence as its lane steps it, from one of the model behind.
  virtual Sequence taken(Sequence sequence) = 0;
  /// The other way: what is to be gone on from without the lane. It may lack keys and values of
  /// its last tokens.
  virtual Sequence given_back(Sequence sequence) = 0;
  /// For the lane's (Decoder::counts, Decoder::figures).
  virtual std::map<std::string, std::int64_t> counts() const = 0;
  virtual std::map<std::string, double> figures() const = 0;
};

/// Facts about a generated token besides its id.
struct TokenFacts {
  /// Natural logarithm of its probability under the distribution it was chosen from: the target's
  /// after repetition penalty, temperature and filters; greedy: after the penalty, at temperature 1.
  float logp = 0;
  TokenStatus status = TokenStatus::Plain;
  RowTag origin;  // the accepted row that had proposed it; Current where none had
};

/// A sequence, its decoder, and what its steps cost so far.
struct Lane {
  RunId run = 0;
  std::unique_ptr<LaneModel> own_model = nullptr;  // of its forwards; null: the stepper's
  Sequence sequence;
  std::unique_ptr<Decoder> decoder;
  Sampling sampling;
  Limits limits;
  int n_steps = 0;
  int n_drafted = 0;             // of these, steps for which a draft model worked
  std::int64_t compute_ns = 0;   // its own compute: propose, forward, verify, commit
  std::int64_t propose_ns = 0;   // of that, proposing
  std::int64_t n_rows = 0;       // rows evaluated, all steps
  std::int64_t n_proposed = 0;   // guessed or drafted rows
  std::int64_t n_accepted = 0;   // of those, kept
  std::int64_t n_rejected = 0;   // judged, and the target disagreed; the rest was never judged
  std::int64_t n_near_ties = 0;  // emitted tokens whose choice was one
  std::vector<float> margins;    // [generated] by how much each choice led the second best; empty
                                 // under rejection sampling, which chooses by its own draws
  TokenTree tree;                // of the step under way
  std::int64_t proposed_ns = 0;  // what its tree took
  std::vector<TokenFacts> facts = {};           // [generated]
  std::shared_ptr<StopReader> stops = nullptr;  // read by limits.text_end; null: no stop strings
};

/// A lane that has neither prefilled nor begun: the caller runs
///     prefill(model, lane.sequence); lane.decoder->begin(lane.sequence);
/// and then steps until lane.sequence.finished().
/// @param context  target is `model`; options as given, defaults are filled in
/// @throws Error(BadInput)  if the prompt is empty or leaves no room for a token
/// @throws Error(Usage)     if the decoder or its options cannot be
Lane make_lane(RunId run,
               LanguageModel& model,
               std::vector<TokenId> prompt,
               const std::string& decoder,
               DecoderContext context);

/// Whether the second best score is so near (a ten-thousandth of the best, or of 1 where that is
/// small) that another order of summing could have chosen it.
bool is_near_tie(const kernels::Picked& picked);

/// What was counted, and so adds up over runs: rows, proposed, accepted, rejected, near_ties (but
/// not under rejection sampling) and the decoder's own counts.
std::map<std::string, std::int64_t> counts_of(const Lane& lane);

/// For a result's "metrics": its counts, rows_per_step, acceptance_rate (accepted / proposed),
/// accepted_of_judged (accepted / (accepted + rejected)) and the decoder's own figures. A rate
/// whose denominator is 0 is absent.
std::map<std::string, double> metrics_of(const Lane& lane);

class Stepper {
 public:
  /// @param events  where steps are told, or null
  Stepper(LanguageModel& model, EventSink* events) : model_(model), events_(events) {}

  /// One forward for all lanes, none of them finished; those with a model of their own have one
  /// each. A lane alone takes exactly the tokens it takes among others.
  void step(std::span<Lane* const> lanes);

  // The two sides of a step, for who runs them on two threads. A lane is in one hand at a time.
  /// The draft's: what shall be evaluated. The target does not work for it.
  void propose(Lane& lane);
  /// The target's: one forward over what each lane proposed, and what that decides. No draft model
  /// works for it.
  void judge(std::span<Lane* const> lanes);

 private:
  struct Notes;
  void judge_with(LanguageModel& model, std::span<Lane* const> lanes);
  void finish(Lane& lane, Notes& notes);

  LanguageModel& model_;  // owned by the engine
  EventSink* events_;
};

}  // namespace engine
