// Chimera heads: two matrices encode k-grams of tokens, one transformer block reads the sequence's
// hidden states and the encoded k-grams, and each head has an output matrix, or a small network
// before the target's output matrix (docs/decoders/chimera.md). Instead of the two matrices, the
// target's first layer may encode the tokens (first_layer.h); "k-gram" then means such a token.
//   cache   a paged KV cache of the committed sequence. It holds the hidden state of position 0,
//           then for each position its hidden state and its k-gram (only hidden states if the heads
//           see no committed k-grams). Drafted rows are staged and never enter it: after
//           verification the accepted rows are computed from their true states and tokens, so
//           nothing is rolled back
//   levels  the rows of a draft are stored level by level. A level computes only its own rows,
//           except in attention, which is computed again for the earlier rows, because the
//           operation takes all staged rows
//   bits    batch-invariant as in a model: the results are the same with and without the k-gram
//           cache, and in a chain and in a tree
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/model/draft_heads.h"
#include "engine/model/encode/first_layer.h"
#include "engine/model/gram_cache.h"
#include "engine/model/head_rows.h"
#include "engine/model/kv_cache.h"
#include "engine/model/rope.h"
#include "engine/model/rows_plan.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

constexpr int kAppendRows = 64;  // most rows of one append, and most k-grams of one encoding

/// Splits a matrix over several concatenated states into one matrix per state. Every sum then
/// begins at the first element of its state, so heads of a scaled model get the same bits.
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

/// The weights, and buffers for one draft at a time.
class PackedChimera final : public ChimeraHeads {
 public:
  PackedChimera(kernels::Device& device,
                const HeadsConfig& config,
                const TensorSource& tensors,
                const Tensor& embedding,
                std::unique_ptr<Model> first_layer,
                const HeadsOptions& options);
  int n_heads() const override { return c_.n_heads; }
  int vocab_size() const override { return tokens_.n_tokens(); }
  std::int64_t weight_bytes() const override;
  int gram() const override { return c_.gram; }
  std::unique_ptr<ChimeraSequence> make_sequence(std::shared_ptr<GramCache> cache) override;

  int dim() const { return c_.dim; }
  /// The target's first layer; null: k-grams are encoded.
  Model* token_encoder() { return first_layer_.get(); }
  /// The sequence whose draft is in the buffers; null: none.
  const ChimeraSequence* drafting() const { return drafting_; }
  void draft_for(const ChimeraSequence* sequence) { drafting_ = sequence; }
  std::unique_ptr<PagedCache> make_cache() { return std::make_unique<PagedCache>(store_); }

  bool sees_grams() const { return c_.sees_committed_grams; }
  /// The number of cache slots of the first n_positions positions, and the inverse function.
  /// Position 0 has no k-gram: the published layout starts with k-grams at position 1.
  int n_slots(int n_positions) const {
    return sees_grams() ? std::max(0, 2 * n_positions - 1) : n_positions;
  }
  int n_positions(const PagedCache& cache) const {
    return sees_grams() ? (cache.length() + 1) / 2 : cache.length();
  }

  /// Appends the keys and values of rows to the cache, in this order.
  /// @param rows  [n, dim] hidden states and k-grams
  /// @param pos   [n] of their tokens
  void append_rows(PagedCache& cache, std::span<const float> rows, std::span<const int> pos);
  /// Encodes k-grams: W2 SiLU(W1 [e ...]).  grams [n, gram];  @return  [n, dim]
  std::vector<float> encode(std::span<const TokenId> grams);
  /// Computes the new rows of a draft, from `first` on, and leaves the logits of head k on the device.
  /// @param parent   [n_rows] of the draft
  /// @param encoded  [n_rows - first, dim] the new rows' k-grams
  /// @param hidden   [dim] the last hidden state
  void run(const PagedCache& cache,
           std::span<const int> parent,
           int first,
           std::span<const float> encoded,
           std::span<const float> hidden,
           int k);
  /// Logits of the n rows of the last run().  @return  [n, vocab_size]
  std::vector<float> logits(int n) const { return tokens_.download(device_, logits_.f32(), n); }
  std::vector<RankedTokens> ranked(int n, int k) const {
    return tokens_.ranked(device_, logits_.f32(), n, k);
  }

 private:
  /// Positions and attention mask of rows.
  struct Plan {
    std::vector<int> pos;   // of the row's token
    std::vector<int> slot;  // slots after those of the cache
    std::vector<int> seq, chain_begin, chain, prefix_len, page_begin, pages;
    kernels::RowsPlan view() const;
  };
  Plan plan_of(const PagedCache& cache, std::span<const int> parent) const;
  void make_table(std::int64_t max_bytes);
  /// Writes W1 [e ...] of each k-gram to gram_silu_, [n, dim].
  void first_layer(std::span<const TokenId> grams, int n);
  void first_layer_by_table(std::span<const TokenId> grams, int n);
  std::vector<float> encode_at_once(std::span<const TokenId> grams);
  void reserve(int n_rows);
  void stage(int first, int n, const int* pos);
  void run_head(int k, int n, std::span<const float> hidden);
  void read_states(int k, int n, float* y, std::int64_t y_stride);

  kernels::Device& device_;  // the caller's, outlives the heads
  const kernels::Ops& ops_;
  HeadsConfig c_;
  kernels::DType dtype_;
  OutputTokens tokens_;
  std::unique_ptr<Model> first_layer_;  // null: the matrices of k-grams are used
  Matrix embedding_, gram_out_;
  std::vector<Matrix> gram_in_;  // [gram] one per token of a k-gram
  /// [gram, vocab, dim] products of these matrices with every embedding; may be empty
  std::vector<float> table_;
  LayerWeights block_;
  /// [heads] the first matrices of each head: for the hidden state, then for the block's output
  std::vector<std::vector<Matrix>> heads_;
  // with the target's output matrix: [heads] each head's second matrix, and that matrix
  std::vector<Matrix> second_;
  Matrix shared_;
  RopeTable rope_;
  std::shared_ptr<KvStore> store_;
  kernels::DeviceBuffer gram_rows_;  // [kAppendRows, gram, dim] the embeddings of k-grams' tokens
  SiluRows gram_silu_;               // [kAppendRows, dim]
  kernels::DeviceBuffer encoded_;    // [kAppendRows, dim]
  const ChimeraSequence* drafting_ = nullptr;
  int n_rows_ = 0;                 // rows that the buffers below hold
  std::optional<SiluRows> mixed_;  // [rows, head_hidden_dim] hidden layer of a head
  kernels::DeviceBuffer x_;        // [rows, dim] the residual stream
  kernels::DeviceBuffer normed_;   // [rows, dim]
  kernels::DeviceBuffer qkv_;      // [rows, 3 dim]
  kernels::DeviceBuffer attended_, gate_up_, gated_, pos_;
  kernels::DeviceBuffer hidden_;  // [rows, dim] the hidden state, repeated
  kernels::DeviceBuffer logits_;  // [rows, outputs]
};

/// The sequence of one run.
class PackedSequence final : public ChimeraSequence {
 public:
  PackedSequence(PackedChimera& heads, std::shared_ptr<GramCache> grams)
      : heads_(heads),
        cache_(heads.make_cache()),
        text_(heads.token_encoder() ? std::make_unique<EncodedText>(*heads.token_encoder())
                                    : nullptr),
        grams_(grams ? std::move(grams) : std::make_shared<GramCache>(0)) {}
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
  // Encodings by the first layer depend on the text before a token, so none is kept.
  void fill_cache(std::span<const TokenId> grams) override {
    if (text_) return;
    encoded(grams);
    counts_ = {};
  }
  GramCounts gram_counts() const override { return counts_; }

 private:
  void run_level(std::span<const int> parent, std::span<const TokenId> grams);
  std::vector<float> encoded(std::span<const TokenId> grams);

  PackedChimera& heads_;  // the loader owns them; they outlive their sequences
  std::unique_ptr<PagedCache> cache_;
  std::unique_ptr<EncodedText> text_;  // null: k-grams are encoded
  std::shared_ptr<GramCache> grams_;
  GramCounts counts_;
  std::vector<float> last_;  // [dim] the last hidden state; empty if truncate() removed it
  std::vector<int> parent_;  // of the draft's rows
  int n_levels_ = 0;
};

PackedChimera::PackedChimera(kernels::Device& device,
                             const HeadsConfig& config,
                             const TensorSource& tensors,
                             const Tensor& embedding,
                             std::unique_ptr<Model> first_layer,
                             const HeadsOptions& options)
    : device_(device),
      ops_(device.ops()),
      c_(config),
      dtype_(options.dtype),
      tokens_(config, options.vocab_size),
      first_layer_(std::move(first_layer)),
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
  if (!first_layer_) {
    embedding_ = pack_matrix(device, embedding, options.dtype);
    gram_out_ = pack_matrix(device, tensors.read("gram.1.weight"), options.dtype);
    gram_in_ = pack_side_by_side(device, tensors.read("gram.0.weight"), config.gram, options.dtype);
  }
  for (int k = 0; k < c_.n_heads; k++) {
    const std::string first = fmt::format("heads.{}{}.weight", k, c_.target_output ? ".0" : "");
    heads_.push_back(
        pack_side_by_side(device, tensors.read(first), c_.residual ? 2 : 1, options.dtype));
    if (c_.target_output)
      second_.push_back(
          pack_matrix(device, tensors.read(fmt::format("heads.{}.1.weight", k)), options.dtype));
  }
  if (c_.target_output)
    shared_ = pack_matrix(device, tensors.read(kTargetOutput),
                          options.guess_type.value_or(options.dtype));
  make_table(options.max_table_bytes);
}

std::int64_t PackedChimera::weight_bytes() const {
  auto n = static_cast<std::int64_t>(table_.size() * sizeof(float));
  if (first_layer_) n += first_layer_->weight_bytes();
  const auto add = [&](const std::vector<Matrix>& matrices) {
    for (const Matrix& matrix : matrices) n += matrix.memory.bytes();
  };
  for (const Matrix* matrix :
       {&embedding_, &gram_out_, &block_.qkv, &block_.out, &block_.gate_up, &block_.down, &shared_})
    n += matrix->memory.bytes();
  add(gram_in_);
  add(second_);
  for (const std::vector<Matrix>& head : heads_) add(head);
  return n;
}

// Matrix products are batch-invariant, so a value from the table has the same bits as the product
// computed for a single k-gram.
void PackedChimera::make_table(std::int64_t max_bytes) {
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

std::unique_ptr<ChimeraSequence> PackedChimera::make_sequence(std::shared_ptr<GramCache> cache) {
  return std::make_unique<PackedSequence>(*this, std::move(cache));
}

// Grows the buffers. The rows of the current draft in qkv_ stay, because later levels read them.
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
  grow(logits_, tokens_.n_rows(), false);
  if (c_.target_output) mixed_.emplace(device_, static_cast<int>(n), c_.head_hidden_dim);
  n_rows_ = static_cast<int>(n);
}

// Computes queries, keys and values of rows [first, first + n), whose residual stream is the first
// n rows of x_. Stages the keys and values of rows [0, first + n), because each level begins a new
// forward; those of the rows before `first` are still in qkv_.
void PackedChimera::stage(int first, int n, const int* pos) {
  const std::int64_t dim = c_.dim, width = 3 * dim;
  float* q = qkv_.f32() + first * width;
  ops_.upload(device_, pos_.data(), pos, static_cast<std::int64_t>(sizeof(int)) * n);
  ops_.rms_norm_matmul(device_, x_.f32(), block_.attn_norm.f32(), c_.norm_eps, normed_.f32(), n,
                       {.w = block_.qkv.view, .y = q, .y_stride = width});
  store_->begin_forward(first + n);
  const int n_heads = c_.n_attention_heads, head_dim = c_.head_dim();
  const auto* rope_rows = static_cast<const int*>(pos_.data());
  if (first == 0) {
    ops_.rope_kv_stage(device_, q, width, n, n_heads, n_heads, head_dim, rope_rows, rope_.data(),
                       dtype_, store_->staged_k(0), store_->staged_v(0));
    return;
  }
  ops_.rope(device_, q, width, n, 2 * n_heads, head_dim, rope_rows, rope_.data());
  const float* k = qkv_.f32() + dim;
  ops_.kv_stage(device_, k, width, first + n, n_heads, head_dim, dtype_, store_->staged_k(0));
  ops_.kv_stage(device_, k + dim, width, first + n, n_heads, head_dim, dtype_, store_->staged_v(0));
}

void PackedChimera::append_rows(PagedCache& cache,
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
    if (grams[i] >= 0) continue;  // -1: before the sequence
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
  // The second half of each row must be ones, as in SiluRows.
  std::vector<float> rows(static_cast<std::size_t>(n) * stride, 1.0f);
  for (std::size_t row = 0; row < static_cast<std::size_t>(n); row++) {
    const auto sum = std::span(rows).subspan(row * stride, dim);
    std::ranges::fill(sum, 0.0f);
    for (std::size_t place = 0; place < gram; place++) {
      const TokenId token = grams[row * gram + place];
      if (token < 0) continue;  // before the sequence
      const float* product =
          table_.data() + (place * n_vocab + static_cast<std::size_t>(token)) * dim;
      for (std::size_t j = 0; j < dim; j++) sum[j] += product[j];
    }
  }
  ops_.upload(device_, gram_silu_.row(0), rows.data(),
              static_cast<std::int64_t>(rows.size() * sizeof(float)));
}

// Waits, because the k-gram cache is on the host.
std::vector<float> PackedChimera::encode_at_once(std::span<const TokenId> grams) {
  const std::int64_t dim = c_.dim;
  const int n = static_cast<int>(grams.size()) / c_.gram;
  if (table_.empty())
    first_layer(grams, n);
  else
    first_layer_by_table(grams, n);
  gram_silu_.apply_and_multiply(n, {.w = gram_out_.view, .y = encoded_.f32(), .y_stride = dim});
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
  const kernels::Scores scores = {
      .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c_.head_dim())))};
  const kernels::Projection out = {
      .w = block_.out.view, .y = x_.f32(), .y_stride = dim, .add = true};
  if (first == 0) {
    ops_.attention_matmul(device_, store_->layer(0), plan.view(), qkv_.f32(), 3 * dim,
                          store_->staged_k(0), store_->staged_v(0), c_.n_attention_heads, scores,
                          attended_.f32(), out);
  } else {
    ops_.attention(device_, store_->layer(0), plan.view(), qkv_.f32(), 3 * dim, store_->staged_k(0),
                   store_->staged_v(0), c_.n_attention_heads, scores, attended_.f32(), dim);
    ops_.matmul(device_, out.w, attended_.f32() + first * dim, dim, n, out.y, dim, nullptr,
                /*add=*/true);
  }
  ops_.rms_norm_matmul(
      device_, x_.f32(), block_.mlp_norm.f32(), c_.norm_eps, normed_.f32(), n,
      {.w = block_.gate_up.view, .y = gate_up_.f32(), .y_stride = 2 * std::int64_t{c_.hidden_dim}});
  ops_.glu_matmul(device_, kernels::Gate::Silu, gate_up_.f32(), gated_.f32(), n,
                  {.w = block_.down.view, .y = x_.f32(), .y_stride = dim, .add = true});
  run_head(k, n, hidden);
}

// Computes the logits of head k from the block's output, which is the first n rows of x_, and from
// the hidden state if the heads are residual.
void PackedChimera::run_head(int k, int n, std::span<const float> hidden) {
  const std::int64_t dim = c_.dim, n_outputs = tokens_.n_rows();
  if (c_.residual) {
    std::vector<float> copies;
    for (int r = 0; r < n; r++) copies.insert(copies.end(), hidden.begin(), hidden.end());
    ops_.upload(device_, hidden_.data(), copies.data(),
                static_cast<std::int64_t>(copies.size() * sizeof(float)));
  }
  if (!c_.target_output) return read_states(k, n, logits_.f32(), n_outputs);
  read_states(k, n, mixed_->row(0), mixed_->stride());
  if (c_.residual) ops_.add(device_, hidden_.f32(), x_.f32(), n * dim);
  mixed_->apply_and_multiply(n, {.w = second_[static_cast<std::size_t>(k)].view,
                                 .y = x_.f32(),
                                 .y_stride = dim,
                                 .add = true});
  ops_.matmul(device_, shared_.view, x_.f32(), dim, n, logits_.f32(), n_outputs, nullptr,
              /*add=*/false);
}

// Multiplies the hidden state and the block's output by the first matrices of head k.
void PackedChimera::read_states(int k, int n, float* y, std::int64_t y_stride) {
  const std::vector<Matrix>& parts = heads_[static_cast<std::size_t>(k)];
  for (std::size_t i = 0; i < parts.size(); i++)
    ops_.matmul(device_, parts[i].view, i + 1 < parts.size() ? hidden_.f32() : x_.f32(), c_.dim, n,
                y, y_stride, nullptr, /*add=*/i > 0);
}

void PackedSequence::append(std::span<const float> hidden, std::span<const TokenId> grams) {
  const auto dim = static_cast<std::size_t>(heads_.dim());
  const auto gram = static_cast<std::size_t>(heads_.gram());
  const std::size_t n = hidden.size() / dim;
  ensure(hidden.size() == n * dim, "append: hidden must have n * dim elements");
  ensure(grams.size() == n * gram, "append: grams must have n * gram elements");
  if (n == 0) return;
  const int begin = length();
  const std::size_t first = begin == 0 ? 1 : 0;  // the first position with a k-gram
  std::vector<float> of_grams;
  if (text_) {
    of_grams = text_->append(grams);
    of_grams.erase(of_grams.begin(), of_grams.begin() + static_cast<std::ptrdiff_t>(first * dim));
  } else if (heads_.sees_grams()) {
    of_grams = encoded(grams.subspan(first * gram));
  }
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
  heads_.append_rows(*cache_, rows, pos);
  last_.assign(hidden.end() - static_cast<std::ptrdiff_t>(dim), hidden.end());
}

void PackedSequence::truncate(int length) {
  if (length < this->length()) last_.clear();
  cache_->truncate(heads_.n_slots(length));
  if (text_) text_->truncate(length);
}

void PackedSequence::begin_draft() {
  ensure(!last_.empty(), "begin_draft: the last hidden state is unknown");
  heads_.draft_for(this);
  parent_.clear();
  n_levels_ = 0;
  if (text_) text_->begin_draft();
}

/// Encoded k-grams, from the k-gram cache if possible.
std::vector<float> PackedSequence::encoded(std::span<const TokenId> grams) {
  const auto dim = static_cast<std::size_t>(heads_.dim());
  const auto gram = static_cast<std::size_t>(heads_.gram());
  const std::size_t n = grams.size() / gram;
  const GramCounts before = grams_->counts();
  std::vector<float> rows(n * dim);
  std::vector<TokenId> missing;
  std::vector<std::size_t> row_of;
  for (std::size_t i = 0; i < n; i++) {
    const auto own = grams.subspan(i * gram, gram);
    const auto found = grams_->find(own);
    if (!found.empty()) {
      std::ranges::copy(found, rows.begin() + static_cast<std::ptrdiff_t>(i * dim));
      continue;
    }
    missing.insert(missing.end(), own.begin(), own.end());
    row_of.push_back(i);
  }
  const std::vector<float> made = missing.empty() ? std::vector<float>{} : heads_.encode(missing);
  for (std::size_t i = 0; i < row_of.size(); i++) {
    const auto own = std::span(made).subspan(i * dim, dim);
    std::ranges::copy(own, rows.begin() + static_cast<std::ptrdiff_t>(row_of[i] * dim));
    grams_->put(std::span(missing).subspan(i * gram, gram), own);
  }
  counts_ += grams_->counts();
  counts_ -= before;
  return rows;
}

void PackedSequence::run_level(std::span<const int> parent, std::span<const TokenId> grams) {
  ensure(heads_.drafting() == this, "level: another sequence has used the heads since begin_draft");
  ensure(n_levels_ < heads_.n_heads(), "level: a draft can have at most n_heads levels");
  ensure(grams.size() == parent.size() * static_cast<std::size_t>(heads_.gram()),
         "level: grams must have n * gram elements");
  const int first = static_cast<int>(parent_.size());
  for (const int p : parent)
    ensure(p >= -1 && p < first, "level: a parent must be a row of an earlier level");
  parent_.insert(parent_.end(), parent.begin(), parent.end());
  const std::vector<float> rows = text_ ? text_->draft(parent, grams) : encoded(grams);
  heads_.run(*cache_, parent_, first, rows, last_, n_levels_++);
}

}  // namespace

std::unique_ptr<ChimeraHeads> load_chimera(kernels::Device& device,
                                           const HeadsFiles& files,
                                           const ModelFiles& target,
                                           const HeadsOptions& options) {
  ensure(files.config.kind == HeadsKind::Chimera, "load_chimera: the files hold other heads");
  const auto tensors = scaled(files.tensors, files.config, options.scale);
  const auto of_target = scaled(target.tensors, target.config, options.scale);
  std::unique_ptr<Model> first_layer;
  Tensor embedding;
  if (files.config.by_first_layer)
    first_layer = load_first_layer(
        device, target,
        {.dtype = options.dtype, .scale = options.scale, .max_seq_len = options.max_seq_len});
  else
    embedding = files.config.own_embedding ? tensors->read("embed_tokens.weight")
                                           : of_target->read("model.embed_tokens.weight");
  auto heads =
      std::make_unique<PackedChimera>(device, scaled(files.config, options.scale), *tensors,
                                      embedding, std::move(first_layer), options);
  tensors->check();
  of_target->check();
  return heads;
}

std::shared_ptr<GramCache> ChimeraHeads::kept_cache(int capacity) {
  if (!kept_cache_ || kept_cache_->capacity() != capacity)
    kept_cache_ = std::make_shared<GramCache>(capacity);
  return kept_cache_;
}

}  // namespace engine
