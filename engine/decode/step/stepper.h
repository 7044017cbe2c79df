// The decoding loop. One step advances one or several lanes with one forward.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/options.h"
#include "engine/decode/step/stop_texts.h"
#include "engine/event/queue.h"

namespace engine {

/// A model that serves only one lane, whose rows several devices share (Lookahead parallelism).
class LaneModel : public LanguageModel {
 public:
  /// Returns the sequence with a cache of this model in place of the wrapped model's cache.
  virtual Sequence attach(Sequence sequence) = 0;
  /// Returns the sequence with a cache of the wrapped model. The cache may lack keys and values of
  /// the last tokens.
  virtual Sequence detach(Sequence sequence) = 0;
  /// Added to the lane's counts (Decoder::counts).
  virtual std::map<std::string, std::int64_t> counts() const = 0;
  /// Added to the lane's figures (Decoder::figures).
  virtual std::map<std::string, double> figures() const = 0;
  /// The exchange of the last forward between the devices; nullptr: there was none.
  virtual const RankExchange* exchange() const { return nullptr; }
};

/// Facts about a generated token besides its id.
struct TokenFacts {
  /// Natural logarithm of the token's probability under the distribution that it was chosen from:
  /// the target's after repetition penalty, temperature and filters; greedy: after the penalty, at
  /// temperature 1.
  float logp = 0;
  TokenStatus status = TokenStatus::Plain;
  RowTag origin;  // tag of the accepted row that proposed it; Current if none did
};

/// Sums over the steps whose size was chosen (engine/decode/control).
struct SizeSums {
  std::int64_t n_steps = 0, n_plain = 0, n_probes = 0;
  double expected_tokens = 0, expected_ms = 0, plain_ms = 0;
  double rows_ms = 0;  // expected time of steps with as many rows
  double ms = 0;       // that they took
  std::int64_t n_tokens = 0;
};

/// The parts of the time of a lane's steps, nanoseconds.
struct StepTimes {
  std::int64_t propose = 0;  // drafting and guessing
  std::int64_t forward = 0;  // the target's forward without `choice`
  std::int64_t choice = 0;   // choosing tokens from logits (StepOutput::choice_ns)
  std::int64_t verify = 0;   // comparing proposals with choices
  std::int64_t commit = 0;   // keeping and discarding rows of the KV cache, the decoder's own state

  /// Adds all parts.
  StepTimes& operator+=(const StepTimes& more);
};

/// A sequence, its decoder, and the cost of its steps so far.
struct Lane {
  RunId run = 0;
  // the model that runs this lane's forwards; null: the stepper's model
  std::unique_ptr<LaneModel> own_model = nullptr;
  Sequence sequence;
  std::unique_ptr<Decoder> decoder;
  ParsedOptions options = nullptr;  // the decoder's
  Sampling sampling;
  Limits limits;
  StepControl* control = nullptr;  // learns the time of steps; as in DecoderContext
  int n_steps = 0;
  int n_drafted = 0;            // steps in which a draft model or heads ran
  std::int64_t compute_ns = 0;  // time of propose, forward, verify and commit
  // time in which a draft model read the prompt; not in compute_ns
  std::int64_t draft_prefill_ns = 0;
  StepTimes times = {};         // the parts of compute_ns
  std::int64_t n_rows = 0;      // evaluated rows of all steps
  std::int64_t n_proposed = 0;  // guessed or drafted rows
  std::int64_t n_accepted = 0;  // accepted proposals
  // proposals that the target disagreed with; the others were not verified
  std::int64_t n_rejected = 0;
  std::int64_t n_near_ties = 0;  // emitted tokens with is_near_tie()
  // [generated] score of each chosen token minus the second best score; empty under rejection
  // sampling, which does not choose by score
  std::vector<float> margins;
  TokenTree tree;                               // of the current step
  std::int64_t proposed_ns = 0;                 // time to propose that tree
  std::vector<TokenFacts> facts = {};           // [generated]
  std::shared_ptr<StopReader> stops = nullptr;  // read by limits.text_end; null: no stop strings
  SizeDecision decision = {};                   // of the current step
  SizeSums sizes = {};
  std::vector<std::string> notices = {};  // texts of the decoder's notices, each once
};

/// Makes a lane that is not prefilled and whose decoder has not begun. The caller runs
///     prefill(model, lane.sequence); lane.decoder->begin(lane.sequence);
/// and then steps until lane.sequence.finished().
/// @param decoder  its name
/// @param context  target is `model`
/// @param options  as given; parse_options() adds the defaults
/// @throws Error(BadInput)  if the prompt is empty or leaves no room for a token
/// @throws Error(Usage)     if the decoder refuses its options, its sampling or its models
Lane make_lane(RunId run,
               LanguageModel& model,
               std::vector<TokenId> prompt,
               const std::string& decoder,
               DecoderContext context,
               const OptionValues& options = {});

/// True if the second best score is so close to the best one that another order of summation could
/// have chosen it: within 1e-4 times the best score, or 1e-4 if that score is below 1.
bool is_near_tie(const kernels::Picked& picked);

/// Counters that add up over runs: rows, proposed, accepted, rejected, near_ties (not under
/// rejection sampling) and the decoder's own counts.
std::map<std::string, std::int64_t> counts_of(const Lane& lane);

/// The values of a result's "metrics": the counts, rows_per_step, acceptance_rate (accepted /
/// proposed), accepted_of_verified (accepted / (accepted + rejected)) and the decoder's own figures.
/// A rate whose denominator is 0 is absent.
std::map<std::string, double> metrics_of(const Lane& lane);

/// Runs steps: propose, one forward, verify, commit; and emits their events.
class Stepper {
 public:
  /// @param model   the target of all lanes without a model of their own
  /// @param events  receives the steps' events; or null
  Stepper(LanguageModel& model, EventSink* events) : model_(model), events_(events) {}

  /// Runs one step of every lane; none may be finished. The lanes share one forward, except lanes
  /// with their own model, which have one each. A lane's tokens do not depend on the other lanes.
  void step(std::span<Lane* const> lanes);

  // propose() and verify() are the two halves of a step, for callers that run them on several threads.
  // Only one thread may use a lane at a time.
  /// Proposes the lane's tree. Does not run the target. If the lane drafts for the first time, the draft
  /// model reads the prompt before the step begins.
  void propose(Lane& lane);
  /// Runs one forward over the lanes' trees, then verifies and commits. Does not run a draft model.
  void verify(std::span<Lane* const> lanes);

 private:
  struct Notes;
  void read_prompt(Lane& lane);
  void verify_with(LanguageModel& model, std::span<Lane* const> lanes);
  void finish(Lane& lane, Notes& notes);

  LanguageModel& model_;  // owned by the engine
  EventSink* events_;
};

}  // namespace engine
