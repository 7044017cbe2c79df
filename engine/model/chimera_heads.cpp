// Chimera's heads: k-grams of tokens through two matrices, one transformer block over the text's
// hidden states and these k-grams, and an output matrix for each head (docs/decoders/chimera.md).
//   cache   keys and values of the text, in pages like a model's: h0, then of each position its
//           hidden state and its k-gram, or hidden states alone where heads see no more. What is
//           drafted is staged and never enters it: behind a verification the rows of what was kept
//           are made from its true states and tokens, and nothing has to be rolled back
//   levels  a draft's rows lie one behind another, level by level. A level computes its own rows;
//           only attention goes over the earlier ones again, since it takes all staged rows
//   bits    as in a model: a row's do not depend on what stands beside it, so that a k-gram from
//           the cache, a chain and a tree give the same numbers
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "engine/model/gram_cache.h"
#include "engine/model/head_rows.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/model/kv_cache.h"
#include "engine/model/rope.h"
#include "engine/model/rows_plan.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

constexpr int kAppendRows = 64;  // taken in at once, and k-grams encoded at once

/// A matrix over several states side by side, cut into one for each: every sum then begins at its
/// state's own first element, wherever the states lie, and enlarged heads keep its bits.
std::vector<Matrix> pack_side_by_side(kernels::Device& device,
                                      const Tensor& tensor,
                                      int n_parts,
                                      kernels::DType dtype) {
  const std::int64_t n_rows = tensor.shape[0], width = tensor.shape[1] / n_parts;
  const auto size = static_cast<std::int64_t>(kernels::bytes_of(tensor.dtype));
  const auto* from = static_cast<const std::byte*>(tensor.data);
  std::vector<std::byte> part(static_cast<std::size_t>(n_rows * width * size));
  std::vector<Matrix> packed;
  for (int i = 0; i < n_parts; i++) {
    for (std::int64_t row = 0; row < n_rows; row++)
      std::memcpy(part.data() + row * width * size, from + (row * n_parts + i) * width * size,
                  static_cast<std::size_t>(width * size));
    packed.push_back(
        pack_matrix(device, {tensor.dtype, {n_rows, width}, part.data(), nullptr}, dtype));
  }
  return packed;
}

/// Weights, and the buffers of one draft at a time.
class PackedChimera final : public ChimeraHeads {
 public:
  PackedChimera(kernels::Device& device,
                const HeadsConfig& config,
                const TensorSource& tensors,
                const Tensor& embedding,
                const HeadsOptions& options);
  int n_heads() const override { return c_.n_heads; }
  int vocab_size() const override { return n_valid_; }
  int gram() const override { return c_.gram; }
  std::unique_ptr<ChimeraText> make_text(int n_cached_grams) override;

  int dim() const { return c_.dim; }
  /// The text whose draft the buffers hold; null: they were used for something else.
  const ChimeraText* drafting() const { return drafting_; }
  void draft_for(const ChimeraText* text) { drafting_ = text; }
  std::unique_ptr<PagedCache> make_cache() { return std::make_unique<PagedCache>(store_); }

  bool sees_grams() const { return c_.sees_committed_grams; }
  /// Slots of a cache that the first positions of a text fill, and the other way round. Position 0
  /// has no k-gram there: the published layout begins at 1.
  int n_slots(int n_positions) const {
    return sees_grams() ? std::max(0, 2 * n_positions - 1) : n_positions;
  }
  int n_positions(const PagedCache& cache) const {
    return sees_grams() ? (cache.length() + 1) / 2 : cache.length();
  }

  /// Keys and values of rows join the cache, in this order.
  /// @param rows  [n, dim] hidden states and k-grams
  /// @param pos   [n] of their tokens
  void take_in(PagedCache& cache, std::span<const float> rows, std::span<const int> pos);
  /// W2 SiLU(W1 [e ...]) of k-grams.  grams [n, gram];  @return  [n, dim]
  std::vector<float> encode(std::span<const TokenId> grams);
  /// The block over the rows of a draft, of which those from `first` on are new.
  /// @param parent   [n_rows] of the draft
  /// @param encoded  [n_rows - first, dim] the new rows' k-grams
  /// @param hidden   [dim] the last hidden state
  /// What head `k` says of them is then on the device, for the next two.
  void run(const PagedCache& cache,
           std::span<const int> parent,
           int first,
           std::span<const float> encoded,
           std::span<const float> hidden,
           int k);
  /// Of the n rows that were run last.  @return  [n, vocab_size]
  std::vector<float> logits(int n) const {
    return download_rows(device_, logits_.f32(), c_.vocab_size, n, n_valid_);
  }
  std::vector<RankedTokens> ranked(int n, int k) const {
    return ranked_rows(device_, logits_.f32(), n, c_.vocab_size, n_valid_, k);
  }

 private:
  /// Row by row, where it stands and whom it sees.
  struct Plan {
    std::vector<int> pos;   // of its token
    std::vector<int> slot;  // counted on from the cache's
    std::vector<int> seq, chain_begin, chain, prefix_len, page_begin, pages;
    kernels::RowsPlan view() const;
  };
  Plan plan_of(const PagedCache& cache, std::span<const int> parent) const;
  void tabulate(std::int64_t max_bytes);
  /// [n, dim] the first matrix's answer to each k-gram, into gram_silu_.
  void first_layer(std::span<const TokenId> grams, int n);
  void first_layer_by_table(std::span<const TokenId> grams, int n);
  std::vector<float> encode_at_once(std::span<const TokenId> grams);
  void reserve(int n_rows);
  void stage(int first, int n, const int* pos);
  void ask(int k, int n, std::span<const float> hidden);

  kernels::Device& device_;  // the caller's, outlives the heads
  const kernels::Ops& ops_;
  HeadsConfig c_;
  kernels::DType dtype_;
  int n_valid_;
  Matrix embedding_, gram_out_;
  std::vector<Matrix> gram_in_;  // [gram] of each token's embedding
  std::vector<float> table_;     // [gram, vocab, dim] their products with every embedding, or empty
  LayerWeights block_;
  std::vector<std::vector<Matrix>> heads_;  // of the hidden state, then of the encoder's answer
  RopeTable rope_;
  std::shared_ptr<KvStore> store_;
  kernels::DeviceBuffer gram_rows_;  // [kAppendRows, gram, dim] their tokens' embeddings
  SiluRows gram_silu_;               // [kAppendRows, dim]
  kernels::DeviceBuffer encoded_;    // [kAppendRows, dim]
  const ChimeraText* drafting_ = nullptr;
  int n_rows_ = 0;                // that the buffers below hold
  kernels::DeviceBuffer x_;       // [rows, dim] the residual stream
  kernels::DeviceBuffer normed_;  // [rows, dim]
  kernels::DeviceBuffer qkv_;     // [rows, 3 dim]
  kernels::DeviceBuffer attended_, gate_up_, gated_, pos_;
  kernels::DeviceBuffer hidden_;  // [rows, dim] the hidden state, the same in each
  kernels::DeviceBuffer logits_;  // [rows, vocab rows]
};

/// One run's text before the heads.
class PackedText final : public ChimeraText {
 public:
  PackedText(PackedChimera& heads, int n_cached_grams)
      : heads_(heads), cache_(heads.make_cache()), grams_(n_cached_grams) {}
  int length() const override { return heads_.n_positions(*cache_); }
  void append(std::span<const float> hidden, std::span<const TokenId> grams) override;
  void truncate(int length) override;
  void begin_draft() override;
  std::vector<float> level(std::span<const int> parent, std::span<const TokenId> grams) override {
    run_level(parent, grams);
    return heads_.logits(static_cast<int>(parent.size()));
  }
  std::vector<RankedTokens> ranked_level(std::span<const int> parent,
                                         std::span<const TokenId> grams,
                                         int k) override {
    run_level(parent, grams);
    return heads_.ranked(static_cast<int>(parent.size()), k);
  }
  GramCounts gram_counts() const override { return grams_.counts(); }

 private:
  void run_level(std::span<const int> parent, std::span<const TokenId> grams);
  std::vector<float> encoded(std::span<const TokenId> grams);

  PackedChimera& heads_;  // owned by who loaded them, outlive their texts
  std::unique_ptr<PagedCache> cache_;
  GramCache grams_;
  std::vector<float> last_;  // [dim] the last hidden state; empty: unknown since a truncate
  std::vector<int> parent_;  // of the draft's rows
  int n_levels_ = 0;
};

PackedChimera::PackedChimera(kernels::Device& device,
                             const HeadsConfig& config,
                             const TensorSource& tensors,
                             const Tensor& embedding,
                             const HeadsOptions& options)
    : device_(device),
      ops_(device.ops()),
      c_(config),
      dtype_(options.dtype),
      n_valid_(options.vocab_size),
      embedding_(pack_matrix(device, embedding, options.dtype)),
      gram_out_(pack_matrix(device, tensors.read("gram.1.weight"), options.dtype)),
      gram_in_(
          pack_side_by_side(device, tensors.read("gram.0.weight"), config.gram, options.dtype)),
      block_(load_layer(device, encoder_of(config), tensors, "encoder.", options.dtype)),
      rope_(device, encoder_of(config).rope, config.head_dim(), options.max_seq_len),
      store_(std::make_shared<KvStore>(device,
                                       KvShape{.n_layers = 1,
                                               .n_kv_heads = config.n_attention_heads,
                                               .head_dim = config.head_dim(),
                                               .dtype = options.dtype})),
      gram_rows_(device,
                 static_cast<std::int64_t>(sizeof(float)) * kAppendRows * config.gram * config.dim,
                 "the k-grams of draft heads"),
      gram_silu_(device, kAppendRows, config.dim),
      encoded_(device,
               static_cast<std::int64_t>(sizeof(float)) * kAppendRows * config.dim,
               "the k-grams of draft heads") {
  for (int k = 0; k < c_.n_heads; k++)
    heads_.push_back(pack_side_by_side(device, tensors.read(fmt::format("heads.{}.weight", k)),
                                       c_.residual ? 2 : 1, options.dtype));
  tabulate(options.max_table_bytes);
}

// A row's bits do not depend on those beside it, so the table holds what a k-gram's own product
// would give.
void PackedChimera::tabulate(std::int64_t max_bytes) {
  const std::int64_t dim = c_.dim, n_bytes = gram_table_bytes(c_, max_bytes);
  if (n_bytes == 0) return;
  table_.reserve(static_cast<std::size_t>(n_bytes) / sizeof(float));
  for (const Matrix& matrix : gram_in_) {
    for (int begin = 0; begin < c_.vocab_size; begin += kAppendRows) {
      const int n = std::min(kAppendRows, c_.vocab_size - begin);
      std::vector<TokenId> ids(static_cast<std::size_t>(n));
      std::iota(ids.begin(), ids.end(), begin);
      ops_.embed(device_, embedding_.view, ids.data(), n, gram_rows_.f32());
      ops_.matmul(device_, matrix.view, gram_rows_.f32(), dim, n, encoded_.f32(), dim, nullptr,
                  /*add=*/false);
      const std::vector<float> rows = download_rows(device_, encoded_.f32(), dim, n, c_.dim);
      table_.insert(table_.end(), rows.begin(), rows.end());
    }
  }
}

std::unique_ptr<ChimeraText> PackedChimera::make_text(int n_cached_grams) {
  return std::make_unique<PackedText>(*this, n_cached_grams);
}

// What a draft's rows hold stays when the buffers grow: later levels read it.
void PackedChimera::reserve(int n_rows) {
  if (n_rows <= n_rows_) return;
  const std::int64_t n = std::max({n_rows, 2 * n_rows_, 16}), dim = c_.dim;
  const auto grow = [&](kernels::DeviceBuffer& buffer, std::int64_t width, bool keep) {
    kernels::DeviceBuffer larger(device_, n * width * static_cast<std::int64_t>(sizeof(float)),
                                 "the rows of draft heads");
    if (keep) ops_.copy(device_, larger.data(), buffer.data(), buffer.bytes());
    buffer = std::move(larger);
  };
  grow(x_, dim, false);
  grow(normed_, dim, false);
  grow(qkv_, 3 * dim, true);
  grow(attended_, dim, false);
  grow(gate_up_, 2 * std::int64_t{c_.hidden_dim}, false);
  grow(gated_, c_.hidden_dim, false);
  grow(pos_, 1, false);
  grow(hidden_, dim, false);
  grow(logits_, c_.vocab_size, false);
  n_rows_ = static_cast<int>(n);
}

// Queries, keys and values of rows [first, first + n), whose residuals lie at x_ from row 0. All
// rows are staged: those before are still there as they were computed.
void PackedChimera::stage(int first, int n, const int* pos) {
  const std::int64_t dim = c_.dim, width = 3 * dim;
  float* q = qkv_.f32() + first * width;
  ops_.upload(device_, pos_.data(), pos, static_cast<std::int64_t>(sizeof(int)) * n);
  ops_.rms_norm(device_, x_.f32(), block_.attn_norm.f32(), normed_.f32(), n, c_.dim, c_.norm_eps);
  ops_.matmul(device_, block_.qkv.view, normed_.f32(), dim, n, q, width, nullptr, /*add=*/false);
  ops_.rope(device_, q, width, n, 2 * c_.n_attention_heads, c_.head_dim(),
            static_cast<const int*>(pos_.data()), rope_.data());
  store_->begin_forward(first + n);
  const float* k = qkv_.f32() + dim;
  ops_.kv_stage(device_, k, width, first + n, c_.n_attention_heads, c_.head_dim(), dtype_,
                store_->staged_k(0));
  ops_.kv_stage(device_, k + dim, width, first + n, c_.n_attention_heads, c_.head_dim(), dtype_,
                store_->staged_v(0));
}

void PackedChimera::take_in(PagedCache& cache,
                            std::span<const float> rows,
                            std::span<const int> pos) {
  drafting_ = nullptr;
  const auto dim = static_cast<std::size_t>(c_.dim);
  rope_.reserve(*std::ranges::max_element(pos) + 1);
  for (std::size_t begin = 0; begin < pos.size(); begin += kAppendRows) {
    const std::size_t n = std::min<std::size_t>(kAppendRows, pos.size() - begin);
    const auto part = rows.subspan(begin * dim, n * dim);
    std::vector<int> path(n), parent(n);
    std::iota(path.begin(), path.end(), 0);
    std::iota(parent.begin(), parent.end(), -1);
    reserve(static_cast<int>(n));
    ops_.upload(device_, x_.data(), part.data(), static_cast<std::int64_t>(part.size_bytes()));
    stage(0, static_cast<int>(n), pos.data() + begin);
    cache.set_staged(0, parent);
    cache.commit(path);
    store_->write_commits();  // not between the next rows' rotation and staging, one kernel
  }
}

std::vector<float> PackedChimera::encode(std::span<const TokenId> grams) {
  std::vector<float> encoded;
  const auto most = static_cast<std::size_t>(kAppendRows) * static_cast<std::size_t>(c_.gram);
  for (std::size_t at = 0; at < grams.size(); at += most) {
    const std::vector<float> part =
        encode_at_once(grams.subspan(at, std::min(most, grams.size() - at)));
    encoded.insert(encoded.end(), part.begin(), part.end());
  }
  return encoded;
}

void PackedChimera::first_layer(std::span<const TokenId> grams, int n) {
  const std::int64_t dim = c_.dim, width = c_.gram * dim;
  std::vector<TokenId> ids(grams.begin(), grams.end());
  for (TokenId& id : ids) id = std::max(id, 0);
  ops_.embed(device_, embedding_.view, ids.data(), static_cast<int>(ids.size()), gram_rows_.f32());
  const std::vector<float> zeros(static_cast<std::size_t>(dim));
  for (std::size_t i = 0; i < grams.size(); i++) {
    if (grams[i] >= 0) continue;  // before the text begins
    ops_.upload(device_, gram_rows_.f32() + static_cast<std::int64_t>(i) * dim, zeros.data(),
                dim * static_cast<std::int64_t>(sizeof(float)));
  }
  for (int i = 0; i < c_.gram; i++)
    ops_.matmul(device_, gram_in_[static_cast<std::size_t>(i)].view, gram_rows_.f32() + i * dim,
                width, n, gram_silu_.row(0), gram_silu_.stride(), nullptr, /*add=*/i > 0);
}

void PackedChimera::first_layer_by_table(std::span<const TokenId> grams, int n) {
  const auto dim = static_cast<std::size_t>(c_.dim), gram = static_cast<std::size_t>(c_.gram);
  const auto n_vocab = static_cast<std::size_t>(c_.vocab_size);
  const auto stride = static_cast<std::size_t>(gram_silu_.stride());
  // Behind each row of sums stay the ones that SiLU's rows have there.
  std::vector<float> rows(static_cast<std::size_t>(n) * stride, 1.0f);
  for (std::size_t row = 0; row < static_cast<std::size_t>(n); row++) {
    const auto sum = std::span(rows).subspan(row * stride, dim);
    std::ranges::fill(sum, 0.0f);
    for (std::size_t place = 0; place < gram; place++) {
      const TokenId token = grams[row * gram + place];
      if (token < 0) continue;  // before the text begins
      const float* product =
          table_.data() + (place * n_vocab + static_cast<std::size_t>(token)) * dim;
      for (std::size_t j = 0; j < dim; j++) sum[j] += product[j];
    }
  }
  ops_.upload(device_, gram_silu_.row(0), rows.data(),
              static_cast<std::int64_t>(rows.size() * sizeof(float)));
}

// Waits: what is made goes into a text's cache, which the host keeps.
std::vector<float> PackedChimera::encode_at_once(std::span<const TokenId> grams) {
  const std::int64_t dim = c_.dim;
  const int n = static_cast<int>(grams.size()) / c_.gram;
  if (table_.empty())
    first_layer(grams, n);
  else
    first_layer_by_table(grams, n);
  ops_.matmul(device_, gram_out_.view, gram_silu_.apply(n), dim, n, encoded_.f32(), dim, nullptr,
              /*add=*/false);
  return download_rows(device_, encoded_.f32(), dim, n, c_.dim);
}

kernels::RowsPlan PackedChimera::Plan::view() const {
  kernels::RowsPlan plan;
  plan.n_rows = static_cast<int>(seq.size());
  plan.n_seqs = 1;
  plan.seq = seq.data();
  plan.pos = slot.data();
  plan.prefix_len = prefix_len.data();
  plan.page_begin = page_begin.data();
  plan.pages = pages.data();
  plan.chain_begin = chain_begin.data();
  plan.chain = chain.data();
  return plan;
}

PackedChimera::Plan PackedChimera::plan_of(const PagedCache& cache,
                                           std::span<const int> parent) const {
  Plan plan;
  plan.prefix_len = {cache.length()};
  plan.pages.assign(cache.pages().begin(), cache.pages().end());
  plan.page_begin = {0, static_cast<int>(plan.pages.size())};
  plan.chain_begin = {0};
  for (std::size_t r = 0; r < parent.size(); r++) {
    std::vector<int> chain;
    for (int row = static_cast<int>(r); row >= 0; row = parent[static_cast<std::size_t>(row)])
      chain.push_back(row);
    plan.chain.insert(plan.chain.end(), chain.rbegin(), chain.rend());
    plan.chain_begin.push_back(static_cast<int>(plan.chain.size()));
    plan.seq.push_back(0);
    const int n_before = static_cast<int>(chain.size()) - 1;
    plan.pos.push_back(n_positions(cache) + n_before);
    plan.slot.push_back(cache.length() + n_before);
  }
  return plan;
}

void PackedChimera::run(const PagedCache& cache,
                        std::span<const int> parent,
                        int first,
                        std::span<const float> encoded,
                        std::span<const float> hidden,
                        int k) {
  const Plan plan = plan_of(cache, parent);
  const int n_rows = static_cast<int>(parent.size()), n = n_rows - first;
  const std::int64_t dim = c_.dim;
  reserve(n_rows);
  rope_.reserve(*std::ranges::max_element(plan.pos) + 1);
  ops_.upload(device_, x_.data(), encoded.data(), static_cast<std::int64_t>(encoded.size_bytes()));
  stage(first, n, plan.pos.data() + first);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c_.head_dim())));
  ops_.attention(device_, store_->layer(0), plan.view(), qkv_.f32(), 3 * dim, store_->staged_k(0),
                 store_->staged_v(0), c_.n_attention_heads, scale, attended_.f32(), dim);
  ops_.matmul(device_, block_.out.view, attended_.f32() + first * dim, dim, n, x_.f32(), dim,
              nullptr, /*add=*/true);
  ops_.rms_norm(device_, x_.f32(), block_.mlp_norm.f32(), normed_.f32(), n, c_.dim, c_.norm_eps);
  ops_.matmul(device_, block_.gate_up.view, normed_.f32(), dim, n, gate_up_.f32(),
              2 * std::int64_t{c_.hidden_dim}, nullptr, /*add=*/false);
  ops_.swiglu(device_, gate_up_.f32(), gated_.f32(), n, c_.hidden_dim);
  ops_.matmul(device_, block_.down.view, gated_.f32(), c_.hidden_dim, n, x_.f32(), dim, nullptr,
              /*add=*/true);
  ask(k, n, hidden);
}

// Head k over the block's answers, which lie at x_ from row 0, and the hidden state.
void PackedChimera::ask(int k, int n, std::span<const float> hidden) {
  const std::int64_t dim = c_.dim, n_vocab = c_.vocab_size;
  if (c_.residual) {
    std::vector<float> copies;
    for (int r = 0; r < n; r++) copies.insert(copies.end(), hidden.begin(), hidden.end());
    ops_.upload(device_, hidden_.data(), copies.data(),
                static_cast<std::int64_t>(copies.size() * sizeof(float)));
  }
  const std::vector<Matrix>& parts = heads_[static_cast<std::size_t>(k)];
  for (std::size_t i = 0; i < parts.size(); i++)
    ops_.matmul(device_, parts[i].view, i + 1 < parts.size() ? hidden_.f32() : x_.f32(), dim, n,
                logits_.f32(), n_vocab, nullptr, /*add=*/i > 0);
}

void PackedText::append(std::span<const float> hidden, std::span<const TokenId> grams) {
  const auto dim = static_cast<std::size_t>(heads_.dim());
  const auto gram = static_cast<std::size_t>(heads_.gram());
  const std::size_t n = hidden.size() / dim;
  ensure(hidden.size() == n * dim, "hidden states are as wide as the heads read");
  ensure(grams.size() == n * gram, "every position has its k-gram");
  if (n == 0) return;
  const int begin = length();
  const std::size_t first = begin == 0 ? 1 : 0;  // with a k-gram in the cache
  std::vector<float> of_grams;
  if (heads_.sees_grams()) of_grams = encoded(grams.subspan(first * gram));
  std::vector<float> rows;
  std::vector<int> pos;
  const auto add = [&](std::span<const float> from, std::size_t row, std::size_t at) {
    const auto one = from.subspan(row * dim, dim);
    rows.insert(rows.end(), one.begin(), one.end());
    pos.push_back(begin + static_cast<int>(at));
  };
  for (std::size_t i = 0; i < n; i++) {
    add(hidden, i, i);
    if (heads_.sees_grams() && i >= first) add(of_grams, i - first, i);
  }
  heads_.take_in(*cache_, rows, pos);
  last_.assign(hidden.end() - static_cast<std::ptrdiff_t>(dim), hidden.end());
}

void PackedText::truncate(int length) {
  if (length < this->length()) last_.clear();
  cache_->truncate(heads_.n_slots(length));
}

void PackedText::begin_draft() {
  ensure(!last_.empty(), "a draft hangs on the last hidden state, which must be known");
  heads_.draft_for(this);
  parent_.clear();
  n_levels_ = 0;
}

/// k-grams from the cache where they are there.
std::vector<float> PackedText::encoded(std::span<const TokenId> grams) {
  const auto dim = static_cast<std::size_t>(heads_.dim());
  const auto gram = static_cast<std::size_t>(heads_.gram());
  const std::size_t n = grams.size() / gram;
  std::vector<float> rows(n * dim);
  std::vector<TokenId> missing;
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < n; i++) {
    const auto own = grams.subspan(i * gram, gram);
    const auto found = grams_.find(own);
    if (!found.empty()) {
      std::ranges::copy(found, rows.begin() + static_cast<std::ptrdiff_t>(i * dim));
      continue;
    }
    missing.insert(missing.end(), own.begin(), own.end());
    row_of.push_back(i);
  }
  if (missing.empty()) return rows;
  const std::vector<float> made = heads_.encode(missing);
  for (std::size_t i = 0; i < row_of.size(); i++) {
    const auto own = std::span(made).subspan(i * dim, dim);
    std::ranges::copy(own, rows.begin() + static_cast<std::ptrdiff_t>(row_of[i] * dim));
    grams_.put(std::span(missing).subspan(i * gram, gram), own);
  }
  return rows;
}

void PackedText::run_level(std::span<const int> parent, std::span<const TokenId> grams) {
  ensure(heads_.drafting() == this, "a draft goes on until another text is worked at");
  ensure(n_levels_ < heads_.n_heads(), "a draft has no more levels than there are heads");
  ensure(grams.size() == parent.size() * static_cast<std::size_t>(heads_.gram()),
         "every row has its k-gram");
  const int first = static_cast<int>(parent_.size());
  for (const int p : parent) ensure(p >= -1 && p < first, "a parent is of a level before");
  parent_.insert(parent_.end(), parent.begin(), parent.end());
  heads_.run(*cache_, parent_, first, encoded(grams), last_, n_levels_++);
}

}  // namespace

std::unique_ptr<ChimeraHeads> load_chimera(kernels::Device& device,
                                           const HeadsFiles& files,
                                           const ModelFiles& target,
                                           const HeadsOptions& options) {
  ensure(files.config.kind == HeadsKind::Chimera, "these are not Chimera's heads");
  const auto tensors = scaled(files.tensors, files.config, options.scale);
  const auto of_target = scaled(target.tensors, target.config, options.scale);
  const Tensor embedding = files.config.own_embedding
                               ? tensors->read("embed_tokens.weight")
                               : of_target->read("model.embed_tokens.weight");
  auto heads = std::make_unique<PackedChimera>(device, scaled(files.config, options.scale),
                                               *tensors, embedding, options);
  tensors->check();
  of_target->check();
  return heads;
}

}  // namespace engine
