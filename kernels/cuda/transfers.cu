// Copies between host and device: uploads through two pinned halves, and downloads of all requested results through one
// pinned buffer with one wait.
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cuda/cuda_device.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// small, because the operating system cannot use pinned memory for anything else
constexpr std::int64_t kMostDownloadBuffer = 64 << 20;

}  // namespace

// Returns a piece of the current half. When a half is full, the other half is used as soon as its
// copies are done.
char* CudaDevice::staging(std::int64_t bytes) {
  if (half_used_ + bytes > kHalfBytes) {
    check(cudaEventRecord(halves_[half_].copied, stream_), "cudaEventRecord");
    halves_[half_].pending = true;
    half_ = 1 - half_;
    half_used_ = 0;
    if (halves_[half_].pending) {
      check(cudaEventSynchronize(halves_[half_].copied), "cudaEventSynchronize");
      halves_[half_].pending = false;
    }
  }
  char* piece = halves_[half_].data + half_used_;
  half_used_ += bytes;
  return piece;
}

void CudaDevice::upload(void* to, const void* from_host, std::int64_t bytes) {
  expect_usable();
  if (bytes <= 0) return;
  launch_pending_that_use(to);
  const char* from = static_cast<const char*>(from_host);
  for (std::int64_t at = 0; at < bytes; at += kHalfBytes) {
    const std::int64_t n = std::min(kHalfBytes, bytes - at);
    char* piece = staging(n);
    std::memcpy(piece, from + at, static_cast<std::size_t>(n));
    at_work_ = true;
    check(cudaMemcpyAsync(static_cast<char*>(to) + at, piece, static_cast<std::size_t>(n),
                          cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
  }
}

void CudaDevice::download(void* to_host, const void* from, std::int64_t bytes) {
  expect_usable();
  if (bytes <= 0) return wait();
  launch_pending();
  // Copies through the device's own buffer. If the wait fails, the copy may still happen later,
  // when the caller's memory no longer exists.
  for (std::int64_t at = 0; at < bytes; at += kHalfBytes) {
    const auto n = static_cast<std::size_t>(std::min(kHalfBytes, bytes - at));
    at_work_ = true;
    check(cudaMemcpyAsync(download_buffer_, static_cast<const char*>(from) + at, n,
                          cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
    wait();
    std::memcpy(static_cast<char*>(to_host) + at, download_buffer_, n);
  }
}

/// Allocates pinned memory. Returns null if there is no room, with the reason in `refusal`.
char* CudaDevice::try_pinned(std::int64_t bytes, const char* what, std::string& refusal) {
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, static_cast<std::size_t>(bytes));
  if (error != cudaErrorMemoryAllocation) {
    check(error, "cudaMallocHost");
    return static_cast<char*>(data);
  }
  static_cast<void>(cudaGetLastError());
  refusal = "cudaMallocHost: " + error_text(error) + ": " + megabytes(bytes) +
            " of pinned memory were needed for " + what + ", " + host_memory_text();
  return nullptr;
}

char* CudaDevice::pinned(std::int64_t bytes, const char* what) {
  std::string refusal;
  if (char* data = try_pinned(bytes, what, refusal)) return data;
  throw Error(ErrorCode::Resources, name_ + ": " + refusal + kKeptWords +
                                        "; free memory on this machine, or try --device cpu");
}

// Enlarges the buffer for downloads if the driver gives pinned memory. No copy into it is in progress.
void CudaDevice::grow_download_buffer(std::int64_t bytes) {
  if (bytes <= download_buffer_bytes_ || download_buffer_is_refused_) return;
  const std::int64_t wanted =
      std::max(bytes, std::min(2 * download_buffer_bytes_, kMostDownloadBuffer));
  std::string refusal;
  char* larger = try_pinned(wanted, kForCopiesBack, refusal);
  if (!larger) {
    download_buffer_is_refused_ = true;
    note(refusal + "; rows are read in pieces of " + megabytes(download_buffer_bytes_) +
         ": the same tokens, but slower");
    return;
  }
  note_free(cudaFreeHost(download_buffer_), "cudaFreeHost");
  download_buffer_ = larger;
  download_buffer_bytes_ = wanted;
}

void CudaDevice::request_download(void* to_host, const void* from, std::int64_t bytes) {
  request_rows(&to_host, from, bytes, bytes, 1);
}

void CudaDevice::request_rows(void* const* to_host,
                              const void* from,
                              std::int64_t row_bytes,
                              std::int64_t stride_bytes,
                              int n_rows) {
  expect_usable();
  if (n_rows == 0 || row_bytes == 0) return;
  requested_.push_back(
      {static_cast<const char*>(from), row_bytes, stride_bytes, n_rows, requested_to_.size()});
  for (int r = 0; r < n_rows; r++) requested_to_.push_back(static_cast<char*>(to_host[r]));
}

void CudaDevice::finish_unless_deferred() {
  if (!defers_downloads_) download_requested();
}

void CudaDevice::defer_downloads() {
  cancel_downloads();
  defers_downloads_ = true;
}

void CudaDevice::finish_downloads() {
  defers_downloads_ = false;
  download_requested();
}

void CudaDevice::cancel_downloads() noexcept {
  defers_downloads_ = false;
  requested_.clear();
  requested_to_.clear();
}

// Downloads as many rows at a time as the buffer holds.
void CudaDevice::download_requested() {
  if (requested_.empty()) return;
  struct Clear {
    CudaDevice& device;
    ~Clear() {
      device.requested_.clear();
      device.requested_to_.clear();
      device.copied_.clear();
    }
  } const at_the_end{*this};
  expect_usable();
  launch_pending();
  std::int64_t all = 0, largest = 0;
  for (const Requested& one : requested_) {
    all += one.n_rows * one.row_bytes;
    largest = std::max(largest, one.row_bytes);
  }
  grow_download_buffer(std::min(all, std::max(largest, kMostDownloadBuffer)));
  std::int64_t used = 0;
  for (const Requested& one : requested_) {
    for (int first = 0; first < one.n_rows;) {
      const auto n = static_cast<int>(std::min<std::int64_t>(
          (download_buffer_bytes_ - used) / one.row_bytes, one.n_rows - first));
      if (n > 0) {
        used = copy_to_buffer(one, first, n, used);
        first += n;
      } else if (used > 0) {
        take_copied();
        used = 0;
      } else {  // one row is larger than the buffer
        download(requested_to_[one.to + static_cast<std::size_t>(first)],
                 one.from + first * one.stride_bytes, one.row_bytes);
        first++;
      }
    }
  }
  take_copied();
}

/// Copies n rows without the gaps between them.
/// @return  offset after them in the buffer
std::int64_t CudaDevice::copy_to_buffer(const Requested& one, int first, int n, std::int64_t at) {
  const char* from = one.from + first * one.stride_bytes;
  const auto width = static_cast<std::size_t>(one.row_bytes), rows = static_cast<std::size_t>(n);
  at_work_ = true;
  if (n == 1 || one.stride_bytes == one.row_bytes)
    check(
        cudaMemcpyAsync(download_buffer_ + at, from, rows * width, cudaMemcpyDeviceToHost, stream_),
        "cudaMemcpyAsync");
  else
    check(cudaMemcpy2DAsync(download_buffer_ + at, width, from,
                            static_cast<std::size_t>(one.stride_bytes), width, rows,
                            cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpy2DAsync");
  copied_.push_back({&one, first, n, at});
  return at + n * one.row_bytes;
}

void CudaDevice::take_copied() {
  if (copied_.empty()) return;
  wait();
  for (const auto& [of, first, n, at] : copied_)
    for (int r = 0; r < n; r++)
      std::memcpy(requested_to_[of->to + static_cast<std::size_t>(first + r)],
                  download_buffer_ + at + r * of->row_bytes,
                  static_cast<std::size_t>(of->row_bytes));
  copied_.clear();
}

void CudaDevice::copy(void* to, const void* from, std::int64_t bytes) {
  expect_usable();
  if (bytes <= 0) return;
  launch_pending_that_use(from);
  launch_pending_that_use(to);
  at_work_ = true;
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
      "cudaMemcpyAsync");
}

}  // namespace kernels::DECOSCOPE_GPU
