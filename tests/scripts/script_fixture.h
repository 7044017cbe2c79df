// A temporary folder for tests of scripts, and helpers to run them and read their Markdown tables.
#pragma once

#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/needs.h"

namespace test {

class ScriptFixture : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
    std::string name = testing::TempDir() + "scriptsXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// Runs `scripts/script out() more` with the environment settings.
  /// @return  its exit code
  int code_of(const std::string& settings,
              const std::string& script,
              const std::string& more = {}) const {
    const std::string command = "env ASKED=" + log() + " " + settings +
                                " " DECOSCOPE_SOURCE_DIR "/scripts/" + script + " " + out() + " " +
                                more + " >" + folder_ + "/printed 2>" + folder_ + "/errors";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  /// Standard error of the last code_of().
  std::string errors() const { return read(folder_ + "/errors"); }
  /// The lines that programs appended to $ASKED since the last calls().
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    std::ifstream file(log());
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    std::filesystem::remove(log());
    return lines;
  }
  std::string out() const { return folder_ + "/results"; }
  std::string log() const { return folder_ + "/asked"; }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  /// Writes an executable shell script.
  static void write_program(const std::string& path, const std::string& text) {
    write(path, text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

 private:
  std::string folder_;
};

/// The cells of all rows of Markdown tables, including header rows.
inline std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| ---")) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(2));
    for (std::string cell; std::getline(parts, cell, '|');) {
      const auto first = cell.find_first_not_of(' ');
      if (first != std::string::npos)
        cells.push_back(cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    }
    rows.push_back(cells);
  }
  return rows;
}

}  // namespace test
