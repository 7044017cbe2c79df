// Starts the engine thread and the window, and ends both.
#include "app/cli/commands.h"

#ifndef DECOSCOPE_WITH_UI

#include "kernels/error.h"

namespace app {

int window(const WindowCommandOptions&) {
  throw kernels::Error(kernels::ErrorCode::Usage,
                       "this build has no window (WITH_UI=OFF); `decoscope --help` lists what "
                       "works in the terminal");
}

}  // namespace app

#else

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/notes.h"
#include "app/window/catalog.h"
#include "app/window/devices.h"
#include "app/window/engine_thread.h"
#include "app/window/models.h"
#include "engine/base/closest_name.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/model_files.h"
#include "engine/event/clock.h"
#include "engine/event/queue.h"
#include "engine/store/model_store.h"
#include "kernels/cuda/cuda.h"
#include "ui/files/setup_form.h"
#include "ui/shell/catalog.h"
#include "ui/shell/panel.h"
#include "ui/shell/window.h"
#include "ui/widgets/assert_log.h"

namespace app {
namespace {

namespace fs = std::filesystem;

// Returns the id of the panel that --panel names; accepts a former id too.
std::string panel_id(const std::string& name) {
  return name == "laws" ? "distributions" : name;
}

// Checks that there is such a panel; the error suggests the nearest name, or lists all.
void check_panel(const std::string& name) {
  std::vector<std::string> known;
  for (const ui::Panel& panel : ui::panels()) known.emplace_back(panel.id);
  if (name.empty() || std::ranges::find(known, name) != known.end()) return;
  const std::string meant = engine::did_you_mean(name, known);
  throw kernels::Error(
      kernels::ErrorCode::Usage,
      fmt::format("--panel {}: there is no such panel{}", engine::escaped(name),
                  meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant));
}

// Checks that the screenshot would not replace any file other than a picture.
void check_picture_output(const std::string& path) {
  constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
  std::string begin(kPng.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (!begin.empty() && begin != kPng)
    throw kernels::Error(
        kernels::ErrorCode::Usage,
        fmt::format("--screenshot {}: exists and is not a PNG picture; name another "
                    "file",
                    engine::escaped(path)));
  engine::check_can_be_written(path);
}

// Checks the command line before a display is needed.
// @throws Error  with the same code as other subcommands
void check_arguments(const WindowCommandOptions& options) {
  if (!options.screenshot.empty()) {
    if (fs::path(options.screenshot).extension() != ".png")
      throw kernels::Error(kernels::ErrorCode::Usage,
                           "--screenshot: found " + options.screenshot +
                               ", expected a name ending in .png; pictures are written only as "
                               "PNG");
    check_picture_output(options.screenshot);
  }
  check_panel(panel_id(options.panel));
  if (!options.open.empty()) ui::check_opens(options.open);
  if (options.model.model != ModelOptions{}.model)
    engine::find_model(options.model.model, assets_dir());
  if (!kernels::is_cpu(options.model.device))
    engine::ModelStore(assets_dir(), 1).device(options.model.device);
}

// Prints the result of `trace convert` to an animation.
void print_animation(const TraceOptions& options,
                     const std::string& path,
                     const std::string& words) {
  using Json = nlohmann::ordered_json;
  const std::string notice = path == options.out
                                 ? ""
                                 : fmt::format("{} exists; written to {}",
                                               engine::escaped(options.out), engine::escaped(path));
  if (!options.json) {
    print(for_terminal("wrote " + engine::escaped(path) + ": " + words + "\n" +
                       (notice.empty() ? "" : "note: " + notice + "\n")));
    return;
  }
  Json object{{"from", engine::as_utf8(options.path)},
              {"files", Json::array({engine::as_utf8(path)})},
              {"notices", Json::array()}};
  if (!notice.empty()) object["notices"].push_back(notice);
  print(object.dump(2, ' ', false, Json::error_handler_t::replace));
}

// Prints the scale that the window chose for the model of the form.
void print_scale(const ui::Catalog& catalog, const ui::SetupForm& form) {
  for (const ui::CatalogModel& model : catalog.models) {
    if (model.name == form.model)
      print_error("note: " + why_this_scale(model.name, model.n_params, form.scale));
  }
}

}  // namespace

int window(const WindowCommandOptions& options) {
  check_arguments(options);
  engine::EventQueue events;
  engine::CommandQueue commands;
  // A failed assertion of the user interface is reported and does not end the session.
  const ui::AssertLog asserts([&events](const std::string& what) {
    print_error(what);
    events.push(engine::Notice{engine::now_ns(), engine::Notice::Level::Error, what});
  });
  ui::Catalog catalog = window_catalog(options);
  WindowDevices devices(catalog);
  WindowModels models(catalog, options.model);
  // waits for the list, because a screenshot has to show all devices
  if (!options.screenshot.empty()) devices.wait_and_take();
  EngineThread thread(assets_dir(), data_dir_of_environment(), options.model, commands, events);
  ui::WindowOptions window_options;
  window_options.open = options.open;
  window_options.screen = options.screen;
  window_options.theme = options.theme;
  window_options.width = options.width;
  window_options.height = options.height;
  window_options.ui_scale = options.ui_scale;
  if (options.model.model != ModelOptions{}.model)
    window_options.model = name_in_catalog(catalog, options.model.model);
  // Without --scale the window chooses a scale at which parallel decoders are faster.
  if (options.model.scale_given) window_options.scale = options.model.scale;
  window_options.dtype = options.model.dtype;
  window_options.cache_type = options.model.cache_type;
  window_options.device = options.model.device;
  window_options.context = options.model.context;
  window_options.draft = options.model.draft;
  window_options.draft_scale = options.model.draft_scale;
  window_options.heads = options.model.heads;
  window_options.screenshot = options.screenshot;
  const TraceOptions& animation = options.animation;
  window_options.animation = animation.out;
  window_options.animation_plan.pace = animation.by_time ? ui::Pace::Time : ui::Pace::Step;
  window_options.animation_plan.ms_per_step = animation.ms_per_step;
  window_options.animation_plan.seconds = animation.seconds;
  window_options.animation_plan.fps = animation.fps;
  window_options.first_step = animation.first_step;
  window_options.last_step = animation.last_step;
  window_options.run = animation.run;
  window_options.wall_clock = animation.clock == "wall";
  std::string written;
  window_options.hooks.animation_written = [&](const std::string& path, const std::string& words) {
    written = path;
    print_animation(animation, path, words);
  };
  window_options.panel = panel_id(options.panel);
  window_options.step = options.step;
  window_options.race_first =
      options.start || (!options.screenshot.empty() && options.open.empty());
  if (window_options.race_first && options.screen.empty()) window_options.screen = "compare";
  if (!options.screenshot.empty() || !animation.out.empty()) window_options.config_dir = "-";
  window_options.hooks.wants_to_close = interrupted;
  window_options.hooks.has_news = [&] {
    const bool has_devices = devices.take(), has_models = models.take();
    return has_devices || has_models;
  };
  if (!options.model.scale_given && options.open.empty()) {
    window_options.hooks.form_made = [&](const ui::SetupForm& form) { print_scale(catalog, form); };
  }
  try {
    thread.beside([&] { return ui::run_window(events, commands, catalog, window_options); });
    if (!animation.out.empty() && written.empty())
      throw kernels::Error(kernels::ErrorCode::Cancelled,
                           engine::escaped(animation.out) + ": cancelled; nothing was written");
    return 0;
  } catch (const kernels::Error& error) {
    // Without DISPLAY this is a usage error, not a failure of a device.
    const char* display = std::getenv("DISPLAY");
    const bool named = display && *display != '\0';
    if (error.code() != kernels::ErrorCode::Device || named) throw;
    throw kernels::Error(kernels::ErrorCode::Usage, error.what());
  }
}

}  // namespace app

#endif
