#include "engine/store/calibration.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/decode/control/step_control.h"

namespace engine {
namespace {

constexpr double kMostMs = 200;
constexpr int kRowCounts[] = {1, 2, 4, 8, 16, 3, 6, 12, 24, 32};
constexpr int kRepeats = 3;

double clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

/// Time of a forward of a chain of rows without a prefix.
double forward_ms(LanguageModel& model, int n_rows, const std::function<double()>& now_ms) {
  const std::unique_ptr<SequenceCache> cache = model.make_cache();
  TokenTree tree;
  for (int row = 0; row < n_rows; row++)
    tree.add((7 * row + 3) % model.vocab_size(), row - 1, RowTag{});
  const BatchItem item{.cache = cache.get(), .tree = &tree, .prefix = {}};
  const double begun = now_ms();
  model.forward({&item, 1}, {});
  model.finish();
  return now_ms() - begun;
}

/// What the times depend on.
std::string key_of(const LoadedModel& loaded) {
  const Model& model = *loaded.model;
  return fmt::format("{} {} {} {} {} {} threads {}", loaded.weights_hash,
                     kernels::name_of(model.dtype()), name_of(model.scale()), model.device().name(),
                     model.device().ops().name, model.device().n_threads(), DECOSCOPE_VERSION);
}

std::string file_of(const std::string& key) {
  const std::string folder = calibration_folder();
  if (folder.empty()) return {};
  return fmt::format("{}/{:016x}.json", folder, std::hash<std::string>()(key));
}

std::vector<StepTime> read_times(const std::string& path, const std::string& key) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  const Json json = read_json_file(path, {});
  const Json *known = json.find("key"), *rows = json.find("rows"), *ms = json.find("ms");
  if (!known || known->text != key || !rows || !ms || rows->items.size() != ms->items.size())
    return {};
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < rows->items.size(); i++) {
    const auto n_rows = rows->items[i].number().integer();
    const double time = ms->items[i].number().real();
    if (!n_rows || *n_rows < 1 || *n_rows > 256 || !(time > 0)) return {};
    times.push_back({static_cast<int>(*n_rows), time});
  }
  return times;
}

void write_times(const std::string& path,
                 const std::string& key,
                 const std::vector<StepTime>& times) {
  if (path.empty() || times.empty()) return;
  std::string rows, ms;
  for (const StepTime& time : times) {
    rows += fmt::format("{}{}", rows.empty() ? "" : ", ", time.n_rows);
    ms += fmt::format("{}{:.6g}", ms.empty() ? "" : ", ", time.ms);
  }
  std::filesystem::create_directories(calibration_folder());
  write_whole_file(path, fmt::format("{{\"key\": {}, \"rows\": [{}], \"ms\": [{}]}}\n",
                                     json_quoted(key), rows, ms));
}

/// Calls `work`, which is not needed: a file that fails must not end a run.
template <class Work>
void try_file(const Work& work) {
  try {
    work();
  } catch (const Error&) {
  } catch (const std::filesystem::filesystem_error&) {
  }
}

}  // namespace

std::string calibration_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/decoscope/steps";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/decoscope/steps";
}

std::vector<StepTime> measure_steps(LanguageModel& model,
                                    double most_ms,
                                    const std::function<double()>& now_ms) {
  const double begun = now_ms();
  std::vector<StepTime> times;
  StepTime longest{1, forward_ms(model, 1, now_ms)};  // not counted: it also takes memory
  const auto has_time_for = [&](int n_rows) {
    const double growth = static_cast<double>(n_rows) / longest.n_rows;
    return now_ms() - begun + longest.ms * std::max(1.0, growth) <= most_ms;
  };
  for (int repeat = 0; repeat < kRepeats; repeat++) {
    for (const int n_rows : kRowCounts) {
      if (n_rows >= model.max_seq_len() || !has_time_for(n_rows)) continue;
      times.push_back({n_rows, forward_ms(model, n_rows, now_ms)});
      if (times.back().ms > longest.ms) longest = times.back();
    }
  }
  return times;
}

void calibrate(LoadedModel& model) {
  if (std::exchange(model.is_timed, true)) return;
  const std::string key = key_of(model);
  const std::string path = model.weights_hash.empty() ? "" : file_of(key);
  std::vector<StepTime> times;
  try_file([&] { times = read_times(path, key); });
  if (times.empty()) {
    times = measure_steps(*model.model, kMostMs, clock_ms);
    try_file([&] { write_times(path, key, times); });
  }
  for (const StepTime& time : times) model.control->costs().add(time.n_rows, time.ms);
}

}  // namespace engine
