// Blocksworld in English: facts and actions as phrases, and phrases read back into moves that are
// simulated one by one. Reading knows nothing of the generator's tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// What lies where: block -> the block below it, "table" or "hand".
using BlocksScene = std::map<std::string, std::string, std::less<>>;

/// The colours of the twelve letters a..l of the public problems.
const std::vector<std::string>& block_colours();

/// Facts in the words of the public planning files with colours for letters: "on red blue",
/// "ontable blue", "holding red", "clear red", "handempty".
std::vector<std::string> scene_facts(const BlocksScene& scene);

/// "on red blue" -> "the red block is on top of the blue block".
std::string fact_phrase(std::string_view fact);

/// The scene that a list of fact phrases describes ("the red block is clear, the hand is ..").
/// @return  nothing if a phrase is not understood, or the facts are not exactly those of a scene
std::optional<BlocksScene> read_state_text(std::string_view text);

struct BlocksMove {
  enum class Kind { PickUp, Unstack, PutDown, Stack } kind;
  std::string block;
  std::string other;
};

/// Reads one action in any of the wordings: "pick up the red block", "take the red block off the
/// blue block". @return  nothing if it is not one
std::optional<BlocksMove> read_move(std::string_view line);

/// Makes the move.
/// @return  empty, or why it cannot be made (the scene is then unchanged)
std::string apply_move(BlocksScene& scene, const BlocksMove& move);

}  // namespace engine
