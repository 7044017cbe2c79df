// The scripts that make, judge and install a family of models, with a trainer that learns nothing
// (small_trainer.py) and a program of known figures: what is asked of them, again and anew.
#include <ctime>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scripts/measuring_scripts.h"

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

class FamilyScripts : public test::MeasuringScripts {
 protected:
  void SetUp() override {
    MeasuringScripts::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    write(recipe("target"), "{\"tokens\": 1}");
    write(recipe("cllm"), "{\"epochs\": 1}");
  }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string recipe(const std::string& name) const { return out() + "." + name + ".json"; }
  std::string models() const { return out() + ".models"; }

  /// The family is made, or made further.
  int trained(const std::string& settings = {}) const {
    const std::string trainer = DECOSCOPE_SOURCE_DIR "/tests/scripts/small_trainer.py";
    return code_of("DECOSCOPE_DATA=/sets DECOSCOPE_PROGRAM=" + trainer +
                       " DECOSCOPE_FAMILY_CLLM=" + recipe("cllm") + " " + settings,
                   "train_family.sh", recipe("target"));
  }
  int installed(const std::string& settings = {}) const {
    return code_of(settings, "install_family.sh", models());
  }
  /// The calls since, by their first words: `train draft`, `model tree demo-medusa`.
  std::vector<std::string> stages() const {
    std::vector<std::string> names;
    for (const std::string& call : asked()) {
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

TEST_F(FamilyScripts, a_family_is_made_stage_by_stage_and_what_is_whole_is_made_once) {
  ASSERT_EQ(trained(), 0) << told();
  const auto calls = asked();
  ASSERT_THAT(calls, SizeIs(11));
  const std::string target = out() + "/demo-target", resumed = " --resume";
  const std::string recipes = DECOSCOPE_SOURCE_DIR "/assets/recipes";
  const std::string heads =
      " --target " + target + " --texts " + out() + "/texts/own_outputs.jsonl --out " + out();
  EXPECT_THAT(calls[0], HasSubstr("train tokenizer --recipe"));
  EXPECT_EQ(calls[1], "train target --recipe " + recipe("target") + " --tokenizer " + out() +
                          "/tokenizer --out " + target + resumed);
  EXPECT_THAT(calls[2], HasSubstr("train draft"));
  EXPECT_THAT(calls[3], HasSubstr("train outputs"));
  EXPECT_EQ(calls[4],
            "train medusa --recipe " + recipes + "/medusa.json" + heads + "/demo-medusa" + resumed);
  EXPECT_EQ(calls[5], "model tree " + out() + "/demo-medusa --rows 16 --out " + out() +
                          "/demo-medusa/tree.json");
  EXPECT_EQ(calls[6], "train chimera --recipe " + recipes + "/chimera.json" + heads +
                          "/demo-chimera" + resumed);
  EXPECT_THAT(calls[7], HasSubstr("model tree " + out() + "/demo-chimera"));
  EXPECT_EQ(calls[8], "train cllm --recipe " + recipe("cllm") + " --from " + target + " --out " +
                          out() + "/demo-cllm" + resumed);
  EXPECT_EQ(calls[9], "model score --model " + target + " --count 500 --resume " + out() +
                          "/scores-demo-target/figures.jsonl --write");
  EXPECT_THAT(calls[10], HasSubstr("model score --model " + out() + "/demo-cllm"));
  EXPECT_EQ(read(target + "/decoscope.json"),
            "{\"draft\": \"demo-draft\", \"medusa\": \"demo-medusa\", \"chimera\": "
            "\"demo-chimera\"}\n");
  for (const std::string& model : kModels) {
    EXPECT_THAT(card(model), HasSubstr("## Scores\n\nNone.\n\n## Time\n")) << model;
    EXPECT_THAT(rows_of(card(model)), Contains(SizeIs(2))) << model;
  }
  std::vector<std::string> told_in_the_card;
  for (const auto& cells : rows_of(card("demo-target"))) told_in_the_card.push_back(cells[0]);
  EXPECT_THAT(told_in_the_card,
              ElementsAre("stage", "tokenizer", "demo-target", "scores-demo-target"));

  const std::string before = card("demo-target");
  EXPECT_EQ(trained(), 0) << told();
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_EQ(card("demo-target"), before) << "one section of that name, and the same times";
  fs::remove_all(out() + "/demo-draft");
  EXPECT_EQ(trained(), 0) << told();
  EXPECT_THAT(stages(), ElementsAre("draft"));
}

TEST_F(FamilyScripts, a_target_goes_on_from_weights_that_are_there) {
  const std::string from = out() + ".from";
  fs::create_directories(from);
  write(from + "/model.safetensors", "weights");
  write(from + "/tokenizer.model", "pieces");
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_FROM=" + from), 0) << told();
  const auto calls = asked();
  ASSERT_THAT(calls, SizeIs(10)) << "no tokenizer is trained";
  EXPECT_EQ(calls[0], "train target --recipe " + recipe("target") + " --tokenizer " + from +
                          " --from " + from + " --out " + out() + "/demo-target --resume");
  EXPECT_THAT(card("demo-target"), Not(HasSubstr("| tokenizer |")));
  write(from + "/model.safetensors", "other weights");
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_FROM=" + from), 2);
  EXPECT_THAT(told(), HasSubstr(out() + "/demo-target was made with other files"));
}

TEST_F(FamilyScripts, a_stage_that_was_asked_for_otherwise_is_made_again_and_none_before_it) {
  ASSERT_EQ(trained(), 0) << told();
  asked();
  write(recipe("cllm"), "{\"epochs\": 2}");
  EXPECT_EQ(trained(), 0) << told();
  EXPECT_THAT(stages(), ElementsAre("cllm", "score demo-cllm")) << "other weights are scored anew";
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8"), 0) << told();
  EXPECT_THAT(stages(), ElementsAre("tree demo-medusa", "tree demo-chimera"));
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=auto DECOSCOPE_FAMILY_SCORES=7"), 0) << told();
  const auto calls = asked();
  ASSERT_THAT(calls, SizeIs(4));
  EXPECT_THAT(calls[0],
              HasSubstr("--rows auto --model " + out() + "/demo-target --scale 4x2 --out"));
  EXPECT_THAT(calls[3], HasSubstr("--count 7 "));
}

TEST_F(FamilyScripts, a_card_tells_what_the_last_measurement_took_and_all_pieces_of_a_training) {
  ASSERT_EQ(trained(), 0) << told();
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
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8"), 0) << told();
  EXPECT_GE(seconds_of("demo-cllm"), 4000) << "it went on";
  EXPECT_LT(seconds_of("scores-demo-cllm"), 1000) << "of other weights";
  EXPECT_LT(seconds_of("tree-medusa"), 1000) << "for other rows";
  EXPECT_EQ(seconds_of("scores-demo-target"), 4000) << "nobody asked for it again";
  EXPECT_THAT(
      rows_of(card("demo-cllm")),
      Contains(ElementsAre("scores-demo-cllm", std::to_string(seconds_of("scores-demo-cllm")))));

  // Asked for another count, and stopped on the way: both pieces are of this measurement.
  EXPECT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8 DECOSCOPE_FAMILY_SCORES=7 FAILS='model score'"), 6);
  EXPECT_LT(seconds_of("scores-demo-target"), 1000);
  took("scores-demo-target", 500);
  ASSERT_EQ(trained("DECOSCOPE_FAMILY_ROWS=8 DECOSCOPE_FAMILY_SCORES=7"), 0) << told();
  EXPECT_GE(seconds_of("scores-demo-target"), 500);
  EXPECT_LT(seconds_of("scores-demo-target"), 1000);
}

TEST_F(FamilyScripts, its_recipes_are_those_of_the_folder_named) {
  const std::string folder = out() + ".recipes";
  fs::create_directories(folder);
  const std::string named = "DECOSCOPE_DATA= DECOSCOPE_FAMILY_RECIPES=" + folder;
  for (const char* name : {"tokenizer-family", "draft", "medusa", "chimera"})
    write(folder + "/" + name + ".json", std::string("{\"about\": \"") + name + "\"}");
  ASSERT_EQ(trained(named), 0) << told();
  std::vector<std::string> given;
  for (const std::string& call : asked())
    if (const auto at = call.find("--recipe "); at != std::string::npos)
      given.push_back(call.substr(at + 9, call.find(' ', at + 9) - at - 9));
  EXPECT_THAT(given,
              ElementsAre(folder + "/tokenizer-family.json", recipe("target"),
                          folder + "/draft.json", folder + "/medusa.json", folder + "/medusa.json",
                          folder + "/chimera.json", recipe("cllm")));
  // Open texts are needed where a recipe reads them, and only there.
  for (const char* reads : {R"("real": {"weight": 1})", R"("chat": {"open_texts": true})"}) {
    write(folder + "/draft.json", std::string("{\"mixture\": {") + reads + "}}");
    EXPECT_EQ(trained(named), 2) << reads;
    EXPECT_THAT(told(), HasSubstr("DECOSCOPE_DATA: not set"));
  }
  fs::remove(folder + "/draft.json");
  EXPECT_EQ(trained(named), 2);
  EXPECT_THAT(told(), HasSubstr(folder + "/draft.json: there is no such recipe"));
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(FamilyScripts, what_was_made_of_another_target_is_refused_until_it_is_removed) {
  ASSERT_EQ(trained(), 0) << told();
  asked();
  write(recipe("target"), "{\"tokens\": 2}");
  EXPECT_EQ(trained(), 2);
  EXPECT_THAT(told(), HasSubstr(out() + "/demo-draft was made with other files than today's " +
                                out() + "/demo-target/model.safetensors; remove it"));
  EXPECT_THAT(stages(), ElementsAre("target"));
  for (const char* made : {"demo-draft", "texts", "demo-medusa", "demo-chimera", "demo-cllm"})
    fs::remove_all(out() + "/" + made);
  EXPECT_EQ(trained(), 0) << told();
  EXPECT_THAT(stages(),
              ElementsAre("draft", "outputs", "medusa", "tree demo-medusa", "chimera",
                          "tree demo-chimera", "cllm", "score demo-target", "score demo-cllm"));
  write(out() + "/tokenizer/tokenizer.model", "another");
  EXPECT_EQ(trained(), 2);
  EXPECT_THAT(told(), HasSubstr(out() + "/demo-target was made with other files"));
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(FamilyScripts, it_goes_on_with_the_stage_that_was_stopped_or_killed) {
  EXPECT_EQ(trained("FAILS='train medusa'"), 6);
  EXPECT_THAT(told(),
              HasSubstr("demo-medusa ended with status 6; the same command goes on with it"));
  EXPECT_THAT(stages(), ElementsAre("tokenizer", "target", "draft", "outputs", "medusa"));

  trained("KILLS='train chimera'");
  EXPECT_THAT(stages(), ElementsAre("medusa", "tree demo-medusa", "chimera"));
  const std::string chimera = out() + "/demo-chimera";
  EXPECT_TRUE(fs::exists(chimera + "/model.safetensors.part1"));
  EXPECT_FALSE(fs::exists(chimera + "/.done"));
  // Killed a hundred seconds behind its beginning, as far as its files say.
  write(chimera + "/.began", std::to_string(std::time(nullptr) - 100) + "\n");
  ASSERT_EQ(trained(), 0) << told();
  EXPECT_THAT(stages(), ElementsAre("chimera", "tree demo-chimera", "cllm", "score demo-target",
                                    "score demo-cllm"));
  EXPECT_FALSE(fs::exists(chimera + "/model.safetensors.part1")) << "half a file was left";
  EXPECT_TRUE(fs::exists(chimera + "/checkpoint.bin")) << "what it goes on from was removed";
  EXPECT_FALSE(fs::exists(chimera + "/.began"));
  const int seconds = std::stoi(read(chimera + "/.seconds"));
  EXPECT_GE(seconds, 100) << "the piece that was killed counts";
  EXPECT_LT(seconds, 400);
  EXPECT_THAT(card("demo-chimera"),
              HasSubstr("| demo-chimera | " + std::to_string(seconds) + " |"));
}

TEST_F(FamilyScripts, nothing_is_begun_without_open_texts_or_beside_another_run) {
  EXPECT_EQ(trained("DECOSCOPE_DATA="), 2);
  EXPECT_THAT(told(), HasSubstr("DECOSCOPE_DATA: not set"));
  fs::create_directories(out());
  EXPECT_EQ(trained("flock " + out() + "/.lock"), 2);
  EXPECT_THAT(told(), HasSubstr(out() + ": another run is at work there"));
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_EQ(trained(), 0) << told();
}

TEST_F(FamilyScripts, a_family_is_installed_in_the_place_of_the_one_before_and_beside_others) {
  ASSERT_EQ(trained(), 0) << told();
  fs::create_directories(models() + "/mine");
  fs::create_directories(models() + "/demo-target");
  write(models() + "/mine/README.md", "mine");
  write(models() + "/demo-target/old.bin", "of the one before");
  ASSERT_EQ(installed(), 0) << told();
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

TEST_F(FamilyScripts, a_family_with_a_file_that_is_missing_or_cannot_be_copied_changes_nothing) {
  ASSERT_EQ(trained(), 0) << told();
  ASSERT_EQ(installed(), 0) << told();
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
  EXPECT_THAT(told(), HasSubstr(last + ": missing; is the training over?"));
  as_it_was("an empty file");
  fs::remove(last);
  EXPECT_EQ(installed(), 1);
  as_it_was("no file");
  // A folder of that name is there and not empty, and cp refuses it behind four whole models.
  fs::create_directories(last);
  write(last + "/within", "a file");
  EXPECT_NE(installed(), 0);
  EXPECT_THAT(told(), Not(HasSubstr("installed in")));
  as_it_was("not copied");
  fs::remove_all(last);
  write(last, "{}");
  EXPECT_EQ(installed(), 0) << told();
  EXPECT_EQ(read(models() + "/demo-draft/README.md"), card("demo-draft"));
}

TEST_F(FamilyScripts, a_family_of_48_mib_is_installed_and_one_of_a_byte_more_is_refused) {
  ASSERT_EQ(trained(), 0) << told();
  ASSERT_EQ(installed(), 0) << told();
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(models()))
    if (entry.is_regular_file()) bytes += entry.file_size();
  const std::string weights = "/demo-target/model.safetensors";
  constexpr std::uintmax_t kMost = 48 << 20;
  const std::uintmax_t largest = kMost - bytes + fs::file_size(out() + weights);
  fs::resize_file(out() + weights, largest + 1);
  EXPECT_EQ(installed(), 1);
  EXPECT_THAT(told(), HasSubstr("the family's files are 50331649 bytes, at most 50331648 (48 MiB) "
                                "may be"));
  EXPECT_LT(fs::file_size(models() + weights), 1000u);
  fs::resize_file(out() + weights, largest);
  EXPECT_EQ(installed(), 0) << told();
  EXPECT_EQ(fs::file_size(models() + weights), largest);
}

TEST_F(FamilyScripts, a_model_alone_is_installed_beside_those_that_stay) {
  ASSERT_EQ(trained(), 0) << told();
  ASSERT_EQ(installed(), 0) << told();
  write(out() + "/demo-cllm/README.md", "anew");
  fs::remove_all(out() + "/demo-medusa");
  for (const std::string& model : kModels)
    write(models() + "/" + model + "/README.md", "as it was");
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-cllm"), 0) << told();
  EXPECT_EQ(read(models() + "/demo-cllm/README.md"), "anew");
  for (const char* other : {"demo-target", "demo-draft", "demo-medusa", "demo-chimera"})
    EXPECT_EQ(read(models() + "/" + other + "/README.md"), "as it was");
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-clm"), 2);
  EXPECT_THAT(told(), HasSubstr("demo-clm: no model of a family"));
  // What stays counts.
  constexpr std::uintmax_t kMost = 48 << 20;
  fs::resize_file(models() + "/demo-medusa/model.safetensors", kMost);
  EXPECT_EQ(installed("DECOSCOPE_FAMILY_MODELS=demo-cllm"), 1);
  EXPECT_THAT(told(), HasSubstr("at most 50331648 (48 MiB) may be"));
}

TEST_F(FamilyScripts, a_part_of_a_card_takes_the_place_of_the_one_of_its_name) {
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
  // A heading within a recipe or an example is none.
  const std::string training = "## Training\n\n```json\n{\n## Time\n}\n```\n";
  write(path, "# m\n\n## Time\n\nold\n\n### of it\n\nolder\n\n" + training);
  const std::string once = "# m\n\n## Time\n\n| a | 1 |\n\n" + training;
  EXPECT_EQ(put("Time", "| a | 1 |\n"), once);
  EXPECT_EQ(put("Time", "| a | 1 |\n"), once) << "the same twice";
  EXPECT_EQ(put("Gates", "\nmet\n\n"), once + "\n## Gates\n\nmet\n") << "behind all others";
  write(path, "# m\n\n## Timely\n\nkept\n\n## Time\n\nold\n");
  EXPECT_EQ(put("Time", "new\n"), "# m\n\n## Timely\n\nkept\n\n## Time\n\nnew\n");
  write(path, "");
  EXPECT_EQ(put("Time", "new\n"), "## Time\n\nnew\n");
}

/// family_gates.sh on a family of known figures.
class FamilyGates : public FamilyScripts {
 protected:
  void SetUp() override {
    FamilyScripts::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* model : {"demo-target", "demo-draft"}) {
      fs::create_directories(out() + "/" + model);
      write(out() + "/" + model + "/README.md", "# m\n\n## Scores\n\nold\n");
    }
  }
  int judged(const std::string& settings = {}) const {
    return code_of("DECOSCOPE_GATES_COUNT=20 DECOSCOPE_GATES_FEW=20 " + settings,
                   "family_gates.sh");
  }
  std::string gate(const std::string& name) const {
    for (const auto& cells : rows_of(read(out() + "/gates/gates.md")))
      if (cells.size() == 3 && cells[0].starts_with(name)) return cells[1] + ": " + cells[2];
    return "none";
  }
  /// Each prompt's number by turns, of four, and its level.
  void expect_all(const std::string& file,
                  std::size_t n,
                  const std::string& level,
                  int turn) const {
    std::ifstream lines(out() + "/gates/" + file);
    std::size_t found = 0;
    for (std::string line; std::getline(lines, line); found++) {
      EXPECT_THAT(line, HasSubstr("\"id\": \"blocks/" + level)) << file;
      const auto number = line.find('/', line.find("blocks/") + 7) + 1;
      EXPECT_EQ(std::stoi(line.substr(number)) % 4, turn) << file;
    }
    EXPECT_EQ(found, n) << file;
  }
};

TEST_F(FamilyGates, hold_what_the_program_measures_against_what_is_asked) {
  ASSERT_EQ(judged(), 0) << told();
  EXPECT_EQ(gate("ends by itself"), "100.0 % of 20 (arith, level 1): met");
  EXPECT_EQ(gate("arith, level 1 right, at least 90 %"), "95.0 % of 20: met");
  EXPECT_EQ(gate("arith, level 2 right"), "95.0 % of 20: no gate of this size");
  EXPECT_EQ(gate("kb, levels 1 and 2 right, at least 85 %"), "95.0 % of 40: met");
  EXPECT_EQ(gate("plans of four steps right, at least 90 %"), "95.0 % of 20: met");
  EXPECT_EQ(gate("plans of six steps, 4 blocks right"), "95.0 % of 20: no gate of this size");
  EXPECT_EQ(gate("passages whose four"), "90.0 % of 40: no gate of this size");
  EXPECT_EQ(gate("entropy"), "0.250 (280 answers): met");
  EXPECT_EQ(gate("draft four deep on chat"), "0.75 (of all drafted 0.50; 20 problems): met");
  EXPECT_EQ(gate("kb right by share"), "0.0, 25.0, 50.0, 75.0, 100.0 % of 20 (level 1): met");
  EXPECT_EQ(gate("iterations of a Jacobi block"), "14.0 (20 blocks of 10 problems, level 1): met");
  // Of what a problem asks, not of how its completion words it.
  expect_all("plans-4.jsonl", 20, "1/", 0);
  expect_all("plans-6.jsonl", 20, "", 1);
  const auto calls = asked();
  const std::string target = out() + "/demo-target";
  EXPECT_THAT(calls, Contains("reason cot --model " + target +
                              " --task kb --level 1 --split dev --count 20 --batch 16 --decoder ar "
                              "--json --max-tokens 27"));
  EXPECT_THAT(calls, Contains("generate --model " + target + " --draft " + out() +
                              "/demo-draft --decoder speculative --set gamma=4 --prompt-file " +
                              out() + "/gates/few-chat.jsonl --max-tokens 128 --json"));
  EXPECT_THAT(card("demo-target"), HasSubstr("## Scores\n\nold\n\n## Gates\n"));
  EXPECT_THAT(rows_of(card("demo-draft")),
              Contains(ElementsAre("blocks", "20", "0.75", "0.50", "2.00", "met")));
  EXPECT_THAT(card("demo-draft"), Not(HasSubstr("old")));

  EXPECT_EQ(judged(), 0) << told();
  for (const std::string& call : asked())
    EXPECT_TRUE(call.starts_with("model info") || call.starts_with("data check")) << call;
}

TEST_F(FamilyGates, ask_the_consistency_model_for_speed_at_little_loss) {
  const auto trained = [&](double block, int n_right) {
    std::string before, after;
    for (const char* task : {"arith", "kb", "sql", "py", "blocks"}) {
      const std::string head = std::string(before.empty() ? "" : ", ") + R"({"task": ")" + task +
                               R"(", "n": 1000, "n_checked": 1000, "n_correct": )";
      before += head + R"(900, "tokens_per_step_block": 1.1, "tokens_per_step_slide": 1.2})";
      after += head + std::to_string(n_right) + R"(, "tokens_per_step_block": )" +
               std::to_string(block) + R"(, "tokens_per_step_slide": 4.25})";
    }
    write(out() + "/demo-cllm/stages.json",
          R"({"before": [)" + before + R"(], "after": [)" + after + "]}");
  };
  ASSERT_EQ(judged(), 0) << told();
  EXPECT_THAT(told(), HasSubstr("demo-cllm was not trained to its end"));
  EXPECT_EQ(gate("consistency model"), "none");
  fs::create_directories(out() + "/demo-cllm");
  write(out() + "/demo-cllm/stages.json", R"({"before": []})");
  ASSERT_EQ(judged(), 0) << told();
  EXPECT_THAT(told(), HasSubstr("demo-cllm was not trained to its end")) << "half way";
  write(out() + "/demo-cllm/README.md", "# m\n\n## Scores\n\nold\n");
  trained(3.6, 875);
  ASSERT_EQ(judged(), 0) << told();
  EXPECT_EQ(gate("consistency model, tokens a step with refill=block"),
            "3.60 (3.60, 3.60, 3.60, 3.60; before 1.10) of 1000 problems each, test split: met");
  EXPECT_EQ(gate("consistency model, tokens a step with refill=slide"),
            "4.25 (4.25, 4.25, 4.25, 4.25; before 1.20) of 1000 problems each, test split: met");
  EXPECT_EQ(gate("points of accuracy that it lost"),
            "arith +2.5, sql +2.5, py +2.5, blocks +2.5 of 1000 problems each, test split: met");
  EXPECT_THAT(card("demo-cllm"), HasSubstr("## Scores\n\nold\n\n## Gates\n"));
  EXPECT_THAT(rows_of(card("demo-cllm")), SizeIs(4)) << "the head, and none of the target's";
  trained(3.4, 869);
  EXPECT_EQ(judged(), 1);
  EXPECT_THAT(card("demo-cllm"), HasSubstr("MISSED"));
  EXPECT_EQ(gate("consistency model, tokens a step with refill=block"),
            "3.40 (3.40, 3.40, 3.40, 3.40; before 1.10) of 1000 problems each, test split: MISSED");
  EXPECT_EQ(gate("points of accuracy that it lost"),
            "arith +3.1, sql +3.1, py +3.1, blocks +3.1 of 1000 problems each, test split: MISSED");
}

TEST_F(FamilyGates, fail_where_one_is_missed_and_ask_more_of_a_larger_target) {
  EXPECT_EQ(judged("LOSES='--task sql'"), 1);
  EXPECT_EQ(gate("ends by itself"), "90.0 % of 20 (sql, level 1): MISSED");
  EXPECT_THAT(told(), HasSubstr("missed: ends by itself"));
  EXPECT_THAT(card("demo-target"), HasSubstr("MISSED")) << "the card does not hide it";
  EXPECT_EQ(judged("PARAMETERS=20000000"), 1);
  EXPECT_THAT(told(), HasSubstr("holds figures of other weights"));
  EXPECT_EQ(judged("DECOSCOPE_GATES_FEW=10"), 1);
  EXPECT_THAT(told(), HasSubstr("20 one by one, asked were 20 problems a task and level, 10 one"));
  fs::remove_all(out() + "/gates");
  ASSERT_EQ(judged("PARAMETERS=20000000"), 0) << told();
  EXPECT_EQ(gate("arith, level 1 right"), "95.0 % of 20: no gate of this size");
  EXPECT_EQ(gate("kb, levels 1 and 2 right, at least 95 %"), "95.0 % of 40: met");
  EXPECT_EQ(gate("py, levels 1 and 2 right, at least 85 %"), "95.0 % of 40: met");
  EXPECT_EQ(gate("plans of six steps, 4 blocks right, at least 90 %"), "95.0 % of 20: met");
}

}  // namespace
