#include "engine/train/heads/steps.h"

#include <algorithm>

namespace engine {
namespace {

// The number of rows of a pass, unless the longest text has more. It is a constant, not derived
// from the free memory, because the order of sums, and so the bits of a gradient, depend on it.
constexpr std::int64_t kCpuPassRows = 1024, kDevicePassRows = 8192;

std::int64_t places_of(std::span<const HeadsText> texts) {
  std::int64_t n = 0;
  for (const HeadsText& text : texts) n += text.n_places(0);
  return n;
}

TrainedArrays arrays_of(const HeadsRunShape& shape, TrainState state, int losses_a_row) {
  const HeadsLayout layout(shape.config);
  return {.state = state,
          .runs = runs_of(layout.parts, layout.n),
          .matrices = HeadsMatrices(shape.config, layout).all(),
          .n_losses = std::int64_t{losses_a_row} * shape.batch_texts * shape.longest_places};
}

}  // namespace

HeadsSteps::HeadsSteps(const HeadsRunShape& shape, const TrainPlace& place, TrainState state)
    : config_(shape.config),
      losses_a_row_(config_.n_heads * (config_.kind == HeadsKind::Chimera ? 2 : 1)),
      weights_(trainable_weights(place, arrays_of(shape, state, losses_a_row_))) {
  const std::int64_t of_a_step = std::int64_t{shape.batch_texts} * shape.longest_rows;
  pass_rows_ = static_cast<int>(std::max<std::int64_t>(
      weights_->on_cpu() ? kCpuPassRows : std::min(kDevicePassRows, of_a_step),
      shape.longest_rows));
  const bool reads_target =
      config_.kind == HeadsKind::Chimera && !config_.own_embedding && !config_.by_first_layer;
  TargetMatrices target{.first_layer = shape.first_layer};
  if (reads_target)
    target.embedding = weights_->constant(shape.embedding, "the target's embeddings");
  if (config_.target_output)
    target.output = weights_->frozen(shape.output, {{0, config_.n_outputs(), config_.dim}});
  for (int shard = 0; shard < weights_->n_shards(); shard++)
    passes_.push_back(make_heads_pass(weights_->device(shard), config_, target, pass_rows_));
}

// On the CPU each pass has a block of losses, which are summed pass by pass. On a CUDA device all
// passes of a step share one block, which is summed head by head.
std::vector<HeadsSteps::LossBlock> HeadsSteps::blocks_of(int shard,
                                                         std::span<const HeadsText> texts) const {
  const auto n_shards = static_cast<std::size_t>(weights_->n_shards());
  const auto own = static_cast<std::size_t>(shard);
  const std::size_t begin = texts.size() * own / n_shards,
                    end = texts.size() * (own + 1) / n_shards;
  const TrainDevice on = weights_->device(shard);
  std::vector<LossBlock> blocks;
  for (const auto pass : passes_of(texts.subspan(begin, end - begin), config_, pass_rows_)) {
    if (blocks.empty() || weights_->on_cpu()) blocks.emplace_back();
    blocks.back().passes.push_back(pass);
    blocks.back().n_rows += on.padded(static_cast<int>(places_of(pass)));
  }
  return blocks;
}

std::int64_t HeadsSteps::n_losses(const std::vector<LossBlock>& blocks) const {
  std::int64_t n = 0;
  for (const LossBlock& block : blocks) n += losses_a_row_ * block.n_rows;
  return n;
}

void HeadsSteps::run(int shard,
                     const std::vector<LossBlock>& blocks,
                     const HeadsLoss& loss,
                     float* losses) {
  for (const LossBlock& block : blocks) {
    HeadsLosses placed{
        .loss = losses, .squares = losses + config_.n_heads * block.n_rows, .n_rows = block.n_rows};
    for (const auto pass : block.passes) {
      passes_[static_cast<std::size_t>(shard)]->forward_backward(weights_->weights(), pass, loss,
                                                                 weights_->gradient(shard), placed);
      placed.first += places_of(pass);
    }
    losses += losses_a_row_ * block.n_rows;
  }
}

HeadsSums HeadsSteps::sums_of(const std::vector<LossBlock>& blocks, const float* losses) const {
  HeadsSums sums(config_.n_heads);
  for (const LossBlock& block : blocks) {
    const float* const end = losses + losses_a_row_ * block.n_rows;
    for (int head = 0; head < config_.n_heads; head++) {
      const auto k = static_cast<std::size_t>(head);
      for (std::int64_t row = 0; row < block.n_rows; row++) sums.loss[k] += *losses++;
      for (const auto pass : block.passes)
        for (const HeadsText& text : pass) {
          sums.n[k] += text.n_targets(head);
          if (config_.kind == HeadsKind::Chimera)
            sums.n_feature += std::int64_t{text.n_places(head)} * config_.dim;
        }
    }
    while (losses < end) sums.feature += *losses++;
  }
  return sums;
}

// Each shard computes a range of the texts, in one or several passes.
double HeadsSteps::update(std::span<const HeadsText> texts,
                          const HeadsLoss& loss,
                          std::int64_t step,
                          double lr,
                          HeadsSums& sums) {
  std::vector<std::vector<LossBlock>> blocks;
  std::vector<std::int64_t> first = {0};  // loss of each shard
  for (int shard = 0; shard < weights_->n_shards(); shard++) {
    blocks.push_back(blocks_of(shard, texts));
    first.push_back(first.back() + n_losses(blocks.back()));
  }
  losses_.resize(static_cast<std::size_t>(first.back()));
  float* device_losses = weights_->losses(first.back());
  const TrainDevice on = weights_->device(0);
  on.ops.clear(on.device, device_losses, 4 * first.back());
  weights_->for_shards([&](int shard) {
    const auto own = static_cast<std::size_t>(shard);
    run(shard, blocks[own], loss, device_losses + first[own]);
  });
  const double norm = weights_->update(step, lr, losses_);
  HeadsSums all(config_.n_heads);
  for (std::size_t shard = 0; shard < blocks.size(); shard++)
    all += sums_of(blocks[shard], losses_.data() + first[shard]);
  sums += all;
  return norm;
}

void HeadsSteps::rank(std::span<const HeadsText> texts,
                      int n_valid,
                      bool self_fed,
                      MeasuredRanks& ranks) {
  for (const auto pass : passes_of(texts, config_, pass_rows_))
    passes_[0]->rank(weights_->weights(), pass, n_valid, self_fed, ranks);
}

}  // namespace engine
