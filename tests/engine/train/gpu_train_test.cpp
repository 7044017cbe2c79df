// Training on every available CUDA device (always the emulated one), compared with the CPU: gradients,
// losses, resumed runs, changes of the device, failing calls.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/train/core/trainer.h"
#include "engine/train/core/training_steps.h"
#include "engine/train/draft/shared_embedding.h"
#include "engine/train/run/run_parts.h"
#include "engine/train/run/train.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/engine/train/gpu_kit.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_runs.h"
#include "tests/engine/train/two_texts.h"
#include "tests/support/assets_folder.h"
#include "tests/support/gpu_here.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
namespace emulation = kernels::emulation;
using kernels::DType;
using kernels::test::cuda_devices_here;
using kernels::test::name_of_device;
using test::counting;
using test::cpu_gradient;
using test::expect_close;
using test::expect_every_allocation_to_be_named;
using test::expect_every_call_to_end_in_one_line;
using test::Found;
using test::gpu_gradient;
using test::kEmulated;
using test::small_recipe;
using test::Texts;
using test::two_texts;

TEST(Gpu, training_device_opens_or_states_why_not) {
  kernels::test::expect_gpus_that_open();
}

/// Texts with chains: rows 20 to 23 and 24 to 27 are chains after row 4 of the second text.
struct Chained {
  Texts texts = two_texts();
  std::vector<RowView> views = std::vector<RowView>(32);
  Chained() {
    for (int row = 20; row < 28; row++) {
      const std::int32_t begin = (row - 20) / 4 * 4 + 7;
      views[static_cast<std::size_t>(row)] = {5, begin};
      texts.pos[static_cast<std::size_t>(row)] = 5 + (row - 20) % 4;
    }
  }
  TrainRows rows() const {
    TrainRows r = texts.rows();
    r.views = views;
    return r;
  }
};

class GpuGradient : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuGradient,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

// Sums of at most 64 terms in another order: 1e-6; through two layers and back it stays below 1e-5.
TEST_P(GpuGradient, f32_gradients_and_losses_match_the_cpu) {
  const Chained chained;
  for (const int n_kv_heads : {1, 2}) {
    const ModelConfig config = test::small_model(n_kv_heads);
    for (const TrainRows& rows : {chained.texts.rows(), chained.rows()}) {
      const Found expected = cpu_gradient(config, rows);
      const Found found = gpu_gradient(GetParam(), config, DType::F32, {rows});
      expect_close(config, found.gradient, expected.gradient, 1e-5);
      for (std::size_t i = 0; i < expected.loss.size(); i++)
        ASSERT_NEAR(found.loss[i], expected.loss[i], 1e-5 * (1 + expected.loss[i])) << "row " << i;
    }
  }
}

// Rounding to 8 bits has a relative error of at most 2^-9; about twenty roundings follow each
// other.
TEST_P(GpuGradient, bf16_gradients_match_f32_within_rounding) {
  const ModelConfig config = test::small_model();
  const Texts texts = two_texts();
  const Found expected = cpu_gradient(config, texts.rows());
  const Found found = gpu_gradient(GetParam(), config, DType::BF16, {texts.rows()});
  expect_close(config, found.gradient, expected.gradient, 20 * 0x1p-9);
  for (std::size_t i = 0; i < expected.loss.size(); i++)
    EXPECT_NEAR(found.loss[i], expected.loss[i], 0.05 * (1 + expected.loss[i]));
}

TEST_P(GpuGradient, two_passes_with_chunked_logits_add_up) {
  const ModelConfig config = test::small_model();
  const Texts texts = two_texts();
  const std::vector<Segment> first = {{0, 13}}, second = {{0, 15}};
  const auto part = [&](std::size_t begin, std::size_t n, const std::vector<Segment>& segments) {
    return TrainRows{std::span(texts.token).subspan(begin, n),
                     std::span(texts.target).subspan(begin, n),
                     std::span(texts.weight).subspan(begin, n),
                     std::span(texts.pos).subspan(begin, n),
                     segments,
                     {}};
  };
  const Found whole = gpu_gradient(GetParam(), config, DType::F32, {texts.rows()});
  const Found parts =
      gpu_gradient(GetParam(), config, DType::F32, {part(0, 13, first), part(13, 19, second)},
                   {.logit_bytes = std::int64_t{5} * 4 * config.vocab_size});
  expect_close(config, parts.gradient, whole.gradient, 1e-5);
  for (std::size_t i = 0; i < whole.loss.size(); i++)
    EXPECT_NEAR(parts.loss[i], whole.loss[i], 1e-5 * (1 + whole.loss[i]));
}

TEST(GpuRows, attention_spans_of_segments_chains_and_padding) {
  const Chained chained;
  const TrainRows rows = chained.rows();
  const auto spans = spans_of({rows.pos, rows.segments, rows.views});
  const auto expect = [&](std::size_t row, const kernels::AttentionSpan& s) {
    EXPECT_EQ(spans[row].begin, s.begin);
    EXPECT_EQ(spans[row].prefix_end, s.prefix_end);
    EXPECT_EQ(spans[row].own_begin, s.own_begin);
    EXPECT_EQ(spans[row].end, s.end);
  };
  expect(3, {0, 0, 0, 13});
  expect(14, {13, 13, 13, 28});
  expect(25, {13, 18, 24, 28});
  expect(29, {29, 29, 30, 29});
}

TEST(GpuRows, group_by_token_in_order_without_padding) {
  Texts texts = two_texts();
  texts.token.assign(32, 9);
  texts.token[4] = texts.token[20] = texts.token[30] = 2;
  const TokenGroups groups = token_groups_of(texts.rows());
  EXPECT_EQ(groups.begin, (std::vector<std::int32_t>{0, 2, 28}));
  EXPECT_EQ(groups.row[0], 4);
  EXPECT_EQ(groups.row[1], 20);
  EXPECT_EQ(groups.row[2], 0);
  EXPECT_EQ(groups.row[27], 27);
}

class GpuTraining : public test::TrainingFolder, public testing::WithParamInterface<std::string> {
 protected:
  TrainOptions on(const std::string& device, const std::string& folder) const {
    TrainOptions options;
    options.n_threads = 1;
    options.device = device;
    options.directory = directory(folder);
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuTraining,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

/// About seven steps.
TrainRecipe short_recipe(const std::string& compute) {
  TrainRecipe recipe = small_recipe(compute);
  recipe.batch_tokens = 64;
  recipe.tokens = 400;
  return recipe;
}

/// The progress of each step.
std::vector<TrainProgress> steps_of(const TrainRecipe& recipe, const TrainOptions& options) {
  std::vector<TrainProgress> all;
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress& p) { all.push_back(p); };
  train(recipe, counting, options, callbacks);
  return all;
}

TEST_P(GpuTraining, follows_the_cpu_on_the_tiny_recipe) {
  TrainRecipe recipe = read_train_recipe(assets_folder() + "/recipes/tiny.json");
  recipe.model.vocab_size = 64;
  recipe.batch_tokens = 128;
  recipe.tokens = 900;
  recipe.shards = 1;
  recipe.compute = "f32";
  const auto expected = steps_of(recipe, on("cpu", "cpu"));
  ASSERT_GT(expected.size(), 5u);
  EXPECT_LT(expected.back().loss, expected.front().loss - 0.1) << "the loss hardly falls";
  for (const char* compute : {"f32", "auto"}) {
    recipe.compute = compute;
    // AdamW divides small gradients by their size, so rounding grows from step to step.
    const double share = recipe.compute == "f32" ? 1e-4 : 0.03;
    const auto found = steps_of(recipe, on(GetParam(), compute));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); i++) {
      EXPECT_NEAR(found[i].loss, expected[i].loss, share * expected[i].loss) << "step " << i + 1;
      EXPECT_NEAR(found[i].gradient_norm, expected[i].gradient_norm,
                  2 * share * expected[i].gradient_norm);
      EXPECT_EQ(found[i].tokens, expected[i].tokens);
    }
  }
}

TEST_P(GpuTraining, batch_of_two_passes_matches_the_cpu) {
  TrainRecipe recipe = small_recipe("f32");
  recipe.model.n_layers = 1;
  recipe.model.dim = recipe.model.hidden_dim = recipe.model.head_dim = 16;
  recipe.batch_tokens = 8192 + 512;  // a pass has 8,192 rows
  recipe.tokens = 1;
  recipe.shards = 1;
  const auto expected = steps_of(recipe, on("cpu", "cpu")),
             found = steps_of(recipe, on(GetParam(), "gpu"));
  ASSERT_EQ(expected.size(), 1u);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].loss, expected[0].loss, 1e-5 * expected[0].loss);
  EXPECT_NEAR(found[0].gradient_norm, expected[0].gradient_norm, 1e-4 * expected[0].gradient_norm);
}

// A draft with a frozen embedding, and an output matrix of half of the tokens.
TEST_P(GpuTraining, shared_embedding_matches_the_cpu) {
  TrainRecipe recipe = short_recipe("f32");
  recipe.shards = 1;
  recipe.model.shares_embedding_of = "target";
  SharedEmbedding shared;
  for (TokenId token = 0; token < recipe.model.vocab_size; token += 2)
    shared.output_tokens.push_back(token);
  recipe.model.n_output_tokens = static_cast<int>(shared.output_tokens.size());
  for (int i = 0; i < recipe.model.vocab_size * recipe.model.dim; i++)
    shared.embedding.push_back(0.5f * initial_weight(3, i));
  for (const TokenId token : shared.output_tokens)
    for (int i = 0; i < recipe.model.dim; i++)
      shared.output.push_back(
          shared.embedding[static_cast<std::size_t>(token * recipe.model.dim + i)]);
  const auto steps_on = [&](const std::string& device, const std::string& folder) {
    TrainOptions options = on(device, folder);
    options.shared = &shared;
    return steps_of(recipe, options);
  };
  const auto expected = steps_on("cpu", "cpu"), found = steps_on(GetParam(), "gpu");
  ASSERT_GT(expected.size(), 3u);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_LT(expected.back().loss, expected.front().loss);
  for (std::size_t i = 0; i < found.size(); i++)
    EXPECT_NEAR(found[i].loss, expected[i].loss, 1e-4 * expected[i].loss) << "step " << i + 1;
}

TEST_P(GpuTraining, resumed_run_ends_with_the_same_bits) {
  for (const char* compute : {"f32", "auto"}) {
    const TrainRecipe recipe = short_recipe(compute);
    const TrainResult expected =
        train(recipe, counting, on(GetParam(), std::string("whole ") + compute), {});
    EXPECT_EQ(expected.compute, std::string(compute) == "f32" ? "f32-cuda" : "bf16-cuda");
    TrainOptions parts = on(GetParam(), std::string("parts ") + compute);
    parts.resume = true;
    for (const int step : {1, 4, 0}) {
      parts.stop_after_step = step;
      const TrainResult result = train(recipe, counting, parts, {});
      EXPECT_EQ(result.finished, step == 0);
      if (step == 0) {
        EXPECT_EQ(result.parameters, expected.parameters) << compute;
      }
    }
  }
}

TEST_P(GpuTraining, cpu_and_gpu_resume_each_others_checkpoints) {
  const TrainRecipe recipe = short_recipe("f32");
  const TrainResult expected = train(recipe, counting, on("cpu", "cpu"), {});
  TrainOptions options = on("cpu", "both");
  options.stop_after_step = 2;
  EXPECT_FALSE(train(recipe, counting, options, {}).finished);
  options.resume = true;
  options.device = GetParam();
  options.stop_after_step = 5;
  EXPECT_EQ(train(recipe, counting, options, {}).compute, "f32-cuda");
  options.device = "cpu";
  options.stop_after_step = 0;
  const TrainResult result = train(recipe, counting, options, {});
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.compute, "f32");
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_LT(test::relative_distance(result.parameters, expected.parameters), 1e-3);
}

TEST_P(GpuTraining, probe_gets_the_current_weights) {
  TrainRecipe recipe = short_recipe("f32");
  recipe.probe_minutes = 1e-9;
  std::vector<std::vector<float>> seen;
  TrainCallbacks callbacks;
  callbacks.probe = [&](const std::vector<float>& parameters) -> NamedFigures {
    seen.push_back(parameters);
    return {};
  };
  TrainOptions options = on(GetParam(), "probed");
  options.stop_after_step = 3;
  train(recipe, counting, options, callbacks);
  ASSERT_EQ(seen.size(), 2u) << "after every step but the last";
  options = on(GetParam(), "stopped");
  options.stop_after_step = 2;
  EXPECT_EQ(train(recipe, counting, options, {}).parameters, seen[1]);
}

// ---- steps that cannot be made, on every device including the CPU

std::vector<std::string> all_devices() {
  std::vector<std::string> names = cuda_devices_here();
  names.insert(names.begin(), "cpu");
  return names;
}
std::string name_of_any(const testing::TestParamInfo<std::string>& info) {
  return info.param == "cpu" ? "cpu" : name_of_device(info);
}

class OddSteps : public GpuTraining {};
INSTANTIATE_TEST_SUITE_P(Devices, OddSteps, testing::ValuesIn(all_devices()), name_of_any);

/// The packed rows of `counting` for one step.
StepBatch batch_of(const TrainRecipe& recipe, std::int64_t first) {
  Packer packer(recipe.context, recipe.open_rows, {0.1f, 1.0f});
  const int n_rows = recipe.batch_tokens / recipe.context;
  while (packer.n_ready() < n_rows) packer.add(counting(first++));
  std::vector<PackedRow> rows;
  for (int i = 0; i < n_rows; i++) rows.push_back(packer.take());
  return lay_out(rows, recipe.context);
}

/// Weights, moments and steps on a device of this name.
struct Steps {
  explicit Steps(const std::string& device)
      : recipe(short_recipe("f32")),
        layout(recipe.model),
        gpu(open_training_device(device)),
        optimizer({}, runs_of(layout, recipe.model), train_table()) {
    initialise(parameters, layout, recipe.model, 0.02f, 3);
    const TrainPlace place{gpu ? Compute::F32Cuda : Compute::F32, workers, 1, gpu.get()};
    steps = std::make_unique<TrainSteps>(recipe, place, TrainState{parameters, optimizer});
  }
  double update(const StepBatch& batch, std::int64_t step) {
    loss.assign(batch.token.size(), -1);
    const double norm = steps->update(batch, step, 0.01, loss);
    steps->weights().fetch();
    return norm;
  }
  TrainRecipe recipe;
  ParameterLayout layout;
  std::unique_ptr<kernels::Device> gpu;  // null: the CPU
  Workers workers{1};
  Optimizer optimizer;
  std::vector<float> parameters, loss;
  std::unique_ptr<TrainSteps> steps;
};

TEST_P(OddSteps, non_finite_gradient_changes_nothing) {
  Steps plain(GetParam()), odd(GetParam());
  const StepBatch batch = batch_of(plain.recipe, 0);
  StepBatch infinite = batch;
  infinite.weight[3] = INFINITY;
  infinite.weight_sum = INFINITY;
  const std::vector<float> before = odd.parameters;
  for (int i = 0; i < 2; i++) EXPECT_TRUE(std::isnan(odd.update(infinite, 1)));
  EXPECT_EQ(odd.parameters, before);
  EXPECT_EQ(odd.optimizer.mean, std::vector<float>(before.size()));
  EXPECT_EQ(odd.optimizer.square, std::vector<float>(before.size()));
  for (int step = 1; step <= 2; step++) {
    EXPECT_EQ(odd.update(batch, step), plain.update(batch, step));
    EXPECT_EQ(odd.parameters, plain.parameters) << "the skipped step affects a later gradient";
  }
  EXPECT_NE(odd.parameters, before);
}

TEST_P(OddSteps, batch_without_weights_has_no_loss) {
  TrainRecipe recipe = short_recipe("f32");
  recipe.prompt_weight = 0;
  const TokenSource prompts_alone = [](std::int64_t index) {
    TokenText text = counting(index);
    text.n_prompt = static_cast<int>(text.tokens.size());
    return text;
  };
  TrainOptions options = on(GetParam(), "run");
  options.stop_after_step = 2;
  TrainCallbacks callbacks;
  int n_steps = 0;
  callbacks.progress = [&](const TrainProgress& p) {
    n_steps++;
    EXPECT_EQ(p.loss, 0);
    EXPECT_EQ(p.gradient_norm, 0);
    EXPECT_GT(p.tokens, 0);
  };
  const TrainResult result = train(recipe, prompts_alone, options, callbacks);
  EXPECT_EQ(n_steps, 2);
  EXPECT_EQ(result.n_skipped_steps, 0);
  for (const float weight : result.parameters) ASSERT_TRUE(std::isfinite(weight));
}

TEST_P(OddSteps, names_a_token_outside_the_vocabulary) {
  for (const TokenId token : {64, -1, 1 << 30}) {
    const TokenSource texts = [&](std::int64_t index) {
      TokenText text = counting(index);
      if (index == 5) text.tokens[2] = token;
      return text;
    };
    try {
      train(short_recipe("f32"), texts, on(GetParam(), std::to_string(token)), {});
      ADD_FAILURE() << token;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::BadInput);
      EXPECT_THAT(e.what(), testing::StartsWith("small: text 5: found token " +
                                                std::to_string(token) + ", expected 0 to 63"));
    }
  }
  Steps steps(GetParam());
  StepBatch batch = batch_of(steps.recipe, 0);
  for (std::vector<TokenId>* ids : {&batch.token, &batch.target}) {
    const TokenId kept = std::exchange((*ids)[1], 64);
    const std::int64_t launched = emulation::calls_of("cudaLaunchKernel");
    EXPECT_THROW(steps.update(batch, 1), ContractError);
    EXPECT_EQ(emulation::calls_of("cudaLaunchKernel"), launched);
    (*ids)[1] = kept;
  }
}

class EmulatedTraining : public test::TrainingFolder {
 protected:
  /// Opens the device, makes one step of a model of one layer, and returns the weights.
  std::vector<float> one_step() const {
    TrainRecipe recipe = small_recipe("auto");
    recipe.model.n_layers = 1;
    recipe.context = 16;
    recipe.batch_tokens = 32;
    TrainOptions options;
    options.n_threads = 1;
    options.device = kEmulated;
    options.directory = directory("run");
    options.stop_after_step = 1;
    fs::remove_all(directory_);
    return train(recipe, counting, options, {}).parameters;
  }
};

// CU14
TEST_F(EmulatedTraining, continues_without_memory_for_a_graph) {
  const TrainRecipe recipe = short_recipe("f32");
  const auto trained = [&](const std::string& folder, std::vector<std::string>& notes) {
    TrainOptions options;
    options.n_threads = 1;
    options.device = kEmulated;
    options.directory = directory(folder);
    TrainCallbacks callbacks;
    callbacks.notice = [&](const std::string& text) {
      if (text.find("one by one") != std::string::npos) notes.push_back(text);
    };
    return train(recipe, counting, options, callbacks).parameters;
  };
  std::vector<std::string> notes;
  const std::vector<float> expected = trained("plain", notes);
  EXPECT_TRUE(notes.empty());
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaGraphLaunch") emulation::fail_call_for_memory(1);
  });
  EXPECT_EQ(trained("short", notes), expected);
  emulation::before_calls({});
  emulation::fail_call(0);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], testing::StartsWith("cuda:emulated: cudaGraphLaunch of "));
}

TEST_F(EmulatedTraining, step_transfers_little_and_waits_once) {
  const TrainRecipe recipe = short_recipe("auto");
  emulation::fence_host_off(true);
  struct Counts {
    std::int64_t up, down, waits, memory;
  };
  std::vector<Counts> counts;
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress&) {
    counts.push_back({emulation::bytes_to_device(), emulation::bytes_to_host(),
                      emulation::calls_of("cudaStreamSynchronize"), emulation::memory_in_use()});
  };
  TrainOptions options;
  options.device = kEmulated;
  options.directory = directory("run");
  options.stop_after_step = 4;
  train(recipe, counting, options, callbacks);
  emulation::fence_host_off(false);
  ASSERT_EQ(counts.size(), 4u);
  const std::int64_t rows = recipe.batch_tokens;
  const std::int64_t sums =
      (ParameterLayout(recipe.model).n + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock;
  for (std::size_t i = 1; i < counts.size(); i++) {
    // Token, target, weight, position and attention span of a row; its index in the groups by token.
    EXPECT_LE(counts[i].up - counts[i - 1].up, rows * (4 * 4 + 16 + 4) + 4 * 65);
    EXPECT_EQ(counts[i].down - counts[i - 1].down, 4 * rows + 8 * sums);
    EXPECT_EQ(counts[i].waits - counts[i - 1].waits, 1);
    EXPECT_EQ(counts[i].memory, counts[0].memory) << "a step must not allocate memory";
  }
}

TEST_F(EmulatedTraining, probe_decodes_on_the_training_device) {
  fs::create_directories(directory_);
  std::ofstream(directory("small.json"))
      << R"({"name": "small", "mixture": {"arith": {"weight": 1}}, "model": {"layers": 1, "dim": 32,
      "hidden_dim": 64, "heads": 1, "max_seq_len": 512}, "context": 64, "batch_tokens": 128,
      "tokens": 200, "peak_lr": 0.01, "probe_minutes": 1e-9, "probe_problems": 2})";
  const auto trained_on = [&](const std::string& device) {
    const std::int64_t before = emulation::calls_of("cudaStreamCreateWithFlags");
    TrainRequest request;
    request.recipe = directory("small.json");
    request.tokenizer = assets_folder() + "/models/demo-target";
    request.out = directory("on " + device);
    request.n_threads = 1;
    request.device = device;
    int n_probes = 0;
    TrainCallbacks callbacks;
    callbacks.progress = [&](const TrainProgress& p) { n_probes += !p.probes.empty(); };
    EXPECT_TRUE(train_model(request, callbacks).finished);
    EXPECT_GT(n_probes, 0);
    EXPECT_EQ(emulation::calls_of("cudaStreamCreateWithFlags") - before,
              device == "cpu" ? 0 : 1 + n_probes);
  };
  trained_on("cpu");
  trained_on(kEmulated);
}

// Batches differ in the number of groups by token, the only parameter of a step's graph that changes.
TEST_F(EmulatedTraining, consecutive_steps_use_the_same_graph) {
  struct Counts {
    std::int64_t made, updated, kernels;
  };
  std::vector<Counts> counts;
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress&) {
    counts.push_back({emulation::calls_of("cudaGraphInstantiateWithFlags"),
                      emulation::calls_of("cudaGraphExecKernelNodeSetParams"),
                      emulation::calls_of("cudaLaunchKernel")});
  };
  TrainOptions options;
  options.device = kEmulated;
  options.directory = directory("run");
  options.stop_after_step = 7;
  train(short_recipe("auto"), counting, options, callbacks);
  ASSERT_GE(counts.size(), 6u);
  counts.pop_back();  // after the last step the weights are fetched
  for (std::size_t i = 3; i < counts.size(); i++) {
    EXPECT_EQ(counts[i].made, counts[i - 1].made) << "step " << i + 1;
    EXPECT_LE(counts[i].updated - counts[i - 1].updated, 1) << "step " << i + 1;
    EXPECT_EQ(counts[i].kernels, counts[i - 1].kernels) << "step " << i + 1;
  }
}

TEST_F(EmulatedTraining, failed_calls_leak_nothing) {
  expect_every_call_to_end_in_one_line([&] { return one_step(); });
}

TEST_F(EmulatedTraining, refused_allocations_name_size_and_purpose) {
  EXPECT_THAT(
      expect_every_allocation_to_be_named([&] { return one_step(); }),
      testing::UnorderedElementsAre(
          "the losses of a training step", "the constants of AdamW", "the weights in training",
          "the moments of the weights", "the weights' gradient", "the weights in bf16",
          "positions and attention spans of a pass", "gradients within a layer", "logits",
          "the logits' gradient", "activations kept for a layer's backward",
          "the rows of a training pass", "the table of positions", "a step's working memory"));
}

TEST_F(EmulatedTraining, missing_devices_are_refused_before_writing) {
  for (const char* device : {"cuda:99", "cuda:x", "tpu"}) {
    TrainOptions options;
    options.device = device;
    options.directory = directory("run");
    try {
      train(small_recipe("f32"), counting, options, {});
      FAIL() << device;
    } catch (const Error& e) {
      const bool is_a_gpu = std::string_view(device).starts_with("cuda:");
      EXPECT_EQ(e.code(), is_a_gpu ? ErrorCode::Device : ErrorCode::Usage) << device;
      EXPECT_THAT(e.what(), testing::HasSubstr("decoscope devices"));
      EXPECT_THAT(e.what(), testing::Not(testing::HasSubstr("\n")));
    }
    EXPECT_FALSE(fs::exists(directory("run")));
  }
}

TEST(GpuCompute, names_map_between_cpu_and_gpu) {
  EXPECT_EQ(gpu_compute_named("f32"), Compute::F32Cuda);
  EXPECT_EQ(gpu_compute_named("f32-cuda"), Compute::F32Cuda);
  for (const char* name : {"auto", "bf16-amx", "bf16-onednn", "bf16-cuda"})
    EXPECT_EQ(gpu_compute_named(name), Compute::Bf16Cuda);
  const ModelConfig model = test::small_model();
  EXPECT_EQ(compute_named("f32-cuda", model), Compute::F32);
  EXPECT_EQ(compute_named("bf16-cuda", model), compute_named("auto", model));
}

}  // namespace
}  // namespace engine
