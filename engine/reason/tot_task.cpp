#include "engine/reason/tot_task.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/blocks/text.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"

namespace engine {
namespace {

using Json = nlohmann::json;

std::optional<std::string> some_text(std::string_view text) {
  const std::string_view body = completion_body(text);
  if (body.empty()) return std::nullopt;
  return std::string(body);
}

/// The question without the roles of the chat form.
std::string without_chat(std::string_view prompt) {
  constexpr std::string_view kUser = "USER: ", kAssistant = " ASSISTANT:";
  if (prompt.starts_with(kUser)) prompt.remove_prefix(kUser.size());
  if (prompt.ends_with(kAssistant)) prompt.remove_suffix(kAssistant.size());
  return std::string(trimmed(prompt));
}

bool has(const Thought& thought, const char* part) {
  return thought.contains(part);
}

// --- sums ----------------------------------------------------------------------------------------

/// The content words of a question: names, things, numbers, verbs. Two questions with the same set count as
/// the same question.
std::set<std::string> content_words(std::string_view question) {
  static const std::set<std::string> small = {
      "a",    "an",  "and",  "are",   "did",  "do",   "does", "for",    "had",  "has",
      "have", "how", "in",   "is",    "many", "much", "now",  "number", "of",   "on",
      "that", "the", "then", "there", "to",   "was",  "were", "what",   "when", "with"};
  std::set<std::string> words;
  for (const std::string& word : split_text(normalised(question), ' '))
    if (!word.empty() && !small.contains(word)) words.insert(word);
  return words;
}

/// True if thought i asks for the final answer, or asks a sub-question of an earlier thought again.
bool asks_nothing_new(const ThoughtChain& chain, std::size_t i) {
  if (!has(chain[i], "question")) return false;
  const std::string& question = chain[i].at("question");
  if (normalised(question).find("final answer") != std::string::npos) return true;
  const auto words = content_words(question);
  return std::any_of(
      chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i), [&](const Thought& earlier) {
        return has(earlier, "question") && content_words(earlier.at("question")) == words;
      });
}

class SumsTask final : public TotTask {
 public:
  std::string question(const Record& record) const override {
    std::string text = record.prompt;
    for (const std::string_view before : {"Question:\n", "USER: "})
      if (text.starts_with(before)) text.erase(0, before.size());
    for (const std::string_view after : {"\nAnswer:\n", " ASSISTANT:"})
      text = text.substr(0, text.find(after));
    return text;
  }

  Slots slots(const Record& record, const ThoughtChain& chain) const override {
    std::string history, steps;
    int n = 0;
    for (std::size_t i = 0; i < chain.size(); i++) {
      const Thought& thought = chain[i];
      if (!has(thought, "answer") || asks_nothing_new(chain, i)) continue;
      const std::string number = std::to_string(++n);
      if (has(thought, "question"))
        history += "Sub-question " + number + ": " + thought.at("question") + "\n";
      history += "Answer " + number + ": " + thought.at("answer") + "\n";
      steps += "Step " + number + ": " + thought.at("answer") + "\n";
    }
    return {{"problem", question(record)},
            {"history", history},
            {"steps", steps},
            {"i", std::to_string(n + 1)}};
  }

  std::optional<std::string> parse(const std::string& /*part*/,
                                   std::string_view text) const override {
    return some_text(text);
  }

  bool is_complete(const Record& /*record*/, const ThoughtChain& chain) const override {
    return !chain.empty() && has(chain.back(), "answer") &&
           asks_nothing_new(chain, chain.size() - 1);
  }

  std::string answer(const ThoughtChain& /*chain*/, std::string_view written) const override {
    return std::string(completion_body(written));
  }

  CheckResult check(const Record& record,
                    const ThoughtChain& /*chain*/,
                    std::string_view answer) const override {
    const auto number = last_number(answer, "");
    if (!number) return {false, "found no number in the answer"};
    return check_record(record, "#### " + std::to_string(*number));
  }
};

// --- blocks --------------------------------------------------------------------------------------

std::string phrases(const std::vector<std::string>& facts) {
  std::vector<std::string> list;
  for (const std::string& fact : facts) list.push_back(fact_phrase(fact));
  return enumerated(list);
}

class BlocksPlanTask final : public TotTask {
 public:
  std::string question(const Record& record) const override {
    const Json check = Json::parse(record.check);
    return phrases(check.at("init")) + " -> " + phrases(check.at("goal"));
  }

  Slots slots(const Record& record, const ThoughtChain& chain) const override {
    const Json check = Json::parse(record.check);
    const bool moved = !chain.empty() && has(chain.back(), "state");
    return {{"goal", phrases(check.at("goal"))},
            {"state", moved ? chain.back().at("state") : phrases(check.at("init"))}};
  }

  std::optional<std::string> parse(const std::string& part, std::string_view text) const override {
    if (part == "action") {
      const auto line = some_text(text);
      return line && read_move(*line) ? line : std::nullopt;
    }
    constexpr std::string_view kState = "I have that,";
    const auto at = text.rfind(kState);
    if (at == std::string_view::npos) return std::nullopt;
    const auto scene = read_state_text(completion_body(text.substr(at + kState.size())));
    if (!scene) return std::nullopt;
    return phrases(scene_facts(*scene));
  }

  bool is_complete(const Record& record, const ThoughtChain& chain) const override {
    if (chain.empty() || !has(chain.back(), "state")) return false;
    const auto scene = read_state_text(chain.back().at("state"));
    if (!scene) return false;
    const std::vector<std::string> facts = scene_facts(*scene);
    const auto goal = Json::parse(record.check).at("goal").get<std::vector<std::string>>();
    return std::ranges::all_of(
        goal, [&](const auto& fact) { return std::ranges::find(facts, fact) != facts.end(); });
  }

  std::string answer(const ThoughtChain& chain, std::string_view /*written*/) const override {
    std::vector<std::string> actions;
    for (const Thought& thought : chain)
      if (has(thought, "action")) actions.push_back(thought.at("action"));
    return joined(actions, "; ");
  }

  CheckResult check(const Record& record,
                    const ThoughtChain& chain,
                    std::string_view /*answer*/) const override {
    std::string plan;
    for (const Thought& thought : chain)
      if (has(thought, "action")) plan += thought.at("action") + "\n";
    return check_record(record, plan + "[PLAN END]\n");
  }
};

// --- writing -------------------------------------------------------------------------------------

class WritingTask final : public TotTask {
 public:
  std::string question(const Record& record) const override { return without_chat(record.prompt); }

  Slots slots(const Record& record, const ThoughtChain& chain) const override {
    Slots slots = {{"task", question(record)}};
    for (const Thought& thought : chain) slots.insert(thought.begin(), thought.end());
    return slots;
  }

  std::optional<std::string> parse(const std::string& /*part*/,
                                   std::string_view text) const override {
    return some_text(text);
  }

  bool is_complete(const Record& /*record*/, const ThoughtChain& chain) const override {
    return !chain.empty() && has(chain.back(), "passage");
  }

  std::string answer(const ThoughtChain& chain, std::string_view /*written*/) const override {
    return chain.empty() || !has(chain.back(), "passage") ? "" : chain.back().at("passage");
  }

  CheckResult check(const Record& record,
                    const ThoughtChain& chain,
                    std::string_view /*answer*/) const override {
    if (chain.empty() || !has(chain.back(), "passage")) return {false, "found no passage"};
    return check_record(record, "Passage:\n" + chain.back().at("passage") + "\n");
  }
};

const char* const kSumsTasks[] = {"arith", "gsm8k"};
const char* const kWritingTasks[] = {"write", "creative_writing"};
const char* const kBlocksTasks[] = {"blocks", "blocksworld"};

bool is_blocks(const std::string& task) {
  return std::ranges::find(kBlocksTasks, task) != std::end(kBlocksTasks);
}

bool is_writing(const std::string& task) {
  return std::ranges::find(kWritingTasks, task) != std::end(kWritingTasks);
}

bool is_sums(const std::string& task) {
  return std::ranges::find(kSumsTasks, task) != std::end(kSumsTasks);
}

/// The number of actions of a plan's record. Record::answer is "6 steps" in the open data set, and the list
/// of actions in generated records.
int actions_of(const Record& record) {
  if (record.answer.ends_with(" steps")) {
    int n = 0;  // 0 if there is no number, or it is too large
    std::from_chars(record.answer.data(), record.answer.data() + record.answer.size(), n);
    return n;
  }
  return static_cast<int>(split_text(record.answer, ';').size());
}

bool is_question(const Record& record, int n_actions) {
  const std::string form = form_of(record);
  if (is_sums(record.task)) return form == "gsm8k" || form == "number";
  if (!is_blocks(record.task)) return is_writing(record.task) && form == "passage";
  return form == "plan" && (n_actions == 0 || actions_of(record) == n_actions);
}

}  // namespace

const std::vector<TotTaskInfo>& tot_tasks() {
  static const std::vector<TotTaskInfo> tasks = {
      {"arith", "arith.jsonl", 4, 1},        {"blocks", "blocks.jsonl", 7, 2},
      {"write", "writing.jsonl", 2, 1},      {"gsm8k", "arith.jsonl", 4, 1},
      {"blocksworld", "blocks.jsonl", 7, 1}, {"creative_writing", "creative_writing.jsonl", 2, 1}};
  return tasks;
}

const TotTaskInfo& tot_task_info(const std::string& name) {
  std::vector<std::string> names;
  for (const TotTaskInfo& info : tot_tasks()) names.push_back(info.name);
  check_task(name, names);
  return *std::ranges::find(tot_tasks(), name, &TotTaskInfo::name);
}

std::string tot_prompts_file(const std::string& assets_dir, const TotTaskInfo& info) {
  return assets_dir + "/prompts/tot/" + info.prompts;
}

const TotTask& tot_task(const std::string& name) {
  static const SumsTask sums;
  static const BlocksPlanTask blocks;
  static const WritingTask writing;
  tot_task_info(name);
  if (is_sums(name)) return sums;
  if (is_blocks(name)) return blocks;
  return writing;
}

std::vector<Record> tot_questions(const std::string& task,
                                  const QuestionRange& range,
                                  int n_actions,
                                  const std::string& data_dir) {
  tot_task_info(task);
  return matching_records(task, range, data_dir, [n_actions](const Record& record) {
    return is_question(record, n_actions);
  });
}

std::vector<Record> tot_questions_of(std::vector<Record> records, int n_actions) {
  const bool none_given = records.empty();
  std::erase_if(records, [&](const Record& record) { return !is_question(record, n_actions); });
  if (records.empty() && !none_given)
    throw Error(ErrorCode::BadInput,
                "data: found no question for a tree of thoughts, expected word problems with a "
                "number (arith, gsm8k), blocks plans or passages (write, creative_writing)");
  for (const Record& record : records)
    if (record.task != records[0].task)
      throw Error(ErrorCode::BadInput, "data: found " + records[0].task + " and " + record.task +
                                           ", expected questions of one task");
  return records;
}

}  // namespace engine
