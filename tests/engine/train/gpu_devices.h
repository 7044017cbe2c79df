// What every test of training on a GPU needs: the devices that are here, weights there, calls that
// fail one after the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/train/core/train_device.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"

namespace engine::test {

inline const std::string kEmulated = "cuda:emulated";

inline std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (const auto& info : kernels::list_cuda())
    if (info.available) names.push_back(info.name);
  return names;
}
inline std::string name_of_device(const testing::TestParamInfo<std::string>& info) {
  return info.param == kEmulated ? "cuda_emulated" : "cuda_" + info.param.substr(5);
}

/// |found - expected| / |expected|, of the same number of values.
inline double relative_distance(std::span<const float> found, std::span<const float> expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); i++) {
    difference += std::pow(static_cast<double>(found[i]) - expected[i], 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

/// Weights on a device.
struct GpuCopy {
  GpuCopy(kernels::Device& device, const std::vector<float>& parameters, kernels::DType type)
      : masters(device, 4 * std::ssize(parameters), "a test"),
        rounded(device, kernels::bytes_of(type) * std::ssize(parameters), "a test") {
    device.ops().upload(device, masters.data(), parameters.data(), masters.bytes());
    kernels::train_kernels(device).convert(device, type, masters.f32(), rounded.data(),
                                           std::ssize(parameters));
  }
  kernels::TrainWeights weights() const { return {masters.f32(), rounded.data()}; }
  kernels::DeviceBuffer masters, rounded;
};

/// Makes each call of a step on the emulated GPU fail in turn: it ends with one line, or did without
/// the call and ends with the same weights, and leaves no memory behind.
/// @param step  from the device's opening to its closing; gives the weights
inline void expect_every_call_to_end_in_one_line(const std::function<std::vector<float>()>& step) {
  namespace emulation = kernels::emulation;
  emulation::forget_faults();
  const std::int64_t in_use = emulation::memory_in_use();
  emulation::fail_call(0);
  const std::vector<float> expected = step();
  const std::int64_t n_calls = emulation::fail_call(0);
  ASSERT_GT(n_calls, 100);
  for (std::int64_t n = 1; n <= n_calls; n++) {
    emulation::fail_call(n);
    std::string message;
    try {
      EXPECT_EQ(step(), expected);
    } catch (const Error& e) {
      message = e.what();
    }
    const std::string failed = emulation::failed_call();
    emulation::fail_call(0);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed);
    const bool gives_back = failed == "cudaFree" || failed == "cudaFreeHost" ||
                            failed == "cudaStreamDestroy" || failed == "cudaEventDestroy" ||
                            failed == "cudaGraphDestroy" || failed == "cudaGraphExecDestroy";
    // What gives something back may be seen at the end alone, by a note.
    const std::vector<std::string> notes = kernels::take_notes_of_closed();
    if (gives_back && message.empty()) {
      ASSERT_EQ(notes.size(), 1u);
      message = notes[0];
    }
    if (gives_back) {
      EXPECT_THAT(message, testing::HasSubstr(failed));
    }
    // Without memory for a graph its kernels are launched one by one. Memory is asked for once more.
    const bool done_without = failed == "cudaGraphInstantiateWithFlags" || failed == "cudaMalloc";
    EXPECT_EQ(message.empty(), done_without) << message;
    if (!done_without) {
      EXPECT_THAT(message, testing::HasSubstr("cuda:emulated: "));
      EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
    }
    EXPECT_EQ(emulation::memory_in_use(), in_use);
  }
  EXPECT_EQ(step(), expected) << "the next attempt succeeds";
}

/// Lets memory on the emulated GPU end with each allocation of a step in turn: what is said names how
/// much was asked for, what for and what is free, unless the step does with what there is.
/// @param step  from the device's opening to its closing; gives the weights
/// @return      what memory was asked for
inline std::set<std::string> expect_every_allocation_to_be_named(
    const std::function<std::vector<float>()>& step) {
  namespace emulation = kernels::emulation;
  emulation::forget_faults();
  const std::int64_t in_use = emulation::memory_in_use();
  const std::vector<float> expected = step();
  std::set<std::string> purposes;
  std::int64_t n_allocations = 0;
  for (std::int64_t failing = 1; failing == 1 || failing <= n_allocations; failing++) {
    std::int64_t n = 0;
    emulation::before_calls([&](const std::string& name) {
      if (name == "cudaMalloc" && ++n == failing)
        emulation::limit_memory(emulation::memory_in_use());
    });
    std::string said;
    try {
      EXPECT_EQ(step(), expected);
    } catch (const Error& error) {
      said = error.what();
      EXPECT_EQ(error.code(), ErrorCode::Resources);
    }
    emulation::before_calls({});
    emulation::limit_memory(std::int64_t{4} << 30);
    SCOPED_TRACE("allocation " + std::to_string(failing) + ": " + said);
    EXPECT_EQ(emulation::memory_in_use(), in_use);
    if (n < failing) break;  // there are no more
    n_allocations = failing + 1;
    if (said.empty()) continue;
    EXPECT_THAT(said, testing::ContainsRegex("^cuda:emulated: [0-9]+ MB were asked for, [^,;]+, "
                                             "[0-9]+ MB of [0-9]+ MB are free; "));
    const auto at = said.find("were asked for, ") + 16;
    purposes.insert(said.substr(at, said.find(',', at) - at));
  }
  EXPECT_GT(n_allocations, 15);
  return purposes;
}

}  // namespace engine::test
