// Scripts in a window whose engine is a replay of recorded events, and lookup of the highlighted vertices of a panel.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <imgui_internal.h>

#include "engine/event/queue.h"
#include "tests/support/needs.h"
#include "tests/ui/support/play.h"
#include "tests/ui/support/streams.h"
#include "ui/widgets/draw.h"

namespace scripted {

// Answers commands with the events of a known run, a few per frame.
class Replay {
 public:
  Replay(engine::EventQueue& events, engine::CommandQueue& commands)
      : events_(events), commands_(commands) {}

  void turn() {
    while (auto command = commands_.try_take()) take(*command);
    for (int i = 0; i < pace && !held_ && next_ < story_.size(); ++i) events_.push(story_[next_++]);
  }

  int pace = 2;  // events per frame
  std::vector<std::string> asked;
  engine::StartRun started;  // the last StartRun command
  engine::StartReasoning reasoned;

 private:
  void take(const engine::Command& command) {
    if (const auto* start = std::get_if<engine::StartRun>(&command)) {
      asked.push_back("start");
      started = *start;
      std::vector<std::string> decoders;
      for (const engine::LaneRequest& lane : start->lanes) decoders.push_back(lane.decoder);
      story_ = decoders.size() == 1 ? streams::one_run(decoders[0]) : streams::race(decoders);
      next_ = 0;
    } else if (const auto* reasoning = std::get_if<engine::StartReasoning>(&command)) {
      asked.push_back("reason");
      reasoned = *reasoning;
    } else if (const auto* hold = std::get_if<engine::Hold>(&command)) {
      asked.push_back(hold->held ? "hold" : "resume");
      held_ = hold->held;
      events_.push(engine::Held{.held = held_});
    } else if (std::holds_alternative<engine::StepOnce>(command)) {
      asked.push_back("step");
      while (next_ < story_.size()) {
        const bool ends = std::holds_alternative<engine::StepEnded>(story_[next_]);
        events_.push(story_[next_++]);
        if (ends) break;
      }
    } else if (std::holds_alternative<engine::StopRun>(command)) {
      asked.push_back("stop");
      if (next_ < story_.size())
        events_.push(engine::RunFinished{
            .t = engine::time_of(story_.back()), .run = 1, .stop_reason = "stopped"});
      next_ = story_.size();
    }
  }

  engine::EventQueue& events_;
  engine::CommandQueue& commands_;
  std::vector<engine::Event> story_;
  std::size_t next_ = 0;
  bool held_ = false;
};

struct Stage {
  ui::Shell* shell = nullptr;
  Replay* replay = nullptr;
};

using StageScript = std::function<void(ImGuiTestContext*, Stage&)>;

// Runs a script in a real window; the test fails if the script does.
inline void play(const char* name,
                 const StageScript& script,
                 ui::WindowOptions options = {},
                 const ui::Catalog& catalog = streams::catalog()) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue events;
  engine::CommandQueue commands;
  Replay replay(events, commands);
  in_window(
      name, events, commands, catalog,
      [&](ImGuiTestContext* ctx, ui::Shell& shell) {
        Stage stage{&shell, &replay};
        script(ctx, stage);
      },
      std::move(options), [&] { replay.turn(); });
}

inline const engine::RunRecord* run_of(Stage& stage) {
  return stage.shell->session().shown().timeline.run(stage.shell->selection().run);
}

inline void wait_until(ImGuiTestContext* ctx, const std::function<bool()>& done) {
  IM_CHECK(wait_for(ctx, done));
}

inline void run_to_the_end(ImGuiTestContext* ctx, Stage& stage) {
  stage.replay->pace = 50;
  ctx->ItemClick("//##top/###run");
  wait_until(ctx, [&] { return run_of(stage) && run_of(stage)->over(); });
}

inline void put_mouse_away(ImGuiTestContext* ctx) {
  ctx->MouseMoveToPos({5, ImGui::GetMainViewport()->Size.y - 5});
  ctx->Yield(3);
}

using Points = std::vector<std::pair<float, float>>;

// Returns the vertices in the selection's colour, in a panel's window and its children.
inline Points lit_in(const std::string& panel) {
  Points points;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || !window->RootWindow || panel != window->RootWindow->Name) {
      if (panel != window->Name) continue;
    }
    for (const ImDrawVert& v : window->DrawList->VtxBuffer)
      if (v.col == ui::colour(ui::theme().light_up)) points.emplace_back(v.pos.x, v.pos.y);
  }
  std::sort(points.begin(), points.end());
  return points;
}

// Returns the vertices of lit_in() that exist only while `place` is selected. Moves the mouse away.
inline Points lit_by(ImGuiTestContext* ctx,
                     Stage& stage,
                     const char* panel,
                     const ui::Place& place) {
  stage.shell->selection().locked = {};
  put_mouse_away(ctx);
  const Points without = lit_in(panel);
  stage.shell->selection().locked = place;
  ctx->Yield(3);
  const Points with = lit_in(panel);
  Points added;
  std::set_difference(with.begin(), with.end(), without.begin(), without.end(),
                      std::back_inserter(added));
  return added;
}

}  // namespace scripted
