// fail_calls.cpp wrapped around CUDA's runtime, which returns errors even without a GPU.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

namespace {

// Runs in a separate process, because the library counts from the program's start and writes its
// log at the end.
[[noreturn]] void three_calls_then_end() {
  int n = 0;
  const bool first = cudaGetDeviceCount(&n) == cudaErrorUnknown;
  const bool second = cudaDriverGetVersion(&n) == cudaErrorUnknown;
  const bool third = cudaRuntimeGetVersion(&n) == cudaErrorUnknown;
  std::exit(first * 1 + second * 2 + third * 4);
}

std::string output(int fails, int expected_code) {
  const std::string log = testing::TempDir() + "fail_calls_" + std::to_string(fails);
  setenv("DECOSCOPE_FAIL_CALL", std::to_string(fails).c_str(), 1);
  setenv("DECOSCOPE_FAIL_LOG", log.c_str(), 1);
  EXPECT_EXIT(three_calls_then_end(), testing::ExitedWithCode(expected_code), "");
  std::string line;
  std::ifstream file(log);
  std::getline(file, line);
  return line;
}

[[noreturn]] void out_of_memory_then_end() {
  int n = 0;
  void* data = nullptr;
  const bool others = cudaGetDeviceCount(&n) != cudaErrorMemoryAllocation;
  const bool first = cudaMalloc(&data, 4) == cudaErrorMemoryAllocation;
  std::exit(others * 1 + first * 2 + (cudaMalloc(&data, 4) == cudaErrorMemoryAllocation) * 4);
}

/// The names in nm's output that start with "cuda".
std::set<std::string> cuda_names(const std::string& nm) {
  std::set<std::string> names;
  std::FILE* output = popen(("nm " + nm + " 2>/dev/null").c_str(), "r");
  char line[4096];
  while (output && std::fgets(line, sizeof line, output)) {
    std::string name(line);
    name = name.substr(0, name.find_last_not_of("\n") + 1);
    name = name.substr(name.find_last_of(' ') + 1);
    if (name.starts_with("cuda") && !name.ends_with(":")) names.insert(name);
  }
  if (output) pclose(output);
  return names;
}

TEST(FailCalls, every_failing_call_of_the_program_is_intercepted) {
  const auto used = cuda_names("--undefined-only " DECOSCOPE_KERNELS);
  const auto stood_before = cuda_names("-D --defined-only " DECOSCOPE_FAIL_CALLS);
  EXPECT_THAT(used, testing::IsSupersetOf({"cudaMalloc", "cudaLaunchKernel"}));
  std::set<std::string> not_so;
  std::ranges::set_difference(used, stood_before, std::inserter(not_so, not_so.end()));
  EXPECT_THAT(not_so,
              testing::ElementsAre("cudaGetErrorName", "cudaGetErrorString", "cudaGetLastError"));
}

TEST(FailCalls, error_code_and_permanence_can_be_chosen) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("DECOSCOPE_FAIL_CALL", "2", 1);
  setenv("DECOSCOPE_FAIL_ERROR", "2", 1);
  EXPECT_EXIT(out_of_memory_then_end(), testing::ExitedWithCode(1 + 2), "");
  setenv("DECOSCOPE_FAIL_FOR_GOOD", "1", 1);
  EXPECT_EXIT(out_of_memory_then_end(), testing::ExitedWithCode(1 + 2 + 4), "");
  unsetenv("DECOSCOPE_FAIL_ERROR");
  unsetenv("DECOSCOPE_FAIL_FOR_GOOD");
}

TEST(FailCalls, only_the_named_call_fails) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EQ(output(0, 0), "3 -");
  EXPECT_EQ(output(1, 1), "3 cudaGetDeviceCount");
  EXPECT_EQ(output(2, 2), "3 cudaDriverGetVersion");
  EXPECT_EQ(output(3, 4), "3 cudaRuntimeGetVersion");
  EXPECT_EQ(output(4, 0), "3 -");
}

}  // namespace
