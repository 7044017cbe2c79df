// The generators of all tasks. Only for engine/data; other rooms use task_generator().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

std::unique_ptr<TaskGenerator> make_arith_task();   ///< word problems
std::unique_ptr<TaskGenerator> make_kb_task();      ///< commonsense questions
std::unique_ptr<TaskGenerator> make_sql_task();     ///< text to SQL
std::unique_ptr<TaskGenerator> make_py_task();      ///< Python functions and classes
std::unique_ptr<TaskGenerator> make_blocks_task();  ///< Blocksworld plans
/// Passages with given end sentences. @param data_dir  the folder of the open data sets; empty: none
std::unique_ptr<TaskGenerator> make_write_task(const std::string& data_dir = {});
/// Dialogs of two turns. @param data_dir  as make_write_task()
std::unique_ptr<TaskGenerator> make_chat_task(const std::string& data_dir = {});
/// Plain text without a prompt. @param data_dir  as make_write_task()
std::unique_ptr<TaskGenerator> make_plain_task(const std::string& data_dir = {});

/// Sets prompt and completion of a record in the chat form.
void set_chat(Record& record, std::string_view question, std::string_view answer);

/// All generators, in the order in which messages list them.
const std::vector<std::unique_ptr<TaskGenerator>>& all_tasks();

}  // namespace engine
