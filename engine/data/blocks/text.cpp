#include "engine/data/blocks/text.h"

#include <algorithm>
#include <set>

#include "engine/data/text.h"

namespace engine {

namespace {

bool is_clear(const BlocksScene& scene, std::string_view block) {
  const auto it = scene.find(block);
  if (it == scene.end() || it->second == "hand") return false;
  return std::none_of(scene.begin(), scene.end(),
                      [&](const auto& entry) { return entry.second == block; });
}

std::string held_block(const BlocksScene& scene) {
  for (const auto& [block, below] : scene)
    if (below == "hand") return block;
  return {};
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The words before each "block": "stack the red block on the blue block" -> red, blue.
std::vector<std::string> named_blocks(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); i++)
    if (words[i] == "block") names.push_back(words[i - 1]);
  return names;
}

// The fact of a phrase ("on red blue"); empty if the phrase is not understood.
std::string fact_of_phrase(std::string_view phrase) {
  const std::string text = normalised(phrase);
  const auto words = split_text(text, ' ');
  const auto names = named_blocks(words);
  if (text == "the hand is empty") return "handempty";
  if (names.empty() || words.size() < 4) return {};
  const std::string subject = "the " + names[0] + " block is ";
  if (names.size() == 1 && text == subject + "clear") return "clear " + names[0];
  if (names.size() == 1 && text == subject + "on the table") return "ontable " + names[0];
  if (names.size() == 1 && text == subject + "in the hand") return "inhand " + names[0];
  if (names.size() == 1 && text == "the hand is holding the " + names[0] + " block")
    return "holding " + names[0];
  if (names.size() == 2 && text == subject + "on top of the " + names[1] + " block")
    return "on " + names[0] + " " + names[1];
  return {};
}

}  // namespace

const std::vector<std::string>& block_colours() {
  static const std::vector<std::string> colours = {"red",   "blue",    "orange", "yellow",
                                                   "white", "magenta", "black",  "cyan",
                                                   "green", "violet",  "silver", "gold"};
  return colours;
}

std::vector<std::string> scene_facts(const BlocksScene& scene) {
  std::vector<std::string> facts;
  for (const auto& [block, below] : scene)
    if (is_clear(scene, block)) facts.push_back("clear " + block);
  const std::string held = held_block(scene);
  if (held.empty()) {
    facts.emplace_back("handempty");
  } else {
    facts.push_back("holding " + held);
  }
  for (const auto& [block, below] : scene)
    if (below != "table" && below != "hand") facts.push_back("on " + block + " " + below);
  for (const auto& [block, below] : scene)
    if (below == "table") facts.push_back("ontable " + block);
  return facts;
}

std::string fact_phrase(std::string_view fact) {
  const auto words = split_text(fact, ' ');
  if (words[0] == "handempty") return "the hand is empty";
  if (words[0] == "holding") return "the hand is holding the " + words[1] + " block";
  if (words[0] == "clear") return "the " + words[1] + " block is clear";
  if (words[0] == "ontable") return "the " + words[1] + " block is on the table";
  return "the " + words[1] + " block is on top of the " + words[2] + " block";
}

std::optional<BlocksScene> read_state_text(std::string_view text) {
  std::string list = replaced_all(std::string(trimmed(text)), " and ", ", ");
  while (!list.empty() && (list.back() == '.' || list.back() == ' ')) list.pop_back();
  std::set<std::string> facts;
  BlocksScene scene;
  for (const std::string& phrase : split_text(list, ',')) {
    if (trimmed(phrase).empty()) continue;
    const std::string fact = fact_of_phrase(phrase);
    if (fact.empty()) return std::nullopt;
    const auto words = split_text(fact, ' ');
    if (words[0] == "inhand") continue;  // repeats a "holding" fact
    facts.insert(fact);
    if (words[0] == "on") scene[words[1]] = words[2];
    if (words[0] == "ontable") scene[words[1]] = "table";
    if (words[0] == "holding") scene[words[1]] = "hand";
  }
  const auto expected = scene_facts(scene);
  if (scene.empty() || facts != std::set<std::string>(expected.begin(), expected.end()))
    return std::nullopt;
  return scene;
}

std::optional<BlocksMove> read_move(std::string_view line) {
  const std::string text = " " + normalised(line) + " ";
  const auto names = named_blocks(split_text(text, ' '));
  using Kind = BlocksMove::Kind;
  if (names.size() == 1) {
    if (contains(text, " put down ") || contains(text, " down on the table ") ||
        contains(text, " place the ") || contains(text, " put the ") || contains(text, " set the "))
      return BlocksMove{Kind::PutDown, names[0], {}};
    if (contains(text, " pick up ") || contains(text, " lift ") || contains(text, " take "))
      return BlocksMove{Kind::PickUp, names[0], {}};
  }
  if (names.size() == 2) {
    if (contains(text, " unstack ") || contains(text, " off the ") || contains(text, " lift ") ||
        contains(text, " take "))
      return BlocksMove{Kind::Unstack, names[0], names[1]};
    if (contains(text, " stack ") || contains(text, " place ") || contains(text, " put ") ||
        contains(text, " set "))
      return BlocksMove{Kind::Stack, names[0], names[1]};
  }
  return std::nullopt;
}

std::string apply_move(BlocksScene& scene, const BlocksMove& move) {
  using Kind = BlocksMove::Kind;
  const std::string held = held_block(scene);
  if (!scene.contains(move.block)) return "there is no " + move.block + " block";
  std::string& below = scene.find(move.block)->second;
  if (move.kind == Kind::PickUp || move.kind == Kind::Unstack) {
    if (!held.empty()) return "the hand holds the " + held + " block";
    if (!is_clear(scene, move.block)) return "the " + move.block + " block is not clear";
    const std::string expected = move.kind == Kind::PickUp ? "table" : move.other;
    if (below != expected)
      return "the " + move.block + " block is on the " + below + ", not on the " + expected;
    below = "hand";
    return {};
  }
  if (held != move.block) return "the hand does not hold the " + move.block + " block";
  if (move.kind == Kind::PutDown) {
    below = "table";
    return {};
  }
  if (!is_clear(scene, move.other)) return "the " + move.other + " block is not clear";
  below = move.other;
  return {};
}

}  // namespace engine
