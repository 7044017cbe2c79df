// The py task: Python functions and classes, in the forms of HumanEval (signature and docstring ->
// body), MBPP (task and asserts -> code), CodeSearchNet (description -> function) and ClassEval
// (class docstring -> methods).
//   key      family, parameters and name as the prompt shows them; of a composition its stages
//   results  of the tests are computed in C++ while the program is composed (PyFamily::result), so
//            making records needs no Python
//   checker  CPython in the sandbox (run_python.h): the program's last line must be reached
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/py/program.h"
#include "engine/data/sandbox/run_python.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr int kShownCalls = 2;  // in a docstring

Json check_of(const char* form, const PyProgram& p, const std::string& before) {
  Json check;
  check["form"] = form;
  check["before"] = before;  // the part of the program in the prompt
  check["setup"] = p.setup;
  Json tests = Json::array();
  for (std::size_t i = 0; i < p.calls.size(); i++) tests.push_back({p.calls[i], p.results[i]});
  check["tests"] = tests;
  return check;
}

std::string returns(Random& rng, const PyProgram& p) {
  if (p.doc.starts_with("Take ")) return p.doc + ".";
  return fill(rng.one_of({"Return {0}.", "Compute {0}.", "Give back {0}.", "Find {0}."}), {p.doc});
}

std::string task_text(Random& rng, const PyProgram& p) {
  if (p.doc.starts_with("Take "))
    return fill(
        rng.one_of({"Write a function for this: {0}.", "Write a python function. {0}.",
                    "{0}. Write it as a function.", "Write a function that does this: {0}."}),
        {p.doc});
  return fill(
      rng.one_of({"Write a function to find {0}.", "Write a function that returns {0}.",
                  "Write a python function to get {0}.", "Write a function which computes {0}."}),
      {p.doc});
}

std::string lead(Random& rng) {
  return std::string(rng.one_of(
      {"", "Here is the function:\n", "You can write:\n", "This does it:\n", "Sure:\n"}));
}

Record human_eval(Random& rng, const PyProgram& p) {
  Record record;
  std::string head = p.signature + "\n    \"\"\" " + returns(rng, p) + "\n";
  for (int i = 0; i < kShownCalls; i++)
    head += "    >>> " + p.calls[i] + "\n    " + p.results[i] + "\n";
  head += "    \"\"\"\n";
  if (rng.chance(50)) {
    record.prompt = head;
    record.completion = p.body;
    record.check = check_of("humaneval", p, p.signature + "\n").dump();
    return record;
  }
  set_chat(
      record,
      std::string(rng.one_of({"Complete this function.\n", "Write the body of this function.\n",
                              "Finish the function:\n", "What is the code of this function?\n"})) +
          head,
      lead(rng) + p.code());
  record.check = check_of("humaneval", p, "").dump();
  return record;
}

Record mbpp(Random& rng, const PyProgram& p) {
  Record record;
  std::vector<std::string> tests;
  for (int i = 0; i < 3; i++) tests.push_back("assert " + p.calls[i] + " == " + p.results[i]);
  const std::string text = task_text(rng, p);
  record.check = check_of("mbpp", p, "").dump();
  if (rng.chance(50)) {
    record.prompt = "You are an expert Python programmer, and here is your task: " + text +
                    " Your code should pass these tests:\n\n" + joined(tests, "\n") + "\n[BEGIN]\n";
    record.completion = p.code() + "[DONE]\n";
    return record;
  }
  set_chat(record,
           text +
               std::string(rng.one_of({" It should pass these tests:\n", " Tests:\n",
                                       " These must hold:\n", " Your code has to satisfy:\n"})) +
               joined(tests, "\n"),
           lead(rng) + p.code());
  return record;
}

Record code_search(Random& rng, const PyProgram& p) {
  Record record;
  const std::string head = p.signature.substr(4, p.signature.size() - 5);
  record.check = check_of("codesearchnet", p, "").dump();
  if (rng.chance(50)) {
    record.prompt = "# " + returns(rng, p) + "\n# " + head + "\n";
    record.completion = p.code();
    return record;
  }
  set_chat(record,
           fill(rng.one_of({"Write the Python function {0}. {1}", "{1} Call the function {0}.",
                            "I need a function {0}. {1}", "Define {0} in Python. {1}"}),
                {head, returns(rng, p)}),
           lead(rng) + p.code());
  return record;
}

Record class_eval(Random& rng, const PyProgram& p) {
  Record record;
  if (rng.chance(50)) {
    record.prompt = p.signature + "\n";
    record.completion = p.body;
    record.check = check_of("classeval", p, p.signature + "\n").dump();
    return record;
  }
  set_chat(
      record,
      std::string(rng.one_of({"Write the methods of this class.\n", "Complete this class.\n",
                              "Finish the class:\n", "What are the methods of this class?\n"})) +
          p.signature,
      std::string(rng.one_of({"", "Here are the methods:", "The methods are:", "Sure:"})) + "\n" +
          p.body);
  record.check = check_of("classeval", p, p.signature + "\n").dump();
  return record;
}

bool starts_code(std::string_view line) {
  return line.starts_with("def ") || line.starts_with("class ") || line.starts_with("    def ");
}

// The program of a completion: the part in the prompt, then the completion's lines of code.
std::string program_of(const std::string& before, std::string_view completion) {
  std::string code = before;
  bool inside = !before.empty() && !before.starts_with("class ");
  bool seen_definition = false;
  for (const std::string& line : split_text(completion, '\n')) {
    if (line.starts_with("[DONE]") || line.starts_with("```")) {
      if (inside && seen_definition) break;
      continue;
    }
    const bool is_unindented = !line.empty() && line[0] != ' ';
    const std::string_view bare =
        line.starts_with(" def") ? std::string_view(line).substr(1) : line;
    if (!inside && !starts_code(bare)) continue;  // skips a sentence before the code
    // A completion of a definition that the prompt begins ends at the next line without indent.
    if (inside && is_unindented && !before.empty()) break;
    if (inside && is_unindented && seen_definition && !starts_code(bare)) break;
    inside = true;
    seen_definition = seen_definition || starts_code(bare);
    code += std::string(bare) + "\n";
  }
  return code;
}

class PyTask final : public TaskGenerator {
 public:
  std::string_view name() const override { return "py"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    const Tests tests = read_tests(record);
    std::string program = program_of(tests.before, without_end(completion)) + "\n";
    for (const auto& line : tests.setup) program += line + "\n";
    for (const auto& [call, result] : tests.calls)
      program += "assert " + call + " == " + result + "\n";
    const PythonRun run = run_python(program);
    if (!run.available) return {false, run.reason, true};
    return {run.passed, run.reason};
  }

  // draw() computes the expected results itself; tests compare them with CPython.
  CheckResult check_generated(const Record& record) const override {
    read_tests(record);
    return {true, {}};
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    PyProgram p;
    const bool is_class = rng.chance(level == 1 ? 0 : level == 2 ? 20 : 30);
    if (is_class ? !draw_py_class(rng, split, p) : !draw_py_function(rng, level, split, p))
      return std::nullopt;
    Record record;
    if (is_class) {
      record = class_eval(rng, p);
    } else {
      switch (rng.weighted({2, 2, 1})) {
        case 0:
          record = human_eval(rng, p);
          break;
        case 1:
          record = mbpp(rng, p);
          break;
        default:
          record = code_search(rng, p);
      }
    }
    record.answer = p.name;
    return record;
  }

 private:
  struct Tests {
    std::string before;
    std::vector<std::string> setup;
    std::vector<std::pair<std::string, std::string>> calls;
  };

  static Tests read_tests(const Record& record) {
    try {
      const Json check = Json::parse(record.check);
      Tests tests;
      tests.before = check.at("before");
      tests.setup = check.at("setup").get<std::vector<std::string>>();
      for (const auto& test : check.at("tests")) tests.calls.emplace_back(test.at(0), test.at(1));
      if (tests.calls.empty())
        throw Error(ErrorCode::BadInput,
                    record.id + ": check.tests: found none, expected calls with results");
      return tests;
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

  static std::string_view without_end(std::string_view completion) {
    constexpr std::string_view kEnd = "</s>";
    if (completion.ends_with(kEnd)) completion.remove_suffix(kEnd.size());
    return completion;
  }
};

}  // namespace

std::unique_ptr<TaskGenerator> make_py_task() {
  return std::make_unique<PyTask>();
}

}  // namespace engine
