// Dialogs of two turns in the categories of MT-bench, made from the parts of the other tasks.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/data/random.h"
#include "engine/data/record.h"

namespace engine {

/// One turn: the user's question and a right answer of the assistant.
struct ChatTurn {
  std::string question;
  std::string answer;
  std::string task;    ///< the task whose checker reads the answer: "arith", .., or "chat" itself
  std::string check;   ///< JSON object, that checker's input
  std::string result;  ///< the short answer
};

/// Both turns.
using ChatDialog = std::array<ChatTurn, 2>;

/// Draws a dialog of one category.
/// @return  nothing if the draw fails, or its content key belongs to another split
using DrawDialog = std::optional<ChatDialog> (*)(Random& rng, int level, Split split);

// Sums, plans and programs (sums.cpp). The checkers of arith, blocks and py read the answers.
/// A word problem, then one more step.
std::optional<ChatDialog> math_dialog(Random& rng, int level, Split split);
/// An estimate with stated assumptions, then a multiple of it.
std::optional<ChatDialog> fermi_dialog(Random& rng, int level, Split split);
/// A plan for blocks, then its length or the state after its first action.
std::optional<ChatDialog> reasoning_dialog(Random& rng, int level, Split split);
/// The user asks for a Python function, then for the same function under another name.
std::optional<ChatDialog> coding_dialog(Random& rng, int level, Split split);

// Facts of the knowledge base (facts.cpp). The checker of kb reads answers of common_sense_dialog().
/// Two questions of the kb task.
std::optional<ChatDialog> common_sense_dialog(Random& rng, int level, Split split);
/// A numbered list of facts about something that grows or lies in nature, then one item or more facts.
std::optional<ChatDialog> stem_dialog(Random& rng, int level, Split split);
/// The same about something that people make.
std::optional<ChatDialog> humanities_dialog(Random& rng, int level, Split split);
/// A description, then one fact.
std::optional<ChatDialog> knowledge_dialog(Random& rng, int level, Split split);
/// A list of members of a class without some of them, then the list in another order.
std::optional<ChatDialog> generic_dialog(Random& rng, int level, Split split);
/// The facts that a member would have if it belonged to another class, and then one more.
std::optional<ChatDialog> counterfactual_dialog(Random& rng, int level, Split split);
/// The numbers of a text as CSV, JSON or a list, then in another of these formats.
std::optional<ChatDialog> extraction_dialog(Random& rng, int level, Split split);

// Letters, paragraphs and personas (writing.cpp). The checker of write reads the paragraphs.
/// A letter or a paragraph, then a variation of it.
std::optional<ChatDialog> writing_dialog(Random& rng, int level, Split split);
/// A persona describes its deeds, then further ones.
std::optional<ChatDialog> roleplay_dialog(Random& rng, int level, Split split);

/// Checks an answer to a turn whose task is "chat", for the forms of facts.cpp.
/// @param check  ChatTurn::check
/// @return  nothing if the form is none of them
/// @throws nlohmann::json::exception, Error(BadInput)  if check does not have the form of a turn
std::optional<CheckResult> check_facts_turn(const nlohmann::json& check, std::string_view text);
/// As check_facts_turn(), for the forms of writing.cpp.
std::optional<CheckResult> check_writing_turn(const nlohmann::json& check, std::string_view text);

/// The items as a list: "1. a\n2. b".
std::string numbered_list(const std::vector<std::string>& items);
/// The items of a list whose lines are numbered from 1.
/// @return  nothing if the lines are numbered otherwise
std::optional<std::vector<std::string>> read_numbered_list(std::string_view text);

}  // namespace engine
