#include "ui/panels/results/numbers.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "ui/panels/results/run_numbers.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/sets/repeats.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 60;

// The counts of all runs.
struct TalliesOfRuns : PanelState {
  std::map<engine::RunId, Tally> tallies;
  void document_changed() override { tallies.clear(); }
};

const Tally& tally_of(Context& context, const engine::RunRecord& run, const StepRange& range) {
  Tally& tally = context.states.get<TalliesOfRuns>().tallies[run.id()];
  advance(tally, run, range);
  return tally;
}

// The histograms of all runs. Complete steps do not change, so the number of complete steps identifies a version.
struct HistogramsOfRuns : PanelState {
  struct Entry {
    StepRange range = 0;
    int n_bins = 0;
    StepHistogram histogram;
  };
  std::map<engine::RunId, Entry> entries;
  void document_changed() override { entries.clear(); }
};

const StepHistogram& histogram_of(Context& context,
                                  const engine::RunRecord& run,
                                  const StepRange& range,
                                  int n_bins) {
  HistogramsOfRuns::Entry& entry = context.states.get<HistogramsOfRuns>().entries[run.id()];
  if (entry.range != range || entry.n_bins != n_bins)
    entry = {range, n_bins, step_histogram(context.times(run), range, n_bins)};
  return entry.histogram;
}

void choose_steps_of(Context& context,
                     const engine::RunRecord& run,
                     const RunTimes& times,
                     const StepRange& n,
                     const Figure& figure) {
  context.choose_steps(run, steps_in_set(times, n, figure.step_set),
                       step_set_words(figure.step_set));
}

void four(Context& context,
          const engine::RunRecord& run,
          const RunTimes& times,
          const StepRange& n) {
  const Numbers& numbers = range_numbers(context, run);
  const float half = ImGui::GetContentRegionAvail().x / 2;
  const auto recent = [&](Series s) { return series_of(times, n, s, kRecent); };
  const float left = ImGui::GetCursorPosX();
  const auto big = [&](const Figure& figure, std::span<const float> values) {
    if (big_number(figure, values, half)) choose_steps_of(context, run, times, n, figure);
  };
  big(numbers.tokens_per_second, recent(Series::TokensPerSecond));
  ImGui::SameLine(left + half);
  big(numbers.tokens_per_step, recent(Series::TokensPerStep));
  ImGui::Dummy({1, px(2)});
  big(numbers.speedup, {});
  ImGui::SameLine(left + half);
  big(numbers.step_median, recent(Series::StepMs));
}

// Warns when no proposal has been accepted for many steps.
void no_acceptance_note(Context& context,
                        const engine::RunRecord& run,
                        const RunTimes& times,
                        const StepRange& n) {
  const std::vector<engine::StepId> steps = steps_without_acceptance(times, n);
  if (steps.empty()) return;
  wrapped(fmt::format("No proposal was accepted in the last {} steps that proposed tokens. {}",
                      steps.size(),
                      traits_of(run).guesses && !traits_of(run).pool
                          ? "The text may not repeat itself."
                          : "Possible causes: the prompt lacks the model's template, the tokenizer "
                            "belongs to another model, or the temperature is too high."),
          theme().warn);
  if (link("Select these steps"))
    context.choose_steps(run, steps, "proposed tokens without an acceptance");
  ImGui::Dummy({1, px(2)});
}

void acceptance(Context& context, const engine::RunRecord& run, const StepRange& n_steps) {
  const Tally& tally = tally_of(context, run, n_steps);
  if (tally.by_place.empty()) return;
  ImGui::Dummy({1, px(4)});
  small_label("accepted at position");
  const float full = std::max(px(20), ImGui::GetContentRegionAvail().x - px(150));
  const std::size_t n = std::min<std::size_t>(tally.by_place.size(), 8);
  const ImVec2 top = ImGui::GetCursorScreenPos();
  std::vector<double> middles, lengths;  // of the bars, px
  float left = top.x;                    // of the bars
  for (std::size_t i = 0; i < n; ++i) {
    const AcceptanceAt& at = tally.by_place[i];
    const float share =
        at.verified > 0 ? static_cast<float>(at.accepted) / static_cast<float>(at.verified) : 0;
    ImGui::BeginGroup();
    words(fmt::format("{}", i + 1), theme().dim);
    ImGui::SameLine(px(34));
    const float width = std::max(px(2), full * share);
    left = ImGui::GetCursorScreenPos().x;
    middles.push_back(ImGui::GetCursorScreenPos().y + px(9) - top.y);
    lengths.push_back(width);
    ImGui::Dummy({width, px(16)});
    ImGui::SameLine();
    words(at.verified > 0 ? percent(share) : "-", theme().bright);
    ImGui::SameLine();
    words(fmt::format("n={}", at.verified), theme().dim);
    ImGui::EndGroup();
    const Figure figure{fmt::format("acceptance at position {}", i + 1),
                        at.verified > 0 ? percent(share) : "-",
                        "accepted / verified at this position; unused proposals were not verified",
                        fmt::format("{} / {}", at.accepted, at.verified),
                        Truth::Derived,
                        StepSet::Verified};
    ImGui::SetCursorScreenPos(ImGui::GetItemRectMin());
    const int place = static_cast<int>(i) + 1;
    if (figure_button(figure, ImGui::GetItemRectSize()))
      context.choose_steps(run, steps_verifying(run, n_steps, place),
                           fmt::format("verified a proposal at position {}", place));
  }
  const ImVec2 end = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({left, top.y});
  draw_bars("accepted",
            {.at = middles,
             .length = lengths,
             .last = end.y - top.y,
             .longest = full,
             .thickness = px(10),
             .lie = true},
            fill_of(Mean::Accepted), {full, end.y - top.y});
  ImGui::SetCursorScreenPos(end);
}

// Draws a histogram. @return the index of the bar that was clicked; -1: none
int histogram(const char* label,
              std::span<const int> counts,
              const std::string& last,
              const char* unit) {
  int top = 0, pressed = -1;
  std::int64_t total = 0;
  for (const int c : counts) top = std::max(top, c), total += c;
  if (top == 0) return pressed;
  ImGui::Dummy({1, px(2)});
  small_label(label);
  ImGui::PushID(label);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, high = px(26);
  const float wide = room / static_cast<float>(counts.size());
  std::vector<double> middles, lengths;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    middles.push_back(static_cast<double>(i) + 0.5);
    lengths.push_back(counts[i]);
  }
  draw_bars("bars",
            {.at = middles,
             .length = lengths,
             .last = static_cast<double>(counts.size()),
             .longest = static_cast<double>(top),
             .thickness = std::max(0.3f, 1 - px(2) / wide)},
            theme().work, {std::max(px(20), room), high});
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    ImGui::SetCursorScreenPos({at.x + wide * static_cast<float>(i), at.y});
    if (ImGui::InvisibleButton("bar", {std::max(1.0f, wide), high})) pressed = static_cast<int>(i);
    if (ImGui::IsItemHovered())
      tooltip(fmt::format("{} {}: {} of {} steps\nClick: select them.", i, unit, counts[i], total));
    ImGui::PopID();
  }
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  list->AddLine({at.x, at.y + high + 1}, {at.x + room, at.y + high + 1}, colour(theme().line));
  ImGui::Dummy({room, high + px(2)});
  ImGui::PushFont(nullptr, 12);
  words("0", theme().dim);
  ImGui::SameLine(std::max(0.0f, right_edge() - ImGui::CalcTextSize(last.c_str()).x));
  words(last, theme().dim);
  ImGui::PopFont();
  return pressed;
}

void histograms(Context& context,
                const engine::RunRecord& run,
                const RunTimes& times,
                const StepRange& n) {
  const Tally& tally = tally_of(context, run, n);
  if (tally.committed.size() > 1) {
    const int bar = histogram("tokens committed per step", tally.committed,
                              fmt::format("{}", tally.committed.size() - 1), "tokens");
    if (bar >= 0)
      context.choose_steps(run, steps_that_committed(times, n, bar),
                           "committed " + engine::counted(bar, "token"));
  }
  const StepHistogram& steps = histogram_of(context, run, n, 24);
  const int bar = histogram("own compute per step", steps.count, short_time(steps.top_ms * 1e6),
                            "th bin of the range");
  if (bar < 0) return;
  const double wide = steps.top_ms * 1e6 / static_cast<double>(steps.count.size());
  context.choose_steps(
      run, steps_in_bin(times, n, steps, bar),
      bar + 1 == static_cast<int>(steps.count.size())
          ? fmt::format("took {} or more", short_time(bar * wide))
          : fmt::format("took {} to {}", short_time(bar * wide), short_time((bar + 1) * wide)));
}

std::string size_words(const SizeRow& row) {
  if (row.largest == 0) return "none";
  return row.smallest == row.largest ? fmt::format("{}", row.smallest)
                                     : fmt::format("{}-{}", row.smallest, row.largest);
}

// Draws an expected number beside the actual one, which is marked if they differ by more than a quarter.
void expected_and_actual(double expected, double actual, const char* format) {
  ImGui::TableNextColumn();
  words(fmt::format(fmt::runtime(format), expected), theme().dim);
  ImGui::TableNextColumn();
  const bool is_near = actual <= 1.25 * expected && expected <= 1.25 * actual;
  words(fmt::format(fmt::runtime(format), actual), is_near ? theme().bright : theme().warn);
}

// Draws the sizes that the decoder chose, with their expected and actual tokens and time.
void chosen_sizes(Context& context, const engine::RunRecord& run, const StepRange& n_steps) {
  constexpr std::size_t kRows = 7;
  const std::vector<SizeRow> rows = size_table(tally_of(context, run, n_steps), kRows);
  if (rows.empty()) return;
  ImGui::Dummy({1, px(4)});
  small_label("chosen sizes: expected, actual");
  if (!ImGui::BeginTable("sizes", 6, ImGuiTableFlags_SizingStretchProp)) return;
  for (const char* name : {"size", "steps", "tokens", "actual", "ms", "actual"})
    ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (const SizeRow& row : rows) {
    ImGui::PushID(row.smallest);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (ImGui::Selectable(size_words(row).c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
      context.choose_steps(run, steps_of_size(run, n_steps, row.smallest, row.largest),
                           row.largest == 0 ? "chose no guesses" : "chose size " + size_words(row));
    if (ImGui::IsItemHovered())
      tooltip(fmt::format("{} of size {}, {} of them probes; means per step.\nClick: select them.",
                          engine::counted(row.n_steps, "step"), size_words(row), row.n_probes));
    ImGui::TableNextColumn();
    words(fmt::format("{}", row.n_steps), theme().text);
    expected_and_actual(row.expected_tokens, row.tokens, "{:.2f}");
    expected_and_actual(row.expected_ms, row.ms, "{:.3g}");
    ImGui::PopID();
  }
  ImGui::EndTable();
}

// The figures of the run's repeats, computed once per change.
struct RepeatsOfRun : PanelState {
  engine::RunId run = 0;    // 0: not computed yet
  std::size_t n_ended = 0;  // runs that had ended then
  RepeatFigures figures;
  void document_changed() override { run = 0; }
};

void repeats(Context& context, const engine::RunRecord& run) {
  if (run.started.place.n_repeats == 1) return;
  RepeatsOfRun& all = context.states.get<RepeatsOfRun>();
  const std::size_t n = n_ended(context.timeline);
  if (all.run != run.id() || all.n_ended != n) {
    all.run = run.id(), all.n_ended = n;
    all.figures = repeat_figures(context.timeline, run);
  }
  ImGui::Dummy({1, px(4)});
  small_label(repeat_words(all.figures));
  for (const Figure& figure : figures_of(all.figures)) label_value(figure);
}

// Says that the figures cover only the measured range, with a button that removes it.
void range_note(Context& context, const StepRange& range) {
  TimeRange& measured = context.states.get<TimelineView>().range;
  if (measured.range0 == measured.range1) return;
  std::string words = "no step of this run ends in it";
  if (range.size() == 1) words = fmt::format("step {}", range.first);
  if (range.size() > 1) words = fmt::format("steps {} to {}", range.first, range.end - 1);
  wrapped("Measured range: " + words, theme().warn);
  if (button("Clear the range###clear_range", false, true,
             "show the figures of all steps up to the playhead"))
    measured.forget_measured();
  ImGui::Dummy({1, px(2)});
}

void draw_numbers(Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  const engine::RunRecord& run = *context.run();
  const RunTimes& times = context.times(run);
  const StepRange n = steps_for_numbers(context, run);
  range_note(context, n);
  no_acceptance_note(context, run, times, n);
  four(context, run, times, n);
  repeats(context, run);
  acceptance(context, run, n);
  chosen_sizes(context, run, n);
  ImGui::Dummy({1, px(4)});
  const Numbers& numbers = range_numbers(context, run);
  for (const Figure& figure : numbers.more)
    if (label_value(figure)) choose_steps_of(context, run, times, n, figure);
  histograms(context, run, times, n);
  ImGui::PopStyleVar();
}

void draw_numbers_head(Context&) {
  panel_legend(kNumbersPanel);
}

}  // namespace

const Panel kNumbersPanel{
    .id = "numbers",
    .title = "Numbers",
    .empty = no_run_yet,
    .draw = draw_numbers,
    .head = draw_numbers_head,
    .help =
        "The figures of the run up to the playhead, or of the steps that end in the "
        "measured range. Hover a figure for its formula, click it for its "
        "steps.",
    .sketch = Sketch::Columns,
    .live = Dock::Right};

}  // namespace ui
