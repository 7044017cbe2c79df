// Replays the fuzzers' seeds, and many files made of them by changes of bytes that are the same in every run.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"
#include "tests/support/files.h"

namespace engine::test {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

struct Target {
  const char* folder;
  void (*run)(const std::uint8_t*, std::size_t);
  int n_changed;  // changed files made of each seed
};

class Corpus : public testing::TestWithParam<Target> {
 protected:
  static std::vector<Bytes> seeds() {
    std::vector<std::string> paths;  // sorted, because the changes depend on the order
    for (const auto& entry : fs::directory_iterator(
             fs::path(DECOSCOPE_SOURCE_DIR "/tests/fuzz/corpus") / GetParam().folder))
      paths.push_back(entry.path().string());
    std::ranges::sort(paths);
    std::vector<Bytes> all;
    for (const std::string& path : paths) {
      const std::string bytes = read_file(path);
      all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
  }
  static void run(const Bytes& bytes) { GetParam().run(bytes.data(), bytes.size()); }
};

/// Changes, removes, repeats or inserts some bytes.
Bytes changed(Bytes bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (std::size_t n = 1 + below(4); n > 0 && !bytes.empty(); n--) {
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
    const auto end =
        at + static_cast<std::ptrdiff_t>(
                 below(std::min<std::size_t>(16, bytes.size() - static_cast<std::size_t>(at))) + 1);
    const Bytes piece(bytes.begin() + at, bytes.begin() + end);
    switch (below(5)) {
      case 0:
        bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        bytes[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 2:
        bytes.erase(bytes.begin() + at, bytes.begin() + end);
        break;
      case 3:
        bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
        break;
      default:
        bytes.resize(static_cast<std::size_t>(at));
        break;
    }
  }
  return bytes;
}

TEST_P(Corpus, seeds_are_read_or_refused) {
  const std::vector<Bytes> all = seeds();
  ASSERT_FALSE(all.empty());
  for (const Bytes& bytes : all) run(bytes);
}

TEST_P(Corpus, changed_seeds_are_read_or_refused) {
  std::mt19937 random(34);
  for (const Bytes& bytes : seeds())
    for (int i = 0; i < GetParam().n_changed; i++) run(changed(bytes, random));
}

INSTANTIATE_TEST_SUITE_P(Files,
                         Corpus,
                         testing::Values(Target{"gguf", fuzz_gguf, 1000},
                                         Target{"tokenizer_json", fuzz_tokenizer_json, 500},
                                         Target{"tiktoken", fuzz_tiktoken, 500},
                                         Target{"template", fuzz_template, 200}),
                         [](const auto& of) { return std::string(of.param.folder); });

}  // namespace
}  // namespace engine::test
