// The generators there are. Private to engine/data; others use task_generator().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/record.h"

namespace engine {

std::unique_ptr<TaskGenerator> make_arith_task();
std::unique_ptr<TaskGenerator> make_kb_task();
std::unique_ptr<TaskGenerator> make_sql_task();
std::unique_ptr<TaskGenerator> make_py_task();
std::unique_ptr<TaskGenerator> make_blocks_task();
// With the open texts of a folder, or, where it is empty, without.
std::unique_ptr<TaskGenerator> make_write_task(const std::string& data_dir = {});
std::unique_ptr<TaskGenerator> make_chat_task(const std::string& data_dir = {});
std::unique_ptr<TaskGenerator> make_plain_task(const std::string& data_dir = {});

const std::vector<std::unique_ptr<TaskGenerator>>& all_tasks();

}  // namespace engine
