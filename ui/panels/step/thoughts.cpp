#include "ui/panels/step/thoughts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/live/in_view.h"
#include "ui/panels/live/right_to_left_words.h"
#include "ui/prepare/thought_tree.h"
#include "ui/prepare/tokens/right_to_left.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

using engine::SearchRecord;
using Kind = ThoughtBox::Kind;

// The search that the user chose, while `run` is shown.
struct ThoughtsView : PanelState {
  engine::SearchId search = 0;  // the chosen search; 0: none
  engine::RunId run = 0;
  void document_changed() override { search = 0; }
};

struct LayoutOfSearch : PanelState {
  std::uint64_t version = 0;  // version of the timeline
  engine::SearchId search = 0;
  ThoughtLayout layout;
  bool right_to_left = false;  // a box has letters that are written from right to left
  void document_changed() override {
    version = 0;
    search = 0;
    layout = {};
  }
};

const LayoutOfSearch& layout_of(Context& context, const SearchRecord& search) {
  auto& prepared = context.states.get<LayoutOfSearch>();
  if (prepared.version != context.timeline.version() || prepared.search != search.begun.search) {
    prepared.version = context.timeline.version();
    prepared.search = search.begun.search;
    prepared.layout = thought_layout(search);
    prepared.right_to_left = std::ranges::any_of(prepared.layout.boxes, [&](const auto& box) {
      const BoxWords text = words_of(search, box);
      return has_right_to_left(text.first) || has_right_to_left(text.second);
    });
  }
  return prepared;
}

enum class Branch { Side, Kept, Chain };

// Draws a curve from the right side of a box to the left side of its child.
void thought_branch(ImDrawList* list, ImVec2 from, ImVec2 to, Branch branch) {
  const Rgb rgb = branch == Branch::Side ? theme().faint : theme().good;
  const float bend = (to.x - from.x) / 2;
  list->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, colour(rgb),
                       px(branch == Branch::Chain  ? 3.0f
                          : branch == Branch::Kept ? 1.6f
                                                   : 1.2f));
}

constexpr float kResultChip = 15;

// Draws the result of a thought as a small square in the colour of its meaning, with its mark.
void result_chip(ImDrawList* list, ImVec2 min, Mean mean, bool marks) {
  const Look& as = look(mean);
  const ImVec2 max{min.x + px(kResultChip), min.y + px(kResultChip)};
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

template <Branch branch>
void draw_branch_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  thought_branch(list, {at.x, at.y + px(5)}, {at.x + px(60), at.y + px(18)}, branch);
}

void draw_value_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  list->AddText(fonts().bold, px(kTextSize), {at.x, at.y + px(3)}, colour(theme().bright), "7");
}

void draw_result_sample(ImDrawList* list, ImVec2 at, const MarkNote& note) {
  result_chip(list, {at.x, at.y + px(4)}, note.mean, true);
}

constexpr std::array kThoughtsMarks{
    MarkNote{.words = "the chain that leads to the answer",
             .draw = draw_branch_sample<Branch::Chain>},
    MarkNote{.words = "kept: among the best of its level",
             .draw = draw_branch_sample<Branch::Kept>},
    MarkNote{.words = "not kept, or not yet valued", .draw = draw_branch_sample<Branch::Side>},
    MarkNote{.words = "the value of the thought by the model, 0 to 10; \"?\": none was found; "
                      "\"-\": never valued",
             .draw = draw_value_sample},
    MarkNote{.words = "kept; for the answer: correct",
             .draw = draw_result_sample,
             .mean = Mean::Accepted},
    MarkNote{.words = "pruned, others were better; for the answer: wrong",
             .draw = draw_result_sample,
             .mean = Mean::Rejected},
    MarkNote{.words = "not yet valued", .draw = draw_result_sample, .mean = Mean::Guess},
    MarkNote{.words = "unreadable: the task could not parse it",
             .draw = draw_result_sample,
             .mean = Mean::Unused},
    MarkNote{.words = "ring: written by the run that is shown",
             .mean = Mean::Plain,
             .text = "shown",
             .lit = true,
             .locked = true},
};

bool offered(const engine::Timeline& timeline) {
  return !timeline.searches().empty();
}

// Returns the search that the user chose in this panel, until another run is shown; then the search of that run, or the newest one
// while it is going or no run is shown. nullptr: the run belongs to no search.
const SearchRecord* shown_search(const Context& context) {
  const auto searches = context.timeline.searches();
  if (searches.empty()) return nullptr;
  const engine::RunId run = context.selection.run;
  const auto& view = context.states.get<ThoughtsView>();
  if (view.search != 0 && view.run == run)
    for (const SearchRecord& search : searches)
      if (search.begun.search == view.search) return &search;
  if (const SearchRecord* of_run = search_of(searches, run)) return of_run;
  return run == 0 || !searches.back().ended ? &searches.back() : nullptr;
}

std::string why_no_thoughts(const Context& context) {
  if (!offered(context.timeline))
    return "No tree of thoughts here. Choose Tree of thoughts at the top of Setup (Alt+1) to "
           "run a search, or record one with `decoscope reason tot --record FILE` and open the "
           "file (Ctrl+O).";
  if (shown_search(context)) return "";
  return fmt::format(
      "Run {} belongs to no tree of thoughts. The head of this panel has a link to the newest "
      "tree.",
      context.selection.run);
}

void show_run(Context& context, engine::RunId run) {
  if (run == 0 || !context.timeline.run(run)) return;
  context.selection.run = run;
  if (context.selection.locked.run != run) context.selection.locked = {};
  context.show_whole_timeline();
}

// Shows a search and the run that wrote its answer, or else its newest thought.
void show_search(Context& context, const SearchRecord& search) {
  engine::RunId run = search.ended ? search.ended->by : 0;
  for (auto at = search.thoughts.rbegin(); run == 0 && at != search.thoughts.rend(); ++at)
    if (!at->made.runs.empty()) run = at->made.runs.front();
  show_run(context, run);
  auto& view = context.states.get<ThoughtsView>();
  view.search = search.begun.search;
  view.run = context.selection.run;
}

constexpr float kLine = 18, kFirstLine = 7;  // height and top of text lines in a box, px at 100 %
constexpr int kMostLines = 4;

struct Sizes {
  int n_lines;  // lines of text in a box
  float wide, high, column, line;
};

// Makes boxes as large as the panel allows, within readable limits. A search that has not ended gets the sizes of its full depth, so that
// boxes do not shrink while it grows.
Sizes sizes_for(const SearchRecord& search, const ThoughtLayout& layout) {
  const ImGuiStyle& style = ImGui::GetStyle();
  const engine::SearchBegun& begun = search.begun;
  int n_columns = layout.n_columns, n_rows = layout.n_lines;
  if (!search.ended) {
    n_columns = std::max(n_columns, std::min(begun.depth, 16) + 2);
    n_rows = std::max(n_rows, std::min(begun.n_thoughts, 16) * std::clamp(begun.beam, 1, 16));
  }
  const ImVec2 all = ImGui::GetWindowSize();
  const float gap = px(40), n = static_cast<float>(n_columns);
  const float room = all.x - 2 * style.WindowPadding.x - style.ScrollbarSize;
  const float wide = std::floor(std::clamp((room - (n - 1) * gap) / n, px(204), px(300)));
  // Reserves three lines for the text above and below the tree.
  const float high = all.y - 2 * style.WindowPadding.y - style.ScrollbarSize - px(76);
  const float of_row = high / static_cast<float>(n_rows) - px(22);
  const int n_lines = std::clamp(static_cast<int>(of_row / px(kLine)), 2, kMostLines);
  const float box = px(12 + kLine * static_cast<float>(n_lines));
  return {n_lines, wide, box, wide + gap, box + px(10)};
}

void frame_of(ImDrawList* list, ImVec2 min, ImVec2 max, const ThoughtBox& box) {
  const float round = px(6);
  list->AddRectFilled(min, max, colour(theme().field), round);
  if (box.mean == Mean::Unused)
    return dashed_rect(list, min, max, colour(theme().faint), px(1.5f), px(2), px(1));
  const bool wrong = box.kind == Kind::Answer && box.mean == Mean::Rejected;
  const bool taken = box.mean == Mean::Accepted || box.on_chain;
  const Rgb edge = wrong ? theme().bad : taken ? theme().good : theme().line;
  list->AddRect(min, max, colour(edge), round, px(box.on_chain ? 2.0f : 1.0f));
}

// Removes from `text` the words that fit into one line, and returns them.
std::string take_line(std::string& text, float width) {
  const char* begin = text.c_str();
  const char* end = ImGui::GetFont()->CalcWordWrapPosition(ImGui::GetFontSize(), begin,
                                                           begin + text.size(), width);
  std::string line(begin, end);
  text.erase(0, line.size());
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  return line;
}

struct BoxLine {
  std::string text;
  bool second = false;  // the line belongs to BoxWords::second
};

// Distributes the two texts over the lines of a box; each gets at least half of the lines if it needs them.
// @param width  width of each line
std::vector<BoxLine> broken(const BoxWords& words, std::span<const float> width) {
  const int n_lines = static_cast<int>(width.size());
  const auto n_needed = [&](std::string text) {
    int n = 0;
    for (; !text.empty() && n < n_lines; ++n) take_line(text, width[static_cast<std::size_t>(n)]);
    return n;
  };
  const int n_first = std::max(n_lines - n_needed(words.second), (n_lines + 1) / 2);
  std::vector<BoxLine> lines;
  std::string left = words.first;
  for (int i = 0; i < n_lines; ++i) {
    bool second = !lines.empty() && lines.back().second;
    if (!second && (left.empty() || i >= n_first) && !words.second.empty()) {
      left = words.second;
      second = true;
    }
    if (left.empty()) break;
    const float room = width[static_cast<std::size_t>(i)];
    const bool last = i + 1 == n_lines || (!second && i + 1 >= n_first && !words.second.empty());
    lines.push_back({last ? elided(left, room) : take_line(left, room), second});
  }
  return lines;
}

// Writes the text of a box; `second` is the colour of its second part.
void put_words(ImDrawList* list,
               ImVec2 min,
               const BoxWords& words,
               std::span<const float> width,
               Rgb ink,
               Rgb second) {
  ImGui::PushFont(nullptr, kSmallSize);
  float y = min.y + px(kFirstLine);
  for (const BoxLine& line : broken(words, width)) {
    list->AddText({min.x + px(9), std::floor(y)}, colour(line.second ? second : ink),
                  line.text.c_str());
    y += px(kLine);
  }
  ImGui::PopFont();
}

// Draws the value at the right and the result below it.
void value_and_result(Context& context,
                      ImDrawList* list,
                      ImVec2 min,
                      ImVec2 max,
                      const SearchRecord& search,
                      const ThoughtBox& box) {
  if (box.kind == Kind::Question) return;
  result_chip(list, {max.x - px(7) - px(kResultChip), max.y - px(7) - px(kResultChip)}, box.mean,
              context.marks());
  if (box.kind == Kind::Answer) return;
  const std::string value = value_words(search.thoughts[static_cast<std::size_t>(box.thought)]);
  ImGui::PushFont(fonts().bold, kTextSize);
  const float wide = ImGui::CalcTextSize(value.c_str()).x;
  list->AddText({std::floor(max.x - px(8) - wide), std::floor(min.y + px(6))},
                colour(box.mean == Mean::Accepted ? theme().bright : theme().text), value.c_str());
  ImGui::PopFont();
}

// Draws a box. A click shows the runs that wrote its content in turn; a ring marks the box of the run shown.
void draw_box(Context& context,
              const SearchRecord& search,
              const ThoughtBox& box,
              ImVec2 min,
              const Sizes& s) {
  const ImVec2 max{min.x + s.wide, min.y + s.high};
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(box.kind == Kind::Thought ? search.thoughts[box.thought].made.node
                                          : -static_cast<int>(box.kind));
  if (ImGui::InvisibleButton("thought", {s.wide, s.high}, ImGuiButtonFlags_EnableNav))
    show_run(context, run_after(runs_of(search, box), context.selection.run));
  if (ImGui::IsItemHovered() || (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible))
    tooltip(facts_of(search, box));
  ImGui::PopID();
  if (!ImGui::IsRectVisible(min, max)) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  frame_of(list, min, max, box);
  // The first line ends before the value, the last one before the result.
  std::array<float, kMostLines> width;
  width.fill(s.wide - px(18));
  if (box.kind == Kind::Thought) width.front() -= px(32);
  if (box.kind != Kind::Question)
    width[static_cast<std::size_t>(s.n_lines) - 1] -= px(kResultChip + 4);
  const bool quiet = box.mean == Mean::Unused || box.mean == Mean::Rejected;
  const Rgb ink = box.on_chain ? theme().bright : quiet ? theme().dim : theme().text;
  const Rgb answer_ink = box.mean == Mean::Accepted ? theme().good : theme().bad;
  put_words(list, min, words_of(search, box),
            std::span(width).first(static_cast<std::size_t>(s.n_lines)), ink,
            box.kind == Kind::Answer ? answer_ink : theme().dim);
  value_and_result(context, list, min, max, search, box);
  const auto runs = runs_of(search, box);
  if (std::ranges::find(runs, context.selection.run) != runs.end())
    list->AddRect({min.x - px(3), min.y - px(3)}, {max.x + px(3), max.y + px(3)},
                  colour(theme().light_up), px(8), px(2));
}

void draw_branches(const ThoughtLayout& layout, ImVec2 at, const Sizes& s) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto branch_of = [](const ThoughtBox& box) {
    return box.on_chain ? Branch::Chain : box.mean == Mean::Accepted ? Branch::Kept : Branch::Side;
  };
  // The chain is drawn last, over the others.
  for (const Branch branch : {Branch::Side, Branch::Kept, Branch::Chain})
    for (const ThoughtBox& box : layout.boxes) {
      if (box.parent < 0 || branch_of(box) != branch) continue;
      const ThoughtBox& parent = layout.boxes[static_cast<std::size_t>(box.parent)];
      const ImVec2 to{at.x + static_cast<float>(box.column) * s.column,
                      at.y + box.line * s.line + s.high / 2};
      const ImVec2 from{to.x - s.column + s.wide, at.y + parent.line * s.line + s.high / 2};
      const ImVec2 top{from.x, std::min(from.y, to.y) - px(2)};
      const ImVec2 foot{to.x, std::max(from.y, to.y) + px(2)};
      if (ImGui::IsRectVisible(top, foot)) thought_branch(list, from, to, branch);
    }
}

void draw_headings(const ThoughtLayout& layout, ImVec2 at, const Sizes& s) {
  for (int column = 0; column < layout.n_columns; ++column) {
    const auto is_thought = [column](const ThoughtBox& box) {
      return box.column == column && box.kind == Kind::Thought;
    };
    const bool thoughts = std::ranges::any_of(layout.boxes, is_thought);
    ImGui::SetCursorScreenPos({at.x + static_cast<float>(column) * s.column + px(1), at.y});
    small_label(column == 0 ? "question" : thoughts ? fmt::format("depth {}", column) : "answer");
  }
}

// Returns true while the document is being read, and after that until the user selects something in
// it.
bool is_first_view(const Context& context, int now) {
  ImGuiStorage* kept = ImGui::GetStateStorage();
  const ImGuiID of = ImGui::GetID("first_of"), view = ImGui::GetID("first_view");
  const ImGuiID was_read = ImGui::GetID("first_read");
  const bool reads = context.reading >= 0;
  const int source = static_cast<int>(ImGui::GetID(("of " + context.source).c_str()));
  if (kept->GetInt(of, source + 1) != source || reads || kept->GetBool(was_read)) {
    kept->SetInt(of, source);
    kept->SetInt(view, now);
  } else if (kept->GetInt(view) != now) {
    kept->SetInt(view, 0);  // the user has selected something else
  }
  kept->SetBool(was_read, reads);
  return kept->GetInt(view) == now;
}

// Scrolls to the question at first, later to the box that the run shown has written, or to the newest box of a search in progress.
void keep_in_view(Context& context,
                  const SearchRecord& search,
                  const ThoughtLayout& layout,
                  ImVec2 at,
                  const Sizes& s) {
  const engine::RunId run = context.selection.run;
  const int now = static_cast<int>((search.begun.search * 31 + run) * 65'537 + layout.boxes.size());
  const bool is_new = is_new_in_view(now), first = is_first_view(context, now);
  if (!is_new) return;
  int box = first ? 0 : box_of(layout, search, run);
  if (box < 0 && !search.ended) box = static_cast<int>(layout.boxes.size()) - 1;
  if (box < 0) return;
  const ThoughtBox& target = layout.boxes[static_cast<std::size_t>(box)];
  const ImVec2 min{at.x + static_cast<float>(target.column) * s.column,
                   at.y + target.line * s.line};
  bring_into_view({min.x - px(8), min.y - px(8)}, {min.x + s.wide + px(8), min.y + s.high + px(8)});
}

std::string state_words(const Context& context, const SearchRecord& search) {
  if (search.ended) return search.ended->stopped ? "stopped without an answer" : "";
  const bool goes_on = context.source.empty() || context.reading >= 0;
  return goes_on ? "searching" : "the recording ends during this search";
}

void draw_state(Context& context,
                const SearchRecord& search,
                const ThoughtLayout& layout,
                bool right_to_left) {
  to_left_edge();  // does not scroll sideways with the tree
  ImGui::PushFont(nullptr, kSmallSize);
  words(search_words(search, layout), theme().dim);
  ImGui::SameLine(0, px(12));
  if (search.ended && !search.ended->stopped) {
    const bool right = search.ended->correct;
    words(right ? "+ correct answer" : "x wrong answer", right ? theme().good : theme().bad);
  } else {
    words(state_words(context, search), theme().text);
  }
  if (right_to_left) {
    ImGui::SameLine(0, px(12));
    right_to_left_words();
  }
  ImGui::PopFont();
}

void draw_thoughts(Context& context) {
  const SearchRecord& search = *shown_search(context);
  const LayoutOfSearch& prepared = layout_of(context, search);
  const ThoughtLayout& layout = prepared.layout;
  draw_state(context, search, layout, prepared.right_to_left);
  const Sizes s = sizes_for(search, layout);
  const ImVec2 head = ImGui::GetCursorScreenPos(), at{head.x + px(3), head.y + px(24)};
  draw_headings(layout, {at.x, head.y}, s);
  draw_branches(layout, at, s);
  for (const ThoughtBox& box : layout.boxes)
    draw_box(context, search, box,
             {std::floor(at.x + static_cast<float>(box.column) * s.column),
              std::floor(at.y + box.line * s.line)},
             s);
  keep_in_view(context, search, layout, at, s);
  ImGui::SetCursorScreenPos(head);
  ImGui::Dummy({static_cast<float>(layout.n_columns - 1) * s.column + s.wide + px(8),
                px(24) + static_cast<float>(layout.n_lines - 1) * s.line + s.high + px(4)});
  to_left_edge();  // does not scroll sideways with the tree
  small_label(settings_words(search.begun));
}

std::string name_in_list(const SearchRecord& search) {
  const char* how = !search.ended           ? "running"
                    : search.ended->stopped ? "stopped"
                    : search.ended->correct ? "+ correct"
                                            : "x wrong";
  return fmt::format("{}: {}  {}", search.begun.search, search.begun.id, how);
}

void draw_thoughts_head(Context& context) {
  panel_legend(kThoughtsPanel);
  const auto searches = context.timeline.searches();
  const SearchRecord* found = shown_search(context);
  if (found && searches.size() < 2) return;
  ImGui::SameLine();
  if (!found) {
    if (!searches.empty() && link("show the newest tree###newest_tree"))
      show_search(context, searches.back());
    return;
  }
  std::vector<std::string> names;
  std::vector<const char*> shown;
  for (const SearchRecord& search : searches) names.push_back(name_in_list(search));
  for (const std::string& name : names) shown.push_back(name.c_str());
  int index = static_cast<int>(found - searches.data());
  if (quiet_choice("##search", "", shown, index))
    show_search(context, searches[static_cast<std::size_t>(index)]);
}

}  // namespace

const Panel kThoughtsPanel{.id = "thoughts",
                           .title = "Thoughts",
                           .empty = why_no_thoughts,
                           .draw = draw_thoughts,
                           .head = draw_thoughts_head,
                           .offered = offered,
                           .help =
                               "A tree-of-thoughts search, one column per depth. Click a thought "
                               "to show the run that wrote it.",
                           .marks = kThoughtsMarks,
                           .sketch = Sketch::Tree,
                           .wide = true,
                           .names_run = true,
                           .live = Dock::Centre};

}  // namespace ui
