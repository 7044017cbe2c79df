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
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/window/engine_thread.h"
#include "app/commands/generation.h"
#include "app/commands/notes.h"
#include "app/cli/paths.h"
#include "app/cli/prompt_file.h"
#include "app/cli/terminal.h"
#include "app/window/devices.h"
#include "app/window/heads.h"
#include "app/window/tasks.h"
#include "engine/base/closest_name.h"
#include "engine/decode/registry.h"
#include "engine/event/clock.h"
#include "engine/base/output_file.h"
#include "engine/event/run_rules.h"
#include "engine/base/text.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/related.h"
#include "engine/reason/tot.h"
#include "engine/store/memory_plan.h"
#include "engine/store/model_store.h"
#include "engine/seed/simulate_schedule.h"
#include "kernels/cuda/cuda.h"
#include "ui/shell/assert_log.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"

namespace app {
namespace {

namespace fs = std::filesystem;

/// Why these options cannot be run from the window; empty: they can.
/// @param chain  by chain of thought, which asks questions whose answers are known
std::string why_not_here(const engine::DecoderInfo& info,
                         const engine::OptionValues& options,
                         bool chain) {
  try {
    const engine::ParsedOptions parsed = engine::parse_options(info.name, options);
    if (!chain && parsed->early_stop() == "probe")
      return info.title +
             ": stop=probe looks for the answers of a question, which a chain of thought asks. "
             "Choose that above, or here bound or none.";
  } catch (const kernels::Error& error) {
    return error.what();
  }
  return "";
}

/// The same of a tree of thoughts.
std::string why_not_in_tree(const engine::DecoderInfo& info, const engine::OptionValues& options) {
  try {
    engine::check_whole_texts(info.name, options);
  } catch (const kernels::Error& error) {
    return error.what();
  }
  return "";
}

/// Options of a schedule, where a run is one text.
std::map<std::string, std::string> idle_options(const engine::DecoderInfo& info) {
  std::map<std::string, std::string> idle;
  if (!engine::takes_turns(info.name)) return idle;
  for (const char* name :
       {"branches", "policy", "batch_verify", "overlap", "draft_threads", "target_threads"})
    idle[name] =
        "One prompt is one text, which has nobody to take turns with: it drafts and is judged in "
        "turn. A chain or a tree of thoughts is several texts at a time; so are the prompts of a "
        "file in decoscope compare.";
  return idle;
}

std::vector<ui::CatalogDecoder> catalog_decoders() {
  std::vector<ui::CatalogDecoder> list;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    ui::CatalogDecoder decoder{.name = info.name,
                               .title = info.title,
                               .summary = info.summary,
                               .reference = info.reference,
                               .lossless = info.lossless,
                               .supports_rejection = info.supports_rejection,
                               .options = info.options};
    decoder.needs_draft = info.needs_draft;
    decoder.needs_heads = info.needs_heads;
    decoder.idle_options = idle_options(info);
    decoder.refusal = [&info](const engine::OptionValues& options) {
      return why_not_here(info, options, false);
    };
    decoder.refusal_in_chain = [&info](const engine::OptionValues& options) {
      return why_not_here(info, options, true);
    };
    decoder.refusal_in_tree = [&info](const engine::OptionValues& options) {
      return why_not_in_tree(info, options);
    };
    list.push_back(std::move(decoder));
  }
  return list;
}

/// Equal where two tokenizers have the same tokens in the same order; FNV-1a.
std::uint64_t vocabulary_hash(const engine::Tokenizer& tokenizer, int n_tokens) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x0000'0100'0000'01B3; };
  for (engine::TokenId id = 0; id < n_tokens; id++) {
    for (const char c : tokenizer.piece(id)) add(static_cast<unsigned char>(c));
    add(0xFF);  // in no UTF-8: where a piece ends
  }
  return hash;
}

ui::CatalogModel catalog_model(const fs::path& folder, const ModelOptions& options) {
  ui::CatalogModel model{.name = folder.filename().string(), .path = folder.string()};
  try {
    const engine::ModelFiles files =
        engine::open_model(folder.string(), {.allow_external_shards = options.allow_external_shards,
                                             .needs_tokenizer = false,
                                             .limits = options.limits});
    model.n_params = files.config.n_params();
    model.has_tokenizer = files.tokenizer != nullptr;
    model.summary =
        fmt::format("{:.1f} M parameters, {}", static_cast<double>(model.n_params) * 1e-6,
                    kernels::name_of(files.stored_dtype));
    if (!model.has_tokenizer) model.unavailable = "it has no tokenizer";
    model.draft = files.draft_name;
    model.context = files.config.max_seq_len;
    const engine::Sampling own = sampling_by_model(files.generation);
    model.sampling = {.temperature = own.temperature,
                      .top_p = own.top_p,
                      .min_p = own.min_p,
                      .repetition_penalty = own.repetition_penalty,
                      .top_k = own.top_k,
                      .max_tokens = files.generation.max_new_tokens.value_or(0)};
    model.before = engine::name_before_training(folder.string(), options.limits);
    model.vocab_size = files.config.vocab_size;
    if (files.tokenizer) {
      model.vocab_size = std::min(model.vocab_size, files.tokenizer->vocab_size());
      model.vocabulary = vocabulary_hash(*files.tokenizer, model.vocab_size);
    }
  } catch (const kernels::Error& error) {
    model.unavailable = error.what();
  }
  return model;
}

/// Draft heads lie among the models, and are none.
bool holds_heads(const fs::path& folder) {
  try {
    return engine::heads_kind(folder.string()).has_value();
  } catch (const kernels::Error&) {
    return false;  // listed, with what is wrong
  }
}

/// @param options  whose model is listed too
std::vector<ui::CatalogModel> catalog_models(const fs::path& folder, const ModelOptions& options) {
  const std::string& asked = options.model;
  std::vector<ui::CatalogModel> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory() && !holds_heads(entry.path()))
      list.push_back(catalog_model(entry.path(), options));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const bool a_target = a.name == "demo-target", b_target = b.name == "demo-target";
    return a_target != b_target ? a_target : a.name < b.name;
  });
  const bool listed =
      std::any_of(list.begin(), list.end(), [&](const auto& m) { return m.name == asked; });
  if (!listed && fs::is_directory(asked, error)) {
    list.insert(list.begin(), catalog_model(asked, options));
    list.front().name = asked;
  }
  return list;
}

std::vector<ui::CatalogPrompt> catalog_prompts(const std::string& path) {
  std::vector<ui::CatalogPrompt> list;
  for (const Prompt& prompt : read_prompts(path)) {
    const std::string first_line = prompt.text.substr(0, prompt.text.find('\n'));
    const std::string shortened = first_line.substr(0, engine::whole_characters(first_line, 60));
    list.push_back({.id = prompt.id, .title = prompt.id + ": " + shortened, .text = prompt.text});
  }
  return list;
}

/// All that can be chosen but devices, which WindowDevices adds.
ui::Catalog catalog_of(const WindowCommandOptions& options) {
  const fs::path assets = assets_dir();
  ui::Catalog catalog;
  catalog.app_version = DECOSCOPE_VERSION;
  catalog.decoders = catalog_decoders();
  catalog.models = catalog_models(assets / "models", options.model);
  add_heads(catalog, assets / "models", options.model);
  add_tree_notes(catalog);
  catalog.prompts = catalog_prompts((assets / "prompts/bundled.jsonl").string());
  add_tasks(catalog, data_dir_of_environment());
  const auto n_models = std::count_if(catalog.models.begin(), catalog.models.end(),
                                      [](const auto& m) { return m.unavailable.empty(); });
  catalog.health.push_back({.name = "models",
                            .value = fmt::format("{} ready to run", n_models),
                            .ok = n_models > 0,
                            .fix = "Open one: a model's folder as Hugging Face ships it."});
  const std::int64_t memory = engine::available_memory_bytes();
  if (memory < std::numeric_limits<std::int64_t>::max()) catalog.memory_bytes = memory;
  catalog.simulate = engine::simulate_schedule;
  const fs::path recording = assets / "recordings/first_race.pdrun";
  std::error_code error;
  if (fs::exists(recording, error)) catalog.race_recording = recording.string();
  return catalog;
}

/// Refuses a panel that no screen has, with the nearest there is or all of them.
/// The id of a panel that --panel names, by its present or its former id.
std::string panel_id(const std::string& name) {
  return name == "laws" ? "distributions" : name;
}

void check_panel(const std::string& asked) {
  std::vector<std::string> known;
  for (const ui::Panel& panel : ui::panels()) known.emplace_back(panel.id);
  if (asked.empty() || std::ranges::find(known, asked) != known.end()) return;
  const std::string meant = engine::did_you_mean(asked, known);
  throw kernels::Error(
      kernels::ErrorCode::Usage,
      fmt::format("--panel {}: there is no such panel{}", engine::quoted_for_message(asked),
                  meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant));
}

/// A picture is replaced by a picture, nothing else is.
void check_picture_output(const std::string& path) {
  constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
  std::string begin(kPng.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (!begin.empty() && begin != kPng)
    throw kernels::Error(kernels::ErrorCode::Usage,
                         fmt::format("--screenshot {}: exists and is no PNG picture; name another "
                                     "file",
                                     engine::quoted_for_message(path)));
  engine::check_can_be_written(path);
}

/// A wrong word of the command line is told as such, whether or not there is a display.
/// @throws Error  of the code that the subcommands give the same fault
void check_arguments(const WindowCommandOptions& options) {
  if (!options.screenshot.empty()) {
    if (fs::path(options.screenshot).extension() != ".png")
      throw kernels::Error(kernels::ErrorCode::Usage,
                           "--screenshot: found " + options.screenshot +
                               ", expected a name ending in .png; a picture is written as PNG "
                               "alone");
    check_picture_output(options.screenshot);
  }
  check_panel(panel_id(options.panel));
  if (!options.open.empty()) ui::check_opens(options.open);
  if (options.model.model != ModelOptions{}.model)
    engine::find_model(options.model.model, assets_dir());
  if (!kernels::is_cpu(options.model.device))
    engine::ModelStore(assets_dir(), 1).device(options.model.device);
}

/// Says at which scale the model of the form begins where nobody chose one.
void tell_scale(const ui::Catalog& catalog, const ui::SetupForm& form) {
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
  // A fault in drawing is told, and ends nobody's session.
  const ui::AssertLog asserts([&events](const std::string& what) {
    print_error(what);
    events.push(engine::Notice{engine::now_ns(), engine::Notice::Level::Error, what});
  });
  ui::Catalog catalog = catalog_of(options);
  WindowDevices devices(catalog);
  if (!options.screenshot.empty()) devices.wait_and_take();  // a picture shows them all
  EngineThread thread(assets_dir(), data_dir_of_environment(), options.model, commands, events);
  ui::WindowOptions window_options;
  window_options.open = options.open;
  window_options.screen = options.screen;
  window_options.theme = options.theme;
  if (options.model.model != ModelOptions{}.model) window_options.model = options.model.model;
  // Left alone, the window chooses a scale at which a race shows something.
  if (options.model.scale_given) window_options.scale = options.model.scale;
  window_options.dtype = options.model.dtype;
  window_options.device = options.model.device;
  window_options.context = options.model.context;
  window_options.draft = options.model.draft;
  window_options.heads = options.model.heads;
  window_options.screenshot = options.screenshot;
  window_options.panel = panel_id(options.panel);
  window_options.step = options.step;
  window_options.race_first =
      options.start || (!options.screenshot.empty() && options.open.empty());
  if (window_options.race_first && options.screen.empty()) window_options.screen = "compare";
  if (!options.screenshot.empty()) window_options.config_dir = "-";
  window_options.hooks.wants_to_close = interrupted;
  window_options.hooks.has_news = [&devices] { return devices.take(); };
  if (!options.model.scale_given && options.open.empty()) {
    window_options.hooks.shell_made = [&](ui::Shell& shell) { tell_scale(catalog, shell.form()); };
  }
  try {
    thread.beside([&] { return ui::run_window(events, commands, catalog, window_options); });
    return 0;
  } catch (const kernels::Error& error) {
    // Nobody named a display: the device did not fail, it was never asked for.
    const char* display = std::getenv("DISPLAY");
    const bool named = display && *display != '\0';
    if (error.code() != kernels::ErrorCode::Device || named) throw;
    throw kernels::Error(kernels::ErrorCode::Usage, error.what());
  }
}

}  // namespace app

#endif
