#include "ui/settings/layout_presets.h"

#include <algorithm>
#include <array>

namespace ui {
namespace {

// Enlarges the answer and the trajectory. The other panels become tabs of the same places.
constexpr std::array kWatchingPlaces{
    PresetPlace{Screen::Live, "runs", Dock::Left},
    PresetPlace{Screen::Live, "gantt", Dock::Centre},
    PresetPlace{Screen::Live, "schedule", Dock::Centre},
    PresetPlace{Screen::Live, "log", Dock::Centre},
    PresetPlace{Screen::Live, "numbers", Dock::Centre},
    PresetPlace{Screen::Live, "inspector", Dock::Centre},
    PresetPlace{Screen::Live, "machine", Dock::Centre},
    PresetPlace{Screen::Compare, "runs", Dock::Left},
    PresetPlace{Screen::Compare, "difference", Dock::Foot},
    PresetPlace{Screen::Compare, "inspector", Dock::Foot},
};
constexpr std::array kWatchingShares{
    PresetShare{Screen::Live, Dock::Top, 0.45f},
    PresetShare{Screen::Compare, Dock::Foot, 0.26f},
};

// Enlarges the timeline, and gives the figures of the run a whole column.
constexpr std::array kTimelinePlaces{
    PresetPlace{Screen::Live, "inspector", Dock::Right},
    PresetPlace{Screen::Live, "machine", Dock::Right},
};
constexpr std::array kTimelineShares{
    PresetShare{Screen::Live, Dock::Foot, 0.62f},
    PresetShare{Screen::Live, Dock::Right, 0.28f},
    PresetShare{Screen::Compare, Dock::Foot, 0.65f},
    PresetShare{Screen::Compare, Dock::FootRight, 0.3f},
};

// The tables are large: figures, Inspector, runs, differences.
constexpr std::array kNumbersPlaces{
    PresetPlace{Screen::Live, "machine", Dock::RightMiddle},
};
constexpr std::array kNumbersShares{
    PresetShare{Screen::Live, Dock::Right, 0.42f},
    PresetShare{Screen::Live, Dock::RightMiddle, 0.45f},
    PresetShare{Screen::Live, Dock::LeftFoot, 0.42f},
    PresetShare{Screen::Compare, Dock::LeftFoot, 0.42f},
    PresetShare{Screen::Compare, Dock::Foot, 0.55f},
    PresetShare{Screen::Compare, Dock::FootRight, 0.6f},
};

constexpr std::array kPresets{
    LayoutPreset{"standard", "Standard", "Every panel has its place.", {}, {}},
    LayoutPreset{"watching", "Watching",
                 "The answer and the trajectory are large; other panels are tabs behind them.",
                 kWatchingPlaces, kWatchingShares},
    LayoutPreset{"timeline", "Timeline", "The timeline and the numbers are large.", kTimelinePlaces,
                 kTimelineShares},
    LayoutPreset{"numbers", "Numbers",
                 "The tables are large: numbers, inspector, runs, differences.", kNumbersPlaces,
                 kNumbersShares},
};

}  // namespace

std::span<const LayoutPreset> layout_presets() {
  return kPresets;
}

const LayoutPreset& preset_named(std::string_view word) {
  const auto found = std::ranges::find(kPresets, word, &LayoutPreset::word);
  return found == kPresets.end() ? kPresets.front() : *found;
}

}  // namespace ui
