#include "tests/engine/decode/run.h"

#include <gtest/gtest.h>

namespace engine::test {

Lane start(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job, RunId run) {
  Lane lane = make_lane(run, model, prompt, job.decoder,
                        {.target = model,
                         .sampling = job.sampling,
                         .limits = job.limits,
                         .options = job.options,
                         .uniforms = job.uniforms});
  prefill(model, lane.sequence, 7);
  lane.decoder->begin(lane.sequence);
  return lane;
}

Outcome run(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job) {
  EventList events;
  Stepper stepper(model, &events);
  Lane lane = start(model, prompt, job);
  Lane* lanes[] = {&lane};
  Outcome outcome;
  while (!lane.sequence.finished()) {
    const auto n_before = lane.sequence.tokens().size();
    stepper.step(lanes);
    const auto n_emitted = lane.sequence.tokens().size() - n_before;
    EXPECT_GE(n_emitted, 1u);
    EXPECT_EQ(lane.sequence.cache().length() + 1, static_cast<int>(lane.sequence.tokens().size()));
    outcome.emitted_per_step.push_back(static_cast<int>(n_emitted));
    if (lane.n_steps > 4000) throw std::runtime_error("a run that does not end");
  }
  const auto generated = lane.sequence.generated();
  outcome.tokens.assign(generated.begin(), generated.end());
  outcome.stop = lane.sequence.stop_reason();
  outcome.n_steps = lane.n_steps;
  outcome.metrics = metrics_of(lane);
  outcome.events = std::move(events.events);
  outcome.n_proposed = lane.n_proposed;
  outcome.n_accepted = lane.n_accepted;
  outcome.n_rejected = lane.n_rejected;
  return outcome;
}

Outcome run_ar(LanguageModel& model, const std::vector<TokenId>& prompt, Job job) {
  job.decoder = "ar";
  job.options.clear();
  return run(model, prompt, job);
}

int Dice::operator()(int low, int high) {
  const std::uint64_t bits = kernels::random_bits(seed_, 99, 0, n_++);
  return low + static_cast<int>((bits * static_cast<std::uint64_t>(high - low + 1)) >> 32);
}

std::vector<TokenId> Dice::text(int length, int vocab) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; i++) tokens.push_back((*this)(0, vocab - 1));
  return tokens;
}

Job random_job(Dice& dice) {
  const auto pick = [&](std::vector<const char*> names) {
    return std::string(
        names[static_cast<std::size_t>(dice(0, static_cast<int>(names.size()) - 1))]);
  };
  const auto number = [&](int low, int high) { return std::to_string(dice(low, high)); };
  Job job;
  job.decoder = pick({"jacobi", "lookahead", "lookahead", "prompt-lookup"});
  if (job.decoder == "jacobi") {
    job.options = {{"block", number(1, 12)},
                   {"refill", pick({"block", "slide"})},
                   {"fill", pick({"prompt", "pad", "repeat"})}};
  } else if (job.decoder == "lookahead") {
    job.options = {{"window", number(1, 8)},
                   {"ngram_size", number(2, 6)},
                   {"n_guesses", number(0, 8)},
                   {"prompt_pool", pick({"true", "false"})},
                   {"bonus", pick({"true", "false"})},
                   {"merge", pick({"true", "false"})},
                   {"advance", pick({"one", "accepted"})},
                   {"preset", pick({"none", "paper"})}};
  } else {
    job.options = {{"max_ngram", number(1, 4)},
                   {"n_tokens", number(1, 12)},
                   {"variant", pick({"paper", "hf", "last"})}};
  }
  return job;
}

std::string described(const Job& job) {
  std::string text = job.decoder;
  for (const auto& [name, value] : job.options) text += " " + name + "=" + value;
  return text + " T=" + std::to_string(job.sampling.temperature) +
         " seed=" + std::to_string(job.sampling.seed) +
         " max=" + std::to_string(job.limits.max_tokens);
}

}  // namespace engine::test
