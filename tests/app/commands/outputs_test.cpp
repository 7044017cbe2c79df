// Outputs of commands: they replace no foreign file and no input, are complete or absent under the
// system's limits, and are each written even if another failed.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

const std::string kRecipes = DECOSCOPE_SOURCE_DIR "/assets/recipes/";
const std::string kModels = DECOSCOPE_SOURCE_DIR "/assets/models/";

class CliOutputs : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    std::ofstream(folder + "/pieces.json")
        << R"({"name": "pieces", "mixture": {"arith": {"weight": 1}}, "vocab_size": 640,
               "sample_bytes": 60000})";
    std::ofstream(folder + "/small.json")
        << R"({"name": "small", "mixture": {"arith": {"weight": 1}}, "model": {"layers": 1,
               "dim": 32, "hidden_dim": 64, "heads": 1, "max_seq_len": 64}, "context": 64,
               "batch_tokens": 256, "tokens": 1000})";
  }
  std::string recipe_of(const std::string& kind) const {
    if (kind == "tokenizer") return folder + "/pieces.json";
    if (kind == "target" || kind == "draft") return folder + "/small.json";
    return kRecipes + (kind == "outputs" ? "tiny-medusa" : "tiny-" + kind) + ".json";
  }
  std::string copy_of(const std::string& model, const std::string& name) const {
    const std::string to = folder + "/" + name;
    fs::copy(kModels + model, to);
    return to;
  }
  Outcome train(const std::string& kind, const std::string& more) const {
    return run("train " + kind + " --recipe " + recipe_of(kind) + " " + more);
  }
  void expect_refused(const Outcome& outcome, const std::string& why) const {
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  }
  /// The name and content of every file in a folder.
  static std::vector<std::string> contents(const std::string& in) {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(in))
      all.push_back(entry.path().filename().string() + read_file(entry.path().string()));
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(CliOutputs, training_does_not_overwrite_a_foreign_model) {
  const std::string mine = copy_of("demo-draft", "mine");
  const auto before = contents(mine);
  for (const std::string kind : {"tokenizer", "target", "draft", "medusa", "chimera", "cllm"}) {
    SCOPED_TRACE(kind);
    expect_refused(train(kind, "--out " + mine), "mine: exists and is not empty");
    if (kind != "tokenizer")
      expect_refused(train(kind, "--resume --out " + mine), "has no run to resume");
    EXPECT_EQ(contents(mine), before);
  }
  expect_refused(train("target", "--out " + mine + "/config.json"), "found a file");
}

TEST_F(CliOutputs, training_does_not_overwrite_its_inputs) {
  const std::string target = copy_of("demo-target", "target");
  fs::create_directory_symlink(target, folder + "/link");
  const auto before = contents(target);
  struct Case {
    std::string kind, reads, out, why;
  };
  for (const Case& c : std::vector<Case>{
           {"medusa", "--target " + target, target, "is --target"},
           {"chimera", "--target " + target, folder + "/link", "is --target"},
           {"medusa", "--target " + folder + "/link", target + "/heads", "lies inside --target"},
           {"medusa", "--target " + target, folder, "holds --target"},
           {"outputs", "--target " + target, target, "lies inside --target"},
           {"cllm", "--from " + target, folder + "/link/sub/..", "lies inside --from"},
           {"target", "--from " + target, target, "is --from"},
           {"draft", "--tokenizer " + target, folder + "/link", "is --tokenizer"},
           {"target", "--data " + target, target, "is --data"},
           {"tokenizer", "--data " + target, target, "is --data"},
       }) {
    SCOPED_TRACE(c.kind + " " + c.out);
    for (const char* resume : {"", " --resume"})
      expect_refused(train(c.kind, c.reads + " --out " + c.out + resume), c.why);
    EXPECT_EQ(contents(target), before);
  }
  fs::create_directory(folder + "/cards");
  fs::copy_file(folder + "/small.json", folder + "/cards/README.md");
  expect_refused(
      run("train target --recipe " + folder + "/cards/README.md --out " + folder + "/cards"),
      "would replace --recipe");
}

TEST_F(CliOutputs, training_resumes_only_in_its_own_folder) {
  const std::string out = folder + "/run";
  ASSERT_EQ(train("target", "--out " + out).code, 0);
  expect_refused(train("target", "--out " + out),
                 "this directory has a saved run; continue with --resume");
  EXPECT_EQ(train("target", "--resume --out " + out).code, 0);
  std::ofstream(folder + "/other.json")
      << R"({"name": "other", "mixture": {"sql": {"weight": 1}}, "model": {"layers": 1, "dim": 32,
             "hidden_dim": 64, "heads": 1, "max_seq_len": 64}, "context": 64, "tokens": 1000})";
  const auto before = contents(out);
  const std::string other = "train target --recipe " + folder + "/other.json --out " + out;
  for (const char* how : {" --resume", " --export"}) {
    const Outcome outcome = run(other + how);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_NE(outcome.err.find("another recipe"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(contents(out), before);
  EXPECT_EQ(run("train target --export --recipe " + folder + "/small.json --out " + folder).code, 3)
      << "no checkpoint";
  fs::remove(out + "/checkpoint.bin");
  expect_refused(train("target", "--resume --out " + out), "has no run to resume");
}

TEST_F(CliOutputs, hidden_and_partial_files_are_ignored) {
  const std::string out = folder + "/run";
  fs::create_directory(out);
  std::ofstream(out + "/.began") << "1";
  std::ofstream(out + "/model.safetensors.part123") << "half";
  EXPECT_EQ(train("target", "--resume --out " + out).code, 0);
  EXPECT_TRUE(fs::exists(out + "/model.safetensors"));
}

TEST_F(CliOutputs, a_refused_training_leaves_no_folder) {
  const std::string out = folder + "/deep/out";
  EXPECT_EQ(train("target", "--tokenizer " + folder + "/none --out " + out).code, 3);
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(CliOutputs, two_processes_do_not_write_one_output) {
  const std::string out = folder + "/run", texts = folder + "/texts.jsonl";
  fs::create_directory(out);
  std::ofstream(texts).close();
  std::ofstream(folder + "/figures.jsonl.lock").close();
  std::vector<int> held;
  for (const std::string& path : {out, texts, folder + "/figures.jsonl.lock"}) {
    held.push_back(open(path.c_str(), O_RDONLY));
    ASSERT_EQ(flock(held.back(), LOCK_EX | LOCK_NB), 0);
  }
  const std::string why = "another process is writing to it";
  expect_refused(train("target", "--out " + out), why);
  expect_refused(train("medusa", "--out " + out), why);
  expect_refused(train("cllm", "--out " + out), why);
  expect_refused(run("model random --config " + tiny_config() + " " + out), why);
  const Outcome outputs = train("outputs", "--resume --texts " + texts);
  EXPECT_EQ(outputs.code, 2) << outputs.err;
  EXPECT_NE(outputs.err.find(why), std::string::npos) << outputs.err;
  const Outcome score =
      run("model score --task arith --count 1 --resume " + folder + "/figures.jsonl");
  EXPECT_EQ(score.code, 2) << score.err;
  EXPECT_NE(score.err.find(why), std::string::npos) << score.err;
  for (const int fd : held) close(fd);
  EXPECT_EQ(train("target", "--out " + out).code, 0);
}

TEST_F(CliOutputs, files_of_another_kind_are_not_replaced) {
  const std::string note = folder + "/note.txt";
  std::ofstream(note) << "a note without a line's end";
  const auto kept = [&](const std::string& arguments, int code, const std::string& why) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(read_file(note), "a note without a line's end") << arguments;
  };
  kept("model tree demo-medusa --rows 4 --out " + note, 2, "exists and is not a token tree");
  kept("model score --task arith --count 1 --resume " + note, 3, "expected figures");
  kept("train outputs --resume --recipe " + recipe_of("outputs") + " --texts " + note, 3,
       "expected texts of a target");
  kept("train outputs --recipe " + recipe_of("outputs") + " --texts " + note, 2, "--resume");
  kept("model random --config " + tiny_config() + " " + note, 2, "note.txt: found a file");
  kept("model scale demo-draft " + note, 2, "note.txt: found a file");
}

TEST_F(CliOutputs, a_tree_replaces_a_tree) {
  const std::string tree = folder + "/tree.json", command = "model tree demo-medusa --out " + tree;
  ASSERT_EQ(run(command + " --rows 4").code, 0);
  const std::string first = read_file(tree);
  ASSERT_EQ(run(command + " --rows 8").code, 0);
  EXPECT_NE(read_file(tree), first);
}

TEST_F(CliOutputs, a_model_is_not_written_into_its_source) {
  const std::string model = tiny_model();
  const auto before = contents(model);
  expect_refused(run("model scale " + model + " " + model), "is the model");
  expect_refused(run("model scale " + model + " " + model + "/large"), "lies inside the model");
  EXPECT_EQ(contents(model), before);
}

// Batch systems set a file size limit, whose signal would kill the process.
TEST_F(CliOutputs, a_file_size_limit_acts_like_a_full_disk) {
  const auto refused = [&](const std::string& arguments, const std::string& file) {
    const Outcome outcome = shell("cd " + folder + "; ulimit -f 8; $DECOSCOPE " + arguments);
    EXPECT_EQ(outcome.code, 4) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find(file), std::string::npos) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find("File too large"), std::string::npos) << arguments << outcome.err;
  };
  const std::string long_text = "generate --prompt Anna --ignore-eos --max-tokens 300 ";
  ASSERT_EQ(shell("cd " + folder + "; $DECOSCOPE " + long_text + "--record whole.pdrun").code, 0);
  refused(long_text + "--record r.pdrun", "r.pdrun");
  EXPECT_FALSE(fs::exists(folder + "/r.pdrun"));
  EXPECT_EQ(run("trace info " + folder + "/r-partial.pdrun").code, 0) << "complete frames are kept";
  refused(long_text + "--trace t.json", "t.json");
  EXPECT_FALSE(fs::exists(folder + "/t.json"));
  for (const std::string to : {"c.json", "c.csv", "c.txt", "c.pdrun"}) {
    refused("trace convert whole.pdrun " + to, "c");
    for (const auto& entry : fs::directory_iterator(folder))
      EXPECT_FALSE(entry.path().filename().string().starts_with("c")) << entry.path();
  }
  refused("train target --recipe small.json --out learned", "learned/");
  EXPECT_FALSE(fs::exists(folder + "/learned/model.safetensors"));
  refused("train tokenizer --recipe pieces.json --out pieces", "pieces/tokenizer.model");
  EXPECT_FALSE(fs::exists(folder + "/pieces"));
  refused("model scale demo-draft scaled", "scaled/model.safetensors");
  EXPECT_FALSE(fs::exists(folder + "/scaled"));
  refused("data generate arith --count 100 >records", "standard output");
  refused("data generate arith --count 100 --json >records", "standard output");
}

TEST_F(CliOutputs, each_output_is_tried_and_each_failure_reported) {
  const std::string text = "generate --prompt Anna --ignore-eos --max-tokens 300 ";
  const Outcome both = shell("cd " + folder + "; ulimit -f 8; $DECOSCOPE " + text +
                             "--record r.pdrun --trace t.json");
  EXPECT_EQ(both.code, 4) << both.err;
  EXPECT_NE(both.err.find("r.pdrun: write"), std::string::npos) << both.err;
  EXPECT_NE(both.err.find("t.json: write"), std::string::npos) << both.err;
  // The compressed trace is smaller than the recording.
  ASSERT_EQ(run(text + "--record " + folder + "/w.pdrun --trace " + folder + "/w.json.gz").code, 0);
  const auto recording = fs::file_size(folder + "/w.pdrun"),
             trace = fs::file_size(folder + "/w.json.gz");
  ASSERT_LT(trace + 1024, recording);
  const Outcome one =
      shell("cd " + folder + "; ulimit -f " + std::to_string((trace + recording) / 2048) +
            "; $DECOSCOPE " + text + "--record s.pdrun --trace s.json.gz");
  EXPECT_EQ(one.code, 4) << one.err;
  EXPECT_NE(one.err.find("s.pdrun: write"), std::string::npos) << one.err;
  EXPECT_TRUE(fs::exists(folder + "/s.json.gz")) << one.err;
}

TEST_F(CliOutputs, a_cpu_time_limit_saves_the_training) {
  std::ofstream(folder + "/long.json")
      << R"({"name": "long", "mixture": {"arith": {"weight": 1}}, "model": {"layers": 1, "dim": 32,
             "hidden_dim": 64, "heads": 1, "max_seq_len": 64}, "context": 64, "batch_tokens": 256,
             "tokens": 4000000000, "checkpoint_minutes": 1000})";
  const std::string command = "train target --recipe " + folder + "/long.json --out ";
  for (const char* limit : {"ulimit -t 8", "ulimit -S -t 4"}) {
    const std::string out = folder + "/run" + std::to_string(limit[8] == 't' ? 1 : 2);
    const Outcome outcome = shell(std::string(limit) + "; $DECOSCOPE " + command + out);
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_NE(outcome.err.find("limit of CPU time"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("--resume"), std::string::npos) << outcome.err;
    EXPECT_TRUE(fs::exists(out + "/checkpoint.bin"));
  }
}

TEST_F(CliOutputs, a_thread_limit_is_a_resource_error) {
  const std::string as_nobody = "setpriv --reuid 65534 --clear-groups prlimit --nproc=";
  if (shell(as_nobody + "100 test -x $DECOSCOPE").code != 0)
    GTEST_SKIP() << "the program cannot be started as another user (root, setpriv, prlimit and a "
                    "readable checkout are needed): root has no limit of threads";
  const Outcome unlimited = shell(as_nobody + "100 $DECOSCOPE model info demo-target");
  ASSERT_EQ(unlimited.code, 0) << unlimited.err;
  const Outcome outcome =
      shell(as_nobody + "2 $DECOSCOPE generate --threads 8 --prompt Anna --max-tokens 2");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("cannot start thread"), std::string::npos) << outcome.err;
}

// An opened file takes the lowest free descriptor: that of a stream which the caller closed.
TEST_F(CliOutputs, closed_standard_streams_do_not_corrupt_a_recording) {
  const std::string recording = folder + "/r.pdrun";
  const Outcome outcome = shell("$DECOSCOPE generate --prompt Anna --max-tokens 2 --record " +
                                recording + " <&- >&- 2>&-");
  EXPECT_EQ(outcome.code, 4) << "stdout is closed";
  EXPECT_EQ(run("trace validate " + recording).code, 0);
}

TEST_F(CliOutputs, an_ignored_sighup_stays_ignored) {
  const std::string start =
      "trap \"\" HUP; $DECOSCOPE generate --prompt Anna --ignore-eos --max-tokens 900 & pid=$!; "
      "sleep 0.3; kill -HUP $pid; wait $pid";
  const Outcome outcome = shell(start);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(CliOutputs, file_and_memory_limits_are_resource_errors) {
  const std::string run_it = "; $DECOSCOPE generate --prompt Anna --max-tokens 3 --record ";
  int n_refused = 0;
  for (const std::string limit : {"-n 4", "-n 5", "-n 6", "-n 8", "-v 60000", "-v 80000"}) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (limit.starts_with("-v")) continue;  // the address space cannot be limited under a sanitizer
#endif
    const Outcome outcome = shell("ulimit " + limit + run_it + folder + "/r.pdrun");
    if (outcome.err.find("error while loading shared libraries") != std::string::npos) continue;
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 4) << limit << " " << outcome.err;
    n_refused += outcome.code == 4;
    EXPECT_TRUE(outcome.code == 0 || lines(outcome.err) <= 2) << limit << " " << outcome.err;
  }
  EXPECT_GT(n_refused, 0);
}

TEST_F(CliOutputs, an_ambiguous_model_name_is_noted) {
  const std::string here = "cd " + folder + "; ";
  copy_of("demo-draft", "demo-target");
  copy_of("demo-draft", "demo-draft");
  copy_of("demo-medusa", "demo-medusa");
  const std::string both =
      "demo-target: found the bundled model and the folder ./demo-target; the "
      "bundled model is used, name the folder ./demo-target";
  const auto count = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      n++;
    return n;
  };
  for (const std::string command :
       {"generate --prompt Anna --max-tokens 2 --json", "generate --prompt Anna --max-tokens 2",
        "compare --decoders ar,jacobi@demo-target --model demo-cllm --prompt Anna --max-tokens 2",
        "model info demo-target", "model info --json demo-target", "model validate demo-target",
        "bench decode --max-tokens 2 --repeat 1", "reason cot --count 1 --json",
        "model score --task arith --level 1 --count 1",
        "model scale demo-target scaled --scale 1x2", "model random --heads medusa heads"}) {
    const Outcome outcome = shell(here + "$DECOSCOPE " + command);
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
    EXPECT_EQ(count(outcome.err, both), 1) << command << "\n" << outcome.err;
    EXPECT_EQ(count(outcome.out, "./demo-target"), 0) << command << "\n" << outcome.out;
  }
  const Outcome drafts = shell(here +
                               "$DECOSCOPE generate --prompt Anna --max-tokens 2 --model "
                               "demo-cllm --decoder speculative --draft demo-draft");
  EXPECT_EQ(count(drafts.err, "note: demo-draft: found the bundled model and the folder"), 1)
      << drafts.err;
  const Outcome heads = shell(here + "$DECOSCOPE generate --prompt Anna --max-tokens 2 --model " +
                              kModels + "demo-target --decoder medusa --heads demo-medusa");
  EXPECT_EQ(count(heads.err, "note: demo-medusa: found the bundled model and the folder"), 1)
      << heads.err;
  const Outcome folder_named = shell(here + "$DECOSCOPE model info ./demo-target");
  EXPECT_EQ(folder_named.err, "");
  const Outcome stats = shell(here +
                              "$DECOSCOPE data generate arith --count 2 >r.jsonl; $DECOSCOPE "
                              "data stats --tokenizer demo-target r.jsonl");
  EXPECT_EQ(count(stats.err, "--tokenizer demo-target: the folder ./demo-target is used"), 1)
      << stats.err;
}

TEST_F(CliOutputs, a_folder_with_a_bundled_name_gets_a_hint) {
  const Outcome outcome = shell("cd " + folder +
                                "; $DECOSCOPE train target --recipe small.json "
                                "--out demo-target");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("refer to the folder just written as ./demo-target"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
