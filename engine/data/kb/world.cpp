#include "engine/data/kb/world.h"

#include <algorithm>
#include <charconv>

#include "engine/base/types.h"
#include "engine/data/text.h"

namespace engine {

extern const char* const kKbText;

namespace {

constexpr std::string_view kRelationNames[kKbRelations] = {"found", "part",  "can",   "made",
                                                           "used",  "needs", "gives", "pair"};

[[noreturn]] void refuse(int line, const std::string& what) {
  throw Error(ErrorCode::BadInput, "kb.txt:" + std::to_string(line) + ": " + what);
}

KbMember read_member(std::string_view text, int class_index, int line) {
  const auto words = split_text(text, ' ');
  if (words.size() != 2 + kKbAttributes)
    refuse(line, "member: found " + std::to_string(words.size() - 1) +
                     " words, expected a name and four numbers");
  KbMember member;
  member.name = words[1];
  member.class_index = class_index;
  for (int i = 0; i < kKbAttributes; i++) {
    const std::string& word = words[2 + i];
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), member.numbers[i]);
    if (error != std::errc() || end != word.data() + word.size() || member.numbers[i] < 1 ||
        member.numbers[i] > 99)
      refuse(line, "member: found '" + word + "', expected a number from 1 to 99");
  }
  return member;
}

}  // namespace

KbWorld read_kb(std::string_view text) {
  KbWorld world;
  int number = 0;
  for (const std::string& raw : split_text(text, '\n')) {
    number++;
    std::string_view line = trimmed(raw);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("class ")) {
      KbClass c;
      line.remove_prefix(6);
      c.mass = line.ends_with(" mass");
      if (c.mass) line.remove_suffix(5);
      c.name = line;
      world.classes.push_back(std::move(c));
      continue;
    }
    if (world.classes.empty())
      refuse(number, "found a line before the first class, expected 'class NAME'");
    if (line.starts_with("member ")) {
      world.members.push_back(
          read_member(line, static_cast<int>(world.classes.size()) - 1, number));
      continue;
    }
    const auto colon = line.find(": ");
    const auto name = line.substr(0, colon);
    const auto it = std::find(std::begin(kRelationNames), std::end(kRelationNames), name);
    if (colon == std::string_view::npos || it == std::end(kRelationNames))
      refuse(number, "found '" + std::string(line) + "', expected a relation");
    world.classes.back().values[it - std::begin(kRelationNames)] = line.substr(colon + 2);
  }
  for (const KbClass& c : world.classes)
    for (const auto& value : c.values)
      if (value.empty())
        refuse(number, "class " + c.name + ": found no value for a relation, expected all eight");
  return world;
}

const KbWorld& kb_world() {
  static const KbWorld world = read_kb(kKbText);
  return world;
}

std::string with_article(std::string_view noun) {
  const bool vowel = std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(noun);
}

std::string kb_phrase(const KbWorld& world, const KbMember& member) {
  return world.classes[member.class_index].mass ? member.name : with_article(member.name);
}

}  // namespace engine
