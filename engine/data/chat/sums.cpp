// Chat dialogs whose answers are sums, plans and programs.
#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "engine/data/arith/problem.h"
#include "engine/data/blocks/text.h"
#include "engine/data/chat/dialog.h"
#include "engine/data/py/program.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

ChatTurn sum_turn(std::string question, const std::string& lines, std::int64_t result) {
  const std::string number = std::to_string(result);
  return {std::move(question), lines + "\n#### " + number, "arith",
          Json{{"form", "gsm8k"}, {"answer", result}}.dump(), number};
}

std::string mark(std::int64_t left, char op, std::int64_t right, std::int64_t result) {
  return calculation_mark(
      {std::to_string(left) + op + std::to_string(right), static_cast<int>(result)});
}

std::string marked(Random& rng, const std::string& calculation) {
  return fill(rng.one_of({"That makes {0}.", "Then it is {0}.", "We get {0}.", "So it is {0}."}),
              {calculation});
}

// A second turn that changes the result of the first.
ChatTurn one_step_more(Random& rng, int value) {
  switch (rng.below(value % 2 == 0 ? 4 : 3)) {
    case 0: {
      const int m = rng.between(2, 5);
      return sum_turn(fill(rng.one_of({"And {0} times as many?", "What is {0} times that?",
                                       "How much is {0} times this number?",
                                       "What if it were {0} times as many?"}),
                           {std::to_string(m)}),
                      marked(rng, mark(value, '*', m, value * m)), value * m);
    }
    case 1: {
      const int more = rng.between(2, 60);
      return sum_turn(fill(rng.one_of({"And with {0} more?", "Add {0} to it.",
                                       "What if {0} more come?", "How many are it with {0} more?"}),
                           {std::to_string(more)}),
                      marked(rng, mark(value, '+', more, value + more)), value + more);
    }
    case 2: {
      const int more = rng.between(100, 200) + value;
      return sum_turn(
          fill(rng.one_of({"How far is that from {0}?", "How many are missing to {0}?",
                           "What has to be added to reach {0}?", "How many more would make {0}?"}),
               {std::to_string(more)}),
          marked(rng, mark(more, '-', value, more - value)), more - value);
    }
    default:
      return sum_turn(
          std::string(rng.one_of({"What is half of it?", "And half as many?",
                                  "How many are in one half?", "Take one half of it."})),
          marked(rng, mark(value, '/', 2, value / 2)), value / 2);
  }
}

// --- estimates -----------------------------------------------------------------------------------

struct Estimate {
  std::string_view things;  // "slices of bread"
  std::string_view what;    // "eat"
  int rate;                 // a day and person
};
constexpr Estimate kEstimates[] = {{"slices of bread", "eat", 3},
                                   {"cups of tea", "drink", 2},
                                   {"letters", "write", 4},
                                   {"steps", "walk", 900},
                                   {"eggs", "use", 2},
                                   {"pages", "read", 20},
                                   {"bottles of water", "drink", 3},
                                   {"apples", "eat", 2},
                                   {"words", "say", 700},
                                   {"photos", "take", 6},
                                   {"songs", "hear", 12},
                                   {"plates", "wash", 5},
                                   {"questions", "ask", 15},
                                   {"doors", "open", 30},
                                   {"coins", "spend", 8},
                                   {"buttons", "press", 40}};

struct Period {
  std::string_view name;
  int days;
};
constexpr Period kPeriods[] = {{"week", 7}, {"month", 30}, {"season", 90}, {"year", 365}};
constexpr std::string_view kGroups[] = {"a town",    "a ship",    "a school",
                                        "a company", "a village", "a hotel"};

// --- programs ------------------------------------------------------------------------------------

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string with_word(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const std::size_t end = at + from.size();
    const bool whole =
        (at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]));
    if (whole) text.replace(at, from.size(), to);
    at += whole ? to.size() : from.size();
  }
  return text;
}

ChatTurn code_turn(std::string question, const PyProgram& p, const std::string& name) {
  Json tests = Json::array();
  for (std::size_t i = 0; i < p.calls.size(); i++)
    tests.push_back({with_word(p.calls[i], p.name, name), p.results[i]});
  const Json check = {
      {"form", "codesearchnet"}, {"before", ""}, {"setup", Json::array()}, {"tests", tests}};
  return {std::move(question), std::string(trimmed(with_word(p.code(), p.name, name))), "py",
          check.dump(), name};
}

// --- plans ---------------------------------------------------------------------------------------

// The state after an action, in words; "" if the action is impossible.
std::string state_after(const Json& init, const std::string& action) {
  std::vector<std::string> phrases;
  for (const auto& fact : init) phrases.push_back(fact_phrase(fact.get<std::string>()));
  auto scene = read_state_text(enumerated(phrases));
  const auto move = read_move(action);
  if (!scene || !move || !apply_move(*scene, *move).empty()) return {};
  std::vector<std::string> after;
  for (const std::string& fact : scene_facts(*scene)) after.push_back(fact_phrase(fact));
  return enumerated(after);
}

ChatTurn plan_follow_up(Random& rng, const Json& check, const std::vector<std::string>& actions) {
  const std::string n = std::to_string(actions.size());
  const std::string state = state_after(check.at("init"), actions[0]);
  if (state.empty() || rng.chance(50))
    return {std::string(rng.one_of({"How many actions are that?", "How many steps does it take?",
                                    "Count the actions.", "How long is this plan?"})),
            fill(rng.one_of({"The plan has {0} actions.", "It takes {0} steps.",
                             "The number of actions is {0}.", "You need {0} steps."}),
                 {n}),
            "arith", Json{{"form", "final"}, {"answer", actions.size()}}.dump(), n};
  return {std::string(rng.one_of({"What do I have after the first action?",
                                  "How does it look after the first step?",
                                  "Do the first step. What is there then?",
                                  "What is the state behind the first action?"})),
          std::string(rng.one_of({"Now", "After that", "Then", "Behind it"})) + " I have that, " +
              state + ".",
          "blocks",
          Json{{"form", "state"},
               {"init", check.at("init")},
               {"goal", check.at("goal")},
               {"action", actions[0]}}
              .dump(),
          "state"};
}

}  // namespace

std::optional<ChatDialog> math_dialog(Random& rng, int level, Split split) {
  ArithProblem problem;
  if (!draw_arith_problem(rng, level, problem) || split_of_key(problem.key) != split)
    return std::nullopt;
  ChatTurn first = sum_turn(problem.text, arith_rationale(problem, "\n"), problem.answer);
  return ChatDialog{std::move(first), one_step_more(rng, problem.answer)};
}

std::optional<ChatDialog> fermi_dialog(Random& rng, int level, Split split) {
  const Estimate& estimate = rng.pick(kEstimates);
  const Period& period = rng.pick(kPeriods);
  const int n_people = level == 1 ? rng.between(2, 99) : rng.between(10, level == 2 ? 300 : 900);
  const std::string_view group = rng.pick(kGroups);
  const std::string people = std::to_string(n_people);
  if (split_of_key("fermi|" + std::string(estimate.things) + "|" + std::string(period.name) + "|" +
                   people) != split)
    return std::nullopt;
  const int a_day = n_people * estimate.rate;
  const std::int64_t all = std::int64_t{a_day} * period.days;
  if (all > 2000000) return std::nullopt;
  const std::string rate = std::to_string(estimate.rate), days = std::to_string(period.days);
  const std::string question =
      fill(rng.one_of({"How many {0} do the {1} people of {2} {3} in a {4}?",
                       "{2} has {1} people. How many {0} do they {3} in a {4}?",
                       "Estimate how many {0} {1} people in {2} {3} in a {4}.",
                       "About how many {0} would {1} people of {2} {3} in one {4}?"}),
           {estimate.things, people, group, estimate.what, period.name});
  const std::string lines =
      fill(rng.one_of({"Say they {0} {1} a day each.", "I take it that each has {1} a day.",
                       "About {1} a day for each.", "Let it be {1} a day for each of them."}),
           {estimate.what, rate}) +
      "\n" +
      fill(rng.one_of({"A day has {0} {1}.", "In a day it is {0} {1}.", "So a day makes {0} {1}.",
                       "That is {0} {1} a day."}),
           {mark(n_people, '*', estimate.rate, a_day), estimate.things}) +
      "\n" +
      fill(rng.one_of({"A {0} has {1} days: {2}.", "With {1} days in a {0}: {2}.",
                       "In a {0} of {1} days: {2}.", "A {0} is {1} days, so {2}."}),
           {period.name, days, mark(a_day, '*', period.days, all)});
  const int times = rng.between(2, 5);
  const std::string m = std::to_string(times);
  ChatTurn second =
      sum_turn(fill(rng.one_of({"And for {0} times as many people?",
                                "What if there are {0} times as many people?",
                                "And in {0} such places?", "How many is it {0} times?"}),
                    {m}),
               marked(rng, mark(all, '*', times, all * times)), all * times);
  return ChatDialog{sum_turn(capitalised(question), lines, all), std::move(second)};
}

std::optional<ChatDialog> reasoning_dialog(Random& rng, int level, Split split) {
  const TaskGenerator& blocks = task_generator("blocks");
  const auto record = blocks.make(split, std::min(level, 2), rng.bits() >> 1);
  constexpr std::string_view kUser = "USER: ", kAssistant = " ASSISTANT:";
  if (!record || !record->prompt.starts_with(kUser)) return std::nullopt;
  const Json check = Json::parse(record->check);
  if (check.at("form") != "plan") return std::nullopt;
  const std::string question =
      record->prompt.substr(kUser.size(), record->prompt.size() - kUser.size() - kAssistant.size());
  const std::vector<std::string> actions = split_text(replaced_all(record->answer, "; ", ";"), ';');
  return ChatDialog{ChatTurn{question, std::string(trimmed(record->completion)), "blocks",
                             record->check, record->answer},
                    plan_follow_up(rng, check, actions)};
}

std::optional<ChatDialog> coding_dialog(Random& rng, int level, Split split) {
  PyProgram p;
  if (!draw_py_function(rng, level, split, p)) return std::nullopt;
  const std::string head = p.signature.substr(4, p.signature.size() - 5);
  const bool steps = p.doc.starts_with("Take ");
  const std::string question =
      steps ? fill(rng.one_of({"Write the function {0}. {1}.", "{1}. Write it as {0}.",
                               "I need {0} for this: {1}.", "Define {0} in Python. {1}."}),
                   {head, p.doc})
            : fill(rng.one_of({"Write a Python function {0} that returns {1}.",
                               "Write {0} in Python. It returns {1}.",
                               "I need a function {0} to get {1}.",
                               "Define the function {0}, which gives back {1}."}),
                   {head, p.doc});
  const std::string name(rng.one_of({"compute", "work_out", "get_result", "solve", "find_it",
                                     "helper", "my_function", "answer_of"}));
  if (name == p.name) return std::nullopt;
  return ChatDialog{code_turn(question, p, p.name),
                    code_turn(fill(rng.one_of({"Call it {0} instead.", "Change its name to {0}.",
                                               "Write it again with the name {0}.",
                                               "I would like to call it {0}."}),
                                   {name}),
                              p, name)};
}

}  // namespace engine
