// `lesson check` prints the questions of a lesson with the answers from its recording; `lesson queries` lists all queries.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/commands/report.h"
#include "engine/base/text.h"
#include "engine/lesson/lesson.h"

namespace app {
namespace {

using Json = nlohmann::ordered_json;

std::string answer_words(const engine::SolvedCard& card) {
  std::string words;
  for (const std::size_t i : card.right) words += (words.empty() ? "" : " or ") + card.options[i];
  return words.empty() ? card.answer.text : words;
}

const char* kind_words(engine::AnswerKind kind) {
  switch (kind) {
    case engine::AnswerKind::Number:
      return "number";
    case engine::AnswerKind::YesNo:
      return "yes or no";
    case engine::AnswerKind::Which:
      return "one of several";
    case engine::AnswerKind::Text:
      break;
  }
  return "text";
}

std::vector<std::string> arguments_of(const engine::LessonQueryInfo& info) {
  std::vector<std::string> names;
  if (info.needs_run) names.emplace_back("run");
  if (info.needs_than) names.emplace_back("than");
  if (info.needs_step) names.emplace_back("step");
  if (info.needs_token) names.emplace_back("token");
  if (info.needs_option) names.emplace_back("option");
  return names;
}

void print_queries(const LessonOptions& options) {
  Json json = Json::array();
  std::string text;
  for (const engine::LessonQueryInfo& info : engine::lesson_queries()) {
    const std::vector<std::string> arguments = arguments_of(info);
    const std::string argument_words = fmt::format("{}", fmt::join(arguments, ", "));
    json.push_back({{"query", info.name},
                    {"answer", kind_words(info.kind)},
                    {"arguments", arguments},
                    {"does", info.does}});
    text += fmt::format("{:<19} {:<15} {:<16} {}\n", info.name, kind_words(info.kind),
                        argument_words, info.does);
  }
  print(options.json ? dumped(json) : text);
}

void check_lesson(const LessonOptions& options) {
  const engine::Lesson lesson = engine::read_lesson(options.path);
  const std::vector<engine::SolvedCard> cards =
      engine::solve_lesson(lesson, engine::load_lesson_recording(lesson));
  Json json{{"path", engine::as_utf8(options.path)},
            {"title", lesson.title},
            {"minutes", lesson.minutes},
            {"cards", Json::array()}};
  std::string text = fmt::format("{}: {}, {}\n", engine::escaped(lesson.title),
                                 engine::counted(std::ssize(cards), "card"),
                                 engine::counted(lesson.minutes, "minute"));
  for (std::size_t i = 0; i < cards.size(); ++i) {
    Json card{{"title", lesson.cards[i].title}, {"text", engine::as_utf8(cards[i].text)}};
    if (lesson.cards[i].question) {
      const std::string answer = answer_words(cards[i]);
      card["question"] = engine::as_utf8(cards[i].question);
      card["options"] = Json::array();
      for (const std::string& option : cards[i].options)
        card["options"].push_back(engine::as_utf8(option));
      card["answer"] = engine::as_utf8(answer);
      text += fmt::format("card {}: {}\n  {}\n", i + 1, cards[i].question, answer);
    }
    json["cards"].push_back(std::move(card));
  }
  print(options.json ? dumped(json) : for_terminal(text));
}

}  // namespace

int lesson(const LessonOptions& options) {
  options.what == "check" ? check_lesson(options) : print_queries(options);
  return 0;
}

}  // namespace app
