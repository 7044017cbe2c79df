// The page that plays a recording: its data, and that no token can break out of it.
#include <variant>

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

TEST(HtmlPage, of_nothing_is_a_page) {
  EXPECT_TRUE(data_of(html_page(Timeline()).text).at("runs").empty());
}

}  // namespace
}  // namespace engine
