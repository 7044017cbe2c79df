// Records must not change by accident: models are trained on them, and a resumed training run continues
// with the next record.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/record.h"

namespace engine {
namespace {

std::uint64_t hash_of_task(const std::string& name) {
  std::string all;
  for (const Split split : {Split::Train, Split::Test})
    for (int level = 1; level <= 3; level++)
      for (int i = 0; i < 10; i++)
        all += to_json_line(*task_generator(name).make(split, level, i)) + "\n";
  return fnv1a(all);
}

TEST(Golden, records_are_the_same_on_every_machine) {
  const std::pair<const char*, std::uint64_t> expected[] = {
      {"arith", 1205607269572874219u},   {"kb", 6687370607404739405u},
      {"sql", 7712330226412941518u},     {"py", 14577173232580920030u},
      {"blocks", 12116237974486819005u}, {"write", 13240366035173657561u},
      {"chat", 5100292864997439952u},    {"plain", 5125995681796069971u}};
  for (const auto& [name, hash] : expected)
    EXPECT_EQ(hash_of_task(name), hash)
        << name << ": if the change is intended, state it in the commit";
}

TEST(Golden, bundled_prompts_are_records_of_the_test_split) {
  std::ifstream file(DECOSCOPE_SOURCE_DIR "/assets/prompts/bundled.jsonl");
  std::string line;
  int n = 0;
  while (std::getline(file, line)) {
    const auto entry = nlohmann::json::parse(line);
    const std::string id = entry.at("id");  // task/level/test/index
    const auto first = id.find('/');
    const auto last = id.rfind('/');
    ASSERT_NE(id.find("/test/"), std::string::npos) << id;
    const auto record =
        task_generator(id.substr(0, first))
            .make(Split::Test, id[first + 1] - '0', std::stoll(id.substr(last + 1)));
    ASSERT_TRUE(record) << id;
    EXPECT_EQ(record->prompt, entry.at("prompt").get<std::string>()) << id;
    n++;
  }
  EXPECT_GE(n, 12);
  EXPECT_LE(n, 20);
}

}  // namespace
}  // namespace engine
