// What the command line hands to the window and to the subcommands: each is replaced here by a
// function that keeps what it was given.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/commands.h"
#include "kernels/error.h"

namespace {

std::optional<app::WindowCommandOptions> window_asked;
std::optional<app::GenerationOptions> generation_asked;

}  // namespace

namespace app {

int window(const WindowCommandOptions& options) {
  window_asked = options;
  return 0;
}
int generate(const GenerationOptions& options) {
  generation_asked = options;
  return 0;
}
int compare(const GenerationOptions& options) {
  generation_asked = options;
  return 0;
}
int bench(const BenchOptions&) {
  return 0;
}
int data(const DataOptions&) {
  return 0;
}
int train(const TrainOptions&) {
  return 0;
}
int model(const ModelCommandOptions&) {
  return 0;
}
int score(const ScoreOptions&) {
  return 0;
}
int trace(const TraceOptions&) {
  return 0;
}
int devices(bool) {
  return 0;
}

}  // namespace app

namespace {

void parse(std::vector<std::string> words) {
  window_asked.reset();
  generation_asked.reset();
  words.insert(words.begin(), "decoscope");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  app::run_command_line(static_cast<int>(argv.size()), argv.data());
}

TEST(CommandLine, a_scale_given_for_the_window_counts_though_it_is_the_default) {
  parse({});
  ASSERT_TRUE(window_asked);
  EXPECT_FALSE(window_asked->model.scale_given);
  parse({"--scale", "1x1"});
  EXPECT_TRUE(window_asked->model.scale_given);
  EXPECT_EQ(window_asked->model.scale, "1x1");
  parse({"generate", "--prompt", "a", "--scale", "4x2"});
  ASSERT_TRUE(generation_asked);
  EXPECT_EQ(generation_asked->model.scale, "4x2");
}

TEST(CommandLine, the_window_gets_its_theme) {
  parse({"--theme", "light", "--open", "a.pdrun"});
  ASSERT_TRUE(window_asked);
  EXPECT_EQ(window_asked->theme, "light");
  EXPECT_EQ(window_asked->open, "a.pdrun");
  EXPECT_THROW(parse({"--theme", "lihgt"}), kernels::Error);
}

}  // namespace
