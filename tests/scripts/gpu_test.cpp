// The scripts that check and measure on a GPU, as far as they go without one.
#include <fnmatch.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/measuring_scripts.h"
#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::cell;
using testing::AllOf;
using testing::HasSubstr;

class GpuModel : public test::MeasuringScripts {
 protected:
  /// Of a GPU that copies 4,000 GB/s, and 12.4 GB of weights with 0.4 GB of cache: 3.2 ms.
  void measured(double one, double thirty_two, double hundred_and_twenty) const {
    std::ofstream(out() + ".probe") << R"({"copy_gbps": 4000, "launch_us": 2, "node_us": 1})";
    json step = {{"weight_bytes", 12'400'000'000},
                 {"context", 500},
                 {"cache_bytes_per_token", 800'000},
                 {"launches_per_step", 1},
                 {"kernels_per_step", 300}};
    step["rows"] = {{{"rows", 1}, {"ms", one}},
                    {{"rows", 32}, {"ms", thirty_two}},
                    {{"rows", 120}, {"ms", hundred_and_twenty}}};
    std::ofstream(out() + ".step") << step;
  }
  int code() const {
    const std::string command = "python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_model.py " + out() +
                                ".probe " + out() + ".step " + out() + ".model > " + out() +
                                ".printed";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  std::string printed() const { return read(out() + ".printed"); }
};

TEST_F(GpuModel, a_gpu_that_reads_as_fast_as_it_copies_meets_every_target) {
  measured(3.4, 3.6, 4.4);
  EXPECT_EQ(code(), 0) << printed();
  EXPECT_THAT(printed(), HasSubstr("bound by copies at 4000 GB/s: 3.200 ms"));
  EXPECT_EQ(cell(printed(), "32", "of one"), "1.06");
  EXPECT_EQ(cell(printed(), "1", "of the bound"), "0.94");
  EXPECT_EQ(cell(printed(), "1", "of the model"), "1.03") << "it takes less than the model says";
  EXPECT_EQ(cell(printed(), "120", "of the model"), "0.80");
  const json model = json::parse(read(out() + ".model"));
  EXPECT_EQ(model["bytes_moved"], 12'800'000'000);
  EXPECT_NEAR(model["model_ms"].get<double>(), 3.2 + 1 * 0.002 + 300 * 0.001, 1e-9);
  EXPECT_NEAR(model["rows"][0]["of_model"].get<double>(), 3.502 / 3.4, 1e-9);
  EXPECT_NEAR(model["rows"][1]["of_model"].get<double>(), 3.502 / 3.6, 1e-9);
  EXPECT_EQ(model["targets"].size(), 3u);
}

TEST_F(GpuModel, each_target_is_missed_by_itself_and_named) {
  struct Case {
    double one, thirty_two, hundred_and_twenty;
    const char* missed;
  };
  for (const Case& c :
       {Case{3.6, 3.7, 4.4, "MISSED: plain decoding"}, Case{3.4, 3.8, 4.4, "MISSED: 32 rows"},
        Case{3.4, 3.6, 4.7, "MISSED: 120 rows"}}) {
    measured(c.one, c.thirty_two, c.hundred_and_twenty);
    EXPECT_EQ(code(), 1) << c.missed;
    EXPECT_THAT(printed(), HasSubstr(c.missed));
    const std::string text = printed();
    EXPECT_EQ(text.find("MISSED"), text.rfind("MISSED")) << text;
  }
}

TEST_F(GpuModel, prompts_read_both_ways_stand_side_by_side_and_one_way_is_missed) {
  const std::string script = "python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_prompts.py ";
  const auto read_in = [&](const std::string& name, int n, const json& prompts, double ms) {
    std::ofstream(out() + name) << json{{"context", n}, {"prompts", prompts}, {"prefill_ms", ms}};
    return " " + out() + name;
  };
  const std::string own = read_in(".own", 2049, nullptr, 102.4);
  const std::string by_cublas = read_in(".cublas", 2049, "cuBLAS 130100", 51.2);
  const std::string longer = read_in(".longer", 2304, "cuBLAS 130100", 60);
  const auto code = [&](const std::string& files) {
    return WEXITSTATUS(std::system(
        (script + "compare" + files + " --out " + out() + ".ms > " + out() + ".told").c_str()));
  };
  EXPECT_EQ(code(own + by_cublas), 0);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("blocks of 256 by cuBLAS 130100"));
  EXPECT_EQ(cell(read(out() + ".told"), "2049", "as steps"), "50.00");
  EXPECT_EQ(cell(read(out() + ".told"), "2049", "times"), "2.00");
  EXPECT_EQ(json::parse(read(out() + ".ms"))["ms_per_1000_tokens"]["2049"]["cublas"], 25.0);
  EXPECT_EQ(code(own + own), 1);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("MISSED: no file is of cuBLAS"));
  EXPECT_EQ(code(own + by_cublas + longer), 1);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("MISSED: 2304 tokens: read one way only"));
  ASSERT_EQ(std::system((script + "texts " + out() + ".texts").c_str()), 0);
  EXPECT_THAT(read(out() + ".texts"), HasSubstr("\"prompt\": \"USER: Anna has 1 red pens"));
}

TEST_F(GpuModel, the_floor_is_absent_with_a_reason_where_transformers_is_not_installed) {
  const std::string hidden = "cd " + out() +
                             "s && echo 'raise ImportError(\"no torch here\")' > torch.py && "
                             "PYTHONPATH=. python3 " DECOSCOPE_SOURCE_DIR
                             "/scripts/eager_floor.py 7B > floor";
  ASSERT_EQ(std::system(("mkdir -p " + out() + "s").c_str()), 0);
  ASSERT_EQ(std::system(hidden.c_str()), 0);
  EXPECT_EQ(json::parse(read(out() + "s/floor"))["absent"], "ImportError: no torch here");
}

TEST_F(GpuModel, peers_stand_beside_a_step_and_the_floor_must_not_be_faster) {
  measured(3.4, 3.6, 4.4);
  const auto code = [&](const json& floor) {
    std::ofstream(out() + ".floor") << floor;
    return WEXITSTATUS(
        std::system(("python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_peers.py " + out() + ".step " +
                     out() + ".floor " + out() + ".peers > " + out() + ".printed")
                        .c_str()));
  };
  const json floor = {{"transformers", "4.57"}, {"context", 512}, {"ms_per_token", 17.0}};
  EXPECT_EQ(code(floor), 0) << printed();
  EXPECT_EQ(cell(printed(), "transformers 4.57, eager", "ms a token"), "17.0");
  EXPECT_EQ(cell(printed(), "transformers 4.57, eager", "times this program's"), "5.0");
  EXPECT_EQ(cell(printed(), "this program", "ms a token"), "3.40");
  const json told = json::parse(read(out() + ".peers"));
  EXPECT_EQ(told["ms_per_token"], 3.4);
  ASSERT_EQ(told["peers"].size(), 3u);
  EXPECT_EQ(told["peers"][0]["measured"], true);
  // What is published is docs/cuda.md's, source by source.
  const std::string document = read(DECOSCOPE_SOURCE_DIR "/docs/cuda.md");
  for (std::size_t i = 1; i < 3; i++) {
    const json& one = told["peers"][i];
    EXPECT_EQ(one["measured"], false);
    EXPECT_THAT(document, HasSubstr("(" + one["source"].get<std::string>() + ")"));
    EXPECT_THAT(document, HasSubstr("| " + one["program"].get<std::string>() + " | "));
  }

  EXPECT_EQ(code({{"absent", "no torch here"}}), 0) << printed();
  EXPECT_EQ(json::parse(read(out() + ".peers"))["peers"][0]["absent"], "no torch here");
  EXPECT_EQ(code({{"transformers", "4.57"}, {"context", 512}, {"ms_per_token", 3.3}}), 1);
  EXPECT_THAT(printed(), HasSubstr("MISSED: plain decoding takes 3.40 ms a token"));
}

const char* const kDocuments[] = {"machine",  "probe",   "step", "decode", "model",
                                  "exact",    "prompts", "long", "speeds", "kernels",
                                  "training", "floor",   "peers"};

TEST_F(GpuModel, what_the_parts_left_is_one_document_and_a_part_that_failed_fails_it) {
  const std::string folder = out() + ".d";
  ASSERT_EQ(std::system(("mkdir " + folder).c_str()), 0);
  const auto part = [&](const std::string& name, const std::string& code) {
    std::ofstream(folder + "/" + name + ".code") << code << " 12\n";
  };
  const auto code = [&] {
    const std::string script = "python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_results.py ";
    return WEXITSTATUS(std::system((script + folder + " > " + out() + ".printed").c_str()));
  };
  const auto told = [&] { return json::parse(read(folder + "/gpu_check.json")); };
  part("faults.2.8", "0");
  part("prompts", "0");
  for (const char* name : kDocuments)
    std::ofstream(folder + "/" + name + ".json") << json{{"of", name}};
  EXPECT_EQ(code(), 0) << printed();
  EXPECT_EQ(told()["parts"]["faults.2.8"], (json{{"passed", true}, {"seconds", 12}}));
  for (const char* name : kDocuments) EXPECT_EQ(told()[name]["of"], name);
  // One that was cut off, and one that its part never began to write.
  std::ofstream(folder + "/long.json") << R"({"summary": [)";
  std::ofstream(folder + "/peers.json") << "";
  part("prompts", "124");
  EXPECT_EQ(code(), 1);
  EXPECT_EQ(told()["parts"]["prompts"]["passed"], false);
  EXPECT_THAT(told()["long"]["absent"].get<std::string>(), HasSubstr("long.json: "));
  EXPECT_FALSE(told().contains("peers"));
  EXPECT_EQ(told()["speeds"]["of"], "speeds");
}

// As on a machine with a GPU, with no transformers there.
TEST_F(GpuModel, gpu_check_runs_the_peers_in_its_folder_and_tells_them_in_its_document) {
  const std::string folder = out() + ".f", scripts = DECOSCOPE_SOURCE_DIR "/scripts/";
  ASSERT_EQ(std::system(("mkdir -p " + folder + "/results").c_str()), 0);
  for (const char* name :
       {"gpu_check.sh", "gpu_parts.py", "gpu_peers.py", "gpu_results.py", "eager_floor.py"})
    ASSERT_EQ(std::system(("cp " + scripts + name + " " + folder).c_str()), 0);
  std::ofstream(folder + "/torch.py") << "raise ImportError('no torch here')\n";
  const auto code = [&] {
    return WEXITSTATUS(
        std::system((folder + "/gpu_check.sh run peers > " + out() + ".printed 2>&1").c_str()));
  };
  EXPECT_EQ(code(), 1);
  EXPECT_THAT(printed(), HasSubstr("step.json: not there; run the part named bench first"));
  measured(3.4, 3.6, 4.4);
  ASSERT_EQ(std::system(("cp " + out() + ".step " + folder + "/results/step.json").c_str()), 0);
  EXPECT_EQ(code(), 1);
  EXPECT_THAT(printed(), HasSubstr("/7B: not there; run the part named shape first"));
  ASSERT_EQ(
      std::system(("mkdir " + folder + "/7B && echo {} > " + folder + "/7B/config.json").c_str()),
      0);
  EXPECT_EQ(code(), 0) << printed();
  const json told = json::parse(read(folder + "/results/gpu_check.json"));
  EXPECT_EQ(told["parts"]["peers"]["passed"], true);
  EXPECT_EQ(told["floor"]["absent"], "ImportError: no torch here");
  EXPECT_EQ(told["peers"]["peers"][0]["absent"], "ImportError: no torch here");
  EXPECT_EQ(told["peers"]["ms_per_token"], 3.4);
}

// As on a machine with a GPU: of 43 calls that a program makes, every seventh is made to fail there.
TEST_F(GpuModel, gpu_check_wants_every_call_that_fails_to_be_named) {
  const std::string folder = out() + ".g", scripts = DECOSCOPE_SOURCE_DIR "/scripts/";
  ASSERT_EQ(std::system(("mkdir -p " + folder + "/lib " + folder + "/bin").c_str()), 0);
  for (const char* name : {"gpu_check.sh", "gpu_training.py", "gpu_results.py", "gpu_parts.py"})
    ASSERT_EQ(std::system(("cp " + scripts + name + " " + folder).c_str()), 0);
  // What starts the program there says what the program would, but of the call that is $UNNAMED.
  const std::string loader = folder + "/lib/ld-linux-any.so.2";
  std::ofstream(loader) << R"sh(#!/usr/bin/env bash
[[ "$*" != *"devices --json" ]] || { echo '[{"name": "cuda:0", "available": true}]' && exit; }
calls=(cudaFree cudaLaunchKernel cublasCreate_v2 cudaGetDeviceCount)
call=- code=0
[[ "$*" != *"--device cpu"* ]] || { echo "${CPU_CALLS:-0} -" > "$DECOSCOPE_FAIL_LOG" && exit; }
[[ "$*" != *"trace info"* ]] || exit ${UNREADABLE:-0}
[ -z "$DECOSCOPE_FAIL_FOR_GOOD" ] || { echo "embed: cudaErrorIllegalAddress" >&2 && exit ${FOR_GOOD:-5}; }
[ "$DECOSCOPE_FAIL_CALL" = 0 ] || call=${calls[$((DECOSCOPE_FAIL_CALL % 4))]}
echo "43 $call" > "$DECOSCOPE_FAIL_LOG"
said=${call%_v2}
[ "$call" != cudaLaunchKernel ] || said="embed (grid 3, block 32)"
[ "$call" != "${UNNAMED:-}" ] || said="a call"
case $call in
  -) ;;
  cudaFree) echo "note: cuda:0: $said: cudaErrorUnknown (unknown error)" >&2 ;;
  *) echo "decoscope: cuda:0: $said: cudaErrorUnknown (unknown error); try --device cpu" >&2 && code=5 ;;
esac
exit $code
)sh";
  ASSERT_EQ(std::system(("chmod +x " + loader).c_str()), 0);
  const auto code = [&](const std::string& unnamed) {
    return WEXITSTATUS(std::system(("UNNAMED=" + unnamed + " DECOSCOPE_CUBLAS=own " + folder +
                                    "/gpu_check.sh run faults:1/7 > " + out() + ".printed 2>&1")
                                       .c_str()));
  };
  const auto told = [&] { return read(folder + "/results/faults.1.7.log"); };
  EXPECT_EQ(code("none"), 0) << told();
  EXPECT_THAT(told(), AllOf(HasSubstr("few 4: 43 calls, of which share 1 of 7"),
                            HasSubstr("\n1 cudaLaunchKernel: 5 decoscope: cuda:0: embed (grid 3"),
                            HasSubstr("\n43 cudaGetDeviceCount: 5 decoscope: cuda:0: cudaGet")));
  for (const std::string call : {"cudaLaunchKernel", "cublasCreate_v2", "cudaGetDeviceCount"}) {
    EXPECT_EQ(code(call), 1) << told();
    EXPECT_THAT(told(), HasSubstr("\n" + call + " is not named\n"));
  }
  EXPECT_EQ(code("cudaFree"), 1) << "its note says of what it is";
  EXPECT_EQ(code("none CPU_CALLS=1"), 1);
  EXPECT_THAT(told(), HasSubstr("the CPU alone: calls of CUDA's: 1 -"));
  EXPECT_EQ(code("none FOR_GOOD=0"), 1) << "an error that stays ends a run";
  EXPECT_EQ(code("none UNREADABLE=3"), 1) << "what was recorded can be read";
}

// A cuobjdump that lists what it is told to, and a program that says what it is.
TEST_F(GpuModel, code_for_every_gpu_is_looked_for_in_the_program_itself) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/check_archs.sh ";
  const auto executable = [&](const std::string& name, const std::string& text) {
    std::ofstream(out() + name) << "#!/bin/sh\n" << text;
    EXPECT_EQ(std::system(("chmod +x " + out() + name).c_str()), 0);
    return out() + name;
  };
  const std::string program = executable(".program", "echo decoscope 0.1.0\n");
  const auto code = [&](const std::string& archs, const std::string& of, const std::string& more) {
    std::string elf;
    std::istringstream each(archs);
    for (std::string arch; each >> arch;)
      elf += "echo 'ELF file 1: decoscope.1.sm_" + arch + ".cubin'\n";
    executable(".cuobjdump", "if [ $1 = --list-elf ]; then\n:\n" + elf +
                                 "else\necho 'PTX file 1: decoscope.1.sm_120.ptx'\nfi\n");
    return WEXITSTATUS(std::system(("CUOBJDUMP=" + out() + ".cuobjdump " + script + of + more +
                                    " > " + out() + ".printed 2> " + out() + ".told")
                                       .c_str()));
  };
  const auto told = [&] { return read(out() + ".told"); };
  const std::string all = "80 86 89 90 100 120";
  EXPECT_EQ(code(all, program, ""), 0) << told();
  EXPECT_THAT(printed(),
              HasSubstr("decoscope 0.1.0\nsm_80: 1\nsm_86: 1\nsm_89: 1\nsm_90: 1\nsm_100: 1\n"));
  EXPECT_EQ(code("80 86 90 100", program, ""), 1);
  EXPECT_THAT(told(), HasSubstr(program + ": sm_89 sm_120 not in it"));
  EXPECT_EQ(code("80", program, " 80"), 0) << told();
  EXPECT_EQ(code("100a", program, " 100 10"), 1) << "sm_10 is another than sm_100a";
  EXPECT_THAT(told(), HasSubstr(": sm_10 not in it"));
  // An object is none, whatever is in it, nor is another program.
  EXPECT_EQ(code(all, DECOSCOPE_SOURCE_DIR "/README.md", ""), 2);
  EXPECT_THAT(told(), HasSubstr("README.md: found no program that says it is decoscope"));
  EXPECT_EQ(code(all, "/bin/true", ""), 2);
  EXPECT_EQ(WEXITSTATUS(std::system(
                ("CUOBJDUMP=/none " + script + program + " 2> " + out() + ".told").c_str())),
            2);
  EXPECT_THAT(told(), HasSubstr("/none: not found; PyPI's nvidia-cuda-cuobjdump has it"));
}

#if defined(DECOSCOPE_BUILT_ARCHS)
TEST_F(GpuModel, the_program_of_this_build_holds_code_for_the_gpus_it_was_built_for) {
  NEEDS(std::system("command -v \"${CUOBJDUMP:-cuobjdump}\" > /dev/null") == 0,
        "no cuobjdump; PyPI's nvidia-cuda-cuobjdump has it");
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/check_archs.sh " DECOSCOPE_PROGRAM
                                                  " " DECOSCOPE_BUILT_ARCHS " > ";
  EXPECT_EQ(std::system((script + out() + ".printed").c_str()), 0);
  EXPECT_THAT(printed(), HasSubstr("PTX: 1"));
}
#endif

// Logs of trainings of 21 lines: the GPU's losses are the CPU's times `first` in the first three and
// times `last` in the others, and in consistency training times `consistency`.
TEST_F(GpuModel, trainings_that_part_early_or_late_are_told_apart_from_equal_ones) {
  const std::string script = "python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_training.py ";
  const auto code = [&](double first, double last, double consistency = 1) {
    for (const std::string name : {"cpu", "gpu", "large", "cllm-cpu", "cllm-gpu"}) {
      EXPECT_EQ(std::system(("mkdir -p " + out() + "/" + name).c_str()), 0);
      std::ofstream log(out() + "/" + name + "/training.jsonl");
      for (int line = 0; line < 21; line++) {
        const double share = name.ends_with("cpu") ? 1
                             : name == "cllm-gpu"  ? consistency
                             : line < 3            ? first
                                                   : last;
        log << json{{"step", std::max(1, 10 * line)},
                    {"loss", share * (8 - 0.3 * line)},
                    {"tokens_per_second", 123456.0}}
            << "\n";
      }
    }
    return WEXITSTATUS(
        std::system((script + "compare " + out() + " > " + out() + "/printed").c_str()));
  };
  EXPECT_EQ(code(1.0005, 0.99), 0);
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("123,456 tokens/s"));
  EXPECT_EQ(code(1.002, 1), 1);
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("MISSED: target: step 1:"));
  EXPECT_EQ(code(1, 1.03), 1);
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("MISSED: target: the last steps"));
  EXPECT_EQ(code(1, 1, 1.002), 1);
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("MISSED: consistency: step 1:"));
  EXPECT_EQ(std::system((script + "recipes " + out()).c_str()), 0);
  EXPECT_EQ(json::parse(read(out() + "/small.json"))["compute"], "f32");
}

/// scripts/gpu_check.sh as it is packed, in a folder, over a program in place of ours.
class GpuCheck : public GpuModel {
 protected:
  void SetUp() override {
    GpuModel::SetUp();
    if (IsSkipped()) return;
    const std::string scripts = DECOSCOPE_SOURCE_DIR "/scripts/";
    for (const std::string to : {"f/scripts", "checkout", "built/bin"})
      ASSERT_TRUE(fs::create_directories(out() + "/" + to));
    fs::copy(scripts, out() + "/checkout/scripts");
    for (const char* name : {"data", "models", "prompts", "recipes", "shapes", "trees"}) {
      fs::create_directories(out() + "/checkout/assets/" + name);
      std::ofstream(out() + "/checkout/assets/" + name + "/one") << name;
    }
    for (const char* name : {"gpu_check.sh", "gpu_parts.py", "gpu_results.py", "gpu_peers.py"})
      fs::copy(scripts + name, folder());
    for (const char* name : {"exactness.sh", "measuring.sh", "lanes.sh", "exactness_table.py"})
      fs::copy(scripts + name, folder() + "/scripts");
    for (const char* name : kPrograms) fs::copy("/proc/self/exe", out() + "/built/bin/" + name);
  }
  static constexpr const char* kPrograms[] = {"decoscope", "kernels_emulated_test",
                                              "engine_emulated_test", "train_emulated_test",
                                              "gpu_probe"};
  std::string folder() const { return out() + "/f"; }
  std::string pack() const {
    return out() + "/checkout/scripts/gpu_check.sh pack --built " + out() + "/built ";
  }
  /// Its exit code; what it printed and told is printed().
  int ran(const std::string& command) const {
    return WEXITSTATUS(std::system((command + " > " + out() + ".printed 2>&1").c_str()));
  }
  /// gpu_check.sh of the folder, over the program of known figures.
  int check(const std::string& arguments, const std::string& settings = {}) const {
    return ran("ASKED=" + log() +
               " DECOSCOPE_PROGRAM=" DECOSCOPE_SOURCE_DIR "/tests/scripts/small_program.py " +
               settings + " " + folder() + "/gpu_check.sh " + arguments);
  }
  json document() const { return json::parse(read(folder() + "/results/gpu_check.json")); }
  static std::vector<std::string> words(const std::string& text) {
    std::istringstream each(text);
    return {std::istream_iterator<std::string>(each), {}};
  }
};

TEST_F(GpuCheck, a_pack_has_programs_without_symbols_and_says_how_large_it_is) {
  const std::string to = out() + "/checkout/pack", work = out() + "/work";
  const auto size = [](const std::string& file) { return fs::file_size(file); };
  ASSERT_EQ(ran(pack() + to), 0) << printed();
  EXPECT_THAT(printed(), AllOf(HasSubstr(to + ": "), HasSubstr(" MiB packed, ")));
  const auto whole = size("/proc/self/exe"), packed = size(to + "/gpu_check.tar.xz");
  EXPECT_LT(packed, 3 * whole) << "five programs that share their code, and libraries";
  // What is told is what is there.
  const double told = std::stod(printed().substr(to.size() + 2));
  EXPECT_NEAR(told, double(packed + size(to + "/gpu_check.sh")) / 1048576, 0.06);

  ASSERT_EQ(ran(to + "/gpu_check.sh unpack " + work), 0) << printed();
  EXPECT_LT(size(work + "/bin/decoscope"), whole);
  EXPECT_EQ(read(work + "/assets/models/one"), "models") << "the checkout's";
  ASSERT_EQ(ran(work + "/gpu_check.sh decoscope --gtest_list_tests"), 0) << printed();
  EXPECT_THAT(printed(), HasSubstr("a_pack_has_programs_without_symbols"));
  // Opened where it lies, at its first use.
  ASSERT_EQ(ran(to + "/gpu_check.sh list"), 0);
  EXPECT_TRUE(fs::exists(to + "/bin/decoscope"));
  fs::remove_all(out() + "/checkout/assets");
  EXPECT_EQ(ran(to + "/gpu_check.sh unpack " + out() + "/other"), 2);
  EXPECT_THAT(printed(), HasSubstr("checkout/assets: not there; the pack goes with the checkout"));
}

TEST_F(GpuCheck, a_pack_for_elsewhere_has_the_assets_in_it) {
  const std::string to = out() + "/pack";
  ASSERT_EQ(ran(pack() + to), 0) << printed();
  fs::remove_all(out() + "/checkout");
  ASSERT_EQ(ran(to + "/gpu_check.sh parts"), 0) << printed();
  for (const char* name : {"data", "models", "prompts", "recipes", "shapes", "trees"})
    EXPECT_EQ(read(to + "/assets/" + name + "/one"), name);
}

TEST_F(GpuCheck, a_pack_above_its_limit_or_of_nothing_is_refused_in_a_line) {
  const std::string to = out() + "/checkout/pack";
  EXPECT_EQ(ran(pack() + to + " --limit 0.1"), 1);
  EXPECT_THAT(printed(), HasSubstr(" MiB packed, more than the 0.1 of --limit\n"));
  EXPECT_EQ(ran(pack() + to + " --limit 64"), 0) << printed();
  EXPECT_EQ(ran(pack() + to + " --limit"), 2);
  EXPECT_THAT(printed(),
              HasSubstr("found \"--limit\", expected FOLDER, --limit MIB or --built BUILD"));
  EXPECT_EQ(ran(pack() + out() + "/checkout"), 2);
  EXPECT_THAT(printed(), HasSubstr("checkout: found other files than a pack's"));
  fs::remove(out() + "/built/bin/gpu_probe");
  EXPECT_EQ(ran(pack() + to), 2);
  EXPECT_THAT(printed(),
              HasSubstr("built/bin/gpu_probe: not there; pack without --built makes it"));
}

TEST_F(GpuCheck, without_a_gpu_every_part_is_one_line_and_status_5) {
  ASSERT_EQ(check("parts"), 0);
  std::set<std::string> seen;
  for (const std::string& name : words(printed())) {
    if (!seen.insert(name.substr(0, name.find(':'))).second) continue;
    const int code = ran("CUDA_VISIBLE_DEVICES= DECOSCOPE_PROGRAM=" DECOSCOPE_PROGRAM " " +
                         folder() + "/gpu_check.sh part " + name);
    const std::string told = printed();
    EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
    if (name == "peers") continue;  // of what bench left
    EXPECT_EQ(code, 5) << name;
    EXPECT_TRUE(told.starts_with("gpu_check: " + name.substr(0, name.find(':')) + ": no GPU: "))
        << told;
  }
  EXPECT_GT(seen.size(), 15u);
}

TEST_F(GpuCheck, parts_come_by_what_is_learned_of_them_and_fit_in_minutes) {
  const auto fit = [&](int minutes) {
    EXPECT_EQ(ran("python3 " + folder() + "/gpu_parts.py fit " + folder() + "/results " +
                  std::to_string(minutes)),
              0);
    return words(printed());
  };
  const auto code = [&](const std::string& name, const std::string& told) {
    fs::create_directories(folder() + "/results");
    std::ofstream(folder() + "/results/" + name + ".code") << told << "\n";
  };
  ASSERT_EQ(check("list"), 0);
  std::map<std::string, int> minutes;
  std::istringstream lines(printed());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, HasSubstr(" min  a guess"));
    minutes[words(line)[0]] = std::stoi(words(line)[1]);
  }
  ASSERT_EQ(check("parts"), 0);
  EXPECT_EQ(words(printed()).size(), minutes.size());
  for (const auto& [name, of] : minutes) EXPECT_TRUE(of >= 1 && of <= 10) << name;
  for (const int most : {1, 4, 9, 17, 30, 59}) {
    int all = 0;
    for (const std::string& name : fit(most)) all += minutes[name];
    EXPECT_LE(all, most);
  }
  EXPECT_EQ(fit(12), (std::vector<std::string>{"kernels", "shape", "bench"}));
  EXPECT_EQ(fit(5), (std::vector<std::string>{"kernels", "products"})) << "bench is behind shape";
  code("kernels", "0 61");
  code("shape", "0 100");
  code("exact.1.24", "124 590");
  EXPECT_EQ(fit(6), (std::vector<std::string>{"bench", "products"}));
  EXPECT_EQ(fit(20), (std::vector<std::string>{"bench", "decoders", "exact:1/24"}));
  ASSERT_EQ(check("list 5"), 0);
  EXPECT_THAT(printed(), HasSubstr("bench             5 min  a guess\n"));
  ASSERT_EQ(check("list"), 0);
  EXPECT_THAT(printed(), HasSubstr("kernels           2 min  passed in 61 s\n"));
  EXPECT_THAT(printed(), HasSubstr("exact:1/24       10 min  ended with status 124 after 590 s\n"));
  EXPECT_EQ(check("list soon"), 2);
}

TEST_F(GpuCheck, runs_what_fits_and_has_not_passed) {
  EXPECT_EQ(check("run --minutes 1"), 0) << printed();
  EXPECT_EQ(document()["parts"].size(), 1u);
  EXPECT_EQ(document()["parts"]["products"]["passed"], true);
  EXPECT_EQ(document()["kernels"]["kernels"].size(), 4u);
  EXPECT_EQ(check("run --minutes 1"), 2);
  EXPECT_THAT(printed(), HasSubstr("no part that has not passed fits"));
}

TEST_F(GpuCheck, exactness_on_the_device_goes_in_shares_whose_results_are_one_table) {
  const std::string two =
      "DECOSCOPE_EXACT_COUNT=2 DECOSCOPE_EXACT_SCALED=1 DECOSCOPE_EXACT_TASKS='arith kb' ";
  EXPECT_EQ(check("run exact:1/12 exact:12/12", two), 0) << printed();
  json told = document();
  EXPECT_EQ(told["parts"]["exact.12.12"]["passed"], true);
  EXPECT_EQ(told["exact"]["n_settings"], 2);
  EXPECT_EQ(told["exact"]["settings"]["arith-greedy-bf16"]["1x1"]["seed"], json({2, 2}));
  EXPECT_EQ(told["exact"]["settings"]["kb-coupled-f32"]["4x2"]["seed"], json({1, 1}));
  // Seven lanes, SEED and two variants; two prompts, and one of them scaled.
  EXPECT_EQ(told["exact"]["outputs"], 2 * 10 * 3);
  EXPECT_EQ(told["exact"]["identical"], 2 * 10 * 3);
  const auto runs = [&] {
    int n = 0;
    for (const std::string& call : asked()) {
      if (call.find("--prompt-file") == std::string::npos) continue;
      EXPECT_THAT(call, HasSubstr(" --device cuda:0")) << call;
      n++;
    }
    return n;
  };
  EXPECT_EQ(runs(), 2 * 2 * 3) << "shares, scales; lanes, variants and SEED's";
  // One that differs is named, fails its share and stands among the others; those are not made anew.
  EXPECT_EQ(check("run exact:1/12 exact:2/12", two + "DIFFERS='--dtype f16 --device cuda:0 "
                                                     "--scale 4x2'"),
            1);
  EXPECT_EQ(runs(), 2 * 3);
  told = document();
  EXPECT_EQ(told["parts"]["exact.1.12"]["passed"], true);
  EXPECT_EQ(told["parts"]["exact.2.12"]["passed"], false);
  EXPECT_EQ(told["exact"]["n_settings"], 3);
  EXPECT_EQ(told["exact"]["outputs"], 3 * 10 * 3);
  EXPECT_LT(told["exact"]["identical"], 3 * 10 * 3);
  EXPECT_THAT(read(folder() + "/results/exact.2.12.log"),
              HasSubstr("not what plain decoding writes, unscaled: "));
}

/// What starts the packed tests there: a line in $ASKED of what they were asked.
class GpuCheckTests : public GpuCheck {
 protected:
  void SetUp() override {
    GpuCheck::SetUp();
    if (IsSkipped()) return;
    for (const char* name : {"lib", "bin"}) fs::create_directories(folder() + "/" + name);
    const std::string loader = folder() + "/lib/ld-linux-any.so.2";
    std::ofstream(loader) << R"sh(#!/usr/bin/env bash
[[ "$*" != *--gtest_list_tests* ]] || { printf 'Suite.\n  test/cuda_0\n' && exit; }
share=${GTEST_SHARD_INDEX:-none}
for word; do
  case $word in
    */bin/*) program=${word##*/} ;;
    --gtest_filter=*) filter=${word#*=} ;;
  esac
done
echo "$program share $share of ${GTEST_TOTAL_SHARDS:-none} soak ${DECOSCOPE_SOAK:-} cancels ${DECOSCOPE_CANCELS:-} rows ${DECOSCOPE_ROW_FORWARDS:-} same ${DECOSCOPE_SAME_PROMPTS:-} filter $filter" >> "$ASKED"
# Goes on when so many are here.
touch "$ASKED.here.$share"
for ((i = 0; i < 200; i++)); do
  here=("$ASKED".here.*)
  [ "${#here[@]}" -lt "${TOGETHER:-1}" ] || break
  sleep 0.05
done
[ "${#here[@]}" -ge "${TOGETHER:-1}" ] || { echo "alone" && exit 1; }
[ "$share" != "${FAILING_SHARE:-}" ] || { echo "share $share failed" && exit 1; }
)sh";
    ASSERT_EQ(std::system(("chmod +x " + loader).c_str()), 0);
  }
  /// The line of the only program that was asked for, behind this part's run.
  std::string asked_by(const std::string& part, const std::string& settings = {}) const {
    EXPECT_EQ(check("run " + part, settings), 0) << printed();
    std::string line;
    for (const std::string& call : asked())
      if (call.find(" filter ") != std::string::npos) line += call;
    return line;
  }
};

TEST_F(GpuCheckTests, parts_together_run_at_once_and_one_that_fails_is_told) {
  const std::string parts = "run --together kernels:1/3 kernels:2/3 products kernels:3/3";
  const std::string own = "DECOSCOPE_CUBLAS=own ";
  EXPECT_EQ(check(parts, own + "TOGETHER=3 "), 0) << printed();
  for (const char* name : {"kernels.1.3", "kernels.2.3", "kernels.3.3", "products"})
    EXPECT_EQ(document()["parts"][name]["passed"], true) << name;
  EXPECT_EQ(document()["parts"].size(), 4u);
  fs::remove_all(folder() + "/results");
  EXPECT_EQ(check(parts, own + "TOGETHER=3 FAILING_SHARE=1 "), 1);
  EXPECT_THAT(printed(), HasSubstr("== kernels:2/3\nshare 1 failed\n"));
  EXPECT_EQ(document()["parts"]["kernels.2.3"]["passed"], false);
  for (const char* name : {"kernels.1.3", "kernels.3.3", "products"})
    EXPECT_EQ(document()["parts"][name]["passed"], true) << name;
}

TEST_F(GpuCheckTests, a_share_of_tests_is_googletests_own) {
  EXPECT_THAT(asked_by("kernels:2/4"), HasSubstr("kernels_emulated_test share 1 of 4 "));
  EXPECT_THAT(asked_by("decoders:4/4"), HasSubstr("engine_emulated_test share 3 of 4 "));
  EXPECT_THAT(asked_by("kernels"), HasSubstr("kernels_emulated_test share none of none "));
  EXPECT_EQ(check("run decoders:5/4"), 1);
  EXPECT_THAT(printed(), HasSubstr("gpu_check: decoders:5/4: expected PART:SHARE/N"));
}

TEST_F(GpuCheckTests, long_ones_are_of_their_own_parts_and_all_others_of_decoders) {
  const auto takes = [](const std::string& filter, const std::string& test) {
    const auto matches = [&](std::string patterns) {
      std::ranges::replace(patterns, ':', ' ');
      return std::ranges::any_of(words(patterns), [&](const std::string& one) {
        return fnmatch(one.c_str(), test.c_str(), 0) == 0;
      });
    };
    const auto without = filter.find('-');
    return matches(filter.substr(0, without)) &&
           (without == std::string::npos || !matches(filter.substr(without + 1)));
  };
  const std::map<std::string, std::string> part_of = {
      {"Soak_all_memory_is_freed_after_every_generation", "soak"},
      {"Cancel_ends_a_run_within_a_step_and_100_ms", "cancel"},
      {"RowBits_do_not_depend_on_the_number_of_rows", "rows"},
      {"SamePrompt_gives_the_same_output_in_any_batch", "same"},
      {"SamePrompt_with_another_sum_order_is_detected", "same"},
      {"NonFinite_logits_name_their_row_with_and_without_graphs", "decoders"}};
  const std::string tests = read(DECOSCOPE_SOURCE_DIR "/tests/engine/decode/emulated/many_runs_test.cpp");
  for (const std::string part : {"soak", "cancel", "rows", "same", "decoders"}) {
    const std::string line = asked_by(part), filter = line.substr(line.find(" filter ") + 8);
    for (const auto& [name, own] : part_of) {
      EXPECT_THAT(tests, HasSubstr("TEST_P(DeviceLong, " + name + ")"));
      EXPECT_EQ(takes(filter, "Devices/DeviceLong." + name + "/cuda_0"), own == part)
          << part << " " << name;
      EXPECT_FALSE(takes(filter, "Devices/DeviceLong." + name + "/cuda_emulated")) << part;
    }
    EXPECT_EQ(takes(filter, "Devices/CudaEdges.hold_at_every_length/cuda_0_bf16_greedy_ar"),
              part == "decoders");
  }
}

TEST_F(GpuCheckTests, how_long_the_long_ones_are_the_environment_says_or_the_script) {
  struct Long {
    const char *part, *setting, *word, *given;
  };
  for (const auto& [part, setting, word, given] :
       {Long{"soak", "DECOSCOPE_SOAK", " soak ", "2000"},
        Long{"cancel", "DECOSCOPE_CANCELS", " cancels ", "1000"},
        Long{"rows", "DECOSCOPE_ROW_FORWARDS", " rows ", "10000"},
        Long{"same", "DECOSCOPE_SAME_PROMPTS", " same ", "1000"}}) {
    const std::string unset = "-u " + std::string(setting) + " ";
    EXPECT_THAT(asked_by(part, "env " + unset), HasSubstr(std::string(word) + given + " "));
    EXPECT_THAT(asked_by(part, std::string(setting) + "=12 "),
                HasSubstr(std::string(word) + "12 "));
  }
}

TEST_F(GpuModel, gpu_check_names_its_parts_and_refuses_others) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/gpu_check.sh";
  ASSERT_EQ(std::system((script + " parts > " + out() + ".parts").c_str()), 0);
  const std::string parts = " " + read(out() + ".parts");
  std::size_t last = 0;
  for (const char* name :
       {" kernels ", " shape ", " bench ", " decoders ", " exact:1/24 ", " peers ",
        " memcheck:1/16 ", " racecheck:1/20 ", " initcheck:1/16 ", " synccheck:1/12 "}) {
    const auto at = parts.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_GE(at, last) << "behind what is more telling: " << name;
    last = at;
  }
  for (const char* name :
       {" prompts ", " speeds ", " products ", " training ", " soak ", " cancel ", " rows ",
        " same ", " faults:1/8 ", " faults:8/8 ", " memcheck:16/16 ", " racecheck:20/20 ",
        " initcheck:16/16 ", " synccheck:11/12 ", " exact:23/24 "})
    EXPECT_THAT(parts, HasSubstr(name));
  EXPECT_EQ(WEXITSTATUS(std::system((script + " part all 2> " + out() + ".told").c_str())), 2);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("gpu_check: all: expected one of kernels"));
  for (const char* share :
       {"faults:0/4", "faults:5/4", "racecheck:x/4", "exact:25/24", "kernels:5/4", "bench:1/2"}) {
    const int code = std::system((script + " part " + share + " 2> " + out() + ".told").c_str());
    EXPECT_EQ(WEXITSTATUS(code), 2) << share;
    EXPECT_THAT(read(out() + ".told"), HasSubstr(std::string("gpu_check: ") + share + ": "));
  }
  EXPECT_EQ(WEXITSTATUS(std::system((script + " 2> " + out() + ".told").c_str())), 2);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("scripts/gpu_check.sh pack FOLDER"));
}

}  // namespace
