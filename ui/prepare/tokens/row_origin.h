// The origin of a step's row in words.
#pragma once

#include <string>

#include "engine/base/token_tree.h"

namespace engine {
struct GuessSource;
struct RunRecord;
struct StepRecord;
}  // namespace engine

namespace ui {

/// Returns true if draft heads propose in a run (its options have a tree of ranks). Head d then fills depth d of the tree.
bool drafts_by_heads(const engine::RunRecord& run);
/// The source of a run's proposals, as far as it changes how their tags read.
enum class Proposer { Other, Heads, Successors };
/// Returns the source of a run's proposals.
Proposer proposer_of(const engine::RunRecord& run);
/// Returns the text that the tag of a copied row names ("this text"); null for other rows.
const char* copied_text(engine::RowTag tag);
/// Returns the origin: "pool: guess 2, token 1", "successor: depth 2, rank 0", "draft: depth 2, rank 0",
/// "draft head 2, rank 0".
std::string row_origin(engine::RowTag tag, Proposer proposer);
/// Returns the origin of a row. For a row that was copied from a text, this is the text and the position.
std::string row_origin(const engine::RunRecord& run, const engine::StepRecord& step, int row);

/// Returns the source of a row; null if the row was not copied from a text.
const engine::GuessSource* source_of(const engine::StepRecord& step, int row);
/// Returns the source: "copied from the prompt, position 12", "copied from run 3, position 40", "copied from
/// notes.txt, token 7".
std::string source_words(const engine::GuessSource& source, const engine::RunRecord& run);
/// Returns the name of the file that the run copies from, without folders; "the file" if it is not recorded.
std::string file_words(const engine::RunRecord& run);
/// Returns how often the token followed: "3 of 4 times"; empty if it was not counted.
std::string seen_words(const engine::GuessSource& source);

}  // namespace ui
