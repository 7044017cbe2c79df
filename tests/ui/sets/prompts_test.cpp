// Sets of prompts: results by hand, the panel Prompts, and the prompt file in Setup.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/support/files.h"
#include "tests/support/streams.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/inks.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/set_stream.h"
#include "tests/ui/support/training_folder.h"
#include "ui/files/prompt_file.h"
#include "ui/files/setup_form.h"
#include "ui/panels/results/prompt_scatter.h"
#include "ui/panels/results/prompts.h"
#include "ui/prepare/sets/prompt_results.h"
#include "ui/prepare/use_again.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

using namespace engine;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

PromptResult result(int prompt, int lane, std::optional<double> speedup, const char* task = "") {
  return {.prompt = prompt,
          .lane = lane,
          .prompt_id = "p" + std::to_string(prompt),
          .task = task,
          .decoder = lane == 0 ? "ar" : "jacobi",
          .speedup = speedup};
}

TEST(PromptResults, a_task_has_the_geometric_mean_and_sums) {
  PromptResult a = result(0, 1, 2, "kb"), b = result(1, 1, 8, "kb"), c = result(2, 1, {}, "kb"),
               d = result(3, 1, 1, "arith");
  a.tokens = 10, a.steps = 5, a.accepted = 3, a.proposed = 4, a.is_compared = true;
  b.tokens = 20, b.steps = 5, b.accepted = 0, b.proposed = 4, b.is_compared = true;
  b.first_difference = 7;
  const auto tasks = task_results({a, b, c, d});
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].task, "kb");
  EXPECT_EQ(tasks[0].n_prompts, 3);
  EXPECT_DOUBLE_EQ(*tasks[0].speedup, 4);            // sqrt(2 * 8)
  EXPECT_DOUBLE_EQ(*tasks[0].tokens_per_step(), 3);  // 30 / 10
  EXPECT_DOUBLE_EQ(*tasks[0].acceptance(), 0.375);   // 3 / 8
  EXPECT_EQ(difference_words(tasks[0]), "1 of 2");
  EXPECT_EQ(tasks[1].task, "arith");
  EXPECT_FALSE(tasks[1].acceptance());
  EXPECT_EQ(difference_words(tasks[1]), "-");
  EXPECT_EQ(tasks[2].task, "all");
  EXPECT_NEAR(*tasks[2].speedup, 2.5198421, 1e-6);  // 16 ^ (1 / 3)
}

TEST(PromptResults, one_task_has_no_line_for_all) {
  EXPECT_EQ(task_results({result(0, 0, 1), result(0, 1, 2), result(1, 1, 2)}).size(), 2u);
}

TEST(PromptResults, rows_are_sorted_with_undefined_values_last) {
  std::vector<PromptResult> rows{result(0, 1, 2), result(1, 1, {}), result(2, 1, 3),
                                 result(3, 1, 1)};
  const auto order = [&] {
    std::vector<int> prompts;
    for (const PromptResult& row : rows) prompts.push_back(row.prompt);
    return prompts;
  };
  sort_results(rows, ResultColumn::Speedup, true);
  EXPECT_THAT(order(), ElementsAre(2, 0, 3, 1));
  sort_results(rows, ResultColumn::Speedup, false);
  EXPECT_THAT(order(), ElementsAre(3, 0, 2, 1));
  sort_results(rows, ResultColumn::Name, false);
  EXPECT_THAT(order(), ElementsAre(0, 1, 2, 3));
}

TEST(PromptResults, a_set_gives_a_row_for_each_prompt_and_lane) {
  Timeline timeline;
  for (const Event& event :
       streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_prompts = 3, .n_repeats = 2}))
    timeline.apply(event);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_EQ(listed_set(timeline, 0), 1u);
  Speedups speedups;
  const auto rows = prompt_results(timeline, 1, speedups);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[3].prompt_id, "p1");
  EXPECT_EQ(rows[3].task, "odd");
  EXPECT_EQ(rows[3].decoder, "jacobi");
  EXPECT_EQ(rows[3].race, 3u) << "the first repeat of prompt 1";
  EXPECT_EQ(rows[3].tokens, 2 * 40);
  const double first = *timeline.speedup(*timeline.run(rows[3].run)),
               second = *timeline.speedup(*timeline.run(rows[3].run + 2));
  EXPECT_DOUBLE_EQ(*rows[3].speedup, (first + second) / 2) << "the median of two repeats";
  EXPECT_EQ(difference_words(rows[3]), "identical");
  EXPECT_DOUBLE_EQ(*rows[2].speedup, 1) << "AR against itself";
  const auto &one = timeline.run(rows[1].run)->totals,
             &other = timeline.run(rows[1].run + 2)->totals;
  ASSERT_GT(one.n_proposed, one.n_accepted + one.n_rejected);
  EXPECT_DOUBLE_EQ(*rows[1].acceptance(), double(one.n_accepted + other.n_accepted) /
                                              double(one.n_proposed + other.n_proposed));
  const auto lanes = scatter_of(rows);
  ASSERT_EQ(lanes.size(), 1u) << "AR proposes nothing";
  EXPECT_THAT(lanes[0].rows, ElementsAre(1u, 3u, 5u));
  EXPECT_DOUBLE_EQ(lanes[0].acceptance_percent[0], 100 * *rows[1].acceptance());
  EXPECT_EQ(task_results(rows).size(), 6u) << "even, odd and all, in two lanes";
  EXPECT_EQ(speedups.size(), 12u);
  EXPECT_EQ(prompt_results(timeline, 1, speedups)[3].speedup, rows[3].speedup);
  EXPECT_TRUE(prompt_results(timeline, 2, speedups).empty());
}

TEST(PromptResults, baseline_under_other_load_gives_no_speedup) {
  for (const bool is_refused : {false, true}) {
    Timeline timeline;
    for (Event event : test::one_after_the_other(is_refused ? 0.5 : 1)) {
      if (auto* started = std::get_if<RunStarted>(&event)) {
        started->lane = static_cast<int>(started->run) - 1;
        started->place = {.set = 1, .n_prompts = 2, .task = "kb"};
      }
      timeline.apply(event);
    }
    Speedups speedups;
    const auto rows = prompt_results(timeline, 1, speedups);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(speedup_words(rows[0]), "1.00x") << "AR against itself";
    EXPECT_EQ(speedup_words(rows[1]), is_refused ? kOtherLoad : "1.00x");
    EXPECT_EQ(speedup_words(task_results(rows)[1]), is_refused ? kOtherLoad : "1.00x");
    EXPECT_EQ(rows[1].why_no_speedup.starts_with("Run 1 used 90 % of the processor"), is_refused);
  }
}

TEST(Prompts, repeats_alone_have_no_such_panel) {
  DrawnWindow window;
  window.shell.show(Screen::Compare);
  window.shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 2}));
  EXPECT_THAT(window.said(), Not(HasSubstr("Prompts")));
}

TEST(Prompts, the_panel_appears_with_a_set_of_prompts) {
  DrawnWindow window;
  window.shell.show(Screen::Compare);
  window.shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_prompts = 3}));
  EXPECT_THAT(window.said(),
              AllOf(HasSubstr("Prompts"), HasSubstr("vs AR"), HasSubstr("prompt 3 of 3")));
  window.shell.state<PromptsView>().show = PromptsView::Show::Tasks;
  EXPECT_THAT(window.said(), AllOf(HasSubstr("even, 2"), HasSubstr("2 of 2")));
}

TEST(Prompts, points_at_the_border_of_the_scatter_are_whole) {
  std::vector<PromptResult> rows{result(0, 1, 2), result(1, 1, 3)};
  rows[0].accepted = 0, rows[0].proposed = 5;
  rows[1].accepted = 5, rows[1].proposed = 5;
  DrawnWindow window;
  window.said();
  for (int frame = 0; frame < 3; ++frame)
    window.gui.said([&] {
      ImGui::SetNextWindowSize({400, 400});
      ImGui::Begin("points");
      draw_scatter(rows, 0);
      ImGui::End();
    });
  const auto found = inks::drawn("points", colour(curve_ink(theme(), 1)));
  EXPECT_GE(found.n, 2 * 6) << "two squares of two triangles";
  EXPECT_EQ(found.n_cut, 0);
}

// Returns a catalog whose prompt files have three prompts.
Catalog catalog_with_files() {
  Catalog catalog = streams::catalog();
  catalog.read_prompts = [](const std::string& path) -> CatalogPromptFile {
    if (path.ends_with("broken.jsonl")) return {.prompts = {}, .unusable = path + ":1: not JSON"};
    if (test::read_file(path) == "one") return {.prompts = {{"a", "one", "kb"}}};
    return {.prompts = {{"a", "one", "kb"}, {"b", "two", "arith"}, {"c", "three", "kb"}}};
  };
  return catalog;
}

TEST(Prompts, a_file_gives_the_command_its_prompts) {
  const test::Folder folder;
  std::ofstream(folder / "set.jsonl") << "x";
  std::ofstream(folder / "broken.jsonl") << "x";
  const Catalog catalog = catalog_with_files();
  SetupForm form = first_form(catalog, "");
  form.prompt.clear();
  form.prompt_file = folder / "set.jsonl";
  read_prompt_file(form, catalog);
  EXPECT_EQ(prompts_words(form.prompts), "3 prompts: kb 2, arith 1");
  EXPECT_EQ(why_not(form, catalog, true), "");
  EXPECT_EQ(why_not(form, catalog, false), "The prompt is empty.") << "Live decodes one prompt";
  EXPECT_EQ(command_of(form, true).prompts.size(), 3u);
  EXPECT_TRUE(command_of(form, false).prompts.empty());
  form.prompt_file = folder / "broken.jsonl";
  read_prompt_file(form, catalog);
  EXPECT_THAT(why_not(form, catalog, true), HasSubstr("not JSON"));
  form.prompt_file = folder / "missing.jsonl";
  read_prompt_file(form, catalog);
  EXPECT_THAT(why_not(form, catalog, true), HasSubstr("does not exist"));
  form.prompt_file.clear();
  read_prompt_file(form, catalog);
  EXPECT_EQ(why_not(form, catalog, true), "The prompt is empty.");
}

TEST(Prompts, settings_of_a_repeated_run_are_used_again) {
  Timeline timeline;
  for (const Event& event : streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 3}))
    timeline.apply(event);
  const Catalog catalog = streams::catalog();
  SetupForm form = first_form(catalog, "");
  form.prompt_file = "set.jsonl";
  use_again(form, catalog, timeline, *timeline.run(2));
  EXPECT_EQ(form.prompt_file, "") << "the next race has the prompt of that run";
  EXPECT_EQ(form.n_repeats, 3);
  use_with_sizes(form, catalog, timeline, *timeline.run(2));
  EXPECT_EQ(form.n_repeats, 1);
}

TEST(Prompts, a_file_is_chosen_raced_and_listed) {
  const test::Folder folder;
  std::ofstream(folder / "set.jsonl") << "x";
  const std::string path = folder / "set.jsonl";
  scripted::play(
      "prompts",
      [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
        Shell& shell = *stage.shell;
        shell.show(Screen::Compare);
        ctx->Yield(4);
        ctx->ItemInputValue("//Setup###compare.setup/prompt_file/##path", path.c_str());
        ctx->Yield(2);
        ctx->ItemClick("//##top/###run");
        scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        IM_CHECK_EQ(stage.replay->started.prompts.size(), std::size_t{3});
        IM_CHECK_EQ(stage.replay->started.prompts[1].task, std::string("arith"));
      },
      {}, catalog_with_files());
}

TEST(Prompts, a_dropped_file_is_taken_by_setup) {
  const test::Folder folder;
  for (const char* name : {"set.jsonl", "broken.jsonl"}) std::ofstream(folder / name) << "x";
  DrawnWindow window;
  window.catalog = catalog_with_files();
  window.shell.open(folder / "set.jsonl");
  EXPECT_EQ(window.shell.form().prompt_file, folder / "set.jsonl");
  EXPECT_EQ(window.shell.screen(), Screen::Compare);
  EXPECT_THAT(window.said(), HasSubstr("3 prompts: kb 2, arith 1"));
  window.shell.open(folder / "broken.jsonl");
  EXPECT_EQ(window.shell.form().prompt_file, folder / "set.jsonl") << "it is no file of prompts";
  EXPECT_EQ(window.shell.message(), folder / "broken.jsonl" + ":1: not JSON");
  EXPECT_EQ(window.shell.screen(), Screen::Compare);
  window.shell.open(folder / "missing.jsonl");
  EXPECT_EQ(window.shell.message(), folder / "missing.jsonl" + ": does not exist.");
  std::ofstream(folder / "set.jsonl") << "one";
  window.shell.open(folder / "set.jsonl");
  EXPECT_THAT(window.said(), HasSubstr("1 prompt: kb 1")) << "the file was edited";
}

TEST(Prompts, a_log_of_a_training_run_is_not_read_as_prompts) {
  const training_folder::Folder folder;
  folder.report(10);
  const test::Folder elsewhere;
  std::filesystem::copy_file(folder.path("training.jsonl"), elsewhere / "copy.jsonl");
  for (const std::string& log : {folder.path("training.jsonl"), elsewhere / "copy.jsonl"}) {
    DrawnWindow window;
    window.catalog = catalog_with_files();
    window.shell.open(log);
    EXPECT_EQ(window.shell.screen(), Screen::Training) << log;
    EXPECT_EQ(window.shell.form().prompt_file, "");
  }
}

TEST(Prompts, a_row_shows_its_race_and_a_column_sorts) {
  scripted::play("rows", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    Shell& shell = *stage.shell;
    shell.show(Screen::Compare);
    ctx->Yield(4);
    shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_prompts = 3}));
    ctx->Yield(6);
    IM_CHECK_EQ(shell.selection().race, 3u);
    ctx->SetRef("//Prompts###compare.prompts");
    ctx->ItemClick("**/$$1/###prompt");  // prompt p0 in lane B
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().race, 1u);
    IM_CHECK_EQ(shell.selection().run, 2u);
    ctx->ItemClick("**/$$1/###prompt");
    const auto first = [&] { return shell.state<PromptsView>().sorted.front(); };
    IM_CHECK_EQ(first().decoder, std::string("ar"));
    ctx->TableClickHeader("prompts", "speed-up");
    ctx->Yield(3);
    IM_CHECK_EQ(first().decoder, std::string("jacobi"));
    shell.state<PromptsView>().show = PromptsView::Show::Scatter;
    ctx->Yield(3);
  });
}

// Returns the place of the rightmost marker of a lane in the scatter.
ImVec2 rightmost_marker(int lane) {
  std::vector<ImVec2> drawn;  // vertices in the lane's colour
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || !std::string_view(window->Name).starts_with("Prompts###")) continue;
    for (const ImDrawVert& v : window->DrawList->VtxBuffer)
      if (v.col == colour(curve_ink(theme(), lane))) drawn.push_back(v.pos);
  }
  if (drawn.empty()) return {-1, -1};
  const ImVec2 end = *std::ranges::max_element(drawn, {}, &ImVec2::x);
  ImVec2 sum{0, 0};
  float n = 0;
  for (const ImVec2& at : drawn)
    if (std::abs(at.x - end.x) < px(11) && std::abs(at.y - end.y) < px(11))
      sum.x += at.x, sum.y += at.y, n += 1;
  return {sum.x / n, sum.y / n};
}

TEST(Prompts, a_click_on_a_point_shows_its_race) {
  scripted::play("scatter", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    Shell& shell = *stage.shell;
    shell.show(Screen::Compare);
    ctx->Yield(4);
    shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_prompts = 3}));
    PromptsView& view = shell.state<PromptsView>();
    view.show = PromptsView::Show::Scatter;
    ctx->Yield(6);
    const auto lanes = scatter_of(view.prompts);
    IM_CHECK_EQ(lanes.size(), std::size_t{1});
    const auto& percent = lanes[0].acceptance_percent;
    const auto best = std::ranges::max_element(percent) - percent.begin();
    const PromptResult wanted = view.prompts[lanes[0].rows[static_cast<std::size_t>(best)]];
    shell.selection().race = wanted.race == 1 ? 2 : 1;
    shell.selection().run = wanted.race == 1 ? 3 : 1;
    ctx->Yield(3);
    const ImVec2 at = rightmost_marker(1);
    IM_CHECK_GT(at.x, 0.0f);
    ctx->MouseMoveToPos(at);
    ctx->MouseClick(0);
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().race, wanted.race);
    IM_CHECK_EQ(shell.selection().run, wanted.run);
  });
}

}  // namespace
}  // namespace ui
