#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "app/commands/run_code.h"
#include "engine/base/input_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/data/chat_requests.h"
#include "engine/data/data_tool.h"
#include "engine/data/readers.h"
#include "engine/tokenizer/tokenizer_path.h"

namespace app {
namespace {

constexpr int kCancelled = static_cast<int>(kernels::ErrorCode::Cancelled);

/// Opens the tokenizer of a directory, bundled model or file; null if the default one is missing,
/// so that tokens are not counted.
engine::CountTokens token_counter(const std::string& given, const engine::FileLimits& limits) {
  if (!given.empty()) note_folder_is_used("--tokenizer", given);
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = given.empty() ? fs::path(assets_dir()) / "models/demo-target" : fs::path(given);
  if (given.empty() && !fs::exists(folder / "tokenizer.model", ignored)) return {};
  if (folder.filename() == "tokenizer.model" && fs::is_regular_file(folder, ignored))
    folder = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored)) folder = engine::find_model(given, assets_dir());
  std::vector<std::string> notices;
  const std::shared_ptr<const engine::Tokenizer> tokenizer =
      engine::open_tokenizer_at(folder.string(), limits, notices);
  for (const std::string& notice : notices) print_error("note: " + notice);
  return [tokenizer](const engine::Record& record) {
    const engine::TextReading after_prompt{.add_special = false,
                                           .continues = !record.prompt.empty()};
    return 2 + static_cast<int>(tokenizer->encode(record.prompt, false).size() +
                                tokenizer->encode(record.completion, after_prompt).size());
  };
}

/// True for parts of requests that are made from texts of other data sets: rewriting, writing.
bool is_request_part(const std::string& task) {
  const std::vector<std::string> sets = engine::sets_of_request_part(task);
  return !sets.empty() && sets != std::vector{task};
}

/// Writes requests as prompts for `generate` and `compare`: id, task, split, prompt.
/// @throws Error(Usage)  if no folder of open data sets is given, or --start is past the last request
void generate_requests(const DataOptions& options,
                       const std::string& data_dir,
                       const std::function<void(const std::string& request)>& write) {
  if (data_dir.empty())
    throw engine::Error(engine::ErrorCode::Usage,
                        options.task +
                            ": is made from open data sets, and no folder of data sets is "
                            "given; use --data DIR or set DECOSCOPE_DATA");
  const nlohmann::json part = {{options.task, {{"weight", 1}}}};
  const engine::ChatRequests requests(part.dump(), 1, data_dir,
                                      engine::split_from_name(options.split));
  const std::int64_t n_requests = std::ssize(requests.list());
  if (options.start >= n_requests && options.count > 0)
    throw engine::Error(
        engine::ErrorCode::Usage,
        n_requests == 0
            ? fmt::format("--split {}: {} has no requests there", options.split, options.task)
            : fmt::format("--start: found {}, expected 0 to {}: {} has {} requests in {}",
                          options.start, n_requests - 1, options.task, n_requests, options.split));
  const auto end = std::min(n_requests, options.start + options.count);
  for (std::int64_t i = options.start; i < end && !interrupted(); i++) {
    const nlohmann::ordered_json request = {
        {"id", fmt::format("{}/{}/{}", options.task, options.split, i)},
        {"task", options.task},
        {"split", options.split},
        {"prompt", requests.list()[static_cast<std::size_t>(i)].text}};
    write(request.dump());
  }
}

/// Prints records as JSON Lines or, with --json, as a list. After Ctrl+C the list is shorter but
/// valid.
int generate_data(const DataOptions& options) {
  std::int64_t n = 0;
  const auto write = [&](const std::string& record) {
    if (options.json) print(n == 0 ? "[\n" : ",\n");
    print(options.json ? record : record + "\n");
    n++;
  };
  const std::string data_dir = options.data.empty() ? data_dir_of_environment() : options.data;
  if (is_request_part(options.task)) {
    generate_requests(options, data_dir, write);
  } else {
    engine::generate_records(options.task, engine::split_from_name(options.split), options.level,
                             options.start, options.count, write, interrupted, data_dir);
  }
  if (options.json) print(n == 0 ? "[]\n" : "\n]\n");
  return interrupted() ? kCancelled : 0;
}

/// Checks every record. Records whose code cannot be isolated are skipped, which is an error, too.
int check_data(const DataOptions& options, const std::vector<engine::Record>& records) {
  const bool has_code = std::ranges::any_of(records, engine::is_checked_by_running);
  const std::string refused = has_code ? apply_run_code(options.run_code) : "";
  const engine::DataCheck check = engine::check_records(records, interrupted);
  print(options.json ? engine::to_json(check) + "\n" : for_terminal(engine::describe(check)));
  if (check.stopped) return kCancelled;
  if (!refused.empty()) print_error(engine::input_name(options.file) + ": " + refused);
  if (check.n_correct + check.n_skipped != check.n_records)
    return static_cast<int>(kernels::ErrorCode::BadInput);
  return refused.empty() ? 0 : static_cast<int>(kernels::ErrorCode::Resources);
}

std::vector<engine::Record> records_of(const std::string& file) {
  const ReadingInput reading(file, "records in the format of `data generate`,");
  return engine::read_records(file);
}

}  // namespace

int data(const DataOptions& options) {
  if (options.what == "generate") return generate_data(options);
  const std::vector<engine::Record> records = records_of(options.file);
  if (options.what == "stats") {
    const engine::DataStats stats = engine::stats_of_records(
        records, token_counter(options.tokenizer, options.limits), interrupted);
    print(options.json ? engine::to_json(stats) + "\n" : engine::describe(stats));
    return stats.stopped ? kCancelled : 0;
  }
  return check_data(options, records);
}

}  // namespace app
