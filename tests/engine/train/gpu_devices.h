// Shared by tests of training on a GPU: available devices, weights on a device, failing calls.
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
#include "tests/support/gpu_here.h"

namespace engine::test {

inline const std::string kEmulated = "cuda:emulated";

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

/// Makes each call of a step on the emulated GPU fail in turn. The step must end with a message of one
/// line, or work without the call and end with the same weights. It must not leak memory.
/// @param step  opens the device, makes a step, closes the device, and returns the weights
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
    // A failure to release something may appear only as a note after closing.
    const std::vector<std::string> notes = kernels::take_notes_of_closed();
    if (gives_back && message.empty()) {
      ASSERT_EQ(notes.size(), 1u);
      message = notes[0];
    }
    if (gives_back) {
      EXPECT_THAT(message, testing::HasSubstr(failed));
    }
    // Without memory for a graph, its kernels are launched one by one. Allocations are retried once.
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

/// Lets the emulated GPU run out of memory at each allocation of a step in turn. The message must name
/// the size, the purpose and the free memory, unless the step works without the allocation.
/// @param step  opens the device, makes a step, closes the device, and returns the weights
/// @return      the purposes of the refused allocations
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
    if (n < failing) break;  // all allocations were tried
    n_allocations = failing + 1;
    if (said.empty()) continue;
    EXPECT_THAT(said, testing::ContainsRegex("^cuda:emulated: [0-9]+ MB were needed for [^,;]+, "
                                             "[0-9]+ MB of [0-9]+ MB are free; "));
    const auto at = said.find("were needed for ") + 16;
    purposes.insert(said.substr(at, said.find(',', at) - at));
  }
  EXPECT_GT(n_allocations, 15);
  return purposes;
}

}  // namespace engine::test
