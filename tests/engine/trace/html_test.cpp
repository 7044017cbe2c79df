// The page that plays a recording: its data, and that no token can break out of it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"
#include "tests/support/files.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

/// Runs of Lookahead, one after the other.
Timeline runs_of(RunId n, int n_steps) {
  std::vector<Event> events{test::model_loaded()};
  for (RunId run = 1; run <= n; ++run)
    for (const Event& event : test::run_events({.run = run, .n_steps = n_steps}))
      events.push_back(event);
  return timeline_of(std::move(events));
}

Timeline with_private_prompt() {
  std::vector<Event> events = test::small_stream();
  for (Event& event : events)
    if (auto* started = std::get_if<RunStarted>(&event)) started->prompt = "a private question";
  return timeline_of(std::move(events));
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

/// The page without its data.
std::string frame_of(std::string page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.erase(from, page.find("</script>", from) - from);
}

/// The matches of a pattern: the whole, or a group of it.
std::vector<std::string> matches_of(const std::string& text, const char* pattern, int group = 0) {
  const std::regex wanted(pattern);
  return {std::sregex_token_iterator(text.begin(), text.end(), wanted, group), {}};
}

TEST(HtmlPage, has_language_and_headings_in_order) {
  const std::string frame = frame_of(html_page(timeline_of(test::small_stream())).text);
  EXPECT_THAT(frame, HasSubstr("<html lang=\"en\">"));
  // Tags of the markup (<h1) and those that the script creates ("h2").
  const auto levels = matches_of(frame, "[<\"]h([1-6])[\\s>\"]", 1);
  ASSERT_GE(levels.size(), 2U);
  EXPECT_EQ(levels.front(), "1");
  EXPECT_EQ(std::ranges::count(levels, "1"), 1);
  for (std::size_t i = 1; i < levels.size(); ++i)
    EXPECT_LE(std::stoi(levels[i]), std::stoi(levels[i - 1]) + 1);
}

TEST(HtmlPage, tables_controls_and_regions_have_names) {
  const std::string frame = frame_of(html_page(timeline_of(test::small_stream())).text);
  EXPECT_EQ(matches_of(frame, "<table[^>]*>").size(), 2U);
  EXPECT_EQ(matches_of(frame, "<table[^>]*><caption[^>]*>[^<]+</caption>").size(), 2U);
  int n_controls = 0;
  const std::regex control("<(button|select|input)([^>]*)>");
  for (std::sregex_iterator it(frame.begin(), frame.end(), control), end; it != end; ++it) {
    const std::string attributes = it->str(2);
    const auto id = matches_of(attributes, "id=\"(\\w+)\"", 1);
    const std::string before = frame.substr(0, static_cast<std::size_t>(it->position()));
    const bool is_inside_label = before.rfind("<label") + 1 > before.rfind("</label>") + 1;
    EXPECT_TRUE(is_inside_label || attributes.find("aria-label=\"") != std::string::npos ||
                (!id.empty() && frame.find("for=\"" + id[0] + "\"") != std::string::npos))
        << it->str();
    ++n_controls;
  }
  EXPECT_EQ(n_controls, 6) << "prompt, play, back, next, time, speed";
  // An element that takes the focus has a role and a name; the words on the step shown are read when they change.
  for (const std::string& tag : matches_of(frame, "<[^>]*tabindex[^>]*>"))
    EXPECT_THAT(tag, ContainsRegex(" role=\"region\" aria-label=\"")) << tag;
  EXPECT_THAT(frame, HasSubstr("<p id=\"words\" aria-live=\"polite\"></p>"));
}

TEST(HtmlPage, uses_no_network) {
  const std::string frame = frame_of(html_page(timeline_of(test::small_stream())).text);
  EXPECT_THAT(frame, HasSubstr("content=\"default-src 'none'; "));
  for (const char* address : {"://", "\"//", " src=", " href=", "url(", "@import", "import(",
                              "fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon"})
    EXPECT_THAT(frame, Not(HasSubstr(address)));
}

TEST(HtmlPage, arrow_keys_step_through_the_first_lane) {
  if (std::system("node --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "node is not installed, so the page's script was not run";
  const test::Folder folder;
  test::write_file(folder / "page.html", html_page(timeline_of(test::small_stream())).text);
  const std::string command = "node '" DECOSCOPE_SOURCE_DIR "/tests/engine/trace/press_keys.js' '" +
                              (folder / "page.html") +
                              "' ArrowRight ArrowRight ArrowLeft End ArrowRight Home ArrowLeft >'" +
                              (folder / "out") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto lines = matches_of(test::read_file(folder / "out"), "[^\n]+");
  ASSERT_EQ(lines.size(), 8U);
  const std::string begin = "0 lookahead: before its first step.";
  EXPECT_EQ(lines[0], begin);
  EXPECT_THAT(lines[1], StartsWith("1 lookahead, step 1 of 4: "));
  EXPECT_THAT(lines[2], StartsWith("4 lookahead, step 2 of 4: 2 proposed, 2 accepted; 3 tokens"));
  EXPECT_EQ(lines[3], lines[1]);
  EXPECT_THAT(lines[4], StartsWith("8 lookahead, step 4 of 4: "));
  EXPECT_EQ(lines[5], lines[4]) << "after the last step there is none";
  EXPECT_EQ(lines[6], begin);
  EXPECT_EQ(lines[7], begin);
}

TEST(HtmlPage, states_model_device_seed_and_options_as_the_report_does) {
  const Timeline timeline = timeline_of(test::small_stream());
  const json data = data_of(html_page(timeline).text);
  const json& run = data.at("runs")[0];
  EXPECT_EQ(run.at("model"), "toy bf16, 1x1 on cpu");
  EXPECT_EQ(run.at("settings"),
            "greedy, seed 1, at most 64 tokens, prompt of 2 tokens; options: window=5");
  const std::string report = markdown_report(timeline);
  EXPECT_THAT(report, HasSubstr("| toy bf16, 1x1 on cpu |"));
  EXPECT_THAT(report,
              HasSubstr("Settings: greedy, seed 1, at most 64 tokens, prompt of 2 tokens."));
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
  const Timeline timeline = runs_of(1, 100);
  const std::size_t n_all = html_page(timeline, {.max_bytes = 0}).text.size();
  const HtmlPage page = html_page(timeline, {.max_bytes = n_all - 1, .to_get_all = "tick it"});
  EXPECT_FALSE(page.has_proposals);
  EXPECT_EQ(page.n_left_out, 0);
  EXPECT_LT(page.text.size(), n_all);
  EXPECT_THAT(page.text, Not(HasSubstr("\"guesses\":")));
  EXPECT_THAT(page.notice, HasSubstr("omitted"));
  EXPECT_THAT(page.notice, HasSubstr("the proposals of the steps; tick it"));
  EXPECT_TRUE(html_page(timeline, {.max_bytes = n_all + 1024}).has_proposals);
}

TEST(HtmlPage, by_default_a_page_has_at_most_5_MB) {
  const Timeline timeline = runs_of(60, 1000);
  const HtmlPage page = html_page(timeline);
  EXPECT_LE(page.text.size(), 5'000'000U);
  EXPECT_GT(page.text.size(), 4'500'000U);
  EXPECT_FALSE(page.has_proposals);
  EXPECT_GT(page.n_left_out, 0);
  const json data = data_of(page.text);
  EXPECT_EQ(std::ssize(data.at("runs")) + page.n_left_out, 60);
  EXPECT_THAT(page.notice,
              HasSubstr(fmt::format("within 5 MB: {} runs and the prop", page.n_left_out)));
  EXPECT_THAT(data.at("about").get<std::string>(), HasSubstr(page.notice)) << "also on the page";
  const HtmlPage all = html_page(timeline, {.max_bytes = 0});
  EXPECT_GT(all.text.size(), 5'000'000U);
  EXPECT_TRUE(all.has_proposals);
  EXPECT_EQ(data_of(all.text).at("runs").size(), 60U);
  EXPECT_EQ(all.notice, "");
}

TEST(HtmlPage, a_race_is_on_the_page_as_a_whole_or_not_at_all) {
  std::vector<Event> events{test::model_loaded()};
  for (RunId run = 1; run <= 6; ++run)
    for (const Event& event : test::run_events({.run = run,
                              .decoder = run % 2 ? "ar" : "lookahead",
                              .race = (run + 1) / 2,
                              .lane = static_cast<int>(run + 1) % 2,
                              .n_steps = 300}))
      events.push_back(event);
  const Timeline timeline = timeline_of(std::move(events));
  const std::size_t n_all = html_page(timeline, {.max_bytes = 0}).text.size();
  std::int64_t n_left_out = 0;
  for (std::size_t share = 4; share <= 9; ++share) {
    const HtmlPage page = html_page(timeline, {.max_bytes = n_all * share / 10});
    EXPECT_LE(page.text.size(), n_all * share / 10);
    std::map<int, int> n_lanes;  // of each race on the page
    const json runs = data_of(page.text).at("runs");
    for (const json& run : runs) n_lanes[run.at("race").get<int>()]++;
    for (const auto& [race, n] : n_lanes) EXPECT_EQ(n, 2) << "race " << race << ", share " << share;
    EXPECT_EQ(std::ssize(runs) + page.n_left_out, 6);
    n_left_out += page.n_left_out;
  }
  EXPECT_GT(n_left_out, 0);
}

TEST(HtmlPage, a_limit_below_every_race_is_refused_with_the_option) {
  try {
    html_page(runs_of(2, 10), {.max_bytes = 1000, .to_get_all = "--page-mb 0 writes all of it"});
    FAIL() << "a page of 1000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_THAT(error.what(), HasSubstr("expected at most 0.001 MB; --page-mb 0"));
  }
}

TEST(HtmlPage, a_refused_page_states_its_whole_size) {
  try {
    html_page(runs_of(1, 10), {.max_bytes = 8'000});  // room for the run without the page around it
    FAIL() << "a page of 8000 bytes";
  } catch (const Error& error) {
    const std::string message = error.what();
    std::smatch sizes;
    ASSERT_TRUE(std::regex_search(message, sizes,
                                  std::regex("found ([0-9.]+) MB .* at most ([0-9.]+) MB$")))
        << message;
    EXPECT_GT(std::stod(sizes.str(1)), std::stod(sizes.str(2))) << message;
  }
}

TEST(HtmlPage, has_the_prompts_only_on_request) {
  const Timeline timeline = with_private_prompt();
  EXPECT_THAT(html_page(timeline).text, Not(HasSubstr("private")));
  EXPECT_THAT(html_page(timeline).text, HasSubstr("(left out of this page)"));
  EXPECT_THAT(html_page(timeline, {.prompt_text = true}).text, HasSubstr("a private question"));
}

TEST(MarkdownReport, says_what_is_derived_as_page_and_description_do) {
  const Timeline timeline = timeline_of(test::small_stream());
  for (const std::string& text :
       {html_page(timeline).text, markdown_report(timeline), describe(timeline)})
    EXPECT_THAT(text, HasSubstr("derived from measured figures"));
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

TEST(MarkdownReport, baseline_under_other_load_gives_no_speedup_as_on_the_page) {
  for (const bool is_refused : {false, true}) {
    const Timeline timeline = timeline_of(test::one_after_the_other(is_refused ? 0.5 : 1));
    const std::string expected = is_refused ? kOtherLoad : "1.00x";
    EXPECT_EQ(data_of(html_page(timeline).text).at("runs")[1].at("speedup"), expected);
    EXPECT_EQ(markdown_report(timeline).find(kOtherLoad) != std::string::npos, is_refused);
    EXPECT_THAT(markdown_report(timeline), HasSubstr("| " + expected + " |"));
  }
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

TEST(MarkdownReport, has_the_prompts_only_on_request) {
  const Timeline timeline = with_private_prompt();
  EXPECT_THAT(markdown_report(timeline, {.prompt_text = true}), HasSubstr("a private question"));
  const std::string without = markdown_report(timeline);
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
