// The display taken away, or without OpenGL: the program ends with a word, and in order.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/app/program.h"
#include "tests/needs.h"
#include "tests/ui/display.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kSoon = 120s;

// A process's own display, to be taken away from under the program.
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
    std::string pattern = (fs::temp_directory_path() / "decoscope_ends.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    display::ready();  // what it sets stays set for the tests after this one
    const char* had = std::getenv("DISPLAY");
    before = had ? had : "";
    setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
  }
  void TearDown() override {
    if (!before.empty()) setenv("DISPLAY", before.c_str(), 1);
    fs::remove_all(folder);
  }
  // The race of the picture is at work from the start.
  std::vector<std::string> race() const {
    return {"--screenshot", folder + "/race.png", "--scale", "4x2"};
  }

  std::string folder, before;
};

TEST_F(Ends, the_display_taken_away_ends_the_program_in_order) {
  OwnDisplay own("");
  NEEDS(!own.name().empty(), "no Xvfb");
  setenv("DISPLAY", own.name().c_str(), 1);
  Program program(race(), folder);
  // Once there are the enlarged weights: the window is open and the race is about to begin.
  ASSERT_TRUE(program.until([&] { return program.private_memory() > 170'000'000; }, 120s));
  own.end();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, 5) << end.err;
  EXPECT_NE(end.err.find("recordings are complete"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("terminate"), std::string::npos) << end.err;
}

TEST_F(Ends, a_display_without_opengl_is_said_and_nothing_is_left_running) {
  OwnDisplay own("GLX");
  NEEDS(!own.name().empty(), "no Xvfb");
  setenv("DISPLAY", own.name().c_str(), 1);
  Program program(race(), folder);
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, 5) << end.err;
  EXPECT_NE(end.err.find("OpenGL"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("terminate"), std::string::npos) << end.err;
}

// The bundled model as stored takes a tenth of this: only a race at the window's own scale comes
// here. No setting of the person's is read or written.
bool races_at_the_windows_scale(const std::vector<std::string>& arguments,
                                const std::string& folder) {
  setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  Program program(arguments, folder);
  const bool came = program.until([&] { return program.private_memory() > 170'000'000; }, 120s);
  program.interrupt();
  program.wait(kSoon);
  return came;
}

TEST_F(Ends, a_picture_is_at_the_windows_own_scale_unless_one_is_given) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  EXPECT_TRUE(races_at_the_windows_scale({"--screenshot", folder + "/race.png"}, folder));
}

TEST_F(Ends, told_to_start_the_window_races_without_a_click) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  EXPECT_TRUE(races_at_the_windows_scale({"--screen", "compare", "--start"}, folder));
}

}  // namespace
