// The target's first layer as the encoder of Chimera's heads: its encodings, their cache, and decoding with such heads.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/model/draft_heads.h"
#include "engine/model/encode/first_layer.h"
#include "engine/store/memory_plan.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/files.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/random_models.h"

namespace engine::test {
namespace {

using kernels::DType;

constexpr int kDim = 48, kVocab = 101;

/// A model of three layers with grouped queries.
TestModel target() {
  ModelConfig config = odd_config();
  config.dim = kDim;
  config.head_dim = 12;
  config.n_kv_heads = 2;
  return random_model("target", config, 3);
}

std::vector<float> hidden_of(Model& model, const TokenTree& tree) {
  const auto cache = model.make_cache();
  BatchItem item{.cache = cache.get(), .tree = &tree};
  item.pick_rows = false;
  return model.forward(std::span(&item, 1), {.hidden = true}).front().hidden;
}

TEST(FirstLayer, encodings_are_the_outputs_of_the_first_layer) {
  TestModel model = target();
  const auto device = kernels::open_cpu(2);
  const TokenTree tree = random_tree(20, kVocab, 5);
  FirstLayer layer(load_first_layer(*device, model.files(), {.dtype = DType::F32}));
  const std::vector<float> found = layer.encode(std::span(&tree, 1)).front();
  // A model that ends after its first layer multiplies the same outputs by the weights of its final norm.
  model.config.n_layers = 1;
  const auto one = Model::load(*device, model.files(), {.dtype = DType::F32});
  const std::vector<float> normed = hidden_of(*one, tree);
  const std::vector<float>& norm = model.tensors->entries.at("model.norm.weight").data;
  ASSERT_EQ(found.size(), normed.size());
  ASSERT_EQ(found.size(), 20u * kDim);
  for (std::size_t i = 0; i < found.size(); i++)
    ASSERT_NEAR(found[i] * norm[i % kDim], normed[i], 1e-4 * (1 + std::abs(normed[i]))) << i;
  for (std::size_t row = 0; row < 20; row++) {
    double square = 0;
    for (std::size_t i = 0; i < kDim; i++)
      square += std::pow(static_cast<double>(found[row * kDim + i]), 2) / kDim;
    EXPECT_NEAR(square, 1, 1e-3) << row;
  }
}

// Every table and type: the bits of a row do not depend on the rows computed with it.
TEST(EncodedText, pieces_and_drafts_equal_one_tree) {
  const std::vector<TokenId> tokens = random_tokens(300, kVocab, 4);
  const std::vector<TokenId> drafted = {7, 8, 9, 10}, wrong = {50, 51};
  const std::vector<int> first = {-1, -1}, second = {0, 1};
  TokenTree tree = chain_tree(tokens);
  for (const int parent : {299, 299, 300, 301})
    tree.add(drafted[static_cast<std::size_t>(tree.n_rows() - 300)], parent, RowTag{});
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto layer = load_first_layer(device, target().files(), {.dtype = dtype});
    const std::vector<float> all = hidden_of(*layer, tree);
    EncodedText text(*layer), other(*layer);
    std::vector<float> found = text.append(std::span(tokens).first(3));
    const auto add = [&](const std::vector<float>& rows) {
      found.insert(found.end(), rows.begin(), rows.end());
    };
    text.begin_draft();
    text.draft(first, wrong);
    text.append(wrong);  // rejected tokens, removed again
    text.truncate(3);
    add(text.append(std::span(tokens).subspan(3)));
    text.begin_draft();
    add(text.draft(first, std::span(drafted).first(2)));
    other.append(std::span(tokens).first(5));  // another text uses the layer between two levels
    add(text.draft(second, std::span(drafted).last(2)));
    EXPECT_EQ(found, all);
  });
}

HeadsFiles heads_by_first_layer(bool sees_grams, std::uint64_t seed = 5) {
  HeadsFiles files;
  files.path = files.name = "heads";
  files.config.kind = HeadsKind::Chimera;
  files.config.n_heads = 4;
  files.config.dim = kDim;
  files.config.vocab_size = kVocab;
  files.config.hidden_dim = 56;
  files.config.n_attention_heads = 4;
  files.config.gram = 1;
  files.config.by_first_layer = true;
  files.config.sees_committed_grams = sees_grams;
  files.tensors = random_heads(files.config, seed);
  return files;
}

HeadsOptions options_of(DType dtype, const ModelScale& scale = {}) {
  return {.dtype = dtype, .scale = scale, .vocab_size = kVocab, .max_seq_len = 256};
}

TEST(FirstLayerHeads, have_no_matrices_of_k_grams) {
  for (const TensorSpec& spec : tensors_of(heads_by_first_layer(true).config))
    EXPECT_FALSE(spec.name.starts_with("gram.") || spec.name == "embed_tokens.weight") << spec.name;
  EXPECT_EQ(gram_table_bytes(heads_by_first_layer(true).config), 0);
}

TEST(FirstLayerHeads, their_plan_is_the_memory_that_they_take) {
  const auto device = kernels::open_cpu(1);
  ModelConfig config = target().config;  // with sizes that are not padded
  config.vocab_size = 112;
  config.hidden_dim = 80;
  HeadsFiles files = heads_by_first_layer(true);
  files.config.vocab_size = 112;
  files.tensors = random_heads(files.config, 5);
  const TestModel model = random_model("target", config, 3);
  HeadsOptions options = options_of(DType::F32);
  options.vocab_size = 112;
  const auto heads = load_chimera(*device, files, model.files(), options);
  const MemoryPlan plan = memory_plan(files.config, config, DType::F32, *device);
  const int norms = 4 * 2 * kDim;  // of the block, which weight_bytes() does not count
  EXPECT_EQ(static_cast<double>(heads->weight_bytes() + norms), plan.weights);
}

// With a k-gram of one token only the token itself matters; the first layer also reads those before it.
TEST(FirstLayerHeads, a_draft_depends_on_all_tokens_before_it) {
  const auto device = kernels::open_cpu(1);
  const HeadsFiles files = heads_by_first_layer(/*sees_grams=*/false);
  const auto heads = load_chimera(*device, files, target().files(), options_of(DType::F32));
  std::vector<float> states;
  for (int i = 0; i < 4 * kDim; i++) states.push_back(std::sin(static_cast<float>(i)));
  const auto drafted = [&](std::vector<TokenId> text) {
    const auto sequence = heads->make_sequence(nullptr);
    sequence->append(states, text);
    sequence->begin_draft();
    return sequence->level(std::vector<int>{-1}, std::vector<TokenId>{9});
  };
  const std::vector<float> logits = drafted({1, 2, 3, 4});
  EXPECT_EQ(drafted({1, 2, 3, 4}), logits);
  for (const std::vector<TokenId>& other : {std::vector<TokenId>{7, 2, 3, 4}, {1, 2, 3, 7}})
    EXPECT_NE(drafted(other), logits);
}

TEST(FirstLayerHeads, drafts_after_removed_tokens_equal_those_of_a_new_sequence) {
  const auto device = kernels::open_cpu(1);
  const std::vector<TokenId> tokens = random_tokens(9, kVocab, 6);
  std::vector<float> states;
  for (int i = 0; i < 9 * kDim; i++) states.push_back(std::cos(static_cast<float>(i)));
  const auto append = [&](ChimeraSequence& sequence, std::size_t begin, std::size_t end) {
    sequence.append(std::span(states).subspan(begin * kDim, (end - begin) * kDim),
                    std::span(tokens).subspan(begin, end - begin));
  };
  const auto drafted = [](ChimeraSequence& sequence, TokenId first) {
    sequence.begin_draft();
    std::vector<float> logits =
        sequence.level(std::vector<int>{-1, -1}, std::vector<TokenId>{first, 11});
    const auto more = sequence.level(std::vector<int>{0, 1}, std::vector<TokenId>{12, 13});
    logits.insert(logits.end(), more.begin(), more.end());
    return logits;
  };
  for (const bool sees_grams : {true, false}) {
    const HeadsFiles files = heads_by_first_layer(sees_grams);
    const auto heads = load_chimera(*device, files, target().files(), options_of(DType::F32));
    const auto one = heads->make_sequence(nullptr), other = heads->make_sequence(nullptr);
    append(*one, 0, 3);
    const std::vector<float> early = drafted(*one, 8);
    append(*one, 5, 8);  // tokens of another text, removed again
    one->truncate(3);
    append(*one, 3, 9);
    append(*other, 0, 9);
    const std::vector<float> late = drafted(*other, 9);
    EXPECT_EQ(drafted(*one, 9), late);
    EXPECT_NE(early, late);
  }
}

// Greedy and coupled texts are those of plain decoding, with both ways of drafting, on scaled models too.
TEST(FirstLayerHeads, decoding_with_them_changes_no_token) {
  const TestModel model = target();
  const auto device = kernels::open_cpu(1);
  for (const ModelScale scale : {ModelScale{}, ModelScale{4, 2}}) {
    const auto target = Model::load(*device, model.files(), {.dtype = DType::F32, .scale = scale});
    for (const bool sees_grams : {true, false}) {
      const HeadsFiles files = heads_by_first_layer(sees_grams);
      HeadsOptions options = options_of(DType::F32, scale);
      options.max_seq_len = target->max_seq_len();
      const auto heads = load_chimera(*device, files, model.files(), options);
      for (const char* drafting : {"chain", "branch"}) {
        for (const float temperature : {0.0f, 0.8f}) {
          for (const int n_prompt : {1, 2, 9}) {
            Job job{.decoder = "chimera",
                    .options = {{"drafting", drafting}, {"tree", "chimera_23"}}};
            job.sampling.temperature = temperature;
            job.heads = heads.get();
            const auto prompt = random_tokens(n_prompt, kVocab, 8);
            const Outcome found = run(*target, prompt, job);
            EXPECT_EQ(found.tokens, run_ar(*target, prompt, job).tokens)
                << drafting << temperature << n_prompt;
            EXPECT_GT(found.n_proposed, 0);
            EXPECT_EQ(found.counts.at("gram_lookups"), 0);
          }
        }
      }
    }
  }
}

TEST(FirstLayerHeads, are_written_and_read_back_and_bad_members_refused) {
  const std::string directory = testing::TempDir() + "/first_layer_heads";
  const HeadsFiles files = heads_by_first_layer(true);
  write_heads(directory, files.config, *files.tensors, DType::F32);
  const ModelFiles of_target = target().files();
  const HeadsConfig found = open_heads(directory, &of_target).config;
  EXPECT_TRUE(found.by_first_layer);
  EXPECT_EQ(found.gram, 1);
  const std::string path = directory + "/config.json", config = read_file(path);
  const auto refused = [&](const std::string& was, const std::string& is) {
    std::string text = config;
    text.replace(text.find(was), was.size(), is);
    write_file(path, text);
    try {
      open_heads(directory, &of_target);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused("\"first_layer\",\n", "\"second_layer\",\n"),
              HasSubstr("token_encoder: found \"second_layer\", expected grams or first_layer"));
  EXPECT_THAT(refused("\"gram\": 1", "\"gram\": 3"), HasSubstr("gram: found 3, expected 1"));
  EXPECT_THAT(refused("\"frozen\"", "\"finetuned\""), HasSubstr("expected frozen"));
}

}  // namespace
}  // namespace engine::test
