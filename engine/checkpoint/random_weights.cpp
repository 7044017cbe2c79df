// Random weights from a counter-based generator (Philox), so that each value depends only on (seed,
// name, index).
#include "engine/checkpoint/random_weights.h"

#include <cmath>
#include <numbers>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "kernels/philox.h"

namespace engine {

double NormalQuantiles::exact(double p) {
  if (p > 0.5) return -exact(1 - p);
  // Phi is convex left of zero, so Newton's first step from this lower bound lands right of the
  // root, and the following steps approach the root monotonically.
  double x = -std::sqrt(-2 * std::log(p));
  for (int i = 0; i < 60; i++) {
    const double phi = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double step = (0.5 * std::erfc(-x / std::numbers::sqrt2) - p) / phi;
    x -= step;
    if (std::abs(step) < 1e-14) break;
  }
  return x;
}

NormalQuantiles::NormalQuantiles() : edges_(kCells + 1) {
  for (std::uint32_t i = 1; i < kCells; i++) {
    edges_[i] = static_cast<float>(exact(static_cast<double>(i) / kCells));
  }
}

float NormalQuantiles::tail(std::uint32_t bits) {
  return static_cast<float>(exact(kernels::uniform_from_bits(bits)));
}

namespace {

constexpr float kInitStd = 0.02f;

// FNV-1a hash of the tensor's name. It is a part of the generator's counter, so each tensor gets
// its own random numbers.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

bool is_norm(std::string_view name) {
  return name.ends_with("norm.weight");
}

void draw(std::uint64_t seed, std::string_view name, std::vector<float>& out) {
  static const NormalQuantiles quantile;
  const std::uint64_t hash = hash_of(name);
  const auto name_low = static_cast<std::uint32_t>(hash);
  const auto name_high = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const std::uint64_t block = i / 4;
    const std::array<std::uint32_t, 4> bits =
        kernels::philox(seed, {static_cast<std::uint32_t>(block),
                               static_cast<std::uint32_t>(block >> 32), name_low, name_high});
    const std::size_t n = std::min<std::size_t>(4, out.size() - i);
    for (std::size_t k = 0; k < n; k++) out[i + k] = kInitStd * quantile(bits[k]);
  }
}

class RandomTensors : public TensorSource {
 public:
  RandomTensors(std::vector<TensorSpec> specs, std::uint64_t seed, float norm)
      : seed_(seed), norm_(norm) {
    for (TensorSpec& spec : specs) {
      names_.push_back(spec.name);
      shapes_.emplace(spec.name, std::move(spec.shape));
    }
  }

  bool has(const std::string& name) const override { return shapes_.contains(name); }
  std::vector<std::string> names() const override { return names_; }
  std::string path() const override { return fmt::format("random weights (seed {})", seed_); }

  Tensor read(const std::string& name) const override {
    const auto at = shapes_.find(name);
    if (at == shapes_.end()) refuse(path(), "tensor " + in_quotes(name), "none", "the tensor");
    Tensor tensor{kernels::DType::F32, at->second, nullptr, nullptr};
    const auto values =
        std::make_shared<std::vector<float>>(static_cast<std::size_t>(tensor.n_elements()), norm_);
    if (!is_norm(name)) draw(seed_, name, *values);
    tensor.data = values->data();
    tensor.hold = values;
    return tensor;
  }

 private:
  std::uint64_t seed_;
  float norm_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::vector<std::int64_t>> shapes_;
};

}  // namespace

std::shared_ptr<const TensorSource> random_tensors(const ModelConfig& config, std::uint64_t seed) {
  return random_tensors(tensors_of(config), seed, 1 - config.norm_offset);
}

std::shared_ptr<const TensorSource> random_tensors(std::vector<TensorSpec> specs,
                                                   std::uint64_t seed,
                                                   float norm) {
  return std::make_shared<RandomTensors>(std::move(specs), seed, norm);
}

}  // namespace engine
