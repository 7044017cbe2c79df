// The window and the engine together: real queues, a real model, and a script that clicks.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "app/cli/commands.h"
#include "app/window/engine_thread.h"
#include "app/window/tasks.h"
#include "engine/decode/registry.h"
#include "engine/event/queue.h"
#include "engine/seed/simulate_schedule.h"
#include "tests/support/assets_folder.h"
#include "tests/support/needs.h"
#include "tests/ui/support/play.h"
#include "ui/prepare/status.h"
#include "ui/shell/catalog.h"

namespace with_engine {

inline std::filesystem::path assets() {
  return assets_folder();
}

/// A catalog with all decoders, the bundled model, one prompt and all reasoning tasks.
inline ui::Catalog catalog() {
  ui::Catalog all;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    ui::CatalogDecoder decoder{.name = info.name,
                               .title = ui::title_in_lists(info.name, info.title),
                               .options = info.options};
    decoder.needs_draft = info.needs_draft;
    all.decoders.push_back(std::move(decoder));
  }
  const std::string model = (assets() / "models/demo-target").string();
  all.models.push_back({.name = model, .path = model, .draft = "demo-draft"});
  all.prompts.push_back({.id = "one",
                         .title = "one",
                         .text = "USER: Anna has 11 stickers and finds 33 more. How many stickers "
                                 "does Anna have? ASSISTANT:"});
  app::add_tasks(all, "");
  all.simulate = engine::simulate_schedule;
  return all;
}

// Runs the window on this thread and the engine on its own until the script ends.
inline void play(const char* name, const scripted::Script& script, ui::WindowOptions options = {}) {
  NEEDS(display::ready(), "no display and no Xvfb");
  std::error_code error;
  if (!std::filesystem::exists(assets() / "models/demo-target/config.json", error))
    FAIL() << "the bundled model demo-target is absent";
  engine::EventQueue events;
  engine::CommandQueue commands;
  const app::EngineThread thread(assets().string(), "", {.n_threads = 1}, commands, events);
  scripted::in_window(name, events, commands, catalog(), script, std::move(options));
}

/// The timeline of the live session.
inline const engine::Timeline& timeline(ui::Shell& shell) {
  return shell.session().live().timeline;
}

/// Steps of all runs so far.
inline std::int64_t n_steps(ui::Shell& shell) {
  std::int64_t n = 0;
  for (const engine::RunRecord& run : timeline(shell).runs()) n += run.totals.n_steps;
  return n;
}

/// True if there are runs and all have ended.
inline bool all_over(ui::Shell& shell) {
  const auto runs = timeline(shell).runs();
  return !runs.empty() && std::all_of(runs.begin(), runs.end(), [](auto& r) { return r.over(); });
}

}  // namespace with_engine
