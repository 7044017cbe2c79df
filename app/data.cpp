#include "app/commands.h"
#include "app/terminal.h"
#include "engine/data/data_tool.h"

namespace app {

int data(const DataOptions& options) {
  if (options.what == "generate") {
    engine::generate_records(
        options.task, engine::split_from_name(options.split), options.level, options.start,
        options.count, [](const std::string& line) { print(line + "\n"); }, interrupted);
    return interrupted() ? static_cast<int>(kernels::ErrorCode::Cancelled) : 0;
  }
  const std::vector<engine::Record> records = engine::read_records(options.file);
  if (options.what == "stats") {
    const engine::DataStats stats = engine::stats_of_records(records);
    print(options.json ? engine::to_json(stats) + "\n" : engine::describe(stats));
    return 0;
  }
  const engine::DataCheck check = engine::check_records(records);
  print(options.json ? engine::to_json(check) + "\n" : for_terminal(engine::describe(check)));
  const bool all_right = check.n_correct + check.n_skipped == check.n_records;
  return all_right ? 0 : static_cast<int>(kernels::ErrorCode::BadInput);
}

}  // namespace app
