#include "engine/train/lora/low_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/base/types.h"
#include "kernels/dtype.h"
#include "kernels/philox.h"

namespace engine {
namespace {

// The random stream of initial updates, which decoding does not use.
constexpr std::uint32_t kLowRankStream = 0x1420;

float rounded(float value) {
  return kernels::f32_from_bf16(kernels::bf16_from_f32(value));
}

bool is_updated(const NamedPart& part, const LowRank& settings) {
  return part.shape.size() == 2 &&
         std::ranges::any_of(settings.targets, [&](const std::string& target) {
           return part.name.ends_with("." + target + ".weight");
         });
}

/// The tensors of an adapter with the values that they refer to.
struct AdapterValues {
  std::vector<float> values;
  std::shared_ptr<const TensorSource> tensors;
};

}  // namespace

std::vector<std::string> low_rank_targets() {
  return {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
}

LowRankLayout::LowRankLayout(const ModelConfig& config, const LowRank& settings)
    : rank(settings.rank) {
  const auto take = [this](std::int64_t size) {
    const std::int64_t at = n;
    n += aligned_size(size);
    return at;
  };
  for (const NamedPart& part : parts_of(ParameterLayout(config), config)) {
    if (!is_updated(part, settings)) continue;
    const auto n_out = static_cast<int>(part.shape[0]), n_in = static_cast<int>(part.shape[1]);
    const std::int64_t a = take(std::int64_t{rank} * n_in), b = take(std::int64_t{rank} * n_out);
    matrices.push_back({part.name.substr(0, part.name.rfind('.')), {part.at, n_out, n_in}, a, b});
  }
  ensure(rank > 0 && n > 0, "low-rank updates need a rank and a matrix");
}

std::vector<float> LowRankLayout::initial(std::uint64_t seed) const {
  std::vector<float> values(static_cast<std::size_t>(n), 0.0f);
  for (const LowRankMatrix& m : matrices) {
    const double bound = 1 / std::sqrt(static_cast<double>(m.matrix.n_in));
    for (std::int64_t i = m.a; i < m.a + std::int64_t{rank} * m.matrix.n_in; i++) {
      const auto bits =
          kernels::philox(seed, {static_cast<std::uint32_t>(i), kLowRankStream, 0, 0});
      values[static_cast<std::size_t>(i)] =
          static_cast<float>(bound * (2 * kernels::uniform_from_bits(bits[0]) - 1));
    }
  }
  return values;
}

LoraAdapter LowRankLayout::adapter(std::span<const float> values, const std::string& base) const {
  ensure(std::ssize(values) == n, "the values must be those of this layout");
  const auto owned = std::make_shared<AdapterValues>();
  owned->values.reserve(values.size());
  std::vector<NamedPart> parts;
  const auto add = [&](const std::string& name, std::int64_t n_rows, std::int64_t n_cols) {
    parts.push_back({name, {n_rows, n_cols}, std::ssize(owned->values)});
  };
  for (const LowRankMatrix& m : matrices) {
    const auto [at, n_out, n_in] = m.matrix;
    const std::string name = "base_model.model." + m.module;
    add(name + ".lora_A.weight", rank, n_in);
    for (const float value :
         values.subspan(static_cast<std::size_t>(m.a), static_cast<std::size_t>(rank) * n_in))
      owned->values.push_back(rounded(value));
    add(name + ".lora_B.weight", n_out, rank);
    for (int out = 0; out < n_out; out++)
      for (int r = 0; r < rank; r++)
        owned->values.push_back(
            rounded(values[static_cast<std::size_t>(m.b + std::int64_t{r} * n_out + out)]));
  }
  owned->tensors = as_tensors(owned->values, std::move(parts));
  LoraAdapter adapter{"the adapter in training", base, {}, {owned, owned->tensors.get()}};
  for (const LowRankMatrix& m : matrices) {
    const std::string name = "base_model.model." + m.module;
    LowRankUpdate update{.a = owned->tensors->read(name + ".lora_A.weight"),
                         .b = owned->tensors->read(name + ".lora_B.weight")};
    update.a.hold = update.b.hold = owned;
    adapter.updates[m.module + ".weight"] = std::move(update);
  }
  return adapter;
}

}  // namespace engine
