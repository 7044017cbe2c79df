#include "ui/panels/live/lanes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/event/run_rules.h"
#include "engine/event/timeline/timeline.h"
#include "ui/panels/live/right_to_left_words.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/results/run_numbers.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/sets/model_apart.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

std::string why_no_lanes(const Context& context) {
  if (!context.shown_runs().empty()) return "";
  if (std::string loading = awaited_words(context.timeline, context.waiting); !loading.empty())
    return loading;
  return context.compare ? "No race yet. Choose lanes in Setup and press Run race (Ctrl+Enter)."
                         : "";
}

// Meanings of cells that lanes contain, for the legend.
constexpr Mean kLegend[] = {Mean::Accepted, Mean::Bonus, Mean::Rejected, Mean::Draft,
                            Mean::Pool,     Mean::Guess, Mean::Unused,   Mean::Approximate};

// Width of three figures side by side; heights below which the prompt has one line, and none; width of the narrowest lane. In px at 100 %.
constexpr float kWidthOfThree = 228, kLowLanes = 362, kLowestWithPrompt = 300, kNarrowestLane = 156;

// The result of a lane's comparison with plain decoding.
struct Badge {
  std::string text;
  Rgb rgb;
  const char* brief = "";  // in a narrow lane
};

Badge badge_of(const engine::RunRecord& run, const CatalogDecoder* info) {
  if (run.started.decoder == "ar") return {"baseline", theme().dim, "base"};
  if (run.failed) return {"failed", theme().bad, "x"};
  if (!why_not_lossless(run.started, info).empty()) return {"not lossless", theme().bad, "!"};
  if (!run.agreement) return {"not checked", theme().dim, "?"};
  if (run.agreement->first_difference < 0) return {"identical", theme().good, "="};
  return {fmt::format("differs at {}", run.agreement->first_difference), theme().bad, "!"};
}

// Returns the letter of a lane and its decoder, with what distinguishes its model from those of other lanes of this decoder.
std::string lane_name(const Context& context, const engine::RunRecord& run) {
  const CatalogDecoder* info = context.catalog.decoder(run.started.decoder);
  const std::string* given = context.given_name(run);
  std::string name = fmt::format("{}  {}", context.letter_of(run),
                                 given  ? *given
                                 : info ? info->title
                                        : short_name(run.started.decoder));
  if (const std::string apart = model_apart(context.timeline, context.shown_runs(), run);
      !apart.empty() && !given)
    name += ", " + apart;
  return name;
}

// Returns true if a lane as wide as the current window has no room for the words of its badge. Then all lanes show brief ones.
bool is_tight(const Context& context, const engine::RunRecord& run) {
  const Badge badge = badge_of(run, context.catalog.decoder(run.started.decoder));
  ImGui::PushFont(fonts().bold, kTextSize);
  const float of_name = ImGui::CalcTextSize(lane_name(context, run).c_str()).x;
  ImGui::PopFont();
  return ImGui::GetCursorPosX() + of_name + px(10) + ImGui::CalcTextSize(badge.text.c_str()).x >
         right_edge();
}

void lane_head(Context& context, const engine::RunRecord& run) {
  const Badge badge = badge_of(run, context.catalog.decoder(run.started.decoder));
  std::string name = lane_name(context, run);
  const bool one_branch = engine::takes_turns(run.started.decoder) && run.queueing.empty();
  const float left_edge = ImGui::GetCursorPosX();
  const bool is_brief =
      std::ranges::any_of(context.shown_runs(),
                          [&](const engine::RunRecord* lane) { return is_tight(context, *lane); });
  // "baseline" has no sign of its own, so its lane shows the word where it fits.
  const bool shows_word = !is_brief || (run.started.decoder == "ar" && !is_tight(context, run));
  const std::string shown = shows_word ? badge.text : badge.brief;
  const float end = right_edge() - ImGui::CalcTextSize(shown.c_str()).x;
  ImGui::PushFont(fonts().bold, kTextSize);
  if (const std::string longer = name + ", 1 branch";
      one_branch && !is_brief &&
      ImGui::CalcTextSize(longer.c_str()).x < end - px(10) - ImGui::GetCursorPosX())
    name = longer;
  words(elided(name, end - px(4) - left_edge), theme().bright);
  ImGui::PopFont();
  const engine::ModelLoaded* model = context.timeline.model(run.started.model);
  const engine::ModelLoaded* draft = context.timeline.model(run.started.draft);
  if (model && ImGui::IsItemHovered())
    tooltip("on " + model->name + (draft ? ", drafts by " + draft->name : "") +
            (one_branch
                 ? "\nOne prompt is one branch, so drafting and verification alternate instead of "
                   "overlapping with other branches."
                 : ""));
  // A narrow lane omits the model, which the top bar names.
  ImGui::SameLine(0, px(14));
  const float room = end - px(10) - ImGui::GetCursorPosX();
  const std::string models = !model ? "" : model->name + (draft ? " + " + draft->name : "");
  if (!models.empty() && ImGui::CalcTextSize(models.c_str()).x < room) {
    words(models, theme().dim);
    ImGui::SameLine();
  }
  ImGui::SetCursorPosX(end);
  words(shown, badge.rgb);
  if (ImGui::IsItemHovered())
    tooltip(badge.text +
            ": comparison with plain decoding by the model of the lane, token by token");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetWindowPos().x, wide = ImGui::GetWindowWidth();
  ImGui::GetWindowDrawList()->AddLine({left, at.y + px(2)}, {left + wide, at.y + px(2)},
                                      colour(theme().line));
  ImGui::Dummy({1, px(6)});
}

// Draws the figures of a lane. @return true if each has a line of its own
bool lane_numbers(Context& context, const engine::RunRecord& run, std::size_t n) {
  const Numbers& numbers = run_numbers(context, run);
  Figure figures[] = {numbers.tokens_per_second, numbers.tokens_per_step, numbers.speedup};
  figures[2].label = "speed-up";
  const float room = ImGui::GetContentRegionAvail().x, left = ImGui::GetCursorPosX();
  // A narrow lane has a line for each figure, because three side by side would be cut.
  const bool in_lines = room < px(kWidthOfThree);
  const float third = std::min(px(110), room / 3);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), in_lines ? px(2) : px(6)));
  for (int i = 0; i < 3; ++i) {
    if (in_lines)
      figures[i].label = label_within(figures[i].label, room - px(64));
    else if (i > 0)
      ImGui::SameLine(left + static_cast<float>(i) * third);
    if (in_lines ? label_value(figures[i]) : big_number(figures[i], {}, third))
      context.choose_steps(run, steps_in_set(context.times(run), n, figures[i].step_set),
                           step_set_words(figures[i].step_set));
  }
  ImGui::PopStyleVar();
  return in_lines;
}

// Returns the share of the answer that is committed at the playhead; while the run is not finished, the share of max tokens.
float progress_of(Context& context, const engine::RunRecord& run, std::size_t n) {
  const std::int64_t done = context.times(run).sums(n).tokens;
  const int all = run.finished ? run.finished->n_tokens : run.started.max_tokens;
  return all > 0 ? static_cast<float>(done) / static_cast<float>(all) : 0;
}

// Returns the lanes with which a lane's text is aligned, and the run that it is compared with; without lanes if it is not aligned.
AlignedWith aligned_with(Context& context,
                         const std::vector<const engine::RunRecord*>& runs,
                         const engine::RunRecord& run) {
  using Align = LanesView::Align;
  const Align align = context.states.get<LanesView>().align;
  if (align == Align::Off) return {};
  const engine::RunRecord* reference = plain_lane_of(runs, run);
  if (align == Align::Selected) {
    const auto selected = std::ranges::find(runs, context.selection.run, &engine::RunRecord::id);
    reference = selected == runs.end() ? nullptr : *selected;
  }
  if (!reference || reference == &run) return {.lanes = runs};
  return {
      .lanes = runs, .reference = reference, .first_difference = first_difference(run, *reference)};
}

// Scrolls the texts of aligned lanes together. A lane that has moved since the last frame leads.
void scroll_together(LanesView& view, engine::RunId run) {
  // A lane with less text cannot scroll as far as the others.
  const float at = ImGui::GetScrollY(), most = ImGui::GetScrollMaxY();
  float& last = view.scrolled.try_emplace(run, at).first->second;
  if (at != last)
    view.scroll = at;
  else if (at != std::min(view.scroll, most))
    ImGui::SetScrollY(std::min(view.scroll, most));
  last = std::min(view.scroll, most);
}

void lane_card(Context& context,
               const std::vector<const engine::RunRecord*>& runs,
               const engine::RunRecord& run,
               ImVec2 size) {
  const std::string id = fmt::format("lane{}", run.id());
  if (begin_card(id.c_str(), size)) {
    const std::size_t n = context.n_steps(run);
    lane_head(context, run);
    // In a narrow lane the figures take the height of the gaps around the bar.
    const bool in_lines = lane_numbers(context, run, n);
    if (!in_lines) ImGui::Dummy({1, px(1)});
    share_bar(progress_of(context, run, n), {ImGui::GetContentRegionAvail().x, px(5)},
              run.started.decoder == "ar" ? theme().dim : fill_of(Mean::Accepted));
    if (!in_lines) ImGui::Dummy({1, px(4)});
    if (run.failed) wrapped(for_window(run.failed->message), theme().bad);
    if (reads_right_to_left(context, run)) right_to_left_words();
    if (ImGui::BeginChild("text")) {
      const AlignedWith aligned = aligned_with(context, runs, run);
      draw_token_text(context, run, false, false, aligned);
      if (!aligned.lanes.empty()) scroll_together(context.states.get<LanesView>(), run.id());
    }
    ImGui::EndChild();
  }
  end_card();
}

// Draws the choice of alignment, so that it ends `from_end` before the right edge. @return where it begins, relative to the window, px
float align_choice(Context& context, float from_end) {
  static constexpr std::array<const char*, kAlignments> kNames{"not aligned", "aligned, against AR",
                                                               "aligned, against selected"};
  LanesView& view = context.states.get<LanesView>();
  // It is placed by its width in the last frame.
  float* width = ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("align_width"), px(110));
  const float begin = right_edge() - from_end - *width;
  ImGui::SameLine(begin);
  ImGui::BeginGroup();
  int align = static_cast<int>(view.align);
  if (quiet_choice("##align", "", kNames, align)) view.align = static_cast<LanesView::Align>(align);
  ImGui::EndGroup();
  *width = ImGui::GetItemRectSize().x;
  if (ImGui::IsItemHovered())
    tooltip(
        "aligned: tokens with the same index have the same place in all lanes, and the first one "
        "that differs is marked (Y)");
  return begin;
}

// Draws the prompt on one line, where the height is needed for the answers; the "?" explains the cells.
void prompt_line(Context& context, const char* label, const std::string& prompt) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(6)));
  if (begin_card("prompt", {0, px(40)})) {
    const float* align_wide =
        ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("align_width"), px(110));
    const float end = right_edge() - px(34);
    ImGui::AlignTextToFramePadding();
    small_label(label);
    ImGui::SameLine(0, px(10));
    ImGui::PushFont(fonts().mono, kMonoSize);
    std::string line = prompt;
    std::ranges::replace(line, '\n', ' ');
    words(elided(line, end - *align_wide - px(20) - ImGui::GetCursorPosX()), theme().text);
    if (ImGui::IsItemHovered()) tooltip(prompt);
    ImGui::PopFont();
    align_choice(context, px(34) + px(8));
    ImGui::SameLine(end);
    panel_legend(kLanesPanel);
  }
  end_card();
  ImGui::PopStyleVar();
}

void prompt_card(Context& context, const std::vector<const engine::RunRecord*>& runs, bool is_low) {
  const engine::RunRecord& run = *runs.front();
  const bool shared = std::all_of(runs.begin(), runs.end(), [&](const engine::RunRecord* other) {
    return other->started.prompt == run.started.prompt;
  });
  const char* label = shared ? "Prompt, shared" : "Prompt of A; other lanes have their own";
  if (is_low) return prompt_line(context, label, run.started.prompt);
  if (begin_card("prompt", {0, px(84)})) {
    const float left = ImGui::GetCursorPosX(), top = ImGui::GetCursorPosY();
    small_label(label);
    ImGui::SameLine(0, px(10));
    ImGui::PushFont(fonts().mono, kMonoSize);
    const ImVec2 at = ImGui::GetCursorPos();
    const float* align_wide =
        ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("align_width"), px(110));
    const float edge = right_edge() - px(60), room = edge - *align_wide - px(8);
    ImGui::PushTextWrapPos(room);
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImGui::PushClipRect(from, {from.x + room, from.y + px(34)}, true);
    words(run.started.prompt, theme().text);
    ImGui::PopClipRect();
    ImGui::PopTextWrapPos();
    if (ImGui::IsItemHovered()) tooltip(run.started.prompt);  // which may have more lines
    ImGui::PopFont();
    ImGui::SetCursorPos({left, at.y - ImGui::GetStyle().FramePadding.y});
    ImGui::Dummy({0, 0});
    align_choice(context, px(60));
    ImGui::SetCursorPos({edge + px(18), at.y - ImGui::GetStyle().FramePadding.y});
    panel_legend(kLanesPanel);
    ImGui::SetCursorPos({left, top + px(34)});
    legend(kLegend, true);
  }
  end_card();
}

void draw_lanes(Context& context) {
  const auto runs = context.shown_runs();
  const ImVec2 all = ImGui::GetContentRegionAvail();
  // In the lowest window only Setup shows the prompt.
  if (all.y >= px(kLowestWithPrompt)) prompt_card(context, runs, all.y < px(kLowLanes));
  const float gap = px(8), n = static_cast<float>(runs.size());
  // Narrower lanes would cut their figures, so the panel scrolls sideways.
  const float wide = std::max((all.x - gap * (n - 1)) / n, px(kNarrowestLane));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  const float high = ImGui::GetContentRegionAvail().y;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, gap);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(6)));
    lane_card(context, runs, *runs[i], {wide, high});
    ImGui::PopStyleVar();
  }
  ImGui::PopStyleVar();
}

}  // namespace

const Panel kLanesPanel{
    .id = "lanes",
    .title = "Lanes",
    .empty = why_no_lanes,
    .draw = draw_lanes,
    .help = "Each column is one lane of the race; all lanes have used the same own compute.",
    .marks = cell_marks(),
    .sketch = Sketch::Cells,
    .wide = true,
    .bare = true,
    .main = true,
    .compare = Dock::Centre};

}  // namespace ui
