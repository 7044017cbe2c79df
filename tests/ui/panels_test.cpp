// Every screen with every panel, drawn without a window over complete and damaged streams.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include "tests/support/work_time.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "ui/panels/live/text_view.h"
#include "ui/prepare/tokens/right_to_left.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace {

using headless::Headless;
using testing::HasSubstr;
using testing::Not;

void draw_everything(const std::vector<engine::Event>& events, int scale = 100) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.settings().scale_percent = scale;
  shell.take(events);
  for (const ui::Screen screen : {ui::Screen::Welcome, ui::Screen::Live, ui::Screen::Compare,
                                  ui::Screen::Training, ui::Screen::Lab}) {
    shell.show(screen);
    for (int i = 0; i < 3; ++i) EXPECT_GT(gui.frame(shell), 100);
    for (const ui::Action action :
         {ui::Action::PreviousStep, ui::Action::PreviousNotable, ui::Action::FitSelection,
          ui::Action::NextLens, ui::Action::ToStart, ui::Action::PlayView, ui::Action::Describe,
          ui::Action::ToggleFlow, ui::Action::ToEnd, ui::Action::Help, ui::Action::Palette,
          ui::Action::Find, ui::Action::Export}) {
      shell.perform(action);
      gui.frame(shell);
    }
    for (const engine::RunRecord& run : shell.session().shown().timeline.runs()) {
      shell.selection().run = run.id();
      for (ui::Lens lens : {ui::Lens::Probability, ui::Lens::Age, ui::Lens::Cost,
                            ui::Lens::Agreement, ui::Lens::Origin}) {
        shell.state<ui::TextView>().lens = lens;
        gui.frame(shell);
      }
    }
  }
}

// Returns the timeline of a stream whose decoder gets the name `decoder` and whose rows of kind `from` get the kind `to`.
engine::Timeline told_by(const char* decoder,
                         std::vector<engine::Event> events,
                         engine::RowTag::Kind from = engine::RowTag::Kind::Probe,
                         engine::RowTag::Kind to = engine::RowTag::Kind::Probe) {
  engine::Timeline timeline;
  for (engine::Event& event : events) {
    if (auto* started = std::get_if<engine::RunStarted>(&event)) started->decoder = decoder;
    if (auto* drafted = std::get_if<engine::Drafted>(&event))
      for (engine::RowTag& tag : drafted->tree.tag)
        if (tag.kind == from) tag.kind = to;
    timeline.apply(event);
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  return timeline;
}

TEST(Text, tokens_are_whole_with_every_lens_and_layout) {
  DrawnWindow window;
  window.shell.take(streams::one_run("lookahead", 40));
  window.shell.show(ui::Screen::Live);
  for (const bool flowing : {false, true})
    for (const ui::Lens lens : {ui::Lens::TokenStatus, ui::Lens::Probability, ui::Lens::Age,
                                ui::Lens::Cost, ui::Lens::Agreement, ui::Lens::Origin}) {
      SCOPED_TRACE(testing::Message()
                   << "lens " << static_cast<int>(lens) << ", flowing " << flowing);
      window.shell.settings().flowing_text = flowing;
      window.shell.state<ui::TextView>().lens = lens;
      for (int i = 0; i < 4; ++i) window.gui.frame(window.shell);
      std::vector<glyphs::Glyph> text;
      for (const glyphs::Glyph& glyph : glyphs::drawn())
        if (glyph.window == "Text###live.text") text.push_back(glyph);
      EXPECT_GT(text.size(), 100u);
      EXPECT_EQ(std::ranges::count_if(text, glyphs::is_cut_sideways), 0);
      EXPECT_THAT(glyphs::covering(text), testing::IsEmpty());
    }
}

TEST(Text, stroke_of_a_rejected_token_leaves_it_readable) {
  DrawnWindow window;
  window.said();
  std::vector<float> stroke;  // y of its vertices
  window.gui.said([&] {
    ImDrawList* list = ImGui::GetBackgroundDrawList();
    const int before = list->VtxBuffer.Size;
    ui::token_cell(list, {100, 100}, {130, 124}, "-", ui::Mean::Rejected, {});
    const ImU32 ink = ui::colour(ui::look(ui::Mean::Rejected).text, ui::kStroke);
    for (int i = before; i < list->VtxBuffer.Size; ++i)
      if (list->VtxBuffer[i].col == ink) stroke.push_back(list->VtxBuffer[i].pos.y);
  });
  ASSERT_FALSE(stroke.empty());
  EXPECT_GT(std::ranges::max(stroke) - std::ranges::min(stroke), 10) << "it is slanted";
}

TEST(Trajectory, tokens_are_whole_or_end_in_an_ellipsis) {
  for (const char* decoder : {"jacobi", "lookahead"}) {
    SCOPED_TRACE(decoder);
    std::vector<engine::Event> events = streams::one_run(decoder, 60);
    for (engine::Event& event : events)
      if (auto* model = std::get_if<engine::ModelLoaded>(&event))
        for (std::size_t i = 0; i < model->pieces.size(); ++i)
          model->pieces[i] = i % 2 ? " carrots" : " incomprehensibilities";
    DrawnWindow window;
    window.shell.take(std::move(events));
    window.shell.show(ui::Screen::Live);
    window.said();
    const char* name = "Trajectory###live.trajectory";
    ImGui::SetWindowFocus(name);
    window.said();
    const ImRect seen = ImGui::FindWindowByName(name)->InnerClipRect;
    int n_checked = 0;
    for (const glyphs::Glyph& glyph : glyphs::drawn()) {
      // The first columns may be under the labels of the rows, the last ones outside the panel.
      const bool is_inside =
          glyph.box.Min.x > seen.Min.x + ui::px(70) && glyph.box.Max.x < seen.Max.x;
      if (glyph.window != name || !is_inside) continue;
      EXPECT_FALSE(glyphs::is_cut_sideways(glyph));
      ++n_checked;
    }
    EXPECT_GT(n_checked, 100);
  }
}

TEST(Panels, fit_by_recorded_rows_of_any_decoder) {
  const ui::Panel &pool = *ui::panel_named("pool"), &trajectory = *ui::panel_named("trajectory");
  using Kind = engine::RowTag::Kind;
  const auto refines = told_by("unheard-of", streams::one_run("jacobi", 24));
  EXPECT_TRUE(trajectory.fits(refines.runs()[0]));
  EXPECT_FALSE(pool.fits(refines.runs()[0]));
  EXPECT_STREQ(pool.instead(refines.runs()[0]), "trajectory");
  const auto looks_ahead = told_by("ar", streams::one_run("lookahead", 24));
  EXPECT_TRUE(trajectory.fits(looks_ahead.runs()[0]));
  EXPECT_TRUE(pool.fits(looks_ahead.runs()[0]));
  const auto looks_up = told_by("jacobi", streams::one_run("prompt-lookup", 48));
  EXPECT_FALSE(trajectory.fits(looks_up.runs()[0]));
  EXPECT_TRUE(pool.fits(looks_up.runs()[0]));
  EXPECT_STREQ(trajectory.instead(looks_up.runs()[0]), "pool");
  const auto drafts =
      told_by("lookahead", streams::one_run("prompt-lookup", 48), Kind::Guess, Kind::Draft);
  EXPECT_FALSE(trajectory.fits(drafts.runs()[0]));
  EXPECT_FALSE(pool.fits(drafts.runs()[0]));
  const auto plain = told_by("lookahead", streams::one_run("ar", 24));
  EXPECT_FALSE(trajectory.fits(plain.runs()[0]));
  EXPECT_FALSE(pool.fits(plain.runs()[0]));
  EXPECT_STREQ(pool.instead(plain.runs()[0]), "text");
  // Before the first step nothing is known, so every panel fits.
  engine::Timeline begun;
  begun.apply(streams::story().model);
  begun.apply(engine::RunStarted{.run = 1, .model = 1, .decoder = "ar"});
  EXPECT_TRUE(trajectory.fits(begun.runs()[0]));
  EXPECT_TRUE(pool.fits(begun.runs()[0]));
}

TEST(Panels, empty_panels_name_the_decoder) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  const auto said = [&](const char* panel, std::vector<engine::Event> events) {
    ui::Shell shell(catalog, commands, "");
    shell.take(std::move(events));
    shell.show(ui::Screen::Live);
    gui.frame(shell);
    ImGui::SetWindowFocus(ui::window_name(ui::Screen::Live, panel, "").c_str());
    for (int i = 0; i < 3; ++i) gui.frame(shell);
    return gui.said(shell);
  };
  EXPECT_THAT(said("pool", streams::one_run("jacobi", 24)),
              HasSubstr("Jacobi has no n-gram pool. The panel Trajectory shows its guesses."));
  EXPECT_THAT(said("pool", streams::one_run("ar", 24)),
              HasSubstr("Plain decoding proposed no tokens, so there is no n-gram pool."));
  EXPECT_THAT(
      said("trajectory", streams::one_run("prompt-lookup", 48)),
      HasSubstr("Prompt lookup does not refine a block. The panel Pool shows its proposals."));
  EXPECT_THAT(said("trajectory", streams::one_run("ar", 24)),
              HasSubstr("Plain decoding proposed no tokens, so it has no trajectory."));
  std::vector<engine::Event> running = streams::one_run("ar", 24);
  std::erase_if(running, [](const engine::Event& event) {
    return std::holds_alternative<engine::RunFinished>(event);
  });
  EXPECT_THAT(said("trajectory", running),
              HasSubstr("Plain decoding has proposed no tokens so far, so it has no trajectory."));
}

TEST(Panels, pool_lists_the_successors_of_each_steps_token) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.take(streams::one_run("recycling", 24));
  shell.show(ui::Screen::Live);
  gui.frame(shell);
  ImGui::SetWindowFocus(ui::window_name(ui::Screen::Live, "pool", "").c_str());
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  EXPECT_THAT(gui.said(shell), HasSubstr("successors of the last token"));
}

TEST(Panels, pool_lists_a_copied_space_as_a_sign) {
  std::vector<engine::Event> events = streams::one_run("prompt-lookup", 300);
  for (engine::Event& event : events)
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      for (std::string& piece : model->pieces) piece = " ";
  DrawnWindow window;
  window.shell.take(std::move(events));
  window.shell.show(ui::Screen::Live);
  window.said();
  ImGui::SetWindowFocus("Pool###live.pool");
  EXPECT_THAT(window.said(), testing::ContainsRegex("[|] _+ [|]"));
}

TEST(Panels, draw_an_empty_stream) {
  draw_everything({});
}

TEST(Panels, draw_one_event) {
  draw_everything({streams::story().model});
  draw_everything({engine::RunStarted{.run = 1, .model = 7, .decoder = "jacobi"}});
}

TEST(Panels, draw_a_failed_run) {
  draw_everything(streams::failed_run());
}

TEST(Panels, draw_a_run_cut_mid_step) {
  draw_everything(streams::cut_mid_step());
}

TEST(Panels, draw_every_decoder) {
  for (const char* decoder : {"ar", "jacobi", "lookahead", "prompt-lookup", "suffix", "recycling",
                              "speculative", "mcsd", "fastcot"})
    draw_everything(streams::one_run(decoder));
}

TEST(Panels, draw_a_race_at_300_percent) {
  draw_everything(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}), 300);
}

const std::vector<std::string> kFiveLanes = {"ar", "lookahead", "jacobi", "prompt-lookup",
                                             "speculative"};

TEST(Panels, draw_a_race_of_the_maximum_number_of_lanes) {
  ASSERT_EQ(kFiveLanes.size(), engine::kMaxLanes);
  for (const int scale : {100, 300}) draw_everything(streams::race(kFiveLanes), scale);
}

// Returns the cards of the panel Lanes from left to right, each with the number of its run.
std::vector<std::pair<const ImGuiWindow*, int>> lane_cards() {
  std::vector<std::pair<const ImGuiWindow*, int>> cards;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    constexpr std::string_view kCard = "compare.lanes/lane";
    const std::string name = window->Name;
    const std::size_t at = name.find(kCard);
    if (!window->WasActive || at == std::string::npos) continue;
    const std::string id = name.substr(at + kCard.size());
    if (id.find('/') == std::string::npos) cards.emplace_back(window, std::stoi(id));
  }
  std::ranges::sort(cards, {}, [](const auto& card) { return card.first->Pos.x; });
  return cards;
}

TEST(Panels, five_lanes_are_side_by_side_with_letters) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.take(streams::race(kFiveLanes));
  shell.show(ui::Screen::Compare);
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  ImGui::SetWindowFocus(ui::window_name(ui::Screen::Compare, "lanes", "Lanes").c_str());
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  const auto cards = lane_cards();
  ASSERT_EQ(cards.size(), 5u);
  const ImGuiWindow& panel = *cards[0].first->ParentWindow;
  float end = panel.Pos.x - 1;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto& [card, run] = cards[i];
    EXPECT_EQ(run, static_cast<int>(i) + 1) << "lanes are in the order of the race";
    EXPECT_GT(card->Pos.x, end) << "lanes do not overlap";
    end = card->Pos.x + card->Size.x;
    EXPECT_EQ(card->Pos.y, cards[0].first->Pos.y);
    EXPECT_EQ(card->Size.y, cards[0].first->Size.y);
    EXPECT_NEAR(card->Size.x, cards[0].first->Size.x, 1);
    EXPECT_GT(card->Size.x, 100);
  }
  EXPECT_LE(end, panel.Pos.x + panel.Size.x);
  const std::string said = gui.said(shell);
  for (const char* head : {"A AR", "B Lookahead", "C Jacobi", "D Prompt lookup", "E Speculative"})
    EXPECT_THAT(said, HasSubstr(head));
}

TEST(Panels, at_most_five_lanes_can_be_added) {
  Headless gui;
  ImGui::GetIO().DisplaySize = {1600, 3000};  // tall enough for all of Setup
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.show(ui::Screen::Compare);
  const auto said_with = [&](std::size_t n_lanes) {
    shell.form().lanes.clear();
    for (std::size_t i = 0; i < n_lanes; ++i)
      shell.form().lanes.push_back(ui::lane_with(catalog, kFiveLanes[i]));
    for (int i = 0; i < 3; ++i) gui.frame(shell);
    return gui.said(shell);
  };
  EXPECT_THAT(said_with(4), HasSubstr("Add lane"));
  EXPECT_THAT(said_with(5), testing::AllOf(HasSubstr("E Speculative"), Not(HasSubstr("Add lane"))));
}

TEST(Panels, draw_every_prefix_of_a_stream) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.show(ui::Screen::Live);
  for (const engine::Event& event : streams::one_run("jacobi", 24)) {
    shell.take({event});
    gui.frame(shell);
  }
  EXPECT_TRUE(shell.playhead().follows());
  EXPECT_EQ(shell.selection().run, 1u);
}

TEST(Panels, survive_events_without_run_or_step) {
  std::vector<engine::Event> events{
      engine::Committed{.run = 9, .tokens = {1}},
      engine::StepEnded{.run = 9},
      engine::RunFinished{.run = 9},
      engine::RunFailed{.run = 0, .code = 3, .message = "config.json: not found"},
      engine::PoolChanged{.run = 2},
      engine::Agreement{.run = 3, .first_difference = 5}};
  for (const engine::Event& event : streams::one_run("lookahead", 20)) events.push_back(event);
  events.push_back(engine::Agreement{
      .run = 1, .n_compared = 20, .first_difference = 7, .found = 1, .expected = 2});
  events.push_back(
      engine::PayloadDropped{.run = 1, .kind = "logits", .first_step = 2, .last_step = 4});
  draw_everything(events);
}

// Returns the processor time (ms) and the vertices of a frame that shows a run of `n_tokens`.
std::pair<double, int> cost_of_a_frame(int n_tokens) {
  Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.show(ui::Screen::Live);
  shell.take(streams::one_run("jacobi", n_tokens));
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  const double ms = ::test::least_worked_ms(20, [&] { gui.frame(shell); });
  return {ms, ImGui::GetDrawData()->TotalVtxCount};
}

TEST(Panels, frame_cost_at_100000_events_is_bounded) {
  ASSERT_GT(streams::one_run("jacobi", 30'000).size(), 90'000u);
  const auto [few, few_corners] = cost_of_a_frame(300);
  const auto [many, many_corners] = cost_of_a_frame(30'000);
  EXPECT_LT(many, 10 * few) << few << " ms for a hundredth of the tokens";
  EXPECT_LT(many_corners, 400'000);
  EXPECT_GT(few_corners, 1'000);
}

TEST(Panels, every_panel_is_on_a_screen) {
  for (const ui::Panel& panel : ui::panels()) {
    bool found = false;
    for (const ui::Screen screen :
         {ui::Screen::Live, ui::Screen::Compare, ui::Screen::Training, ui::Screen::Lab})
      for (const char* id : ui::panels_of(screen)) found = found || std::string(id) == panel.id;
    EXPECT_TRUE(found) << panel.id;
  }
}

TEST(RightToLeft, scripts_are_recognised) {
  for (const char* text : {"\u05E9", "abc \u0645", "\u08FF", "\uFB1D", "\uFEFC", "\U00010800",
                           "\U0001E900", "\U0001F600\u0634"})
    EXPECT_TRUE(ui::has_right_to_left(text)) << text;
  for (const char* text : {"", "abc", "\u00E4\u03B1\u058F", "\u0900", "\u6F22", "\uFEFF", "\uFB13",
                           "\U0001F600", "\U00011000", "\xD7", "\xE0\xA1"})
    EXPECT_FALSE(ui::has_right_to_left(text)) << text;
}

// Returns the events with tokens that are letters written from right to left.
std::vector<engine::Event> in_hebrew(std::vector<engine::Event> events) {
  for (engine::Event& event : events)
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      for (std::string& piece : model->pieces) piece = "\u05E9";
  return events;
}

// Returns how often the notice is on the screen.
int n_notices(DrawnWindow& window) {
  const std::string said = window.said(), notice = "right to left";
  int n = 0;
  for (std::size_t at = said.find(notice); at != std::string::npos; at = said.find(notice, at + 1))
    ++n;
  return n;
}

TEST(RightToLeft, the_panel_text_has_a_notice) {
  for (const bool has_letters : {false, true}) {
    const std::vector<engine::Event> events = streams::one_run("lookahead");
    DrawnWindow window;
    window.shell.take(has_letters ? in_hebrew(events) : events);
    window.shell.show(ui::Screen::Live);
    EXPECT_EQ(n_notices(window), has_letters ? 1 : 0);
  }
}

TEST(RightToLeft, every_lane_has_a_notice) {
  for (const bool has_letters : {false, true}) {
    const std::vector<engine::Event> events = streams::race({"ar", "jacobi", "lookahead"});
    DrawnWindow window;
    window.shell.take(has_letters ? in_hebrew(events) : events);
    window.shell.show(ui::Screen::Compare);
    EXPECT_EQ(n_notices(window), has_letters ? 3 : 0);
  }
}

TEST(RightToLeft, a_first_difference_has_a_notice) {
  std::vector<engine::Event> events = in_hebrew(streams::one_run("lookahead"));
  events.push_back(engine::Agreement{
      .run = 1, .n_compared = 9, .first_difference = 3, .found = 5, .expected = 6});
  DrawnWindow window;
  window.shell.take(std::move(events));
  window.shell.show(ui::Screen::Live);
  window.said();
  ImGui::SetWindowFocus("Agreement###live.agreement");
  EXPECT_EQ(n_notices(window), 2) << "of Agreement and of Text";
}

// Draws an empty state with a sketch into a window of its own.
void draw_sketch_in_window(DrawnWindow& window, ui::Sketch kind, ImVec2 size) {
  for (int i = 0; i < 2; ++i) {
    window.gui.said([&] {
      ImGui::SetNextWindowSize(size);
      ImGui::Begin("sketch");
      ui::empty_state("There is no run yet.", kind);
      ImGui::End();
    });
  }
}

// Returns the vertices of a window that have the colour of sketches.
std::vector<ImVec2> sketched_in(const char* name) {
  std::vector<ImVec2> found;
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  if (!window) return found;
  const ImU32 ink = ui::colour(ui::theme().dim, ui::kSketchAlpha);
  for (const ImDrawVert& vertex : window->DrawList->VtxBuffer)
    if (vertex.col == ink) found.push_back(vertex.pos);
  return found;
}

TEST(Sketches, every_panel_has_one) {
  for (const ui::Panel& panel : ui::panels()) EXPECT_NE(panel.sketch, ui::Sketch::None) << panel.id;
}

TEST(Sketches, kinds_draw_different_numbers_of_vertices) {
  DrawnWindow window;
  window.said();
  std::set<int> counts;
  for (int i = 0; i < ui::kSketches; ++i) {
    draw_sketch_in_window(window, static_cast<ui::Sketch>(i), {400, 300});
    const int n = ImGui::FindWindowByName("sketch")->DrawList->VtxBuffer.Size;
    EXPECT_TRUE(counts.insert(n).second) << "kind " << i << " has " << n << ", as another one";
  }
}

TEST(Sketches, are_below_the_words) {
  DrawnWindow window;
  window.said();
  draw_sketch_in_window(window, ui::Sketch::Cells, {400, 300});
  float words_end = 0;
  for (const glyphs::Glyph& glyph : glyphs::drawn())
    if (glyph.window == "sketch") words_end = std::max(words_end, glyph.seen.Max.y);
  EXPECT_GT(words_end, 0);
  const auto drawn = sketched_in("sketch");
  EXPECT_FALSE(drawn.empty());
  const ImRect inside = ImGui::FindWindowByName("sketch")->InnerRect;
  for (const ImVec2& at : drawn) {
    EXPECT_GE(at.y, words_end);
    EXPECT_TRUE(inside.Contains(at));
  }
  draw_sketch_in_window(window, ui::Sketch::Cells, {400, 80});
  EXPECT_TRUE(sketched_in("sketch").empty()) << "a low window has room for the words only";
}

TEST(Sketches, empty_panels_show_their_own) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.said();
  const std::size_t text = sketched_in("Text###live.text").size(),
                    timeline = sketched_in("Timeline###live.gantt").size(),
                    numbers = sketched_in("Numbers###live.numbers").size();
  EXPECT_GT(text, 0u);
  EXPECT_GT(timeline, 0u);
  EXPECT_GT(numbers, 0u);
  EXPECT_NE(text, timeline);
  EXPECT_NE(timeline, numbers);
  // A run takes their place.
  window.shell.take(streams::one_run("lookahead"));
  window.said();
  EXPECT_TRUE(sketched_in("Text###live.text").empty());
  EXPECT_TRUE(sketched_in("Timeline###live.gantt").empty());
}

TEST(Charts, bars_zoom_pan_and_show_the_value_under_the_mouse) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("lookahead", 300));
  window.said();
  ImGuiWindow* panel = ImGui::FindWindowByName("Numbers###live.numbers");
  ASSERT_NE(panel, nullptr);
  const ImGuiID id = panel->GetID("##tokens committed per step");
  ASSERT_NE(GImPlot->Plots.GetByKey(id), nullptr);
  const auto rect = [&] { return GImPlot->Plots.GetByKey(id)->PlotRect; };
  const auto x = [&] { return GImPlot->Plots.GetByKey(id)->Axes[ImAxis_X1]; };
  ImGui::SetScrollY(panel, GImPlot->Plots.GetByKey(id)->FrameRect.Min.y - panel->InnerRect.Min.y);
  window.said();
  const ImPlotRange all = x().Range;
  const ui::Place locked = window.shell.selection().locked;
  const ImVec2 at{x().PlotToPixels(1), rect().GetCenter().y};
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(at.x, at.y);
  EXPECT_THAT(window.said(), HasSubstr("steps committed 1 token."));
  io.AddMouseWheelEvent(0, 2);
  window.said();
  const ImPlotRange zoomed = x().Range;
  EXPECT_LT(zoomed.Size(), all.Size());
  io.AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  window.said();
  io.AddMousePosEvent(at.x + 40, at.y);
  window.said();
  io.AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  window.said();
  EXPECT_LT(x().Range.Min, zoomed.Min);
  EXPECT_EQ(window.shell.selection().locked, locked) << "a drag selects no steps";
}

TEST(Charts, a_line_of_recent_values_shows_the_one_under_the_mouse) {
  DrawnWindow window;
  window.said();
  const std::vector<float> values{1, 2, 40, 3, 5};
  ImVec2 at;
  const auto draw = [&] {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({400, 300});
    ImGui::Begin("recent");
    at = ImGui::GetCursorScreenPos();
    ui::sparkline("values", values, {200, 20}, ui::theme().good);
    ImGui::End();
  };
  EXPECT_THAT(window.gui.said(draw), Not(HasSubstr("newest")));
  const auto said_at = [&](float x) {
    ImGui::GetIO().AddMousePosEvent(at.x + x, at.y + 10);
    window.gui.said(draw);
    return window.gui.said(draw);
  };
  EXPECT_THAT(said_at(101), HasSubstr("40, 2 before the newest"));
  EXPECT_THAT(said_at(199), HasSubstr("5, the newest"));
}

}  // namespace
