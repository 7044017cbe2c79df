// If the display is lost or has no OpenGL, the program ends in order with a message.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/display.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/program.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kSoon = 120s;

// An X server of this test, which the test kills while the program uses it.
class OwnDisplay {
 public:
  explicit OwnDisplay(const char* extension_off) {
    int pipes[2];
    if (pipe(pipes) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(pipes[0]);
      const std::string fd = std::to_string(pipes[1]);
      execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", "1024x700x24", "-nolisten",
             "tcp", *extension_off ? "-extension" : nullptr, extension_off, nullptr);
      _exit(127);
    }
    close(pipes[1]);
    std::string number;
    for (char c = 0; read(pipes[0], &c, 1) == 1 && c != '\n';) number += c;
    close(pipes[0]);
    if (!number.empty()) name_ = ":" + number;
  }
  ~OwnDisplay() { end(); }
  OwnDisplay(const OwnDisplay&) = delete;
  OwnDisplay& operator=(const OwnDisplay&) = delete;

  const std::string& name() const { return name_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  std::string name_;
};

class Ends : public testing::Test {
 protected:
  void SetUp() override {
    display::ready();  // later tests keep the settings that it makes
    const char* had = std::getenv("DISPLAY");
    before = had ? had : "";
    setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
  }
  void TearDown() override {
    if (!before.empty()) setenv("DISPLAY", before.c_str(), 1);
  }
  // Arguments that start the picture's race immediately.
  std::vector<std::string> race() const {
    return {"--screenshot", folder + "/race.png", "--scale", "4x2"};
  }

  engine::test::Folder temporary;
  const std::string folder = temporary.path();
  std::string before;
};

TEST_F(Ends, losing_the_display_ends_the_program_in_order) {
  OwnDisplay own("");
  NEEDS(!own.name().empty(), "no Xvfb");
  setenv("DISPLAY", own.name().c_str(), 1);
  Program program(race(), folder);
  // Once the scaled weights are loaded, the window is open and the race is about to start.
  ASSERT_TRUE(program.until([&] { return program.private_memory() > 170'000'000; }, 120s));
  own.end();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, 5) << end.err;
  EXPECT_NE(end.err.find("recordings are complete"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("terminate"), std::string::npos) << end.err;
}

TEST_F(Ends, a_display_without_opengl_is_reported) {
  OwnDisplay own("GLX");
  NEEDS(!own.name().empty(), "no Xvfb");
  setenv("DISPLAY", own.name().c_str(), 1);
  Program program(race(), folder);
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, 5) << end.err;
  EXPECT_NE(end.err.find("OpenGL"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("terminate"), std::string::npos) << end.err;
}

// True if the program reaches 170 MB of private memory. The unscaled model needs a tenth of this,
// so only a race at the window's own scale reaches it. The user's settings are neither read nor
// written.
bool races_at_the_windows_scale(const std::vector<std::string>& arguments,
                                const std::string& folder) {
  setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  setenv("XDG_STATE_HOME", folder.c_str(), 1);
  Program program(arguments, folder);
  const bool came = program.until([&] { return program.private_memory() > 170'000'000; }, 120s);
  program.interrupt();
  program.wait(kSoon);
  return came;
}

TEST_F(Ends, a_picture_has_the_windows_scale_unless_given) {
  NEEDS(display::ready(), "no display and no Xvfb");
  EXPECT_TRUE(races_at_the_windows_scale({"--screenshot", folder + "/race.png"}, folder));
}

TEST_F(Ends, the_start_option_races_without_a_click) {
  NEEDS(display::ready(), "no display and no Xvfb");
  EXPECT_TRUE(races_at_the_windows_scale({"--screen", "compare", "--start"}, folder));
}

}  // namespace
