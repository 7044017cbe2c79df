// Shared by the kernel tests: every CPU table, seeded values, guarded buffers, packed weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device.h"
#include "kernels/dtype.h"
#include "tests/kernels/fenced.h"

namespace kernels::test {

inline const std::vector<DType> kAllDTypes = {DType::F32, DType::F16, DType::BF16};

inline std::vector<float> normal_values(std::size_t n, std::uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// x rounded to a storage type.
inline float stored(float x, DType dtype) {
  if (dtype == DType::F16) return f32_from_f16(f16_from_f32(x));
  if (dtype == DType::BF16) return f32_from_bf16(bf16_from_f32(x));
  return x;
}

/// Normalised mean squared error (NMSE): squared errors over the squares of the expected values.
class SquaredError {
 public:
  void add(double found, double exact) {
    errors_ += (found - exact) * (found - exact);
    squares_ += exact * exact;
  }
  double normalized() const { return errors_ / squares_; }

 private:
  double errors_ = 0, squares_ = 0;
};
/// Bound on the NMSE of products and attention whose inputs are rounded identically: a relative error of
/// 3e-5. The longest sums, some 400 terms in f32, have errors of at most 400 2^-23 = 5e-5 of their
/// terms' magnitudes, and a twentieth of that with random roundings.
constexpr double kMostSquaredError = 1e-9;

inline std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

/// n floats with guard values before them, checked by `intact`, and a protected page after them.
class Guarded {
 public:
  explicit Guarded(std::size_t n, float fill = 0) : memory_((kGuard + n) * sizeof(float)) {
    std::fill_n(marks(), kGuard, kMark);
    std::fill_n(data(), n, fill);
  }
  explicit Guarded(const std::vector<float>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return marks() + kGuard; }
  float& operator[](std::size_t i) { return data()[i]; }
  bool intact() const {
    return std::all_of(marks(), marks() + kGuard, [](float x) { return x == kMark; });
  }

 private:
  static constexpr std::size_t kGuard = 40;
  static constexpr float kMark = -12345.5f;
  float* marks() const { return reinterpret_cast<float*>(memory_.data()); }
  Fenced memory_;
};

/// Weights packed for a device from row-major f32, with a protected page after them.
struct Packed {
  Fenced buffer;
  PackedMatrix matrix;
};
inline Packed pack(Device& device, const std::vector<float>& w, int n, int k, DType dtype) {
  Packed packed;
  packed.buffer = Fenced(device.ops().packed_bytes(dtype, n, k), 64);
  device.ops().pack(device, w.data(), DType::F32, n, k, dtype, packed.buffer.data());
  packed.matrix = {packed.buffer.data(), n, k, dtype};
  return packed;
}

/// Memory of a device; on the CPU with a protected page after it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes, std::size_t align = 4)
      : device_(&device), bytes_(bytes) {
    if (device.name() == "cpu")
      fenced_ = Fenced(bytes, align);
    else
      own_ = DeviceBuffer(device, std::int64_t(bytes), "a test");
  }
  void* data() const { return own_.data() ? own_.data() : fenced_.data(); }
  void write(const void* from) {
    device_->ops().upload(*device_, data(), from, std::int64_t(bytes_));
  }
  void read(void* to) const { device_->ops().download(*device_, to, data(), std::int64_t(bytes_)); }

 private:
  Device* device_ = nullptr;
  std::size_t bytes_ = 0;
  Fenced fenced_;
  DeviceBuffer own_;
};

/// Floats on a device, with guard values before them that `read` checks.
class DeviceFloats {
 public:
  DeviceFloats(Device& device, const std::vector<float>& values)
      : n_(values.size()), memory_(device, (kMarks + n_) * sizeof(float)) {
    std::vector<float> marked(kMarks, kMark);
    marked.insert(marked.end(), values.begin(), values.end());
    memory_.write(marked.data());
  }
  float* data() const { return static_cast<float*>(memory_.data()) + kMarks; }
  std::vector<float> read() const {
    std::vector<float> marked(kMarks + n_);
    memory_.read(marked.data());
    const auto begin = marked.begin() + kMarks;
    EXPECT_TRUE(std::all_of(marked.begin(), begin, [](float x) { return x == kMark; }))
        << "a value before the buffer was overwritten";
    return {begin, marked.end()};
  }

 private:
  static constexpr int kMarks = 40;
  static constexpr float kMark = -12345.5f;
  std::size_t n_;
  DeviceMemory memory_;
};

/// Runs `body` for each instruction set with one, two and three threads, under SCOPED_TRACE.
template <class Body>
void for_each_device(const Body& body, std::vector<int> threads = {1, 2, 3}) {
  for (const Ops* ops : all_cpu_ops()) {
    for (const int n_threads : threads) {
      SCOPED_TRACE(std::string(ops->name) + ", threads " + std::to_string(n_threads));
      const std::unique_ptr<Device> device = open_cpu(n_threads, *ops);
      body(*device);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace kernels::test
