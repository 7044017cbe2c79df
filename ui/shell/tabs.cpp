// Which panels have a tab, and which of them comes forward by itself: once a run, and never again
// after a person has chosen another.
#include <imgui_internal.h>

#include "ui/prepare/run_traits.h"
#include "ui/shell/shell.h"

namespace ui {
namespace {

ImGuiWindow* window_of(const char* panel_id) {
  return ImGui::FindWindowByName(window_name(Screen::Live, panel_id, "").c_str());
}

bool in_front(const char* panel_id) {
  const ImGuiWindow* window = window_of(panel_id);
  return window && window->WasActive && window->DockIsActive && window->DockTabIsVisible;
}

// Its tab alone: the keyboard stays where it is, in a text that is being typed for example.
void bring_forward(const char* panel_id) {
  ImGuiWindow* window = window_of(panel_id);
  ImGuiDockNode* node = window ? window->DockNode : nullptr;
  if (!node) return;
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  node->SelectedTabId = window->TabId;  // where the tabs are not there yet
  if (node->TabBar) node->TabBar->NextSelectedTabId = window->TabId;
  // Among these tabs the one with the keyboard would come back.
  if (focused && focused->RootWindow->DockNode == node) ImGui::FocusWindow(window);
}

}  // namespace

// What was asked for by name shows why there is nothing.
bool Shell::offers(const char* id) const {
  const Panel& panel = *panel_named(id);
  return !panel.offered || panel.offered(session_.shown().timeline) || called_panel_ == panel.id ||
         (picture_ && picture_->panel == panel.id);
}

// A recording with trees of thoughts opens on them. Otherwise, once a run's steps have said what
// they are made of, a panel in front that has nothing of it gives way to one that has.
void Shell::open_what_fits(Context& context) {
  if (!context.timeline.searches().empty()) {
    if (!thoughts_shown_) bring_forward("thoughts");
    thoughts_shown_ = true;
    return;
  }
  const engine::RunRecord* run = context.run();
  if (!run || run->id() == fitted_run_ || !traits_of(*run).told) return;
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
  // In the first frame no tab is there yet; the first of them will be in front.
  if (!any_in_front) give_way(*panel_named("trajectory"));
}

}  // namespace ui
