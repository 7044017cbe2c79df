// The forward pass. Rows of all sequences go through every operation together; attention alone
// knows whose they are.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/model/device_sampling.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "engine/model/rope.h"
#include "engine/model/rows_plan.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

bool asks_distributions(std::span<const BatchItem> items) {
  return std::ranges::any_of(items, [](const BatchItem& item) { return item.verify_request; });
}

// Buffers of one forward, [rows, width]; they grow to the largest forward seen and stay.
struct Activations {
  kernels::DeviceBuffer x;         // [rows, dim] the residual stream
  kernels::DeviceBuffer normed;    // [rows, dim]
  kernels::DeviceBuffer qkv;       // [rows, (n_heads + 2 n_kv_heads) head_dim]
  kernels::DeviceBuffer attended;  // [rows, n_heads head_dim]
  kernels::DeviceBuffer gate_up;   // [rows, 2 hidden_dim]
  kernels::DeviceBuffer gated;     // [rows, hidden_dim]
  kernels::DeviceBuffer rope_row;  // [rows] int
  int n_rows = 0;
  kernels::DeviceBuffer logits;  // [picked rows, vocab_size]
  int n_logit_rows = 0;
  kernels::DeviceBuffer tapped;  // tap by tap [tapped layers, chain]

  /// [chain] rows of the table of rotations.
  int* rope_rows() const { return static_cast<int*>(rope_row.data()); }
};

class Transformer final : public Model {
 public:
  Transformer(kernels::Device& device,
              const ModelFiles& files,
              const LoadOptions& options,
              ModelConfig config,
              const TensorSource& tensors);

  int vocab_size() const override { return n_valid_; }
  int max_seq_len() const override { return c_.max_seq_len; }
  int prompt_block() override { return device_.prompt_block(); }
  int rotation_key(int n_prompt) const override { return rope_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override {
    return std::make_unique<PagedCache>(store_);
  }
  kernels::Device* distributions_device() override { return ops_.verify ? &device_ : nullptr; }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override;

  const ModelConfig& config() const override { return c_; }
  kernels::DType dtype() const override { return dtype_; }
  const ModelScale& scale() const override { return scale_; }
  const std::string& name() const override { return name_; }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::int64_t weight_bytes() const override { return weights_.bytes_read; }
  std::int64_t cache_bytes() const override {
    return store_->n_pages_in_use() * store_->bytes_of_page();
  }
  kernels::Device& device() const override { return device_; }
  void read_cache(const SequenceCache& cache,
                  int layer,
                  std::vector<float>& k,
                  std::vector<float>& v) const override;

 private:
  void check_items(std::span<const BatchItem> items) const;
  bool take_blocks(std::span<const BatchItem> items);
  void reserve(int n_rows, int n_logit_rows);
  /// Rows that are computed to the end: of the others nothing is wanted but keys and values.
  struct RowsOut {
    int begin = 0, n = 0;
  };
  static RowsOut rows_out(std::span<const BatchItem> items, Wants wants, const ForwardPlan& plan);
  void run_layers(int n_rows, RowsOut out);
  void attend(int l, int n_rows, RowsOut out);
  int n_tapped() const { return std::max(1, c_.n_layers / 4); }
  void make_taps(std::span<const BatchItem> items);
  void tap_attention(int l, int n_out);
  void feed_forward(const LayerWeights& w, RowsOut rows);
  /// One row of a block of a prompt is multiplied as a step's.
  decltype(kernels::Ops::matmul) multiply_of(RowsOut rows) const {
    return rows.n == 1 ? ops_.matmul : multiply_;
  }
  float* state_of(int row) { return a_.x.f32() + std::int64_t{row} * c_.dim; }
  void ask(std::span<const BatchItem> items, Wants wants, std::vector<StepOutput>& outputs);
  void ask_row_p(std::span<const BatchItem> items, std::vector<StepOutput>& outputs);
  void tell_picks(std::span<const BatchItem> items, std::vector<StepOutput>& outputs);
  void tell_draws(std::span<const BatchItem> items, std::vector<StepOutput>& outputs);
  void tell_ranks(std::span<const BatchItem> items, int k, std::vector<StepOutput>& outputs);
  [[noreturn]] void refuse_logits(int row, int bad_index) const;
  void tell_row_p();
  void download_logits(std::span<const BatchItem> items, std::vector<StepOutput>& outputs);
  void download_hidden(std::span<const BatchItem> items, std::vector<StepOutput>& outputs);
  void download_state(StepOutput& output);
  void describe_picks(std::span<const BatchItem> items);
  void download_taps();
  std::vector<float> attention_told(int row_begin, const BatchItem& item) const;

  kernels::Device& device_;  // the caller's, outlives the model
  const kernels::Ops& ops_;  // the device's
  ModelConfig c_;
  kernels::DType dtype_;
  ModelScale scale_;
  std::string name_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  int n_valid_;  // tokens that may be fed or chosen
  int n_qkv_;    // columns of a row of queries, keys and values
  float attention_scale_;
  Weights weights_;
  RopeTable rope_;
  std::shared_ptr<KvStore> store_;

  // Of the forward in progress: what its products are made by.
  decltype(kernels::Ops::matmul) multiply_ = nullptr;
  // And kept for their memory.
  ForwardPlan plan_;
  Activations a_;
  std::vector<kernels::PickRow> pick_rows_;
  std::vector<kernels::Picked> picked_;
  std::vector<kernels::Ranking> rankings_;
  std::vector<kernels::RankedToken> ranked_;
  std::vector<std::int32_t> history_;
  struct RowP {
    float* p;
    std::size_t parent;  // of the batch
  };
  std::vector<RowP> row_p_;            // the rows that are told of
  std::vector<std::int64_t> told_at_;  // their logits
  std::vector<float> told_logits_;
  std::vector<void*> row_to_;  // where each row that is downloaded goes
  DeviceSampling distributions_;
  struct Tap {
    int row;             // of the batch
    std::int64_t begin;  // in the device's memory, in floats
    std::size_t n_chain;
    std::vector<float> of_layers;  // [n_tapped(), n_chain]
  };
  std::vector<Tap> taps_;
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
      scale_(options.scale),
      name_(files.name),
      tokenizer_(files.tokenizer),
      n_valid_(tokenizer_ ? std::min(tokenizer_->vocab_size(), c_.vocab_size) : c_.vocab_size),
      n_qkv_((c_.n_heads + 2 * c_.n_kv_heads) * c_.head_dim),
      attention_scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(c_.head_dim)))),
      weights_(load_weights(device, c_, tensors, dtype_, options.progress)),
      rope_(device, c_.rope, c_.head_dim, files.config.max_seq_len),
      store_(std::make_shared<KvStore>(device,
                                       KvShape{.n_layers = c_.n_layers,
                                               .n_kv_heads = c_.n_kv_heads,
                                               .head_dim = c_.head_dim,
                                               .dtype = dtype_})) {}

void Transformer::check_items(std::span<const BatchItem> items) const {
  for (std::size_t i = 0; i < items.size(); i++) {
    ensure(&paged(items[i].cache).store() == store_.get(),
           "a batch item needs a cache that this model made");
    for (std::size_t j = 0; j < i; j++)
      ensure(items[i].cache != items[j].cache, "a cache may stand in a batch once");
  }
}

/// Whether a forward is of whole blocks of prompts, whose products have a path of their own.
bool Transformer::take_blocks(std::span<const BatchItem> items) {
  const bool in_blocks = !items.empty() && items.front().in_blocks;
  for (const BatchItem& item : items) {
    ensure(item.in_blocks == in_blocks, "all items of a forward are in blocks, or none");
    if (!in_blocks) continue;
    const int block = prompt_block(), n_rows = item.tree->n_rows();
    ensure(block > 0 && n_rows % block == 0 && !item.pick_rows,
           "blocks are whole, of a device that has them, and nothing is chosen");
    ensure(item.cache->length() % block == 0 && item.cache->n_in_blocks() == item.cache->length(),
           "a block stands behind others and nothing else");
    for (int row = 0; row < n_rows; row++)
      ensure(item.tree->parent[static_cast<std::size_t>(row)] == row - 1, "a block is a chain");
  }
  multiply_ = in_blocks ? ops_.matmul_blocks : ops_.matmul;
  return in_blocks;
}

void Transformer::reserve(int n_rows, int n_logit_rows) {
  const auto grown = [](int wanted, int had) { return std::max({wanted, 2 * had, 16}); };
  const auto make = [this](kernels::DeviceBuffer& buffer, std::int64_t n_floats,
                           const char* what = "a step's rows") {
    buffer = kernels::DeviceBuffer();
    buffer =
        kernels::DeviceBuffer(device_, n_floats * static_cast<std::int64_t>(sizeof(float)), what);
  };
  if (n_rows > a_.n_rows) {
    const std::int64_t n = grown(n_rows, a_.n_rows);
    a_.n_rows = 0;
    make(a_.x, n * c_.dim);
    make(a_.normed, n * c_.dim);
    make(a_.qkv, n * n_qkv_);
    make(a_.attended, n * c_.n_heads * c_.head_dim);
    make(a_.gate_up, n * 2 * c_.hidden_dim);
    make(a_.gated, n * c_.hidden_dim);
    make(a_.rope_row, n);
    a_.n_rows = static_cast<int>(n);
  }
  if (n_logit_rows > a_.n_logit_rows) {
    const std::int64_t n = grown(n_logit_rows, a_.n_logit_rows);
    a_.n_logit_rows = 0;
    make(a_.logits, n * c_.vocab_size, "a step's logits");
    a_.n_logit_rows = static_cast<int>(n);
  }
}

// Queries, keys and values of all rows; the rest for those of `out`. Attention's rows begin at the
// first of the batch, so it is computed for those before `out` too.
void Transformer::attend(int l, int n_rows, RowsOut out) {
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(l)];
  const int n_heads = c_.n_heads, n_kv = c_.n_kv_heads, head_dim = c_.head_dim;
  float* q = a_.qkv.f32();
  float* k = q + std::int64_t{n_heads} * head_dim;
  float* v = k + std::int64_t{n_kv} * head_dim;

  ops_.rms_norm(device_, a_.x.f32(), w.attn_norm.f32(), a_.normed.f32(), n_rows, c_.dim,
                c_.norm_eps);
  multiply_(device_, w.qkv.view, a_.normed.f32(), c_.dim, n_rows, q, n_qkv_, w.qkv_bias.f32(),
            /*add=*/false);
  // Keys stand right of the queries, so one call turns both.
  ops_.rope(device_, q, n_qkv_, n_rows, n_heads + n_kv, head_dim, a_.rope_rows(), rope_.data());
  ops_.kv_stage(device_, k, n_qkv_, n_rows, n_kv, head_dim, dtype_, store_->staged_k(l));
  ops_.kv_stage(device_, v, n_qkv_, n_rows, n_kv, head_dim, dtype_, store_->staged_v(l));
  if (out.n == 0) return;

  const int n_out = out.begin + out.n;
  const std::int64_t n_attended = std::int64_t{n_heads} * head_dim;  // columns
  const bool full = c_.sliding_window == 0 || l < c_.n_full_layers;
  ops_.attention(device_, store_->layer(l), plan_.view(n_out, full ? 0 : c_.sliding_window), q,
                 n_qkv_, store_->staged_k(l), store_->staged_v(l), n_heads, attention_scale_,
                 a_.attended.f32(), n_attended);
  tap_attention(l, n_out);
  multiply_of(out)(device_, w.out.view, a_.attended.f32() + out.begin * n_attended, n_attended,
                   out.n, state_of(out.begin), c_.dim, w.out_bias.f32(),
                   /*add=*/true);
}

void Transformer::make_taps(std::span<const BatchItem> items) {
  taps_.clear();
  std::int64_t n_floats = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (items[i].attention_of < 0 || !items[i].pick_rows) continue;
    const int row = plan_.row_begin(i) + items[i].attention_of;
    const std::size_t n_chain = plan_.chain(row).size();
    std::vector<float> of_layers(n_chain * static_cast<std::size_t>(n_tapped()));
    taps_.push_back({row, n_floats, n_chain, std::move(of_layers)});
    n_floats += static_cast<std::int64_t>(taps_.back().of_layers.size());
  }
  const std::int64_t bytes = n_floats * static_cast<std::int64_t>(sizeof(float));
  if (bytes <= a_.tapped.bytes()) return;
  a_.tapped = kernels::DeviceBuffer();
  a_.tapped = kernels::DeviceBuffer(device_, 2 * bytes, "the attention that is told");
}

// The last quarter of the layers: there rows are asked what they look for, not what they are.
void Transformer::tap_attention(int l, int n_out) {
  const int nth = l - (c_.n_layers - n_tapped());  // of the tapped
  if (taps_.empty() || nth < 0) return;
  const bool full = c_.sliding_window == 0 || l < c_.n_full_layers;
  for (const Tap& tap : taps_)
    ops_.attention_weights(
        device_, store_->layer(l), plan_.view(n_out, full ? 0 : c_.sliding_window), tap.row,
        a_.qkv.f32() + std::int64_t{tap.row} * n_qkv_, store_->staged_k(l), c_.n_heads,
        attention_scale_,
        a_.tapped.f32() + tap.begin + nth * static_cast<std::int64_t>(tap.n_chain));
}

void Transformer::feed_forward(const LayerWeights& w, RowsOut rows) {
  float* const x = state_of(rows.begin);
  ops_.rms_norm(device_, x, w.mlp_norm.f32(), a_.normed.f32(), rows.n, c_.dim, c_.norm_eps);
  multiply_of(rows)(device_, w.gate_up.view, a_.normed.f32(), c_.dim, rows.n, a_.gate_up.f32(),
                    2 * std::int64_t{c_.hidden_dim}, w.gate_up_bias.f32(),
                    /*add=*/false);
  ops_.swiglu(device_, a_.gate_up.f32(), a_.gated.f32(), rows.n, c_.hidden_dim);
  multiply_of(rows)(device_, w.down.view, a_.gated.f32(), c_.hidden_dim, rows.n, x, c_.dim,
                    w.down_bias.f32(),
                    /*add=*/true);
}

Transformer::RowsOut Transformer::rows_out(std::span<const BatchItem> items,
                                           Wants wants,
                                           const ForwardPlan& plan) {
  for (const BatchItem& item : items) {
    if (item.hidden_of < 0) continue;
    ensure(items.size() == 1 && !item.pick_rows && !wants.hidden,
           "one row's state is told of a prompt that is alone in its forward");
    ensure(item.hidden_of < plan.n_rows(), "the row whose state is wanted is one of the tree's");
    return {item.hidden_of, 1};
  }
  return {0, wants.hidden ? plan.n_rows() : plan.n_picked()};
}

// The last layer of a row that nobody asks about ends with its keys and values.
void Transformer::run_layers(int n_rows, RowsOut out) {
  for (int l = 0; l < c_.n_layers; l++) {
    const RowsOut rows = l + 1 == c_.n_layers ? out : RowsOut{0, n_rows};
    attend(l, n_rows, rows);
    if (rows.n > 0) feed_forward(weights_.layers[static_cast<std::size_t>(l)], rows);
  }
}

// What the sampler needs to know of every picked row.
void Transformer::describe_picks(std::span<const BatchItem> items) {
  pick_rows_.resize(static_cast<std::size_t>(plan_.n_picked()));
  std::size_t n_history = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    const BatchItem& item = items[i];
    if (!item.pick_rows) continue;
    for (int r = 0; r < item.tree->n_rows(); r++) {
      const int row = plan_.row_begin(i) + r;
      const Sampling& s = item.sampling;
      const bool greedy =
          !item.greedy_rows.empty() && item.greedy_rows[static_cast<std::size_t>(r)] != 0;
      pick_rows_[static_cast<std::size_t>(row)] = {
          .temperature = greedy ? 0.0f : s.temperature,
          .top_k = s.top_k,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repetition_penalty = s.repetition_penalty,
          .seed = s.seed,
          .stream = static_cast<std::uint32_t>(item.stream),
          .position = static_cast<std::uint32_t>(plan_.pos()[static_cast<std::size_t>(row)] + 1)};
      if (s.repetition_penalty != 1) n_history += item.prefix.size() + plan_.chain(row).size();
    }
  }
  if (n_history == 0) return;

  // The penalty looks at the prefix and the row's own chain, whatever its siblings are.
  history_.clear();
  history_.reserve(n_history);
  for (std::size_t i = 0; i < items.size(); i++) {
    const BatchItem& item = items[i];
    if (!item.pick_rows || item.sampling.repetition_penalty == 1) continue;
    for (int r = 0; r < item.tree->n_rows(); r++) {
      const int row = plan_.row_begin(i) + r;
      kernels::PickRow& p = pick_rows_[static_cast<std::size_t>(row)];
      p.history = history_.data() + history_.size();
      p.n_history = static_cast<int>(item.prefix.size() + plan_.chain(row).size());
      history_.insert(history_.end(), item.prefix.begin(), item.prefix.end());
      for (const int ancestor : plan_.chain(row))
        history_.push_back(plan_.token()[static_cast<std::size_t>(ancestor)]);
    }
  }
}

void Transformer::refuse_logits(int row, int bad_index) const {
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: non-finite logits at row {}, first index {}; are the weights "
                          "damaged, or too large for {}?",
                          name_, row, bad_index, kernels::name_of(dtype_)));
}

// What the device is to bring of the picked rows; it is there when answers were delivered.
void Transformer::ask(std::span<const BatchItem> items,
                      Wants wants,
                      std::vector<StepOutput>& outputs) {
  describe_picks(items);
  const int n_rows = plan_.n_picked();
  const DeviceLogits there{device_, a_.logits.f32(), c_.vocab_size, n_valid_, pick_rows_.data()};
  if (wants.draws) {
    distributions_.draw(there, items, plan_);
  } else if (wants.n_ranked > 0) {
    rankings_.resize(pick_rows_.size());
    ranked_.resize(pick_rows_.size() * static_cast<std::size_t>(wants.n_ranked));
    ops_.rank(device_, a_.logits.f32(), c_.vocab_size, n_rows, c_.vocab_size, n_valid_,
              pick_rows_.data(), wants.n_ranked, rankings_.data(), ranked_.data());
  } else {
    picked_.resize(pick_rows_.size());
    ops_.pick(device_, a_.logits.f32(), c_.vocab_size, n_rows, c_.vocab_size, n_valid_,
              pick_rows_.data(), picked_.data());
  }
  if (asks_distributions(items)) distributions_.verify(there, items, plan_);
  if (wants.row_p) ask_row_p(items, outputs);
  if (wants.logits) download_logits(items, outputs);
}

// Rows that are drawn from have no choice, as ranked ones.
void Transformer::tell_draws(std::span<const BatchItem> items, std::vector<StepOutput>& outputs) {
  for (std::size_t i = 0; i < items.size(); i++)
    if (items[i].pick_rows) outputs[i].picked.resize(items[i].tree->token.size());
  distributions_.deliver_drawn(items, outputs,
                               [this](int row, int bad) { refuse_logits(row, bad); });
}

void Transformer::tell_picks(std::span<const BatchItem> items, std::vector<StepOutput>& outputs) {
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const auto begin = picked_.begin() + plan_.row_begin(i);
    outputs[i].picked.assign(begin, begin + items[i].tree->n_rows());
    for (int r = 0; r < items[i].tree->n_rows(); r++) {
      const kernels::Picked& picked = outputs[i].picked[static_cast<std::size_t>(r)];
      if (picked.id < 0) refuse_logits(r, picked.bad_index);
    }
  }
}

void Transformer::tell_ranks(std::span<const BatchItem> items,
                             int k,
                             std::vector<StepOutput>& outputs) {
  const auto width = static_cast<std::size_t>(k);
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    outputs[i].picked.resize(items[i].tree->token.size());
    for (int r = 0; r < items[i].tree->n_rows(); r++) {
      const auto row = static_cast<std::size_t>(plan_.row_begin(i) + r);
      if (rankings_[row].n == 0) refuse_logits(r, rankings_[row].bad_index);
      outputs[i].ranked.push_back(
          ranked_of(rankings_[row], &ranked_[row * width], pick_rows_[row].temperature));
    }
  }
}

// Two logits of the parent say it: the row's own, and that of the token picked, whose probability
// is known.
void Transformer::ask_row_p(std::span<const BatchItem> items, std::vector<StepOutput>& outputs) {
  row_p_.clear();
  told_at_.clear();
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const TokenTree& tree = *items[i].tree;
    outputs[i].row_p.assign(tree.token.size(), -1);
    for (std::size_t r = 0; r < tree.token.size(); r++) {
      if (tree.parent[r] < 0) continue;
      const auto parent = static_cast<std::size_t>(plan_.row_begin(i) + tree.parent[r]);
      const kernels::PickRow& how = pick_rows_[parent];
      const bool greedy = how.temperature < 1e-5f;
      const bool filtered = how.top_k > 0 || how.top_p < 1 || how.min_p > 0;
      if (how.repetition_penalty != 1 || (filtered && !greedy)) continue;
      told_at_.push_back(static_cast<std::int64_t>(parent) * c_.vocab_size + tree.token[r]);
      row_p_.push_back({&outputs[i].row_p[r], parent});
    }
  }
  told_logits_.resize(told_at_.size());
  ops_.gather(device_, a_.logits.f32(), told_at_.data(), static_cast<int>(told_at_.size()),
              told_logits_.data());
}

void Transformer::tell_row_p() {
  for (std::size_t i = 0; i < row_p_.size(); i++) {
    const kernels::Picked& picked = picked_[row_p_[i].parent];
    const float temperature = pick_rows_[row_p_[i].parent].temperature;
    const float below = (told_logits_[i] - picked.logit) / (temperature < 1e-5f ? 1 : temperature);
    *row_p_[i].p = std::min(1.0f, std::exp(picked.logp + below));
  }
}

// Without the columns of padding tokens.
void Transformer::download_logits(std::span<const BatchItem> items,
                                  std::vector<StepOutput>& outputs) {
  const auto width = static_cast<std::size_t>(n_valid_);
  row_to_.assign(static_cast<std::size_t>(plan_.n_picked()), nullptr);
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const std::size_t n_rows = items[i].tree->token.size();
    outputs[i].logits.resize(n_rows * width);
    for (std::size_t r = 0; r < n_rows; r++)
      row_to_[static_cast<std::size_t>(plan_.row_begin(i)) + r] = &outputs[i].logits[r * width];
  }
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  ops_.download_rows(device_, row_to_.data(), a_.logits.data(), kBytes * n_valid_,
                     kBytes * c_.vocab_size, plan_.n_picked());
}

void Transformer::download_hidden(std::span<const BatchItem> items,
                                  std::vector<StepOutput>& outputs) {
  const auto width = static_cast<std::size_t>(c_.dim);
  row_to_.assign(static_cast<std::size_t>(plan_.n_rows()), nullptr);
  for (std::size_t i = 0; i < items.size(); i++) {
    const std::size_t n_rows = items[i].tree->token.size();
    outputs[i].hidden.resize(n_rows * width);
    for (std::size_t r = 0; r < n_rows; r++)
      row_to_[static_cast<std::size_t>(plan_.row_begin(i)) + r] = &outputs[i].hidden[r * width];
  }
  const std::int64_t row_bytes = static_cast<std::int64_t>(sizeof(float)) * c_.dim;
  ops_.download_rows(device_, row_to_.data(), a_.normed.data(), row_bytes, row_bytes,
                     plan_.n_rows());
}

void Transformer::download_state(StepOutput& output) {
  output.hidden.resize(static_cast<std::size_t>(c_.dim));
  row_to_.assign(1, output.hidden.data());
  const std::int64_t row_bytes = static_cast<std::int64_t>(sizeof(float)) * c_.dim;
  ops_.download_rows(device_, row_to_.data(), a_.normed.data(), row_bytes, row_bytes, 1);
}

void Transformer::download_taps() {
  for (Tap& tap : taps_) {
    row_to_.clear();
    for (std::size_t at = 0; at < tap.of_layers.size(); at += tap.n_chain)
      row_to_.push_back(&tap.of_layers[at]);
    const auto row_bytes = static_cast<std::int64_t>(tap.n_chain * sizeof(float));
    ops_.download_rows(device_, row_to_.data(), a_.tapped.f32() + tap.begin, row_bytes, row_bytes,
                       n_tapped());
  }
}

// The mean over the layers; from the chain's elements to the rows of the item's tree.
std::vector<float> Transformer::attention_told(int row_begin, const BatchItem& item) const {
  std::vector<float> told(item.tree->token.size());
  const int row = row_begin + item.attention_of;
  const auto tap = std::ranges::find(taps_, row, &Tap::row);
  const auto chain = plan_.chain(row);
  for (std::size_t at = 0; at < tap->of_layers.size(); at += chain.size())
    for (std::size_t j = 0; j < chain.size(); j++)
      told[static_cast<std::size_t>(chain[j] - row_begin)] +=
          tap->of_layers[at + j] / static_cast<float>(n_tapped());
  return told;
}

std::vector<StepOutput> Transformer::forward(std::span<const BatchItem> items, Wants wants) {
  check_items(items);
  const bool in_blocks = take_blocks(items);
  ensure((wants.n_ranked == 0 && !wants.draws) || !wants.row_p,
         "a row that is ranked or drawn from has no choice to tell of");
  for (const BatchItem& item : items)
    ensure(!wants.draws || !item.pick_rows || item.draw,
           "all that is picked is drawn from, or none");
  plan_.build(items, n_valid_, c_.max_seq_len);
  std::vector<StepOutput> outputs(items.size());
  for (StepOutput& output : outputs) output.vocab_size = n_valid_;
  const int n_rows = plan_.n_rows(), n_picked = plan_.n_picked();
  if (n_rows == 0) return outputs;

  reserve(n_rows, n_picked);
  make_taps(items);
  rope_.reserve(std::min(plan_.n_positions(), c_.max_seq_len));
  store_->begin_forward(n_rows);
  const std::span<const int> rope_rows = rope_.rows_of(plan_.pos(), plan_.n_prompt());
  ops_.upload(device_, a_.rope_row.data(), rope_rows.data(),
              static_cast<std::int64_t>(rope_rows.size_bytes()));
  ops_.embed(device_, weights_.embedding.view, plan_.token().data(), n_rows, a_.x.f32());

  const RowsOut out = rows_out(items, wants, plan_);
  run_layers(n_rows, out);
  if (out.n > 0)
    ops_.rms_norm(device_, state_of(out.begin), weights_.norm.f32(), a_.normed.f32(), out.n, c_.dim,
                  c_.norm_eps);
  if ((n_picked == 0 && !wants.hidden) || in_blocks)
    device_.work_comes_once();  // a piece of a prompt
  if (n_picked > 0) {
    ops_.matmul(device_, weights_.head(), a_.normed.f32(), c_.dim, n_picked, a_.logits.f32(),
                c_.vocab_size, nullptr,
                /*add=*/false);
  }
  kernels::AnswersTogether answers(device_);
  if (n_picked > 0) ask(items, wants, outputs);
  if (wants.hidden) download_hidden(items, outputs);
  if (items.front().hidden_of >= 0) download_state(outputs.front());
  download_taps();
  answers.deliver();

  if (n_picked > 0 && wants.draws)
    tell_draws(items, outputs);
  else if (n_picked > 0 && wants.n_ranked > 0)
    tell_ranks(items, wants.n_ranked, outputs);
  else if (n_picked > 0)
    tell_picks(items, outputs);
  if (asks_distributions(items)) distributions_.deliver_verified(items, outputs);
  if (n_picked > 0 && wants.row_p) tell_row_p();
  for (std::size_t i = 0; i < items.size(); i++) {
    const int begin = plan_.row_begin(i);
    if (items[i].attention_of >= 0 && items[i].pick_rows)
      outputs[i].attention = attention_told(begin, items[i]);
    paged(items[i].cache).set_staged(begin, items[i].tree->parent, in_blocks);
  }
  return outputs;
}

void Transformer::finish() {
  store_->write_commits();
  device_.work_comes_once();  // what still stands in line is a prompt's
  char none = 0;
  ops_.download(device_, &none, &none, 0);
}

void Transformer::read_cache(const SequenceCache& cache,
                             int layer,
                             std::vector<float>& k,
                             std::vector<float>& v) const {
  const auto* own = dynamic_cast<const PagedCache*>(&cache);
  ensure(own != nullptr && &own->store() == store_.get(), "read_cache needs a cache of this model");
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
  ensure(files.tensors != nullptr, "a model needs tensors");
  ensure(options.max_seq_len >= 0, "max_seq_len must not be negative");
  const bool as_is = options.scale == ModelScale{};
  ModelConfig config = as_is ? files.config : scaled(files.config, options.scale);
  const std::shared_ptr<const TensorSource> tensors =
      as_is ? files.tensors : scaled(files.tensors, files.config, options.scale);
  if (options.max_seq_len > 0) config.max_seq_len = options.max_seq_len;
  return std::make_unique<Transformer>(device, files, options, std::move(config), *tensors);
}

}  // namespace engine
