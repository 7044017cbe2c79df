// The generators there are. Private to engine/data; others use task_generator().
#pragma once

#include <memory>
#include <vector>

#include "engine/data/record.h"

namespace engine {

std::unique_ptr<TaskGenerator> make_arith_task();
std::unique_ptr<TaskGenerator> make_kb_task();
std::unique_ptr<TaskGenerator> make_sql_task();
std::unique_ptr<TaskGenerator> make_py_task();
std::unique_ptr<TaskGenerator> make_blocks_task();

const std::vector<std::unique_ptr<TaskGenerator>>& all_tasks();

}  // namespace engine
