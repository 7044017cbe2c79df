// Decoders emit and report the same whether distributions stay on a CUDA device or the host
// computes them from logits.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "engine/decode/verify/sampling.h"
#include "tests/engine/decode/emulated/cuda_calls.h"
#include "tests/engine/decode/emulated/devices.h"
#include "tests/support/models/random_models.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

/// Uniforms that claim to depend on the distributions they are compared with, so all distributions
/// are copied to the host.
class LateUniforms final : public PhiloxUniforms {
 public:
  using PhiloxUniforms::PhiloxUniforms;
  bool is_threshold_independent() const override { return false; }
};

/// Every decoder that samples by rejection or typical acceptance, with the options that affect
/// verification.
std::vector<Job> verified_settings() {
  std::vector<Job> jobs;
  const auto add = [&](const char* decoder, const OptionValues& options) {
    Job job;
    job.decoder = decoder;
    job.options = options;
    jobs.push_back(job);
  };
  add("ar", {});
  add("prompt-lookup", {});
  add("recycling", {});
  add("suffix", {});
  add("suffix", {{"n_tokens", "12"}, {"factor", "4"}, {"min_p", "0"}});
  add("lookahead", {{"window", "3"}, {"ngram_size", "4"}, {"n_guesses", "4"}});
  for (const char* merge : {"true", "false"})
    add("lookahead", {{"window", "2"}, {"ngram_size", "4"}, {"bonus", "false"}, {"merge", merge}});
  add("speculative", {{"gamma", "3"}});
  add("speculative", {{"gamma", "5"}, {"stop_below", "0.3"}});
  add("speculative", {{"draft_temperature", "0"}});
  for (const char* rule : {"without", "with", "kseq", "naive"}) {
    add("mcsd", {{"k_config", "3,2,1"}, {"rule", rule}});
    for (const char* as_released : {"false", "true"})
      add("mcsd", {{"k_config", "2,2"},
                   {"rule", rule},
                   {"draft_temperature", "0"},
                   {"as_released", as_released}});
  }
  add("mcsd", {{"k_config", "4,2"}, {"draft_top_k", "2"}});  // fewer candidates than requested
  add("seed", {{"k_config", "2,1"}});
  for (const char* decoder : {"medusa", "chimera"})
    for (const char* verify : {"greedy", "sample", "typical"})
      add(decoder, {{"tree", "rows8"}, {"verify", verify}});
  for (const char* root : {"typical", "sample"})
    add("medusa", {{"tree", "rows8"}, {"verify", "typical"}, {"root", root}});
  return jobs;
}

std::vector<Sampling> samplings() {
  using enum Sampling::Mode;
  return {{.temperature = 1, .seed = 3, .mode = Rejection},
          {.temperature = 0.7f, .top_k = 9, .seed = 4, .mode = Rejection},
          {.temperature = 1, .top_p = 0.9f, .seed = 5, .mode = Rejection},
          {.temperature = 0.7f,
           .min_p = 0.05f,
           .repetition_penalty = 1.3f,
           .seed = 6,
           .mode = Rejection}};
}

struct DistributionsCase {
  std::string device;
  std::size_t setting;
};
std::vector<DistributionsCase> distributions_cases() {
  std::vector<DistributionsCase> all;
  for (const kernels::CudaDeviceInfo& info : kernels::list_cuda())
    for (std::size_t i = 0; info.available && i < verified_settings().size(); i++)
      all.push_back({info.name, i});
  return all;
}
std::string name_of_distributions_case(const testing::TestParamInfo<DistributionsCase>& info) {
  const Job job = verified_settings()[info.param.setting];
  std::string name = info.param.device + "_" + job.decoder;
  for (const auto& [option, value] : job.options) name += "_" + option + "_" + value;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name + "_" + std::to_string(info.param.setting);
}

class CudaDistributionsStay : public testing::TestWithParam<DistributionsCase> {
 protected:
  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); i++) EXPECT_NEAR(found[i], expected[i], 1e-6f) << i;
  }
  /// Expects both runs to report the same verifications, including all distributions.
  static void expect_same_reports(const Outcome& found, const Outcome& expected) {
    ASSERT_EQ(found.events.size(), expected.events.size());
    for (std::size_t i = 0; i < found.events.size(); i++) {
      const auto* a = std::get_if<Verified>(&found.events[i]);
      const auto* b = std::get_if<Verified>(&expected.events[i]);
      ASSERT_EQ(a == nullptr, b == nullptr);
      if (!a) continue;
      SCOPED_TRACE("step " + std::to_string(a->step));
      EXPECT_EQ(a->fate, b->fate);
      EXPECT_EQ(a->picked, b->picked);
      expect_near(a->logp, b->logp);
      expect_near(a->p, b->p);
      EXPECT_EQ(a->uniform, b->uniform);
      expect_near(a->keep, b->keep);
      EXPECT_EQ(a->last_uniform, b->last_uniform);
      ASSERT_EQ(a->rejection_details.size(), b->rejection_details.size());
      for (std::size_t w = 0; w < a->rejection_details.size(); w++) {
        EXPECT_EQ(a->rejection_details[w].row, b->rejection_details[w].row);
        EXPECT_EQ(a->rejection_details[w].token, b->rejection_details[w].token);
        expect_near(a->rejection_details[w].p, b->rejection_details[w].p);
        expect_near(a->rejection_details[w].q, b->rejection_details[w].q);
        expect_near(a->rejection_details[w].residual, b->rejection_details[w].residual);
      }
    }
  }
};

TEST_P(CudaDistributionsStay, give_the_results_of_host_distributions) {
  Loaded& on = on_device(GetParam().device, kernels::DType::F32);
  Job job = verified_settings()[GetParam().setting];
  job.limits.max_tokens = 16;
  job.draft = &on.draft();
  job.heads = on.heads(job.decoder);
  job.heads_tree = on.heads_tree(job.decoder);
  int i = 0;
  for (const Sampling& sampling : samplings()) {
    job.sampling = sampling;
    const std::vector<TokenId> prompt = on.prompt(i++);
    const Outcome found = run(on.model(), prompt, job);
    Job here = job;
    LateUniforms late(sampling.seed);
    here.uniforms = &late;
    const Outcome expected = run(on.model(), prompt, here);
    ASSERT_EQ(found.tokens, expected.tokens) << described(job);
    EXPECT_EQ(found.stop, expected.stop);
    expect_same_reports(found, expected);
    if (i > 1) continue;
    // Without a recorder the tokens are the same.
    Lane unseen = start(on.model(), prompt, job);
    Lane* const lanes[] = {&unseen};
    while (!unseen.sequence.finished()) Stepper(on.model(), nullptr).step(lanes);
    const auto written = unseen.sequence.generated();
    EXPECT_EQ(std::vector(written.begin(), written.end()), expected.tokens) << described(job);
  }
}
INSTANTIATE_TEST_SUITE_P(Settings,
                         CudaDistributionsStay,
                         testing::ValuesIn(distributions_cases()),
                         name_of_distributions_case);

TEST(EmulatedDistributions, typical_acceptance_is_equal_coupled_and_greedy) {
  Loaded& on = on_device(kEmulated, kernels::DType::F32);
  for (const char* root : {"argmax", "typical", "sample"}) {
    for (const float temperature : {0.0f, 0.9f}) {
      Job job;
      job.decoder = "medusa";
      job.options = {{"tree", "rows8"}, {"verify", "typical"}, {"root", root}};
      job.limits.max_tokens = 16;
      job.sampling = {.temperature = temperature, .top_k = 12, .seed = 8};
      job.heads = on.heads(job.decoder);
      const Outcome found = run(on.model(), on.prompt(0), job);
      LateUniforms late(job.sampling.seed);
      job.uniforms = &late;
      const Outcome expected = run(on.model(), on.prompt(0), job);
      EXPECT_EQ(found.tokens, expected.tokens) << described(job);
      EXPECT_EQ(scores_of(found).size(), scores_of(expected).size());
      for (std::size_t i = 0; i < scores_of(found).size(); i++)
        EXPECT_NEAR(scores_of(found)[i], scores_of(expected)[i], 1e-5f) << described(job);
    }
  }
}

/// Steps all lanes together until all have ended. @return the tokens of each
std::vector<std::vector<TokenId>> decode_together(LanguageModel& model, std::vector<Lane> lanes) {
  Stepper stepper(model, nullptr);
  for (;;) {
    std::vector<Lane*> going;
    for (Lane& lane : lanes)
      if (!lane.sequence.finished()) going.push_back(&lane);
    if (going.empty()) break;
    stepper.step(going);
  }
  std::vector<std::vector<TokenId>> written;
  for (const Lane& lane : lanes) {
    const auto tokens = lane.sequence.generated();
    written.emplace_back(tokens.begin(), tokens.end());
  }
  return written;
}

// Some lanes keep their distributions on the device, one copies them to the host, one decodes
// greedily.
TEST(EmulatedDistributions, batched_sequences_equal_each_alone) {
  Loaded& on = on_device(kEmulated, kernels::DType::BF16);
  LateUniforms late(9);
  std::vector<Job> jobs(5);
  const char* decoders[] = {"mcsd", "speculative", "ar", "prompt-lookup", "speculative"};
  for (std::size_t i = 0; i < jobs.size(); i++) {
    jobs[i].decoder = decoders[i];
    jobs[i].limits.max_tokens = 16;
    jobs[i].draft = &on.draft();
    jobs[i].sampling = {
        .temperature = i == 2 ? 0.0f : 1, .seed = 9 + i, .mode = Sampling::Mode::Rejection};
  }
  jobs[4].sampling.seed = 9;
  jobs[4].uniforms = &late;
  std::vector<Lane> lanes;
  std::vector<std::vector<TokenId>> alone;
  for (std::size_t i = 0; i < jobs.size(); i++) {
    std::vector<Lane> one;
    one.push_back(start(on.model(), on.prompt(static_cast<int>(i)), jobs[i]));
    alone.push_back(decode_together(on.model(), std::move(one)).front());
    lanes.push_back(start(on.model(), on.prompt(static_cast<int>(i)), jobs[i]));
  }
  EXPECT_EQ(decode_together(on.model(), std::move(lanes)), alone);
}

// With the draft on another device, its distributions and the verification are on the host.
TEST(EmulatedDistributions, a_draft_on_another_device_uses_host_distributions) {
  Loaded& on = on_device(kEmulated, kernels::DType::F32);
  const auto cpu = kernels::open_cpu(1);
  const auto elsewhere = tiny_transformer(*cpu, kernels::DType::F32, 12);
  ASSERT_EQ(elsewhere->distributions_device(), nullptr);
  Job job;
  job.decoder = "mcsd";
  job.limits.max_tokens = 20;
  job.draft = elsewhere.get();
  job.sampling = {.temperature = 1, .seed = 21, .mode = Sampling::Mode::Rejection};
  const Outcome found = run(on.model(), on.prompt(1), job);
  LateUniforms late(job.sampling.seed);
  job.uniforms = &late;
  EXPECT_EQ(found.tokens, run(on.model(), on.prompt(1), job).tokens);
}

// A draft that proposes some tokens has a narrow output matrix. Its distributions are on the host.
TEST(EmulatedDistributions, a_draft_of_some_tokens_equals_the_cpu) {
  Loaded& on = on_device(kEmulated, kernels::DType::F32);
  ModelConfig config = tiny_config();
  config.n_output_tokens = 7;
  ModelFiles files = random_model("some tokens", config, 12).files();
  files.output_tokens = {0, 1, 4, 9, 15, 16, 23};
  const LoadOptions f32{.dtype = kernels::DType::F32};
  const auto cpu = kernels::open_cpu(1);
  const auto stream = kernels::open_cuda(kEmulated);
  const auto there = Model::load(*stream, files, f32);
  const auto here = Model::load(*cpu, files, f32);
  EXPECT_EQ(there->distributions_device(), nullptr);
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const float temperature : {0.0f, 0.9f}) {
      for (const char* decoder : {"speculative", "mcsd"}) {
        Job job;
        job.decoder = decoder;
        job.limits.max_tokens = 24;
        job.draft = there.get();
        job.sampling = {.temperature = temperature, .seed = 21, .mode = mode};
        const Outcome found = run(on.model(), on.prompt(1), job);
        if (!rejects(job.sampling)) {
          EXPECT_EQ(found.tokens, run_ar(on.model(), on.prompt(1), job).tokens);
        }
        job.draft = here.get();
        const Outcome expected = run(on.model(), on.prompt(1), job);
        EXPECT_EQ(found.tokens, expected.tokens);
        EXPECT_EQ(found.n_accepted, expected.n_accepted);
      }
    }
  }
}

// The draft has a device object of its own on the same GPU, as in SEED.
TEST(EmulatedDistributions, stay_on_the_device_with_a_separate_draft_stream) {
  Loaded& on = on_device(kEmulated, kernels::DType::F32);
  const auto stream = kernels::open_cuda(kEmulated);
  const auto beside = tiny_draft(*stream, kernels::DType::F32, 11);
  Job job;
  job.decoder = "mcsd";
  job.limits.max_tokens = 20;
  job.draft = beside.get();
  job.sampling = {.temperature = 1, .seed = 22, .mode = Sampling::Mode::Rejection};
  const Outcome found = run(on.model(), on.prompt(1), job);
  Lane lane = start(on.model(), on.prompt(1), job);
  Lane* const lanes[] = {&lane};
  Stepper(on.model(), nullptr).step(lanes);
  const VerifyRequest* asked = lane.decoder->verify_request(lane.sequence, lane.tree);
  ASSERT_NE(asked, nullptr);
  EXPECT_NE(asked->nodes[0].q, nullptr);
  LateUniforms late(job.sampling.seed);
  job.uniforms = &late;
  EXPECT_EQ(found.tokens, run(on.model(), on.prompt(1), job).tokens);
}

// Each step overwrites the distributions of the last one, so memory is allocated once, for the
// largest tree.
TEST(EmulatedDistributions, a_repeated_step_size_allocates_nothing) {
  Loaded& on = on_device(kEmulated, kernels::DType::BF16);
  const kernels::Device& device = on.transformer()->device();
  for (const char* decoder : {"ar", "speculative", "mcsd", "medusa"}) {
    for (const bool shown : {false, true}) {
      Job job;
      job.decoder = decoder;
      job.draft = &on.draft();
      job.heads = on.heads(decoder);
      job.limits.max_tokens = 40;
      // No repetition penalty: its history would grow with the sequence.
      job.sampling = {.temperature = 1, .top_k = 9, .seed = 2, .mode = Sampling::Mode::Rejection};
      EventList events;
      Lane lane = start(on.model(), on.prompt(0), job);
      Lane* const lanes[] = {&lane};
      Stepper stepper(on.model(), shown ? &events : nullptr);
      for (int i = 0; !lane.sequence.finished(); i++) {
        const std::int64_t launched = device.n_launches();
        const CudaCalls asked = cuda_calls_of([&] { stepper.step(lanes); });
        EXPECT_TRUE(i < 3 || asked.allocations == 0)
            << decoder << " step " << i << ": " << asked.allocations;
        // The step's kernels are one graph.
        if (i < 3 || decoder != std::string("ar")) continue;
        EXPECT_EQ(device.n_launches() - launched, 1);
      }
    }
  }
}

TEST(EmulatedDistributions, many_runs_leak_no_memory) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto target = tiny_transformer(*device, kernels::DType::BF16, 11);
  const auto draft = tiny_transformer(*device, kernels::DType::BF16, 12);
  std::int64_t free = 0;
  for (int i = 0; i < 8; i++) {
    Job job;
    job.decoder = i % 2 ? "mcsd" : "speculative";
    job.draft = draft.get();
    job.limits.max_tokens = 12;
    job.sampling = {
        .temperature = 1, .seed = static_cast<std::uint64_t>(i), .mode = Sampling::Mode::Rejection};
    run(*target, {3, 7, 1, 9}, job);
    if (i == 1) free = *device->free_bytes();
    EXPECT_TRUE(i < 2 || *device->free_bytes() == free) << "run " << i;
  }
}

TEST(EmulatedDistributions, stay_on_the_device_in_a_sampling_forward) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  TokenTree tree = chain_tree(std::vector<TokenId>{3, 5});
  const auto cache = model->make_cache();
  std::vector<double> distribution(static_cast<std::size_t>(model->vocab_size()));
  const kernels::DeviceBuffer there(*device, std::ssize(distribution) * 8, "a test");
  const DrawRequest request{.uniforms = {0.5, 0.25},
                            .distribution = static_cast<double*>(there.data())};
  BatchItem item{.cache = cache.get(), .tree = &tree};
  item.sampling.temperature = 1;
  item.draw = &request;
  const StepOutput out =
      model->forward(std::span(&item, 1), {.logits = true, .draws = true}).front();
  device->ops().download(*device, distribution.data(), there.data(), std::ssize(distribution) * 8);
  const auto expected = token_distribution(out.logits_of(1), item.sampling, {});
  for (std::size_t v = 0; v < distribution.size(); v++)
    EXPECT_NEAR(distribution[v], expected[v], 1e-14);
  EXPECT_NEAR(out.drawn.largest, std::ranges::max(expected), 1e-14);
  ASSERT_EQ(out.drawn.tokens.size(), 2U);
  EXPECT_EQ(out.drawn.tokens[0].id, draw(expected, 0.5));
  EXPECT_NEAR(out.drawn.tokens[0].p, expected[static_cast<std::size_t>(draw(expected, 0.5))],
              1e-14);
}

}  // namespace
}  // namespace engine::test
