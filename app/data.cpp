#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/report.h"
#include "app/terminal.h"
#include "engine/data/record.h"

namespace app {
namespace {

int generate_records(const DataOptions& options) {
  const engine::TaskGenerator& task = engine::task_generator(options.task);
  const engine::Split split = engine::split_from_name(options.split);
  for (std::int64_t i = options.start; i < options.start + options.count && !interrupted(); i++) {
    if (const auto record = task.make(split, options.level, i))
      print(engine::to_json_line(*record) + "\n");
  }
  return interrupted() ? static_cast<int>(kernels::ErrorCode::Cancelled) : 0;
}

int check_records(const DataOptions& options) {
  int n = 0, n_correct = 0, n_skipped = 0;
  nlohmann::json wrong = nlohmann::json::array();
  for (const engine::Record& record : engine::read_records(options.file)) {
    const engine::CheckResult result =
        engine::task_generator(record.task).check(record, record.completion);
    n++;
    n_correct += result.correct;
    n_skipped += result.skipped;
    if (result.correct || result.skipped) continue;
    wrong.push_back({{"id", record.id}, {"reason", result.reason}});
    if (!options.json) print(for_terminal(fmt::format("{}: {}\n", record.id, result.reason)));
  }
  if (options.json) {
    print(dumped({{"n", n}, {"n_correct", n_correct}, {"n_skipped", n_skipped}, {"wrong", wrong}}));
  } else {
    print(fmt::format("{} of {} correct, {} not checked\n", n_correct, n, n_skipped));
  }
  return wrong.empty() ? 0 : static_cast<int>(kernels::ErrorCode::BadInput);
}

}  // namespace

int data(const DataOptions& options) {
  if (options.what == "generate") return generate_records(options);
  return check_records(options);
}

}  // namespace app
