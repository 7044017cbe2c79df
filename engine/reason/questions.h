// Selects records as questions, generated ones or those of an open data set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// A range of a task's questions.
struct QuestionRange {
  Split split = Split::Test;
  int level = 1;  // of generated tasks
  std::int64_t start = 0;
  int count = 100;  // at most
};

/// True for a generated task: its accuracy is not that of a public data set.
bool is_generated(const std::string& task);

/// Checks the name of a task. @throws Error(Usage)  if `names` lacks it, with a suggestion
void check_task(const std::string& task, const std::vector<std::string>& names);

/// The records that satisfy `matches`. For a generated task `start` is the index of the first record
/// to try; for an open data set it counts matching records.
/// @param data_dir  the folder of the open data sets; not used for a generated task
/// @throws Error(Resources, BadInput)  for a data set that cannot be read
std::vector<Record> matching_records(const std::string& task,
                                     const QuestionRange& range,
                                     const std::string& data_dir,
                                     const std::function<bool(const Record&)>& matches);

/// The records of a file from number `start` on.
/// @throws Error(BadInput)  if the file is missing or a line is malformed
std::vector<Record> records_from(const std::string& path, std::int64_t start);

/// The member "form" of record.check: the kind of answer that the checker expects.
/// @throws Error(BadInput)  if it is missing
std::string form_of(const Record& record);

}  // namespace engine
