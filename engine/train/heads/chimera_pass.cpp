// Chimera's heads. A k-gram is W2 SiLU(W1 [e ..]), places before the text's begin zero. f is the
// block's output at a k-gram's row, without a norm behind it. Beside the heads' losses f is drawn
// to the hidden state of its own position, which the target will have there.
#include "engine/train/heads/chimera_pass.h"

#include <algorithm>
#include <string>

#include "engine/train/heads/chimera_rows.h"
#include "engine/train/heads/rows.h"
#include "engine/train/ops/aligned_vector.h"
#include "engine/train/core/vocab_rows.h"

namespace engine {
namespace {

template <typename T>
class ChimeraPass final : public HeadsPass<T> {
 public:
  ChimeraPass(const HeadsConfig& config,
              const std::vector<float>& embedding,
              std::unique_ptr<LinearMath<T>> math,
              const TrainTable& table,
              int max_rows)
      : c_(config),
        layout_(config),
        embedding_(embedding),
        math_(std::move(math)),
        ops_(table.ops<T>()),
        vocab_(*math_, table, config.vocab_size),
        max_rows_(padded_rows(max_rows)),
        kept_(encoder_of(config), max_rows_),
        block_(encoder_of(config), *math_, table, max_rows_),
        rows_(config, max_rows_) {}

  void forward_backward(const std::vector<float>& parameters,
                        const PackedHeads<T>& weights,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        HeadsSums& sums) override;
  void rank(const std::vector<float>& parameters,
            const PackedHeads<T>& weights,
            std::span<const HeadsText> texts,
            int n_valid,
            HeadsRanks& ranks) override;

 private:
  using Link = ChimeraRows::Link;

  void lay_out(std::span<const HeadsText> texts);
  void guess(const std::vector<float>& parameters, const PackedHeads<T>& weights);
  void forward(const std::vector<float>& parameters, const PackedHeads<T>& weights);
  void encode(const std::vector<float>& parameters, const PackedHeads<T>& weights);
  int join(int head);
  void backward_head(int head,
                     const PackedHeads<T>& weights,
                     const HeadsLoss& loss,
                     float* gradient,
                     HeadsSums& sums);
  void backward_encoder(const std::vector<float>& parameters,
                        const PackedHeads<T>& weights,
                        float* gradient);
  void add_to_embedding(float* gradient);
  int head_width() const { return c_.residual ? 2 * c_.dim : c_.dim; }
  BlockRows rows() const { return {rows_.pos, rows_.segments, rows_.views}; }

  const HeadsConfig c_;
  const HeadsLayout layout_;
  const std::vector<float>& embedding_;  // the trainer's
  std::unique_ptr<LinearMath<T>> math_;
  const TrainOps<T>& ops_;
  VocabRows<T> vocab_;
  int max_rows_;
  KeptBlock<T> kept_;
  BlockPass<T> block_;

  ChimeraRows rows_;                    // positions and views filled up
  AlignedVector<T> gram_, silu_;        // [links, gram dim], [links, dim]
  AlignedVector<float> z_, encoded_;    // [links, dim]
  AlignedVector<float> f_, dx_;         // [rows, dim]
  AlignedVector<T> joined_, d_joined_;  // [a head's rows, head_width]
  std::vector<TokenId> target_;         // of the head under way
  std::vector<float> weight_, loss_;
  AlignedVector<T> dx_rounded_, d_encoded_, d_silu_, d_z_, d_gram_;
};

template <typename T>
void ChimeraPass<T>::lay_out(std::span<const HeadsText> texts) {
  rows_.lay_out(texts);
  for (const ChimeraRows::State& state : rows_.states)
    copy_row(state.text->hidden.data() + std::int64_t{state.place} * c_.dim, c_.dim,
             kept_.x_attn.data() + std::int64_t{state.row} * c_.dim);
  const std::size_t n = rows_.pos.size();
  rows_.pos.resize(static_cast<std::size_t>(padded_rows(static_cast<int>(n))), 0);
  rows_.views.resize(rows_.pos.size());
  std::fill(
      kept_.x_attn.begin() + static_cast<std::ptrdiff_t>(n * static_cast<std::size_t>(c_.dim)),
      kept_.x_attn.end(), 0.0f);
  const auto links = static_cast<std::size_t>(padded_rows(static_cast<int>(rows_.links.size())));
  const auto dim = static_cast<std::size_t>(c_.dim);
  gram_.assign(links * dim * static_cast<std::size_t>(c_.gram), T{});
  z_.resize(links * dim);
  silu_.resize(links * dim);
  encoded_.resize(links * dim);
  f_.resize(rows_.pos.size() * dim);
}

template <typename T>
void ChimeraPass<T>::encode(const std::vector<float>& parameters, const PackedHeads<T>& weights) {
  const float* embedding =
      c_.own_embedding ? parameters.data() + layout_.at("embed_tokens.weight") : embedding_.data();
  T* to = gram_.data();
  for (const Link& link : rows_.links) {
    for (int back = c_.gram - 1; back >= 0; back--, to += c_.dim) {
      const TokenId token = rows_.token_of(link, back);
      if (token < 0)
        std::fill_n(to, c_.dim, T{});
      else
        copy_row(embedding + std::int64_t{token} * c_.dim, c_.dim, to);
    }
  }
  const int n = padded_rows(static_cast<int>(rows_.links.size()));
  math_->forward_f32(*weights.gram_in, gram_.data(), n, z_.data(), false);
  ops_.silu(z_.data(), nullptr, silu_.data(), std::int64_t{n} * c_.dim);
  math_->forward_f32(*weights.gram_out, silu_.data(), n, encoded_.data(), false);
}

template <typename T>
void ChimeraPass<T>::forward(const std::vector<float>& parameters, const PackedHeads<T>& weights) {
  encode(parameters, weights);
  for (std::size_t l = 0; l < rows_.links.size(); l++)
    std::copy_n(encoded_.data() + l * static_cast<std::size_t>(c_.dim), c_.dim,
                kept_.x_attn.data() + std::int64_t{rows_.links[l].row} * c_.dim);
  block_.prepare(rows());
  block_.forward(parameters, layout_.encoder, weights.encoder, rows(), kept_, f_.data());
}

// What a head reads at its rows, laid together. @return  how many
template <typename T>
int ChimeraPass<T>::join(int head) {
  const auto& links = rows_.of_head[static_cast<std::size_t>(head)];
  const int n = padded_rows(static_cast<int>(links.size()));
  joined_.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(head_width()), T{});
  T* to = joined_.data();
  for (const int l : links) {
    const Link& link = rows_.links[static_cast<std::size_t>(l)];
    if (c_.residual) {
      copy_row(link.text->hidden.data() + std::int64_t{link.place} * c_.dim, c_.dim, to);
      to += c_.dim;
    }
    copy_row(f_.data() + std::int64_t{link.row} * c_.dim, c_.dim, to);
    to += c_.dim;
  }
  return n;
}

// Replaces the text's tokens in the chains by what the heads before say there, best first.
template <typename T>
void ChimeraPass<T>::guess(const std::vector<float>& parameters, const PackedHeads<T>& weights) {
  for (int head = 0; head + 1 < c_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    forward(parameters, weights);
    join(head);
    const auto& links = rows_.of_head[k];
    vocab_.logits(*weights.output[k], joined_.data(), head_width(), static_cast<int>(links.size()),
                  [&](int row, std::span<const float> logits) {
                    rows_.feed(links[static_cast<std::size_t>(row)],
                               static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) -
                                                    logits.begin()));
                  });
  }
}

// Fills dx_ at the head's rows.
template <typename T>
void ChimeraPass<T>::backward_head(int head,
                                   const PackedHeads<T>& weights,
                                   const HeadsLoss& loss,
                                   float* gradient,
                                   HeadsSums& sums) {
  const auto k = static_cast<std::size_t>(head);
  const auto& links = rows_.of_head[k];
  const auto n = static_cast<std::size_t>(join(head));
  target_.assign(n, 0);
  weight_.assign(n, 0.0f);
  loss_.resize(n);
  for (std::size_t r = 0; r < links.size(); r++) {
    const Link& link = rows_.links[static_cast<std::size_t>(links[r])];
    target_[r] = link.asked();
    weight_[r] = loss.of_head[k];
  }
  d_joined_.resize(joined_.size());
  vocab_.forward_backward(
      *weights.output[k], joined_.data(), head_width(), target_, weight_, d_joined_.data(),
      gradient + layout_.at("heads." + std::to_string(head) + ".weight"), loss_);
  for (const float l : loss_) sums.loss[k] += l;
  sums.n[k] += std::ssize(links);
  sums.n_feature += std::ssize(links) * c_.dim;
  std::vector<float> wanted(static_cast<std::size_t>(c_.dim));
  for (std::size_t r = 0; r < links.size(); r++) {
    const Link& link = rows_.links[static_cast<std::size_t>(links[r])];
    float* dx = dx_.data() + std::int64_t{link.row} * c_.dim;
    const float* f = f_.data() + std::int64_t{link.row} * c_.dim;
    copy_row(link.text->hidden.data() + std::int64_t{link.end()} * c_.dim, c_.dim, wanted.data());
    float squares = 0;
    for (int i = 0; i < c_.dim; i++) {
      const float off = f[i] - wanted[static_cast<std::size_t>(i)];
      squares += off * off;
      dx[i] = 2 * loss.of_feature * off;
    }
    sums.feature += squares;
    add_row(d_joined_.data() + (r + 1) * static_cast<std::size_t>(head_width()) - c_.dim, c_.dim,
            dx);
  }
}

template <typename T>
void ChimeraPass<T>::backward_encoder(const std::vector<float>& parameters,
                                      const PackedHeads<T>& weights,
                                      float* gradient) {
  dx_rounded_.resize(dx_.size());
  ops_.convert(dx_.data(), dx_rounded_.data(), static_cast<std::int64_t>(dx_.size()));
  block_.backward(parameters, layout_.encoder, weights.encoder, rows(), kept_, dx_.data(),
                  dx_rounded_.data(), gradient);
  const int n = padded_rows(static_cast<int>(rows_.links.size()));
  d_encoded_.assign(silu_.size(), T{});
  d_silu_.resize(silu_.size());
  d_z_.resize(silu_.size());
  for (std::size_t l = 0; l < rows_.links.size(); l++)
    std::copy_n(dx_rounded_.data() + std::int64_t{rows_.links[l].row} * c_.dim, c_.dim,
                d_encoded_.data() + l * static_cast<std::size_t>(c_.dim));
  math_->backward_weight(*weights.gram_out, d_encoded_.data(), silu_.data(), n,
                         gradient + layout_.at("gram.1.weight"));
  math_->backward_input(*weights.gram_out, d_encoded_.data(), n, d_silu_.data());
  ops_.silu_backward(z_.data(), d_silu_.data(), d_z_.data(), std::int64_t{n} * c_.dim);
  math_->backward_weight(*weights.gram_in, d_z_.data(), gram_.data(), n,
                         gradient + layout_.at("gram.0.weight"));
  if (!c_.own_embedding) return;
  d_gram_.resize(gram_.size());
  math_->backward_input(*weights.gram_in, d_z_.data(), n, d_gram_.data());
  add_to_embedding(gradient + layout_.at("embed_tokens.weight"));
}

template <typename T>
void ChimeraPass<T>::add_to_embedding(float* gradient) {
  const T* from = d_gram_.data();
  for (const Link& link : rows_.links) {
    for (int back = c_.gram - 1; back >= 0; back--, from += c_.dim) {
      const TokenId token = rows_.token_of(link, back);
      if (token >= 0) add_row(from, c_.dim, gradient + std::int64_t{token} * c_.dim);
    }
  }
}

template <typename T>
void ChimeraPass<T>::forward_backward(const std::vector<float>& parameters,
                                      const PackedHeads<T>& weights,
                                      std::span<const HeadsText> texts,
                                      const HeadsLoss& loss,
                                      float* gradient,
                                      HeadsSums& sums) {
  lay_out(texts);
  if (rows_.links.empty()) return;
  if (loss.self_fed) guess(parameters, weights);
  forward(parameters, weights);
  dx_.assign(f_.size(), 0.0f);
  for (int head = 0; head < c_.n_heads; head++) backward_head(head, weights, loss, gradient, sums);
  backward_encoder(parameters, weights, gradient);
}

template <typename T>
void ChimeraPass<T>::rank(const std::vector<float>& parameters,
                          const PackedHeads<T>& weights,
                          std::span<const HeadsText> texts,
                          int n_valid,
                          HeadsRanks& ranks) {
  lay_out(texts);
  if (rows_.links.empty()) return;
  forward(parameters, weights);
  for (int head = 0; head < c_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    join(head);
    const auto& links = rows_.of_head[k];
    vocab_.logits(
        *weights.output[k], joined_.data(), head_width(), static_cast<int>(links.size()),
        [&](int row, std::span<const float> logits) {
          const Link& link =
              rows_.links[static_cast<std::size_t>(links[static_cast<std::size_t>(row)])];
          ranks.add(head, rank_of(logits.first(static_cast<std::size_t>(n_valid)), link.asked()));
        });
  }
}

}  // namespace

template <typename T>
std::unique_ptr<HeadsPass<T>> make_chimera_pass(const HeadsConfig& config,
                                                const std::vector<float>& embedding,
                                                std::unique_ptr<LinearMath<T>> math,
                                                const TrainTable& table,
                                                int max_rows) {
  return std::make_unique<ChimeraPass<T>>(config, embedding, std::move(math), table, max_rows);
}

template std::unique_ptr<HeadsPass<float>> make_chimera_pass(const HeadsConfig&,
                                                             const std::vector<float>&,
                                                             std::unique_ptr<LinearMath<float>>,
                                                             const TrainTable&,
                                                             int);
template std::unique_ptr<HeadsPass<Bf16>> make_chimera_pass(const HeadsConfig&,
                                                            const std::vector<float>&,
                                                            std::unique_ptr<LinearMath<Bf16>>,
                                                            const TrainTable&,
                                                            int);

}  // namespace engine
