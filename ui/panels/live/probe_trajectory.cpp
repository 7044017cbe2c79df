#include "ui/panels/live/probe_trajectory.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/training_history.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/live/trajectory.h"
#include "ui/panels/results/training.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/prepare/training.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

constexpr Mean kProbeLegend[] = {Mean::Accepted, Mean::FastForward, Mean::Stationary, Mean::Guess};
constexpr float kChartWidth = 380, kChartHeight = 230;

// The counts of all probes of the training run.
struct CountsOfProbes : PanelState {
  std::uint64_t version = 0;  // version of the history
  std::vector<ProbeCounts> counts;
  void training_changed() override {
    version = 0;
    counts.clear();
  }
};

// The x axis of the chart of counts.
struct ProbeChart : PanelState {
  ChartAxis x;
  void training_changed() override { x = {}; }
};

const std::vector<ProbeCounts>& counts_shown(Context& context) {
  auto& prepared = context.states.get<CountsOfProbes>();
  if (prepared.version != context.training->version) {
    prepared.counts = counts_of(*context.training);
    prepared.version = context.training->version;
  }
  return prepared.counts;
}

// Returns the index of the probe shown: the newest, or the last one up to the chosen step.
std::size_t shown_probe(Context& context) {
  const auto& probes = context.training->probes;
  const std::int64_t step = context.states.get<ProbeView>().step;
  if (step < 0) return probes.size() - 1;
  const auto after = std::ranges::upper_bound(probes, step, {}, &engine::ProbeTrajectory::step);
  return after == probes.begin() ? 0 : static_cast<std::size_t>(after - probes.begin()) - 1;
}

void show_probe(Context& context, std::size_t probe) {
  const auto& probes = context.training->probes;
  context.states.get<ProbeView>().step = probe + 1 >= probes.size() ? -1 : probes[probe].step;
}

std::string why_no_trajectory(const Context& context) {
  if (std::string none = no_training_yet(context); !none.empty()) return none;
  if (!context.training->probes.empty()) return "";
  return "This training run records no trajectories. Consistency training (train cllm) records one "
         "at the beginning, at every probe and at the end.";
}

// Draws the name of the probe shown and the buttons that choose another.
void probe_choice(Context& context, std::size_t probe) {
  const engine::TrainingHistory& history = *context.training;
  const std::size_t n = history.probes.size();
  if (button("<###earlier", false, probe > 0, "previous probe (Left)"))
    walk_probes(context, -1, false);
  ImGui::SameLine();
  if (button(">###later", false, probe + 1 < n, "next probe (Right)"))
    walk_probes(context, 1, false);
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words(
      fmt::format("probe {} of {}, step {}", probe + 1, n, with_commas(history.probes[probe].step)),
      theme().bright);
  if (n < 2) return;
  ImGui::SameLine();
  ImGui::SetNextItemWidth(std::max(px(80), ImGui::GetContentRegionAvail().x - px(8)));
  int at = static_cast<int>(probe);
  if (ImGui::SliderInt("##probe", &at, 0, static_cast<int>(n) - 1, ""))
    show_probe(context, static_cast<std::size_t>(at));
}

// Draws the figures of the probe shown, each beside its value at the first probe.
void counts_part(const std::vector<ProbeCounts>& counts, std::size_t probe) {
  const ProbeCounts &now = counts[probe], &first = counts.front();
  const auto row = [](const char* label, double value, double at_first, const char* help) {
    label_value(label, fmt::format("{:.2f}   (first probe {:.2f})", value, at_first),
                Truth::Hindsight);
    if (ImGui::IsItemHovered()) tooltip(help);
  };
  row("tokens / iteration", now.tokens_per_iteration(), first.tokens_per_iteration(),
      "tokens of the answer / iterations of its blocks");
  row("fast-forward", now.fast_forward, first.fast_forward,
      "tokens per iteration that become correct in order; mean over the blocks of each block's "
      "mean");
  row("stationary tokens", now.n_stationary, first.n_stationary,
      "tokens that were correct before all preceding tokens were, and did not change again");
  label_value("iterations", fmt::format("{} for {} tokens", now.n_iterations, now.n_tokens));
}

void over_training(Context& context, std::size_t probe) {
  const auto& counts = counts_shown(context);
  ImGui::BeginChild("over_training", {px(kChartWidth), 0});
  counts_part(counts, probe);
  ImGui::Dummy({1, px(4)});
  const auto clicked = draw_chart(
      "probes", curves_of(counts), context.states.get<ProbeChart>().x,
      {.x_name = "steps", .dots = true, .marked = static_cast<double>(counts[probe].step)},
      {ImGui::GetContentRegionAvail().x, px(kChartHeight)});
  for (std::size_t i = 0; clicked && i < counts.size(); ++i)
    if (static_cast<double>(counts[i].step) == *clicked) show_probe(context, i);
  ImGui::EndChild();
}

void blocks_part(Context& context, const engine::ProbeTrajectory& probe) {
  const engine::TrainingHistory& history = *context.training;
  GridCells cells{.text = [&history](engine::TokenId id) { return piece_text(history, id); }};
  cells.marks = context.marks();
  ImGui::BeginChild("blocks", {0, 0}, ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  small_label("unseen prompt");
  wrapped(engine::printable(probe.prompt), theme().text);
  small_label("answer");
  wrapped(answer_text(history, probe), theme().bright);
  int first = 0;
  for (std::size_t b = 0; b < probe.blocks.size(); ++b) {
    const auto& states = probe.blocks[b];
    ImGui::Dummy({1, px(3)});
    small_label(fmt::format("block {} \xC2\xB7 {} to its fixed point", b + 1,
                            engine::counted(std::ssize(states) - 1, "iteration")));
    ImGui::PushID(static_cast<int>(b));
    cells.where = [first](const GridRow& row, int position) {
      return fmt::format("iteration {} \xC2\xB7 token {} of the answer", row.iteration,
                         first + position + 1);
    };
    const auto& view = context.states.get<BlockGridView>();
    Grid grid = states_grid(states, view.hindsight);
    if (view.only_changed) only_changes(grid);
    draw_block_grid(grid, cells);
    ImGui::PopID();
    first += static_cast<int>(states.front().size());
  }
  ImGui::Dummy({1, px(4)});
  legend(kProbeLegend, false);
  ImGui::EndChild();
}

void draw(Context& context) {
  const std::size_t probe = shown_probe(context);
  probe_choice(context, probe);
  ImGui::Dummy({1, px(2)});
  over_training(context, probe);
  ImGui::SameLine(0, px(14));
  blocks_part(context, context.training->probes[probe]);
}

void draw_head(Context& context) {
  auto& view = context.states.get<BlockGridView>();
  panel_legend(kProbeTrajectoryPanel);
  ImGui::SameLine();
  tick("correct in hindsight (h)", view.hindsight);
  ImGui::SameLine();
  tick("only changed", view.only_changed);
  if (ImGui::IsItemHovered()) tooltip("Tokens that an iteration did not change become dots.");
}

}  // namespace

void walk_probes(Context& context, int by, bool to_end) {
  const auto& probes = context.training->probes;
  if (probes.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(probes.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(shown_probe(context));
  const std::ptrdiff_t to =
      to_end ? (by > 0 ? last : 0) : std::clamp<std::ptrdiff_t>(at + by, 0, last);
  show_probe(context, static_cast<std::size_t>(to));
}

const Panel kProbeTrajectoryPanel{
    .id = "probe_trajectory",
    .title = "Trajectory, probe by probe",
    .empty = why_no_trajectory,
    .draw = draw,
    .head = draw_head,
    .help = "The Jacobi blocks of one unseen prompt, decoded by the weights of a probe.",
    .marks = trajectory_marks(),
    .sketch = Sketch::Staircase,
    .training = Dock::Foot};

}  // namespace ui
