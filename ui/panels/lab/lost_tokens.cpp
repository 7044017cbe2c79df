// The panel Lost tokens: rejected proposals with the token that came instead.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "engine/lab/acceptance.h"
#include "ui/panels/lab/lab_data.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
extern const Panel kLostTokensPanel;
namespace {

enum Column { Rejected, Instead, After, Times, Unused };

std::string why_none(const Context& context) {
  if (std::string none = why_no_proposals(context); !none.empty()) return none;
  return context.run()->totals.n_rejected > 0 ? "" : "The target has rejected no proposal.";
}

// The order of the rows, and the version of the data that it belongs to.
struct LostView : PanelState {
  std::vector<std::size_t> order;
  std::uint64_t version = 0;
};

// Sorts the rows as the user chose.
void sort(const std::vector<LostToken>& lost, ImGuiTableSortSpecs* specs, LostView& view) {
  view.order.resize(lost.size());
  std::iota(view.order.begin(), view.order.end(), std::size_t{0});
  if (!specs || specs->SpecsCount == 0) return;
  specs->SpecsDirty = false;
  const ImGuiTableColumnSortSpecs& by = specs->Specs[0];
  const auto less = [&](std::size_t i, std::size_t j) {
    const LostToken &a = lost[i], &b = lost[j];
    switch (by.ColumnIndex) {
      case Rejected:
        return a.proposed_text < b.proposed_text;
      case Instead:
        return a.instead_text < b.instead_text;
      case After:
        return a.context < b.context;
      case Times:
        return a.n < b.n;
      default:
        return a.n_unused < b.n_unused;
    }
  };
  const bool descends = by.SortDirection == ImGuiSortDirection_Descending;
  std::ranges::stable_sort(
      view.order, [&](std::size_t i, std::size_t j) { return descends ? less(j, i) : less(i, j); });
}

void row(Context& context, const LostToken& token) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(&token);
  if (selectable("##steps", false, ImGuiSelectableFlags_SpanAllColumns))
    context.choose_steps(*context.run(), token.steps,
                         fmt::format("rejected \"{}\"", token.proposed_text));
  if (ImGui::IsItemHovered()) tooltip("Click: select these steps.");
  ImGui::PopID();
  ImGui::SameLine(0, 0);
  const auto text = [](std::string of, Rgb rgb) {
    show_line_feeds(of);
    ImGui::PushFont(fonts().mono, kTextSize);
    words_within("\"" + of + "\"", rgb, ImGui::GetContentRegionAvail().x);
    ImGui::PopFont();
  };
  text(token.proposed_text, theme().bad);
  ImGui::TableNextColumn();
  text(token.instead_text, theme().bright);
  ImGui::TableNextColumn();
  text(token.context, theme().dim);
  ImGui::TableNextColumn();
  words(fmt::format("{}", token.n), theme().text);
  ImGui::TableNextColumn();
  words(fmt::format("{}", token.n_unused), theme().text);
}

void draw(Context& context) {
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_Sortable | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable("lost", 5, kFlags, {0, ImGui::GetContentRegionAvail().y})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("rejected", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("committed", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("after", ImGuiTableColumnFlags_WidthStretch, 2.5f);
  ImGui::TableSetupColumn(
      "times", ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_PreferSortDescending);
  ImGui::TableSetupColumn("unused", ImGuiTableColumnFlags_PreferSortDescending);
  ImGui::TableHeadersRow();
  const std::vector<LostToken>& lost = lab_lost(context);
  auto& view = context.states.get<LostView>();
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  const std::uint64_t version = lab_version(context);
  if (view.version != version || (specs && specs->SpecsDirty)) sort(lost, specs, view);
  view.version = version;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(view.order.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      row(context, lost[view.order[static_cast<std::size_t>(i)]]);
  ImGui::EndTable();
}

void draw_head(Context& context) {
  lab_head(context, kLostTokensPanel);
}

}  // namespace

const Panel kLostTokensPanel{
    .id = "lost_tokens",
    .title = "Lost tokens",
    .empty = why_none,
    .draw = draw,
    .head = draw_head,
    .help =
        "Proposals that the target rejected, the token that it committed instead, the text "
        "before the last occurrence, how often this happened, and how many proposals after "
        "the rejected ones were not verified.",
    .sketch = Sketch::Lines,
    .lab = Dock::Foot};

}  // namespace ui
