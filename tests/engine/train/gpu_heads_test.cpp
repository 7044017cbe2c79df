// Training of draft heads on every available CUDA device (always the emulated one), compared with the
// CPU: gradients, ranks, resumed runs, changes of the device, failing calls.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/checkpoint/model_files.h"
#include "engine/train/heads/steps.h"
#include "engine/train/heads/trainer.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/engine/train/gpu_devices.h"
#include "tests/engine/train/small_heads.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_runs.h"

namespace engine {
namespace {

namespace emulation = kernels::emulation;
using kernels::DeviceBuffer;
using kernels::DType;
using kernels::test::cuda_devices_here;
using kernels::test::name_of_device;
using test::Heads;
using test::kEmulated;
using test::kVocab;
using test::random_text;
using test::small_heads;
using test::Text;

struct Form {
  const char* name;
  HeadsConfig config;
};

/// Heads of every form of pass.
std::vector<Form> forms() {
  std::vector<Form> all;
  const auto add = [&](const char* name, HeadsKind kind) -> HeadsConfig& {
    all.push_back({name, small_heads(kind)});
    return all.back().config;
  };
  add("medusa", HeadsKind::Medusa);
  add("medusa of two layers", HeadsKind::Medusa).n_layers = 2;
  add("chimera", HeadsKind::Chimera);
  add("chimera that sees no committed grams", HeadsKind::Chimera).sees_committed_grams = false;
  HeadsConfig& five = add("chimera of 5-grams without the state", HeadsKind::Chimera);
  five.gram = 5;
  five.residual = false;
  add("chimera with an embedding of its own", HeadsKind::Chimera).own_embedding = true;
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera})
    add("with half of the target's output", kind) = test::small_heads_on_target(kind, true);
  return all;
}

/// Two texts, and one between them without targets.
struct ThreeTexts {
  Text a = random_text(11, 3, 1), none = random_text(6, 5, 3), b = random_text(9, 5, 2);
  std::vector<HeadsText> read() const { return {a.read(), none.read(), b.read()}; }
};

HeadsLoss counts() {
  return {.of_head = {0.1f, 0.08f, 0.064f}, .of_feature = 0.002f};
}

struct Found {
  std::vector<float> gradient;
  std::vector<double> loss;  // of each head
  double squares = 0;
};

Found cpu_gradient(const HeadsConfig& config,
                   const std::vector<HeadsText>& texts,
                   const HeadsLoss& loss) {
  Heads heads(config);
  heads.disturb();
  Found found;
  const HeadsSums sums = heads.sums_of(texts, loss, found.gradient);
  found.loss = sums.loss;
  found.squares = sums.feature;
  return found;
}

/// A pass on a device, and the weights there.
struct Pass {
  Pass(const std::string& name, const HeadsConfig& config, DType type)
      : device(kernels::open_cuda(name)), heads(config) {
    heads.disturb();
    copy = std::make_unique<test::GpuCopy>(*device, heads.parameters, type);
    embedding = DeviceBuffer(*device, 4 * std::ssize(heads.embedding), "a test");
    device->ops().upload(*device, embedding.data(), heads.embedding.data(), embedding.bytes());
    output = std::make_unique<test::GpuCopy>(*device, heads.output, type);
    pass = make_heads_pass({*device, kernels::train_kernels(*device), type}, config,
                           {embedding.f32(), output->weights()}, 128);
  }
  std::unique_ptr<kernels::Device> device;
  Heads heads;
  std::unique_ptr<test::GpuCopy> copy, output;
  DeviceBuffer embedding;
  std::unique_ptr<HeadsPass> pass;
};

/// @param passes  the passes whose gradients are summed
Found gpu_gradient(const std::string& name,
                   const HeadsConfig& config,
                   DType type,
                   const std::vector<std::vector<HeadsText>>& passes,
                   const HeadsLoss& loss) {
  const Pass on(name, config, type);
  std::int64_t n_rows = 0;
  for (const auto& texts : passes)
    for (const HeadsText& text : texts) n_rows += text.n_places(0);
  const auto& kernels = kernels::train_kernels(*on.device);
  const DeviceBuffer gradient(*on.device, 4 * std::ssize(on.heads.parameters), "a test"),
      losses(*on.device, 8 * config.n_heads * n_rows, "a test");
  kernels.clear(*on.device, gradient.data(), gradient.bytes());
  kernels.clear(*on.device, losses.data(), losses.bytes());
  HeadsLosses there{
      .loss = losses.f32(), .squares = losses.f32() + config.n_heads * n_rows, .n_rows = n_rows};
  for (const auto& texts : passes) {
    const test::RankedTexts ranked(texts, config);
    on.pass->forward_backward(on.copy->weights(), ranked.read(), loss, gradient.f32(), there);
    for (const HeadsText& text : texts) there.first += text.n_places(0);
  }
  Found found{std::vector<float>(on.heads.parameters.size()), {}, 0};
  std::vector<float> rows(static_cast<std::size_t>(2 * config.n_heads * n_rows));
  on.device->ops().download(*on.device, found.gradient.data(), gradient.data(), gradient.bytes());
  on.device->ops().download(*on.device, rows.data(), losses.data(), losses.bytes());
  const float* row = rows.data();
  for (int head = 0; head < config.n_heads; head++) {
    found.loss.push_back(0);
    for (std::int64_t i = 0; i < n_rows; i++) found.loss.back() += *row++;
  }
  for (; row < rows.data() + rows.size(); row++) found.squares += *row;
  return found;
}

/// In each part of the weights, the norm of the differences is at most `share` of the part's norm; twice
/// that for norms and biases, whose gradients are sums over rows that cancel.
void expect_close(const HeadsConfig& config,
                  const Found& found,
                  const Found& expected,
                  double share) {
  for (const NamedPart& part : HeadsLayout(config).parts) {
    std::int64_t n = 1;
    for (const std::int64_t d : part.shape) n *= d;
    const double allowed = part.shape.size() == 1 ? 2 * share : share;
    double difference = 0, size = 0;
    for (auto i = static_cast<std::size_t>(part.at); i < static_cast<std::size_t>(part.at + n);
         i++) {
      difference += std::pow(static_cast<double>(found.gradient[i]) - expected.gradient[i], 2);
      size += std::pow(static_cast<double>(expected.gradient[i]), 2);
    }
    EXPECT_GT(size, 0) << part.name << ": nothing to compare";
    EXPECT_LT(std::sqrt(difference), allowed * std::sqrt(size)) << part.name;
  }
  for (std::size_t k = 0; k < expected.loss.size(); k++)
    EXPECT_NEAR(found.loss[k], expected.loss[k], share * expected.loss[k]) << "head " << k;
  EXPECT_NEAR(found.squares, expected.squares, share * expected.squares);
}

class GpuHeadsGradient : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuHeadsGradient,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

// Sums of some dozen terms in another order: 1e-6; through a block and back it stays below 1e-5.
TEST_P(GpuHeadsGradient, f32_gradients_and_losses_match_the_cpu) {
  const ThreeTexts texts;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Found expected = cpu_gradient(form.config, texts.read(), counts());
    const Found found = gpu_gradient(GetParam(), form.config, DType::F32, {texts.read()}, counts());
    expect_close(form.config, found, expected, 1e-5);
  }
}

// Rounding to 8 bits has a relative error of at most 2^-9, some twenty times in a row.
TEST_P(GpuHeadsGradient, bf16_gradients_match_f32_within_rounding) {
  const ThreeTexts texts;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Found expected = cpu_gradient(form.config, texts.read(), counts());
    const Found found =
        gpu_gradient(GetParam(), form.config, DType::BF16, {texts.read()}, counts());
    expect_close(form.config, found, expected, 20 * 0x1p-9);
  }
}

TEST_P(GpuHeadsGradient, two_passes_add_up) {
  const ThreeTexts texts;
  const std::vector<HeadsText> all = texts.read();
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Found whole = gpu_gradient(GetParam(), form.config, DType::F32, {all}, counts());
    const Found parts =
        gpu_gradient(GetParam(), form.config, DType::F32, {{all[0]}, {all[1], all[2]}}, counts());
    expect_close(form.config, parts, whole, 1e-5);
  }
}

TEST_P(GpuHeadsGradient, self_fed_gradient_matches_the_cpu) {
  const ThreeTexts texts;
  HeadsLoss fed = counts();
  fed.self_fed = true;
  for (const int gram : {1, 3}) {
    HeadsConfig config = small_heads(HeadsKind::Chimera);
    config.gram = gram;
    config.own_embedding = true;
    const Found expected = cpu_gradient(config, texts.read(), fed);
    const Found found = gpu_gradient(GetParam(), config, DType::F32, {texts.read()}, fed);
    expect_close(config, found, expected, 1e-5);
    const Found taught = cpu_gradient(config, texts.read(), counts());
    EXPECT_EQ(taught.loss[0], expected.loss[0]);
    EXPECT_NE(taught.loss[1], expected.loss[1]) << "the guesses equal the text's tokens";
  }
}

TEST_P(GpuHeadsGradient, ranks_of_targets_match_the_cpu) {
  const ThreeTexts texts;
  const int n_valid = kVocab - 5;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    Pass on(GetParam(), form.config, DType::F32);
    const test::RankedTexts ranked(texts.read(), form.config);
    for (const bool self_fed : {false, true}) {
      MeasuredRanks expected(form.config.n_heads), found(form.config.n_heads);
      on.heads.pass->rank(on.heads.weights(), ranked.read(), n_valid, self_fed, expected);
      on.pass->rank(on.copy->weights(), ranked.read(), n_valid, self_fed, found);
      EXPECT_EQ(found.all.n, expected.all.n);
      EXPECT_EQ(found.all.hits, expected.all.hits);
      EXPECT_EQ(found.after_right.hits, expected.after_right.hits);
    }
  }
}

// ---- whole runs

/// Trains heads for a random target with a vocabulary of 64 tokens, on random texts instead of its outputs.
class GpuHeadsTraining : public test::TrainingFolder,
                         public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    TrainingFolder::SetUp();
    ModelFiles files;
    files.path = files.name = "small";
    files.config = test::small_model(2);
    files.tensors = random_tensors(files.config, 7);
    model_ = Model::load(*cpu_, files, {.dtype = DType::F32, .scale = {}});
    embedding_ = f32_of(files.tensors->read("model.embed_tokens.weight"));
  }
  TrainOptions on(const std::string& device, const std::string& folder) const {
    TrainOptions options;
    options.n_threads = 1;
    options.device = device;
    options.directory = directory(folder);
    return options;
  }
  /// Eight steps.
  static HeadsRecipe recipe(HeadsKind kind, const std::string& compute) {
    HeadsRecipe r;
    r.name = "small";
    r.kind = kind;
    r.outputs.mixture = R"({"arith": {"weight": 1}})";
    r.outputs.count = 6;
    r.heads = 2;
    r.gram = 2;
    r.batch_texts = 3;
    r.peak_lr = 0.01;
    r.warmup_steps = 2;
    r.epochs = 4;
    r.probe_steps = 3;
    r.shards = 1;
    r.compute = compute;
    return r;
  }
  static std::vector<OwnOutput> texts(int n, int first) {
    std::vector<OwnOutput> all;
    for (int i = first; i < first + n; i++) {
      const TokenText counted = test::counting(i);
      OwnOutput text;
      text.tokens = counted.tokens;
      text.n_prompt = counted.n_prompt;
      all.push_back(std::move(text));
    }
    return all;
  }
  HeadsResult trained(const HeadsRecipe& recipe,
                      const TrainOptions& options,
                      const TrainCallbacks& callbacks = {}) {
    const HeadsData data{.target = *model_,
                         .output = embedding_,
                         .embedding = embedding_,
                         .texts = texts(6, 0),
                         .probes = texts(4, 20)};
    return train_heads(recipe, heads_config(recipe, model_->config()), data, options, callbacks);
  }
  /// The progress of each step.
  std::vector<TrainProgress> steps_of(const HeadsRecipe& recipe, const TrainOptions& options) {
    std::vector<TrainProgress> all;
    TrainCallbacks callbacks;
    callbacks.progress = [&](const TrainProgress& p) { all.push_back(p); };
    trained(recipe, options, callbacks);
    return all;
  }

  std::unique_ptr<kernels::Device> cpu_ = kernels::open_cpu(1);
  std::unique_ptr<Model> model_;
  std::vector<float> embedding_;
};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuHeadsTraining,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

constexpr HeadsKind kBoth[] = {HeadsKind::Medusa, HeadsKind::Chimera};

TEST_P(GpuHeadsTraining, follows_the_cpu_step_by_step) {
  for (const HeadsKind kind : kBoth) {
    HeadsRecipe r = recipe(kind, "f32");
    const std::string name = name_of(kind);
    const auto expected = steps_of(r, on("cpu", name + " cpu"));
    ASSERT_GT(expected.size(), 5u);
    EXPECT_LT(expected.back().loss, expected.front().loss - 0.1) << "the loss hardly falls";
    for (const char* compute : {"f32", "auto"}) {
      SCOPED_TRACE(name + ", " + compute);
      r.compute = compute;
      // AdamW divides small gradients by their size, so rounding grows from step to step.
      const double share = r.compute == "f32" ? 1e-4 : 0.03;
      const auto found = steps_of(r, on(GetParam(), name + " " + compute));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); i++) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens);
        EXPECT_NEAR(found[i].loss, expected[i].loss, share * expected[i].loss) << "step " << i + 1;
        EXPECT_NEAR(found[i].gradient_norm, expected[i].gradient_norm,
                    2 * share * expected[i].gradient_norm);
        ASSERT_EQ(found[i].losses.size(), expected[i].losses.size());
        for (std::size_t k = 0; k < found[i].losses.size(); k++)
          EXPECT_NEAR(found[i].losses[k].second, expected[i].losses[k].second,
                      share * expected[i].losses[k].second)
              << found[i].losses[k].first;
        EXPECT_EQ(found[i].probes.size(), expected[i].probes.size());
      }
    }
  }
}

TEST_P(GpuHeadsTraining, resumed_run_ends_with_the_same_bits) {
  for (const HeadsKind kind : kBoth) {
    for (const std::string compute : {"f32", "auto"}) {
      const HeadsRecipe r = recipe(kind, compute);
      const std::string name = name_of(kind) + (" " + compute);
      SCOPED_TRACE(name);
      const HeadsResult expected = trained(r, on(GetParam(), "whole " + name));
      EXPECT_EQ(expected.compute, compute == "f32" ? "f32-cuda" : "bf16-cuda");
      EXPECT_TRUE(expected.finished);
      TrainOptions parts = on(GetParam(), "parts " + name);
      parts.resume = true;
      for (const int step : {1, 4, 0}) {
        parts.stop_after_step = step;
        const HeadsResult result = trained(r, parts);
        EXPECT_EQ(result.finished, step == 0);
        if (step > 0) continue;
        EXPECT_EQ(result.parameters, expected.parameters);
        EXPECT_EQ(result.ranks.all.hits, expected.ranks.all.hits);
      }
    }
  }
}

TEST_P(GpuHeadsTraining, cpu_and_gpu_resume_each_others_checkpoints) {
  for (const HeadsKind kind : kBoth) {
    const HeadsRecipe r = recipe(kind, "f32");
    SCOPED_TRACE(name_of(kind));
    const HeadsResult expected = trained(r, on("cpu", std::string("cpu ") + name_of(kind)));
    TrainOptions options = on("cpu", std::string("both ") + name_of(kind));
    options.stop_after_step = 2;
    EXPECT_FALSE(trained(r, options).finished);
    options.resume = true;
    options.device = GetParam();
    options.stop_after_step = 5;
    EXPECT_EQ(trained(r, options).compute, "f32-cuda");
    options.device = "cpu";
    options.stop_after_step = 0;
    const HeadsResult result = trained(r, options);
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.compute, "f32");
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_LT(test::relative_distance(result.parameters, expected.parameters), 1e-3);
  }
}

// ---- single steps on every device, including the CPU

std::vector<std::string> all_devices() {
  std::vector<std::string> names = cuda_devices_here();
  names.insert(names.begin(), "cpu");
  return names;
}
std::string name_of_any(const testing::TestParamInfo<std::string>& info) {
  return info.param == "cpu" ? "cpu" : name_of_device(info);
}

class HeadsStepsOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, HeadsStepsOn, testing::ValuesIn(all_devices()), name_of_any);

/// Weights, moments and steps on a device of this name.
struct Steps {
  Steps(const std::string& device, const HeadsConfig& of, int n_texts = 3, int longest_places = 10)
      : heads(of),
        gpu(open_training_device(device)),
        optimizer({}, runs_of(heads.layout.parts, heads.layout.n), train_table()) {
    heads.disturb();
    const HeadsRunShape shape{.config = heads.config,
                              .embedding = heads.embedding,
                              .output = heads.output,
                              .longest_rows = 64,
                              .batch_texts = n_texts,
                              .longest_places = longest_places};
    const TrainPlace place{gpu ? Compute::F32Cuda : Compute::F32, workers, 1, gpu.get()};
    steps = std::make_unique<HeadsSteps>(shape, place, TrainState{heads.parameters, optimizer});
  }
  double update(const HeadsLoss& loss, std::int64_t step) {
    HeadsSums sums(heads.config.n_heads);
    const double norm = steps->update(texts.read(), loss, step, 0.01, sums);
    steps->weights().fetch();
    return norm;
  }
  ThreeTexts texts;
  Heads heads;
  std::unique_ptr<kernels::Device> gpu;  // null: the CPU
  Workers workers{1};
  Optimizer optimizer;
  std::unique_ptr<HeadsSteps> steps;
};

TEST_P(HeadsStepsOn, non_finite_gradient_changes_nothing) {
  for (const HeadsKind kind : kBoth) {
    Steps plain(GetParam(), small_heads(kind)), odd(GetParam(), small_heads(kind));
    HeadsLoss infinite = counts();
    infinite.of_head[1] = std::numeric_limits<float>::infinity();
    const std::vector<float> before = odd.heads.parameters;
    for (int i = 0; i < 2; i++) EXPECT_TRUE(std::isnan(odd.update(infinite, 1)));
    EXPECT_EQ(odd.heads.parameters, before);
    EXPECT_EQ(odd.optimizer.mean, std::vector<float>(before.size()));
    EXPECT_EQ(odd.optimizer.square, std::vector<float>(before.size()));
    for (int step = 1; step <= 2; step++) {
      EXPECT_EQ(odd.update(counts(), step), plain.update(counts(), step));
      EXPECT_EQ(odd.heads.parameters, plain.heads.parameters)
          << "the skipped step affects a later gradient";
    }
    EXPECT_NE(odd.heads.parameters, before);
  }
}

class GpuHeadsSteps : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices,
                         GpuHeadsSteps,
                         testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

TEST_P(GpuHeadsSteps, step_of_two_passes_matches_the_cpu) {
  HeadsConfig config = small_heads(HeadsKind::Medusa);
  config.n_heads = 1;
  std::vector<Text> written;
  for (std::uint64_t i = 0; i < 140; i++) written.push_back(random_text(63, 2, i));
  std::vector<HeadsText> texts;
  for (const Text& text : written) texts.push_back(text.read());
  ASSERT_GT(texts.size() * static_cast<std::size_t>(texts[0].n_places(0)), 8192u);
  const HeadsLoss loss{.of_head = {1.0f / 8400}};
  const auto found = [&](const std::string& device) {
    Steps on(device, config, 140, 60);
    HeadsSums sums(1);
    const double norm = on.steps->update(texts, loss, 1, 0.01, sums);
    EXPECT_EQ(sums.n[0], 8400);
    return std::pair(norm, sums.loss[0]);
  };
  const auto [norm, sum] = found(GetParam());
  const auto [norm_expected, sum_expected] = found("cpu");
  EXPECT_NEAR(sum, sum_expected, 1e-5 * sum_expected);
  EXPECT_NEAR(norm, norm_expected, 1e-4 * norm_expected);
}

// ---- counts of the emulation

TEST(EmulatedHeadsTraining, step_transfers_losses_and_waits_once) {
  for (const HeadsKind kind : kBoth) {
    emulation::fence_host_off(true);
    Steps on(kEmulated, small_heads(kind));
    HeadsSums sums(3);
    const std::vector<HeadsText> texts = on.texts.read();
    std::int64_t n_places = 0;
    for (const HeadsText& text : texts) n_places += text.n_places(0);
    const std::int64_t n_squares =
        (on.heads.layout.n + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock;
    on.steps->update(texts, counts(), 1, 0.01, sums);
    for (int step = 2; step <= 4; step++) {
      const std::int64_t down = emulation::bytes_to_host(),
                         waits = emulation::calls_of("cudaStreamSynchronize"),
                         memory = emulation::memory_in_use();
      on.steps->update(texts, counts(), step, 0.01, sums);
      EXPECT_EQ(emulation::bytes_to_host() - down,
                4 * 3 * n_places * (kind == HeadsKind::Chimera ? 2 : 1) + 8 * n_squares);
      EXPECT_EQ(emulation::calls_of("cudaStreamSynchronize") - waits, 1);
      EXPECT_EQ(emulation::memory_in_use(), memory) << "a step must not allocate memory";
    }
    emulation::fence_host_off(false);
  }
}

/// Opens the device, makes one step of two heads, counts ranks, and returns the weights.
std::vector<float> one_step_of(HeadsKind kind) {
  HeadsConfig config = small_heads(kind);
  config.n_heads = 2;
  Steps on(kEmulated, config);
  MeasuredRanks ranks(2);
  on.update(counts(), 1);
  on.steps->rank(on.texts.read(), kVocab, false, ranks);
  return on.heads.parameters;
}

TEST(EmulatedHeadsTraining, failed_calls_leak_nothing) {
  for (const HeadsKind kind : kBoth)
    test::expect_every_call_to_end_in_one_line([&] { return one_step_of(kind); });
}

TEST(EmulatedHeadsTraining, refused_allocations_are_named) {
  for (const HeadsKind kind : kBoth) {
    const std::set<std::string> purposes =
        test::expect_every_allocation_to_be_named([&] { return one_step_of(kind); });
    EXPECT_THAT(purposes, testing::IsSupersetOf(
                              {"the rows of draft heads", "the target's hidden states", "logits",
                               "the weights in training", "a step's working memory"}));
    EXPECT_EQ(purposes.contains("the k-grams of draft heads"), kind == HeadsKind::Chimera);
  }
}

}  // namespace
}  // namespace engine
