// Links of the documentation and the list of deliberate faults, checked against this tree.
#include <sys/wait.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Ended {
  int code = -1;
  std::string out;  // standard error included
};

Ended run_in(const fs::path& folder, const std::string& command) {
  FILE* pipe = popen(("cd '" + folder.string() + "' && " + command + " 2>&1").c_str(), "r");
  Ended ended;
  char piece[4096];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, pipe)) ended.out.append(piece, n);
  ended.code = WEXITSTATUS(pclose(pipe));
  return ended;
}

/// A small tree in a folder of its own, with the scripts of this one.
class DocsTree : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
    NEEDS(std::system("git --version >/dev/null 2>&1") == 0, "no git here");
    std::string name = testing::TempDir() + "docsXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    tree_ = name;
    for (const char* script : {"docs_links.py", "mutate.py", "mutate.sh"}) {
      fs::create_directories(tree_ / "scripts");
      fs::copy_file(fs::path(DECOSCOPE_SOURCE_DIR) / "scripts" / script,
                    tree_ / "scripts" / script);
    }
  }
  void TearDown() override {
    if (!tree_.empty()) fs::remove_all(tree_);
  }
  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((tree_ / name).parent_path());
    std::ofstream(tree_ / name) << text;
  }
  Ended run(const std::string& command) const { return run_in(tree_, command); }

  fs::path tree_;
};

TEST_F(DocsTree, broken_links_are_named) {
  write("docs/one.md", "# One\n\n## What it costs\n\n[two](two.md), [three](three.md#no-such).\n");
  write("docs/three.md", "# Three\n\n[cost](one.md#what-it-costs) `scripts/none.sh` `engine/a/`\n");
  write("engine/a.cpp", "// docs/four.md says how.\n");
  const Ended ended = run("git init -q . && python3 scripts/docs_links.py");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out,
            "docs/one.md:5: two.md: no such file\n"
            "docs/one.md:5: three.md#no-such: no such heading in docs/three.md\n"
            "docs/three.md:3: `scripts/none.sh`: no such file\n"
            "engine/a.cpp:1: docs/four.md: no such page\n");
}

TEST_F(DocsTree, faults_that_do_not_fit_the_code_are_named) {
  write("tests/CMakeLists.txt", "decoscope_test(one_test LABELS fast SOURCES one_test.cpp)\n");
  write("tests/one_test.cpp", "TEST(One, holds) {}\n");
  write("engine/one.cpp", "int one() { return 1; }\nint two() { return 2; }\n");
  const auto list = [&](const std::string& find, const std::string& target,
                        const std::string& filter) {
    write("tests/mutations.json",
          R"([{"name": "a", "fault": "adds", "file": "engine/one.cpp", "find": ")" + find +
              R"(", "replace": "3", "target": ")" + target + R"(", "filter": ")" + filter +
              R"("}])");
    return run("scripts/mutate.sh --check");
  };
  const Ended fits = list("return 1;", "one_test", "One.*");
  EXPECT_EQ(fits.code, 0) << fits.out;
  const Ended twice = list("return", "one_test", "One.*");
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.out, HasSubstr("engine/one.cpp: found the text 2 times, expected once"));
  EXPECT_THAT(list("return 1;", "two_test", "One.*").out, HasSubstr("no such test program"));
  EXPECT_THAT(list("return 1;", "one_test", "One.*:Two.*").out,
              HasSubstr("Two: no such test suite"));
}

TEST(Docs, every_link_has_a_target) {
  NEEDS(fs::exists(DECOSCOPE_SOURCE_DIR "/.git"), "no git checkout here");
  NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
  const Ended ended = run_in(DECOSCOPE_SOURCE_DIR, "python3 scripts/docs_links.py");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, "");
}

TEST(Docs, listed_faults_fit_the_code) {
  NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
  const Ended ended = run_in(DECOSCOPE_SOURCE_DIR, "scripts/mutate.sh --check");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, "");
}

}  // namespace
