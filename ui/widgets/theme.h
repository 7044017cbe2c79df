// Colours and marks by meaning. Fills are the same in the dark and the light theme (palette of Okabe and Ito). Mark and border show the
// meaning too, so the monochrome theme shows the same facts.
#pragma once

#include <array>
#include <cstdint>

namespace ui {

/// An sRGB colour.
struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Rgb&) const = default;
};

/// The meaning of a token cell or a slice.
enum class Mean {
  Prefix,       ///< committed earlier, or part of the prompt
  Plain,        ///< committed by plain decoding, one token per step without proposals
  Guess,        ///< proposed without a distribution
  Draft,        ///< proposed with a distribution
  Pool,         ///< proposed from the n-gram pool
  Accepted,     ///< proposed and accepted by the target
  Bonus,        ///< the additional token of the target
  Rejected,     ///< the first proposal that the target rejected
  Unused,       ///< after a rejection or on another branch; not verified
  Approximate,  ///< kept without verification
  FastForward,  ///< one of several tokens proved final by one iteration
  Stationary,   ///< correct before a preceding token was; known in hindsight
  Diverged,     ///< differs from plain decoding
};
constexpr int kMeans = 13;

/// The border of a token cell.
enum class Border { None, Solid, Thick, Dashed, Dotted, Double, LeftBar, TopTab, Wavy };

/// The appearance of a meaning.
struct Look {
  const char* name;  // the name in legends
  bool filled;
  Rgb fill;
  Rgb text;  // text colour on the fill; without a fill the theme's text colour is used
  const char* mark;
  Border border;
  Rgb edge;  // colour of the border
  bool strike;
};

constexpr Rgb kBlack{0, 0, 0}, kWhite{255, 255, 255};
constexpr float kQuietFill = 0.25f;  // opacity of the fill of a token of an earlier step

// clang-format off
constexpr std::array<Look, kMeans> kLooks{{
    {"prefix",      false, {},                 kBlack, "",   Border::None,    {},                 false},
    {"plain",       false, {},                 kBlack, "",   Border::None,    {},                 false},
    {"guess",       true,  {0x56, 0xB4, 0xE9}, kBlack, "?",  Border::Dashed,  {0xBF, 0xE3, 0xFA}, false},
    {"draft",       true,  {0x56, 0xB4, 0xE9}, kBlack, "d",  Border::Solid,   {0xBF, 0xE3, 0xFA}, false},
    {"from the pool", true, {0xF0, 0xE4, 0x42}, kBlack, "n", Border::TopTab,  {0xA8, 0x9F, 0x10}, false},
    {"accepted",    true,  {0x00, 0x9E, 0x73}, kBlack, "+",  Border::Thick,   {0x0B, 0xD2, 0x9B}, false},
    {"bonus",       true,  {0x00, 0x9E, 0x73}, kBlack, "*",  Border::LeftBar, {0x7F, 0xF0, 0xCF}, false},
    {"rejected",    true,  {0xD5, 0x5E, 0x00}, kBlack, "x",  Border::Thick,   {0xFF, 0x92, 0x48}, true},
    {"unused",      false, {},                 kBlack, "-",  Border::Dotted,  {0x69, 0x70, 0x7D}, false},
    {"approximate", true,  {0xE6, 0x9F, 0x00}, kBlack, "~",  Border::Dotted,  {0xFF, 0xD0, 0x66}, false},
    {"fast-forward", true, {0x00, 0x72, 0xB2}, kWhite, ">",  Border::Solid,   {0x4F, 0xA8, 0xDB}, false},
    {"stationary",  true,  {0xCC, 0x79, 0xA7}, kBlack, "=h", Border::Double,  {0x7C, 0x3A, 0x5E}, false},
    {"diverged",    false, {},                 kBlack, "!",  Border::Wavy,    {0xD5, 0x5E, 0x00}, false},
}};
// clang-format on

/// Returns the look of a meaning.
constexpr const Look& look(Mean mean) {
  return kLooks[static_cast<std::size_t>(mean)];
}

/// The shape in the corner of an accepted token, which shows how it was proposed.
enum class Corner { None, Triangle, Square, Round };
/// Returns the corner of a proposal's meaning.
constexpr Corner corner_of(Mean origin) {
  return origin == Mean::Guess   ? Corner::Triangle
         : origin == Mean::Pool  ? Corner::Square
         : origin == Mean::Draft ? Corner::Round
                                 : Corner::None;
}

/// Returns a meaning in words, for legends: "proposed and accepted by the target".
const char* meaning_of(Mean mean);

/// The themes.
enum class ThemeName { Dark, Light, Monochrome, HighContrast };

/// The colours of a theme.
struct Theme {
  ThemeName name = ThemeName::Dark;
  Rgb ground, card, bar, line, field, button, button_hot;
  Rgb text, bright, dim, faint;
  Rgb accent, accent_text;  // colours of the primary button and the selection
  Rgb good, warn, bad;      // text colours: agreement, no progress, failure
  Rgb work, wait;           // colours of slices of the timeline
  Rgb overview, playhead, light_up;
  bool monochrome = false;
  bool outline_fills = false;  // light background: fills get a dark 1 px outline
  bool outlines = false;       // buttons, fields and sheets have a border in the colour of lines
};

// clang-format off
constexpr Theme kDark{
    ThemeName::Dark,
    {0x10, 0x12, 0x16}, {0x16, 0x18, 0x1D}, {0x16, 0x18, 0x1D}, {0x23, 0x27, 0x2F},
    {0x0F, 0x11, 0x15}, {0x20, 0x24, 0x2C}, {0x2C, 0x31, 0x3B},
    {0xD7, 0xDB, 0xE2}, {0xFF, 0xFF, 0xFF}, {0x8B, 0x93, 0xA1}, {0x5B, 0x63, 0x70},
    {0x2B, 0x5F, 0xD9}, {0xFF, 0xFF, 0xFF},
    {0x2F, 0xD6, 0xA4}, {0xF2, 0xB0, 0x3C}, {0xFF, 0x7A, 0x5C},
    {0x2F, 0x6F, 0x9E}, {0x4B, 0x52, 0x62},
    {0x3A, 0x43, 0x52}, {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF}, false, false};
constexpr Theme kLight{
    ThemeName::Light,
    {0xEC, 0xEE, 0xF1}, {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF}, {0xD5, 0xD9, 0xE0},
    {0xF5, 0xF6, 0xF8}, {0xEE, 0xF0, 0xF3}, {0xE0, 0xE4, 0xEA},
    {0x2A, 0x2E, 0x36}, {0x0A, 0x0C, 0x10}, {0x5A, 0x62, 0x70}, {0x84, 0x8C, 0x99},
    {0x2B, 0x5F, 0xD9}, {0xFF, 0xFF, 0xFF},
    {0x00, 0x74, 0x54}, {0x8A, 0x5A, 0x00}, {0xB8, 0x32, 0x10},
    {0x2F, 0x6F, 0x9E}, {0x9A, 0xA2, 0xB0},
    {0xB4, 0xBC, 0xC9}, {0x10, 0x12, 0x16}, {0x10, 0x12, 0x16}, false, true};
constexpr Theme kMonochrome{
    ThemeName::Monochrome,
    {0x10, 0x10, 0x10}, {0x17, 0x17, 0x17}, {0x17, 0x17, 0x17}, {0x2A, 0x2A, 0x2A},
    {0x10, 0x10, 0x10}, {0x24, 0x24, 0x24}, {0x30, 0x30, 0x30},
    {0xDA, 0xDA, 0xDA}, {0xFF, 0xFF, 0xFF}, {0x95, 0x95, 0x95}, {0x63, 0x63, 0x63},
    {0x50, 0x50, 0x50}, {0xFF, 0xFF, 0xFF},
    {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF},
    {0x4A, 0x4A, 0x4A}, {0x52, 0x52, 0x52},
    {0x42, 0x42, 0x42}, {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF}, true, false};
constexpr Theme kHighContrast{
    ThemeName::HighContrast,
    {0x00, 0x00, 0x00}, {0x00, 0x00, 0x00}, {0x00, 0x00, 0x00}, {0xC8, 0xC8, 0xC8},
    {0x00, 0x00, 0x00}, {0x26, 0x26, 0x26}, {0x4A, 0x4A, 0x4A},
    {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0xFF}, {0xE2, 0xE2, 0xE2}, {0xB8, 0xB8, 0xB8},
    {0x1A, 0x5C, 0xE6}, {0xFF, 0xFF, 0xFF},
    {0x5C, 0xFF, 0xB8}, {0xFF, 0xD8, 0x1A}, {0xFF, 0x9E, 0x85},
    {0x6C, 0xB8, 0xF2}, {0x9A, 0x9A, 0x9A},
    {0x90, 0x90, 0x90}, {0xFF, 0xFF, 0xFF}, {0xFF, 0xFF, 0x66}, false, false, true};
// clang-format on

/// A theme with its names.
struct NamedTheme {
  const Theme* theme;
  const char* word;   // in settings and on the command line
  const char* label;  // on the screen
};
/// All themes, by ThemeName.
constexpr std::array<NamedTheme, 4> kThemes{{{&kDark, "dark", "Dark"},
                                             {&kLight, "light", "Light"},
                                             {&kMonochrome, "monochrome", "Monochrome"},
                                             {&kHighContrast, "high-contrast", "High contrast"}}};
/// Returns the theme with this name.
constexpr const Theme& theme_named(ThemeName name) {
  return *kThemes[static_cast<std::size_t>(name)].theme;
}

/// Returns the border colour of a meaning on a theme's cards: lighter than the fill on a dark card, darker on a light one.
Rgb edge_on(const Theme& theme, const Look& look);
/// Returns the colour of underlines, handles and bars without a meaning of their own.
Rgb handle_on(const Theme& theme);

constexpr int kCurveInks = 6;
/// Returns the colour of a chart's curve by its index, modulo kCurveInks; dash patterns distinguish curves too.
Rgb curve_ink(const Theme& theme, int index);

/// Returns the scale Viridis at t in [0, 1], for probabilities: piecewise linear through nine points published by matplotlib.
Rgb viridis(double t);
/// Returns the scale Plasma at t in [0, 1], for costs; likewise.
Rgb plasma(double t);

/// Normal vision, or vision without one kind of cone.
enum class Vision { Normal, Protan, Deutan, Tritan };
/// Returns a colour as seen with a kind of vision (Machado, Oliveira, Fernandes 2009, full severity). For tests of the table of looks.
Rgb seen_by(Rgb colour, Vision vision);
/// Returns the perceptual distance of two colours (CIEDE2000). For the same tests.
double distance(Rgb a, Rgb b);
/// Returns the WCAG 2 contrast ratio, 1 to 21.
double contrast(Rgb a, Rgb b);

}  // namespace ui
