// Tests with large recordings, which are too slow for the label `fast`.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/event/recording/recording.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/serialise.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

/// A header followed by one block repeated, cut off after `size` bytes; nothing is copied.
class Endless : public ByteSource {
 public:
  Endless(std::string_view head, std::string_view block, std::uint64_t size)
      : head_(head), block_(block), size_(size) {}
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  std::size_t read_at(std::uint64_t offset, std::span<char> out) override {
    std::size_t n = 0;
    while (n < out.size() && offset + n < size_) {
      const std::string_view rest = at(offset + n);
      const std::size_t more =
          std::min<std::uint64_t>({rest.size(), out.size() - n, size_ - offset - n});
      std::memcpy(out.data() + n, rest.data(), more);
      n += more;
    }
    return n;
  }

 private:
  std::string_view at(std::uint64_t offset) const {
    if (offset < head_.size()) return head_.substr(offset);
    return block_.substr((offset - head_.size()) % block_.size());
  }

  std::string_view head_, block_;  // owned by the test
  std::uint64_t size_;
  std::string name_ = "endless.pdrun";
};

void put(std::string& bytes, const Event& event) {
  std::string body;
  encode(event, body);
  put_frame(bytes, body);
}

/// A verification of a tree of 150 rows.
Verified verified_tree(int n) {
  Verified event{.t = n, .run = 1, .step = n};
  for (int row = 0; row < 150; ++row) {
    event.fate.push_back(row % 3 ? RowFate::Rejected : RowFate::Accepted);
    event.picked.push_back(n + row);
    for (auto* values : {&event.logp, &event.margin, &event.uniform, &event.keep}) {
      values->push_back(0.25f * static_cast<float>(row));
    }
  }
  return event;
}

// Cuts at every byte; under ThreadSanitizer at every sixteenth, because this single-threaded test
// takes ten minutes there.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kCutStride = 4 * 16 + 1;
#else
constexpr std::size_t kCutStride = 4;
#endif

/// Four parts that can run in parallel.
class Cuts : public testing::TestWithParam<int> {};

// TR01.
TEST_P(Cuts, at_any_byte_of_200_kb_keep_every_whole_event) {
  std::string bytes = recording_header(0);
  std::vector<std::size_t> ends;
  for (int n = 0; bytes.size() < 200'000; ++n) {
    put(bytes, verified_tree(n));
    ends.push_back(bytes.size());
  }
  const std::size_t n_header = recording_header(0).size();
  for (std::size_t cut = static_cast<std::size_t>(GetParam()); cut < bytes.size();
       cut += kCutStride) {
    const auto n_whole =
        static_cast<std::int64_t>(std::ranges::upper_bound(ends, cut) - ends.begin());
    RecordingReader reader(std::make_unique<Endless>(bytes, "", cut));
    int n_read = 0;
    while (const std::optional<Event> event = reader.next()) {
      ASSERT_EQ(std::get<Verified>(*event).picked.back(), n_read + 149);
      ++n_read;
    }
    const RecordingReport& report = reader.report();
    ASSERT_EQ(n_read, n_whole) << "cut at " << cut;
    ASSERT_EQ(report.n_damaged, 0) << cut;
    ASSERT_FALSE(report.closed);
    const std::size_t last_end =
        n_whole > 0 ? ends[static_cast<std::size_t>(n_whole) - 1] : n_header;
    if (cut > last_end) {
      ASSERT_EQ(report.notices()[0], "last " + std::to_string(cut - last_end) +
                                         " bytes incomplete: the recording was cut off");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, Cuts, testing::Range(0, 4));

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // a sanitizer keeps freed memory
#else
constexpr bool kSanitized = false;
#endif

/// Peak memory of this process, in bytes.
std::int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// TR06.
TEST(Recording, ten_million_events_need_a_few_megabytes) {
  const std::string header = recording_header(0);
  std::string block;
  int n_in_block = 0;
  for (const Event& event : test::run_events({.decoder = "ar", .n_steps = 100})) {
    put(block, event);
    ++n_in_block;
  }
  const std::uint64_t n_blocks = 10'000'000 / static_cast<std::uint64_t>(n_in_block) + 2;
  const std::uint64_t size = header.size() + n_blocks * block.size();
  ReadLimits limits;
  ASSERT_EQ(limits.max_events, 10'000'000);
  ASSERT_LT(size, limits.max_bytes);
  RecordingReader reader(std::make_unique<Endless>(header, block, size), limits);
  for (int n = 0; n < n_in_block; ++n) ASSERT_TRUE(reader.next().has_value());
  const std::int64_t before = peak_bytes();
  std::int64_t n_events = n_in_block;
  while (reader.next()) ++n_events;
  EXPECT_EQ(n_events, 10'000'000);
  EXPECT_EQ(reader.report().n_damaged, 0);
  EXPECT_EQ(reader.report().notices()[0],
            "reading ended after 10000000 events: limit of 10000000 events");
  if (kSanitized) return;
  EXPECT_LT(peak_bytes() - before, 4 << 20);
}

}  // namespace
}  // namespace engine
