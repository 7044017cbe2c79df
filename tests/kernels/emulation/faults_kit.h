// Shared by the tests of the emulation: device memory, a stream, a launch.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/platform.h"

namespace kernels::cuda_emulated {

/// Device memory of one test.
template <class T>
class Memory {
 public:
  explicit Memory(std::size_t n, T fill = {}) : Memory(std::vector<T>(n, fill)) {}
  explicit Memory(const std::vector<T>& values) : n_(values.size()) {
    void* data = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMalloc(&data, n_ * sizeof(T)));
    data_ = static_cast<T*>(data);
    std::copy(values.begin(), values.end(), data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> read() const { return {data_, data_ + n_}; }

 private:
  std::size_t n_;
  T* data_ = nullptr;
};

/// Launches a kernel in a stream.
template <class... P, class... A>
cudaError_t enqueue(const char* name,
                    void (*kernel)(P...),
                    dim3 grid,
                    dim3 block,
                    std::size_t shared_bytes,
                    cudaStream_t stream,
                    A... arguments) {
  std::tuple<P...> kept(static_cast<P>(arguments)...);
  const auto launch = [&](P&... one) {
    void* places[] = {&one..., nullptr};
    return cudaLaunchKernel(handle_of(name, kernel), grid, block, places, shared_bytes, stream);
  };
  return std::apply(launch, kept);
}

class Emulation : public ::testing::Test {
 protected:
  Emulation() {
    forget_faults();
    check_kernels(Watch::Orders);
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, 0));
  }
  ~Emulation() override {
    forget_faults();
    cudaStreamDestroy(stream_);
    check_kernels(Watch::Once);
  }
  template <class... P, class... A>
  cudaError_t run(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
    const cudaError_t error = enqueue("tested", kernel, grid, block, 256, stream_, arguments...);
    return error == cudaSuccess ? cudaStreamSynchronize(stream_) : error;
  }
  cudaStream_t stream_ = nullptr;
};

}  // namespace kernels::cuda_emulated
