// From texts to the rows of a batch: training a tokenizer, and packing.
#include <unistd.h>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "engine/data/mixture.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/train/core/packing.h"
#include "engine/train/run/tokenizer_training.h"

namespace engine {
namespace {

TokenText text_of(int n, TokenId first) {
  TokenText text;
  for (int i = 0; i < n; i++) text.tokens.push_back(first + i);
  text.n_prompt = n / 2;
  return text;
}

TEST(Packing, every_text_is_packed_once_from_position_zero) {
  Packer packer(32, 3, {0.1f, 4});
  std::multiset<TokenId> expected, found;
  for (int i = 0; i < 200; i++) {
    const int n = 2 + i * 13 % 29;
    packer.add(text_of(n, i * 100));
    expected.insert(i * 100);
    while (packer.n_ready()) {
      const PackedRow row = packer.take();
      std::size_t at = 0;
      for (const std::int32_t length : row.length) {
        found.insert(row.token[at]);
        for (std::int32_t j = 0; j < length; j++, at++) {
          EXPECT_EQ(row.pos[at], j);
          EXPECT_EQ(row.target[at], row.token[at] + 1);
          const int n_prompt = (length + 1) / 2;
          EXPECT_EQ(row.weight[at], j + 1 < n_prompt ? 0.1f : 1.0f);
        }
      }
      for (; at < 32; at++) EXPECT_EQ(row.weight[at], 0.0f);
    }
  }
  // The missing texts are in the three open rows.
  for (const TokenId id : found) EXPECT_EQ(expected.count(id), 1u);
  EXPECT_GT(found.size(), 180u);
  EXPECT_GT(static_cast<double>(packer.n_tokens()) / (32.0 * packer.n_closed()), 0.85);
}

TEST(Packing, weights_of_prompt_answer_and_other_tokens) {
  Packer packer(8, 1, {0.25f, 4});
  TokenText text = text_of(9, 0);
  text.n_prompt = 3;
  text.answer_begin = 6;
  text.answer_end = 8;
  packer.add(text);
  // Row i predicts token i + 1.
  EXPECT_EQ(packer.take().weight, (std::vector<float>{0.25f, 0.25f, 1, 1, 1, 4, 4, 1}));
}

TEST(Packing, longer_texts_are_cut_and_counted) {
  Packer packer(32, 1, {0.1f, 1});
  packer.add(text_of(50, 0));
  ASSERT_EQ(packer.n_ready(), 1);
  EXPECT_EQ(packer.n_cut(), 1);
  EXPECT_EQ(packer.take().target[31], 32);
}

TEST(Packing, restored_packer_continues_identically) {
  Packer one(32, 3, {0.1f, 1}), other(32, 3, {0.1f, 1});
  for (int i = 0; i < 20; i++) one.add(text_of(3 + i * 7 % 20, i));
  other.load(one.save(), "test");
  for (int i = 0; i < 20; i++) {
    one.add(text_of(3 + i * 5 % 20, i));
    other.add(text_of(3 + i * 5 % 20, i));
  }
  EXPECT_EQ(one.save(), other.save());
  const std::string bytes = one.save();
  EXPECT_THROW(other.load(bytes.substr(0, bytes.size() / 2), "test"), Error);
}

TEST(TokenizerTraining, round_trips_text_and_splits_digits) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("tokenizer_test_" + std::to_string(::getpid()));
  const TrainingStream stream(
      R"({"arith": {"weight": 1}, "sql": {"weight": 1}, "blocks": {"weight": 1}})", 5);
  const auto text = [&](std::int64_t i) {
    const TrainingText one = stream.text(i);
    return one.prompt + one.completion;
  };
  learn_tokenizer({.vocab_size = 640, .sample_bytes = 60'000, .n_threads = 1}, text,
                  directory.string());
  const auto tokenizer = open_sentencepiece((directory / "tokenizer.model").string(), {});
  std::filesystem::remove_all(directory);

  EXPECT_EQ(tokenizer->vocab_size(), 640);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  std::vector<std::string> texts = {"",
                                    " ",
                                    "  two  spaces ",
                                    "a\n\n\tb\n",
                                    "12345",
                                    "é 日本 \xF0\x9F\x99\x82",
                                    "</s> <unk> <0x41>",
                                    "def f(x):\n    return x  # 1\n"};
  for (std::int64_t i = 1000; i < 1030; i++) texts.push_back(text(i));
  for (const std::string& original : texts) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(original, false)), original);
  }
  EXPECT_EQ(tokenizer->encode("12345", false).size(), 5u);
  const auto newline = tokenizer->encode("\n", false);
  ASSERT_EQ(newline.size(), 1u);
  EXPECT_EQ(tokenizer->piece(newline[0]), "\n");
}

}  // namespace
}  // namespace engine
