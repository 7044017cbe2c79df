#include "ui/shell/legend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ui/widgets/draw.h"

namespace ui {
namespace {

// The notes of cells have the words of their meaning.
constexpr MarkNote cell(Mean mean) {
  return {.mean = mean, .text = look(mean).name};
}

constexpr auto kCells = std::to_array<MarkNote>({
    cell(Mean::Prefix),
    cell(Mean::Plain),
    cell(Mean::Accepted),
    cell(Mean::Bonus),
    cell(Mean::Guess),
    cell(Mean::Pool),
    cell(Mean::Draft),
    cell(Mean::Rejected),
    cell(Mean::Unused),
    cell(Mean::Approximate),
    cell(Mean::FastForward),
    cell(Mean::Stationary),
    {.words = "corner: it was a guess before it was accepted",
     .mean = Mean::Accepted,
     .origin = Mean::Guess,
     .text = "accepted"},
    {.words = "corner: it came from the n-gram pool",
     .mean = Mean::Accepted,
     .origin = Mean::Pool,
     .text = "accepted"},
    {.words = "corner: it was drafted, with a distribution",
     .mean = Mean::Accepted,
     .origin = Mean::Draft,
     .text = "accepted"},
    {.words = "a guess unchanged for three iterations",
     .mean = Mean::Guess,
     .text = "guess",
     .mark = "?3"},
    {.words = "the first token that differs from plain decoding",
     .mean = Mean::Plain,
     .text = "differs",
     .diverged = true},
    {.words = "a token of nothing but spaces", .mean = Mean::Accepted, .text = "_"},
    {.words = "a line feed", .mean = Mean::Plain, .text = "\xC2\xB6"},
    {.sample = Sample::Caret, .words = "the text is committed up to here"},
    {.sample = Sample::BlockEdges, .words = "the block that is being refined"},
    {.words = "ring: pointed at, here or in another panel",
     .mean = Mean::Plain,
     .text = "lit",
     .lit = true},
    {.words = "thick ring: clicked, and kept",
     .mean = Mean::Plain,
     .text = "kept",
     .lit = true,
     .locked = true},
});

constexpr std::array kLetters{
    MarkNote{.sample = Sample::Letter,
             .words = "derived: computed from figures that were measured",
             .truth = Truth::Derived},
    MarkNote{.sample = Sample::Letter,
             .words = "hindsight: known only once the block or the run was over",
             .truth = Truth::Hindsight},
    MarkNote{.sample = Sample::Letter,
             .words = "simulated: with given times; nothing of it was measured",
             .truth = Truth::Simulated},
};

constexpr std::array kTrajectory{
    MarkNote{.sample = Sample::ProvedLine,
             .words = "left of it every token is proved final: agreement shows it"},
    MarkNote{.sample = Sample::HindsightLine,
             .words = "left of it every token is right, as was seen afterwards (h)"},
    MarkNote{.sample = Sample::Bracket, .words = "fast-forward: one iteration proved all of these"},
    MarkNote{.sample = Sample::NewlyFinal, .words = "tokens this iteration proved final"},
    MarkNote{.sample = Sample::Unchanged, .words = "left as it was (\"only changed\" is ticked)"},
    MarkNote{
        .sample = Sample::Folded,
        .words = "a block that is done with: a click shows its iterations, another hides them"},
    cell(Mean::Guess),
    MarkNote{.words = "unchanged for three iterations",
             .mean = Mean::Guess,
             .text = "guess",
             .mark = "?3"},
    cell(Mean::Stationary),
    cell(Mean::FastForward),
    cell(Mean::Accepted),
    cell(Mean::Bonus),
    cell(Mean::Pool),
    cell(Mean::Rejected),
    cell(Mean::Unused),
};

constexpr std::array kTimeLine{
    MarkNote{.sample = Sample::Work, .words = "work; +3: it brought three tokens"},
    MarkNote{.sample = Sample::Waste,
             .words = "hatched: the share of rows computed and thrown away, half as wide"},
    MarkNote{.sample = Sample::WasteFoot,
             .words = "the same of a narrow slice: a foot as long as the share"},
    MarkNote{.sample = Sample::Wait, .words = "waiting for its turn on the device (wall clock)"},
    MarkNote{.sample = Sample::PoolTick, .words = "a step in which the n-gram pool hit or grew"},
    MarkNote{.sample = Sample::RejectionTick,
             .words = "at least one rejection, where slices are too small to see"},
    MarkNote{.sample = Sample::DraftForwards,
             .words = "a proposal: forwards of the draft model, and the rows of each"},
    MarkNote{.sample = Sample::Flow, .words = "the way of the selected token"},
    MarkNote{.sample = Sample::Flag, .words = "a bookmark, and its number (Ctrl+1)"},
    MarkNote{.sample = Sample::PassingFlag, .words = "a mark not kept (M; Shift+M keeps it)"},
};

constexpr std::array kSchedule{
    MarkNote{.sample = Sample::Forward,
             .words = "the target judges the draft of branch 1, which brings 3 tokens"},
    MarkNote{.sample = Sample::Waste,
             .words = "hatched: the share of rows computed and thrown away, half as wide"},
    MarkNote{.sample = Sample::Drafts, .words = "a branch drafts, so many tokens"},
    MarkNote{.sample = Sample::ForTarget, .words = "its draft waits for the target"},
    MarkNote{.sample = Sample::VerifiedNode, .words = "its draft is being judged"},
    MarkNote{.sample = Sample::ToDraft,
             .words = "waits for the draft model; of the target: for a draft"},
    MarkNote{.sample = Sample::InQueue,
             .words = "the queue, in the order they came: a row a place, the first on top"},
    MarkNote{.sample = Sample::Kept, .words = "verified: at least one drafted token accepted"},
    MarkNote{.sample = Sample::Refused, .words = "verified: none accepted"},
};
// The same in fewer words, for the line below the lanes.
constexpr std::array kScheduleLine{
    MarkNote{.sample = Sample::Forward, .words = "judged: its tokens"},
    MarkNote{.sample = Sample::Drafts, .words = "drafts"},
    MarkNote{.sample = Sample::ForTarget, .words = "waits for the target"},
    MarkNote{.sample = Sample::VerifiedNode, .words = "is judged"},
    MarkNote{.sample = Sample::Kept, .words = "some kept"},
    MarkNote{.sample = Sample::Refused, .words = "none kept"},
    MarkNote{.sample = Sample::ToDraft, .words = "waits for a draft"},
    MarkNote{.sample = Sample::InQueue, .words = "in the queue"},
};

constexpr MarkNote kLit{.words = "ring: pointed at, here or in another panel",
                        .mean = Mean::Plain,
                        .text = "lit",
                        .lit = true};

constexpr std::array kPool{
    MarkNote{.words = "a candidate's token that the target agreed with",
             .mean = Mean::Accepted,
             .text = "accepted"},
    MarkNote{.words = "the first it disagreed with", .mean = Mean::Rejected, .text = "rejected"},
    MarkNote{.words = "behind that, or beside the path taken: never judged",
             .mean = Mean::Unused,
             .text = "unused"},
    MarkNote{.words = "proposed, and not judged yet", .mean = Mean::Pool, .text = "from the pool"},
    kLit,
};

constexpr std::array kTree{
    MarkNote{.sample = Sample::PathEdge, .words = "the path the text took"},
    MarkNote{.sample = Sample::SideEdge, .words = "beside it or behind a refusal"},
    cell(Mean::Draft),
    cell(Mean::Pool),
    MarkNote{
        .words = "proposed, and the target agreed", .mean = Mean::Accepted, .text = "accepted"},
    cell(Mean::Rejected),
    cell(Mean::Unused),
    cell(Mean::Bonus),
    kLit,
};

constexpr std::array kMask{
    MarkNote{.sample = Sample::Sees, .words = "the row attends to this one: it is its ancestor"},
    MarkNote{.sample = Sample::SeesItself, .words = "itself"},
    MarkNote{.sample = Sample::SeesNot, .words = "not seen: another branch, or later"},
    kLit,
};

constexpr std::array kDistributions{
    MarkNote{.sample = Sample::BarQ, .words = "q: the draft's probability"},
    MarkNote{.sample = Sample::BarP, .words = "p: the target's probability"},
    MarkNote{.sample = Sample::BarLeft,
             .words = "left: what the token was drawn from once all were refused"},
    MarkNote{.words = "kept", .mean = Mean::Accepted, .text = "accepted"},
    cell(Mean::Rejected),
    cell(Mean::Unused),
    cell(Mean::Bonus),
};

constexpr std::array kThoughts{
    MarkNote{.sample = Sample::ChainBranch, .words = "the chain that the answer stands on"},
    MarkNote{.sample = Sample::KeptBranch, .words = "kept: it stayed among the best of its level"},
    MarkNote{.sample = Sample::SideBranch, .words = "not kept, or not judged yet"},
    MarkNote{.sample = Sample::Value,
             .words = "what the model gave the thought, 1 to 10; ? no score stood in what it "
                      "wrote, - it was not asked"},
    MarkNote{.sample = Sample::Fate, .words = "kept; of the answer: right", .mean = Mean::Accepted},
    MarkNote{.sample = Sample::Fate,
             .words = "pruned, others were better; of the answer: wrong",
             .mean = Mean::Rejected},
    MarkNote{.sample = Sample::Fate, .words = "not judged yet", .mean = Mean::Guess},
    MarkNote{.sample = Sample::Fate,
             .words = "unreadable: the task could make nothing of it",
             .mean = Mean::Unused},
    MarkNote{.words = "ring: written by the run that is shown",
             .mean = Mean::Plain,
             .text = "shown",
             .lit = true,
             .locked = true},
};

constexpr float kSampleWidth = 132, kSampleHeight = 23;

float width_of(const MarkNote& note) {
  const char* mark = note.mark ? note.mark : look(note.mean).mark;
  return px(18) + static_cast<float>(std::strlen(note.text)) * px(7.6f) +
         static_cast<float>(std::strlen(mark)) * px(5);
}

void cell_sample(ImDrawList* list, ImVec2 min, const MarkNote& note) {
  CellFlags flags;
  flags.origin = note.origin;
  flags.mark = note.mark;
  flags.diverged = note.diverged;
  flags.lit = note.lit;
  flags.locked = note.locked;
  token_cell(list, min, {min.x + width_of(note), min.y + px(kSampleHeight)}, note.text, note.mean,
             flags);
}

void trajectory_sample(ImDrawList* list, ImVec2 at, Sample sample) {
  const ImU32 ink = colour(theme().bright);
  const float x = at.x + px(20), high = px(kSampleHeight);
  if (sample == Sample::ProvedLine) list->AddLine({x, at.y}, {x, at.y + high}, ink, px(2));
  if (sample == Sample::HindsightLine)
    for (float y = 0; y < high; y += px(5))
      list->AddLine({x, at.y + y}, {x, at.y + y + px(2)}, colour(look(Mean::Stationary).fill),
                    px(1.5f));
  if (sample == Sample::Bracket) {
    const float y = at.y + high / 2;
    list->AddLine({at.x, y}, {at.x + px(60), y}, ink, px(1));
    list->AddLine({at.x, y - px(3)}, {at.x, y}, ink, px(1));
    list->AddLine({at.x + px(60), y - px(3)}, {at.x + px(60), y}, ink, px(1));
  }
  if (sample == Sample::NewlyFinal)
    list->AddText(nullptr, px(13), {at.x, at.y + px(4)}, colour(theme().dim), "+3");
  if (sample == Sample::Unchanged)
    list->AddCircleFilled({x, at.y + high / 2}, px(1.5f), colour(theme().faint));
  if (sample == Sample::Folded)
    list->AddText(nullptr, px(13), {at.x, at.y + px(4)}, colour(theme().dim), "+ block 3");
}

void text_sample(ImDrawList* list, ImVec2 at, Sample sample) {
  const float foot = at.y + px(kSampleHeight) - px(2);
  if (sample == Sample::Caret)
    return text_bar(list, {at.x + px(20), at.y}, foot, 0, theme().bright);
  const Rgb edge = edge_on(theme(), look(Mean::Guess));
  text_bar(list, {at.x + px(2), at.y}, foot, px(5), edge);
  text_bar(list, {at.x + px(60), at.y}, foot, -px(5), edge);
}

const char* sample_words(Sample sample) {
  return sample == Sample::Forward   ? "1: +3"
         : sample == Sample::Drafts  ? "3"
         : sample == Sample::InQueue ? "1"
                                     : "";
}

void time_line_sample(ImDrawList* list, ImVec2 at, Sample sample) {
  const ImVec2 min{at.x, at.y + px(3)}, max{at.x + px(60), at.y + px(20)};
  const ImU32 rejected = colour(fill_of(Mean::Rejected)), bright = colour(theme().bright);
  if (sample == Sample::Work || sample == Sample::Waste || sample == Sample::RejectionTick)
    list->AddRectFilled(min, max, colour(theme().work), px(2));
  if (sample == Sample::Work)
    list->AddText(fonts().mono, px(13), {min.x + px(5), min.y + px(2)}, IM_COL32_WHITE, "+3");
  if (sample == Sample::Waste) waste_mark(list, min, max, 0.8f);
  if (sample == Sample::WasteFoot) {
    list->AddRectFilled(min, {min.x + px(18), max.y}, colour(theme().work), px(2));
    waste_mark(list, min, {min.x + px(18), max.y}, 0.67f);
  }
  if (sample >= Sample::Forward) schedule_mark(list, min, max, sample, sample_words(sample));
  if (sample == Sample::Wait)
    hatch(list, {min.x, min.y + px(4)}, {max.x, max.y - px(4)}, colour(theme().wait), px(6),
          px(1.5f));
  if (sample == Sample::PoolTick)
    list->AddRectFilled({min.x, min.y}, {min.x + px(3), max.y}, colour(fill_of(Mean::Pool)), px(1));
  if (sample == Sample::RejectionTick)
    list->AddRectFilled({min.x + px(20), min.y - px(2)}, {min.x + px(21.5f), min.y + px(2)},
                        rejected);
  if (sample == Sample::DraftForwards) {
    list->AddRectFilled(min, max, colour(fill_of(Mean::Draft)), px(2));
    for (const float x : {min.x, min.x + px(30)}) {
      list->AddLine({x, min.y}, {x, max.y}, colour(kBlack), px(1));
      list->AddText(fonts().mono, px(11), {x + px(3), min.y}, colour(kBlack), "1");
    }
  }
  if (sample == Sample::Flow) {
    const float y = (min.y + max.y) / 2;
    list->AddLine({min.x, y}, {max.x - px(6), y}, bright, px(1.3f));
    list->AddTriangleFilled({max.x - px(6), y - px(3.5f)}, {max.x - px(6), y + px(3.5f)},
                            {max.x + px(1), y}, bright);
  }
  if (sample == Sample::Flag) {
    list->AddRectFilled(min, {min.x + px(14), min.y + px(12)}, bright);
    list->AddText(nullptr, px(11), {min.x + px(4), min.y}, colour(theme().card), "1");
  }
  if (sample == Sample::PassingFlag)
    list->AddRect(min, {min.x + px(9), min.y + px(12)}, bright, 0, px(1));
}

void step_sample(ImDrawList* list, ImVec2 at, Sample sample) {
  const ImVec2 min{at.x, at.y + px(4)}, max{at.x + px(60), at.y + px(19)};
  const ImVec2 square{min.x + px(15), max.y};
  if (sample == Sample::PathEdge || sample == Sample::SideEdge)
    tree_edge(list, {min.x, min.y}, {max.x, max.y}, sample == Sample::PathEdge, theme().dim);
  if (sample == Sample::Sees) mask_cell(list, min, square, Sight::Other);
  if (sample == Sample::SeesItself) mask_cell(list, min, square, Sight::Own);
  if (sample == Sample::SeesNot) mask_cell(list, min, square, Sight::Not);
  const ImVec2 bar{min.x, min.y + px(3)}, bar_end{max.x, max.y - px(3)};
  if (sample == Sample::BarQ) distribution_bar(list, bar, bar_end, 0.7f, Distribution::Draft);
  if (sample == Sample::BarP) distribution_bar(list, bar, bar_end, 0.7f, Distribution::Target);
  if (sample == Sample::BarLeft) distribution_bar(list, bar, bar_end, 0.7f, Distribution::Left);
}

void thought_sample(ImDrawList* list, ImVec2 at, const MarkNote& note) {
  const ImVec2 from{at.x, at.y + px(5)}, to{at.x + px(60), at.y + px(18)};
  if (note.sample == Sample::ChainBranch) thought_branch(list, from, to, Branch::Chain);
  if (note.sample == Sample::KeptBranch) thought_branch(list, from, to, Branch::Kept);
  if (note.sample == Sample::SideBranch) thought_branch(list, from, to, Branch::Side);
  if (note.sample == Sample::Value)
    list->AddText(fonts().bold, px(kTextSize), {at.x, at.y + px(3)}, colour(theme().bright), "7");
  if (note.sample == Sample::Fate) fate_chip(list, {at.x, at.y + px(4)}, note.mean, true);
}

const char* words_of(const MarkNote& note) {
  return *note.words ? note.words : meaning_of(note.mean);
}

void sample_of(const MarkNote& note) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({px(kSampleWidth), px(kSampleHeight)});
  if (note.sample == Sample::Cell)
    cell_sample(list, at, note);
  else if (note.sample == Sample::Letter)
    list->AddText(nullptr, px(kTruthSize), {at.x, at.y + px(3)}, colour(theme().dim),
                  truth_mark(note.truth));
  else if (note.sample == Sample::Caret || note.sample == Sample::BlockEdges)
    text_sample(list, at, note.sample);
  else if (note.sample < Sample::Work)
    trajectory_sample(list, at, note.sample);
  else if (note.sample >= Sample::ChainBranch)
    thought_sample(list, at, note);
  else if (note.sample >= Sample::PathEdge)
    step_sample(list, at, note.sample);
  else
    time_line_sample(list, at, note.sample);
}

// Corners and letters as the row of a legend shows them, where there is room.
constexpr std::array kCorners{
    MarkNote{.mean = Mean::Accepted, .origin = Mean::Guess, .text = "was a guess"},
    MarkNote{.mean = Mean::Accepted, .origin = Mean::Pool, .text = "was in the pool"},
};
constexpr const char* kLetterWords = "d derived \xC2\xB7 h in hindsight";

// @return whether it had room
bool put_in_row(const MarkNote& note) {
  const float wide = width_of(note);
  if (ImGui::GetContentRegionAvail().x < wide) return false;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({wide, px(kSampleHeight)});
  if (ImGui::IsItemHovered()) tooltip(words_of(note));
  cell_sample(ImGui::GetWindowDrawList(), at, note);
  ImGui::SameLine(0, px(4));
  return true;
}

}  // namespace

std::span<const MarkNote> cell_marks() {
  return kCells;
}

std::span<const MarkNote> letter_marks() {
  return kLetters;
}

std::span<const MarkNote> trajectory_marks() {
  return kTrajectory;
}

std::span<const MarkNote> time_line_marks() {
  return kTimeLine;
}

std::span<const MarkNote> pool_marks() {
  return kPool;
}

std::span<const MarkNote> tree_marks() {
  return kTree;
}

std::span<const MarkNote> mask_marks() {
  return kMask;
}

std::span<const MarkNote> distributions_marks() {
  return kDistributions;
}

std::span<const MarkNote> thought_marks() {
  return kThoughts;
}

std::span<const MarkNote> schedule_marks() {
  return kSchedule;
}

void schedule_mark(
    ImDrawList* list, ImVec2 min, ImVec2 max, Sample sample, const std::string& words) {
  const bool room = max.x - min.x >= px(4);
  const auto fill = [&](Rgb rgb, bool outlined) {
    list->AddRectFilled(min, max, colour(rgb), room ? px(2) : 0);
    if (outlined && room && theme().outline_fills)
      list->AddRect(min, max, colour(theme().bright), px(2));
  };
  const auto text = [&](ImU32 ink) {
    const float size = std::min(px(13), max.y - min.y);
    const float wide = static_cast<float>(words.size()) * size * 0.5f;
    if (words.empty() || max.x - min.x < wide + px(5)) return;
    const float left = min.x + std::min(px(5), (max.x - min.x - wide) / 2);
    list->AddText(fonts().mono, size, {left, std::floor((min.y + max.y - size) / 2)}, ink,
                  words.c_str());
  };
  const float middle = std::floor((min.y + max.y) / 2);
  switch (sample) {
    case Sample::Forward:
      fill(theme().work, false);
      return text(IM_COL32_WHITE);
    case Sample::Drafts:
      fill(fill_of(Mean::Draft), true);
      return text(colour(kBlack));
    case Sample::InQueue:  // lighter than work: it only stands there
      list->AddRectFilled(min, max, colour(fill_of(Mean::Draft), room ? 0.28f : 0.6f),
                          room ? px(2) : 0);
      if (room) list->AddRect(min, max, colour(fill_of(Mean::Draft)), px(2), px(1));
      return text(colour(theme().bright));
    case Sample::ForTarget:
      return hatch(list, {min.x, min.y + px(3)}, {max.x, max.y - px(3)},
                   colour(fill_of(Mean::Draft)), px(6), px(2.2f));
    case Sample::ToDraft:
      return hatch(list, {min.x, min.y + px(3)}, {max.x, max.y - px(3)}, colour(theme().wait),
                   px(6), px(1.5f));
    case Sample::VerifiedNode:
      return list->AddRectFilled({min.x, middle - px(1.5f)}, {max.x, middle + px(1.5f)},
                                 colour(theme().work));
    case Sample::Kept:
      return fill(fill_of(Mean::Accepted), true);
    default:
      return fill(fill_of(Mean::Rejected), true);
  }
}

void waste_mark(ImDrawList* list, ImVec2 min, ImVec2 max, float share) {
  const float wide = max.x - min.x;
  if (share <= 0 || wide < px(4)) return;
  const ImU32 ink = colour(fill_of(Mean::Rejected));
  // At most half of the slice: the label keeps its room, and its share is in the tooltip.
  if (wide >= px(24))
    hatch(list, {max.x - wide * share * 0.5f, min.y}, max, ink, px(6), px(2.2f));
  else  // too narrow for a hatch that reads as one: a foot as long as the share
    list->AddRectFilled({max.x - wide * share, max.y - px(4)}, max, ink);
}

void tree_edge(ImDrawList* list, ImVec2 from, ImVec2 to, bool on_path, Rgb rgb) {
  const ImU32 ink = colour(on_path ? theme().bright : rgb);
  const float thick = px(on_path ? 3.0f : 1.2f), middle = from.x + px(10);
  if (from.y == to.y) return list->AddLine(from, to, ink, thick);
  const ImVec2 points[] = {from, {middle, from.y}, {middle, to.y}, to};
  list->AddPolyline(points, 4, ink, thick);
}

void mask_cell(ImDrawList* list, ImVec2 min, ImVec2 max, Sight sight) {
  if (sight == Sight::Not) return list->AddRect(min, max, colour(theme().line));
  list->AddRectFilled(min, max, colour(theme().work));
  if (sight == Sight::Own) list->AddRect(min, max, colour(theme().bright), 0, px(1.5f));
}

void distribution_bar(
    ImDrawList* list, ImVec2 min, ImVec2 max, float share, Distribution distribution) {
  const float right = min.x + (max.x - min.x) * std::clamp(share, 0.0f, 1.0f);
  const ImVec2 end{std::max(right, min.x + px(1)), max.y};
  if (distribution == Distribution::Draft)
    list->AddRectFilled(min, end, colour(fill_of(Mean::Draft)));
  if (distribution == Distribution::Target) list->AddRectFilled(min, end, colour(theme().text));
  if (distribution != Distribution::Left) return;
  hatch(list, min, end, colour(theme().text), px(5), px(1.2f));
  list->AddRect(min, end, colour(theme().text));
}

void thought_branch(ImDrawList* list, ImVec2 from, ImVec2 to, Branch branch) {
  const Rgb rgb = branch == Branch::Side ? theme().faint : theme().good;
  const float bend = (to.x - from.x) / 2;
  list->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, colour(rgb),
                       px(branch == Branch::Chain  ? 3.0f
                          : branch == Branch::Kept ? 1.6f
                                                   : 1.2f));
}

void fate_chip(ImDrawList* list, ImVec2 min, Mean mean, bool marks) {
  const Look& as = look(mean);
  const ImVec2 max{min.x + px(kFateChip), min.y + px(kFateChip)};
  const Rgb edge = edge_on(theme(), as);
  if (as.filled) {
    list->AddRectFilled(min, max, colour(fill_of(mean)), px(3));
    list->AddRect(min, max, colour(edge), px(3));
  } else {
    dashed_rect(list, min, max, colour(edge), px(1.5f), px(2), px(1));
  }
  if (!marks) return;
  const float size = px(kSmallSize);
  const ImVec2 sign = fonts().mono->CalcTextSizeA(size, size, 0, as.mark);
  list->AddText(fonts().mono, size, {(min.x + max.x - sign.x) / 2, (min.y + max.y - sign.y) / 2},
                colour(as.filled ? as.text : theme().dim), as.mark);
}

void schedule_legend() {
  constexpr float kHigh = 15;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(nullptr, kSmallSize);
  for (const MarkNote& note : kScheduleLine) {
    const char* told = words_of(note);
    const bool verdict = note.sample == Sample::Kept || note.sample == Sample::Refused;
    const float wide = px(verdict ? 14 : 36);  // a verdict is a colour and no length
    if (wide + px(5) + ImGui::CalcTextSize(told).x > ImGui::GetContentRegionAvail().x) break;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    schedule_mark(list, at, {at.x + wide, at.y + px(kHigh)}, note.sample,
                  sample_words(note.sample));
    ImGui::Dummy({wide, px(kHigh)});
    ImGui::SameLine(0, px(5));
    words(told, theme().dim);
    ImGui::SameLine(0, px(12));
  }
  ImGui::PopFont();
  ImGui::NewLine();
}

void draw_notes(std::span<const MarkNote> notes) {
  for (const MarkNote& note : notes) {
    sample_of(note);
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(3));
    words(words_of(note), theme().text);
  }
}

void legend_word(const char* id, std::span<const MarkNote> notes, const char* also) {
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().dim));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(4), px(3)));
  ImGui::Button(id);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  if (!ImGui::IsItemHovered() && !ImGui::IsItemFocused()) return;
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  draw_notes(notes);
  draw_notes(kLetters);
  if (*also) words(also, theme().dim);
  ImGui::PopStyleVar();
  ImGui::EndTooltip();
}

void legend(std::span<const Mean> means, bool signs) {
  bool room = true;
  for (const Mean mean : means) room = room && put_in_row(cell(mean));
  if (signs) {
    for (const MarkNote& corner : kCorners) room = room && put_in_row(corner);
    ImGui::PushFont(nullptr, kSmallSize);
    if (room && ImGui::CalcTextSize(kLetterWords).x < ImGui::GetContentRegionAvail().x) {
      ImGui::SetCursorPos({ImGui::GetCursorPosX() + px(8), ImGui::GetCursorPosY() + px(4)});
      words(kLetterWords, theme().dim);
      ImGui::SameLine();
    }
    ImGui::PopFont();
  }
  ImGui::NewLine();
}

}  // namespace ui
