#include "engine/model/head_rows.h"

namespace engine {

kernels::DeviceBuffer on_device(kernels::Device& device, std::span<const float> values) {
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  kernels::DeviceBuffer buffer(device, bytes);
  device.ops().upload(device, buffer.data(), values.data(), bytes);
  return buffer;
}

std::vector<float> download_rows(
    kernels::Device& device, const float* rows, std::int64_t stride, int n_rows, int n) {
  std::vector<float> host(static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n));
  const auto row_bytes = static_cast<std::int64_t>(sizeof(float)) * n;
  if (stride == n) {
    device.ops().download(device, host.data(), rows, n_rows * row_bytes);
    return host;
  }
  for (std::int64_t r = 0; r < n_rows; r++)
    device.ops().download(device, host.data() + r * n, rows + r * stride, row_bytes);
  return host;
}

SiluRows::SiluRows(kernels::Device& device, int n_rows, int dim) : device_(device), dim_(dim) {
  const std::vector<float> ones(
      static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(2 * dim), 1.0f);
  in_ = on_device(device, ones);
  out_ = kernels::DeviceBuffer(
      device, static_cast<std::int64_t>(sizeof(float)) * n_rows * std::int64_t{dim});
}

const float* SiluRows::apply(int n) {
  device_.ops().swiglu(device_, in_.f32(), out_.f32(), n, dim_);
  return out_.f32();
}

std::vector<float> SiluRows::download(int n) {
  return download_rows(device_, apply(n), dim_, n, dim_);
}

}  // namespace engine
