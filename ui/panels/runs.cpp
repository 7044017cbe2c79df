// The runs of this session, or of the opened recording.
#include "ui/panels/runs.h"

#include <fmt/format.h>

#include <filesystem>

#include "ui/draw.h"
#include "ui/prepare/use_again.h"

namespace ui {
namespace {

std::string result_of(const engine::RunRecord& run) {
  if (run.failed) return "failed";
  const double speed = run.tokens_per_second();
  const std::string tokens = speed > 0 ? short_number(speed) + " tok/s" : "-";
  if (!run.finished) return "live " + tokens;
  return run.finished->stop_reason == "stopped" ? "stopped " + tokens : tokens;
}

std::string facts_of(const Context& context, const engine::RunRecord& run) {
  const engine::RunStarted& s = run.started;
  std::string text = fmt::format("run {}: {}", run.id(), s.decoder);
  if (const engine::ModelLoaded* m = context.timeline.model(s.model))
    text += fmt::format(" on {} at {}, {}, {}", m->name, m->scale, m->dtype, m->device);
  text += fmt::format("\nseed {}, temperature {}, {} tokens at most", s.seed, s.temperature,
                      s.max_tokens);
  for (const auto& [name, value] : s.options) text += fmt::format("\n{} = {}", name, value);
  if (run.finished)
    text += fmt::format("\n{} tokens in {} steps, ended by {}", run.finished->n_tokens,
                        run.finished->n_steps, run.finished->stop_reason);
  if (run.failed) text += "\n" + run.failed->message;
  return text;
}

std::string why_empty(const Context& context) {
  return context.timeline.runs().empty() && context.source.empty()
             ? "Runs of this session and opened recordings are listed here."
             : "";
}

void run_row(Context& context, const engine::RunRecord& run) {
  ImGui::PushID(static_cast<int>(run.id()));
  const bool chosen = context.selection.run == run.id();
  const std::string name = fmt::format(
      "{}{}",
      run.started.race ? fmt::format("{} ", static_cast<char>('A' + run.started.lane % 26)) : "",
      run.started.decoder);
  const ImVec2 at = ImGui::GetCursorPos();
  if (ImGui::Selectable("##run", chosen, ImGuiSelectableFlags_AllowOverlap, {0, px(22)})) {
    context.selection.run = run.id();
    if (run.started.race) context.selection.race = run.started.race;
    context.view.t0 = context.view.t1 = 0;
  }
  if (ImGui::IsItemHovered()) tooltip(facts_of(context, run));
  if (ImGui::BeginPopupContextItem("menu")) {
    if (ImGui::MenuItem("Use these settings again"))
      use_again(context.form, context.catalog, context.timeline, run);
    ImGui::EndPopup();
  }
  ImGui::SetCursorPos({at.x + px(4), at.y + px(2)});
  words(name, chosen ? theme().bright : theme().text);
  const std::string result = result_of(run);
  ImGui::PushFont(fonts().bold, kTextSize);
  ImGui::SameLine(right_edge() - ImGui::CalcTextSize(result.c_str()).x);
  words(result, run.failed ? theme().bad : theme().bright);
  ImGui::PopFont();
  ImGui::PopID();
}

void draw(Context& context) {
  if (!context.source.empty()) {
    wrapped(std::filesystem::path(context.source).filename().string(), theme().text);
    if (ImGui::IsItemHovered()) tooltip("opened recording: " + context.source);
    if (link("Back to this session")) context.requests.show_live_session = true;
    ImGui::Dummy({1, px(2)});
  }
  for (const engine::RunRecord& run : context.timeline.runs()) run_row(context, run);
}

void draw_head(Context& context) {
  if (button("Open...")) context.requests.open = "";
}

}  // namespace

const Panel kRunsPanel{"runs", "Runs", why_empty, draw, draw_head};

}  // namespace ui
