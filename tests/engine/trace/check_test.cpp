#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

std::vector<std::string> rules_broken(const std::string& text) {
  std::vector<std::string> rules;
  for (const TraceProblem& problem : check_trace_text(text).problems) rules.push_back(problem.rule);
  return rules;
}

constexpr const char* kNames =
    R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"p"}},)"
    R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"t"}},)";

/// A trace with these events after the names: of no profile, or of PD-1.
std::string trace_of(const std::string& events) {
  return std::string("{\"traceEvents\":[") + kNames + events + "]}";
}
std::string profile_of(const std::string& events) {
  return std::string("{\"traceEvents\":[") + kNames + events +
         R"(],"metadata":{"profile":"PD-1","clock":"engine_steady"}})";
}

constexpr const char* kSlice = R"({"ph":"X","pid":1,"tid":1,"ts":10,"dur":5,"name":"a","args":{}})";

TEST(TraceCheck, a_valid_trace_has_no_problem) {
  const std::string events =
      std::string(kSlice) +
      R"(,{"ph":"s","pid":1,"tid":1,"ts":11,"cat":"token","name":"token","id":7})"
      R"(,{"ph":"f","pid":1,"tid":1,"ts":12,"cat":"token","name":"token","id":7,"bp":"e"})"
      R"(,{"ph":"C","pid":1,"tid":1,"ts":13,"name":"c","args":{"value":1.5}})"
      R"(,{"ph":"i","pid":1,"tid":1,"ts":14,"name":"i","s":"t"})"
      R"(,{"ph":"b","pid":1,"tid":1,"ts":15,"cat":"k","name":"b","id":1})"
      R"(,{"ph":"e","pid":1,"tid":1,"ts":16.125,"cat":"k","name":"b","id":1})";
  for (const std::string& text : {trace_of(events), profile_of(events)}) {
    EXPECT_THAT(rules_broken(text), IsEmpty());
    const TraceCheck check = check_trace_text(text);
    EXPECT_EQ(check.n_events, 9);
    EXPECT_EQ(check.n_slices, 1);
    EXPECT_EQ(check.n_flows, 2);
    EXPECT_EQ(check.n_async, 2);
    EXPECT_EQ(check.n_counters, 1);
    EXPECT_EQ(check.n_metadata, 2);
    EXPECT_DOUBLE_EQ(check.last_us, 16.125);
  }
}

struct Violation {
  const char* rule;
  std::string text;
};

std::vector<Violation> violations() {
  const auto x = [](const std::string& fields) { return trace_of("{" + fields + "}"); };
  const std::string slice(kSlice);
  const std::string flow_start =
      R"({"ph":"s","pid":1,"tid":1,"ts":11,"cat":"token","name":"token","id":7})";
  const std::string flow_end =
      R"({"ph":"f","pid":1,"tid":1,"ts":12,"cat":"token","name":"token","id":7,"bp":"e"})";
  return {
      {"beginning", "\xEF\xBB\xBF" + trace_of(slice)},
      {"no-events", "[]"},
      {"no-events", R"({"traceEvents":[]})"},
      {"no-list", R"({"metadata":{}})"},
      {"json", trace_of(slice).substr(0, 200)},
      {"json", x(R"("ph":"C","pid":1,"tid":1,"ts":1,"name":"c","args":{"v":NaN})")},
      {"json", x(R"("ph":"C","pid":1,"tid":1,"ts":1e400,"name":"c","args":{"v":1})")},
      {"json", x("\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"\xF0\"")},
      {"surrogate", x(R"("ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"\ud83d\ude00")")},
      {"event-type", trace_of("7")},
      {"event-type", trace_of("[1]")},
      {"ph-missing", x(R"("pid":1,"tid":1,"ts":1,"name":"a")")},
      {"ph-unknown", x(R"("ph":"Z","pid":1,"tid":1,"ts":1,"name":"a")")},
      {"pid", x(R"("ph":"i","tid":1,"ts":1,"name":"a")")},
      {"pid", x(R"("ph":"i","pid":"one","tid":1,"ts":1,"name":"a")")},
      {"tid", x(R"("ph":"i","pid":1,"tid":-1,"ts":1,"name":"a")")},
      {"tid", x(R"("ph":"i","pid":1,"tid":4294967296,"ts":1,"name":"a")")},
      {"tid-zero", x(R"("ph":"i","pid":1,"tid":0,"ts":1,"name":"a")")},
      {"ts-missing", x(R"("ph":"i","pid":1,"tid":1,"name":"a")")},
      {"ts-value", x(R"("ph":"i","pid":1,"tid":1,"ts":-1,"name":"a")")},
      {"ts-value", x(R"("ph":"i","pid":1,"tid":1,"ts":"5","name":"a")")},
      {"dur-missing", x(R"("ph":"X","pid":1,"tid":1,"ts":1,"name":"a")")},
      {"dur-value", x(R"("ph":"X","pid":1,"tid":1,"ts":1,"dur":-4,"name":"a")")},
      {"name-missing", x(R"("ph":"X","pid":1,"tid":1,"ts":1,"dur":1)")},
      {"duplicate-key", x(R"("ph":"X","pid":1,"tid":1,"ts":1,"ts":2,"dur":1,"name":"a")")},
      {"metadata-name", x(R"("ph":"M","pid":1,"tid":1,"name":"colour","args":{"name":"a"})")},
      {"metadata-args", x(R"("ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":3})")},
      {"instant-scope", x(R"("ph":"i","pid":1,"tid":1,"ts":1,"name":"a","s":"x")")},
      {"counter-args", x(R"("ph":"C","pid":1,"tid":1,"ts":1,"name":"a")")},
      {"counter-args", x(R"("ph":"C","pid":1,"tid":1,"ts":1,"name":"a","args":{"v":"1"})")},
      {"overlap", trace_of(slice + R"(,{"ph":"X","pid":1,"tid":1,"ts":12,"dur":5,"name":"b"})")},
      {"flow-no-slice",
       trace_of(R"({"ph":"s","pid":1,"tid":1,"ts":11,"cat":"token","name":"token","id":7},)" +
                flow_end)},
      {"flow-duplicate", trace_of(slice + "," + flow_start + "," + flow_start + "," + flow_end)},
      {"flow-no-end", trace_of(slice + "," + flow_start)},
      {"flow-no-start", trace_of(slice + "," + flow_end)},
      {"flow-id",
       trace_of(slice + R"(,{"ph":"s","pid":1,"tid":1,"ts":11,"name":"token","id":"0x7"})")},
      {"flow-bp",
       trace_of(slice + "," + flow_start +
                R"(,{"ph":"f","pid":1,"tid":1,"ts":12,"cat":"token","name":"token","id":7})")},
      {"flow-backwards",
       trace_of(slice + "," + flow_end +
                R"(,{"ph":"s","pid":1,"tid":1,"ts":13,"cat":"token","name":"token","id":7})")},
      {"async-id", x(R"("ph":"b","pid":1,"tid":1,"ts":1,"name":"a","cat":"k")")},
      {"async-no-end", x(R"("ph":"b","pid":1,"tid":1,"ts":1,"name":"a","cat":"k","id":1)")},
      {"async-no-begin", x(R"("ph":"e","pid":1,"tid":1,"ts":1,"name":"a","cat":"k","id":1)")},
      {"begin-no-end", x(R"("ph":"B","pid":1,"tid":1,"ts":1,"name":"a")")},
      {"end-no-begin", x(R"("ph":"E","pid":1,"tid":1,"ts":1)")},
      {"pd1-order",
       profile_of(slice + R"(,{"ph":"i","pid":1,"tid":1,"ts":10,"name":"b","s":"t"})")},
      {"pd1-decimals", profile_of(R"({"ph":"i","pid":1,"tid":1,"ts":10.0001,"name":"b"})")},
      {"pd1-names", profile_of(R"({"ph":"i","pid":1,"tid":2,"ts":1,"name":"b"})")},
      {"pd1-names", profile_of(R"({"ph":"i","pid":2,"tid":1,"ts":1,"name":"b"})")},
      {"pd1-async-nesting",
       profile_of(R"({"ph":"b","pid":1,"tid":1,"ts":1,"cat":"k","name":"a","id":1},)"
                  R"({"ph":"b","pid":1,"tid":1,"ts":2,"cat":"k","name":"a","id":2},)"
                  R"({"ph":"e","pid":1,"tid":1,"ts":3,"cat":"k","name":"a","id":1},)"
                  R"({"ph":"e","pid":1,"tid":1,"ts":4,"cat":"k","name":"a","id":2})")},
      {"pd1-metadata",
       R"({"traceEvents":[)" + std::string(kNames) + slice + R"(],"metadata":{"profile":"PD-1"}})"},
      {"pd1-count", R"({"traceEvents":[)" + std::string(kNames) + slice +
                        R"(],"metadata":{"profile":"PD-1","clock":"engine_steady","events":9}})"},
  };
}

TEST(TraceCheck, every_rule_detects_its_violation) {
  for (const Violation& violation : violations()) {
    EXPECT_THAT(rules_broken(violation.text), Contains(violation.rule)) << violation.text;
  }
}

TEST(TraceCheck, a_truncated_array_loads_and_an_object_does_not) {
  const std::string array = std::string("[") + kNames + kSlice;
  EXPECT_THAT(rules_broken(array), IsEmpty());
  EXPECT_EQ(check_trace_text(array).n_slices, 1);
  EXPECT_THAT(rules_broken("{\"traceEvents\":" + array), Contains("json"));
}

TEST(TraceCheck, empty_objects_are_skipped) {
  const TraceCheck check = check_trace_text(trace_of(std::string("{},") + kSlice));
  EXPECT_EQ(check.n_events, 3);
  EXPECT_TRUE(check.ok());
}

// TR06.
TEST(TraceCheck, deep_nesting_is_an_error) {
  EXPECT_THAT(rules_broken(std::string(100'000, '[')), Contains("json"));
  const std::string deep =
      R"({"traceEvents":[)" + std::string(kNames) + R"({"args":)" + std::string(100'000, '[');
  EXPECT_THAT(rules_broken(deep), Contains("json"));
  std::string objects = R"({"a":)";
  for (int i = 0; i < 1000; ++i) objects += R"({"a":)";
  EXPECT_THAT(rules_broken(objects), Contains("json"));
}

// TR07.
TEST(TraceCheck, odd_documents_are_reported_as_problems) {
  for (const char* text :
       {"", " ", "null", "1", "\"x\"", "{", "[1,", "[1]x", "{\"a\":}", "[\"\\x\"]", "[01]", "[1.]",
        "[+1]", "{\"a\":1,}", "[\"\x01\"]", "[1e]", "nul"}) {
    EXPECT_FALSE(check_trace_text(text).ok()) << text;
  }
}

TEST(TraceCheck, any_truncation_of_the_object_form_is_detected) {
  const std::string whole = profile_of(kSlice);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(check_trace_text(whole.substr(0, n)).ok()) << n;
  }
}

TEST(TraceCheck, many_problems_are_counted_and_100_listed) {
  std::string events = kSlice;
  for (int i = 0; i < 500; ++i) events += R"(,{"ph":"i"})";
  const TraceCheck check = check_trace_text(trace_of(events));
  EXPECT_EQ(check.n_problems, 1000);  // pid and tid
  EXPECT_EQ(check.problems.size(), kMaxTraceProblems);
}

// TR12.
TEST(TraceCheck, gz_names_without_gzip_content_are_refused) {
  const test::Folder folder;
  test::write_file(folder / "t.json.gz", trace_of(kSlice));
  EXPECT_THROW(check_trace(folder / "t.json.gz"), Error);
  test::write_file(folder / "t.json", "\x1F\x8B\x08 packed");
  EXPECT_FALSE(check_trace(folder / "t.json").ok()) << "gzip content without .gz is not unpacked";
}

}  // namespace
}  // namespace engine
