// Runs one decoder on one prompt, checking after every step what must hold for all of them.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/decode/step/stepper.h"
#include "engine/event/queue.h"

namespace engine::test {

/// A rank behind the first, for jobs whose rows are shared.
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
  LanguageModel* draft = nullptr;  // of decoders that need one
  TreeTuner* tree_tuner = nullptr;
  DraftHeads* heads = nullptr;  // likewise, of the decoder's kind
  std::string heads_tree;       // the file of the tree beside them
  /// Of jobs with option "ranks"; none: one rank computes all, whatever the option says.
  std::vector<OtherRank> ranks;
};

struct Outcome {
  std::vector<TokenId> tokens;       // generated
  std::vector<TokenFacts> facts;     // of tokens
  std::vector<TokenId> approximate;  // what the run left unverified
  StopReason stop = StopReason::None;
  int n_steps = 0;
  std::vector<int> emitted_per_step;
  std::map<std::string, double> metrics;  // without times
  std::map<std::string, std::int64_t> counts;
  std::vector<Event> events;
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;
};

Lane start(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job, RunId run = 1);
Outcome run(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job);
/// The same from a prompt that was prefilled before, which stays as it is.
Outcome run_from(LanguageModel& model, const Sequence& prefilled, const Job& job);
/// The same job with plain decoding.
Outcome run_ar(LanguageModel& model, const std::vector<TokenId>& prompt, Job job);

/// The log probability of every token, as results report it.
std::vector<float> logp_of(const Outcome& outcome);
/// Score and margin of every emitted token.
std::vector<float> scores_of(const Outcome& outcome);
/// A line an event, without times.
std::vector<std::string> trace_of(const std::vector<Event>& events);

/// Reproducible choices for property tests.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  /// In [low, high].
  int operator()(int low, int high);
  std::vector<TokenId> text(int length, int vocab);

 private:
  std::uint64_t seed_;
  std::uint32_t n_ = 0;
};

/// Any decoder but AR with options that a person may set, the extremes among them.
/// @param draft  null: no decoder that needs one
Job random_job(Dice& dice, LanguageModel* draft);
std::string described(const Job& job);
/// Textbook Jacobi: the one decoder whose steps may emit nothing, and that may take more of them
/// than AR.
bool is_textbook(const Job& job);

}  // namespace engine::test
