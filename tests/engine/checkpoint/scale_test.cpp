// A model enlarged with zeros computes the same results bit for bit.
#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

using kernels::DType;

ModelConfig small_config(bool tied) {
  ModelConfig c = odd_config();
  c.dim = 48;
  c.n_layers = 2;
  c.n_heads = 4;
  c.n_kv_heads = 2;
  c.head_dim = 12;
  c.hidden_dim = 56;
  c.tied_embeddings = tied;
  c.qkv_bias = !tied;
  return c;
}

TEST(Scale, scaled_models_choose_the_same_tokens_bit_for_bit) {
  ModelConfig fused = small_config(true);
  fused.fused_projections = true;
  for (const ModelConfig& config :
       {small_config(true), small_config(false), fused, with_multipliers(small_config(true)),
        with_post_norms(small_config(true))}) {
    const TestModel model = random_model("m", config, 23);
    const std::vector<TokenId> prompt = random_tokens(61, 101, 2);
    for_every_table_and_type([&](kernels::Device& device, DType dtype) {
      const auto plain = load(device, model, dtype);
      Lane lane(*plain);
      lane.append(prompt);
      const TokenTree tree = random_tree(7, 101, 9);
      const StepOutput out = lane.forward(tree);
      const std::vector<TokenId> tokens = decode_one_by_one(lane, 5, 16);
      for (const ModelScale scale : test_scales()) {
        SCOPED_TRACE(name_of(scale));
        const auto large = load(device, model, dtype, scale);
        EXPECT_EQ(large->config().dim, 48 * scale.width);
        EXPECT_EQ(large->config().n_layers, 2 * scale.depth);
        EXPECT_EQ(large->scale(), scale);
        Lane other(*large);
        other.append(prompt);
        const StepOutput large_out = other.forward(tree);
        for (int r = 0; r < 7; r++) expect_same_row(out, r, large_out, r);
        EXPECT_EQ(decode_one_by_one(other, 5, 16), tokens);
      }
    });
  }
}

TEST(Scale, auto_scale_is_the_smallest_over_three_cache_sizes) {
  ModelConfig c = odd_config();
  c.dim = 256;
  c.hidden_dim = 768;
  c.n_layers = 6;
  c.n_heads = 4;
  c.n_kv_heads = 4;
  c.head_dim = 64;
  c.vocab_size = 2048;
  c.tied_embeddings = true;
  const auto bytes = [&](ModelScale scale) { return 2 * scaled(c, scale).n_params(); };
  EXPECT_EQ(auto_scale(c, DType::BF16, 0), ModelScale{});
  EXPECT_EQ(auto_scale(c, DType::BF16, bytes({}) / 3 - 1), ModelScale{});
  EXPECT_EQ(auto_scale(c, DType::BF16, bytes({}) / 3 + 1), (ModelScale{4, 1}));
  for (const std::int64_t cache : {1 << 20, 8 << 20, 32 << 20, 100 << 20, 260 << 20}) {
    const ModelScale chosen = auto_scale(c, DType::BF16, cache);
    EXPECT_GT(bytes(chosen), 3 * std::int64_t{cache});
    for (const int width : {4, 16})
      for (int depth = 1; depth <= 8; depth++) {
        const std::int64_t other = bytes({width, depth});
        EXPECT_TRUE(other <= 3 * std::int64_t{cache} || other >= bytes(chosen))
            << name_of(chosen) << " for " << cache << ", but " << width << "x" << depth;
      }
  }
  EXPECT_GE(last_level_cache_bytes(), 0);
}

}  // namespace
}  // namespace engine::test
