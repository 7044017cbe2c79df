#include "engine/lesson/lesson.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/base/text.h"
#include "engine/event/recording/recording.h"

namespace engine {
namespace {

constexpr std::size_t kMaxCards = 40, kMaxChoices = 9;
constexpr std::size_t kMaxText = 1200, kMaxTitle = 60, kMaxSummary = 160, kMaxChoice = 120;
constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int32_t>::max();

// One object of the file, whose members are all known.
class Part {
 public:
  Part(const Json& object, std::string file, std::string where, std::set<std::string_view> known)
      : fields_(object, file, where),
        object_(object),
        file_(std::move(file)),
        where_(std::move(where)) {
    for (const auto& [key, value] : object.members)
      if (!known.contains(key))
        refuse(file_, where_ + escaped(key), "a field that lessons do not have",
               fmt::format("one of {}", fmt::join(known, ", ")));
  }

  const Json* find(const char* name) const { return fields_.find(name); }
  const Json& object(const char* name) const {
    const Json* value = find(name);
    if (!value || !value->is(JsonReader::Kind::Object)) fail(name, "an object");
    return *value;
  }
  std::string text(const char* name, std::size_t most) const {
    const std::optional<std::string> value = fields_.string(name);
    if (!value || value->empty() || value->size() > most)
      fail(name, fmt::format("1 to {} bytes of text", most));
    return *value;
  }
  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high) const {
    return fields_.integer(name, low, high);
  }
  bool boolean(const char* name) const { return fields_.boolean(name, false); }
  double real(const char* name, std::optional<double> fallback = std::nullopt) const {
    return fields_.real(name, -1e12, 1e12, fallback);
  }
  const std::vector<Json>& items(const char* name, std::size_t least, std::size_t most) const {
    const Json* value = find(name);
    if (!value || !value->is(JsonReader::Kind::Array) || value->items.size() < least ||
        value->items.size() > most)
      fail(name, fmt::format("an array of {} to {}", least, most));
    return value->items;
  }
  [[noreturn]] void fail(const std::string& name, const std::string& expected) const {
    const Json* value = object_.find(name);
    refuse(file_, where_ + name, value ? value->shown() : "nothing", expected);
  }
  const std::string& file() const { return file_; }
  std::string inside(const std::string& name) const { return where_ + name + "."; }

 private:
  Fields fields_;
  const Json& object_;
  std::string file_, where_;
};

LessonQuery read_query(const Json& json, const std::string& file, const std::string& where) {
  const Part part(json, file, where, {"query", "run", "than", "step", "token", "option"});
  LessonQuery query{.name = part.text("query", kMaxTitle)};
  const LessonQueryInfo* info = lesson_query(query.name);
  if (!info) {
    std::vector<std::string> names;
    for (const LessonQueryInfo& known : lesson_queries()) names.emplace_back(known.name);
    part.fail("query", fmt::format("one of {}", fmt::join(names, ", ")));
  }
  const auto allow = [&](const char* name, bool needed) {
    if (!needed && part.find(name))
      part.fail(name, fmt::format("nothing: {} has no such argument", query.name));
    return needed;
  };
  if (allow("run", info->needs_run))
    query.run = static_cast<RunId>(part.integer("run", 1, kMaxNumber));
  if (allow("than", info->needs_than))
    query.than = static_cast<RunId>(part.integer("than", 1, kMaxNumber));
  if (allow("step", info->needs_step))
    query.step = static_cast<StepId>(part.integer("step", 0, kMaxNumber));
  if (allow("token", info->needs_token))
    query.token = static_cast<int>(part.integer("token", 1, kMaxNumber));
  if (allow("option", info->needs_option)) query.option = part.text("option", kMaxTitle);
  return query;
}

LessonView read_view(const Json& json, const std::string& file, const std::string& where) {
  const Part part(json, file, where, {"panels", "run", "step", "before"});
  LessonView view;
  for (const Json& item : part.items("panels", 1, 2)) {
    const auto known = lesson_panels();
    if (!item.is(JsonReader::Kind::String) || std::ranges::find(known, item.text) == known.end())
      refuse(file, where + "panels", item.shown(),
             fmt::format("one of {}", fmt::join(known, ", ")));
    view.panels.push_back(item.text);
  }
  view.run = static_cast<RunId>(part.integer("run", 1, kMaxNumber));
  if (part.find("step")) view.step = static_cast<StepId>(part.integer("step", 0, kMaxNumber));
  view.before = part.boolean("before");
  if (view.before && view.step < 0) part.fail("step", "the step before which the card is");
  return view;
}

std::vector<LessonChoice> read_choices(const Part& question) {
  std::vector<LessonChoice> choices;
  for (const Json& item : question.items("choices", 2, kMaxChoices)) {
    const Part part(item, question.file(),
                    question.inside(fmt::format("choices[{}]", choices.size())),
                    {"text", "from", "to"});
    LessonChoice choice{.text = part.text("text", kMaxChoice)};
    choice.from = part.real("from", -std::numeric_limits<double>::infinity());
    choice.to = part.real("to", std::numeric_limits<double>::infinity());
    if (choice.from >= choice.to) part.fail("to", "a number above \"from\"");
    choices.push_back(std::move(choice));
  }
  return choices;
}

LessonQuestion read_question(const Json& json, const std::string& file, const std::string& where) {
  const Part part(json, file, where, {"text", "answer", "tolerance", "choices"});
  LessonQuestion question{.text = part.text("text", kMaxText)};
  question.query = read_query(part.object("answer"), file, part.inside("answer"));
  const AnswerKind kind = lesson_query(question.query.name)->kind;
  if (kind == AnswerKind::Text)
    part.fail("answer", "a query for a number, yes or no, or one of several options");
  if (part.find("tolerance")) {
    question.tolerance = part.real("tolerance");
    if (question.tolerance < 0) part.fail("tolerance", "0 or more");
  }
  if (kind == AnswerKind::YesNo) {
    question.ask = AskFor::Choice;
    question.choices = {{"Yes", 1, 2}, {"No", 0, 1}};
  } else if (kind == AnswerKind::Which) {
    question.ask = AskFor::Which;
  } else if (part.find("choices")) {
    question.ask = AskFor::Choice;
    question.choices = read_choices(part);
  }
  if (question.ask != AskFor::Number && part.find("tolerance"))
    part.fail("tolerance", "nothing: only a number that is typed has a tolerance");
  if (kind != AnswerKind::Number && part.find("choices"))
    part.fail("choices", "nothing: the query has its own");
  return question;
}

// Replaces each {name} by value(name); value() returns nullptr for an unknown name.
std::string filled(const std::string& text,
                   const std::function<const std::string*(const std::string&)>& value,
                   const std::function<void(const std::string& name)>& unknown) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    out += text.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::size_t close = text.find('}', open);
    const std::string name =
        text.substr(open + 1, close == std::string::npos ? close : close - open - 1);
    const std::string* found = close == std::string::npos ? nullptr : value(name);
    if (!found) {
      unknown(name);
      return {};
    }
    out += *found;
    at = close + 1;
  }
  return out;
}

// Checks that the texts name only values that the card has, and all of them.
void check_names(const LessonCard& card, const std::string& file, const std::string& where) {
  std::set<std::string> used;
  static const std::string kAny;
  const auto check = [&](const std::string& text, const char* field, bool has_answer) {
    const auto value = [&](const std::string& name) {
      used.insert(name);
      return card.values.contains(name) || (has_answer && name == "answer") ? &kAny : nullptr;
    };
    filled(text, value, [&](const std::string& name) {
      refuse(file, where + field, "{" + escaped(name) + "}", "the name of one of \"values\"");
    });
  };
  check(card.text, "text", false);
  if (card.question) check(card.question->text, "question.text", false);
  check(card.reveal, "reveal.text", true);
  for (const auto& [name, query] : card.values)
    if (!used.contains(name))
      refuse(file, where + "values." + escaped(name), "a value that no text of the card uses",
             "{" + escaped(name) + "} in a text");
}

LessonCard read_card(const Json& json, const std::string& file, const std::string& where) {
  const Part part(json, file, where,
                  {"title", "text", "show", "values", "question", "reveal", "try"});
  LessonCard card{.title = part.text("title", kMaxTitle), .text = part.text("text", kMaxText)};
  card.view = read_view(part.object("show"), file, part.inside("show"));
  if (part.find("values")) {
    for (const auto& [name, value] : part.object("values").members) {
      if (name == "answer") part.fail("values", "a name other than \"answer\"");
      card.values[name] = read_query(value, file, part.inside("values." + escaped(name)));
    }
  }
  if (part.find("question")) {
    card.question = read_question(part.object("question"), file, part.inside("question"));
    const Part reveal(part.object("reveal"), file, part.inside("reveal"), {"text", "show"});
    card.reveal = reveal.text("text", kMaxText);
    card.reveal_view = reveal.find("show")
                           ? read_view(reveal.object("show"), file, reveal.inside("show"))
                           : card.view;
    if (!reveal.find("show")) card.reveal_view.before = false;
  } else if (part.find("reveal")) {
    part.fail("reveal", "nothing: a card without a question reveals nothing");
  }
  if (part.find("try")) card.try_run = static_cast<RunId>(part.integer("try", 1, kMaxNumber));
  check_names(card, file, where);
  return card;
}

// Runs `work`; a refusal gets the file and the place in front.
template <class Work>
auto in_place(const Lesson& lesson, const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: {}", escaped(lesson.path), where, error.what()));
  }
}

void check_view(const LessonView& view, const Timeline& recording) {
  const RunRecord* run = recording.run(view.run);
  if (!run) throw Error(ErrorCode::BadInput, fmt::format("the recording has no run {}", view.run));
  if (view.step >= 0 && static_cast<std::size_t>(view.step) >= run->steps.size())
    throw Error(ErrorCode::BadInput,
                fmt::format("run {} has no step {}; it has {}", view.run, view.step,
                            counted(std::ssize(run->steps), "step")));
}

void solve_question(const LessonQuestion& question, const Timeline& recording, SolvedCard& solved) {
  solved.answer = answer_of(question.query, recording);
  if (question.ask == AskFor::Which) {
    solved.options = solved.answer.options;
    solved.right = solved.answer.right;
    if (solved.options.size() > kMaxChoices)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{} has {} options, expected {} at most", question.query.name,
                              solved.options.size(), kMaxChoices));
    if (solved.right.size() == solved.options.size())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: every option is right", question.query.name));
  }
  for (const LessonChoice& choice : question.choices) {
    if (solved.answer.number >= choice.from && solved.answer.number < choice.to)
      solved.right.push_back(solved.options.size());
    solved.options.push_back(choice.text);
  }
  if (!question.choices.empty() && solved.right.size() != 1)
    throw Error(ErrorCode::BadInput,
                fmt::format("{} is {}, which {} of the choices contain", question.query.name,
                            solved.answer.text, solved.right.size()));
}

}  // namespace

std::span<const char* const> lesson_panels() {
  static constexpr auto kPanels = std::to_array<const char*>(
      {"text", "trajectory", "pool", "tree", "mask", "distributions", "numbers", "gantt", "lanes",
       "difference", "schedule", "inspector", "acceptance", "what_if"});
  return kPanels;
}

bool looks_like_lesson(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  try {
    return read_json_file(path, FileLimits{}).find("cards") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

Lesson read_lesson(const std::string& path) {
  const Json json = read_json_file(path, FileLimits{});
  const Part part(json, path, "", {"title", "summary", "minutes", "recording", "cards"});
  Lesson lesson{.path = path,
                .title = part.text("title", kMaxTitle),
                .summary = part.text("summary", kMaxSummary),
                .minutes = static_cast<int>(part.integer("minutes", 1, 60))};
  const std::string recording = part.text("recording", 200);
  if (recording.find('/') != std::string::npos || !recording.ends_with(".pdrun"))
    part.fail("recording", "the name of a .pdrun file in the same folder");
  lesson.recording = (std::filesystem::path(path).parent_path() / recording).string();
  for (const Json& card : part.items("cards", 1, kMaxCards))
    lesson.cards.push_back(
        read_card(card, path, fmt::format("card {}: ", lesson.cards.size() + 1)));
  if (std::ranges::none_of(lesson.cards,
                           [](const LessonCard& c) { return c.question.has_value(); }))
    part.fail("cards", "at least one card with a question");
  return lesson;
}

std::vector<SolvedCard> solve_lesson(const Lesson& lesson, const Timeline& recording) {
  std::vector<SolvedCard> solved;
  for (const LessonCard& card : lesson.cards) {
    const std::string where = fmt::format("card {}", solved.size() + 1);
    SolvedCard now;
    std::map<std::string, std::string> values;
    for (const auto& [name, query] : card.values)
      values[name] = in_place(lesson, fmt::format("{}: values.{}", where, escaped(name)),
                              [&] { return answer_of(query, recording).text; });
    in_place(lesson, where + ": show", [&] { check_view(card.view, recording); });
    if (card.try_run > 0 && !recording.run(card.try_run))
      refuse(lesson.path, where + ": try", std::to_string(card.try_run), "a run of the recording");
    if (card.question) {
      in_place(lesson, where + ": question",
               [&] { solve_question(*card.question, recording, now); });
      in_place(lesson, where + ": reveal.show", [&] { check_view(card.reveal_view, recording); });
      values["answer"] = now.answer.text;
    }
    const auto fill = [&](const std::string& text) {
      return filled(
          text, [&](const std::string& name) { return &values.at(name); }, [](const auto&) {});
    };
    now.text = fill(card.text);
    now.question = card.question ? fill(card.question->text) : "";
    now.reveal = fill(card.reveal);
    solved.push_back(std::move(now));
  }
  return solved;
}

Timeline load_lesson_recording(const Lesson& lesson) {
  Timeline timeline;
  timeline.set_payload_budget(std::numeric_limits<std::size_t>::max());
  const RecordingReport report = load_recording(lesson.recording, timeline);
  const std::vector<std::string> notices = report.notices();
  if (!notices.empty())
    throw Error(ErrorCode::BadInput, fmt::format("{}: the recording is damaged: {}",
                                                 escaped(lesson.path), notices.front()));
  return timeline;
}

bool is_right(const LessonQuestion& question, const LessonAnswer& answer, double predicted) {
  return std::abs(predicted - answer.number) <= question.tolerance + 1e-9;
}

}  // namespace engine
