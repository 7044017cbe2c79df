// Records that can be asked, generated or of an open set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/record.h"

namespace engine {

struct QuestionRange {
  Split split = Split::Test;
  int level = 1;  // generated tasks
  std::int64_t start = 0;
  int count = 100;
};

/// Whether a task's questions are generated, so that its accuracy is no figure of a public set.
bool is_generated(const std::string& task);

/// @throws Error(Usage)  if `task` is none of `names`, with a suggestion
void check_task(const std::string& task, const std::vector<std::string>& names);

/// Of a generated task the wanted records from index `start` on; of an open set those that stand
/// from `start` on among the wanted ones.
/// @param data_dir  the folder of the open sets; not read for a generated task
/// @throws Error(Resources, BadInput)  for a set that cannot be read
std::vector<Record> wanted_records(const std::string& task,
                                   const QuestionRange& range,
                                   const std::string& data_dir,
                                   const std::function<bool(const Record&)>& wanted);

/// The records of a file from number `start` on.
/// @throws Error(BadInput)  if it is not there or a line is malformed
std::vector<Record> records_from(const std::string& path, std::int64_t start);

/// "form" of a record's check.
std::string form_of(const Record& record);

}  // namespace engine
