// What every mark in the window means, as data: token cells, their corners and signs, the small
// letters behind figures, and what trajectory and time line draw. Nothing is drawn that is not
// here.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

#include "ui/prepare/numbers.h"
#include "ui/widgets/theme.h"

namespace ui {

/// How a mark is shown beside its words.
enum class Sample {
  Cell,           ///< a token cell
  Letter,         ///< the small letter behind a figure
  ProvedLine,     ///< of the trajectory
  HindsightLine,  //
  Bracket,        //
  NewlyFinal,     //
  Unchanged,      //
  Folded,         //
  Caret,          ///< of the text
  BlockEdges,     //
  Work,           ///< of the time line
  Waste,          //
  WasteFoot,      //
  Wait,           //
  PoolTick,       //
  RejectionTick,  //
  Flag,           //
  PassingFlag,    //
  Flow,           //
  DraftForwards,  //
  Forward,        ///< of the Schedule
  Drafts,         //
  ToDraft,        //
  ForTarget,      //
  VerifiedNode,   //
  InQueue,        //
  Kept,           //
  Refused,        //
  PathEdge,       ///< of the tree
  SideEdge,       //
  Sees,           ///< of the mask
  SeesItself,     //
  SeesNot,        //
  BarQ,           ///< of P/Q
  BarP,           //
  BarLeft,        //
  ChainBranch,    ///< of a tree of thoughts
  KeptBranch,     //
  SideBranch,     //
  Value,          //
  Fate,           // the chip of the note's meaning
};

struct MarkNote {
  Sample sample = Sample::Cell;
  const char* words = "";
  // Of a cell:
  Mean mean = Mean::Prefix;
  Mean origin = Mean::Prefix;  // its corner
  const char* text = "";
  const char* mark = nullptr;  // in place of the meaning's own
  bool diverged = false, lit = false, locked = false;
  // Of a letter:
  Truth truth = Truth::Measured;
};

std::span<const MarkNote> cell_marks();
std::span<const MarkNote> letter_marks();
std::span<const MarkNote> trajectory_marks();
std::span<const MarkNote> time_line_marks();
std::span<const MarkNote> schedule_marks();
std::span<const MarkNote> pool_marks();
std::span<const MarkNote> tree_marks();
std::span<const MarkNote> mask_marks();
std::span<const MarkNote> distributions_marks();
std::span<const MarkNote> thought_marks();

/// What the Schedule, the tree, the mask, P/Q and a tree of thoughts draw, shared with their
/// legends. A slice of the Schedule (Forward to Refused) in its row's height;
/// words where they have room.
void schedule_mark(
    ImDrawList* list, ImVec2 min, ImVec2 max, Sample sample, const std::string& words);
/// The share of a forward's rows thrown away, hatched at its end, half as wide; of a narrow
/// one a foot as wide as the share.
void waste_mark(ImDrawList* list, ImVec2 min, ImVec2 max, float share);
/// An edge from a node's right side to its child's left; thick on the path taken.
void tree_edge(ImDrawList* list, ImVec2 from, ImVec2 to, bool on_path, Rgb rgb);
enum class Sight { Not, Other, Own };
void mask_cell(ImDrawList* list, ImVec2 min, ImVec2 max, Sight sight);
enum class Distribution { Draft, Target, Left };
/// A bar of a probability, from the left; the three distributions differ in form too.
void distribution_bar(
    ImDrawList* list, ImVec2 min, ImVec2 max, float share, Distribution distribution);
enum class Branch { Side, Kept, Chain };
/// A curve from a box's right side to the left side of one that continues it.
void thought_branch(ImDrawList* list, ImVec2 from, ImVec2 to, Branch branch);
constexpr float kFateChip = 15;
/// What became of a thought, as a small square in the meaning's colour with its mark.
void fate_chip(ImDrawList* list, ImVec2 min, Mean mean, bool marks);

/// The Schedule's marks in one line, in few words; what has no room is left out, and is told behind
/// "?".
void schedule_legend();
/// Samples with their words, one below the other. Needs a Dear ImGui frame.
void draw_notes(std::span<const MarkNote> notes);
/// A quiet sign, "?", whose tooltip tells these and the letters. Several on a screen need ids of
/// their own: "?###marks_text".
/// @param also  a sentence at the end; empty: none
void legend_word(const char* id, std::span<const MarkNote> notes, const char* also = "");
/// Cells that name what marks, borders and colours mean, in a row; what has no room is left out,
/// and is told behind "?".
/// @param signs  the corners of accepted cells and the letters behind figures too
void legend(std::span<const Mean> means, bool signs);

}  // namespace ui
