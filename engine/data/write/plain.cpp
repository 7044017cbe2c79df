// The plain task: text without a prompt, for perplexity and long free runs.
//   form "description"  describes members of the knowledge base; each sentence is a fact
//        "open"         with a folder of open data sets, mixed into 60,000 training texts: speeches of
//                       tinyshakespeare (eight times each), true claims of creak with their reasons and
//                       the facts of strategyqa (four times each)
//   key      of a description: the members and their topics; of an open text: the text
//   checker  of a description: every sentence is a fact of one of the members; open texts have no right
//            and wrong
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/data/kb/sentences.h"
#include "engine/data/open_texts.h"
#include "engine/data/readers.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr int kOwnTexts = 60'000;

// The text without `before` at its start and without everything from the last `after` on.
std::string without(std::string text, std::string_view before, std::string_view after) {
  if (text.starts_with(before)) text.erase(0, before.size());
  const auto at = text.rfind(after);
  return std::string(trimmed(at == std::string::npos ? text : text.substr(0, at)));
}

// The statement of a record of an open data set; "" if it is false.
std::string statement_of(const Record& record) {
  if (record.task == "tinyshakespeare") return record.completion;
  const std::string facts = without(record.completion, "", " So the answer is ");
  if (record.task == "strategyqa") return facts;
  if (record.answer != "yes") return {};
  return capitalised(without(record.prompt, "Q: Is it true that ", "\nA:")) + " " + facts;
}

// Reads the open texts of this task. Unlike the open dialogs of chat, they also occur in dev and test:
// the content key of each one decides its split.
OpenPool read_open_statements(const std::string& data_dir) {
  OpenPool pool(kOwnTexts);
  if (data_dir.empty()) return pool;
  std::set<std::string> seen;
  for (const std::string& set : open_sets_of_task("plain")) {
    const int n_times = set == "tinyshakespeare" ? 8 : 4;
    for (const Record& record : read_real_set(set, Split::Train, data_dir)) {
      Record text;
      text.completion = statement_of(record);
      const std::string key = normalised(text.completion);
      if (key.empty() || !seen.insert(key).second) continue;
      text.split = split_name(split_of_key(key));
      text.answer = set;
      text.check = Json{{"form", "open"}, {"set", set}}.dump();
      pool.add(std::move(text), n_times);
    }
  }
  return pool;
}

std::optional<Record> description(Random& rng, int level, Split split) {
  const int n_members = rng.between(1, level);
  std::vector<std::string> keys;
  std::vector<std::string> names;
  std::vector<std::string> sentences;
  for (int i = 0; i < n_members; i++) {
    const KbMember& m = rng.pick(kb_world().members);
    if (std::find(names.begin(), names.end(), m.name) != names.end()) return std::nullopt;
    std::vector<int> topics;
    for (int t = 0; t < kKbRelations + kKbAttributes; t++) topics.push_back(t);
    rng.shuffle(topics);
    topics.resize(rng.between(3, 6));
    names.push_back(m.name);
    sentences.push_back(kb_membership(rng, m));
    for (const int t : topics) sentences.push_back(kb_topic_fact(rng, m, t));
    std::sort(topics.begin(), topics.end());
    keys.push_back(m.name);
    for (const int t : topics) keys.back() += "," + std::to_string(t);
  }
  std::sort(keys.begin(), keys.end());
  if (split_of_key("plain|" + joined(keys, "|")) != split) return std::nullopt;
  Record record;
  record.completion = joined(sentences, " ");
  record.answer = enumerated(names);
  record.check = Json{{"form", "description"}, {"members", names}}.dump();
  return record;
}

class PlainTask final : public TaskGenerator {
 public:
  explicit PlainTask(const std::string& data_dir) : open_(read_open_statements(data_dir)) {}

  std::string_view name() const override { return "plain"; }
  std::int64_t full_size() const override { return open_.full_size(); }

  CheckResult check(const Record& record, std::string_view completion) const override {
    try {
      const Json check = Json::parse(record.check);
      const std::string form = check.at("form");
      if (form == "open") return {false, "open texts have no right and wrong answers", true};
      if (form != "description")
        throw Error(ErrorCode::BadInput, record.id + ": check.form: found '" + form + "'");
      std::set<std::string> truths;
      for (const auto& name : check.at("members").get<std::vector<std::string>>()) {
        const KbMember* member = kb_member(name);
        if (member == nullptr)
          throw Error(ErrorCode::BadInput, record.id + ": check.members: found " + name +
                                               ", expected a member of the knowledge base");
        truths.merge(kb_truths(*member));
      }
      return check_kb_sentences(completion_body(completion), truths);
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

  CheckResult check_generated(const Record& record) const override {
    const CheckResult result = check(record, record.completion);
    return result.skipped ? CheckResult{true, {}} : result;  // open texts
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    auto record = description(rng, level, split);
    if (!record) return std::nullopt;
    if (const Record* open = open_.draw(rng, split)) return *open;
    return record;
  }

 private:
  OpenPool open_;
};

}  // namespace

std::unique_ptr<TaskGenerator> make_plain_task(const std::string& data_dir) {
  return std::make_unique<PlainTask>(data_dir);
}

}  // namespace engine
