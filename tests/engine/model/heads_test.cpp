// Compares draft heads with plain loops in double precision, and the encoder's cache with full
// recomputation. Heads are scaled with their target.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/model/draft_heads.h"
#include "engine/model/gram_cache.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/random_models.h"

namespace engine::test {
namespace {

using kernels::DType;
using Vector = std::vector<double>;

constexpr int kDim = 48, kVocab = 101, kMaxSeqLen = 256;

HeadsConfig medusa_config() {
  HeadsConfig config;
  config.n_heads = 3;
  config.n_layers = 2;
  config.dim = kDim;
  config.vocab_size = kVocab;
  return config;
}

HeadsConfig chimera_config() {
  HeadsConfig config;
  config.kind = HeadsKind::Chimera;
  config.n_heads = 3;
  config.dim = kDim;
  config.vocab_size = kVocab;
  config.hidden_dim = 56;
  config.n_attention_heads = 4;
  return config;
}

/// Heads that end in the target's output matrix, of every third token or of all.
HeadsConfig with_target_output(HeadsConfig config, bool every_third) {
  config.target_output = true;
  if (config.kind == HeadsKind::Chimera) config.head_hidden_dim = 24;
  for (TokenId token = 1; every_third && token < kVocab; token += 3)
    config.output_tokens.push_back(token);
  return config;
}

/// The same heads with output matrices of their own and with the target's.
std::vector<HeadsConfig> output_forms(const HeadsConfig& config) {
  return {config, with_target_output(config, false), with_target_output(config, true)};
}

ModelFiles target_files() {
  ModelConfig config = odd_config();
  config.dim = kDim;
  config.n_layers = 1;
  config.n_heads = config.n_kv_heads = 4;
  config.head_dim = 12;
  return random_model("target", config, 3).files();
}

/// Random heads, large enough that their output depends on their input.
HeadsFiles heads_of(const HeadsConfig& config, std::uint64_t seed = 5) {
  const auto small = random_heads(config, seed);
  const auto tensors = std::make_shared<MemoryTensors>();
  for (const TensorSpec& spec : tensors_of(config)) {
    const Tensor tensor = small->read(spec.name);
    const auto* values = static_cast<const float*>(tensor.data);
    MemoryTensors::Entry entry{spec.shape, {values, values + tensor.n_elements()}};
    if (!spec.name.ends_with("norm.weight"))
      for (float& value : entry.data) value *= 12;
    tensors->entries[spec.name] = entry;
  }
  HeadsFiles files;
  files.path = files.name = "heads";
  files.config = config;
  files.tensors = tensors;
  if (config.target_output)
    files.tensors = engine::with_target_output(tensors, config.output_tokens, target_files());
  return files;
}

HeadsOptions options_of(DType dtype, const ModelScale& scale = {}) {
  return {.dtype = dtype, .scale = scale, .vocab_size = kVocab, .max_seq_len = kMaxSeqLen};
}

/// n hidden states, [n, kDim].
std::vector<float> states(int n, std::uint64_t seed) {
  std::vector<float> values;
  for (int i = 0; i < n * kDim; i++) {
    const auto bits = kernels::random_bits(seed, 5, 0, static_cast<std::uint32_t>(i));
    values.push_back(static_cast<float>(4 * kernels::uniform_from_bits(bits) - 2));
  }
  return values;
}

/// The same states, each padded with zeros as in a scaled target.
std::vector<float> widened(const std::vector<float>& values, int width) {
  std::vector<float> wide;
  for (std::size_t i = 0; i < values.size(); i += kDim) {
    wide.insert(wide.end(), values.begin() + static_cast<std::ptrdiff_t>(i),
                values.begin() + static_cast<std::ptrdiff_t>(i + kDim));
    wide.resize(wide.size() + static_cast<std::size_t>((width - 1) * kDim));
  }
  return wide;
}

/// W x + b.
Vector product(const HeadsFiles& files,
               const std::string& name,
               const Vector& x,
               const std::string& bias = "") {
  const Tensor w = files.tensors->read(name);
  const auto* values = static_cast<const float*>(w.data);
  Vector y;
  for (std::int64_t i = 0; i < w.shape[0]; i++) {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); j++)
      sum += static_cast<double>(values[static_cast<std::size_t>(i) * x.size() + j]) * x[j];
    if (!bias.empty())
      sum += static_cast<double>(
          static_cast<const float*>(files.tensors->read(bias).data)[static_cast<std::size_t>(i)]);
    y.push_back(sum);
  }
  return y;
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

/// Logits from the input of the target's output matrix: -inf for tokens that the heads do not rank.
Vector target_logits(const HeadsFiles& files, const Vector& x) {
  const Vector ranked = product(files, kTargetOutput, x);
  if (files.config.output_tokens.empty()) return ranked;
  Vector all(kVocab, -INFINITY);
  for (std::size_t i = 0; i < ranked.size(); i++)
    all[static_cast<std::size_t>(files.config.output_tokens[i])] = ranked[i];
  return all;
}

void expect_close(std::span<const float> found, const Vector& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double value : expected)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  // Sums of up to 240 f32 terms of mixed sign through at most seven products.
  for (std::size_t i = 0; i < found.size(); i++)
    if (std::isinf(expected[i]))
      ASSERT_EQ(static_cast<double>(found[i]), expected[i]) << i;
    else
      ASSERT_NEAR(static_cast<double>(found[i]), expected[i], 3e-5 * largest) << i;
}

void expect_medusa_logits(const HeadsFiles& files) {
  const std::vector<float> hidden = states(1, 7);
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    SCOPED_TRACE(ops->name);
    const auto device = kernels::open_cpu(2, *ops);
    const auto heads = load_medusa(*device, files, options_of(DType::F32));
    const std::vector<float> logits = heads->logits(hidden, 3);
    ASSERT_EQ(logits.size(), 3u * kVocab);
    for (int k = 0; k < 3; k++) {
      const std::string at = std::to_string(k) + ".";
      Vector x(hidden.begin(), hidden.end());
      for (const char* layer : {"0", "1"}) {
        const Vector z =
            product(files, at + layer + ".linear.weight", x, at + layer + ".linear.bias");
        for (std::size_t i = 0; i < x.size(); i++) x[i] += silu(z[i]);
      }
      expect_close(std::span(logits).subspan(static_cast<std::size_t>(k) * kVocab, kVocab),
                   files.config.target_output ? target_logits(files, x)
                                              : product(files, at + "2.weight", x));
    }
    // Computing only the first heads gives the same bits.
    const std::vector<float> two = heads->logits(hidden, 2);
    EXPECT_TRUE(std::equal(two.begin(), two.end(), logits.begin()));
  }
}

// Rounding moves the logits by the error of its type, relative to their spread.
TEST(MedusaHeads, matrices_may_be_rounded) {
  HeadsConfig config = medusa_config();
  config.dim = 64;
  const HeadsFiles files = heads_of(config);
  const auto device = kernels::open_cpu(2);
  std::vector<float> hidden = states(2, 3);
  hidden.resize(64);
  const auto logits = [&](std::optional<DType> type) {
    HeadsOptions options = options_of(DType::F32);
    options.guess_type = type;
    return load_medusa(*device, files, options)->logits(hidden, config.n_heads);
  };
  const std::vector<float> exact = logits({});
  double size = 0;
  for (const float value : exact) size += static_cast<double>(value) * static_cast<double>(value);
  for (const auto& [type, most] : {std::pair{DType::Q8_0, 0.02}, std::pair{DType::Q4_0, 0.25}}) {
    const std::vector<float> found = logits(type);
    double error = 0;
    for (std::size_t i = 0; i < found.size(); i++)
      error += std::pow(static_cast<double>(found[i] - exact[i]), 2);
    EXPECT_LT(std::sqrt(error / size), most) << kernels::name_of(type);
    EXPECT_GT(error, 0) << kernels::name_of(type);
  }
}

TEST(MedusaHeads, logits_equal_plain_loops) {
  for (const HeadsConfig& config : output_forms(medusa_config()))
    expect_medusa_logits(heads_of(config));
}

TEST(MedusaHeads, heads_scaled_with_their_target_give_the_same_bits) {
  const std::vector<float> hidden = states(1, 8);
  for (const HeadsConfig& config : output_forms(medusa_config())) {
    const HeadsFiles files = heads_of(config);
    for_every_table_and_type([&](kernels::Device& device, DType dtype) {
      const auto plain = load_medusa(device, files, options_of(dtype))->logits(hidden, 3);
      for (const ModelScale scale : test_scales()) {
        const auto large = load_medusa(device, files, options_of(dtype, scale));
        EXPECT_EQ(large->logits(widened(hidden, scale.width), 3), plain) << name_of(scale);
      }
    });
  }
}

/// Expects the same ids, and probabilities with the same bits.
void expect_same_ranks(const std::vector<RankedTokens>& found,
                       const std::vector<RankedTokens>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t r = 0; r < found.size(); r++) {
    EXPECT_EQ(found[r].token, expected[r].token) << "row " << r;
    EXPECT_EQ(found[r].p, expected[r].p) << "row " << r;
  }
}

// The vocabulary is smaller than the matrix, as with padding tokens. A ranking holds no padding
// token.
TEST(MedusaHeads, rankings_equal_sorted_logits) {
  const HeadsFiles files = heads_of(medusa_config());
  const std::vector<float> hidden = states(1, 7);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    HeadsOptions options = options_of(dtype);
    options.vocab_size = kVocab - 2;
    const auto heads = load_medusa(device, files, options);
    for (const int k : {1, 10, 200}) {
      const auto plain = heads->MedusaHeads::ranked(hidden, 3, k);
      ASSERT_EQ(plain.size(), 3u);
      EXPECT_EQ(plain[0].token.size(), static_cast<std::size_t>(std::min(k, kVocab - 2)));
      expect_same_ranks(heads->ranked(hidden, 3, k), plain);
    }
  });
}

// 33 of the 34 ranked tokens are below the vocabulary's size.
TEST(MedusaHeads, rankings_hold_only_ranked_tokens) {
  const HeadsFiles files = heads_of(with_target_output(medusa_config(), true));
  const std::vector<float> hidden = states(1, 7);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    HeadsOptions options = options_of(dtype);
    options.vocab_size = kVocab - 2;
    const auto heads = load_medusa(device, files, options);
    const std::vector<float> logits = heads->logits(hidden, 3);
    expect_same_ranks(heads->ranked(hidden, 3, 10), heads->MedusaHeads::ranked(hidden, 3, 10));
    for (const RankedTokens& ranked : heads->ranked(hidden, 3, 200)) {
      EXPECT_EQ(ranked.token.size(), 33u);
      EXPECT_NEAR(std::accumulate(ranked.p.begin(), ranked.p.end(), 0.0), 1, 1e-6);
      for (const TokenId token : ranked.token) EXPECT_EQ(token % 3, 1);
    }
  });
}

TEST(MedusaHeads, non_finite_logits_rank_nothing) {
  const HeadsFiles files = heads_of(medusa_config());
  const auto device = kernels::open_cpu(1);
  const auto heads = load_medusa(*device, files, options_of(DType::F32));
  std::vector<float> hidden = states(1, 7);
  hidden[5] = NAN;
  for (const RankedTokens& ranked : heads->ranked(hidden, 3, 4)) EXPECT_TRUE(ranked.token.empty());
}

/// The k-gram of one row of a draft.
using Gram = std::vector<TokenId>;

/// k-grams that end at positions [first, first + n) of a sequence, oldest token first.
std::vector<TokenId> text_grams(int gram, int first, int n, std::uint64_t seed = 40) {
  std::vector<TokenId> all;
  for (int end = first; end < first + n; end++) {
    for (int i = end - gram + 1; i <= end; i++) {
      const auto bits =
          kernels::random_bits(seed, 5, 0, static_cast<std::uint32_t>(std::max(i, 0)));
      all.push_back(i < 0 ? -1 : static_cast<TokenId>(kVocab * kernels::uniform_from_bits(bits)));
    }
  }
  return all;
}

/// The whole encoder in double precision: hidden states at 0 .. n - 1 and, where the heads see
/// them, k-grams at 1 .. n - 1, then a chain of k-grams from n on.
/// @param committed  [n, gram]
/// @return  the prediction of head `head` after the end of the chain
Vector reference(const HeadsFiles& files,
                 const ModelFiles& target,
                 const std::vector<float>& hidden,
                 const std::vector<TokenId>& committed,
                 const std::vector<Gram>& chain,
                 int head) {
  const HeadsConfig& c = files.config;
  const int n_heads = c.n_attention_heads, head_dim = c.head_dim(), half = head_dim / 2;
  const Tensor table = c.own_embedding ? files.tensors->read("embed_tokens.weight")
                                       : target.tensors->read("model.embed_tokens.weight");
  const auto normed = [&](const Vector& x, const std::string& name) {
    double square = 0;
    for (const double value : x) square += value * value / kDim;
    Vector y;
    const auto* w = static_cast<const float*>(files.tensors->read(name).data);
    for (std::size_t i = 0; i < x.size(); i++)
      y.push_back(x[i] / std::sqrt(square + static_cast<double>(c.norm_eps)) *
                  static_cast<double>(w[i]));
    return y;
  };
  const auto rotated = [&](Vector x, int pos) {
    for (int h = 0; h < n_heads; h++)
      for (int i = 0; i < half; i++) {
        const double angle = pos * std::pow(c.rope_theta, -2.0 * i / head_dim);
        double& a = x[static_cast<std::size_t>(h * head_dim + i)];
        double& b = x[static_cast<std::size_t>(h * head_dim + i + half)];
        const double old = a;
        a = old * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + old * std::sin(angle);
      }
    return x;
  };
  std::vector<Vector> rows;
  std::vector<int> stands;
  for (std::size_t i = 0; i < hidden.size(); i += kDim) {
    stands.push_back(static_cast<int>(rows.size()));
    rows.emplace_back(hidden.begin() + static_cast<std::ptrdiff_t>(i),
                      hidden.begin() + static_cast<std::ptrdiff_t>(i + kDim));
  }
  const Vector last = rows.back();
  const int n = static_cast<int>(rows.size());
  const auto add_gram = [&](std::span<const TokenId> gram, int pos) {
    Vector e;
    for (const TokenId id : gram)
      for (int i = 0; i < kDim; i++)
        e.push_back(id < 0 ? 0
                           : static_cast<double>(static_cast<const float*>(
                                 table.data)[static_cast<std::size_t>(id * kDim + i)]));
    Vector z = product(files, "gram.0.weight", e);
    for (double& value : z) value = silu(value);
    rows.push_back(product(files, "gram.1.weight", z));
    stands.push_back(pos);
  };
  const auto gram = static_cast<std::size_t>(c.gram);
  for (int i = 1; i < n && c.sees_committed_grams; i++)
    add_gram(std::span(committed).subspan(static_cast<std::size_t>(i) * gram, gram), i);
  for (std::size_t j = 0; j < chain.size(); j++) add_gram(chain[j], n + static_cast<int>(j));
  std::vector<Vector> k, v;
  Vector q;
  for (std::size_t r = 0; r < rows.size(); r++) {
    const Vector x = normed(rows[r], "encoder.input_layernorm.weight");
    const int pos = stands[r];
    k.push_back(rotated(product(files, "encoder.self_attn.k_proj.weight", x), pos));
    v.push_back(product(files, "encoder.self_attn.v_proj.weight", x));
    q = rotated(product(files, "encoder.self_attn.q_proj.weight", x), pos);
  }
  Vector attended(kDim);
  for (int h = 0; h < n_heads; h++) {
    Vector weight;
    double sum = 0;
    for (const Vector& key : k) {
      double score = 0;
      for (int i = 0; i < head_dim; i++) {
        const auto at = static_cast<std::size_t>(h * head_dim + i);
        score += q[at] * key[at];
      }
      weight.push_back(std::exp(score / std::sqrt(head_dim)));
      sum += weight.back();
    }
    for (std::size_t r = 0; r < v.size(); r++)
      for (int i = 0; i < head_dim; i++) {
        const auto at = static_cast<std::size_t>(h * head_dim + i);
        attended[at] += weight[r] / sum * v[r][at];
      }
  }
  Vector x = rows.back();
  const Vector out = product(files, "encoder.self_attn.o_proj.weight", attended);
  for (std::size_t i = 0; i < x.size(); i++) x[i] += out[i];
  const Vector y = normed(x, "encoder.post_attention_layernorm.weight");
  Vector gated = product(files, "encoder.mlp.gate_proj.weight", y);
  const Vector up = product(files, "encoder.mlp.up_proj.weight", y);
  for (std::size_t i = 0; i < gated.size(); i++) gated[i] = silu(gated[i]) * up[i];
  const Vector down = product(files, "encoder.mlp.down_proj.weight", gated);
  for (std::size_t i = 0; i < x.size(); i++) x[i] += down[i];
  Vector joined = c.residual ? last : Vector{};
  joined.insert(joined.end(), x.begin(), x.end());
  const std::string own = "heads." + std::to_string(head);
  if (!c.target_output) return product(files, own + ".weight", joined);
  Vector mixed = product(files, own + ".0.weight", joined);
  for (double& value : mixed) value = silu(value);
  const Vector added = product(files, own + ".1.weight", mixed);
  for (std::size_t i = 0; i < x.size(); i++) x[i] += added[i] + (c.residual ? last[i] : 0);
  return target_logits(files, x);
}

/// k-grams of a draft of tokens 11, 12, 13 after a sequence; `from_the_start`: the sequence is
/// shorter than a k-gram.
std::vector<Gram> grams_of(int gram, int n, bool from_the_start = false) {
  std::vector<Gram> all;
  for (int i = 0; i < n; i++) {
    Gram one;
    for (int j = i - gram + 1; j <= i; j++)
      one.push_back(j < 0 && from_the_start ? -1 : (11 + j + kVocab) % kVocab);
    all.push_back(one);
  }
  return all;
}

std::vector<std::vector<float>> drafted(ChimeraSequence& text, const std::vector<Gram>& grams) {
  std::vector<std::vector<float>> said;
  text.begin_draft();
  for (std::size_t i = 0; i < grams.size(); i++) {
    const int parent = static_cast<int>(i) - 1;
    said.push_back(text.level(std::span(&parent, 1), grams[i]));
  }
  return said;
}

void expect_chimera_logits(const HeadsConfig& config) {
  const ModelFiles target = target_files();
  const HeadsFiles files = heads_of(config);
  for (const int n : {1, 70}) {
    SCOPED_TRACE(std::to_string(config.gram) + "-grams after " + std::to_string(n));
    const std::vector<float> hidden = states(n, 9);
    const auto device = kernels::open_cpu(2);
    const auto heads = load_chimera(*device, files, target, options_of(DType::F32));
    const auto text = heads->make_sequence(nullptr);
    const std::vector<TokenId> committed = text_grams(config.gram, 0, n);
    text->append(hidden, committed);
    EXPECT_EQ(text->length(), n);
    const std::vector<Gram> grams = grams_of(config.gram, 3, n == 1);
    const auto said = drafted(*text, grams);
    for (std::size_t i = 0; i < grams.size(); i++) {
      const std::vector<Gram> chain(grams.begin(),
                                    grams.begin() + static_cast<std::ptrdiff_t>(i + 1));
      expect_close(said[i],
                   reference(files, target, hidden, committed, chain, static_cast<int>(i)));
    }
  }
}

TEST(ChimeraHeads, logits_equal_plain_loops_in_every_form) {
  for (int gram = 1; gram <= 5; gram++) {
    for (const bool residual : {true, false}) {
      HeadsConfig config = chimera_config();
      config.gram = gram;
      config.residual = residual;
      config.sees_committed_grams = residual == (gram % 3 > 0);
      config.own_embedding = gram % 2 == 0;
      expect_chimera_logits(config);
    }
  }
}

TEST(ChimeraHeads, logits_with_the_targets_output_equal_plain_loops) {
  for (const bool every_third : {false, true}) {
    for (const bool residual : {true, false}) {
      HeadsConfig config = chimera_config();
      config.residual = residual;
      expect_chimera_logits(with_target_output(config, every_third));
    }
  }
}

TEST(ChimeraHeads, an_incremental_encoder_equals_a_fresh_one) {
  const ModelFiles target = target_files();
  const std::vector<float> hidden = states(140, 10), other = states(30, 11);
  const auto grow = [&](ChimeraSequence& text, int to) {
    const int from = text.length();
    text.append(std::span(hidden).subspan(static_cast<std::size_t>(from * kDim),
                                          static_cast<std::size_t>((to - from) * kDim)),
                text_grams(3, from, to - from));
  };
  for (const bool sees_grams : {true, false}) {
    HeadsConfig config = chimera_config();
    config.sees_committed_grams = sees_grams;
    const HeadsFiles files = heads_of(config);
    for_every_table_and_type([&](kernels::Device& device, DType dtype) {
      const auto heads = load_chimera(device, files, target, options_of(dtype));
      const auto fresh = heads->make_sequence(nullptr);
      grow(*fresh, 140);
      const auto expected = drafted(*fresh, grams_of(3, 3));
      const auto grown =
          heads->make_sequence(sees_grams ? std::make_shared<GramCache>(64) : nullptr);
      for (const int to : {1, 64, 65, 70, 120}) {
        grow(*grown, to);
        drafted(*grown, grams_of(3, 2));  // has no lasting effect
      }
      // Rejected rows are truncated and the accepted rows take their place.
      for (const int kept : {120, 33, 1, 0}) {
        grown->append(other, text_grams(3, grown->length(), 30, 41));
        grown->truncate(kept);
        EXPECT_EQ(grown->length(), kept);
        grow(*grown, 140);
        EXPECT_EQ(drafted(*grown, grams_of(3, 3)), expected) << kept;
      }
    });
  }
}

TEST(ChimeraHeads, k_grams_start_at_the_second_token) {
  const ModelFiles target = target_files();
  for (const bool sees_grams : {true, false}) {
    HeadsConfig config = chimera_config();
    config.gram = 2;
    config.sees_committed_grams = sees_grams;
    const HeadsFiles files = heads_of(config);
    const auto device = kernels::open_cpu(1);
    const auto heads = load_chimera(*device, files, target, options_of(DType::F32));
    const auto said = [&](std::vector<TokenId> grams) {
      const auto text = heads->make_sequence(nullptr);
      text->append(states(9, 14), grams);
      return drafted(*text, grams_of(2, 2));
    };
    const auto plain = said(text_grams(2, 0, 9));
    for (std::size_t token = 0; token < 18; token++) {
      std::vector<TokenId> other = text_grams(2, 0, 9);
      other[token] = (other[token] + 50) % kVocab;
      EXPECT_EQ(said(other) != plain, sees_grams && token >= 2) << token;
    }
  }
}

TEST(ChimeraHeads, a_branch_equals_its_chain_alone) {
  const ModelFiles target = target_files();
  const HeadsFiles files = heads_of(with_target_output(chimera_config(), false));
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto heads = load_chimera(device, files, target, options_of(dtype));
    const auto text = heads->make_sequence(std::make_shared<GramCache>(16));
    text->append(states(66, 12), text_grams(3, 0, 66));
    const Gram root{1, 2, 3}, a{2, 3, 4}, b{2, 3, 5}, of_a{3, 4, 6}, of_b{3, 5, 7};
    text->begin_draft();
    const std::vector<int> none{-1}, both{0, 0}, crossed{2, 1};
    text->level(none, root);
    Gram second = a, third = of_b;
    second.insert(second.end(), b.begin(), b.end());
    third.insert(third.end(), of_a.begin(), of_a.end());
    text->level(both, second);
    const std::vector<float> tree = text->level(crossed, third);
    const auto chain_a = drafted(*text, {root, a, of_a}), chain_b = drafted(*text, {root, b, of_b});
    EXPECT_TRUE(std::equal(chain_b[2].begin(), chain_b[2].end(), tree.begin()));
    EXPECT_TRUE(std::equal(chain_a[2].begin(), chain_a[2].end(), tree.begin() + kVocab));
    EXPECT_NE(chain_a[2], chain_b[2]);
  });
}

TEST(ChimeraHeads, rankings_equal_sorted_logits) {
  const ModelFiles target = target_files();
  std::vector<HeadsConfig> forms = output_forms(chimera_config());
  forms.push_back(chimera_config());
  forms.back().residual = false;
  for (const HeadsConfig& config : forms) {
    const HeadsFiles files = heads_of(config);
    for_every_table_and_type([&](kernels::Device& device, DType dtype) {
      const auto heads = load_chimera(device, files, target, options_of(dtype));
      const auto text = heads->make_sequence(std::make_shared<GramCache>(4));
      text->append(states(7, 12), text_grams(3, 0, 7));
      const std::vector<int> none{-1}, both{0, 0};
      const Gram root{1, 2, 3}, second{2, 3, 4, 2, 3, 5};
      std::vector<std::vector<RankedTokens>> found, plain;
      text->begin_draft();
      found.push_back(text->ranked_level(none, root, 6));
      found.push_back(text->ranked_level(both, second, 6));
      text->begin_draft();
      plain.push_back(text->ChimeraSequence::ranked_level(none, root, 6));
      plain.push_back(text->ChimeraSequence::ranked_level(both, second, 6));
      ASSERT_EQ(plain[1].size(), 2u);
      for (std::size_t level = 0; level < 2; level++) expect_same_ranks(found[level], plain[level]);
    });
  }
}

TEST(ChimeraHeads, cached_k_grams_change_no_bit) {
  const ModelFiles target = target_files();
  const HeadsFiles files = heads_of(chimera_config());
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto heads = load_chimera(device, files, target, options_of(dtype));
    const auto eight = std::make_shared<GramCache>(8), two = std::make_shared<GramCache>(2);
    const auto without = heads->make_sequence(nullptr), with = heads->make_sequence(eight),
               few = heads->make_sequence(two);
    for (int round = 0; round < 6; round++) {
      for (ChimeraSequence* text : {without.get(), with.get(), few.get()})
        text->append(states(1, 20 + static_cast<std::uint64_t>(round)), text_grams(3, round, 1));
      const auto grams = grams_of(3, round % 2 ? 3 : 1);
      const auto expected = drafted(*without, grams);
      EXPECT_EQ(drafted(*with, grams), expected);
      EXPECT_EQ(drafted(*few, grams), expected);
    }
    // Looks up five k-grams of the sequence, all new, and twelve drafted ones, of which three are
    // distinct.
    EXPECT_EQ(eight->counts().n_looked_up, 17);
    EXPECT_EQ(eight->counts().n_found, 9);
    EXPECT_EQ(eight->counts().n_evicted, 0);
    EXPECT_GT(two->counts().n_evicted, 0);
  });
}

TEST(ChimeraHeads, a_cache_may_be_filled_and_serve_several_sequences) {
  const ModelFiles target = target_files();
  const HeadsFiles files = heads_of(chimera_config());
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto heads = load_chimera(device, files, target, options_of(dtype));
    const auto drafted_by = [&](std::shared_ptr<GramCache> cache) {
      const auto text = heads->make_sequence(std::move(cache));
      text->append(states(4, 20), text_grams(3, 0, 4));
      return drafted(*text, grams_of(3, 1));
    };
    const auto expected = drafted_by(nullptr);
    const auto kept = heads->kept_cache(64);
    EXPECT_EQ(drafted_by(kept), expected);
    const GramCounts first = kept->counts();
    EXPECT_EQ(drafted_by(heads->kept_cache(64)), expected);
    const GramCounts both = kept->counts();
    EXPECT_EQ(both.n_found - first.n_found, both.n_looked_up - first.n_looked_up)
        << "the second text needs no k-gram that the first one did not";
    EXPECT_NE(heads->kept_cache(32), kept);
    const auto one = heads->make_sequence(kept), other = heads->make_sequence(kept);
    one->append(states(1, 20), text_grams(3, 0, 1));
    EXPECT_EQ(other->gram_counts().n_looked_up, 0) << "each sequence counts its own";
    const auto filled = std::make_shared<GramCache>(64);
    heads->make_sequence(filled)->fill_cache(text_grams(3, 0, 4));
    const GramCounts before = filled->counts();
    EXPECT_EQ(filled->size(), 4);
    EXPECT_EQ(drafted_by(filled), expected);
    EXPECT_GE(filled->counts().n_found - before.n_found, 3);
  });
}

TEST(ChimeraHeads, k_grams_by_table_and_matrix_give_the_same_bits) {
  const ModelFiles target = target_files();
  const HeadsFiles files = heads_of(chimera_config());
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    HeadsOptions by_matrix = options_of(dtype);
    by_matrix.max_table_bytes = gram_table_bytes(files.config) - 1;
    std::vector<std::vector<std::vector<float>>> said;
    for (const HeadsOptions& options : {options_of(dtype), by_matrix}) {
      const auto heads = load_chimera(device, files, target, options);
      const auto text = heads->make_sequence(nullptr);
      text->append(states(70, 12),
                   text_grams(3, 0, 70));  // the first k-grams begin before the sequence
      said.push_back(drafted(*text, grams_of(3, 1)));
    }
    EXPECT_EQ(said[0], said[1]);
  });
}

TEST(ChimeraHeads, heads_scaled_with_their_target_give_the_same_bits) {
  const ModelFiles target = target_files();
  std::vector<HeadsConfig> forms{chimera_config(), with_target_output(chimera_config(), true)};
  forms.push_back(chimera_config());
  forms.back().own_embedding = true;
  for (const HeadsConfig& config : forms) {
    const HeadsFiles files = heads_of(config);
    const std::vector<float> hidden = states(67, 13);
    for_every_table_and_type([&](kernels::Device& device, DType dtype) {
      const auto unscaled = load_chimera(device, files, target, options_of(dtype));
      const auto plain = unscaled->make_sequence(nullptr);
      plain->append(hidden, text_grams(3, 0, 67));
      const auto expected = drafted(*plain, grams_of(3, 3));
      for (const ModelScale scale : test_scales()) {
        const auto heads = load_chimera(device, files, target, options_of(dtype, scale));
        const auto large = heads->make_sequence(nullptr);
        large->append(widened(hidden, scale.width), text_grams(3, 0, 67));
        EXPECT_EQ(drafted(*large, grams_of(3, 3)), expected) << name_of(scale);
      }
    });
  }
}

}  // namespace
}  // namespace engine::test
