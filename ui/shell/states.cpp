#include "ui/shell/states.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/settings.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/status.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

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

// Draws the progress of loading a model: bytes, speed, time left, memory.
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
              fmt::format("{:.2f} of {:.2f} GB available, after loading", loading.total / 1e9,
                          memory / 1e9));
  if (button("Cancel###cancel_loading", false, true, "keep the current model (Ctrl+.)"))
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
  if (button("Open...###open_here", false, true, "open a model or a recording (Ctrl+O)"))
    context.requests.open = "";
}

// Offers the training run opened last, or another one.
void open_a_training(Context& context) {
  const std::string& last = context.settings.last_training;
  std::error_code none;
  if (!last.empty() && std::filesystem::exists(last, none)) {
    const std::string label = "Open the last one: " + last + "###last_training";
    begin_centred(ImGui::CalcTextSize(label.c_str(), nullptr, true).x);
    if (link(label.c_str())) context.requests.open_training = last;
  }
  begin_centred(button_width("Open..."));
  if (button("Open...###open_here", true, true, "open the folder of a training run (Ctrl+O)"))
    context.requests.open = "";
}

// Returns the newest run that the panel can show, or nullptr.
const engine::RunRecord* run_that_fits(const Context& context, const Panel& panel) {
  const engine::RunRecord* found = nullptr;
  for (const engine::RunRecord& run : context.timeline.runs())
    if (panel.fits(run)) found = &run;
  return found;
}

void alternatives(Context& context, const Panel& panel) {
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

void draw_empty(Context& context, const Panel& panel, const std::string& why) {
  const auto loading = loading_of(context.timeline);
  const bool none = context.compare ? context.shown_runs().empty() : !context.run();
  if (none && loading && panel.main) return loading_card(context, *loading);
  const bool trains = panel.offers_training && !context.training;
  const bool starts = none && !loading && context.waiting < 0 && panel.main;
  const bool fits = none || !panel.fits || context.compare || panel.fits(*context.run());
  const int n_lines = trains || !fits ? 2 : starts ? 1 : 0;
  const float high = static_cast<float>(n_lines) * ImGui::GetFrameHeightWithSpacing();
  empty_state(why, panel.sketch, high, [&] {
    if (trains) return open_a_training(context);
    if (starts) run_or_open(context);
    if (!fits) alternatives(context, panel);
  });
}

}  // namespace ui
