// scripts/shape.sh on a small tree of known shape.
#include <sys/wait.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Shape : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
    NEEDS(std::system("git --version >/dev/null 2>&1") == 0, "no git here");
    std::string name = testing::TempDir() + "shapeXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    tree_ = name;
    fs::create_directories(tree_ / "scripts");
    for (const char* script : {"shape.py", "shape.sh"})
      fs::copy_file(fs::path(DECOSCOPE_SOURCE_DIR) / "scripts" / script,
                    tree_ / "scripts" / script);
  }
  void TearDown() override {
    if (!tree_.empty()) fs::remove_all(tree_);
  }
  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((tree_ / name).parent_path());
    std::ofstream(tree_ / name) << text;
  }
  /// The output of the script, standard error included; its exit code is in code_.
  std::string output_of(const std::string& arguments) {
    const std::string command = "cd '" + tree_.string() +
                                "' && git init -q . && git add . && scripts/shape.sh " + arguments +
                                " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string all;
    char piece[4096];
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, pipe)) all.append(piece, n);
    code_ = WEXITSTATUS(pclose(pipe));
    return all;
  }

  fs::path tree_;
  int code_ = -1;
};

TEST_F(Shape, counts_documented_types_and_functions) {
  write("engine/cache.h",
        "// A cache of keys and values.\n#pragma once\n#include \"engine/page.h\"\n"
        "namespace engine {\nclass Cache {\n public:\n  Cache() = default;\n  virtual ~Cache();\n"
        "  /// Positions that are stored.\n  int length() const { return n_; }\n"
        "  int capacity() const;  // in positions\n\n  void clear();\n"
        " private:\n  void grow();\n  int n_ = 0;\n};\n"
        "struct Bare {\n  int n = 0;\n};\n/// Copies pages.\n"
        "template <typename T>\nstd::vector<T> copy(const T& from,\n                    int n);\n"
        "namespace {\nint hidden();\n}\n}  // namespace engine\n");
  write("engine/page.h", "// A page.\n#pragma once\nstruct Page {};\n");
  const auto found = nlohmann::json::parse(output_of("report --json")).at("values");
  EXPECT_EQ(found.at("public types"),
            3);  // Cache and Page have their headers' comments, Bare has none
  EXPECT_DOUBLE_EQ(found.at("types documented, %").get<double>(), 66.7);
  EXPECT_EQ(found.at("public functions"), 4);  // all but clear() are documented
  EXPECT_DOUBLE_EQ(found.at("functions documented, %").get<double>(), 75.0);
  EXPECT_EQ(output_of("undocumented"),
            "engine/cache.h:13: function clear\nengine/cache.h:18: type Bare\n");
}

TEST_F(Shape, counts_lines_of_functions_and_headers_reached) {
  write("kernels/a.h", "// A.\n#include \"kernels/b.h\"\n");
  write("kernels/b.h", "// B.\n#include \"kernels/c.h\"\n");
  write("kernels/c.h", "// C.\n");
  std::string body;
  for (int i = 0; i < 105; ++i) body += "  if (x) { y(\"}\"); }\n";
  write("kernels/long.cpp",
        "#include \"kernels/a.h\"\nnamespace kernels {\nvoid Long::run(int x) {\n" + body +
            "}\nint small() { return 1; }\n}\n");
  const auto found = nlohmann::json::parse(output_of("report --json"));
  EXPECT_EQ(found.at("values").at("functions"), 2);
  EXPECT_EQ(found.at("values").at("own headers reached, most"), 3);
  EXPECT_THAT(found.at("worst").at("functions over 100 lines"),
              ElementsAre("kernels/long.cpp:3: run 107"));
}

TEST_F(Shape, check_names_each_exceeded_limit) {
  write("engine/one.h",
        "// One.\n#pragma once\nnamespace engine {\n/// Adds.\nint add(int a);\n}\n");
  write("engine/one.cpp", "#include \"engine/one.h\"\nint engine::add(int a) { return a; }\n");
  EXPECT_EQ(output_of("check"), "");
  EXPECT_EQ(code_, 0);
  write("tests/one_test.cpp", "TEST(One, " + std::string(61, 'x') + ") {}\n");
  write("engine/two.h", "// Who is told the step, whoever it is.\n");
  const std::string found = output_of("check");
  EXPECT_EQ(code_, 1);
  EXPECT_THAT(found, HasSubstr("shape: test names over 60 characters: 1, at most 0\n"));
  EXPECT_THAT(found, HasSubstr("shape: sentences in the old dialect: 1, at most 0\n"));
}

TEST_F(Shape, check_names_types_of_one_name_that_meet) {
  write("engine/a.h",
        "// A.\n#pragma once\nnamespace engine {\nstruct Page;\nstruct Page {};\n}\n");
  write("engine/b.cpp",
        "namespace engine {\nnamespace {\nclass Page final {};\nstruct Line {};\n}\n}\n");
  write("engine/c.cpp",
        "namespace engine {\nnamespace {\nstruct Line {};\n}\nstruct Page::Part {};\n}\n");
  write("ui/page.h", "// A page.\n#pragma once\nnamespace ui {\nstruct Page {};\n}\n");
  write("app/one.cpp",
        "namespace app {\nnamespace {\ntemplate <typename T>\nstruct Row {};\n}\n}\n");
  write("app/two.cpp", "namespace app {\nnamespace {\nenum class Row { A };\n}\n}\n");
  write("engine/d.cpp", "int one() { return 1; }\n");
  EXPECT_EQ(output_of("check"),
            "shape: types of one name that meet: 2, at most 0\n"
            "    Row: app/one.cpp:4, app/two.cpp:3\n    Page: engine/a.h:5, engine/b.cpp:3\n");
}

TEST_F(Shape, counts_wording_of_pages_and_scripts) {
  write("engine/one.cpp", "int one() { return 1; }\n");
  write("docs/page.md",
        "# Page\n\nThe caller is told the step.\nIt goes on.\n\n| a | whoever asks |\n\n"
        "    code is told\n\n```\nwhoever\n```\n\nThe name `told as` is code.\n");
  write("assets/models/m/README.md", "What is told by a card is not checked: whoever.\n");
  write("scripts/one.sh",
        "#!/bin/sh\n# What is asked of it,\n# and whoever it was.\necho told  # anew\n");
  write("scripts/two.py", "\"\"\"Holds rows behind the others.\"\"\"\nx = 'whoever'\n");
  const auto found = nlohmann::json::parse(output_of("report --json"));
  EXPECT_EQ(found.at("values").at("sentences in the old dialect"), 5);
  EXPECT_THAT(found.at("worst").at("sentences in the old dialect"),
              ElementsAre("docs/page.md: 2", "scripts/one.sh: 2", "scripts/two.py: 1"));
  EXPECT_THAT(output_of("wording docs"), HasSubstr("docs/page.md:3: The caller is told the step."));
}

TEST_F(Shape, a_seed_draws_the_same_phrases_again) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "// A comment of some length, number " + std::to_string(i) + ".\nint v" +
            std::to_string(i) + ";\n";
  write("kernels/many.cpp", text);
  const std::string first = output_of("sample kernels --seed 7 --count 5");
  EXPECT_EQ(first, output_of("sample kernels --seed 7 --count 5"));
  EXPECT_NE(first, output_of("sample kernels --seed 8 --count 5"));
  EXPECT_THAT(first, HasSubstr("[comment]"));
}

TEST_F(Shape, sample_draws_from_a_path) {
  write("kernels/one.cpp", "// The comment of the first file, long enough.\nint one;\n");
  write("kernels/two.cpp", "// The comment of the second file, long enough.\nint two;\n");
  EXPECT_EQ(output_of("sample kernels/two.cpp"),
            "kernels/two.cpp:1 [comment]\n    The comment of the second file, long enough.\n");
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(output_of("sample kernels/three.cpp"),
              HasSubstr("kernels/three.cpp: neither a room"));
  EXPECT_EQ(code_, 1);
}

}  // namespace
