#include "app/window/catalog.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/prompt_file.h"
#include "app/cli/terminal.h"
#include "app/window/heads.h"
#include "app/window/models.h"
#include "app/window/tasks.h"
#include "engine/base/utf8.h"
#include "engine/decode/registry.h"
#include "engine/event/run_rules.h"
#include "engine/lesson/lesson.h"
#include "engine/reason/early_stop.h"
#include "engine/seed/simulate_schedule.h"
#include "engine/store/memory_plan.h"
#include "kernels/error.h"
#include "ui/files/prompt_file.h"
#include "ui/prepare/status.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

namespace fs = std::filesystem;

// Returns the reason why the window cannot run a decoder with these options; empty if it can.
// @param chain  true if they are for a chain of thought, whose questions have known answers
std::string why_not_here(const engine::DecoderInfo& info,
                         const engine::OptionValues& options,
                         bool chain) {
  try {
    const engine::ParsedOptions parsed = engine::parse_options(info.name, options);
    if (!chain && parsed->early_stop() == "probe")
      return info.title +
             ": stop=probe needs the questions of a chain of thought. Choose Chain of thought "
             "above, or stop=bound or stop=none here.";
  } catch (const kernels::Error& error) {
    return error.what();
  }
  return "";
}

// Like why_not_here(), for a tree of thoughts.
std::string why_not_in_tree(const engine::DecoderInfo& info, const engine::OptionValues& options) {
  try {
    engine::refuse_early_stop(info.name, options);
  } catch (const kernels::Error& error) {
    return error.what();
  }
  return "";
}

// Returns the decoder's options for scheduling, which have no effect on a run with one sequence.
std::map<std::string, std::string> idle_options(const engine::DecoderInfo& info) {
  std::map<std::string, std::string> idle;
  if (!engine::takes_turns(info.name)) return idle;
  for (const char* name : {"branches", "policy", "batch_verify", "overlap", "drafters",
                           "draft_threads", "target_threads"})
    idle[name] =
        "One prompt is one sequence, so drafting and verification alternate. Chains and trees of "
        "thoughts have several sequences at the same time, and so do the prompts of a file in "
        "decoscope compare.";
  return idle;
}

std::vector<ui::CatalogDecoder> catalog_decoders() {
  std::vector<ui::CatalogDecoder> list;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    ui::CatalogDecoder decoder{.name = info.name,
                               .title = ui::title_in_lists(info.name, info.title),
                               .summary = info.summary,
                               .reference = info.reference,
                               .lossless = info.lossless,
                               .supports_rejection = info.supports_rejection,
                               .options = info.options};
    decoder.needs_draft = info.needs_draft;
    decoder.needs_heads = info.needs_heads;
    decoder.reads_pool = info.reads_pool;
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

void add_prompts(std::vector<ui::CatalogPrompt>& list, const fs::path& path, bool are_messages) {
  for (const Prompt& prompt : read_prompts(path.string())) {
    const std::string first_line = prompt.text.substr(0, prompt.text.find('\n'));
    const std::string shortened = first_line.substr(0, engine::whole_characters(first_line, 60));
    list.push_back({.id = prompt.id,
                    .title = prompt.id + ": " + shortened,
                    .text = prompt.text,
                    .is_message = are_messages});
  }
}

// Lists the bundled lessons in the order of their file names. A faulty one is left out; `decoscope lesson check` says why.
void add_lessons(std::vector<ui::CatalogLesson>& list, const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    try {
      const engine::Lesson lesson = engine::read_lesson(path.string());
      list.push_back({.path = lesson.path,
                      .title = lesson.title,
                      .summary = lesson.summary,
                      .minutes = lesson.minutes});
    } catch (const kernels::Error& problem) {
      print_error(std::string("note: lesson left out: ") + problem.what());
    }
  }
}

// Reads the prompts of a file for the window.
ui::CatalogPromptFile prompts_in(const std::string& path) {
  constexpr std::size_t kMostPrompts = 2000;  // their runs are kept in memory
  ui::CatalogPromptFile file;
  try {
    for (Prompt& prompt : read_prompts(path, {}, engine::Pipes::Refuse)) {
      if (prompt.text.empty())
        throw kernels::Error(kernels::ErrorCode::BadInput, prompt.place + ": the prompt is empty");
      engine::SetPrompt& one = file.prompts.emplace_back();
      one = {.id = std::move(prompt.id), .text = std::move(prompt.text), .task = prompt.task};
      for (engine::ChatMessage& message : prompt.messages)
        one.messages.emplace_back(std::move(message.role), std::move(message.content));
      one.seed = prompt.seed;
    }
    if (file.prompts.size() > kMostPrompts)
      throw kernels::Error(kernels::ErrorCode::BadInput,
                           fmt::format("{}: found {} prompts, expected at most {}; `decoscope "
                                       "compare --prompt-file` takes more",
                                       path, file.prompts.size(), kMostPrompts));
  } catch (const kernels::Error& error) {
    file = {.prompts = {}, .unusable = error.what()};
  }
  return file;
}

}  // namespace

ui::Catalog window_catalog(const WindowCommandOptions& options) {
  const fs::path assets = assets_dir();
  ui::Catalog catalog;
  catalog.app_version = DECOSCOPE_VERSION;
  catalog.decoders = catalog_decoders();
  catalog.models = catalog_models(assets / "models", options.model);
  add_heads(catalog, assets / "models", options.model);
  add_tree_notes(catalog);
  add_prompts(catalog.prompts, assets / "prompts/bundled.jsonl", false);
  add_prompts(catalog.prompts, assets / "prompts/messages.jsonl", true);
  add_tasks(catalog, data_dir_of_environment());
  const auto n_models = std::count_if(catalog.models.begin(), catalog.models.end(),
                                      [](const auto& m) { return m.unavailable.empty(); });
  catalog.health.push_back(
      {.name = "models",
       .value = fmt::format("{} ready to run", n_models),
       .ok = n_models > 0,
       .fix = "Open a .gguf file or the folder of a model in Hugging Face format."});
  const std::int64_t memory = engine::available_memory_bytes();
  if (memory < std::numeric_limits<std::int64_t>::max()) catalog.memory_bytes = memory;
  catalog.simulate = engine::simulate_schedule;
  catalog.read_prompts = prompts_in;
  std::error_code error;
  for (const char* name : {"first_race.pdrun", "smollm2_race.pdrun"})
    if (const fs::path recording = assets / "recordings" / name; fs::exists(recording, error))
      catalog.race_recording = recording.string();
  add_lessons(catalog.lessons, assets / "lessons");
  return catalog;
}

}  // namespace app
