// The Inspector's facts of a place, and the unverified end of FastCoT's text.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/drafted_by.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/tokens/pool.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"

namespace {

using testing::ElementsAre;
using ui::Mean;

bool has_fact(const ui::PlaceFacts& facts, const std::string& label, const std::string& value) {
  return std::ranges::any_of(
      facts.rows, [&](const ui::Fact& fact) { return fact.label == label && fact.value == value; });
}

TEST(Describe, drafted_token_has_p_q_and_draft_cost) {
  const auto timeline = timeline_of(streams::one_run("speculative"));
  const engine::RunRecord& run = *timeline.run(1);
  int n_found = 0;
  for (const engine::StepRecord& step : run.steps) {
    if (step.verified.n_accepted == 0) continue;
    ++n_found;
    const ui::PlaceFacts row = ui::describe_place(timeline, run, {1, step.begun.step, -1, 1});
    EXPECT_TRUE(has_fact(row, "q (proposal)", "0.250"));
    EXPECT_TRUE(has_fact(row, "p (target)", "0.625"));
    EXPECT_TRUE(has_fact(row, "p / q", "2.50"));
    const int n_forwards = static_cast<int>(step.drafted.forwards.size());
    EXPECT_TRUE(has_fact(row, "draft forwards, rows",
                         std::to_string(n_forwards) + ", " + std::to_string(n_forwards)));
    const ui::PlaceFacts token =
        ui::describe_place(timeline, run, {1, step.begun.step, step.committed.first_pos, -1});
    EXPECT_TRUE(has_fact(token, "q (proposal)", "0.250")) << "the committed token was drafted";
  }
  EXPECT_GT(n_found, 3);
}

TEST(Describe, names_the_text_that_a_row_was_copied_from) {
  const auto timeline = timeline_of(streams::one_run("suffix"));
  const engine::RunRecord& run = *timeline.run(1);
  const std::pair<engine::StepId, const char*> kSources[] = {
      {1, "copied from this text, position 10"},
      {2, "copied from run 1, position 10"},
      {3, "copied from the file, token 10"},
      {4, "copied from the prompt, position 10"}};
  for (const auto& [step, words] : kSources) {
    const ui::PlaceFacts row = ui::describe_place(timeline, run, {1, step, -1, 1});
    EXPECT_TRUE(has_fact(row, "from", words)) << step;
    EXPECT_TRUE(has_fact(row, "followed there", "3 of 4 times"));
    const engine::StepRecord record = run.steps[static_cast<std::size_t>(step)];
    if (record.verified.n_accepted == 0) continue;
    const ui::PlaceFacts token =
        ui::describe_place(timeline, run, {1, step, record.committed.first_pos, -1});
    EXPECT_TRUE(has_fact(token, "from", words)) << step;
  }
  std::vector<engine::Event> events = streams::one_run("suffix");
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event)) started->pool = "/a/b/no\tes.txt";
  const auto named = timeline_of(events);
  EXPECT_TRUE(has_fact(ui::describe_place(named, *named.run(1), {1, 3, -1, 1}), "from",
                       "copied from no\u2409es.txt, token 10"));
  // A recording without sources still has the kind of text, from the row's tag.
  EXPECT_EQ(ui::row_origin(engine::copied_tag(engine::GuessSource::Kind::Earlier, 3),
                           ui::Proposer::Other),
            "copied from an earlier run");
}

TEST(Pool, copied_branches_end_at_leaves) {
  const auto timeline = timeline_of(streams::one_run("suffix"));
  const engine::RunRecord& run = *timeline.run(1);
  EXPECT_TRUE(ui::copied_paths(run.steps[0]).empty());
  const engine::StepRecord step = run.steps[1];
  const std::vector<ui::CopiedPath> paths = ui::copied_paths(step);
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(paths[0].rows, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(paths[1].rows, (std::vector<int>{5}));
  EXPECT_EQ(paths[0].n_accepted, step.verified.n_accepted);
  EXPECT_EQ(paths[1].n_accepted, 0);
  const auto looked_up = timeline_of(streams::one_run("prompt-lookup"));
  for (std::size_t i = 0; i < looked_up.run(1)->steps.size(); i++) {
    const engine::StepRecord one = looked_up.run(1)->steps[i];
    EXPECT_EQ(ui::copied_paths(one).size(), one.verified.n_proposed > 0 ? 1U : 0U);
  }
}

TEST(Describe, describes_a_row_shared_by_ranks) {
  std::vector<engine::Event> events = streams::one_run("lookahead");
  for (engine::Event& event : events)
    if (auto* drafted = std::get_if<engine::Drafted>(&event); drafted && drafted->step == 1)
      drafted->tree.owner.assign(drafted->tree.token.size(), 1);
  const auto timeline = timeline_of(events);
  const engine::RunRecord& run = *timeline.run(1);
  EXPECT_TRUE(has_fact(ui::describe_place(timeline, run, {1, 1, -1, 1}), "computed by", "rank 1"));
  const ui::PlaceFacts alone = ui::describe_place(timeline, run, {1, 0, -1, 1});
  EXPECT_TRUE(std::ranges::none_of(
      alone.rows, [](const ui::Fact& fact) { return fact.label == "computed by"; }));
}

TEST(Describe, describes_probe_scores) {
  std::vector<engine::Event> events = streams::one_run("fastcot");
  for (engine::Event& event : events) {
    auto* verified = std::get_if<engine::Verified>(&event);
    if (verified == nullptr || verified->step != 1) continue;
    verified->probe.assign(verified->fate.size(), -1);
    verified->probe[1] = 0.5f, verified->probe[2] = 3.25f;
  }
  const auto timeline = timeline_of(events);
  const engine::RunRecord& run = *timeline.run(1);
  const ui::PlaceFacts row = ui::describe_place(timeline, run, {1, 1, -1, 1});
  EXPECT_TRUE(has_fact(row, "probe's attention", "0.50 x the mean of the window"));
  EXPECT_TRUE(has_fact(row, "probe attends most to", "row 2, 3.25 x the mean of the window"));
  const ui::PlaceFacts before = ui::describe_place(timeline, run, {1, 0, -1, 1});
  EXPECT_TRUE(std::ranges::none_of(
      before.rows, [](const ui::Fact& fact) { return fact.label.starts_with("probe"); }));
}

TEST(TextCells, unverified_tokens_are_marked_approximate) {
  const auto timeline = timeline_of(streams::one_run("fastcot"));
  const engine::RunRecord& run = *timeline.run(1);
  const std::size_t n = run.steps.size();
  const auto approximate = [&](std::size_t n_steps) {
    std::vector<ui::TextCell> found;
    for (const ui::TextCell& cell : ui::text_cells(timeline, run, n_steps, false))
      if (cell.mean == Mean::Approximate) found.push_back(cell);
    return found;
  };
  EXPECT_TRUE(approximate(n - 1).empty()) << "a guess before the end of the run";
  const std::vector<ui::TextCell> at_end = approximate(n);
  ASSERT_EQ(at_end.size(), 5u);
  EXPECT_EQ(at_end.front().position, run.tokens.back().pos + 1);
  EXPECT_FALSE(at_end.front().committed);
  const ui::PlaceFacts facts = ui::describe_place(timeline, run, {1, -1, at_end[2].position, -1});
  EXPECT_EQ(facts.mean, Mean::Approximate);
  EXPECT_EQ(facts.token, at_end[2].token);
}

// Returns a run of plain decoding whose steps 2, 3, ... commit tokens with these bytes.
std::vector<engine::Event> run_with_pieces(const std::vector<std::string>& pieces) {
  std::vector<engine::Event> events = streams::one_run("ar");
  engine::TokenId first = 0;
  for (engine::Event& event : events) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event)) {
      first = static_cast<engine::TokenId>(model->pieces.size());
      model->pieces.insert(model->pieces.end(), pieces.begin(), pieces.end());
      model->vocab_size = static_cast<int>(model->pieces.size());
    }
    auto* committed = std::get_if<engine::Committed>(&event);
    if (!committed || committed->step < 2 || committed->step >= 2 + std::ssize(pieces)) continue;
    committed->tokens = {first + static_cast<engine::TokenId>(committed->step - 2)};
  }
  return events;
}

TEST(TextCells, character_of_several_tokens_is_in_the_last_one) {
  const auto texts = [](const std::vector<std::string>& pieces, std::size_t n_steps) {
    const auto timeline = timeline_of(run_with_pieces(pieces));
    const engine::RunRecord& run = *timeline.run(1);
    std::vector<std::string> found;
    for (const ui::TextCell& cell : ui::text_cells(timeline, run, n_steps, false))
      if (cell.position >= run.first_generated() + 2) found.push_back(cell.text);
    return found;
  };
  const std::string dots = "\xE2\x80\xA6", sun = "\xE6\x97\xA5";
  EXPECT_THAT(texts({"\xE6", "\x97", "\xA5"}, 5), ElementsAre(dots, dots, sun));
  EXPECT_THAT(texts({"\xE6", "\x97", "\xA5"}, 4), ElementsAre("<0xE6>", "<0x97>"))
      << "not complete yet";
  EXPECT_THAT(texts({" a\xE6\x97", "\xA5\xE6", "\x97\xA5!"}, 5),
              ElementsAre(" a" + dots, sun + dots, sun + "!"));
  EXPECT_EQ(texts({"\xE6", "", "\x97\xA5"}, 5)[1].substr(0, 1), "<") << "a control symbol";
  EXPECT_THAT(texts({"\xE6", "b", "\xE6\x97\xA5"}, 5), ElementsAre("<0xE6>", "b", sun))
      << "the first byte begins no character";
}

TEST(TextCells, unverified_prompt_tokens_are_approximate) {
  std::vector<engine::Event> events = streams::one_run("ar");
  int n_prompt = 0;
  for (engine::Event& event : events) {
    auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started) continue;
    n_prompt = static_cast<int>(started->prompt_tokens.size());
    started->first_approximate = n_prompt - 4;
    started->n_approximate = 3;
  }
  ASSERT_GE(n_prompt, 4);
  const auto timeline = timeline_of(events);
  const engine::RunRecord& run = *timeline.run(1);
  for (const ui::TextCell& cell : ui::text_cells(timeline, run, 2, false)) {
    const bool approximate = cell.position >= n_prompt - 4 && cell.position < n_prompt - 1;
    EXPECT_EQ(cell.mean == Mean::Approximate, approximate) << cell.position;
    const ui::PlaceFacts facts = ui::describe_place(timeline, run, {1, -1, cell.position, -1});
    EXPECT_EQ(facts.mean == Mean::Approximate, approximate) << cell.position;
  }
  std::vector<ui::Place> last;
  for (int i = n_prompt - 4; i < n_prompt + 1; ++i) last.push_back({1, -1, i, -1});
  const auto text = [&](int first, int n) {
    std::vector<engine::TokenId> ids(run.started.prompt_tokens);
    ids.push_back(run.tokens.front().id);
    return timeline.plain_text_of(run,
                                  std::span(ids).subspan(static_cast<std::size_t>(n_prompt + first),
                                                         static_cast<std::size_t>(n)));
  };
  EXPECT_EQ(ui::text_of(timeline, run, ui::Chosen(last, "")), "~" + text(-4, 3) + "~" + text(-1, 2))
      << "copied text has the same form";
}

}  // namespace
