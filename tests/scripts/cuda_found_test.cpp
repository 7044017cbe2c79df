// cmake/cuda_found.cmake with a fake nvcc and a fake nvidia-smi: the CUDA versions and architectures that
// it accepts.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scripts/script_fixture.h"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CudaFound : public test::ScriptFixture {
 protected:
  void SetUp() override {
    ScriptFixture::SetUp();
    if (!IsSkipped()) fs::create_directories(out() + "/bin");
  }
  /// Adds a program that prints `says`; PATH finds it before others of its name.
  void put(const std::string& name, const std::string& says) const {
    const std::string file = out() + "/bin/" + name;
    std::ofstream(file) << "#!/bin/sh\ncat <<'END'\n" << says << "\nEND\n";
    fs::permissions(file, fs::perms::owner_all);
  }
  void put_nvcc(const std::string& release) const {
    put("nvcc", "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, " + release);
  }
  /// The exit code and the messages of CMake if the user requests these architectures.
  std::string found(const std::string& archs = {}) const {
    const std::string command =
        "PATH=" + out() + "/bin:$PATH " DECOSCOPE_CMAKE " -DDECOSCOPE_CUDA_ARCHS='" + archs +
        "' -P " DECOSCOPE_SOURCE_DIR "/tests/scripts/cuda_found.cmake > " + out() + "/output 2>&1";
    const int code = WEXITSTATUS(std::system(command.c_str()));
    return "code " + std::to_string(code) + "\n" + read(out() + "/output");
  }
};

TEST_F(CudaFound, kernels_are_built_by_nvcc_of_cuda_12_or_later) {
  put("nvidia-smi", "9.0");
  for (const char* release : {"release 12.0, V12.0.140", "release 13.0, V13.0.88"}) {
    put_nvcc(release);
    EXPECT_THAT(found(), AllOf(HasSubstr("code 0"), HasSubstr("-- nvcc ON, archs 90\n"),
                               Not(HasSubstr("left out"))));
  }
  put_nvcc("release 11.8, V11.8.89");
  EXPECT_THAT(found(),
              AllOf(HasSubstr("-- nvcc OFF,"), HasSubstr("-- CUDA kernels: left out; " + out()),
                    HasSubstr("/nvcc belongs to CUDA 11.8, and they need 12 or later\n")));
  put_nvcc("no release");
  EXPECT_THAT(found(), AllOf(HasSubstr("-- nvcc OFF,"), HasSubstr("nvcc is unknown\n")));
}

TEST_F(CudaFound, gpus_below_capability_8_are_left_out_with_a_message) {
  put_nvcc("release 13.0, V13.0.88");
  const std::string none = "-- CUDA kernels: none for the GPU of compute capability ",
                    needed = "; they need 8.0 at least\n";
  put("nvidia-smi", "7.5");
  EXPECT_THAT(found(), AllOf(HasSubstr("archs 90\n"), HasSubstr(none + "7.5" + needed)));
  put("nvidia-smi", "12.0\n7.5\n8.6\n6.1\n9.0\n8.6");
  EXPECT_THAT(found(), AllOf(HasSubstr("archs 86;90;120\n"), HasSubstr(none + "7.5" + needed),
                             HasSubstr(none + "6.1" + needed)));
  put("nvidia-smi", "8.0");
  EXPECT_THAT(found(), AllOf(HasSubstr("archs 80\n"), Not(HasSubstr(none))));
  put("nvidia-smi", "No devices were found");
  EXPECT_THAT(found(), AllOf(HasSubstr("archs 90\n"), Not(HasSubstr(none))));
}

TEST_F(CudaFound, requested_archs_are_used_or_refused) {
  put_nvcc("release 13.0, V13.0.88");
  put("nvidia-smi", "8.6");
  EXPECT_THAT(found("80;90;120"), HasSubstr("archs 80;90;120\n"));
  for (const std::string wrong : {"75", "90;75", "sm_90", "90a"})
    EXPECT_THAT(found(wrong), AllOf(HasSubstr("code 1"), HasSubstr("DECOSCOPE_CUDA_ARCHS: found"),
                                    HasSubstr("expected 80 or more")))
        << wrong;
}

}  // namespace
