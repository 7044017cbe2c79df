#include "ui/panels/time/simulation_settings.h"

#include <algorithm>
#include <string>
#include <vector>

#include <imgui.h>

#include "ui/prepare/time/simulation.h"
#include "ui/prepare/time/simulation_form.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Places the next item beside the last one, or below it if there is no room.
void next_in_row(float width) {
  const float at = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + px(16);
  if (at + width <= right_edge()) ImGui::SameLine(0, px(16));
}

// Draws the label of a setting; the next item is the field, `width` pixels wide.
void setting_label(const char* label, float width, const char* help) {
  next_in_row(ImGui::CalcTextSize(label).x + px(6) + width);
  ImGui::AlignTextToFramePadding();
  words(label, theme().dim);
  if (ImGui::IsItemHovered()) tooltip(help);
  ImGui::SameLine(0, px(6));
  ImGui::SetNextItemWidth(width);
}

// Draws a slider for a stage time; it shows the recorded mean until the user moves it.
void stage_slider(
    const char* label, const char* id, float& set_ms, double recorded_ms, const char* help) {
  setting_label(label, px(110), help);
  float shown = set_ms < 0 ? static_cast<float>(recorded_ms) : set_ms;
  const float highest = std::clamp(10 * static_cast<float>(recorded_ms), 10.0f, kLongestStageMs);
  if (ImGui::SliderFloat(id, &shown, kShortestStageMs, highest, "%.3g ms",
                         ImGuiSliderFlags_Logarithmic))
    set_ms = std::clamp(shown, kShortestStageMs, kLongestStageMs);
  if (ImGui::IsItemHovered()) tooltip(help);
}

void policy_choice(const Catalog& catalog, std::string& policy) {
  setting_label("policy", px(90),
                "which branch drafts next, and which waiting draft is verified next");
  if (!ImGui::BeginCombo("##simulated_policy", policy.c_str())) return;
  const CatalogDecoder* seed = catalog.decoder("seed");
  for (const CatalogOption& option : seed ? seed->options : std::vector<CatalogOption>{}) {
    if (option.name != "policy") continue;
    for (const std::string& name : option.choices) {
      const std::string why = why_no_policy(name);
      ImGui::BeginDisabled(!why.empty());
      if (selectable(name.c_str(), name == policy)) policy = name;
      ImGui::EndDisabled();
      if (!why.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why);
    }
  }
  ImGui::EndCombo();
}

}  // namespace

void simulation_settings(Context& context, const engine::Schedule& recorded, SimulationForm& form) {
  constexpr int kMostBranches = 16;
  ImGui::AlignTextToFramePadding();
  words("SIMULATED", theme().warn);
  if (ImGui::IsItemHovered())
    tooltip(
        "Simulates the recorded rounds, with the tokens that each committed, in stages of fixed "
        "length. Nothing here was measured. A verification covers one branch, prompts take no "
        "time, and sequences that waited for a level of a search wait for it here too.");
  stage_slider("Td", "##simulated_draft", form.draft_ms, recorded_draft_ms(recorded),
               "time to draft for one branch; initially the recorded mean");
  stage_slider("Tv", "##simulated_verify", form.verify_ms, recorded_verify_ms(recorded),
               "time to verify a draft; initially the recorded mean");
  setting_label("branches", px(92), "sequences at the same time");
  int n = stages_of(form, recorded).n_branches;
  if (ImGui::InputInt("##simulated_branches", &n, 1, 1))
    form.n_branches = std::clamp(n, 1, kMostBranches);
  policy_choice(context.catalog, form.policy);
  static constexpr const char* kDrafts[] = {"one per branch", "one for all", "2 at once",
                                            "3 at once",      "4 at once",   "5 at once"};
  next_in_row(px(150));
  quiet_choice("##simulated_drafts", "drafts: ", kDrafts,
               form.n_drafts);  // the index is the number
  next_in_row(px(40));
  if (link("reset###simulated_reset")) form = {.on = true};
}

}  // namespace ui
