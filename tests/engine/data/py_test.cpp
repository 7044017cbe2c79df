#include <gtest/gtest.h>

#include "engine/data/py/families.h"
#include "engine/data/py/mini_python.h"
#include "engine/data/record.h"
#include "engine/data/sandbox/run_python.h"
#include "tests/support/needs.h"

namespace engine {
namespace {

TEST(MiniPython, computes_what_cpython_computes) {
  const std::string source =
      "def f(a, b=2):\n    return a // b, a % b, a ** 2\n"
      "class Box:\n    def __init__(self):\n        self.d = {}\n"
      "    def put(self, k, v=1):\n        self.d[k] = self.d.get(k, 0) + v\n        return self\n";
  const char* expressions[] = {"f(-7)",
                               "f(7, -3)",
                               "[x * y for x in range(3) for y in [1, 2] if x != y]",
                               "{k: len(k) for k in 'ab cde'.split()}",
                               "sorted([3, 1, 2], key=lambda v: -v)",
                               "'abc'[::-1] + 'xyz'[1:] + 'hello'[-3:-1]",
                               "[1, 2, 3, 4, 5][-2::-2]",
                               "max(['aa', 'b', 'ccc'], key=len)",
                               "1 < 2 < 3 != 4",
                               "not [] and 'yes' or 'no'",
                               "'it\\'s' + \"q\"",
                               "(1,)",
                               "sum(x for x in range(5) if x % 2 == 1)",
                               "list(zip([1, 2], 'ab'))",
                               "list(enumerate('ab', 1))",
                               "'-'.join(sorted(set('banana')))",
                               "[0] * 3 + [None, True]",
                               "Box().put('a').put('a', 4).put('b').d",
                               "str([1, 'a'])",
                               "'a,b'.split(',')",
                               "'Hello World'.swapcase().count('o')",
                               "min([], default=0)",
                               "sorted({'b': 1, 'a': 2}.items())",
                               "-3 // 2",
                               "-3 % 5",
                               "2 if 1 in {1, 2} else 3"};
  MiniPython ours(source);
  for (const char* expression : expressions) {
    const std::string value = ours.evaluate(expression);
    const auto run = run_python(source + "\nassert repr(" + expression + ") == " + "repr(" + value +
                                "), repr(" + expression + ")\n");
    NEEDS(run.available, "no python3 here to compare with");
    EXPECT_TRUE(run.passed) << expression << " gives " << value << ": " << run.reason;
  }
}

TEST(MiniPython, refuses_what_it_does_not_know_instead_of_guessing) {
  for (const char* source :
       {"import os\n", "x = 1.5\n", "def f(:\n    pass\n", "x = [1, 2\n", "while True:\n    pass\n",
        "x = undefined\n", "x = 1 // 0\n", "x = 'a' + 1\n", "def f():\n    return f()\nx = f()\n",
        "x = [1][5]\n", "x = {}['k']\n", "  x = 1\n", "x = 99999999999999999999\n",
        "x = 9 ** 9 ** 9\n", "x = 'a' * 99999999\n"})
    EXPECT_THROW(MiniPython{source}, PyError) << source;
  EXPECT_THROW(MiniPython{std::string(5000, '(')}, PyError);
}

TEST(Py, cpython_agrees_with_the_expected_values_of_records) {
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

TEST(Py, an_endless_completion_is_ended) {
  const auto run = run_python("while True:\n    pass\n");
  NEEDS(run.available, run.reason);
  EXPECT_FALSE(run.passed);
}

TEST(Py, a_signal_to_our_group_does_not_reach_a_completion) {
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
