// Chat dialogs about the knowledge base: questions, lists of facts, counterfactuals, tables.
#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "engine/data/chat/dialog.h"
#include "engine/data/kb/sentences.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr int kTopics = kKbRelations + kKbAttributes;
// People make the members of classes from this one on; those before (fish .. fuel) occur in nature.
constexpr int kFirstMadeClass = 14;

std::vector<int> some_topics(Random& rng, int count, int n_topics = kTopics) {
  std::vector<int> topics(n_topics);
  for (int i = 0; i < n_topics; i++) topics[i] = i;
  rng.shuffle(topics);
  topics.resize(count);
  return topics;
}

std::vector<std::string> names_of(const std::vector<int>& topics) {
  std::vector<std::string> names;
  for (const int topic : topics) names.emplace_back(kKbTopics[topic]);
  return names;
}

// The part of a content key for topics, in any order.
std::string key_of(std::vector<int> topics) {
  std::sort(topics.begin(), topics.end());
  std::string key;
  for (const int topic : topics) key += "|" + std::to_string(topic);
  return key;
}

ChatTurn chat_turn(std::string question,
                   std::string answer,
                   const Json& check,
                   std::string result) {
  return {std::move(question), std::move(answer), "chat", check.dump(), std::move(result)};
}

const KbMember& member_named(const Json& check, const char* field) {
  const std::string name = check.at(field);
  const KbMember* member = kb_member(name);
  if (member == nullptr)
    throw Error(ErrorCode::BadInput, std::string("check.") + field + ": found " + name +
                                         ", expected a member of the knowledge base");
  return *member;
}

int topic_in(const Json& topic) {
  const int index = topic.get<int>();
  if (index < 0 || index >= kTopics)
    throw Error(ErrorCode::BadInput, "check.topics: found " + std::to_string(index) +
                                         ", expected 0 to " + std::to_string(kTopics - 1));
  return index;
}

// --- numbered lists of facts ---------------------------------------------------------------------

ChatTurn facts_turn(Random& rng,
                    std::string question,
                    const KbMember& m,
                    const std::vector<int>& topics) {
  std::vector<std::string> facts;
  for (const int topic : topics) facts.push_back(kb_topic_fact(rng, m, topic));
  return chat_turn(std::move(question), numbered_list(facts),
                   {{"form", "facts"}, {"member", m.name}, {"topics", topics}},
                   std::to_string(facts.size()) + " facts");
}

// A second turn: one item of the list again, or facts of other topics.
ChatTurn facts_follow_up(Random& rng,
                         const KbMember& m,
                         const std::vector<int>& topics,
                         const std::vector<int>& others,
                         const std::string& list) {
  if (rng.chance(50))
    return facts_turn(rng,
                      fill(rng.one_of({"And its {0}?", "Now its {0}.", "Tell me its {0} too.",
                                       "What about its {0}?"}),
                           {enumerated(names_of(others))}),
                      m, others);
  const int at = rng.below(static_cast<int>(topics.size()));
  const std::string fact = read_numbered_list(list)->at(at);
  return chat_turn(fill(rng.one_of({"Say only number {0}.", "Repeat number {0}.",
                                    "What was number {0}?", "Number {0} alone, please."}),
                        {std::to_string(at + 1)}),
                   fact, {{"form", "fact"}, {"member", m.name}, {"topic", topics[at]}}, fact);
}

std::optional<ChatDialog> facts_dialog(
    Random& rng, int level, Split split, const char* category, const KbMember& m) {
  const int n = level == 1 ? 4 : level == 2 ? rng.between(4, 5) : rng.between(5, 7);
  std::vector<int> topics = some_topics(rng, n + 2);
  const std::vector<int> others(topics.end() - 2, topics.end());
  topics.resize(n);
  if (split_of_key(std::string(category) + "|" + m.name + key_of(topics)) != split)
    return std::nullopt;
  ChatTurn first = facts_turn(
      rng,
      fill(rng.one_of({"List {0} facts about {1}: {2}.", "Explain {1} in {0} points: {2}.",
                       "What should one know of {1}? Number {0} points: {2}.",
                       "Give me a list of {0} facts. Subject: {1}. Points: {2}."}),
           {std::to_string(n), kb_member_phrase(m), enumerated(names_of(topics))}),
      m, topics);
  ChatTurn second = facts_follow_up(rng, m, topics, others, first.answer);
  return ChatDialog{std::move(first), std::move(second)};
}

bool is_made(const KbMember& m) {
  return m.class_index >= kFirstMadeClass;
}

const KbMember& pick_member(Random& rng, bool made) {
  while (true) {
    const KbMember& m = rng.pick(kb_world().members);
    if (is_made(m) == made) return m;
  }
}

CheckResult check_facts(const Json& check, std::string_view text) {
  const KbMember& member = member_named(check, "member");
  const Json& topics = check.at("topics");
  const auto items = read_numbered_list(text);
  if (!items) return {false, "found no list with numbered lines"};
  if (items->size() != topics.size())
    return {false, "found " + std::to_string(items->size()) + " items, expected " +
                       std::to_string(topics.size())};
  for (std::size_t i = 0; i < items->size(); i++)
    if (!kb_truths_of_topic(member, topic_in(topics[i])).contains(normalised((*items)[i])))
      return {false, "item " + std::to_string(i + 1) + " is not the expected fact"};
  return {true, {}};
}

// --- names of a class ----------------------------------------------------------------------------

std::vector<std::string> members_of(int class_index) {
  std::vector<std::string> names;
  for (const KbMember& m : kb_world().members)
    if (m.class_index == class_index) names.push_back(m.name);
  return names;
}

CheckResult check_names(const Json& check, std::string_view text) {
  const int class_index = check.at("class");
  const auto except = check.at("except").get<std::set<std::string>>();
  const auto items = read_numbered_list(text);
  if (!items) return {false, "found no list with numbered lines"};
  if (items->size() != check.at("n").get<std::size_t>())
    return {false,
            "found " + std::to_string(items->size()) + " items, expected " + check.at("n").dump()};
  std::set<std::string> seen = except;
  for (const std::string& item : *items) {
    const KbMember* member = kb_member(item);
    if (member == nullptr || member->class_index != class_index)
      return {false, "'" + item.substr(0, 40) + "' is no member of the class"};
    if (!seen.insert(item).second) return {false, "'" + item + "' is excluded or named twice"};
  }
  return {true, {}};
}

CheckResult check_order(const Json& check, std::string_view text) {
  const auto items = read_numbered_list(text);
  if (!items) return {false, "found no list with numbered lines"};
  const bool same = *items == check.at("items").get<std::vector<std::string>>();
  return {same, same ? "" : "the items or their order differ from the expected list"};
}

// --- counterfactuals -----------------------------------------------------------------------------

std::string facts_of_class(Random& rng, int class_index, const std::vector<int>& topics) {
  std::vector<std::string> facts;
  for (const int topic : topics) facts.push_back(kb_fact(rng, class_index, topic));
  return joined(facts, " ");
}

std::string lower_first(std::string text) {
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

CheckResult check_what_if(const Json& check, std::string_view text) {
  const KbMember& member = member_named(check, "member");
  const int class_index = check.at("class");
  if (class_index < 0 || class_index >= static_cast<int>(kb_world().classes.size()))
    throw Error(ErrorCode::BadInput, "check.class: found " + std::to_string(class_index) +
                                         ", expected an index of a class");
  KbMember changed = member;
  changed.class_index = class_index;
  const std::string words = " " + normalised(text) + " ";
  const auto holds_one_of = [&](const std::set<std::string>& truths) {
    return std::any_of(truths.begin(), truths.end(), [&](const std::string& truth) {
      return words.find(" " + truth + " ") != std::string::npos;
    });
  };
  for (const auto& topic : check.at("topics"))
    if (!holds_one_of(kb_truths_of_topic(changed, topic_in(topic))))
      return {false, "its " + std::string(kKbTopics[topic_in(topic)]) + " is missing or wrong"};
  const bool as_it_is = check.at("as_it_is").get<bool>();
  const auto n_sentences = static_cast<std::size_t>(std::count(text.begin(), text.end(), '.'));
  if (n_sentences != check.at("topics").size() + (as_it_is ? 1 : 0))
    return {false, "found " + std::to_string(n_sentences) +
                       " sentences, expected one for each topic" +
                       (as_it_is ? " and the true fact" : "")};
  if (!as_it_is) return {true, {}};
  // The text ends with a true fact.
  constexpr std::string_view kAsItIs = " as it is ";
  const auto at = words.rfind(kAsItIs);
  if (at == std::string::npos) return {false, "found no 'as it is' with the true fact"};
  const std::string last(trimmed(std::string_view(words).substr(at + kAsItIs.size())));
  if (!kb_truths(member).contains(last))
    return {false, "the text after 'as it is' is no true fact"};
  return {true, {}};
}

// --- tables --------------------------------------------------------------------------------------

constexpr std::string_view kFormats[] = {"CSV", "JSON", "a list"};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::pair<std::string, std::vector<int>>> rows;
};

std::string as_csv(const Table& table) {
  std::string text = "name," + joined(table.columns, ",");
  for (const auto& [name, values] : table.rows) {
    text += "\n" + name;
    for (const int value : values) text += "," + std::to_string(value);
  }
  return text;
}

std::string as_json(const Table& table) {
  std::vector<std::string> rows;
  for (const auto& [name, values] : table.rows) {
    std::string row = "{\"name\": \"" + name + "\"";
    for (std::size_t i = 0; i < values.size(); i++)
      row += ", \"" + table.columns[i] + "\": " + std::to_string(values[i]);
    rows.push_back(row + "}");
  }
  return "[" + joined(rows, ",\n") + "]";
}

std::string as_list(const Table& table) {
  std::vector<std::string> lines;
  for (const auto& [name, values] : table.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < values.size(); i++)
      cells.push_back(table.columns[i] + " " + std::to_string(values[i]));
    lines.push_back("- " + name + ": " + joined(cells, ", "));
  }
  return joined(lines, "\n");
}

std::string as_format(const Table& table, std::string_view format) {
  return format == "CSV" ? as_csv(table) : format == "JSON" ? as_json(table) : as_list(table);
}

Table table_in(const Json& check) {
  Table table;
  table.columns = check.at("columns").get<std::vector<std::string>>();
  for (const auto& row : check.at("rows")) {
    table.rows.emplace_back(row.at(0).get<std::string>(), std::vector<int>());
    for (std::size_t i = 1; i < row.size(); i++)
      table.rows.back().second.push_back(row.at(i).get<int>());
  }
  return table;
}

ChatTurn table_turn(std::string question, const Table& table, std::string_view format) {
  Json rows = Json::array();
  for (const auto& [name, values] : table.rows) {
    Json row = {name};
    for (const int value : values) row.push_back(value);
    rows.push_back(row);
  }
  return chat_turn(
      std::move(question), as_format(table, format),
      {{"form", "table"}, {"format", format}, {"columns", table.columns}, {"rows", rows}},
      std::string(format));
}

// The lines that are not empty, without their spaces.
std::vector<std::string> bare_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split_text(text, '\n')) {
    std::string bare = replaced_all(line, " ", "");
    if (!bare.empty()) lines.push_back(std::move(bare));
  }
  return lines;
}

CheckResult check_table(const Json& check, std::string_view text) {
  const Table table = table_in(check);
  const std::string format = check.at("format");
  const std::string expected = as_format(table, format);
  bool same;
  if (format == "JSON") {
    constexpr int kMaxDepth = 4;
    bool deep = false;
    const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
      deep = deep || depth > kMaxDepth;
      return !deep;
    };
    const Json found = Json::parse(text, shallow, false);
    same = !found.is_discarded() && found == Json::parse(expected);
  } else {
    same = bare_lines(text) == bare_lines(expected);
  }
  return {same, same ? "" : "the text is not the expected table as " + format};
}

std::string key_of(const Table& table) {
  std::vector<std::string> parts = table.columns;
  for (const auto& row : table.rows) parts.push_back(row.first);
  std::sort(parts.begin(), parts.end());
  return "table|" + joined(parts, "|");
}

}  // namespace

std::string numbered_list(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); i++)
    text += (i ? "\n" : "") + std::to_string(i + 1) + ". " + items[i];
  return text;
}

std::optional<std::vector<std::string>> read_numbered_list(std::string_view text) {
  std::vector<std::string> items;
  for (const std::string& line : split_text(text, '\n')) {
    const std::string_view body = trimmed(line);
    if (body.empty()) continue;
    const std::string number = std::to_string(items.size() + 1) + ". ";
    if (!body.starts_with(number)) return std::nullopt;
    items.emplace_back(trimmed(body.substr(number.size())));
  }
  if (items.empty()) return std::nullopt;
  return items;
}

std::optional<ChatDialog> common_sense_dialog(Random& rng, int level, Split split) {
  constexpr std::string_view kUser = "USER: ", kAssistant = " ASSISTANT:";
  ChatDialog dialog;
  for (std::size_t i = 0; i < dialog.size();) {
    const auto record = task_generator("kb").make(split, level, rng.bits() >> 1);
    if (!record || !record->prompt.starts_with(kUser)) continue;
    const Json check = Json::parse(record->check);
    const std::string form = check.at("form");
    if (!form.starts_with("choice") && !form.starts_with("yes/no")) continue;
    std::string question = record->prompt.substr(
        kUser.size(), record->prompt.size() - kUser.size() - kAssistant.size());
    if (i == 1)
      question = fill(
          rng.one_of({"And this: {0}", "Another one: {0}", "Next question: {0}", "One more. {0}"}),
          {question});
    dialog[i] = {std::move(question), std::string(trimmed(record->completion)), "kb", record->check,
                 record->answer};
    i++;
  }
  return dialog;
}

std::optional<ChatDialog> stem_dialog(Random& rng, int level, Split split) {
  return facts_dialog(rng, level, split, "stem", pick_member(rng, false));
}

std::optional<ChatDialog> humanities_dialog(Random& rng, int level, Split split) {
  return facts_dialog(rng, level, split, "humanities", pick_member(rng, true));
}

std::optional<ChatDialog> knowledge_dialog(Random& rng, int level, Split split) {
  const KbMember& m = rng.pick(kb_world().members);
  const std::vector<int> topics = some_topics(rng, level + 1);
  if (split_of_key("knowledge|" + m.name + key_of(topics)) != split) return std::nullopt;
  std::vector<std::string> sentences = {kb_membership(rng, m)};
  for (const int topic : topics) sentences.push_back(kb_topic_fact(rng, m, topic));
  ChatTurn first = {
      fill(rng.one_of({"What is {0}? Say its {1} too.", "Explain what {0} is and its {1}.",
                       "I want to know what {0} is, and its {1}.",
                       "Tell me about {0} and its {1}."}),
           {kb_member_phrase(m), enumerated(names_of(topics))}),
      joined(sentences, " "), "kb", Json{{"form", "statement"}, {"member", m.name}}.dump(),
      kb_class_of(m).name};
  const int topic = some_topics(rng, 1)[0];
  const std::string fact = kb_topic_fact(rng, m, topic);
  ChatTurn second = chat_turn(fill(rng.one_of({"And its {0}?", "Say its {0} alone.",
                                               "Now only its {0}.", "What is its {0}?"}),
                                   {kKbTopics[topic]}),
                              fact, {{"form", "fact"}, {"member", m.name}, {"topic", topic}}, fact);
  return ChatDialog{std::move(first), std::move(second)};
}

std::optional<ChatDialog> generic_dialog(Random& rng, int level, Split split) {
  const int class_index = rng.below(static_cast<int>(kb_world().classes.size()));
  std::vector<std::string> names = members_of(class_index);
  rng.shuffle(names);
  std::vector<std::string> except(names.end() - rng.between(1, 2), names.end());
  const int n = level == 1 ? rng.between(3, 4) : level == 2 ? rng.between(4, 6) : rng.between(5, 7);
  names.resize(n);
  std::vector<std::string> sorted = except;
  std::sort(sorted.begin(), sorted.end());
  const std::string count = std::to_string(n);
  if (split_of_key("generic|" + std::to_string(class_index) + "|" + count + "|" +
                   joined(sorted, "|")) != split)
    return std::nullopt;
  ChatTurn first = chat_turn(
      fill(
          rng.one_of({"Name {0} kinds of {1}, but not {2}.", "I need {0} kinds of {1} without {2}.",
                      "List {0} kinds of {1}. Leave out {2}.",
                      "Which kinds of {1} are there besides {2}? Say {0}."}),
          {count, kb_world().classes[class_index].name, enumerated(except)}),
      numbered_list(names),
      {{"form", "names"}, {"class", class_index}, {"except", except}, {"n", n}}, count + " names");
  const bool backwards = rng.chance(50);
  std::vector<std::string> ordered = names;
  if (backwards) {
    std::reverse(ordered.begin(), ordered.end());
  } else {
    std::sort(ordered.begin(), ordered.end());
  }
  ChatTurn second = chat_turn(
      std::string(backwards
                      ? rng.one_of({"Now backwards.", "Turn the list round.",
                                    "Say them from the last to the first.", "In reverse order."})
                      : rng.one_of({"Now by the alphabet.", "Sort the list from a to z.",
                                    "Put them in alphabetical order.", "In the order of a to z."})),
      numbered_list(ordered), {{"form", "order"}, {"items", ordered}}, count + " names");
  return ChatDialog{std::move(first), std::move(second)};
}

std::optional<ChatDialog> counterfactual_dialog(Random& rng, int level, Split split) {
  const KbMember& m = rng.pick(kb_world().members);
  const int c = rng.below(static_cast<int>(kb_world().classes.size()));
  std::vector<int> topics = some_topics(rng, level + 2, kKbRelations);
  const std::vector<int> last = {topics.back()};
  topics.pop_back();
  if (c == m.class_index ||
      split_of_key("if|" + m.name + "|" + std::to_string(c) + key_of(topics)) != split)
    return std::nullopt;
  const auto check = [&](const std::vector<int>& check_topics, bool as_it_is) {
    return Json{{"form", "what if"},
                {"member", m.name},
                {"class", c},
                {"topics", check_topics},
                {"as_it_is", as_it_is}};
  };
  ChatTurn first = chat_turn(
      fill(rng.one_of({"What if {0} were {1}? Say its {2}.",
                       "Suppose {0} were {1}. What of its {2}?",
                       "If {0} were {1}, what would be its {2}?",
                       "Imagine that {0} were {1}. Tell me its {2}."}),
           {kb_member_phrase(m), kb_class_phrase(c), enumerated(names_of(topics))}),
      fill(rng.one_of({"If {0} were {1}, then: ", "Were {0} {1}, then so: ",
                       "If {0} had become {1}, then: ", "As {1}, {0} would be so: "}),
           {kb_member_phrase(m), kb_class_phrase(c)}) +
          facts_of_class(rng, c, topics) + " As it is, " + lower_first(kb_membership(rng, m)),
      check(topics, true), kb_world().classes[c].name);
  first.answer = capitalised(first.answer);
  ChatTurn second = chat_turn(
      fill(rng.one_of({"And its {0}?", "What of its {0} then?", "Say its {0} too.",
                       "What would be its {0}?"}),
           {enumerated(names_of(last))}),
      std::string(rng.one_of({"Then: ", "In that case: ", "If so: ", "It would be so: "})) +
          facts_of_class(rng, c, last),
      check(last, false), kb_world().classes[c].name);
  return ChatDialog{std::move(first), std::move(second)};
}

std::optional<ChatDialog> extraction_dialog(Random& rng, int level, Split split) {
  const auto topics = some_topics(rng, level == 3 ? 3 : 2, kKbAttributes);
  Table table;
  for (const int t : topics) table.columns.emplace_back(kKbTopics[kKbRelations + t]);
  std::vector<std::string> sentences;
  std::set<std::string> seen;
  for (int i = 0; i < level + 1; i++) {
    const KbMember& m = rng.pick(kb_world().members);
    if (!seen.insert(m.name).second) return std::nullopt;
    std::vector<int> order = topics;
    rng.shuffle(order);
    for (const int t : order) sentences.push_back(kb_number_fact(rng, m, t));
    table.rows.emplace_back(m.name, std::vector<int>());
    for (const int t : topics) table.rows.back().second.push_back(m.numbers[t]);
  }
  if (split_of_key(key_of(table)) != split) return std::nullopt;
  std::vector<std::string_view> formats(std::begin(kFormats), std::end(kFormats));
  rng.shuffle(formats);
  ChatTurn first =
      table_turn(fill(rng.one_of({"{0} Give the {1} of each as {2}.", "{0} Write {1} as {2}.",
                                  "Read this: {0} Put {1} into {2}.", "As {2}, with {1}: {0}"}),
                      {joined(sentences, " "), enumerated(table.columns), formats[0]}),
                 table, formats[0]);
  ChatTurn second =
      table_turn(fill(rng.one_of({"Now as {0}.", "The same as {0}, please.",
                                  "Write it as {0} instead.", "Can you make {0} of it?"}),
                      {formats[1]}),
                 table, formats[1]);
  return ChatDialog{std::move(first), std::move(second)};
}

std::optional<CheckResult> check_facts_turn(const Json& check, std::string_view text) {
  const std::string form = check.at("form");
  if (form == "facts") return check_facts(check, text);
  if (form == "fact") {
    const auto truths =
        kb_truths_of_topic(member_named(check, "member"), topic_in(check.at("topic")));
    const bool right = truths.contains(normalised(text));
    return CheckResult{right, right ? "" : "the text is not the expected fact"};
  }
  if (form == "names") return check_names(check, text);
  if (form == "order") return check_order(check, text);
  if (form == "what if") return check_what_if(check, text);
  if (form == "table") return check_table(check, text);
  return std::nullopt;
}

}  // namespace engine
