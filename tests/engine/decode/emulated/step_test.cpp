// Steps on the emulated GPU: launches, waits, memory and copied bytes of plain rows, prompts, draft
// heads, batches and the cache.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "engine/decode/draft/drafter.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/gram_cache.h"
#include "engine/model/kv_cache.h"
#include "tests/engine/decode/emulated/cuda_calls.h"
#include "tests/engine/decode/emulated/devices.h"
#include "tests/support/in_environment.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

TEST(EmulatedGpuStep, waits_once_allocates_nothing_and_copies_only_choices) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11);
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  const std::vector<TokenId> draft = {3, 5, 7, 2, 9};
  const TokenTree tree = chain_tree(draft);
  const auto step = [&](Wants wants) {
    return cuda_calls_of([&] {
      lane.forward(tree, wants);
      lane.commit(tree, {0, 1});
    });
  };
  step({.hidden = true, .row_p = true});  // the first step of this size allocates
  for (int i = 0; i < 3; i++) {
    const CudaCalls plain = step({});
    EXPECT_EQ(plain.waits, 1);
    EXPECT_EQ(plain.allocations, 0);
    EXPECT_EQ(plain.to_host, 5 * static_cast<std::int64_t>(sizeof(kernels::Picked)));
    EXPECT_LT(plain.to_device, 1500) << "ids, positions, lists and settings of five rows";
  }
  // Adds one logit for each row that has a parent, and the hidden states of five rows.
  const CudaCalls more = step({.hidden = true, .row_p = true});
  EXPECT_EQ(more.waits, 1);
  EXPECT_EQ(more.allocations, 0);
  EXPECT_EQ(more.to_host, 5 * 24 + 4 * 4 + 5 * model->config().dim * 4);
}

/// The tiny model on its own emulated GPU, with a prompt of 600 tokens.
class EmulatedGpuPrompt : public testing::Test {
 protected:
  static constexpr int kTokens = 600, kChunk = 256, kChunks = 3;
  static std::unique_ptr<Model> longer(kernels::Device& device) {
    ModelConfig config = tiny_config();
    config.max_seq_len = 1024;
    return tiny_transformer(device, kernels::DType::BF16, 11, config);
  }
  static std::vector<TokenId> tokens() {
    std::vector<TokenId> all;
    for (int i = 0; i < kTokens; i++) all.push_back(static_cast<TokenId>(1 + i * 7 % 23));
    return all;
  }
  void TearDown() override { kernels::emulation::forget_faults(); }

  std::unique_ptr<kernels::Device> device_ = kernels::open_cuda(kEmulated);
  std::unique_ptr<Model> model_ = longer(*device_);
  Sequence sequence_{tokens(), model_->make_cache()};
};

TEST_F(EmulatedGpuPrompt, progress_is_reported_after_each_synchronised_chunk) {
  const auto waits = [] { return kernels::emulation::calls_of("cudaStreamSynchronize"); };
  const std::int64_t before = waits();
  std::vector<std::int64_t> waited;
  const CudaCalls asked = cuda_calls_of([&] {
    prefill(*model_, sequence_, kChunk, [&](int, int) {
      waited.push_back(waits() - before);
      return true;
    });
  });
  EXPECT_EQ(waited, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(asked.waits, kChunks);
  EXPECT_EQ(asked.to_host, 0);
  // The first step does not launch leftover work of the prompt.
  const std::int64_t launched = device_->n_launches();
  model_->finish();
  EXPECT_EQ(device_->n_launches(), launched);
}

TEST_F(EmulatedGpuPrompt, a_requested_hidden_state_is_copied_with_the_last_chunk) {
  const auto waits = [] { return kernels::emulation::calls_of("cudaStreamSynchronize"); };
  const std::int64_t before = waits();
  std::vector<std::int64_t> waited;
  const auto report = [&](int, int) {
    waited.push_back(waits() - before);
    return true;
  };
  const CudaCalls asked = cuda_calls_of([&] { prefill(*model_, sequence_, kChunk, report, true); });
  EXPECT_EQ(waited, (std::vector<std::int64_t>{0, 1, 2, 4}));  // also waits for the hidden state
  EXPECT_EQ(asked.to_host, model_->config().dim * 4);
  const std::int64_t launched = device_->n_launches();
  model_->finish();
  EXPECT_EQ(device_->n_launches(), launched);
  // A step at the same position gives the same state.
  TokenTree last;
  last.add(tokens()[kTokens - 2], -1, RowTag{});
  Sequence step = sequence_.shortened(kTokens - 1);
  const BatchItem item{.cache = &step.cache(), .tree = &last, .prefix = step.cached_tokens()};
  const auto state = sequence_.prompt_state();
  EXPECT_EQ(std::vector(state.begin(), state.end()),
            model_->forward(std::span(&item, 1), {.hidden = true}).front().hidden);
}

TEST_F(EmulatedGpuPrompt, a_stopped_prompt_leaves_no_pending_work) {
  std::int64_t launched = 0;
  try {
    prefill(*model_, sequence_, kChunk, [&](int done, int) {
      launched = device_->n_launches();
      return done == 0;
    });
    FAIL() << "expected a cancellation";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
  EXPECT_GT(launched, 0);
  model_->finish();
  EXPECT_EQ(device_->n_launches(), launched);
  EXPECT_EQ(sequence_.cache().length(), kChunk);
  prefill(*model_, sequence_, kChunk);
  EXPECT_EQ(sequence_.cache().length(), kTokens - 1);
}

TEST_F(EmulatedGpuPrompt, a_kernel_fault_in_a_prompt_fails_before_the_first_step) {
  const kernels::DeviceBuffer small(*device_, 64, "a test");
  int reported = 0;
  try {
    prefill(*model_, sequence_, kChunk, [&](int done, int) {
      reported = done;
      if (done == kChunk) device_->ops().add(*device_, small.f32(), small.f32(), 100'000);
      return true;
    });
    FAIL() << "expected a device error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Device);
    EXPECT_NE(std::string(error.what()).find("kernel add"), std::string::npos) << error.what();
  }
  EXPECT_EQ(reported, kChunk);
}

TEST(EmulatedGpuDraft, the_draft_prefills_its_prompt_before_the_step) {
  for (const char* decoder : {"speculative", "chimera"}) {
    Loaded& on = on_device(kEmulated, kernels::DType::F32);
    Job job;
    job.decoder = decoder;
    for (const Job& plain : plain_settings())
      if (plain.decoder == decoder) job = plain;
    job.draft = &on.draft();
    job.heads = on.heads(decoder);
    std::vector<TokenId> prompt;
    for (int i = 0; i < 20; i++) prompt.push_back(static_cast<TokenId>(1 + i * 7 % 23));
    const engine::Lane lane = start(on.model(), prompt, job);
    lane.decoder->read_prompt(lane.sequence);
    const kernels::Device& device = on.transformer()->device();
    const std::int64_t launched = device.n_launches();
    on.model().finish();
    EXPECT_EQ(device.n_launches(), launched) << decoder << ": kernels were still queued";
  }
}

TEST(EmulatedGpuStep, draft_heads_allocate_nothing_for_new_k_grams) {
  Loaded& on = on_device(kEmulated, kernels::DType::BF16);
  auto* heads = dynamic_cast<ChimeraHeads*>(on.heads("chimera"));
  ASSERT_NE(heads, nullptr);
  const auto text = heads->make_sequence(nullptr);
  const int dim = dynamic_cast<Model&>(on.model()).config().dim;
  const std::vector<float> hidden(static_cast<std::size_t>(dim), 0.5f);
  for (TokenId first = 1; first < 8; first++) {
    const std::vector<TokenId> gram(static_cast<std::size_t>(heads->gram()), first);
    const CudaCalls asked = cuda_calls_of([&] {
      text->append(hidden, gram);
      text->begin_draft();
      text->level(std::vector<int>{-1}, gram);
    });
    EXPECT_TRUE(first < 3 || asked.allocations == 0) << asked.allocations;
  }
}

TEST(EmulatedGpuStep, a_step_is_one_graph_with_few_updates) {
  using kernels::emulation::calls_of;
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11);
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  const auto step = [&](int n_rows) {
    const std::vector<TokenId> draft = {3, 5, 7, 2, 9};
    const TokenTree tree = chain_tree(std::span(draft).first(static_cast<std::size_t>(n_rows)));
    lane.forward(tree, {});
    lane.commit(tree, {0, 1});
  };
  const int rows[] = {5, 3, 2};
  for (int i = 0; i < 2; i++)
    for (const int n_rows : rows) step(n_rows);
  // Now the same kernels repeat with these row counts, at later positions.
  for (int i = 0; i < 4; i++) {
    for (const int n_rows : rows) {
      const std::int64_t kernels = calls_of("cudaLaunchKernel"),
                         made = calls_of("cudaGraphInstantiateWithFlags"),
                         reported = calls_of("cudaGraphExecKernelNodeSetParams"),
                         launches = device->n_launches();
      step(n_rows);
      EXPECT_EQ(device->n_launches() - launches, 1);
      EXPECT_EQ(calls_of("cudaLaunchKernel") - kernels, 0);
      EXPECT_EQ(calls_of("cudaGraphInstantiateWithFlags") - made, 0);
      EXPECT_EQ(calls_of("cudaGraphExecKernelNodeSetParams") - reported, 0) << n_rows;
    }
  }
}

// Matrix products use other kernels for other row counts, which gives five kernel sequences. At
// most 24 graphs are kept; a further row count updates the nearest one.
TEST(EmulatedGpuStep, any_row_count_is_one_launch_and_24_graphs_suffice) {
  kernels::emulation::fence_host_off(false);
  ModelConfig config = tiny_config();
  config.n_layers = 1;
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11, config);
  const auto made = [] { return kernels::emulation::calls_of("cudaGraphInstantiateWithFlags"); };
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  const std::int64_t before = made();
  int n_in_pieces = 0;
  for (unsigned i = 0; i < 100; i++) {
    std::vector<TokenId> rows(1 + (100 + i * 53) % 101);  // the largest first
    for (std::size_t r = 0; r < rows.size(); r++) rows[r] = static_cast<TokenId>(r * 7 % 24);
    const std::int64_t launches = device->n_launches();
    lane.forward(chain_tree(rows), {});
    if (device->n_launches() - launches > 1) n_in_pieces++;
  }
  EXPECT_LE(n_in_pieces, 5 + 1) << "the first of each kernel sequence, and the one that allocates";
  EXPECT_LE(made() - before, 24);
}

// Chunks of a prompt repeat the same kernels, but no graph is made of them.
TEST(EmulatedGpuStep, a_prompt_launches_kernels_one_by_one) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11);
  const auto made = [] { return kernels::emulation::calls_of("cudaGraphCreate"); };
  Lane lane(*model);
  std::int64_t before = made();
  const std::int64_t launches = device->n_launches(), n_kernels = device->n_kernels();
  lane.append(std::vector<TokenId>(30, 7), /*chunk=*/5);
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5});
  lane.forward(tree, {});
  EXPECT_EQ(made(), before);
  EXPECT_EQ(device->n_launches() - launches, device->n_kernels() - n_kernels);
  lane.forward(tree, {});
  EXPECT_EQ(made(), before + 1) << "the second equal step makes a graph";
}

/// Logits of steps with these row counts, each run three times and committing two rows.
std::vector<std::vector<float>> logits_of_steps(kernels::DType dtype, std::span<const int> n_rows) {
  const auto device = kernels::open_cuda(kEmulated);
  ModelConfig config = tiny_config();
  config.n_layers = 1;
  const auto model = tiny_transformer(*device, dtype, 11, config);
  const kernels::DeviceBuffer other(*device, 64, "a test");
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  std::vector<std::vector<float>> all;
  for (const int n : n_rows) {
    std::vector<TokenId> rows(static_cast<std::size_t>(n));
    for (std::size_t r = 0; r < rows.size(); r++) rows[r] = static_cast<TokenId>(r * 7 % 24);
    const TokenTree tree = chain_tree(rows);
    for (int i = 0; i < 3; i++) {
      // A kernel before the step, so that the commit of the last step comes after a kernel.
      device->ops().add(*device, other.f32(), other.f32(), 16);
      all.push_back(lane.forward(tree, {.logits = true, .hidden = true}).logits);
      lane.commit(tree, {0, 1});
    }
  }
  return all;
}

// The emulation reports a fault if a kernel starts early (CUDA_EARLY) and one of its threads does
// not wait. Small and large row counts use different kernels.
TEST(EmulatedGpuStep, early_kernels_give_the_same_bits_for_any_row_count) {
  kernels::emulation::fence_host_off(false);
  const int n_rows[] = {2, 9, 17, 33, 65, 100};
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16}) {
    const auto edges = [] { return kernels::emulation::calls_of("cudaGraphAddDependencies"); };
    const std::int64_t before = edges();
    const auto expected = logits_of_steps(dtype, n_rows);
    EXPECT_EQ(edges(), before);
    const InEnvironment early("CUDA_EARLY", "on");
    EXPECT_EQ(logits_of_steps(dtype, n_rows), expected);
    EXPECT_GT(edges(), before + 6 * 10) << "nearly all edges of six graphs";
  }
}

// The GPU waits for the host's work before a launch; --gtest_output=xml reports its time as
// host_us.
TEST(EmulatedGpuStep, a_step_of_32_layers_is_one_launch) {
  using namespace std::chrono;
  kernels::emulation::fence_host_off(false);
  ModelConfig config = tiny_config();
  config.n_layers = 32;
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11, config);
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7, 2, 9});
  steady_clock::time_point launched;
  kernels::emulation::before_calls([&](const std::string& name) {
    if (name == "cudaGraphLaunch") launched = steady_clock::now();
  });
  std::vector<double> host_us;
  for (int i = 0; i < 24; i++) {
    const std::int64_t launches = device->n_launches(), kernels = device->n_kernels();
    const auto begun = steady_clock::now();
    lane.forward(tree, {});
    if (i >= 4) host_us.push_back(duration<double, std::micro>(launched - begun).count());
    lane.commit(tree, {0, 1});
    if (i < 2) continue;
    EXPECT_EQ(device->n_launches() - launches, 1);
    EXPECT_EQ(device->n_kernels() - kernels, 32 * 10 + 5)
        << "10 kernels per layer, and commit, embedding, norm, logits, choice";
  }
  kernels::emulation::before_calls({});
  std::ranges::sort(host_us);
  RecordProperty("host_us", static_cast<int>(host_us[host_us.size() / 2]));
}

TEST(EmulatedGpuStep, reports_the_probability_of_each_row_given_its_parent) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7, 2, 9});
  for (const float temperature : {0.0f, 0.7f}) {
    lane.sampling.temperature = temperature;
    const StepOutput out = lane.forward(tree, {.logits = true, .row_p = true});
    EXPECT_LT(out.row_p[0], 0) << "the first has no parent";
    for (int r = 1; r < 5; r++) {
      const auto logits = out.logits_of(r - 1);
      const double t = temperature > 0 ? double{temperature} : 1;
      const double own = logits[static_cast<std::size_t>(tree.token[std::size_t(r)])];
      double others = 0;
      for (const float logit : logits) others += std::exp((double{logit} - own) / t);
      EXPECT_NEAR(out.row_p[static_cast<std::size_t>(r)], 1 / others, 1e-5);
    }
  }
}

TEST(EmulatedGpuStep, a_ranked_step_copies_ids_and_logits_with_one_wait) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  Lane lane(*model);
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  lane.sampling = {.temperature = 0.7f, .top_k = 9, .repetition_penalty = 1.2f};
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7, 2, 9});
  constexpr int kRanked = 12;
  StepOutput out;
  for (int i = 0; i < 3; i++) {
    const CudaCalls asked = cuda_calls_of([&] { out = lane.forward(tree, {.n_ranked = kRanked}); });
    EXPECT_EQ(asked.to_host, 5 * static_cast<std::int64_t>(sizeof(kernels::Ranking) +
                                                           kRanked * sizeof(kernels::RankedToken)));
    if (i == 0) continue;  // the first of its size
    EXPECT_EQ(asked.waits, 1);
    EXPECT_EQ(asked.allocations, 0);
  }
  const StepOutput whole = lane.forward(tree, {.logits = true});
  std::vector<TokenId> text = lane.tokens();
  ASSERT_EQ(out.ranked.size(), 5u);
  for (int r = 0; r < 5; r++) {
    text.push_back(tree.token[static_cast<std::size_t>(r)]);
    const RankedTokens plain =
        rank_distribution(token_distribution(whole.logits_of(r), lane.sampling, text), kRanked);
    const RankedTokens& found = out.ranked[static_cast<std::size_t>(r)];
    ASSERT_EQ(plain.token.size(), 9u);
    EXPECT_EQ(found.token, plain.token) << "row " << r;
    for (std::size_t i = 0; i < plain.p.size(); i++) EXPECT_NEAR(found.p[i], plain.p[i], 1e-14);
  }
}

TEST(EmulatedGpuStep, a_batch_waits_as_often_as_one_sequence) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  std::vector<Lane> lanes(3, Lane(*model));
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7});
  std::vector<BatchItem> items;
  for (std::size_t i = 0; i < lanes.size(); i++) {
    lanes[i].append(std::vector<TokenId>{static_cast<TokenId>(i), 7, 1});
    items.push_back(lanes[i].item(tree));
  }
  const Wants wants{.logits = true, .hidden = true, .row_p = true};
  std::vector<StepOutput> outs;
  for (int i = 0; i < 2; i++) {
    const CudaCalls asked = cuda_calls_of([&] { outs = model->forward(items, wants); });
    EXPECT_EQ(asked.waits, 1) << "choice, logits, one logit per row, hidden states";
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const StepOutput alone = lanes[i].forward(tree, wants);
    EXPECT_EQ(outs[i].logits, alone.logits);
    EXPECT_EQ(outs[i].hidden, alone.hidden);
    EXPECT_EQ(outs[i].row_p, alone.row_p);
  }
}

/// Expects the sequence's cache to equal a fresh prefill.
void expect_fresh(Model& model, const Lane& lane) {
  Lane fresh(model);
  fresh.append(lane.tokens());
  EXPECT_EQ(lane.bits() == fresh.bits(), true);
}

// The step's launch also writes the keys and values that each sequence accepted in the last step.
TEST(EmulatedGpuStep, a_batch_is_one_launch_whatever_is_accepted) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11);
  std::vector<Lane> lanes(3, Lane(*model));
  for (std::size_t i = 0; i < lanes.size(); i++)
    lanes[i].append(std::vector<TokenId>{static_cast<TokenId>(i), 7, 1});
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7});
  for (int step = 0; step < 9; step++) {
    std::vector<BatchItem> items;
    for (const Lane& lane : lanes) items.push_back(lane.item(tree));
    const std::int64_t launches = device->n_launches();
    const CudaCalls asked = cuda_calls_of([&] {
      model->forward(items, {});
      for (int i = 0; i < 3; i++) {
        std::vector<int> path(
            static_cast<std::size_t>((i + step) % 4));  // one sequence commits nothing
        std::iota(path.begin(), path.end(), 0);
        lanes[static_cast<std::size_t>(i)].commit(tree, path);
      }
    });
    if (step < 3) continue;  // the first step commits nothing; two more make the graph
    EXPECT_EQ(device->n_launches() - launches, 1) << "step " << step;
    EXPECT_EQ(asked.waits, 1);
    EXPECT_EQ(asked.allocations, 0);
  }
  for (const Lane& lane : lanes) expect_fresh(*model, lane);
}

// Branches are sequences of the draft model; a second child copies the page that it shares.
TEST(EmulatedGpuStep, a_draft_model_needs_one_launch_per_level) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_draft(*device, kernels::DType::BF16, 11);
  Drafter drafter(*model, {.k_config = {2, 2, 2}});
  Sequence text({3, 7, 1, 9}, model->make_cache());
  drafter.read_prompt(text);
  PhiloxUniforms uniforms(1);
  for (int step = 0; step < 9; step++) {
    const std::int64_t launches = device->n_launches();
    const Drafts drafts = drafter.propose(text, 3, uniforms);
    ASSERT_EQ(drafts.forwards.size(), 3u);
    EXPECT_EQ(drafts.forwards.back().n_rows, 4);
    if (step >= 3) {
      EXPECT_EQ(device->n_launches() - launches, 3) << "step " << step;
    }
    drafter.committed(std::vector<int>{0});
    text = text.restarted(std::vector<TokenId>{static_cast<TokenId>(step)});
  }
}

// The probe averages attention over the last two of eight layers.
TEST(EmulatedGpuStep, fastcots_probe_waits_once) {
  const auto device = kernels::open_cuda(kEmulated);
  ModelConfig config = tiny_config();
  config.n_layers = 8;
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11, config);
  const auto cpu = kernels::open_cpu(1);
  const auto here = tiny_transformer(*cpu, kernels::DType::F32, 11, config);
  std::vector<Lane> lanes(2, Lane(*model)), lanes_here(2, Lane(*here));
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7, 2, 9});
  std::vector<BatchItem> items, items_here;
  for (std::size_t i = 0; i < lanes.size(); i++) {
    for (Lane* lane : {&lanes[i], &lanes_here[i]})
      lane->append(std::vector<TokenId>{static_cast<TokenId>(i), 7, 1});
    for (auto* to : {&items, &items_here})
      to->push_back((to == &items ? lanes[i] : lanes_here[i]).item(tree)),
          to->back().attention_of = 4 - static_cast<int>(i);
  }
  std::vector<StepOutput> outs;
  for (int i = 0; i < 3; i++) {
    const CudaCalls asked = cuda_calls_of([&] { outs = model->forward(items, {.row_p = true}); });
    EXPECT_EQ(asked.waits, 1);
    EXPECT_TRUE(i < 1 || asked.allocations == 0) << asked.allocations;
  }
  const std::vector<StepOutput> expected = here->forward(items_here, {});
  for (std::size_t i = 0; i < outs.size(); i++) {
    ASSERT_EQ(outs[i].attention.size(), 5u);
    for (std::size_t r = 0; r < 5; r++)
      EXPECT_NEAR(outs[i].attention[r], expected[i].attention[r], 1e-5) << i << " " << r;
    EXPECT_EQ(outs[i].attention[4] > 0, i == 0)
        << "the second item's probe does not attend to row 4";
  }
}

// Chimera's k-grams that are not in the host's cache are copied once, too.
TEST(EmulatedGpuHeads, rankings_are_copied_with_one_wait) {
  Loaded& on = on_device(kEmulated, kernels::DType::F32);
  const auto dim = static_cast<std::size_t>(on.transformer()->config().dim);
  const std::vector<float> hidden(dim, 0.25f);
  auto& medusa = dynamic_cast<MedusaHeads&>(*on.heads("medusa"));
  auto& chimera = dynamic_cast<ChimeraHeads&>(*on.heads("chimera"));
  constexpr int kRanked = 7;
  const auto bytes = [](int n_rows) {
    return n_rows * static_cast<std::int64_t>(sizeof(kernels::Ranking) +
                                              kRanked * sizeof(kernels::RankedToken));
  };
  const auto expect_plain = [](const std::vector<RankedTokens>& found,
                               const std::vector<RankedTokens>& plain) {
    ASSERT_EQ(found.size(), plain.size());
    for (std::size_t r = 0; r < found.size(); r++) {
      EXPECT_EQ(found[r].token, plain[r].token);
      for (std::size_t i = 0; i < plain[r].p.size(); i++)
        EXPECT_NEAR(found[r].p[i], plain[r].p[i], 1e-14);
    }
  };
  std::vector<RankedTokens> found;
  for (int i = 0; i < 2; i++) {
    const CudaCalls asked = cuda_calls_of([&] { found = medusa.ranked(hidden, 2, kRanked); });
    EXPECT_EQ(asked.waits, 1);
    EXPECT_EQ(asked.to_host, bytes(2));
    if (i == 1) {
      EXPECT_EQ(asked.allocations, 0);
    }
  }
  expect_plain(found, medusa.MedusaHeads::ranked(hidden, 2, kRanked));

  const auto text = chimera.make_sequence(std::make_shared<GramCache>(8));
  const std::vector<TokenId> gram(static_cast<std::size_t>(chimera.gram()), 3);
  const int none = -1;
  text->append(hidden, gram);
  for (int i = 0; i < 2; i++) {
    text->begin_draft();
    const CudaCalls asked =
        cuda_calls_of([&] { found = text->ranked_level(std::span(&none, 1), gram, kRanked); });
    if (i == 0) continue;
    EXPECT_EQ(asked.waits, 1);
    EXPECT_EQ(asked.allocations, 0);
    EXPECT_EQ(asked.to_host, bytes(1));
  }
  text->begin_draft();
  expect_plain(found, text->ChimeraSequence::ranked_level(std::span(&none, 1), gram, kRanked));
}

TEST(EmulatedCache, grows_within_device_memory_and_keeps_its_rows) {
  const auto device = kernels::open_cuda(kEmulated);
  const KvShape shape{.n_layers = 2, .n_kv_heads = 1, .head_dim = 4};
  const auto store = std::make_shared<KvStore>(*device, shape);
  PagedCache cache(store);
  constexpr int kPages = 20, kPage = kernels::kPageSize;
  std::vector<int> parent(kPage), path(kPage);
  std::iota(parent.begin(), parent.end(), -1);
  std::iota(path.begin(), path.end(), 0);
  const auto values = [&](int page, int of) {  // of: layer, keys or values
    std::vector<float> all(static_cast<std::size_t>(kPage * shape.head_dim));
    std::iota(all.begin(), all.end(), static_cast<float>(100'000 * of + 1000 * page));
    return all;
  };
  for (int page = 0; page < kPages; page++) {
    const CudaCalls written = cuda_calls_of([&] { store->begin_forward(kPage); });
    EXPECT_EQ(written.waits, 0) << page;
    EXPECT_EQ(written.to_host, 0) << page;
    EXPECT_LE(written.to_device, 3 * 4 * kPage) << "rows, pages and slots";
    for (int of = 0; of < 4; of++) {
      const std::vector<float> own = values(page, of);
      device->ops().upload(*device, of % 2 ? store->staged_v(of / 2) : store->staged_k(of / 2),
                           own.data(), static_cast<std::int64_t>(own.size() * sizeof(float)));
    }
    cache.set_staged(0, parent);
    const CudaCalls asked = cuda_calls_of([&] { cache.commit(path); });
    EXPECT_EQ(asked.waits, 0) << page;
    EXPECT_EQ(asked.to_host, 0) << page;
    EXPECT_EQ(asked.to_device, 0) << "written before the next forward: " << page;
  }
  store->write_commits();
  std::vector<float> k(static_cast<std::size_t>(kPages * kPage * shape.head_dim)), v(k.size());
  for (int l = 0; l < shape.n_layers; l++) {
    device->ops().kv_read(*device, store->layer(l), cache.pages().data(), cache.length(), k.data(),
                          v.data());
    for (int page = 0; page < kPages; page++) {
      const auto at = static_cast<std::ptrdiff_t>(page * kPage * shape.head_dim);
      const auto keys = values(page, 2 * l), own = values(page, 2 * l + 1);
      EXPECT_TRUE(std::equal(keys.begin(), keys.end(), k.begin() + at)) << page;
      EXPECT_TRUE(std::equal(own.begin(), own.end(), v.begin() + at)) << page;
    }
  }
}

// Committed rows stay staged until they can be written.
TEST(EmulatedCache, a_failed_write_succeeds_once_memory_is_free) {
  const auto device = kernels::open_cuda(kEmulated);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  Lane lane(*model), other(*model);
  const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7});
  lane.append(std::vector<TokenId>{3, 7, 1, 9});
  model->finish();
  const std::vector<BatchItem> items = {lane.item(tree), other.item(tree)};
  model->forward(items, {});
  lane.commit(tree, {0, 1});
  other.commit(tree, {0, 1, 2});
  kernels::emulation::limit_memory(1);  // the list of five rows is longer than any before
  EXPECT_THROW(lane.forward(tree, {}), Error);
  kernels::emulation::limit_memory(std::int64_t{4} << 30);
  lane.forward(tree, {});
  lane.commit(tree, {0});
  for (const Lane& one : {std::cref(lane), std::cref(other)}) expect_fresh(*model, one);
}

}  // namespace
}  // namespace engine::test
