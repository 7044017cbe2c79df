// Attention over more rows and positions than one pass holds: the step needs as many launches,
// waits and bytes as with one pass.
#include "kernels/cuda/cuda_device.h"
//
#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

using kernels::emulation::calls_of;

struct Counts {
  std::int64_t launches, kernels, copies, graphs_made;
  bool operator==(const Counts&) const = default;
};

class EmulatedPasses : public testing::Test {
 protected:
  EmulatedPasses() { kernels::emulation::fence_host_off(false); }
  /// Runs steps of a sequence of 150 tokens with at most `floats` floats per pass.
  void run(const ModelConfig& config, std::int64_t floats) {
    const auto device = kernels::open_cuda("cuda:emulated");
    kernels::cuda_emulated::cuda_of(*device).attention_plans().limit_partials(floats);
    const auto model = tiny_transformer(*device, kernels::DType::BF16, 11, config);
    Lane lane(*model), beside(*model);
    std::vector<TokenId> text(150);
    for (std::size_t i = 0; i < text.size(); i++) text[i] = static_cast<TokenId>(i * 7 % 24);
    lane.append(text);
    const TokenTree tree = chain_tree(std::vector<TokenId>{3, 5, 7, 2, 9, 1});
    counts.clear();
    outs.clear();
    for (int i = 0; i < 5; i++) {
      const auto now = [&] {
        return Counts{device->n_launches(), device->n_kernels(), calls_of("cudaMemcpyAsync"),
                      calls_of("cudaGraphInstantiateWithFlags")};
      };
      const BatchItem items[] = {lane.item(tree), beside.item(tree, /*pick_rows=*/false)};
      const Counts before = now();
      auto out = model->forward(items, {.logits = true});
      lane.commit(tree, {0});
      beside.cache().commit({});
      const Counts after = now();
      counts.push_back({after.launches - before.launches, after.kernels - before.kernels,
                        after.copies - before.copies, after.graphs_made - before.graphs_made});
      outs.push_back(std::move(out.front().logits));
    }
  }
  std::vector<Counts> counts;
  std::vector<std::vector<float>> outs;
};

// One sequence has 6 rows over three chunks of keys, the other 6 rows over one chunk. The last
// layer skips the second. A pass holds 9 chunks. With a single pass the join of the chunks' results
// is fused with the next product.
TEST_F(EmulatedPasses, three_attention_passes_are_one_launch) {
  ModelConfig with_window = tiny_config();
  with_window.sliding_window = 100;
  with_window.n_layers = 4;
  with_window.layer_kinds = global_then_local(1, 4);
  for (const ModelConfig& config : {tiny_config(), with_window}) {
    run(config, std::int64_t{16} << 20);
    const auto bits = outs;
    const auto of_one_pass = counts;
    run(config, std::int64_t{9} * config.n_heads * (2 + config.head_dim));
    EXPECT_EQ(outs, bits);
    for (const std::size_t i : {3, 4}) {
      EXPECT_EQ(counts[i].kernels - of_one_pass[i].kernels,
                (config.n_layers - 1) * (3 * 2 + 1 - 2) + (2 * 2 + 1 - 2));
      EXPECT_EQ(counts[i].launches, 1) << i;
      EXPECT_EQ(counts[i].graphs_made, 0) << i;
      EXPECT_EQ(counts[i].copies, of_one_pass[i].copies) << i;
    }
  }
}

// The first 128 of 256 rows are multiplied together. The join after the last pass covers the other
// 128 rows, so it is not fused with that product.
TEST_F(EmulatedPasses, a_last_pass_may_equal_the_product_width) {
  const ModelConfig config = tiny_config();
  const auto logits = [&](std::int64_t chunks) {
    const auto device = kernels::open_cuda("cuda:emulated");
    kernels::cuda_emulated::cuda_of(*device).attention_plans().limit_partials(
        chunks * config.n_heads * (2 + config.head_dim));
    const auto model = tiny_transformer(*device, kernels::DType::BF16, 11, config);
    std::vector<TokenId> text(64);
    for (std::size_t i = 0; i < text.size(); i++) text[i] = static_cast<TokenId>(i * 7 % 24);
    const TokenTree tree = chain_tree(text);
    std::vector<Lane> lanes;
    for (int i = 0; i < 4; i++) lanes.emplace_back(*model);
    std::vector<BatchItem> items;
    for (const Lane& lane : lanes) items.push_back(lane.item(tree));
    std::vector<std::vector<float>> all;
    for (auto& out : model->forward(items, {.logits = true})) all.push_back(std::move(out.logits));
    return all;
  };
  const auto of_one_pass = logits(1 << 20);
  EXPECT_EQ(of_one_pass.front(), of_one_pass.back());
  EXPECT_EQ(logits(128), of_one_pass);
}

}  // namespace
}  // namespace engine::test
