// Chimera's heads on a CUDA device: ChimeraPass of chimera_pass.cpp. Rows of one kind are copied to
// where they stand among others by lists that go up with a pass; no two go to the same place.
#include <string>

#include "engine/train/heads/chimera_rows.h"
#include "engine/train/gpu/block.h"
#include "engine/train/gpu/heads_pass.h"
#include "engine/train/gpu/linear.h"
#include "engine/train/gpu/pass.h"
#include "engine/train/gpu/vocab_rows.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

constexpr const char* kGrams = "the k-grams of draft heads";

const std::int32_t* ids(const DeviceBuffer& list) {
  return static_cast<const std::int32_t*>(list.data());
}

class GpuChimeraPass final : public GpuHeadsPass {
 public:
  GpuChimeraPass(const GpuArrays& arrays,
                 const HeadsConfig& config,
                 const std::vector<float>& embedding);

  void forward_backward(const GpuWeights& w,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        const GpuHeadsLosses& losses) override;
  void rank(const GpuWeights& w,
            std::span<const HeadsText> texts,
            int n_valid,
            HeadsRanks& ranks) override;

 private:
  void read(std::span<const HeadsText> texts, const HeadsLoss* loss);
  void read_states(std::span<const HeadsText> texts);
  void read_heads(std::span<const HeadsText> texts, const HeadsLoss* loss);
  void read_grams();
  void guess(const GpuWeights& w);
  void forward(const GpuWeights& w);
  void encode(const GpuWeights& w);
  void join(int head);
  void backward_head(const GpuWeights& w,
                     int head,
                     const HeadsLoss& loss,
                     float* gradient,
                     const GpuHeadsLosses& losses);
  void backward_encoder(const GpuWeights& w, float* gradient);
  int n_rows(int head) const {
    return static_cast<int>(rows_.of_head[static_cast<std::size_t>(head)].size());
  }
  /// Where the head's rows begin among those of all heads.
  int first_of(int head) const { return first_of_[static_cast<std::size_t>(head)]; }
  int n_links() const { return static_cast<int>(rows_.links.size()); }
  int head_width() const { return c_.residual ? 2 * c_.dim : c_.dim; }
  /// A head reads f behind the hidden state.
  void* f_part(const DeviceBuffer& joined) const {
    return static_cast<char*>(joined.data()) +
           std::int64_t{head_width() - c_.dim} * kernels::bytes_of(type_);
  }
  GpuMatrix gram_in() const { return {layout_.at("gram.0.weight"), c_.dim, c_.gram * c_.dim}; }
  GpuMatrix gram_out() const { return {layout_.at("gram.1.weight"), c_.dim, c_.dim}; }
  GpuMatrix output(int head) const {
    return {layout_.at("heads." + std::to_string(head) + ".weight"), c_.vocab_size, head_width()};
  }

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const GpuLinear linear_;
  GpuVocabRows vocab_;
  const HeadsConfig c_;
  const HeadsLayout layout_;
  const DType type_;
  ChimeraRows rows_;
  GpuKeptBlock kept_;
  GpuBlockPass block_;
  std::vector<int> first_state_, first_of_;  // of each text; of each head
  std::vector<TokenId> grams_;               // [links, gram], oldest first; -1 before the text

  DeviceBuffer embedding_;                // [vocab_size, dim]; empty: the heads' own
  DeviceBuffer states_;                   // [states of all texts, dim] bf16
  DeviceBuffer state_, state_row_;        // of rows that are hidden states
  DeviceBuffer link_row_;                 // [links]
  DeviceBuffer gram_token_;               // [links, gram]
  DeviceBuffer group_row_, group_begin_;  // of gram_token_
  // Of all heads' rows, head by head: the state and the row they read, the state that f shall be.
  DeviceBuffer head_state_, head_row_, head_wanted_, target_, weight_, rank_;
  DeviceBuffer gram_, silu_;               // [links, gram dim], [links, dim]
  DeviceBuffer z_, encoded_;               // [links, dim]
  DeviceBuffer f_, dx_, dx_rounded_;       // [rows, dim]
  DeviceBuffer joined_, d_joined_;         // [a head's rows, head_width]
  DeviceBuffer d_encoded_, d_silu_, d_z_;  // [links, dim]
  DeviceBuffer d_gram_;                    // [links, gram dim] f32
};

GpuChimeraPass::GpuChimeraPass(const GpuArrays& arrays,
                               const HeadsConfig& config,
                               const std::vector<float>& embedding)
    : device_(arrays.device),
      kernels_(kernels::train_kernels(device_)),
      linear_(device_, arrays.type),
      vocab_(device_, arrays.type, config.vocab_size, arrays.rows),
      c_(config),
      layout_(config),
      type_(arrays.type),
      rows_(config, arrays.rows),
      kept_(arrays, encoder_of(config)),
      block_(arrays, encoder_of(config)),
      states_(GpuArrays{device_, DType::BF16, arrays.rows}.typed(config.dim, kStatesOfTarget)),
      gram_token_(arrays.f32(config.gram, kGrams)),
      gram_(arrays.typed(std::int64_t{config.gram} * config.dim, kGrams)),
      joined_(arrays.typed(head_width(), kRowsOfHeads)),
      d_joined_(arrays.typed(head_width(), kRowsOfHeads)) {
  for (DeviceBuffer* one : {&state_, &state_row_, &link_row_, &head_state_, &head_row_,
                            &head_wanted_, &target_, &weight_, &rank_})
    *one = arrays.f32(1, kRowsOfHeads);
  for (DeviceBuffer* one : {&z_, &encoded_, &f_, &dx_}) *one = arrays.f32(config.dim, kRowsOfHeads);
  for (DeviceBuffer* one : {&silu_, &dx_rounded_, &d_encoded_, &d_silu_, &d_z_})
    *one = arrays.typed(config.dim, kRowsOfHeads);
  if (config.own_embedding) {
    d_gram_ = arrays.f32(std::int64_t{config.gram} * config.dim, kGrams);
    group_row_ = arrays.f32(config.gram, kGrams);
    group_begin_ = DeviceBuffer(device_, group_row_.bytes() + 4, kGrams);
  } else {
    embedding_ = DeviceBuffer(device_, 4 * std::ssize(embedding), "the target's embeddings");
    upload(device_, embedding_, embedding);
  }
}

// All hidden states of the texts, and those among them that rows see.
void GpuChimeraPass::read_states(std::span<const HeadsText> texts) {
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
         "hidden states of a pass fit");
  upload(device_, states_, hidden);
  upload(device_, state_, state);
  upload(device_, state_row_, row);
}

// @param loss  null: only ranks are asked for
void GpuChimeraPass::read_heads(std::span<const HeadsText> texts, const HeadsLoss* loss) {
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
      target.push_back(link.asked());
      weight.push_back(loss ? loss->of_head[k] : 0.0f);
    }
  }
  upload(device_, head_state_, state);
  upload(device_, head_row_, row);
  upload(device_, head_wanted_, wanted);
  upload(device_, target_, target);
  upload(device_, weight_, weight);
}

void GpuChimeraPass::read_grams() {
  grams_.clear();
  for (const ChimeraRows::Link& link : rows_.links)
    for (int back = c_.gram - 1; back >= 0; back--) grams_.push_back(rows_.token_of(link, back));
  upload(device_, gram_token_, grams_);
}

void GpuChimeraPass::read(std::span<const HeadsText> texts, const HeadsLoss* loss) {
  rows_.lay_out(texts);
  if (rows_.links.empty()) return;
  std::vector<std::int32_t> link_row;
  for (const ChimeraRows::Link& link : rows_.links) link_row.push_back(link.row);
  read_states(texts);
  read_heads(texts, loss);
  read_grams();
  upload(device_, link_row_, link_row);
  block_.prepare({rows_.pos, rows_.segments, rows_.views});
}

void GpuChimeraPass::encode(const GpuWeights& w) {
  const float* embedding =
      c_.own_embedding ? w.masters + layout_.at("embed_tokens.weight") : embedding_.f32();
  kernels_.copy_rows(device_, DType::F32, embedding, ids(gram_token_), type_, gram_.data(), nullptr,
                     c_.dim, n_links() * c_.gram, c_.dim);
  linear_.forward_f32(w, gram_in(), gram_.data(), n_links(), z_.f32(), false);
  kernels_.silu(device_, type_, z_.f32(), nullptr, nullptr, silu_.data(), n_links(), c_.dim);
  linear_.forward_f32(w, gram_out(), silu_.data(), n_links(), encoded_.f32(), false);
}

void GpuChimeraPass::forward(const GpuWeights& w) {
  encode(w);
  kernels_.copy_rows(device_, DType::BF16, states_.data(), ids(state_), DType::F32,
                     kept_.x_attn.data(), ids(state_row_), c_.dim,
                     static_cast<int>(rows_.states.size()), c_.dim);
  kernels_.copy_rows(device_, DType::F32, encoded_.data(), nullptr, DType::F32, kept_.x_attn.data(),
                     ids(link_row_), c_.dim, n_links(), c_.dim);
  block_.forward(w, layout_.encoder, kept_, f_.f32());
}

// What a head reads at its rows, laid together.
void GpuChimeraPass::join(int head) {
  const int n = n_rows(head), first = first_of(head);
  if (c_.residual)
    kernels_.copy_rows(device_, DType::BF16, states_.data(), ids(head_state_) + first, type_,
                       joined_.data(), nullptr, head_width(), n, c_.dim);
  kernels_.copy_rows(device_, DType::F32, f_.data(), ids(head_row_) + first, type_, f_part(joined_),
                     nullptr, head_width(), n, c_.dim);
}

// Replaces the text's tokens in the chains by what the heads before say there, best first.
void GpuChimeraPass::guess(const GpuWeights& w) {
  for (int head = 0; head + 1 < c_.n_heads; head++) {
    forward(w);
    join(head);
    const auto& links = rows_.of_head[static_cast<std::size_t>(head)];
    vocab_.logits(w, output(head), joined_.data(), n_rows(head),
                  [&](int first, int n, const float* logits) {
                    const std::vector<kernels::PickRow> greedy(static_cast<std::size_t>(n));
                    std::vector<kernels::Picked> picked(greedy.size());
                    device_.ops().pick(device_, logits, c_.vocab_size, n, c_.vocab_size,
                                       c_.vocab_size, greedy.data(), picked.data());
                    for (int i = 0; i < n; i++) {
                      const TokenId token = picked[static_cast<std::size_t>(i)].id;
                      // Of logits that are no finite numbers nothing is learnt in any case.
                      if (token >= 0) rows_.feed(links[static_cast<std::size_t>(first + i)], token);
                    }
                  });
    read_grams();
  }
}

// Fills dx_ at the head's rows.
void GpuChimeraPass::backward_head(const GpuWeights& w,
                                   int head,
                                   const HeadsLoss& loss,
                                   float* gradient,
                                   const GpuHeadsLosses& losses) {
  const int n = n_rows(head), first = first_of(head);
  join(head);
  vocab_.forward_backward(w, output(head), joined_.data(), n, ids(target_) + first,
                          weight_.f32() + first, d_joined_.data(), gradient, losses.loss_of(head));
  kernels_.feature_loss(device_, type_, f_.f32(), ids(head_row_) + first, states_.data(),
                        ids(head_wanted_) + first, f_part(d_joined_), head_width(), loss.of_feature,
                        dx_.f32(), losses.squares_of(head), n, c_.dim);
}

void GpuChimeraPass::backward_encoder(const GpuWeights& w, float* gradient) {
  const int n = n_links();
  kernels_.convert(device_, type_, dx_.f32(), dx_rounded_.data(),
                   std::ssize(rows_.pos) * std::int64_t{c_.dim});
  block_.backward(w, layout_.encoder, kept_, dx_.f32(), dx_rounded_.data(), gradient);
  kernels_.copy_rows(device_, type_, dx_rounded_.data(), ids(link_row_), type_, d_encoded_.data(),
                     nullptr, c_.dim, n, c_.dim);
  linear_.backward_weight(gram_out(), d_encoded_.data(), silu_.data(), n, gradient);
  linear_.backward_input(w, gram_out(), d_encoded_.data(), n, d_silu_.data());
  kernels_.silu_backward(device_, type_, z_.f32(), d_silu_.data(), d_z_.data(),
                         std::int64_t{n} * c_.dim);
  linear_.backward_weight(gram_in(), d_z_.data(), gram_.data(), n, gradient);
  if (!c_.own_embedding) return;
  linear_.backward_input_f32(w, gram_in(), d_z_.data(), n, d_gram_.f32());
  std::vector<std::int32_t> of_tokens;
  for (std::size_t i = 0; i < grams_.size(); i++)
    if (grams_[i] >= 0) of_tokens.push_back(static_cast<std::int32_t>(i));
  const TokenGroups groups = token_groups_of(grams_, std::move(of_tokens));
  upload(device_, group_row_, groups.row);
  upload(device_, group_begin_, groups.begin);
  kernels_.scatter_rows(device_, d_gram_.f32(), ids(gram_token_), ids(group_row_),
                        ids(group_begin_), groups.n_groups(),
                        gradient + layout_.at("embed_tokens.weight"), c_.dim);
}

void GpuChimeraPass::forward_backward(const GpuWeights& w,
                                      std::span<const HeadsText> texts,
                                      const HeadsLoss& loss,
                                      float* gradient,
                                      const GpuHeadsLosses& losses) {
  read(texts, &loss);
  if (rows_.links.empty()) return;
  if (loss.self_fed) guess(w);
  forward(w);
  kernels_.clear(device_, dx_.data(), std::int64_t{4} * std::ssize(rows_.pos) * c_.dim);
  for (int head = 0; head < c_.n_heads; head++) backward_head(w, head, loss, gradient, losses);
  backward_encoder(w, gradient);
}

void GpuChimeraPass::rank(const GpuWeights& w,
                          std::span<const HeadsText> texts,
                          int n_valid,
                          HeadsRanks& ranks) {
  read(texts, nullptr);
  if (rows_.links.empty()) return;
  forward(w);
  auto* there = static_cast<std::int32_t*>(rank_.data());
  for (int head = 0; head < c_.n_heads; head++) {
    join(head);
    vocab_.logits(w, output(head), joined_.data(), n_rows(head),
                  [&](int first, int n, const float* logits) {
                    const int at = first_of(head) + first;
                    kernels_.target_ranks(device_, logits, ids(target_) + at, there + at, n,
                                          c_.vocab_size, n_valid);
                  });
  }
  const int last = c_.n_heads - 1;
  std::vector<std::int32_t> found(static_cast<std::size_t>(first_of(last) + n_rows(last)));
  device_.ops().download(device_, found.data(), there, 4 * std::ssize(found));
  for (int head = 0; head < c_.n_heads; head++)
    for (int row = 0; row < n_rows(head); row++)
      ranks.add(head, found[static_cast<std::size_t>(first_of(head) + row)] - 1);
}

}  // namespace

std::unique_ptr<GpuHeadsPass> make_gpu_chimera_pass(const GpuArrays& arrays,
                                                    const HeadsConfig& config,
                                                    const std::vector<float>& embedding) {
  return std::make_unique<GpuChimeraPass>(arrays, config, embedding);
}

}  // namespace engine
