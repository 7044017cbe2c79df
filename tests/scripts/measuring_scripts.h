// The scripts run with a program of known figures in place of ours, and what they print and ask.
#pragma once

#include <sys/wait.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/needs.h"

namespace test {

class MeasuringScripts : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
    std::string name = testing::TempDir() + "measuringXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// Runs the script on out(), its environment's settings before it and more arguments behind.
  /// @return  its exit code
  int code_of(const std::string& settings,
              const std::string& script,
              const std::string& more = {}) const {
    const std::string source = DECOSCOPE_SOURCE_DIR;
    const std::string command = "DECOSCOPE_RR_REPEATS=1 DECOSCOPE_RR_SETTLE=0 ASKED=" + log() +
                                " DECOSCOPE_PROGRAM=" + source +
                                "/tests/scripts/small_program.py " + settings + " " + source +
                                "/scripts/" + script + " " + out() + " " + more + " >" + folder_ +
                                "/printed 2>" + folder_ + "/told";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  /// What it prints, and it succeeds.
  std::string printed(const std::string& settings, const std::string& script) const {
    EXPECT_EQ(code_of(settings, script), 0) << read(folder_ + "/told");
    return read(folder_ + "/printed");
  }
  /// What the last one told on standard error.
  std::string told() const { return read(folder_ + "/told"); }
  /// The calls since the last time this was asked.
  std::vector<std::string> asked() const {
    std::vector<std::string> calls;
    std::ifstream file(log());
    for (std::string line; std::getline(file, line);) calls.push_back(line);
    std::filesystem::remove(log());
    return calls;
  }
  std::string out() const { return folder_ + "/results"; }
  std::string log() const { return folder_ + "/asked"; }
  /// What is left of documents that were not finished.
  std::vector<std::string> parts() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(out()))
      if (entry.path().extension() == ".part") found.push_back(entry.path().string());
    return found;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string folder_;
};

/// The cells of all rows of Markdown tables, their heads among them.
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

/// A cell by the names of its row and its column.
inline std::string cell(const std::string& text,
                        const std::string& row,
                        const std::string& column) {
  std::size_t at = 0;
  for (const auto& cells : rows_of(text)) {
    const auto found = std::ranges::find(cells, column);
    if (found != cells.end()) at = static_cast<std::size_t>(found - cells.begin());
    if (at > 0 && cells[0] == row && at < cells.size()) return cells[at];
  }
  return "none";
}

}  // namespace test
