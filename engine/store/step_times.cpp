#include "engine/store/step_times.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/model/model.h"
#include "kernels/cpu/probe.h"
#include "kernels/thread_sharing.h"

namespace engine {
namespace {

std::string file_of(const std::string& key) {
  const std::string folder = calibration_folder();
  if (folder.empty() || key.empty()) return {};
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

double clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

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

std::string times_key(const Model& model, const std::string& weights_hash) {
  if (weights_hash.empty()) return {};
  return fmt::format("{} {} {} {} {} {} {} {} threads {}", weights_hash,
                     kernels::name_of(model.dtype()), kernels::name_of(model.cache_type()),
                     name_of(model.scale()), kernels::cpu::processor_name(), model.device().name(),
                     model.device().ops().name, kernels::active_threads(model.device()),
                     DECOSCOPE_VERSION);
}

std::vector<StepTime> kept_times(const std::string& key) {
  std::vector<StepTime> times;
  try_file([&] { times = read_times(file_of(key), key); });
  return times;
}

void keep_times(const std::string& key, const std::vector<StepTime>& times) {
  try_file([&] { write_times(file_of(key), key, times); });
}

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

}  // namespace engine
