// The chat task: dialogs of two turns, in the thirteen categories of MT-bench and Vicuna-bench and the
// template "USER: .. ASSISTANT: ..". A record asks for the answer of one turn; its prompt contains the
// turns before it, separated by spaces as in taskmaster4.
//   key      the key of the part from which the dialog is built
//   forms    the category; half of the prompts begin with a system line
//   checker  the checker of the part: check.task names it, check.of is its input
// With a folder of open data sets, the dialogs of taskmaster4 (eight times each) and the seed tasks of
// self_instruct (four times each) are mixed unchanged into 120,000 training dialogs (form "open").
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/chat/dialog.h"
#include "engine/data/open_texts.h"
#include "engine/data/readers.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr int kOwnDialogs = 120'000;
constexpr int kTries = 20'000;  // draws for one dialog; dev and test accept one in twenty

struct Category {
  const char* name;
  DrawDialog draw;
};
constexpr Category kCategories[] = {{"writing", writing_dialog},
                                    {"roleplay", roleplay_dialog},
                                    {"reasoning", reasoning_dialog},
                                    {"math", math_dialog},
                                    {"coding", coding_dialog},
                                    {"extraction", extraction_dialog},
                                    {"stem", stem_dialog},
                                    {"humanities", humanities_dialog},
                                    {"generic", generic_dialog},
                                    {"knowledge", knowledge_dialog},
                                    {"common-sense", common_sense_dialog},
                                    {"fermi", fermi_dialog},
                                    {"counterfactual", counterfactual_dialog}};

// The tasks whose checkers read answers.
constexpr std::string_view kParts[] = {"arith", "kb", "py", "blocks", "write"};

std::string system_line(Random& rng) {
  return std::string(rng.one_of({"An assistant answers a user, briefly and politely. ",
                                 "This is a talk between a user and a helpful assistant. ",
                                 "A user asks, and an assistant gives short and true answers. ",
                                 "The assistant helps the user with plain words. "}));
}

OpenPool read_open_dialogs(const std::string& data_dir) {
  OpenPool pool(kOwnDialogs);
  if (data_dir.empty()) return pool;
  for (const std::string& set : open_sets_of_task("chat")) {
    const int n_times = set == "taskmaster4" ? 8 : 4;
    for (Record& record : read_real_set(set, Split::Train, data_dir)) {
      record.check = Json{{"form", "open"}, {"category", "open"}, {"set", set}}.dump();
      pool.add(std::move(record), n_times);
    }
  }
  return pool;
}

// A record of one drawn turn.
Record record_of(Random& rng, const char* category, const ChatDialog& dialog) {
  const std::size_t turn = rng.below(2);
  Record record;
  if (rng.chance(50)) record.prompt = system_line(rng);
  for (std::size_t i = 0; i < turn; i++) {
    const auto chat = chat_form(dialog[i].question, dialog[i].answer);
    record.prompt += chat.prompt + chat.completion + " ";
  }
  const auto chat = chat_form(dialog[turn].question, dialog[turn].answer);
  record.prompt += chat.prompt;
  record.completion = chat.completion;
  record.answer = dialog[turn].result;
  record.check = Json{{"form", category},
                      {"category", category},
                      {"turn", turn + 1},
                      {"task", dialog[turn].task},
                      {"of", Json::parse(dialog[turn].check)}}
                     .dump();
  return record;
}

class ChatTask final : public TaskGenerator {
 public:
  explicit ChatTask(const std::string& data_dir) : open_(read_open_dialogs(data_dir)) {}

  std::string_view name() const override { return "chat"; }
  std::int64_t full_size() const override { return open_.full_size(); }

  CheckResult check(const Record& record, std::string_view completion) const override {
    return read(record, completion, false);
  }

  CheckResult check_generated(const Record& record) const override {
    const CheckResult result = read(record, record.completion, true);
    return result.skipped ? CheckResult{true, {}} : result;  // open texts
  }

 protected:
  // Draws the category only once, so that all categories are equally frequent, whatever share of their
  // dialogs belongs to the split.
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    const Category& category = rng.pick(kCategories);
    for (int i = 0; i < kTries; i++) {
      const auto dialog = category.draw(rng, level, split);
      if (!dialog) continue;
      if (const Record* open = open_.draw(rng, split)) return *open;
      return record_of(rng, category.name, *dialog);
    }
    return std::nullopt;
  }

 private:
  static CheckResult read(const Record& record, std::string_view completion, bool is_generated) {
    try {
      const Json check = Json::parse(record.check);
      if (check.at("form") == "open")
        return {false, "open dialogs have no right and wrong answers", true};
      const std::string task = check.at("task");
      if (task == "chat") return read_own(record.id, check.at("of"), completion_body(completion));
      if (std::ranges::find(kParts, task) == std::end(kParts))
        throw Error(ErrorCode::BadInput, record.id + ": check.task: found '" + task + "'");
      Record part = record;
      part.task = task;
      part.check = check.at("of").dump();
      const TaskGenerator& generator = task_generator(task);
      return is_generated ? generator.check_generated(part) : generator.check(part, completion);
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

  static CheckResult read_own(const std::string& id, const Json& check, std::string_view text) {
    if (const auto result = check_facts_turn(check, text)) return *result;
    if (const auto result = check_writing_turn(check, text)) return *result;
    throw Error(ErrorCode::BadInput, id + ": check.of.form: found " + check.at("form").dump());
  }

  OpenPool open_;
};

}  // namespace

std::unique_ptr<TaskGenerator> make_chat_task(const std::string& data_dir) {
  return std::make_unique<ChatTask>(data_dir);
}

}  // namespace engine
