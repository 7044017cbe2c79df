// A prompt prefilled after others has the bits of one prefilled alone, and shares the common
// prefix.
#include <gtest/gtest.h>

#include "engine/decode/step/prompt_caches.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

class PromptCachesTest : public testing::Test {
 protected:
  void expect_fresh(const Sequence& found) {
    const auto tokens = found.tokens();
    Sequence fresh({tokens.begin(), tokens.end()}, model->make_cache());
    prefill(*model, fresh);
    ASSERT_EQ(found.cache().length(), fresh.cache().length());
    std::vector<float> k, v, fresh_k, fresh_v;
    for (int layer = 0; layer < 2; layer++) {
      model->read_cache(found.cache(), layer, k, v);
      model->read_cache(fresh.cache(), layer, fresh_k, fresh_v);
      EXPECT_EQ(k, fresh_k);
      EXPECT_EQ(v, fresh_v);
    }
  }

  std::unique_ptr<kernels::Device> device = kernels::open_cpu(2);
  std::unique_ptr<Model> model = tiny_transformer(*device, kernels::DType::BF16, 5);
};

TEST_F(PromptCachesTest, a_common_prefix_is_prefilled_once) {
  Dice dice(3);
  const std::vector<TokenId> stem = dice.text(100, 24);  // across the end of a page
  PromptCaches caches(*model, 8);
  std::vector<Sequence> read;
  for (int i = 0; i < 4; i++) {
    std::vector<TokenId> tokens = stem;
    tokens.push_back(i);  // the prompts differ from there
    for (const TokenId more : dice.text(10, 24)) tokens.push_back(more);
    read.push_back(caches.read(tokens));
    expect_fresh(read.back());
  }
  EXPECT_EQ(caches.n_shared(), 3 * 100);
  EXPECT_EQ(caches.n_computed(), 110 + 3 * 10);
  caches.read(read[1].tokens());
  EXPECT_EQ(caches.n_computed(), 140) << "a prefilled prompt is not prefilled again";
  for (const Sequence& sequence : read) expect_fresh(sequence);  // none wrote to another's pages
}

TEST_F(PromptCachesTest, long_prompts_share_only_equally_rotated_keys) {
  ModelConfig config = tiny_config();
  config.rope = {.type = RopeConfig::Type::Dynamic, .factor = 3, .original_max_seq_len = 50};
  model = tiny_transformer(*device, kernels::DType::F32, 5, config);
  Dice dice(9);
  const std::vector<TokenId> text = dice.text(90, 24);
  const auto first = [&](std::size_t n) { return std::span(text).first(n); };
  PromptCaches caches(*model, 8);
  expect_fresh(caches.read(first(40)));
  expect_fresh(caches.read(first(50)));
  EXPECT_EQ(caches.n_shared(), 39) << "both within the original length";
  expect_fresh(caches.read(first(70)));
  expect_fresh(caches.read(first(80)));
  EXPECT_EQ(caches.n_shared(), 39) << "each rotates by its own length";
  expect_fresh(caches.read(first(70)));
  EXPECT_EQ(caches.n_shared(), 39 + 69);
  // Tokens generated after a prompt are part of the next prompt and are prefilled again.
  Sequence begun({text.begin(), text.begin() + 60}, model->make_cache());
  prefill(*model, begun);
  Sequence longer = begun.restarted(std::span(text).subspan(60, 25));
  prefill(*model, longer);
  expect_fresh(longer);
  expect_fresh(begun);
}

TEST_F(PromptCachesTest, a_given_sequence_is_continued_and_unchanged) {
  Dice dice(4);
  std::vector<TokenId> tokens = dice.text(70, 24);
  PromptCaches caches(*model);
  Sequence begun({tokens.begin(), tokens.end()}, model->make_cache());
  prefill(*model, begun);
  for (const TokenId more : dice.text(20, 24)) tokens.push_back(more);
  expect_fresh(caches.read(tokens, &begun));
  EXPECT_EQ(caches.n_shared(), 69);
  EXPECT_EQ(caches.n_computed(), 20);
  expect_fresh(begun);
}

TEST_F(PromptCachesTest, a_fully_shared_prompt_has_its_hidden_state) {
  Dice dice(6);
  const std::vector<TokenId> tokens = dice.text(70, 24);
  const auto copied = [](const Sequence& of) {
    return std::vector<float>(of.prompt_state().begin(), of.prompt_state().end());
  };
  Sequence fresh(tokens, model->make_cache());
  prefill(*model, fresh, 256, {}, /*with_state=*/true);
  PromptCaches caches(*model, 4);
  EXPECT_EQ(copied(caches.read(tokens, nullptr, {}, true)), copied(fresh));
  const std::int64_t n_computed = caches.n_computed();
  EXPECT_EQ(copied(caches.read(tokens, nullptr, {}, true)), copied(fresh));
  EXPECT_EQ(caches.n_computed(), n_computed);
  // No hidden state is stored for a part of the prompt, and none is computed for it.
  const auto begun = std::span(tokens).first(40);
  EXPECT_TRUE(copied(caches.read(begun, nullptr, {}, true)).empty());
  EXPECT_EQ(caches.n_computed(), n_computed);
  // A sequence that continues after a part has its own state.
  std::vector<TokenId> other(begun.begin(), begun.end());
  for (const TokenId more : dice.text(10, 24)) other.push_back(more);
  Sequence alone(other, model->make_cache());
  prefill(*model, alone, 256, {}, /*with_state=*/true);
  EXPECT_EQ(copied(caches.read(other, nullptr, {}, true)), copied(alone));
}

TEST_F(PromptCachesTest, only_the_latest_prompts_are_kept) {
  Dice dice(5);
  {
    PromptCaches caches(*model, 2);
    for (int i = 0; i < 6; i++) caches.read(dice.text(100, 24));
    const std::int64_t two = model->cache_bytes();
    caches.read(dice.text(100, 24));
    EXPECT_EQ(model->cache_bytes(), two);
    EXPECT_GT(two, 0);
  }
  EXPECT_EQ(model->cache_bytes(), 0);
}

}  // namespace
}  // namespace engine::test
