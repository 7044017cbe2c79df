#include "engine/checkpoint/non_finite.h"

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/model_files.h"

namespace engine {
namespace {

// A float is finite unless all bits of its exponent are set.
template <class Bits>
std::int64_t count(const void* data, std::int64_t n, Bits exponent) {
  const auto* bits = static_cast<const Bits*>(data);
  std::int64_t n_found = 0;
  for (std::int64_t i = 0; i < n; i++) n_found += (bits[i] & exponent) == exponent;
  return n_found;
}

}  // namespace

std::int64_t count_non_finite(const Tensor& tensor) {
  const std::int64_t n = tensor.n_elements();
  switch (tensor.dtype) {
    case kernels::DType::F32:
      return count<std::uint32_t>(tensor.data, n, 0x7f800000u);
    case kernels::DType::BF16:
      return count<std::uint16_t>(tensor.data, n, 0x7f80);
    case kernels::DType::F16:
      return count<std::uint16_t>(tensor.data, n, 0x7c00);
    default:
      break;
  }
  return 0;
}

std::vector<std::string> non_finite_faults(const TensorSource& tensors,
                                           std::span<const TensorSpec> specs) {
  std::vector<std::string> faults;
  for (const TensorSpec& spec : specs) {
    const std::int64_t n = count_non_finite(tensors.read(spec.name));
    if (n == 0) continue;
    faults.push_back(
        fmt::format("{}: tensor {}: found {} NaN or infinite value{}, expected finite weights",
                    escaped(tensors.path()), in_quotes(spec.name), n, n == 1 ? "" : "s"));
  }
  return faults;
}

}  // namespace engine
