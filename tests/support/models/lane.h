// A model and sequences on it, for the tests of the forward pass.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device.h"
#include "tests/support/models/random_models.h"

namespace engine::test {

/// Runs `body` for every CPU table of this machine and every dtype, under SCOPED_TRACE.
inline void for_every_table_and_type(
    const std::function<void(kernels::Device&, kernels::DType)>& body) {
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    for (const kernels::DType dtype :
         {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16}) {
      SCOPED_TRACE(std::string(ops->name) + " " + kernels::name_of(dtype));
      body(*device, dtype);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// One sequence on a model.
class Lane {
 public:
  Sampling sampling;
  int n_prompt = 0;  // as in BatchItem

  explicit Lane(Model& model) : model_(model), cache_(model.make_cache()) {}
  Lane(const Lane& other)
      : sampling(other.sampling),
        n_prompt(other.n_prompt),
        model_(other.model_),
        cache_(other.cache_->fork()),
        tokens_(other.tokens_) {}

  BatchItem item(const TokenTree& tree, bool pick_rows = true) const {
    return {.cache = cache_.get(),
            .tree = &tree,
            .prefix = tokens_,
            .sampling = sampling,
            .pick_rows = pick_rows,
            .n_prompt = n_prompt};
  }
  StepOutput forward(const TokenTree& tree, Wants wants = {.logits = true}) {
    const BatchItem one = item(tree);
    return std::move(model_.forward(std::span(&one, 1), wants).front());
  }
  /// Commits a path of the tree of the last forward.
  void commit(const TokenTree& tree, std::vector<int> path) {
    cache_->commit(path);
    for (const int row : path) tokens_.push_back(tree.token[static_cast<std::size_t>(row)]);
  }
  void truncate(int length) {
    cache_->truncate(length);
    tokens_.resize(static_cast<std::size_t>(length));
  }
  /// Prefills tokens in forwards of at most `chunk` rows.
  void append(std::span<const TokenId> tokens, std::size_t chunk = 256) {
    while (!tokens.empty()) {
      const TokenTree tree = chain_tree(tokens.first(std::min(chunk, tokens.size())));
      const BatchItem one = item(tree, /*pick_rows=*/false);
      model_.forward(std::span(&one, 1), {});
      std::vector<int> path(tree.token.size());
      std::iota(path.begin(), path.end(), 0);
      commit(tree, path);
      tokens = tokens.subspan(path.size());
    }
  }
  /// Bits of all keys and values, layer by layer.
  std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> all;
    std::vector<float> k, v;
    for (int l = 0; l < model_.config().n_layers; l++) {
      model_.read_cache(*cache_, l, k, v);
      for (const float x : k) all.push_back(std::bit_cast<std::uint32_t>(x));
      for (const float x : v) all.push_back(std::bit_cast<std::uint32_t>(x));
    }
    return all;
  }

  SequenceCache& cache() { return *cache_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  Model& model_;
  std::unique_ptr<SequenceCache> cache_;
  std::vector<TokenId> tokens_;
};

/// Bits of one row of logits.
inline std::vector<std::uint32_t> bits_of_row(const StepOutput& output, int row) {
  std::vector<std::uint32_t> bits;
  for (const float x : output.logits_of(row)) bits.push_back(std::bit_cast<std::uint32_t>(x));
  return bits;
}

/// Expects the same logits and the same choice, bit for bit.
inline void expect_same_row(const StepOutput& a, int row_a, const StepOutput& b, int row_b) {
  EXPECT_EQ(bits_of_row(a, row_a), bits_of_row(b, row_b)) << "rows " << row_a << " and " << row_b;
  const kernels::Picked& p = a.picked[static_cast<std::size_t>(row_a)];
  const kernels::Picked& q = b.picked[static_cast<std::size_t>(row_b)];
  EXPECT_EQ(p.id, q.id);
  EXPECT_EQ(p.score, q.score);
  EXPECT_EQ(p.margin, q.margin);
  EXPECT_EQ(p.logp, q.logp);
}

inline std::unique_ptr<Model> load(kernels::Device& device,
                                   const TestModel& model,
                                   kernels::DType dtype,
                                   ModelScale scale = {}) {
  return Model::load(device, model.files(), {.dtype = dtype, .scale = scale});
}

/// Decodes n tokens greedily after `first`, one row per forward.
inline std::vector<TokenId> decode_one_by_one(Lane& lane, TokenId first, int n) {
  std::vector<TokenId> out;
  for (TokenId token = first; static_cast<int>(out.size()) < n; token = out.back()) {
    const TokenTree tree = chain_tree(std::span(&token, 1));
    out.push_back(lane.forward(tree, {}).picked.front().id);
    lane.commit(tree, {0});
  }
  return out;
}

}  // namespace engine::test
