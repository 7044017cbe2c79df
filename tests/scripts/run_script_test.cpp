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
    for (const char* script : {"run.sh", "lanes.sh"})
      fs::copy_file(source / "scripts" / script, fs::path(out()) / "scripts" / script);
    for (const char* done : {"setup.sh", "build.sh"})
      fs::create_symlink("/bin/true", fs::path(out()) / "scripts" / done);
    // $HAS names the models that exist.
    write_program(out() + "/build/release/bin/decoscope",
                  "#!/bin/sh\necho \"$*\" >> \"$ASKED\"\n"
                  "[ \"$1 $2\" != 'model info' ] || [ \"$3\" = \"$HAS\" ]\n");
  }

  /// The program's last arguments. Expects that the script succeeds.
  std::string raced(const std::string& settings, const std::string& arguments) const {
    const std::string command = "DISPLAY= ASKED=" + log() + " " + settings + " " + out() +
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

TEST_F(RunScript, refuses_window_options_without_a_display) {
  const std::string command = "DISPLAY= ASKED=" + log() + " " + out() +
                              "/scripts/run.sh --open run.pdrun 2> " + out() + ".errors";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_THAT(read(out() + ".errors"), HasSubstr("run.sh: --open needs a display"));
}

}  // namespace
