// The panel Runs: lanes below the heading of their race, repeats and prompts below one heading.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/set_stream.h"
#include "ui/prepare/sets/model_apart.h"
#include "ui/prepare/sets/run_groups.h"

namespace ui {
namespace {

using namespace engine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Kind = RunEntry::Kind;

RunStarted started(RunId run, std::uint32_t race, int lane, const PlaceInSet& place = {}) {
  return {.run = run,
          .race = race,
          .lane = lane,
          .model = 1,
          .decoder = "jacobi",
          .prompt = "first line\nsecond",
          .place = place};
}

Timeline timeline_of(const std::vector<Event>& events) {
  Timeline timeline;
  timeline.apply(ModelLoaded{.model = 1, .name = "small", .vocab_size = 1, .pieces = {"a"}});
  timeline.apply(ModelLoaded{.model = 2, .name = "large", .vocab_size = 1, .pieces = {"a"}});
  for (const Event& event : events) timeline.apply(event);
  return timeline;
}

// Returns a line for each entry: its depth, its kind and its first run.
std::string outline(const std::vector<RunEntry>& entries) {
  std::string text;
  for (const RunEntry& entry : entries)
    text += std::string(static_cast<std::size_t>(entry.depth), ' ') +
            "RPCT"[static_cast<int>(entry.kind)] + std::to_string(entry.run) + "\n";
  return text;
}

TEST(RunGroups, lanes_are_below_their_race) {
  const Timeline timeline = timeline_of({started(1, 0, 0), started(2, 1, 0), started(3, 1, 1),
                                         started(4, 2, 0), started(5, 2, 1), started(6, 0, 0)});
  const auto entries = run_entries(timeline.runs());
  EXPECT_EQ(outline(entries), "R1\nC2\n R2\n R3\nC4\n R4\n R5\nR6\n");
  EXPECT_EQ(entries[1].end, 4u);
  EXPECT_EQ(entries[1].n_runs, 2u);
  EXPECT_EQ(heading_of(timeline, entries, 1), "small \xC2\xB7 first line");
}

TEST(RunGroups, repeats_are_below_one_race) {
  const auto place = [](int repeat) {
    return PlaceInSet{.set = 1, .repeat = repeat, .n_repeats = 2};
  };
  const Timeline timeline = timeline_of({started(1, 1, 0, place(0)), started(2, 1, 1, place(0)),
                                         started(3, 2, 0, place(1)), started(4, 2, 1, place(1))});
  const auto entries = run_entries(timeline.runs());
  EXPECT_EQ(outline(entries), "C1\n T1\n  R1\n  R2\n T3\n  R3\n  R4\n");
  EXPECT_EQ(entries[0].n_runs, 4u);
  EXPECT_EQ(entries[4].end, 7u);
  EXPECT_EQ(heading_of(timeline, entries, 0), "small \xC2\xB7 first line \xC2\xB7 2 repeats");
  EXPECT_EQ(heading_of(timeline, entries, 4), "repeat 2 of 2");
}

TEST(RunGroups, repeats_of_a_single_run_are_below_one_heading) {
  const auto place = [](int repeat) {
    return PlaceInSet{.set = 1, .repeat = repeat, .n_repeats = 2};
  };
  const Timeline timeline = timeline_of({started(1, 0, 0, place(0)), started(2, 0, 0, place(1))});
  EXPECT_EQ(outline(run_entries(timeline.runs())), "C1\n R1\n R2\n");
}

TEST(RunGroups, prompts_of_a_set_are_below_one_heading) {
  const auto place = [](int prompt) {
    return PlaceInSet{.set = 1, .prompt = prompt, .n_prompts = 2, .task = "kb"};
  };
  const Timeline timeline = timeline_of({started(1, 1, 0, place(0)), started(2, 1, 1, place(0)),
                                         started(3, 2, 0, place(1)), started(4, 3, 0)});
  const auto entries = run_entries(timeline.runs());
  EXPECT_EQ(outline(entries), "P1\n C1\n  R1\n  R2\n C3\n  R3\nC4\n R4\n");
  EXPECT_EQ(heading_of(timeline, entries, 0), "small \xC2\xB7 2 prompts");
  EXPECT_EQ(heading_of(timeline, entries, 1), "first line \xC2\xB7 kb");
}

// A lane with several prompts at once starts the runs of all prompts of a repeat together.
TEST(RunGroups, a_set_is_ordered_by_prompt_and_repeat) {
  const auto place = [](int prompt, int repeat) {
    return PlaceInSet{
        .set = 1, .prompt = prompt, .n_prompts = 2, .repeat = repeat, .n_repeats = 2, .task = "kb"};
  };
  const Timeline timeline = timeline_of(
      {started(1, 1, 0, place(0, 0)), started(2, 1, 1, place(0, 0)), started(3, 2, 1, place(1, 0)),
       started(4, 2, 0, place(1, 0)), started(5, 3, 1, place(0, 1)), started(6, 4, 1, place(1, 1)),
       started(7, 3, 0, place(0, 1)), started(8, 4, 0, place(1, 1)), started(9, 0, 0)});
  const auto entries = run_entries(timeline.runs());
  EXPECT_EQ(outline(entries),
            "P1\n C1\n  T1\n   R1\n   R2\n  T7\n   R7\n   R5\n"
            " C4\n  T4\n   R4\n   R3\n  T8\n   R8\n   R6\nR9\n");
  EXPECT_EQ(entries[0].n_runs, 8u);
  EXPECT_EQ(heading_of(timeline, entries, 5), "repeat 2 of 2");
}

TEST(ModelApart, is_the_part_of_the_name_that_differs) {
  const auto apart = [](const std::vector<ModelLoaded>& models, std::size_t i) {
    Timeline timeline;
    std::vector<RunId> ids;
    for (ModelLoaded model : models) {
      model.model = static_cast<std::uint32_t>(ids.size() + 1);
      model.vocab_size = 1;
      model.pieces = {"a"};
      timeline.apply(model);
      ids.push_back(static_cast<RunId>(ids.size() + 1));
      timeline.apply(RunStarted{.run = ids.back(), .model = model.model, .decoder = "jacobi"});
    }
    std::vector<const RunRecord*> runs;
    for (const RunId id : ids) runs.push_back(timeline.run(id));
    return model_apart(timeline, runs, *runs[i]);
  };
  EXPECT_EQ(apart({{.name = "demo-target"}, {.name = "demo-cllm"}}, 0), "target");
  EXPECT_EQ(apart({{.name = "demo-target"}, {.name = "demo-cllm"}}, 1), "cllm");
  EXPECT_EQ(apart({{.name = "small"}, {.name = "large"}}, 1), "large");
  EXPECT_EQ(apart({{.name = "a", .dtype = "bf16", .scale = "1x1"},
                   {.name = "a", .dtype = "Q4_0", .scale = "1x1"}},
                  1),
            "1x1 Q4_0");
  EXPECT_EQ(apart({{.name = "demo-target"}}, 0), "");
}

TEST(RunGroups, only_settings_that_differ_are_named) {
  RunStarted a = started(1, 1, 0), b = started(2, 1, 1), c = started(3, 1, 2);
  a.options = {{"block", "8"}, {"refill", "slide"}};
  b.options = {{"block", "16"}, {"refill", "slide"}};
  c.decoder = "lookahead", c.options = {{"window", "5"}}, c.model = 2;
  const Timeline timeline = timeline_of({a, b, c});
  const auto lanes = timeline.race(1);
  const Catalog catalog = streams::catalog();
  EXPECT_EQ(differing_settings(timeline, catalog, *lanes[0], lanes), "block length 8, small");
  EXPECT_EQ(differing_settings(timeline, catalog, *lanes[1], lanes), "block length 16, small");
  EXPECT_EQ(differing_settings(timeline, catalog, *lanes[2], lanes), "large");
}

TEST(RunGroups, a_heading_folds_its_runs) {
  scripted::play("fold", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    ctx->Yield(2);
    stage.shell->take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 2}));
    ctx->Yield(3);
    ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs"));
    // The race is open, its repeats are folded.
    IM_CHECK(!ctx->ItemExists("$$1/##run"));
    ctx->ItemOpen("###heading3_1");
    ctx->Yield(2);
    ctx->ItemClick("$$2/##run");
    IM_CHECK_EQ(stage.shell->selection().run, 2u);
    IM_CHECK_EQ(stage.shell->selection().race, 1u);
    ctx->ItemClose("###heading2_1");
    ctx->Yield(2);
    IM_CHECK(!ctx->ItemExists("###heading3_1"));
    // The keyboard folds it too.
    ctx->NavMoveTo("###heading2_1");
    ctx->KeyPress(ImGuiKey_Space);
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("###heading3_1"));
  });
}

}  // namespace
}  // namespace ui
