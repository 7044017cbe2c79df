// Shared by the tests of training kernels: arrays of either type on a device, and tolerances.
#pragma once

#include <string>
#include <vector>

#include "kernels/train_ops.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {

struct TrainCase {
  std::string device;
  DType type;
};
inline std::vector<TrainCase> train_cases() {
  std::vector<TrainCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType type : {DType::F32, DType::BF16}) all.push_back({device, type});
  return all;
}
inline std::string name_of_train_case(const ::testing::TestParamInfo<TrainCase>& info) {
  return as_test_name(info.param.device + "_" + name_of(info.param.type));
}

/// Numbers of a type on a device, with protected memory after them.
class TypedArray {
 public:
  TypedArray(Device& device, DType type, const std::vector<float>& values)
      : type_(type), n_(values.size()), memory_(device, n_ * std::size_t(bytes_of(type))) {
    if (type == DType::F32) {
      memory_.write(values.data());
      return;
    }
    std::vector<std::uint16_t> narrow(n_);
    for (std::size_t i = 0; i < n_; i++) narrow[i] = bf16_from_f32(values[i]);
    memory_.write(narrow.data());
  }
  void* data() const { return memory_.data(); }
  std::vector<float> read() const {
    std::vector<float> values(n_);
    if (type_ == DType::F32) {
      memory_.read(values.data());
      return values;
    }
    std::vector<std::uint16_t> narrow(n_);
    memory_.read(narrow.data());
    for (std::size_t i = 0; i < n_; i++) values[i] = f32_from_bf16(narrow[i]);
    return values;
  }

 private:
  DType type_;
  std::size_t n_;
  DeviceMemory memory_;
};

/// A list on a device.
template <class T>
class DeviceList {
 public:
  DeviceList(Device& device, const std::vector<T>& values)
      : memory_(device, std::max<std::size_t>(values.size(), 1) * sizeof(T)) {
    if (!values.empty())
      device.ops().upload(device, memory_.data(), values.data(),
                          std::int64_t(values.size() * sizeof(T)));
  }
  const T* data() const { return static_cast<const T*>(memory_.data()); }

 private:
  DeviceMemory memory_;
};

/// Values rounded to the type.
inline std::vector<float> kept_values(std::size_t n,
                                      std::uint32_t seed,
                                      DType type,
                                      float scale = 1) {
  std::vector<float> values = normal_values(n, seed, scale);
  for (float& x : values) x = stored(x, type);
  return values;
}

/// Half a unit in the last place of the type, for a number of this size.
inline double rounding(double x, DType type) {
  return type == DType::F32 ? 0 : std::fabs(x) * 0x1p-8;
}

}  // namespace kernels::test
