// The command line: the options of the window, and the subcommands.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/subcommands.h"
#include "app/cli/terminal.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "engine/checkpoint/config.h"

namespace app {

namespace {

void add_window_options(CLI::App& app, WindowCommandOptions& o) {
  add_model_options(app, o.model);
  add_draft_option(app, o.model);
  CLI::Option* open =
      app.add_option(
             "--open", o.open,
             "show a recording (.pdrun), a lesson (.json), or a training, running or finished: its "
             "output folder or its training.jsonl")
          ->type_name("FILE|DIR");
  app.add_flag("--start", o.start, "immediately compare decoders on the first bundled prompt")
      ->excludes(open);
  app.add_option(
         "--screen", o.screen,
         "screen to start with: welcome; live: one run; compare: several decoders; lesson: the "
         "lessons; lab: why a run is fast or slow; training: training curves (default: the last "
         "one "
         "used)")
      ->check(one_of({"welcome", "live", "compare", "lesson", "lab", "training"}));
  app.add_option("--theme", o.theme, "colours of the window (default: the last ones used)")
      ->check(one_of({"dark", "light", "monochrome", "high-contrast"}));
  add_size_option(app, o.width, o.height, "1600x1000");
  app.add_option("--ui-scale", o.ui_scale,
                 "scale of the window's text and controls in percent (default: the last one used)")
      ->transform(whole_number(50, 300));
  app.add_option(
         "--screenshot", o.screenshot,
         "compare decoders (or show the file of --open), write a picture of the window (.png) "
         "and exit")
      ->type_name("FILE");
  app.add_option("--panel", o.panel,
                 "with --screenshot: a picture of this panel only (text, trajectory, tree, mask, "
                 "distributions, thoughts, gantt, schedule, loss, probe_trajectory, ...)")
      ->type_name("NAME")
      ->needs("--screenshot");
  app.add_option("--step", o.step, "select this step of the run shown")
      ->transform(whole_number(0, 1 << 30));
  app.add_option("--export", o.export_to,
                 "write the recording of --open to this file and exit, without a window; the "
                 "formats are those of `decoscope trace convert`")
      ->type_name("FILE")
      ->excludes("--screenshot");
  app.add_flag(
         "--with-prompt", o.export_prompt,
         "with --export to a trace, page or report: include the text of the prompts; everyone "
         "who gets the file can read them")
      ->needs("--export");
  CLI::Option* describe =
      app.add_option("--describe", o.describe,
                     "print a recording as text and exit, without a window; screen readers can "
                     "read it")
          ->type_name("RUN.pdrun");
  for (const char* other : {"--open", "--start", "--screenshot", "--export"})
    describe->excludes(other);
}

/// Runs what the options without a subcommand request: the window, or an export without one.
int without_subcommand(const WindowCommandOptions& o) {
  if (!o.describe.empty()) {
    TraceOptions options;
    options.what = "describe";
    options.path = o.describe;
    return trace(options);
  }
  if (!o.export_to.empty()) {
    if (o.open.empty())
      throw kernels::Error(
          kernels::ErrorCode::Usage,
          fmt::format("--export {}: names no recording to export; add --open RUN.pdrun",
                      o.export_to));
    TraceOptions options;
    options.what = "convert";
    options.path = o.open;
    options.out = o.export_to;
    options.with_prompt = o.export_prompt;
    return trace(options);
  }
  if (o.model.scale != "auto") engine::scale_from(o.model.scale);
  if (!o.model.draft_scale.empty()) engine::scale_from(o.model.draft_scale);
  return window(o);
}

void add_devices(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("devices", "List the devices models can run on");
  c->add_flag("--json", p.devices_json, kJsonHelp);
  c->callback([&] { run = [&p] { return devices(p.devices_json); }; });
}

/// Parses the command line. Prints the output of --help or --version.
/// @return  true if it printed such output, so that there is nothing else to do
/// @throws Error(Usage)  invalid command line
bool parse_or_answer(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    refuse_missing_values(app, argc, argv);
    return false;
  } catch (const CLI::CallForHelp&) {
    const CLI::App* at = deepest(app);
    const CLI::App* parent = at->get_parent();
    print(at->help(parent ? path_of(parent) : "", CLI::AppFormatMode::Normal));
  } catch (const CLI::CallForAllHelp&) {
    print(app.help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion&) {
    print(version_text() + "\n");
  } catch (const CLI::ParseError& error) {
    refuse_missing_values(app, argc, argv);
    throw kernels::Error(kernels::ErrorCode::Usage, usage_message(app, error));
  } catch (const kernels::Error&) {
    refuse_missing_values(app, argc, argv);
    throw;
  }
  return true;
}

/// Refuses options of the window that precede a subcommand.
void refuse_misplaced(const CLI::App& app) {
  if (app.get_subcommands().empty()) return;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) {
      throw kernels::Error(
          kernels::ErrorCode::Usage,
          fmt::format("{} is given before the command {}; put it after the command",
                      option->get_name(), app.get_subcommands().front()->get_name()));
    }
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "Decoscope runs large language models with parallel decoders and shows what they do.\n"
      "Without a subcommand it opens the window, with the options below.",
      "decoscope");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);
  Parsed p;
  Run run = [&p] { return without_subcommand(p.window); };
  add_window_options(app, p.window);
  for (const auto add : {add_generate, add_compare, add_bench, add_data, add_train, add_model,
                         add_score, add_reason, add_trace, add_lesson, add_devices})
    add(app, p, run);
  // Sets the footer after adding the subcommands, because a subcommand inherits the footer that
  // exists when it is added.
  app.footer("`decoscope SUBCOMMAND --help` lists the options of a subcommand, with examples.");
  if (parse_or_answer(app, argc, argv)) return 0;
  refuse_misplaced(app);
  return run();
}

}  // namespace app
