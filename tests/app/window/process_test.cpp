// The program with its window, as a separate process.
#include <algorithm>
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

using namespace std::chrono_literals;

// Peak of the program's private memory, sampled every few milliseconds.
long peak_of(const std::vector<std::string>& arguments, const std::string& folder) {
  Program program(arguments, folder);
  long peak = 0;
  program.until(
      [&] {
        peak = std::max(peak, program.private_memory());
        return false;
      },
      120s);
  const ProgramEnd end = program.wait(1s);
  EXPECT_EQ(end.code, 0) << end.err;
  return peak;
}

TEST(WindowProcess, an_automatic_scale_is_reported_with_its_reason) {
  NEEDS(display::ready(), "no display and no Xvfb");
  const engine::test::Folder folder;
  setenv("XDG_CONFIG_HOME", (folder / "").c_str(), 1);
  setenv("XDG_STATE_HOME", (folder / "").c_str(), 1);
  const auto expect_message = [&](const std::vector<std::string>& arguments,
                                  const std::string& words) {
    Program program(arguments, folder / "");
    const bool came =
        program.until([&] { return program.err().find(words) != std::string::npos; }, 120s);
    EXPECT_TRUE(came) << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(120s);
    EXPECT_EQ(end.code, 0) << end.err;
    return end.err;
  };
  expect_message({}, "demo-target starts at scale 4x2: its ");
  expect_message({"--screenshot", folder / "a.png"}, "demo-target starts at scale 4x2: its ");
}

TEST(WindowProcess, a_training_folder_is_opened_and_pictured) {
  NEEDS(display::ready(), "no display and no Xvfb");
  const engine::test::Folder folder;
  setenv("XDG_CONFIG_HOME", (folder / "").c_str(), 1);
  setenv("XDG_STATE_HOME", (folder / "").c_str(), 1);
  Program training({"train", "target", "--recipe", DECOSCOPE_SOURCE_DIR "/assets/recipes/tiny.json",
                    "--out", folder / "run"},
                   folder / "");
  const ProgramEnd trained = training.wait(300s);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::vector<std::string> paths{folder / "run", folder / "run/training.jsonl"};
  for (const std::string& path : paths) {
    const std::string picture = folder / "training.png";
    std::filesystem::remove(picture);
    Program window({"--open", path, "--screenshot", picture}, folder / "");
    const ProgramEnd end = window.wait(120s);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_GT(std::filesystem::file_size(picture), 20'000u) << path;
  }
}

constexpr const char* kRace = DECOSCOPE_SOURCE_DIR "/assets/recordings/first_race.pdrun";

ProgramEnd end_of(const std::vector<std::string>& arguments, const std::string& folder) {
  return Program(arguments, folder).wait(120s);
}

TEST(WindowProcess, trace_convert_writes_animations) {
  NEEDS(display::ready(), "no display and no Xvfb");
  const engine::test::Folder folder;
  setenv("XDG_CONFIG_HOME", (folder / "").c_str(), 1);
  setenv("XDG_STATE_HOME", (folder / "").c_str(), 1);
  for (const char* name : {"race.gif", "race.png"}) {
    const std::string out = folder / name;
    const std::vector<std::string> arguments{"trace",         "convert", kRace,         out,
                                             "--panel",       "lanes",   "--last-step", "5",
                                             "--ms-per-step", "100",     "--clock",     "wall"};
    const ProgramEnd end = end_of(arguments, folder / "");
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_NE(end.out.find("wrote " + out + ": "), std::string::npos) << end.out;
    EXPECT_NE(end.out.find(" frames, "), std::string::npos) << end.out;
    EXPECT_GT(std::filesystem::file_size(out), 20'000u);
    std::vector<std::string> again = arguments;
    again.emplace_back("--json");
    EXPECT_NE(end_of(again, folder / "").out.find("race-2."), std::string::npos)
        << "no file is replaced";
  }
  const std::string none = folder / "none.gif";
  EXPECT_EQ(end_of({"trace", "convert", kRace, none, "--first-step", "5000"}, folder / "").code, 2);
  EXPECT_EQ(end_of({"trace", "convert", kRace, none, "--panel", "gant"}, folder / "").code, 2);
  EXPECT_EQ(end_of({"trace", "convert", kRace, none, "--with-prompt"}, folder / "").code, 2);
  EXPECT_FALSE(std::filesystem::exists(none));
}

TEST(WindowProcess, a_window_race_takes_at_most_150_MB_more) {
  NEEDS(display::ready(), "no display and no Xvfb");
  const engine::test::Folder folder;
  setenv("XDG_CONFIG_HOME", (folder / "").c_str(), 1);
  setenv("XDG_STATE_HOME", (folder / "").c_str(), 1);
  const long alone =
      peak_of({"generate", "--prompt", "Question:\n", "--scale", "1x1"}, folder / "");
  const std::string picture = folder / "race.png";
  const long window =
      peak_of({"--screen", "compare", "--screenshot", picture, "--scale", "1x1"}, folder / "");
  EXPECT_GT(std::filesystem::file_size(picture), 10'000U);
  EXPECT_GT(alone, 5'000'000);
  EXPECT_GT(window, alone);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // sanitizers use memory of their own
  EXPECT_LE(window - alone, 150'000'000) << "decoding alone: " << alone;
#endif
}

}  // namespace
