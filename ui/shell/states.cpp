#include "ui/shell/states.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "ui/widgets/draw.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

// The panel of a screen that says at length what the others say in a sentence.
bool is_main(const Panel& panel) {
  return std::string_view(panel.id) == "text" || std::string_view(panel.id) == "lanes";
}

void begin_centred(float width) {
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room - width) / 2));
}

float button_width(const char* label) {
  return ImGui::CalcTextSize(label, nullptr, true).x + 2 * ImGui::GetStyle().FramePadding.x;
}

void gigabytes(const std::string& label, double part, double whole, const std::string& facts) {
  ImGui::BeginGroup();
  small_label(label);
  share_bar(static_cast<float>(whole > 0 ? part / whole : 0), {px(360), px(6)}, handle_on(theme()));
  words(facts, theme().text);
  ImGui::EndGroup();
}

// The model on its way: how much of it, how fast, how long still, and what it takes of the memory.
void loading_card(Context& context, const Loading& loading) {
  const float high = px(150), wide = px(360);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() +
                       std::max(0.0f, (ImGui::GetContentRegionAvail().y - high) / 2));
  begin_centred(wide);
  ImGui::BeginGroup();
  ImGui::PushFont(fonts().bold, kTextSize);
  words_within("Loading " + loading.name, theme().bright, wide);
  ImGui::PopFont();
  gigabytes("read", loading.done, loading.total, loading_facts(loading));
  if (const auto memory = static_cast<double>(context.catalog.memory_bytes); memory > 0)
    gigabytes("memory", loading.done, memory,
              fmt::format("{:.2f} of the {:.2f} GB that can be had, when it is there",
                          loading.total / 1e9, memory / 1e9));
  if (button("Cancel###cancel_loading", false, true, "keeps the model there is (Ctrl+.)"))
    context.commands.push(engine::StopRun{});
  ImGui::EndGroup();
}

void run_or_open(Context& context) {
  const bool race = context.compare;
  const char* start = race ? "Run race###run_here" : "Run###run_here";
  const std::string why = why_not(context.form, context.catalog, race);
  begin_centred(button_width(start) + ImGui::GetStyle().ItemSpacing.x + button_width("Open..."));
  if (button(start, true, why.empty(), why.empty() ? "Ctrl+Enter" : why.c_str()))
    (race ? context.requests.race : context.requests.run) = true;
  ImGui::SameLine();
  if (button("Open...###open_here", false, true, "a recording, or a model's folder (Ctrl+O)"))
    context.requests.open = "";
}

// The last one opened, or another.
void open_a_training(Context& context) {
  const std::string& last = context.settings.last_training;
  std::error_code none;
  if (!last.empty() && std::filesystem::exists(last, none)) {
    const std::string label = "Open the last one, " + last + "###last_training";
    begin_centred(ImGui::CalcTextSize(label.c_str(), nullptr, true).x);
    if (link(label.c_str())) context.requests.open_training = last;
  }
  begin_centred(button_width("Open..."));
  if (button("Open...###open_here", true, true, "a training's folder (Ctrl+O)"))
    context.requests.open = "";
}

// The newest run that has what the panel draws.
const engine::RunRecord* run_that_fits(const Context& context, const Panel& panel) {
  const engine::RunRecord* found = nullptr;
  for (const engine::RunRecord& run : context.timeline.runs())
    if (panel.fits(run)) found = &run;
  return found;
}

void ways_on(Context& context, const Panel& panel) {
  const Panel* other = panel.instead ? panel_named(panel.instead(*context.run())) : nullptr;
  if (other) {
    const std::string label = fmt::format("Show the {} panel###instead", other->title);
    begin_centred(ImGui::CalcTextSize(label.c_str(), nullptr, true).x);
    if (link(label.c_str())) context.requests.panel = other->id;
  }
  const engine::RunRecord* run = run_that_fits(context, panel);
  if (!run) return;
  const std::string label =
      fmt::format("Show run {}, {}###fitting", run->id(), context.name_of(*run));
  begin_centred(ImGui::CalcTextSize(label.c_str(), nullptr, true).x);
  if (link(label.c_str())) context.selection.run = run->id();
}

}  // namespace

void draw_empty(Context& context, const Panel& panel, const std::string& why, bool sketch) {
  const auto loading = loading_of(context.timeline);
  const bool none = context.compare ? context.shown_runs().empty() : !context.run();
  if (none && loading && is_main(panel)) return loading_card(context, *loading);
  empty_state(why, sketch);
  if (std::string_view(panel.id) == "loss" && !context.training) return open_a_training(context);
  if (none && !loading && context.waiting < 0 && is_main(panel)) run_or_open(context);
  if (!none && panel.fits && !context.compare && !panel.fits(*context.run()))
    ways_on(context, panel);
}

}  // namespace ui
