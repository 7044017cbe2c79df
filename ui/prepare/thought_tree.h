// A tree of thoughts laid out as boxes, and what is said of them: a column for each depth, in which
// thoughts stand one below the other, those of one parent together and no two chains crossing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/widgets/theme.h"

namespace ui {

struct ThoughtBox {
  enum class Kind { Question, Thought, Answer };
  Kind kind = Kind::Question;
  int thought = -1;  // among the search's; -1: the question, or the answer
  int parent = -1;   // among the boxes, before this one; -1: it is the question
  int column = 0;
  float line = 0;  // from the top; not whole where a column is centred on its parents
  Mean mean = Mean::Prefix;
  bool on_chain = false;  // of the chain that the answer stands on
};

struct ThoughtLayout {
  std::vector<ThoughtBox> boxes;  // column by column, the question first
  int n_columns = 0, n_lines = 0;
  int n_kept = 0, n_pruned = 0, n_unreadable = 0, n_open = 0;  // thoughts, as judged last
};

/// Of what was told so far; the answer has a box behind its chain once there is one.
ThoughtLayout thought_layout(const engine::SearchRecord& search);

/// What became of a thought, as its mark says it: Accepted is kept, Rejected pruned, Unused
/// unreadable, Guess not judged yet.
Mean fate_of(const engine::ThoughtRecord& thought);

/// The runs that wrote what a box stands for, in their order: a thought, its value, where it leads.
std::vector<engine::RunId> runs_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// Of several runs the one behind `shown`, from the front again behind the last; the first where
/// `shown` is none of them, and 0 where there is none.
engine::RunId run_after(std::span<const engine::RunId> runs, engine::RunId shown);
/// The box that a run wrote something of; -1: none.
int box_of(const ThoughtLayout& layout, const engine::SearchRecord& search, engine::RunId run);
/// The search a run wrote for, as far as was told; nullptr: none.
const engine::SearchRecord* search_of(std::span<const engine::SearchRecord> searches,
                                      engine::RunId run);

/// What stands in a box: a line, and one below it that may be empty.
struct BoxWords {
  std::string first, second;
};
BoxWords words_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// "7"; "?": no score stood in what was written; "...": not valued yet; "-": it never was.
std::string value_words(const engine::ThoughtRecord& thought);
/// All there is to say of a box, in several lines.
std::string facts_of(const engine::SearchRecord& search, const ThoughtBox& box);
/// Where the search is: "arith/1/test/4: depth 2 of 4, 6 thoughts: 2 kept, 4 pruned".
std::string search_words(const engine::SearchRecord& search, const ThoughtLayout& layout);
/// What it was told to do: "3 thoughts of each, ...".
std::string settings_words(const engine::SearchBegun& begun);

}  // namespace ui
