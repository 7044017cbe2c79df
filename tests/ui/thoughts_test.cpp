// Trees of thoughts: layout, facts, and the panel in a window with an opened recording.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/replay.h"
#include "ui/prepare/search_part.h"
#include "ui/prepare/thought_tree.h"

namespace {

using namespace scripted;
using engine::RunId;
using engine::SearchEnded;
using engine::ThoughtFate;
using engine::ThoughtJudged;
using engine::ThoughtMade;
using engine::ThoughtValued;
using engine::test::Folder;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using ui::Mean;
using ui::ThoughtBox;

// Adds a run of two tokens in the format of the scheduler.
void write(std::vector<engine::Event>& events, RunId run) {
  for (engine::Event& event : streams::one_run("ar", 2, run))
    if (engine::run_of(event) == run) events.push_back(std::move(event));
}

// Two levels of three thoughts. The second thought of the first level and the first of the second are kept.
// Runs 1 to 3 wrote the first level and 4 to 6 valued it; 7 to 9 wrote the second and 10 values its
// first thought; 11 wrote the answer. The last thought is unreadable.
std::vector<engine::Event> search(engine::SearchId id = 1, RunId before = 0) {
  std::vector<engine::Event> events;
  const auto run = [before](int n) { return before + static_cast<RunId>(n); };
  const auto made = [&](int node, int parent, int depth, const char* text, bool readable = true) {
    events.push_back(ThoughtMade{.search = id,
                                 .node = node,
                                 .parent = parent,
                                 .depth = depth,
                                 .text = text,
                                 .runs = {run(node + (node > 3 ? 3 : 0))},
                                 .readable = readable});
  };
  const auto judged = [&](int node, ThoughtFate fate, const char* text = "") {
    events.push_back(ThoughtJudged{.search = id, .node = node, .fate = fate, .text = text});
  };
  events.push_back(engine::SearchBegun{.search = id,
                                       .id = "arith/1/test/" + std::to_string(id),
                                       .task = "arith",
                                       .question = "How many carrots are left?",
                                       .depth = 3,
                                       .n_thoughts = 3,
                                       .beam = 1});
  for (int n = 1; n <= 3; ++n) write(events, run(n));
  made(1, 0, 1, "pick up the orange block");
  made(2, 0, 1, "How many are there? There are 40.");
  made(3, 0, 1, "guess");
  for (int n = 4; n <= 6; ++n) {
    write(events, run(n));
    events.push_back(ThoughtValued{.search = id,
                                   .node = n - 3,
                                   .by = run(n),
                                   .value = n == 5 ? 9 : 2.5,
                                   .read = n != 6,
                                   .text = n == 6 ? "well" : "Score"});
  }
  judged(1, ThoughtFate::Pruned);
  judged(2, ThoughtFate::Kept, "the hand is empty");
  judged(3, ThoughtFate::Pruned);
  for (int n = 7; n <= 9; ++n) write(events, run(n));
  made(4, 2, 2, "divide by five");
  made(5, 2, 2, "add five");
  made(6, 2, 2, "", false);
  write(events, run(10));
  events.push_back(ThoughtValued{.search = id, .node = 4, .by = run(10), .value = 7, .read = true});
  judged(4, ThoughtFate::Kept);
  judged(5, ThoughtFate::Pruned);
  judged(6, ThoughtFate::Unreadable);
  write(events, run(11));
  events.push_back(
      SearchEnded{.search = id, .node = 4, .by = run(11), .answer = "8", .correct = true});
  return events;
}

std::vector<engine::Event> with_model(std::vector<engine::Event> events) {
  events.insert(events.begin(), streams::story().model);
  return events;
}

// Returns the events up to and including the n-th of a kind.
template <typename Kind>
std::vector<engine::Event> until(const std::vector<engine::Event>& events, int n) {
  std::vector<engine::Event> some;
  for (const engine::Event& event : events) {
    some.push_back(event);
    if (std::holds_alternative<Kind>(event) && --n == 0) break;
  }
  return some;
}

engine::Timeline timeline_with(const std::vector<engine::Event>& events) {
  return timeline_of(with_model(events));
}

ui::ThoughtLayout layout_of(const std::vector<engine::Event>& events) {
  return ui::thought_layout(timeline_with(events).searches().front());
}

TEST(ThoughtTree, each_depth_is_a_column_with_the_answer_last) {
  const ui::ThoughtLayout layout = layout_of(search());
  std::vector<int> thoughts, columns, parents;
  std::vector<float> lines;
  std::vector<bool> chain;
  for (const ThoughtBox& box : layout.boxes) {
    thoughts.push_back(box.thought);
    columns.push_back(box.column);
    parents.push_back(box.parent);
    lines.push_back(box.line);
    chain.push_back(box.on_chain);
  }
  EXPECT_THAT(thoughts, ElementsAre(-1, 0, 1, 2, 3, 4, 5, -1));
  EXPECT_THAT(columns, ElementsAre(0, 1, 1, 1, 2, 2, 2, 3));
  EXPECT_THAT(parents, ElementsAre(-1, 0, 0, 0, 2, 2, 2, 4));
  EXPECT_THAT(lines, ElementsAre(1, 0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(chain, ElementsAre(true, false, true, false, true, false, false, true));
  EXPECT_EQ(layout.n_columns, 4);
  EXPECT_EQ(layout.n_lines, 3);
}

TEST(ThoughtTree, fate_is_the_last_decision) {
  std::vector<engine::Event> events = search();
  const ui::ThoughtLayout layout = layout_of(events);
  std::vector<Mean> fates;
  for (const ThoughtBox& box : layout.boxes)
    if (box.kind == ThoughtBox::Kind::Thought) fates.push_back(box.mean);
  EXPECT_THAT(fates, ElementsAre(Mean::Rejected, Mean::Accepted, Mean::Rejected, Mean::Accepted,
                                 Mean::Rejected, Mean::Unused));
  EXPECT_EQ(layout.boxes.back().mean, Mean::Accepted) << "the answer is right";
  EXPECT_EQ(layout.n_kept, 2);
  EXPECT_EQ(layout.n_pruned, 3);
  EXPECT_EQ(layout.n_unreadable, 1);
  // A complete chain is a candidate again in a later level and can be pruned there.
  events.insert(events.end() - 1,
                ThoughtJudged{.search = 1, .node = 2, .fate = ThoughtFate::Pruned});
  std::get<SearchEnded>(events.back()).correct = false;
  const ui::ThoughtLayout later = layout_of(events);
  EXPECT_EQ(later.boxes[2].mean, Mean::Rejected);
  EXPECT_EQ(later.boxes.back().mean, Mean::Rejected) << "the answer is wrong";
}

TEST(ThoughtTree, unfinished_search_is_shown) {
  const std::vector<engine::Event> events = search();
  EXPECT_THAT(layout_of(until<engine::SearchBegun>(events, 1)).boxes, SizeIs(1));
  const ui::ThoughtLayout two = layout_of(until<ThoughtMade>(events, 2));
  EXPECT_THAT(two.boxes, SizeIs(3));
  EXPECT_EQ(two.n_open, 2);
  EXPECT_EQ(two.boxes[1].mean, Mean::Guess);
  EXPECT_FLOAT_EQ(two.boxes[0].line, 0.5f) << "the question is in the middle";
  EXPECT_TRUE(std::ranges::none_of(two.boxes, &ThoughtBox::on_chain));
  const ui::ThoughtLayout judged = layout_of(until<ThoughtMade>(events, 4));
  EXPECT_FLOAT_EQ(judged.boxes.back().line, 1) << "a single child is on the line of its parent";
  // A stopped search has no answer and no chain.
  std::vector<engine::Event> stopped = until<ThoughtMade>(events, 4);
  stopped.push_back(SearchEnded{.search = 1, .stopped = true});
  const ui::ThoughtLayout end = layout_of(stopped);
  EXPECT_THAT(end.boxes, SizeIs(5));
  EXPECT_TRUE(std::ranges::none_of(end.boxes, &ThoughtBox::on_chain));
}

TEST(ThoughtTree, answer_follows_question_without_kept_thoughts) {
  std::vector<engine::Event> events = until<ThoughtMade>(search(), 3);
  for (int node = 1; node <= 3; ++node)
    events.push_back(ThoughtJudged{.search = 1, .node = node, .fate = ThoughtFate::Unreadable});
  events.push_back(SearchEnded{.search = 1, .answer = "3"});
  const ui::ThoughtLayout layout = layout_of(events);
  ASSERT_EQ(layout.boxes.back().kind, ThoughtBox::Kind::Answer);
  EXPECT_EQ(layout.boxes.back().parent, 0);
  EXPECT_EQ(layout.boxes.back().column, 1);
}

// Returns a search whose levels have pseudo-random sizes.
std::vector<engine::Event> wide_search(unsigned seed) {
  std::vector<engine::Event> events{engine::SearchBegun{.search = 1, .depth = 6}};
  std::vector<int> level{0};
  int node = 0;
  for (int depth = 1; depth <= 6; ++depth) {
    std::vector<int> next;
    for (const int parent : level) {
      seed = seed * 1'664'525 + 1'013'904'223;
      for (unsigned i = 0; i < (seed >> 16) % 4; ++i) {
        events.push_back(
            ThoughtMade{.search = 1, .node = ++node, .parent = parent, .depth = depth});
        next.push_back(node);
      }
    }
    level = next;
  }
  return events;
}

TEST(ThoughtTree, boxes_do_not_overlap_and_edges_do_not_cross) {
  std::size_t most = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const ui::ThoughtLayout layout = layout_of(wide_search(seed));
    most = std::max(most, layout.boxes.size());
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
      const ThoughtBox& box = layout.boxes[i];
      EXPECT_GE(box.line, 0);
      EXPECT_LE(box.line, static_cast<float>(layout.n_lines - 1));
      EXPECT_LT(box.column, layout.n_columns);
      if (i == 0) continue;
      const auto& parents = layout.boxes;
      EXPECT_EQ(parents[static_cast<std::size_t>(box.parent)].column, box.column - 1);
      const ThoughtBox& above = layout.boxes[i - 1];
      if (above.column != box.column) continue;
      EXPECT_GE(box.line, above.line + 1);
      EXPECT_LE(above.parent, box.parent);
    }
  }
  EXPECT_GT(most, 30u) << "some of them are large";
}

TEST(ThoughtTree, box_and_tooltip_have_the_facts_of_a_thought) {
  const engine::Timeline timeline = timeline_with(search());
  const engine::SearchRecord& found = timeline.searches().front();
  const ui::ThoughtLayout layout = ui::thought_layout(found);
  const auto words = [&](int box) { return ui::words_of(found, layout.boxes[box]); };
  EXPECT_EQ(words(0).first, "How many carrots are left?");
  EXPECT_EQ(words(2).first, "How many are there?");
  EXPECT_EQ(words(2).second, "There are 40.") << "the answer is the second line";
  EXPECT_EQ(words(1).second, "");
  EXPECT_EQ(words(6).first, "no text");
  EXPECT_EQ(words(7).first, "8");
  EXPECT_EQ(words(7).second, "correct");
  EXPECT_EQ(ui::value_words(found.thoughts[0]), "2.5");
  EXPECT_EQ(ui::value_words(found.thoughts[1]), "9");
  EXPECT_EQ(ui::value_words(found.thoughts[2]), "?") << "it contains no score";
  EXPECT_EQ(ui::value_words(found.thoughts[5]), "-") << "unreadable thoughts are not valued";
  const std::string facts = ui::facts_of(found, layout.boxes[2]);
  for (const char* part : {"How many are there? There are 40.", "kept", "value 9 of 10", "Score",
                           "the hand is empty", "written by runs 2, 5"})
    EXPECT_THAT(facts, HasSubstr(part));
  EXPECT_THAT(ui::facts_of(found, layout.boxes[3]), HasSubstr("the reply contained none"));
  EXPECT_EQ(ui::search_words(found, layout),
            "arith/1/test/1: depth 2 of 3 \xC2\xB7 6 thoughts: 2 kept, 3 pruned, 1 unreadable");
  // Before its value arrives.
  const engine::Timeline open = timeline_with(until<ThoughtMade>(search(), 1));
  EXPECT_EQ(ui::value_words(open.searches()[0].thoughts[0]), "...");
}

TEST(ThoughtTree, wrong_answer_has_a_reason) {
  std::vector<engine::Event> events = search();
  std::get<SearchEnded>(events.back()).correct = false;
  std::get<SearchEnded>(events.back()).reason = "found 8, expected 9";
  const engine::Timeline timeline = timeline_with(events);
  const engine::SearchRecord& found = timeline.searches().front();
  const ui::ThoughtLayout layout = ui::thought_layout(found);
  EXPECT_EQ(ui::words_of(found, layout.boxes.back()).second, "wrong: found 8, expected 9");
  EXPECT_THAT(ui::facts_of(found, layout.boxes.back()), HasSubstr("wrong: found 8, expected 9"));
}

TEST(ThoughtTree, runs_belong_to_their_box_and_search) {
  std::vector<engine::Event> events = search(1, 0);
  const auto more = search(2, 20);
  events.insert(events.end(), more.begin(), more.end());
  const engine::Timeline timeline = timeline_with(events);
  const auto searches = timeline.searches();
  ASSERT_EQ(searches.size(), 2u);
  EXPECT_EQ(ui::search_of(searches, 5), &searches[0]) << "the run valued a thought";
  EXPECT_EQ(ui::search_of(searches, 31), &searches[1]) << "the run wrote the answer";
  EXPECT_EQ(ui::search_of(searches, 15), nullptr);
  EXPECT_EQ(ui::search_of(searches, 0), nullptr);
  const ui::ThoughtLayout layout = ui::thought_layout(searches[1]);
  EXPECT_EQ(ui::box_of(layout, searches[1], 22), 2);
  EXPECT_EQ(ui::box_of(layout, searches[1], 31), 7);
  EXPECT_EQ(ui::box_of(layout, searches[1], 2), -1) << "a run of the other search";
  const auto runs = ui::runs_of(searches[1], layout.boxes[2]);
  EXPECT_THAT(runs, ElementsAre(22, 25));
  EXPECT_EQ(ui::run_after(runs, 4), 22u);
  EXPECT_EQ(ui::run_after(runs, 22), 25u);
  EXPECT_EQ(ui::run_after(runs, 25), 22u);
  EXPECT_EQ(ui::run_after({}, 22), 0u);
}

bool in_front(const char* panel) {
  const ImGuiWindow* window =
      ImGui::FindWindowByName(ui::window_name(ui::Screen::Live, panel, "").c_str());
  return window && window->WasActive && window->DockTabIsVisible;
}

TEST(Thoughts, panel_is_offered_and_in_front_after_a_search) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("jacobi", 24));
  EXPECT_THAT(window.said(), Not(HasSubstr("Thoughts")));
  EXPECT_FALSE(in_front("thoughts"));
  std::vector<engine::Event> events = search(1, 1);
  window.shell.take(until<engine::SearchBegun>(events, 1));
  EXPECT_THAT(window.said(), HasSubstr("arith/1/test/1: depth 0 of 3"));
  EXPECT_TRUE(in_front("thoughts"));
  // The user's choice stays.
  ImGui::SetWindowFocus(ui::window_name(ui::Screen::Live, "pool", "").c_str());
  window.shell.take({events.begin() + 1, events.end()});
  window.said();
  EXPECT_TRUE(in_front("pool"));
}

TEST(Thoughts, text_of_a_box_is_whole) {
  DrawnWindow window;
  ImGui::GetIO().DisplaySize = {2560, 1440};  // has room for the whole tree
  window.shell.show(ui::Screen::Live);
  window.shell.take(with_model(search()));
  window.said();
  const std::string id = ui::window_name(ui::Screen::Live, "thoughts", "");
  ImGui::SetWindowFocus(id.c_str());
  window.said();
  const ImGuiWindow* panel = ImGui::FindWindowByName(id.c_str());
  ASSERT_NE(panel, nullptr);
  ASSERT_EQ(panel->ScrollMax.x, 0);
  std::vector<glyphs::Glyph> text;
  for (const glyphs::Glyph& glyph : glyphs::drawn())
    if (glyph.window == panel->Name) text.push_back(glyph);
  EXPECT_GT(text.size(), 100u);
  EXPECT_EQ(std::ranges::count_if(text, glyphs::is_cut_sideways), 0);
  EXPECT_THAT(glyphs::covering(text), testing::IsEmpty());
}

TEST(Thoughts, picture_without_search_explains_itself) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("jacobi", 24));
  window.said();
  window.shell.ask_picture("thoughts.png", "thoughts", 1);
  EXPECT_THAT(window.said(), HasSubstr("No tree of thoughts here."));
}

TEST(Thoughts, right_to_left_text_has_a_notice) {
  for (const bool has_letters : {false, true}) {
    std::vector<engine::Event> events = with_model(search());
    for (engine::Event& event : events)
      if (auto* made = std::get_if<ThoughtMade>(&event); made && has_letters)
        made->text = "\u05E9\u05DC\u05D5\u05DD";
    DrawnWindow window;
    window.shell.take(std::move(events));
    window.shell.show(ui::Screen::Live);
    const std::string said = window.said();
    EXPECT_THAT(said, HasSubstr("depth 1")) << "the panel Thoughts is in front";
    EXPECT_EQ(said.find("right to left") != std::string::npos, has_letters);
  }
}

TEST(Thoughts, every_prefix_of_a_stream_is_drawn) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  std::string said;
  for (const engine::Event& event : with_model(search())) {
    window.shell.take({event});
    window.gui.frame(window.shell);
    if (std::holds_alternative<ThoughtJudged>(event)) {
      said = window.said();
      EXPECT_THAT(said, HasSubstr("searching"));
    }
  }
  said = window.said();
  EXPECT_THAT(said, HasSubstr("+ correct answer"));
  EXPECT_THAT(said, HasSubstr("question depth 1 depth 2 answer"));
  EXPECT_THAT(said, HasSubstr("3 thoughts per node, the best 1 of a level are continued"));
  EXPECT_THAT(said, Not(HasSubstr("searching")));
}

TEST(Thoughts, click_shows_the_writing_run_then_the_valuing_run) {
  const Folder folder;
  engine::Recorder recorder(folder / "tree.pdrun");
  std::vector<engine::Event> events = search(1, 0);
  const auto more = search(2, 20);
  events.insert(events.end(), more.begin(), more.end());
  for (const engine::Event& event : with_model(events)) recorder.push(event);
  recorder.close();
  const std::string path = recorder.path();
  play("thoughts_click", [&](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.open(path);
    wait_until(ctx, [&] {
      return !shell.reads() && shell.session().shown().timeline.searches().size() == 2;
    });
    ctx->Yield(4);
    ImGuiWindow* window = ImGui::FindWindowByName("Thoughts###live.thoughts");
    IM_CHECK(window && window->DockTabIsVisible);
    IM_CHECK_EQ(shell.selection().run, RunId{31});  // the newest: the second answer
    ctx->SetRef(window);
    ctx->ItemClick("$$2/thought");
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().run, RunId{22});
    put_mouse_away(ctx);
    IM_CHECK_GE(lit_in("Thoughts###live.thoughts").size(), std::size_t{4});
    ctx->ItemClick("$$2/thought");
    IM_CHECK_EQ(shell.selection().run, RunId{25});
    // The other search is chosen by name in the head; the run of its answer is shown.
    ctx->SetRef(window->DockNode->HostWindow);
    ctx->ItemClick(("$$" + std::to_string(static_cast<int>(window->ID)) + "/##search").c_str());
    ctx->Yield(2);
    ctx->SetRef("//$FOCUSED");
    ctx->ItemClick("1: arith\\/1\\/test\\/1  + correct");
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().run, RunId{11});
    ctx->SetRef(window);
    // The keyboard selects a thought too.
    ctx->NavMoveTo("$$3/thought");
    ctx->NavActivate();
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().run, RunId{3});
    // Selecting a run elsewhere shows its search.
    shell.selection().run = 21;
    ctx->Yield(3);
    ctx->ItemClick("$$1/thought");
    IM_CHECK_EQ(shell.selection().run, RunId{24});
  });
}

TEST(ThoughtTree, runs_are_named_by_what_they_write) {
  std::vector<engine::Event> events{streams::story().model};
  for (const engine::SearchId id : {1u, 2u})
    events.push_back(engine::SearchBegun{.search = id, .id = "arith/1/test/" + std::to_string(id)});
  const engine::Timeline timeline = timeline_of(events);
  const auto of = [&](std::size_t n_searches, const char* prompt_id) {
    return ui::part_of_search(timeline.searches().first(n_searches), {.prompt_id = prompt_id});
  };
  EXPECT_EQ(of(1, "arith/1/test/1/7/answer"), "thought 7: answer");
  EXPECT_EQ(of(1, "arith/1/test/1/12/value"), "score of thought 12");
  EXPECT_EQ(of(1, "arith/1/test/1/3/final"), "final answer");
  EXPECT_EQ(of(2, "arith/1/test/2/7/answer"), "2, thought 7: answer");
  EXPECT_EQ(of(2, "arith/1/test/12/7/answer"), "") << "another question";
  EXPECT_EQ(of(2, "arith/1/test/1"), "");
  EXPECT_EQ(of(2, ""), "");
}

// Returns the events of search(); the prompt id of each run names the part that the run writes.
std::vector<engine::Event> search_with_prompts() {
  std::vector<engine::Event> events = search();
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event))
      started->prompt_id = "arith/1/test/1/" + std::to_string(started->run) +
                           (started->run > 3 ? "/value" : "/plan");
  return events;
}

TEST(Thoughts, runs_list_names_the_thought_of_each_run) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(with_model(search_with_prompts()));
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr("AR \xC2\xB7 thought 2:"));
  EXPECT_THAT(said, HasSubstr("AR \xC2\xB7 score of thought"));
}

// Two levels that are larger than the panel, opened from a file.
TEST(Thoughts, opens_at_question_then_follows_the_run) {
  const Folder folder;
  engine::Recorder recorder(folder / "deep.pdrun");
  std::vector<engine::Event> events{streams::story().model,
                                    engine::SearchBegun{.search = 1, .question = "?", .depth = 9}};
  for (int node = 1; node <= 9; ++node) {
    write(events, static_cast<RunId>(node));
    events.push_back(ThoughtMade{.search = 1,
                                 .node = node,
                                 .parent = node - 1,
                                 .depth = node,
                                 .text = "thought",
                                 .runs = {static_cast<RunId>(node)}});
  }
  for (const engine::Event& event : events) recorder.push(event);
  recorder.close();
  const std::string path = recorder.path();
  play("thoughts_open", [&](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.open(path);
    wait_until(ctx, [&] { return !shell.reads() && shell.selection().run == RunId{9}; });
    ctx->Yield(8);
    ImGuiWindow* window = ImGui::FindWindowByName("Thoughts###live.thoughts");
    IM_CHECK(window && window->DockTabIsVisible);
    IM_CHECK_GT(window->ScrollMax.x, 100.0f);
    IM_CHECK_EQ(window->Scroll.x, 0.0f);
    shell.selection().run = 8;
    ctx->Yield(8);
    IM_CHECK_GT(window->Scroll.x, 100.0f);
  });
}

TEST(Thoughts, large_tree_scrolls_to_the_run) {
  std::vector<engine::Event> events{streams::story().model,
                                    engine::SearchBegun{.search = 1, .depth = 9}};
  RunId run = 0;
  for (int node = 1; node <= 90; ++node) {
    const int depth = (node + 9) / 10;
    write(events, ++run);
    events.push_back(ThoughtMade{.search = 1,
                                 .node = node,
                                 .parent = depth == 1 ? 0 : (depth - 1) * 10,
                                 .depth = depth,
                                 .text = "thought",
                                 .runs = {run}});
  }
  play("thoughts_scroll", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(events);
    ctx->Yield(6);
    ImGuiWindow* window = ImGui::FindWindowByName("Thoughts###live.thoughts");
    IM_CHECK(window && window->DockTabIsVisible);
    const auto in_view = [&](RunId shown) {
      stage.shell->selection().run = shown;
      ctx->Yield(6);
      ctx->SetRef(window);
      const ImRect box =
          ctx->ItemInfo(("$$" + std::to_string(shown) + "/thought").c_str()).RectFull;
      return window->InnerRect.Contains(box);
    };
    for (const RunId shown : {1u, 90u, 10u, 81u}) IM_CHECK(in_view(shown));
    IM_CHECK_GT(window->ScrollMax.x, 100.0f);
    IM_CHECK_GT(window->ScrollMax.y, 100.0f);
  });
}

TEST(Tabs, first_tab_fits_the_decoder) {
  const std::pair<const char*, const char*> kCases[] = {
      {"speculative", "tree"},
      {"mcsd", "tree"},
      {"jacobi", "trajectory"},
      {"prompt-lookup", "pool"},
      {"suffix", "pool"},
      {"ar", "trajectory"}};  // AR has no trajectory; the panel explains this
  for (const auto& [decoder, panel] : kCases) {
    DrawnWindow window;
    window.shell.show(ui::Screen::Live);
    window.shell.take(streams::one_run(decoder, 48));
    window.said();
    EXPECT_TRUE(in_front(panel)) << decoder;
  }
}

TEST(Tabs, chosen_panel_stays_in_front) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("speculative", 48));
  window.said();
  ASSERT_TRUE(in_front("tree"));
  ImGui::SetWindowFocus(ui::window_name(ui::Screen::Live, "pool", "").c_str());
  window.said();
  EXPECT_TRUE(in_front("pool")) << "the chosen tab stays for a run without a pool";
  std::vector<engine::Event> next = streams::one_run("jacobi", 24, 2);
  next.erase(next.begin());
  window.shell.take(next);
  window.said();
  EXPECT_TRUE(in_front("trajectory")) << "a tab that fits the new run";
}

}  // namespace
