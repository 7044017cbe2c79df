// Compares the forward pass with plain loops in double precision, and tests the inputs that it
// refuses.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

using kernels::DType;

// A copy of the model with weights rounded to `dtype`, so that only arithmetic differs.
TestModel rounded(const TestModel& model, DType dtype) {
  TestModel copy = model;
  copy.tensors = std::make_shared<MemoryTensors>(*model.tensors);
  for (auto& [name, entry] : copy.tensors->entries) {
    if (entry.shape.size() != 2) continue;
    for (float& x : entry.data) {
      if (dtype == DType::BF16) x = kernels::f32_from_bf16(kernels::bf16_from_f32(x));
      if (dtype == DType::F16) x = kernels::f32_from_f16(kernels::f16_from_f32(x));
    }
  }
  return copy;
}

struct Distance {
  double largest = 0, root_mean_square = 0;
};

// Compares all logits of a sequence that is prefilled in part and then run as one chain.
Distance distance_from_reference(kernels::Device& device, const TestModel& model, DType dtype) {
  const std::vector<TokenId> tokens = random_tokens(71, model.config.vocab_size, 7);
  const auto expected = reference_logits(model, tokens);
  const auto loaded = load(device, model, dtype);
  Lane lane(*loaded);
  const std::size_t n_prefix = 66;  // across a page's edge
  lane.append(std::span(tokens).first(n_prefix), 40);
  const StepOutput out = lane.forward(chain_tree(std::span(tokens).subspan(n_prefix)));
  Distance d;
  double n = 0;
  for (std::size_t i = n_prefix; i < tokens.size(); i++) {
    const auto row = out.logits_of(static_cast<int>(i - n_prefix));
    for (std::size_t j = 0; j < row.size(); j++) {
      const double gap = std::abs(row[j] - expected[i][j]);
      EXPECT_TRUE(std::isfinite(gap));
      d.largest = std::max(d.largest, gap);
      d.root_mean_square += gap * gap;
      n++;
    }
  }
  d.root_mean_square = std::sqrt(d.root_mean_square / n);
  return d;
}

// Logits are a few units in size, and f32 rounds by 6e-8 of a value. Some thirty sums of 40 to 71
// terms follow one another, each with an error of about sqrt(64) * 6e-8 of its size: 30 * 8 * 6e-8
// = 1.4e-5 of a few units.
TEST(Forward, every_model_kind_equals_plain_loops_in_f32) {
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    for (const TestModel& model : models_of_every_kind()) {
      const Distance d = distance_from_reference(*device, model, DType::F32);
      EXPECT_LT(d.largest, 5e-5) << ops->name << " " << model.name;
    }
  }
}

// Each layer rounds activations, keys and values eight times, by 2^-9 (bf16) or 2^-12 (f16) of
// their size. In three layers the errors add up to sqrt(24) * 2^-9 = 1 % (bf16) or 0.12 % (f16) of
// logits of about 1.5 units. Allow three times that, because layers amplify errors.
TEST(Forward, every_model_kind_equals_plain_loops_in_16_bits) {
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    for (const TestModel& model : models_of_every_kind()) {
      SCOPED_TRACE(std::string(ops->name) + " " + model.name);
      EXPECT_LT(distance_from_reference(*device, rounded(model, DType::BF16), DType::BF16)
                    .root_mean_square,
                0.045);
      EXPECT_LT(
          distance_from_reference(*device, rounded(model, DType::F16), DType::F16).root_mean_square,
          0.0055);
    }
  }
}

TEST(Forward, picks_are_the_argmax_of_the_hidden_states_logits) {
  const auto device = kernels::open_cpu(2);
  const TestModel model = random_model("m", odd_config(), 3);
  const auto loaded = load(*device, model, DType::F32);
  Lane lane(*loaded);
  lane.append(random_tokens(20, 101, 1));
  const TokenTree tree = random_tree(9, 101, 5);
  const StepOutput out = lane.forward(tree, {.logits = true, .hidden = true});
  ASSERT_EQ(out.picked.size(), 9u);
  ASSERT_EQ(out.hidden.size(), 9u * 40);
  EXPECT_EQ(out.vocab_size, 101);
  const std::vector<float>& head = model.tensors->entries.at("lm_head.weight").data;
  for (int r = 0; r < 9; r++) {
    const auto row = out.logits_of(r);
    EXPECT_EQ(out.picked[static_cast<std::size_t>(r)].id,
              std::max_element(row.begin(), row.end()) - row.begin());
    double logit = 0;  // of token 17, from the hidden state
    for (std::size_t j = 0; j < 40; j++)
      logit += double{out.hidden[static_cast<std::size_t>(r) * 40 + j]} * head[17 * 40 + j];
    EXPECT_NEAR(logit, row[17], 1e-5);
  }
}

TEST(Forward, prefill_returns_only_requested_hidden_states) {
  const auto device = kernels::open_cpu(2);
  const auto loaded = load(*device, random_model("m", odd_config(), 3), DType::F32);
  Lane lane(*loaded);
  const TokenTree tree = chain_tree(random_tokens(12, 101, 1));
  const BatchItem prefill = lane.item(tree, /*pick_rows=*/false);
  const StepOutput quiet = loaded->forward(std::span(&prefill, 1), {.logits = true}).front();
  EXPECT_TRUE(quiet.picked.empty());
  EXPECT_TRUE(quiet.logits.empty());
  const StepOutput hidden = loaded->forward(std::span(&prefill, 1), {.hidden = true}).front();
  const StepOutput picked = lane.forward(tree, {.hidden = true});
  EXPECT_EQ(hidden.hidden.size(), 12u * 40);
  EXPECT_EQ(hidden.hidden, picked.hidden);
}

TEST(Forward, empty_batches_and_trees_are_accepted) {
  const auto device = kernels::open_cpu(2);
  const auto loaded = load(*device, random_model("m", odd_config(), 3), DType::F32);
  EXPECT_TRUE(loaded->forward({}, {}).empty());
  Lane lane(*loaded);
  EXPECT_TRUE(lane.forward(TokenTree{}).picked.empty());
}

class PaddedTokenizer final : public Tokenizer {
 public:
  int vocab_size() const override { return 90; }
  std::optional<TokenId> bos_id() const override { return std::nullopt; }
  std::optional<TokenId> eos_id() const override { return std::nullopt; }
  std::vector<TokenId> encode(std::string_view, const TextReading&) const override { return {}; }
  std::string extend(TextState&, TokenId) const override { return {}; }
  std::string piece(TokenId) const override { return {}; }
  bool is_special(TokenId) const override { return false; }
};

TEST(Forward, padding_tokens_are_never_chosen_fed_or_returned) {
  const auto device = kernels::open_cpu(2);
  TestModel model = random_model("m", odd_config(), 3);
  std::vector<float>& head = model.tensors->entries.at("lm_head.weight").data;
  const auto plain = load(*device, model, DType::F32);
  for (std::size_t i = 90 * 40; i < head.size(); i++) head[i] *= 100;  // would always be chosen
  const auto padded =
      Model::load(*device, model.files(std::make_shared<PaddedTokenizer>()), {.dtype = DType::F32});
  EXPECT_EQ(padded->vocab_size(), 90);
  EXPECT_EQ(padded->config().vocab_size, 101);
  const TokenTree tree = random_tree(20, 90, 5);
  Lane a(*plain), b(*padded);
  const StepOutput all = a.forward(tree), out = b.forward(tree);
  EXPECT_EQ(out.vocab_size, 90);
  for (int r = 0; r < 20; r++) {
    EXPECT_LT(out.picked[static_cast<std::size_t>(r)].id, 90);
    for (int i = 0; i < 90; i++)
      EXPECT_EQ(out.logits_of(r)[static_cast<std::size_t>(i)],
                all.logits_of(r)[static_cast<std::size_t>(i)]);
  }
  TokenTree bad = chain_tree(std::vector<TokenId>{90});
  EXPECT_THROW(b.forward(bad), ContractError);
}

TEST(Forward, non_finite_logits_are_refused_by_row_and_index) {
  const auto device = kernels::open_cpu(2);
  TestModel model = random_model("m", odd_config(), 3);
  // Token 5 makes the rows that attend to it NaN. Row 33 of lm_head, altered below, makes one logit
  // of every row non-finite.
  model.tensors->entries.at("model.embed_tokens.weight").data[5 * 40 + 2] =
      std::numeric_limits<float>::quiet_NaN();
  const auto loaded = load(*device, model, DType::F32);
  Lane lane(*loaded);
  TokenTree tree = chain_tree(std::vector<TokenId>{1, 2, 5, 3});
  try {
    lane.forward(tree);
    FAIL() << "logits with NaN were accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::BadInput);
    EXPECT_THAT(e.what(), testing::HasSubstr("non-finite logits at row 2, first index 0"));
  }
  model.tensors->entries.at("lm_head.weight").data[33 * 40] =
      std::numeric_limits<float>::infinity();
  const auto infinite = load(*device, model, DType::F32);
  Lane other(*infinite);
  EXPECT_THAT(
      [&] {
        other.forward(chain_tree(std::vector<TokenId>{1, 2}));
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("first index 33")));
}

TEST(Forward, rows_beyond_the_context_are_refused) {
  const auto device = kernels::open_cpu(2);
  const auto loaded = Model::load(*device, random_model("m", odd_config(), 3).files(),
                                  {.dtype = DType::F32, .max_seq_len = 70});
  EXPECT_EQ(loaded->max_seq_len(), 70);
  Lane lane(*loaded);
  lane.append(random_tokens(68, 101, 1));
  EXPECT_NO_THROW(lane.forward(chain_tree(random_tokens(2, 101, 2))));
  try {
    lane.forward(chain_tree(random_tokens(3, 101, 2)));
    FAIL() << "a row at position 70 of 70 was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Resources);
    EXPECT_THAT(e.what(), testing::HasSubstr("71"));
  }
  TokenTree wide;  // many rows, all at depth 0
  wide.token.assign(40, 3);
  wide.parent.assign(40, -1);
  wide.tag.resize(40);
  EXPECT_NO_THROW(lane.forward(wide));
  lane.append(random_tokens(2, 101, 3));
  EXPECT_EQ(lane.cache().length(), 70);
}

TEST(Forward, loading_reports_progress_and_can_be_cancelled) {
  const auto device = kernels::open_cpu(2);
  const TestModel model = random_model("m", odd_config(), 3);
  std::vector<std::int64_t> done;
  std::int64_t all = 0;
  Model::load(*device, model.files(), {.progress = [&](std::int64_t n, std::int64_t of) {
    done.push_back(n);
    all = of;
    return true;
  }});
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), all);
  EXPECT_EQ(all, 2 * model.config.n_params());
  try {
    Model::load(*device, model.files(),
                {.progress = [](std::int64_t, std::int64_t) { return false; }});
    FAIL() << "loading was not cancelled";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Cancelled);
  }
}

TEST(Forward, tensors_of_another_shape_are_refused) {
  const auto device = kernels::open_cpu(2);
  TestModel model = random_model("m", odd_config(), 3);
  model.tensors->entries.at("model.layers.1.self_attn.k_proj.weight").shape = {20, 80};
  EXPECT_THAT([&] { load(*device, model, DType::F32); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr("layers.1.self_attn.k_proj"),
                                 testing::HasSubstr("[20, 80]"), testing::HasSubstr("[40, 40]"))));
  model.tensors->entries.erase("model.layers.1.self_attn.k_proj.weight");
  EXPECT_THROW(load(*device, model, DType::F32), Error);
}

// One projection of each fused matrix, and a norm, in bf16; the rest in f32.
class MixedTensors final : public TensorSource {
 public:
  explicit MixedTensors(std::shared_ptr<const TensorSource> tensors)
      : tensors_(std::move(tensors)) {}
  bool has(const std::string& name) const override { return tensors_->has(name); }
  std::vector<std::string> names() const override { return tensors_->names(); }
  std::string path() const override { return tensors_->path(); }
  Tensor read(const std::string& name) const override {
    Tensor t = tensors_->read(name);
    if (name.find("v_proj") == std::string::npos && name.find("gate_proj") == std::string::npos &&
        name.find("input_layernorm") == std::string::npos)
      return t;
    const auto* from = static_cast<const float*>(t.data);
    auto bits = std::make_shared<std::vector<std::uint16_t>>();
    for (std::int64_t i = 0; i < t.n_elements(); i++)
      bits->push_back(kernels::bf16_from_f32(from[i]));
    return {.dtype = DType::BF16, .shape = t.shape, .data = bits->data(), .hold = bits};
  }

 private:
  std::shared_ptr<const TensorSource> tensors_;
};

TEST(Forward, tensors_of_several_dtypes_are_fused_exactly) {
  const auto device = kernels::open_cpu(2);
  const TestModel model = rounded(random_model("m", odd_config(), 3), DType::BF16);
  for (auto& [name, entry] : model.tensors->entries)
    for (float& x : entry.data) x = kernels::f32_from_bf16(kernels::bf16_from_f32(x));
  ModelFiles files = model.files();
  const auto plain = Model::load(*device, files, {.dtype = DType::F32});
  files.tensors = std::make_shared<MixedTensors>(model.tensors);
  const auto mixed = Model::load(*device, files, {.dtype = DType::F32});
  Lane a(*plain), b(*mixed);
  const TokenTree tree = random_tree(9, 101, 5);
  EXPECT_EQ(a.forward(tree).logits, b.forward(tree).logits);
}

}  // namespace
}  // namespace engine::test
