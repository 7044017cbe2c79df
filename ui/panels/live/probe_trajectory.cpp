#include "ui/panels/live/probe_trajectory.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/results/chart.h"
#include "ui/panels/results/training.h"

namespace ui {
namespace {

constexpr Mean kProbeLegend[] = {Mean::Accepted, Mean::FastForward, Mean::Stationary, Mean::Guess};
constexpr float kChartWidth = 380, kChartHeight = 190;

// Index of the probe shown: the one chosen, or the newest there was by then.
std::size_t shown_probe(const ViewState& view, const engine::TrainingHistory& history) {
  const auto& probes = history.probes;
  if (view.training_probe < 0) return probes.size() - 1;
  const auto after =
      std::ranges::upper_bound(probes, view.training_probe, {}, &engine::ProbeTrajectory::step);
  return after == probes.begin() ? 0 : static_cast<std::size_t>(after - probes.begin()) - 1;
}

void show_probe(ViewState& view, const engine::TrainingHistory& history, std::size_t probe) {
  const bool newest = probe + 1 >= history.probes.size();
  view.training_probe = newest ? -1 : history.probes[probe].step;
}

std::string why_no_trajectory(const Context& context) {
  if (std::string none = no_training_yet(context); !none.empty()) return none;
  if (!context.training->probes.empty()) return "";
  return "This training tells no trajectories. A consistency training (train cllm) does, at the "
         "beginning, at every probe and at the end.";
}

// Which probe is shown, and a way to the others.
void probe_choice(Context& context, std::size_t probe) {
  const engine::TrainingHistory& history = *context.training;
  const std::size_t n = history.probes.size();
  if (button("<###earlier", false, probe > 0, "the probe before (Left)"))
    walk_probes(context.view, history, -1, false);
  ImGui::SameLine();
  if (button(">###later", false, probe + 1 < n, "the next probe (Right)"))
    walk_probes(context.view, history, 1, false);
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
    show_probe(context.view, history, static_cast<std::size_t>(at));
}

// What changed since the first probe, in figures.
void counts_part(const std::vector<ProbeCounts>& counts, std::size_t probe) {
  const ProbeCounts &now = counts[probe], &first = counts.front();
  const auto row = [](const char* label, double value, double at_first, const char* help) {
    label_value(label, fmt::format("{:.2f}   ({:.2f} at first)", value, at_first),
                Truth::Hindsight);
    if (ImGui::IsItemHovered()) tooltip(help);
  };
  row("tokens / iteration", now.tokens_per_iteration(), first.tokens_per_iteration(),
      "tokens of the answer / iterations of its blocks");
  row("fast-forward", now.fast_forward, first.fast_forward,
      "tokens that joined the right front, an iteration; mean of the blocks' means");
  row("stationary tokens", now.n_stationary, first.n_stationary,
      "tokens that stood right before all in front of them did, and stayed");
  label_value("iterations", fmt::format("{} for {} tokens", now.n_iterations, now.n_tokens));
}

void over_training(Context& context, std::size_t probe) {
  const auto& counts = context.prepared.probes(*context.training);
  ImGui::BeginChild("over_training", {px(kChartWidth), 0});
  counts_part(counts, probe);
  ImGui::Dummy({1, px(4)});
  const auto clicked = draw_chart(
      "probes", curves_of(counts),
      {.x_name = "steps", .dots = true, .marked = static_cast<double>(counts[probe].step)},
      {ImGui::GetContentRegionAvail().x, px(kChartHeight)});
  for (std::size_t i = 0; clicked && i < counts.size(); ++i)
    if (static_cast<double>(counts[i].step) == *clicked)
      show_probe(context.view, *context.training, i);
  ImGui::EndChild();
}

void blocks_part(Context& context, const engine::ProbeTrajectory& probe) {
  const engine::TrainingHistory& history = *context.training;
  GridCells cells{.text = [&history](engine::TokenId id) { return piece_text(history, id); }};
  cells.marks = context.settings.marks;
  ImGui::BeginChild("blocks", {0, 0}, ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  small_label("unseen prompt");
  wrapped(engine::printable(probe.prompt), theme().text);
  small_label("answer");
  wrapped(answer_text(history, probe), theme().bright);
  int first = 0;
  for (std::size_t b = 0; b < probe.blocks.size(); ++b) {
    const auto& states = probe.blocks[b];
    ImGui::Dummy({1, px(3)});
    small_label(fmt::format("block {} \xC2\xB7 {} iterations to its fixed point", b + 1,
                            states.size() - 1));
    ImGui::PushID(static_cast<int>(b));
    cells.where = [first](const GridRow& row, int position) {
      return fmt::format("iteration {} \xC2\xB7 token {} of the answer", row.iteration,
                         first + position + 1);
    };
    Grid grid = states_grid(states, context.view.hindsight);
    if (context.view.only_changed) only_changes(grid);
    draw_block_grid(grid, cells);
    ImGui::PopID();
    first += static_cast<int>(states.front().size());
  }
  ImGui::Dummy({1, px(4)});
  legend(kProbeLegend, false);
  ImGui::EndChild();
}

void draw(Context& context) {
  const std::size_t probe = shown_probe(context.view, *context.training);
  probe_choice(context, probe);
  ImGui::Dummy({1, px(2)});
  over_training(context, probe);
  ImGui::SameLine(0, px(14));
  blocks_part(context, context.training->probes[probe]);
}

void draw_head(Context& context) {
  legend_word("?###marks_probe", trajectory_marks());
  ImGui::SameLine();
  ImGui::Checkbox("right in hindsight (h)", &context.view.hindsight);
  ImGui::SameLine();
  ImGui::Checkbox("only changed", &context.view.only_changed);
  if (ImGui::IsItemHovered()) tooltip("cells that an iteration left as they were become dots");
}

}  // namespace

void walk_probes(ViewState& view, const engine::TrainingHistory& history, int by, bool to_end) {
  if (history.probes.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(history.probes.size()) - 1;
  const auto at = static_cast<std::ptrdiff_t>(shown_probe(view, history));
  const std::ptrdiff_t to =
      to_end ? (by > 0 ? last : 0) : std::clamp<std::ptrdiff_t>(at + by, 0, last);
  show_probe(view, history, static_cast<std::size_t>(to));
}

const Panel kProbeTrajectoryPanel{.id = "probe_trajectory",
                                  .title = "Trajectory, probe by probe",
                                  .empty = why_no_trajectory,
                                  .draw = draw,
                                  .head = draw_head};

}  // namespace ui
