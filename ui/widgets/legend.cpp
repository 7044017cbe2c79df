#include "ui/widgets/legend.h"

#include <array>
#include <cstring>
#include <string>

#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

void draw_letter(ImDrawList* list, ImVec2 at, const MarkNote& note) {
  list->AddText(nullptr, px(kTruthSize), {at.x, at.y + px(3)}, colour(theme().dim),
                truth_mark(note.truth));
}

void draw_caret(ImDrawList* list, ImVec2 at, const MarkNote&) {
  text_bar(list, {at.x + px(20), at.y}, at.y + px(kSampleHeight) - px(2), 0, theme().bright);
}

void draw_block_edges(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const float foot = at.y + px(kSampleHeight) - px(2);
  const Rgb edge = edge_on(theme(), look(Mean::Guess));
  text_bar(list, {at.x + px(2), at.y}, foot, px(5), edge);
  text_bar(list, {at.x + px(60), at.y}, foot, -px(5), edge);
}

constexpr auto kCells = std::to_array<MarkNote>({
    cell_note(Mean::Prefix),
    cell_note(Mean::Plain),
    cell_note(Mean::Accepted),
    cell_note(Mean::Bonus),
    cell_note(Mean::Guess),
    cell_note(Mean::Pool),
    cell_note(Mean::Draft),
    cell_note(Mean::Rejected),
    cell_note(Mean::Unused),
    cell_note(Mean::Approximate),
    cell_note(Mean::FastForward),
    cell_note(Mean::Stationary),
    {.words = "corner: proposed as a guess",
     .mean = Mean::Accepted,
     .origin = Mean::Guess,
     .text = "accepted"},
    {.words = "corner: proposed from the pool, the text or the table",
     .mean = Mean::Accepted,
     .origin = Mean::Pool,
     .text = "accepted"},
    {.words = "corner: proposed by a draft, with a distribution",
     .mean = Mean::Accepted,
     .origin = Mean::Draft,
     .text = "accepted"},
    {.words = "a guess that did not change for three iterations",
     .mean = Mean::Guess,
     .text = "guess",
     .mark = "?3"},
    {.words = "the first token that differs from plain decoding",
     .mean = Mean::Plain,
     .text = "differs",
     .diverged = true},
    {.words = "a token that consists of spaces", .mean = Mean::Accepted, .text = "_"},
    {.words = "a line feed", .mean = Mean::Plain, .text = "\xC2\xB6"},
    {.words = "the end of the committed text", .draw = draw_caret},
    {.words = "the block that is being refined", .draw = draw_block_edges},
    kLitNote,
    {.words = "thick ring: selected by a click",
     .mean = Mean::Plain,
     .text = "kept",
     .lit = true,
     .locked = true},
});

constexpr std::array kLetters{
    MarkNote{.words = "derived: computed from measured figures",
             .draw = draw_letter,
             .truth = Truth::Derived},
    MarkNote{.words = "hindsight: known only after the block or the run has ended",
             .draw = draw_letter,
             .truth = Truth::Hindsight},
    MarkNote{.words = "simulated: computed for given stage times, not measured",
             .draw = draw_letter,
             .truth = Truth::Simulated},
};

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

const char* words_of(const MarkNote& note) {
  return *note.words ? note.words : meaning_of(note.mean);
}

void draw_sample(const MarkNote& note) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({px(kSampleWidth), px(kSampleHeight)});
  if (note.draw)
    note.draw(list, at, note);
  else
    cell_sample(list, at, note);
}

// Samples of corners, drawn at the end of a row.
constexpr std::array kCorners{
    MarkNote{.mean = Mean::Accepted, .origin = Mean::Guess, .text = "was a guess"},
    MarkNote{.mean = Mean::Accepted, .origin = Mean::Pool, .text = "was in the pool"},
};
constexpr const char* kLetterWords = "d derived \xC2\xB7 h in hindsight";

// Draws a sample in the row. @return whether there was room for it
bool put_in_row(const MarkNote& note) {
  const float wide = width_of(note);
  if (room_in_view() < wide) return false;
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

void draw_notes(std::span<const MarkNote> notes) {
  for (const MarkNote& note : notes) {
    draw_sample(note);
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(3));
    words(words_of(note), theme().text);
  }
}

void legend_button(const char* id,
                   const char* help,
                   std::span<const MarkNote> notes,
                   const char* also) {
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().dim));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(4), target_padding()));
  ImGui::Button(id, {px(kLeastTarget), 0});
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  if (!ImGui::IsItemHovered() && !ImGui::IsItemFocused()) return;
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  if (*help) {
    ImGui::PushTextWrapPos(px(420));
    words(help, theme().text);
    ImGui::PopTextWrapPos();
  }
  draw_notes(notes);
  draw_notes(kLetters);
  if (*also) words(also, theme().dim);
  ImGui::PopStyleVar();
  ImGui::EndTooltip();
}

void legend(std::span<const Mean> means, bool signs) {
  bool room = true;
  for (const Mean mean : means) room = room && put_in_row(cell_note(mean));
  if (signs) {
    for (const MarkNote& corner : kCorners) room = room && put_in_row(corner);
    ImGui::PushFont(nullptr, kSmallSize);
    if (room && ImGui::CalcTextSize(kLetterWords).x < room_in_view()) {
      ImGui::SetCursorPos({ImGui::GetCursorPosX() + px(8), ImGui::GetCursorPosY() + px(4)});
      words(kLetterWords, theme().dim);
      ImGui::SameLine();
    }
    ImGui::PopFont();
  }
  ImGui::NewLine();
}

}  // namespace ui
