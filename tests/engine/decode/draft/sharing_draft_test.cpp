// Drafts that share the embedding and the output matrix of their target: files, forward, decoding.
#include "engine/checkpoint/draft/sharing_draft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/gguf/convert.h"
#include "engine/checkpoint/model_files.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/model.h"
#include "engine/store/model_store.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

const std::vector<TokenId> kSome{1, 2, 5, 40, 41, 42, 70, 99, 150, 151, 200, 268};

/// A target directory and drafts of it.
class SharingDraft : public testing::Test {
 protected:
  void SetUp() override {
    ModelConfig config = small_config();
    write_small_model(target_dir_, config);
    target_ = open_model(target_dir_.path());
  }

  ModelConfig draft_config() const {
    ModelConfig config = target_.config;
    config.n_layers = 1;
    config.shares_embedding_of = target_.name;
    return config;
  }
  /// Writes the target's first layer as a draft.
  void write_draft(const std::string& path, const std::vector<TokenId>& tokens) const {
    write_sharing_draft(path, draft_config(), *target_.tensors, tokens, kernels::DType::BF16);
  }
  ModelFiles open_draft(const std::string& path, const ModelFiles& target) const {
    return open_model(path, {.target = &target});
  }
  std::string refused(const std::string& path) const {
    return refusal([&] { open_draft(path, target_); });
  }

  Folder target_dir_, draft_dir_;
  ModelFiles target_;
  std::unique_ptr<kernels::Device> device_ = kernels::open_cpu(1);
};

/// Outputs of the rows of one chain.
StepOutput outputs_of(LanguageModel& model, Wants wants, const Sampling& sampling = {}) {
  const auto cache = model.make_cache();
  TokenTree tree;
  for (const TokenId token : {1, 40, 7, 150, 40}) tree.add(token, tree.n_rows() - 1, RowTag{});
  const BatchItem item{.cache = cache.get(), .tree = &tree, .sampling = sampling};
  return model.forward(std::span(&item, 1), wants).front();
}

TEST_F(SharingDraft, equals_a_draft_with_copied_matrices) {
  write_draft(draft_dir_.path(), {});
  const ModelFiles shared = open_draft(draft_dir_.path(), target_);
  EXPECT_EQ(shared.tokenizer, target_.tokenizer);
  EXPECT_FALSE(shared.tensors->has("output_tokens"));
  Folder copied_dir;
  ModelConfig config = shared.config;
  config.shares_embedding_of.clear();
  write_model(copied_dir.path(), config, *shared.tensors, kernels::DType::BF16, target_dir_.path());
  const ModelFiles copied = open_model(copied_dir.path());
  for (const kernels::DType dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    const auto a = Model::load(*device_, shared, {.dtype = dtype});
    const auto b = Model::load(*device_, copied, {.dtype = dtype});
    EXPECT_EQ(outputs_of(*a, {.logits = true}).logits, outputs_of(*b, {.logits = true}).logits);
  }
}

TEST_F(SharingDraft, with_output_tokens_equals_masking) {
  write_draft(draft_dir_.path(), {});
  const auto whole = Model::load(*device_, open_draft(draft_dir_.path(), target_), {});
  write_draft(draft_dir_.path(), kSome);
  const auto some = Model::load(*device_, open_draft(draft_dir_.path(), target_), {});
  EXPECT_TRUE(std::ranges::equal(some->output_tokens(), kSome));
  EXPECT_EQ(some->vocab_size(), whole->vocab_size());
  EXPECT_LT(some->weight_bytes(), whole->weight_bytes());

  const StepOutput all = outputs_of(*whole, {.logits = true});
  const StepOutput found = outputs_of(*some, {.logits = true, .n_top = 3});
  ASSERT_EQ(found.logits.size(), all.logits.size());
  for (int row = 0; row < 5; row++) {
    std::vector<float> masked(static_cast<std::size_t>(some->vocab_size()),
                              -std::numeric_limits<float>::infinity());
    for (const TokenId token : kSome)
      masked[static_cast<std::size_t>(token)] = all.logits_of(row)[static_cast<std::size_t>(token)];
    EXPECT_TRUE(std::ranges::equal(found.logits_of(row), masked));
    const auto r = static_cast<std::size_t>(row);
    EXPECT_EQ(found.picked[r].id, std::ranges::max_element(masked) - masked.begin());
    EXPECT_EQ(found.top_of(row)[0], found.picked[r].id);
    // Ranking with a penalty: token 40 is in the history of every row but the first.
    const Sampling sampling{.temperature = 0.7f, .repetition_penalty = 1.5f};
    const RankedTokens ranked = outputs_of(*some, {.n_ranked = 4}, sampling).ranked[r];
    std::vector<TokenId> history{1, 40, 7, 150, 40};
    history.resize(r + 1);
    const std::vector<double> expected = token_distribution(masked, sampling, history);
    ASSERT_EQ(ranked.token.size(), 4u);
    for (std::size_t i = 0; i < 4; i++)
      EXPECT_NEAR(ranked.p[i], expected[static_cast<std::size_t>(ranked.token[i])], 1e-6);
    EXPECT_NEAR(ranked.p[0], std::ranges::max(expected), 1e-6);
  }
}

TEST_F(SharingDraft, reads_a_quantised_target_and_is_quantised_itself) {
  struct Case {
    GgmlType target;
    kernels::DType draft;
    float error;  // of a logit: that of rounding
  };
  for (const auto& [type, expected, error] : {Case{GgmlType::Q8_0, kernels::DType::Q8_0, 0.05f},
                                              Case{GgmlType::Q4_0, kernels::DType::Q4_0, 0.5f},
                                              Case{GgmlType::Q4_1, kernels::DType::Q4_0, 0.5f}}) {
    SCOPED_TRACE(name_of(type));
    const std::string gguf = target_dir_ / "target.gguf";
    std::vector<std::string> notices;
    write_gguf(target_, gguf, type, {}, notices);
    const ModelFiles target = open_model(gguf);
    write_draft(draft_dir_.path(), kSome);
    const ModelFiles draft = open_draft(draft_dir_.path(), target);
    EXPECT_TRUE(draft.quantised);
    EXPECT_EQ(draft.stored_type, kernels::name_of(expected));
    const auto packed =
        Model::load(*device_, draft, {.dtype = kernels::DType::F16, .as_stored = true});
    const auto f32 = Model::load(*device_, draft, {.dtype = kernels::DType::F32});
    EXPECT_EQ(packed->matrix_type(), expected);
    EXPECT_EQ(draft.tensors->quantised_format("lm_head.weight"), expected);
    const StepOutput a = outputs_of(*packed, {.logits = true});
    const StepOutput b = outputs_of(*f32, {.logits = true});
    for (std::size_t i = 0; i < a.logits.size(); i++)
      EXPECT_TRUE(a.logits[i] == b.logits[i] || std::abs(a.logits[i] - b.logits[i]) < error);
    EXPECT_EQ(draft.tensors->stored("lm_head.weight").shape,
              (std::vector<std::int64_t>{std::ssize(kSome), target.config.dim}));
  }
}

TEST_F(SharingDraft, drafts_change_no_token) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  for (const std::vector<TokenId>& tokens : {std::vector<TokenId>{}, kSome}) {
    Folder dir;
    write_draft(dir.path(), tokens);
    const RunModels models =
        store.get_with_draft({.model = target_dir_.path()}, {.draft = dir.path()}, "speculative");
    EXPECT_TRUE(pair_notices(models).empty());
    for (const char* decoder : {"speculative", "mcsd"}) {
      for (const Sampling& sampling : {Sampling{}, Sampling{.temperature = 0.8f}}) {
        Job job;
        job.decoder = decoder;
        job.draft = models.draft->model.get();
        job.sampling = sampling;
        const std::vector<TokenId> prompt{1, 40, 99, 7};
        EXPECT_EQ(run(*models.target.model, prompt, job).tokens,
                  run_ar(*models.target.model, prompt, job).tokens);
        job.sampling.mode = Sampling::Mode::Rejection;
        job.sampling.temperature = 0.8f;
        EXPECT_FALSE(run(*models.target.model, prompt, job).tokens.empty());
      }
    }
  }
}

TEST_F(SharingDraft, picks_the_same_tokens_when_enlarged) {
  write_draft(draft_dir_.path(), kSome);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto picked_at = [&](const std::string& scale) {
    const RunModels models = store.get_with_draft({.model = target_dir_.path(), .scale = scale},
                                                  {.draft = draft_dir_.path()}, "speculative");
    EXPECT_EQ(models.draft->model->scale(), models.target.model->scale());
    std::vector<TokenId> ids;
    for (const auto& token : outputs_of(*models.draft->model, {}).picked) ids.push_back(token.id);
    return ids;
  };
  EXPECT_EQ(picked_at("1x1"), picked_at("4x2"));
}

TEST_F(SharingDraft, belongs_to_one_target_in_a_store) {
  Folder other_dir;
  write_small_model(other_dir);
  write_draft(draft_dir_.path(), kSome);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto draft_of = [&](const std::string& target) {
    return store.get_with_draft({.model = target}, {.draft = draft_dir_.path()}, "mcsd").draft->id;
  };
  const auto first = draft_of(target_dir_.path());
  EXPECT_EQ(draft_of(target_dir_.path()), first);
  EXPECT_NE(draft_of(other_dir.path()), first);
}

TEST_F(SharingDraft, is_refused_without_its_target) {
  write_draft(draft_dir_.path(), kSome);
  const std::string text = refusal([&] { open_model(draft_dir_.path()); });
  EXPECT_NE(text.find("shares_embedding_of: found"), std::string::npos) << text;
  EXPECT_NE(text.find("--model TARGET --draft " + draft_dir_.path()), std::string::npos) << text;
}

TEST_F(SharingDraft, that_does_not_fit_is_refused) {
  write_draft(draft_dir_.path(), kSome);
  const std::string config = draft_dir_ / "config.json", good = read_file(config);
  write_file(config, replaced(good, "\"vocab_size\": 300", "\"vocab_size\": 299"));
  EXPECT_THAT(refused(draft_dir_.path()),
              testing::HasSubstr("config.json: vocab_size: found 299, expected 300 as in"));
  write_file(config, good);
  write_draft(draft_dir_.path(), {4, 9, 9});
  EXPECT_THAT(
      refused(draft_dir_.path()),
      testing::HasSubstr("tensor \"output_tokens\": element 2: found 9, expected an ascending"));
  write_draft(draft_dir_.path(), {4, 300});
  EXPECT_THAT(refused(draft_dir_.path()),
              testing::HasSubstr("tensor \"output_tokens\": element 1: found 300, expected an"));
  write_draft(draft_dir_.path(), {-1, 4});
  EXPECT_THAT(refused(draft_dir_.path()), testing::HasSubstr("element 0: found -1"));
  const std::string weights = draft_dir_ / "model.safetensors";
  write_file(weights, replaced(read_file(weights), "\"I32\"", "\"F32\""));
  EXPECT_THAT(refused(draft_dir_.path()), testing::HasSubstr("dtype: found F32, expected I32"));
}

}  // namespace
}  // namespace engine::test
