#include "ui/panels/time/time_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "ui/prepare/numbers.h"
#include "ui/prepare/playhead.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace ui::time_axis {
namespace {

// The end of the measured range that a drag moves.
enum Edge { kNone, kFirst, kSecond };

Edge edge_at(const TimeRange& range, const Picture& p, float x) {
  if (range.range0 == range.range1) return kNone;
  if (std::abs(x - p.x_of(range.range0)) < px(5)) return kFirst;
  return std::abs(x - p.x_of(range.range1)) < px(5) ? kSecond : kNone;
}

// Drags the measured range. A drag that starts at an end moves that end; a drag from elsewhere begins a new range.
void measure(TimeRange& range, const Picture& p) {
  const ImGuiIO& io = ImGui::GetIO();
  int* edge = ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("edge"), kNone);
  if (ImGui::IsItemActivated()) *edge = edge_at(range, p, io.MousePos.x);
  if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) return;
  if (*edge == kFirst) {
    std::swap(range.range0, range.range1);
    *edge = kSecond;
  }
  if (*edge == kNone) range.range0 = p.t_of(io.MouseClickedPos[ImGuiMouseButton_Left].x);
  range.range1 = p.t_of(io.MousePos.x);
}

void range_menu(Context& context, TimeRange& range) {
  if (!ImGui::BeginPopup("##range_menu")) return;
  const bool has_range = range.range0 != range.range1;
  if (menu_item("Zoom to the range", nullptr, false, has_range))
    show_range(context, range, range.range0, range.range1);
  if (menu_item("Export...", "Ctrl+E")) context.requests.export_trace = true;
  if (menu_item("Remove the range", nullptr, false, has_range)) range.forget_measured();
  if (menu_item("Fit all", "0")) range.show_all();
  ImGui::EndPopup();
}

// Zooms to the range that a drag with the middle button selects.
void zoom_by_drag(Context& context, TimeRange& range, const Picture& p, float top, float bottom) {
  const ImGuiIO& io = ImGui::GetIO();
  const float from = io.MouseClickedPos[ImGuiMouseButton_Middle].x, to = io.MousePos.x;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Middle, 4))
    ImGui::GetWindowDrawList()->AddRect({std::min(from, to), top}, {std::max(from, to), bottom},
                                        colour(theme().bright), 0, px(1));
  if (ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(ImGuiMouseButton_Middle) &&
      std::abs(to - from) > 4)
    show_range(context, range, p.t_of(from), p.t_of(to));
}

// The pictures of the playhead's buttons.
enum class Icon { Start, Play, Pause, End };

// Draws a picture of about 10 x 10 px around a point.
void draw_icon(Icon icon, ImVec2 centre, ImU32 ink) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = centre.x, y = centre.y, half = px(5), bar = px(2.5f);
  const auto bar_at = [&](float left) {
    list->AddRectFilled({left, y - half}, {left + bar, y + half}, ink);
  };
  switch (icon) {
    case Icon::Start:
      bar_at(x - half);
      list->AddTriangleFilled({x + half, y - half}, {x + half, y + half}, {x - half + bar, y}, ink);
      break;
    case Icon::Play:
      list->AddTriangleFilled({x - half, y - half}, {x + half, y}, {x - half, y + half}, ink);
      break;
    case Icon::Pause:
      bar_at(x - px(4));
      bar_at(x + px(4) - bar);
      break;
    case Icon::End:
      list->AddTriangleFilled({x - half, y - half}, {x + half - bar, y}, {x - half, y + half}, ink);
      bar_at(x + half - bar);
      break;
  }
}

// Draws a button with a picture; all have the same size. The words of its label are only for the log of the window.
bool icon_button(const char* label, Icon icon, const char* help) {
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, target_padding()));
  const bool pressed = ImGui::Button(label, {px(kLeastTarget), 0});
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  const bool hovered = ImGui::IsItemHovered();
  draw_icon(icon, {std::round((min.x + max.x) / 2), std::round((min.y + max.y) / 2)},
            colour(hovered ? theme().bright : theme().dim));
  if (hovered) tooltip(help);
  ImGui::SameLine(0, px(2));
  return pressed;
}

// Continues the line at `x`, so that the next item does not move when the last one changes its width.
void continue_at(float x) {
  ImGui::SameLine(0, 0);
  ImGui::SetCursorScreenPos({x, ImGui::GetCursorScreenPos().y});
}

float widest(std::span<const char* const> words) {
  float width = 0;
  for (const char* word : words) width = std::max(width, ImGui::CalcTextSize(word).x);
  return width;
}

// Draws the choice of the speed of playing, as wide as its longest name needs.
void speed_choice(Playhead& head) {
  static constexpr std::array<double, 9> kSpeeds{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20};
  static constexpr std::array<const char*, 9> kNames{"0.05x", "0.1x", "0.25x", "0.5x", "1x",
                                                     "2x",    "5x",   "10x",   "20x"};
  int speed = static_cast<int>(std::lower_bound(kSpeeds.begin(), kSpeeds.end(), head.speed) -
                               kSpeeds.begin());
  speed = std::clamp(speed, 0, 8);
  const float x = ImGui::GetCursorScreenPos().x;
  if (quiet_choice("##speed", "", kNames, speed)) head.speed = kSpeeds[speed];
  if (ImGui::IsItemHovered()) tooltip("the speed of playing");
  const float padding = px(4), arrow = px(kLeastTarget);
  continue_at(x + widest(kNames) + 2 * padding + arrow + px(8));
}

// Draws the word that the playhead follows, or a link that makes it follow, in the same room.
void follow_link(Playhead& head, double end) {
  static constexpr std::array<const char*, 2> kWords{"following", "follow"};
  const float x = ImGui::GetCursorScreenPos().x, width = widest(kWords);
  ImGui::AlignTextToFramePadding();
  if (head.follows()) {
    words(kWords[0], theme().bright);
    if (ImGui::IsItemHovered()) tooltip("The playhead stays at the newest time.");
  } else {
    if (link("follow###follow")) head.mode = Playhead::Mode::Follow;
    if (ImGui::IsItemHovered())
      tooltip(
          fmt::format("{} before the end; go there and follow (End)", short_time(end - head.at)));
  }
  continue_at(x + width);
  ImGui::Dummy({0, 0});
}

}  // namespace

void set_range(Picture& p, const TimeRange& range) {
  p.view.t0 = range.t0;
  p.view.t1 = range.t1;
  if (range.t1 > range.t0) return;
  p.view.t0 = p.begin;
  p.view.t1 = p.end + (p.end - p.begin) * 0.05;
}

void show_range(Context& context, TimeRange& range, double a, double b) {
  range.t0 = std::min(a, b);
  range.t1 = std::max(a, b);
  if (context.playhead.follows()) context.playhead.mode = Playhead::Mode::Paused;
}

void zoom(TimeRange& range, const Picture& p, double at, double factor) {
  const double least = closest_range(p.view.clock);
  const double wide =
      std::clamp((p.view.t1 - p.view.t0) * factor, least, (p.end - p.begin) * 4 + least);
  const double share = (at - p.view.t0) / (p.view.t1 - p.view.t0);
  range.t0 = at - share * wide;
  range.t1 = range.t0 + wide;
}

void pan(Context& context, TimeRange& range, const Picture& p, double by) {
  range.t0 = p.view.t0 + by;
  range.t1 = p.view.t1 + by;
  if (context.playhead.follows()) context.playhead.mode = Playhead::Mode::Paused;
}

void keep_following(const Context& context, TimeRange& range, Picture& p, double newest) {
  if (!context.playhead.follows() || !(range.t1 > range.t0)) return;
  const double wide = p.view.t1 - p.view.t0;
  if (newest > p.view.t1 - 0.05 * wide || newest < p.view.t0) {
    p.view.t1 = newest + 0.1 * wide;
    p.view.t0 = p.view.t1 - wide;
    range.t0 = p.view.t0;
    range.t1 = p.view.t1;
  }
}

bool clicked_with(ImGuiMouseButton button) {
  return ImGui::IsMouseReleased(button) && ImGui::GetIO().MouseDragMaxDistanceSqr[button] < 16;
}

void handle_mouse(Context& context, TimeRange& range, const Picture& p, float top, float bottom) {
  ImGui::SetCursorScreenPos({p.x0, top});
  ImGui::InvisibleButton("lanes", {p.x1 - p.x0, std::max(px(10), bottom - top)},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                             ImGuiButtonFlags_MouseButtonMiddle);
  const ImGuiIO& io = ImGui::GetIO();
  const double a_pixel = (p.view.t1 - p.view.t0) / p.view.width;
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  // The wheel zooms over the lanes; over their labels it scrolls.
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  if (hovered && io.MouseWheel != 0) {
    const double strength = io.KeyCtrl ? 0.05 : io.KeyShift ? 0.5 : 0.2;
    zoom(range, p, p.t_of(io.MousePos.x), std::exp(-io.MouseWheel * strength));
  }
  if (hovered && io.MouseWheelH != 0) pan(context, range, p, -io.MouseWheelH * 60 * a_pixel);
  if (hovered && edge_at(range, p, io.MousePos.x) != kNone)
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (active && ImGui::IsMouseDragging(ImGuiMouseButton_Right, 2))
    pan(context, range, p, -io.MouseDelta.x * a_pixel);
  if (active) measure(range, p);
  // A double click outside all slices shows everything; on a slice it shows the Inspector.
  const bool twice = hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  if (twice && !context.selection.hovered.valid()) range.show_all();
  const bool clicked = ImGui::IsItemDeactivated();
  if (clicked && clicked_with(ImGuiMouseButton_Left)) range.forget_measured();
  if (clicked && clicked_with(ImGuiMouseButton_Right)) ImGui::OpenPopup("##range_menu");
  zoom_by_drag(context, range, p, top, bottom);
  range_menu(context, range);
}

void walk_keys(Context& context, TimeRange& range, const Picture& p) {
  if (ImGui::GetIO().WantTextInput || ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  const double dt = context.drive.seconds * (ImGui::GetIO().KeyShift ? 3 : 1);
  const double middle = (p.view.t0 + p.view.t1) / 2, wide = p.view.t1 - p.view.t0;
  const DriveKeys& down = context.drive;
  if (down.in) zoom(range, p, middle, std::exp(-2 * dt));
  if (down.out) zoom(range, p, middle, std::exp(2 * dt));
  if (down.left) pan(context, range, p, -wide * dt);
  if (down.right) pan(context, range, p, wide * dt);
}

int overview_parts(const Picture& p) {
  return std::max(8, static_cast<int>((p.x1 - p.x0) / px(7)));
}

void draw_overview(Context& context,
                   TimeRange& range,
                   const Picture& p,
                   ImVec2 at,
                   std::span<const float> bars,
                   const char* help) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float high = px(kOverviewHeight);
  list->AddRectFilled(at, {p.x1, at.y + high}, colour(theme().field), px(2));
  const float top = std::max(1e-6f, bars.empty() ? 0 : *std::ranges::max_element(bars));
  const float wide = (p.x1 - p.x0) / static_cast<float>(std::max<std::size_t>(1, bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const float x = p.x0 + static_cast<float>(i) * wide;
    const float h = std::max(bars[i] > 0 ? px(2) : 0, bars[i] / top * (high - px(4)));
    list->AddRectFilled({x + 1, at.y + high - px(2) - h}, {x + wide - 1, at.y + high - px(2)},
                        colour(theme().overview));
  }
  const auto x_all = [&](double t) {
    const double share = (t - p.begin) / (p.end - p.begin);
    return p.x0 + static_cast<float>(std::clamp(share, 0.0, 1.0)) * (p.x1 - p.x0);
  };
  list->AddRect(
      {x_all(p.view.t0), at.y}, {std::max(x_all(p.view.t1), x_all(p.view.t0) + 3), at.y + high},
      colour(theme().monochrome ? theme().bright : look(Mean::Guess).fill), px(2), px(1.5f));
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton("overview", {std::max(1.0f, p.x1 - at.x), high});
  if (ImGui::IsItemActive()) {
    const double share = (ImGui::GetMousePos().x - p.x0) / (p.x1 - p.x0);
    const double half = (p.view.t1 - p.view.t0) / 2;
    pan(context, range, p, p.begin + share * (p.end - p.begin) - half - p.view.t0);
  }
  if (ImGui::IsItemHovered()) tooltip(help);
}

void draw_ruler(const Picture& p,
                ImVec2 at,
                float bottom,
                const std::function<void(double)>& scrub) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::vector<double> ticks = ruler_ticks(p.view, px(84));
  const std::vector<std::string> labels = tick_labels(p.view, ticks);
  float free_from = p.x0;  // the end of the last label
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const float x = p.x_of(ticks[i]);
    if (x < p.x0 - 1) continue;
    list->AddLine({x, at.y + px(2)}, {x, bottom}, colour(theme().line));
    const float wide = ImGui::CalcTextSize(labels[i].c_str()).x * px(12) / ImGui::GetFontSize();
    // A label that would be cut or would cover the last one is omitted.
    if (x + px(4) + wide > p.x1 + px(4) || x + px(4) < free_from) continue;
    list->AddText(nullptr, px(12), {x + px(4), at.y + px(2)}, colour(theme().dim),
                  labels[i].c_str());
    free_from = x + px(4) + wide;
  }
  ImGui::SetCursorScreenPos({p.x0, at.y});
  ImGui::InvisibleButton("ruler", {p.x1 - p.x0, px(kRulerHeight)});
  if (ImGui::IsItemActive()) scrub(p.t_of(ImGui::GetMousePos().x));
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
}

void draw_playhead(const Picture& p, double at, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = p.x_of(at);
  if (x < p.x0 || x > p.x1 + 1) return;
  const ImU32 ink = colour(theme().playhead);
  list->AddLine({x, top + px(5)}, {x, bottom}, ink, px(1.3f));
  list->AddTriangleFilled({x - px(5), top}, {x + px(5), top}, {x, top + px(7)}, ink);
}

float room_for_range_words(const TimeRange& range) {
  return range.range0 != range.range1 ? px(22) : 0;
}

void draw_range(const TimeRange& range,
                const Picture& p,
                float top,
                float bottom,
                const std::function<std::string(double from, double to)>& words) {
  const double a = std::min(range.range0, range.range1), b = std::max(range.range0, range.range1);
  if (!(b > a) || p.x_of(b) < p.x0 || p.x_of(a) > p.x1) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({std::max(p.x0, p.x_of(a)), top}, {std::min(p.x1, p.x_of(b)), bottom},
                      colour(theme().bright, 0.07f));
  const std::string text = words(a, b);
  const float x = std::clamp(p.x_of(a) + px(6), p.x0, std::max(p.x0, p.x1 - px(300)));
  list->AddText(nullptr, px(13), {x, bottom - px(20)}, colour(theme().bright), text.c_str());
}

void waste_mark(ImDrawList* list, ImVec2 min, ImVec2 max, float share) {
  const float wide = max.x - min.x;
  if (share <= 0 || wide < px(4)) return;
  const ImU32 ink = colour(fill_of(Mean::Rejected));
  // The hatch covers at most half of the slice, so that the label keeps its room; the tooltip gives the share.
  if (wide >= px(24))
    hatch(list, {max.x - wide * share * 0.5f, min.y}, max, ink, px(6), px(2.2f));
  else  // too narrow for a hatch
    list->AddRectFilled({max.x - wide * share, max.y - px(4)}, max, ink);
}

void draw_waste_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const ImVec2 min{at.x, at.y + px(3)}, max{at.x + px(60), at.y + px(20)};
  list->AddRectFilled(min, max, colour(theme().work), px(2));
  waste_mark(list, min, max, 0.8f);
}

void playhead_controls(Context& context) {
  Playhead& head = context.playhead;
  const double end = context.end();
  if (icon_button("|<##start", Icon::Start, "to the start (Home)")) head.go_to(0, end);
  const bool plays = head.mode == Playhead::Mode::Playing;
  if (icon_button(plays ? "pause###play" : "play###play", plays ? Icon::Pause : Icon::Play,
                  plays ? "pause the view (Space); the engine keeps running"
                        : "play the view (Space); the engine keeps running"))
    head.play_or_pause(end);
  if (icon_button(">|##end", Icon::End, "to the end, and follow (End)"))
    head.mode = Playhead::Mode::Follow;
  speed_choice(head);
  follow_link(head, end);
}

}  // namespace ui::time_axis
