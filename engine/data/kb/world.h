// The small world of the kb task, read from assets/data/kb.txt (part of the program).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

constexpr int kKbRelations = 8;   ///< found, part, can, made, used, needs, gives, pair
constexpr int kKbAttributes = 4;  ///< weight, length, price, years

struct KbClass {
  std::string name;
  bool mass = false;  ///< members without an article: "wheat"
  std::array<std::string, kKbRelations> values;
};

struct KbMember {
  std::string name;
  int class_index = 0;
  std::array<int, kKbAttributes> numbers{};
};

struct KbWorld {
  std::vector<KbClass> classes;
  std::vector<KbMember> members;
};

/// @throws Error(BadInput)  "kb.txt:line: .."
KbWorld read_kb(std::string_view text);

/// The world that is part of the program.
const KbWorld& kb_world();

/// "a salmon", "an owl", "wheat".
std::string kb_phrase(const KbWorld& world, const KbMember& member);

/// "a fish", "an insect".
std::string with_article(std::string_view noun);

}  // namespace engine
