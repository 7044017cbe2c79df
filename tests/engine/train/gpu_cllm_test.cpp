// Consistency training on every available CUDA device (always the emulated one), compared with the CPU:
// gradients of every loss, parts of a step's loss, resumed runs, changes of the device, failing calls,
// and answers that equal decoding on the device.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/decode/step/stepper.h"
#include "engine/model/model.h"
#include "engine/store/weights_hash.h"
#include "engine/train/cllm/train.h"
#include "engine/train/cllm/trainer.h"
#include "engine/train/core/trainer.h"
#include "engine/train/run/own_outputs.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/engine/train/gpu_kit.h"
#include "tests/engine/train/guided_rows.h"
#include "tests/engine/train/small_cllm.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_runs.h"
#include "tests/engine/train/small_target.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
namespace emulation = kernels::emulation;
using kernels::DType;
using kernels::test::cuda_devices_here;
using kernels::test::name_of_device;
using test::all_losses;
using test::cpu_gradient;
using test::expect_close;
using test::Found;
using test::gpu_gradient;
using test::Guided;
using test::kEmulated;
using test::small_cllm_recipe;
using test::small_cllm_training;

// ---- gradients of one pass

class GpuGuided : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuGuided,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

void expect_same_losses(const Found& found, const Found& expected, double share) {
  ASSERT_EQ(found.loss.size(), expected.loss.size());
  for (std::size_t i = 0; i < expected.loss.size(); i++)
    EXPECT_NEAR(found.loss[i], expected.loss[i], share * (1 + expected.loss[i])) << "row " << i;
}

TEST_P(GpuGuided, f32_gradients_of_every_loss_match_the_cpu) {
  const ModelConfig config = test::small_model(2);
  for (const ConsistencyLoss& loss : all_losses()) {
    SCOPED_TRACE(std::to_string(static_cast<int>(loss.towards)) + ", " +
                 std::to_string(static_cast<int>(loss.by)));
    const Guided guided(loss);
    const TrainRows rows = guided.train_rows();
    const Found expected = cpu_gradient(config, rows);
    // The logits of all rows at once, and of a few rows at a time.
    for (const std::int64_t n_rows : {64, 7}) {
      const Found found = gpu_gradient(GetParam(), config, DType::F32, {rows},
                                       {.logit_bytes = n_rows * 4 * config.vocab_size,
                                        .teaches = loss.by != ConsistencyLoss::By::HardLabels});
      expect_close(config, found.gradient, expected.gradient, 1e-5);
      expect_same_losses(found, expected, 1e-5);
    }
  }
}

TEST_P(GpuGuided, frozen_teacher_uses_its_own_weights) {
  const ModelConfig config = test::small_model(2);
  constexpr std::uint64_t kTeacher = 11;
  for (const ConsistencyLoss& loss : all_losses()) {
    if (loss.by == ConsistencyLoss::By::HardLabels) continue;
    const Guided guided(loss);
    const TrainRows rows = guided.train_rows();
    const Found found = gpu_gradient(GetParam(), config, DType::F32, {rows},
                                     {.teaches = true, .teacher_seed = kTeacher});
    const Found itself = gpu_gradient(GetParam(), config, DType::F32, {rows}, {.teaches = true});
    test::CpuLearner frozen(config, Compute::F32, kTeacher);
    const kernels::TrainWeights teacher = frozen.weights();
    const Found expected = cpu_gradient(config, rows, &teacher);
    expect_close(config, found.gradient, expected.gradient, 1e-5);
    expect_same_losses(found, expected, 1e-5);
    EXPECT_NE(found.loss, itself.loss);
  }
}

// Rounding to 8 bits has a relative error of at most 2^-9, some twenty times in a row; a gradient is the
// difference of two distributions, or of a distribution and a label, each with that error.
TEST_P(GpuGuided, bf16_gradients_match_f32_within_rounding) {
  const ModelConfig config = test::small_model(2);
  for (const ConsistencyLoss& loss : all_losses()) {
    const Guided guided(loss);
    const TrainRows rows = guided.train_rows();
    const Found expected = cpu_gradient(config, rows);
    const Found found = gpu_gradient(GetParam(), config, DType::BF16, {rows}, {.teaches = true});
    expect_close(config, found.gradient, expected.gradient, 60 * 0x1p-9);
    expect_same_losses(found, expected, 0.05);
  }
}

TEST_P(GpuGuided, predictions_match_the_cpus_logits) {
  const ModelConfig config = test::small_model(2);
  const Guided guided(all_losses().front());
  const TrainRows rows = guided.train_rows();
  test::CpuLearner learner(config);
  const std::vector<float> logits = learner.logits_of(rows);
  const auto device = kernels::open_cuda(GetParam());
  const test::GpuCopy copy(*device, learner.parameters, DType::F32);
  TrainPass pass({*device, kernels::train_kernels(*device), DType::F32}, config, learner.layout,
                 rows.n_rows(),
                 {.logit_bytes = std::int64_t{7} * 4 * config.vocab_size, .keeps_logits = true});
  const std::vector<TokenId> found = pass.likeliest(copy.weights(), rows);
  ASSERT_EQ(found.size(), rows.token.size());
  for (int row = 0; row < guided.segments[0].end; row++) {
    const auto begin = logits.begin() + std::ptrdiff_t{row} * config.vocab_size;
    EXPECT_EQ(found[static_cast<std::size_t>(row)],
              std::max_element(begin, begin + config.vocab_size) - begin);
  }
}

TEST_P(GpuGuided, rows_with_teachers_need_kept_logits) {
  const ModelConfig config = test::small_model(2);
  const Guided guided(all_losses().front());
  EXPECT_THROW(gpu_gradient(GetParam(), config, DType::F32, {guided.train_rows()}), ContractError);
}

// ---- whole trainings

class GpuCllm : public test::TrainingFolder, public testing::WithParamInterface<std::string> {
 protected:
  CllmOptions in(const std::string& folder) const {
    CllmOptions options;
    options.n_threads = 1;
    options.directory = directory(folder);
    fs::create_directories(options.directory);
    return options;
  }
  static CllmResult trained(const std::string& device,
                            const CllmRecipe& recipe,
                            const CllmOptions& options,
                            const CllmCallbacks& callbacks = {},
                            CllmTraining training = small_cllm_training()) {
    const auto opened = open_training_device(device);
    return train_consistency(recipe, std::move(training), options, callbacks, opened.get());
  }
  /// The progress of the first steps.
  static std::vector<CllmProgress> steps_of(const std::string& device,
                                            const CllmRecipe& recipe,
                                            const CllmOptions& options) {
    std::vector<CllmProgress> all;
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) { all.push_back(p); };
    trained(device, recipe, options, callbacks);
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GpuCllm, testing::ValuesIn(cuda_devices_here()), name_of_device);

void expect_same_steps(const std::vector<CllmProgress>& found,
                       const std::vector<CllmProgress>& expected,
                       double share) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); i++) {
    SCOPED_TRACE("step " + std::to_string(i + 1));
    EXPECT_EQ(found[i].rows, expected[i].rows);
    EXPECT_NEAR(found[i].gradient_norm, expected[i].gradient_norm,
                2 * share * expected[i].gradient_norm);
    for (std::size_t part = 0; part < kLossParts; part++)
      EXPECT_NEAR(found[i].parts[part], expected[i].parts[part],
                  share * (1 + expected[i].parts[part]))
          << name_of(static_cast<LossPart>(part));
  }
}

TEST_P(GpuCllm, follows_the_cpu_by_every_loss) {
  int n = 0;
  for (const std::string more :
       {R"(, "divergence": "forward")", R"(, "divergence": "js")",
        R"(, "divergence": "reverse", "ar_labels": "truth")",
        R"(, "divergence": "hard", "smoothing": 0.05)", R"(, "consistency": "local")",
        R"(, "teacher": "frozen", "ar_weight": 10)", R"(, "lora": {"rank": 8}, "ar_weight": 10)",
        R"(, "fresh_points": 6, "fresh_iterations": 2, "chain_decay": 0.9)"}) {
    SCOPED_TRACE(more);
    CllmRecipe recipe = small_cllm_recipe(more);
    const auto options = [&](const std::string& name) {
      CllmOptions own = in(name + std::to_string(n));
      own.stop_after_step = 4;
      return own;
    };
    const auto expected = steps_of("cpu", recipe, options("cpu"));
    ASSERT_EQ(expected.size(), 4u);
    EXPECT_GT(expected.back().parts[static_cast<int>(LossPart::Consistency)], 0);
    // AdamW divides small gradients by their size, so rounding grows from step to step.
    expect_same_steps(steps_of(GetParam(), recipe, options("f32")), expected, 1e-4);
    recipe.compute = "auto";
    expect_same_steps(steps_of(GetParam(), recipe, options("auto")), expected, 0.03);
    n++;
  }
}

TEST_P(GpuCllm, batch_of_two_passes_matches_the_cpu) {
  CllmRecipe recipe = small_cllm_recipe();
  recipe.batch_texts = 350;  // of about 24 rows; a pass has 8,192
  CllmTraining training = small_cllm_training();
  training.model.n_layers = 1;
  training.model.dim = training.model.hidden_dim = training.model.head_dim = 16;
  training.model.n_heads = training.model.n_kv_heads = 1;
  training.parameters.clear();
  initialise(training.parameters, ParameterLayout(training.model), training.model, 0.02f, 5);
  const auto step = [&](const std::string& device) {
    CllmOptions options = in(device == "cpu" ? "cpu" : "gpu");
    options.stop_after_step = 1;
    std::vector<CllmProgress> all;
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) { all.push_back(p); };
    trained(device, recipe, options, callbacks, training);
    return all;
  };
  const auto expected = step("cpu");
  ASSERT_EQ(expected.size(), 1u);
  EXPECT_GT(expected[0].rows, 8192);
  expect_same_steps(step(GetParam()), expected, 1e-5);
}

TEST_P(GpuCllm, resumed_run_ends_with_the_same_bits) {
  for (const char* compute : {"f32", "auto"}) {
    CllmRecipe recipe =
        small_cllm_recipe(R"(, "fresh_points": 3, "fresh_iterations": 2, "teacher": "frozen")");
    recipe.compute = compute;
    recipe.epochs = 1;
    const CllmResult expected = trained(GetParam(), recipe, in(std::string("whole ") + compute));
    EXPECT_TRUE(expected.finished);
    EXPECT_EQ(expected.compute, std::string(compute) == "f32" ? "f32-cuda" : "bf16-cuda");
    CllmOptions parts = in(std::string("parts ") + compute);
    for (const int step : {1, 3, 0}) {
      parts.stop_after_step = step;
      const CllmResult result = trained(GetParam(), recipe, parts);
      EXPECT_EQ(result.finished, step == 0);
      parts.resume = true;
      if (step == 0) {
        EXPECT_EQ(result.rows, expected.rows);
        EXPECT_EQ(result.room, expected.room);
        EXPECT_EQ(result.parameters, expected.parameters) << compute;
      }
    }
  }
}

TEST_P(GpuCllm, cpu_and_gpu_resume_each_others_checkpoints) {
  CllmRecipe recipe = small_cllm_recipe();
  recipe.epochs = 2;
  const CllmResult expected = trained("cpu", recipe, in("cpu"));
  CllmOptions options = in("both");
  options.stop_after_step = 2;
  EXPECT_FALSE(trained("cpu", recipe, options).finished);
  options.resume = true;
  options.stop_after_step = 6;
  EXPECT_EQ(trained(GetParam(), recipe, options).compute, "f32-cuda");
  options.stop_after_step = 0;
  const CllmResult result = trained("cpu", recipe, options);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.compute, "f32");
  EXPECT_EQ(result.rows, expected.rows);
  EXPECT_LT(test::relative_distance(result.parameters, expected.parameters), 1e-3);
}

TEST_P(GpuCllm, probe_gets_the_current_weights) {
  CllmRecipe recipe = small_cllm_recipe();
  recipe.probe_minutes = 1e-9;
  std::vector<std::vector<float>> seen;
  CllmCallbacks callbacks;
  callbacks.probe = [&](std::int64_t, const std::vector<float>& parameters) -> NamedFigures {
    seen.push_back(parameters);
    return {};
  };
  CllmOptions options = in("probed");
  options.stop_after_step = 3;
  trained(GetParam(), recipe, options, callbacks);
  ASSERT_EQ(seen.size(), 2u) << "after every step but the last";
  options = in("stopped");
  options.stop_after_step = 2;
  EXPECT_EQ(trained(GetParam(), recipe, options).parameters, seen[1]);
}

TEST_P(GpuCllm, five_non_finite_losses_end_the_run) {
  for (const std::string& device : {std::string("cpu"), GetParam()}) {
    CllmTraining training = small_cllm_training();
    training.parameters[5] = INFINITY;
    CllmOptions options = in(device == "cpu" ? "cpu" : "gpu");
    options.stop_after_step = 2;
    std::string notices;
    CllmCallbacks callbacks;
    callbacks.notice = [&](const std::string& text) { notices += text + "\n"; };
    callbacks.progress = [](const CllmProgress&) { ADD_FAILURE() << "no step was taken"; };
    EXPECT_EQ(trained(device, small_cllm_recipe(), options, callbacks, training).parameters,
              training.parameters);
    EXPECT_THAT(notices, testing::HasSubstr("the step is skipped and changes no weight"));
    options.resume = true;
    options.stop_after_step = 0;
    try {
      trained(device, small_cllm_recipe(), options, callbacks, training);
      ADD_FAILURE() << device;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Device);
      EXPECT_THAT(e.what(), testing::HasSubstr("for 5 steps in a row"));
    }
  }
}

class EmulatedCllm : public GpuCllm {
 protected:
  /// Opens the device, makes one step of a model of one layer with a frozen teacher and fresh chains, and
  /// returns the weights.
  std::vector<float> one_step() const {
    CllmRecipe recipe =
        small_cllm_recipe(R"(, "fresh_points": 2, "fresh_iterations": 1, "teacher": "frozen")");
    recipe.compute = "auto";
    recipe.batch_texts = 2;
    CllmTraining training = small_cllm_training();
    training.model.n_layers = 1;
    training.parameters.clear();
    initialise(training.parameters, ParameterLayout(training.model), training.model, 0.02f, 5);
    fs::remove_all(directory_);
    CllmOptions options = in("run");
    options.stop_after_step = 1;
    return trained(GetParam(), recipe, options, {}, training).parameters;
  }
};
INSTANTIATE_TEST_SUITE_P(Emulated, EmulatedCllm, testing::Values(kEmulated), name_of_device);

TEST_P(EmulatedCllm, waits_once_per_step_and_per_iteration) {
  for (const int iterations : {0, 2}) {
    CllmRecipe recipe = small_cllm_recipe(R"(, "fresh_points": 3)");
    recipe.fresh_iterations = iterations;
    struct Counts {
      std::int64_t down, waits, rows;
    };
    std::vector<Counts> counts;
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) {
      counts.push_back(
          {emulation::bytes_to_host(), emulation::calls_of("cudaStreamSynchronize"), p.rows});
    };
    CllmOptions options = in(std::to_string(iterations));
    options.stop_after_step = 5;
    trained(GetParam(), recipe, options, callbacks);
    ASSERT_EQ(counts.size(), 5u);
    const std::int64_t sums =
        (ParameterLayout(test::small_model(2)).n + kernels::kSquaresBlock - 1) /
        kernels::kSquaresBlock;
    for (std::size_t i = 1; i < counts.size(); i++) {
      const std::int64_t rows = counts[i].rows - counts[i - 1].rows;
      // A step may have no chain to refine.
      EXPECT_LE(counts[i].waits - counts[i - 1].waits, 1 + iterations);
      EXPECT_GE(counts[i].waits - counts[i - 1].waits, 1 + (iterations > 0));
      // A step copies the loss of each row, and in passes that refine chains the prediction of each
      // row.
      const std::int64_t picked = counts[i].down - counts[i - 1].down - 4 * rows - 8 * sums;
      EXPECT_GE(picked, 0);
      EXPECT_LE(picked, iterations * rows * std::int64_t{sizeof(kernels::Picked)});
    }
  }
}

TEST_P(EmulatedCllm, failed_calls_give_one_line_and_leak_nothing) {
  test::expect_every_call_to_end_in_one_line([&] { return one_step(); });
}

TEST_P(EmulatedCllm, refused_allocations_name_size_and_purpose) {
  EXPECT_THAT(test::expect_every_allocation_to_be_named([&] { return one_step(); }),
              testing::IsSupersetOf({"frozen weights", "the teachers' logits",
                                     "the rows of a training pass", "logits"}));
}

// ---- all stages on one device: answers, measurements, training and a model directory

class GpuCllmJob : public test::SmallTarget, public testing::WithParamInterface<std::string> {
 protected:
  /// Answers of 12 tokens in blocks of 4, and three steps.
  CllmRequest request(const std::string& name, const std::string& device = GetParam()) const {
    const std::string recipe = path("recipe.json");
    std::ofstream(recipe) << R"({"name": "small-cllm",
      "mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]}}, "block": 4, "prompts": 6,
      "max_new_tokens": 12, "lanes": 4, "drop_wrong": false, "token_run": 0, "sentence_run": 0,
      "points": 2, "batch_texts": 2, "replay_texts": 1, "context": 256, "epochs": 1,
      "peak_lr": 0.01, "warmup_steps": 1, "checkpoint_minutes": 100, "probe_minutes": 0,
      "score_problems": 1, "probe_problems": 1, "compute": "f32", "shards": 1})";
    return {.recipe = recipe,
            .target = target_dir(),
            .assets = {},
            .out = path(name),
            .data = {},
            .n_threads = 1,
            .device = device};
  }
  std::vector<Trajectory> collected(const CllmRequest& request) const {
    TrajectoryFile file(
        request.out + "/trajectories.bin",
        collecting_part(read_cllm_recipe(request.recipe)) + "\n" + weights_hash(files_));
    std::vector<Trajectory> all;
    for (const CollectedText& text : file.texts()) all.push_back(text.trajectory);
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuCllmJob,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

/// Decodes twelve tokens, or fewer if the text ends.
std::vector<TokenId> greedy(Model& model, std::vector<TokenId> prompt) {
  const Limits limits{
      .max_tokens = 12, .max_seq_len = model.max_seq_len(), .eos_ids = model.config().eos_ids};
  Lane lane = make_lane(1, model, std::move(prompt), "ar", {model, {}, limits, {}});
  prefill(model, lane.sequence);
  lane.decoder->begin(lane.sequence);
  Stepper stepper(model, nullptr);
  Lane* const one = &lane;
  while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
  const auto text = lane.sequence.generated();
  return {text.begin(), text.end()};
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {(std::istreambuf_iterator<char>(file)), {}};
}

TEST_P(GpuCllmJob, trajectories_equal_decoding_on_the_device) {
  std::atomic<bool> stop{false};
  CllmRunCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.collecting = [&](const CollectProgress& p) { stop = p.done == p.total; };
  const std::int64_t launched = emulation::calls_of("cudaLaunchKernel");
  const CllmRequest wanted = request("run");
  EXPECT_FALSE(train_cllm(wanted, callbacks).finished);
  if (GetParam() == kEmulated) {  // the device computes; the exact number depends on the answers
    EXPECT_GT(emulation::calls_of("cudaLaunchKernel"), launched + 50);
  }
  const auto opened = kernels::open_cuda(GetParam());
  const auto model = Model::load(*opened, files_, {.dtype = DType::BF16, .scale = {}});
  const std::vector<Trajectory> trajectories = collected(wanted);
  ASSERT_EQ(trajectories.size(), 6u);
  std::map<std::int64_t, Trajectory> alone;
  std::size_t next = 0;
  collect_trajectories(
      *model, {.block = 4, .max_new_tokens = 12, .n_lanes = 1, .eos_ids = files_.config.eos_ids},
      [&](TrajectoryPrompt& prompt) {
        if (next == trajectories.size()) return false;
        prompt.index = trajectories[next].index;
        prompt.tokens = trajectories[next++].prompt;
        return true;
      },
      [&](Trajectory t) { alone.emplace(t.index, std::move(t)); });
  for (const Trajectory& t : trajectories) {
    EXPECT_EQ(t.output, greedy(*model, t.prompt));
    EXPECT_EQ(t.blocks, alone.at(t.index).blocks);
  }
}

TEST_P(GpuCllmJob, own_texts_equal_autoregressive_decoding) {
  const auto opened = kernels::open_cuda(GetParam());
  const auto model = Model::load(*opened, files_, {.dtype = DType::BF16, .scale = {}});
  const std::string file = path("texts");
  EXPECT_TRUE(write_own_outputs({*model, "small", "0123"}, plan(5), file, {}));
  const auto outputs = read_own_outputs(file, plan(5), nullptr);
  ASSERT_EQ(outputs.size(), 5u);
  for (const OwnOutput& output : outputs) {
    const auto written = output.tokens.begin() + output.n_prompt;
    EXPECT_EQ(std::vector<TokenId>(written, output.tokens.end()),
              greedy(*model, {output.tokens.begin(), written}));
  }
}

TEST_P(GpuCllmJob, resume_after_any_stage_writes_the_same_model) {
  std::string notices;
  CllmRunCallbacks callbacks;
  callbacks.notice = [&](const std::string& text) { notices += text + "\n"; };
  const CllmRequest wanted = request("whole");
  const CllmOutcome whole = train_cllm(wanted, callbacks);
  ASSERT_TRUE(whole.finished) << notices;
  EXPECT_EQ(whole.training.compute, "f32-cuda");
  EXPECT_EQ(whole.training.step, 3);
  EXPECT_THAT(notices,
              testing::HasSubstr("trajectories in f32-cuda on " + GetParam() + ", products by "));
  std::atomic<bool> stop{false};
  CllmRunCallbacks stopping;
  stopping.stop = &stop;
  stopping.collecting = [&](const CollectProgress& p) { stop = p.done >= 2; };
  CllmRequest parts = request("parts");
  EXPECT_FALSE(train_cllm(parts, stopping).finished);
  parts.resume = true;
  stop = false;
  stopping.collecting = nullptr;
  stopping.training = [&](const CllmProgress& p) { stop = p.step == 2; };
  EXPECT_EQ(train_cllm(parts, stopping).training.step, 2);
  EXPECT_TRUE(train_cllm(parts, {}).finished);
  const std::string written = bytes_of(wanted.out + "/model.safetensors");
  EXPECT_EQ(bytes_of(parts.out + "/model.safetensors"), written);
  EXPECT_NE(written, bytes_of(target_dir() + "/model.safetensors"));
}

TEST_P(GpuCllmJob, missing_device_is_refused_before_writing) {
  for (const char* device : {"cuda:99", "cuda:x"}) {
    const CllmRequest wanted = request("none", device);
    EXPECT_THROW(train_cllm(wanted, {}), Error);
    EXPECT_FALSE(fs::exists(wanted.out));
  }
}

}  // namespace
}  // namespace engine
