#include "engine/data/tasks.h"

namespace engine {

const std::vector<std::unique_ptr<TaskGenerator>>& all_tasks() {
  static const auto tasks = [] {
    std::vector<std::unique_ptr<TaskGenerator>> list;
    list.push_back(make_arith_task());
    list.push_back(make_kb_task());
    list.push_back(make_sql_task());
    list.push_back(make_py_task());
    list.push_back(make_blocks_task());
    list.push_back(make_write_task());
    list.push_back(make_chat_task());
    list.push_back(make_plain_task());
    return list;
  }();
  return tasks;
}

}  // namespace engine
