// Cells of tokens: fill, border, corner, mark and text of a meaning (ui/widgets/theme.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

Rgb grey_of(Rgb c) {
  const auto v = static_cast<std::uint8_t>(std::lround(0.3 * c.r + 0.59 * c.g + 0.11 * c.b));
  return {v, v, v};
}

void border_of(ImDrawList* list, ImVec2 min, ImVec2 max, const Look& as) {
  const ImU32 edge = colour(edge_on(theme(), as));
  const float r = px(3);
  switch (as.border) {
    case Border::None:
      break;
    case Border::Solid:
      list->AddRect(min, max, edge, r);
      break;
    case Border::Thick:
      list->AddRect(min, max, edge, r, px(2));
      break;
    case Border::Dashed:
      dashed_rect(list, min, max, edge, px(4), px(3), px(1));
      break;
    case Border::Dotted:
      dashed_rect(list, min, max, edge, px(1.5f), px(2), px(1));
      break;
    case Border::Double: {
      const float in = px(2.5f);
      list->AddRect(min, max, edge, r);
      list->AddRect({min.x + in, min.y + in}, {max.x - in, max.y - in}, edge, r);
      break;
    }
    case Border::LeftBar:
      list->AddRectFilled(min, {min.x + px(4), max.y}, edge, r, ImDrawFlags_RoundCornersLeft);
      break;
    case Border::TopTab:
      list->AddRectFilled(min, {max.x, min.y + px(3)}, edge, r, ImDrawFlags_RoundCornersTop);
      break;
    case Border::Wavy:
      break;
  }
}

bool encloses(Border border) {
  return border == Border::Solid || border == Border::Thick || border == Border::Dashed ||
         border == Border::Dotted || border == Border::Double;
}

void wavy_line(ImDrawList* list, ImVec2 from, float to_x, ImU32 ink) {
  const float step = px(3);
  for (float x = from.x, up = 1; x + step <= to_x; x += step, up = -up)
    list->AddLine({x, from.y + up * px(1)}, {x + step, from.y - up * px(1)}, ink, px(1.5f));
}

const std::string kSpaceSign = "_";
constexpr const char* kSpaceDot = "\xC2\xB7";  // as wide as a space of the monospaced font
bool space_dots = false;

std::string with_space_dots(const std::string& text) {
  std::string dotted;
  for (const char c : text) {
    if (c == ' ')
      dotted += kSpaceDot;
    else
      dotted += c;
  }
  return dotted;
}

// Draws how an accepted token was proposed: a shape of its own for each kind. In the monochrome theme the shapes differ from the cell's fill.
void corner(ImDrawList* list, ImVec2 min, Mean origin, bool quiet) {
  const Rgb grey = quiet ? theme().text : kBlack;
  const ImU32 ink = colour(theme().monochrome ? grey : fill_of(origin));
  const float size = px(8);
  switch (corner_of(origin)) {
    case Corner::None:
      break;
    case Corner::Triangle:
      list->AddTriangleFilled(min, {min.x + size, min.y}, {min.x, min.y + size}, ink);
      break;
    case Corner::Square:
      list->AddRectFilled(min, {min.x + px(6), min.y + px(6)}, ink);
      break;
    case Corner::Round:
      list->AddCircleFilled({min.x + px(4), min.y + px(4)}, px(3.5f), ink);
      break;
  }
}

}  // namespace

void show_space_dots(bool shown) {
  space_dots = shown;
}

Rgb fill_of(Mean mean) {
  const Look& as = look(mean);
  if (!theme().monochrome) return as.fill;
  // In the monochrome theme the fill is a grey with enough contrast to the text; marks and borders distinguish meanings.
  const Rgb grey = grey_of(as.fill);
  return as.text == kWhite
             ? Rgb{0x50, 0x50, 0x50}
             : Rgb{std::max(grey.r, std::uint8_t{0xA0}), std::max(grey.g, std::uint8_t{0xA0}),
                   std::max(grey.b, std::uint8_t{0xA0})};
}

void dashed_rect(
    ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float dash, float gap, float thickness) {
  for (float x = min.x; x < max.x; x += dash + gap) {
    const float to = std::min(x + dash, max.x);
    list->AddRectFilled({x, min.y}, {to, min.y + thickness}, ink);
    list->AddRectFilled({x, max.y - thickness}, {to, max.y}, ink);
  }
  for (float y = min.y; y < max.y; y += dash + gap) {
    const float to = std::min(y + dash, max.y);
    list->AddRectFilled({min.x, y}, {min.x + thickness, to}, ink);
    list->AddRectFilled({max.x - thickness, y}, {max.x, to}, ink);
  }
}

void hatch(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float apart, float thickness) {
  if (max.x <= min.x || max.y <= min.y) return;
  list->PushClipRect(min, max, true);
  const float high = max.y - min.y;
  // The lines are anchored to the screen, so that adjacent slices share one pattern.
  for (float x = std::floor((min.x - high) / apart) * apart; x < max.x; x += apart)
    list->AddLine({x, max.y}, {x + high, min.y}, ink, thickness);
  list->PopClipRect();
}

void token_cell(ImDrawList* list,
                ImVec2 min,
                ImVec2 max,
                const std::string& text,
                Mean mean,
                const CellFlags& flags) {
  const Look& as = look(mean);
  const bool filled = as.filled || flags.lens_fill;
  const Rgb fill = flags.lens_fill ? *flags.lens_fill : fill_of(mean);
  const bool quiet = flags.quiet && as.filled && !flags.lens_fill;
  if (filled) list->AddRectFilled(min, max, colour(fill, quiet ? kQuietFill : 1), px(3));
  if (quiet) {
    list->AddRectFilled({min.x, max.y - px(2)}, max, colour(edge_on(theme(), as)));
  } else {
    // On a light card a fill without a border of its own gets an outline.
    if (filled && theme().outline_fills && (flags.lens_fill || !encloses(as.border)))
      list->AddRect(min, max, colour({0x16, 0x18, 0x1D}), px(3));
    if (!flags.lens_fill || as.border == Border::Thick) border_of(list, min, max, as);
  }
  corner(list, min, flags.origin, quiet);
  Rgb ink = flags.dim ? theme().dim : theme().text;
  if (filled && !quiet)
    ink = flags.lens_fill ? (contrast(fill, kBlack) > 5 ? kBlack : kWhite) : as.text;
  if (mean == Mean::Unused) ink = theme().dim;
  const bool padded = !flags.tight && (filled || as.border != Border::None);
  const float pad = !padded ? 0 : text.starts_with(' ') ? px(1) : px(5), size = px(kMonoSize);
  const float y = std::floor((min.y + max.y - size) / 2);
  const char* mark = flags.mark ? flags.mark : as.mark;
  const float mark_width = flags.marks && !flags.tight && *mark
                               ? static_cast<float>(std::strlen(mark)) * px(kMarkSize) * 0.5f
                               : 0;
  const float end = max.x - (padded ? px(2) : 0) - mark_width;
  std::string cut;
  if (flags.elide) {
    ImGui::PushFont(fonts().mono, kMonoSize);
    cut = elided(text, end - min.x - pad);
    ImGui::PopFont();
  }
  // The stroke is slanted, because a horizontal one would hide "-" and "=".
  if (as.strike)
    list->AddLine({min.x + px(4), min.y + px(5)}, {end - px(2), max.y - px(5)},
                  colour(ink, kStroke), px(1.5f));
  list->PushClipRect(min, {end, max.y}, true);
  // A filled cell with only spaces would look empty, so it shows an underscore.
  const bool blank = !space_dots && padded && text.find_first_not_of(' ') == std::string::npos;
  const std::string& whole = blank ? kSpaceSign : flags.elide ? cut : text;
  const std::string& shown = space_dots ? with_space_dots(whole) : whole;
  list->AddText(fonts().mono, size, {min.x + pad, y}, colour(ink), shown.data(),
                shown.data() + shown.size());
  list->PopClipRect();
  if (mark_width > 0)
    list->AddText(fonts().mono, px(kMarkSize), {max.x - mark_width - px(3), min.y + px(2)},
                  colour(ink), mark);
  if (flags.diverged) {
    wavy_line(list, {min.x, max.y - px(2)}, max.x, colour(theme().bad));
    list->AddText(fonts().mono, px(kMarkSize), {max.x - px(6), min.y}, colour(theme().bad), "!");
  }
  if (flags.lit || flags.locked)
    list->AddRect({min.x - px(2), min.y - px(2)}, {max.x + px(2), max.y + px(2)},
                  colour(theme().light_up), px(4), px(flags.locked ? 2 : 1));
}

void text_bar(ImDrawList* list, ImVec2 top, float foot, float tick, Rgb rgb) {
  const float half = px(1);
  list->AddRectFilled({top.x - half, top.y}, {top.x + half, foot}, colour(rgb));
  if (tick == 0) return;
  for (const float y : {top.y, foot})
    list->AddLine({top.x, y}, {top.x + tick, y}, colour(rgb), px(1.5f));
}

}  // namespace ui
