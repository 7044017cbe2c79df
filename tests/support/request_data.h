// A small folder of open data sets for requests: gsm8k and creak, with invented texts.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/files.h"

namespace engine::test {

/// The evaluation question of the folder's gsm8k. Its training part has the same question with
/// another ending, so that this overlap has to be found.
inline const std::string kEvaluated =
    "Before the long summer holiday begins Anna buys three red apples and four green pears at the "
    "market.";

/// Writes 96 training questions of gsm8k and 60 claims of creak.
inline void write_request_data(const std::string& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder + "/gsm8k");
  fs::create_directories(folder + "/creak");
  const auto gsm8k = [](const std::string& question) {
    return R"({"question": ")" + question + R"(", "answer": "#### 7"})" + "\n";
  };
  std::string questions = gsm8k(kEvaluated + " How many fruits are there?");
  for (const char* name : {"Anna", "Ben", "Carla", "Dan", "Eve", "Finn", "Gina", "Hugo"})
    for (const char* thing : {"apples", "pens", "cups", "books", "coins", "shoes", "stamps",
                              "plums", "maps", "hats", "keys", "balls"})
      questions += gsm8k(std::string(name) + " has 3 " + thing + " and buys 4 more. How many?");
  write_file(folder + "/gsm8k/train.jsonl", questions);
  write_file(folder + "/gsm8k/test.jsonl", gsm8k(kEvaluated + " How much does she pay?"));
  const auto creak = [](const std::string& sentence) {
    return R"({"sentence": ")" + sentence + R"(", "explanation": "It is.", "label": "true"})" +
           "\n";
  };
  std::string claims;
  for (const char* animal : {"cat", "dog", "cow", "hen", "fox", "bee"})
    for (const char* act :
         {"sleep", "eat", "run", "swim", "jump", "play", "learn", "see", "hear", "walk"})
      claims += creak(std::string("A ") + animal + " can " + act + ".");
  write_file(folder + "/creak/train.json", claims);
  write_file(folder + "/creak/dev.json", creak("A cat can sleep.") + creak("A wolf can howl."));
}

}  // namespace engine::test
