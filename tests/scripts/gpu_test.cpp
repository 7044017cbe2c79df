// scripts/check_archs.sh and scripts/gpu_check.sh on a machine without a GPU: GPU code in the
// program, packs, parts and refusals.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scripts/script_fixture.h"
#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class GpuScripts : public test::ScriptFixture {
 protected:
  /// Runs a command. Its output and errors are printed().
  /// @return  its exit code
  int ran(const std::string& command) const {
    return WEXITSTATUS(std::system((command + " > " + out() + ".printed 2>&1").c_str()));
  }
  std::string printed() const { return read(out() + ".printed"); }
};

// Uses a cuobjdump that lists given archs, and a program that prints its name.
TEST_F(GpuScripts, check_archs_names_missing_code) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/check_archs.sh ";
  const std::string program = out() + ".program", cuobjdump = out() + ".cuobjdump";
  write_program(program, "#!/bin/sh\necho decoscope 0.1.0\n");
  const auto code = [&](const std::string& archs, const std::string& of, const std::string& more) {
    std::string elf;
    std::istringstream each(archs);
    for (std::string arch; each >> arch;)
      elf += "echo 'ELF file 1: decoscope.1.sm_" + arch + ".cubin'\n";
    write_program(cuobjdump, "#!/bin/sh\nif [ $1 = --list-elf ]; then\n:\n" + elf +
                                 "else\necho 'PTX file 1: decoscope.1.sm_120.ptx'\nfi\n");
    return ran("CUOBJDUMP=" + cuobjdump + " " + script + of + more);
  };
  const std::string all = "80 86 89 90 100 120";
  EXPECT_EQ(code(all, program, ""), 0) << printed();
  EXPECT_THAT(printed(),
              HasSubstr("decoscope 0.1.0\nsm_80: 1\nsm_86: 1\nsm_89: 1\nsm_90: 1\nsm_100: 1\n"));
  EXPECT_EQ(code("80 86 90 100", program, ""), 1);
  EXPECT_THAT(printed(), HasSubstr(program + ": no code for sm_89 sm_120"));
  EXPECT_EQ(code("80", program, " 80"), 0) << printed();
  EXPECT_EQ(code("100a", program, " 100 10"), 1) << "sm_10 is another arch than sm_100a";
  EXPECT_THAT(printed(), HasSubstr(": no code for sm_10\n"));
  EXPECT_EQ(code(all, DECOSCOPE_SOURCE_DIR "/README.md", ""), 2);
  EXPECT_THAT(printed(), HasSubstr("README.md: --version does not print decoscope"));
  EXPECT_EQ(code(all, "/bin/true", ""), 2);
  EXPECT_EQ(ran("CUOBJDUMP=/none " + script + program), 2);
  EXPECT_THAT(printed(), HasSubstr("/none: not found; install PyPI's nvidia-cuda-cuobjdump"));
}

#if defined(DECOSCOPE_BUILT_ARCHS)
TEST_F(GpuScripts, this_build_contains_code_for_its_archs) {
  NEEDS(std::system("command -v \"${CUOBJDUMP:-cuobjdump}\" > /dev/null") == 0,
        "no cuobjdump; PyPI's nvidia-cuda-cuobjdump has it");
  EXPECT_EQ(ran(DECOSCOPE_SOURCE_DIR "/scripts/check_archs.sh " DECOSCOPE_PROGRAM
                                     " " DECOSCOPE_BUILT_ARCHS),
            0)
      << printed();
  EXPECT_THAT(printed(), HasSubstr("PTX: 1"));
}
#endif

/// A checkout with the scripts and small assets. It uses this test's program in place of the built programs.
class GpuPack : public GpuScripts {
 protected:
  void SetUp() override {
    GpuScripts::SetUp();
    if (IsSkipped()) return;
    for (const std::string to : {"checkout", "built/bin"})
      ASSERT_TRUE(fs::create_directories(out() + "/" + to));
    fs::copy(DECOSCOPE_SOURCE_DIR "/scripts", out() + "/checkout/scripts");
    for (const char* name : kAssets) {
      fs::create_directories(out() + "/checkout/assets/" + name);
      write(out() + "/checkout/assets/" + name + "/one", name);
    }
    for (const char* name : {"decoscope", "kernels_emulated_test", "engine_emulated_test",
                             "train_emulated_test", "gpu_probe"})
      fs::copy("/proc/self/exe", out() + "/built/bin/" + name);
  }
  static constexpr const char* kAssets[] = {"data",    "models", "prompts",
                                            "recipes", "shapes", "trees"};
  std::string pack() const {
    return out() + "/checkout/scripts/gpu_check.sh pack --built " + out() + "/built ";
  }
};

TEST_F(GpuPack, holds_stripped_programs_and_reports_its_size) {
  const std::string to = out() + "/checkout/pack", work = out() + "/work";
  const auto size = [](const std::string& file) { return fs::file_size(file); };
  ASSERT_EQ(ran(pack() + to), 0) << printed();
  EXPECT_THAT(printed(), AllOf(HasSubstr(to + ": "), HasSubstr(" MiB packed, ")));
  const auto whole = size("/proc/self/exe"), packed = size(to + "/gpu_check.tar.xz");
  EXPECT_LT(packed, 3 * whole) << "five programs that share their code, and libraries";
  const double reported = std::stod(printed().substr(to.size() + 2));
  EXPECT_NEAR(reported, double(packed + size(to + "/gpu_check.sh")) / 1048576, 0.06);

  ASSERT_EQ(ran(to + "/gpu_check.sh unpack " + work), 0) << printed();
  EXPECT_LT(size(work + "/bin/decoscope"), whole);
  EXPECT_EQ(read(work + "/assets/models/one"), "models") << "linked to the checkout's";
  ASSERT_EQ(ran(work + "/gpu_check.sh decoscope --gtest_list_tests"), 0) << printed();
  EXPECT_THAT(printed(), HasSubstr("holds_stripped_programs_and_reports_its_size"));
  // A pack that was not unpacked unpacks itself at its first use.
  ASSERT_EQ(ran(to + "/gpu_check.sh list"), 0);
  EXPECT_TRUE(fs::exists(to + "/bin/decoscope"));
  fs::remove_all(out() + "/checkout/assets");
  EXPECT_EQ(ran(to + "/gpu_check.sh unpack " + out() + "/other"), 2);
  EXPECT_THAT(printed(), HasSubstr("checkout/assets: not found; the pack needs the checkout"));
}

TEST_F(GpuPack, outside_the_checkout_contains_the_assets) {
  const std::string to = out() + "/pack";
  ASSERT_EQ(ran(pack() + to), 0) << printed();
  fs::remove_all(out() + "/checkout");
  ASSERT_EQ(ran(to + "/gpu_check.sh parts"), 0) << printed();
  for (const char* name : kAssets) EXPECT_EQ(read(to + "/assets/" + name + "/one"), name);
}

TEST_F(GpuPack, refuses_a_small_limit_and_a_wrong_folder) {
  const std::string to = out() + "/checkout/pack";
  EXPECT_EQ(ran(pack() + to + " --limit 0.1"), 1);
  EXPECT_THAT(printed(), HasSubstr(" MiB packed, more than --limit 0.1\n"));
  EXPECT_EQ(ran(pack() + to + " --limit 64"), 0) << printed();
  EXPECT_EQ(ran(pack() + to + " --limit"), 2);
  EXPECT_THAT(printed(),
              HasSubstr("found \"--limit\", expected FOLDER, --limit MIB or --built BUILD"));
  EXPECT_EQ(ran(pack() + out() + "/checkout"), 2);
  EXPECT_THAT(printed(), HasSubstr("checkout: found other files, expected an empty folder"));
  fs::remove(out() + "/built/bin/gpu_probe");
  EXPECT_EQ(ran(pack() + to), 2);
  EXPECT_THAT(printed(), HasSubstr("built/bin/gpu_probe: not found; pack without --built"));
}

TEST_F(GpuScripts, each_part_ends_with_status_5_without_a_gpu) {
  fs::create_directories(out());
  for (const char* name : {"gpu_check.sh", "gpu_parts.py", "gpu_results.py"})
    fs::copy(DECOSCOPE_SOURCE_DIR "/scripts/" + std::string(name), out());
  const std::string script = out() + "/gpu_check.sh ";
  ASSERT_EQ(ran(script + "parts"), 0);
  std::istringstream each(printed());
  std::set<std::string> parts;
  for (std::string name; each >> name;) parts.insert(name.substr(0, name.find(':')));
  EXPECT_GT(parts.size(), 15u);
  parts.erase("peers");  // reads files of the part bench
  for (const std::string& name : parts) {
    const int code = ran("CUDA_VISIBLE_DEVICES= DECOSCOPE_PROGRAM=" DECOSCOPE_PROGRAM " " + script +
                         "part " + name);
    EXPECT_EQ(code, 5) << name;
    EXPECT_EQ(std::ranges::count(printed(), '\n'), 1) << printed();
    EXPECT_TRUE(printed().starts_with("gpu_check: " + name + ": no GPU: ")) << printed();
  }
}

TEST_F(GpuScripts, gpu_check_refuses_unknown_parts_and_shares) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/gpu_check.sh";
  EXPECT_EQ(ran(script + " part all"), 2);
  EXPECT_THAT(printed(), HasSubstr("gpu_check: all: expected one of kernels"));
  for (const std::string share :
       {"faults:0/4", "faults:5/4", "racecheck:x/4", "exact:25/24", "kernels:5/4", "bench:1/2"}) {
    EXPECT_EQ(ran(script + " part " + share), 2) << share;
    EXPECT_THAT(printed(), HasSubstr("gpu_check: " + share + ": "));
  }
  EXPECT_EQ(ran(script), 2);
  EXPECT_THAT(printed(), HasSubstr("scripts/gpu_check.sh pack FOLDER"));
}

}  // namespace
