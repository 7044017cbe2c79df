#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/commands/trace/tool.h"
#include "engine/base/types.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording_format.h"
#include "engine/trace/describe.h"
#include "engine/trace/export.h"
#include "tests/support/files.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::Folder;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string record(const Folder& folder, const std::vector<Event>& events) {
  Recorder recorder(folder / "run.pdrun");
  for (const Event& event : events) recorder.push(event);
  recorder.close();
  return recorder.path();
}

Timeline small_timeline() {
  Timeline timeline;
  for (const Event& event : test::small_stream()) timeline.apply(event);
  return timeline;
}

std::vector<std::string> lines_of(const std::string& csv) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < csv.size();) {
    const std::size_t end = csv.find("\r\n", at);
    lines.push_back(csv.substr(at, end - at));
    at = end + 2;
  }
  return lines;
}

TEST(Csv, steps_have_units_and_the_streams_numbers) {
  const std::vector<std::string> lines = lines_of(steps_csv(small_timeline()));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], StartsWith("run,step,begin_ms,own_compute_before_ms,rows,"));
  EXPECT_THAT(lines[2], StartsWith("1,1,0.16,0.0835,3,2,2,2,0,0,3,0.001,0.08,0.002,0.0005,0.095,"));
}

// The number of draft rows is known only after the draft was reported; before that the cell is
// empty, not 0.
TEST(Csv, incomplete_steps_have_no_row_or_no_row_count) {
  std::vector<Event> events = test::small_stream();
  for (Event& event : events)
    if (auto* begun = std::get_if<StepBegun>(&event)) begun->n_rows = 0;
  const auto is_of = [](const Event& event, StepId step) {
    const auto* begun = std::get_if<StepBegun>(&event);
    return begun && begun->step == step;
  };
  const auto last = std::ranges::find_if(events, [&](const Event& e) { return is_of(e, 3); });
  ASSERT_NE(last, events.end());
  events.erase(last + 1, events.end());
  const auto second = std::ranges::find_if(events, [&](const Event& e) { return is_of(e, 1); });
  const auto draft = std::find_if(
      second, events.end(), [](const Event& e) { return std::holds_alternative<Drafted>(e); });
  ASSERT_NE(draft, events.end());
  events.erase(draft);
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  const std::vector<std::string> lines = lines_of(steps_csv(timeline));
  ASSERT_EQ(lines.size(), 4U) << "steps 0 to 2";
  EXPECT_THAT(lines[1], StartsWith("1,0,"));
  EXPECT_THAT(lines[2], StartsWith("1,1,0.16,0.0835,,2,"));
  EXPECT_THAT(lines[3], StartsWith("1,2,"));
}

TEST(Csv, tokens_are_quoted_by_rfc_4180) {
  std::vector<Event> events = test::small_stream();
  std::get<ModelLoaded>(events[0]).pieces[7] = "a,\"b\"\n\xF0";
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  const std::vector<std::string> lines = lines_of(tokens_csv(timeline));
  ASSERT_EQ(lines.size(), 9U);
  EXPECT_THAT(
      lines[0],
      StartsWith("run,index,position,step,token_id,text,status,origin,logp_nats,drafted_by,"));
  EXPECT_THAT(lines[1],
              StartsWith("1,0,2,0,7,\"a,\"\"b\"\"\xE2\x90\x8A<0xF0>\",plain,target,-0.5,"));
  EXPECT_THAT(lines[4], StartsWith("1,3,5,1,10,t10,bonus,target,-0.125,"));
}

// TR08.
TEST(Csv, formulas_are_disarmed_on_request) {
  std::vector<Event> events = test::small_stream();
  std::get<ModelLoaded>(events[0]).pieces[7] = "=cmd";
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  EXPECT_THAT(lines_of(tokens_csv(timeline))[1], HasSubstr(",=cmd,"));
  EXPECT_THAT(lines_of(tokens_csv(timeline, {.for_spreadsheets = true}))[1], HasSubstr(",'=cmd,"));
}

TEST(Csv, acceptance_by_depth_equals_a_hand_count) {
  // Two of four steps accept both proposals, the others reject the first.
  const std::vector<std::string> lines = lines_of(acceptance_csv(small_timeline()));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0],
              StartsWith("run,depth,proposed,verified,accepted,accepted_of_verified,decoder,"));
  EXPECT_THAT(lines[1], StartsWith("1,1,4,4,2,0.5,"));
  EXPECT_THAT(lines[2], StartsWith("1,2,4,2,2,1,"));
}

TEST(Csv, every_table_names_its_rows_and_the_program) {
  const Timeline timeline = small_timeline();
  const std::string source =
      ",lookahead,window=5,max_tokens=64;ignore_eos=off;sampling=coupled;temperature=0;top_k=0;"
      "top_p=1;min_p=0;repetition_penalty=1,1,toy,,1x1,bf16,cpu," +
      std::string(program_version());
  for (const auto make : {steps_csv, tokens_csv, acceptance_csv}) {
    const std::vector<std::string> lines = lines_of(make(timeline, {}));
    EXPECT_THAT(
        lines[0],
        EndsWith(
            ",decoder,options,parameters,seed,model,draft,scale,dtype,device,program_version"));
    for (std::size_t row = 1; row < lines.size(); row++) EXPECT_THAT(lines[row], EndsWith(source));
  }
  const std::vector<std::string> lanes = lines_of(lanes_csv(timeline));
  EXPECT_THAT(lanes[0], EndsWith(",parameters,program_version"));
  EXPECT_THAT(lanes[1], HasSubstr(",max_tokens=64;ignore_eos=off;"));
}

TEST(Csv, lanes_leave_undefined_cells_empty) {
  const std::vector<std::string> lines = lines_of(lanes_csv(small_timeline()));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1],
              HasSubstr(",lookahead,window=5,toy,,1x1,bf16,cpu,2,1,0,coupled,p1,2,0,4,8,2,"));
  EXPECT_THAT(lines[1], HasSubstr(",0.334,,,length,"));  // no speedup without a baseline
  EXPECT_THAT(lines[1], HasSubstr(",length,pool_hits=2,max_tokens=64;"));
}

TEST(Csv, lanes_report_unverified_prompt_tokens) {
  std::vector<Event> events = test::small_stream();
  std::get<RunStarted>(events[1]).n_approximate = 1;
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_THAT(lines_of(lanes_csv(timeline))[1], HasSubstr(",p1,2,1,4,8,2,"));
}

TEST(Describe, a_step_is_one_sentence) {
  const Timeline timeline = small_timeline();
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(describe(timeline, run, run.steps[0]),
            "Step 0: 2 proposed, 0 accepted, position 1 rejected, 1 unused; 1 token in 0.0835 ms");
  EXPECT_EQ(describe(timeline, run, run.steps[1]),
            "Step 1: 2 proposed, 2 accepted, bonus 't10'; 3 tokens in 0.0835 ms");
}

TEST(Describe, a_run_reports_unknown_figures) {
  const std::string text = describe(small_timeline());
  EXPECT_THAT(
      text, HasSubstr("Run 1: lookahead on toy (scale 1x1, bf16, cpu).\nSettings: greedy, seed 1, "
                      "at most 64 tokens, prompt of 2 tokens.\n"));
  EXPECT_THAT(text, HasSubstr("Speedup: -, this recording has no plain run"));
  EXPECT_THAT(text, HasSubstr("Text: t7t8t9t10t7t8t9t10"));
  EXPECT_EQ(describe(Timeline()), "No run in this recording.\n");
}

TEST(Describe, a_checked_run_names_its_plain_run) {
  std::vector<Event> events = test::small_stream();
  events.push_back(Agreement{.run = 1, .n_compared = 8});
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  const std::string text = describe(timeline);
  EXPECT_THAT(text, HasSubstr("Identical to plain decoding over 8 tokens."));
  EXPECT_THAT(
      text,
      HasSubstr("Speedup: -, the plain run that it was compared with is not in this recording."));
}

TEST(TraceTool, baseline_under_other_load_gives_a_reason_and_no_speedup) {
  const Folder folder;
  const std::string reason =
      "baseline under other load. Run 1 used 90 % of the processor, this run 45 %";
  for (const bool is_refused : {false, true}) {
    const std::vector<Event> events = test::one_after_the_other(is_refused ? 0.5 : 1);
    Timeline timeline;
    for (const Event& event : events) timeline.apply(event);
    ASSERT_EQ(timeline.n_inconsistent(), 0);
    EXPECT_THAT(lines_of(lanes_csv(timeline))[2],
                HasSubstr(is_refused ? ",0.334,,,length," : ",0.334,1,,length,"));
    const std::string text = describe(timeline);
    EXPECT_EQ(text.find("Speedup: -, " + reason) != std::string::npos, is_refused) << text;
    const app::TraceAnswer answer = app::trace_info(record(folder, events));
    const auto json = nlohmann::json::parse(answer.json);
    EXPECT_EQ(json["runs"][1]["speedup"].is_null(), is_refused);
    EXPECT_EQ(json["notices"].size(), is_refused ? 1U : 0U);
    const std::string note = "note: run 2: no speedup, " + reason;
    EXPECT_EQ(answer.text.find(note) != std::string::npos, is_refused) << answer.text;
  }
}

TEST(TraceTool, info_prints_counts_runs_and_duration) {
  const Folder folder;
  const app::TraceAnswer answer = app::trace_info(record(folder, test::small_stream()));
  const auto json = nlohmann::json::parse(answer.json);
  EXPECT_EQ(json["type"], "recording");
  EXPECT_EQ(json["events"], test::small_stream().size());
  EXPECT_EQ(json["kinds"]["StepBegun"], 4);
  EXPECT_EQ(json["runs"][0]["decoder"], "lookahead");
  EXPECT_EQ(json["runs"][0]["tokens"], 8);
  EXPECT_TRUE(json["runs"][0]["speedup"].is_null());
  EXPECT_TRUE(json["closed"]);
  EXPECT_THAT(answer.text, HasSubstr("\ndecoder    run  steps  tokens  tokens/step  tokens/s  "));
  EXPECT_THAT(answer.text, HasSubstr("\nlookahead    1      4       8         2.00  "));
  EXPECT_THAT(answer.text, HasSubstr("\nStepBegun      4          4\n"));
  EXPECT_EQ(json["runs"][0]["state"], "finished");
}

TEST(TraceTool, info_reports_truncation) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  const std::string bytes = test::read_file(path);
  test::write_file(folder / "cut.pdrun", bytes.substr(0, bytes.size() / 2));
  const app::TraceAnswer answer = app::trace_info(folder / "cut.pdrun");
  EXPECT_TRUE(answer.ok);
  EXPECT_THAT(answer.text, HasSubstr("bytes incomplete"));
  EXPECT_EQ(nlohmann::json::parse(answer.json)["runs"][0]["state"], "cut off");
}

TEST(TraceTool, info_reports_a_stopped_run_as_cancelled) {
  const Folder folder;
  std::vector<Event> events = test::small_stream();
  for (Event& event : events) {
    if (auto* finished = std::get_if<RunFinished>(&event)) finished->stop_reason = "stopped";
  }
  const app::TraceAnswer answer = app::trace_info(record(folder, events));
  EXPECT_THAT(answer.text, HasSubstr("  cancelled\n"));
  EXPECT_EQ(nlohmann::json::parse(answer.json)["runs"][0]["state"], "cancelled");
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  EXPECT_THAT(describe(timeline), HasSubstr("Cancelled."));
}

// TR11.
TEST(TraceTool, info_names_both_hashes_for_other_weights) {
  const Folder folder;
  std::vector<Event> events = test::small_stream();
  std::get<ModelLoaded>(events[0]).weights_hash = "00000000000000aa";
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  export_trace(timeline, folder / "run.json");
  for (const std::string& path : {record(folder, events), folder / "run.json"}) {
    const auto notices_with = [&](const app::LocalWeights& here) {
      return nlohmann::json::parse(app::trace_info(path, here).json)["notices"];
    };
    const nlohmann::json other = notices_with([](const std::string& model) {
      EXPECT_EQ(model, "toy");
      return std::optional<std::string>("00000000000000bb");
    });
    ASSERT_EQ(other.size(), 1U) << path;
    EXPECT_THAT(other[0].get<std::string>(), HasSubstr("toy, weights 00000000000000aa"));
    EXPECT_THAT(other[0].get<std::string>(),
                HasSubstr("the model here has weights 00000000000000bb"));
    EXPECT_TRUE(notices_with([](const std::string&) {
                  return std::optional<std::string>("00000000000000aa");
                }).empty());
    EXPECT_TRUE(notices_with([](const std::string&) { return std::nullopt; }).empty());
    EXPECT_TRUE(notices_with({}).empty());
  }
}

// TR11.
TEST(TraceTool, a_recording_without_a_hash_is_not_compared) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  const auto here = [](const std::string&) { return std::optional<std::string>("bb"); };
  EXPECT_TRUE(nlohmann::json::parse(app::trace_info(path, here).json)["notices"].empty());
}

TEST(TraceTool, validate_accepts_only_complete_files) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  EXPECT_TRUE(app::trace_validate(path).ok);
  std::string bytes = test::read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  test::write_file(folder / "flipped.pdrun", bytes);
  EXPECT_FALSE(app::trace_validate(folder / "flipped.pdrun").ok);
  EXPECT_FALSE(nlohmann::json::parse(app::trace_validate(folder / "flipped.pdrun").json)["ok"]);
  std::vector<Event> contradicting = test::small_stream();
  contradicting.push_back(StepBegun{.t = 2, .run = 9});
  Recorder recorder(folder / "odd.pdrun");
  for (const Event& event : contradicting) recorder.push(event);
  recorder.close();
  const app::TraceAnswer odd = app::trace_validate(folder / "odd.pdrun");
  EXPECT_FALSE(odd.ok);
  EXPECT_THAT(odd.text, HasSubstr("no run with this number"));
}

TEST(TraceTool, convert_follows_the_file_extension) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  for (const char* name : {"t.json", "t.json.gz"}) {
    EXPECT_THAT(app::trace_convert(path, folder / name).text, HasSubstr("checked: valid"));
    EXPECT_TRUE(app::trace_validate(folder / name).ok);
  }
  const auto json = nlohmann::json::parse(app::trace_convert(path, folder / "t.csv").json);
  EXPECT_EQ(json["files"].size(), 4U);
  EXPECT_TRUE(std::filesystem::exists(folder / "t-acceptance.csv"));
  app::trace_convert(path, folder / "t.txt");
  EXPECT_THAT(test::read_file(folder / "t.txt"), HasSubstr("Step 1:"));
  app::trace_convert(path, folder / "again.pdrun");
  EXPECT_TRUE(app::trace_validate(folder / "again.pdrun").ok);
  EXPECT_THROW(app::trace_convert(path, folder / "t.xyz"), Error);
  EXPECT_THROW(app::trace_convert(folder / "t.json", folder / "t.csv"), Error);
}

TEST(TraceTool, a_report_has_the_notes_of_the_window) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  const auto report = [&](const std::string& name) {
    const app::TraceAnswer answer = app::trace_convert(path, folder / name);
    return std::pair(test::read_file(folder / name), answer.text);
  };
  EXPECT_THAT(report("none.md").first, Not(HasSubstr("Note on run")));
  test::write_file(path + ".ui",
                   "decoscope notes 1\nbookmark = kept, run 1, step 2, 5 ns\nlens = origin\n"
                   "note of run 1 = too slow:\\nC:\\\\w\nsomething = of a newer program\n");
  const auto [text, said] = report("noted.md");
  EXPECT_THAT(text, HasSubstr("Note on run 1:\n\n    too slow:\n    C:\\w\n"));
  EXPECT_THAT(said, Not(HasSubstr("notes")));
  int n = 0;
  for (const char* broken :
       {"text", "decoscope notes 0\nnote of run 1 = a\n", "decoscope notes 1x\nnote of run 1 = a\n",
        "decoscope notes 1\nnote of run 1 = \x01\n", "decoscope notes 1\nnote of run x = a\n"}) {
    test::write_file(path + ".ui", broken);
    const auto [without, why] = report(fmt::format("{}.md", n++));
    EXPECT_THAT(without, Not(HasSubstr("Note on run")));
    EXPECT_THAT(why, HasSubstr("note: " + path + ".ui: line "));
    EXPECT_EQ(test::read_file(path + ".ui"), broken) << "the file is the window's";
  }
}

TEST(TraceTool, prompts_are_converted_only_on_request) {
  const Folder folder;
  std::vector<Event> events = test::small_stream();
  for (Event& event : events)
    if (auto* started = std::get_if<RunStarted>(&event)) started->prompt = "a private question";
  const std::string path = record(folder, events);
  for (const char* name : {"t.json", "t.md", "t.html"}) {
    const std::string file = "with_prompt_" + std::string(name);
    const app::TraceAnswer without = app::trace_convert(path, folder / name);
    EXPECT_THAT(test::read_file(folder / name), Not(HasSubstr("private"))) << name;
    EXPECT_THAT(without.remark, Not(HasSubstr("contains")));
    const app::TraceAnswer with =
        app::trace_convert(path, folder / file, {.trace = {.prompt_text = true}});
    EXPECT_THAT(test::read_file(folder / file), HasSubstr("a private question")) << name;
    EXPECT_THAT(with.remark, HasSubstr(file + " contains the text of the prompts"));
  }
  EXPECT_THAT(app::trace_convert(path, folder / "u.html").remark, HasSubstr("--with-prompt"));
  EXPECT_THAT(app::trace_convert(path, folder / "u.pdrun").remark, HasSubstr("contains the text"));
  for (const char* name : {"t.csv", "t.txt"}) {
    EXPECT_EQ(app::trace_convert(path, folder / name).remark, "") << name;
    EXPECT_THROW(app::trace_convert(path, folder / name, {.trace = {.prompt_text = true}}), Error);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    const std::string file = entry.path().string();
    if (file.ends_with(".csv") || file.ends_with(".txt")) {
      EXPECT_THAT(test::read_file(file), Not(HasSubstr("private"))) << file;
    }
  }
}

TEST(TraceTool, exports_state_settings_and_version_but_no_paths) {
  const Folder folder;
  std::vector<Event> events = test::small_stream();
  for (Event& event : events) {
    auto* started = std::get_if<RunStarted>(&event);
    if (!started) continue;
    started->options = {{"heads", "/home/reader/grownheads//"},
                        {"tree", "/home/reader/grown.json"},
                        {"window", "5"}};
    started->pool = "/home/reader/copied.txt";
  }
  const std::string path = record(folder, events);
  for (const std::string name : {"t.json", "t.md", "t.html", "t.txt", "t.csv"}) {
    app::trace_convert(path, folder / name);
    const std::string text = test::read_file(folder / (name == "t.csv" ? "t-steps.csv" : name));
    EXPECT_THAT(text, Not(HasSubstr("/home/reader"))) << name;
    for (const char* part : {"grownheads", "grown.json", "window", "toy", "seed", "cpu"})
      EXPECT_THAT(text, HasSubstr(part)) << name;
    EXPECT_THAT(text, HasSubstr(std::string(program_version()))) << name;
  }
  EXPECT_THAT(test::read_file(folder / "t.json"), HasSubstr("\"pool\":\"copied.txt\""));
}

TEST(TraceTool, a_page_keeps_within_its_limit) {
  const Folder folder;
  std::vector<Event> events{test::model_loaded()};
  for (RunId run = 1; run <= 20; ++run)
    for (const Event& event : test::run_events({.run = run, .n_steps = 1000}))
      events.push_back(event);
  const std::string path = record(folder, events);
  const app::TraceAnswer some = app::trace_convert(path, folder / "a.html", {.page_mb = 1});
  EXPECT_LE(std::filesystem::file_size(folder / "a.html"), 1'000'000U);
  EXPECT_THAT(some.text, HasSubstr("note: omitted to keep the page within 1 MB: "));
  EXPECT_THAT(some.text, HasSubstr("--page-mb 0 writes a page of any size"));
  const app::TraceAnswer all = app::trace_convert(path, folder / "b.html", {.page_mb = 0});
  EXPECT_GT(std::filesystem::file_size(folder / "b.html"), 2'000'000U);
  EXPECT_THAT(all.text, Not(HasSubstr("omitted")));
  EXPECT_THROW(app::trace_convert(path, folder / "b.md", {.page_mb = 0}), Error);
}

TEST(TraceTool, describe_gives_the_text_of_a_txt_file) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  app::trace_convert(path, folder / "t.txt");
  EXPECT_EQ(app::trace_describe(path).text, test::read_file(folder / "t.txt"));
  const std::string bytes = test::read_file(path);
  test::write_file(folder / "cut.pdrun", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(app::trace_describe(folder / "cut.pdrun").text, HasSubstr("\nnote: "));
  EXPECT_THROW(app::trace_describe(folder / "t.json"), Error);
  EXPECT_THROW(app::trace_describe(path, [] { return true; }), Error);
}

TEST(TraceTool, a_recording_can_keep_only_its_own_tokens) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  app::trace_convert(path, folder / "small.pdrun", {.used_tokens_only = true});
  EXPECT_TRUE(app::trace_validate(folder / "small.pdrun").ok);
  EXPECT_LT(test::read_file(folder / "small.pdrun").size(), test::read_file(path).size());
  app::trace_convert(path, folder / "whole.txt");
  app::trace_convert(folder / "small.pdrun", folder / "small.txt");
  EXPECT_EQ(test::read_file(folder / "small.txt"), test::read_file(folder / "whole.txt"));
  EXPECT_THROW(app::trace_convert(path, folder / "small.json", {.used_tokens_only = true}), Error);
  EXPECT_THROW(app::trace_convert(path, folder / "t.json", {.csv = {.for_spreadsheets = true}}),
               Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "small.json"));
}

TEST(TraceTool, convert_replaces_nothing_and_names_its_output) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  const auto converted_to = [&](const std::string& name) {
    const app::TraceAnswer answer = app::trace_convert(path, folder / name);
    const auto json = nlohmann::json::parse(answer.json);
    const bool renamed = answer.text.find(" exists; written to ") != std::string::npos;
    EXPECT_EQ(renamed, !json["notices"].empty()) << answer.text;
    const std::string file = json["files"][0];
    return std::pair(file.substr((folder / "").size()), renamed);
  };
  const std::pair<const char*, const char*> names[] = {{"t.json", "t-2.json"},
                                                       {"t.json.gz", "t-2.json.gz"},
                                                       {"t.txt", "t-2.txt"},
                                                       {"again.pdrun", "again-2.pdrun"}};
  for (const auto& [name, second] : names) {
    EXPECT_EQ(converted_to(name), std::pair(std::string(name), false));
    const std::string first = test::read_file(folder / name);
    EXPECT_EQ(converted_to(name), std::pair(std::string(second), true));
    EXPECT_EQ(test::read_file(folder / name), first);
  }
  EXPECT_TRUE(app::trace_validate(folder / "t-2.json.gz").ok);
  EXPECT_EQ(converted_to("run.pdrun"), std::pair(std::string("run-2.pdrun"), true));
  // One table exists: all four take another name together.
  test::write_file(folder / "u-lanes.csv", "mine");
  EXPECT_EQ(converted_to("u.csv"), std::pair(std::string("u-2-steps.csv"), true));
  EXPECT_TRUE(std::filesystem::exists(folder / "u-2-lanes.csv"));
  EXPECT_EQ(test::read_file(folder / "u-lanes.csv"), "mine");
}

// Stops at the first check, at the second, and so on until the work finishes before it.
TEST(TraceTool, an_interrupted_conversion_leaves_no_file) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  app::trace_convert(path, folder / "whole.json");
  const auto n_files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder / ""),
                         std::filesystem::directory_iterator());
  };
  const auto n_before = n_files();
  const std::vector<std::function<void(const app::StopRequested&)>> works = {
      [&](const app::StopRequested& stop) { app::trace_info(path, {}, stop); },
      [&](const app::StopRequested& stop) { app::trace_validate(path, stop); },
      [&](const app::StopRequested& stop) { app::trace_validate(folder / "whole.json", stop); },
      [&](const app::StopRequested& stop) {
        app::trace_convert(path, folder / "t.json", {.trace = {}, .csv = {}, .stop = stop});
      },
      [&](const app::StopRequested& stop) {
        app::trace_convert(path, folder / "t.csv", {.trace = {}, .csv = {}, .stop = stop});
      },
      [&](const app::StopRequested& stop) {
        app::trace_convert(path, folder / "t.txt", {.trace = {}, .csv = {}, .stop = stop});
      },
      [&](const app::StopRequested& stop) {
        app::trace_convert(path, folder / "t.pdrun", {.trace = {}, .csv = {}, .stop = stop});
      }};
  const int at_least[] = {1, 1, 1, 3, 5, 2, 2};  // number of checks
  for (std::size_t i = 0; i < works.size(); ++i) {
    int n_stopped = 0;
    for (bool done = false; !done; n_stopped += !done) {
      int asked = 0;
      try {
        works[i]([&] { return asked++ >= n_stopped; });
        done = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Cancelled) << error.what();
        EXPECT_EQ(n_files(), n_before) << i << " stopped at check " << n_stopped;
      }
    }
    EXPECT_GE(n_stopped, at_least[i]) << i;
    for (const char* name : {"t.json", "t.txt", "t.pdrun", "t-steps.csv", "t-tokens.csv",
                             "t-acceptance.csv", "t-lanes.csv"})
      std::filesystem::remove(folder / name);
    ASSERT_EQ(n_files(), n_before);
  }
}

TEST(TraceTool, a_long_recording_is_summarised_by_decoder) {
  const Folder folder;
  Recorder recorder(folder / "long.pdrun");
  for (RunId run = 1; run <= 20; ++run) {
    for (const Event& event : test::run_events({.run = run, .n_steps = 3})) recorder.push(event);
  }
  recorder.close();
  const app::TraceAnswer answer = app::trace_info(folder / "long.pdrun");
  EXPECT_THAT(answer.text, HasSubstr(", 20 runs\n"));
  EXPECT_THAT(answer.text, HasSubstr("  20     60  "));
  EXPECT_THAT(answer.text, HasSubstr("20 finished\n--json lists every run\n"));
  EXPECT_LT(std::count(answer.text.begin(), answer.text.end(), '\n'), 24);
  EXPECT_EQ(nlohmann::json::parse(answer.json)["runs"].size(), 20U);
}

TEST(TraceTool, a_trace_is_summarised_by_lane) {
  const Folder folder;
  test::write_file(folder / "t.json", R"({"traceEvents":[
    {"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"work"}},
    {"ph":"M","pid":2,"tid":3,"name":"thread_name","args":{"name":"work"}},
    {"ph":"X","pid":1,"tid":3,"ts":1,"dur":1,"name":"a"},
    {"ph":"X","pid":2,"tid":3,"ts":1,"dur":1,"name":"a"},
    {"ph":"i","pid":2,"tid":3,"ts":5,"s":"t","name":"b"},
    {"ph":"C","pid":2,"tid":9,"ts":5,"name":"c","args":{"c":1}}]})");
  EXPECT_THAT(app::trace_info(folder / "t.json").text,
              HasSubstr("6 events in 0.005 ms, 3 lanes in 2 processes\n\n"
                        "lane       slices  async ends  instants  counters  flow ends\n"
                        "all             2                     1         1\n"
                        "(no name)                                       1\n"
                        "work            2                     1\n"));
}

TEST(TraceTool, validate_prints_one_line_for_a_valid_file) {
  const Folder folder;
  const std::string path = record(folder, test::small_stream());
  app::trace_convert(path, folder / "t.json");
  for (const std::string& file : {path, folder / "t.json"}) {
    const std::string text = app::trace_validate(file).text;
    EXPECT_THAT(text, StartsWith(file + ": valid: a "));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }
}

TEST(TraceTool, validate_names_the_rules_a_foreign_trace_breaks) {
  const Folder folder;
  test::write_file(folder / "bad.json", R"({"traceEvents":[{"ph":"X","pid":1,"tid":0,"ts":1}]})");
  const app::TraceAnswer answer = app::trace_validate(folder / "bad.json");
  EXPECT_FALSE(answer.ok);
  EXPECT_THAT(answer.text, HasSubstr("event 0: tid-zero"));
  EXPECT_THAT(answer.text, HasSubstr("event 0: dur-missing"));
}

}  // namespace
}  // namespace engine
