#include "engine/train/core/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace engine {

Optimizer::Optimizer(const OptimizerSettings& settings,
                     std::vector<ParameterRun> runs,
                     const TrainTable& table)
    : settings_(settings), ops_(table.parameters) {
  constexpr std::int64_t kBlock = 1 << 15;
  for (const ParameterRun& run : runs) {
    for (std::int64_t at = run.begin; at < run.end; at += kBlock) {
      blocks_.push_back({at, std::min(at + kBlock, run.end), run.decays});
    }
  }
  const auto n = static_cast<std::size_t>(runs.back().end);
  mean.assign(n, 0.0f);
  square.assign(n, 0.0f);
}

AdamStep Optimizer::adam_step(double norm, std::int64_t step, double lr, bool decays) const {
  AdamStep adam;
  adam.lr = static_cast<float>(lr);
  adam.beta1 = static_cast<float>(settings_.beta1);
  adam.beta2 = static_cast<float>(settings_.beta2);
  adam.weight_decay = decays ? static_cast<float>(settings_.weight_decay) : 0.0f;
  adam.gradient_scale = static_cast<float>(norm > settings_.clip ? settings_.clip / norm : 1.0);
  const auto t = static_cast<double>(step);
  adam.correction1 = static_cast<float>(1 / (1 - std::pow(settings_.beta1, t)));
  adam.correction2 = static_cast<float>(1 / (1 - std::pow(settings_.beta2, t)));
  return adam;
}

double Optimizer::update(std::vector<float>& parameters,
                         std::vector<std::vector<float>>& gradients,
                         std::int64_t step,
                         double lr,
                         Workers& workers) {
  std::vector<float*> parts;
  for (std::vector<float>& gradient : gradients) parts.push_back(gradient.data());
  std::vector<double> squares(blocks_.size());
  const int n_blocks = static_cast<int>(blocks_.size());
  workers.run(n_blocks, [&](int i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    squares[static_cast<std::size_t>(i)] =
        ops_.reduce(parts.data(), static_cast<int>(parts.size()), block.begin, block.end);
  });
  double sum = 0;
  for (const double s : squares) sum += s;
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm)) return skip_step(gradients, workers);

  workers.run(n_blocks, [&](int i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    const AdamStep own = adam_step(norm, step, lr, block.decays);
    ops_.adamw(parameters.data() + block.begin, mean.data() + block.begin,
               square.data() + block.begin, parts[0] + block.begin, block.end - block.begin, own);
  });
  return norm;
}

double Optimizer::skip_step(std::vector<std::vector<float>>& gradients, Workers& workers) const {
  workers.run(static_cast<int>(gradients.size()),
              [&](int i) { std::ranges::fill(gradients[static_cast<std::size_t>(i)], 0.0f); });
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace engine
