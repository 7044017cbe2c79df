// Sizes that a decoder chose: the table of the panel Numbers, repeating a recorded run, and the file that decoders copy from.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "engine/event/timeline/recorded_choices.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"

namespace {

using namespace ui;
using testing::HasSubstr;

// Returns a run of prompt lookup whose steps chose their sizes: 0, 3, 3, 8 tokens, in turn.
std::vector<engine::Event> sized_run() {
  std::vector<engine::Event> events = streams::one_run("prompt-lookup");
  for (engine::Event& event : events) {
    auto* drafted = std::get_if<engine::Drafted>(&event);
    if (!drafted) continue;
    constexpr int kSizes[] = {0, 3, 3, 8};
    const int size = kSizes[drafted->step % 4];
    drafted->decision = {.size = size,
                         .tokens = 1 + 0.5f * static_cast<float>(size),
                         .ms = 2,
                         .plain_ms = 1.5f,
                         .probe = size == 8};
    drafted->choices = {size};
  }
  return events;
}

TEST(Sizes, the_table_has_what_was_expected_and_what_came) {
  const auto timeline = timeline_of(sized_run());
  const engine::RunRecord& run = *timeline.run(1);
  Tally tally;
  advance(tally, run, run.steps.size());
  ASSERT_EQ(tally.by_size.size(), 3u);
  const std::vector<SizeRow> rows = size_table(tally, 7);
  ASSERT_EQ(rows.size(), 3u);
  int n_steps = 0;
  double tokens = 0;
  for (const SizeRow& row : rows) {
    EXPECT_EQ(row.smallest, row.largest);
    EXPECT_DOUBLE_EQ(row.expected_tokens, 1 + 0.5 * row.smallest);
    EXPECT_DOUBLE_EQ(row.expected_ms, 2);
    EXPECT_EQ(row.n_probes, row.smallest == 8 ? row.n_steps : 0);
    EXPECT_GT(row.ms, 0);
    EXPECT_EQ(std::ssize(steps_of_size(run, run.steps.size(), row.smallest, row.largest)),
              row.n_steps);
    n_steps += row.n_steps;
    tokens += row.tokens * row.n_steps;
  }
  EXPECT_EQ(n_steps, static_cast<int>(run.steps.size()));
  EXPECT_NEAR(tokens, static_cast<double>(run.tokens.size()), 1e-6);
  EXPECT_EQ(rows[1].n_steps, tally.by_size.at(3).n_steps);

  Tally again = tally;
  advance(again, run, 3);
  advance(again, run, run.steps.size());
  EXPECT_EQ(size_table(again, 7).size(), rows.size());
  EXPECT_DOUBLE_EQ(size_table(again, 7)[1].tokens, rows[1].tokens);
}

TEST(Sizes, many_sizes_share_rows) {
  Tally tally;
  for (int size = 0; size <= 30; ++size)
    tally.by_size[size] = {.n_steps = 1 + size % 3, .expected_tokens = 2, .tokens = 2};
  for (const std::size_t most : {2u, 4u, 7u}) {
    const std::vector<SizeRow> rows = size_table(tally, most);
    EXPECT_LE(rows.size(), most);
    EXPECT_GE(rows.size(), most - 1);
    EXPECT_EQ(rows[0].smallest, 0);
    EXPECT_EQ(rows[0].largest, 0) << "plain steps have a row of their own";
    EXPECT_EQ(rows.back().largest, 30);
    int n_steps = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      n_steps += rows[i].n_steps;
      EXPECT_EQ(rows[i].smallest, i == 0 ? 0 : rows[i - 1].largest + 1);
    }
    EXPECT_EQ(n_steps, 61);
  }
  EXPECT_TRUE(size_table({}, 7).empty());
  const auto fixed = timeline_of(streams::one_run("prompt-lookup"));
  Tally none;
  advance(none, *fixed.run(1), fixed.run(1)->steps.size());
  EXPECT_TRUE(size_table(none, 7).empty()) << "all sizes were given";
}

TEST(Sizes, a_recorded_run_is_repeated_with_its_sizes) {
  const auto timeline = timeline_of(sized_run());
  const engine::RunRecord& run = *timeline.run(1);
  EXPECT_TRUE(has_recorded_sizes(timeline, run));
  EXPECT_FALSE(engine::lacks_choices(run));
  const auto fixed = timeline_of(streams::one_run("prompt-lookup"));
  EXPECT_FALSE(has_recorded_sizes(fixed, *fixed.run(1)));
  EXPECT_FALSE(engine::lacks_choices(*fixed.run(1)));

  const Catalog catalog = streams::catalog();
  SetupForm form;
  use_again(form, catalog, timeline, run);
  EXPECT_TRUE(command_of(form, false).lanes[0].choices.empty());
  use_with_sizes(form, catalog, timeline, run);
  const std::vector<std::int32_t> choices = command_of(form, false).lanes[0].choices;
  EXPECT_EQ(choices.size(), run.steps.size());
  EXPECT_EQ(choices, engine::choices_of(run));
  forget_sizes(form);
  EXPECT_TRUE(command_of(form, false).lanes[0].choices.empty());
}

TEST(Sizes, a_repeated_run_starts_once_with_its_sizes) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  shell.take(sized_run());
  const engine::Timeline& timeline = shell.session().shown().timeline;
  use_with_sizes(shell.form(), catalog, timeline, timeline.runs()[0]);
  shell.form().model = catalog.models.front().name;
  for (const bool repeats : {true, false}) {
    shell.perform(Action::Run);
    std::optional<engine::StartRun> start;
    while (auto command = commands.try_take())
      if (const auto* one = std::get_if<engine::StartRun>(&*command)) start = *one;
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(!start->lanes[0].choices.empty(), repeats) << "only the first run repeats";
  }
}

TEST(Sizes, numbers_draws_the_table) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  const auto said = [&](std::vector<engine::Event> events) {
    Shell shell(catalog, commands, "");
    shell.take(std::move(events));
    shell.show(Screen::Live);
    gui.frame(shell);
    ImGui::SetWindowFocus(window_name(Screen::Live, "numbers", "").c_str());
    for (int i = 0; i < 3; ++i) gui.frame(shell);
    return gui.said(shell);
  };
  EXPECT_THAT(said(sized_run()), HasSubstr("chosen sizes: expected, actual"));
  EXPECT_THAT(said(streams::one_run("prompt-lookup")), testing::Not(HasSubstr("chosen sizes")));
}

TEST(Sizes, the_first_race_of_a_chat_model_has_suffix_decoding) {
  Catalog catalog = streams::catalog();
  CatalogDecoder suffix = *catalog.decoder("prompt-lookup");
  suffix.name = "suffix";
  catalog.decoders.push_back(suffix);
  catalog.models.push_back({.name = "chatty", .n_params = 135'000'000});
  catalog.models.back().chat = [](const auto&...) { return ChatPreview(); };
  const SetupForm form = first_form(catalog, "chatty");
  std::vector<std::string> lanes;
  for (const LaneForm& lane : form.lanes) lanes.push_back(lane.decoder);
  EXPECT_EQ(lanes, (std::vector<std::string>{"ar", "lookahead", "prompt-lookup", "suffix"}));
  EXPECT_EQ(form.live.decoder, "lookahead");
}

TEST(Pool, a_text_file_is_passed_to_decoders_that_read_it) {
  Catalog catalog = streams::catalog();
  for (CatalogDecoder& decoder : catalog.decoders) decoder.reads_pool = decoder.name == "lookahead";
  SetupForm form = first_form(catalog, "");
  form.prompt = "a prompt";
  form.live = lane_with(catalog, "lookahead");
  EXPECT_TRUE(reads_pool(form, catalog, false));
  form.pool = "/no/such/file.txt";
  EXPECT_THAT(why_not(form, catalog, false), HasSubstr("/no/such/file.txt"));
  form.live = lane_with(catalog, "ar");
  EXPECT_FALSE(reads_pool(form, catalog, false));
  EXPECT_EQ(why_not(form, catalog, false), "") << "it is not read";
  form.lanes = {lane_with(catalog, "ar"), lane_with(catalog, "lookahead")};
  EXPECT_TRUE(reads_pool(form, catalog, true));

  const engine::test::Folder folder;
  const std::string path = folder / "notes.txt";
  std::ofstream(path) << "Some text.";
  form.pool = path;
  EXPECT_EQ(why_not(form, catalog, true), "");
  EXPECT_EQ(command_of(form, true).pool, path);
}

TEST(Pool, a_dropped_text_file_becomes_the_text_to_copy_from) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  shell.open("/some/notes.txt");
  EXPECT_EQ(shell.form().pool, "/some/notes.txt");
  EXPECT_FALSE(shell.ticks()) << "it is not opened as a recording";
}

}  // namespace
