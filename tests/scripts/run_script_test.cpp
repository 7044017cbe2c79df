// scripts/run.sh without a display, in a tree of its own with a program that logs its arguments.
#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scripts/script_fixture.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class RunScript : public test::ScriptFixture {
 protected:
  void SetUp() override {
    ScriptFixture::SetUp();
    if (IsSkipped()) return;
    const fs::path source = DECOSCOPE_SOURCE_DIR;
    for (const char* folder : {"scripts", "assets/prompts", "build/release/bin"})
      fs::create_directories(fs::path(out()) / folder);
    for (const char* script : {"run.sh", "lanes.sh", "get_model.sh", "get_model.py"})
      fs::copy_file(source / "scripts" / script, fs::path(out()) / "scripts" / script);
    for (const char* done : {"setup.sh", "build.sh"})
      fs::create_symlink("/bin/true", fs::path(out()) / "scripts" / done);
    // $HAS names the models that exist.
    write_program(out() + "/build/release/bin/decoscope",
                  "#!/bin/sh\necho \"$*\" >> \"$ASKED\"\n"
                  "[ \"$1 $2\" != 'model info' ] || [ \"$3\" = \"$HAS\" ]\n");
  }

  /// A data folder with a file in the place of SmolLM2.
  std::string with_smollm2() const {
    fs::create_directories(out() + "/data/decoscope/models");
    write(smollm2(), "GGUF");
    return "XDG_DATA_HOME=" + out() + "/data ";
  }
  std::string smollm2() const {
    return out() + "/data/decoscope/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  }

  /// The program's last arguments. Expects that the script succeeds. Nothing is downloaded.
  std::string raced(const std::string& settings, const std::string& arguments) const {
    const std::string command = "DISPLAY= DECOSCOPE_OFFLINE=1 XDG_DATA_HOME=" + out() +
                                "/none ASKED=" + log() + " " + settings + " " + out() +
                                "/scripts/run.sh " + arguments + " >/dev/null 2>&1";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << command;
    const auto lines = calls();
    return lines.empty() ? "" : lines.back();
  }
};

TEST_F(RunScript, races_in_the_terminal_without_a_display) {
  const std::string rest =
      " --prompt-file " + out() + "/assets/prompts/bundled.jsonl --scale 4x2 --max-tokens 96";
  const std::string plain = "compare --decoders ar,jacobi,lookahead,prompt-lookup";
  const std::string with =
      "compare --decoders ar,lookahead,jacobi@demo-cllm,seed --set refill=slide --set block=10";
  EXPECT_EQ(raced("", ""), plain + rest);
  EXPECT_EQ(raced("HAS=demo-cllm", ""), with + rest);
  EXPECT_THAT(raced("HAS=demo-cllm", "--seed 3"), HasSubstr(with));
  EXPECT_THAT(raced("HAS=demo-cllm", "--model mine"), HasSubstr(plain)) << "any model has these";
  const std::string own = raced("HAS=demo-cllm", "--decoders ar,mcsd");
  EXPECT_THAT(own, HasSubstr("--decoders ar,mcsd"));
  EXPECT_THAT(own, Not(HasSubstr("refill")));
}

TEST_F(RunScript, races_on_smollm2_where_it_is) {
  const std::string with = with_smollm2(), model = "compare --model " + smollm2();
  const std::string rest =
      " --prompt-file " + out() + "/assets/prompts/messages.jsonl --max-tokens 96";
  EXPECT_EQ(raced(with, ""),
            model + " --decoders ar,lookahead,suffix,speculative,medusa,chimera" + rest);
  EXPECT_EQ(raced(with, "--decoders ar,fastcot"), model + rest + " --decoders ar,fastcot");
  EXPECT_THAT(raced(with, "--model mine"), Not(HasSubstr("SmolLM2")));
  EXPECT_EQ(raced(with + "DISPLAY=:9", ""), "--model " + smollm2() + " --screen compare --start");
  EXPECT_EQ(raced(with + "DISPLAY=:9", "--open a.pdrun"), "--open a.pdrun");
  EXPECT_EQ(raced(with, "--help"), "--help");
  EXPECT_EQ(raced(with, "--describe a.pdrun"), "--describe a.pdrun");
  EXPECT_EQ(raced(with, "devices"), "devices");
}

TEST_F(RunScript, races_on_bundled_models_if_nothing_can_be_downloaded) {
  const std::string offline = "DECOSCOPE_OFFLINE= PIP_INDEX_URL=http://127.0.0.1:9/simple";
  EXPECT_THAT(raced(offline, ""), HasSubstr("bundled.jsonl"));
  EXPECT_FALSE(fs::exists(out() + "/none/decoscope/models/SmolLM2-135M-Instruct.Q4_1.gguf"));
}

TEST_F(RunScript, refuses_window_options_without_a_display) {
  const std::string command = "DISPLAY= DECOSCOPE_OFFLINE=1 ASKED=" + log() + " " + out() +
                              "/scripts/run.sh --open run.pdrun 2> " + out() + ".errors";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_THAT(read(out() + ".errors"), HasSubstr("run.sh: --open needs a display"));
}

TEST_F(RunScript, exports_and_describes_without_a_display) {
  for (const char* arguments :
       {"--describe run.pdrun", "--open run.pdrun --export run.md", "--open=a --export=b.html"})
    EXPECT_EQ(raced("", arguments), arguments);
}

}  // namespace
