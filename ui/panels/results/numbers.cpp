#include "ui/panels/results/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "ui/panels/results/run_numbers.h"
#include "ui/panels/step/distributions.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/sets/repeats.h"
#include "ui/prepare/time/curves.h"
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
  if (kDistributionsPanel.fits(run) && link("Show the last of them in P/Q###show_pq")) {
    context.selection.choose({}, {run.id(), steps.back(), -1, -1});
    context.requests.panel = kDistributionsPanel.id;
  }
  ImGui::Dummy({1, px(2)});
}

// The x axes of the bars; those of another run begin with all bars in view.
struct BarAxes : PanelState {
  engine::RunId run = 0;
  ChartAxis position, tokens, compute;
  void document_changed() override { run = 0; }
};

BarAxes& bar_axes(Context& context, const engine::RunRecord& run) {
  BarAxes& axes = context.states.get<BarAxes>();
  if (axes.run != run.id()) axes.position = axes.tokens = axes.compute = {};
  axes.run = run.id();
  return axes;
}

struct PointedBar {
  int index = -1;  // of the bar under the mouse; -1: none
  bool is_clicked = false;
};

PointedBar draw_bars(const char* label, const Curve& bars, ChartAxis& axis, const ChartLook& look) {
  ImGui::Dummy({1, px(4)});
  small_label(label);
  const bool is_clicked =
      draw_chart(label, {&bars, 1}, axis, look, {ImGui::GetContentRegionAvail().x, px(120)})
          .has_value();
  if (std::isnan(axis.hovered)) return {};
  return {static_cast<int>(nearest(bars, axis.hovered).value_or(0)), is_clicked};
}

void acceptance(Context& context, const engine::RunRecord& run, const StepRange& n_steps) {
  const Tally& tally = tally_of(context, run, n_steps);
  if (tally.by_place.empty()) return;
  Curve bars;
  for (const AcceptanceAt& at : tally.by_place) {
    bars.x.push_back(static_cast<double>(bars.x.size()) + 1);
    bars.y.push_back(at.verified > 0 ? 100.0 * at.accepted / at.verified : 0);
  }
  const PointedBar pointed = draw_bars(
      "accepted of verified, %", bars, bar_axes(context, run).position,
      {.x_name = "position", .whole = true, .bar_width = 0.8, .ink = fill_of(Mean::Accepted)});
  if (pointed.index < 0) return;
  const int place = pointed.index + 1;
  const AcceptanceAt& at = tally.by_place[static_cast<std::size_t>(pointed.index)];
  formula_tooltip({fmt::format("acceptance at position {}", place),
                   at.verified > 0 ? fmt::format("{:.0f} %", bars.y[pointed.index]) : "-",
                   "accepted / verified at this position; unused proposals were not verified",
                   fmt::format("{} / {}", at.accepted, at.verified), Truth::Derived,
                   StepSet::Verified});
  if (pointed.is_clicked)
    context.choose_steps(run, steps_verifying(run, n_steps, place),
                         fmt::format("verified a proposal at position {}", place));
}

// Draws how many steps are in each bin; the first bin is centred at `first`, the next at first + wide.
// @param predicate  returns the property that the steps of a bin share
// @return the index of the bin that was clicked; -1: none
template <class Predicate>
int histogram(const char* label,
              const std::vector<int>& counts,
              double first,
              double wide,
              const char* unit,
              ChartAxis& axis,
              const Predicate& predicate) {
  Curve bars;
  double total = 0;
  for (const int count : counts) {
    bars.x.push_back(first + wide * static_cast<double>(bars.x.size()));
    bars.y.push_back(count);
    total += count;
  }
  if (total == 0) return -1;
  const PointedBar pointed =
      draw_bars(label, bars, axis,
                {.x_name = unit, .whole = wide == 1, .bar_width = 0.8 * wide, .ink = theme().work});
  if (pointed.index >= 0)
    tooltip(fmt::format("{} of {} steps {}.\nClick: select them.", bars.y[pointed.index], total,
                        predicate(pointed.index)));
  return pointed.is_clicked ? pointed.index : -1;
}

void histograms(Context& context,
                const engine::RunRecord& run,
                const RunTimes& times,
                const StepRange& n) {
  BarAxes& axes = bar_axes(context, run);
  const Tally& tally = tally_of(context, run, n);
  if (tally.committed.size() > 1) {
    const auto committed = [](int bar) { return "committed " + engine::counted(bar, "token"); };
    const int bar = histogram("tokens committed per step", tally.committed, 0, 1, "tokens",
                              axes.tokens, committed);
    if (bar >= 0) context.choose_steps(run, steps_that_committed(times, n, bar), committed(bar));
  }
  const StepHistogram& steps = histogram_of(context, run, n, 24);
  // In microseconds below 1 ms, so that the labels of the axis are short.
  const char* unit = steps.top_ms < 1 ? "us" : "ms";
  const double unit_ns = steps.top_ms < 1 ? 1e3 : 1e6;
  const double wide_ns =
      steps.top_ms * 1e6 / std::max(1.0, static_cast<double>(steps.count.size()));
  const double wide = wide_ns / unit_ns;
  const auto took = [&](int bar) {
    const std::string from = short_time(bar * wide_ns), to = short_time((bar + 1) * wide_ns);
    return bar + 1 == static_cast<int>(steps.count.size()) ? fmt::format("took {} or more", from)
                                                           : fmt::format("took {} to {}", from, to);
  };
  const int bar =
      histogram("own compute per step", steps.count, wide / 2, wide, unit, axes.compute, took);
  if (bar >= 0) context.choose_steps(run, steps_in_bin(times, n, steps, bar), took(bar));
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
    if (selectable(size_words(row).c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
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
    .names_run = true,
    .live = Dock::Right};

}  // namespace ui
