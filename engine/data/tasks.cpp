#include "engine/data/tasks.h"

#include "engine/base/closest_name.h"
#include "engine/data/text.h"

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

void set_chat(Record& record, std::string_view question, std::string_view answer) {
  PromptAndCompletion chat = chat_form(question, answer);
  record.prompt = std::move(chat.prompt);
  record.completion = std::move(chat.completion);
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const auto& task : all_tasks()) names.emplace_back(task->name());
  return names;
}

const TaskGenerator& task_generator(std::string_view name) {
  std::string known;
  for (const auto& task : all_tasks()) {
    if (task->name() == name) return *task;
    known += (known.empty() ? "" : ", ") + std::string(task->name());
  }
  throw Error(ErrorCode::Usage, "task: found '" + std::string(name) + "', expected one of " +
                                    known + did_you_mean(name, task_names()));
}

std::shared_ptr<const TaskGenerator> task_generator_with_open_texts(std::string_view name,
                                                                    const std::string& data_dir) {
  ensure(!data_dir.empty(), "open texts need the folder of the data sets");
  if (name == "write") return make_write_task(data_dir);
  if (name == "chat") return make_chat_task(data_dir);
  if (name == "plain") return make_plain_task(data_dir);
  return {std::shared_ptr<const void>(), &task_generator(name)};  // not owned: it is static
}

}  // namespace engine
