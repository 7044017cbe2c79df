#include "app/window/tasks.h"

#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "engine/reason/cot_task.h"
#include "engine/reason/questions.h"
#include "engine/reason/tot_task.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

namespace fs = std::filesystem;

std::string summary_of(std::string_view task) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 10> kSummaries{
      {{"kb", "facts of a small world, five options or yes or no, generated"},
       {"arith", "word problems of small sums, generated"},
       {"blocks", "plans that stack blocks as required, generated"},
       {"write", "a passage whose paragraphs end with given sentences, generated"},
       {"commonsenseqa", "everyday knowledge, five options, open data set"},
       {"strategyqa", "yes or no from several facts, open data set"},
       {"aqua", "algebra, five options, open data set"},
       {"gsm8k", "school word problems, open data set"},
       {"blocksworld", "plans for blocks, open data set"},
       {"creative_writing", "a passage whose paragraphs end with given sentences, open data set"}}};
  for (const auto& [name, summary] : kSummaries)
    if (name == task) return summary;
  throw engine::ContractError(
      fmt::format("{}: summary_of() has no summary of this task of the engine", task));
}

ui::CatalogTask task_named(const std::string& name, const std::string& data_dir) {
  ui::CatalogTask task{.name = name, .summary = summary_of(name)};
  task.has_levels = engine::is_generated(name);
  if (task.has_levels) return task;
  std::error_code error;
  if (data_dir.empty())
    task.unavailable = "an open data set; set DECOSCOPE_DATA to the folder of the sets";
  else if (!fs::is_directory(fs::path(data_dir) / name, error))
    task.unavailable = "not in the folder of the open data sets";
  return task;
}

}  // namespace

void add_tasks(ui::Catalog& catalog, const std::string& data_dir) {
  for (const std::string& name : engine::cot_task_names())
    catalog.chain_tasks.push_back(task_named(name, data_dir));
  for (const engine::TotTaskInfo& info : engine::tot_tasks()) {
    ui::CatalogTask task = task_named(info.name, data_dir);
    task.level = info.level;
    task.depth = info.depth;
    task.has_actions = info.name.starts_with("blocks");
    catalog.tree_tasks.push_back(std::move(task));
  }
}

}  // namespace app
