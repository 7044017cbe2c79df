// The arith task: word problems with a rationale, in the layout of GSM8K, as multiple choice (AQuA), and
// in the four forms that a tree of thoughts over sub-questions needs (SEED): sub-question, sub-answer,
// evaluation, final answer.
//   key   the start value, the operations and their numbers
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/arith/problem.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

Json check_of(const char* form, const ArithProblem& problem) {
  Json check;
  check["form"] = form;
  check["key"] = problem.key;
  return check;
}

Record layout_record(Random& rng, const ArithProblem& problem) {
  Record record;
  record.answer = std::to_string(problem.answer);
  Json check = check_of("gsm8k", problem);
  check["answer"] = problem.answer;
  record.check = check.dump();
  const std::string text =
      arith_rationale(problem, "\n") + "\n#### " + std::to_string(problem.answer);
  if (rng.chance(50)) {
    record.prompt = "Question:\n" + problem.text + "\nAnswer:\nLet's think step by step.\n";
    record.completion = text + "\n";
  } else {
    set_chat(record, problem.text, text);
  }
  return record;
}

// Results of typical errors: the last step left out, the opposite operation, a near miss, two digits
// swapped.
std::vector<int> wrong_options(Random& rng, const ArithProblem& problem) {
  std::vector<int> wrong;
  const auto& last = problem.steps.back();
  wrong.push_back(problem.steps.size() > 1
                      ? problem.steps[problem.steps.size() - 2].calculations.back().result
                      : problem.start);
  std::string turned = last.calculations.back().expression;
  const auto op = turned.find_first_of("+-*/");
  turned[op] = last.turned_op;
  if (const auto value = evaluate_expression(turned)) wrong.push_back(static_cast<int>(*value));
  const int step = rng.between(1, 10);
  wrong.push_back(problem.answer + (rng.chance(50) ? step : -step));
  std::string digits = std::to_string(problem.answer);
  if (digits.size() >= 2) {
    const int at = rng.below(static_cast<int>(digits.size()) - 1);
    std::swap(digits[at], digits[at + 1]);
    if (digits[0] != '0') wrong.push_back(std::stoi(digits));
  }
  return wrong;
}

std::optional<Record> choice_record(Random& rng, const ArithProblem& problem) {
  std::set<int> seen = {problem.answer};
  std::vector<int> options = {problem.answer};
  for (const int wrong : wrong_options(rng, problem))
    if (wrong > 0 && wrong < 10000 && options.size() < 5 && seen.insert(wrong).second)
      options.push_back(wrong);
  while (options.size() < 5) {
    const int wrong = problem.answer + rng.between(-12, 12);
    if (wrong > 0 && seen.insert(wrong).second) options.push_back(wrong);
  }
  rng.shuffle(options);
  std::string choices;
  char letter = 'A';
  for (int i = 0; i < 5; i++) {
    choices +=
        (i ? ", " : " ") + std::to_string(options[i]) + " (" + static_cast<char>('A' + i) + ")";
    if (options[i] == problem.answer) letter = static_cast<char>('A' + i);
  }
  Record record;
  record.answer = std::string(1, letter);
  Json check = check_of("aqua", problem);
  check["answer"] = record.answer;
  record.check = check.dump();
  const std::string stem = problem.text + " Answer Choices:" + choices;
  const bool paper_form = rng.chance(50);
  // The letter follows the value here and in the question, so that a model can copy both in order.
  const std::string chosen = fill(rng.one_of({"That is {0} ({1}).", "So {0} ({1}) is right.",
                                              "{0} stands at ({1}).", "The choice is {0} ({1})."}),
                                  {std::to_string(problem.answer), record.answer});
  const std::string text =
      arith_rationale(problem, " ") + " " + chosen + " So the answer is (" + record.answer + ").";
  if (paper_form) {
    record.prompt = "Q: " + stem + "\nA:";
    record.completion = " " + text;
  } else {
    set_chat(record, stem, text);
  }
  return record;
}

// --- the forms of a tree of thoughts over sub-questions -------------------------------------------

std::vector<std::string> sub_questions(const ArithProblem& problem, const ArithStep& step) {
  std::vector<std::string> list;
  if (step.sentence.empty())  // the final sum for two people
    return {"How many " + problem.thing + " do they have together?",
            "How many " + problem.thing + " are there when both are counted?",
            "What is the number of " + problem.thing + " of both?",
            "How many " + problem.thing + " do both have in all?"};
  for (const char* pattern :
       {"How many {0} does {1} have {2}?", "What is the number of {0} that {1} has {2}?",
        "How many {0} are there for {1} {2}?", "{3}, how many {0} does {1} have?"})
    list.push_back(
        fill(pattern, {problem.thing, step.subject, step.after, capitalised(step.after)}));
  if (step.after.find("dollars") != std::string::npos)
    list = {"How many dollars do the " + problem.thing + " cost " + step.after + "?",
            "What is the price of the " + problem.thing + " " + step.after + "?",
            "How much do the " + problem.thing + " cost " + step.after + "?",
            capitalised(step.after) + ", how much do the " + problem.thing + " cost?"};
  return list;
}

std::string history(Random& rng, const ArithProblem& problem, int n_steps, bool lines_only) {
  std::string text;
  for (int i = 0; i < n_steps; i++) {
    const std::string number = std::to_string(i + 1);
    if (!lines_only)
      text += "Sub-question " + number + ": " + rng.pick(sub_questions(problem, problem.steps[i])) +
              "\n";
    text += (lines_only ? "Step " : "Answer ") + number + ": " + step_lines(problem.steps[i], " ") +
            "\n";
  }
  return text;
}

Record question_record(Random& rng, const ArithProblem& problem, int at) {
  Record record;
  const auto accepted = sub_questions(problem, problem.steps[at]);
  const std::string& text = rng.pick(accepted);
  record.answer = text;
  Json check = check_of("sub-question", problem);
  check["accepted"] = accepted;
  record.check = check.dump();
  const std::string shown = history(rng, problem, at, rng.chance(50));
  if (rng.chance(50)) {
    record.prompt =
        "Question: " + problem.text + "\n" + shown + "Sub-question " + std::to_string(at + 1) + ":";
    record.completion = " " + text;
  } else {
    set_chat(record,
             problem.text + "\n" + shown +
                 std::string(rng.one_of({"What should we ask next?", "Ask the next sub-question.",
                                         "Which question comes next?", "Give the next question."})),
             text);
  }
  return record;
}

Record answer_record(Random& rng, const ArithProblem& problem, int at) {
  Record record;
  const auto& step = problem.steps[at];
  record.answer = std::to_string(step.calculations.back().result);
  Json check = check_of("sub-answer", problem);
  check["answer"] = step.calculations.back().result;
  record.check = check.dump();
  const std::string shown = history(rng, problem, at, rng.chance(50));
  const std::string question = rng.pick(sub_questions(problem, step));
  const std::string text = step_lines(step, " ");
  if (rng.chance(50)) {
    record.prompt = "Question: " + problem.text + "\n" + shown + "Sub-question " +
                    std::to_string(at + 1) + ": " + question + "\nAnswer " +
                    std::to_string(at + 1) + ":";
    record.completion = " " + text;
  } else {
    set_chat(record, problem.text + "\n" + shown + question, text);
  }
  return record;
}

Record final_record(Random& rng, const ArithProblem& problem) {
  Record record;
  record.answer = std::to_string(problem.answer);
  Json check = check_of("final", problem);
  check["answer"] = problem.answer;
  record.check = check.dump();
  const std::string shown =
      history(rng, problem, static_cast<int>(problem.steps.size()), rng.chance(50));
  const std::string text = fill(rng.one_of({"The answer is {0}.", "So the answer is {0}.",
                                            "The final answer is {0}.", "We get {0}."}),
                                {record.answer});
  if (rng.chance(50)) {
    record.prompt = "Question: " + problem.text + "\n" + shown + "Final answer:";
    record.completion = " " + text;
  } else {
    set_chat(record, problem.text + "\n" + shown + "What is the final answer?", text);
  }
  return record;
}

// A step to be evaluated.
struct ShownStep {
  std::string text;
  std::string reason;  // of the score
  bool right = true;
};

// @param kind  0: the right step, 1: with a wrong result, 2: with the opposite operation
ShownStep shown_step(Random& rng, const ArithStep& step, int kind) {
  const auto right = step.calculations.back();
  Calculation shown = right;
  const std::string needed = right.expression;
  const std::string result = std::to_string(right.result);
  ShownStep out;
  if (kind == 2) {  // the opposite operation, calculated correctly
    std::string turned = needed;
    turned[turned.find_first_of("+-*/")] = step.turned_op;
    const auto value = evaluate_expression(turned);
    if (value && *value > 0 && *value < 10000 && *value != right.result) {
      shown = {turned, static_cast<int>(*value)};
      out.right = false;
      out.reason =
          fill(rng.one_of({"It should be {0}.", "The problem asks for {0} here.",
                           "The wrong operation is used: {0} is needed.", "Here {0} is needed."}),
               {needed});
    }
  }
  if (kind == 1 || (kind == 2 && out.right)) {  // a wrong result
    int slip = rng.between(1, 9);
    if (rng.chance(50) && right.result > slip) slip = -slip;
    shown.result = right.result + slip;
    out.right = false;
    out.reason = fill(rng.one_of({"The sum is wrong: {0} is {1}.", "{0} is not {2}.",
                                  "There is a slip: {0} makes {1}.", "The result should be {1}."}),
                      {needed, result, std::to_string(shown.result)});
  }
  if (out.right)
    out.reason =
        rng.one_of({"The sum is right.", "The step follows from the problem.",
                    "The numbers and the sum are correct.", "This is what the problem says."});
  ArithStep copy = step;
  copy.calculations.back() = shown;
  out.text = step_lines(copy, " ");
  return out;
}

Record evaluation_record(Random& rng, const ArithProblem& problem, int at) {
  Record record;
  const auto shown = shown_step(rng, problem.steps[at], rng.weighted({2, 1, 1}));
  const int score = shown.right ? rng.between(8, 10) : rng.between(1, 3);
  record.answer = shown.right ? "good" : "bad";
  Json check = check_of("evaluation", problem);
  check["good"] = shown.right;
  record.check = check.dump();
  const std::string before = history(rng, problem, at, true);
  const std::string text = "Score: " + std::to_string(score) + "\n" + shown.reason;
  if (rng.chance(50)) {
    record.prompt = "Question: " + problem.text + "\n" + before + "Step " + std::to_string(at + 1) +
                    ": " + shown.text + "\nEvaluation:";
    record.completion = " " + text;
  } else {
    set_chat(
        record,
        problem.text + "\n" + before + "Next: " + shown.text + "\n" +
            std::string(rng.one_of({"How good is this step?", "Rate the last step from 1 to 10.",
                                    "Is this step right? Give a score.", "Score this step."})),
        text);
  }
  return record;
}

class ArithTask final : public TaskGenerator {
 public:
  std::string_view name() const override { return "arith"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    try {
      const Json check = Json::parse(record.check);
      const std::string form = check.at("form");
      const std::string_view text = completion_body(completion);
      if (form == "gsm8k") return check_final_number(text, check.at("answer"), "####");
      if (form == "aqua") return check_choice(text, check.at("answer").get<std::string>());
      if (form == "sub-answer" || form == "final")
        return check_final_number(text, check.at("answer"), "");
      if (form == "sub-question") return check_question(text, check.at("accepted"));
      if (form == "evaluation") return check_score(text, check.at("good"));
      throw Error(ErrorCode::BadInput, record.id + ": check.form: found '" + form + "'");
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    ArithProblem problem;
    if (!draw_arith_problem(rng, level, problem)) return std::nullopt;
    if (split_of_key(problem.key) != split) return std::nullopt;
    const int at = rng.below(static_cast<int>(problem.steps.size()));
    switch (rng.weighted({50, 20, 8, 8, 9, 5})) {
      case 0:
        return layout_record(rng, problem);
      case 1:
        return choice_record(rng, problem);
      case 2:
        return question_record(rng, problem, at);
      case 3:
        return answer_record(rng, problem, at);
      case 4:
        return evaluation_record(rng, problem, at);
      default:
        return final_record(rng, problem);
    }
  }

 private:
  static CheckResult check_question(std::string_view text, const Json& accepted) {
    const std::string question = normalised(text);
    for (const auto& wording : accepted)
      if (normalised(wording.get<std::string>()) == question) return {true, {}};
    return {false, "the question differs from every accepted wording"};
  }
};

}  // namespace

std::unique_ptr<TaskGenerator> make_arith_task() {
  return std::make_unique<ArithTask>();
}

}  // namespace engine
