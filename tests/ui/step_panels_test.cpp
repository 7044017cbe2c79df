// Panels for one step of a drafting decoder: Tree, Mask, P/Q.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/step/distributions.h"
#include "ui/panels/step/tree.h"
#include "ui/prepare/tokens/distributions.h"
#include "ui/prepare/tokens/mask.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/shell/panel.h"

namespace {

using namespace scripted;
using engine::RowFate;
using engine::RowTag;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using ui::Mean;

// The root is token 5 with the drafted children 7 and 8; 7 has the children 9 and 4, 8 has the child 6. The
// target accepted 7 and 9 and added its own token 2.
engine::StepRecord step_with_tree() {
  engine::StepRecord step;
  constexpr auto kDraft = RowTag::Kind::Draft;
  step.begun = {.run = 1, .step = 3, .kv_len = 40, .n_rows = 6};
  step.drafted.tree.token = {5, 7, 8, 9, 4, 6};
  step.drafted.tree.parent = {-1, 0, 0, 1, 1, 2};
  step.drafted.tree.tag = {
      {}, {kDraft, 1, 0}, {kDraft, 1, 1}, {kDraft, 2, 0}, {kDraft, 2, 1}, {kDraft, 2, 0}};
  step.drafted.q = {1, 0.5f, 0.25f, 0.625f, 0.125f, 0.0625f};
  step.verified.fate = {RowFate::Context,  RowFate::Accepted, RowFate::Rejected,
                        RowFate::Accepted, RowFate::Rejected, RowFate::Unused};
  step.verified.picked = {7, 9, 1, 2, 1, 1};
  step.verified.p = {-1, 0.75f, 0.125f, 0.5f, 0.25f, -1};
  step.committed = {.first_pos = 41, .tokens = {7, 9, 2}};
  step.committed.status = {engine::TokenStatus::Accepted, engine::TokenStatus::Accepted,
                           engine::TokenStatus::Bonus};
  step.committed.origin = {{kDraft, 1, 0}, {kDraft, 2, 0}, {}};
  step.has_drafted = step.has_verified = step.has_committed = true;
  return step;
}

std::vector<int> rows_of(const ui::TreeLayout& layout) {
  std::vector<int> rows;
  for (const ui::TreeNode& node : layout.nodes) rows.push_back(node.row);
  return rows;
}

TEST(TokenTree, first_child_is_on_the_line_of_its_parent) {
  const ui::TreeLayout layout = ui::tree_layout(step_with_tree(), 0);
  EXPECT_THAT(rows_of(layout), ElementsAre(0, 1, 3, 4, 2, 5, -1));
  std::vector<int> lines, depths;
  for (const ui::TreeNode& node : layout.nodes) {
    lines.push_back(node.line);
    depths.push_back(node.depth);
  }
  EXPECT_THAT(lines, ElementsAre(0, 0, 0, 1, 2, 2, 0));
  EXPECT_THAT(depths, ElementsAre(0, 1, 2, 2, 1, 2, 3));
  EXPECT_EQ(layout.n_lines, 3);
  EXPECT_EQ(layout.n_columns, 4);
  EXPECT_EQ(layout.n_proposed, 5);
  const ui::TreeNode& bonus = layout.nodes.back();
  EXPECT_EQ(bonus.mean, Mean::Bonus);
  EXPECT_EQ(bonus.token, 2);
  EXPECT_EQ(layout.nodes[static_cast<std::size_t>(bonus.parent)].row, 3)
      << "after the last accepted token";
  std::vector<int> path;
  for (const ui::TreeNode& node : layout.nodes)
    if (node.on_path) path.push_back(node.row);
  EXPECT_THAT(path, ElementsAre(0, 1, 3, -1));
  EXPECT_FLOAT_EQ(layout.nodes[2].q, 0.625f);
  EXPECT_FLOAT_EQ(layout.nodes[2].p, 0.5f);
}

TEST(TokenTree, each_column_has_its_draft_head) {
  EXPECT_THAT(ui::head_columns(ui::tree_layout(step_with_tree(), 0)),
              ElementsAre("", "draft head 1", "draft head 2", ""))
      << "the last is the target's own token";
  EXPECT_THAT(ui::head_columns({}), ElementsAre());
}

TEST(TokenTree, unverified_unlikely_rows_can_be_hidden) {
  engine::StepRecord step = step_with_tree();
  const ui::TreeLayout judged = ui::tree_layout(step, 0.3f);
  EXPECT_THAT(rows_of(judged), ElementsAre(0, 1, 3, 4, 2, -1)) << "verified rows are never hidden";
  EXPECT_EQ(judged.n_hidden, 1);
  EXPECT_EQ(judged.nodes[4].n_hidden_below, 1);
  // In the step in progress nothing is verified: a hidden row hides its subtree.
  step.has_verified = step.has_committed = false;
  step.verified = {};
  step.committed = {};
  const ui::TreeLayout open = ui::tree_layout(step, 0.3f);
  EXPECT_THAT(rows_of(open), ElementsAre(0, 1, 3));
  EXPECT_EQ(open.n_hidden, 3);
  EXPECT_EQ(open.nodes[1].mean, Mean::Draft);
}

TEST(TokenTree, excludes_window_and_is_empty_without_proposals) {
  engine::StepRecord step = step_with_tree();
  for (std::size_t row = 1; row < 6; ++row) step.drafted.tree.tag[row].kind = RowTag::Kind::Window;
  EXPECT_TRUE(ui::tree_layout(step, 0).nodes.empty());
  step.drafted.tree.tag[2].kind = RowTag::Kind::Guess;
  const ui::TreeLayout layout = ui::tree_layout(step, 0);
  EXPECT_EQ(layout.n_proposed, 1);
  EXPECT_EQ(layout.nodes[1].row, 2);
}

TEST(TokenTree, path_ends_in_last_accepted_or_target_token) {
  engine::StepRecord step = step_with_tree();
  EXPECT_EQ(ui::end_of_path(ui::tree_layout(step, 0)).row, 3);
  step.verified.fate.assign(6, RowFate::Rejected);
  step.verified.fate[0] = RowFate::Accepted;
  EXPECT_EQ(ui::end_of_path(ui::tree_layout(step, 0)).mean, Mean::Bonus);
  step.committed = {};
  EXPECT_EQ(ui::end_of_path(ui::tree_layout(step, 0)).depth, 0) << "the root";
}

TEST(TokenTree, committed_tokens_belong_to_the_accepted_rows) {
  const engine::StepRecord step = step_with_tree();  // it commits from position 41 on
  for (const auto& [position, row] : {std::pair{40, -1}, {41, 1}, {42, 3}, {43, -1}, {44, -1}})
    EXPECT_EQ(ui::accepted_row_at(step, position), row) << position;
}

TEST(Mask, row_attends_to_ancestors_and_itself) {
  const ui::Mask mask = ui::mask_of(step_with_tree().drafted.tree);
  EXPECT_THAT(mask.sees[0], ElementsAre(0));
  EXPECT_THAT(mask.sees[4], ElementsAre(0, 1, 4));
  EXPECT_THAT(mask.sees[5], ElementsAre(0, 2, 5));
  EXPECT_TRUE(mask.seen(5, 2));
  EXPECT_FALSE(mask.seen(5, 1)) << "another branch";
  EXPECT_FALSE(mask.seen(1, 3)) << "its own child";
  ASSERT_EQ(mask.regions.size(), 3u);
  EXPECT_EQ(mask.regions[1].name, "draft, depth 1");
  EXPECT_EQ(mask.regions[1].last, 2);
  EXPECT_EQ(mask.regions[2].first, 3);
}

TEST(Mask, headings_stay_above_their_columns) {
  const ui::Mask mask = ui::mask_of(step_with_tree().drafted.tree);  // 1, 2 and 3 columns
  const auto width = [](const std::string& text) { return static_cast<float>(text.size()); };
  const auto heads = [&](float cell, float right) {
    return ui::region_heads(mask, cell, right, width);
  };
  EXPECT_THAT(heads(30, 180),
              ElementsAre("last committed token", "draft, depth 1", "draft, depth 2"));
  EXPECT_THAT(heads(7, 42), ElementsAre("last", "draft, depth 1", "draft, depth 2"));
  EXPECT_THAT(heads(2, 12), ElementsAre("", "d1", "d2"));
  EXPECT_THAT(heads(2, 30), ElementsAre("", "d1", "draft, depth 2"))
      << "there is no room for a label";
  for (float cell = 0.5f; cell < 40; cell += 0.5f) {
    const auto named = heads(cell, 6 * cell);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const auto n = static_cast<float>(mask.regions[i].last - mask.regions[i].first + 1);
      EXPECT_LE(width(named[i]), n * cell) << named[i];
    }
  }
}

TEST(Distributions, other_temperature_is_a_scaled_power) {
  const std::vector<float> distribution{0.5f, 0.3f, 0.2f};
  const ui::DistributionAt colder = ui::distribution_at(distribution, {.n = 0}, 1, 0.5);
  const double sum = 0.25 + 0.09 + 0.04;
  EXPECT_NEAR(colder.of[0].middle(), 0.25 / sum, 1e-6);
  EXPECT_NEAR(colder.of[2].middle(), 0.04 / sum, 1e-6);
  EXPECT_LT(colder.of[0].wide(), 1e-9);
  EXPECT_EQ(colder.rest.high, 0);
  const ui::DistributionAt same = ui::distribution_at(distribution, {.n = 0}, 0.7, 0.7);
  for (std::size_t i = 0; i < distribution.size(); ++i)
    EXPECT_NEAR(same.of[i].middle(), distribution[i], 1e-6);
  // From temperature 1 to 0.01 the most likely token gets nearly all the mass, and every figure stays finite.
  EXPECT_NEAR(ui::distribution_at(distribution, {.n = 0}, 1, 0.01).of[0].low, 1, 1e-9);
}

std::vector<double> powers(const std::vector<double>& distribution, double power) {
  std::vector<double> raised;
  double sum = 0;
  for (const double p : distribution) sum += std::pow(p, power);
  for (const double p : distribution) raised.push_back(std::pow(p, power) / sum);
  return raised;
}

// Random distributions of 60 tokens; the 8 most likely are recorded.
TEST(Distributions, unrecorded_mass_bounds_every_figure) {
  std::mt19937 random(7);
  std::exponential_distribution<double> weight(1);
  double widest = 0, narrowest = 1;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> distribution(60);
    const double sharpness = 1 + trial % 7;
    for (double& p : distribution) p = std::pow(weight(random), sharpness);
    distribution = powers(distribution, 1);
    std::ranges::sort(distribution, std::greater());
    const std::vector<float> reported(distribution.begin(), distribution.begin() + 8);
    for (const double to : {0.2, 0.7, 1.0, 1.6, 3.0}) {
      const ui::DistributionAt at =
          ui::distribution_at(reported, {.n = 52, .most = reported.back()}, 1, to);
      const std::vector<double> truth = powers(distribution, 1 / to);
      double rest = 1;
      for (std::size_t i = 0; i < reported.size(); ++i) {
        EXPECT_GE(truth[i], at.of[i].low - 1e-6) << to;
        EXPECT_LE(truth[i], at.of[i].high + 1e-6) << to;
        rest -= truth[i];
        widest = std::max(widest, at.of[i].wide());
        narrowest = std::min(narrowest, at.of[i].wide());
      }
      EXPECT_GE(rest, at.rest.low - 1e-6) << to;
      EXPECT_LE(rest, at.rest.high + 1e-6) << to;
    }
  }
  EXPECT_GT(widest, 0.05) << "some recorded sets are too small";
  EXPECT_LT(narrowest, 1e-4);
}

engine::RejectionDetail all_of_both_distributions() {
  return {.row = 0, .token = {7, 8, 1}, .p = {0.5f, 0.3f, 0.2f}, .q = {0.2f, 0.2f, 0.6f}};
}

ui::DistributionsSource at_one() {
  return {.temperature = 1, .draft_temperature = 1, .vocab_size = 512};
}

TEST(Distributions, acceptance_probability_is_the_overlap) {
  const engine::StepRecord step = step_with_tree();
  const ui::DistributionsAt same =
      ui::distributions_at(at_one(), step, all_of_both_distributions(), 1);
  EXPECT_NEAR(same.kept.middle(), 0.6, 1e-6) << "0.2 + 0.2 + 0.2";
  EXPECT_NEAR(same.apart.middle(), 0.4, 1e-6);
  EXPECT_EQ(ui::words_of(same.kept), "0.600");
  const ui::DistributionsAt colder =
      ui::distributions_at(at_one(), step, all_of_both_distributions(), 0.5f);
  // At half the temperature probabilities are squared: p = (25, 9, 4) / 38, q = (4, 4, 36) / 44.
  EXPECT_NEAR(colder.kept.middle(), 4.0 / 44 + 4.0 / 44 + 4.0 / 38, 1e-6);
  EXPECT_EQ(ui::omission_words(at_one(), colder, 0.5f), "");
  ui::DistributionsSource own = at_one();
  own.draft_follows = false;
  own.draft_temperature = 0.5f;
  const ui::DistributionsAt stays =
      ui::distributions_at(own, step, all_of_both_distributions(), 0.5f);
  EXPECT_NEAR(stays.q.of[2].middle(), 0.6, 1e-6);
  EXPECT_NEAR(stays.p.of[0].middle(), 25.0 / 38, 1e-6);
  EXPECT_THAT(ui::omission_words(own, stays, 0.5f), HasSubstr("q does not change"));
  engine::RejectionDetail certain = all_of_both_distributions();
  certain.q.clear();
  EXPECT_TRUE(ui::distributions_at(at_one(), step, certain, 0.5f).q.of.empty());
}

TEST(Distributions, reasons_for_bounds_are_given) {
  const engine::StepRecord step = step_with_tree();
  engine::RejectionDetail flat{.row = 0};
  for (int i = 0; i < 8; ++i) {
    flat.token.push_back(20 + i);
    flat.p.push_back(0.01f);
    flat.q.push_back(0.01f);
  }
  const ui::DistributionsAt hot = ui::distributions_at(at_one(), step, flat, 2);
  EXPECT_THAT(ui::omission_words(at_one(), hot, 2), HasSubstr("Too few tokens"));
  EXPECT_GT(hot.kept.wide(), 0.5);
  EXPECT_THAT(ui::words_of(hot.kept), HasSubstr(" to "));
  // A filter that keeps at most 8 tokens leaves no unrecorded tokens.
  ui::DistributionsSource eight = at_one();
  eight.top_k = eight.draft_top_k = 8;
  for (float& p : flat.p) p = 0.125f;
  for (float& q : flat.q) q = 0.125f;
  EXPECT_NEAR(ui::distributions_at(eight, step, flat, 2).kept.low, 1, 1e-6);
  ui::DistributionsSource cut = at_one();
  cut.cut = cut.draft_cut = "top p";
  EXPECT_THAT(ui::omission_words(
                  cut, ui::distributions_at(cut, step, all_of_both_distributions(), 0.5f), 0.5f),
              HasSubstr("Each distribution is recomputed over the tokens that top p kept"));
}

TEST(Distributions, missing_distributions_name_the_recording_option) {
  engine::StepRecord step = step_with_tree();
  engine::RunStarted started{.temperature = 0.8f, .sampling = "coupled"};
  EXPECT_THAT(ui::why_no_other_temperature(started, step), HasSubstr("rejection"));
  started.sampling = "rejection";
  EXPECT_THAT(ui::why_no_other_temperature(started, step), HasSubstr("No distribution"));
  step.verified.rejection_details = {all_of_both_distributions()};
  EXPECT_EQ(ui::why_no_other_temperature(started, step), "");
}

TEST(Distributions, filters_of_target_and_draft_are_separate) {
  engine::Timeline timeline = timeline_of(streams::one_run("mcsd"));
  engine::RunRecord run = *timeline.run(1);
  ui::DistributionsSource source = ui::distributions_source(timeline, run);
  EXPECT_FLOAT_EQ(source.temperature, 0.8f);
  EXPECT_FLOAT_EQ(source.draft_temperature, 0.8f);
  EXPECT_TRUE(source.draft_follows);
  EXPECT_GT(source.vocab_size, 0);
  run.started.options["draft_temperature"] = "0.4";
  run.started.options["draft_top_k"] = "-1";
  run.started.options["draft_top_p"] = "0.9";
  run.started.top_k = 5;
  run.started.min_p = 0.1f;
  source = ui::distributions_source(timeline, run);
  EXPECT_FALSE(source.draft_follows);
  EXPECT_FLOAT_EQ(source.draft_temperature, 0.4f);
  EXPECT_EQ(source.draft_top_k, 5);
  EXPECT_EQ(source.cut, "min p");
  EXPECT_EQ(source.draft_cut, "top p and min p");
}

TEST(Mask, regions_are_named_by_draft_head) {
  engine::RunRecord run;
  EXPECT_FALSE(ui::drafts_by_heads(run));
  run.started.options = {{"tree", "rows16"}, {"verify", "greedy"}};
  ASSERT_TRUE(ui::drafts_by_heads(run));
  const ui::Mask mask = ui::mask_of(step_with_tree().drafted.tree, ui::proposer_of(run));
  EXPECT_EQ(mask.regions[1].name, "draft head 1");
  const RowTag tag = step_with_tree().drafted.tree.tag[4];
  EXPECT_EQ(ui::row_origin(tag, ui::Proposer::Heads), "draft head 2, rank 1");
  EXPECT_EQ(ui::row_origin(tag, ui::Proposer::Other), "draft: depth 2, rank 1");
}

TEST(Mask, regions_of_successors_are_named_by_depth) {
  engine::RunRecord run;
  run.started.decoder = "recycling";
  run.started.options = {{"tree", "own"}};
  ASSERT_EQ(ui::proposer_of(run), ui::Proposer::Successors);
  engine::TokenTree tree = step_with_tree().drafted.tree;
  for (int row = 1; row < tree.n_rows(); ++row) tree.tag[row].kind = RowTag::Kind::Guess;
  const ui::Mask mask = ui::mask_of(tree, ui::proposer_of(run));
  EXPECT_EQ(mask.regions[1].name, "successors, depth 1");
  EXPECT_EQ(mask.regions[1].short_name, "s1");
  EXPECT_EQ(ui::row_origin(tree.tag[4], ui::proposer_of(run)), "successor: depth 2, rank 1");
  run.started.decoder = "lookahead";
  EXPECT_EQ(ui::row_origin(tree.tag[4], ui::proposer_of(run)), "pool: guess 3, token 2");
}

TEST(VerifyResult, names_the_choice_of_the_target) {
  const auto timeline = timeline_of(streams::one_run("speculative"));
  const engine::RunRecord& run = *timeline.run(1);
  int n_refused = 0;
  for (const engine::StepRecord& step : run.steps) {
    for (const ui::Verdict& v : ui::verdicts_of(timeline, run, step)) {
      if (v.mean == Mean::Accepted) {
        EXPECT_EQ(v.words, "the target's choice: accepted");
      }
      if (v.mean == Mean::Unused) {
        EXPECT_EQ(v.words, "not verified");
      }
      if (v.mean != Mean::Rejected) continue;
      ++n_refused;
      const int parent = step.drafted.tree.parent[v.row];
      EXPECT_EQ(v.words, "the target chose \"" +
                             ui::cell_text(timeline, run, step.verified.picked[parent]) + "\"");
      EXPECT_EQ(v.place, step.drafted.tree.tag[v.row].a);
    }
    EXPECT_EQ(ui::why_no_p(run.started, step), "");
  }
  EXPECT_GT(n_refused, 3);
}

TEST(VerifyResult, shows_uniform_draw_and_probability) {
  const auto timeline = timeline_of(streams::one_run("mcsd"));
  const engine::RunRecord& run = *timeline.run(1);
  std::vector<std::string> words;
  for (const engine::StepRecord& step : run.steps)
    for (const ui::Verdict& v : ui::verdicts_of(timeline, run, step)) words.push_back(v.words);
  EXPECT_THAT(words, Contains("0.250 < 1.000: accepted"));
  EXPECT_THAT(words, Contains("0.875, not below 0.250: rejected"));
  EXPECT_THAT(words, Contains("not verified"));
  // A candidate is rejected and then sampled from the residual distribution.
  engine::StepRecord step = step_with_tree();
  step.verified.uniform = {-1, 0.9f, 0.9f, -1, -1, -1};
  step.verified.keep = {-1, 0.2f, 0.2f, -1, -1, -1};
  EXPECT_EQ(ui::verdicts_of(timeline, run, step)[0].words,
            "0.900, not below 0.200: rejected, then sampled from the residual");
}

TEST(VerifyResult, missing_probability_has_a_reason) {
  engine::RunStarted started{.temperature = 0.5f, .sampling = "coupled", .draft = 2};
  engine::StepRecord step = step_with_tree();
  step.verified.p.assign(6, -1);
  EXPECT_THAT(ui::why_no_p(started, step), HasSubstr("filter"));
  step.verified.p.clear();
  EXPECT_THAT(ui::why_no_p(started, step), HasSubstr("older program"));
  started.draft = 0;
  EXPECT_THAT(ui::why_no_p(started, step), HasSubstr("drafted tokens only"));
}

engine::RunStarted released(const char* draft_temperature) {
  return {.decoder = "mcsd",
          .options = {{"as_released", "true"}, {"draft_temperature", draft_temperature}},
          .temperature = 1,
          .sampling = "rejection"};
}

TEST(VerifyResult, names_distribution_that_is_not_preserved) {
  EXPECT_THAT(ui::why_not_lossless(released("0"), nullptr), HasSubstr("as_released"));
  EXPECT_EQ(ui::why_not_lossless(released("-1"), nullptr), "") << "the draft is sampled";
  EXPECT_EQ(ui::why_not_lossless(released("0.5"), nullptr), "");
  engine::RunStarted other = released("0");
  other.sampling = "coupled";
  EXPECT_EQ(ui::why_not_lossless(other, nullptr), "") << "verification compares tokens";
  other = released("0");
  other.temperature = 0;
  EXPECT_EQ(ui::why_not_lossless(other, nullptr), "");
  other = released("0");
  other.options["as_released"] = "false";
  EXPECT_EQ(ui::why_not_lossless(other, nullptr), "");
  EXPECT_EQ(ui::why_not_lossless({.decoder = "ar"}, nullptr), "");
  engine::RunStarted typical{.decoder = "medusa", .options = {{"verify", "typical"}}};
  EXPECT_EQ(ui::why_not_lossless(typical, nullptr), "") << "greedy";
  typical.temperature = 0.7f;
  EXPECT_THAT(ui::why_not_lossless(typical, nullptr), HasSubstr("typical"));
  ui::CatalogDecoder decoder{.name = "some", .title = "Some"};
  EXPECT_EQ(ui::why_not_lossless({.decoder = "some"}, &decoder), "");
  decoder.lossless = false;
  EXPECT_THAT(ui::why_not_lossless({.decoder = "some"}, &decoder), HasSubstr("Some"));
}

// Returns the text of one panel while a step of the run is selected.
std::string said_by(const char* panel,
                    const std::vector<engine::Event>& events,
                    ui::Screen screen = ui::Screen::Live,
                    float distributions_temperature = 0) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.take(events);
  shell.show(screen);
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  shell.selection().locked = {1, 3, -1, -1};
  shell.state<ui::DistributionsView>().temperature = distributions_temperature;
  ImGui::SetWindowFocus(ui::window_name(screen, panel, ui::panel_named(panel)->title).c_str());
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  return gui.said(shell);
}

TEST(StepPanels, empty_step_panels_give_the_reason) {
  EXPECT_THAT(said_by("tree", streams::one_run("ar")),
              HasSubstr("Plain decoding proposed no tokens, so it has no tree."));
  EXPECT_THAT(said_by("tree", streams::one_run("jacobi")), HasSubstr("Trajectory shows it."));
  EXPECT_THAT(said_by("mask", streams::one_run("ar")),
              HasSubstr("Plain decoding computed one row per step;"));
  EXPECT_THAT(
      said_by("distributions", streams::one_run("lookahead")),
      HasSubstr("Lookahead proposed no tokens with a probability: this needs a draft model"));
}

TEST(StepPanels, show_the_verification_of_the_step) {
  EXPECT_THAT(said_by("tree", streams::one_run("mcsd")), HasSubstr("10 proposed"));
  EXPECT_THAT(said_by("tree", streams::one_run("lookahead")), HasSubstr("not verified"));
  EXPECT_THAT(said_by("mask", streams::one_run("lookahead")), HasSubstr("after a prefix of"));
  EXPECT_THAT(said_by("distributions", streams::one_run("speculative")),
              HasSubstr("no random number is drawn"));
  EXPECT_THAT(said_by("distributions", streams::one_run("mcsd")),
              HasSubstr("below its acceptance probability"));
}

TEST(StepPanels, other_temperature_is_shown_beside_recorded) {
  const auto events = streams::one_run("mcsd");
  EXPECT_THAT(said_by("distributions", events),
              testing::AllOf(HasSubstr("at 0.80, as recorded"), Not(HasSubstr(", recomputed"))));
  EXPECT_THAT(said_by("distributions", events, ui::Screen::Live, 0.5f),
              testing::AllOf(HasSubstr("at 0.80, as recorded"), HasSubstr("p at 0.50"),
                             HasSubstr("at 0.50, recomputed: a token sampled from q is accepted")));
}

// Shows a step of the run in the panel P/Q.
void show_distributions(ImGuiTestContext* ctx, Stage& stage) {
  ctx->Yield(4);
  stage.shell->selection().locked = {1, 2, -1, -1};
  ctx->WindowFocus("//P\\/Q###live.distributions");
  ctx->Yield(3);
  ctx->SetRef(ImGui::FindWindowByName("P/Q###live.distributions"));
}

TEST(StepPanels, temperature_of_pq_is_set_and_reset) {
  const engine::test::Folder folder;
  {
    engine::Recorder recorder(folder / "mcsd.pdrun");
    for (const engine::Event& event : streams::one_run("mcsd")) recorder.push(event);
  }
  play("distributions_temperature", [&](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.open(folder / "mcsd.pdrun");
    wait_until(ctx, [&] { return !shell.reads(); });
    show_distributions(ctx, stage);
    ctx->ItemInputValue("##distributions_temperature", 0.5f);
    IM_CHECK_EQ(shell.state<ui::DistributionsView>().temperature, 0.5f);
    ctx->Yield(2);
    ctx->ItemClick("###distributions_reset");
    IM_CHECK_EQ(shell.state<ui::DistributionsView>().temperature, 0.0f);
  });
}

TEST(StepPanels, temperature_of_pq_needs_distributions) {
  play("distributions_greyed", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live = ui::lane_with(stage.shell->catalog(), "speculative");
    run_to_the_end(ctx, stage);
    show_distributions(ctx, stage);
    const auto slider = ctx->ItemInfo("##distributions_temperature");
    IM_CHECK((slider.ItemFlags & ImGuiItemFlags_Disabled) != 0);
  });
}

TEST(StepPanels, not_lossless_is_shown_in_title_and_agreement) {
  std::vector<engine::Event> events = streams::one_run("mcsd");
  EXPECT_THAT(said_by("agreement", events), Not(HasSubstr("lossless")));
  EXPECT_THAT(said_by("lanes", events, ui::Screen::Compare), Not(HasSubstr("lossless")));
  for (engine::Event& event : events) {
    auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started) continue;
    started->options = released("0").options;
    started->temperature = 1;
    started->sampling = "rejection";
  }
  EXPECT_THAT(said_by("agreement", events), HasSubstr("NOT lossless: as_released"));
  EXPECT_THAT(said_by("lanes", events, ui::Screen::Compare), HasSubstr("not lossless"));
}

TEST(StepPanels, dropped_payload_is_reported) {
  std::vector<engine::Event> events = streams::one_run("speculative");
  for (engine::Event& event : events) engine::strip(event);
  const auto last = std::get<engine::StepEnded>(*std::ranges::find_if(
      events.rbegin(), events.rend(),
      [](const auto& e) { return std::holds_alternative<engine::StepEnded>(e); }));
  const auto end = std::ranges::find_if(events, [](const engine::Event& event) {
    return std::holds_alternative<engine::RunFinished>(event);
  });
  events.insert(end, engine::PayloadDropped{.t = engine::time_of(*end),
                                            .run = 1,
                                            .kind = "probabilities",
                                            .first_step = 0,
                                            .last_step = last.step});
  EXPECT_THAT(said_by("distributions", events), HasSubstr("not kept (buffer full)"));
}

TEST(StepPanels, click_on_node_selects_row_in_all_panels) {
  play("tree_click", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live = ui::lane_with(shell.catalog(), "speculative");
    run_to_the_end(ctx, stage);
    const engine::RunRecord& run = *run_of(stage);
    std::size_t at = run.steps.size();
    const auto serves = [&](std::size_t i) {
      return run.steps.head(i).n_rejected > 0 && run.steps.head(i).n_rows > 3;
    };
    while (at > 0 && !serves(at - 1)) --at;
    IM_CHECK_GT(at, std::size_t{0});
    const engine::StepRecord step = run.steps[at - 1];
    shell.selection().locked = {1, step.begun.step, -1, -1};
    ctx->WindowFocus("Tree###live.tree");
    ctx->Yield(3);
    ctx->SetRef(ImGui::FindWindowByName("Tree###live.tree"));
    ctx->ItemClick("$$2/row");
    ctx->Yield(2);
    const ui::Place row{1, step.begun.step, -1, 2};
    IM_CHECK(shell.selection().locked == row);
    // Both panels draw a ring around the row. The slash in the name is escaped.
    ctx->WindowFocus("//Mask###live.mask");
    ctx->Yield(3);
    IM_CHECK_GE(lit_by(ctx, stage, "Mask###live.mask", row).size(), std::size_t{4});
    ctx->WindowFocus("//P\\/Q###live.distributions");
    ctx->Yield(3);
    IM_CHECK_GE(lit_by(ctx, stage, "P/Q###live.distributions", row).size(), std::size_t{4});
    // Esc deselects it: the step at the playhead is shown again.
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!shell.selection().locked.valid());
  });
}

// Returns the deepest accepted row of a step's tree; -1 if none was accepted.
int last_accepted(const engine::StepRecord& step) {
  int row = -1;
  for (std::size_t i = 1; i < step.verified.fate.size(); ++i)
    if (step.verified.fate[i] == RowFate::Accepted) row = static_cast<int>(i);
  return row;
}

TEST(StepPanels, tree_follows_the_accepted_path) {
  play("tree_follows", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live = ui::lane_with(shell.catalog(), "speculative");
    run_to_the_end(ctx, stage);
    ctx->Yield(3);
    ImGuiWindow* window = ImGui::FindWindowByName("Tree###live.tree");
    IM_CHECK(window && window->DockTabIsVisible);
    // When following is off, the selection does not change with the steps.
    ctx->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK_EQ(shell.selection().locked.row, -1);
    ctx->SetRef(window->DockNode->HostWindow);
    ctx->ItemCheck("**/follow accepted path");
    ctx->Yield(2);
    const engine::RunRecord& run = *run_of(stage);
    std::size_t n = run.steps.size() - 1;  // at the playhead
    int n_rows = 0;
    for (int i = 0; i < 12; ++i) {
      ctx->Yield(5);
      const engine::StepRecord step = run.steps[n - 1];
      const ui::Place& locked = shell.selection().locked;
      const int row = last_accepted(step);
      IM_CHECK_EQ(locked.step, step.begun.step);
      IM_CHECK_EQ(locked.row, row);
      if (row >= 0) {
        ++n_rows;
        ctx->SetRef(window);
        const ImRect cell = ctx->ItemInfo(("$$" + std::to_string(row) + "/row").c_str()).RectFull;
        IM_CHECK(window->InnerRect.Contains(cell));
      }
      ctx->KeyPress(ImGuiKey_LeftArrow);
      --n;
    }
    IM_CHECK_GT(n_rows, 3);
    // A clicked row stays selected until the next step.
    ctx->Yield(3);
    shell.selection().locked = {1, 2, -1, -1};
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().locked.step, 2);
  });
}

TEST(StepPanels, ctrl_wheel_zooms_the_mask_around_the_mouse) {
  play("mask_zoom", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live = ui::lane_with(shell.catalog(), "lookahead");
    run_to_the_end(ctx, stage);
    shell.selection().locked = {1, 2, -1, -1};
    ctx->WindowFocus("Mask###live.mask");
    ctx->Yield(3);
    const char* const panel = "Mask###live.mask";
    ctx->SetRef(ImGui::FindWindowByName(panel));
    const int n = run_of(stage)->steps[2].drafted.tree.n_rows();
    IM_CHECK_GT(n, 10);
    const auto grid = [ctx] { return ctx->ItemInfo("mask").RectFull; };
    const auto row_at_mouse = [&] {
      return static_cast<int>((ImGui::GetIO().MousePos.y - grid().Min.y) / grid().GetHeight() *
                              static_cast<float>(n));
    };
    const auto turned = [&](float wheel) {
      ctx->KeyDown(ImGuiMod_Ctrl);
      ctx->MouseWheelY(wheel);
      ctx->KeyUp(ImGuiMod_Ctrl);
      ctx->Yield(3);
    };
    const ImVec2 whole = grid().GetSize();
    const int row = std::min(n - 1, 5);
    ctx->MouseMoveToPos({grid().Min.x + 90, grid().Min.y + (0.5f + static_cast<float>(row)) *
                                                               whole.y / static_cast<float>(n)});
    turned(6);
    IM_CHECK_GT(grid().GetHeight(), 1.5f * whole.y);
    IM_CHECK_GT(grid().GetWidth(), whole.x);
    IM_CHECK_GT(grid().GetHeight(), ImGui::FindWindowByName(panel)->InnerRect.GetHeight());
    IM_CHECK_EQ(row_at_mouse(), row);
    turned(-12);
    IM_CHECK_LT(grid().GetHeight(), whole.y);
    ctx->SetRef("");
    ctx->ItemClick("**/Fit zoom");
    ctx->SetRef(ImGui::FindWindowByName(panel));
    ctx->Yield(3);
    IM_CHECK_EQ(grid().GetHeight(), whole.y);
    IM_CHECK_EQ(grid().GetWidth(), whole.x);
  });
}

TEST(StepPanels, click_in_the_mask_selects_the_row) {
  play("mask_click", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live = ui::lane_with(shell.catalog(), "speculative");
    run_to_the_end(ctx, stage);
    shell.selection().locked = {1, 2, -1, -1};
    ctx->WindowFocus("Mask###live.mask");
    ctx->Yield(3);
    ctx->SetRef(ImGui::FindWindowByName("Mask###live.mask"));
    const ImRect grid = ctx->ItemInfo("mask").RectFull;
    const int n = run_of(stage)->steps[2].drafted.tree.n_rows();
    const float line = grid.GetHeight() / static_cast<float>(n);
    ctx->MouseMoveToPos({grid.Min.x + 20, grid.Min.y + 1.5f * line});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(shell.selection().locked == (ui::Place{1, 2, -1, 1}));
  });
}

}  // namespace
