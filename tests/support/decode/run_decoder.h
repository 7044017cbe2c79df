// Runs one decoder on one prompt and checks the invariants of all decoders after every step.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/decode/step/stepper.h"
#include "engine/event/queue.h"

namespace engine::test {

/// Rank 1 or higher of a job whose ranks share the rows of a step.
struct OtherRank {
  LanguageModel* model;
  std::mutex* at_work;
};

struct Job {
  std::string decoder = "ar";
  OptionValues options;
  Sampling sampling;
  Limits limits{.max_tokens = 40};
  ProbeSettings probe;
  UniformSource* uniforms = nullptr;
  LanguageModel* draft = nullptr;  // for decoders that need a draft model
  StepControl* control = nullptr;
  KeptSuccessors* successors = nullptr;
  DraftHeads* heads = nullptr;  // for decoders that need draft heads of their kind
  std::string heads_tree;       // path of the tree file
  std::shared_ptr<const EarlierTexts> texts = nullptr;
  /// For jobs with the option "ranks"; if empty, one rank computes all rows.
  std::vector<OtherRank> ranks;
};

struct Outcome {
  std::vector<TokenId> tokens;       // generated tokens
  std::vector<TokenFacts> facts;     // one per token
  std::vector<TokenId> approximate;  // guesses that the run left unverified
  StopReason stop = StopReason::None;
  int n_steps = 0;
  std::vector<int> emitted_per_step;
  std::map<std::string, double> metrics;  // except times
  std::map<std::string, std::int64_t> counts;
  std::vector<Event> events;
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;
};

Lane start(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job, RunId run = 1);
Outcome run(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job);
/// The same, but starts from a prefilled prompt, which it does not change.
Outcome run_from(LanguageModel& model, const Sequence& prefilled, const Job& job);
/// The same job with plain decoding.
Outcome run_ar(LanguageModel& model, const std::vector<TokenId>& prompt, Job job);

/// Log probability of every token, as results report it.
std::vector<float> logp_of(const Outcome& outcome);
/// Score and margin of every emitted token.
std::vector<float> scores_of(const Outcome& outcome);
/// One line per event, without times.
std::vector<std::string> trace_of(const std::vector<Event>& events);

/// Reproducible random choices for property tests.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  /// A number in [low, high].
  int operator()(int low, int high);
  std::vector<TokenId> text(int length, int vocab);

 private:
  std::uint64_t seed_;
  std::uint32_t n_ = 0;
};

/// Any decoder except AR with random valid options, including extreme ones.
/// @param draft  null: only decoders that need no draft model
Job random_job(Dice& dice, LanguageModel* draft);
std::string described(const Job& job);
/// True for textbook Jacobi, the only decoder whose steps may emit nothing and that may need more
/// steps than AR.
bool is_textbook(const Job& job);

}  // namespace engine::test
