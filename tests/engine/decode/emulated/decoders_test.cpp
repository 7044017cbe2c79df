// Every decoder on the emulated and on every real CUDA device, in every dtype, greedy and coupled:
// tokens and score bits equal those of plain decoding on that device (T1, T2). Tokens are also
// compared with the CPU's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "engine/decode/verify/sampling.h"
#include "engine/model/kv_cache.h"
#include "engine/run/rounds_scheduler.h"
#include "engine/run/scheduler.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/engine/decode/emulated/cuda_calls.h"
#include "tests/engine/decode/emulated/devices.h"
#include "tests/support/assets_folder.h"
#include "tests/support/decode/catalogue.h"
#include "tests/support/gpu_here.h"
#include "tests/support/in_environment.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

TEST(Gpu, decoding_device_opens_or_states_why_not) {
  kernels::test::expect_gpus_that_open();
}

struct CudaCase {
  std::string device;
  kernels::DType dtype;
  float temperature;
  std::size_t setting;  // index into plain_settings()
};

std::vector<CudaCase> all_cases() {
  std::vector<CudaCase> all;
  for (const kernels::CudaDeviceInfo& info : kernels::list_cuda()) {
    if (!info.available) continue;
    for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16})
      for (const float temperature : {0.0f, 0.8f})
        for (std::size_t i = 0; i < plain_settings().size(); i++)
          all.push_back({info.name, dtype, temperature, i});
  }
  return all;
}

std::string name_of_case(const testing::TestParamInfo<CudaCase>& info) {
  const auto& [device, dtype, temperature, setting] = info.param;
  const Job job = plain_settings()[setting];
  std::string name = device + "_" + kernels::name_of(dtype) +
                     (temperature > 0 ? "_coupled_" : "_greedy_") + job.decoder;
  for (const auto& [option, value] : job.options) name += "_" + value;
  for (char& c : name)
    if (c == '-' || c == ':') c = '_';
  return name;
}

class CudaDecoders : public testing::TestWithParam<CudaCase> {};

TEST_P(CudaDecoders, are_bit_identical_to_plain_decoding) {
  const auto& [device, dtype, temperature, setting] = GetParam();
  Loaded& on = on_device(device, dtype);
  for (int i = 0; i < 2; i++) {
    Job job = plain_settings()[setting];
    job.limits.max_tokens = i == 0 ? 50 : 12;  // across the boundary of a page
    job.sampling.temperature = temperature;
    if (temperature > 0) job.sampling.top_k = 12, job.sampling.top_p = 0.95f, job.sampling.seed = 5;
    if (i == 1) job.sampling.repetition_penalty = 1.2f;
    job.draft = &on.draft();
    job.heads = on.heads(job.decoder);
    auto prompt = on.prompt(i);
    for (int more = 7; prompt.size() < 20; more++) {
      const auto behind = on.prompt(more);
      prompt.insert(prompt.end(), behind.begin(), behind.end());
    }
    const Outcome ar = run_ar(on.model(), prompt, job), found = run(on.model(), prompt, job);
    ASSERT_EQ(found.tokens, ar.tokens) << described(job);
    ASSERT_EQ(found.stop, ar.stop) << described(job);
    ASSERT_EQ(scores_of(found), scores_of(ar)) << described(job);
    ASSERT_EQ(logp_of(found), logp_of(ar)) << described(job);
    ASSERT_EQ(found.tokens.size(), static_cast<std::size_t>(job.limits.max_tokens));
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, CudaDecoders, testing::ValuesIn(all_cases()), name_of_case);

std::vector<CudaCase> greedy_halves() {
  std::vector<CudaCase> some;
  for (const CudaCase& one : all_cases())
    if (one.dtype == kernels::DType::BF16 && one.temperature == 0) some.push_back(one);
  return some;
}

class CudaEdges : public testing::TestWithParam<CudaCase> {
 protected:
  Job job(Loaded& on) const {
    Job job = plain_settings()[GetParam().setting];
    job.draft = &on.draft();
    job.heads = on.heads(job.decoder);
    return job;
  }
};

TEST_P(CudaEdges, runs_stop_at_any_eos_or_stop_id) {
  Loaded& on = on_device(GetParam().device, GetParam().dtype);
  Job asked = job(on);
  asked.limits.max_tokens = 12;
  const std::vector<TokenId> prompt = {5};
  const std::vector<TokenId> text = run_ar(on.model(), prompt, asked).tokens;
  ASSERT_EQ(text.size(), 12u);
  for (const TokenId end : std::set<TokenId>(text.begin(), text.end())) {
    asked.limits.eos_ids = {end};
    const Outcome found = run(on.model(), prompt, asked);
    const auto at = std::ranges::find(text, end);
    EXPECT_EQ(found.tokens, std::vector<TokenId>(text.begin(), at + 1)) << described(asked);
    EXPECT_EQ(found.stop, StopReason::Eos);
    Job by_id = asked;
    by_id.limits.ignore_eos = true;
    by_id.limits.stop_ids = {end};
    const Outcome stopped = run(on.model(), prompt, by_id);
    EXPECT_EQ(stopped.tokens, found.tokens) << described(asked);
    EXPECT_EQ(stopped.stop, StopReason::StopId);
  }
}

TEST_P(CudaEdges, runs_stop_at_every_length) {
  Loaded& on = on_device(GetParam().device, GetParam().dtype);
  Job asked = job(on);
  asked.limits.max_tokens = 12;
  const std::vector<TokenId> prompt = {5, 9, 2};
  const std::vector<TokenId> text = run_ar(on.model(), prompt, asked).tokens;
  ASSERT_EQ(text.size(), 12u);
  for (int length = 1; length <= 12; length++) {
    asked.limits.max_tokens = length;
    const Outcome found = run(on.model(), prompt, asked);
    EXPECT_EQ(found.tokens, std::vector<TokenId>(text.begin(), text.begin() + length))
        << described(asked);
    EXPECT_EQ(found.stop, StopReason::Length);
  }
}

// Runs whole kernel sequences in the emulation's three thread orders; the kernels' own tests run
// single kernels.
TEST_P(CudaEdges, any_thread_order_gives_the_same_bits) {
  if (GetParam().device != kEmulated) return;  // only the emulation can choose the order of threads
  Loaded& on = on_device(GetParam().device, GetParam().dtype);
  Job asked = job(on);
  asked.limits.max_tokens = 5;
  const std::vector<TokenId> prompt = {5, 9, 2};
  const Outcome once = run(on.model(), prompt, asked);
  kernels::emulation::check_kernels(kernels::emulation::Watch::Orders);
  const Outcome found = run(on.model(), prompt, asked);
  kernels::emulation::check_kernels(kernels::emulation::Watch::Once);
  EXPECT_EQ(kernels::emulation::fault_text(), "");
  EXPECT_EQ(found.tokens, once.tokens);
  EXPECT_EQ(scores_of(found), scores_of(once));
}
INSTANTIATE_TEST_SUITE_P(Devices, CudaEdges, testing::ValuesIn(greedy_halves()), name_of_case);

std::vector<CudaCase> greedy_bf16_and_f32() {
  std::vector<CudaCase> some;
  for (const CudaCase& one : all_cases())
    if (one.dtype != kernels::DType::F16 && one.temperature == 0) some.push_back(one);
  return some;
}

class CudaEarly : public CudaEdges {};

// CUDA_EARLY lets a kernel start before the previous one has ended. The emulation reports a fault
// if a thread of such a kernel does not wait.
TEST_P(CudaEarly, kernels_give_the_bits_of_serial_launches) {
  Loaded& on = on_device(GetParam().device, GetParam().dtype);
  const auto early_device = [] {
    const InEnvironment early("CUDA_EARLY", "on");
    return kernels::open_cuda(GetParam().device);
  };
  Loaded early({Subject::Kind::Tiny, GetParam().dtype}, 0, {}, early_device());
  const std::int64_t edges = kernels::emulation::calls_of("cudaGraphAddDependencies");
  for (const float temperature : {0.0f, 0.8f}) {
    Job asked = job(on), there = job(early);
    for (Job* one : {&asked, &there}) {
      one->limits.max_tokens = 16;
      one->sampling.temperature = temperature;
      if (temperature > 0) one->sampling.top_k = 12, one->sampling.repetition_penalty = 1.2f;
    }
    const std::vector<TokenId> prompt = {5, 9, 2, 5, 9, 2, 5};
    const Outcome expected = run(on.model(), prompt, asked);
    const Outcome found = run(early.model(), prompt, there);
    EXPECT_EQ(kernels::emulation::fault_text(), "");
    EXPECT_EQ(found.tokens, expected.tokens) << described(asked);
    EXPECT_EQ(scores_of(found), scores_of(expected)) << described(asked);
  }
  if (GetParam().device != kEmulated) return;
  EXPECT_GT(kernels::emulation::calls_of("cudaGraphAddDependencies"), edges)
      << "no kernel started early";
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaEarly,
                         testing::ValuesIn(greedy_bf16_and_f32()),
                         name_of_case);

/// Decoders on a device with options other than the defaults.
class CudaSettings : public testing::TestWithParam<std::string> {
 protected:
  /// Expects the bits of plain decoding, greedy or coupled.
  static void expect_plain(Loaded& on, Job job, int i) {
    job.limits.max_tokens = 20;
    job.sampling = {.temperature = i % 2 ? 0.8f : 0, .seed = static_cast<std::uint64_t>(i)};
    job.draft = &on.draft();
    job.heads = on.heads(job.decoder);
    const std::vector<TokenId> prompt = on.prompt(i);
    const Outcome ar = run_ar(on.model(), prompt, job), found = run(on.model(), prompt, job);
    ASSERT_EQ(found.tokens, ar.tokens) << described(job);
    EXPECT_EQ(found.stop, ar.stop) << described(job);
    ASSERT_EQ(scores_of(found), scores_of(ar)) << described(job);
  }
};

TEST_P(CudaSettings, extreme_settings_equal_plain_decoding) {
  Loaded& on = on_device(GetParam(), kernels::DType::BF16);
  const std::vector<Job> settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); i++)
    expect_plain(on, settings[i], static_cast<int>(i));
}

TEST_P(CudaSettings, random_settings_equal_plain_decoding) {
  Loaded& on = on_device(GetParam(), kernels::DType::F16);
  Dice dice(41);
  for (int i = 0; i < 40; i++) expect_plain(on, random_job(dice, &on.draft()), i);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaSettings,
                         testing::ValuesIn(kernels::test::cuda_devices_here()),
                         kernels::test::name_of_device);

// The device sums in another order than the CPU, so bits differ, but in f32 both choose the same
// tokens.
TEST(EmulatedGpuBesideTheCpu, chooses_the_cpus_tokens_in_f32) {
  Loaded& gpu = on_device(kEmulated, kernels::DType::F32);
  Loaded cpu(Subject{Subject::Kind::Tiny, kernels::DType::F32});
  for (int i = 0; i < 4; i++) {
    Job job;
    job.limits.max_tokens = 60;
    job.sampling.temperature = i % 2 ? 0.7f : 0.0f;
    job.sampling.seed = static_cast<std::uint64_t>(i);
    const Outcome there = run_ar(gpu.model(), gpu.prompt(i), job);
    const Outcome here = run_ar(cpu.model(), cpu.prompt(i), job);
    EXPECT_EQ(there.tokens, here.tokens) << "prompt " << i;
  }
}

// With length-dependent rope, keys equal the CPU's up to rounding, and decoders equal plain
// decoding.
TEST(EmulatedRope, length_dependent_rope_equals_the_cpus) {
  const auto cpu = kernels::open_cpu(2), gpu = kernels::open_cuda(kEmulated);
  ModelConfig config = tiny_config();
  config.rope = {.type = RopeConfig::Type::Dynamic, .factor = 4, .original_max_seq_len = 40};
  const auto here = tiny_transformer(*cpu, kernels::DType::F32, 11, config);
  const auto there = tiny_transformer(*gpu, kernels::DType::F32, 11, config);
  Dice dice(2);
  for (const int n_prompt : {30, 70, 90}) {
    const auto prompt = dice.text(n_prompt, 24);
    std::vector<float> k[2], v[2];
    int i = 0;
    for (Model* model : {here.get(), there.get()}) {
      Sequence sequence(prompt, model->make_cache());
      prefill(*model, sequence, 32);
      model->read_cache(sequence.cache(), 0, k[i], v[i]);
      i++;
    }
    ASSERT_EQ(k[0].size(), k[1].size());
    // Keys are at most about 10, summed over 32 products in another order.
    for (std::size_t at = 0; at < k[0].size(); at++) EXPECT_NEAR(k[0][at], k[1][at], 1e-4);
    for (const char* decoder : {"jacobi", "lookahead"}) {
      Job job;
      job.decoder = decoder;
      job.limits.max_tokens = 24;
      const Outcome found = run(*there, prompt, job), ar = run_ar(*there, prompt, job);
      EXPECT_EQ(found.tokens, ar.tokens) << decoder << " " << n_prompt;
      EXPECT_EQ(scores_of(found), scores_of(ar)) << decoder << " " << n_prompt;
    }
  }
}

TEST(EmulatedSeed, several_streams_give_plain_decoding_output) {
  kernels::emulation::fence_host_off(false);
  ModelStore store(assets_folder(), 1);
  const ModelRequest wanted{.device = kEmulated};
  for (const char* overlap : {"auto", "always"}) {
    const RunModels models = models_for(store, wanted, {}, "seed", {{"overlap", overlap}});
    EXPECT_NE(&models.target.model->device(), &models.draft->model->device());
    std::vector<CompletionRequest> requests(2);
    for (std::size_t i = 0; i < requests.size(); i++) {
      RunRequest& run = requests[i].run;
      run.prompt_tokens = {1, 70 + static_cast<TokenId>(i), 81};
      run.decoder = "seed";
      run.max_tokens = 6;
    }
    auto plain = requests;
    for (CompletionRequest& one : plain) one.run.decoder = "ar";
    const auto alone = BatchScheduler(models, 1).run(plain, {});
    for (const int n_drafters : {1, 2}) {  // each draft model has a stream of its own
      const auto found =
          RoundsScheduler(
              models,
              {.n_branches = 2, .n_together = 2, .overlap = overlap, .n_drafters = n_drafters})
              .run(requests, {});
      for (std::size_t i = 0; i < requests.size(); i++)
        EXPECT_EQ(found[i].result.tokens, alone[i].result.tokens) << i << overlap << n_drafters;
    }
  }
}

// With rejection sampling the target's stream reads distributions that a draft's stream has written,
// while drafts for other sequences are computed.
TEST(EmulatedSeed, rejection_output_equals_each_sequence_alone) {
  kernels::emulation::fence_host_off(false);
  ModelStore store(assets_folder(), 1);
  const RunModels models =
      models_for(store, {.device = kEmulated}, {}, "seed", {{"overlap", "always"}});
  std::vector<CompletionRequest> requests(3);
  for (std::size_t i = 0; i < requests.size(); i++) {
    RunRequest& run = requests[i].run;
    run.prompt_tokens = {1, 70 + static_cast<TokenId>(i), 81};
    run.decoder = "seed";
    run.options = {{"k_config", "2,1"}};
    run.sampling = {.temperature = 1, .seed = 5 + i, .mode = Sampling::Mode::Rejection};
    run.max_tokens = 6;
  }
  for (const int n_drafters : {1, 3}) {
    const auto found =
        RoundsScheduler(
            models,
            {.n_branches = 3, .n_together = 2, .overlap = "always", .n_drafters = n_drafters})
            .run(requests, {});
    for (std::size_t i = 0; i < requests.size(); i++)
      EXPECT_EQ(found[i].result.tokens, run_to_end(models, requests[i].run, 1, nullptr).tokens)
          << i << " " << n_drafters;
  }
}

// Lookahead ranks on one GPU: each has its own device object, weights and pages.
TEST(EmulatedRanks, give_the_bits_and_steps_of_one_rank) {
  kernels::emulation::fence_host_off(false);
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    Loaded first({Subject::Kind::Tiny, dtype}, 0, {}, kernels::open_cuda(kEmulated));
    const auto device = kernels::open_cuda(kEmulated);
    const auto second = tiny_transformer(*device, dtype, 11);
    std::mutex at_work;
    Job job;
    job.decoder = "lookahead";
    job.options = {{"window", "3"}, {"ngram_size", "4"}, {"n_guesses", "4"}};
    job.limits.max_tokens = 24;
    for (const float temperature : {0.0f, 0.8f}) {
      job.sampling.temperature = temperature;
      const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7, 1, 3};
      const Outcome ar = run_ar(first.model(), prompt, job),
                    alone = run(first.model(), prompt, job);
      Job shared = job;
      shared.options["ranks"] = "2";
      shared.ranks = {{second.get(), &at_work}};
      const Outcome found = run(first.model(), prompt, shared);
      EXPECT_EQ(found.tokens, ar.tokens);
      EXPECT_EQ(scores_of(found), scores_of(ar));
      EXPECT_EQ(trace_of(found.events), trace_of(alone.events));
      EXPECT_GT(found.counts.at("rank_rows_1"), found.n_steps);
    }
  }
}

TEST(EmulatedRanks, the_store_opens_one_model_per_rank) {
  kernels::emulation::fence_host_off(false);
  ModelStore store(assets_folder(), 1);
  RunRequest request{.decoder = "lookahead", .options = {{"ranks", "2"}}, .max_tokens = 6};
  const RunModels models =
      models_for(store, {.device = kEmulated}, {}, "lookahead", request.options);
  ASSERT_EQ(models.ranks.size(), 1u);
  EXPECT_EQ(models.ranks[0]->model->device().name(), kEmulated);
  EXPECT_NE(&models.ranks[0]->model->device(), &models.target.model->device());
  request.prompt_tokens = {1, 70, 81};
  const RunResult shared = run_to_end(models, request, 1, nullptr);
  request.decoder = "ar", request.options.clear();
  EXPECT_EQ(shared.tokens, run_to_end(models, request, 2, nullptr).tokens);
}

// Zeros appended to every width change no bit on the device either.
TEST(EmulatedGpuScaled, a_model_scaled_by_four_gives_the_same_bits) {
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16}) {
    const auto device = kernels::open_cuda(kEmulated);
    const auto plain = tiny_transformer(*device, dtype, 11);
    const auto wide = tiny_transformer(*device, dtype, 11, tiny_config(), {4, 2});
    Job job;
    job.limits.max_tokens = 12;
    const Outcome expected = run_ar(*plain, {3, 7, 1, 9}, job);
    const Outcome found = run_ar(*wide, {3, 7, 1, 9}, job);
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(scores_of(found), scores_of(expected));
  }
}

}  // namespace
}  // namespace engine::test
