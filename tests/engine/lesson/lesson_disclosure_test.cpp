// The cards of the bundled lessons hide every answer until the learner has predicted it.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/event/timeline/timeline.h"
#include "engine/lesson/lesson.h"
#include "tests/support/files.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const fs::path kFolder = DECOSCOPE_SOURCE_DIR "/assets/lessons";
constexpr int kEnd = std::numeric_limits<int>::max();

// Queries that are known after the verification of their step, and those that are known during the step.
const std::set<std::string> kResults{"accepted",      "committed",     "committed_text",
                                     "kept",          "hits",          "first_rejected",
                                     "hitting_ngram", "surviving_path"};
const std::set<std::string> kOfStep{
    "rows",         "window_rows",        "proposed",          "candidates",       "paths",
    "fast_forward", "target_probability", "draft_probability", "keep_probability", "draw"};

// Queries about a whole run that a panel answers.
const std::map<std::string, std::set<std::string>> kOfPanel{
    {"lanes", {"faster", "speedup", "same_text", "tokens_per_step"}},
    {"difference", {"same_text"}},
    {"gantt", {"steps", "longest_part", "step_ms"}},
    {"numbers",
     {"steps", "faster", "speedup", "longest_part", "step_ms", "tokens_per_step", "mean_rows"}},
    {"schedule", {"target_busy", "branches"}},
    {"what_if", {"best_depth", "slower_from_depth", "faster", "speedup"}}};

// The parts of a recording that the cards so far have shown.
class Disclosed {
 public:
  explicit Disclosed(const Timeline& recording) : recording_(recording) {}

  void show(const Json& view) {
    const int run = view["run"].get<int>();
    const std::vector<std::string> panels = view["panels"].get<std::vector<std::string>>();
    const auto has = [&](const char* id) { return std::ranges::find(panels, id) != panels.end(); };
    // These panels show all runs of the race.
    std::set<int> runs{run};
    if (has("lanes") || has("difference"))
      for (const RunRecord* other : recording_.race(run_of(run).started.race))
        runs.insert(static_cast<int>(other->id()));
    int step = view.contains("step") ? view["step"].get<int>() : kEnd;
    if (view.value("before", false)) --step;
    for (const int shown : runs) {
      int& last = last_shown_.try_emplace(shown, -1).first->second;
      last = std::max(last, step);
      for (const std::string& panel : panels)
        if (const auto known = kOfPanel.find(panel); known != kOfPanel.end())
          for (const std::string& query : known->second) of_runs_.emplace(query, shown);
    }
  }

  // Adds the values that a text contains.
  void quote(const std::string& text, const Json& card) {
    if (!card.contains("values")) return;
    for (const auto& [name, query] : card["values"].items()) {
      if (text.find("{" + name + "}") == std::string::npos) continue;
      quoted_.insert(query.dump());
      if (kResults.contains(query["query"].get<std::string>()))
        results_.emplace(query["run"].get<int>(), query["step"].get<int>());
    }
  }

  bool has_answer(const Json& question) const {
    const Json& answer = question["answer"];
    const std::string query = answer["query"];
    if (quoted_.contains(answer.dump())) return true;
    const int run = answer.value("run", 0), step = answer.value("step", 0);
    if (kResults.contains(query)) return results_.contains({run, step}) || last_shown(run) >= step;
    if (kOfStep.contains(query)) return last_shown(run) >= step;
    if (query == "iterations") return last_shown(run) >= first_step_of_block(run, step);
    if (query == "already_final") return last_shown(run) > step;
    if (query == "right_token" || query == "wrong_token")
      return last_shown(answer["than"].get<int>()) == kEnd;
    if (query == "forward_cost")
      return of_runs_.contains({"step_ms", run}) &&
             of_runs_.contains({"step_ms", answer["than"].get<int>()});
    if (query == "target_busy" || query == "branches")
      return std::ranges::any_of(of_runs_, [&](const auto& known) { return known.first == query; });
    if (query == "steps" && excludes_a_choice(question, last_shown(run))) return true;
    const bool is_known = std::ranges::any_of(
        kOfPanel, [&](const auto& panel) { return panel.second.contains(query); });
    EXPECT_TRUE(is_known) << "no rule for the query " << query;
    return of_runs_.contains({query, run});
  }

 private:
  const RunRecord& run_of(int run) const { return *recording_.run(static_cast<RunId>(run)); }

  int last_shown(int run) const {
    const auto shown = last_shown_.find(run);
    return shown == last_shown_.end() ? -1 : shown->second;
  }

  // A run whose step 34 was shown has 35 steps or more.
  static bool excludes_a_choice(const Json& question, int last) {
    if (!question.contains("choices")) return false;
    return std::ranges::any_of(question["choices"], [&](const Json& choice) {
      return choice.contains("to") && choice["to"].get<int>() - 1 <= last;
    });
  }

  // Returns the step of the first iteration of the block that a step refined.
  int first_step_of_block(int run, int step) const {
    const StepStore& steps = run_of(run).steps;
    const StepRecord refined = steps[static_cast<std::size_t>(step)];
    const int block = refined.blocks.back().block;
    for (int i = 0; i < step; ++i) {
      const StepRecord earlier = steps[static_cast<std::size_t>(i)];
      for (const BlockRefined& state : earlier.blocks)
        if (state.block == block && state.iteration > 0) return i;
    }
    return step;
  }

  const Timeline& recording_;
  std::map<int, int> last_shown_;                  // the last step shown, by run
  std::set<std::pair<std::string, int>> of_runs_;  // query, run
  std::set<std::pair<int, int>> results_;          // run, step: a text contains a result of it
  std::set<std::string> quoted_;                   // queries whose answers a text contains
};

// A bundled lesson that can be altered.
struct Bundled {
  explicit Bundled(const std::string& name)
      : json(Json::parse(test::read_file((kFolder / (name + ".json")).string()))),
        recording(load_lesson_recording(read_lesson((kFolder / (name + ".json")).string()))) {}

  // Returns the titles of the cards whose answer is known before the prediction.
  std::vector<std::string> revealed() {
    n_questions = 0;
    std::vector<std::string> titles;
    Disclosed disclosed(recording);
    for (const Json& card : json["cards"]) {
      disclosed.show(card["show"]);
      disclosed.quote(card["text"], card);
      if (!card.contains("question")) continue;
      disclosed.quote(card["question"]["text"], card);
      ++n_questions;
      if (disclosed.has_answer(card["question"]))
        titles.push_back(card["title"].get<std::string>());
      disclosed.quote(card["reveal"]["text"], card);
      if (card["reveal"].contains("show")) disclosed.show(card["reveal"]["show"]);
    }
    return titles;
  }

  Json json;
  Timeline recording;
  int n_questions = 0;
};

TEST(Lessons, no_card_reveals_an_answer_before_its_question) {
  int n_questions = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    Bundled lesson(entry.path().stem().string());
    EXPECT_THAT(lesson.revealed(), IsEmpty());
    n_questions += lesson.n_questions;
  }
  EXPECT_GE(n_questions, 31);
}

// Altered lessons in which a card reveals an answer: the check above has to name that card.
TEST(Lessons, a_card_that_reveals_an_answer_is_found) {
  Bundled lookahead("6_lookahead");
  lookahead.json["cards"][3]["question"]["answer"]["step"] = 15;
  EXPECT_THAT(lookahead.revealed(), ElementsAre("The price")) << "card 3 shows step 15";

  Bundled trees("7_trees");
  trees.json["cards"][2]["question"]["answer"]["step"] = 4;
  EXPECT_THAT(trees.revealed(), ElementsAre("Rows of the mask")) << "card 2 shows step 4";

  Bundled consistency("5_consistency_models");
  consistency.json["cards"][3]["show"]["step"] = 9;
  consistency.json["cards"][3]["question"]["answer"]["step"] = 9;
  EXPECT_THAT(consistency.revealed(), ElementsAre("A whole block"))
      << "the block of step 9 begins with step 8";

  Bundled jacobi("4_jacobi");
  std::swap(jacobi.json["cards"][2], jacobi.json["cards"][3]);
  EXPECT_THAT(jacobi.revealed(), ElementsAre("The whole answer"))
      << "a run with a step 34 has not fewer than 15 steps";

  Bundled draft("2_draft_and_verify");
  draft.json["cards"][5]["show"]["panels"] = Json::array({"lanes"});
  EXPECT_THAT(draft.revealed(), ElementsAre("The same answer")) << "a lane says that it agrees";

  Bundled schedule("8_scheduling_and_fastcot");
  schedule.json["cards"][0]["show"]["panels"] = Json::array({"schedule"});
  EXPECT_THAT(schedule.revealed(), ElementsAre("Is the target busy?")) << "it shows the share";
}

}  // namespace
}  // namespace engine
