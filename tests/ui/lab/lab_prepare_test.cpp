// The computations of the Laboratory on a small session whose results are computed by hand.
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/lab/acceptance.h"
#include "engine/lab/cost.h"
#include "engine/lab/what_if.h"
#include "tests/ui/support/prepared.h"
#include "ui/prepare/lab/decisions.h"
#include "ui/prepare/lab/speedup_curve.h"

namespace {

using engine::Event;
using engine::Nanoseconds;
using engine::RowFate;
using engine::RowTag;
using engine::RunId;
using engine::StepId;
using engine::TokenId;
using testing::ElementsAre;

constexpr Nanoseconds kMs = 1'000'000;

// Collects the events of a session with the vocabulary <s>, a, b, c, d, e.
struct Session {
  std::vector<Event> events{engine::ModelLoaded{.model = 1,
                                                .name = "tiny",
                                                .vocab_size = 6,
                                                .max_seq_len = 64,
                                                .pieces = {"<s>", " a", " b", " c", " d", " e"}}};
  Nanoseconds t = 0;
  int n_tokens = 0;

  void begin(RunId run,
             const std::string& decoder,
             const std::map<std::string, std::string>& options = {},
             const std::string& prompt_id = "prompt") {
    n_tokens = 0;
    events.push_back(engine::RunStarted{.t = t,
                                        .run = run,
                                        .model = 1,
                                        .decoder = decoder,
                                        .options = options,
                                        .sampling = "coupled",
                                        .max_tokens = 4,
                                        .prompt = "s",
                                        .prompt_tokens = {0},
                                        .prompt_id = prompt_id});
  }
  struct Row {
    TokenId token = 1;
    int parent = 0;
    RowFate fate = RowFate::Accepted;
    RowTag tag = {RowTag::Kind::Draft, 1, 0};
  };
  struct Times {
    Nanoseconds propose = 0, forward = 10 * kMs, finish = 0;
  };
  // Appends a step with the given proposals and committed tokens.
  void step(RunId run,
            StepId id,
            const std::vector<Row>& rows,
            const std::vector<TokenId>& tokens,
            const Times& times,
            engine::Drafted drafted = {},
            std::vector<engine::RejectionDetail> details = {},
            std::vector<float> keep = {}) {
    drafted.t = t;
    drafted.run = run;
    drafted.step = id;
    drafted.tree = {{0}, {-1}, {{}}};
    engine::Verified verified{.t = t, .run = run, .step = id, .fate = {RowFate::Context}};
    for (const Row& row : rows) {
      drafted.tree.token.push_back(row.token);
      drafted.tree.parent.push_back(row.parent);
      drafted.tree.tag.push_back(row.tag);
      verified.fate.push_back(row.fate);
      verified.n_accepted += row.fate == RowFate::Accepted;
      verified.n_rejected += row.fate == RowFate::Rejected;
      verified.n_unused += row.fate == RowFate::Unused;
    }
    verified.n_proposed = verified.n_accepted + verified.n_rejected + verified.n_unused;
    verified.picked.assign(verified.fate.size(), 1);
    verified.logp.assign(verified.fate.size(), -0.1f);
    verified.margin.assign(verified.fate.size(), 1);
    verified.rejection_details = std::move(details);
    verified.uniform.assign(keep.size(), 0.5f);
    verified.keep = std::move(keep);
    engine::Committed committed{
        .t = t, .run = run, .step = id, .first_pos = 1 + n_tokens, .tokens = tokens};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool last = i + 1 == tokens.size();
      committed.status.push_back(rows.empty() ? engine::TokenStatus::Plain
                                 : last       ? engine::TokenStatus::Bonus
                                              : engine::TokenStatus::Accepted);
      committed.origin.push_back({});
    }
    n_tokens += static_cast<int>(tokens.size());
    const int n_rows = drafted.tree.n_rows();
    events.push_back(
        engine::StepBegun{.t = t, .run = run, .step = id, .kv_len = n_tokens, .n_rows = n_rows});
    events.push_back(std::move(drafted));
    events.push_back(std::move(verified));
    events.push_back(std::move(committed));
    t += times.propose + times.forward + times.finish;
    events.push_back(engine::StepEnded{.t = t,
                                       .run = run,
                                       .step = id,
                                       .propose = times.propose,
                                       .forward = times.forward,
                                       .verify = times.finish,
                                       .kv_len = n_tokens});
  }
  void end(RunId run, int n_steps) {
    events.push_back(engine::RunFinished{
        .t = t, .run = run, .stop_reason = "length", .n_tokens = n_tokens, .n_steps = n_steps});
  }
  void plain(RunId run) {
    begin(run, "ar");
    for (int i = 0; i < 4; ++i) step(run, i, {}, {i + 1}, {});
    end(run, 4);
  }
};

// Plain decoding with steps of 10 ms, then two steps of a chain of two drafts: both accepted, then the first rejected. A step takes 4 ms for two
// forwards of the draft, 12 ms for three rows, and 1 ms to verify.
engine::Timeline session() {
  Session s;
  s.plain(1);
  s.begin(2, "speculative", {{"gamma", "2"}});
  const Session::Times times{.propose = 4 * kMs, .forward = 12 * kMs, .finish = kMs};
  const engine::Drafted drafted{
      .forwards = {{.begun = 0, .ended = 2 * kMs}, {.begun = 2 * kMs, .ended = 4 * kMs}}};
  const RowTag second{RowTag::Kind::Draft, 2, 0};
  s.step(2, 0, {{1, 0}, {2, 1, RowFate::Accepted, second}}, {1, 2, 3}, times, drafted,
         {{.row = 0, .token = {1, 2}, .p = {0.5f, 0.3f}, .q = {0.6f, 0.1f}}}, {-1, 0.8f, 0.9f});
  s.step(2, 1, {{5, 0, RowFate::Rejected}, {2, 1, RowFate::Unused, second}}, {4}, times, drafted);
  s.end(2, 2);
  return timeline_of(s.events);
}

TEST(LabAcceptance, counts_by_depth) {
  const engine::Timeline timeline = session();
  const engine::Acceptance a = engine::acceptance_of(timeline.runs()[1]);
  EXPECT_EQ(a.proposed, 4);
  EXPECT_EQ(a.verified, 3);
  EXPECT_EQ(a.accepted, 2);
  ASSERT_EQ(a.by_depth.size(), 2u);
  EXPECT_EQ(a.by_depth[0].verified, 2);
  EXPECT_EQ(a.by_depth[0].accepted, 1);
  EXPECT_EQ(a.by_depth[0].reached, 2);
  EXPECT_EQ(a.by_depth[1].verified, 1);
  EXPECT_EQ(a.by_depth[1].accepted, 1);
  EXPECT_EQ(a.by_depth[1].reached, 1);
  EXPECT_EQ(a.by_depth[1].passed, 1);
  EXPECT_TRUE(a.is_chain);
  EXPECT_DOUBLE_EQ(a.tokens_per_step(), 2);
}

TEST(LabAcceptance, alpha_is_the_overlap_of_p_and_q) {
  const engine::Timeline timeline = session();
  const engine::Acceptance a = engine::acceptance_of(timeline.runs()[1]);
  // The two tokens of the first step have min(1, p / q) 0.8 and 0.9.
  EXPECT_EQ(a.alpha.n, 2);
  EXPECT_NEAR(a.by_depth[1].alpha.mean(), 0.9, 1e-6);
  EXPECT_NEAR(a.rate(), 0.85, 1e-6);
  // At depth 1, min(0.5, 0.6) + min(0.3, 0.1) = 0.6; the other tokens share at most min(0.2, 0.3) more.
  EXPECT_NEAR(a.by_depth[0].alpha.low(), 0.6, 1e-6);
  EXPECT_NEAR(a.by_depth[0].alpha.high(), 0.8, 1e-6);
  EXPECT_EQ(a.by_depth[1].alpha.n_bounded, 0);
  // A chain of two with 0.85: 1 + 0.85 + 0.7225.
  EXPECT_NEAR(a.expected, 2.5725, 1e-5);
}

TEST(LabAcceptance, expected_tokens_follow_the_geometric_formula) {
  EXPECT_DOUBLE_EQ(engine::expected_tokens(0.5, 0), 1);
  EXPECT_DOUBLE_EQ(engine::expected_tokens(0.5, 2), 1.75);
  EXPECT_DOUBLE_EQ(engine::expected_tokens(0, 5), 1);
  EXPECT_DOUBLE_EQ(engine::expected_tokens(1, 3), 4);
}

TEST(LabAcceptance, a_tree_uses_the_reached_depths) {
  Session s;
  s.begin(1, "medusa");
  s.step(1, 0,
         {{1, 0, RowFate::Rejected},
          {2, 0, RowFate::Accepted, {RowTag::Kind::Draft, 1, 1}},
          {3, 1, RowFate::Unused, {RowTag::Kind::Draft, 2, 0}}},
         {2, 3}, {});
  const engine::Timeline timeline = timeline_of(s.events);
  const engine::Acceptance a = engine::acceptance_of(timeline.runs()[0]);
  EXPECT_FALSE(a.is_chain);
  EXPECT_EQ(a.verified, 2);
  EXPECT_EQ(a.accepted, 1);
  EXPECT_EQ(a.reached, 2) << "depth 2 is reached although its proposal is elsewhere";
  EXPECT_EQ(a.passed, 1);
  EXPECT_DOUBLE_EQ(a.rate(), 0.5);
}

TEST(LabAcceptance, tasks_join_runs_of_one_method) {
  Session s;
  const auto run = [&](RunId id, const char* prompt, const char* gamma, RowFate fate) {
    s.begin(id, "speculative", {{"gamma", gamma}}, prompt);
    const RowTag second{RowTag::Kind::Draft, 2, 0};
    s.step(id, 0, {{1, 0, fate}, {2, 1, RowFate::Unused, second}}, {1}, {});
  };
  run(1, "arith/1/test/4", "2", RowFate::Accepted);
  run(2, "arith/1/test/5", "2", RowFate::Rejected);
  run(3, "sql/1/test/5", "2", RowFate::Accepted);
  run(4, "sql/1/test/6", "8", RowFate::Accepted);
  run(5, "prompt", "2", RowFate::Accepted);
  const engine::Timeline timeline = timeline_of(s.events);
  engine::AlphaOfRuns known;
  const auto tasks = engine::acceptance_by_task(timeline, timeline.runs()[0], known);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].task, "arith");
  EXPECT_EQ(tasks[0].n_runs, 2);
  EXPECT_EQ(tasks[0].accepted, 1);
  EXPECT_EQ(tasks[0].proposed, 4) << "with two that were not verified";
  EXPECT_EQ(tasks[0].verified, 2);
  EXPECT_EQ(tasks[1].task, "sql");
  EXPECT_EQ(tasks[1].n_runs, 1) << "gamma=8 is another method";
}

TEST(LabAcceptance, alpha_of_a_task_is_that_of_its_ended_runs) {
  Session s;
  for (const RunId id : {1, 2, 3}) {
    s.begin(id, "speculative", {{"gamma", "1"}}, "arith/" + std::to_string(id));
    s.step(id, 0, {{1, 0}}, {1, 2}, {}, {}, {}, {-1, id == 1 ? 0.5f : 0.75f});
    if (id < 3) s.end(id, 1);
  }
  const engine::Timeline timeline = timeline_of(s.events);
  engine::AlphaOfRuns known;
  const auto tasks = engine::acceptance_by_task(timeline, timeline.runs()[0], known);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].n_runs, 3);
  EXPECT_EQ(tasks[0].alpha.n, 2);
  EXPECT_NEAR(tasks[0].alpha.mean(), 0.625, 1e-6);
  EXPECT_EQ(known.size(), 2u);
}

TEST(LabAcceptance, lost_tokens_have_their_context) {
  const engine::Timeline timeline = session();
  const auto lost = engine::lost_tokens(timeline, timeline.runs()[1]);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].proposed_text, " e");
  EXPECT_EQ(lost[0].instead_text, " d");
  EXPECT_EQ(lost[0].context, " a b c");
  EXPECT_EQ(lost[0].n, 1);
  EXPECT_EQ(lost[0].n_unused, 1);
  EXPECT_THAT(lost[0].steps, ElementsAre(1));
}

TEST(LabCost, parts_sum_to_the_time_of_a_step) {
  const engine::Timeline timeline = session();
  const engine::RunRecord& run = timeline.runs()[1];
  const engine::SpeedAccount account =
      engine::speed_account(timeline, run, engine::acceptance_of(run));
  EXPECT_EQ(account.why, "");
  EXPECT_EQ(account.baseline, 1u);
  EXPECT_DOUBLE_EQ(account.plain_ms, 10);
  EXPECT_DOUBLE_EQ(account.step_ms, 17);
  std::vector<double> ms;
  std::vector<std::string> names;
  for (const engine::SpeedPart& part : account.parts) {
    ms.push_back(part.ms);
    names.push_back(part.name);
  }
  EXPECT_THAT(names, ElementsAre("expected tokens alone", "drafts", "rows of accepted tokens",
                                 "rows without accepted tokens", "verification, commit"));
  // Of two further rows in a step one is accepted, so half of their 2 ms has no accepted token.
  EXPECT_THAT(ms, ElementsAre(0, 4, 1, 1, 1));
  EXPECT_NEAR(account.parts[0].speedup, 2.5725, 1e-5);
  EXPECT_NEAR(account.parts[1].speedup, 2.5725 * 10 / 14, 1e-5);
  EXPECT_NEAR(account.predicted, 2.5725 * 10 / 17, 1e-5);
  EXPECT_NEAR(account.measured, 40.0 / 34, 1e-9);
}

TEST(LabCost, runs_without_a_baseline_say_why) {
  Session s;
  s.begin(1, "speculative");
  s.step(1, 0, {{1, 0}}, {1, 2}, {});
  s.end(1, 1);
  s.plain(2);
  engine::Timeline timeline = timeline_of(s.events);
  const auto why = [&](std::size_t run) {
    const engine::RunRecord& record = timeline.runs()[run];
    return engine::speed_account(timeline, record, engine::acceptance_of(record)).why;
  };
  EXPECT_EQ(why(0), "") << "the order of the runs does not matter";
  EXPECT_THAT(why(1), testing::HasSubstr("plain decoding"));
  timeline = timeline_of({s.events.begin(), s.events.begin() + 8});
  EXPECT_THAT(why(0), testing::HasSubstr("No finished run of plain decoding"));
}

TEST(LabCost, recorded_rows_follow_a_line) {
  const engine::Timeline timeline = session();
  const engine::RowCurve curve =
      engine::row_curve(engine::RowCost::Recorded, timeline, timeline.runs()[1]);
  // 10 ms for one row and 12 ms for three.
  EXPECT_NEAR(curve.at(1), 1, 1e-9);
  EXPECT_NEAR(curve.at(2), 1.1, 1e-9);
  EXPECT_NEAR(curve.at(5), 1.4, 1e-9);
  EXPECT_EQ(engine::row_curve(engine::RowCost::Free, timeline, timeline.runs()[1]).at(100), 1);
}

TEST(LabCost, rows_of_an_h100_are_those_of_the_measurement) {
  std::ifstream in(DECOSCOPE_SOURCE_DIR "/docs/measurements/gpu/h100_80gb_hbm3_27_november.json");
  const nlohmann::json rows = nlohmann::json::parse(in)["second_call"]["model"]["rows"];
  const engine::Timeline timeline = session();
  const engine::RowCurve curve =
      engine::row_curve(engine::RowCost::H100, timeline, timeline.runs()[1]);
  ASSERT_EQ(curve.points.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(curve.points[i].first, rows[i]["rows"]);
    EXPECT_NEAR(curve.points[i].second, rows[i]["times_of_one"], 5e-5);
  }
  EXPECT_NEAR(curve.at(48), (1.1473 + 1.3908) / 2, 1e-9);
}

TEST(LabWhatIf, recorded_sizes_give_the_measured_speedup) {
  const engine::Timeline timeline = session();
  const engine::RecordedShape shape = engine::recorded_shape(timeline, timeline.runs()[1]);
  EXPECT_EQ(shape.why, "");
  EXPECT_EQ(shape.recorded, (engine::WhatIfSizes{.depth = 2, .width = 1, .nodes = 2, .window = 0}));
  const engine::WhatIf result = engine::what_if(shape, shape.recorded, engine::RowCost::Recorded);
  EXPECT_DOUBLE_EQ(result.tokens, 2);
  EXPECT_DOUBLE_EQ(result.rows, 3);
  EXPECT_NEAR(result.ms, 17, 1e-9);
  EXPECT_NEAR(result.speedup, 40.0 / 34, 1e-9);
}

TEST(LabWhatIf, another_depth_changes_tokens_rows_and_draft) {
  const engine::Timeline timeline = session();
  const engine::RecordedShape shape = engine::recorded_shape(timeline, timeline.runs()[1]);
  const auto at = [&](int depth, engine::RowCost cost) {
    engine::WhatIfSizes sizes = shape.recorded;
    sizes.depth = depth;
    return engine::what_if(shape, sizes, cost);
  };
  // Depth 1: 2 and 1 tokens, 11 ms for two rows, one draft forward.
  EXPECT_DOUBLE_EQ(at(1, engine::RowCost::Recorded).tokens, 1.5);
  EXPECT_NEAR(at(1, engine::RowCost::Recorded).ms, 11 + 2 + 1, 1e-9);
  EXPECT_NEAR(at(0, engine::RowCost::Recorded).speedup, 10.0 / 11, 1e-9);
  EXPECT_NEAR(at(2, engine::RowCost::Free).speedup, 2 * 10.0 / 15, 1e-9);
  // Depth 3: after the first step's two acceptances a third follows with the mean acceptance, 2 of 3.
  EXPECT_NEAR(at(3, engine::RowCost::Recorded).tokens, (3 + 2.0 / 3 + 1) / 2, 1e-9);
  EXPECT_NEAR(at(3, engine::RowCost::Recorded).ms, 13 + 6 + 1, 1e-9);
  EXPECT_EQ(engine::largest(shape, engine::Knob::Width), 0) << "a chain has no width";
}

TEST(LabWhatIf, curve_says_where_it_falls_below_one) {
  const engine::Timeline timeline = session();
  const engine::RecordedShape shape = engine::recorded_shape(timeline, timeline.runs()[1]);
  const ui::Curve curve =
      ui::speedup_over(shape, engine::Knob::Depth, shape.recorded, engine::RowCost::Recorded);
  ASSERT_EQ(curve.x.size(), 17u);
  EXPECT_EQ(curve.x[2], 2);
  EXPECT_NEAR(curve.y[2], 40.0 / 34, 1e-9);
  // At depth d > 2 a step takes 11 + 3 d ms and yields at most (3 + 2 + 1) / 2 tokens: below 1 from 30 / 3 on at the latest.
  const std::string words = ui::below_one_words(curve);
  EXPECT_THAT(words, testing::MatchesRegex("below 1 from [5-7] on"));
  EXPECT_EQ(ui::below_one_words({"", {0, 1, 2}, {0.9, 1.1, 1.2}}), "at least 1 everywhere");
  EXPECT_EQ(ui::below_one_words({"", {1, 2}, {0.9, 0.8}}), "below 1 everywhere");
}

TEST(LabWhatIf, a_narrow_tree_leaves_rows_out) {
  Session s;
  s.plain(1);
  s.begin(2, "medusa");
  // Root: two candidates; the second is accepted, and its child too.
  s.step(2, 0,
         {{1, 0, RowFate::Rejected},
          {2, 0, RowFate::Accepted, {RowTag::Kind::Draft, 1, 1}},
          {3, 2, RowFate::Accepted, {RowTag::Kind::Draft, 2, 0}},
          {4, 1, RowFate::Unused, {RowTag::Kind::Draft, 2, 0}}},
         {2, 3, 4}, {.forward = 14 * kMs});
  s.step(2, 1, {{5, 0, RowFate::Rejected}}, {1}, {});
  s.end(2, 2);
  const engine::Timeline timeline = timeline_of(s.events);
  const engine::RecordedShape shape = engine::recorded_shape(timeline, timeline.runs()[1]);
  EXPECT_EQ(shape.recorded, (engine::WhatIfSizes{.depth = 2, .width = 2, .nodes = 4, .window = 0}));
  engine::WhatIfSizes sizes = shape.recorded;
  sizes.width = 1;  // rows 1 and 4 are left
  EXPECT_DOUBLE_EQ(engine::what_if(shape, sizes, engine::RowCost::Free).tokens, 1);
  EXPECT_DOUBLE_EQ(engine::what_if(shape, sizes, engine::RowCost::Free).rows, (3 + 2) / 2.0);
  sizes = shape.recorded;
  sizes.nodes = 2;  // the accepted child is cut
  EXPECT_DOUBLE_EQ(engine::what_if(shape, sizes, engine::RowCost::Free).tokens, (2 + 1) / 2.0);
  EXPECT_EQ(engine::largest(shape, engine::Knob::Depth), 2) << "trees are not continued";
}

TEST(LabWhatIf, window_columns_scale_their_rows) {
  Session s;
  s.plain(1);
  s.begin(2, "lookahead");
  std::vector<Session::Row> rows;
  for (std::int16_t level = 0; level < 2; ++level)
    for (std::int16_t column = 0; column < 3; ++column)
      rows.push_back({1, 0, RowFate::Window, {RowTag::Kind::Window, level, column}});
  rows.push_back({1, 0, RowFate::Accepted, {RowTag::Kind::Guess, 0, 0}});
  s.step(2, 0, rows, {1, 2}, {});
  s.end(2, 1);
  const engine::Timeline timeline = timeline_of(s.events);
  const engine::RecordedShape shape = engine::recorded_shape(timeline, timeline.runs()[1]);
  EXPECT_EQ(shape.recorded.window, 3);
  engine::WhatIfSizes sizes = shape.recorded;
  sizes.window = 1;
  EXPECT_DOUBLE_EQ(engine::what_if(shape, sizes, engine::RowCost::Free).rows, 1 + 2 + 1);
  EXPECT_EQ(engine::largest(shape, engine::Knob::Window), 6);
}

TEST(LabDecisions, curves_have_expected_and_measured_values) {
  Session s;
  s.begin(1, "prompt-lookup");
  engine::Drafted drafted;
  drafted.decision = {.size = 3, .tokens = 2.5f, .ms = 11, .plain_ms = 9};
  s.step(1, 0, {}, {1}, {});
  s.step(1, 1, {{2, 0}}, {2, 3}, {.propose = kMs, .forward = 12 * kMs}, drafted);
  const engine::Timeline timeline = timeline_of(s.events);
  const ui::Decisions all = ui::decisions_of(timeline.runs()[0]);
  EXPECT_THAT(all.size[0].x, ElementsAre(1)) << "the size of step 0 was given";
  EXPECT_THAT(all.size[0].y, ElementsAre(3));
  EXPECT_THAT(all.tokens[0].y, ElementsAre(2.5));
  EXPECT_THAT(all.tokens[1].y, ElementsAre(2));
  EXPECT_THAT(all.ms[0].y, ElementsAre(11));
  EXPECT_THAT(all.ms[1].y, ElementsAre(13));
  EXPECT_THAT(all.ms[2].y, ElementsAre(9));

  const engine::RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(run.steps.head(0).chosen, 0);
  EXPECT_EQ(run.steps.head(1).chosen, 1 + 3);
  EXPECT_EQ(ui::choice_words(run, 0, 1), "no size was chosen");
  EXPECT_EQ(ui::choice_words(run, 1, 2),
            "size 3\nexpected 2.50 tokens in 11 ms, measured 2 in 13 ms; a plain step takes 9 ms");
  EXPECT_EQ(ui::choice_words(run, 0, 2), ui::choice_words(run, 1, 2));
}

TEST(LabDecisions, labels_compare_prediction_and_result) {
  Session s;
  s.begin(1, "prompt-lookup");
  engine::Drafted drafted;
  s.step(1, 0, {}, {1}, {});
  drafted.decision = {.size = 4, .tokens = 2.1f, .ms = 10, .plain_ms = 9};
  s.step(1, 1, {{2, 0}}, {2, 3}, {.forward = 12 * kMs}, drafted);
  s.step(1, 2, {{2, 0}}, {2}, {.forward = 12 * kMs}, drafted);
  s.step(1, 3, {{2, 0}}, {2, 3}, {.forward = 16 * kMs}, drafted);
  s.step(1, 4, {{2, 0}}, {2}, {.forward = 5 * kMs}, drafted);
  const engine::Timeline timeline = timeline_of(s.events);
  const engine::RunRecord& run = timeline.runs()[0];
  EXPECT_TRUE(ui::choice_labels(run.steps[0]).empty()) << "no size was chosen";
  EXPECT_FALSE(ui::missed_by(run.steps[0]).any());
  EXPECT_THAT(
      ui::choice_labels(run.steps[1]),
      ElementsAre("4: 2.1 tokens, 10.0 ms; measured 2, 12.0 ms", "4: 2.1 tokens; measured 2", "4"));
  EXPECT_THAT(ui::choice_labels(run.steps[2]),
              ElementsAre("! 4: 2.1 tokens, 10.0 ms; measured 1, 12.0 ms",
                          "! 4: 2.1 tokens; measured 1", "! 4"));
  const auto missed = [&](std::size_t i) {
    const ui::Missed found = ui::missed_by(run.steps[i]);
    return std::pair(found.tokens, found.time);
  };
  EXPECT_EQ(missed(1), std::pair(false, false));
  EXPECT_EQ(missed(2), std::pair(true, false)) << "fewer than half of the tokens";
  EXPECT_EQ(missed(3), std::pair(false, true)) << "1.6 times the time";
  EXPECT_EQ(missed(4), std::pair(true, true)) << "half of the time";
  using testing::EndsWith, testing::HasSubstr, testing::Not;
  EXPECT_THAT(ui::choice_words(run, 1, 2), Not(HasSubstr("!")));
  EXPECT_THAT(ui::choice_words(run, 2, 3), EndsWith("\n! missed the prediction: tokens"));
  EXPECT_THAT(ui::choice_words(run, 3, 4), EndsWith("\n! missed the prediction: time"));
  EXPECT_THAT(ui::choice_words(run, 4, 5), EndsWith("\n! missed the prediction: tokens, time"));
  EXPECT_THAT(ui::choice_words(run, 0, 5),
              EndsWith("\n! missed the prediction: tokens of 2 steps, time of 2"));
}

TEST(LabDecisions, words_of_several_choices_are_means) {
  Session s;
  s.begin(1, "prompt-lookup");
  engine::Drafted drafted;
  drafted.decision = {.size = 4, .tokens = 3, .ms = 10, .plain_ms = 9, .probe = true};
  s.step(1, 0, {{2, 0}}, {2, 3}, {.forward = 12 * kMs}, drafted);
  drafted.decision = {.size = 0, .tokens = 1, .ms = 9, .plain_ms = 9};
  s.step(1, 1, {}, {1}, {.forward = 8 * kMs}, drafted);
  const engine::Timeline timeline = timeline_of(s.events);
  const engine::RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(ui::choice_words(run, 0, 2),
            "mean of 2 choices: size 2.0, 1 of them to learn from\nexpected 2.00 tokens in 9.5 ms, "
            "measured 1.5 in 10 ms; a plain step takes 9 ms");
  EXPECT_THAT(ui::choice_words(run, 1, 2), testing::StartsWith("no guesses: plain decoding\n"));
}

}  // namespace
