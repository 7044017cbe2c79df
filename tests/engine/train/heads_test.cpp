// Training of draft heads: gradients compared with finite differences, the targets of each head,
// whole runs.
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/event/recording/training_report.h"
#include "engine/model/draft_heads.h"
#include "engine/train/core/optimizer.h"
#include "engine/train/heads/train.h"
#include "kernels/dtype.h"
#include "tests/engine/train/gradient_check.h"
#include "tests/engine/train/small_heads.h"
#include "tests/engine/train/small_target.h"

namespace engine {
namespace {

using test::as_bf16;
using test::Heads;
using test::kDim;
using test::kVocab;
using test::random_text;
using test::small_heads;
using test::small_heads_on_target;
using test::spread;
using test::Text;

void expect_gradients(const HeadsConfig& config, const char* what) {
  Heads heads(config);
  test::expect_gradients_of(heads, what);
}

TEST(MedusaTraining, gradient_of_every_weight_is_the_derivative) {
  HeadsConfig config = small_heads(HeadsKind::Medusa);
  expect_gradients(config, "one layer");
  config.n_layers = 2;
  expect_gradients(config, "two layers");
  expect_gradients(small_heads_on_target(HeadsKind::Medusa, false), "the target's output");
  expect_gradients(small_heads_on_target(HeadsKind::Medusa, true), "half of the target's output");
}

TEST(ChimeraTraining, gradient_of_every_weight_is_the_derivative) {
  HeadsConfig config = small_heads(HeadsKind::Chimera);
  expect_gradients(config, "trigrams");
  config.sees_committed_grams = false;
  expect_gradients(config, "trigrams that see no committed ones");
  config.gram = 2;
  config.own_embedding = true;
  expect_gradients(config, "bigrams that see no committed ones, embedding of their own");
  config.own_embedding = false;
  config.sees_committed_grams = true;
  config.gram = 5;
  config.residual = false;
  expect_gradients(config, "5-grams, no residual");
  config.gram = 1;
  config.own_embedding = true;
  expect_gradients(config, "unigrams, embedding of its own");
  config = small_heads_on_target(HeadsKind::Chimera, true);
  expect_gradients(config, "half of the target's output");
  config = small_heads_on_target(HeadsKind::Chimera, false);
  config.residual = false;
  expect_gradients(config, "the target's output, no residual");
}

/// The sums of a pass over one text.
HeadsSums sums_of(Heads& heads, const Text& text) {
  const HeadsLoss counts{.of_head = {1, 1, 1}, .of_feature = 0};
  std::vector<float> gradient;
  return heads.sums_of({text.read()}, counts, gradient);
}

/// Ranks of the targets of a text, by untrained heads.
HeadsRanks untrained_ranks(const HeadsConfig& config, const Text& text) {
  Heads heads(config);
  MeasuredRanks ranks(config.n_heads);
  const test::RankedTexts texts({text.read()}, config);
  heads.pass->rank(heads.weights(), texts.read(), kVocab, false, ranks);
  return ranks.all;
}

TEST(HeadsTraining, ranks_after_right_guesses_are_counted_apart) {
  MeasuredRanks ranks(3);
  ranks.add_place(std::vector<int>{0, 2, 0});
  ranks.add_place(std::vector<int>{0, 0, 1});
  ranks.add_place(std::vector<int>{1, 0});
  EXPECT_EQ(ranks.all.n, (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_EQ(ranks.after_right.n, (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(ranks.after_right.hits[1][0], 1);
  EXPECT_EQ(ranks.after_right.hits[1][2], 1);
  EXPECT_EQ(ranks.after_right.hits[2][1], 1);
}

// If the guesses before a head are right, chains of own guesses equal the text's tokens.
TEST(HeadsTraining, own_guesses_change_only_later_heads) {
  const Text text = random_text(60, 3, 2);
  const HeadsConfig config = small_heads(HeadsKind::Chimera);
  Heads heads(config);
  MeasuredRanks own(config.n_heads), given(config.n_heads);
  const test::RankedTexts texts({text.read()}, config);
  heads.pass->rank(heads.weights(), texts.read(), kVocab, true, own);
  heads.pass->rank(heads.weights(), texts.read(), kVocab, false, given);
  EXPECT_EQ(own.all.hits[0], given.all.hits[0]);
  EXPECT_EQ(own.all.n, given.all.n);
  EXPECT_EQ(own.after_right.hits[1], given.after_right.hits[1]);
  EXPECT_NE(own.all.hits[1], given.all.hits[1]);
}

// Heads start as the same functions with output matrices of their own and with the target's.
TEST(HeadsTraining, untrained_heads_with_either_output_rank_alike) {
  const Text text = random_text(30, 3, 1);
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const HeadsRanks own = untrained_ranks(small_heads(kind), text);
    EXPECT_EQ(untrained_ranks(small_heads_on_target(kind, false), text).hits[0], own.hits[0]);
  }
}

TEST(HeadsTraining, tokens_outside_the_output_are_misses_without_loss) {
  const Text text = random_text(40, 3, 1);
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const HeadsConfig config = small_heads_on_target(kind, true);
    const HeadsRanks ranks = untrained_ranks(config, text);
    Heads heads(config);
    const HeadsSums sums = sums_of(heads, text);
    for (int head = 0; head < config.n_heads; head++) {
      const auto k = static_cast<std::size_t>(head);
      std::int64_t n_ranked = 0;
      for (std::size_t i = 4 + k; i < text.tokens.size(); i++) n_ranked += text.tokens[i] % 2;
      EXPECT_EQ(sums.n[k], n_ranked);
      EXPECT_EQ(ranks.n[k], text.read().n_places(head));
      std::int64_t hits = 0;
      for (const std::int64_t n : ranks.hits[k]) hits += n;
      EXPECT_LE(hits, n_ranked);
      EXPECT_GT(hits, 0);
    }
  }
}

TEST(MedusaTraining, untrained_heads_predict_like_the_target) {
  Heads heads(small_heads(HeadsKind::Medusa));
  const auto output = spread(kVocab * kDim, 6);
  Text text = random_text(12, 2, 4);
  // The token with the largest logit of the target's output matrix at each state.
  for (int i = 0; i + 1 < 12; i++) {
    double best = -1e9;
    for (int v = 0; v < kVocab; v++) {
      double sum = 0;
      for (int d = 0; d < kDim; d++)
        sum += static_cast<double>(output[static_cast<std::size_t>(v * kDim + d)]) *
               kernels::f32_from_bf16(text.hidden[static_cast<std::size_t>(i * kDim + d)].bits);
      if (sum <= best) continue;
      best = sum;
      // The target of head 0 is two positions after the state.
      if (i + 2 < 12) text.tokens[static_cast<std::size_t>(i + 2)] = v;
    }
  }
  MeasuredRanks measured(3);
  const std::vector<HeadsText> texts = {text.read()};
  heads.pass->rank(heads.weights(), texts, kVocab, false, measured);
  const HeadsRanks& ranks = measured.all;
  EXPECT_EQ(ranks.n, (std::vector<std::int64_t>{9, 8, 7}));
  EXPECT_EQ(ranks.top(0, 1), 1.0);
}

TEST(ChimeraTraining, texts_do_not_attend_to_each_other) {
  Heads heads(small_heads(HeadsKind::Chimera));
  const Text a = random_text(11, 3, 1), b = random_text(9, 4, 2);
  const HeadsLoss counts{.of_head = {1, 1, 1}, .of_feature = 0};
  const auto losses = [&](const std::vector<HeadsText>& texts) {
    std::vector<float> gradient;
    return heads.sums_of(texts, counts, gradient).loss;
  };
  const auto both = losses({a.read(), b.read()}), first = losses({a.read()}),
             second = losses({b.read()});
  for (std::size_t k = 0; k < 3; k++) EXPECT_NEAR(both[k], first[k] + second[k], 1e-4);
}

TEST(ChimeraTraining, chain_attends_to_no_later_state) {
  for (const bool sees_grams : {true, false}) {
    HeadsConfig config = small_heads(HeadsKind::Chimera);
    config.sees_committed_grams = sees_grams;
    Heads heads(config);
    Text text = random_text(11, 3, 1);
    text.n_prompt = 9;  // one place, 8, for head 0 alone
    const HeadsSums before = sums_of(heads, text);
    EXPECT_EQ(before.n, (std::vector<std::int64_t>{1, 0, 0}));
    for (int i = 9 * kDim; i < 10 * kDim; i++) text.hidden[static_cast<std::size_t>(i)] = {0x4000};
    EXPECT_EQ(sums_of(heads, text).loss[0], before.loss[0])
        << "state 9 is only the target of the feature loss";
    for (int i = 8 * kDim; i < 9 * kDim; i++) text.hidden[static_cast<std::size_t>(i)] = {0x4000};
    EXPECT_NE(sums_of(heads, text).loss[0], before.loss[0]);
  }
}

TEST(ChimeraTraining, chain_attends_to_earlier_k_grams_if_enabled) {
  for (const bool sees_grams : {true, false}) {
    HeadsConfig config = small_heads(HeadsKind::Chimera);
    config.gram = 1;
    config.sees_committed_grams = sees_grams;
    Heads heads(config);
    const Text text = random_text(12, 8, 1);  // places 7, 8, 9; targets 9, 10, 11
    const HeadsSums before = sums_of(heads, text);
    const auto changed = [&](int token) {
      Text other = text;
      TokenId& one = other.tokens[static_cast<std::size_t>(token)];
      one = (one + 17) % kVocab;
      const HeadsSums sums = sums_of(heads, other);
      std::vector<bool> heads_changed;
      for (std::size_t k = 0; k < 3; k++) heads_changed.push_back(sums.loss[k] != before.loss[k]);
      return heads_changed;
    };
    for (int token = 1; token < 8; token++)
      EXPECT_EQ(changed(token), std::vector<bool>(3, sees_grams)) << token;
    EXPECT_EQ(changed(0), std::vector<bool>(3, false)) << "the layout begins with token 1";
    EXPECT_EQ(changed(8), std::vector<bool>(3, true)) << "the first chain's own input";
  }
}

TEST(ChimeraTraining, self_fed_chains_contain_the_heads_guesses) {
  Heads heads(small_heads(HeadsKind::Chimera));
  const Text text = random_text(11, 3, 1);
  std::vector<float> gradient;
  HeadsLoss first_alone{.of_head = {1, 0, 0}, .of_feature = 0};
  const double given = heads.loss({text.read()}, first_alone, gradient);
  first_alone.self_fed = true;
  EXPECT_EQ(heads.loss({text.read()}, first_alone, gradient), given)
      << "the first head's input is the target's token";
  HeadsLoss second_alone{.of_head = {0, 1, 0}, .of_feature = 0};
  const double taught = heads.loss({text.read()}, second_alone, gradient);
  second_alone.self_fed = true;
  EXPECT_NE(heads.loss({text.read()}, second_alone, gradient), taught);
}

// Period 7, so a head that predicts another offset is always wrong.
Text periodic_text() {
  Text text{{}, {}, 2};
  std::vector<float> hidden;
  for (int i = 0; i < 40; i++) {
    text.tokens.push_back(10 + i % 7 * 3);
    if (i == 39) break;
    for (int d = 0; d < kDim; d++) hidden.push_back(d == i % 7 ? 2.0f : 0.25f);
  }
  text.hidden = as_bf16(hidden);
  return text;
}

/// The target whose matrices the heads read.
const ModelFiles& target_files() {
  static const std::vector<float> embedding = spread(kVocab * kDim, 5),
                                  output = spread(kVocab * kDim, 6);
  static const ModelFiles files = [] {
    ModelFiles made;
    made.name = "target";
    made.config.dim = kDim;
    made.config.vocab_size = kVocab;
    made.config.tied_embeddings = false;
    std::vector<float> both = embedding;
    both.insert(both.end(), output.begin(), output.end());
    static const std::vector<float> values = std::move(both);
    made.tensors = as_tensors(
        values, std::vector<NamedPart>{{"model.embed_tokens.weight", {kVocab, kDim}, 0},
                                       {"lm_head.weight", {kVocab, kDim}, kVocab * kDim}});
    return made;
  }();
  return files;
}

/// Trains on one text until the heads predict it, and writes the heads.
HeadsFiles trained_on(const Text& text, const HeadsConfig& config, const std::string& directory) {
  Heads heads(config);
  Optimizer optimizer({0.9, 0.95, 0, 1}, runs_of(heads.layout.parts, heads.layout.n),
                      train_table());
  Workers workers(1);
  std::vector<std::vector<float>> gradients(1);
  const HeadsLoss counts{.of_head = {0.03f, 0.03f, 0.03f}, .of_feature = 0.0001f};
  for (int step = 1; step <= 150; step++) {
    heads.loss({text.read()}, counts, gradients[0]);
    optimizer.update(heads.parameters, gradients, step, 0.01, workers);
  }
  MeasuredRanks measured(config.n_heads);
  const test::RankedTexts texts({text.read()}, config);
  heads.pass->rank(heads.weights(), texts.read(), kVocab, false, measured);
  const HeadsRanks& ranks = measured.all;
  for (int k = 0; k < config.n_heads; k++) EXPECT_EQ(ranks.top(k, 1), 1.0) << "head " << k;
  write_heads(directory, config, *as_tensors(heads.parameters, heads.layout.parts),
              kernels::DType::F32);
  return open_heads(directory, &target_files());
}

class TrainedHeads : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_ =
      (std::filesystem::temp_directory_path() / ("heads_test_" + std::to_string(::getpid())))
          .string();
  std::unique_ptr<kernels::Device> device_ = kernels::open_cpu(1);
  HeadsOptions options_{
      .dtype = kernels::DType::F32, .scale = {}, .vocab_size = kVocab, .max_seq_len = 64};
};

int best_of(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// k-grams that end at tokens [first, first + n), oldest token first.
std::vector<TokenId> grams_of(const Text& text, int gram, int first, int n) {
  std::vector<TokenId> grams;
  for (int end = first; end < first + n; end++)
    for (int at = end - gram + 1; at <= end; at++)
      grams.push_back(at < 0 ? -1 : text.tokens[static_cast<std::size_t>(at)]);
  return grams;
}

std::vector<float> states(const Text& text, int first, int n) {
  std::vector<float> values;
  for (int i = first * kDim; i < (first + n) * kDim; i++)
    values.push_back(kernels::f32_from_bf16(text.hidden[static_cast<std::size_t>(i)].bits));
  return values;
}

TEST_F(TrainedHeads, medusa_predicts_later_tokens_of_a_state) {
  const Text text = periodic_text();
  HeadsConfig some = small_heads_on_target(HeadsKind::Medusa, false);
  for (TokenId token = 10; token < 42; token++) some.output_tokens.push_back(token);
  for (const HeadsConfig& config : {small_heads(HeadsKind::Medusa), some}) {
    const HeadsFiles files = trained_on(text, config, directory_);
    const auto heads = load_medusa(*device_, files, options_);
    for (int i = 1; i < 30; i++) {
      const std::vector<float> logits = heads->logits(states(text, i, 1), 3);
      for (int k = 0; k < 3; k++) {
        EXPECT_EQ(best_of(std::span(logits).subspan(static_cast<std::size_t>(k * kVocab), kVocab)),
                  text.tokens[static_cast<std::size_t>(i + 2 + k)])
            << "state " << i << ", head " << k;
      }
    }
    std::filesystem::remove_all(directory_);
  }
}

/// Forms of Chimera's heads with different k-grams and attention spans.
std::vector<HeadsConfig> chimera_forms() {
  std::vector<HeadsConfig> forms;
  for (const int gram : {1, 3}) {
    for (const bool sees_grams : {true, false}) {
      forms.push_back(small_heads(HeadsKind::Chimera));
      forms.back().gram = gram;
      forms.back().sees_committed_grams = sees_grams;
    }
  }
  forms.push_back(small_heads_on_target(HeadsKind::Chimera, false));
  return forms;
}

/// The logits of head k at place i of a text whose earlier rows are cached; called for k = 0, 1, ..
std::vector<float> head_logits(ChimeraSequence& reader, const Text& text, int gram, int i, int k) {
  const int n_known = reader.length();
  reader.append(states(text, n_known, i + 1 - n_known),
                grams_of(text, gram, n_known, i + 1 - n_known));
  if (k == 0) reader.begin_draft();
  return reader.level(std::vector<int>{k - 1}, grams_of(text, gram, i + 1 + k, 1));
}

TEST_F(TrainedHeads, chimera_predicts_the_next_tokens_of_a_chain) {
  const Text text = periodic_text();
  for (const HeadsConfig& config : chimera_forms()) {
    const HeadsFiles files = trained_on(text, config, directory_);
    EXPECT_EQ(files.config.sees_committed_grams, config.sees_committed_grams);
    const auto heads = load_chimera(*device_, files, target_files(), options_);
    const auto reader = heads->make_sequence(nullptr);
    for (int i = 1; i < 30; i++) {
      for (int k = 0; k < 3; k++) {
        EXPECT_EQ(best_of(head_logits(*reader, text, config.gram, i, k)),
                  text.tokens[static_cast<std::size_t>(i + 2 + k)])
            << "state " << i << ", head " << k;
      }
    }
    std::filesystem::remove_all(directory_);
  }
}

TEST_F(TrainedHeads, chimera_drafts_with_the_inputs_of_training) {
  const Text text = random_text(20, 4, 1);
  for (const HeadsConfig& config : chimera_forms()) {
    Heads heads(config);
    const auto noise = spread(heads.parameters.size(), 11);
    for (std::size_t i = 0; i < noise.size(); i++) heads.parameters[i] += 0.5f * noise[i];
    const HeadsSums sums = sums_of(heads, text);
    write_heads(directory_, config, *as_tensors(heads.parameters, heads.layout.parts),
                kernels::DType::F32);
    const auto drafting =
        load_chimera(*device_, open_heads(directory_, &target_files()), target_files(), options_);
    const auto reader = drafting->make_sequence(nullptr);
    std::vector<double> loss(3);
    for (int i = 3; i < 18; i++) {
      for (int k = 0; k < 3 && i + 2 + k < 20; k++) {
        const std::vector<float> logits = head_logits(*reader, text, config.gram, i, k);
        double sum = 0;
        for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
        const auto token =
            static_cast<std::size_t>(text.tokens[static_cast<std::size_t>(i + 2 + k)]);
        loss[static_cast<std::size_t>(k)] += std::log(sum) - static_cast<double>(logits[token]);
      }
    }
    // Sums of 15 rows of logits, each of some hundred f32 terms.
    for (std::size_t k = 0; k < 3; k++) EXPECT_NEAR(sums.loss[k], loss[k], 2e-4 * loss[k]) << k;
    std::filesystem::remove_all(directory_);
  }
}

class HeadsRuns : public test::SmallTarget {
 protected:
  std::string recipe_path(const std::string& kind, const std::string& more = "") const {
    const std::string file = path(kind + ".json");
    std::ofstream(file) << R"({"name": "small", "heads_of": ")" + kind +
                               R"(", "own_outputs": {"mixture": {"arith": {"weight": 1}},
        "count": 12, "max_tokens": 10, "lanes": 4}, "probe_texts": 3, "heads": 2,
        "batch_texts": 3, "peak_lr": 0.01, "warmup_steps": 2, "epochs": 4, "probe_steps": 5,
        "shards": 2)" + more + "}";
    return file;
  }
  HeadsRequest request(HeadsKind kind, const std::string& out, bool resume = false) const {
    return {.recipe = recipe_path(name_of(kind)),
            .kind = kind,
            .out = path(out),
            .texts = "",
            .data = "",
            .resume = resume,
            .n_threads = 2};
  }
  HeadsTarget heads_target() const { return {*model_, files_, "0123"}; }
};

TEST_F(HeadsRuns, finished_run_writes_heads_accuracies_card_and_log) {
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const std::string out = name_of(kind);
    double first = 0, last = 0;
    HeadsCallbacks callbacks;
    callbacks.training.progress = [&](const TrainProgress& p) {
      if (p.step == 1) first = p.loss;
      last = p.loss;
    };
    const HeadsTraining training = make_heads(request(kind, out), heads_target(), callbacks);
    EXPECT_TRUE(training.result.finished);
    EXPECT_LT(last, 0.7 * first) << out;
    const HeadsFiles files = open_heads(path(out), &files_);
    EXPECT_EQ(files.config.kind, kind);
    EXPECT_EQ(files.config.base, "target");
    EXPECT_EQ(files.stored_dtype, kernels::DType::BF16);
    EXPECT_EQ(training.n_prompts, 3);
    for (int k = 0; k < 2; k++) {
      EXPECT_GT(training.result.ranks.all.n[static_cast<std::size_t>(k)], 0);
      EXPECT_GE(training.result.ranks.all.top(k, 5), training.result.ranks.all.top(k, 1));
    }
    std::ifstream card(path(out) + "/README.md");
    const std::string text((std::istreambuf_iterator<char>(card)), {});
    for (const char* part : {"# small", "## Data and licences", "## Training", "## Accuracies",
                             "| head | top-1 |", "\"heads_of\": \""})
      EXPECT_NE(text.find(part), std::string::npos) << part;
    std::int64_t n_probes = 0;
    for (const TrainingReport& report : read_training_reports(path(out) + "/training.jsonl")) {
      EXPECT_EQ(report.losses.at(0).first, "head 1");
      n_probes += !report.probes.empty();
    }
    EXPECT_GT(n_probes, 0);
  }
}

TEST_F(HeadsRuns, heads_on_the_targets_output_are_trained_and_read_back) {
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const std::string out = std::string("shared ") + name_of(kind);
    HeadsRequest of_target = request(kind, out);
    of_target.recipe = recipe_path(name_of(kind), R"(, "output": "target", "output_tokens": 64)");
    double first = 0, last = 0;
    HeadsCallbacks callbacks;
    callbacks.training.progress = [&](const TrainProgress& p) {
      if (p.step == 1) first = p.loss;
      last = p.loss;
    };
    const HeadsTraining training = make_heads(of_target, heads_target(), callbacks);
    EXPECT_TRUE(training.result.finished);
    EXPECT_LT(last, first) << out;
    const HeadsFiles files = open_heads(path(out), &files_);
    EXPECT_TRUE(files.config.target_output);
    EXPECT_EQ(files.config.output_tokens, training.config.output_tokens);
    EXPECT_EQ(files.config.n_outputs(), 64);
    EXPECT_EQ(heads_recipe_from(to_json(training.recipe), kind, "again").output_tokens, 64);
    of_target.recipe =
        recipe_path(name_of(kind), R"(, "output": "target", "output_tokens": 65536)");
    EXPECT_THROW(make_heads(of_target, heads_target(), callbacks), Error);
    of_target.recipe = recipe_path(name_of(kind), R"(, "output": "target", "output_tokens": 24)");
    EXPECT_THROW(make_heads(of_target, heads_target(), callbacks), Error);
  }
}

TEST_F(HeadsRuns, chat_runs_are_measured_on_requests_of_the_split_dev) {
  make_chat_model();
  HeadsRequest r = request(HeadsKind::Medusa, "run");
  r.data = data();
  std::string recipe = test::read_file(r.recipe);
  recipe.replace(recipe.find("arith"), 5, "creak");
  recipe.replace(recipe.find("\"count\""), 0, "\"chat\": true, ");
  test::write_file(r.recipe, recipe);
  const HeadsTraining training = make_heads(r, heads_target(), {});
  EXPECT_TRUE(training.result.finished);
  EXPECT_GT(training.n_prompts, 0);
  const std::string origin = test::read_file(path("run") + "/probe_outputs.jsonl");
  EXPECT_NE(origin.find("\"split\":\"dev\""), std::string::npos);
  EXPECT_NE(origin.find("\"chat\":true"), std::string::npos);
  const auto prompts_in = [&](const std::string& file) {
    std::set<std::vector<TokenId>> prompts;
    for (const OwnOutput& text : read_own_outputs(path("run") + file, {}, nullptr))
      prompts.emplace(text.tokens.begin(), text.tokens.begin() + text.n_prompt);
    return prompts;
  };
  const auto trained = prompts_in("/own_outputs.jsonl");
  for (const auto& prompt : prompts_in("/probe_outputs.jsonl"))
    EXPECT_FALSE(trained.contains(prompt));
  EXPECT_NE(test::read_file(path("run") + "/README.md").find("| creak | MIT |"), std::string::npos);
}

TEST_F(HeadsRuns, resumed_run_ends_with_the_same_bits) {
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const std::string whole = std::string("whole ") + name_of(kind);
    const std::string parts = std::string("parts ") + name_of(kind);
    const HeadsTraining expected = make_heads(request(kind, whole), heads_target(), {});
    std::atomic<bool> stop{false};
    HeadsCallbacks callbacks;
    callbacks.training.stop = &stop;
    callbacks.writing = [&](const OutputsProgress& p) { stop = p.done >= 5; };
    EXPECT_FALSE(make_heads(request(kind, parts), heads_target(), callbacks).result.finished);
    callbacks.writing = {};
    callbacks.training.progress = [&](const TrainProgress& p) { stop = p.step == 7; };
    stop = false;
    const HeadsTraining stopped = make_heads(request(kind, parts, true), heads_target(), callbacks);
    EXPECT_FALSE(stopped.result.finished);
    EXPECT_EQ(stopped.result.step, 7);
    HeadsRequest last = request(kind, parts, true);
    last.n_threads = 1;  // the sums depend on shards, not on threads
    const HeadsTraining resumed = make_heads(last, heads_target(), {});
    EXPECT_TRUE(resumed.result.finished);
    EXPECT_EQ(resumed.result.step, expected.result.step);
    EXPECT_EQ(resumed.result.parameters, expected.result.parameters) << name_of(kind);
    EXPECT_EQ(resumed.result.ranks.all.hits, expected.result.ranks.all.hits);
  }
}

TEST_F(HeadsRuns, resuming_a_finished_run_writes_missing_files) {
  make_heads(request(HeadsKind::Medusa, "run"), heads_target(), {});
  const std::string card = path("run") + "/README.md", heads = path("run") + "/model.safetensors";
  const auto n_bytes = std::filesystem::file_size(heads);
  std::ofstream(card, std::ios::app) << "by hand";
  const auto n_card = std::filesystem::file_size(card);
  EXPECT_TRUE(
      make_heads(request(HeadsKind::Medusa, "run", true), heads_target(), {}).result.finished);
  EXPECT_EQ(std::filesystem::file_size(card), n_card);
  // These files are missing if the process is killed after its last checkpoint.
  std::filesystem::remove(card);
  std::filesystem::remove(heads);
  make_heads(request(HeadsKind::Medusa, "run", true), heads_target(), {});
  EXPECT_TRUE(std::filesystem::exists(card));
  EXPECT_EQ(std::filesystem::file_size(heads), n_bytes);
}

TEST_F(HeadsRuns, recomputed_hidden_states_change_no_bit) {
  const HeadsTraining expected = make_heads(request(HeadsKind::Medusa, "kept"), heads_target(), {});
  HeadsRequest again = request(HeadsKind::Medusa, "again");
  again.recipe = recipe_path("medusa", R"(, "hidden_megabytes": 0)");
  const HeadsTraining training = make_heads(again, heads_target(), {});
  EXPECT_TRUE(expected.result.hidden_kept);
  EXPECT_FALSE(training.result.hidden_kept);
  EXPECT_EQ(training.result.parameters, expected.result.parameters);
}

TEST_F(HeadsRuns, saved_run_is_not_overwritten) {
  const HeadsRequest once = request(HeadsKind::Medusa, "run");
  make_heads(once, heads_target(), {});
  try {
    make_heads(once, heads_target(), {});
    FAIL() << "overwrote a saved run";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_NE(std::string(error.what()).find("--resume"), std::string::npos);
  }
}

TEST(HeadsRecipe, round_trips_through_json) {
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera}) {
    const HeadsRecipe recipe = read_heads_recipe(
        std::string(DECOSCOPE_SOURCE_DIR "/assets/recipes/") + name_of(kind) + ".json", kind);
    EXPECT_EQ(to_json(heads_recipe_from(to_json(recipe), kind, "again")), to_json(recipe));
  }
}

TEST(HeadsRecipe, errors_name_the_field_and_the_expected_value) {
  const auto message = [](const std::string& json) {
    try {
      heads_recipe_from(json, HeadsKind::Chimera, "r.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string own = R"("own_outputs": {"mixture": {"kb": {"weight": 1}}, "count": 2})";
  EXPECT_THAT(message(R"({"heads_of": "medusa"})"),
              testing::HasSubstr("r.json: heads_of: found \"medusa\", expected \"chimera\""));
  EXPECT_THAT(message(R"({"heads_of": "chimera"})"),
              testing::HasSubstr("r.json: own_outputs: missing"));
  EXPECT_THAT(message(R"({"heads_of": "chimera", "gram": 6, )" + own + "}"),
              testing::HasSubstr("r.json: gram: found 6, expected a number from 1.0 to 5.0"));
  EXPECT_THAT(message(R"({"heads_of": "chimera", "layers": 2, "epochs": 1, )" + own + "}"),
              testing::HasSubstr("r.json: layers: no such setting"));
  EXPECT_THAT(message(R"({"heads_of": "chimera", )" + own + "}"),
              testing::HasSubstr("epochs, minutes: one of them must be above 0"));
  EXPECT_THAT(message(R"({"heads_of": "chimera", "own_outputs": {"count": 2}})"),
              testing::HasSubstr("r.json: own_outputs: mixture and count must both be given"));
  for (const std::string field : {"check", "drop_wrong"})
    EXPECT_THAT(message(R"({"heads_of": "chimera", "own_outputs": {"mixture": {"creak":
                            {"weight": 1}}, "count": 2, "chat": true, ")" +
                        field + "\": true}}"),
                testing::HasSubstr("r.json: own_outputs: chat: found true with check"));
}

}  // namespace
}  // namespace engine
