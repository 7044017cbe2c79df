// Reads recorded results of other tokenizers: a file with a JSON object for each text.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/tokenizer_path.h"

namespace engine::test {

/// Checks one line: the object with the fields "text", "ids" and "decoded".
using CheckCase = std::function<void(const Tokenizer&, const nlohmann::json& one)>;

/// The token ids in a field of a case.
inline std::vector<TokenId> ids_of(const nlohmann::json& one, const char* field) {
  return one.at(field).get<std::vector<TokenId>>();
}

/// Opens the tokenizer at `path`, which must give no notice, and checks the `n_cases` lines of a
/// file.
inline void check_cases(const std::filesystem::path& path,
                        const std::filesystem::path& file,
                        int n_cases,
                        const CheckCase& check) {
  std::vector<std::string> notices;
  const auto tokenizer = open_tokenizer_at(path.string(), {}, notices);
  EXPECT_EQ(notices, std::vector<std::string>{});
  std::ifstream in(file);
  int n = 0;
  for (std::string line; std::getline(in, line); n++) {
    const nlohmann::json one = nlohmann::json::parse(line);
    SCOPED_TRACE(one.at("text").dump());
    check(*tokenizer, one);
  }
  EXPECT_EQ(n, n_cases);
}

/// Checks the cases.jsonl of each of the five tokenizers in a folder of tests/fixtures.
inline void check_five_tokenizers(const char* folder, int n_cases, const CheckCase& check) {
  const auto fixtures = std::filesystem::path(DECOSCOPE_SOURCE_DIR) / "tests/fixtures" / folder;
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures)) {
    SCOPED_TRACE(entry.path().filename().string());
    check_cases(entry.path(), entry.path() / "cases.jsonl", n_cases, check);
    n++;
  }
  EXPECT_EQ(n, 5);
}

}  // namespace engine::test
