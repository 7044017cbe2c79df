// Blocksworld in English: facts and actions as phrases, and a reader that turns phrases into moves and
// simulates them one by one. The reader is independent of the generator (world.h), so it can check it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// A state: block -> the block below it, "table" or "hand".
using BlocksScene = std::map<std::string, std::string, std::less<>>;

/// The colours that replace the letters a..l of the public problems. [12]
const std::vector<std::string>& block_colours();

/// The facts of a state in the notation of the public planning files, with colours for letters:
/// "on red blue", "ontable blue", "holding red", "clear red", "handempty".
std::vector<std::string> scene_facts(const BlocksScene& scene);

/// A fact in English: "on red blue" -> "the red block is on top of the blue block".
std::string fact_phrase(std::string_view fact);

/// Reads the state that a list of phrases describes ("the red block is clear, the hand is ..").
/// @return  nothing if a phrase is not understood, or the facts are not exactly those of a state
std::optional<BlocksScene> read_state_text(std::string_view text);

/// One action.
struct BlocksMove {
  /// The four actions of Blocksworld.
  enum class Kind { PickUp, Unstack, PutDown, Stack } kind;
  std::string block;  ///< the colour of the moved block
  std::string other;  ///< of the block below it (Unstack, Stack), else empty
};

/// Reads one action in any wording: "pick up the red block", "take the red block off the blue block".
/// @return  nothing if the line is no action
std::optional<BlocksMove> read_move(std::string_view line);

/// Changes the state by the move.
/// @return  empty, or why the move is impossible; the state is then unchanged
std::string apply_move(BlocksScene& scene, const BlocksMove& move);

}  // namespace engine
