#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "app/commands/report.h"
#include "app/commands/trace/tool.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/store/weights_hash.h"
#include "kernels/error.h"

namespace app {
namespace {

std::string hash_of(const std::string& directory, const engine::FileLimits& limits) {
  engine::ModelFiles files =
      engine::open_model(directory, {.needs_tokenizer = false, .limits = limits});
  files.tensors = engine::stoppable(files.tensors, interrupted, "its weights were not compared");
  return engine::weights_hash(files);
}

/// The weights to compare with: those of the given model, else those of the bundled models with the
/// recorded names. A name in a recording never opens any other directory.
LocalWeights local_weights(const std::string& given, const engine::FileLimits& limits) {
  if (!given.empty()) {
    return [hash = hash_of(model_folder(given), limits)](const std::string&) {
      return std::optional(hash);
    };
  }
  return [limits](const std::string& model) -> std::optional<std::string> {
    if (model.empty() || model.front() == '.' || model.find('/') != std::string::npos) {
      return std::nullopt;
    }
    try {
      return hash_of(assets_dir() + "/models/" + model, limits);
    } catch (const kernels::Error& error) {
      if (error.code() == kernels::ErrorCode::Cancelled) throw;
      return std::nullopt;  // no such model: not compared
    }
  };
}

/// The default output name: a/run.json for a/run.pdrun.
std::string trace_beside(const std::string& recording) {
  constexpr std::string_view kEnding = ".pdrun";
  const std::size_t n = recording.size() - (recording.ends_with(kEnding) ? kEnding.size() : 0);
  return recording.substr(0, n) + ".json";
}

/// Validates a file. With --json it also prints a document for a file that is neither a recording
/// nor a trace, besides the error.
TraceAnswer validated(const TraceOptions& options) {
  try {
    return trace_validate(options.path, interrupted);
  } catch (const kernels::Error& error) {
    if (options.json && error.code() == kernels::ErrorCode::BadInput)
      print(dumped({{"path", options.path}, {"ok", false}, {"error", error.what()}}));
    throw;
  }
}

/// True for the endings of an animation.
bool is_animation_name(const std::string& path) {
  return path.ends_with(".gif") || path.ends_with(".png");
}

/// Opens the recording in a window that writes the animation.
int animate(const TraceOptions& options) {
  if (options.with_prompt)
    throw kernels::Error(
        kernels::ErrorCode::Usage,
        "--with-prompt applies only to a trace (.json or .pftrace), a page (.html) or a "
        "report (.md); an animation shows what the window shows");
  WindowCommandOptions window_options;
  window_options.open = options.path;
  window_options.animation = options;
  window_options.width = options.width;
  window_options.height = options.height;
  window_options.panel = options.panel;
  return window(window_options);
}

/// Refuses options of an animation for a file of another kind.
void check_no_animation(const TraceOptions& options) {
  const TraceOptions standard{};
  const char* option = options.by_time                               ? "--by-time"
                       : options.ms_per_step != standard.ms_per_step ? "--ms-per-step"
                       : options.seconds != standard.seconds         ? "--seconds"
                       : options.fps != standard.fps                 ? "--fps"
                       : !options.panel.empty()                      ? "--panel"
                                                                     : nullptr;
  if (option)
    throw kernels::Error(kernels::ErrorCode::Usage,
                         std::string(option) + " applies only to an animation (.gif or .png)");
}

}  // namespace

int trace(const TraceOptions& options) {
  if (options.what == "convert" && is_animation_name(options.out)) return animate(options);
  check_no_animation(options);
  TraceAnswer answer;
  if (options.what == "info") {
    answer = trace_info(options.path, local_weights(options.model, options.limits), interrupted);
  } else if (options.what == "validate") {
    answer = validated(options);
  } else if (options.what == "describe") {
    answer = trace_describe(options.path, interrupted);
  } else {
    ConvertOptions convert;
    convert.stop = interrupted;
    convert.trace.prompt_text = options.with_prompt;
    if (options.page_mb >= 0) convert.page_mb = options.page_mb;
    convert.used_tokens_only = options.used_tokens_only;
    convert.csv.for_spreadsheets = options.for_spreadsheets;
    if (options.run > 0) convert.trace.run = static_cast<engine::RunId>(options.run);
    convert.trace.first_step = options.first_step;
    convert.trace.last_step = options.last_step;
    convert.trace.own_compute = options.clock == "compute";
    const std::string out = options.out.empty() ? trace_beside(options.path) : options.out;
    answer = trace_convert(options.path, out, convert);
  }
  if (!answer.remark.empty()) print_error("note: " + answer.remark);
  print(options.json ? answer.json : for_terminal(answer.text));
  return answer.ok ? 0 : static_cast<int>(kernels::ErrorCode::BadInput);
}

}  // namespace app
