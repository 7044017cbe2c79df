#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "engine/trace/lane.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::Folder;
using ::testing::HasSubstr;
using ::testing::Not;

Timeline timeline_of(const std::vector<Event>& events) {
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  return timeline;
}

std::string first_problem(const TraceCheck& check) {
  return check.ok() ? "" : check.problems.front().rule + ": " + check.problems.front().what;
}

std::string trace_text(const Timeline& timeline, const TraceOptions& options = {}) {
  std::string text;
  write_trace(timeline, options, [&](std::string_view piece) { text += piece; });
  return text;
}

/// Two steps, blocks and samples: the smallest stream whose trace has every kind of event.
std::vector<Event> tiny_stream() {
  std::vector<Event> events{test::model_loaded()};
  for (Event& event : test::run_events({.n_steps = 2})) {
    const auto* ended = std::get_if<StepEnded>(&event);
    if (ended) {
      events.push_back(BlockRefined{.t = ended->t - 1,
                                    .run = 1,
                                    .step = ended->step,
                                    .iteration = ended->step,
                                    .first_pos = 3,
                                    .tokens = {7, 8},
                                    .n_final = ended->step,
                                    .converged = ended->step == 1});
      events.push_back(Sampled{.t = ended->t,
                               .period = 90'000,
                               .device = "cpu",
                               .busy_percent = 75.5,
                               .memory_bytes = 4096});
    }
    events.push_back(std::move(event));
  }
  return events;
}

/// The exit code of check_trace.py.
int independent_reader(const std::string& path) {
  const std::string script = DECOSCOPE_SOURCE_DIR "/tests/engine/trace/check_trace.py";
  return std::system(("python3 '" + script + "' '" + path + "' 2>&1").c_str());
}

TEST(TraceExport, an_independent_reader_finds_no_violation) {
  NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "python3 is missing");
  const Folder folder;
  std::vector<Event> events = tiny_stream();
  for (const RunId run : {2U, 3U}) {
    const test::RunShape shape{.run = run,
                               .decoder = run == 2 ? "ar" : "lookahead",
                               .race = 1,
                               .lane = static_cast<int>(run) - 2,
                               .n_steps = 300,
                               .finished = run == 2};
    for (Event& event : test::run_events(shape)) events.push_back(std::move(event));
  }
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  for (const char* name : {"trace.json", "trace.json.gz"}) {
    export_trace(timeline, folder / name);
    EXPECT_EQ(independent_reader(folder / name), 0) << name;
  }
  // A control for the reader: a slice that is too long overlaps the next one.
  std::string text = test::read_file(folder / "trace.json");
  const std::size_t at = text.find("\"dur\":80,");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, "\"dur\":150");
  test::write_file(folder / "bad.json", text);
  EXPECT_NE(independent_reader(folder / "bad.json"), 0);
}

/// The text that the commit slices of a trace hold, in order.
std::string text_in(const nlohmann::json& trace) {
  std::string text;
  for (const auto& event : trace.at("traceEvents"))
    if (event.value("cat", "") == "commit") text += event.at("args").value("text", "");
  return text;
}

TEST(TraceExport, an_independent_reader_accepts_any_text_of_tokens) {
  NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "python3 is missing");
  const Folder folder;
  std::string control;  // U+0000 to U+001F and U+007F
  for (char c = 0; c < 0x20; ++c) control += c;
  control += '\x7F';
  const std::pair<const char*, std::string> texts[] = {
      {"emoji", "\U0001F600\U0001F468\u200D\U0001F469"},
      {"cjk", "\u65E5\u672C\u8A9E\uD55C\uAE00\U00020000"},
      {"control", control},
      {"c1", "\u0085\u009B\u2028\u2029"},
      {"right to left", "\u05D0\u202E\u0628"},
      {"escapes", "\\ud83d \\n \" </script> \\"}};
  for (const auto& [kind, piece] : texts) {
    std::vector<Event> events = tiny_stream();
    for (Event& event : events) {
      if (auto* model = std::get_if<ModelLoaded>(&event)) model->pieces[7] = model->name = piece;
      if (auto* started = std::get_if<RunStarted>(&event)) started->prompt = piece;
    }
    const Timeline timeline = timeline_of(events);
    ASSERT_EQ(timeline.n_inconsistent(), 0);
    export_trace(timeline, folder / "t.json", {.prompt_text = true});
    EXPECT_EQ(independent_reader(folder / "t.json"), 0) << kind;
    EXPECT_TRUE(check_trace(folder / "t.json").ok()) << kind;
    const auto trace = nlohmann::json::parse(test::read_file(folder / "t.json"));
    EXPECT_THAT(text_in(trace), HasSubstr(piece)) << kind;
    EXPECT_EQ(trace["metadata"]["runs"][0]["prompt"], piece) << kind;
  }
  // Controls: what Perfetto or strict parsers refuse.
  export_trace(timeline_of(tiny_stream()), folder / "t.json");
  const std::string good = test::read_file(folder / "t.json");
  const std::pair<const char*, std::string> refused[] = {
      {"an escaped pair", "\\ud83d\\ude00"}, {"half of a pair", "\\udc00"},
      {"a raw control character", "\x01"},   {"a raw line feed", "\n"},
      {"invalid UTF-8", "\xF0\x9F"},         {"a surrogate in UTF-8", "\xED\xA0\x80"}};
  for (const auto& [what, bytes] : refused) {
    std::string bad = good;
    const std::string_view model = "\"model\":\"toy";
    const std::size_t at = bad.find(model);
    ASSERT_NE(at, std::string::npos);
    bad.insert(at + model.size(), bytes);
    test::write_file(folder / "bad.json", bad);
    EXPECT_NE(independent_reader(folder / "bad.json"), 0) << what;
  }
}

TEST(TraceExport, the_tiny_trace_equals_the_golden_file) {
  const std::string golden =
      std::string(DECOSCOPE_SOURCE_DIR) + "/tests/engine/trace/tiny_trace.json";
  std::string text = trace_text(timeline_of(tiny_stream()));
  // Only the program's version may differ.
  const std::size_t at = text.find("\"app_version\":\"");
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = at + std::string_view("\"app_version\":\"").size();
  text.replace(begin, text.find('"', begin) - begin, "VERSION");
  EXPECT_EQ(text, test::read_file(golden));
}

TEST(TraceExport, thread_samples_are_values_of_one_counter) {
  const Folder folder;
  std::vector<Event> events = tiny_stream();
  EXPECT_EQ(trace_text(timeline_of(events)).find("thread_busy_percent"), std::string::npos);
  const auto named = [](const std::string& text) {
    const std::string head = R"("name":"cpu_thread_busy_percent","args":)";
    const std::size_t at = text.find(head);
    return at == std::string::npos
               ? ""
               : text.substr(at + head.size(), text.find('}', at) + 1 - at - head.size());
  };
  for (Event& event : events) {
    if (auto* sample = std::get_if<Sampled>(&event)) sample->thread_busy_percent = {10.25, 0, 99.5};
  }
  EXPECT_EQ(named(trace_text(timeline_of(events))),
            R"({"thread 0":10.25,"thread 1":0,"thread 2":99.5})");
  export_trace(timeline_of(events), folder / "threads.json");
  const TraceCheck check = check_trace(folder / "threads.json");
  EXPECT_TRUE(check.ok()) << first_problem(check);
}

TEST(TraceExport, gpu_counters_exist_only_for_driver_values) {
  const Folder folder;
  std::vector<Event> events = tiny_stream();
  for (Event& event : events) {
    auto* sample = std::get_if<Sampled>(&event);
    if (!sample) continue;
    sample->device = "cuda:0";
    sample->gpu_memory_used_bytes = 123456;
    sample->gpu_clock_mhz = 1980;
    sample->absent = {{"gpu_power_w", "Not Supported"}};
  }
  const std::string text = trace_text(timeline_of(events));
  for (const char* counter : {R"("name":"gpu_busy_percent","args":{"value":75.5})",
                              R"("name":"gpu_mem_bytes","args":{"value":123456})",
                              R"("name":"gpu_clock_mhz","args":{"value":1980})",
                              R"("name":"cpu_mem_bytes","args":{"value":4096})"})
    EXPECT_NE(text.find(counter), std::string::npos) << counter;
  EXPECT_EQ(text.find("gpu_power_w"), std::string::npos);
  EXPECT_EQ(text.find("cpu_busy_percent"), std::string::npos);
  export_trace(timeline_of(events), folder / "gpu.json");
  const TraceCheck check = check_trace(folder / "gpu.json");
  EXPECT_TRUE(check.ok()) << first_problem(check);
}

TEST(TraceExport, an_exported_trace_breaks_no_rule) {
  const Folder folder;
  for (const char* name : {"trace.json", "trace.json.gz"}) {
    const TraceReport report = export_trace(timeline_of(tiny_stream()), folder / name);
    const TraceCheck check = check_trace(folder / name);
    EXPECT_TRUE(check.ok()) << first_problem(check);
    EXPECT_EQ(check.profile, "PD-1");
    EXPECT_EQ(check.n_events, report.n_events);
    EXPECT_EQ(check.n_flows, 2);
    EXPECT_EQ(check.n_async, 2);
    EXPECT_EQ(report.n_bytes, std::filesystem::file_size(folder / name));
    EXPECT_EQ(report.n_left_out, 0);
  }
}

TEST(TraceExport, draft_forwards_have_a_lane_beside_the_proposals) {
  std::vector<Event> events{test::model_loaded()};
  for (Event& event : test::run_events({.n_steps = 2})) {
    if (auto* drafted = std::get_if<Drafted>(&event))
      drafted->forwards = {{.begun = 100, .ended = 900, .n_rows = 1}, {1'000, 1'500, 4}};
    events.push_back(std::move(event));
  }
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const auto json = nlohmann::json::parse(trace_text(timeline));
  std::map<int, double> place;  // by lane
  std::map<int, std::string> lane;
  std::vector<nlohmann::json> forwards;
  for (const auto& event : json["traceEvents"]) {
    const int tid = event["tid"];
    if (event["name"] == "thread_sort_index") place[tid] = event["args"]["sort_index"];
    if (event["name"] == "thread_name") lane[tid] = event["args"]["name"];
    if (event.value("cat", "") == "draft") forwards.push_back(event);
  }
  ASSERT_EQ(forwards.size(), 4U);
  EXPECT_EQ(forwards[1]["name"], "draft forward 4");
  EXPECT_EQ(forwards[1]["args"]["level"], 2);
  EXPECT_EQ(forwards[1]["dur"], 0.5);
  const int own = forwards[0]["tid"];
  EXPECT_EQ(lane.at(own), "draft");
  for (const auto& [tid, name] : lane) {
    if (name == "propose") {
      EXPECT_GT(place.at(own), place.at(tid));
    } else if (name != "draft" && name != "phases" && name != "target") {
      EXPECT_LT(place.at(own), place.at(tid)) << name;
    }
  }
}

TEST(TraceExport, equal_times_are_shifted_counted_and_still_nested) {
  // Steps of one nanosecond leave hardly any room between times.
  std::vector<Event> events = test::small_stream();
  for (Event& event : events) {
    if (auto* e = std::get_if<StepBegun>(&event)) e->t = 1'060'000 + 2 * e->step;
    if (auto* e = std::get_if<Drafted>(&event)) e->t = 1'060'000 + 2 * e->step;
    if (auto* e = std::get_if<Verified>(&event)) e->t = 1'060'001 + 2 * e->step;
    if (auto* e = std::get_if<Committed>(&event)) e->t = 1'060'001 + 2 * e->step;
    if (auto* e = std::get_if<PoolChanged>(&event)) e->t = 1'060'001 + 2 * e->step;
    if (auto* e = std::get_if<StepEnded>(&event)) e->t = 1'060'001 + 2 * e->step;
  }
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const Folder folder;
  const TraceReport report = export_trace(timeline, folder / "dense.json");
  EXPECT_GT(report.n_nudges, 0);
  EXPECT_TRUE(check_trace(folder / "dense.json").ok());
  const auto json = nlohmann::json::parse(test::read_file(folder / "dense.json"));
  EXPECT_EQ(json["metadata"]["nudged_times"], report.n_nudges);
}

TEST(TraceExport, names_begin_with_the_token_status) {
  const std::string text = trace_text(timeline_of(tiny_stream()));
  EXPECT_THAT(text, HasSubstr("\"name\":\"verify accepted 2/2\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"verify rejected 0/2\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"pool hit 2\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"prefill\""));
}

TEST(TraceExport, text_is_utf8_and_invalid_bytes_are_named) {
  std::vector<Event> events = test::small_stream();
  auto& model = std::get<ModelLoaded>(events[0]);
  model.pieces[7] = "\xF0\x9F\x98\x80";
  model.pieces[8] = "\xF0";
  model.pieces[9] = "\x1B\"\\";
  const std::string text = trace_text(timeline_of(events));
  EXPECT_THAT(text, HasSubstr("\"text\":\"\xF0\x9F\x98\x80\""));
  EXPECT_THAT(text, HasSubstr("\"text\":\"<0xF0>\\u001b\\\"\\\\t10\""));
  EXPECT_TRUE(check_trace_text(text).ok());
}

TEST(TraceExport, the_prompt_is_exported_only_on_request) {
  const Timeline timeline = timeline_of(test::small_stream());
  const auto without = nlohmann::json::parse(trace_text(timeline))["metadata"]["runs"][0];
  EXPECT_FALSE(without.contains("prompt"));
  EXPECT_THAT(without["prompt_hash"].get<std::string>(), HasSubstr("fnv1a64:"));
  const auto with =
      nlohmann::json::parse(trace_text(timeline, {.prompt_text = true}))["metadata"]["runs"][0];
  EXPECT_EQ(with["prompt"], " the\"");
  EXPECT_EQ(with["method"], "lookahead");
  EXPECT_EQ(with["parameters"]["window"], "5");
  EXPECT_EQ(with["scale"], "1x1");
}

TEST(TraceExport, metadata_has_how_the_prompt_was_read) {
  std::vector<Event> events = test::small_stream();
  const auto metadata = [&](const TraceOptions& options) {
    return nlohmann::json::parse(trace_text(timeline_of(events), options))["metadata"]["runs"][0];
  };
  EXPECT_FALSE(metadata({}).contains("read_as")) << "an old recording does not have it";
  for (Event& event : events) {
    auto* started = std::get_if<RunStarted>(&event);
    if (started) started->read_as = ReadAs::Chat, started->system = "Be \"short\".";
  }
  EXPECT_EQ(metadata({})["read_as"], "chat");
  EXPECT_FALSE(metadata({}).contains("system")) << "a part of the prompt";
  EXPECT_EQ(metadata({.prompt_text = true})["system"], "Be \"short\".");
}

TEST(TraceExport, unverified_prompt_tokens_are_counted_not_exported) {
  std::vector<Event> events = test::small_stream();
  for (Event& event : events) {
    auto* started = std::get_if<RunStarted>(&event);
    if (started) started->first_approximate = 1, started->n_approximate = 1;
  }
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const auto run_of = [&](const TraceOptions& options) {
    const std::string text = trace_text(timeline, options);
    EXPECT_TRUE(check_trace_text(text).ok());
    return nlohmann::json::parse(text)["metadata"]["runs"][0];
  };
  const auto without = run_of({});
  EXPECT_EQ(without["first_approximate_prompt_token"], 1);
  EXPECT_EQ(without["approximate_prompt_tokens"], 1);
  EXPECT_FALSE(without.contains("approximate_prompt"));
  const std::vector<TokenId> second{timeline.run(1)->started.prompt_tokens[1]};
  EXPECT_EQ(run_of({.prompt_text = true})["approximate_prompt"],
            timeline.bytes_of(*timeline.run(1), second));
}

/// Events of a trace that have an argument of this name.
std::vector<nlohmann::json> events_with(const char* argument, const std::string& trace) {
  std::vector<nlohmann::json> found;
  const auto json = nlohmann::json::parse(trace);
  for (const auto& event : json["traceEvents"])
    if (event.contains("args") && event["args"].contains(argument)) found.push_back(event);
  return found;
}

TEST(TraceExport, unverified_output_is_separate_from_the_text) {
  std::vector<Event> events = test::small_stream();
  EXPECT_THAT(trace_text(timeline_of(events)), Not(HasSubstr("approximate")));
  for (Event& event : events) {
    if (auto* finished = std::get_if<RunFinished>(&event)) finished->approximate = {7, 8};
  }
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const std::string text = trace_text(timeline);
  EXPECT_TRUE(check_trace_text(text).ok());
  const auto reported = events_with("approximate", text);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0]["name"], "decode");
  EXPECT_EQ(reported[0]["args"]["approximate_tokens"], (std::vector<int>{7, 8}));
  EXPECT_EQ(reported[0]["args"]["approximate"],
            timeline.bytes_of(*timeline.run(1), std::vector<TokenId>{7, 8}));
}

TEST(TraceExport, run_counters_belong_to_the_decode_slice) {
  std::vector<Event> events = test::small_stream();
  for (Event& event : events) {
    if (auto* finished = std::get_if<RunFinished>(&event))
      finished->metrics = {{"first_hits", 3}, {"windows", 12}, {"rows_per_step", 2.5}};
  }
  const auto reported = events_with("metrics", trace_text(timeline_of(events)));
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0]["name"], "decode");
  EXPECT_EQ(reported[0]["args"]["metrics"],
            nlohmann::json({{"first_hits", 3}, {"windows", 12}, {"rows_per_step", 2.5}}));
}

TEST(TraceExport, probe_scores_belong_to_the_verify_slice) {
  std::vector<Event> events = test::small_stream();
  EXPECT_THAT(trace_text(timeline_of(events)), Not(HasSubstr("probe_scores")));
  int n_probed = 0;
  for (Event& event : events) {
    auto* verified = std::get_if<Verified>(&event);
    if (verified == nullptr || verified->fate.size() < 3) continue;
    n_probed++;
    verified->probe.assign(verified->fate.size(), -1);
    verified->probe[1] = 1.5F, verified->probe[2] = 0.5F;
  }
  ASSERT_GT(n_probed, 0);
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const std::string text = trace_text(timeline);
  EXPECT_TRUE(check_trace_text(text).ok());
  const auto reported = events_with("probe_scores", text);
  EXPECT_EQ(std::ssize(reported), n_probed);
  for (const auto& event : reported) {
    EXPECT_EQ(event["cat"], "verify");
    EXPECT_EQ(event["args"]["probe_scores"], (std::vector<double>{1.5, 0.5}));
  }
}

/// The start and end of a slice in us, by its name and step.
std::pair<double, double> span_of(const std::string& text, const std::string& name, int step) {
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != name || event["args"].value("step", -1) != step)
      continue;
    const double ts = event["ts"], dur = event["dur"];
    return {ts, ts + dur};
  }
  ADD_FAILURE() << name << " of step " << step << " is not in the trace";
  return {};
}

/// The arguments of a trace's counter of this name, in order.
std::vector<nlohmann::json> counter(const std::string& name, const std::string& trace) {
  std::vector<nlohmann::json> values;
  const auto json = nlohmann::json::parse(trace);
  for (const auto& event : json["traceEvents"])
    if (event["ph"] == "C" && event["name"] == name) values.push_back(event["args"]);
  return values;
}

TEST(TraceExport, chosen_sizes_are_counters_beside_their_results) {
  std::vector<Event> events = test::small_stream();
  EXPECT_THAT(trace_text(timeline_of(events)), Not(HasSubstr("choice_")));
  for (Event& event : events) {
    auto* drafted = std::get_if<Drafted>(&event);
    if (!drafted || drafted->step == 3) continue;  // no size was chosen for the last step
    drafted->decision = {.size = drafted->step,
                         .tokens = 1.7F,
                         .ms = 0.25F,
                         .plain_ms = drafted->step < 2 ? 0.2F : NAN};
  }
  for (const bool own_compute : {false, true}) {
    const std::string text = trace_text(timeline_of(events), {.own_compute = own_compute});
    const TraceCheck check = check_trace_text(text);
    EXPECT_TRUE(check.ok()) << first_problem(check);
    const auto sizes = counter("choice_size", text), tokens = counter("choice_tokens", text),
               ms = counter("choice_ms", text);
    ASSERT_EQ(sizes.size(), 2U) << "a time that is not a number is no choice";
    EXPECT_EQ(sizes[1], nlohmann::json({{"size", 1}, {"rows", 3}}));
    ASSERT_EQ(tokens.size(), 2U);
    EXPECT_EQ(tokens[0], nlohmann::json({{"expected", 1.7}, {"measured", 1}}));
    EXPECT_EQ(tokens[1], nlohmann::json({{"expected", 1.7}, {"measured", 3}}));
    ASSERT_EQ(ms.size(), 2U);
    EXPECT_EQ(ms[0],
              nlohmann::json({{"expected", 0.25}, {"measured", 0.0835}, {"plain step", 0.2}}));
  }
}

TEST(TraceExport, exchanges_between_ranks_end_the_forward) {
  std::vector<Event> events = test::small_stream();
  EXPECT_THAT(trace_text(timeline_of(events)), Not(HasSubstr("exchange")));
  for (Event& event : events)
    if (auto* verified = std::get_if<Verified>(&event))
      verified->exchange = {
          {.n_bytes = 96 + verified->step, .time = 25'000, .forward = {55'000, 70'000, 60'000}}};
  const Timeline timeline = timeline_of(events);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  for (const bool own_compute : {false, true}) {
    const std::string text = trace_text(timeline, {.own_compute = own_compute});
    const TraceCheck check = check_trace_text(text);
    EXPECT_TRUE(check.ok()) << first_problem(check);
    const auto forward = span_of(text, "forward 3", 1), exchange = span_of(text, "exchange", 1),
               wait = span_of(text, "wait ranks", 1);
    EXPECT_DOUBLE_EQ(exchange.second, forward.second);
    EXPECT_NEAR(exchange.second - exchange.first, 25, 1e-6);
    EXPECT_NEAR(wait.first, exchange.first, 0.0011) << "1 ns after the enclosing slice";
    EXPECT_NEAR(wait.second - exchange.first, 15, 1e-6) << "the slowest forward took 15 us more";
    const auto slices = events_with("rank_forward_us", text);
    ASSERT_EQ(slices.size(), 4U);
    EXPECT_EQ(slices[1]["args"]["bytes"], 97);
    EXPECT_EQ(slices[1]["args"]["rank_forward_us"], (std::vector<double>{55, 70, 60}));
    ASSERT_EQ(counter("exchanged_bytes", text).size(), 4U);
    EXPECT_EQ(counter("exchanged_bytes", text)[2]["value"], 98);
    EXPECT_EQ(counter("rank_wait_ms", text)[0],
              nlohmann::json({{"rank 0", 0.015}, {"rank 1", 0}, {"rank 2", 0.01}}));
  }
}

TEST(TraceExport, each_run_is_a_process_starting_at_zero) {
  std::vector<Event> events{test::model_loaded()};
  for (const RunId run : {1U, 2U}) {
    const auto own = test::run_events(
        {.run = run, .race = 1, .lane = static_cast<int>(run) - 1, .t0 = run * 50'000'000});
    events.insert(events.end(), own.begin(), own.end());
  }
  const Timeline timeline = timeline_of(events);
  const std::string text = trace_text(timeline);
  const TraceCheck check = check_trace_text(text);
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.n_processes, 2);
  EXPECT_LT(check.last_us, 1000);
  EXPECT_THAT(text, HasSubstr("A lookahead (race 1)"));
  EXPECT_THAT(trace_text(timeline, {.run = 2}), Not(HasSubstr("A lookahead")));
  EXPECT_THROW(trace_text(timeline, {.run = 3}), Error);
}

TEST(TraceExport, the_compute_clock_has_equal_compute) {
  const Timeline timeline = timeline_of(tiny_stream());
  // A step has 1 us propose, 80 us forward, 2 us verify and 0.5 us commit, so step 1 begins at 83.5 us.
  const std::string compute = trace_text(timeline, {.own_compute = true});
  EXPECT_EQ(span_of(compute, "forward 3", 0), std::pair(1.0, 81.0));
  EXPECT_EQ(span_of(compute, "forward 3", 1), std::pair(84.5, 164.5));
  EXPECT_THAT(compute, HasSubstr(R"("clock":"own_compute")"));
  EXPECT_THAT(compute, Not(HasSubstr("cpu_busy_percent"))) << "a sample has no such time";
  EXPECT_THAT(compute, HasSubstr("block converged"));
  const TraceCheck check = check_trace_text(compute);
  EXPECT_TRUE(check.ok()) << first_problem(check);
  const std::string wall = trace_text(timeline);
  EXPECT_THAT(wall, HasSubstr(R"("clock":"engine_steady")"));
  EXPECT_GT(span_of(wall, "forward 3", 0).first, 50.0) << "after the prefill";
}

TEST(TraceExport, a_step_range_is_exported_and_large_traces_warn) {
  const Timeline timeline = timeline_of(test::small_stream());
  const std::string text = trace_text(timeline, {.first_step = 1, .last_step = 2});
  EXPECT_THAT(text, Not(HasSubstr("\"step\":0")));
  EXPECT_THAT(text, HasSubstr("\"step\":1"));
  EXPECT_THAT(text, Not(HasSubstr("\"step\":3")));
  const Folder folder;
  const TraceReport report = export_trace(timeline, folder / "t.json", {.warn_above = 10});
  ASSERT_EQ(report.notices.size(), 1U);
  EXPECT_THAT(report.notices[0], HasSubstr("export a range"));
}

TEST(TraceExport, empty_sessions_and_failed_runs_are_exported) {
  EXPECT_TRUE(check_trace_text(trace_text(Timeline())).ok());
  std::vector<Event> events{test::model_loaded()};
  for (const Event& event : test::run_events({.n_steps = 1, .finished = false})) {
    events.push_back(event);
  }
  events.push_back(StepBegun{.t = 2'000'000, .run = 1, .step = 1});
  events.push_back(RunFailed{.t = 2'000'001, .run = 1, .code = 4, .message = "out of memory"});
  const std::string text = trace_text(timeline_of(events));
  EXPECT_TRUE(check_trace_text(text).ok());
  EXPECT_THAT(text, HasSubstr("\"failed\""));
}

/// A timeline whose trace needs many writes, compressed or not.
Timeline long_timeline() {
  std::vector<Event> events{test::model_loaded()};
  for (Event& event : test::run_events({.n_steps = 3'000})) events.push_back(std::move(event));
  return timeline_of(events);
}

// IO01.
TEST(TraceExport, a_full_disk_keeps_the_old_file) {
  const Timeline timeline = long_timeline();
  for (const char* name : {"t.json", "t.json.gz"}) {
    const Folder folder;
    int n_writes = 0;
    TraceOptions options;
    options.write = [&](int fd, const void* bytes, std::size_t size) -> ssize_t {
      ++n_writes;
      return ::write(fd, bytes, size);
    };
    export_trace(timeline, folder / name, options);
    ASSERT_GT(n_writes, 5) << name;
    const std::string old = test::read_file(folder / name);
    for (int n_good = 0; n_good < n_writes; ++n_good) {
      std::size_t n_bytes = 0;
      // A full disk accepts only part of the last write.
      options.write = [&, n = 0](int fd, const void* bytes, std::size_t size) mutable -> ssize_t {
        if (n == n_good + 1) return errno = ENOSPC, -1;
        const std::size_t part = n++ == n_good ? size / 2 : size;
        n_bytes += part;
        return ::write(fd, bytes, part);
      };
      try {
        export_trace(timeline, folder / name, options);
        FAIL() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Resources);
        EXPECT_THAT(error.what(), HasSubstr(folder / name));
        EXPECT_THAT(error.what(), HasSubstr("write: No space left on device after " +
                                            std::to_string(n_bytes) + " bytes"));
      }
      ASSERT_TRUE(test::read_file(folder / name) == old) << name << ", write " << n_good;
      const auto n_files = std::distance(std::filesystem::directory_iterator(folder / ""),
                                         std::filesystem::directory_iterator());
      ASSERT_EQ(n_files, 1) << "no partial file remains";
    }
  }
}

// IO03.
TEST(TraceExport, a_folder_is_refused_as_output) {
  const Folder folder;
  EXPECT_THROW(export_trace(timeline_of(tiny_stream()), folder / ""), Error);
}

TEST(TraceLane, settling_keeps_order_nesting_and_flows) {
  std::vector<TraceItem> lane{{.ts = 10, .end = 20, .name = "inner"},
                              {.ts = 10, .end = 40, .name = "outer"},
                              {.ph = 's', .ts = 50, .name = "outside"},
                              {.ph = 'i', .ts = 10, .name = "mark"},
                              {.ts = 30, .end = 99, .name = "too long"}};
  const LaneChanges changes = sort_and_nest(lane);
  ASSERT_EQ(lane.size(), 4U);
  EXPECT_EQ(lane[0].name, "outer");
  EXPECT_EQ(lane[0].ts, 10);
  for (std::size_t i = 1; i < lane.size(); ++i) EXPECT_GT(lane[i].ts, lane[i - 1].ts);
  EXPECT_EQ(lane[3].end, 40);
  EXPECT_EQ(changes.n_left_out, 1);
  EXPECT_EQ(changes.n_nudges, 2);
}

}  // namespace
}  // namespace engine
