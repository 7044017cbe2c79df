// Dialogs of two turns, by category, made of what the other tasks are made of.
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

/// What a user says, and what an assistant might answer.
struct ChatTurn {
  std::string question;
  std::string answer;
  std::string task;    ///< whose checker reads answers: "arith", .., "chat" for those of this task
  std::string check;   ///< JSON object for it
  std::string result;  ///< the short form of the answer
};

using ChatDialog = std::array<ChatTurn, 2>;

/// @return  nothing if the draw leads nowhere or its content lies outside the split
using DrawDialog = std::optional<ChatDialog> (*)(Random& rng, int level, Split split);

// Sums, plans, programs (sums.cpp): the checkers are those of arith, blocks, py.
std::optional<ChatDialog> math_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> fermi_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> reasoning_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> coding_dialog(Random& rng, int level, Split split);

// Facts of the small world (facts.cpp): the checker of common-sense is that of kb.
std::optional<ChatDialog> common_sense_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> stem_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> humanities_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> knowledge_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> generic_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> counterfactual_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> extraction_dialog(Random& rng, int level, Split split);

// Letters, paragraphs and persons (writing.cpp): the checker of paragraphs is that of write.
std::optional<ChatDialog> writing_dialog(Random& rng, int level, Split split);
std::optional<ChatDialog> roleplay_dialog(Random& rng, int level, Split split);

/// Reads an answer to a turn whose task is "chat".
/// @param check  ChatTurn::check
/// @return  nothing if its form is none of these
/// @throws nlohmann::json::exception, Error(BadInput)  if check is not what a turn writes
std::optional<CheckResult> check_facts_turn(const nlohmann::json& check, std::string_view text);
std::optional<CheckResult> check_writing_turn(const nlohmann::json& check, std::string_view text);

/// "1. a\n2. b".
std::string numbered_list(const std::vector<std::string>& items);
/// The items of a list that counts its lines from 1.
/// @return  nothing if it does not
std::optional<std::vector<std::string>> read_numbered_list(std::string_view text);

}  // namespace engine
