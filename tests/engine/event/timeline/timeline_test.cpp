#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/event/timeline/timeline_events.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::model_loaded;
using test::run_events;
using test::small_stream;

Timeline timeline_of(const std::vector<Event>& events) {
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  return timeline;
}

/// The first event of kind T, for tests to change.
template <typename T>
T& first(std::vector<Event>& events) {
  for (Event& event : events) {
    if (T* found = std::get_if<T>(&event)) return *found;
  }
  throw std::logic_error("no such event in this stream");
}

template <typename T, typename Alter>
Timeline with_altered(Alter alter) {
  std::vector<Event> events = small_stream();
  alter(first<T>(events));
  return timeline_of(events);
}

TEST(Timeline, statistics_equal_hand_computed_values) {
  const Timeline timeline = timeline_of(small_stream());
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_EQ(timeline.runs().size(), 1U);
  const RunRecord& run = timeline.runs()[0];
  // 4 steps commit 1 + 3 + 1 + 3 tokens, each costing 83.5 us.
  EXPECT_EQ(run.decode_compute(), 334'000);
  EXPECT_DOUBLE_EQ(run.tokens_per_step(), 2.0);
  EXPECT_DOUBLE_EQ(run.tokens_per_second(), 8 / 334e-6);
  EXPECT_EQ(run.n_proposed(), 8);
  EXPECT_EQ(run.n_accepted(), 4);
  EXPECT_EQ(run.n_rejected(), 2);
  EXPECT_EQ(run.n_unused(), 2);
  EXPECT_DOUBLE_EQ(run.acceptance_rate(), 0.5);
  EXPECT_EQ(run.n_rows(), 12);
  EXPECT_TRUE(run.over());
}

TEST(Timeline, tokens_have_position_step_origin_and_probability) {
  const Timeline timeline = timeline_of(small_stream());
  const std::vector<TokenRecord>& tokens = timeline.runs()[0].tokens;
  ASSERT_EQ(tokens.size(), 8U);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].pos, 2 + static_cast<int>(i));
  const std::vector<TokenId> ids{7, 8, 9, 10, 7, 8, 9, 10};
  EXPECT_TRUE(std::ranges::equal(tokens, ids, {}, &TokenRecord::id));
  EXPECT_EQ(tokens[2].step, 1);
  EXPECT_EQ(tokens[1].origin.kind, RowTag::Kind::Guess);
  EXPECT_EQ(tokens[3].status, TokenStatus::Bonus);
  // If all guesses are accepted, row 0 predicts the step's first token, row 1 the second, and row 2
  // the bonus.
  EXPECT_TRUE(tokens[3].has_logp);
  EXPECT_FLOAT_EQ(tokens[1].logp, -0.5F);
  EXPECT_FLOAT_EQ(tokens[2].logp, -0.25F);
  EXPECT_FLOAT_EQ(tokens[3].logp, -0.125F);
}

// The first recordings stored accepted / verified, 4 of 6, under this name.
TEST(Timeline, old_recordings_use_the_present_acceptance_rate) {
  const Timeline timeline = with_altered<RunFinished>([](RunFinished& e) {
    e.metrics = {{"acceptance_rate", 4.0 / 6}, {"pool_hits", 2}};
  });
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(run.finished->metrics.at("acceptance_rate"), 4.0 / 8);
  EXPECT_EQ(run.finished->metrics.at("acceptance_rate"), run.acceptance_rate());
  EXPECT_EQ(run.finished->metrics.at("pool_hits"), 2);
  EXPECT_EQ(timeline_of(small_stream()).runs()[0].finished->metrics.size(), 1U)
      << "no metric is added";

  std::vector<Event> nothing_proposed = {model_loaded()};
  for (Event& event : run_events({.decoder = "ar"})) nothing_proposed.push_back(std::move(event));
  first<RunFinished>(nothing_proposed).metrics = {{"acceptance_rate", 0}};
  EXPECT_TRUE(timeline_of(nothing_proposed).runs()[0].finished->metrics.empty());
}

TEST(Timeline, old_recordings_have_the_present_names_of_metrics) {
  const Timeline timeline = with_altered<RunFinished>([](RunFinished& e) {
    e.metrics = {{"accepted_of_judged", 0.5}, {"head_1_judged", 3}, {"head_1_accepted", 2}};
  });
  const std::map<std::string, double> expected{
      {"accepted_of_verified", 0.5}, {"head_1_accepted", 2}, {"head_1_verified", 3}};
  EXPECT_EQ(timeline.runs()[0].finished->metrics, expected);
}

TEST(Timeline, an_empty_timeline_has_no_undefined_numbers) {
  const Timeline timeline = timeline_of({model_loaded(), run_events({.n_steps = 0})[0]});
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(run.tokens_per_second(), 0);
  EXPECT_EQ(run.tokens_per_step(), 0);
  EXPECT_EQ(run.acceptance_rate(), 0);
  EXPECT_FALSE(timeline.speedup(run).has_value());
}

TEST(Timeline, version_grows_with_every_event_even_refused_ones) {
  Timeline timeline;
  timeline.apply(model_loaded());
  timeline.apply(StepBegun{.run = 9});
  EXPECT_EQ(timeline.version(), 2U);
  EXPECT_EQ(timeline.n_inconsistent(), 1);
  ASSERT_EQ(timeline.inconsistencies().size(), 1U);
  EXPECT_NE(timeline.inconsistencies()[0].find("no run with this number"), std::string::npos);
}

TEST(Timeline, approximate_prompt_tokens_lie_inside_the_prompt) {
  const auto n_refused = [](int first, int n) {
    Timeline timeline;
    timeline.apply(model_loaded());
    RunStarted run{.run = 1, .model = 1, .prompt_tokens = {1, 2, 3}};
    run.first_approximate = first;
    run.n_approximate = n;
    timeline.apply(run);
    if (const RunRecord* reported = timeline.run(1)) {
      EXPECT_EQ(reported->approximate_of_prompt().size(), static_cast<std::size_t>(n));
      for (int i = 0; i < 5; i++)
        EXPECT_EQ(reported->is_approximate_in_prompt(i), i >= first && i < first + n);
    }
    return timeline.n_inconsistent();
  };
  EXPECT_EQ(n_refused(0, 0), 0);
  EXPECT_EQ(n_refused(1, 2), 0);
  EXPECT_EQ(n_refused(3, 0), 0);
  EXPECT_EQ(n_refused(2, 2), 1);
  EXPECT_EQ(n_refused(-1, 1), 1);
  EXPECT_EQ(n_refused(1, -1), 1);
  EXPECT_EQ(n_refused(0x7FFF'FFFF, 0x7FFF'FFFF), 1);
}

std::vector<Event> race_of(const std::vector<test::RunShape>& shapes) {
  std::vector<Event> events{model_loaded()};
  for (const test::RunShape& shape : shapes) {
    const std::vector<Event> run = run_events(shape);
    events.insert(events.end(), run.begin(), run.end());
  }
  return events;
}

TEST(Timeline, speedup_is_a_ratio_to_a_measured_baseline) {
  const Timeline timeline = timeline_of(race_of(
      {{.run = 1, .decoder = "ar", .race = 5, .lane = 1, .n_steps = 8}, {.run = 2, .race = 5}}));
  EXPECT_DOUBLE_EQ(timeline.speedup(*timeline.run(2)).value(), 2.0);
  EXPECT_DOUBLE_EQ(timeline.speedup(*timeline.run(1)).value(), 1.0);
  ASSERT_EQ(timeline.race(5).size(), 2U);
  EXPECT_EQ(timeline.race(5)[0]->id(), 2U);  // lane 0 first
}

TEST(Timeline, an_interleaved_run_has_no_speedup_of_its_own) {
  std::vector<Event> events = race_of(
      {{.run = 1, .decoder = "ar", .race = 5, .lane = 1, .n_steps = 8}, {.run = 2, .race = 5}});
  const auto begun = std::ranges::find_if(events, [](const Event& event) {
    const auto* started = std::get_if<RunStarted>(&event);
    return started && started->run == 2;
  });
  ASSERT_NE(begun, events.end());
  const Nanoseconds t = std::get<RunStarted>(*begun).t;
  events.insert(begun + 1, Queued{.t = t, .run = 2, .branch = 0, .resource = "draft"});
  EXPECT_FALSE(timeline_of(events).speedup(*timeline_of(events).run(2)).has_value());
}

TEST(Timeline, no_speedup_without_a_measured_baseline) {
  const auto speedup_with = [](auto alter) {
    std::vector<Event> events =
        race_of({{.run = 1, .decoder = "ar", .n_steps = 8}, {.run = 2, .t0 = 9'000'000}});
    alter(events);
    const Timeline timeline = timeline_of(events);
    return timeline.speedup(*timeline.run(2)).has_value();
  };
  EXPECT_TRUE(speedup_with([](auto&) {}));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).prompt_tokens = {1}; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).temperature = 1; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).seed = 2; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).max_tokens = 63; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).ignore_eos = true; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).stop_texts = {"END"}; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).stop_ids = {5}; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunStarted>(e).decoder = "jacobi"; }));
  EXPECT_FALSE(speedup_with([](auto& e) { first<RunFinished>(e).stop_reason = "stopped"; }));
  EXPECT_FALSE(speedup_with([](auto& e) {
    ModelLoaded scaled = std::get<ModelLoaded>(e[0]);
    scaled.model = 2, scaled.scale = "4x2";
    first<RunStarted>(e).model = 2;
    e.insert(e.begin(), scaled);
  }));
}

TEST(Timeline, incomplete_characters_are_shown_until_completed) {
  const Timeline timeline = timeline_of(small_stream());
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(timeline.text_of(run, 3), "<0xC3>");
  const std::vector<TokenId> whole{1, 3, 4};
  EXPECT_EQ(timeline.text_of(run, whole), " the\xC3\xA9");
  EXPECT_EQ(timeline.text_of(run, 2), "\xE2\x90\x8A");  // U+240A, symbol for line feed
  const std::vector<TokenId> lines{1, 2, 1};
  EXPECT_EQ(timeline.plain_text_of(run, lines), " the\n the");
  EXPECT_EQ(timeline.text_of(run, 77), "<token 77>");
  EXPECT_EQ(timeline.text_of(run, -1), "<token -1>");
}

/// A run that emits 7, 8 9 10, 7, 8 9 10 after a prompt of two tokens, with these pieces.
Timeline written(std::vector<TokenId> prompt,
                 const std::vector<std::pair<int, std::string>>& pieces) {
  std::vector<Event> events = small_stream();
  ModelLoaded& model = first<ModelLoaded>(events);
  model.drops_first_space = true;
  for (const auto& [id, piece] : pieces) model.pieces[static_cast<std::size_t>(id)] = piece;
  first<RunStarted>(events).prompt_tokens = std::move(prompt);
  return timeline_of(events);
}

TEST(Timeline, the_first_word_after_control_tokens_has_no_space) {
  const Timeline alone = written({0, 0}, {{0, ""}, {7, " a"}});
  EXPECT_EQ(alone.generated_text(alone.runs()[0], 0, 5), "at8t9t10 a");
  EXPECT_EQ(alone.generated_bytes(alone.runs()[0], 4), " a");
  const Timeline after_text = written({0, 1}, {{0, ""}, {7, " a"}});
  EXPECT_EQ(after_text.generated_text(after_text.runs()[0], 0, 1), " a");
}

TEST(Timeline, a_character_belongs_to_the_step_that_completes_it) {
  const Timeline timeline = written({1, 1}, {{7, "\xE2"}, {8, "\x82"}, {9, "\xAC."}, {10, "\xC3"}});
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(timeline.generated_text(run, 0, 1), "");
  EXPECT_EQ(timeline.generated_text(run, 1, 3), "\xE2\x82\xAC.");
  EXPECT_EQ(timeline.generated_text(run, 4, 1), "\xC3") << "no character continues with this byte";
  EXPECT_EQ(timeline.generated_text(run, 5, 3), "\xE2\x82\xAC.\xC3") << "incomplete at the end";
  EXPECT_EQ(timeline.generated_text(run, 0, 8),
            timeline.generated_text(run, 0, 1) + timeline.generated_text(run, 1, 3) +
                timeline.generated_text(run, 4, 1) + timeline.generated_text(run, 5, 3));
}

TEST(Timeline, a_character_begun_in_the_prompt_counts_if_completed) {
  const Timeline completed = written({1, 3}, {{7, "\xA9!"}});
  EXPECT_EQ(completed.generated_text(completed.runs()[0], 0, 1), "\xC3\xA9!");
  EXPECT_EQ(completed.generated_text(completed.runs()[0], 4, 1), "\xA9!");
  const Timeline broken = written({1, 3}, {{7, "z"}});
  EXPECT_EQ(broken.generated_text(broken.runs()[0], 0, 1), "z");
}

// TR04.
TEST(Timeline, absurd_values_are_counted_and_ignored) {
  constexpr Nanoseconds kMin = std::numeric_limits<Nanoseconds>::min();
  constexpr Nanoseconds kMax = std::numeric_limits<Nanoseconds>::max();
  for (const Nanoseconds t : {Nanoseconds{-1}, kMin, kMax}) {
    const Timeline timeline = with_altered<StepEnded>([t](StepEnded& e) { e.t = t; });
    EXPECT_EQ(timeline.runs()[0].totals.n_steps, 3) << t;
    EXPECT_GE(timeline.n_inconsistent(), 1) << t;
  }
  for (const Nanoseconds t : {Nanoseconds{-1}, kMin, kMax}) {
    const Timeline timeline = with_altered<StepEnded>([t](StepEnded& e) { e.forward = t; });
    EXPECT_EQ(timeline.run(1)->decode_compute(), 250'500) << t;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(with_altered<Verified>([&](Verified& e) { e.logp[0] = nan; }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Committed>([](Committed& e) { e.t = 5; }).n_inconsistent(), 1);
}

// TR05.
TEST(Timeline, contradictions_do_not_change_statistics) {
  EXPECT_EQ(with_altered<Committed>([](Committed& e) { e.tokens[0] = 16; }).runs()[0].tokens.size(),
            7U);
  EXPECT_EQ(with_altered<Committed>([](Committed& e) { e.tokens[0] = -1; }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Verified>([](Verified& e) { e.n_accepted = 3; }).runs()[0].n_proposed(),
            6);
  EXPECT_EQ(with_altered<Drafted>([](Drafted& e) { e.tree.parent[1] = 1; }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Drafted>([](Drafted& e) { e.tree.parent[1] = -2; }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Drafted>([](Drafted& e) { e.tree.tag.pop_back(); }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Drafted>([](Drafted& e) { e.tree.owner.push_back(1); }).n_inconsistent(),
            1);
  EXPECT_EQ(with_altered<Drafted>([](Drafted& e) { e.sources.resize(1); }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Verified>([](Verified& e) { e.fate.pop_back(); }).n_inconsistent(), 1);
  for (const RankExchange& one : {RankExchange{1, 2, {}}, RankExchange{-1, 2, {3}},
                                  RankExchange{1, -2, {3}}, RankExchange{1, 2, {3, -1}}})
    EXPECT_EQ(with_altered<Verified>([&](Verified& e) { e.exchange = {one}; }).n_inconsistent(), 1);
  EXPECT_EQ(with_altered<Verified>([](Verified& e) {
              e.exchange.assign(2, {1, 2, {3}});
            }).n_inconsistent(),
            1);
}

TEST(Timeline, a_lost_step_does_not_shift_later_ones) {
  std::vector<Event> events = small_stream();
  const auto lost = std::ranges::find_if(events, [](const Event& e) {
    const auto* begun = std::get_if<StepBegun>(&e);
    return begun && begun->step == 1;
  });
  events.erase(lost);
  const Timeline timeline = timeline_of(events);
  const RunRecord& run = timeline.runs()[0];
  ASSERT_EQ(run.steps.size(), 4U);
  EXPECT_FALSE(run.steps[1].complete);
  EXPECT_EQ(run.steps[3].begun.step, 3);
  EXPECT_EQ(run.totals.n_steps, 3);
  EXPECT_GT(timeline.n_inconsistent(), 0);
  const Timeline hostile = with_altered<StepBegun>([](StepBegun& e) { e.step = 2'000'000'000; });
  EXPECT_LE(hostile.runs()[0].steps.size(), 4U);
}

TEST(Timeline, events_before_a_step_starts_belong_to_that_step) {
  Timeline timeline;
  timeline.apply(model_loaded());
  timeline.apply(run_events({})[0]);
  timeline.apply(BlockRefined{.t = 1'000'001, .run = 1, .step = 0, .tokens = {7, 7}});
  timeline.apply(PoolChanged{.t = 1'000'001, .run = 1, .step = 0, .n_keys = 1});
  timeline.apply(StepBegun{.t = 1'000'002, .run = 1, .step = 0});
  timeline.apply(PoolChanged{.t = 1'000'003, .run = 1, .step = 0, .added = {{}}, .n_keys = 2});
  const StepRecord& step = timeline.runs()[0].steps.at(0);
  EXPECT_EQ(step.blocks.size(), 1U);
  EXPECT_EQ(step.pool.value().n_keys, 2);
  EXPECT_EQ(step.pool.value().added.size(), 1U);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST(Timeline, a_step_reported_before_its_draft_gets_the_drafts_rows) {
  std::vector<Event> events = small_stream();
  const RunTotals before = timeline_of(events).runs()[0].totals;
  for (Event& event : events)
    if (auto* begun = std::get_if<StepBegun>(&event)) begun->n_rows = 0;
  const Timeline timeline = timeline_of(events);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(run.totals.n_rows, before.n_rows);
  for (const StepRecord& step : run.steps) EXPECT_EQ(step.begun.n_rows, step.drafted.tree.n_rows());
  // Applying exported events again, as for a saved session, counts nothing twice.
  EventList again;
  replay_events(timeline, again);
  EXPECT_EQ(timeline_of(again.events).runs()[0].totals.n_rows, before.n_rows);
}

TEST(Timeline, totals_count_once_and_outlive_dropped_payload) {
  Timeline timeline;
  timeline.set_payload_budget(0);
  for (const Event& event : small_stream()) timeline.apply(event);
  const RunTotals before = timeline.runs()[0].totals;
  EXPECT_EQ(before.rows_of(RowTag::Kind::Current), 4);  // one per step
  EXPECT_EQ(before.rows_of(RowTag::Kind::Guess), 8);
  EXPECT_EQ(before.rows_of(RowTag::Kind::Draft), 0);
  EXPECT_EQ(before.n_blocks, 0);
  Timeline more;
  more.set_payload_budget(0);
  more.apply(model_loaded());
  more.apply(run_events({})[0]);
  more.apply(BlockRefined{.t = 1'000'001, .run = 1, .step = 0, .tokens = {7, 7}});
  more.apply(PoolChanged{.t = 1'000'001, .run = 1, .step = 0, .n_keys = 1});
  more.apply(StepBegun{.t = 1'000'002, .run = 1, .step = 0});
  const TokenTree tree{
      .token = {5, 7}, .parent = {-1, 0}, .tag = {RowTag{}, RowTag{RowTag::Kind::Window, 0, 0}}};
  more.apply(Drafted{.t = 1'000'003, .run = 1, .step = 0, .tree = tree});
  more.apply(Drafted{.t = 1'000'003, .run = 1, .step = 0, .tree = tree});
  more.apply(BlockRefined{.t = 1'000'004, .run = 1, .step = 0, .tokens = {99'999}});
  EXPECT_EQ(more.runs()[0].totals.n_blocks, 1) << "refused events do not count";
  EXPECT_EQ(more.runs()[0].totals.n_pools, 1);
  EXPECT_EQ(more.runs()[0].totals.rows_of(RowTag::Kind::Window), 1)
      << "reported twice, counted once";
}

TEST(Timeline, every_event_kind_is_applied_or_refused_with_a_reason) {
  const Timeline timeline = timeline_of(test::every_kind());
  EXPECT_TRUE(timeline.held());
  EXPECT_EQ(timeline.samples().size(), 1U);
  EXPECT_EQ(timeline.runs()[0].agreement.value().first_difference, 12);
  EXPECT_EQ(timeline.n_events(), 25);
  ASSERT_EQ(timeline.searches().size(), 1U);
  EXPECT_EQ(timeline.searches()[0].ended.value().answer, "44");
}

std::vector<Event> a_search() {
  return {SearchBegun{.t = 1, .search = 3, .id = "a", .depth = 2, .n_thoughts = 2, .beam = 1},
          ThoughtMade{.t = 2, .search = 3, .node = 1, .parent = 0, .depth = 1, .text = "left"},
          ThoughtMade{.t = 3, .search = 3, .node = 2, .parent = 0, .depth = 1, .text = "right"},
          ThoughtValued{.t = 4, .search = 3, .node = 1, .by = 5, .value = 2, .read = true},
          ThoughtValued{.t = 5, .search = 3, .node = 2, .by = 6, .value = 9, .read = true},
          ThoughtJudged{.t = 6, .search = 3, .node = 2, .fate = ThoughtFate::Kept},
          ThoughtJudged{.t = 7, .search = 3, .node = 1, .fate = ThoughtFate::Pruned},
          ThoughtMade{.t = 8, .search = 3, .node = 3, .parent = 2, .depth = 2, .text = "on"},
          ThoughtJudged{.t = 9, .search = 3, .node = 2, .fate = ThoughtFate::Pruned},
          SearchEnded{.t = 10, .search = 3, .node = 3, .answer = "44", .correct = true}};
}

TEST(Timeline, a_tree_of_thoughts_is_kept_and_exported) {
  const Timeline timeline = timeline_of(a_search());
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_EQ(timeline.searches().size(), 1U);
  const SearchRecord& search = timeline.searches()[0];
  ASSERT_EQ(search.thoughts.size(), 3U);
  const auto chain = search.chain_to(3);
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_EQ(chain[0]->made.text, "right");
  EXPECT_EQ(chain[0]->valued->value, 9);
  EXPECT_EQ(chain[0]->judged.back().fate, ThoughtFate::Pruned);  // the last status counts
  EXPECT_EQ(chain[1]->made.text, "on");
  EXPECT_EQ(search.thought(0), nullptr);
  EventList again;
  replay_events(timeline, again);
  ASSERT_EQ(again.events.size(), a_search().size());
  for (std::size_t i = 0; i < again.events.size(); ++i)
    EXPECT_EQ(test::bytes_of(again.events[i]), test::bytes_of(a_search()[i])) << i;
}

TEST(Timeline, thoughts_that_contradict_their_tree_are_ignored) {
  const auto refused = [](const Event& event) {
    Timeline timeline = timeline_of(a_search());
    timeline.apply(event);
    return timeline.n_inconsistent() == 1;
  };
  std::vector<Event> open = a_search();
  open.pop_back();
  const auto refused_while_open = [&](const Event& event) {
    Timeline timeline = timeline_of(open);
    const std::size_t n = timeline.searches()[0].thoughts.size();
    timeline.apply(event);
    return timeline.n_inconsistent() == 1 && timeline.searches()[0].thoughts.size() == n;
  };
  EXPECT_TRUE(
      refused(ThoughtMade{.t = 11, .search = 3, .node = 4, .depth = 1}));  // the search is over
  EXPECT_TRUE(refused(SearchBegun{.t = 11, .search = 3}));
  EXPECT_TRUE(refused(SearchBegun{.t = 11, .search = 0}));
  EXPECT_TRUE(refused_while_open(ThoughtMade{.t = 11, .search = 3, .node = 3, .depth = 1}));
  EXPECT_TRUE(
      refused_while_open(ThoughtMade{.t = 11, .search = 3, .node = 9, .parent = 8, .depth = 1}));
  EXPECT_TRUE(
      refused_while_open(ThoughtMade{.t = 11, .search = 3, .node = 9, .parent = 2, .depth = 3}));
  EXPECT_TRUE(refused_while_open(ThoughtValued{.t = 11, .search = 3, .node = 7}));
  EXPECT_TRUE(refused_while_open(
      ThoughtValued{.t = 11, .search = 3, .node = 1, .value = std::nan(""), .read = true}));
  EXPECT_TRUE(refused_while_open(ThoughtJudged{.t = 11, .search = 4, .node = 1}));
  EXPECT_TRUE(refused_while_open(SearchEnded{.t = 11, .search = 3, .node = 12}));
  EXPECT_FALSE(refused_while_open(ThoughtMade{.t = 11, .search = 3, .node = 9, .depth = 1}));
}

TEST(Event, every_kind_has_its_time_and_run) {
  const std::vector<Event> events = test::every_kind();
  ASSERT_EQ(events.size(), std::variant_size_v<Event>);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].index(), i);
    EXPECT_EQ(time_of(events[i]), 10 + static_cast<Nanoseconds>(i));
    const bool of_a_run = !std::holds_alternative<ModelLoaded>(events[i]) &&
                          !std::holds_alternative<Sampled>(events[i]) &&
                          !std::holds_alternative<Held>(events[i]) &&
                          events[i].index() < Event(Notice{}).index();
    EXPECT_EQ(run_of(events[i]), of_a_run ? 3U : 0U) << i;
  }
}

}  // namespace
}  // namespace engine
