// check_record(): the checkers of the open data sets' forms; generated tasks have their own.
#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/readers.h"
#include "engine/data/sandbox/run_python.h"
#include "engine/data/sql/run.h"
#include "engine/data/text.h"
#include "engine/data/write/passage.h"

namespace engine {

namespace {

using Json = nlohmann::json;

CheckResult check_number(std::string_view text, const std::string& answer) {
  const auto expected = last_number(answer, "");
  const auto found = last_number(text, "####");
  const bool right = expected && found && *expected == *found;
  return {right, right ? "" : "expected " + answer};
}

CheckResult check_letter(std::string_view text, const std::string& answer) {
  const auto letter = chosen_letter(text);
  const bool right = letter && answer == std::string(1, *letter);
  return {right, right ? "" : "expected letter " + answer};
}

CheckResult check_program(const Json& check, std::string_view completion) {
  std::string code;
  for (const std::string& line : split_text(completion, '\n')) {
    if (line.starts_with("[DONE]")) break;
    // Code without indent after the function's body is not part of it.
    const bool is_next_definition =
        check.at("form") == "humaneval" &&
        (line.starts_with("def") || line.starts_with("class") || line.starts_with("if") ||
         line.starts_with("print") || line.starts_with("#"));
    if (is_next_definition) break;
    code += line + "\n";
  }
  const PythonRun run = run_python(check.at("before").get<std::string>() + "\n" + code + "\n" +
                                   check.at("after").get<std::string>() + "\n");
  if (!run.available) return {false, run.reason, true};
  return {run.passed, run.reason};
}

// A query in a form that ignores case, spaces, the kind of quotes and a final ";".
std::string normalised_sql(std::string_view query) {
  std::string out;
  const auto in_word = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
  };
  bool apart = false;
  for (const char raw : query) {
    const auto c = static_cast<unsigned char>(raw);
    if (std::isspace(c) != 0) {
      apart = true;
      continue;
    }
    if (!out.empty() && (apart || !in_word(c) || !in_word(static_cast<unsigned char>(out.back()))))
      out += ' ';
    apart = false;
    out += c == '"' ? '\'' : c < 0x80 ? static_cast<char>(std::tolower(c)) : raw;
  }
  if (out.ends_with(" ;")) out.resize(out.size() - 2);
  return out;
}

CheckResult check_same_query(std::string_view text, const std::string& answer) {
  const bool same = normalised_sql(text.substr(0, text.find('\n'))) == normalised_sql(answer);
  return {same, same ? "" : "the query differs from the expected one"};
}

// Execution match: the query has to give the same rows as one of the accepted queries.
CheckResult check_rows(const Json& check, std::string_view text) {
  const std::string query = query_in(text);
  if (query.empty()) return {false, "found no SELECT"};
  const SqlDatabase database(check.at("script").get<std::string>(), "check.script");
  const SqlResult found = database.run(query);
  if (!found.error.empty()) return {false, found.error};
  const bool ordered = check.at("ordered");
  for (const Json& accepted : check.at("accepted")) {
    const SqlResult expected = database.run(accepted.get<std::string>());
    if (!expected.error.empty())
      throw Error(ErrorCode::BadInput, "check.accepted: " + expected.error);
    if (same_rows(expected, found, ordered)) return {true, {}};
  }
  return {false, "the rows differ from those of every accepted query"};
}

// Paragraph i of the passage has to end in sentence i. Ignores a plan before the passage.
CheckResult check_passage(const Json& check, std::string_view text) {
  const auto sentences = check.at("sentences").get<std::vector<std::string>>();
  const PassageCount count = count_passage(text, sentences, {});
  const std::string n_wanted = std::to_string(sentences.size());
  if (count.n_paragraphs != static_cast<int>(sentences.size()))
    return {false,
            "found " + std::to_string(count.n_paragraphs) + " paragraphs, expected " + n_wanted};
  if (count.n_ends() == count.n_paragraphs) return {true, {}};
  return {false,
          std::to_string(count.n_ends()) + " of " + n_wanted + " paragraphs end in their sentence"};
}

}  // namespace

bool is_checked_by_running(const Record& record) {
  if (record.task == "py") return true;
  const Json check = Json::parse(record.check, nullptr, false);
  if (!check.is_object()) return false;
  if (record.task == "chat") return check.value("task", Json()) == "py";
  const Json form = check.value("form", Json());
  const auto names = task_names();
  return std::ranges::find(names, record.task) == names.end() &&
         (form == "mbpp" || form == "humaneval");
}

bool mixes_code(std::string_view mixture) {
  const Json parts = Json::parse(mixture, nullptr, false);
  if (!parts.is_object()) return false;
  if (parts.contains("py") || parts.contains("chat")) return true;
  if (!parts.contains("real") || !parts["real"].is_object()) return false;
  const Json sets = parts["real"].value("sets", Json(default_training_sets()));
  return std::ranges::find(sets, Json("mbpp")) != sets.end();
}

CheckResult check_record(const Record& record, std::string_view completion) {
  const auto names = task_names();
  if (std::find(names.begin(), names.end(), record.task) != names.end())
    return task_generator(record.task).check(record, completion);
  if (record.task == "blocksworld") return task_generator("blocks").check(record, completion);
  try {
    const Json check = Json::parse(record.check);
    const std::string form = check.at("form");
    const std::string_view text = completion_body(completion);
    if (form == "number") return check_number(text, record.answer);
    if (form == "letter") return check_letter(text, record.answer);
    if (form == "yes/no") return check_yes_no(text, record.answer);
    if (form == "exact") return check_same_query(text, record.answer);
    if (form == "rows") return check_rows(check, text);
    if (form == "passage") return check_passage(check, text);
    if (form == "mbpp" || form == "humaneval") return check_program(check, completion);
    return {false, "this data set has no right and wrong answers", true};
  } catch (const Json::exception& e) {
    throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
  }
}

}  // namespace engine
