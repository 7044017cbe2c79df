#include "engine/data/chat_requests.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/data/readers.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kRunWords = 13;

// The texts around the question in the prompts of a data set.
struct PromptForm {
  std::string_view set, before, after;
};
constexpr PromptForm kForms[] = {
    {"gsm8k", "Question:\n", "\nAnswer:\n"},
    {"commonsenseqa", "Q: ", " Answer Choices:"},
    {"aqua", "Q: ", " Answer Choices:"},
    {"strategyqa", "Q: ", "\nA:"},
    {"creak", "Q: Is it true that ", "\nA:"},
    {"mbpp", "here is your task: ", " Your code should pass these tests:"},
    {"wikisql", "], Question: ", "\n### Response:"},
    {"advising", "], Question: ", "\n### Response:"},
    {"defog_sql", "], Question: ", "\n### Response:"},
    {"python_puzzles", "# Make this true.\n", "\n\ndef sol("},
    {"taskmaster4", "USER: ", " ASSISTANT:"},
    {"self_instruct", "USER: ", " ASSISTANT:"},
    {"mt_bench", "USER: ", " ASSISTANT:"},
    {"vicuna_bench", "USER: ", " ASSISTANT:"},
    {"creative_writing", "must be: ", "\n"}};

// The text after the first `before` and in front of the last `after`; "" if either is missing.
std::string between(const std::string& text, std::string_view before, std::string_view after) {
  const auto begin = text.find(before);
  const auto end = text.rfind(after);
  if (begin == std::string::npos || end == std::string::npos || end < begin + before.size())
    return {};
  return text.substr(begin + before.size(), end - begin - before.size());
}

// A wording that depends only on the text it is for.
std::string worded(std::string_view text, std::initializer_list<std::string_view> wordings) {
  Random rng(fnv1a("wording/" + std::string(text)));
  return fill(rng.one_of(wordings), {text});
}

std::string without_full_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string answer_choices(const Record& record) {
  return "\nAnswer choices:" + between(record.prompt, " Answer Choices:", "\nA:");
}

std::string rewriting(const std::string& text) {
  return worded(text, {"Rewrite the following text in simple modern English:\n\n{0}",
                       "Summarize the following text in two sentences:\n\n{0}",
                       "Rewrite the following text and give every person another name:\n\n{0}",
                       "Correct the spelling and the punctuation of this text:\n\n{0}",
                       "Turn the following text into a list of short points:\n\n{0}",
                       "Rewrite this text in the past tense:\n\n{0}"});
}

std::string writing(const std::string& text) {
  return worded(text, {"Write a short story that begins with this sentence: {0}",
                       "Write a paragraph that explains this to a child: {0}",
                       "Write an email to a friend in which you mention this: {0}",
                       "Write a short dialogue between two people about this: {0}",
                       "Write a poem of eight lines about this: {0}",
                       "List three questions that a teacher could ask about this: {0}"});
}

// The request of a record in the part named after its data set.
std::string request_of(const Record& record, const std::string& question) {
  const std::string& set = record.task;
  if (set == "commonsenseqa" || set == "aqua") return question + answer_choices(record);
  if (set == "creak") return "Is it true that " + without_full_stop(question) + "?";
  if (set == "mbpp") {
    const std::string tests = between(record.prompt, "pass these tests:\n\n", "\n[BEGIN]\n");
    return question + "\nYour code should pass this test:\n" + tests.substr(0, tests.find('\n'));
  }
  if (set == "wikisql" || set == "advising") {
    const std::string tables = between(record.prompt, "The SQL database has ", ", Question: ");
    return worded(question, {"Write an SQL query for this question: {0}\n",
                             "Translate this question into SQL: {0}\n",
                             "Which SQL query answers this? {0}\n"}) +
           "Database: " + tables + ".";
  }
  if (set == "python_puzzles")
    return "Write a Python function `sol` that returns a value for which this function returns "
           "True:\n\n" +
           question;
  return question;
}

using MakeRequest = std::string (*)(const Record&, const std::string& question);
struct Part {
  std::string_view name;
  std::vector<std::string> sets;
  MakeRequest make;
};

const std::vector<Part>& parts() {
  static const auto all = [] {
    std::vector<Part> list;
    for (const RealSetTerms& terms : real_set_terms())
      if (terms.set != "cos_e" && terms.set != "tinyshakespeare")
        list.push_back({"", {terms.set}, request_of});
    for (Part& part : list) part.name = part.sets[0];
    list.push_back({"rewriting",
                    {"gsm8k", "tinyshakespeare"},
                    [](const Record&, const std::string& text) { return rewriting(text); }});
    list.push_back({"writing", {"creak"}, [](const Record&, const std::string& text) {
                      return writing(text);
                    }});
    return list;
  }();
  return all;
}

const Part* part_named(std::string_view name) {
  const auto found = std::ranges::find(parts(), name, &Part::name);
  return found == parts().end() ? nullptr : &*found;
}

// Near copies share a key: puzzles that differ in their numbers, questions about one table.
std::string content_key(const Record& record, const std::string& question) {
  std::string key = normalised(record.task == "wikisql"
                                   ? between(record.prompt, "with columns [", "], Question: ")
                                   : question);
  std::erase_if(key, [](char c) { return c >= '0' && c <= '9'; });
  return key;
}

[[noreturn]] void refuse_recipe(const std::string& field, const std::string& what) {
  throw Error(ErrorCode::BadInput, "mixture: " + field + ": " + what);
}

// The shuffled requests of a part that are not in `seen`, which receives them.
std::vector<ChatRequest> requests_of(const Part& part,
                                     std::uint64_t seed,
                                     const std::string& data_dir,
                                     Split split,
                                     std::set<std::string>& seen) {
  std::vector<ChatRequest> requests;
  for (const std::string& set : part.sets) {
    for (const Record& record : read_real_set(set, Split::Train, data_dir)) {
      const std::string question(trimmed(question_of(record)));
      if (question.empty() || split_of_key(content_key(record, question)) != split) continue;
      std::string text = part.make(record, question);
      if (seen.insert(normalised(text)).second)
        requests.push_back({std::string(part.name), std::move(text), question});
    }
  }
  Random rng(fnv1a("requests/" + std::to_string(seed) + "/" + std::string(part.name)));
  rng.shuffle(requests);
  return requests;
}

// Calls `each` with the hash of every run of 13 words of a normalised text.
void for_each_run(std::string_view text, const std::function<void(std::uint64_t)>& each) {
  std::vector<std::size_t> begins = {0};
  for (std::size_t i = 0; i < text.size(); i++)
    if (text[i] == ' ') begins.push_back(i + 1);
  begins.push_back(text.size() + 1);
  for (std::size_t i = 0; i + kRunWords < begins.size(); i++)
    each(fnv1a(text.substr(begins[i], begins[i + kRunWords] - 1 - begins[i])));
}

// All questions of an evaluation record: a conversation has several.
std::vector<std::string> questions_of(const Record& record) {
  const Json check = Json::parse(record.check, nullptr, false);
  if (check.is_object() && check.contains("turns"))
    return check["turns"].get<std::vector<std::string>>();
  return {question_of(record)};
}

}  // namespace

std::string question_of(const Record& record) {
  if (record.prompt.empty()) return record.completion;
  for (const PromptForm& form : kForms)
    if (form.set == record.task) return between(record.prompt, form.before, form.after);
  return record.prompt;
}

std::vector<std::string> sets_of_request_part(std::string_view part) {
  const Part* found = part_named(part);
  return found ? found->sets : std::vector<std::string>();
}

ChatRequests::ChatRequests(std::string_view recipe_json,
                           std::uint64_t seed,
                           const std::string& data_dir,
                           Split split) {
  const Json recipe = Json::parse(recipe_json, nullptr, false);
  if (!recipe.is_object() || recipe.empty())
    refuse_recipe("recipe", "expected a JSON object of parts");
  if (data_dir.empty())
    refuse_recipe("recipe", "found no folder of open texts; give --data DIR or set DECOSCOPE_DATA");
  struct Source {
    std::vector<ChatRequest> requests;  // the next one is the last
    double weight;
  };
  std::vector<Source> sources;
  std::set<std::string> seen;
  for (const auto& [name, options] : recipe.items()) {
    const Part* part = part_named(name);
    if (!part) {
      std::vector<std::string> known;
      for (const Part& one : parts()) known.emplace_back(one.name);
      refuse_recipe(name,
                    "found no such part of chat requests, expected one of " + joined(known, ", "));
    }
    const bool is_alone = options.is_object() && options.size() == 1;
    const auto weight = is_alone ? options.find("weight") : options.end();
    if (weight == options.end() || !weight->is_number() || !(weight->get<double>() > 0))
      refuse_recipe(name, "expected {\"weight\": a number above 0}");
    sources.push_back({requests_of(*part, seed, data_dir, split, seen), weight->get<double>()});
  }
  Random rng(fnv1a("requests/" + std::to_string(seed)));
  for (;;) {
    std::erase_if(sources, [](const Source& source) { return source.requests.empty(); });
    if (sources.empty()) break;
    double total = 0;
    for (const Source& source : sources) total += source.weight;
    double drawn = total * rng.bits() * 0x1p-32;
    auto source = sources.begin();
    while (std::next(source) != sources.end() && drawn >= source->weight)
      drawn -= (source++)->weight;
    list_.push_back(std::move(source->requests.back()));
    source->requests.pop_back();
  }
}

std::string ChatRequests::hash() const {
  std::string hashes;
  for (const ChatRequest& request : list_) hashes += fmt::format("{:016x}", fnv1a(request.text));
  return fmt::format("{:016x}", fnv1a(hashes));
}

std::vector<TrainingStream::Share> ChatRequests::shares(std::int64_t count) const {
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(count), list_.size());
  std::map<std::string, TrainingStream::Share> by_part;
  for (std::size_t i = 0; i < n; i++) {
    TrainingStream::Share& share = by_part[list_[i].part];
    share.share_of_texts += 1;
    share.mean_chars += static_cast<double>(list_[i].text.size());
  }
  std::vector<TrainingStream::Share> out;
  for (auto& [part, share] : by_part)
    out.push_back({part, share.share_of_texts / static_cast<double>(n),
                   share.mean_chars / share.share_of_texts});
  return out;
}

EvaluationTexts::EvaluationTexts(const std::string& data_dir) {
  for (const std::string& set : real_set_names()) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(data_dir + "/" + set, unknown)) continue;
    const std::vector<Record> records = read_real_set(set, Split::Test, data_dir);
    if (!records.empty()) sets_.push_back(set);
    for (const Record& record : records) {
      for (const std::string& question : questions_of(record)) {
        const std::string text = normalised(question);
        hashes_.insert(fnv1a(text));
        for_each_run(text, [&](std::uint64_t hash) { hashes_.insert(hash); });
      }
    }
  }
}

bool EvaluationTexts::overlap(const ChatRequest& request) const {
  return overlap(request.text) || overlap(request.question);
}

bool EvaluationTexts::overlap(std::string_view text) const {
  const std::string words = normalised(text);
  bool found = hashes_.contains(fnv1a(words));
  for_each_run(words, [&](std::uint64_t hash) { found = found || hashes_.contains(hash); });
  return found;
}

}  // namespace engine
