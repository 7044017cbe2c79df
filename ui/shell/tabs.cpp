// Decides which panels have a tab, and which tab comes to the front by itself: once per run, so that the user's choice stays.
#include <imgui_internal.h>

#include "ui/prepare/run_traits.h"
#include "ui/shell/panel.h"
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

}  // namespace

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
