// The scripts that check and measure on a GPU, as far as they go without one.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/measuring_scripts.h"

namespace {

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
  const json model = json::parse(read(out() + ".model"));
  EXPECT_EQ(model["bytes_moved"], 12'800'000'000);
  EXPECT_NEAR(model["model_ms"].get<double>(), 3.2 + 1 * 0.002 + 300 * 0.001, 1e-9);
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
  EXPECT_EQ(json::parse(read(out() + "s/floor"))["absent"], "no torch here");
}

// Logs of two trainings of 21 lines: the GPU's losses are the CPU's times `first` in the first
// three and times `last` in the others.
TEST_F(GpuModel, trainings_that_part_early_or_late_are_told_apart_from_equal_ones) {
  const std::string script = "python3 " DECOSCOPE_SOURCE_DIR "/scripts/gpu_training.py ";
  const auto code = [&](double first, double last) {
    for (const std::string name : {"cpu", "gpu", "large"}) {
      EXPECT_EQ(std::system(("mkdir -p " + out() + "/" + name).c_str()), 0);
      std::ofstream log(out() + "/" + name + "/training.jsonl");
      for (int line = 0; line < 21; line++) {
        const double share = name == "cpu" ? 1 : line < 3 ? first : last;
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
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("MISSED: step 1:"));
  EXPECT_EQ(code(1, 1.03), 1);
  EXPECT_THAT(read(out() + "/printed"), HasSubstr("MISSED: the last steps"));
  EXPECT_EQ(std::system((script + "recipes " + out()).c_str()), 0);
  EXPECT_EQ(json::parse(read(out() + "/small.json"))["compute"], "f32");
}

TEST_F(GpuModel, gpu_check_names_its_parts_and_refuses_others) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/gpu_check.sh";
  ASSERT_EQ(std::system((script + " parts > " + out() + ".parts").c_str()), 0);
  EXPECT_THAT(
      read(out() + ".parts"),
      AllOf(HasSubstr("kernels decoders soak cancel rows faults:1/8 faults:2/8 "),
            HasSubstr(" faults:8/8 memcheck racecheck:1/4 "), HasSubstr(" bench prompts speeds ")));
  EXPECT_EQ(WEXITSTATUS(std::system((script + " part all 2> " + out() + ".told").c_str())), 2);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("gpu_check: all: expected one of kernels"));
  for (const char* share : {"faults:0/4", "faults:5/4", "racecheck:x/4", "bench:1/2"}) {
    const int code = std::system((script + " part " + share + " 2> " + out() + ".told").c_str());
    EXPECT_EQ(WEXITSTATUS(code), 2) << share;
    EXPECT_THAT(read(out() + ".told"), HasSubstr(std::string("gpu_check: ") + share + ": "));
  }
  EXPECT_EQ(WEXITSTATUS(std::system((script + " 2> " + out() + ".told").c_str())), 2);
  EXPECT_THAT(read(out() + ".told"), HasSubstr("scripts/gpu_check.sh pack FOLDER"));
}

}  // namespace
