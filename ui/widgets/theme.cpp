#include "ui/widgets/theme.h"

#include <algorithm>
#include <cmath>

namespace ui {
namespace {

using Vec3 = std::array<double, 3>;

Rgb along(const std::array<Rgb, 9>& stops, double t) {
  const double x = std::clamp(t, 0.0, 1.0) * 8;
  const int i = std::min(7, static_cast<int>(x));
  const double f = x - i;
  const Rgb a = stops[i], b = stops[i + 1];
  const auto mix = [f](int from, int to) {
    return static_cast<std::uint8_t>(std::lround(from + f * (to - from)));
  };
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

double linear(std::uint8_t v) {
  const double c = v / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

std::uint8_t gamma(double c) {
  c = std::clamp(c, 0.0, 1.0);
  const double v = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(v * 255));
}

// Converts an sRGB colour to CIE L*a*b* under D65.
Vec3 lab(Rgb c) {
  const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
  const Vec3 xyz{(0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
                 0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
                 (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883};
  Vec3 f;
  for (int i = 0; i < 3; ++i)
    f[i] = xyz[i] > 216.0 / 24389 ? std::cbrt(xyz[i]) : (24389.0 / 27 * xyz[i] + 16) / 116;
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double hue(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double h = std::atan2(b, a) * 180 / M_PI;
  return h < 0 ? h + 360 : h;
}

double cosine(double degrees) {
  return std::cos(degrees * M_PI / 180);
}
double sine(double degrees) {
  return std::sin(degrees * M_PI / 180);
}
double seventh(double c) {
  const double c7 = std::pow(c, 7);
  return std::sqrt(c7 / (c7 + std::pow(25.0, 7)));
}

// Returns the colour distance CIEDE2000 with unit weights (Sharma, Wu, Dalal 2005).
double ciede2000(const Vec3& x, const Vec3& y) {
  const double mean_c = (std::hypot(x[1], x[2]) + std::hypot(y[1], y[2])) / 2;
  const double g = 0.5 * (1 - seventh(mean_c));
  const double a1 = (1 + g) * x[1], a2 = (1 + g) * y[1];
  const double c1 = std::hypot(a1, x[2]), c2 = std::hypot(a2, y[2]);
  const double h1 = hue(a1, x[2]), h2 = hue(a2, y[2]);
  double dh = c1 * c2 == 0 ? 0 : h2 - h1;
  if (dh > 180) dh -= 360;
  if (dh < -180) dh += 360;
  const double dl = y[0] - x[0], dc = c2 - c1, dbig_h = 2 * std::sqrt(c1 * c2) * sine(dh / 2);
  const double l = (x[0] + y[0]) / 2, c = (c1 + c2) / 2;
  double h = h1 + h2;
  if (c1 * c2 != 0) {
    if (std::abs(h1 - h2) > 180) h += h < 360 ? 360 : -360;
    h /= 2;
  }
  const double t = 1 - 0.17 * cosine(h - 30) + 0.24 * cosine(2 * h) + 0.32 * cosine(3 * h + 6) -
                   0.20 * cosine(4 * h - 63);
  const double l50 = (l - 50) * (l - 50);
  const double sl = 1 + 0.015 * l50 / std::sqrt(20 + l50), sc = 1 + 0.045 * c,
               sh = 1 + 0.015 * c * t;
  const double rt = -2 * seventh(c) * sine(60 * std::exp(-((h - 275) / 25) * ((h - 275) / 25)));
  const double tl = dl / sl, tc = dc / sc, th = dbig_h / sh;
  return std::sqrt(tl * tl + tc * tc + th * th + rt * tc * th);
}

double luminance(Rgb c) {
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

}  // namespace

const char* meaning_of(Mean mean) {
  static constexpr std::array<const char*, kMeans> kWords{
      "committed earlier, or part of the prompt",
      "one token of plain decoding",
      "guessed, not yet verified",
      "proposed by a draft model",
      "proposed from the pool, the text or the table of successors",
      "proposed and accepted by the target; the corner shows how it was proposed",
      "bonus token: the additional token of the target",
      "the first proposal that the target rejected",
      "after a rejection, not verified",
      "kept without verification",
      "one of several tokens proved final by one iteration",
      "correct early, known in hindsight",
      "differs from plain decoding"};
  return kWords[static_cast<std::size_t>(mean)];
}

Rgb edge_on(const Theme& theme, const Look& as) {
  if (theme.monochrome) return {0xE8, 0xE8, 0xE8};
  if (!theme.outline_fills || !as.filled) return as.edge;
  const auto darker = [](std::uint8_t v) { return static_cast<std::uint8_t>(v * 45 / 100); };
  return {darker(as.fill.r), darker(as.fill.g), darker(as.fill.b)};
}

Rgb handle_on(const Theme& theme) {
  if (theme.monochrome) return theme.bright;
  return theme.outline_fills ? theme.work : look(Mean::Guess).fill;
}

Rgb curve_ink(const Theme& theme, int index) {
  static constexpr std::array<Rgb, kCurveInks> kOnDark{{{0x56, 0xB4, 0xE9},
                                                        {0xE6, 0x9F, 0x00},
                                                        {0x0B, 0xD2, 0x9B},
                                                        {0xE3, 0x9A, 0xC2},
                                                        {0xF0, 0xE4, 0x42},
                                                        {0xFF, 0x92, 0x48}}};
  static constexpr std::array<Rgb, kCurveInks> kOnLight{{{0x00, 0x5A, 0x8E},
                                                         {0x9A, 0x62, 0x00},
                                                         {0x00, 0x70, 0x52},
                                                         {0x93, 0x45, 0x70},
                                                         {0x6B, 0x64, 0x00},
                                                         {0xA8, 0x40, 0x00}}};
  if (theme.monochrome) return index % 2 == 0 ? theme.bright : theme.dim;
  return (theme.outline_fills ? kOnLight : kOnDark)[static_cast<std::size_t>(index % kCurveInks)];
}

Rgb viridis(double t) {
  static constexpr std::array<Rgb, 9> kStops{{{68, 1, 84},
                                              {71, 44, 122},
                                              {59, 81, 139},
                                              {44, 113, 142},
                                              {33, 144, 141},
                                              {39, 173, 129},
                                              {92, 200, 99},
                                              {170, 220, 50},
                                              {253, 231, 37}}};
  return along(kStops, t);
}

Rgb plasma(double t) {
  static constexpr std::array<Rgb, 9> kStops{{{13, 8, 135},
                                              {76, 2, 161},
                                              {126, 3, 168},
                                              {170, 35, 149},
                                              {204, 71, 120},
                                              {230, 108, 92},
                                              {248, 149, 64},
                                              {253, 197, 39},
                                              {240, 249, 33}}};
  return along(kStops, t);
}

Rgb seen_by(Rgb colour, Vision vision) {
  static constexpr std::array<Vec3, 3> kProtan{{{0.152286, 1.052583, -0.204868},
                                                {0.114503, 0.786281, 0.099216},
                                                {-0.003882, -0.048116, 1.051998}}};
  static constexpr std::array<Vec3, 3> kDeutan{{{0.367322, 0.860646, -0.227968},
                                                {0.280085, 0.672501, 0.047413},
                                                {-0.011820, 0.042940, 0.968881}}};
  static constexpr std::array<Vec3, 3> kTritan{{{1.255528, -0.076749, -0.178779},
                                                {-0.078411, 0.930809, 0.147602},
                                                {0.004733, 0.691367, 0.303900}}};
  if (vision == Vision::Normal) return colour;
  const auto& m = vision == Vision::Protan ? kProtan : vision == Vision::Deutan ? kDeutan : kTritan;
  const Vec3 v{linear(colour.r), linear(colour.g), linear(colour.b)};
  Vec3 out{};
  for (int i = 0; i < 3; ++i) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return {gamma(out[0]), gamma(out[1]), gamma(out[2])};
}

double distance(Rgb a, Rgb b) {
  return ciede2000(lab(a), lab(b));
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace ui
