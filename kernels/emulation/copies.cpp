// Copies between host and device, and within the device. Streams make them when the host waits.
#include <atomic>
#include <cstring>

#include "kernels/emulation/emulation_checks.h"
#include "kernels/emulation/launched.h"

namespace kernels::emulation {
namespace {

std::atomic<std::int64_t> to_host{0}, to_device{0};  // bytes

/// Rows of a copy; a plain copy is one row.
struct CopiedRows {
  void* to;
  std::size_t pitch;  // of the target's rows, in bytes
  const void* from;
  std::size_t from_pitch;
  std::size_t width, height;
};

cudaError_t copy_rows(const char* call,
                      const CopiedRows& rows,
                      cudaMemcpyKind kind,
                      cudaStream_t stream) {
  if (const cudaError_t error = begin_call(call)) return error;
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  const auto reach = [&](std::size_t pitch) { return (rows.height - 1) * pitch + rows.width; };
  const bool is_valid =
      rows.pitch >= rows.width && rows.from_pitch >= rows.width &&
      (kind == cudaMemcpyHostToDevice || on_device(rows.from, reach(rows.from_pitch))) &&
      (kind == cudaMemcpyDeviceToHost || on_device(rows.to, reach(rows.pitch)));
  if (!is_valid) return refused(cudaErrorInvalidValue);
  const auto bytes = static_cast<std::int64_t>(rows.width * rows.height);
  if (kind == cudaMemcpyDeviceToHost) to_host += bytes;
  if (kind == cudaMemcpyHostToDevice) to_device += bytes;
  add_to_stream(stream, [rows] {
    for (std::size_t row = 0; row < rows.height; row++)
      std::memcpy(static_cast<char*>(rows.to) + row * rows.pitch,
                  static_cast<const char*>(rows.from) + row * rows.from_pitch, rows.width);
  });
  return cudaSuccess;
}

}  // namespace

std::int64_t bytes_to_host() {
  return to_host;
}

std::int64_t bytes_to_device() {
  return to_device;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_rows("cudaMemcpyAsync", {to, bytes, from, bytes, bytes, 1}, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to,
                              std::size_t pitch,
                              const void* from,
                              std::size_t from_pitch,
                              std::size_t width,
                              std::size_t height,
                              cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return copy_rows("cudaMemcpy2DAsync", {to, pitch, from, from_pitch, width, height}, kind, stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaMemsetAsync")) return error;
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) return refused(cudaErrorInvalidValue);
  add_to_stream(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

}  // namespace kernels::emulation
