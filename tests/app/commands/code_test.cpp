// The program runs generated code in isolation, and without isolation only with --run-code.
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "engine/data/record.h"
#include "engine/data/sandbox/run_python.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class CliCode : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    NEEDS(engine::run_python("").available, engine::run_python("").reason);
    fs::create_directories(folder + "/precious");
    std::ofstream(folder + "/precious/notes.txt") << "notes";
  }
  /// A record whose code runs `statement` first.
  std::string file_with(const std::string& statement, const std::string& name = "py") const {
    for (int i = 0;; i++) {
      engine::Record record = *engine::task_generator("py").make(engine::Split::Train, 1, i);
      const auto def = record.completion.find("def ");
      if (def == std::string::npos) continue;
      if (!statement.empty())
        record.completion.insert(record.completion.find('\n', def) + 1, "    " + statement + "\n");
      const std::string path = folder + "/" + name + ".jsonl";
      std::ofstream(path) << engine::to_json_line(record) << "\n";
      return path;
    }
  }
  /// A shell prefix: a search path with python3 but without bubblewrap.
  std::string without_bubblewrap() const {
    const std::string bin = folder + "/bin";
    if (!fs::exists(bin)) {
      fs::create_directories(bin);
      const char* path = std::getenv("PATH");
      std::ofstream(bin + "/python3")
          << "#!/bin/sh\nPATH=\"" << (path ? path : "/usr/bin:/bin") << "\" exec python3 \"$@\"\n";
      fs::permissions(bin + "/python3", fs::perms::owner_all);
    }
    return "PATH=" + bin + " $DECOSCOPE ";
  }
};

TEST_F(CliCode, a_completion_cannot_delete_or_read_files) {
  const std::string deletes =
      file_with("import shutil; shutil.rmtree(\"" + folder + "/precious\", ignore_errors=True)");
  EXPECT_EQ(run("data check " + deletes).code, 0);
  EXPECT_TRUE(fs::exists(folder + "/precious/notes.txt"));
  EXPECT_EQ(run("data check " + deletes + " --run-code").code, 0)
      << "the code is isolated if that is possible";
  EXPECT_TRUE(fs::exists(folder + "/precious/notes.txt"));
  const std::string reads = file_with("open(\"" + folder + "/precious/notes.txt\")");
  EXPECT_EQ(run("data check " + reads).code, 3);
}

TEST_F(CliCode, a_completion_that_exits_with_0_is_wrong) {
  const Outcome outcome = run("data check --json " + file_with("raise SystemExit(0)"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("ended before its last line"));
}

TEST_F(CliCode, without_bubblewrap_code_is_not_run) {
  const std::string file = file_with("open(\"" + folder + "/trace\", \"w\")");
  ASSERT_EQ(run("data generate arith --count 2").code, 0);
  std::ofstream(file, std::ios::app) << run("data generate arith --count 2").out;
  const Outcome outcome = shell(without_bubblewrap() + "data check --json " + file);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("bwrap is not on the search path"),
                                 HasSubstr("install bubblewrap"), HasSubstr("--run-code")));
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["records"], 3);
  EXPECT_EQ(document["correct"], 2) << "answers without code are checked";
  EXPECT_EQ(document["not_checked"], 1);
  EXPECT_FALSE(fs::exists(folder + "/trace"));
}

TEST_F(CliCode, without_python_a_note_is_printed) {
  fs::create_directories(folder + "/empty");
  const Outcome outcome =
      shell("PATH=" + folder + "/empty $DECOSCOPE data check --json " + file_with(""));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["not_checked"], 1);
  EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no working python3"));
}

TEST_F(CliCode, forbidden_namespaces_are_reported) {
  const std::string ask = without_bubblewrap() + "data check " + file_with("");
  std::ofstream(folder + "/bin/bwrap")
      << "#!/bin/sh\necho \"bwrap: No permissions to create new namespace\" >&2\nexit 1\n";
  fs::permissions(folder + "/bin/bwrap", fs::perms::owner_all);
  const Outcome outcome = shell(ask);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("No permissions to create new namespace"));
}

TEST_F(CliCode, run_code_runs_without_isolation_and_reports_it) {
  const std::string touches =
      file_with("import os; os.remove(\"" + folder + "/precious/notes.txt\")");
  const Outcome outcome = shell(without_bubblewrap() + "data check --run-code " + touches);
  EXPECT_THAT(outcome.err, HasSubstr("note: the code of answers runs without isolation"));
  EXPECT_FALSE(fs::exists(folder + "/precious/notes.txt"));
  EXPECT_EQ(shell(without_bubblewrap() + "data check --run-code " + file_with("")).code, 0);
  EXPECT_EQ(shell(without_bubblewrap() + "data check --run-code " + file_with("exit(0)")).code, 3);
}

TEST_F(CliCode, scoring_py_is_refused_before_the_work) {
  for (const char* tasks : {"", "--task py ", "--task arith,py "}) {
    const Outcome outcome = shell(without_bubblewrap() + "model score --count 1 " + tasks);
    EXPECT_EQ(outcome.code, 4) << tasks << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("task py"), HasSubstr("bubblewrap"), HasSubstr("--run-code")));
  }
  const std::string one = "model score --model demo-draft --level 1 --count 1 ";
  EXPECT_EQ(shell(without_bubblewrap() + one + "--task kb").err, "");
  EXPECT_THAT(shell(without_bubblewrap() + one + "--task chat").err,
              HasSubstr("coding answers are not checked"));
  EXPECT_THAT(shell(without_bubblewrap() + one + "--task py --run-code").err,
              HasSubstr("without isolation"));
}

TEST_F(CliCode, training_on_checked_code_is_refused_before_the_work) {
  const std::string recipe = folder + "/recipe.json";
  json cllm = json::parse(read_file(DECOSCOPE_SOURCE_DIR "/assets/recipes/tiny-cllm.json"));
  cllm["mixture"] = {{"py", {{"weight", 1}}}};
  cllm["drop_wrong"] = true;
  std::ofstream(recipe) << cllm.dump();
  const Outcome outcome =
      shell(without_bubblewrap() + "train cllm --recipe " + recipe + " --out " + folder + "/cllm");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("bubblewrap"), HasSubstr("--run-code")));
  EXPECT_FALSE(fs::exists(folder + "/cllm"));
}

TEST_F(CliCode, help_says_that_code_is_run_and_how) {
  for (const char* command : {"data check", "model score", "train"})
    EXPECT_THAT(run(std::string(command) + " --help").out,
                AllOf(HasSubstr("--run-code"), HasSubstr("isolated by bubblewrap")));
}

}  // namespace
