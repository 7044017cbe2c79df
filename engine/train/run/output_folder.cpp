#include "engine/train/run/output_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

// Files that a run resumes from: its last checkpoint, or results of earlier stages.
constexpr std::string_view kCheckpoint = "checkpoint.bin";
constexpr std::array<std::string_view, 5> kStages = {"trajectories.bin", "own_outputs.jsonl",
                                                     "probe_outputs.jsonl", "stages.json",
                                                     "training.jsonl"};
// Further files that trainings write.
constexpr std::array<std::string_view, 15> kResults = {"config.json",
                                                       "generation_config.json",
                                                       "model.safetensors",
                                                       "adapter_config.json",
                                                       "adapter_model.safetensors",
                                                       "tokenizer.model",
                                                       "tokenizer_config.json",
                                                       "special_tokens_map.json",
                                                       "added_tokens.json",
                                                       "README.md",
                                                       "accuracies.json",
                                                       "decoscope.json",
                                                       "tokenizer.json",
                                                       "chat_template.jinja",
                                                       "tekken.json"};

bool holds(const fs::path& folder, std::string_view name) {
  std::error_code unknown;
  return fs::exists(folder / name, unknown);
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code unknown;
  return fs::equivalent(a, b, unknown) && !unknown;
}

/// True if `path`, which may not exist, is `folder` or lies inside it.
bool is_within(const fs::path& path, const fs::path& folder) {
  std::error_code unknown;
  fs::path at = fs::weakly_canonical(fs::absolute(path, unknown), unknown);
  if (!at.has_filename()) at = at.parent_path();
  for (;; at = at.parent_path()) {
    if (is_same(at, folder)) return true;
    if (at == at.parent_path()) return false;
  }
}

[[noreturn]] void refuse_output(const std::string& out, const std::string& why) {
  throw Error(ErrorCode::Usage, escaped(out) + ": " + why);
}

// The file of --texts is allowed even if its name is own_outputs.jsonl, because the training only
// reads it.
bool is_written(const fs::path& file, const fs::path& out) {
  const auto is_file = [&](std::string_view name) { return is_same(file, out / name); };
  return is_file(kCheckpoint) || std::ranges::any_of(kResults, is_file) ||
         std::ranges::any_of(kStages, [&](std::string_view name) {
           return name != "own_outputs.jsonl" && is_file(name);
         });
}

bool is_half_written(const std::string& name) {
  const std::size_t part = name.rfind(".part");
  return part != std::string::npos && part + 5 < name.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(part) + 5, name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

/// True if the folder has only hidden files and temporary files of a killed process.
bool is_empty_folder(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && !is_half_written(name)) return false;
  }
  if (error) {
    throw Error(ErrorCode::Resources, escaped(folder) + ": cannot be read: " + error.message());
  }
  return true;
}

bool holds_a_model(const fs::path& folder) {
  return holds(folder, "config.json") || holds(folder, "model.safetensors") ||
         holds(folder, "tokenizer.model") || holds(folder, "adapter_config.json");
}

bool can_be_resumed(const fs::path& folder) {
  if (holds(folder, kCheckpoint)) return true;
  return !holds_a_model(folder) &&
         std::ranges::any_of(kStages, [&](std::string_view name) { return holds(folder, name); });
}

}  // namespace

void refuse_inputs_as_output(const std::string& out, const std::vector<InputPath>& inputs) {
  for (const InputPath& input : inputs) {
    std::error_code unknown;
    if (input.path.empty() || !fs::exists(input.path, unknown)) continue;
    const std::string read = input.what + " (" + escaped(input.path) + ")";
    if (input.kind == InputPath::Kind::File) {
      if (is_written(input.path, out))
        refuse_output(out,
                      "the output would replace " + read + ", an input; name another directory");
      continue;
    }
    if (is_same(out, input.path))
      refuse_output(out, "is " + read + ", an input; name another directory");
    if (is_within(input.path, out))
      refuse_output(out, "holds " + read + ", an input; name another directory");
    if (input.kind == InputPath::Kind::Model && is_within(out, input.path))
      refuse_output(out, "lies inside " + read + ", an input; name a directory outside it");
  }
}

void refuse_inputs_as_output_file(const std::string& file, const std::vector<InputPath>& inputs) {
  for (const InputPath& input : inputs) {
    std::error_code unknown;
    if (input.path.empty() || !fs::exists(input.path, unknown)) continue;
    const std::string read = input.what + " (" + escaped(input.path) + ")";
    if (is_same(file, input.path))
      refuse_output(file, "is " + read + ", an input; name another file");
    if (input.kind == InputPath::Kind::Model && is_within(file, input.path))
      refuse_output(file, "lies inside " + read + ", an input; name another directory");
  }
}

void refuse_foreign_output(const std::string& out, Existing may_hold) {
  std::error_code unknown;
  const fs::file_status status = fs::status(out, unknown);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    refuse_output(out, "found a file, expected a directory to write; name another");
  if (is_empty_folder(out)) return;
  const bool run = can_be_resumed(out);
  if (run && may_hold == Existing::ARun) return;
  if (run && may_hold == Existing::NoRun)
    refuse_output(
        out, "this directory has a saved run; continue with --resume, or name another directory");
  refuse_output(out, may_hold == Existing::ARun ? "exists, is not empty and has no run to resume; "
                                                  "name the directory of the run, or a new one"
                                                : "exists and is not empty; name a new directory");
}

OutputFolder::OutputFolder(const std::string& out,
                           Existing may_hold,
                           const std::vector<InputPath>& inputs)
    : path_(out) {
  refuse_inputs_as_output(out, inputs);
  refuse_foreign_output(out, may_hold);
  std::error_code failed;
  was_made_ = fs::create_directories(out, failed);
  if (failed) {
    throw Error(ErrorCode::Resources, escaped(out) + ": cannot be made: " + failed.message());
  }
  lock_ = OutputLock::on(out);
  refuse_foreign_output(out, may_hold);  // another process may have written before the lock
}

void OutputFolder::remove_written_files() const {
  std::error_code ignored;
  for (const std::string_view name : kResults) fs::remove(fs::path(path_) / name, ignored);
}

OutputFolder::~OutputFolder() {
  std::error_code not_empty;
  if (was_made_) fs::remove(path_, not_empty);
}

}  // namespace engine
