// Completions do not depend on the other requests of a batch.
#include <algorithm>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/run/scheduler.h"

namespace engine::test {
namespace {

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

LoadedModel& bundled() {
  static ModelStore store(kAssets, 2);
  return store.get({});
}

/// Sizes that do not depend on measured times.
OptionValues fixed_sizes(const std::string& decoder) {
  if (decoder == "lookahead") return {{"window", "2"}, {"ngram_size", "3"}, {"n_guesses", "4"}};
  if (decoder == "prompt-lookup") return {{"n_tokens", "10"}};
  if (decoder == "suffix") return {{"n_tokens", "12"}};
  if (decoder == "recycling") return {{"rows", "4"}};
  if (decoder == "jacobi") return {{"block", "16"}};
  if (decoder == "fastcot") return {{"window", "10"}};
  if (decoder == "speculative") return {{"gamma", "4"}};
  return {};
}

CompletionRequest request(const std::string& prompt,
                          const std::string& decoder = "ar",
                          int max_tokens = 30) {
  CompletionRequest request;
  request.run.prompt = prompt;
  request.run.prompt_tokens = tokenize_prompt(*bundled().model, prompt);
  request.run.decoder = decoder;
  request.run.options = fixed_sizes(decoder);
  request.run.max_tokens = max_tokens;
  return request;
}

std::vector<CompletionRequest> several() {
  return {
      request("Q: What does a piano have? Answer Choices: sound (A), strings (B)\nA:", "ar", 25),
      request("USER: How many are 3 and 4? ASSISTANT:", "lookahead", 8),
      request("Q: Would diesel be shorter lived than a maple?\nA:", "fastcot", 40),
      request("Question:\nAnna has 4 cups. She buys 3.\nAnswer:\n", "prompt-lookup", 17),
      request("Question:\nTom has 9 pens. He loses 2.\nAnswer:\n", "recycling", 21),
      request("The", "jacobi", 33)};
}

TEST(BatchScheduler, batching_does_not_change_tokens) {
  const auto requests = several();
  const auto alone = BatchScheduler(bundled(), 1).run(requests, {});
  ASSERT_EQ(alone.size(), requests.size());
  for (const int n : {2, 3, 8}) {
    const auto together = BatchScheduler(bundled(), n).run(requests, {});
    ASSERT_EQ(together.size(), requests.size());
    for (std::size_t i = 0; i < requests.size(); i++) {
      EXPECT_EQ(together[i].result.tokens, alone[i].result.tokens) << i;
      EXPECT_EQ(together[i].result.n_steps, alone[i].result.n_steps) << i;
      EXPECT_EQ(together[i].result.stop_reason, alone[i].result.stop_reason) << i;
    }
  }
}

TEST(BatchScheduler, later_requests_copy_from_earlier_texts) {
  const std::string prompt = "USER: How many are 3 and 4? ASSISTANT:";
  const std::vector<CompletionRequest> twice(2, request(prompt, "suffix", 24));
  for (int round = 0; round < 2; round++) {  // a new scheduler has no texts
    BatchScheduler scheduler(bundled(), 1);
    const auto done = scheduler.run(twice, {});
    EXPECT_EQ(done[0].result.counts.at("copied_from_earlier"), 0);
    EXPECT_GT(done[1].result.counts.at("copied_from_earlier"), 8);
    EXPECT_LT(done[1].result.n_steps, done[0].result.n_steps);
    EXPECT_EQ(done[1].result.tokens, done[0].result.tokens);
    const auto third = scheduler.run(std::span(twice).first(1), {});
    EXPECT_GT(third[0].result.counts.at("copied_from_earlier"), 8);
  }
  // Concurrent requests do not wait for each other's texts.
  const auto together = BatchScheduler(bundled(), 2).run(twice, {});
  EXPECT_EQ(together[1].result.n_steps, together[0].result.n_steps);
}

// T9: speculative sampling in a batch has the distribution of a single request, with draft models too.
TEST(BatchScheduler, batching_does_not_change_rejection_sampling) {
  ModelStore store(kAssets, 2);
  const RunModels models = store.get_for({}, {}, {"mcsd"});
  std::vector<CompletionRequest> requests = several();
  const std::pair<const char*, OptionValues> decoders[] = {
      {"speculative", fixed_sizes("speculative")},
      {"mcsd", {{"k_config", "2,2"}}},
      {"mcsd", {{"k_config", "3,1"}, {"rule", "kseq"}}},
      {"prompt-lookup", fixed_sizes("prompt-lookup")},
      {"recycling", fixed_sizes("recycling")},
      {"lookahead", fixed_sizes("lookahead")}};
  for (std::size_t i = 0; i < requests.size(); i++) {
    RunRequest& run = requests[i].run;
    std::tie(run.decoder, run.options) = decoders[i];
    run.sampling = {.temperature = 0.8f, .seed = i + 1, .mode = Sampling::Mode::Rejection};
  }
  requests.push_back(requests[0]);
  requests.back().run.decoder = "ar";
  requests.back().run.options = {};
  const auto alone = BatchScheduler(models, 1).run(requests, {});
  double n_refused = 0;
  for (const Completion& one : alone) n_refused += one.result.metrics.at("rejected");
  EXPECT_GT(n_refused, 10) << "too few rejections for a meaningful test";
  for (const int n : {2, 3, 8}) {
    const auto together = BatchScheduler(models, n).run(requests, {});
    ASSERT_EQ(together.size(), requests.size());
    for (std::size_t i = 0; i < requests.size(); i++) {
      EXPECT_EQ(together[i].result.tokens, alone[i].result.tokens) << i;
      EXPECT_EQ(together[i].result.n_steps, alone[i].result.n_steps) << i;
      EXPECT_EQ(together[i].result.stop_reason, alone[i].result.stop_reason) << i;
    }
  }
}

TEST(BatchScheduler, reports_every_run_completely) {
  EventList events;
  const auto requests = several();
  SchedulerWatch watch{.events = &events, .first_run = 5};
  const auto done = BatchScheduler(bundled(), 3).run(requests, watch);
  Timeline timeline;
  timeline.apply(describe(bundled()));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_EQ(timeline.runs().size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); i++) {
    const RunRecord* run = timeline.run(5 + static_cast<RunId>(i));
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run->started.decoder, requests[i].run.decoder);
    EXPECT_EQ(run->finished->n_tokens, static_cast<int>(done[i].result.tokens.size()));
  }
}

TEST(BatchScheduler, a_failure_ends_every_started_run) {
  EventList events;
  int n_asked = 0;
  SchedulerWatch watch{.events = &events, .first_run = 5};
  watch.stop = [&] {
    if (++n_asked > 12) throw Error(ErrorCode::Device, "the device is gone");
    return false;
  };
  EXPECT_THROW(BatchScheduler(bundled(), 3).run(several(), watch), Error);
  Timeline timeline;
  timeline.apply(describe(bundled()));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_GE(timeline.runs().size(), 2u);
  for (const RunRecord& run : timeline.runs()) EXPECT_TRUE(run.over());
  EXPECT_TRUE(timeline.runs().back().failed);
}

TEST(BatchScheduler, a_stop_text_ends_a_run_and_is_cut_off) {
  const CompletionRequest whole = request(
      "Q: What does a piano have? Answer Choices: sound (A), "
      "strings (B)\nA:",
      "ar", 60);
  const std::string text = BatchScheduler(bundled(), 1).run({&whole, 1}, {})[0].result.text;
  const std::size_t at = text.find(". ");
  ASSERT_NE(at, std::string::npos) << text;
  CompletionRequest cut = whole;
  cut.stop_texts = {"never written", ". "};
  const auto found = BatchScheduler(bundled(), 1).run({&cut, 1}, {});
  EXPECT_EQ(found[0].result.text, text.substr(0, at));
  EXPECT_EQ(found[0].result.stop_reason, "text");
  // A sequence that continues from there contains only the reported tokens.
  const auto& tokens = found[0].result.tokens;
  EXPECT_EQ(bundled().model->tokenizer()->decode(tokens).substr(0, at), text.substr(0, at));
  EXPECT_EQ(found[0].end.tokens().size(), cut.run.prompt_tokens.size() + tokens.size());
  CompletionRequest next = cut;
  const auto read = found[0].end.tokens();
  next.run.prompt_tokens.assign(read.begin(), read.end());
  next.stop_texts.clear();
  const auto afresh = BatchScheduler(bundled(), 1).run({&next, 1}, {});
  next.from = &found[0].end;
  const auto gone_on = BatchScheduler(bundled(), 1).run({&next, 1}, {});
  EXPECT_EQ(gone_on[0].result.tokens, afresh[0].result.tokens);
  EXPECT_LT(found[0].result.n_steps, 40);
}

TEST(BatchScheduler, tokens_after_a_stop_text_are_not_counted) {
  std::vector<TokenId> written;  // by plain decoding, with the tokens of the stop text
  int n_further = 0;             // steps that accepted tokens after the stop text
  for (const char* decoder : {"ar", "jacobi", "lookahead", "fastcot", "prompt-lookup"}) {
    CompletionRequest cut = request(
        "Q: What does a piano have? Answer Choices: sound (A), "
        "strings (B)\nA:",
        decoder, 60);
    cut.stop_texts = {". "};
    EventList events;
    BatchScheduler scheduler(bundled(), 1);
    const auto done = scheduler.run({&cut, 1}, {.events = &events});
    Timeline timeline;
    timeline.apply(describe(bundled()));
    for (const Event& event : events.events) timeline.apply(event);
    const RunRecord& run = timeline.runs()[0];
    std::vector<TokenId> tokens;
    for (const TokenRecord& token : run.tokens) tokens.push_back(token.id);
    if (written.empty()) written = tokens;
    EXPECT_EQ(tokens, written) << decoder;
    EXPECT_EQ(run.finished->stop_reason, "text");
    int n_accepted = 0;
    for (const Event& event : events.events) {
      if (const auto* step = std::get_if<Committed>(&event))
        n_accepted += static_cast<int>(std::ranges::count(step->status, TokenStatus::Accepted));
      if (const auto* step = std::get_if<Verified>(&event)) n_further += step->n_unused > 0;
    }
    const auto figures = scheduler.figures();
    EXPECT_EQ(figures.at("tokens"), static_cast<double>(done[0].result.tokens.size())) << decoder;
    EXPECT_LT(done[0].result.tokens.size(), written.size()) << "the stop text is cut off";
    EXPECT_EQ(figures.at("accepted"), n_accepted) << decoder;
    EXPECT_EQ(done[0].result.metrics.at("accepted"), n_accepted) << decoder;
  }
  EXPECT_GT(n_further, 0);
}

TEST(BatchScheduler, continues_a_sequence_like_its_text) {
  const CompletionRequest first =
      request("Q: Would diesel be shorter lived than a maple?\nA:", "ar", 9);
  const auto begun = BatchScheduler(bundled(), 1).run({&first, 1}, {});
  const std::vector<TokenId> more = {5, 6, 7};
  const Sequence from = begun[0].end.restarted(more);
  CompletionRequest next = first;
  const auto tokens = from.tokens();
  next.run.prompt_tokens.assign(tokens.begin(), tokens.end());
  const auto afresh = BatchScheduler(bundled(), 1).run({&next, 1}, {});
  next.from = &from;
  const auto shared = BatchScheduler(bundled(), 1).run({&next, 1}, {});
  EXPECT_EQ(shared[0].result.tokens, afresh[0].result.tokens);
  // The original sequence is unchanged and can be continued again.
  const auto again = BatchScheduler(bundled(), 1).run({&next, 1}, {});
  EXPECT_EQ(again[0].result.tokens, afresh[0].result.tokens);
}

TEST(BatchScheduler, a_stop_returns_the_started_runs) {
  const auto requests = several();
  int n_asked = 0;
  SchedulerWatch watch;
  watch.stop = [&] { return ++n_asked > 12; };
  const auto done = BatchScheduler(bundled(), 2).run(requests, watch);
  ASSERT_GE(done.size(), 1u);
  ASSERT_LT(done.size(), requests.size());
  EXPECT_EQ(done.back().result.stop_reason, "stopped");
}

TEST(BatchScheduler, figures_are_the_sums_over_runs) {
  const auto requests = several();
  BatchScheduler scheduler(bundled(), 2);
  double tokens = 0, steps = 0, accepted = 0, proposed = 0;
  for (const auto part : {std::span(requests).first(2), std::span(requests).subspan(2)}) {
    for (const Completion& done : scheduler.run(part, {})) {
      tokens += static_cast<double>(done.result.tokens.size());
      steps += done.result.n_steps;
      accepted += done.result.metrics.at("accepted");
      proposed += done.result.metrics.at("proposed");
    }
  }
  const auto figures = scheduler.figures();
  EXPECT_EQ(figures.at("runs"), static_cast<double>(requests.size()));
  EXPECT_EQ(figures.at("tokens"), tokens);
  EXPECT_EQ(figures.at("steps"), steps);
  EXPECT_LT(figures.at("forwards"), steps);
  EXPECT_EQ(figures.at("acceptance_rate"), accepted / proposed);
  EXPECT_EQ(figures.at("block_efficiency"), tokens / steps);
  EXPECT_GT(figures.at("target_busy"), 0);
  EXPECT_LE(figures.at("target_busy"), 1);
}

}  // namespace
}  // namespace engine::test
