// The sketches of empty panels.
#include <array>
#include <cmath>

#include <imgui.h>

#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Draws in pixels at 100 %, relative to the corner of the sketch.
struct Pen {
  ImDrawList* list;
  ImVec2 at;
  ImU32 ink;

  void box(float x, float y, float width, float height) const {
    const ImVec2 min{at.x + px(x), at.y + px(y)};
    list->AddRectFilled(min, {min.x + px(width), min.y + px(height)}, ink);
  }
};

void draw_cells(const Pen& pen) {
  constexpr std::array<std::array<float, 3>, 3> kRows{{{30, 52, 42}, {54, 26, 44}, {40, 34, 30}}};
  float y = 0;
  for (const auto& row : kRows) {
    float x = 0;
    for (const float width : row) {
      pen.box(x, y, width, 12);
      x += width + 4;
    }
    y += 17;
  }
}

void draw_staircase(const Pen& pen) {
  constexpr int kRows = 4;
  for (int row = 0; row < kRows; ++row)
    for (int cell = 0; cell < row + 2; ++cell)
      pen.box(static_cast<float>(cell) * 26 + 2, static_cast<float>(row) * 12, 23, 9);
}

void draw_bars(const Pen& pen) {
  constexpr std::array<std::array<float, 4>, 3> kLanes{
      {{28, 30, 22, 29}, {10, 14, 8, 12}, {6, 5, 6, 5}}};
  for (std::size_t lane = 0; lane < kLanes.size(); ++lane)
    for (std::size_t i = 0; i < kLanes[lane].size(); ++i)
      pen.box(static_cast<float>(i * 33 + lane * 3), static_cast<float>(lane) * 17, kLanes[lane][i],
              11);
}

// Draws the node at (x, y) with `depth` levels of children, `spread` px above and below it.
void draw_node(const Pen& pen, float x, float y, float spread, int depth) {
  constexpr float kWidth = 22, kHeight = 7, kBend = 12, kStep = 52, kLine = 1.5f;
  pen.box(x, y - kHeight / 2, kWidth, kHeight);
  if (depth == 0) return;
  const float bend = x + kWidth + kBend;
  pen.box(x + kWidth, y - kLine / 2, kBend, kLine);
  pen.box(bend, y - spread, kLine, 2 * spread);
  for (const float child : {y - spread, y + spread}) {
    pen.box(bend, child - kLine / 2, kStep - kWidth - kBend, kLine);
    draw_node(pen, x + kStep, child, spread / 2, depth - 1);
  }
}

void draw_triangle(const Pen& pen) {
  constexpr int kRows = 6;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column <= row; ++column)
      pen.box(43 + static_cast<float>(column) * 8, static_cast<float>(row) * 8, 6, 6);
}

void draw_histograms(const Pen& pen) {
  constexpr std::array<std::array<float, 8>, 2> kHeights{
      {{6, 14, 36, 24, 12, 8, 4, 2}, {4, 8, 18, 38, 20, 10, 6, 2}}};
  float x = 0;
  for (const auto& heights : kHeights) {
    for (std::size_t i = 0; i < heights.size(); ++i)
      pen.box(x + static_cast<float>(i) * 7, 42 - heights[i], 5, heights[i]);
    pen.box(x, 43, 56, 1.5f);
    x += 74;
  }
}

void draw_columns(const Pen& pen) {
  constexpr std::array<float, 5> kLabels{52, 38, 60, 44, 34}, kValues{18, 26, 14, 22, 30};
  for (std::size_t i = 0; i < kLabels.size(); ++i) {
    const float y = static_cast<float>(i) * 9.5f;
    pen.box(0, y + 1, kLabels[i], 4);
    pen.box(kSketchWidth - kValues[i], y, kValues[i], 6);
  }
}

void draw_curve(const Pen& pen) {
  pen.box(4, 0, 1.5f, 43);
  pen.box(4, 43, 124, 1.5f);
  std::array<ImVec2, 30> points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto x = static_cast<float>(i) / static_cast<float>(points.size() - 1);
    points[i] = {pen.at.x + px(8 + 118 * x), pen.at.y + px(5 + 34 * std::exp(-4 * x))};
  }
  pen.list->AddPolyline(points.data(), static_cast<int>(points.size()), pen.ink, px(2));
}

void draw_lines(const Pen& pen) {
  constexpr std::array<float, 4> kLengths{104, 72, 116, 88};
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    const float y = static_cast<float>(i) * 12 + 2;
    pen.box(2, y, 5, 5);
    pen.box(14, y, kLengths[i], 5);
  }
}

}  // namespace

void draw_sketch(ImDrawList* list, Sketch kind, ImVec2 at) {
  const Pen pen{list, at, colour(theme().dim, kSketchAlpha)};
  switch (kind) {
    case Sketch::None:
      return;
    case Sketch::Cells:
      return draw_cells(pen);
    case Sketch::Staircase:
      return draw_staircase(pen);
    case Sketch::Bars:
      return draw_bars(pen);
    case Sketch::Tree:
      return draw_node(pen, 3, kSketchHeight / 2, 12, 2);
    case Sketch::Triangle:
      return draw_triangle(pen);
    case Sketch::Histograms:
      return draw_histograms(pen);
    case Sketch::Columns:
      return draw_columns(pen);
    case Sketch::Curve:
      return draw_curve(pen);
    case Sketch::Lines:
      return draw_lines(pen);
  }
}

}  // namespace ui
