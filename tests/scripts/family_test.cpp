// scripts/train_family.sh and scripts/install_family.sh with a program that trains nothing
// (small_trainer.py): the stages that run, resume and are refused; the files that are installed.
#include <ctime>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scripts/script_fixture.h"

namespace {

namespace fs = std::filesystem;
using test::rows_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::vector<std::string> kModels = {"demo-target", "demo-draft", "demo-medusa",
                                          "demo-chimera", "demo-cllm"};

class FamilyScripts : public test::ScriptFixture {
 protected:
  void SetUp() override {
    ScriptFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    write(recipe("target"), "{\"tokens\": 1}");
    write(recipe("cllm"), "{\"epochs\": 1}");
  }

  std::string recipe(const std::string& name) const { return out() + "." + name + ".json"; }
  std::string models() const { return out() + ".models"; }

  /// Runs train_family.sh. @return  its exit code
  int trained(const std::string& settings = {}) const {
    const std::string trainer = DECOSCOPE_SOURCE_DIR "/tests/scripts/small_trainer.py";
    return code_of("DECOSCOPE_DATA=/sets DECOSCOPE_PROGRAM=" + trainer +
                       " DECOSCOPE_FAMILY_CLLM=" + recipe("cllm") + " " + settings,
                   "train_family.sh", recipe("target"));
  }
  int installed(const std::string& settings = {}) const {
    return code_of(settings, "install_family.sh", models());
  }
  /// The stages that ran since the last calls(): "draft", "tree demo-medusa".
  std::vector<std::string> stages() const {
    std::vector<std::string> names;
    for (const std::string& call : calls()) {
      std::istringstream words(call);
      std::string name, kind, of;
      words >> name >> kind >> of;
      if (kind == "score") words >> of;
      names.push_back(name == "model" ? kind + " " + fs::path(of).filename().string() : kind);
    }
    return names;
  }
  std::string card(const std::string& model) const {
    return read(out() + "/" + model + "/README.md");
  }
};

TEST_F(FamilyScripts, runs_every_stage_once) {
  ASSERT_EQ(trained(), 0) << errors();
  const auto lines = calls();
  ASSERT_THAT(lines, SizeIs(11));
  const std::string target = out() + "/demo-target", resumed = " --resume";
  const std::string recipes = DECOSCOPE_SOURCE_DIR "/assets/recipes";
  const std::string heads =
      " --target " + target + " --texts " + out() + "/texts/own_outputs.jsonl --out " + out();
  EXPECT_THAT(lines[0], HasSubstr("train tokenizer --recipe"));
  EXPECT_EQ(lines[1], "train target --recipe " + recipe("target") + " --tokenizer " + out() +
                          "/tokenizer --out " + target + resumed);
  EXPECT_THAT(lines[2], HasSubstr("train draft"));
  EXPECT_THAT(lines[3], HasSubstr("train outputs"));
  EXPECT_EQ(lines[4],
            "train medusa --recipe " + recipes + "/medusa.json" + heads + "/demo-medusa" + resumed);
  EXPECT_EQ(lines[5], "model tree " + out() + "/demo-medusa --rows 16 --out " + out() +
                          "/demo-medusa/tree.json");
  EXPECT_EQ(lines[6], "train chimera --recipe " + recipes + "/chimera.json" + heads +
                          "/demo-chimera" + resumed);
  EXPECT_THAT(lines[7], HasSubstr("model tree " + out() + "/demo-chimera"));
  EXPECT_EQ(lines[8], "train cllm --recipe " + recipe("cllm") + " --from " + target + " --out " +
                          out() + "/demo-cllm" + resumed);
  EXPECT_EQ(lines[9], "model score --model " + target + " --count 500 --resume " + out() +
                          "/scores-demo-target/figures.jsonl --write");
  EXPECT_THAT(lines[10], HasSubstr("model score --model " + out() + "/demo-cllm"));
  EXPECT_EQ(read(target + "/decoscope.json"),
            "{\"draft\": \"demo-draft\", \"medusa\": \"demo-medusa\", \"chimera\": "
            "\"demo-chimera\"}\n");
  for (const std::string& model : kModels) {
    EXPECT_THAT(card(model), HasSubstr("## Scores\n\nNone.\n\n## Time\n")) << model;
    EXPECT_THAT(rows_of(card(model)), Contains(SizeIs(2))) << model;
  }
  std::vector<std::string> stages_in_card;
  for (const auto& cells : rows_of(card("demo-target"))) stages_in_card.push_back(cells[0]);
  EXPECT_THAT(stages_in_card,
              ElementsAre("stage", "tokenizer", "demo-target", "scores-demo-target"));

  const std::string before = card("demo-target");
  EXPECT_EQ(trained(), 0) << errors();
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(card("demo-target"), before) << "the section and its times are unchanged";
  fs::remove_all(out() + "/demo-draft");
  EXPECT_EQ(trained(), 0) << errors();
  EXPECT_THAT(stages(), ElementsAre("draft"));
}

TEST_F(FamilyScripts, target_continues_from_given_weights) {
  const std::string from = out() + ".from";
  fs::create_directories(from);
  write(from + "/model.safetensors", "weights");
  write(from + "/tokenizer.model", "pieces");
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_FROM=" + from), 0) << errors();
  const auto lines = calls();
  ASSERT_THAT(lines, SizeIs(10)) << "no tokenizer is trained";
  EXPECT_EQ(lines[0], "train target --recipe " + recipe("target") + " --tokenizer " + from +
                          " --from " + from + " --out " + out() + "/demo-target --resume");
  EXPECT_THAT(card("demo-target"), Not(HasSubstr("| tokenizer |")));
  write(from + "/model.safetensors", "other weights");
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_FROM=" + from), 2);
  EXPECT_THAT(errors(), HasSubstr(out() + "/demo-target: made from another version of"));
}

TEST_F(FamilyScripts, changed_stages_run_again_without_earlier_ones) {
  ASSERT_EQ(trained(), 0) << errors();
  calls();
  write(recipe("cllm"), "{\"epochs\": 2}");
  EXPECT_EQ(trained(), 0) << errors();
  EXPECT_THAT(stages(), ElementsAre("cllm", "score demo-cllm")) << "new weights are scored again";
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8"), 0) << errors();
  EXPECT_THAT(stages(), ElementsAre("tree demo-medusa", "tree demo-chimera"));
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=auto DECOSCOPE_FAMILY_SCORES=7"), 0) << errors();
  const auto lines = calls();
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[0],
              HasSubstr("--rows auto --model " + out() + "/demo-target --scale 4x2 --out"));
  EXPECT_THAT(lines[3], HasSubstr("--count 7 "));
}

TEST_F(FamilyScripts, cards_sum_training_time_and_keep_last_measurement) {
  ASSERT_EQ(trained(), 0) << errors();
  const auto seconds_of = [&](const std::string& stage) {
    return std::stoi(read(out() + "/" + stage + "/.seconds"));
  };
  const auto took = [&](const std::string& stage, int seconds) {
    write(out() + "/" + stage + "/.seconds", std::to_string(seconds) + "\n");
  };
  const std::vector<std::string> all = {"demo-cllm", "tree-medusa", "scores-demo-target",
                                        "scores-demo-cllm"};
  for (const std::string& stage : all) took(stage, 4000);
  write(recipe("cllm"), "{\"epochs\": 2}");
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8"), 0) << errors();
  EXPECT_GE(seconds_of("demo-cllm"), 4000) << "it continued";
  EXPECT_LT(seconds_of("scores-demo-cllm"), 1000) << "other weights: starts at 0";
  EXPECT_LT(seconds_of("tree-medusa"), 1000) << "other rows: starts at 0";
  EXPECT_EQ(seconds_of("scores-demo-target"), 4000) << "did not run again";
  EXPECT_THAT(
      rows_of(card("demo-cllm")),
      Contains(ElementsAre("scores-demo-cllm", std::to_string(seconds_of("scores-demo-cllm")))));

  // Runs with another count and is stopped once: both parts belong to the new measurement.
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8 DECOSCOPE_FAMILY_SCORES=7 FAILS='model score'"), 6);
  EXPECT_LT(seconds_of("scores-demo-target"), 1000);
  took("scores-demo-target", 500);
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8 DECOSCOPE_FAMILY_SCORES=7"), 0) << errors();
  EXPECT_GE(seconds_of("scores-demo-target"), 500);
  EXPECT_LT(seconds_of("scores-demo-target"), 1000);
}

TEST_F(FamilyScripts, reads_recipes_of_the_named_folder) {
  const std::string folder = out() + ".recipes";
  fs::create_directories(folder);
  const std::string named = "DECOSCOPE_DATA= DECOSCOPE_FAMILY_RECIPES=" + folder;
  for (const char* name : {"tokenizer-family", "draft", "medusa", "chimera"})
    write(folder + "/" + name + ".json", std::string("{\"about\": \"") + name + "\"}");
  ASSERT_EQ(trained(named), 0) << errors();
  std::vector<std::string> given;
  for (const std::string& call : calls())
    if (const auto at = call.find("--recipe "); at != std::string::npos)
      given.push_back(call.substr(at + 9, call.find(' ', at + 9) - at - 9));
  EXPECT_THAT(given,
              ElementsAre(folder + "/tokenizer-family.json", recipe("target"),
                          folder + "/draft.json", folder + "/medusa.json", folder + "/medusa.json",
                          folder + "/chimera.json", recipe("cllm")));
  // Open texts are needed only if a recipe reads them.
  for (const char* reads : {R"("real": {"weight": 1})", R"("chat": {"open_texts": true})"}) {
    write(folder + "/draft.json", std::string("{\"mixture\": {") + reads + "}}");
    EXPECT_EQ(trained(named), 2) << reads;
    EXPECT_THAT(errors(), HasSubstr("DECOSCOPE_DATA is not set"));
  }
  fs::remove(folder + "/draft.json");
  EXPECT_EQ(trained(named), 2);
  EXPECT_THAT(errors(), HasSubstr(folder + "/draft.json: no such recipe"));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(FamilyScripts, refuses_stages_of_another_target) {
  ASSERT_EQ(trained(), 0) << errors();
  calls();
  write(recipe("target"), "{\"tokens\": 2}");
  EXPECT_EQ(trained(), 2);
  EXPECT_THAT(errors(), HasSubstr(out() + "/demo-draft: made from another version of " + out() +
                                  "/demo-target/model.safetensors; remove it"));
  EXPECT_THAT(stages(), ElementsAre("target"));
  for (const char* made : {"demo-draft", "texts", "demo-medusa", "demo-chimera", "demo-cllm"})
    fs::remove_all(out() + "/" + made);
  EXPECT_EQ(trained(), 0) << errors();
  EXPECT_THAT(stages(),
              ElementsAre("draft", "outputs", "medusa", "tree demo-medusa", "chimera",
                          "tree demo-chimera", "cllm", "score demo-target", "score demo-cllm"));
  write(out() + "/tokenizer/tokenizer.model", "another");
  EXPECT_EQ(trained(), 2);
  EXPECT_THAT(errors(), HasSubstr(out() + "/demo-target: made from another version of"));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(FamilyScripts, resumes_a_stopped_or_killed_stage) {
  EXPECT_EQ(trained("FAILS='train medusa'"), 6);
  EXPECT_THAT(errors(),
              HasSubstr("demo-medusa ended with status 6; run the same command to continue"));
  EXPECT_THAT(stages(), ElementsAre("tokenizer", "target", "draft", "outputs", "medusa"));

  trained("KILLS='train chimera'");
  EXPECT_THAT(stages(), ElementsAre("medusa", "tree demo-medusa", "chimera"));
  const std::string chimera = out() + "/demo-chimera";
  EXPECT_TRUE(fs::exists(chimera + "/model.safetensors.part1"));
  EXPECT_FALSE(fs::exists(chimera + "/.done"));
  // The times of its files indicate that it was killed a hundred seconds after its start.
  write(chimera + "/.began", std::to_string(std::time(nullptr) - 100) + "\n");
  ASSERT_EQ(trained(), 0) << errors();
  EXPECT_THAT(stages(), ElementsAre("chimera", "tree demo-chimera", "cllm", "score demo-target",
                                    "score demo-cllm"));
  EXPECT_FALSE(fs::exists(chimera + "/model.safetensors.part1"))
      << "the incomplete file was removed";
  EXPECT_TRUE(fs::exists(chimera + "/checkpoint.bin")) << "the checkpoint was kept";
  EXPECT_FALSE(fs::exists(chimera + "/.began"));
  const int seconds = std::stoi(read(chimera + "/.seconds"));
  EXPECT_GE(seconds, 100) << "the killed piece counts";
  EXPECT_LT(seconds, 400);
  EXPECT_THAT(card("demo-chimera"),
              HasSubstr("| demo-chimera | " + std::to_string(seconds) + " |"));
}

TEST_F(FamilyScripts, refuses_missing_texts_and_a_second_run) {
  EXPECT_EQ(trained("DECOSCOPE_DATA="), 2);
  EXPECT_THAT(errors(), HasSubstr("DECOSCOPE_DATA is not set"));
  fs::create_directories(out());
  EXPECT_EQ(trained("flock " + out() + "/.lock"), 2);
  EXPECT_THAT(errors(), HasSubstr(out() + ": another run is using it"));
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(trained(), 0) << errors();
}

TEST_F(FamilyScripts, installs_over_an_older_family) {
  ASSERT_EQ(trained(), 0) << errors();
  fs::create_directories(models() + "/mine");
  fs::create_directories(models() + "/demo-target");
  write(models() + "/mine/README.md", "mine");
  write(models() + "/demo-target/old.bin", "of the one before");
  ASSERT_EQ(installed(), 0) << errors();
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(models()))
    found.push_back(entry.path().filename().string());
  std::vector<std::string> expected = kModels;
  expected.emplace_back("mine");
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(read(models() + "/mine/README.md"), "mine");
  for (const std::string& model : kModels) {
    EXPECT_EQ(read(models() + "/" + model + "/README.md"), card(model));
    for (const char* left : {"checkpoint.bin", ".done", ".seconds", ".of", "old.bin"})
      EXPECT_FALSE(fs::exists(models() + "/" + model + "/" + left)) << model << " " << left;
  }
  for (const char* file : {"demo-target/decoscope.json", "demo-target/tokenizer.model",
                           "demo-medusa/tree.json", "demo-chimera/accuracies.json",
                           "demo-cllm/decoscope.json", "demo-draft/tokenizer_config.json"})
    EXPECT_EQ(read(models() + "/" + file), read(out() + "/" + file)) << file;
}

TEST_F(FamilyScripts, failed_installation_changes_nothing) {
  ASSERT_EQ(trained(), 0) << errors();
  ASSERT_EQ(installed(), 0) << errors();
  const auto as_it_was = [&](const std::string& what) {
    int n = 0;
    for (const auto& entry : fs::directory_iterator(models())) {
      n++;
      EXPECT_EQ(read(entry.path().string() + "/README.md"), "as it was") << what << entry.path();
    }
    EXPECT_EQ(n, 5) << what;
  };
  for (const std::string& model : kModels)
    write(models() + "/" + model + "/README.md", "as it was");
  const std::string last = out() + "/demo-cllm/tokenizer_config.json";
  write(last, "");
  EXPECT_EQ(installed(), 1);
  EXPECT_THAT(errors(), HasSubstr(last + ": missing; has the training finished?"));
  as_it_was("an empty file");
  fs::remove(last);
  EXPECT_EQ(installed(), 1);
  as_it_was("no file");
  // cp refuses a folder in the place of a file, after four models were copied.
  fs::create_directories(last);
  write(last + "/within", "a file");
  EXPECT_NE(installed(), 0);
  EXPECT_THAT(errors(), Not(HasSubstr("installed in")));
  as_it_was("not copied");
  fs::remove_all(last);
  write(last, "{}");
  EXPECT_EQ(installed(), 0) << errors();
  EXPECT_EQ(read(models() + "/demo-draft/README.md"), card("demo-draft"));
}

TEST_F(FamilyScripts, installs_at_most_48_mib) {
  ASSERT_EQ(trained(), 0) << errors();
  ASSERT_EQ(installed(), 0) << errors();
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(models()))
    if (entry.is_regular_file()) bytes += entry.file_size();
  const std::string weights = "/demo-target/model.safetensors";
  constexpr std::uintmax_t kMost = 48 << 20;
  const std::uintmax_t largest = kMost - bytes + fs::file_size(out() + weights);
  fs::resize_file(out() + weights, largest + 1);
  EXPECT_EQ(installed(), 1);
  EXPECT_THAT(errors(),
              HasSubstr("the family's files have 50331649 bytes, the limit is 50331648 (48 MiB)"));
  EXPECT_LT(fs::file_size(models() + weights), 1000u);
  fs::resize_file(out() + weights, largest);
  EXPECT_EQ(installed(), 0) << errors();
  EXPECT_EQ(fs::file_size(models() + weights), largest);
}

TEST_F(FamilyScripts, installs_one_model_alone) {
  ASSERT_EQ(trained(), 0) << errors();
  ASSERT_EQ(installed(), 0) << errors();
  write(out() + "/demo-cllm/README.md", "new");
  fs::remove_all(out() + "/demo-medusa");
  for (const std::string& model : kModels)
    write(models() + "/" + model + "/README.md", "as it was");
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-cllm"), 0) << errors();
  EXPECT_EQ(read(models() + "/demo-cllm/README.md"), "new");
  for (const char* other : {"demo-target", "demo-draft", "demo-medusa", "demo-chimera"})
    EXPECT_EQ(read(models() + "/" + other + "/README.md"), "as it was");
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-clm"), 2);
  EXPECT_THAT(errors(), HasSubstr("demo-clm: unknown model"));
  // Models that are not replaced count towards the limit.
  constexpr std::uintmax_t kMost = 48 << 20;
  fs::resize_file(models() + "/demo-medusa/model.safetensors", kMost);
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-cllm"), 1);
  EXPECT_THAT(errors(), HasSubstr("the limit is 50331648 (48 MiB)"));
}

TEST_F(FamilyScripts, card_section_replaces_its_section) {
  const std::string path = out() + ".card.md";
  const auto put = [&](const std::string& heading, const std::string& text) {
    write(out() + ".text", text);
    const std::string script = DECOSCOPE_SOURCE_DIR "/scripts/card_section.py";
    const std::string command =
        "python3 -B " + script + " " + path + " " + heading + " <" + out() + ".text";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0);
    EXPECT_FALSE(fs::exists(path + ".part"));
    return read(path);
  };
  // A heading inside a fenced block does not count.
  const std::string training = "## Training\n\n```json\n{\n## Time\n}\n```\n";
  write(path, "# m\n\n## Time\n\nold\n\n### of it\n\nolder\n\n" + training);
  const std::string once = "# m\n\n## Time\n\n| a | 1 |\n\n" + training;
  EXPECT_EQ(put("Time", "| a | 1 |\n"), once);
  EXPECT_EQ(put("Time", "| a | 1 |\n"), once) << "the same twice";
  EXPECT_EQ(put("Gates", "\nmet\n\n"), once + "\n## Gates\n\nmet\n") << "after all other sections";
  write(path, "# m\n\n## Timely\n\nkept\n\n## Time\n\nold\n");
  EXPECT_EQ(put("Time", "new\n"), "# m\n\n## Timely\n\nkept\n\n## Time\n\nnew\n");
  write(path, "");
  EXPECT_EQ(put("Time", "new\n"), "## Time\n\nnew\n");
}

}  // namespace
