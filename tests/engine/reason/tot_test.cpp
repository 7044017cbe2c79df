// Trees of thoughts on the bundled models: decoder and batching do not change a thought.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/reason/early_stop.h"
#include "engine/reason/tot.h"

namespace engine::test {
namespace {

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

class Tot : public testing::Test {
 protected:
  static RunModels models() {
    static ModelStore store(kAssets, 1);
    static const RunModels both = store.get_with_draft({}, {}, "speculative");
    return both;
  }
  static TotReport searched(const std::string& task,
                            const std::string& decoder,
                            int batch,
                            float temperature,
                            const SchedulerWatch& watch = {}) {
    BatchScheduler scheduler(models(), batch);
    return searched_by(scheduler, models(), task, decoder, temperature, watch);
  }
  static TotReport searched_by(Scheduler& scheduler,
                               const RunModels& models,
                               const std::string& task,
                               const std::string& decoder,
                               float temperature,
                               const SchedulerWatch& watch = {}) {
    const TotTaskInfo& info = tot_task_info(task);
    const auto questions = tot_questions(task, {.level = info.level, .count = 2}, 6, "");
    TotSettings settings;
    settings.decoder = decoder;
    if (decoder == "mcsd") settings.options = {{"k_config", "2,1,1"}};
    settings.thoughts.temperature = temperature;
    settings.thoughts.seed = 3;
    settings.depth = 3;
    settings.n_thoughts = 3;
    settings.beam = 2;
    settings.prompts = read_tot_prompts(kAssets + "/prompts/tot/" + info.prompts);
    return search(scheduler, *models.target.model, questions, settings, watch);
  }
  static void expect_same(const TotReport& found, const TotReport& expected) {
    ASSERT_EQ(found.items.size(), expected.items.size());
    for (std::size_t i = 0; i < found.items.size(); i++) {
      const TotItem &a = found.items[i], &b = expected.items[i];
      EXPECT_EQ(a.answer, b.answer);
      EXPECT_EQ(a.node, b.node);
      EXPECT_EQ(a.correct, b.correct);
      ASSERT_EQ(a.nodes.size(), b.nodes.size());
      for (std::size_t n = 0; n < a.nodes.size(); n++) {
        EXPECT_EQ(a.nodes[n].parent, b.nodes[n].parent);
        EXPECT_EQ(a.nodes[n].parts, b.nodes[n].parts);
        EXPECT_EQ(a.nodes[n].fate, b.nodes[n].fate);
        ASSERT_EQ(a.nodes[n].valued.has_value(), b.nodes[n].valued.has_value());
        if (a.nodes[n].valued) {
          EXPECT_EQ(a.nodes[n].valued->text, b.nodes[n].valued->text);
        }
      }
    }
  }
};

TEST_F(Tot, decoder_and_batching_do_not_change_the_tree) {
  for (const char* task : {"arith", "blocks"}) {
    const TotReport ar = searched(task, "ar", 1, 1);
    ASSERT_EQ(ar.items.size(), 2u);
    EXPECT_GT(ar.items[0].nodes.size(), 4u);
    expect_same(searched(task, "ar", 4, 1), ar);
    expect_same(searched(task, "speculative", 1, 1), ar);
    expect_same(searched(task, "mcsd", 3, 1), ar);
  }
}

TEST_F(Tot, seed_rounds_do_not_change_the_tree) {
  static ModelStore store(kAssets, 1);
  for (const char* task : {"arith", "blocks"}) {
    const TotReport ar = searched(task, "ar", 1, 1);
    for (const char* policy : {"fcfs", "priority"}) {
      const OptionValues options = {{"policy", policy}, {"k_config", "2,1"}};
      const RunModels models = models_for(store, {}, {}, "seed", options);
      const auto scheduler = make_scheduler(models, "seed", options, 1);
      expect_same(searched_by(*scheduler, models, task, "seed", 1), ar);
      EXPECT_GT(scheduler->figures().at("wait_for_target_ms"), 0);
    }
  }
}

TEST_F(Tot, greedy_thoughts_are_equal_for_every_decoder) {
  const TotReport ar = searched("arith", "ar", 1, 0);
  for (const TotItem& item : ar.items) {
    EXPECT_EQ(item.nodes[1].parts, item.nodes[2].parts);
    EXPECT_EQ(item.nodes[1].parts, item.nodes[3].parts);
  }
  expect_same(searched("arith", "lookahead", 1, 0), ar);
  expect_same(searched("arith", "speculative", 3, 0), ar);
}

TEST_F(Tot, sampled_thoughts_differ_and_are_evaluated) {
  const TotReport report = searched("arith", "ar", 3, 1);
  bool differ = false;
  int n_read = 0;
  for (const TotItem& item : report.items) {
    for (std::size_t n = 2; n < item.nodes.size(); n++)
      differ |= item.nodes[n].parent == item.nodes[n - 1].parent &&
                item.nodes[n].parts != item.nodes[n - 1].parts;
    for (const TotNode& node : item.nodes) n_read += node.valued && node.valued->read;
    EXPECT_GT(item.thoughts.n_tokens, 0);
    EXPECT_GT(item.thoughts.wall_seconds, 0);
  }
  EXPECT_TRUE(differ);
  EXPECT_GT(n_read, 6);
}

TEST_F(Tot, drafting_saves_steps_and_counts_accepted_tokens) {
  const TotReport ar = searched("arith", "ar", 1, 1), drafted = searched("arith", "mcsd", 1, 1);
  TotCost plain, saved;
  for (const TotItem& item : ar.items) plain += item.thoughts;
  for (const TotItem& item : drafted.items) saved += item.thoughts;
  EXPECT_EQ(saved.n_tokens, plain.n_tokens);
  EXPECT_LT(saved.n_steps, plain.n_steps);
  EXPECT_EQ(plain.n_proposed, 0);
  EXPECT_GT(saved.n_accepted, 0);
  EXPECT_LE(saved.n_accepted + saved.n_rejected, saved.n_proposed);
  EXPECT_GT(saved.n_kept_of_depth, 0);
  EXPECT_LT(saved.n_kept_of_depth, saved.n_draft_depth);
}

TEST_F(Tot, a_recording_contains_the_tree_and_its_runs) {
  EventList events;
  const TotReport report =
      searched("blocks", "speculative", 3, 1, {.events = &events, .first_run = 1});
  Timeline timeline;
  timeline.apply(describe(models().target));
  timeline.apply(describe(*models().draft));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_EQ(timeline.searches().size(), 2U);
  for (std::size_t i = 0; i < 2; i++) {
    const SearchRecord& reported = timeline.searches()[i];
    ASSERT_EQ(reported.thoughts.size() + 1, report.items[i].nodes.size());
    for (const ThoughtRecord& thought : reported.thoughts)
      for (const RunId run : thought.made.runs) ASSERT_NE(timeline.run(run), nullptr);
    EXPECT_EQ(reported.ended->answer, report.items[i].answer);
  }
  const TotCost& cost = report.items[0].thoughts;
  EXPECT_GT(cost.n_calls, 3);
}

TEST_F(Tot, a_stop_ends_within_a_step_and_keeps_results) {
  int n_asked = 0;
  SchedulerWatch watch;
  watch.stop = [&] { return ++n_asked > 40; };
  const TotReport report = searched("arith", "ar", 3, 1, watch);
  EXPECT_FALSE(report.complete);
  EXPECT_LT(report.items.size(), 2u);
  EXPECT_LT(n_asked, 50);
}

TEST(TotTexts, options_that_end_texts_early_are_refused) {
  EXPECT_NO_THROW(refuse_early_stop("fastcot", {}));
  EXPECT_NO_THROW(refuse_early_stop("fastcot", {{"stop", "none"}, {"bound", "4"}}));
  for (const char* stop : {"bound", "probe"}) {
    try {
      refuse_early_stop("fastcot", {{"stop", stop}});
      FAIL() << "expected a refusal";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Usage);
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string("stop is ") + stop));
    }
  }
}

}  // namespace
}  // namespace engine::test
