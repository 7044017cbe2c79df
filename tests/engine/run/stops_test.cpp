// Stop strings, stop ids and token facts with the bundled models: every lossless decoder stops
// where plain decoding stops and reports the same log probabilities.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/decode/verify/sampling.h"
#include "engine/event/drafted_by.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/rounds_scheduler.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"
#include "engine/trace/csv.h"
#include "tests/support/engine_thread.h"

namespace engine::test {
namespace {

const char* const kPrompts[] = {
    "Question:\nAnna has 11 stickers. Anna finds 33 more stickers. How many stickers does Anna "
    "have?\nAnswer:\n",
    "USER: How many are 3 and 4? ASSISTANT:"};

struct Way {
  const char* decoder;
  OptionValues options = {};
};

const std::vector<Way>& lossless_ways() {
  static const std::vector<Way> ways{{"lookahead"},
                                     {"lookahead", {{"window", "2"}, {"n_guesses", "4"}}},
                                     {"lookahead", {{"bonus", "false"}, {"merge", "false"}}},
                                     {"lookahead", {{"ranks", "2"}}},
                                     {"jacobi"},
                                     {"jacobi", {{"block", "16"}}},
                                     {"jacobi", {{"form", "textbook"}, {"block", "6"}}},
                                     {"jacobi", {{"refill", "slide"}}},
                                     {"fastcot"},
                                     {"fastcot", {{"window", "10"}}},
                                     {"prompt-lookup"},
                                     {"prompt-lookup", {{"n_tokens", "10"}}},
                                     {"recycling"},
                                     {"recycling", {{"rows", "4"}}},
                                     {"suffix"},
                                     {"suffix", {{"n_tokens", "12"}}},
                                     {"speculative"},
                                     {"speculative", {{"gamma", "4"}}},
                                     {"mcsd", {{"k_config", "2,2,1"}}},
                                     {"seed", {{"k_config", "2,2,1"}}},
                                     {"medusa"},
                                     {"medusa", {{"tree", "own"}}},
                                     {"chimera"},
                                     {"chimera", {{"tree", "own"}}},
                                     {"seed"}};
  return ways;
}

/// The bundled models, with a second rank for lookahead.
const RunModels& models() {
  static ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 2);
  static const RunModels all = [] {
    RunModels of = store.get_for({}, {}, {"mcsd", "medusa", "chimera"});
    of.ranks = store.get_ranks(of.target, 2);
    return of;
  }();
  return all;
}

const Tokenizer& tokenizer() {
  return *models().target.model->tokenizer();
}

RunRequest request_of(const char* prompt, const Way& way, float temperature, int max_tokens = 40) {
  RunRequest request;
  request.prompt = prompt;
  request.prompt_tokens = tokenize_prompt(*models().target.model, prompt);
  request.decoder = way.decoder;
  request.options = way.options;
  request.sampling = {.temperature = temperature, .top_p = 0.95f, .seed = 5};
  if (temperature == 0) request.sampling.top_p = 1;
  request.max_tokens = max_tokens;
  return request;
}

std::string text_of(const RunRequest& request, std::span<const TokenId> tokens) {
  return continuation_text(tokenizer(), request.prompt_tokens, tokens);
}

RunResult run(const RunRequest& request) {
  return run_to_end(models(), request, 1, nullptr);
}

/// Substrings of the text to use as stop strings: within a token, across tokens, one character,
/// many.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (const auto& [at, n] : {std::pair<std::size_t, std::size_t>{3, 2}, {9, 7}, {17, 12}, {26, 1}})
    if (at + n <= text.size()) pieces.push_back(text.substr(at, n));
  return pieces;
}

std::string described(const Way& way, float temperature, const std::string& stop) {
  std::string text = way.decoder;
  for (const auto& [name, value] : way.options) text += " " + name + "=" + value;
  return text + (temperature > 0 ? " sampled, stop '" : " greedy, stop '") + stop + "'";
}

/// True if an accepted proposal completed the stop string.
bool ended_in_proposal(const RunResult& result) {
  return !result.facts.empty() && result.facts.back().status == TokenStatus::Accepted;
}

TEST(Stops, ar_ends_with_the_token_that_completes_the_string) {
  for (const char* prompt : kPrompts) {
    const RunResult whole = run(request_of(prompt, {"ar"}, 0));
    const auto text_of_first = [&whole](std::size_t n) {
      return text_of(whole.request, std::span(whole.tokens).first(n));
    };
    ASSERT_EQ(whole.text, text_of_first(whole.tokens.size()));
    for (const std::string& stop : pieces_of(whole.text)) {
      RunRequest request = request_of(prompt, {"ar"}, 0);
      request.stop_texts = {"never written", stop};
      const RunResult found = run(request);
      EXPECT_EQ(found.stop_reason, "stop_string");
      EXPECT_EQ(found.stop_string, stop);
      EXPECT_TRUE(found.whole());
      EXPECT_EQ(found.text, whole.text.substr(0, whole.text.find(stop)));
      std::size_t n = 1;
      while (text_of_first(n).find(stop) == std::string::npos) n++;
      EXPECT_EQ(found.tokens,
                std::vector<TokenId>(whole.tokens.begin(),
                                     whole.tokens.begin() + static_cast<std::ptrdiff_t>(n)));
      EXPECT_EQ(found.facts.size(), n);
    }
  }
}

TEST(Stops, a_stop_string_ends_every_lossless_decoder_as_ar) {
  std::map<std::string, int> n_in_proposal;
  for (const float temperature : {0.0f, 0.8f}) {
    for (const char* prompt : kPrompts) {
      for (const std::string& stop : pieces_of(run(request_of(prompt, {"ar"}, temperature)).text)) {
        RunRequest plain = request_of(prompt, {"ar"}, temperature);
        plain.stop_texts = {stop, "never written"};
        const RunResult ar = run(plain);
        ASSERT_EQ(ar.stop_string, stop);
        for (const Way& way : lossless_ways()) {
          RunRequest request = request_of(prompt, way, temperature);
          request.stop_texts = plain.stop_texts;
          const RunResult found = run(request);
          const std::string what = described(way, temperature, stop);
          EXPECT_EQ(found.tokens, ar.tokens) << what;
          EXPECT_EQ(found.text, ar.text) << what;
          EXPECT_EQ(found.stop_reason, "stop_string") << what;
          EXPECT_EQ(found.stop_string, stop) << what;
          n_in_proposal[way.decoder] += ended_in_proposal(found);
        }
      }
    }
  }
  for (const char* decoder : {"lookahead", "jacobi", "fastcot", "prompt-lookup", "speculative",
                              "mcsd", "medusa", "chimera", "seed"})
    EXPECT_GT(n_in_proposal[decoder], 0) << decoder << ": no text ended inside an accepted draft";
}

TEST(Stops, a_stop_id_ends_every_lossless_decoder_as_ar) {
  for (const float temperature : {0.0f, 0.8f}) {
    const RunResult whole = run(request_of(kPrompts[0], {"ar"}, temperature));
    ASSERT_GT(whole.tokens.size(), 12u);
    const TokenId id = whole.tokens[11];
    const auto first = std::ranges::find(whole.tokens, id);
    const std::vector<TokenId> expected(whole.tokens.begin(), first + 1);
    std::vector<Way> ways = lossless_ways();
    ways.push_back({"ar"});
    for (const Way& way : ways) {
      RunRequest request = request_of(kPrompts[0], way, temperature);
      request.stop_ids = {tokenizer().vocab_size() - 1, id};
      request.ignore_eos = true;
      const RunResult found = run(request);
      EXPECT_EQ(found.tokens, expected) << described(way, temperature, "");
      EXPECT_EQ(found.stop_reason, "stop_id");
      EXPECT_TRUE(found.whole());
      EXPECT_EQ(found.text, text_of(request, std::span(expected).first(expected.size() - 1)));
    }
  }
}

// A character of several byte tokens matches only when complete.
TEST(Stops, a_multi_token_character_counts_when_complete) {
  const std::string euro = "\xE2\x82\xAC", pound_sign = "\xE2\x82\xA4";
  const std::vector<TokenId> ids = tokenizer().encode("pay 5 " + pound_sign + euro + " now", false);
  std::size_t n = 1;
  const auto holds = [&](std::size_t n_tokens) {
    return tokenizer().decode(std::span(ids).first(n_tokens)).find(euro) != std::string::npos;
  };
  while (n < ids.size() && !holds(n)) n++;
  ASSERT_GT(n, 8u) << "expected characters split into byte tokens";
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{2}, std::size_t{5}, ids.size()}) {
    StopReader reader(TextStream(tokenizer(), {}), {euro});
    std::size_t n_read = 0;
    while (!reader.found()) {
      const auto rest = std::span(ids).subspan(n_read);
      const int found = reader.read(rest.first(std::min(at_once, rest.size())));
      n_read += found > 0 ? static_cast<std::size_t>(found) : at_once;
    }
    EXPECT_EQ(n_read, n) << at_once;
    EXPECT_EQ(tokenizer().decode(ids).substr(reader.found()->begin), euro + " now");
  }
}

TEST(Stops, ids_beyond_the_vocabulary_are_refused) {
  RunRequest request = request_of(kPrompts[0], {"ar"}, 0);
  for (const TokenId id : {-1, tokenizer().vocab_size()}) {
    request.stop_ids = {id};
    try {
      run(request);
      FAIL() << id << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Usage);
    }
  }
}

/// Requests with stop strings at different positions.
std::vector<CompletionRequest> stopped_requests(const char* decoder, float temperature) {
  std::vector<CompletionRequest> requests;
  for (const char* prompt : kPrompts) {
    for (const std::string& stop : pieces_of(run(request_of(prompt, {"ar"}, temperature)).text)) {
      requests.emplace_back().run = request_of(prompt, {decoder}, temperature);
      requests.back().run.stop_texts = {stop};
    }
  }
  requests.push_back(requests.front());
  requests.back().run.stop_texts.clear();
  return requests;
}

void expect_as_ar(const std::vector<Completion>& found, std::vector<CompletionRequest> requests) {
  ASSERT_EQ(found.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); i++) {
    requests[i].run.decoder = "ar";
    const RunResult ar = run(requests[i].run);
    EXPECT_EQ(found[i].result.tokens, ar.tokens) << i;
    EXPECT_EQ(found[i].result.text, ar.text) << i;
    EXPECT_EQ(found[i].result.stop_reason, ar.stop_reason) << i;
    EXPECT_EQ(found[i].result.stop_string, ar.stop_string) << i;
  }
}

TEST(Stops, a_batch_ends_each_sequence_as_alone) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto requests = stopped_requests("lookahead", temperature);
    expect_as_ar(BatchScheduler(models(), 4).run(requests, {}), requests);
  }
}

TEST(Stops, seed_rounds_end_each_sequence_as_alone) {
  static ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 2);
  const RunModels seeds = models_for(store, {}, {}, "seed", {});
  for (const float temperature : {0.0f, 0.8f}) {
    const auto requests = stopped_requests("seed", temperature);
    RoundsScheduler scheduler(seeds, {.n_branches = 3, .n_together = 2});
    expect_as_ar(scheduler.run(requests, {}), requests);
  }
}

TEST(Stops, a_recording_keeps_the_matched_stop_string) {
  RunRequest request = request_of(kPrompts[0], {"mcsd"}, 0);
  const RunResult whole = run(request);
  request.stop_texts = {whole.text.substr(9, 7)};
  request.stop_ids = {7};
  EventList events;
  const RunResult result = run_to_end(models(), request, 1, &events);
  Timeline timeline;
  timeline.apply(describe(models().target));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  const RunRecord& recorded = timeline.runs().front();
  EXPECT_EQ(recorded.started.stop_texts, request.stop_texts);
  EXPECT_EQ(recorded.started.stop_ids, request.stop_ids);
  ASSERT_TRUE(recorded.finished);
  EXPECT_EQ(recorded.finished->stop_reason, "stop_string");
  EXPECT_EQ(recorded.finished->stop_string, request.stop_texts[0]);
  EXPECT_EQ(recorded.finished->n_tokens, static_cast<int>(result.tokens.size()));
  // The CSV table has the result's values.
  ASSERT_EQ(recorded.tokens.size(), result.tokens.size());
  for (std::size_t i = 0; i < result.tokens.size(); i++) {
    EXPECT_EQ(recorded.tokens[i].id, result.tokens[i]);
    EXPECT_EQ(recorded.tokens[i].logp, result.facts[i].logp);
    EXPECT_EQ(recorded.tokens[i].status, result.facts[i].status);
    EXPECT_EQ(recorded.tokens[i].origin.kind, result.facts[i].origin.kind);
  }
}

/// Log probability of each generated token in double precision, from the target's logits after each
/// prefix.
std::vector<double> logp_in_double(const RunRequest& request, const std::vector<TokenId>& tokens) {
  Model& model = *models().target.model;
  Sequence sequence(request.prompt_tokens, model.make_cache());
  prefill(model, sequence);
  TokenTree tree;
  tree.add(sequence.last(), -1, RowTag{});
  for (std::size_t i = 0; i + 1 < tokens.size(); i++)
    tree.add(tokens[i], static_cast<int>(i), {RowTag::Kind::Block, 1, 0});
  BatchItem item;
  item.cache = &sequence.cache();
  item.tree = &tree;
  item.prefix = sequence.cached_tokens();
  const StepOutput out = model.forward({&item, 1}, {.logits = true}).front();
  std::vector<TokenId> history = request.prompt_tokens;
  std::vector<double> found;
  for (std::size_t i = 0; i < tokens.size(); i++) {
    const auto logits = out.logits_of(static_cast<int>(i));
    if (request.sampling.greedy()) {
      double sum = 0;
      const double top = *std::ranges::max_element(logits);
      for (const float logit : logits) sum += std::exp(logit - top);
      found.push_back(logits[static_cast<std::size_t>(tokens[i])] - top - std::log(sum));
    } else {
      found.push_back(std::log(token_distribution(logits, request.sampling,
                                                  history)[static_cast<std::size_t>(tokens[i])]));
    }
    history.push_back(tokens[i]);
  }
  return found;
}

std::vector<float> logp_of(const RunResult& result) {
  std::vector<float> logp;
  for (const TokenFacts& facts : result.facts) logp.push_back(facts.logp);
  return logp;
}

TEST(TokenFacts, logp_equals_a_softmax_in_double_precision) {
  std::vector<RunRequest> requests;
  for (const float temperature : {0.0f, 0.8f})
    requests.push_back(request_of(kPrompts[0], {"ar"}, temperature));
  requests.push_back(request_of(kPrompts[0], {"mcsd"}, 0.8f));
  requests.back().sampling.mode = Sampling::Mode::Rejection;
  requests.push_back(request_of(kPrompts[0], {"medusa", {{"verify", "typical"}}}, 0.8f));
  for (const RunRequest& request : requests) {
    const RunResult found = run(request);
    const std::vector<double> expected = logp_in_double(request, found.tokens);
    ASSERT_EQ(found.facts.size(), expected.size());
    double sum = 0;
    for (std::size_t i = 0; i < expected.size(); i++) {
      // f32 rounding of numbers up to 20 and of sums of exponentials.
      EXPECT_NEAR(found.facts[i].logp, expected[i], 1e-4) << request.decoder << " " << i;
      EXPECT_LE(found.facts[i].logp, 1e-6f);
      sum += found.facts[i].logp;
    }
    EXPECT_NEAR(sum, std::accumulate(expected.begin(), expected.end(), 0.0), 1e-3);
  }
}

TEST(TokenFacts, lossless_decoders_report_the_logp_of_ar) {
  std::vector<Way> ways = lossless_ways();
  ways.push_back({"medusa", {{"verify", "typical"}}});  // lossless only when greedy
  for (const float temperature : {0.0f, 0.8f}) {
    const std::vector<float> expected = logp_of(run(request_of(kPrompts[0], {"ar"}, temperature)));
    for (const Way& way : ways) {
      if (temperature > 0 && way.options.contains("verify")) continue;
      EXPECT_EQ(logp_of(run(request_of(kPrompts[0], way, temperature))), expected)
          << described(way, temperature, "");
    }
  }
}

TEST(TokenFacts, name_the_proposer_of_each_token) {
  const std::map<std::string, std::string> own_word{
      {"lookahead", "pool"},       {"jacobi", "guess"},  {"fastcot", "guess"},
      {"prompt-lookup", "prompt"}, {"suffix", "text"},   {"recycling", "successors"},
      {"speculative", "draft"},    {"mcsd", "draft"},    {"seed", "draft"},
      {"medusa", "head 1"},        {"chimera", "head 1"}};
  std::vector<Way> ways = lossless_ways();
  ways.push_back({"ar"});
  std::map<std::string, std::int64_t> n_own;
  for (const Way& way : ways) {
    const RunResult result = run(request_of(kPrompts[0], way, 0));
    std::map<std::string, std::int64_t> n;
    for (const TokenFacts& facts : result.facts)
      n[drafted_by(way.decoder, facts.status, facts.origin)]++;
    std::int64_t n_drafted = 0;
    for (const auto& [word, count] : n)
      if (word != "none" && word != "bonus") n_drafted += count;
    EXPECT_EQ(n_drafted, result.counts.at("accepted")) << way.decoder;
    if (const auto word = own_word.find(way.decoder); word != own_word.end())
      n_own[way.decoder] += n[word->second];
    else
      EXPECT_EQ(n, (decltype(n){{"none", static_cast<std::int64_t>(result.tokens.size())}}));
  }
  // Over the ways of a decoder, as one that chooses its sizes may guess nothing.
  for (const auto& [decoder, word] : own_word) EXPECT_GT(n_own[decoder], 0) << decoder;
}

TEST_F(EngineThread, a_race_ends_at_a_stop_string) {
  StartRun start = race({"ar"}, 32);
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  std::vector<TokenId> tokens;
  for (const TokenRecord& token : timeline.runs().front().tokens) tokens.push_back(token.id);
  start = race({"ar", "lookahead", "mcsd"}, 32);
  start.stop_texts = {tokenizer().decode(tokens).substr(9, 7)};
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 4 && count<Agreement>() == 2; }));
  for (const RunRecord& run : timeline.runs()) {
    if (run.started.race == 0) continue;
    ASSERT_TRUE(run.finished);
    EXPECT_EQ(run.finished->stop_string, start.stop_texts[0]);
    EXPECT_LT(run.tokens.size(), tokens.size());
    if (run.agreement) {
      EXPECT_EQ(run.agreement->first_difference, -1);
    }
  }
  start.stop_ids = {1 << 30};
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; })) << "refused before the run starts";
}

}  // namespace
}  // namespace engine::test
