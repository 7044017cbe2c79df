// The screen Training: data prepared from the history of a training run, and the screen for a folder that
// grows, ends, is damaged or contains no training run.
#include <unistd.h>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <implot.h>
#include <implot_internal.h>

#include "engine/event/recording/training_history.h"
#include "engine/event/recording/training_report.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/inks.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/training_folder.h"
#include "ui/panels/live/probe_trajectory.h"
#include "ui/panels/results/training_charts.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/prepare/training.h"
#include "ui/shell/window.h"
#include "ui/widgets/chart.h"

namespace {

namespace fs = std::filesystem;
using namespace scripted;
using engine::TrainingReport;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using training_folder::report_of;
using ui::Curve;
using ui::Mean;

// The states of a block: the initial guess and three iterations, with one stationary token.
const std::vector<std::vector<engine::TokenId>> kGolden{
    {7, 1, 1, 1, 1, 1}, {7, 2, 9, 5, 8, 9}, {7, 2, 3, 5, 9, 6}, {7, 2, 3, 4, 5, 6}};

int n_stationary_cells(const ui::Grid& grid) {
  int n = 0;
  for (const ui::GridRow& row : grid.rows)
    for (const ui::GridCell& cell : row.cells) n += cell.mean == Mean::Stationary;
  return n;
}

TEST(Training, probe_block_is_marked_like_a_block_of_a_run) {
  const ui::Grid grid = ui::states_grid(kGolden, true);
  ASSERT_EQ(grid.rows.size(), 5u) << "the last iteration changed nothing";
  std::vector<int> proved;
  for (const ui::GridRow& row : grid.rows) proved.push_back(row.n_proved);
  EXPECT_THAT(proved, ElementsAre(0, 2, 1, 1, 2));
  EXPECT_EQ(grid.n_fast_forward, 4);
  EXPECT_EQ(n_stationary_cells(grid), 1);
  EXPECT_EQ(grid.rows[2].cells[5].mean, Mean::Stationary);
  EXPECT_EQ(grid.rows[1].cells[0].mean, Mean::FastForward);
  EXPECT_EQ(grid.rows[2].cells[2].mean, Mean::Accepted);
  EXPECT_EQ(grid.rows[2].cells[0].mean, Mean::Prefix);
  EXPECT_TRUE(grid.rows.back().converged);
  const ui::Grid live = ui::states_grid(kGolden, false);
  EXPECT_EQ(live.rows[2].cells[5].mean, Mean::Guess) << "not known while the run was live";
  EXPECT_EQ(n_stationary_cells(live), 0);
}

TEST(Training, block_that_begins_at_its_fixed_point_is_final) {
  const std::vector<std::vector<engine::TokenId>> states{{4, 5}};
  const ui::Grid grid = ui::states_grid(states, true);
  ASSERT_EQ(grid.rows.size(), 2u);
  EXPECT_EQ(grid.rows[1].n_proved, 2);
}

TEST(Training, probe_counts_follow_the_paper) {
  engine::TrainingHistory history;
  history.probes.push_back({.step = 3, .prompt = "Q", .end_ids = {}, .blocks = {kGolden, kGolden}});
  // Token 3 ends the sequence: in the last block, later tokens do not count.
  history.probes.push_back(
      {.step = 9, .prompt = "Q", .end_ids = {3}, .blocks = {kGolden, kGolden}});
  const auto counts = ui::counts_of(history);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].n_tokens, 12);
  EXPECT_EQ(counts[0].n_iterations, 6);
  EXPECT_DOUBLE_EQ(counts[0].fast_forward, 2.0);
  EXPECT_EQ(counts[0].n_stationary, 2);
  EXPECT_DOUBLE_EQ(counts[0].tokens_per_iteration(), 2.0);
  EXPECT_EQ(counts[1].n_tokens, 6 + 3);
  EXPECT_EQ(counts[1].n_iterations, 3 + 2);
  EXPECT_EQ(counts[1].n_stationary, 1);
  const auto curves = ui::curves_of(counts);
  ASSERT_EQ(curves.size(), 3u);
  EXPECT_THAT(curves[0].x, ElementsAre(3, 9));
  EXPECT_THAT(curves[2].y, ElementsAre(2, 1));
}

Curve curve_of(int n, const std::function<double(int)>& y) {
  Curve curve{"c", {}, {}};
  for (int i = 0; i < n; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(y(i));
  }
  return curve;
}

TEST(Training, dense_curve_keeps_its_spikes) {
  const Curve curve =
      curve_of(100'000, [](int i) { return i == 71'234 ? 50.0 : std::sin(i * 0.01); });
  const auto points = ui::thinned(curve, 0, 99'999, 300);
  EXPECT_LE(points.size(), 4u * 302);
  EXPECT_GT(points.size(), 300u);
  double highest = 0;
  for (const ui::ChartPoint& point : points) highest = std::max(highest, point.y);
  EXPECT_EQ(highest, 50);
  EXPECT_EQ(points.front().x, 0);
  EXPECT_EQ(points.back().x, 99'999);
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_GT(points[i].x, points[i - 1].x);
  EXPECT_LE(ui::thinned(curve, 50'000, 50'100, 300).size(), 110u) << "few values outside the range";
}

TEST(Training, few_values_are_not_reduced) {
  const Curve curve = curve_of(7, [](int i) { return i * i; });
  const auto points = ui::thinned(curve, 0, 6, 400);
  ASSERT_EQ(points.size(), 7u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(points[static_cast<std::size_t>(i)].y, i * i);
  EXPECT_EQ(ui::thinned(curve, 0, 6, 400, true).size(), 6u) << "0 has no logarithm";
}

TEST(Training, chart_survives_extreme_values) {
  const double inf = HUGE_VAL;
  DrawnWindow window;
  window.said();
  for (const std::vector<double>& y : std::vector<std::vector<double>>{{},
                                                                       {3},
                                                                       {2, 2, 2},
                                                                       {0, 0},
                                                                       {1e300, -1e300},
                                                                       {inf, 1, -inf},
                                                                       {NAN},
                                                                       {1e-12, 1e9},
                                                                       {-4, -4}}) {
    Curve curve{"c", {}, y};
    for (std::size_t i = 0; i < y.size(); ++i) curve.x.push_back(static_cast<double>(i));
    const ui::ChartLook looks[] = {
        {.x_name = "steps"}, {.x_name = "steps", .log = true}, {.x_name = "steps", .bar_width = 1}};
    for (const ui::ChartLook& look : looks) {
      ui::ChartAxis axis;
      for (int frame = 0; frame < 3; ++frame)
        window.gui.said([&] {
          ImGui::SetNextWindowSize({400, 300});
          ImGui::Begin("chart");
          ui::draw_chart("c", {{curve}}, axis, look, {380, 250});
          ImGui::End();
        });
      EXPECT_LT(axis.min, axis.max);
      EXPECT_TRUE(axis.shows_all);
      for (const glyphs::Glyph& glyph : glyphs::drawn())
        if (glyph.window == "chart") {
          EXPECT_FALSE(is_cut_sideways(glyph));
        }
    }
  }
}

TEST(Training, markers_at_the_border_are_whole) {
  DrawnWindow window;
  window.said();
  // Six curves, one for each marker; a horizontal line itself does not reach beyond the border.
  std::vector<Curve> curves;
  for (int c = 0; c < 6; ++c)
    curves.push_back(curve_of(4, [c](int) { return static_cast<double>(c + 1); }));
  ui::ChartAxis axis;
  for (int frame = 0; frame < 3; ++frame)
    window.gui.said([&] {
      ImGui::SetNextWindowSize({400, 400});
      ImGui::Begin("chart");
      ui::draw_chart("c", curves, axis, {.x_name = "steps", .dots = true}, {380, 250});
      ImGui::End();
    });
  for (int c = 0; c < 6; ++c) {
    const auto found = inks::drawn("chart", ui::colour(ui::curve_ink(ui::theme(), c)));
    EXPECT_GT(found.n, 4 * 3) << "curve " << c;
    EXPECT_EQ(found.n_cut, 0) << "curve " << c;
  }
}

TEST(Training, values_and_times_are_short) {
  EXPECT_EQ(ui::value_in_words(0.123456), "0.123");
  EXPECT_EQ(ui::value_in_words(4210), "4,210");
  EXPECT_EQ(ui::value_in_words(0.0004), "0.0004");
  EXPECT_EQ(ui::value_in_words(NAN), "-");
  EXPECT_EQ(ui::duration_words(12.4), "12 s");
  EXPECT_EQ(ui::duration_words(200), "3 min 20 s");
  EXPECT_EQ(ui::duration_words(3840), "1 h 04 min");
  EXPECT_EQ(ui::duration_words(-5), "0 s");
  EXPECT_EQ(ui::duration_words(1e300), ui::duration_words(1e13));
}

TEST(Training, curves_have_the_reported_values) {
  engine::TrainingHistory history;
  for (const int step : {10, 100, 110, 200}) history.reports.push_back(report_of(step));
  const ui::TrainingCurves curves = ui::curves_of(history, ui::TrainingAxis::Tokens);
  ASSERT_EQ(curves.losses.size(), 3u);
  EXPECT_EQ(curves.losses[1].name, "AR");
  EXPECT_THAT(curves.losses[0].x, ElementsAre(40960, 409600, 450560, 819200));
  EXPECT_EQ(curves.losses[0].y[3], report_of(200).loss);
  ASSERT_EQ(curves.shares.size(), 1u);
  EXPECT_THAT(curves.shares[0].x, ElementsAre(409600, 819200)) << "one value per probe";
  ASSERT_EQ(curves.counts.size(), 1u);
  EXPECT_EQ(curves.counts[0].name, "tokens per step, block");
  EXPECT_EQ(ui::curves_of(history, ui::TrainingAxis::Minutes).speed[0].x[1], 100 / 4.0 / 60);
  // A loss with one part is one line.
  for (TrainingReport& report : history.reports) report.losses = {{"completion", report.loss}};
  EXPECT_EQ(ui::curves_of(history, ui::TrainingAxis::Steps).losses.size(), 1u);
}

TEST(Training, status_follows_the_reports) {
  engine::TrainingHistory history;
  EXPECT_EQ(ui::status_of(history).words, "no report yet");
  history.stage = engine::TrainingStage::Collecting;
  history.silent_seconds = 3;
  EXPECT_EQ(ui::status_of(history).silence, "last report 3 s ago");
  EXPECT_EQ(ui::status_of(history).share, -1);
  history.reports = {report_of(100)};
  history.stage = engine::TrainingStage::Training;
  EXPECT_EQ(ui::status_of(history).words, "training, step 100");
  EXPECT_DOUBLE_EQ(ui::status_of(history).share, 0.25);
  history.silent_seconds = 700;
  EXPECT_THAT(ui::status_of(history).silence, HasSubstr("no report for 11 min"));
  history.stage = engine::TrainingStage::Written;
  EXPECT_TRUE(ui::status_of(history).is_over);
  EXPECT_EQ(ui::status_of(history).silence, "");
}

TEST(Training, folder_opens_on_the_training_screen) {
  const training_folder::Folder folder;
  folder.fill();
  DrawnWindow window;
  window.shell.open(folder.path());
  EXPECT_EQ(window.shell.screen(), ui::Screen::Training);
  const std::string said = window.said();
  EXPECT_THAT(said, AllOf(HasSubstr("demo-run training, step 300"),
                          HasSubstr("time left about 25 s"), HasSubstr("training tokens 1,228,800"),
                          HasSubstr("loss, consistency"), HasSubstr("accuracy 72.5 %"),
                          HasSubstr("tokens per step, block 3.2"), HasSubstr("last report ")));
  EXPECT_THAT(said, AllOf(HasSubstr("probe 4 of 4, step 300"), HasSubstr("USER: How many?"),
                          HasSubstr("Anna has 14."), HasSubstr("block 1"),
                          HasSubstr("1 iteration to its fixed point")));
  EXPECT_THAT(said, HasSubstr("30 reports")) << "the status bar";
  EXPECT_EQ(window.shell.settings().last_training, folder.path());
}

TEST(Training, log_alone_can_be_opened) {
  const training_folder::Folder folder;
  folder.fill();
  DrawnWindow window;
  window.shell.open(folder.path("training.jsonl"));
  EXPECT_EQ(window.shell.screen(), ui::Screen::Training);
  EXPECT_THAT(window.said(), HasSubstr("training, step 300"));
}

TEST(Training, appended_lines_are_shown_when_complete) {
  const training_folder::Folder folder;
  folder.report(10);
  DrawnWindow window;
  window.shell.open(folder.path());
  EXPECT_THAT(window.said(), HasSubstr("training, step 10"));
  EXPECT_FALSE(window.shell.has_news()) << "no frame without news";
  folder.append("training.jsonl", R"({"step":20,"tokens":77)");
  for (int i = 0; i < 60; ++i) window.gui.frame(window.shell);
  EXPECT_EQ(window.shell.training()->reports.size(), 1u);
  EXPECT_FALSE(window.shell.has_news());
  folder.append("training.jsonl", "77}\n");
  EXPECT_TRUE(window.shell.has_news());
  for (int i = 0; i < 60; ++i) window.gui.frame(window.shell);
  EXPECT_THAT(window.said(), HasSubstr("training tokens 7,777"));
  EXPECT_THAT(window.said(), HasSubstr("This training run records no trajectories."));
  EXPECT_FALSE(window.shell.has_news());
}

TEST(Training, long_log_is_read_over_several_frames) {
  const training_folder::Folder folder;
  std::string text;
  for (int step = 1; step <= 6'000; ++step) text += engine::to_json_line(report_of(step)) + "\n";
  folder.append("training.jsonl", text);
  DrawnWindow window;
  window.shell.open(folder.path());
  EXPECT_TRUE(window.shell.reads_training());
  EXPECT_TRUE(window.shell.animates()) << "frames continue until everything is read";
  EXPECT_LT(window.shell.training()->reports.size(), 6'000u);
  for (int i = 0; i < 40 && window.shell.reads_training(); ++i) window.gui.frame(window.shell);
  EXPECT_FALSE(window.shell.reads_training());
  EXPECT_EQ(window.shell.training()->reports.size(), 6'000u);
  EXPECT_LT(window.gui.frame(window.shell), 200'000)
      << "the cost of a curve is bounded by its pixels";
}

TEST(Training, bad_line_is_reported_and_earlier_lines_kept) {
  const training_folder::Folder folder;
  folder.report(10);
  folder.append("training.jsonl", "{\"step\":\"many\"}\n");
  folder.append("probe_trajectories.jsonl", "half of something\n");
  DrawnWindow window;
  window.shell.open(folder.path());
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr("training, step 10"));
  EXPECT_THAT(said, HasSubstr("training.jsonl:2: step: expected a whole number"));
  EXPECT_THAT(said, HasSubstr("probe_trajectories.jsonl:1: found no JSON object"));
}

TEST(Training, failed_open_keeps_the_shown_training_run) {
  const training_folder::Folder folder;
  folder.report(10);
  DrawnWindow window;
  window.shell.open(folder.path());
  fs::create_directory(folder.path("empty"));
  folder.append("other.jsonl", "[]\n");
  for (const std::string& bad :
       {folder.path("empty"), folder.path("other.jsonl"), folder.path("absent.jsonl")}) {
    window.shell.open(bad);
    EXPECT_THAT(window.shell.message(), HasSubstr(bad));
    EXPECT_EQ(window.shell.training()->reports.size(), 1u);
  }
  fs::remove_all(folder.path());
  for (int i = 0; i < 60; ++i) window.gui.frame(window.shell);
  EXPECT_THAT(window.said(), HasSubstr("no report yet")) << "the folder was removed";
}

TEST(Training, folder_with_model_and_training_opens_both) {
  const training_folder::Folder folder;
  folder.fill();
  folder.append("config.json", "{}");
  DrawnWindow window;
  window.shell.open(folder.path());
  EXPECT_NE(window.shell.screen(), ui::Screen::Training);
  EXPECT_EQ(window.shell.form().model, folder.path());
  EXPECT_THAT(window.shell.message(), HasSubstr("Alt+5"));
  ASSERT_NE(window.shell.training(), nullptr);
  window.shell.perform(ui::Action::Training);
  EXPECT_THAT(window.said(), HasSubstr("training, step 300"));
  // On the screen Training the same folder is opened as the training run.
  window.shell.form().model = "demo";
  window.shell.open(folder.path());
  EXPECT_EQ(window.shell.form().model, "demo");
}

TEST(Training, empty_screen_offers_the_last_training_run) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Training);
  EXPECT_THAT(window.said(), HasSubstr("No training run is open. Open the folder that the training "
                                       "writes, or the file training.jsonl in it"));
  EXPECT_THAT(window.said(), Not(HasSubstr("Open the last one")));
  const training_folder::Folder folder;
  folder.report(10);
  window.shell.settings().last_training = folder.path();
  EXPECT_THAT(window.said(), HasSubstr("Open the last one: " + folder.path()));
}

TEST(Training, keys_walk_probes_and_newest_is_followed) {
  const training_folder::Folder folder;
  folder.fill();
  DrawnWindow window;
  window.shell.open(folder.path());
  const auto shown = [&] { return window.said(); };
  window.shell.perform(ui::Action::PreviousStep);
  EXPECT_THAT(shown(), HasSubstr("probe 3 of 4, step 200"));
  window.shell.perform(ui::Action::ToStart);
  EXPECT_THAT(shown(), HasSubstr("probe 1 of 4, step 0"));
  window.shell.perform(ui::Action::PreviousStep);
  EXPECT_THAT(shown(), HasSubstr("probe 1 of 4, step 0"));
  folder.probe(400, 1);
  for (int i = 0; i < 60; ++i) window.gui.frame(window.shell);
  EXPECT_THAT(shown(), HasSubstr("probe 1 of 5, step 0")) << "the chosen probe stays";
  window.shell.perform(ui::Action::ToEnd);
  EXPECT_THAT(shown(), HasSubstr("probe 5 of 5, step 400"));
  folder.probe(500, 1);
  for (int i = 0; i < 60; ++i) window.gui.frame(window.shell);
  EXPECT_THAT(shown(), HasSubstr("probe 6 of 6, step 500"));
}

TEST(Training, opens_a_run_and_shows_its_probes) {
  const training_folder::Folder folder;
  folder.fill();
  play("training", [&](ImGuiTestContext* ctx, Stage& stage) {
    ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_5);
    IM_CHECK(stage.shell->screen() == ui::Screen::Training);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx->ItemInputValue("//##open/##path", folder.path().c_str());
    wait_until(ctx, [&] { return stage.shell->training() && !stage.shell->reads_training(); });
    IM_CHECK_EQ(stage.shell->training()->reports.size(), std::size_t{30});
    ctx->SetRef(ImGui::FindWindowByName(
        ui::window_name(ui::Screen::Training, "probe_trajectory", "").c_str()));
    ctx->ItemClick("###earlier");
    IM_CHECK_EQ(stage.shell->state<ui::ProbeView>().step, std::int64_t{200});
    ctx->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK_EQ(stage.shell->state<ui::ProbeView>().step, std::int64_t{100});
    ctx->ItemClick("###later");
    ctx->ItemClick("###later");
    IM_CHECK_EQ(stage.shell->state<ui::ProbeView>().step, std::int64_t{-1});
    ctx->ItemClick("//##top/Live");
    IM_CHECK(stage.shell->screen() == ui::Screen::Live);
  });
}

TEST(Training, charts_are_zoomed_and_hovered_together) {
  const training_folder::Folder folder;
  folder.fill();
  play("charts", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->open(folder.path());
    wait_until(ctx, [&] { return !stage.shell->reads_training(); });
    ctx->Yield(4);
    const ui::ChartAxis& x = stage.shell->state<ui::ChartsView>().x;
    IM_CHECK_EQ(x.min, 10.0);
    IM_CHECK_EQ(x.max, 300.0);
    ctx->SetRef(ImGui::FindWindowByName(ui::window_name(ui::Screen::Training, "loss", "").c_str()));
    const ImRect plot = ctx->ItemInfo("##losses").RectFull;
    ctx->MouseMoveToPos(plot.GetCenter());
    ctx->Yield(2);
    IM_CHECK(x.hovered > 100 && x.hovered < 220);
    IM_CHECK_EQ(std::fmod(x.hovered, 10.0), 0.0);  // a reported step
    ctx->MouseWheelY(3);
    ctx->Yield(2);
    IM_CHECK(!x.shows_all);
    IM_CHECK_LT(x.max - x.min, 290.0);
    folder.report(900);
    wait_until(ctx, [&] { return stage.shell->training()->reports.size() == 31; });
    IM_CHECK_LT(x.max, 300.0);  // the chosen part stays
    ctx->MouseDoubleClick();
    ctx->Yield(2);
    IM_CHECK(x.shows_all);
    IM_CHECK_EQ(x.max, 900.0);
    ctx->MouseMove("//##top/Live");
    ctx->Yield(2);
    IM_CHECK(std::isnan(x.hovered));
  });
}

TEST(Training, charts_select_a_range_and_hide_curves) {
  const training_folder::Folder folder;
  folder.fill();
  play("chart_tools", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->open(folder.path());
    wait_until(ctx, [&] { return !stage.shell->reads_training(); });
    ctx->Yield(4);
    const ui::ChartAxis& x = stage.shell->state<ui::ChartsView>().x;
    ctx->SetRef(ImGui::FindWindowByName(ui::window_name(ui::Screen::Training, "loss", "").c_str()));
    const ImRect rect = ctx->ItemInfo("##losses").RectFull;
    const auto at = [&](float share) {
      return ImVec2{rect.Min.x + rect.GetWidth() * share, rect.GetCenter().y};
    };
    const auto drag = [&](ImGuiMouseButton mouse, float from, float to) {
      ctx->MouseMoveToPos(at(from));
      ctx->MouseDown(mouse);
      ctx->MouseMoveToPos(at(to));
      ctx->MouseUp(mouse);
      ctx->Yield(2);
    };
    drag(ImGuiMouseButton_Right, 0.4f, 0.6f);
    IM_CHECK(!x.shows_all);
    const double min = x.min, wide = x.max - x.min;
    IM_CHECK_GT(min, 80.0);
    IM_CHECK_LT(wide, 100.0);
    drag(ImGuiMouseButton_Left, 0.4f, 0.6f);
    IM_CHECK_LT(x.min, min - 1);
    IM_CHECK_LT(std::abs(x.max - x.min - wide), 1e-6);
    ImPlotPlot* plot = GImPlot->Plots.GetByKey(ctx->ItemInfo("##losses").ID);
    IM_CHECK(plot != nullptr);
    IM_CHECK_EQ(plot->Items.GetLegendCount(), 3);
    const ImVec2 entry = plot->Items.Legend.Rect.Min;
    IM_CHECK(plot->Items.GetLegendItem(0)->Show);
    ctx->MouseMoveToPos({entry.x + ui::px(6), entry.y + ui::px(6)});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(!plot->Items.GetLegendItem(0)->Show);
    IM_CHECK(plot->Items.GetLegendItem(1)->Show);
  });
}

TEST(Training, screen_and_panels_have_screenshots) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const training_folder::Folder folder;
  folder.fill();
  const char* wanted = std::getenv("DECOSCOPE_PICTURES");
  for (const char* theme : {"dark", "light", "monochrome"}) {
    for (const std::string panel : {"", "loss", "probe_trajectory"}) {
      engine::EventQueue events;
      engine::CommandQueue commands;
      const std::string name =
          "training" + (panel.empty() ? "" : "-" + panel) + "-" + theme + ".png";
      ui::WindowOptions options{.open = folder.path(), .theme = theme, .config_dir = "-"};
      options.screenshot = ((wanted ? fs::path(wanted) : fs::path(folder.path())) / name).string();
      fs::remove(options.screenshot);
      options.panel = panel;
      options.screenshot_frames = 8;
      EXPECT_EQ(ui::run_window(events, commands, streams::catalog(), options), 0);
      std::ifstream in(options.screenshot, std::ios::binary);
      const std::string png{std::istreambuf_iterator<char>(in), {}};
      EXPECT_GT(png.size(), 8'000u) << name;
    }
  }
  engine::EventQueue events;
  engine::CommandQueue commands;
  const ui::WindowOptions bad{.open = folder.path("absent.jsonl"), .config_dir = "-"};
  EXPECT_THROW(ui::run_window(events, commands, streams::catalog(), bad), kernels::Error);
}

}  // namespace
