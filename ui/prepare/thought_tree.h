// The layout of a tree of thoughts, and the texts of its boxes. Each depth is a column; children of one parent are adjacent, so branches do
// not cross.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "ui/widgets/theme.h"

namespace engine {
struct SearchRecord;
struct ThoughtRecord;
}  // namespace engine

namespace ui {

/// A box: the question, a thought, or the answer.
struct ThoughtBox {
  /// The content of a box.
  enum class Kind { Question, Thought, Answer };
  Kind kind = Kind::Question;
  int thought = -1;  // index of the thought in the search; -1: the question or the answer
  int parent = -1;   // index of the parent's box, an earlier one; -1: this is the question
  int column = 0;
  float line = 0;  // line from the top; fractional if the column is centred on its parents
  Mean mean = Mean::Prefix;
  bool on_chain = false;  // part of the chain that leads to the answer
};

/// All boxes of a search.
struct ThoughtLayout {
  std::vector<ThoughtBox> boxes;  // ordered by column, the question first
  int n_columns = 0, n_lines = 0;
  int n_kept = 0, n_pruned = 0, n_unreadable = 0, n_open = 0;  // counts of thoughts
};

/// Lays out the events so far; the answer gets a box after its chain when it is known.
ThoughtLayout thought_layout(const engine::SearchRecord& search);

/// Returns the result of a thought as a meaning: Accepted is kept, Rejected is pruned, Unused is unreadable, Guess is not valued yet.
Mean fate_of(const engine::ThoughtRecord& thought);

/// Returns the runs that wrote the content of a box, in this order: the thought, its value, its continuation.
std::vector<engine::RunId> runs_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// Returns the run after `shown` in a cyclic list; the first if the list does not contain `shown`, 0 if the list is empty.
engine::RunId run_after(std::span<const engine::RunId> runs, engine::RunId shown);
/// Returns the index of the first box that a run has written to; -1: none.
int box_of(const ThoughtLayout& layout, const engine::SearchRecord& search, engine::RunId run);
/// Returns the search that a run belongs to, or nullptr.
const engine::SearchRecord* search_of(std::span<const engine::SearchRecord> searches,
                                      engine::RunId run);

/// The text of a box: two parts, of which the second may be empty.
struct BoxWords {
  std::string first, second;
};
/// Returns the text of a box.
BoxWords words_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// Returns the value of a thought: "7"; "?" if none was found; "..." if it is not valued yet; "-" if it is never valued.
std::string value_words(const engine::ThoughtRecord& thought);
/// Returns the tooltip of a box.
std::string facts_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// Returns the state of a search: "arith/1/test/4: depth 2 of 4, 6 thoughts: 2 kept, 4 pruned".
std::string search_words(const engine::SearchRecord& search, const ThoughtLayout& layout);
/// Returns the settings of a search: "3 thoughts per node, ...".
std::string settings_words(const engine::SearchBegun& begun);

}  // namespace ui
