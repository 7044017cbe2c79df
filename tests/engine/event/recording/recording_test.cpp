#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/serialise.h"
#include "tests/support/files.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::Folder;
using ::testing::HasSubstr;

/// A closed recording of about 20 KB and the end of each of its frames.
struct Recorded {
  std::string bytes;
  std::vector<Event> events;
  std::vector<std::size_t> frame_ends;  // [events]
};

Recorded recorded(int n_steps) {
  Recorded r;
  r.events = {test::model_loaded()};
  for (const Event& event : test::run_events({.n_steps = n_steps})) r.events.push_back(event);
  r.bytes = recording_header(1'700'000'000);
  std::uint32_t crcs = 0;
  for (const Event& event : r.events) {
    std::string body, crc;
    encode(event, body);
    put_u32(crc, put_frame(r.bytes, body));
    crcs = crc_of(crc, crcs);
    r.frame_ends.push_back(r.bytes.size());
  }
  std::string footer;
  put_u16(footer, kFooterKind);
  put_u64(footer, r.events.size());
  put_u32(footer, crcs);
  put_frame(r.bytes, footer);
  return r;
}

struct Loaded {
  std::vector<Event> events;
  RecordingReport report;
};

Loaded load(std::unique_ptr<ByteSource> source, const ReadLimits& limits = {}) {
  RecordingReader reader(std::move(source), limits);
  Loaded loaded;
  while (std::optional<Event> event = reader.next()) loaded.events.push_back(std::move(*event));
  loaded.report = reader.report();
  return loaded;
}

Loaded load(std::string bytes) {
  return load(in_memory(std::move(bytes)));
}

std::string refusal(std::string bytes) {
  try {
    load(std::move(bytes));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    return error.what();
  }
  return "accepted";
}

bool same(const Event& a, const Event& b) {
  std::string x, y;
  encode(a, x);
  encode(b, y);
  return x == y;
}

TEST(Recording, pushed_events_are_read_back) {
  const Folder folder;
  const std::vector<Event> events = test::every_kind();
  std::string path;
  {
    Recorder recorder(folder / "run.pdrun");
    path = recorder.path();
    for (const Event& event : events) recorder.push(event);
    recorder.close();
    EXPECT_FALSE(recorder.trouble().has_value());
  }
  EventList list;
  const RecordingReport report = read_recording(path, list);
  ASSERT_EQ(list.events.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_TRUE(same(events[i], list.events[i])) << i;
  EXPECT_TRUE(report.closed);
  EXPECT_TRUE(report.footer_agrees);
  EXPECT_TRUE(report.notices().empty());
  EXPECT_EQ(report.program_version, program_version());
}

// TR01.
TEST(Recording, a_cut_at_any_byte_keeps_every_whole_event) {
  const Recorded whole = recorded(48);
  ASSERT_GT(whole.bytes.size(), 18'000U);
  ASSERT_EQ(load(whole.bytes).events.size(), whole.events.size());
  std::size_t n_whole = 0;
  for (std::size_t cut = 0; cut < whole.bytes.size(); ++cut) {
    while (n_whole < whole.events.size() && whole.frame_ends[n_whole] <= cut) ++n_whole;
    const Loaded loaded = load(whole.bytes.substr(0, cut));
    ASSERT_EQ(loaded.events.size(), n_whole) << "cut at " << cut;
    const std::size_t last_end = n_whole > 0 ? whole.frame_ends[n_whole - 1] : 0;
    if (n_whole > 0) {
      ASSERT_EQ(loaded.report.incomplete_bytes, cut - last_end) << cut;
    }
    ASSERT_FALSE(loaded.report.closed);
    ASSERT_EQ(loaded.report.n_damaged, 0) << cut;
  }
  const Loaded loaded = load(whole.bytes.substr(0, whole.frame_ends[5] + 3));
  EXPECT_EQ(loaded.report.notices()[0], "last 3 bytes incomplete: the recording was cut off");
}

// TR03.
TEST(Recording, other_versions_and_headers_are_refused_by_name) {
  std::string bytes = recorded(1).bytes;
  EXPECT_THAT(refusal("hello, world"), HasSubstr("expected a Decoscope recording"));
  bytes[8] = 0;
  EXPECT_THAT(refusal(bytes), HasSubstr("version: found 0, expected 1 to 1"));
  bytes[8] = 99;
  EXPECT_THAT(refusal(bytes), HasSubstr("version: found 99, expected 1 to 1"));
}

// TR03.
TEST(Recording, unknown_kinds_are_counted_and_match_the_footer) {
  std::string bytes = recording_header(0);
  std::uint32_t crcs = 0;
  for (const std::string& body : {std::string("\x63\x00\x01z", 4), std::string("\x64\x00", 2)}) {
    std::string crc;
    put_u32(crc, put_frame(bytes, body));
    crcs = crc_of(crc, crcs);
  }
  std::string footer;
  put_u16(footer, kFooterKind), put_u64(footer, 2), put_u32(footer, crcs);
  put_frame(bytes, footer);
  const Loaded loaded = load(bytes);
  EXPECT_EQ(loaded.report.n_unknown_kinds, 2);
  EXPECT_TRUE(loaded.report.footer_agrees);
}

// TR06.
TEST(Recording, limits_end_reading_with_a_notice) {
  const Loaded loaded = load(in_memory(recorded(28).bytes), {.max_events = 10});
  EXPECT_EQ(loaded.events.size(), 10U);
  EXPECT_EQ(loaded.report.notices()[0], "reading ended after 10 events: limit of 10 events");
  const Loaded fewer = load(in_memory(recorded(28).bytes), {.max_bytes = 4096});
  EXPECT_THAT(fewer.report.stopped, HasSubstr("4096 bytes"));
}

TEST(Recording, reading_can_be_cancelled) {
  const Folder folder;
  const std::string path = folder / "long.pdrun";
  std::string bytes = recording_header(0), body;
  encode(Held{}, body);
  for (int i = 0; i < 20'000; ++i) put_frame(bytes, body);
  test::write_file(path, bytes);
  EventList list;
  const RecordingReport report =
      read_recording(path, list, {}, [](double fraction) { return fraction < 0.5; });
  EXPECT_EQ(report.stopped, "cancelled");
  EXPECT_LT(list.events.size(), 15'000U);
  EXPECT_GT(list.events.size(), 8'000U);
}

// TR09.
TEST(Recording, a_flipped_bit_costs_at_most_its_own_event) {
  const Recorded whole = recorded(48);
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = whole.bytes;
    const std::size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
    try {
      const Loaded loaded = load(bytes);
      ASSERT_GE(loaded.events.size() + 1, whole.events.size()) << "flip at " << at;
      ASSERT_FALSE(loaded.report.notices().empty()) << "flip at " << at << " went unnoticed";
    } catch (const Error&) {
      ASSERT_LT(at, 12U) << "only magic and version may refuse the file";
    }
  }
}

TEST(Recording, a_flipped_bit_of_the_header_costs_no_event) {
  for (const int n_steps : {1, 48}) {  // shorter and longer than the largest header
    const Recorded whole = recorded(n_steps);
    const std::size_t n_header = recording_header(0).size();
    for (std::size_t bit = 8 * 12; bit < 8 * n_header; ++bit) {
      std::string bytes = whole.bytes;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      const Loaded loaded = load(bytes);
      EXPECT_EQ(loaded.events.size(), whole.events.size()) << "bit " << bit;
      EXPECT_FALSE(loaded.report.notices().empty()) << "bit " << bit;
    }
  }
}

TEST(Recording, damage_in_several_places_keeps_the_rest) {
  Recorded whole = recorded(48);
  for (const std::size_t frame : {3, 9, 10, 40}) whole.bytes[whole.frame_ends[frame] - 1] ^= 1;
  const Loaded loaded = load(whole.bytes);
  EXPECT_EQ(loaded.events.size(), whole.events.size() - 4);
  EXPECT_EQ(loaded.report.n_damaged, 3);  // two neighbours are one gap
  EXPECT_TRUE(loaded.report.closed);
  EXPECT_FALSE(loaded.report.footer_agrees);
}

// TR12.
TEST(Recording, other_file_types_are_named_and_not_unpacked) {
  EXPECT_THAT(refusal("\x1F\x8B\x08 compressed bytes"), HasSubstr("gzip"));
  EXPECT_THAT(refusal("PK\x03\x04 archived bytes here"), HasSubstr("zip archive"));
  EXPECT_THAT(refusal("{\"traceEvents\":[]} and more"), HasSubstr("JSON"));
  EXPECT_THAT(refusal("GGUF and many more bytes"), HasSubstr("GGUF"));
}

TEST(Recording, hostile_lengths_allocate_nothing) {
  std::string bytes = recording_header(0);
  bytes += kFrameMarker;
  put_u32(bytes, 0xFFFF'FFFF);
  put_u32(bytes, 0);
  bytes += "rest";
  const Loaded loaded = load(bytes);
  EXPECT_TRUE(loaded.events.empty());
  EXPECT_EQ(loaded.report.incomplete_bytes, 14U);
}

/// Returns one byte at a time, or an error from some offset on.
class Trickle : public ByteSource {
 public:
  Trickle(std::string bytes, std::uint64_t broken_from)
      : bytes_(std::move(bytes)), broken_from_(broken_from) {}
  std::uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  std::size_t read_at(std::uint64_t offset, std::span<char> out) override {
    if (offset >= broken_from_) throw Error(ErrorCode::Resources, "trickle: read at byte: EIO");
    if (offset >= bytes_.size() || out.empty()) return 0;
    out[0] = bytes_[offset];
    return 1;
  }

 private:
  std::string bytes_, name_ = "trickle";
  std::uint64_t broken_from_;
};

// IO02.
TEST(Recording, short_reads_continue_and_errors_name_the_offset) {
  const Recorded whole = recorded(4);
  const Loaded loaded = load(std::make_unique<Trickle>(whole.bytes, whole.bytes.size()));
  EXPECT_EQ(loaded.events.size(), whole.events.size());
  EXPECT_THROW(load(std::make_unique<Trickle>(whole.bytes, 100)), Error);
}

TEST(Recording, a_non_regular_file_is_refused_without_waiting) {
  const Folder folder;
  EXPECT_THROW(open_file(folder / ""), Error);
  EXPECT_THROW(open_file("/dev/zero"), Error);
  EXPECT_THROW(open_file(folder / "absent.pdrun"), Error);
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(open_file(pipe), Error);
}

// TR10.
TEST(Recorder, a_second_recorder_takes_a_new_name_or_refuses) {
  const Folder folder;
  Recorder one(folder / "run.pdrun");
  Recorder two(folder / "run.pdrun");
  EXPECT_EQ(two.path(), folder / "run-2.pdrun");
  using enum RecorderOptions::IfExists;
  EXPECT_THROW(Recorder(folder / "run.pdrun", {.if_exists = Refuse}), Error);
  one.push(Held{.held = true});
  two.push(Notice{.text = "two"});
  one.close(), two.close();
  EXPECT_EQ(load(open_file(one.path())).events.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Notice>(load(open_file(two.path())).events.at(0)));
}

TEST(Recorder, flushes_within_its_interval_without_further_events) {
  const Folder folder;
  Recorder recorder(folder / "quiet.pdrun");
  recorder.push(Held{});
  const auto begun = std::chrono::steady_clock::now();
  std::size_t n_events = 0;
  while (n_events == 0 && std::chrono::steady_clock::now() - begun < std::chrono::seconds(10)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    n_events = load(open_file(recorder.path())).events.size();
  }
  const auto waited = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(n_events, 1U);
  EXPECT_LT(waited,
            std::chrono::seconds(2));  // the contract says 100 ms; a loaded machine takes longer
}

// IO01.
TEST(Recorder, a_full_disk_ends_only_the_recording) {
  const Folder folder;
  for (int n_good = 0; n_good < 4; ++n_good) {
    EventList window;
    RecordingTap tap(window);
    RecorderOptions options{.flush_bytes = 1, .flush_ms = 1};
    options.write = [n = 0, n_good](int fd, const void* bytes,
                                    std::size_t size) mutable -> ssize_t {
      if (n++ < n_good) return ::write(fd, bytes, std::max<std::size_t>(size / 2, 1));
      errno = ENOSPC;
      return -1;
    };
    const std::string path = folder / ("full" + std::to_string(n_good) + ".pdrun");
    tap.record_to(path, options);
    int n_pushed = 0;
    for (; tap.recording() && n_pushed < 20'000; ++n_pushed) {
      tap.push(Held{.t = n_pushed});
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    tap.push(Held{.t = 1});
    EXPECT_FALSE(tap.recording());
    std::string notice_text;
    std::size_t n_held = 0;
    for (const Event& event : window.events) {
      if (const auto* notice = std::get_if<Notice>(&event)) notice_text = notice->text;
      n_held += std::holds_alternative<Held>(event) ? 1 : 0;
    }
    EXPECT_EQ(n_held, static_cast<std::size_t>(n_pushed) + 1) << "every event reached the window";
    EXPECT_THAT(notice_text, HasSubstr("No space left"));
    EXPECT_THAT(notice_text, HasSubstr("recording is off"));
    EXPECT_THAT(notice_text, HasSubstr(path));
    EXPECT_FALSE(std::filesystem::exists(path))
        << "a partial recording must not have the final name";
    if (n_good > 1) {
      EXPECT_NO_THROW(load(open_file(partial_name(path))));
    }
  }
}

TEST(Recorder, a_slow_disk_drops_payload_first_and_reports_it) {
  const Folder folder;
  std::atomic<bool> stuck = true, writing = false;
  RecorderOptions options{.flush_bytes = 1, .flush_ms = 1, .max_pending_payload_bytes = 4'000};
  options.write = [&](int fd, const void* bytes, std::size_t size) -> ssize_t {
    writing = true;
    while (stuck) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ::write(fd, bytes, size);
  };
  Recorder recorder(folder / "slow.pdrun", options);
  for (const Event& event : test::small_stream()) recorder.push(event);
  // Wait until the writer has taken the first event: only then is the amount pending after it
  // fixed.
  while (!writing) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const Event& event : test::run_events({.run = 2, .n_steps = 100})) recorder.push(event);
  stuck = false;
  recorder.close();
  EXPECT_FALSE(recorder.trouble().has_value());
  Timeline timeline;
  EXPECT_TRUE(load_recording(recorder.path(), timeline).footer_agrees);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  const RunRecord& run = *timeline.run(2);
  EXPECT_EQ(run.steps.size(), 100U);
  EXPECT_EQ(run.tokens.size(), 200U);
  ASSERT_FALSE(run.dropped.empty());
  const PayloadDropped* drop = run.dropped_at(PayloadKind::Probabilities, 99);
  ASSERT_TRUE(drop);
  EXPECT_GT(drop->first_step, 0);
  EXPECT_GT(drop->n_bytes, 0);
  EXPECT_TRUE(run.steps[99].verified.logp.empty());
}

// IO03.
TEST(Recorder, a_missing_folder_is_named_in_the_error) {
  const Folder folder;
  try {
    Recorder recorder(folder / "absent/run.pdrun");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    EXPECT_THAT(error.what(), HasSubstr("absent/run.pdrun"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(RecordingTap, a_recording_started_late_has_the_whole_run) {
  const Folder folder;
  EventList window;
  RecordingTap tap(window);
  const std::vector<Event> events = test::small_stream();
  const std::size_t late = events.size() / 2;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i == late) tap.record_to(folder / "late.pdrun");
    tap.push(events[i]);
  }
  const std::string path = tap.path();
  tap.record_to("");
  EXPECT_FALSE(tap.recording());
  Timeline timeline;
  EXPECT_TRUE(load_recording(path, timeline).closed);
  ASSERT_EQ(timeline.runs().size(), 1U);
  EXPECT_TRUE(timeline.runs()[0].finished.has_value());
  EXPECT_EQ(timeline.text_of(timeline.runs()[0], 1), " the");
}

TEST(Recording, concurrent_appends_keep_every_event_in_order) {
  const Folder folder;
  Recorder recorder(folder / "many.pdrun", {.flush_bytes = 512, .flush_ms = 1});
  for (StepId step = 0; step < 20'000; ++step) recorder.push(StepBegun{.t = step, .step = step});
  recorder.close();
  const Loaded loaded = load(open_file(recorder.path()));
  ASSERT_EQ(loaded.events.size(), 20'000U);
  EXPECT_EQ(std::get<StepBegun>(loaded.events.back()).step, 19'999);
  EXPECT_EQ(recorder.n_bytes_written(), std::filesystem::file_size(recorder.path()));
}

}  // namespace
}  // namespace engine
