// Prompts whose whole blocks are prefilled by cuBLAS (CUDA_PROMPTS=cublas), on every available CUDA
// device: equal sequences have equal bits however they were prefilled, and every decoder gives the
// output of plain decoding after them (T1, T2).
#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "engine/decode/step/prefill_blocks.h"
#include "engine/decode/step/prompt_caches.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/support/decode/catalogue.h"
#include "tests/support/gpu_here.h"
#include "tests/support/in_environment.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

namespace emulation = kernels::emulation;
using testing::HasSubstr;

constexpr int kBlock = 256;

/// A cache that reports how many positions were prefilled in blocks.
struct PrefilledCache final : SequenceCache {
  explicit PrefilledCache(int n) : n_blocks(n) {}
  int length() const override { return 2000; }
  int n_in_blocks() const override { return n_blocks; }
  void commit(std::span<const int>) override {}
  void truncate(int) override {}
  std::unique_ptr<SequenceCache> fork() const override { return nullptr; }
  int n_blocks;
};

TEST(PromptBlocks, a_cache_is_reused_where_its_block_layout_matches) {
  struct Case {
    int n_in_blocks, n, n_positions, reusable;
  };
  const Case all[] = {
      {0, 200, 255, 200},    // no block in either
      {0, 200, 256, 0},      // prefilled as steps, a block is needed
      {256, 300, 511, 300},  // a block and steps in both
      {256, 300, 512, 256},  // two blocks are needed
      {256, 200, 400, 0},    // the sequences differ within the first block
      {768, 700, 900, 512},  // and within the third
      {768, 800, 600, 512},  // the third must come as steps
      {600, 600, 600, 512},  // a cache truncated within a block
      {600, 700, 900, 512},  // and continued
      {1024, 1024, 1024, 1024},
  };
  for (const auto& [n_in_blocks, n, n_positions, reusable] : all)
    EXPECT_EQ(n_reusable_positions(PrefilledCache(n_in_blocks), n, n_positions, kBlock), reusable)
        << n_in_blocks << " " << n << " " << n_positions;
  EXPECT_EQ(n_reusable_positions(PrefilledCache(0), 77, 900, 0), 77) << "a device without blocks";
}

TEST(PromptBlocks, a_prompt_is_split_into_whole_blocks_and_a_rest) {
  const auto pieces = [](int done, int n_positions, int max_rows, int block) {
    std::vector<int> rows;  // negative: rows of blocks
    while (done < n_positions) {
      const auto [n, in_blocks] = next_prefill_chunk(done, n_positions, max_rows, block);
      rows.push_back(in_blocks ? -n : n);
      done += n;
    }
    return rows;
  };
  EXPECT_EQ(pieces(0, 1300, 256, kBlock), (std::vector<int>{-1024, -256, 20}));
  EXPECT_EQ(pieces(256, 600, 256, kBlock), (std::vector<int>{-256, 88}));
  EXPECT_EQ(pieces(0, 600, 60, kBlock), (std::vector<int>{-256, -256, 60, 28}));
  EXPECT_EQ(pieces(260, 300, 256, kBlock), (std::vector<int>{40}));
  EXPECT_EQ(pieces(0, 600, 256, 0), (std::vector<int>{256, 256, 88}));
}

std::vector<TokenId> text_of(int n_tokens, std::uint64_t seed = 3) {
  Dice dice(seed);
  return dice.text(n_tokens, tiny_config().vocab_size);
}

/// A config for long sequences, wide enough that a step's sums have two parts and another order
/// than a block's.
ModelConfig long_config() {
  ModelConfig config = tiny_config();
  config.dim = 72;
  config.head_dim = 18;
  config.hidden_dim = 100;
  config.max_seq_len = 1400;
  return config;
}

/// A model that prefills in blocks, with a draft and heads.
struct BlockModels {
  BlockModels(const std::string& device_name, kernels::DType dtype, const char* prompts = "cublas")
      : asked("CUDA_PROMPTS", prompts), device(kernels::open_cuda(device_name)) {
    ModelConfig config = long_config();
    model = tiny_transformer(*device, dtype, 11, config);
    config.n_layers = 1;
    draft = tiny_transformer(*device, dtype, 11, config);
    files.config = long_config();
    files.tensors = random_tensors(files.config, 11);
    const HeadsOptions options{
        .dtype = dtype, .vocab_size = model->vocab_size(), .max_seq_len = model->max_seq_len()};
    medusa = load_medusa(*device, random_heads_for(files.config, HeadsKind::Medusa), options);
    chimera =
        load_chimera(*device, random_heads_for(files.config, HeadsKind::Chimera), files, options);
  }
  DraftHeads* heads(const std::string& decoder) const {
    if (decoder == "medusa") return medusa.get();
    return decoder == "chimera" ? chimera.get() : nullptr;
  }

  const InEnvironment asked;
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<Model> model, draft;
  ModelFiles files;
  std::unique_ptr<DraftHeads> medusa, chimera;
};

BlockModels& models_on(const std::string& device, kernels::DType dtype) {
  static std::map<std::pair<std::string, kernels::DType>, std::unique_ptr<BlockModels>> all;
  emulation::fence_host_off(false);
  auto& one = all[{device, dtype}];
  if (!one) one = std::make_unique<BlockModels>(device, dtype);
  return *one;
}

/// Keys and values of all layers.
std::vector<float> bits_of(const Model& model, const SequenceCache& cache) {
  std::vector<float> all, k, v;
  for (int layer = 0; layer < model.config().n_layers; layer++) {
    model.read_cache(cache, layer, k, v);
    all.insert(all.end(), k.begin(), k.end());
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

Sequence read_at_once(Model& model, const std::vector<TokenId>& tokens, int max_rows = 256) {
  Sequence sequence(tokens, model.make_cache());
  prefill(model, sequence, max_rows);
  return sequence;
}

struct BlocksCase {
  std::string device;
  kernels::DType dtype;
};
std::string name_of_case(const testing::TestParamInfo<BlocksCase>& info) {
  return (info.param.device == "cuda:emulated" ? "cuda_emulated_"
                                               : "cuda_" + info.param.device.substr(5) + "_") +
         kernels::name_of(info.param.dtype);
}
std::vector<BlocksCase> cases() {
  std::vector<BlocksCase> all;
  for (const std::string& device : kernels::test::cuda_devices_here())
    for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16})
      all.push_back({device, dtype});
  return all;
}

class PromptBits : public testing::TestWithParam<BlocksCase> {
 protected:
  /// The cache of a prompt with these tokens, prefilled alone and at once.
  const std::vector<float>& fresh(const std::vector<TokenId>& tokens) {
    auto& bits = fresh_[tokens];
    if (bits.empty()) bits = bits_of(model, read_at_once(model, tokens).cache());
    return bits;
  }
  void expect_fresh(const Sequence& found, const std::string& how) {
    const std::vector<TokenId> tokens(found.tokens().begin(), found.tokens().end());
    ASSERT_EQ(found.cache().length() + 1, std::ssize(tokens)) << how;
    EXPECT_TRUE(bits_of(model, found.cache()) == fresh(tokens))
        << how << ", " << found.cache().length() << " positions";
  }

  BlockModels& on = models_on(GetParam().device, GetParam().dtype);
  Model& model = *on.model;
  std::map<std::vector<TokenId>, std::vector<float>> fresh_;
};

TEST_P(PromptBits, do_not_depend_on_the_chunk_size) {
  ASSERT_EQ(model.prompt_block(), kBlock);
  for (const int n_positions : {255, 256, 257, 511, 512, 600}) {
    const auto tokens = text_of(n_positions + 1);
    for (const int max_rows : {1000, 100})
      expect_fresh(read_at_once(model, tokens, max_rows), "in pieces");
    EXPECT_EQ(read_at_once(model, tokens).cache().n_in_blocks(), n_positions / kBlock * kBlock);
  }
}

TEST_P(PromptBits, do_not_depend_on_earlier_prompts) {
  const auto tokens = text_of(701);
  const auto first = [&](int n) {
    return std::vector<TokenId>(tokens.begin(), tokens.begin() + n);
  };
  for (const int n_before : {100, 300, 513, 701}) {
    const Sequence before = read_at_once(model, first(n_before));
    for (const int n : {256, 257, 300, 514, 701}) {
      auto wanted = first(n);
      PromptCaches caches(model, 2);
      expect_fresh(caches.read(wanted, &before), "after " + std::to_string(n_before) + " tokens");
      wanted.back() = (wanted.back() + 1) % 24;
      wanted[wanted.size() - 30] =
          (wanted[wanted.size() - 30] + 1) % 24;  // the sequences differ from there
      expect_fresh(caches.read(wanted), "differing from cached prompts");
    }
  }
}

// A dialogue: each answer becomes part of the next prompt, across the end of a block.
TEST_P(PromptBits, are_equal_after_decoded_answers) {
  Job job;
  job.limits.max_tokens = 30;
  auto prompt = text_of(240);
  PromptCaches caches(model, 1);
  Sequence text = caches.read(prompt);
  for (int turn = 0; turn < 3; turn++) {
    engine::Lane lane = start(model, prompt, job);
    lane.sequence = text.fork();
    Stepper stepper(model, nullptr);
    engine::Lane* const one = &lane;
    while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
    const Sequence asked = lane.sequence.restarted(text_of(turn == 1 ? 230 : 7, 20));
    prompt.assign(asked.tokens().begin(), asked.tokens().end());
    text = caches.read(prompt, &asked);
    expect_fresh(text, "turn " + std::to_string(turn));
    Sequence again = asked.fork();  // without the prompt caches
    prefill(model, again);
    expect_fresh(again, "from the answer itself");
    const auto shorter = lane.sequence.shortened(lane.sequence.tokens().size() - 9);
    Sequence cut = shorter.restarted();
    prefill(model, cut);
    expect_fresh(cut, "from a part of the answer");
  }
}

TEST_P(PromptBits, do_not_depend_on_other_sequences) {
  const auto tokens = text_of(513), other = text_of(257, 9);
  Sequence first(tokens, model.make_cache()), second(other, model.make_cache());
  const TokenTree chains[] = {chain_tree({tokens.begin(), tokens.end() - 1}),
                              chain_tree({other.begin(), other.end() - 1})};
  BatchItem items[2];
  Sequence* const texts[] = {&first, &second};
  for (int i = 0; i < 2; i++) {
    items[i].cache = &texts[i]->cache();
    items[i].tree = &chains[i];
    items[i].pick_rows = false;
    items[i].in_blocks = true;
  }
  model.forward(items, {});
  for (int i = 0; i < 2; i++) {
    std::vector<int> path(chains[i].token.size());
    std::iota(path.begin(), path.end(), 0);
    texts[i]->cache().commit(path);
  }
  expect_fresh(first, "first in a batch");
  expect_fresh(second, "second in a batch");
}

TEST_P(PromptBits, are_close_to_those_without_blocks) {
  const BlockModels steps(GetParam().device, GetParam().dtype, "own");
  ASSERT_EQ(steps.model->prompt_block(), 0);
  const auto tokens = text_of(400);
  const auto own = bits_of(*steps.model, read_at_once(*steps.model, tokens).cache());
  const auto& found = fresh(tokens);  // 256 of them in a block
  ASSERT_EQ(found.size(), own.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < own.size(); i++) {
    difference += std::abs(double{found[i]} - own[i]);
    size += std::abs(double{own[i]});
  }
  // Sums run in another order; in 16 bits a value may be rounded to its neighbour, at most 2^-8
  // away.
  EXPECT_LT(difference, (GetParam().dtype == kernels::DType::F32 ? 1e-5 : 4e-3) * size);
  if (GetParam().dtype == kernels::DType::F32) {
    EXPECT_GT(difference, 0);
  }
}

TEST_P(PromptBits, partial_or_misplaced_blocks_are_refused) {
  const auto tokens = text_of(300);
  const auto fed = [&](int n, SequenceCache& cache) {
    const TokenTree chain = chain_tree({tokens.begin(), tokens.begin() + n});
    BatchItem item{.cache = &cache, .tree = &chain};
    item.prefix = std::span(tokens).first(static_cast<std::size_t>(cache.length()));
    item.pick_rows = false;
    item.in_blocks = true;
    model.forward(std::span(&item, 1), {});
  };
  const auto cache = model.make_cache();
  EXPECT_THROW(fed(255, *cache), ContractError);
  Sequence behind(std::vector<TokenId>(tokens.begin(), tokens.begin() + 11), model.make_cache());
  prefill(model, behind);
  EXPECT_THROW(fed(256, behind.cache()), ContractError);
}

INSTANTIATE_TEST_SUITE_P(Devices, PromptBits, testing::ValuesIn(cases()), name_of_case);

class PromptDecoders : public testing::TestWithParam<BlocksCase> {};

// Plain decoding starts from its own prefill, the other decoders from one that shares a part with
// another prompt.
TEST_P(PromptDecoders, are_bit_identical_to_plain_decoding) {
  BlockModels& on = models_on(GetParam().device, GetParam().dtype);
  const auto all = text_of(600);
  const Sequence known = read_at_once(*on.model, {all.begin(), all.begin() + 300});
  const bool halves = GetParam().dtype != kernels::DType::F32;
  for (const float temperature : {0.0f, 0.8f}) {
    for (const int n_positions : {255, 256, 257, 511, 512}) {
      if (temperature > 0 && n_positions % 2 == 0) continue;
      if (!halves && (temperature > 0 || n_positions != 511)) continue;
      const std::vector<TokenId> prompt(all.begin(), all.begin() + n_positions + 1);
      PromptCaches caches(*on.model, 1);
      const Sequence shared = caches.read(prompt, &known);
      const Sequence own = read_at_once(*on.model, prompt);
      Outcome ar;
      for (Job job : plain_settings()) {
        job.limits.max_tokens = 6;
        job.sampling.temperature = temperature;
        job.draft = on.draft.get();
        job.heads = on.heads(job.decoder);
        const Outcome found = run_from(*on.model, job.decoder == "ar" ? own : shared, job);
        if (job.decoder == "ar") ar = found;
        ASSERT_EQ(found.tokens, ar.tokens) << described(job) << " after " << n_positions;
        ASSERT_EQ(scores_of(found), scores_of(ar)) << described(job) << " after " << n_positions;
      }
      EXPECT_EQ(ar.tokens.size(), 6u);
    }
  }
}

// A draft model's proposals depend on its prompt, not on other sequences.
TEST_P(PromptDecoders, drafts_do_not_depend_on_the_drafts_prefill) {
  BlockModels& on = models_on(GetParam().device, GetParam().dtype);
  const auto all = text_of(600);
  const std::vector<Job> jobs = plain_settings();
  const auto speculative = std::ranges::find(jobs, "speculative", &Job::decoder);
  ASSERT_NE(speculative, jobs.end());
  Job job = *speculative;
  job.limits.max_tokens = 12;
  job.draft = on.draft.get();
  const std::vector<TokenId> prompt(all.begin(), all.begin() + 513);
  const Outcome alone = run(*on.model, prompt, job);
  PromptCaches drafts(*on.draft, 2);
  for (const int n_before : {300, 400, 600}) {
    drafts.read(std::vector<TokenId>(all.begin(), all.begin() + n_before));
    engine::Lane lane = make_lane(1, *on.model, prompt, job.decoder,
                                  {.target = *on.model,
                                   .sampling = job.sampling,
                                   .limits = job.limits,
                                   .draft_model = job.draft,
                                   .draft_prompts = &drafts},
                                  job.options);
    prefill(*on.model, lane.sequence);
    lane.decoder->begin(lane.sequence);
    EventList events;
    Stepper stepper(*on.model, &events);
    engine::Lane* const one = &lane;
    while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
    EXPECT_EQ(lane.n_accepted, alone.n_accepted);
    EXPECT_EQ(trace_of(events.events), trace_of(alone.events));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PromptDecoders, testing::ValuesIn(cases()), name_of_case);

/// Loads a model and prefills a prompt of one block; the i-th CUDA call of the prefill fails, or
/// none (0).
struct FailingPrefill {
  std::vector<float> bits;
  std::string message, failed;  // empty: no error
  std::int64_t n_calls = 0;
};
FailingPrefill read_once(std::int64_t failing, bool for_memory) {
  FailingPrefill read;
  const InEnvironment asked("CUDA_PROMPTS", "cublas");
  {
    const auto device = kernels::open_cuda("cuda:emulated");
    const auto model = [&] {
      ModelConfig config = tiny_config();
      config.max_seq_len = 300;
      return tiny_transformer(*device, kernels::DType::BF16, 11, config);
    }();
    Sequence sequence(text_of(kBlock + 1), model->make_cache());
    if (for_memory)
      emulation::fail_call_for_memory(failing);
    else
      emulation::fail_call(failing);
    try {
      prefill(*model, sequence);
      read.failed = emulation::failed_call();
      read.n_calls = emulation::fail_call(0);
      read.bits = bits_of(*model, sequence.cache());
    } catch (const Error& error) {
      read.message = error.what();
      EXPECT_TRUE(error.code() == ErrorCode::Device || error.code() == ErrorCode::Resources);
    }
    if (read.failed.empty()) read.failed = emulation::failed_call();
    emulation::fail_call(0);
  }
  emulation::forget_faults();  // after the device is closed and has freed its memory
  for (const std::string& note : kernels::take_notes_of_closed()) read.message += note;
  return read;
}

// CU19.
TEST(PromptFaults, each_failing_call_in_a_block_is_named_and_recovered) {
  emulation::forget_faults();
  emulation::fence_host_off(false);
  kernels::take_notes_of_closed();
  const std::int64_t in_use = emulation::memory_in_use();
  const FailingPrefill good = read_once(0, false);
  ASSERT_EQ(good.message, "");
  ASSERT_GT(good.n_calls, 40);
  std::set<std::string> named;
  for (const bool for_memory : {false, true}) {
    for (std::int64_t i = 1; i <= good.n_calls; i += for_memory ? 3 : 1) {
      const FailingPrefill read = read_once(i, for_memory);
      SCOPED_TRACE("call " + std::to_string(i) + ", " + read.failed + ": " + read.message);
      EXPECT_NE(read.failed, "");
      EXPECT_EQ(emulation::memory_in_use(), in_use);
      if (read.message.empty()) {
        EXPECT_EQ(read.failed, "cudaMalloc") << "a failed allocation is retried";
        EXPECT_TRUE(read.bits == good.bits);
        continue;
      }
      EXPECT_THAT(read.message, HasSubstr("cuda:emulated: "));
      EXPECT_THAT(read.message, HasSubstr(for_memory ? "cudaErrorMemoryAllocation" : "cudaError"));
      named.insert(read.failed);
    }
  }
  EXPECT_THAT(named, testing::IsSupersetOf({"cudaLaunchKernel", "cudaMemcpyAsync", "cudaFree",
                                            "cudaStreamSynchronize"}));
  EXPECT_TRUE(read_once(0, false).bits == good.bits);
}

}  // namespace
}  // namespace engine::test
