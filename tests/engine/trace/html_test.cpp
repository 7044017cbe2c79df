// The page that plays a recording: its data, and that no token can break out of it.
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Timeline timeline_of(std::vector<Event> events, const std::string& piece = "t8") {
  Timeline timeline;
  for (Event& event : events) {
    if (auto* model = std::get_if<ModelLoaded>(&event)) model->pieces[8] = piece;
    timeline.apply(event);
  }
  return timeline;
}

json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(HtmlPage, has_every_token_and_step) {
  const Timeline timeline = timeline_of(test::small_stream());
  const RunRecord& run = timeline.runs()[0];
  const HtmlPage page = html_page(timeline);
  EXPECT_TRUE(page.has_proposals);
  const json data = data_of(page.text);
  ASSERT_EQ(data.at("runs").size(), 1u);
  const json& written = data.at("runs")[0];
  EXPECT_EQ(written.at("name"), "lookahead");
  ASSERT_EQ(written.at("tokens").size(), run.tokens.size());
  for (std::size_t i = 0; i < run.tokens.size(); i++)
    EXPECT_EQ(written.at("tokens")[i][1] == "accepted",
              run.tokens[i].status == TokenStatus::Accepted);
  const json& steps = written.at("steps");
  ASSERT_EQ(steps.size(), run.steps.size());
  EXPECT_EQ(steps.back().at("total"), run.tokens.size());
  EXPECT_NEAR(steps.back().at("ms").get<double>(), 4 * 0.0835, 1e-9);
  EXPECT_EQ(steps[1].at("accepted"), 2);
  EXPECT_FALSE(steps[1].at("guesses").empty());
  EXPECT_THAT(page.text, Not(HasSubstr("http://")));
  EXPECT_THAT(page.text, Not(HasSubstr("https://")));
}

TEST(HtmlPage, a_token_cannot_end_the_data) {
  const std::string piece = "</script><script>alert(1)</script>";
  const Timeline timeline = timeline_of(test::small_stream(), piece);
  const HtmlPage page = html_page(timeline);
  EXPECT_THAT(page.text, Not(HasSubstr("alert(1)</script>")));
  const json data = data_of(page.text);
  EXPECT_THAT(data.at("runs")[0].at("tokens").dump(), HasSubstr("alert(1)"));
}

TEST(HtmlPage, a_large_page_omits_proposals) {
  const HtmlPage page = html_page(timeline_of(test::small_stream()), {.max_bytes = 1});
  EXPECT_FALSE(page.has_proposals);
  EXPECT_THAT(page.text, Not(HasSubstr("\"guesses\":")));
}

TEST(MarkdownReport, has_a_row_for_every_lane_and_escapes_text) {
  std::vector<Event> events{test::model_loaded()};
  for (const int lane : {0, 1})
    for (const Event& event : test::run_events({.run = static_cast<RunId>(lane + 1),
                              .decoder = lane ? "lookahead" : "ar",
                              .race = 3,
                              .lane = lane}))
      events.push_back(event);
  const std::string report = markdown_report(timeline_of(events, "a|b"));
  EXPECT_THAT(report, HasSubstr("## Race 3"));
  EXPECT_THAT(report, HasSubstr("| A | ar |"));
  EXPECT_THAT(report, HasSubstr("| B | lookahead |"));
  EXPECT_THAT(report, HasSubstr("| 2.00 |")) << "tokens per step of lookahead";
  EXPECT_THAT(report, HasSubstr("- Options of B: "));
  EXPECT_THAT(report, Not(HasSubstr("## Run")));
}

// Three repeats of a race of two lanes, whose steps take one, three and two times as long.
Timeline repeated_race() {
  std::vector<Event> events{test::model_loaded()};
  const int factors[] = {1, 3, 2};
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const int lane : {0, 1})
      for (Event event : test::run_events({.run = static_cast<RunId>(2 * repeat + lane + 1),
                         .decoder = lane ? "lookahead" : "ar",
                         .race = static_cast<std::uint32_t>(repeat + 1),
                         .lane = lane})) {
        if (auto* started = std::get_if<RunStarted>(&event))
          started->place = {.set = 1, .repeat = repeat, .n_repeats = 3};
        if (auto* ended = std::get_if<StepEnded>(&event))
          for (Nanoseconds* part :
               {&ended->propose, &ended->forward, &ended->verify, &ended->commit})
            *part *= factors[repeat];
        events.push_back(event);
      }
  return timeline_of(std::move(events));
}

TEST(MarkdownReport, repeats_of_a_race_are_one_part_with_medians) {
  const Timeline timeline = repeated_race();
  const std::string report = markdown_report(timeline);
  EXPECT_THAT(report, HasSubstr("## Race 1, requested 3 times"));
  EXPECT_THAT(report, Not(HasSubstr("## Race 2")));
  const double middle = timeline.run(6)->tokens_per_second();
  ASSERT_LT(timeline.run(4)->tokens_per_second(), middle);
  ASSERT_GT(timeline.run(2)->tokens_per_second(), middle);
  EXPECT_THAT(report, HasSubstr(fmt::format("| {:.1f} ({:.1f} to {:.1f}) |", middle,
                                            (timeline.run(4)->tokens_per_second() + middle) / 2,
                                            (timeline.run(2)->tokens_per_second() + middle) / 2)));
  EXPECT_THAT(report, HasSubstr("| 3 of 3 |"));
  EXPECT_THAT(report, HasSubstr("median (first to third quartile)"));
}

TEST(MarkdownReport, can_leave_out_the_prompts) {
  std::vector<Event> events = test::small_stream();
  for (Event& event : events)
    if (auto* started = std::get_if<RunStarted>(&event)) started->prompt = "a private question";
  const Timeline timeline = timeline_of(std::move(events));
  EXPECT_THAT(markdown_report(timeline), HasSubstr("a private question"));
  const std::string without = markdown_report(timeline, {.prompt_text = false});
  EXPECT_THAT(without, Not(HasSubstr("private")));
  EXPECT_THAT(without, HasSubstr("Prompt: left out"));
  EXPECT_THAT(without, HasSubstr("| A | lookahead |"));
}

TEST(MarkdownReport, notes_are_with_their_runs) {
  const std::string report =
      markdown_report(repeated_race(), {.notes = {{2, "too *wide*\n<b>"}, {5, "a repeat"}}});
  EXPECT_THAT(report, HasSubstr("Note on run 2:\n\n    too *wide*\n    <b>\n\n"));
  EXPECT_THAT(report, HasSubstr("Note on run 5:\n\n    a repeat\n"));
  EXPECT_THAT(report, Not(HasSubstr("Note on run 1")));
}

TEST(HtmlPage, repeats_have_medians_and_name_their_number) {
  const Timeline timeline = repeated_race();
  const json data = data_of(html_page(timeline).text);
  ASSERT_EQ(data.at("repeats").size(), 2u);
  EXPECT_EQ(data.at("repeats")[1].at("name"), "lookahead");
  EXPECT_EQ(data.at("repeats")[1].at("runs"), "3 of 3");
  EXPECT_THAT(data.at("repeats")[1].at("tokens_per_second").get<std::string>(),
              ::testing::StartsWith(fmt::format("{:.1f} (", timeline.run(6)->tokens_per_second())));
  EXPECT_EQ(data.at("runs")[5].at("repeat"), "3 of 3");
  EXPECT_EQ(data_of(html_page(timeline_of(test::small_stream())).text).at("repeats").size(), 0u);
}

TEST(HtmlPage, of_nothing_is_a_page) {
  EXPECT_TRUE(data_of(html_page(Timeline()).text).at("runs").empty());
}

}  // namespace
}  // namespace engine
