// The knowledge base of the kb task: classes with relations, members with numbers. CMake compiles
// assets/data/kb.txt into the program.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

constexpr int kKbRelations = 8;   ///< found, part, can, made, used, needs, gives, pair
constexpr int kKbAttributes = 4;  ///< weight, length, price, age

/// A class: "fish".
struct KbClass {
  std::string name;
  bool mass = false;                             ///< members have no article: "wheat"
  std::array<std::string, kKbRelations> values;  ///< the value of each relation
};

/// A member of a class: "salmon".
struct KbMember {
  std::string name;
  int class_index = 0;                       ///< in KbWorld::classes
  std::array<int, kKbAttributes> numbers{};  ///< 1..99 each
};

/// The whole knowledge base.
struct KbWorld {
  std::vector<KbClass> classes;
  std::vector<KbMember> members;
};

/// Reads the text of kb.txt. @throws Error(BadInput)  "kb.txt:line: .."
KbWorld read_kb(std::string_view text);

/// The knowledge base that is compiled into the program.
const KbWorld& kb_world();

/// A member with its article: "a salmon", "an owl", "wheat".
std::string kb_phrase(const KbWorld& world, const KbMember& member);

/// A noun with its article: "a fish", "an insect".
std::string with_article(std::string_view noun);

}  // namespace engine
