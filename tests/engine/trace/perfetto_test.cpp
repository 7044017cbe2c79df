// Traces in Perfetto's format against the JSON traces of the same runs, and against Perfetto's own
// trace processor where it is installed.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "engine/trace/perfetto/fields.h"
#include "tests/support/files.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using perfetto::EventField;
using perfetto::PacketField;
using protozero::pbf_builder;
using protozero::pbf_message;
using test::Folder;
using testing::HasSubstr;

/// Two runs of a race with blocks, and samples; tokens with an emoji, CJK and a control character.
Timeline timeline_with_every_kind() {
  Timeline timeline;
  auto model = std::get<ModelLoaded>(test::model_loaded());
  for (std::size_t i = 0; i < model.pieces.size(); ++i)
    model.pieces[i] = i % 3 == 0 ? "\xF0\x9F\x98\x80" : i % 3 == 1 ? "\xE6\x97\xA5" : "\x01\n\"";
  timeline.apply(model);
  for (const RunId run : {1U, 2U}) {
    for (engine::Event& event : test::run_events({.run = run,
                                .decoder = run == 1 ? "ar" : "lookahead",
                                .race = 1,
                                .lane = static_cast<int>(run) - 1,
                                .n_steps = 20})) {
      if (const auto* ended = std::get_if<StepEnded>(&event)) {
        const StepId step = ended->step;
        timeline.apply(BlockRefined{.t = ended->t - 1,
                                    .run = run,
                                    .step = step,
                                    .block = static_cast<int>(step / 4),
                                    .iteration = step % 4,
                                    .first_pos = 3,
                                    .tokens = {1, 2},
                                    .n_final = 0,
                                    .converged = step % 4 == 3});
        timeline.apply(Sampled{.t = ended->t,
                               .period = 90'000,
                               .device = "cpu",
                               .busy_percent = 75.5,
                               .thread_busy_percent = {10, 90},
                               .memory_bytes = 4096});
      }
      if (auto* drafted = std::get_if<Drafted>(&event); drafted && run == 2)
        drafted->decision = {.size = 2, .tokens = 2.5F, .ms = 0.25F, .plain_ms = 0.125F};
      if (auto* verified = std::get_if<Verified>(&event); verified && run == 2)
        verified->exchange = {{.n_bytes = 96, .time = 20'000, .forward = {60'000, 70'000}}};
      timeline.apply(event);
    }
  }
  return timeline;
}

TEST(PerfettoTrace, has_the_events_of_the_json_trace) {
  const Folder folder;
  const Timeline timeline = timeline_with_every_kind();
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  export_trace(timeline, folder / "t.json");
  export_trace(timeline, folder / "t.pftrace");
  export_trace(timeline, folder / "t.pftrace.gz");
  const TraceCheck json = check_trace(folder / "t.json");
  for (const char* name : {"t.pftrace", "t.pftrace.gz"}) {
    const TraceCheck found = check_trace(folder / name);
    EXPECT_TRUE(found.ok()) << found.problems.front().what;
    EXPECT_GT(found.n_slices, 0);
    EXPECT_EQ(found.n_slices, json.n_slices);
    EXPECT_GT(found.n_async, 0);
    EXPECT_EQ(found.n_async, json.n_async);
    EXPECT_EQ(found.n_instants, json.n_instants);
    EXPECT_GT(found.n_flows, 0);
    EXPECT_EQ(found.n_flows, json.n_flows);
    EXPECT_GT(found.n_counters, json.n_counters);  // one track for each thread
    EXPECT_EQ(found.n_processes, json.n_processes);
    EXPECT_EQ(found.profile, "PD-1");
    EXPECT_DOUBLE_EQ(found.last_us, json.last_us);
  }
  EXPECT_LT(test::read_file(folder / "t.pftrace.gz").size(),
            test::read_file(folder / "t.pftrace").size());
}

/// The names of the tracks of a trace.
std::vector<std::string> track_names(const std::string& bytes) {
  std::vector<std::string> names;
  pbf_message<perfetto::TraceField> trace(bytes);
  while (trace.next()) {
    pbf_message<PacketField> packet = trace.get_message();
    while (packet.next(PacketField::TrackDescriptor, protozero::pbf_wire_type::length_delimited)) {
      pbf_message<perfetto::TrackField> track = packet.get_message();
      while (track.next(perfetto::TrackField::Name, protozero::pbf_wire_type::length_delimited))
        names.push_back(track.get_string());
    }
  }
  return names;
}

TEST(PerfettoTrace, choices_and_exchanges_have_tracks) {
  const Folder folder;
  export_trace(timeline_with_every_kind(), folder / "t.pftrace");
  const std::vector<std::string> names = track_names(test::read_file(folder / "t.pftrace"));
  for (const char* name :
       {"choice_size size", "choice_size rows", "choice_tokens expected", "choice_tokens measured",
        "choice_ms expected", "choice_ms measured", "choice_ms plain step", "exchanged_bytes",
        "rank_wait_ms rank 0", "rank_wait_ms rank 1"})
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
}

/// Some fields of an event.
struct FoundEvent {
  std::string name, text;  // of the annotation "text"
  std::uint64_t correlation = 0;
  std::vector<std::uint64_t> starts, ends;
};

FoundEvent event_in(pbf_message<EventField> message) {
  FoundEvent found;
  while (message.next()) {
    if (message.tag() == EventField::Name) {
      found.name = message.get_string();
    } else if (message.tag() == EventField::CorrelationId) {
      found.correlation = message.get_uint64();
    } else if (message.tag() == EventField::FlowIds) {
      found.starts.push_back(message.get_fixed64());
    } else if (message.tag() == EventField::TerminatingFlowIds) {
      found.ends.push_back(message.get_fixed64());
    } else if (message.tag() == EventField::DebugAnnotations) {
      pbf_message<perfetto::AnnotationField> entry = message.get_message();
      std::string name, value;
      while (entry.next()) {
        if (entry.tag() == perfetto::AnnotationField::Name)
          name = entry.get_string();
        else if (entry.tag() == perfetto::AnnotationField::String)
          value = entry.get_string();
        else
          entry.skip();
      }
      if (name == "text") found.text = value;
    } else {
      message.skip();
    }
  }
  return found;
}

std::vector<FoundEvent> events_in(const std::string& bytes) {
  std::vector<FoundEvent> events;
  pbf_message<perfetto::TraceField> trace(bytes);
  while (trace.next()) {
    pbf_message<PacketField> packet = trace.get_message();
    while (packet.next()) {
      if (packet.tag() == PacketField::TrackEvent)
        events.push_back(event_in(packet.get_message()));
      else
        packet.skip();
    }
  }
  return events;
}

TEST(PerfettoTrace, slices_of_a_step_have_one_correlation_id_and_the_text) {
  const Folder folder;
  Timeline timeline;
  timeline.apply(test::model_loaded());
  for (const engine::Event& event : test::run_events({.n_steps = 2})) timeline.apply(event);
  export_trace(timeline, folder / "t.pftrace");
  std::map<std::uint64_t, int> slices;
  std::vector<std::uint64_t> starts, ends;
  std::string texts;
  for (const FoundEvent& event : events_in(test::read_file(folder / "t.pftrace"))) {
    if (event.correlation != 0) ++slices[event.correlation];
    EXPECT_TRUE(event.starts.empty() || event.name.starts_with("propose")) << event.name;
    EXPECT_TRUE(event.ends.empty() || event.name.starts_with("commit")) << event.name;
    starts.insert(starts.end(), event.starts.begin(), event.starts.end());
    ends.insert(ends.end(), event.ends.begin(), event.ends.end());
    if (event.name.starts_with("commit")) texts += event.text;
  }
  ASSERT_EQ(slices.size(), 2u);
  for (const auto& [id, n] : slices) EXPECT_GE(n, 4);  // propose, target, verify, commit
  EXPECT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts, ends);
  const RunRecord& run = timeline.runs().front();
  std::vector<TokenId> ids;
  for (const TokenRecord& token : run.tokens) ids.push_back(token.id);
  EXPECT_EQ(texts, timeline.text_of(run, ids));
}

TEST(PerfettoTrace, a_timeline_without_runs_makes_a_valid_trace) {
  const Folder folder;
  export_trace(Timeline(), folder / "t.pftrace");
  const TraceCheck check = check_trace(folder / "t.pftrace");
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.n_events, 1);
}

/// A trace made by hand: one track, 7, and events.
struct HandMade {
  std::string bytes;

  HandMade() {
    pbf_builder<perfetto::TraceField> trace(bytes);
    pbf_builder<PacketField> packet(trace, perfetto::TraceField::Packet);
    pbf_builder<perfetto::TrackField> track(packet, PacketField::TrackDescriptor);
    track.add_uint64(perfetto::TrackField::Uuid, 7);
  }
  void event(std::uint64_t t,
             int type,
             std::uint64_t start = 0,
             std::uint64_t end = 0,
             std::uint64_t track = 7) {
    pbf_builder<perfetto::TraceField> trace(bytes);
    pbf_builder<PacketField> packet(trace, perfetto::TraceField::Packet);
    packet.add_uint64(PacketField::Timestamp, t);
    pbf_builder<EventField> event(packet, PacketField::TrackEvent);
    event.add_enum(EventField::Type, type);
    event.add_uint64(EventField::TrackUuid, track);
    if (start != 0) event.add_fixed64(EventField::FlowIds, start);
    if (end != 0) event.add_fixed64(EventField::TerminatingFlowIds, end);
  }
};

/// The rule that a trace violates; "" if it is valid.
std::string violated(const std::string& bytes) {
  const Folder folder;
  test::write_file(folder / "t.pftrace", bytes);
  const TraceCheck check = check_trace(folder / "t.pftrace");
  return check.ok() ? "" : check.problems.front().rule;
}

TEST(PerfettoTrace, violations_are_found) {
  EXPECT_EQ(violated(""), "no-events");
  HandMade good;
  EXPECT_EQ(violated(good.bytes), "");
  good.event(5, perfetto::kSliceBegin, 1);
  EXPECT_EQ(violated(good.bytes), "nesting");
  good.event(6, perfetto::kSliceEnd);
  EXPECT_EQ(violated(good.bytes), "flow");
  good.event(7, perfetto::kInstant, 0, 1);
  EXPECT_EQ(violated(good.bytes), "");
  HandMade bad = good;
  bad.event(6, perfetto::kInstant);
  EXPECT_EQ(violated(bad.bytes), "order");
  bad = good;
  bad.event(8, perfetto::kSliceEnd);
  EXPECT_EQ(violated(bad.bytes), "nesting");
  bad = good;
  bad.event(8, perfetto::kInstant, 0, 0, 8);
  EXPECT_EQ(violated(bad.bytes), "track");
  bad = good;
  bad.event(8, perfetto::kInstant, 1);
  EXPECT_EQ(violated(bad.bytes), "flow");
}

TEST(PerfettoTrace, any_bytes_are_read_without_a_crash) {
  const Folder folder;
  export_trace(timeline_with_every_kind(), folder / "t.pftrace");
  const std::string whole = test::read_file(folder / "t.pftrace");
  for (std::size_t n = 1; n < whole.size(); n += whole.size() / 40) {
    test::write_file(folder / "part.pftrace", whole.substr(0, n));
    check_trace(folder / "part.pftrace");
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x55);
    test::write_file(folder / "part.pftrace", changed);
    check_trace(folder / "part.pftrace");
  }
  test::write_file(folder / "cut.pftrace", whole.substr(0, whole.size() - 3));
  EXPECT_EQ(check_trace(folder / "cut.pftrace").problems.front().rule, "format");
  test::write_file(folder / "text.pftrace", "not a trace");
  EXPECT_EQ(check_trace(folder / "text.pftrace").problems.front().rule, "format");
  test::write_file(folder / "large.pftrace", "\x0A\xFF\xFF\xFF\xFF\x0F");  // a packet of 4 GB
  EXPECT_EQ(check_trace(folder / "large.pftrace").problems.front().rule, "format");
}

// The trace processor is Perfetto's importer; no package has it, so a machine may have it or not.
TEST(PerfettoTrace, the_trace_processor_imports_traces_without_an_error) {
  if (std::system("command -v trace_processor_shell >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "Perfetto's trace_processor_shell is not installed";
  const Folder folder;
  const Timeline timeline = timeline_with_every_kind();
  test::write_file(
      folder / "errors.sql",
      "select name, value from stats where severity in ('error', 'data_loss') and value > 0;\n"
      "select 'slices', count(*) from slice;");
  for (const char* name : {"t.json", "t.json.gz", "t.pftrace", "t.pftrace.gz"}) {
    export_trace(timeline, folder / name);
    const std::string command = fmt::format("trace_processor_shell -q '{}' '{}' >'{}' 2>/dev/null",
                                            folder / "errors.sql", folder / name, folder / "out");
    ASSERT_EQ(std::system(command.c_str()), 0) << name;
    EXPECT_EQ(test::read_file(folder / "out").find("_errors"), std::string::npos)
        << test::read_file(folder / "out");
    EXPECT_THAT(test::read_file(folder / "out"), HasSubstr("slices"));
  }
}

}  // namespace
}  // namespace engine
