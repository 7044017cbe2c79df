// The panel Acceptance: how many proposals the target accepts by depth and task, and the speed-up that follows.
#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/lab/acceptance.h"
#include "engine/lab/cost.h"
#include "ui/panels/lab/lab_data.h"
#include "ui/prepare/time/curves.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/draw.h"

namespace ui {
extern const Panel kAcceptancePanel;
namespace {

struct AcceptanceView : PanelState {
  ChartAxis depth;
  engine::RunId run = 0;
  void document_changed() override { depth = {}; }
};

std::string bounds_words(const engine::Alpha& alpha) {
  if (alpha.n == 0) return "no p and q recorded; runs with sampling=rejection have them";
  std::string text = fmt::format("{} tokens", alpha.n);
  if (alpha.n_bounded > 0)
    text += fmt::format(
        "; the recorded probabilities of {} places bound their 1 - TV(p, q) to {:.2f} to {:.2f}",
        alpha.n_bounded, alpha.low(), alpha.high());
  return text;
}

std::string speedup_words(double speedup) {
  return speedup > 0 && std::isfinite(speedup) ? fmt::format("{:.2f}x", speedup) : "-";
}

std::string share_words(double part, double whole) {
  return whole > 0 ? percent(part / whole) : "-";
}

// The figures at the top of the panel.
void figures(const Acceptance& a, const SpeedAccount& account) {
  const bool uses_alpha = a.is_chain && a.alpha.n > 0;
  label_value({"acceptance rate", share_words(a.accepted, a.proposed),
               "accepted / proposed; the others were rejected or not verified",
               fmt::format("{} / {}", a.accepted, a.proposed), Truth::Derived});
  label_value({"accepted of verified", share_words(a.accepted, a.verified),
               "accepted / (accepted + rejected)", fmt::format("{} / {}", a.accepted, a.verified),
               Truth::Derived});
  label_value({"alpha = 1 - TV(p, q)", a.alpha.n > 0 ? fmt::format("{:.2f}", a.alpha.mean()) : "-",
               "mean of min(1, p / q) over the verified proposals that were the first candidate of "
               "their node",
               bounds_words(a.alpha), Truth::Derived});
  label_value(
      {"expected tokens / step", fmt::format("{:.2f}", a.expected),
       "(1 - a^(g + 1)) / (1 - a), mean over the steps with their own depth g (Leviathan et "
       "al. 2023, equation 1)",
       fmt::format("a = {:.3f}, {}", a.rate(),
                   uses_alpha
                       ? "alpha"
                       : fmt::format("accepted / reached depths: {} / {}", a.passed, a.reached)),
       Truth::Derived});
  label_value({"tokens / step", fmt::format("{:.2f}", a.tokens_per_step()),
               "committed tokens / steps", fmt::format("{} / {}", a.n_tokens, a.n_steps),
               Truth::Measured});
  if (!account.why.empty()) return;
  label_value(
      {"predicted speed-up", speedup_words(account.predicted),
       "expected tokens per step x time of a plain step / time of a step",
       fmt::format("{:.2f} x {:.3g} ms / {:.3g} ms", a.expected, account.plain_ms, account.step_ms),
       Truth::Derived});
  label_value(
      {fmt::format("measured speed-up vs run {}", account.baseline),
       speedup_words(account.measured), "compute of plain decoding / compute of this run",
       account.measured > 0 ? "same prompt and settings, one session" : "the run has not ended",
       Truth::Derived});
}

void by_depth(Context& context, const Acceptance& acceptance) {
  std::vector<Curve> curves{{"accepted of verified", {}, {}}, {"alpha", {}, {}}};
  for (std::size_t i = 0; i < acceptance.by_depth.size(); ++i) {
    const engine::DepthAcceptance& at = acceptance.by_depth[i];
    const double depth = static_cast<double>(i) + 1;
    if (at.verified > 0) {
      curves[0].x.push_back(depth);
      curves[0].y.push_back(static_cast<double>(at.accepted) / at.verified);
    }
    if (at.alpha.n > 0) {
      curves[1].x.push_back(depth);
      curves[1].y.push_back(at.alpha.mean());
    }
  }
  if (curves[1].x.empty()) curves.pop_back();
  auto& view = context.states.get<AcceptanceView>();
  if (view.run != context.selection.run) view.depth = {};
  view.run = context.selection.run;
  draw_chart("by_depth", curves, view.depth, {.x_name = "depth", .whole = true, .dots = true},
             {ImGui::GetContentRegionAvail().x, px(150)});
}

// Begins a table whose first column takes the room that the others leave.
bool begin_table(const char* id, std::initializer_list<const char*> columns) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit |
                                     ImGuiTableFlags_BordersInnerH |
                                     ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(id, static_cast<int>(columns.size()), kFlags)) return false;
  bool is_first = true;
  for (const char* column : columns) {
    ImGui::TableSetupColumn(column, is_first ? ImGuiTableColumnFlags_WidthStretch : 0);
    is_first = false;
  }
  ImGui::TableHeadersRow();
  return true;
}

void cell(const std::string& text, Rgb rgb) {
  ImGui::TableNextColumn();
  words(text, rgb);
}

void part_row(const char* name, double ms, double speedup, Rgb rgb) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  words_within(name, rgb, ImGui::GetContentRegionAvail().x);
  cell(ms == 0 ? "" : fmt::format("{:+.3f}", ms), rgb);
  cell(speedup_words(speedup), rgb);
}

// Draws the predicted speed-up after each part of a step, that with the tokens that were committed in place of the expected ones, and the
// measured one.
void account_table(const SpeedAccount& account, const Acceptance& acceptance) {
  ImGui::Dummy({1, px(4)});
  if (!account.why.empty()) return wrapped(account.why, theme().dim);
  small_label(fmt::format("from a plain step ({:.3g} ms) to this run's ({:.3g} ms)",
                          account.plain_ms, account.step_ms));
  if (!begin_table("account", {"part", "ms / step", "speed-up"})) return;
  for (const engine::SpeedPart& part : account.parts)
    part_row(part.name, part.ms, part.speedup, theme().text);
  if (acceptance.expected > 0)
    part_row("with committed tokens", 0,
             account.predicted * acceptance.tokens_per_step() / acceptance.expected, theme().text);
  part_row("measured", 0, account.measured, theme().bright);
  ImGui::EndTable();
}

void task_table(const std::vector<TaskAcceptance>& tasks) {
  if (tasks.empty()) return;
  ImGui::Dummy({1, px(4)});
  small_label("by task, all runs of this decoder with these settings");
  // Little padding, so that six columns fit into a narrow panel.
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(4), ImGui::GetStyle().CellPadding.y));
  const bool is_open =
      begin_table("tasks", {"task", "runs", "accepted", "of verified", "alpha", "tok/step"});
  ImGui::PopStyleVar();
  if (!is_open) return;
  const auto share = [](std::int64_t accepted, std::int64_t of, const char* formula) {
    cell(share_words(double(accepted), double(of)), theme().text);
    if (ImGui::IsItemHovered()) tooltip(fmt::format("{}: {} / {}", formula, accepted, of));
  };
  for (const TaskAcceptance& of : tasks) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    words_within(of.task, theme().text, ImGui::GetContentRegionAvail().x);
    cell(fmt::format("{}", of.n_runs), theme().text);
    share(of.accepted, of.proposed, "accepted / proposed");
    share(of.accepted, of.verified, "accepted / (accepted + rejected)");
    cell(of.alpha.n > 0 ? fmt::format("{:.2f}", of.alpha.mean()) : "-", theme().text);
    if (ImGui::IsItemHovered()) tooltip(bounds_words(of.alpha));
    cell(of.n_steps > 0 ? fmt::format("{:.2f}", double(of.n_tokens) / double(of.n_steps)) : "-",
         theme().text);
  }
  ImGui::EndTable();
}

void draw(Context& context) {
  const Acceptance& acceptance = lab_acceptance(context);
  const SpeedAccount& account = lab_account(context);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  figures(acceptance, account);
  ImGui::Dummy({1, px(2)});
  by_depth(context, acceptance);
  account_table(account, acceptance);
  task_table(lab_tasks(context));
  ImGui::PopStyleVar();
}

void draw_head(Context& context) {
  lab_head(context, kAcceptancePanel);
}

}  // namespace

const Panel kAcceptancePanel{
    .id = "acceptance",
    .title = "Acceptance",
    .empty = why_no_proposals,
    .draw = draw,
    .head = draw_head,
    .help =
        "How many proposals the target accepts at each depth, the tokens per step and the "
        "speed-up that follow from it, and what the parts of a step take away from it.",
    .sketch = Sketch::Curve,
    .lab = Dock::Left};

}  // namespace ui
