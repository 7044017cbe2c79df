#include "engine/train/run/run_parts.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace engine {

Compute compute_named(const std::string& name, const ModelConfig& model) {
  const bool tiles_fit = model.dim % 32 == 0 && model.hidden_dim % 32 == 0 &&
                         model.n_outputs() % 32 == 0 && model.head_dim * model.n_heads % 32 == 0 &&
                         model.head_dim * model.n_kv_heads % 32 == 0;
  for (const Compute compute : {Compute::F32, Compute::Bf16Amx, Compute::Bf16OneDnn}) {
    if (name == name_of(compute)) return compute;
  }
  if (name == name_of(Compute::F32Cuda)) return Compute::F32;
  const Compute best = fastest_compute();
  return best == Compute::Bf16Amx && !tiles_fit ? Compute::F32 : best;
}

Compute gpu_compute_named(const std::string& name) {
  return name == name_of(Compute::F32) || name == name_of(Compute::F32Cuda) ? Compute::F32Cuda
                                                                            : Compute::Bf16Cuda;
}

int usable_threads(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

double cosine_lr(
    double peak, std::int64_t step, double done, int warmup_steps, double final_share) {
  const double warm =
      warmup_steps > 0
          ? std::min(1.0, static_cast<double>(step) / static_cast<double>(warmup_steps))
          : 1.0;
  const double cosine = 0.5 * (1 + std::cos(3.14159265358979323846 * std::min(1.0, done)));
  return peak * warm * (final_share + (1 - final_share) * cosine);
}

}  // namespace engine
