// Wheel, drags and keys over the lanes of the time line: zoom, pan, measure.
#include <algorithm>
#include <cmath>

#include "ui/panels/gantt_picture.h"

namespace ui::gantt {
namespace {

// Which end of the measured range a drag moves.
enum Edge { kNone, kFirst, kSecond };

Edge edge_at(const Context& context, const Picture& p, float x) {
  if (context.view.range0 == context.view.range1) return kNone;
  if (std::abs(x - p.x_of(context.view.range0)) < px(5)) return kFirst;
  return std::abs(x - p.x_of(context.view.range1)) < px(5) ? kSecond : kNone;
}

// The second end follows the mouse; a drag that begins at an end moves that one.
void measure(Context& context, const Picture& p) {
  const ImGuiIO& io = ImGui::GetIO();
  int* edge = ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("edge"), kNone);
  if (ImGui::IsItemActivated()) *edge = edge_at(context, p, io.MousePos.x);
  if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) return;
  ViewState& v = context.view;
  if (*edge == kFirst) {
    std::swap(v.range0, v.range1);
    *edge = kSecond;
  }
  if (*edge == kNone) v.range0 = p.t_of(io.MouseClickedPos[ImGuiMouseButton_Left].x);
  v.range1 = p.t_of(io.MousePos.x);
}

void range_menu(Context& context) {
  if (!ImGui::BeginPopup("##range_menu")) return;
  ViewState& v = context.view;
  const bool has_range = v.range0 != v.range1;
  if (ImGui::MenuItem("Zoom to the range", nullptr, false, has_range))
    show_range(context, v.range0, v.range1);
  if (ImGui::MenuItem("Export...", "Ctrl+E")) context.requests.export_trace = true;
  if (ImGui::MenuItem("Forget the range", "Esc", false, has_range)) v.range0 = v.range1 = 0;
  if (ImGui::MenuItem("Fit all", "0")) v.t0 = v.t1 = 0;
  ImGui::EndPopup();
}

// Middle drag: what it spans is the new visible range.
void zoom_by_drag(Context& context, const Picture& p, float top, float bottom) {
  const ImGuiIO& io = ImGui::GetIO();
  const float from = io.MouseClickedPos[ImGuiMouseButton_Middle].x, to = io.MousePos.x;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Middle, 4))
    ImGui::GetWindowDrawList()->AddRect({std::min(from, to), top}, {std::max(from, to), bottom},
                                        colour(theme().bright), 0, px(1));
  if (ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(ImGuiMouseButton_Middle) &&
      std::abs(to - from) > 4)
    show_range(context, p.t_of(from), p.t_of(to));
}

}  // namespace

void show_range(Context& context, double a, double b) {
  context.view.t0 = std::min(a, b);
  context.view.t1 = std::max(a, b);
  if (context.playhead.follows()) context.playhead.mode = Playhead::Mode::Paused;
}

void zoom(Context& context, const Picture& p, double at, double factor) {
  const double least = closest_range(context.view.clock);
  const double wide =
      std::clamp((p.view.t1 - p.view.t0) * factor, least, (p.end - p.begin) * 4 + least);
  const double share = (at - p.view.t0) / (p.view.t1 - p.view.t0);
  context.view.t0 = at - share * wide;
  context.view.t1 = context.view.t0 + wide;
}

void pan(Context& context, const Picture& p, double by) {
  context.view.t0 = p.view.t0 + by;
  context.view.t1 = p.view.t1 + by;
  if (context.playhead.follows()) context.playhead.mode = Playhead::Mode::Paused;
}

void handle_mouse(Context& context, const Picture& p, float top, float bottom) {
  ImGui::SetCursorScreenPos({p.x0, top});
  ImGui::InvisibleButton("lanes", {p.x1 - p.x0, std::max(px(10), bottom - top)},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                             ImGuiButtonFlags_MouseButtonMiddle);
  const ImGuiIO& io = ImGui::GetIO();
  const double a_pixel = (p.view.t1 - p.view.t0) / p.view.width;
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  // Over the lanes the wheel zooms; over their labels it scrolls, where they do not all fit.
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  if (hovered && io.MouseWheel != 0) {
    const double strength = io.KeyCtrl ? 0.05 : io.KeyShift ? 0.5 : 0.2;
    zoom(context, p, p.t_of(io.MousePos.x), std::exp(-io.MouseWheel * strength));
  }
  if (hovered && io.MouseWheelH != 0) pan(context, p, -io.MouseWheelH * 60 * a_pixel);
  if (hovered && edge_at(context, p, io.MousePos.x) != kNone)
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (active && ImGui::IsMouseDragging(ImGuiMouseButton_Right, 2))
    pan(context, p, -io.MouseDelta.x * a_pixel);
  if (active) measure(context, p);
  const bool clicked = ImGui::IsItemDeactivated();
  if (clicked && ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
      io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < 16)
    context.view.range0 = context.view.range1 = 0;
  if (clicked && ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
      io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < 16)
    ImGui::OpenPopup("##range_menu");
  zoom_by_drag(context, p, top, bottom);
  range_menu(context);
}

void walk_keys(Context& context, const Picture& p) {
  if (ImGui::GetIO().WantTextInput || ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  const double dt = ImGui::GetIO().DeltaTime * (ImGui::GetIO().KeyShift ? 3 : 1);
  const double middle = (p.view.t0 + p.view.t1) / 2, wide = p.view.t1 - p.view.t0;
  const DriveKeys& down = context.view.drive;
  if (down.in) zoom(context, p, middle, std::exp(-2 * dt));
  if (down.out) zoom(context, p, middle, std::exp(2 * dt));
  if (down.left) pan(context, p, -wide * dt);
  if (down.right) pan(context, p, wide * dt);
}

const engine::RunRecord* lead(Context& context) {
  const engine::RunRecord* best = nullptr;
  for (const engine::RunRecord* run : context.shown_runs())
    if (!best ||
        context.prepared.times(*run).end_compute() > context.prepared.times(*best).end_compute())
      best = run;
  return best;
}

}  // namespace ui::gantt
