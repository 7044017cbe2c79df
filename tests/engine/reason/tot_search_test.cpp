// The search with a scripted scheduler: requested thoughts, batches, selection and events.
#include <functional>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/reason/tot.h"

namespace engine::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

Model& bundled() {
  static ModelStore store(kAssets, 1);
  return *store.get({}).model;
}

/// A scheduler with scripted completions by prompt id ("q/1/question"); others are "nothing".
class Scripted : public Scheduler {
 public:
  explicit Scripted(std::map<std::string, std::string> script) : script_(std::move(script)) {}

  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override {
    std::vector<Completion> done;
    batches.emplace_back();
    for (const CompletionRequest& request : requests) {
      if (n_before_stop-- == 0) return done;
      const std::string& id = request.run.prompt_id;
      batches.back().push_back(id);
      requests_by_id[id] = request;
      RunResult result;
      result.request = request.run;
      const auto found = script_.find(id);
      result.text = found == script_.end() ? "nothing" : found->second;
      result.tokens = {1, 2, 3};
      result.n_steps = 2;
      result.stop_reason = "eos";
      result.metrics = {
          {"proposed", 4}, {"accepted", 1}, {"draft_depth", 4}, {"depth_accepted", 0.25}};
      done.push_back({std::move(result), Sequence({1}, bundled().make_cache())});
      if (watch.ended)
        watch.ended(static_cast<int>(done.size()), static_cast<int>(requests.size()));
    }
    return done;
  }

  std::map<std::string, double> figures() const override { return {}; }

  std::vector<std::vector<std::string>> batches;  // prompt ids of each call
  std::map<std::string, CompletionRequest> requests_by_id;
  int n_before_stop = -1;  // number of requests before a stop; -1: no stop

 private:
  std::map<std::string, std::string> script_;
};

Record sums() {
  Record record;
  record.id = "q";
  record.task = "arith";
  record.prompt =
      "Question:\nAnna has 5 pens and buys 7. How many?\nAnswer:\nLet's think step by "
      "step.\n";
  record.check = R"({"form": "gsm8k", "answer": 12})";
  return record;
}

Record blocks() {
  Record record;
  record.id = "q";
  record.task = "blocks";
  record.check =
      R"({"form": "plan", "init": ["clear blue", "clear red", "handempty", "ontable blue",
          "ontable red"], "goal": ["on red blue"]})";
  return record;
}

TotSettings settings_for(const std::string& file, int depth, int n_thoughts, int beam) {
  TotSettings settings;
  settings.prompts = read_tot_prompts(kAssets + "/prompts/tot/" + file);
  settings.depth = depth;
  settings.n_thoughts = n_thoughts;
  settings.beam = beam;
  settings.value_source = ValueSource::Written;
  return settings;
}

TotItem found_by(Scripted& scheduler,
                 const Record& record,
                 const TotSettings& settings,
                 const SchedulerWatch& watch = {}) {
  TotReport report = search(scheduler, bundled(), {&record, 1}, settings, watch);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.items.size(), 1u);
  return report.items.empty() ? TotItem() : std::move(report.items[0]);
}

std::vector<ThoughtFate> fates(const TotItem& item) {
  std::vector<ThoughtFate> all;
  for (std::size_t i = 1; i < item.nodes.size(); i++) all.push_back(item.nodes[i].fate);
  return all;
}

constexpr ThoughtFate kKept = ThoughtFate::Kept, kPruned = ThoughtFate::Pruned,
                      kUnreadable = ThoughtFate::Unreadable;

/// Two levels with two thoughts a node and a beam of two; values 3 9 | 5 9 9 1.
std::map<std::string, std::string> two_levels() {
  std::map<std::string, std::string> script;
  const char* things[] = {"pens", "cups", "hats", "keys", "maps", "nuts"};
  const char* scores[] = {"3", "9", "5", "9", "9", "1"};
  for (int i = 0; i < 6; i++) {
    const std::string node = "q/" + std::to_string(i + 1);
    script[node + "/question"] = std::string(" How many ") + things[i] + "?";
    script[node + "/answer"] = std::string(" There are 4 ") + things[i] + ".";
    script[node + "/value"] = std::string(" Score: ") + scores[i] + "\nFor 7 reasons.";
  }
  return script;
}

TEST(TotSearch, each_level_keeps_the_best_thoughts) {
  Scripted scheduler(two_levels());
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2));
  ASSERT_EQ(item.nodes.size(), 7u);
  const int parents[] = {0, 0, 2, 2, 1, 1};  // the better node of level 1 comes first
  for (std::size_t i = 0; i < 6; i++) {
    EXPECT_EQ(item.nodes[i + 1].parent, parents[i]) << i + 1;
    EXPECT_EQ(item.nodes[i + 1].depth, i < 2 ? 1 : 2);
  }
  EXPECT_EQ(scheduler.requests_by_id["q/3/question"].value, 9);  // the value of its parent
  EXPECT_EQ(scheduler.requests_by_id["q/5/question"].value, 3);
  // If values are equal, the node written first wins.
  EXPECT_THAT(fates(item), ElementsAre(kKept, kKept, kPruned, kKept, kKept, kPruned));
  EXPECT_EQ(item.node, 4);
  EXPECT_THAT(item.path_to(4), ElementsAre(2, 4));
}

TEST(TotSearch, a_level_is_generated_in_one_batch) {
  Scripted scheduler(two_levels());
  found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2));
  ASSERT_EQ(scheduler.batches.size(), 7u);
  EXPECT_THAT(scheduler.batches[0], ElementsAre("q/1/question", "q/2/question"));
  EXPECT_THAT(scheduler.batches[1], ElementsAre("q/1/answer", "q/2/answer"));
  EXPECT_THAT(scheduler.batches[2], ElementsAre("q/1/value", "q/2/value"));
  EXPECT_THAT(scheduler.batches[3],
              ElementsAre("q/3/question", "q/4/question", "q/5/question", "q/6/question"));
  EXPECT_EQ(scheduler.batches[4].size(), 4u);
  EXPECT_EQ(scheduler.batches[5].size(), 4u);
  EXPECT_THAT(scheduler.batches[6], ElementsAre("q/4/final"));
}

TEST(TotSearch, a_prompt_contains_only_its_own_chain) {
  Scripted scheduler(two_levels());
  found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2));
  const std::string problem = "Question: Anna has 5 pens and buys 7. How many?\n";
  EXPECT_EQ(scheduler.requests_by_id["q/1/question"].run.prompt, problem + "Sub-question 1:");
  EXPECT_EQ(scheduler.requests_by_id["q/2/answer"].run.prompt,
            problem + "Sub-question 1: How many cups?\nAnswer 1:");
  EXPECT_EQ(scheduler.requests_by_id["q/2/value"].run.prompt,
            problem + "Step 1: There are 4 cups.\nEvaluation:");
  EXPECT_EQ(scheduler.requests_by_id["q/5/question"].run.prompt,
            problem +
                "Sub-question 1: How many pens?\nAnswer 1: There are 4 pens.\n"
                "Sub-question 2:");
  EXPECT_EQ(scheduler.requests_by_id["q/4/value"].run.prompt,
            problem + "Step 1: There are 4 cups.\nStep 2: There are 4 keys.\nEvaluation:");
}

/// The temperature of each request of a search, by prompt id.
std::map<std::string, float> temperatures(const TotSettings& settings) {
  Scripted scheduler(two_levels());
  found_by(scheduler, sums(), settings);
  std::map<std::string, float> found;
  for (const auto& [id, request] : scheduler.requests_by_id)
    found[id] = request.run.sampling.temperature;
  return found;
}

TEST(TotSearch, evaluations_have_the_temperature_of_thoughts) {
  TotSettings settings = settings_for("arith.jsonl", 2, 2, 2);
  settings.thoughts.temperature = 0.7f;
  for (const auto& [id, temperature] : temperatures(settings))
    EXPECT_FLOAT_EQ(temperature, id.ends_with("/final") ? 0 : 0.7f) << id;
  settings.value_temperature = 0.2f;
  for (const auto& [id, temperature] : temperatures(settings))
    EXPECT_FLOAT_EQ(temperature, id.ends_with("/final")   ? 0
                                 : id.ends_with("/value") ? 0.2f
                                                          : 0.7f)
        << id;
  settings.value_temperature = 0;
  EXPECT_EQ(temperatures(settings).at("q/1/value"), 0);
}

TEST(TotSearch, every_text_has_its_own_seed) {
  Scripted scheduler(two_levels());
  TotSettings settings = settings_for("arith.jsonl", 2, 2, 2);
  settings.thoughts.seed = 5;
  found_by(scheduler, sums(), settings);
  std::set<std::uint64_t> seeds;
  for (const auto& [id, request] : scheduler.requests_by_id)
    seeds.insert(request.run.sampling.seed);
  EXPECT_EQ(scheduler.requests_by_id.size(), 19u);
  EXPECT_EQ(seeds.size(), 19u);
  Scripted other(two_levels());
  settings.thoughts.seed = 6;
  found_by(other, sums(), settings);
  EXPECT_NE(other.requests_by_id["q/1/question"].run.sampling.seed,
            scheduler.requests_by_id["q/1/question"].run.sampling.seed);
}

TEST(TotSearch, complete_chains_rank_by_value) {
  auto script = two_levels();
  script["q/1/question"] = " What is the final answer?";
  Scripted scheduler(script);
  TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 1));
  EXPECT_TRUE(item.nodes[1].complete);
  ASSERT_TRUE(item.nodes[1].valued);
  EXPECT_EQ(item.nodes[1].valued->value, 3);
  EXPECT_THAT(fates(item), ElementsAre(kPruned, kKept, kPruned, kKept));
  EXPECT_EQ(item.node, 4);
  script["q/1/value"] = " Score: 10";  // the better thought is complete: the search ends
  Scripted other(script);
  item = found_by(other, sums(), settings_for("arith.jsonl", 4, 2, 1));
  EXPECT_THAT(fates(item), ElementsAre(kKept, kPruned));
  EXPECT_EQ(item.node, 1);
}

TEST(TotSearch, a_repeated_question_ranks_by_its_score) {
  auto script = two_levels();
  script["q/3/question"] = " How many cups?";  // that of its parent, node 2
  Scripted scheduler(script);
  TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 3, 2, 1));
  EXPECT_TRUE(item.nodes[3].complete);
  ASSERT_TRUE(item.nodes[3].valued);
  EXPECT_EQ(item.nodes[3].valued->value, 5);
  EXPECT_EQ(item.nodes[3].fate, kPruned);
  EXPECT_EQ(item.nodes[4].fate, kKept);  // its sibling has 9
  EXPECT_EQ(item.nodes[5].parent, 4);
  script["q/3/value"] = " Score: 10";
  Scripted other(script);
  item = found_by(other, sums(), settings_for("arith.jsonl", 3, 2, 1));
  EXPECT_EQ(item.nodes.size(), 5u);
  EXPECT_EQ(item.node, 3);
  EXPECT_THAT(other.requests_by_id["q/3/final"].run.prompt,
              HasSubstr("Answer 1: There are 4 cups.\nFinal answer:"));
}

TEST(TotSearch, a_complete_chain_stays_in_the_beam) {
  auto script = two_levels();
  script["q/4/question"] = " What is the final answer?";
  Scripted scheduler(script);
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 3, 2, 2));
  // Level 2 keeps node 4, which is complete, and node 5; level 3 extends only node 5.
  EXPECT_TRUE(item.nodes[4].complete);
  ASSERT_EQ(item.nodes.size(), 9u);
  EXPECT_EQ(item.nodes[7].parent, 5);
  EXPECT_EQ(item.nodes[8].parent, 5);
  EXPECT_EQ(item.nodes[4].fate, kKept);
  EXPECT_EQ(item.node, 4);
}

TEST(TotSearch, an_evaluation_without_a_score_counts_as_zero) {
  auto script = two_levels();
  script["q/2/value"] = " Good!";
  Scripted scheduler(script);
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 1, 2, 1));
  EXPECT_THAT(fates(item), ElementsAre(kKept, kPruned));
  ASSERT_TRUE(item.nodes[2].valued);
  EXPECT_FALSE(item.nodes[2].valued->read);
  EXPECT_EQ(item.nodes[2].valued->value, 0);
}

TEST(TotSearch, an_unreadable_thought_is_neither_valued_nor_kept) {
  auto script = two_levels();
  script["q/2/question"] = " </s>";
  Scripted scheduler(script);
  TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 1, 2, 2));
  EXPECT_THAT(fates(item), ElementsAre(kKept, kUnreadable));
  EXPECT_THAT(scheduler.batches[1], ElementsAre("q/1/answer"));
  EXPECT_THAT(scheduler.batches[2], ElementsAre("q/1/value"));
  // If a level has only such thoughts, the answer follows the level before.
  for (const char* node : {"q/3", "q/4", "q/5", "q/6"})
    script[std::string(node) + "/question"] = "";
  script["q/2/question"] = " How many cups?";
  Scripted again(script);
  item = found_by(again, sums(), settings_for("arith.jsonl", 4, 2, 2));
  EXPECT_EQ(item.nodes.size(), 7u);
  EXPECT_EQ(item.node, 2);
}

TEST(TotSearch, an_unreadable_state_is_replaced_by_the_next_best) {
  const std::string after = " The hand takes it.\n[STATE 1] I have that, ";
  Scripted scheduler({{"q/1/action", "pick up the red block"},
                      {"q/2/action", "pick up the blue block"},
                      {"q/3/action", "dance"},
                      {"q/1/value", "Score: 9"},
                      {"q/2/value", "Score: 2"},
                      {"q/1/state", " Who knows."},
                      {"q/2/state", after + "the red block is clear, the hand is holding the blue "
                                            "block and the red block is on the table.\n"},
                      {"q/4/action", "put down the blue block"},
                      {"q/4/value", "Score: 3"},
                      {"q/5/action", "stack the blue block on top of the red block"},
                      {"q/5/value", "Score: 8"},
                      {"q/6/action", "put down the blue block"},
                      {"q/5/state", after + "the blue block is clear, the hand is empty, the blue "
                                            "block is on top of the red block and the red block is "
                                            "on the table.\n"}});
  const TotItem item = found_by(scheduler, blocks(), settings_for("blocks.jsonl", 2, 3, 1));
  EXPECT_THAT(fates(item), ElementsAre(kUnreadable, kKept, kUnreadable, kPruned, kKept, kPruned));
  EXPECT_THAT(scheduler.batches[2], ElementsAre("q/1/state"));
  EXPECT_THAT(scheduler.batches[3], ElementsAre("q/2/state"));
  EXPECT_THAT(scheduler.requests_by_id["q/4/action"].run.prompt,
              HasSubstr("holding the blue block"));
  EXPECT_EQ(item.answer, "pick up the blue block; stack the blue block on top of the red block");
  EXPECT_FALSE(item.correct);
  EXPECT_THAT(item.reason, HasSubstr("the red block is not on the blue block"));
}

TEST(TotSearch, a_plan_can_be_complete_and_still_wrong) {
  Scripted scheduler({{"q/1/action", "pick up the red block"},
                      {"q/1/value", "Score: 9"},
                      {"q/1/state",
                       " I have that, the blue block is clear, the hand is holding "
                       "the red block and the blue block is on the table."},
                      {"q/2/action", "stack the red block on top of the blue block"},
                      {"q/2/value", "Score: 10"},
                      {"q/2/state",
                       " I have that, the red block is clear, the hand is empty, the "
                       "red block is on top of the blue block and the blue block is "
                       "on the table."}});
  const TotItem item = found_by(scheduler, blocks(), settings_for("blocks.jsonl", 7, 1, 1));
  EXPECT_EQ(item.nodes.size(), 3u);
  EXPECT_TRUE(item.nodes[2].complete);
  EXPECT_TRUE(item.correct) << item.reason;
}

TEST(TotSearch, writing_plans_first_and_answers_with_the_passage) {
  Record record;
  record.id = "q";
  record.task = "creative_writing";
  record.prompt = "Write a coherent passage. A. B. C. D.\n";
  record.check = R"({"form": "passage", "sentences": ["A.", "B.", "C.", "D."]})";
  Scripted scheduler({{"q/1/plan", "One\nTwo"},
                      {"q/1/value", " 4"},
                      {"q/2/plan", "Three"},
                      {"q/2/value", " 7."},
                      {"q/3/passage", "x A.\n\nx B."},
                      {"q/3/value", " 7"},
                      {"q/4/passage", "x A.\n\nx B.\n\nx C.\n\nx D.\n"},
                      {"q/4/value", " 8"}});
  const TotItem item = found_by(scheduler, record, settings_for("writing.jsonl", 5, 2, 1));
  EXPECT_THAT(scheduler.requests_by_id["q/3/passage"].run.prompt,
              HasSubstr("Plan:\nThree\n\nPassage:\n"));
  EXPECT_EQ(item.node, 4);  // the value decides between complete chains
  EXPECT_TRUE(item.correct) << item.reason;
  EXPECT_EQ(item.answer, "x A.\n\nx B.\n\nx C.\n\nx D.");
}

TEST(TotSearch, reports_the_tree_as_events) {
  Scripted scheduler(two_levels());
  EventList events;
  const SchedulerWatch watch{.events = &events, .first_run = 10};
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2), watch);
  Timeline timeline;
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_EQ(timeline.searches().size(), 1U);
  const SearchRecord& reported = timeline.searches()[0];
  EXPECT_EQ(reported.begun.id, "q");
  EXPECT_EQ(reported.begun.question, "Anna has 5 pens and buys 7. How many?");
  EXPECT_EQ(reported.begun.beam, 2);
  ASSERT_EQ(reported.thoughts.size(), item.nodes.size() - 1);
  for (const ThoughtRecord& thought : reported.thoughts) {
    const TotNode& node = item.nodes[static_cast<std::size_t>(thought.made.node)];
    EXPECT_EQ(thought.made.parent, node.parent);
    EXPECT_EQ(thought.made.depth, node.depth);
    ASSERT_FALSE(thought.judged.empty());
    EXPECT_EQ(thought.judged.back().fate, node.fate);
    ASSERT_TRUE(thought.valued);
    EXPECT_EQ(thought.valued->value, node.valued->value);
  }
  // Runs are numbered in the order of requests: two questions, two answers, two values, ..
  EXPECT_EQ(reported.thoughts[1].made.text, "How many cups? There are 4 cups.");
  EXPECT_THAT(reported.thoughts[1].made.runs, ElementsAre(11u, 13u));
  EXPECT_EQ(reported.thoughts[1].valued->by, 15u);
  EXPECT_EQ(reported.ended->node, 4);
  EXPECT_EQ(reported.ended->by, 28u);
  EXPECT_FALSE(reported.ended->stopped);
}

TEST(TotSearch, thoughts_and_evaluations_are_counted_separately) {
  Scripted scheduler(two_levels());
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2));
  EXPECT_EQ(item.thoughts.n_calls, 12);
  EXPECT_EQ(item.values.n_calls, 6);
  EXPECT_EQ(item.answers.n_calls, 1);
  EXPECT_EQ(item.thoughts.n_tokens, 36);
  EXPECT_EQ(item.values.n_proposed, 24);
  EXPECT_EQ(item.values.n_accepted, 6);
  EXPECT_EQ(item.values.n_draft_depth, 24);
  EXPECT_EQ(item.values.n_kept_of_depth, 6);
}

TEST(TotSearch, a_stop_within_a_level_reports_no_selection) {
  for (const int n : {0, 1, 3, 5, 9, 18}) {
    Scripted scheduler(two_levels());
    scheduler.n_before_stop = n;
    const Record record = sums();
    EventList events;
    const TotReport report = search(scheduler, bundled(), {&record, 1},
                                    settings_for("arith.jsonl", 2, 2, 2), {.events = &events});
    EXPECT_FALSE(report.complete) << n;
    EXPECT_TRUE(report.items.empty()) << n;
    EXPECT_EQ(scheduler.requests_by_id.size(),
              static_cast<std::size_t>(n));  // no request after the stop
    const auto& ended = std::get<SearchEnded>(events.events.back());
    EXPECT_TRUE(ended.stopped);
    EXPECT_EQ(ended.node, 0);
    EXPECT_FALSE(ended.correct);
  }
}

TEST(TotSearch, thoughts_beyond_the_context_end_their_chain) {
  auto script = two_levels();
  std::string long_answer;
  for (int i = 0; i < 2000; i++) long_answer += " 12345";
  script["q/2/answer"] = long_answer;
  Scripted scheduler(script);
  const TotItem item = found_by(scheduler, sums(), settings_for("arith.jsonl", 2, 2, 2));
  EXPECT_FALSE(item.nodes[2].valued->read);  // its evaluation prompt exceeds the context
  EXPECT_EQ(item.node, 4);                   // a child of node 1, whose prompt fits
  EXPECT_THAT(fates(item), ElementsAre(kKept, kKept, kKept, kKept, kUnreadable, kUnreadable));
  Record record = sums();
  record.prompt = "Question:\n" + long_answer + "\nAnswer:\n";
  try {
    Scripted none({});
    found_by(none, record, settings_for("arith.jsonl", 2, 2, 2));
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), HasSubstr("q/1/question"));
    EXPECT_THAT(error.what(), HasSubstr("1024"));
  }
}

}  // namespace
}  // namespace engine::test
