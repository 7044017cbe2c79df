// A window of a given size, with a race or a run whose model has a long name.
#pragma once

#include <ostream>
#include <utility>
#include <variant>
#include <vector>

#include <imgui.h>

#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/streams.h"
#include "ui/shell/layout.h"

/// The size of a window and the scale of its content.
struct Size {
  float width, height;
  int scale;  // percent
};

inline std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.width << "x" << size.height << " at " << size.scale << " %";
}

inline constexpr Size kSizes[] = {{1280, 720, 100},  {1280, 720, 150}, {2560, 1440, 200},
                                  {1366, 768, 125},  {640, 400, 100},  {640, 400, 150},
                                  {1600, 1000, 100}, {1120, 700, 100}};

// The events of a run or a race, whose model has a long name.
inline std::vector<engine::Event> with_long_name(std::vector<engine::Event> events) {
  for (engine::Event& event : events)
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      model->name = "A-Language-Model-135M-Instruct.Q4_1";
  return events;
}

// A window with a race of five lanes or one long run.
struct SizedWindow : DrawnWindow {
  explicit SizedWindow(const Size& size, ui::Screen screen = ui::Screen::Compare) {
    ImGui::GetIO().DisplaySize = {size.width, size.height};
    shell.settings().scale_percent = size.scale;
    shell.take(with_long_name(
        screen == ui::Screen::Live
            ? streams::one_run("lookahead", 300)
            : streams::race({"ar", "jacobi", "lookahead", "prompt-lookup", "suffix"}, 300)));
    shell.show(screen);
    settle();
  }
  void settle() {
    for (int i = 0; i < 6; ++i) gui.frame(shell);
  }
};
