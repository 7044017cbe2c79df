// The tabs and heads of docked panels. Decides which panels have a tab, and which tab comes to the front by itself: once per run, so that the
// user's choice stays. Draws beside the tabs the name of the run that the panel shows, and the panel's controls.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/run_traits.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

ImGuiWindow* window_of(const char* panel_id) {
  return ImGui::FindWindowByName(window_name(Screen::Live, panel_id, "").c_str());
}

bool in_front(const char* panel_id) {
  const ImGuiWindow* window = window_of(panel_id);
  return window && window->WasActive && window->DockIsActive && window->DockTabIsVisible;
}

// Selects the tab without moving the keyboard, which may be in a text field.
void bring_forward(const char* panel_id) {
  ImGuiWindow* window = window_of(panel_id);
  ImGuiDockNode* node = window ? window->DockNode : nullptr;
  if (!node) return;
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  node->SelectedTabId = window->TabId;  // takes effect if there is no tab bar yet
  if (node->TabBar) node->TabBar->NextSelectedTabId = window->TabId;
  // The window takes the focus if a window of the same tab bar has it; that window would otherwise come back to the front.
  if (focused && focused->RootWindow->DockNode == node) ImGui::FocusWindow(window);
}

// Width below which a name is not shortened, and the distance of a name from the tabs and the controls, px at 100 %.
constexpr float kLeastName = 56, kApart = 12;
// The state of a panel's window: true if its head has no room for the run's name.
constexpr const char* kNameInside = "name inside";

// Underlines the open tab if there are several.
void underline_tab(const ImGuiDockNode* node) {
  ImGuiTabBar* bar = node->TabBar;
  if (bar->Tabs.Size < 2) return;
  for (const ImGuiTabItem& tab : bar->Tabs) {
    if (tab.ID != bar->VisibleTabId) continue;
    const float x = bar->BarRect.Min.x + tab.Offset - bar->ScrollingAnim,
                y = bar->BarRect.Max.y - px(2);
    ImGui::GetWindowDrawList()->AddRectFilled({x + px(kHeadPadding), y},
                                              {x + tab.Width - px(kHeadPadding), y + px(2)},
                                              colour(handle_on(theme())));
  }
}

// True if the tabs fill the head of the panel's place, so that its controls are the first line of the panel.
bool has_controls_inside(const ImGuiWindow* window) {
  const ImGuiDockNode* node = window->DockNode;
  return node && node->TabBar && node->TabBar->WidthAllTabs + px(54) > node->Size.x;
}

// Returns the name of the run that a panel shows, the longer form first; empty if the panel names none, or if the session has no other run.
std::vector<std::string> name_of_run(const Context& context, const Panel& panel) {
  const engine::RunRecord* run = panel.names_run && !context.compare ? context.run() : nullptr;
  if (!run || context.timeline.runs().size() < 2) return {};
  const std::string name = context.name_of(*run);
  return {fmt::format("run {}  {}", run->id(), name), name};
}

bool has_room(const std::vector<std::string>& name, float room) {
  return room >= std::min(ImGui::CalcTextSize(name.back().c_str()).x, px(kLeastName));
}

// Draws the name of the run between the tabs and `end`, if it has room there.
void draw_name(const std::vector<std::string>& name, ImGuiWindow* window, float end) {
  if (name.empty()) return;
  const ImGuiTabBar& tabs = *window->DockNode->TabBar;
  const ImRect& bar = tabs.BarRect;
  const float begin = bar.Min.x + tabs.WidthAllTabs + px(kApart), room = end - px(kApart) - begin;
  const bool fits = has_room(name, room);
  window->StateStorage.SetBool(window->GetID(kNameInside), !fits);
  if (!fits) return;
  // The text stands on the line of the tabs' titles.
  ImGui::SetCursorScreenPos({begin, bar.Min.y + (bar.GetHeight() - ImGui::GetFontSize()) / 2});
  words_within(name, theme().dim, room);
}

// Draws the controls at the right end of the head. @return their left end
float draw_controls(Context& context, const Panel& panel, const ImGuiDockNode& node) {
  // The width of the controls when they were drawn last, at 100 %, so that it is also right at another scale.
  float* width = ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("width"), 120);
  // Controls that would cover the tabs are in a popup.
  const bool fits = node.TabBar->WidthAllTabs + px(*width) + px(24) <= node.Size.x;
  const float left = node.Pos.x + node.Size.x - px(fits ? *width : 30) - px(12);
  const ImRect& bar = node.TabBar->BarRect;
  ImGui::SetCursorScreenPos({left, bar.Min.y + (bar.GetHeight() - px(kLeastTarget)) / 2});
  const auto controls = [&] {
    ImGui::BeginGroup();
    panel.head(context);
    ImGui::EndGroup();
    *width = ImGui::GetItemRectSize().x / px(1);
  };
  if (fits) {
    controls();
  } else {
    if (button("...", false, true, "the controls of this panel")) ImGui::OpenPopup("controls");
    if (ImGui::BeginPopup("controls")) {
      controls();
      ImGui::EndPopup();
    }
  }
  return left;
}

}  // namespace

bool lists_tabs(const ImGuiWindow* window) {
  const ImGuiTabBar* bar = window && window->DockNode ? window->DockNode->TabBar : nullptr;
  return bar && bar->Tabs.Size > 1 &&
         bar->WidthAllTabsIdeal > window->DockNode->Size.x - 2 * px(kHeadPadding);
}

bool has_cut_tab(const ImGuiWindow* window) {
  const ImGuiTabBar* bar = window && window->DockNode ? window->DockNode->TabBar : nullptr;
  if (!bar) return false;
  for (const ImGuiTabItem& tab : bar->Tabs) {
    if (tab.Window != window || tab.ID == bar->VisibleTabId) continue;
    // Dear ImGui subtracts the room of the scroll arrows from the bar.
    const float begin = tab.Offset - bar->ScrollingTarget, room = bar->BarRect.GetWidth();
    return begin < -1 || begin + tab.Width > room + 1;
  }
  return false;
}

void draw_head(Context& context, const Panel& panel, ImGuiWindow* window) {
  const ImGuiDockNode* node = window->DockNode;
  if (!node || !node->TabBar || node->VisibleWindow != window || !node->HostWindow) return;
  ImGui::Begin(node->HostWindow->Name);
  underline_tab(node);
  const std::vector<std::string> name = name_of_run(context, panel);
  if ((panel.head || !name.empty()) && !has_controls_inside(window)) {
    const float right = node->Pos.x + node->Size.x;
    ImGui::PushID(window->ID);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), target_padding()));
    ImGui::PushClipRect(node->TabBar->BarRect.Min, {right, node->TabBar->BarRect.Max.y}, true);
    const ImVec2 was = ImGui::GetCursorScreenPos();
    draw_name(name, window, panel.head ? draw_controls(context, panel, *node) : right);
    ImGui::SetCursorScreenPos(was);
    ImGui::Dummy({0, 0});
    ImGui::PopClipRect();
    ImGui::PopStyleVar();
    ImGui::PopID();
  }
  ImGui::End();
}

void draw_head_inside(Context& context, const Panel& panel) {
  ImGuiWindow* window = ImGui::GetCurrentWindow();
  const bool has_controls = panel.head && has_controls_inside(window);
  if (has_controls) {
    ImGui::BeginGroup();
    panel.head(context);
    ImGui::EndGroup();
  }
  const std::vector<std::string> name = name_of_run(context, panel);
  const bool has_head = window->DockNode && window->DockNode->TabBar;
  if (name.empty() || (has_head && !has_controls_inside(window) &&
                       !window->StateStorage.GetBool(window->GetID(kNameInside))))
    return;
  const float beside = window->InnerClipRect.Max.x - ImGui::GetItemRectMax().x - px(kApart);
  if (has_controls && has_room(name, beside)) {
    ImGui::SameLine(0, px(kApart));
    ImGui::AlignTextToFramePadding();
  } else {
    to_left_edge();
  }
  words_within(name, theme().dim, room_in_view());
}

void name_run_in_title(const Context& context, const Panel& panel) {
  const std::vector<std::string> name = name_of_run(context, panel);
  if (name.empty()) return;
  const ImGuiWindow* window = ImGui::GetCurrentWindow();
  const ImRect bar = window->TitleBarRect();
  const float title = ImGui::CalcTextSize(window->Name, nullptr, true).x;
  const float begin = bar.Min.x + ImGui::GetStyle().FramePadding.x + title + px(kApart),
              room = bar.Max.x - px(kApart) - begin;
  const bool fits = ImGui::CalcTextSize(name.front().c_str()).x <= room;
  const std::string shown = fits ? name.front() : elided(name.back(), room);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(bar.Min, bar.Max);
  list->AddText({begin, bar.Min.y + (bar.GetHeight() - ImGui::GetFontSize()) / 2},
                colour(theme().dim), shown.c_str());
  list->PopClipRect();
}

// Returns true if the panel has a tab; a panel that was requested by name has one even if it is empty.
bool Shell::offers(const char* id) const {
  const Panel& panel = *panel_named(id);
  return !panel.offered || panel.offered(session_.shown().timeline) || called_panel_ == panel.id ||
         (picture_ && picture_->panel == panel.id);
}

// Brings the panel Thoughts to the front for a document with searches. Otherwise, when the first steps of a run show what its decoder
// produces, replaces a panel in front that cannot show it by one that can.
void Shell::open_what_fits(Context& context) {
  if (!context.timeline.searches().empty()) {
    if (!thoughts_shown_) bring_forward("thoughts");
    thoughts_shown_ = true;
    return;
  }
  const engine::RunRecord* run = context.run();
  if (!run || run->id() == fitted_run_ || !traits_of(*run).known) return;
  fitted_run_ = run->id();
  bool any_in_front = false;
  const auto give_way = [run](const Panel& panel) {
    if (panel.fits(*run)) return;
    const char* better = panel.instead(*run);
    if (!in_front(better)) bring_forward(better);
  };
  for (const char* id : panels_of(Screen::Live)) {
    const Panel& panel = *panel_named(id);
    if (!panel.fits || !in_front(id)) continue;
    any_in_front = true;
    give_way(panel);
  }
  // In the first frame there are no tabs yet; the first panel will be in front. Nothing comes before the text in a small window.
  const ImGuiWindow *first = window_of("trajectory"), *text = window_of("text");
  const bool behind_text = first && text && first->DockId == text->DockId;
  if (!any_in_front && !behind_text) give_way(*panel_named("trajectory"));
}

}  // namespace ui
