#include "engine/reason/questions.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/base/closest_name.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"

namespace engine {
namespace {

constexpr int kMaxAttempts = 1000;  // at most this many records are tried for each question

}  // namespace

bool is_generated(const std::string& task) {
  const std::vector<std::string> names = task_names();
  return std::ranges::find(names, task) != names.end();
}

void check_task(const std::string& task, const std::vector<std::string>& names) {
  if (std::ranges::find(names, task) == names.end()) {
    throw Error(ErrorCode::Usage, "task: found '" + task + "', expected one of " +
                                      joined(names, ", ") + did_you_mean(task, names));
  }
}

std::vector<Record> matching_records(const std::string& task,
                                     const QuestionRange& range,
                                     const std::string& data_dir,
                                     const std::function<bool(const Record&)>& matches) {
  std::vector<Record> records;
  if (!is_generated(task)) {
    records = read_real_set(task, Split::Test, data_dir);
    std::erase_if(records, [&](const Record& record) { return !matches(record); });
    const auto first = std::min<std::int64_t>(range.start, std::ssize(records));
    records.erase(records.begin(), records.begin() + first);
    if (std::ssize(records) > range.count) records.resize(static_cast<std::size_t>(range.count));
    return records;
  }
  const TaskGenerator& generator = task_generator(task);
  for (std::int64_t i = range.start; std::ssize(records) < range.count &&
                                     i < range.start + std::int64_t{range.count} * kMaxAttempts;
       i++) {
    auto record = generator.make(range.split, range.level, i);
    if (record && matches(*record)) records.push_back(std::move(*record));
  }
  return records;
}

std::vector<Record> records_from(const std::string& path, std::int64_t start) {
  std::vector<Record> records = read_records(path);
  records.erase(records.begin(), records.begin() + std::min(start, std::ssize(records)));
  return records;
}

std::string form_of(const Record& record) {
  const auto check = nlohmann::json::parse(record.check, nullptr, false);
  const auto form = check.is_object() ? check.find("form") : check.end();
  if (form == check.end() || !form->is_string())
    throw Error(
        ErrorCode::BadInput,
        record.id +
            ": check: the field \"form\" is missing; expected a record printed by `data generate`");
  return form->get<std::string>();
}

}  // namespace engine
