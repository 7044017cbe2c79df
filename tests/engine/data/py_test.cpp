#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "engine/data/py/families.h"
#include "engine/data/py/program.h"
#include "engine/data/record.h"
#include "engine/data/sandbox/run_python.h"
#include "tests/support/needs.h"

namespace engine {
namespace {

// A program's definition and tests, as statements of a module.
std::string with_asserts(const PyProgram& p) {
  std::string text = p.code() + "\n";
  for (const std::string& line : p.setup) text += line + "\n";
  for (std::size_t i = 0; i < p.calls.size(); i++)
    text += "assert repr(" + p.calls[i] + ") == \"" + p.results[i] + "\", \"" + p.key + ": " +
            p.calls[i] + "\"\n";
  return text;
}

// The expected results of the tests are computed in C++ (PyFamily::result); CPython has to compute
// the same for every family, body, predicate and operation. Many programs share one module, which
// keeps the test short.
TEST(Py, cpython_agrees_with_the_computed_results) {
  std::set<std::string> drawn;  // families
  int n_classes = 0, n_compositions = 0;
  for (int batch = 0; batch < 25; batch++) {
    std::string module;
    for (int n = 0, seed = 0; n < 200; seed++) {
      Random rng(fnv1a("py/" + std::to_string(batch) + "/" + std::to_string(seed)));
      PyProgram p;
      const int kind = seed % 8;
      const bool found = kind == 0 ? draw_py_class(rng, Split::Train, p)
                                   : draw_py_function(rng, kind == 1 ? 3 : 2, Split::Train, p);
      if (!found) continue;
      n++;
      n_classes += kind == 0;
      n_compositions += kind == 1;
      drawn.insert(p.key.substr(0, p.key.find('|')));
      module += with_asserts(p);
    }
    const PythonRun run = run_python(module);
    NEEDS(run.available, run.reason);
    EXPECT_TRUE(run.passed) << run.reason;
  }
  // No record has grid_make: fewer than five of its results are short enough for a test.
  for (const PyFamily& family : py_families())
    EXPECT_EQ(drawn.contains(std::string(family.id)), family.id != "grid_make") << family.id;
  EXPECT_GT(n_classes, 300);
  EXPECT_GT(n_compositions, 300);
}

TEST(Py, division_rounds_down_as_in_python) {
  for (const PyInt a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (const PyInt b : {-3, -1, 1, 2, 3}) {
      EXPECT_EQ(py_divided(a, b), static_cast<PyInt>(std::floor(1.0 * static_cast<double>(a) /
                                                                static_cast<double>(b))));
      EXPECT_EQ(py_divided(a, b) * b + py_modulo(a, b), a);
      EXPECT_TRUE(py_modulo(a, b) == 0 || (py_modulo(a, b) < 0) == (b < 0));
    }
  }
}

TEST(Py, repr_is_written_as_python_writes_it) {
  EXPECT_EQ(py_repr(true), "True");
  EXPECT_EQ(py_repr(PyInt{-3}), "-3");
  EXPECT_EQ(py_repr(std::string("ab c")), "'ab c'");
  EXPECT_EQ(py_repr(PyGrid{{1, 2}, {}}), "[[1, 2], []]");
  EXPECT_EQ(py_repr(PyTable{{"a", 1}, {"b", 2}}), "{'a': 1, 'b': 2}");
  EXPECT_EQ(py_repr(PyTable{}), "{}");
}

TEST(Py, cpython_accepts_the_records) {
  const auto& task = task_generator("py");
  for (int level = 1; level <= 3; level++) {
    for (int i = 0; i < 12; i++) {
      const auto record = task.make(Split::Train, level, i);
      const auto result = task.check(*record, record->completion);
      NEEDS(!result.skipped, result.reason);
      EXPECT_TRUE(result.correct) << record->prompt << record->completion << result.reason;
    }
  }
}

TEST(Py, a_changed_completion_fails) {
  const auto& task = task_generator("py");
  int n_tried = 0;
  for (int i = 0; n_tried < 5; i++) {
    const auto record = task.make(Split::Train, 1, i);
    std::string changed = record->completion;
    const auto at = changed.find("return ");
    changed.insert(at + 7, "None and ");
    const auto result = task.check(*record, changed);
    NEEDS(!result.skipped, result.reason);
    n_tried++;
    EXPECT_FALSE(result.correct) << record->prompt << changed;
  }
}

TEST(Py, an_endless_program_is_stopped) {
  const auto run = run_python("while True:\n    pass\n");
  NEEDS(run.available, run.reason);
  EXPECT_FALSE(run.passed);
}

TEST(Py, a_completion_has_a_process_group_of_its_own) {
  const auto run = run_python("import os\nassert os.getpgrp() == os.getpid()\n");
  NEEDS(run.available, run.reason);
  EXPECT_TRUE(run.passed) << run.reason;
}

TEST(Py, a_completion_that_ends_early_fails) {
  const auto& task = task_generator("py");
  const auto record = task.make(Split::Train, 1, 0);
  for (const char* end :
       {"raise SystemExit(0)", "import os; os._exit(0)", "import os; os.kill(os.getpid(), 15)"}) {
    std::string changed = record->completion;
    const auto def = changed.find("def ");
    const auto body = def == std::string::npos ? 0 : changed.find('\n', def) + 1;
    changed.insert(body, std::string("    ") + end + "\n");
    const auto result = task.check(*record, changed);
    NEEDS(!result.skipped, result.reason);
    EXPECT_FALSE(result.correct) << changed;
  }
}

TEST(Py, there_are_sixty_families_or_more) {
  EXPECT_GE(py_families().size(), 60u);
}

}  // namespace
}  // namespace engine
