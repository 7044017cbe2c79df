// The forward pass of a LLaMA-family transformer: embed, layers, norm, logits. The rows of all sequences go through
// every operation together; only attention treats sequences separately (RowsPlan). ModelConfig says which norms, gate,
// factors, caps, windows and rotations a layer has.
//   residual multiplier   Granite adds m y to the residual stream x for each result y. Here the stream is x / m, so y is
//                         added as it is. The embeddings are divided by m, and the eps of norms of the stream by m^2:
//                         such a norm of x / m equals the norm of x
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "engine/chat/chat_template.h"
#include "engine/checkpoint/model_files.h"
#include "engine/model/activations.h"
#include "engine/model/attention_taps.h"
#include "engine/model/forward_outputs.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "engine/model/rope.h"
#include "engine/model/rows_plan.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

/// The end tokens of the model's files, then those that its tokenizer knows.
std::vector<TokenId> all_end_ids(const ModelConfig& config, const Tokenizer* tokenizer) {
  std::vector<TokenId> ids = config.eos_ids;
  if (!tokenizer) return ids;
  for (const TokenId id : tokenizer->end_of_turn_ids())
    if (id < config.vocab_size && std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  return ids;
}

/// Rows [begin, begin + n) of a forward.
struct RowRange {
  int begin = 0, n = 0;
};

kernels::Scores scores_of(const ModelConfig& c) {
  const double scale =
      c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_dim));
  return {.scale = static_cast<float>(scale), .softcap = c.attention_softcap};
}

class Transformer final : public Model {
 public:
  Transformer(kernels::Device& device,
              const ModelFiles& files,
              const LoadOptions& options,
              ModelConfig config,
              const TensorSource& tensors);
  /// A model with the weights of `of`.
  Transformer(kernels::Device& device, const Transformer& of);
  std::unique_ptr<Model> share_weights(kernels::Device& device) override;

  int vocab_size() const override { return n_valid_; }
  int max_seq_len() const override { return c_.max_seq_len; }
  int prompt_block() override { return device_.prompt_block(); }
  int rotation_key(int n_prompt) const override { return rope_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override {
    return std::make_unique<PagedCache>(store_);
  }
  // A distribution over some tokens is not in the form that another model's verification reads.
  kernels::Device* distributions_device() override {
    return ops_.verify && output_tokens_.empty() ? &device_ : nullptr;
  }
  std::span<const TokenId> output_tokens() const override { return output_tokens_; }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override;

  const ModelConfig& config() const override { return c_; }
  kernels::DType dtype() const override { return dtype_; }
  kernels::DType cache_type() const override { return store_->shape().dtype; }
  kernels::DType matrix_type() const override { return weights_->layers[0].gate_up.view.dtype; }
  const std::string& weight_type() const override { return weight_type_; }
  const ModelScale& scale() const override { return scale_; }
  const std::string& name() const override { return name_; }
  const ChatTemplate& chat_template() const override { return chat_template_; }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::int64_t weight_bytes() const override { return weights_->bytes_read; }
  std::int64_t n_multiplied() const override { return weights_->n_multiplied; }
  std::int64_t cache_bytes() const override {
    return store_->n_pages_in_use() * store_->bytes_of_page();
  }
  kernels::Device& device() const override { return device_; }
  void read_cache(const SequenceCache& cache,
                  int layer,
                  std::vector<float>& k,
                  std::vector<float>& v) const override;

 private:
  // The forward pass.
  void embed();
  void run_layer(int l, RowRange out);
  void attention_block(int l, RowRange out);
  void feed_forward_block(int l, RowRange rows);
  void rotate_and_stage(int l);
  void add_normed(const kernels::DeviceBuffer& norm, RowRange rows);
  void norm_and_logits(RowRange rows);

  // Products with weights.
  bool multiplies_in_blocks(int n_rows) const { return in_blocks_ && n_rows > 1; }
  void multiply(const float* x, int n_rows, const kernels::Projection& to);
  void norm_and_multiply(const float* x,
                         const kernels::DeviceBuffer& norm,
                         int n_rows,
                         const kernels::Projection& to);
  void gate_and_multiply(int n_rows, const kernels::Projection& to);
  void attend_and_multiply(int l, const float* q, RowRange out, const kernels::Projection& to);

  // Before the pass.
  void check_request(std::span<const BatchItem> items, Wants wants);
  void check_blocks(std::span<const BatchItem> items);
  void prepare(std::span<const BatchItem> items);
  RowRange rows_out(std::span<const BatchItem> items, Wants wants) const;

  kernels::RowsPlan rows_of_layer(int l, int n_rows) const {
    return plan_.view(n_rows, c_.window_of(l));
  }
  float* state_of(int row) { return a_.x.f32() + std::int64_t{row} * c_.dim; }

  kernels::Device& device_;  // the caller's, outlives the model
  const kernels::Ops& ops_;  // the device's
  ModelConfig c_;
  kernels::DType dtype_;
  std::string weight_type_;
  ModelScale scale_;
  std::string name_;
  ChatTemplate chat_template_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> output_tokens_;
  int n_valid_;  // tokens that may be fed or chosen
  int n_qkv_;    // columns of a row of queries, keys and values
  kernels::Scores scores_;
  float embedding_factor_;  // embedding_multiplier / residual_multiplier
  float stream_eps_;        // eps of norms of the residual stream
  std::shared_ptr<const Weights> weights_;
  int original_max_seq_len_;  // of the model's files, for RopeTable
  RopeTable rope_;
  std::optional<RopeTable> local_rope_;  // of local layers, if they have their own rotation
  std::shared_ptr<KvStore> store_;

  // State of the forward in progress; members only to reuse their memory.
  bool in_blocks_ = false;  // its rows are whole blocks of prompts
  ForwardPlan plan_;
  Activations a_;
  AttentionTaps taps_;
  ForwardOutputs outputs_;
};

Transformer::Transformer(kernels::Device& device,
                         const ModelFiles& files,
                         const LoadOptions& options,
                         ModelConfig config,
                         const TensorSource& tensors)
    : device_(device),
      ops_(device.ops()),
      c_(std::move(config)),
      dtype_(options.dtype),
      weight_type_(options.as_stored ? stored_type_name(files) : kernels::name_of(options.dtype)),
      scale_(options.scale),
      name_(files.name),
      chat_template_{files.chat_template, files.path},
      tokenizer_(files.tokenizer),
      output_tokens_(files.output_tokens),
      n_valid_(tokenizer_ ? std::min(tokenizer_->vocab_size(), c_.vocab_size) : c_.vocab_size),
      n_qkv_((c_.n_heads + 2 * c_.n_kv_heads) * c_.head_dim),
      scores_(scores_of(c_)),
      embedding_factor_(c_.embedding_multiplier / c_.residual_multiplier),
      stream_eps_(c_.norm_eps / (c_.residual_multiplier * c_.residual_multiplier)),
      weights_(std::make_shared<const Weights>(
          load_weights(device,
                       c_,
                       tensors,
                       {.dtype = dtype_, .as_stored = options.as_stored},
                       options.progress))),
      original_max_seq_len_(files.config.max_seq_len),
      rope_(device, c_.rope, c_.head_dim, original_max_seq_len_),
      store_(std::make_shared<KvStore>(device,
                                       KvShape{.n_layers = c_.n_layers,
                                               .n_kv_heads = c_.n_kv_heads,
                                               .head_dim = c_.head_dim,
                                               .dtype = options.cache.value_or(dtype_)})),
      taps_(device, c_.n_layers),
      outputs_(device, c_, n_valid_, output_tokens_, name_, dtype_) {
  c_.eos_ids = all_end_ids(c_, tokenizer_.get());
  if (c_.local_rope)
    local_rope_.emplace(device, *c_.local_rope, c_.head_dim, original_max_seq_len_);
}

Transformer::Transformer(kernels::Device& device, const Transformer& of)
    : device_(device),
      ops_(device.ops()),
      c_(of.c_),
      dtype_(of.dtype_),
      weight_type_(of.weight_type_),
      scale_(of.scale_),
      name_(of.name_),
      chat_template_(of.chat_template_),
      tokenizer_(of.tokenizer_),
      output_tokens_(of.output_tokens_),
      n_valid_(of.n_valid_),
      n_qkv_(of.n_qkv_),
      scores_(of.scores_),
      embedding_factor_(of.embedding_factor_),
      stream_eps_(of.stream_eps_),
      weights_(of.weights_),
      original_max_seq_len_(of.original_max_seq_len_),
      rope_(device, c_.rope, c_.head_dim, original_max_seq_len_),
      store_(std::make_shared<KvStore>(device, of.store_->shape())),
      taps_(device, c_.n_layers),
      outputs_(device, c_, n_valid_, output_tokens_, name_, dtype_) {
  if (c_.local_rope)
    local_rope_.emplace(device, *c_.local_rope, c_.head_dim, original_max_seq_len_);
}

// On a GPU, the weights may still be on their way in this model's stream.
std::unique_ptr<Model> Transformer::share_weights(kernels::Device& device) {
  ensure(&device != &device_ && &device.ops() == &ops_ && device.name() == device_.name(),
         "share_weights: needs another device object of the same processor or GPU");
  finish();
  return std::make_unique<Transformer>(device, *this);
}

// ---- the forward pass

std::vector<StepOutput> Transformer::forward(std::span<const BatchItem> items, Wants wants) {
  check_request(items, wants);
  plan_.build(items, n_valid_, c_.max_seq_len);
  std::vector<StepOutput> outputs(items.size());
  for (StepOutput& output : outputs) output.vocab_size = n_valid_;
  if (plan_.n_rows() == 0) return outputs;
  prepare(items);

  const RowRange all = {0, plan_.n_rows()}, out = rows_out(items, wants);
  embed();
  for (int l = 0; l < c_.n_layers; l++) run_layer(l, l + 1 < c_.n_layers ? all : out);
  norm_and_logits(out);
  // True for a forward over a part of a prompt. Its list of kernels does not repeat, so a CUDA
  // graph for it would be useless.
  if (plan_.n_picked() == 0 && (!wants.hidden || in_blocks_)) device_.skip_graph_cache();

  kernels::BatchedDownloads downloads(device_);
  using Clock = std::chrono::steady_clock;
  const auto requested = Clock::now();
  outputs_.request(items, wants, plan_, a_.logits.f32(), a_.normed.f32(), outputs);
  const auto request_time = Clock::now() - requested;
  taps_.download();
  downloads.finish();
  const auto arrived = Clock::now();
  outputs_.collect(items, wants, plan_, outputs);
  const std::chrono::nanoseconds choice = request_time + (Clock::now() - arrived);
  for (std::size_t i = 0; i < items.size(); i++) {
    outputs[i].choice_ns = choice.count() * items[i].tree->n_rows() / plan_.n_rows();
    if (items[i].attention_of >= 0 && items[i].pick_rows)
      outputs[i].attention = taps_.weights_of(i, items[i], plan_);
    paged(items[i].cache).set_staged(plan_.row_begin(i), items[i].tree->parent, in_blocks_);
  }
  return outputs;
}

void Transformer::embed() {
  ops_.embed(device_, weights_->embedding.view, plan_.token().data(), plan_.n_rows(), a_.x.f32());
  if (embedding_factor_ != 1)
    ops_.scale_and_cap(device_, a_.x.f32(), std::int64_t{plan_.n_rows()} * c_.dim,
                       embedding_factor_, 0);
}

/// @param out  the rows for which the layer computes more than keys and values; in the last layer
///             only the rows with outputs
void Transformer::run_layer(int l, RowRange out) {
  attention_block(l, out);
  if (out.n > 0) feed_forward_block(l, out);
}

/// x += attention(norm(x)) W_out, for the rows of `out`; keys and values for all rows.
void Transformer::attention_block(int l, RowRange out) {
  const LayerWeights& w = weights_->layers[static_cast<std::size_t>(l)];
  const int n_rows = plan_.n_rows();
  float* const qkv = a_.qkv.f32();
  norm_and_multiply(a_.x.f32(), w.attn_norm, n_rows,
                    {.w = w.qkv.view, .bias = w.qkv_bias.f32(), .y = qkv, .y_stride = n_qkv_});
  if (c_.qk_norm)
    ops_.head_norm(device_, qkv, n_qkv_, n_rows, c_.n_heads, c_.n_kv_heads, c_.head_dim,
                   w.head_norms.f32(), c_.head_norm_eps);
  rotate_and_stage(l);
  if (out.n == 0) return;
  if (taps_.records(l))
    taps_.record(l, store_->layer(l), rows_of_layer(l, out.begin + out.n), qkv, n_qkv_,
                 store_->staged_k(l), c_.n_heads, scores_);
  attend_and_multiply(l, qkv, out,
                      {.w = w.out.view,
                       .bias = w.out_bias.f32(),
                       .y = c_.post_norms ? a_.normed.f32() : state_of(out.begin),
                       .y_stride = c_.dim,
                       .add = !c_.post_norms});
  if (c_.post_norms) add_normed(w.attn_post_norm, out);
}

/// Rotates queries and keys, if the layer does, and rounds keys and values to the cache's type.
void Transformer::rotate_and_stage(int l) {
  float* const qkv = a_.qkv.f32();
  const int n_rows = plan_.n_rows();
  if (!c_.kind_of(l).rotated) {
    float* const k = qkv + std::int64_t{c_.n_heads} * c_.head_dim;
    float* const v = k + std::int64_t{c_.n_kv_heads} * c_.head_dim;
    ops_.kv_stage(device_, k, n_qkv_, n_rows, c_.n_kv_heads, c_.head_dim, cache_type(),
                  store_->staged_k(l));
    ops_.kv_stage(device_, v, n_qkv_, n_rows, c_.n_kv_heads, c_.head_dim, cache_type(),
                  store_->staged_v(l));
    return;
  }
  const bool local = local_rope_ && c_.kind_of(l).local;
  ops_.rope_kv_stage(device_, qkv, n_qkv_, n_rows, c_.n_heads, c_.n_kv_heads, c_.head_dim,
                     local ? a_.positions() : a_.rope_rows(),
                     local ? local_rope_->data() : rope_.data(), cache_type(), store_->staged_k(l),
                     store_->staged_v(l));
}

/// x += norm(y) for the rows, where y is in the memory of `normed`.
void Transformer::add_normed(const kernels::DeviceBuffer& norm, RowRange rows) {
  float* const y = a_.normed.f32();
  ops_.rms_norm(device_, y, norm.f32(), y, rows.n, c_.dim, c_.norm_eps);
  ops_.add(device_, y, state_of(rows.begin), std::int64_t{rows.n} * c_.dim);
}

/// x += GLU(norm(x) W_gate_up) W_down
void Transformer::feed_forward_block(int l, RowRange rows) {
  const LayerWeights& w = weights_->layers[static_cast<std::size_t>(l)];
  float* const x = state_of(rows.begin);
  norm_and_multiply(x, w.mlp_norm, rows.n,
                    {.w = w.gate_up.view,
                     .bias = w.gate_up_bias.f32(),
                     .y = a_.gate_up.f32(),
                     .y_stride = 2 * std::int64_t{c_.hidden_dim}});
  gate_and_multiply(rows.n, {.w = w.down.view,
                             .bias = w.down_bias.f32(),
                             .y = c_.post_norms ? a_.normed.f32() : x,
                             .y_stride = c_.dim,
                             .add = !c_.post_norms});
  if (c_.post_norms) add_normed(w.mlp_post_norm, rows);
}

/// The final norm of the rows with outputs, and logits of the first n_picked() of them.
void Transformer::norm_and_logits(RowRange rows) {
  const int n_picked = plan_.n_picked();
  const kernels::Projection to = {
      .w = weights_->head(), .y = a_.logits.f32(), .y_stride = c_.n_outputs()};
  if (n_picked > 0 && n_picked == rows.n) {
    ops_.rms_norm_matmul(device_, state_of(rows.begin), weights_->norm.f32(), stream_eps_,
                         a_.normed.f32(), n_picked, to);
  } else {
    if (rows.n > 0)
      ops_.rms_norm(device_, state_of(rows.begin), weights_->norm.f32(), a_.normed.f32(), rows.n,
                    c_.dim, stream_eps_);
    if (n_picked > 0) multiply(a_.normed.f32(), n_picked, to);
  }
  if (n_picked > 0 && (c_.logits_scaling != 1 || c_.logit_softcap > 0))
    ops_.scale_and_cap(device_, a_.logits.f32(), std::int64_t{n_picked} * c_.n_outputs(),
                       1 / c_.logits_scaling, c_.logit_softcap);
}

// ---- products with weights. Whole blocks of prompts are multiplied by Ops::matmul_blocks; a
// single row of a block is multiplied like a row of a step. All other rows use the fused
// operations.

void Transformer::multiply(const float* x, int n_rows, const kernels::Projection& to) {
  const auto matmul = multiplies_in_blocks(n_rows) ? ops_.matmul_blocks : ops_.matmul;
  matmul(device_, to.w, x, to.w.k, n_rows, to.y, to.y_stride, to.bias, to.add);
}

void Transformer::norm_and_multiply(const float* x,
                                    const kernels::DeviceBuffer& norm,
                                    int n_rows,
                                    const kernels::Projection& to) {
  float* const normed = a_.normed.f32();
  if (!multiplies_in_blocks(n_rows))
    return ops_.rms_norm_matmul(device_, x, norm.f32(), stream_eps_, normed, n_rows, to);
  ops_.rms_norm(device_, x, norm.f32(), normed, n_rows, c_.dim, stream_eps_);
  multiply(normed, n_rows, to);
}

void Transformer::gate_and_multiply(int n_rows, const kernels::Projection& to) {
  float* const gated = a_.gated.f32();
  if (!multiplies_in_blocks(n_rows))
    return ops_.glu_matmul(device_, c_.gate, a_.gate_up.f32(), gated, n_rows, to);
  ops_.glu(device_, c_.gate, a_.gate_up.f32(), gated, n_rows, c_.hidden_dim);
  multiply(gated, n_rows, to);
}

// Attention always starts at the first row of the batch, so it also computes the rows before `out`.
void Transformer::attend_and_multiply(int l,
                                      const float* q,
                                      RowRange out,
                                      const kernels::Projection& to) {
  const kernels::RowsPlan rows = rows_of_layer(l, out.begin + out.n);
  float* const attended = a_.attended.f32();
  if (out.begin == 0 && !multiplies_in_blocks(out.n))
    return ops_.attention_matmul(device_, store_->layer(l), rows, q, n_qkv_, store_->staged_k(l),
                                 store_->staged_v(l), c_.n_heads, scores_, attended, to);
  ops_.attention(device_, store_->layer(l), rows, q, n_qkv_, store_->staged_k(l),
                 store_->staged_v(l), c_.n_heads, scores_, attended, to.w.k);
  multiply(attended + out.begin * std::int64_t{to.w.k}, out.n, to);
}

// ---- before the pass

void Transformer::check_request(std::span<const BatchItem> items, Wants wants) {
  for (std::size_t i = 0; i < items.size(); i++) {
    ensure(&paged(items[i].cache).store() == store_.get(),
           "forward: a batch item needs a cache that this model made");
    for (std::size_t j = 0; j < i; j++)
      ensure(items[i].cache != items[j].cache, "forward: two batch items have the same cache");
  }
  check_blocks(items);
  ensure((wants.n_ranked == 0 && !wants.draws) || !wants.row_p,
         "forward: row_p needs chosen tokens; set neither n_ranked nor draws");
  ensure(wants.n_top == 0 || (wants.n_ranked == 0 && !wants.draws),
         "forward: n_top needs chosen tokens; set neither n_ranked nor draws");
  for (const BatchItem& item : items)
    ensure(!wants.draws || !item.pick_rows || item.draw,
           "forward: with Wants::draws every item with pick_rows needs a DrawRequest");
}

void Transformer::check_blocks(std::span<const BatchItem> items) {
  in_blocks_ = !items.empty() && items.front().in_blocks;
  for (const BatchItem& item : items) {
    ensure(item.in_blocks == in_blocks_, "forward: either all items or no item must be in blocks");
    if (!in_blocks_) continue;
    const int block = prompt_block(), n_rows = item.tree->n_rows();
    ensure(
        block > 0 && n_rows % block == 0 && !item.pick_rows,
        "forward: an item in blocks must have whole blocks and no picks, on a device with blocks");
    ensure(item.cache->length() % block == 0 && item.cache->n_in_blocks() == item.cache->length(),
           "forward: only blocks may come before a block");
    for (int row = 0; row < n_rows; row++)
      ensure(item.tree->parent[static_cast<std::size_t>(row)] == row - 1,
             "forward: a block must be a chain");
  }
}

void Transformer::prepare(std::span<const BatchItem> items) {
  a_.reserve(device_, c_, plan_.n_rows(), plan_.n_picked());
  taps_.begin(items, plan_);
  rope_.reserve(std::min(plan_.n_positions(), c_.max_seq_len));
  store_->begin_forward(plan_.n_rows());
  const std::span<const int> rope_rows = rope_.rows_of(plan_.pos(), plan_.n_prompt());
  ops_.upload(device_, a_.rope_rows(), rope_rows.data(),
              static_cast<std::int64_t>(rope_rows.size_bytes()));
  if (!local_rope_) return;
  local_rope_->reserve(std::min(plan_.n_positions(), c_.max_seq_len));
  ops_.upload(device_, a_.positions(), plan_.pos().data(),
              static_cast<std::int64_t>(plan_.pos().size_bytes()));
}

/// The rows for which the last layer must compute more than keys and values.
RowRange Transformer::rows_out(std::span<const BatchItem> items, Wants wants) const {
  for (const BatchItem& item : items) {
    if (item.hidden_of < 0) continue;
    ensure(items.size() == 1 && !item.pick_rows && !wants.hidden,
           "forward: hidden_of needs a single item without picks, and not wants.hidden");
    ensure(item.hidden_of < plan_.n_rows(), "forward: hidden_of must be a row of the tree");
    return {item.hidden_of, 1};
  }
  return {0, wants.hidden ? plan_.n_rows() : plan_.n_picked()};
}

// ---- the cache

void Transformer::finish() {
  store_->write_commits();
  device_.skip_graph_cache();  // the waiting kernels belong to a prompt
  char none = 0;
  ops_.download(device_, &none, &none, 0);
}

void Transformer::read_cache(const SequenceCache& cache,
                             int layer,
                             std::vector<float>& k,
                             std::vector<float>& v) const {
  const auto* own = dynamic_cast<const PagedCache*>(&cache);
  ensure(own != nullptr && &own->store() == store_.get(),
         "read_cache: the cache belongs to another model");
  ensure(layer >= 0 && layer < c_.n_layers, "read_cache: no such layer");
  const auto n = static_cast<std::size_t>(cache.length()) *
                 static_cast<std::size_t>(c_.n_kv_heads * c_.head_dim);
  k.resize(n);
  v.resize(n);
  store_->write_commits();
  if (n > 0)
    ops_.kv_read(device_, store_->layer(layer), own->pages().data(), cache.length(), k.data(),
                 v.data());
}

}  // namespace

std::unique_ptr<Model> Model::load(kernels::Device& device,
                                   const ModelFiles& files,
                                   const LoadOptions& options) {
  ensure(files.tensors != nullptr, "load: the model files have no tensors");
  ensure(options.max_seq_len >= 0, "load: max_seq_len must not be negative");
  const bool as_is = options.scale == ModelScale{};
  ModelConfig config = as_is ? files.config : scaled(files.config, options.scale);
  const std::shared_ptr<const TensorSource> tensors =
      as_is ? files.tensors : scaled(files.tensors, files.config, options.scale);
  if (options.max_seq_len > 0) config.max_seq_len = options.max_seq_len;
  return std::make_unique<Transformer>(device, files, options, std::move(config), *tensors);
}

}  // namespace engine
