// fail_calls.cpp before CUDA's own runtime, which answers here whether there is a GPU or not.
#include <cstdlib>
#include <fstream>
#include <string>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

// In a process of its own, for the library counts from the program's start and tells at its end.
[[noreturn]] void three_calls_then_end() {
  int n = 0;
  const bool first = cudaGetDeviceCount(&n) == cudaErrorUnknown;
  const bool second = cudaDriverGetVersion(&n) == cudaErrorUnknown;
  const bool third = cudaRuntimeGetVersion(&n) == cudaErrorUnknown;
  std::exit(first * 1 + second * 2 + third * 4);
}

std::string told(int fails, int expected_code) {
  const std::string log = testing::TempDir() + "fail_calls_" + std::to_string(fails);
  setenv("DECOSCOPE_FAIL_CALL", std::to_string(fails).c_str(), 1);
  setenv("DECOSCOPE_FAIL_LOG", log.c_str(), 1);
  EXPECT_EXIT(three_calls_then_end(), testing::ExitedWithCode(expected_code), "");
  std::string line;
  std::ifstream file(log);
  std::getline(file, line);
  return line;
}

TEST(FailCalls, the_call_that_is_named_fails_and_no_other) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EQ(told(0, 0), "3 -");
  EXPECT_EQ(told(1, 1), "3 cudaGetDeviceCount");
  EXPECT_EQ(told(2, 2), "3 cudaDriverGetVersion");
  EXPECT_EQ(told(3, 4), "3 cudaRuntimeGetVersion");
  EXPECT_EQ(told(4, 0), "3 -");
}

}  // namespace
