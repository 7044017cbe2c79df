// Colour distances of the palette, recomputed from the table (CIEDE2000; colour vision: Machado 2009).
#include <vector>

#include <gtest/gtest.h>

#include "ui/widgets/theme.h"

namespace {

using ui::Mean;
using ui::Rgb;
using ui::Vision;

std::vector<Mean> fills() {
  return {Mean::Guess,       Mean::Pool,        Mean::Accepted,  Mean::Rejected,
          Mean::Approximate, Mean::FastForward, Mean::Stationary};
}

TEST(Theme, colour_distance_matches_published_pairs) {
  // Two distant colours, and green and red for deuteranopia.
  EXPECT_NEAR(ui::distance({255, 255, 255}, {0, 0, 0}), 100, 0.1);
  EXPECT_EQ(ui::distance({1, 2, 3}, {1, 2, 3}), 0);
  const auto apart = [](Rgb a, Rgb b) {
    return ui::distance(ui::seen_by(a, Vision::Deutan), ui::seen_by(b, Vision::Deutan));
  };
  EXPECT_NEAR(apart({0x22, 0xC5, 0x5E}, {0xEF, 0x44, 0x44}), 7.7, 0.5);
  EXPECT_NEAR(apart({0x00, 0x9E, 0x73}, {0xD5, 0x5E, 0x00}), 20.5, 0.5);
}

TEST(Theme, fills_differ_for_all_colour_vision) {
  for (const Vision vision : {Vision::Normal, Vision::Protan, Vision::Deutan, Vision::Tritan})
    for (const Mean a : fills())
      for (const Mean b : fills())
        if (a < b) {
          const double apart = ui::distance(ui::seen_by(ui::look(a).fill, vision),
                                            ui::seen_by(ui::look(b).fill, vision));
          EXPECT_GT(apart, 10) << ui::look(a).name << " and " << ui::look(b).name;
        }
}

TEST(Theme, text_and_fills_have_contrast) {
  for (const Mean mean : fills()) {
    EXPECT_GE(ui::contrast(ui::look(mean).fill, ui::look(mean).text), 4.5) << ui::look(mean).name;
    EXPECT_GE(ui::contrast(ui::look(mean).fill, ui::kDark.card), 3) << ui::look(mean).name;
  }
  for (const ui::Theme& theme : {ui::kDark, ui::kLight, ui::kMonochrome, ui::kHighContrast})
    for (const Rgb ink : {theme.text, theme.bright, theme.dim, theme.good, theme.warn, theme.bad})
      EXPECT_GE(ui::contrast(ink, theme.card), 4.5);
  // WCAG 2.1, 1.4.6 (level AAA), for all texts, on cards and on buttons under the mouse.
  for (const Rgb ink : {ui::kHighContrast.text, ui::kHighContrast.dim, ui::kHighContrast.faint,
                        ui::kHighContrast.good, ui::kHighContrast.warn, ui::kHighContrast.bad})
    EXPECT_GE(ui::contrast(ink, ui::kHighContrast.card), 7);
  EXPECT_GE(ui::contrast(ui::kHighContrast.text, ui::kHighContrast.button_hot), 7);
  EXPECT_GE(ui::contrast(ui::kHighContrast.accent_text, ui::kHighContrast.accent), 4.5);
  EXPECT_GE(ui::contrast(ui::kHighContrast.accent, ui::kHighContrast.card), 3);
  EXPECT_GE(ui::contrast(ui::kHighContrast.line, ui::kHighContrast.card), 7);
}

// WCAG 2.1, 1.4.11, requires a contrast of 3:1 for shapes. A yellow fill alone has 1.3:1 on white.
TEST(Theme, borders_and_handles_have_contrast) {
  for (const ui::Theme& theme : {ui::kDark, ui::kLight, ui::kMonochrome, ui::kHighContrast}) {
    EXPECT_GE(ui::contrast(ui::handle_on(theme), theme.card), 3);
    for (int i = 0; i < ui::kCurveInks; ++i)
      EXPECT_GE(ui::contrast(ui::curve_ink(theme, i), theme.card), 3) << i;
    for (const Mean mean : fills())
      // Two borders are left out: a TopTab fill has an outline on a light card, and the lines of Double are drawn on the fill.
      if (ui::look(mean).border != ui::Border::TopTab &&
          ui::look(mean).border != ui::Border::Double) {
        EXPECT_GE(ui::contrast(ui::edge_on(theme, ui::look(mean)), theme.card), 3)
            << ui::look(mean).name;
      }
  }
}

TEST(Theme, origins_of_accepted_tokens_differ_without_colour) {
  const Mean origins[] = {Mean::Prefix, Mean::Guess, Mean::Pool, Mean::Draft};
  for (const Mean a : origins)
    for (const Mean b : origins)
      EXPECT_EQ(ui::corner_of(a) == ui::corner_of(b), a == b)
          << ui::look(a).name << ui::look(b).name;
}

TEST(Theme, text_on_the_tint_of_an_earlier_step_has_contrast) {
  for (const ui::Theme& theme : {ui::kDark, ui::kLight, ui::kMonochrome, ui::kHighContrast})
    for (const Mean mean : fills()) {
      const auto mixed = [&](std::uint8_t fill, std::uint8_t card) {
        return static_cast<std::uint8_t>(card + (fill - card) * ui::kQuietFill);
      };
      const ui::Rgb fill = ui::look(mean).fill, card = theme.card;
      const ui::Rgb tint{mixed(fill.r, card.r), mixed(fill.g, card.g), mixed(fill.b, card.b)};
      EXPECT_GE(ui::contrast(theme.text, tint), 4.5) << ui::look(mean).name;
    }
}

TEST(Theme, meanings_differ_without_colour) {
  for (int a = 0; a < ui::kMeans; ++a)
    for (int b = a + 1; b < ui::kMeans; ++b) {
      const ui::Look &x = ui::kLooks[a], &y = ui::kLooks[b];
      if (static_cast<Mean>(a) == Mean::Prefix && static_cast<Mean>(b) == Mean::Plain) continue;
      EXPECT_TRUE(std::string_view(x.mark) != y.mark || x.border != y.border)
          << x.name << ", " << y.name;
    }
}

}  // namespace
