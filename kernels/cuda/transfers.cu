// What goes between the host and the device: pinned halves upwards, and back what a step asks for, in
// one landing.
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_words.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr std::int64_t kMostLanding = 64 << 20;  // pinned memory is the whole system's to miss

}  // namespace

// A piece of the current half; where that is used up, the other, once its copies are made.
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
  usable();
  if (bytes <= 0) return;
  launch_held_that_use(to);
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
  usable();
  if (bytes <= 0) return wait();
  launch_held();
  // Into memory of this device first: a copy whose wait fails may still be made, when the caller's
  // memory is gone.
  for (std::int64_t at = 0; at < bytes; at += kHalfBytes) {
    const auto n = static_cast<std::size_t>(std::min(kHalfBytes, bytes - at));
    at_work_ = true;
    check(cudaMemcpyAsync(landing_, static_cast<const char*>(from) + at, n, cudaMemcpyDeviceToHost,
                          stream_),
          "cudaMemcpyAsync");
    wait();
    std::memcpy(static_cast<char*>(to_host) + at, landing_, n);
  }
}

/// Null where there is no room, and then `refusal` says so.
char* CudaDevice::try_pinned(std::int64_t bytes, const char* what, std::string& refusal) {
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, static_cast<std::size_t>(bytes));
  if (error != cudaErrorMemoryAllocation) {
    check(error, "cudaMallocHost");
    return static_cast<char*>(data);
  }
  static_cast<void>(cudaGetLastError());
  refusal = "cudaMallocHost: " + told(error) + ": " + megabytes(bytes) +
            " of pinned memory were asked for, " + what + ", " + host_memory_told();
  return nullptr;
}

char* CudaDevice::pinned(std::int64_t bytes, const char* what) {
  std::string refusal;
  if (char* data = try_pinned(bytes, what, refusal)) return data;
  throw Error(ErrorCode::Resources, name_ + ": " + refusal + kKeptWords +
                                        "; try less beside it on this machine, or --device cpu");
}

// Where downloads arrive, so large if pinned memory can be had for it; nothing is on its way there.
void CudaDevice::grow_landing(std::int64_t bytes) {
  if (bytes <= landing_bytes_ || landing_is_refused_) return;
  const std::int64_t wanted = std::max(bytes, std::min(2 * landing_bytes_, kMostLanding));
  std::string refusal;
  char* larger = try_pinned(wanted, kForCopiesBack, refusal);
  if (!larger) {
    landing_is_refused_ = true;
    note(refusal + "; rows are read in pieces of " + megabytes(landing_bytes_) +
         ": the same tokens, later");
    return;
  }
  given_back(cudaFreeHost(landing_), "cudaFreeHost");
  landing_ = larger;
  landing_bytes_ = wanted;
}

void CudaDevice::await(void* to_host, const void* from, std::int64_t bytes) {
  await_rows(&to_host, from, bytes, bytes, 1);
}

void CudaDevice::await_rows(void* const* to_host,
                            const void* from,
                            std::int64_t row_bytes,
                            std::int64_t stride_bytes,
                            int n_rows) {
  usable();
  if (n_rows == 0 || row_bytes == 0) return;
  awaited_.push_back(
      {static_cast<const char*>(from), row_bytes, stride_bytes, n_rows, awaited_to_.size()});
  for (int r = 0; r < n_rows; r++) awaited_to_.push_back(static_cast<char*>(to_host[r]));
}

void CudaDevice::answer() {
  if (!holds_answers_) bring_awaited();
}

void CudaDevice::hold_answers() {
  drop_answers();
  holds_answers_ = true;
}

void CudaDevice::deliver_answers() {
  holds_answers_ = false;
  bring_awaited();
}

void CudaDevice::drop_answers() noexcept {
  holds_answers_ = false;
  awaited_.clear();
  awaited_to_.clear();
}

// As many rows at a time as find room where downloads arrive.
void CudaDevice::bring_awaited() {
  if (awaited_.empty()) return;
  struct Forgotten {
    CudaDevice& device;
    ~Forgotten() {
      device.awaited_.clear();
      device.awaited_to_.clear();
      device.landed_.clear();
    }
  } const whatever_happens{*this};
  usable();
  launch_held();
  std::int64_t all = 0, largest = 0;
  for (const Awaited& one : awaited_) {
    all += one.n_rows * one.row_bytes;
    largest = std::max(largest, one.row_bytes);
  }
  grow_landing(std::min(all, std::max(largest, kMostLanding)));
  std::int64_t used = 0;
  for (const Awaited& one : awaited_) {
    for (int first = 0; first < one.n_rows;) {
      const auto n = static_cast<int>(
          std::min<std::int64_t>((landing_bytes_ - used) / one.row_bytes, one.n_rows - first));
      if (n > 0) {
        used = land(one, first, n, used);
        first += n;
      } else if (used > 0) {
        take_landed();
        used = 0;
      } else {  // a row is in pieces, too
        download(awaited_to_[one.to + static_cast<std::size_t>(first)],
                 one.from + first * one.stride_bytes, one.row_bytes);
        first++;
      }
    }
  }
  take_landed();
}

/// Packed on the way, so that what lies between the rows does not cross the bus.
/// @return  where the next may land
std::int64_t CudaDevice::land(const Awaited& one, int first, int n, std::int64_t at) {
  const char* from = one.from + first * one.stride_bytes;
  const auto width = static_cast<std::size_t>(one.row_bytes), rows = static_cast<std::size_t>(n);
  at_work_ = true;
  if (n == 1 || one.stride_bytes == one.row_bytes)
    check(cudaMemcpyAsync(landing_ + at, from, rows * width, cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
  else
    check(cudaMemcpy2DAsync(landing_ + at, width, from, static_cast<std::size_t>(one.stride_bytes),
                            width, rows, cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpy2DAsync");
  landed_.push_back({&one, first, n, at});
  return at + n * one.row_bytes;
}

void CudaDevice::take_landed() {
  if (landed_.empty()) return;
  wait();
  for (const auto& [of, first, n, at] : landed_)
    for (int r = 0; r < n; r++)
      std::memcpy(awaited_to_[of->to + static_cast<std::size_t>(first + r)],
                  landing_ + at + r * of->row_bytes, static_cast<std::size_t>(of->row_bytes));
  landed_.clear();
}

void CudaDevice::copy(void* to, const void* from, std::int64_t bytes) {
  usable();
  if (bytes <= 0) return;
  launch_held_that_use(from);
  launch_held_that_use(to);
  at_work_ = true;
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
      "cudaMemcpyAsync");
}

}  // namespace kernels::DECOSCOPE_GPU
