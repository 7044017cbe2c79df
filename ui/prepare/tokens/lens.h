// The quantities that can colour the cells of the panel Text.
#pragma once

#include <array>

namespace ui {

/// The quantity that the colour of a committed cell shows.
enum class Lens { TokenStatus, Probability, Age, Cost, Agreement, Origin };
inline constexpr int kLenses = 6;

/// The names of the lenses, for the panel and for saved notes.
inline constexpr std::array<const char*, kLenses> kLensNames{"status", "probability", "age",
                                                             "cost",   "agreement",   "origin"};

}  // namespace ui
