// Chimera's heads. The encoding of a k-gram is W2 SiLU(W1 [e ..]), where e are the embeddings of
// its tokens. A position before the text has the embedding zero. Instead, the target's first layer
// may encode the tokens (engine/model/encode/first_layer.h); it has no gradient. f is the output of
// the encoder block at the row of a k-gram, without a final norm. Besides the heads' losses, a
// feature loss trains f towards the target's hidden state at the same position.
//
// Uploaded lists of row numbers say which rows of the pass hold hidden states, k-grams or head
// inputs. The pass gathers and scatters rows by these lists. No list has two entries with the same
// destination.
#include "engine/train/core/transformer.h"
#include "engine/train/core/vocab_rows.h"
#include "engine/train/heads/chimera_rows.h"
#include "engine/train/heads/pass.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;
using kernels::TrainWeights;

constexpr const char* kGrams = "the k-grams of draft heads";

class ChimeraPass final : public HeadsPass {
 public:
  ChimeraPass(const TrainDevice& on,
              const HeadsConfig& config,
              const TargetMatrices& target,
              int max_rows);

  void forward_backward(const TrainWeights& w,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        const HeadsLosses& losses) override;
  void rank(const TrainWeights& w,
            std::span<const HeadsText> texts,
            int n_valid,
            bool self_fed,
            MeasuredRanks& ranks) override;

 private:
  void read(std::span<const HeadsText> texts, const HeadsLoss* loss);
  void read_states(std::span<const HeadsText> texts);
  void read_heads(std::span<const HeadsText> texts, const HeadsLoss* loss);
  void read_grams();
  void guess(const TrainWeights& w);
  void forward(const TrainWeights& w);
  void encode(const TrainWeights& w);
  void encode_by_first_layer();
  void join(int head);
  const void* head_input(const TrainWeights& w, int head);
  void backward_input(const TrainWeights& w, int head, float* gradient);
  void backward_head(const TrainWeights& w,
                     int head,
                     const HeadsLoss& loss,
                     float* gradient,
                     const HeadsLosses& losses);
  void backward_encoder(const TrainWeights& w, float* gradient);
  void backward_grams(const TrainWeights& w, float* gradient);
  /// Copies n rows of dim numbers; see TrainOps::copy_rows.
  void copy(DType from_type,
            const DeviceBuffer& from,
            const std::int32_t* from_row,
            DType to_type,
            void* to,
            const std::int32_t* to_row,
            int to_stride,
            int n) const {
    on_.ops.copy_rows(on_.device, from_type, from.data(), from_row, to_type, to, to_row, to_stride,
                      n, c_.dim);
  }
  int n_rows() const { return static_cast<int>(rows_.pos.size()); }
  int n_links() const { return static_cast<int>(rows_.links.size()); }
  int n_rows(int head) const {
    return static_cast<int>(rows_.of_head[static_cast<std::size_t>(head)].size());
  }
  /// The index of the head's first row in the lists of all heads' rows.
  int first_of(int head) const { return first_of_[static_cast<std::size_t>(head)]; }
  TokenId token_of(std::int32_t row) const {
    return c_.output_tokens.empty() ? row : c_.output_tokens[static_cast<std::size_t>(row)];
  }
  int head_width() const { return c_.residual ? 2 * c_.dim : c_.dim; }
  /// The address of f, or of its gradient, within the rows [hidden state, f] of a head's input.
  void* f_part(const DeviceBuffer& joined) const {
    return static_cast<char*>(joined.data()) +
           std::int64_t{head_width() - c_.dim} * kernels::bytes_of(on_.type);
  }

  const TrainDevice on_;
  const HeadsConfig c_;
  const HeadsLayout layout_;
  const HeadsMatrices m_;
  const int max_rows_;
  VocabRows vocab_;
  ChimeraRows rows_;  // positions and views padded for products
  KeptBlock kept_;
  BlockPass block_;
  std::vector<int> first_state_, first_of_;  // first state of each text; first row of each head
  std::vector<TokenId> grams_;               // [links, gram], oldest first; -1 before the text

  const TargetMatrices of_target_;
  DeviceBuffer states_;                   // [states of all texts, dim] bf16
  DeviceBuffer state_, state_row_;        // for rows that are hidden states: the state, the row
  DeviceBuffer link_row_;                 // [links]
  DeviceBuffer gram_token_;               // [links, gram]
  DeviceBuffer group_row_, group_begin_;  // places of gram_token_ grouped by token
  // Lists over the rows of all heads, ordered by head; the rows of a head are padded for products.
  // They hold the hidden state and the row of f that the head reads, and the state that f is
  // trained towards.
  DeviceBuffer head_state_, head_row_, head_wanted_, target_, weight_, rank_;
  DeviceBuffer gram_, silu_;          // [links, gram dim], [links, dim]
  DeviceBuffer z_, encoded_;          // [links, dim] f32
  DeviceBuffer f_, dx_, dx_rounded_;  // [rows, dim]
  DeviceBuffer joined_, d_joined_;    // [a head's rows, head_width]
  // With the target's output matrix: the input of that matrix, a term of it, and its gradient
  // [a head's rows, dim]; the hidden layer of a head [a head's rows, head_hidden_dim]
  DeviceBuffer y_, term_, dy_, mixed_z_, mixed_, d_mixed_, d_mixed_z_;
  DeviceBuffer
      f_part_row_;  // for each row of a head, the row of f in joined_ as rows of dim numbers
  DeviceBuffer d_encoded_, d_silu_, d_z_;  // [links, dim]
  DeviceBuffer d_gram_;                    // [links, gram dim] f32
};

ChimeraPass::ChimeraPass(const TrainDevice& on,
                         const HeadsConfig& config,
                         const TargetMatrices& target,
                         int max_rows)
    : on_(on),
      c_(config),
      layout_(config),
      m_(config, layout_),
      max_rows_(on.padded(max_rows)),
      vocab_(on, config.n_outputs(), max_rows_),
      rows_(config, max_rows_),
      kept_(on, encoder_of(config), max_rows_),
      block_(on, encoder_of(config), max_rows_),
      of_target_(target) {
  const std::int64_t n = max_rows_, wide = n * c_.dim, grams = n * c_.gram;
  const std::int64_t padding = std::int64_t{c_.n_heads} * (on.ops.row_multiple - 1);
  states_ = DeviceBuffer(on.device, 2 * wide, kStatesOfTarget);
  for (DeviceBuffer* one : {&state_, &state_row_, &link_row_}) *one = on.f32(n, kRowsOfHeads);
  for (DeviceBuffer* one : {&head_state_, &head_row_, &head_wanted_, &target_, &weight_, &rank_})
    *one = on.f32(n + padding, kRowsOfHeads);
  for (DeviceBuffer* one : {&z_, &encoded_, &f_, &dx_}) *one = on.f32(wide, kRowsOfHeads);
  for (DeviceBuffer* one : {&silu_, &dx_rounded_, &d_encoded_, &d_silu_, &d_z_})
    *one = on.typed(wide, kRowsOfHeads);
  for (DeviceBuffer* one : {&joined_, &d_joined_}) *one = on.typed(n * head_width(), kRowsOfHeads);
  if (c_.target_output) {
    const std::int64_t hidden = n * c_.head_hidden_dim;
    for (DeviceBuffer* one : {&y_, &term_, &dy_}) *one = on.typed(wide, kRowsOfHeads);
    for (DeviceBuffer* one : {&mixed_, &d_mixed_, &d_mixed_z_})
      *one = on.typed(hidden, kRowsOfHeads);
    mixed_z_ = on.f32(hidden, kRowsOfHeads);
    const int parts = c_.residual ? 2 : 1;
    std::vector<std::int32_t> f_part;
    for (int row = 0; row < max_rows_; row++) f_part.push_back(parts * row + parts - 1);
    f_part_row_ = on.f32(n, kRowsOfHeads);
    on.upload(f_part_row_, f_part);
  }
  if (c_.by_first_layer) return;
  gram_token_ = on.f32(grams, kGrams);
  gram_ = on.typed(grams * c_.dim, kGrams);
  if (!c_.own_embedding) return;
  d_gram_ = on.f32(grams * c_.dim, kGrams);
  group_row_ = on.f32(grams, kGrams);
  group_begin_ = on.f32(grams + 1, kGrams);
}

/// Uploads the hidden states of the texts, and lists of the rows of the pass whose input is a
/// state.
void ChimeraPass::read_states(std::span<const HeadsText> texts) {
  std::vector<Bf16> hidden;
  first_state_.clear();
  for (const HeadsText& text : texts) {
    first_state_.push_back(static_cast<int>(std::ssize(hidden) / c_.dim));
    if (text.n_places(0) > 0) hidden.insert(hidden.end(), text.hidden.begin(), text.hidden.end());
  }
  std::vector<std::int32_t> state, row;
  for (const ChimeraRows::State& one : rows_.states) {
    state.push_back(first_state_[static_cast<std::size_t>(one.text - texts.data())] + one.place);
    row.push_back(one.row);
  }
  ensure(4 * std::ssize(state) <= state_.bytes() && 2 * std::ssize(hidden) <= states_.bytes(),
         "the hidden states must fit into the pass");
  on_.upload(states_, hidden);
  on_.upload(state_, state);
  on_.upload(state_row_, row);
}

// @param loss  null: only ranks are computed
void ChimeraPass::read_heads(std::span<const HeadsText> texts, const HeadsLoss* loss) {
  std::vector<std::int32_t> state, row, wanted, target;
  std::vector<float> weight;
  first_of_.clear();
  for (int head = 0; head < c_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    first_of_.push_back(static_cast<int>(row.size()));
    for (const int l : rows_.of_head[k]) {
      const ChimeraRows::Link& link = rows_.links[static_cast<std::size_t>(l)];
      const int first = first_state_[static_cast<std::size_t>(link.text - texts.data())];
      state.push_back(first + link.place);
      row.push_back(link.row);
      wanted.push_back(first + link.end());
      target.push_back(link.target());
      weight.push_back(loss && target.back() >= 0 ? loss->of_head[k] : 0.0f);
    }
    const auto padded = static_cast<std::size_t>(first_of(head) + on_.padded(n_rows(head)));
    for (auto* list : {&state, &row, &wanted, &target}) list->resize(padded, 0);
    weight.resize(padded, 0.0f);
  }
  on_.upload(head_state_, state);
  on_.upload(head_row_, row);
  on_.upload(head_wanted_, wanted);
  on_.upload(target_, target);
  on_.upload(weight_, weight);
}

void ChimeraPass::read_grams() {
  grams_.clear();
  for (const ChimeraRows::Link& link : rows_.links)
    for (int back = c_.gram - 1; back >= 0; back--) grams_.push_back(rows_.token_of(link, back));
  if (!c_.by_first_layer) on_.upload(gram_token_, grams_);
}

void ChimeraPass::read(std::span<const HeadsText> texts, const HeadsLoss* loss) {
  rows_.lay_out(texts);
  if (rows_.links.empty()) return;
  std::vector<std::int32_t> link_row;
  for (const ChimeraRows::Link& link : rows_.links) link_row.push_back(link.row);
  read_states(texts);
  read_heads(texts, loss);
  read_grams();
  on_.upload(link_row_, link_row);
  const int n = n_rows(), n_padded = on_.padded(n);
  rows_.pos.resize(static_cast<std::size_t>(n_padded), 0);
  rows_.views.resize(rows_.pos.size());
  if (n < n_padded)
    on_.ops.clear(on_.device, kept_.x_attn.f32() + std::int64_t{n} * c_.dim,
                  std::int64_t{4} * (n_padded - n) * c_.dim);
  block_.prepare({rows_.pos, rows_.segments, rows_.views});
}

/// Encodes the k-grams of the texts, which are tokens here: each text is a chain, from which the
/// chains of guesses branch off.
void ChimeraPass::encode_by_first_layer() {
  std::vector<TokenTree> trees;
  std::vector<std::pair<std::size_t, int>> tree_row;  // of each link
  for (std::size_t l = 0; l < rows_.links.size(); l++) {
    const ChimeraRows::Link& link = rows_.links[l];
    if (l == 0 || link.text != rows_.links[l - 1].text) {
      TokenTree& tree = trees.emplace_back();
      for (const TokenId token : link.text->tokens) tree.add(token, tree.n_rows() - 1, RowTag{});
    }
    // The token after the place is the text's own; the guesses of head 0 and of later heads follow
    // it.
    const int row = link.head == 0 ? link.end()
                                   : trees.back().add(link.token, tree_row.back().second, RowTag{});
    tree_row.emplace_back(trees.size() - 1, row);
  }
  const auto encoded = of_target_.first_layer->encode(trees);
  std::vector<float> links;
  for (const auto& [tree, row] : tree_row) {
    const auto from = encoded[tree].begin() + std::ptrdiff_t{row} * c_.dim;
    links.insert(links.end(), from, from + c_.dim);
  }
  on_.upload(encoded_, links);
}

void ChimeraPass::encode(const TrainWeights& w) {
  if (c_.by_first_layer) return encode_by_first_layer();
  const float* embedding =
      c_.own_embedding ? w.masters + layout_.at("embed_tokens.weight") : of_target_.embedding;
  const int n = on_.padded(n_links());
  on_.ops.copy_rows(on_.device, DType::F32, embedding, ids(gram_token_), on_.type, gram_.data(),
                    nullptr, c_.dim, n_links() * c_.gram, c_.dim);
  on_.clear_rows(gram_, n_links(), n, c_.gram * c_.dim);
  on_.ops.forward_silu(on_.device, on_.type, w, m_.gram_in, gram_.data(), nullptr, nullptr, n,
                       z_.f32(), silu_.data());
  on_.ops.forward_f32(on_.device, on_.type, w, m_.gram_out, silu_.data(), n, encoded_.f32(), false);
}

void ChimeraPass::forward(const TrainWeights& w) {
  encode(w);
  copy(DType::BF16, states_, ids(state_), DType::F32, kept_.x_attn.data(), ids(state_row_), c_.dim,
       static_cast<int>(rows_.states.size()));
  copy(DType::F32, encoded_, nullptr, DType::F32, kept_.x_attn.data(), ids(link_row_), c_.dim,
       n_links());
  block_.forward(w, layout_.encoder, kept_, f_.f32());
}

/// Concatenates the hidden state and f to the input of a head, for each of its rows.
void ChimeraPass::join(int head) {
  const int n = n_rows(head), first = first_of(head);
  if (c_.residual)
    copy(DType::BF16, states_, ids(head_state_) + first, on_.type, joined_.data(), nullptr,
         head_width(), n);
  copy(DType::F32, f_, ids(head_row_) + first, on_.type, f_part(joined_), nullptr, head_width(), n);
  on_.clear_rows(joined_, n, on_.padded(n), head_width());
}

/// The input of the output matrix: [h, f], or h + f + W2 SiLU(W1 [h, f]) before the target's
/// matrix. Without residual heads, h is left out.
const void* ChimeraPass::head_input(const TrainWeights& w, int head) {
  join(head);
  if (!c_.target_output) return joined_.data();
  const auto k = static_cast<std::size_t>(head);
  const auto& [device, ops, type] = on_;
  const int n = n_rows(head), padded = on_.padded(n), first = first_of(head);
  const std::int64_t wide = std::int64_t{padded} * c_.dim;
  ops.forward_silu(device, type, w, m_.first[k], joined_.data(), nullptr, nullptr, padded,
                   mixed_z_.f32(), mixed_.data());
  ops.forward(device, type, w, m_.second[k], mixed_.data(), padded, y_.data());
  copy(DType::F32, f_, ids(head_row_) + first, type, term_.data(), nullptr, c_.dim, n);
  on_.clear_rows(term_, n, padded, c_.dim);
  ops.add(device, type, term_.data(), y_.data(), wide);
  if (!c_.residual) return y_.data();
  copy(DType::BF16, states_, ids(head_state_) + first, type, term_.data(), nullptr, c_.dim, n);
  ops.add(device, type, term_.data(), y_.data(), wide);
  return y_.data();
}

/// Backward of head_input() from dy_. Writes the gradient of f to term_.
void ChimeraPass::backward_input(const TrainWeights& w, int head, float* gradient) {
  const auto k = static_cast<std::size_t>(head);
  const auto& [device, ops, type] = on_;
  const int n = on_.padded(n_rows(head));
  ops.backward_weight(device, type, w, m_.second[k], dy_.data(), mixed_.data(), n, gradient);
  ops.backward_input(device, type, w, m_.second[k], dy_.data(), n, d_mixed_.data());
  ops.silu_backward(device, type, mixed_z_.f32(), d_mixed_.data(), d_mixed_z_.data(),
                    std::int64_t{n} * c_.head_hidden_dim);
  ops.backward_weight(device, type, w, m_.first[k], d_mixed_z_.data(), joined_.data(), n, gradient);
  ops.backward_input(device, type, w, m_.first[k], d_mixed_z_.data(), n, d_joined_.data());
  copy(type, d_joined_, ids(f_part_row_), type, term_.data(), nullptr, c_.dim, n);
  ops.add(device, type, dy_.data(), term_.data(), std::int64_t{n} * c_.dim);
}

/// Replaces each token of the text in a chain by the most likely token of the head before it.
void ChimeraPass::guess(const TrainWeights& w) {
  for (int head = 0; head + 1 < c_.n_heads; head++) {
    forward(w);
    const auto& links = rows_.of_head[static_cast<std::size_t>(head)];
    vocab_.logits(m_.output_weights(w, of_target_.output), m_.output_of(head), head_input(w, head),
                  n_rows(head), [&](int first, int n, const float* logits) {
                    std::vector<std::int32_t> rows(static_cast<std::size_t>(n));
                    on_.ops.argmax(on_.device, logits, n, c_.n_outputs(), rows.data());
                    // Any token will do for non-finite logits, because such a step is skipped.
                    for (int i = 0; i < n; i++)
                      if (const std::int32_t row = rows[static_cast<std::size_t>(i)]; row >= 0)
                        rows_.feed(links[static_cast<std::size_t>(first + i)], token_of(row));
                  });
    read_grams();
  }
}

/// Backward of one head. Writes the gradient of f to the rows of dx_ that the head reads.
void ChimeraPass::backward_head(const TrainWeights& w,
                                int head,
                                const HeadsLoss& loss,
                                float* gradient,
                                const HeadsLosses& losses) {
  const int n = n_rows(head), first = first_of(head);
  const void* input = head_input(w, head);
  vocab_.forward_backward(m_.output_weights(w, of_target_.output), m_.output_of(head), input,
                          on_.padded(n), ids(target_) + first, weight_.f32() + first,
                          c_.target_output ? dy_.data() : d_joined_.data(),
                          c_.target_output ? nullptr : gradient, losses.loss_of(head));
  if (c_.target_output) backward_input(w, head, gradient);
  on_.ops.feature_loss(on_.device, on_.type, f_.f32(), ids(head_row_) + first, states_.data(),
                       ids(head_wanted_) + first,
                       c_.target_output ? term_.data() : f_part(d_joined_),
                       c_.target_output ? c_.dim : head_width(), loss.of_feature, dx_.f32(),
                       losses.squares_of(head), n, c_.dim);
}

void ChimeraPass::backward_encoder(const TrainWeights& w, float* gradient) {
  const auto& [device, ops, type] = on_;
  ops.convert(device, type, dx_.f32(), dx_rounded_.data(), std::int64_t{n_rows()} * c_.dim);
  block_.backward(w, layout_.encoder, kept_, dx_.f32(), dx_rounded_.data(), gradient);
  if (c_.by_first_layer) return;
  const int n = on_.padded(n_links());
  copy(type, dx_rounded_, ids(link_row_), type, d_encoded_.data(), nullptr, c_.dim, n_links());
  on_.clear_rows(d_encoded_, n_links(), n, c_.dim);
  ops.backward_weight(device, type, w, m_.gram_out, d_encoded_.data(), silu_.data(), n, gradient);
  ops.backward_input(device, type, w, m_.gram_out, d_encoded_.data(), n, d_silu_.data());
  ops.silu_backward(device, type, z_.f32(), d_silu_.data(), d_z_.data(), std::int64_t{n} * c_.dim);
  ops.backward_weight(device, type, w, m_.gram_in, d_z_.data(), gram_.data(), n, gradient);
  if (c_.own_embedding) backward_grams(w, gradient);
}

void ChimeraPass::backward_grams(const TrainWeights& w, float* gradient) {
  on_.ops.backward_input_f32(on_.device, on_.type, w, m_.gram_in, d_z_.data(),
                             on_.padded(n_links()), d_gram_.f32());
  std::vector<std::int32_t> of_tokens;
  for (std::size_t i = 0; i < grams_.size(); i++)
    if (grams_[i] >= 0) of_tokens.push_back(static_cast<std::int32_t>(i));
  const TokenGroups groups = token_groups_of(grams_, std::move(of_tokens));
  on_.upload(group_row_, groups.row);
  on_.upload(group_begin_, groups.begin);
  on_.ops.scatter_rows(on_.device, d_gram_.f32(), ids(gram_token_), ids(group_row_),
                       ids(group_begin_), groups.n_groups(),
                       gradient + layout_.at("embed_tokens.weight"), c_.dim);
}

void ChimeraPass::forward_backward(const TrainWeights& w,
                                   std::span<const HeadsText> texts,
                                   const HeadsLoss& loss,
                                   float* gradient,
                                   const HeadsLosses& losses) {
  read(texts, &loss);
  if (rows_.links.empty()) return;
  if (loss.self_fed) guess(w);
  forward(w);
  on_.ops.clear(on_.device, dx_.data(), std::int64_t{4} * n_rows() * c_.dim);
  for (int head = 0; head < c_.n_heads; head++) backward_head(w, head, loss, gradient, losses);
  backward_encoder(w, gradient);
}

void ChimeraPass::rank(const TrainWeights& w,
                       std::span<const HeadsText> texts,
                       int n_valid,
                       bool self_fed,
                       MeasuredRanks& ranks) {
  read(texts, nullptr);
  if (rows_.links.empty()) return;
  if (self_fed) guess(w);
  forward(w);
  auto* device_ranks = static_cast<std::int32_t*>(rank_.data());
  for (int head = 0; head < c_.n_heads; head++) {
    vocab_.logits(m_.output_weights(w, of_target_.output), m_.output_of(head), head_input(w, head),
                  n_rows(head), [&](int first, int n, const float* logits) {
                    const int at = first_of(head) + first;
                    on_.ops.target_ranks(on_.device, logits, ids(target_) + at, device_ranks + at,
                                         n, c_.n_outputs(), valid_outputs(c_, n_valid));
                  });
  }
  const int last = c_.n_heads - 1;
  std::vector<std::int32_t> found(static_cast<std::size_t>(first_of(last) + n_rows(last)));
  on_.device.ops().download(on_.device, found.data(), device_ranks, 4 * std::ssize(found));
  std::vector<int> of_link(rows_.links.size(), kRanks);
  for (int head = 0; head < c_.n_heads; head++) {
    const std::vector<int>& links = rows_.of_head[static_cast<std::size_t>(head)];
    for (std::size_t row = 0; row < links.size(); row++)
      if (const std::int32_t rank = found[static_cast<std::size_t>(first_of(head)) + row]; rank > 0)
        of_link[static_cast<std::size_t>(links[row])] = rank - 1;
  }
  for (std::size_t first = 0, end = 0; first < of_link.size(); first = end) {
    while (end < of_link.size() && rows_.links[end].first == static_cast<int>(first)) end++;
    const ChimeraRows::Link& link = rows_.links[first];
    if (link.place < link.text->n_prompt - 1) continue;  // within the prompt, without targets
    ranks.add_place(std::span(of_link).subspan(first, end - first));
  }
}

}  // namespace

std::unique_ptr<HeadsPass> make_chimera_pass(const TrainDevice& on,
                                             const HeadsConfig& config,
                                             const TargetMatrices& target,
                                             int max_rows) {
  return std::make_unique<ChimeraPass>(on, config, target, max_rows);
}

}  // namespace engine
