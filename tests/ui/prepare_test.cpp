// Data that panels prepare for drawing.
#include <cctype>
#include <cmath>

#include <gtest/gtest.h>

#include "engine/event/timeline/repeats.h"
#include "engine/lab/acceptance.h"
#include "engine/lab/cost.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/search.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/prepare/tokens/pool.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/trajectory.h"

namespace {

using namespace ui;

TEST(RunTimes, sums_of_steps_match_the_run) {
  for (const char* decoder : {"ar", "jacobi", "lookahead", "prompt-lookup"}) {
    const auto timeline = timeline_of(streams::one_run(decoder));
    const engine::RunRecord& run = *timeline.run(1);
    const RunTimes times = times_of(run);
    ASSERT_EQ(times.steps.size(), run.steps.size());
    EXPECT_EQ(times.total.tokens, 96) << decoder;
    EXPECT_EQ(times.total.accepted, run.n_accepted());
    EXPECT_EQ(times.total.rejected, run.n_rejected());
    EXPECT_NEAR(times.total.compute, double(run.decode_compute()), 1);
  }
}

TEST(RunTimes, incremental_and_full_extension_agree) {
  const auto events = streams::one_run("lookahead");
  engine::Timeline timeline;
  RunTimes grown;
  for (const engine::Event& event : events) {
    timeline.apply(event);
    if (const auto* run = timeline.run(1)) extend(grown, *run);
  }
  const RunTimes whole = times_of(*timeline.run(1));
  ASSERT_EQ(grown.steps.size(), whole.steps.size());
  EXPECT_EQ(grown.total.rows, whole.total.rows);
  EXPECT_EQ(grown.end_compute(), whole.end_compute());
}

TEST(RunTimes, clock_conversions_are_inverse) {
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  const RunTimes times = times_of(*timeline.run(2));
  for (const ClockKind clock :
       {ClockKind::Wall, ClockKind::Compute, ClockKind::Step, ClockKind::Position})
    for (const double share : {0.0, 0.31, 0.5, 1.0}) {
      const double at = share * times.end_compute();
      EXPECT_NEAR(to_compute(clock, times, on_clock(clock, times, at, 0), 0), at, 2);
    }
  EXPECT_EQ(steps_shown(times, times.end_compute()), times.steps.size());
  EXPECT_EQ(steps_shown(times, times.steps[3].compute1), 4u);
  EXPECT_EQ(steps_shown(times, 0), 0u);
}

TEST(TextCells, have_the_status_of_each_token) {
  const auto plain = timeline_of(streams::one_run("ar"));
  const auto cells = text_cells(plain, *plain.run(1), 5, false);
  const std::size_t n_prompt = plain.run(1)->started.prompt_tokens.size();
  ASSERT_EQ(cells.size(), n_prompt + 5);
  EXPECT_EQ(cells.front().mean, Mean::Prefix);
  EXPECT_EQ(cells.back().mean, Mean::Plain);
  EXPECT_EQ(cells.back().position, static_cast<int>(n_prompt) + 4);

  const auto look_up = timeline_of(streams::one_run("prompt-lookup"));
  int n_pool = 0, n_bonus = 0;
  const engine::RunRecord& run = *look_up.run(1);
  for (const TextCell& cell : text_cells(look_up, run, run.steps.size(), false)) {
    n_pool += cell.mean == Mean::Accepted && cell.origin == Mean::Pool;
    n_bonus += cell.mean == Mean::Bonus;
  }
  EXPECT_GT(n_pool, 0);
  EXPECT_GT(n_bonus, 0);
}

TEST(TextCells, rejected_proposals_follow_the_text) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  std::size_t n = 0;
  while (run.steps[n].verified.n_rejected == 0 || run.steps[n].verified.n_unused == 0) ++n;
  const auto cells = text_cells(timeline, run, n + 1, false);
  std::vector<Mean> behind;
  for (const TextCell& cell : cells)
    if (!cell.committed) behind.push_back(cell.mean);
  ASSERT_GE(behind.size(), 2u);
  EXPECT_EQ(behind[0], Mean::Rejected);
  EXPECT_EQ(behind[1], Mean::Unused);
}

TEST(TextCells, are_laid_out_within_the_width) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const auto cells = text_cells(timeline, *timeline.run(1), 40, false);
  for (const float width : {30.0f, 200.0f, 900.0f}) {
    const auto boxes = lay_out(cells, width, {}, false);
    ASSERT_EQ(boxes.size(), cells.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_LE(boxes[i].x + boxes[i].width, width + 0.01f);
      if (i == 0) continue;
      EXPECT_TRUE(boxes[i].line > boxes[i - 1].line ||
                  boxes[i].x >= boxes[i - 1].x + boxes[i - 1].width);
    }
  }
}

// Returns a run with three iterations of a block of four tokens; the answer is 5 6 7 8.
engine::RunRecord small_block() {
  engine::RunRecord run;
  run.started.run = 1;
  const std::vector<std::vector<engine::TokenId>> states{{5, 9, 7, 8}, {5, 6, 7, 9}, {5, 6, 7, 8}};
  const std::vector<int> proved{1, 3, 4};
  for (int i = 0; i < 3; ++i) {
    engine::StepRecord step;
    step.begun.step = i;
    step.complete = true;
    step.blocks.push_back({.run = 1,
                           .step = i,
                           .block = 0,
                           .iteration = i + 1,
                           .first_pos = 10,
                           .tokens = states[i],
                           .n_final = proved[i],
                           .converged = i == 2});
    run.steps.push_back(step);
    for (int p = i == 0 ? 0 : proved[i - 1]; p < proved[i]; ++p)
      run.tokens.push_back({.id = states[2][p], .pos = 10 + p, .step = i});
  }
  return run;
}

TEST(Trajectory, final_requires_agreement) {
  const Grid grid = trajectory_grid(small_block(), 3, false);
  ASSERT_EQ(grid.rows.size(), 3u);
  EXPECT_EQ(grid.n_columns, 4);
  EXPECT_EQ(grid.rows[0].n_proved, 1);
  EXPECT_EQ(grid.rows[1].n_proved, 2);
  EXPECT_EQ(grid.rows[1].final_column, 3);
  EXPECT_EQ(grid.rows[0].cells[0].mean, Mean::Accepted);
  EXPECT_EQ(grid.rows[1].cells[1].mean, Mean::FastForward);
  EXPECT_EQ(grid.rows[1].cells[0].mean, Mean::Prefix);
  EXPECT_EQ(grid.n_fast_forward, 2);
  EXPECT_FALSE(grid.counts);
  EXPECT_TRUE(grid.rows[1].cells[1].changed);
  EXPECT_EQ(grid.rows[1].cells[2].unchanged_for, 1);
}

TEST(Trajectory, stationary_needs_hindsight) {
  const Grid grid = trajectory_grid(small_block(), 3, true);
  EXPECT_TRUE(grid.hindsight);
  // Position 12 was right from the first iteration on; 13 was right, then wrong again.
  EXPECT_EQ(grid.rows[0].cells[2].mean, Mean::Stationary);
  EXPECT_EQ(grid.rows[0].cells[3].mean, Mean::Guess);
  EXPECT_FALSE(grid.counts) << "the initial guess is not recorded";
  // Before position 12 is committed, nothing is known about it.
  EXPECT_EQ(trajectory_grid(small_block(), 1, true).rows[0].cells[2].mean, Mean::Guess);
}

// Returns a finished run of one block with all iterations.
engine::RunRecord whole_block(const std::vector<std::vector<engine::TokenId>>& states) {
  engine::RunRecord run;
  run.started.run = 1;
  int n_known = 1;
  for (std::size_t t = 0; t < states.size(); ++t) {
    engine::StepRecord step;
    step.begun.step = static_cast<int>(t);
    step.complete = true;
    const bool last = t + 1 == states.size();
    int n_final = 1;
    while (t > 0 && n_final < std::ssize(states[t]) &&
           states[t][n_final - 1] == states[t - 1][n_final - 1])
      ++n_final;
    step.blocks.push_back({.run = 1,
                           .step = step.begun.step,
                           .block = 0,
                           .iteration = static_cast<int>(t),
                           .first_pos = 10,
                           .tokens = states[t],
                           .n_final = last ? static_cast<int>(states[t].size()) : n_final,
                           .converged = last});
    run.steps.push_back(step);
    const int n = step.blocks[0].n_final;
    for (int p = t == 0 ? 0 : n_known; p < n; ++p)
      run.tokens.push_back({.id = states.back()[p], .pos = 10 + p, .step = step.begun.step});
    n_known = std::max(n_known, n);
  }
  return run;
}

TEST(Trajectory, whole_block_has_the_counts_of_the_metrics) {
  // A token that is right early counts once for all its iterations.
  const std::vector<std::vector<engine::TokenId>> slow{
      {7, 1, 1, 1, 1}, {7, 2, 9, 9, 5}, {7, 2, 3, 9, 5}, {7, 2, 3, 4, 5}};
  Grid grid = trajectory_grid(whole_block(slow), 4, true);
  ASSERT_TRUE(grid.counts);
  EXPECT_EQ(grid.counts->n_stationary, 1);
  EXPECT_EQ(grid.counts->fast_forward, (std::vector<int>{2, 1, 2}));
  EXPECT_EQ(grid.rows[1].cells[4].mean, Mean::Stationary);
  EXPECT_EQ(grid.rows[2].cells[4].mean, Mean::Stationary);
  // Right tokens of the initial guess do not count; no iteration produced them.
  const std::vector<std::vector<engine::TokenId>> lucky{{7, 1, 3}, {7, 2, 3}};
  grid = trajectory_grid(whole_block(lucky), 2, true);
  ASSERT_TRUE(grid.counts);
  EXPECT_EQ(grid.counts->n_stationary, 0);
  EXPECT_EQ(grid.rows[0].cells[2].mean, Mean::Guess);
  // There are no counts while the run is live or when rows of the block are missing.
  EXPECT_FALSE(trajectory_grid(whole_block(slow), 4, false).counts);
  EXPECT_FALSE(trajectory_grid(whole_block(slow), 3, true).counts);
  EXPECT_FALSE(trajectory_grid(whole_block(slow), 4, true, 2).counts);
}

TEST(Trajectory, counts_end_with_the_text) {
  // The sequence ends at its third token; later tokens of the block do not count.
  engine::RunRecord run = whole_block({{7, 1, 1, 1}, {7, 2, 9, 6}, {7, 2, 3, 6}});
  run.tokens.pop_back();
  run.finished = engine::RunFinished{.run = 1, .stop_reason = "eos"};
  const Grid grid = trajectory_grid(run, 3, true);
  ASSERT_TRUE(grid.counts);
  EXPECT_EQ(grid.counts->stationary.size(), 3u);
  EXPECT_EQ(grid.counts->n_stationary, 0);
  EXPECT_EQ(grid.counts->n_iterations, 2);
}

TEST(Trajectory, only_changes_hides_unchanged_cells) {
  engine::RunRecord run = small_block();
  // A fourth iteration that changes nothing, before the last.
  engine::StepRecord same = run.steps[1];
  same.begun.step = 3;
  same.blocks[0].step = 3;
  run.steps.push_back(same);
  Grid grid = trajectory_grid(run, 4, false);
  only_changes(grid);
  ASSERT_EQ(grid.rows.size(), 4u) << "the last differs from the one before it";
  run = small_block();
  same.blocks[0].tokens = run.steps[2].blocks[0].tokens;
  same.blocks[0].n_final = 4;
  run.steps.push_back(same);
  grid = trajectory_grid(run, 4, false);
  only_changes(grid);
  ASSERT_EQ(grid.rows.size(), 3u);
  EXPECT_EQ(grid.n_rows_unchanged, 1);
  const auto hidden = [&](int row) {
    std::vector<bool> cells;
    for (const GridCell& cell : grid.rows[row].cells) cells.push_back(cell.hidden);
    return cells;
  };
  EXPECT_EQ(hidden(0), (std::vector{false, false, false, false}))
      << "the first row has no predecessor";
  // 9 became 6; 7 stayed and became final; 8 became 9. The first was final before.
  EXPECT_EQ(hidden(1), (std::vector{true, false, false, false}));
  EXPECT_EQ(hidden(2), (std::vector{true, true, true, false}));
}

TEST(Trajectory, decoder_without_blocks_has_no_grid) {
  const auto timeline = timeline_of(streams::one_run("ar"));
  EXPECT_TRUE(trajectory_grid(*timeline.run(1), 10, true).rows.empty());
}

TEST(Trajectory, window_of_lookahead_is_levels_by_columns) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const WindowGrid grid = window_grid(timeline.run(1)->steps[4]);
  ASSERT_EQ(grid.row_of.size(), 3u);
  EXPECT_EQ(grid.row_of[0].size(), 5u);
  ASSERT_EQ(grid.candidates.size(), 1u);
  EXPECT_EQ(grid.candidates[0].size(), 3u);
}

TEST(Trajectory, guess_with_shared_prefix_is_complete) {
  using engine::RowTag;
  engine::StepRecord step;
  constexpr int shared = 1, first = 2, second = 3;  // rows of the tree
  step.drafted.tree.token = {5, 7, 8, 9};
  step.drafted.tree.parent = {-1, 0, shared, shared};
  step.drafted.tree.tag = {
      {}, {RowTag::Kind::Guess, 0, 0}, {RowTag::Kind::Guess, 0, 1}, {RowTag::Kind::Guess, 1, 1}};
  const WindowGrid grid = window_grid(step);
  ASSERT_EQ(grid.candidates.size(), 2u);
  EXPECT_EQ(grid.candidates[0], (std::vector<int>{shared, first}));
  EXPECT_EQ(grid.candidates[1], (std::vector<int>{shared, second}));
}

TEST(Numbers, figures_match_their_formulas) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  const engine::RunRecord& run = *timeline.run(2);
  const RunTimes times = times_of(run);
  const Numbers numbers = numbers_of(timeline, run, times, times.steps.size());
  EXPECT_EQ(numbers.tokens_per_step.numbers, "96 / " + std::to_string(run.steps.size()));
  EXPECT_EQ(numbers.tokens_per_step.value.substr(0, 3),
            std::to_string(96.0 / run.steps.size()).substr(0, 3));
  const double speedup = double(timeline.run(1)->decode_compute()) / double(run.decode_compute());
  EXPECT_NEAR(std::stod(numbers.speedup.value), speedup, 0.01);
}

TEST(Numbers, speedup_names_its_baseline_and_begins_with_a_step) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  const engine::RunRecord& run = *timeline.run(2);
  const RunTimes times = times_of(run);
  const Numbers numbers = numbers_of(timeline, run, times, times.steps.size());
  EXPECT_EQ(numbers.speedup.label, "speed-up vs run 1");
  EXPECT_NE(numbers.speedup.numbers.find("of run 1 / "), std::string::npos);
  EXPECT_NE(numbers.speedup.value, "-");
  EXPECT_EQ(numbers_of(timeline, run, times, 0).speedup.value, "-") << "no step is shown yet";
  EXPECT_EQ(numbers_of(timeline, run, times, 3).speedup.value, "-") << "of the whole run alone";
}

// Returns plain decoding, then Jacobi, which got `share` of the processor time of plain decoding.
engine::Timeline one_after_the_other(double share) {
  engine::Timeline timeline;
  engine::RunId run = 0;
  engine::Nanoseconds begun = 0;
  for (const char* decoder : {"ar", "jacobi"}) {
    ++run;
    for (engine::Event event : streams::one_run(decoder, 192)) {
      std::visit(
          [&](auto& e) {
            e.t += begun;
            if constexpr (requires { e.run; }) e.run = run;
          },
          event);
      timeline.apply(event);
    }
    const engine::RunRecord& ended = *timeline.run(run);
    const engine::Nanoseconds period = ended.last_event - ended.started.t;
    timeline.apply(engine::Sampled{.t = ended.last_event,
                                   .period = period,
                                   .device = "cpu",
                                   .busy_percent = run == 1 ? 90 : 90 * share});
    begun = ended.last_event + 1;
  }
  return timeline;
}

TEST(Numbers, baseline_measured_under_other_load_gives_no_speedup) {
  for (const double share : {1.0, 0.9, 0.5}) {
    const engine::Timeline timeline = one_after_the_other(share);
    const engine::RunRecord& run = *timeline.run(2);
    ASSERT_GT(run.last_event - run.started.t, 300'000'000);
    const RunTimes times = times_of(run);
    const Figure speedup = numbers_of(timeline, run, times, times.steps.size()).speedup;
    EXPECT_EQ(speedup.value == "-", share < 0.75) << share;
    EXPECT_EQ(speedup.numbers.find("may have been loaded differently") != std::string::npos,
              share < 0.75);
  }
}

TEST(Numbers, laboratory_and_difference_refuse_a_baseline_under_other_load) {
  const std::string reason =
      "Run 1 used 90 % of the processor, this run 45 %: the machine may have been loaded "
      "differently.";
  for (const bool is_refused : {false, true}) {
    const engine::Timeline timeline = one_after_the_other(is_refused ? 0.5 : 1);
    const engine::RunRecord& run = *timeline.run(2);
    EXPECT_NE(timeline.speedup(run).has_value(), is_refused);
    const engine::SpeedAccount account =
        engine::speed_account(timeline, run, engine::acceptance_of(run));
    EXPECT_EQ(account.why.find(reason) == 0, is_refused) << account.why;
    EXPECT_EQ(account.measured > 0, !is_refused);
    const std::string how = how_measured(timeline, {timeline.run(1), &run});
    EXPECT_EQ(how.find("B has no speed-up: " + reason) != std::string::npos, is_refused) << how;
    EXPECT_EQ(engine::repeat_figures(timeline, run).speedup.n, is_refused ? 0 : 1);
    EXPECT_EQ(timeline.why_other_load(*timeline.run(1)), "") << "the baseline itself";
  }
}

TEST(Numbers, undefined_figures_are_dashes) {
  engine::Timeline timeline;
  timeline.apply(streams::story().model);
  timeline.apply(engine::RunStarted{.run = 1, .model = 1, .decoder = "jacobi"});
  const Numbers numbers = numbers_of(timeline, *timeline.run(1), {}, 0);
  for (const Figure* f : {&numbers.tokens_per_second, &numbers.tokens_per_step, &numbers.speedup,
                          &numbers.step_median})
    EXPECT_EQ(f->value, "-") << f->label;
}

TEST(Numbers, acceptance_by_position_sums_to_verified) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const engine::RunRecord& run = *timeline.run(1);
  Tally tally;
  advance(tally, run, run.steps.size());
  int accepted = 0, judged = 0;
  for (const AcceptanceAt& at : tally.by_place) accepted += at.accepted, judged += at.verified;
  EXPECT_EQ(accepted, run.n_accepted());
  EXPECT_EQ(judged, run.n_accepted() + run.n_rejected());
  Tally again = tally;
  advance(again, run, 3);
  advance(again, run, run.steps.size());
  EXPECT_EQ(again.committed, tally.committed);
}

TEST(Numbers, a_tally_after_jumps_is_that_of_a_new_one) {
  const auto timeline = timeline_of(streams::one_run("jacobi", 6000));
  const engine::RunRecord& run = *timeline.run(1);
  const std::size_t n = run.steps.size();
  ASSERT_GT(n, 3 * Tally::kKeptEvery);
  Tally jumping;
  const auto check = [&](StepRange range) {
    advance(jumping, run, range);
    Tally straight;
    advance(straight, run, range);
    EXPECT_EQ(jumping.committed, straight.committed) << range.end;
    ASSERT_EQ(jumping.by_place.size(), straight.by_place.size()) << range.end;
    for (std::size_t i = 0; i < straight.by_place.size(); ++i) {
      EXPECT_EQ(jumping.by_place[i].verified, straight.by_place[i].verified);
      EXPECT_EQ(jumping.by_place[i].accepted, straight.by_place[i].accepted);
    }
    EXPECT_EQ(jumping.n_steps, range.end);
  };
  for (const std::size_t end : {std::size_t{700}, n, std::size_t{0}, std::size_t{511},
                                std::size_t{512}, n - 1, std::size_t{1024}, n})
    check(end);
  for (const std::size_t end : {n, std::size_t{900}, n - 2}) check({300, end});
}

TEST(Numbers, both_acceptance_rates_are_shown) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  const engine::RunRecord& run = *timeline.run(2);
  const RunTimes times = times_of(run);
  const Numbers numbers = numbers_of(timeline, run, times, times.steps.size());
  const auto figure = [&](const std::string& label) {
    for (const Figure& f : numbers.more)
      if (f.label == label) return f;
    return Figure{};
  };
  const auto accepted = std::to_string(run.n_accepted());
  EXPECT_EQ(figure("acceptance rate").numbers, accepted + " / " + std::to_string(run.n_proposed()));
  EXPECT_EQ(figure("acceptance rate").formula.substr(0, 19), "accepted / proposed");
  EXPECT_EQ(figure("accepted of verified").numbers,
            accepted + " / (" + accepted + " + " + std::to_string(run.n_rejected()) + ")");
}

TEST(Numbers, fastcot_shares_have_denominators) {
  std::vector<engine::Event> events = streams::one_run("fastcot");
  const auto more_of = [&] {
    const auto timeline = timeline_of(events);
    const engine::RunRecord& run = *timeline.run(1);
    const RunTimes times = times_of(run);
    return numbers_of(timeline, run, times, times.steps.size()).more;
  };
  const std::size_t n_without = more_of().size();
  for (engine::Event& event : events)
    if (auto* finished = std::get_if<engine::RunFinished>(&event))
      finished->metrics = {{"windows", 149},    {"window_slots", 735},    {"first_hits", 30},
                           {"token_hits", 147}, {"guesses_in_text", 294}, {"text_in_guesses", 221}};
  const std::vector<Figure> more = more_of();
  ASSERT_EQ(more.size(), n_without + 4);
  const Figure* const foreseen = &more[n_without];
  const char* const numbers[] = {"30 / 149", "147 / 735", "294 / 735", "221 / 735"};
  const char* const values[] = {"20 %", "20 %", "40 %", "30 %"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(foreseen[i].numbers, numbers[i]) << foreseen[i].label;
    EXPECT_EQ(foreseen[i].value, values[i]) << foreseen[i].label;
    EXPECT_EQ(foreseen[i].truth, Truth::Hindsight) << "they are compared with the whole sequence";
  }
  for (engine::Event& event : events)
    if (auto* finished = std::get_if<engine::RunFinished>(&event))
      finished->metrics["window_slots"] = 0;
  EXPECT_EQ(more_of().back().value, "-");
}

TEST(Numbers, numbers_and_times_are_short) {
  EXPECT_EQ(short_number(398.2), "398");
  EXPECT_EQ(short_number(2.314), "2.31");
  EXPECT_EQ(short_number(123456), "123,456");
  EXPECT_EQ(short_number(NAN), "-");
  EXPECT_EQ(short_time(5'810'000), "5.81 ms");
  EXPECT_EQ(short_time(31'000), "31.0 us");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

TEST(Numbers, times_are_whole_nanoseconds_in_the_full_style) {
  set_unit_style(UnitStyle::Full);
  EXPECT_EQ(short_time(5'812'345), "5,812,345 ns");
  EXPECT_EQ(short_time(31.4), "31 ns");
  EXPECT_EQ(short_time(-1'500), "-1,500 ns");
  EXPECT_EQ(short_time(0), "0 ns");
  EXPECT_EQ(short_time(NAN), "-");
  EXPECT_EQ(short_time(INFINITY), "-");
  EXPECT_NE(short_time(1e30), "");
  set_unit_style(UnitStyle::Short);
  EXPECT_EQ(short_time(5'812'345), "5.81 ms");
}

TEST(Playhead, jumps_collect_the_time_of_frames) {
  Jumps jumps;
  EXPECT_EQ(jumps.take(0.016, seconds_between_moves(Motion::Full)), 0.016);
  double moved = 0;
  int n_moves = 0;
  for (int i = 0; i < 100; ++i) {
    const double by = jumps.take(0.016, seconds_between_moves(Motion::None));
    moved += by;
    n_moves += by > 0;
  }
  EXPECT_EQ(n_moves, 3) << "in 1.6 s";
  EXPECT_NEAR(moved, 1.6, 0.5);
  jumps.make_due(0.5);
  EXPECT_GE(jumps.take(0.016, 0.5), 0.5);
  // Less than three changes a second, so nothing flashes.
  EXPECT_GT(seconds_between_moves(Motion::None), 1.0 / 3);
}

TEST(Gantt, ruler_ticks_are_round_and_apart) {
  for (const double range : {3e3, 1.7e6, 9e8, 4e10}) {
    const ClockView view{ClockKind::Wall, 0, 12345, 12345 + range, 900};
    const auto ticks = ruler_ticks(view, 84);
    ASSERT_GE(ticks.size(), 2u);
    for (std::size_t i = 1; i < ticks.size(); ++i)
      EXPECT_GE((ticks[i] - ticks[i - 1]) / range * 900, 83.9);
  }
}

TEST(Pool, moving_back_gives_the_same_pool) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  PoolState once, twice;
  advance(once, run, 20);
  advance(twice, run, run.steps.size());
  advance(twice, run, 20);
  EXPECT_EQ(once.entries.size(), twice.entries.size());
  EXPECT_GT(once.entries.size(), 0u);
  const auto text = [&](const engine::PoolNgram& n) { return timeline.name_of(run, n.first); };
  const auto rows = rows_in_view(once, PoolOrder::Newest, "", text, 5).entries;
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_GE(rows[0]->ngram.born, rows[4]->ngram.born);
}

TEST(Search, finds_text_that_continues_in_later_tokens) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  std::string text;
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    begins.push_back(text.size());
    text += timeline.generated_bytes(run, i);
  }
  ASSERT_GT(begins.size(), 10u);
  // The last character of a token and the first one of the next; then the text of three tokens, in capitals.
  std::string three = text.substr(begins[7], begins[10] - begins[7]);
  for (char& c : three) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string& part : {text.substr(begins[5] - 1, 2), three}) {
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : text.size();
      bool begins_here = false;
      for (std::size_t at = begins[i]; at < end; ++at)
        begins_here = begins_here || (at + part.size() <= text.size() &&
                                      found_in(text.substr(at, part.size()), part));
      if (begins_here) expected.push_back(i);
    }
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(tokens_with(timeline, run, part), expected) << part;
  }
  EXPECT_TRUE(tokens_with(timeline, run, "no text has this").empty());
  EXPECT_TRUE(tokens_with(timeline, run, "").empty());
}

TEST(Pool, filter_searches_all_entries) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  PoolState pool;
  advance(pool, run, run.steps.size());
  const auto text = [&](const engine::PoolNgram& n) { return timeline.name_of(run, n.first); };
  // The filter is the text of the last entry, which a filter applied after the limit would miss.
  const auto all = rows_in_view(pool, PoolOrder::Newest, "", text, 100'000).entries;
  ASSERT_GT(all.size(), 5u);
  const std::string wanted = text(all.back()->ngram);
  const auto& found = rows_in_view(pool, PoolOrder::Newest, wanted, text, 100'000);
  EXPECT_LT(found.n_found, all.size());
  EXPECT_GT(found.n_found, 0u);
  for (const PoolEntry* entry : found.entries)
    EXPECT_NE(text(entry->ngram).find(wanted), std::string::npos);
  // The result is cached until the entries change.
  advance(pool, run, 3);
  EXPECT_FALSE(pool.rows.ready);
  EXPECT_TRUE(
      rows_in_view(pool, PoolOrder::First, "no token has this text", text, 5).entries.empty());
}

TEST(Status, slow_step_differs_from_stuck_engine) {
  auto events = streams::cut_mid_step();
  const auto timeline = timeline_of(events);
  const engine::RunRecord* run = timeline.run(1);
  EXPECT_NE(status_of(timeline, run, 2.1, false).text.find("running 2.1 s"), std::string::npos);
  const Status stuck = status_of(timeline, run, 10.5, false);
  EXPECT_EQ(stuck.level, Status::Level::Amber);
  EXPECT_NE(stuck.text.find("no progress for 10 s"), std::string::npos);
  EXPECT_NE(status_of(timeline, run, 0, true).text.find("ends within step"), std::string::npos);
}

TEST(Status, prefill_is_named_and_counted) {
  engine::Timeline timeline;
  timeline.apply(streams::story().model);
  timeline.apply(engine::RunStarted{.run = 1, .model = 1, .decoder = "ar"});
  timeline.apply(engine::Phase{.run = 1, .name = "prefill", .done = 1024, .total = 3310});
  const Status status = status_of(timeline, timeline.run(1), 1.8, false);
  EXPECT_EQ(status.text, "prefill 1,024 / 3,310, 1.8 s");
  EXPECT_NEAR(status.share, 0.309, 0.001);
}

TEST(Describe, step_is_one_sentence) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  const std::string sentence = describe_step(timeline, run, run.steps[5]);
  const engine::Verified& v = run.steps[5].verified;
  EXPECT_EQ(sentence.find("Step 5: " + std::to_string(v.n_proposed) + " proposed, " +
                          std::to_string(v.n_accepted) + " accepted"),
            0u)
      << sentence;
  const PlaceFacts facts =
      describe_place(timeline, run, {1, run.tokens[7].step, run.tokens[7].pos, -1});
  EXPECT_EQ(facts.token, run.tokens[7].id);
  EXPECT_FALSE(facts.rows.empty());
}

std::vector<LaneFigures> figures_of_race(const std::vector<std::string>& decoders) {
  const auto timeline = timeline_of(streams::race(decoders));
  std::vector<LaneFigures> lanes;
  for (const engine::RunRecord* run : timeline.race(1)) {
    const RunTimes times = times_of(*run);
    lanes.push_back(lane_figures(timeline, *run, times, times.steps.size()));
  }
  return lanes;
}

TEST(Difference, is_a_table_of_the_lanes) {
  const auto lanes = figures_of_race({"ar", "jacobi"});
  EXPECT_EQ(lanes[0].values[2], "-");
  EXPECT_EQ(lanes[1].values[9], "none");
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  const engine::RunRecord& jacobi = *timeline.race(1)[1];
  ASSERT_GT(jacobi.totals.n_proposed, jacobi.n_accepted() + jacobi.n_rejected());
  EXPECT_EQ(lanes[1].values[5],
            percent(double(jacobi.n_accepted()) / double(jacobi.totals.n_proposed)))
      << "accepted of proposed";
  EXPECT_EQ(as_markdown(lanes).find("|  | A AR | B jacobi |\n|---|---:|---:|"), 0u);
}

TEST(Difference, five_lanes_have_columns_and_letters) {
  const auto lanes = figures_of_race({"ar", "lookahead", "jacobi", "prompt-lookup", "speculative"});
  ASSERT_EQ(lanes.size(), engine::kMaxLanes);
  EXPECT_TRUE(as_markdown(lanes).starts_with(
      "|  | A AR | B lookahead | C jacobi | D prompt-lookup | E speculative |\n"
      "|---|---:|---:|---:|---:|---:|"));
}

TEST(TextCells, wide_characters_take_two_columns) {
  EXPECT_EQ(n_columns("value"), 5);
  EXPECT_EQ(n_columns("\xE6\x97\xA5\xE6\x9C\xAC"), 4);  // two Han characters
  EXPECT_EQ(n_columns("\xF0\x9F\x98\x80"), 2);          // an emoji
  EXPECT_EQ(n_columns("e\xCC\x81"), 1);                 // e and a combining acute
  EXPECT_EQ(n_columns("\xC3\xA9\xD0\xB6"), 2);          // Latin and Cyrillic
}

TEST(DescribePlace, special_token_is_shown_by_name) {
  streams::Story story = streams::story(4);
  const engine::RunStarted started{.run = 1, .model = 1, .decoder = "lookahead"};
  const std::vector<engine::Event> events{story.model, started,
                                          engine::StepBegun{.run = 1, .n_rows = 1},
                                          engine::Committed{.run = 1,
                                                            .tokens = {0},
                                                            .status = {engine::TokenStatus::Bonus},
                                                            .origin = {engine::RowTag{}}},
                                          engine::StepEnded{.run = 1, .forward = 1000}};
  engine::Timeline timeline = timeline_of(events);
  EXPECT_NE(
      describe_place(timeline, *timeline.run(1), {1, 0, -1, -1}).sentence.find("bonus \"</s>\""),
      std::string::npos);
  EXPECT_EQ(cell_text(timeline, *timeline.run(1), 0), "</s>");
  // Older recordings have no names of special tokens, only the flag of the end.
  story.model.special_ids.clear();
  timeline = timeline_of({story.model, started});
  EXPECT_EQ(cell_text(timeline, *timeline.run(1), 0), "<end>");
  EXPECT_EQ(timeline.text_of(*timeline.run(1), 0), "") << "copied text contains no names";
}

}  // namespace
