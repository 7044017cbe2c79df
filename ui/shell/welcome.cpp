#include "ui/shell/welcome.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "ui/files/settings.h"
#include "ui/files/setup_form.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/layout.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

// Width of the screen, px at 100 %, below which its two columns are one.
constexpr float kNarrow = 820;

bool door(float high,
          const char* id,
          const char* title,
          const std::string& words_,
          const char* action,
          bool primary,
          const std::string& why_off) {
  bool pressed = false;
  // A low window scrolls; its cards keep the height of their words.
  const float wrap = ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().WindowPadding.x;
  high = std::max(
      high,
      px(90) + ImGui::CalcTextSize(whole_words(words_, wrap).c_str(), nullptr, false, wrap).y);
  if (begin_card(id, {0, high})) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(6)));
    ImGui::PushFont(fonts().bold, 19);
    words(title, theme().bright);
    ImGui::PopFont();
    wrapped(words_, theme().dim);
    ImGui::SetCursorPosY(high - px(44));
    pressed = button(action, primary, why_off.empty(), why_off.c_str());
    if (!why_off.empty()) {
      ImGui::SameLine();
      words_within(why_off, theme().dim, ImGui::GetContentRegionAvail().x);
    }
    ImGui::PopStyleVar();
  }
  end_card();
  return pressed;
}

void doors(Context& context) {
  const Catalog& catalog = context.catalog;
  const bool has_race = !catalog.race_recording.empty();
  const CatalogModel* model = catalog.model(context.form.model);
  // The four cards have one height.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(8)));
  const float high = (ImGui::GetContentRegionAvail().y - 3 * ImGui::GetStyle().ItemSpacing.y) / 4;
  if (door(high, "race", "Watch a race",
           "Several decoders write the same answer side by side with the same compute. This is a "
           "recording, so it needs no model.",
           "Watch###watch", has_race,
           catalog.race_recording.empty() ? "no recording is bundled" : ""))
    context.requests.watch_race = true;
  if (door(high, "lessons", "Learn how it works",
           "Short lessons on recorded runs: predict what a decoder does next, then see it. For "
           "readers who are new to parallel decoding.",
           "Lessons###lessons", false, catalog.lessons.empty() ? "no lesson is installed" : ""))
    context.requests.screen = screen_name(Screen::Lesson);
  const bool is_bundled = !model || model->source.empty() || model->source == "bundled";
  if (door(high, "tiny",
           is_bundled ? "Run the bundled model" : ("Run " + context.form.model).c_str(),
           is_bundled ? "A small model answers a question on this machine with several decoders. "
                        "Nothing is downloaded. Then change the settings and run it again."
                      : "The model answers on this machine with several decoders side by side. "
                        "Then change the prompt and the settings in Setup and run it again.",
           "Run###run_bundled", !has_race, why_not(context.form, catalog, true)))
    context.requests.race = true;
  if (door(high, "mine", "Open my model or a recording",
           "Opens a model (a .gguf file, or a folder with config.json, safetensors and tokenizer), "
           "a recording (.pdrun), or the folder of a training run. You can also drop it on the "
           "window. Setup lists the models that were found on this machine.",
           "Open...###open_mine", false, ""))
    context.requests.open = "";
  ImGui::PopStyleVar();
}

void recent_models(const Context& context) {
  constexpr std::size_t kMost = 4;
  const auto& paths = context.settings.recent_models;
  for (const std::string& path : std::span(paths).first(std::min(paths.size(), kMost))) {
    const auto known = std::ranges::find(context.catalog.models, path, &CatalogModel::path);
    if (known == context.catalog.models.end() || !known->unavailable.empty()) continue;
    if (link((known->name + "##" + path).c_str())) context.requests.open = path;
    if (ImGui::IsItemHovered()) tooltip(known->summary + "\n" + path);
  }
}

void health(const Context& context, bool grows) {
  if (begin_card("health", {0, 0}, true, grows)) {
    ImGui::PushFont(fonts().bold, 19);
    words("This machine", theme().bright);
    ImGui::PopFont();
    ImGui::Dummy({1, px(4)});
    for (const HealthLine& line : context.catalog.health) {
      const bool absent = !line.ok && !line.needed;
      words(line.ok  ? "+"
            : absent ? "-"
                     : "x",
            line.ok  ? theme().good
            : absent ? theme().dim
                     : theme().bad);
      ImGui::SameLine(px(34));
      ImGui::BeginGroup();
      words(line.name, theme().dim);
      ImGui::SameLine(px(150));
      wrapped(line.value, theme().bright);
      if (!line.details.empty()) {
        if (link(("details###details_" + line.name).c_str())) context.requests.copy = line.details;
        if (ImGui::IsItemHovered()) tooltip(line.details + "\nClick: copy");
      }
      if (!line.ok && !line.fix.empty()) wrapped(line.fix, absent ? theme().dim : theme().warn);
      ImGui::EndGroup();
    }
    if (!context.settings.recent_models.empty()) {
      ImGui::Dummy({1, px(8)});
      small_label("Recent models");
      recent_models(context);
    }
    if (!context.settings.recents.empty()) {
      ImGui::Dummy({1, px(8)});
      small_label("Recent recordings");
      for (const std::string& path : context.settings.recents) {
        const std::string name = std::filesystem::path(path).filename().string() + "##" + path;
        if (link(name.c_str())) context.requests.open = path;
        if (ImGui::IsItemHovered()) tooltip(path);
      }
    }
    ImGui::Dummy({1, px(8)});
    if (!context.settings.tour_done) {
      if (link("Take a tour of the window###tour")) context.requests.tour = true;
      if (ImGui::IsItemHovered())
        tooltip(
            "Four steps on the screen Live. Each step ends when you have done it. The sheet of "
            "keys (?) offers the tour again.");
    }
    wrapped(
        "No account, no network, no telemetry. All settings are in one folder. Press ? for the "
        "keyboard shortcuts.",
        theme().dim);
  }
  end_card();
}

}  // namespace

void draw_welcome(Context& context) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float wide = std::min(room.x - px(40), px(1040)), high = px(620);
  ImGui::SetCursorPos({(room.x - wide) / 2, std::max(px(10), (room.y - high) / 2)});
  ImGui::BeginChild("welcome", {wide, std::min(high, room.y)});
  ImGui::PushFont(fonts().bold, 26);
  words("Decoscope", theme().bright);
  ImGui::PopFont();
  wrapped(
      "Watch a language model write several tokens per step, and see why the answer stays the "
      "same.",
      theme().dim);
  ImGui::Dummy({1, px(10)});
  // In a narrow window the machine is below the cards.
  const bool is_narrow = wide < px(kNarrow);
  ImGui::BeginChild("doors", {is_narrow ? 0 : wide * 0.6f, 0},
                    is_narrow ? ImGuiChildFlags_AutoResizeY : ImGuiChildFlags_None);
  doors(context);
  ImGui::EndChild();
  if (!is_narrow) ImGui::SameLine(0, px(8));
  health(context, is_narrow);
  ImGui::EndChild();
}

}  // namespace ui
