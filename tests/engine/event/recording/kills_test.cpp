// Processes killed while they write a recording or replace a whole file.
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/output_file.h"
#include "engine/event/clock.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/serialise.h"
#include "tests/support/child_process.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using test::Folder;
using test::Victim;

std::vector<Event> events_in(std::string bytes, RecordingReport* report = nullptr) {
  RecordingReader reader(in_memory(std::move(bytes)));
  std::vector<Event> events;
  while (std::optional<Event> event = reader.next()) events.push_back(std::move(*event));
  if (report) *report = reader.report();
  return events;
}

/// The bytes after the header of an endless recording of steps.
class EndlessSteps {
 public:
  static Event step(StepId n) { return StepBegun{.t = n, .run = 1, .step = n}; }
  /// Number of frames that end within the first n bytes.
  std::size_t whole_frames(std::size_t n_bytes) {
    grow(n_bytes);
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, n_bytes) - ends_.begin());
  }
  bool begins_with(std::string_view bytes) {
    grow(bytes.size());
    return std::string_view(bytes_).substr(0, bytes.size()) == bytes;
  }

 private:
  void grow(std::size_t n_bytes) {
    while (bytes_.size() < n_bytes) {
      std::string body;
      encode(step(static_cast<StepId>(ends_.size())), body);
      put_frame(bytes_, body);
      ends_.push_back(bytes_.size());
    }
  }
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

/// Records until killed, in writes of random sizes. Writes a byte to `ready` after the fourth
/// write.
[[noreturn]] void record_for_ever(const std::string& path, int ready, unsigned seed) {
  RecorderOptions options{.flush_bytes = 256, .flush_ms = 1};
  options.write = [ready, random = std::mt19937(seed), n = 0](int fd, const void* bytes,
                                                              std::size_t size) mutable -> ssize_t {
    const ssize_t done = ::write(fd, bytes, std::min<std::size_t>(size, 1 + random() % 16));
    if (++n == 4) (void)!::write(ready, "", 1);
    return done;
  };
  Recorder recorder(path, options);
  for (StepId n = 0;; ++n) {
    recorder.push(EndlessSteps::step(n));
    if (n % 32 == 31) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// TR02.
TEST(Kills, a_killed_process_leaves_a_readable_recording) {
  const Folder folder;
  const std::string path = test::file_in_memory(folder, "kill.pdrun");
  const std::size_t n_header = recording_header(0).size();
  std::mt19937 random(11);
  EndlessSteps steps;
  int n_mid_frame = 0;
  const auto begun = std::chrono::steady_clock::now();
  int n_kills = 0;
  // A thousand, or as many as a very slow machine manages in a minute, at least fifty.
  for (; n_kills < 1000; ++n_kills) {
    const auto spent = std::chrono::steady_clock::now() - begun;
    if (n_kills >= 50 && spent > std::chrono::seconds(60)) break;
    Victim victim([&](int ready) { record_for_ever(path, ready, static_cast<unsigned>(n_kills)); });
    EXPECT_TRUE(victim.wait_until_ready());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3'000));
    victim.kill();

    const std::string bytes = test::read_file(path);
    ::unlink(path.c_str());
    const std::string_view frames =
        std::string_view(bytes).substr(std::min(n_header, bytes.size()));
    ASSERT_TRUE(steps.begins_with(frames)) << "kill " << n_kills;
    RecordingReport report;
    const std::vector<Event> events = events_in(bytes, &report);
    ASSERT_EQ(events.size(), steps.whole_frames(frames.size())) << "kill " << n_kills;
    ASSERT_EQ(report.n_damaged, 0);
    for (std::size_t n = 0; n < events.size(); ++n) {
      ASSERT_EQ(std::get<StepBegun>(events[n]).step, static_cast<StepId>(n));
    }
    n_mid_frame += report.incomplete_bytes > 0;
  }
  std::printf("%d kills, %d of them inside a frame\n", n_kills, n_mid_frame);
  EXPECT_GT(n_mid_frame, n_kills / 50) << "kills must also hit the middle of an event";
}

/// Progress of the child; both processes see it.
struct Progress {
  static constexpr int kMost = 1 << 14;
  std::atomic<int> n_pushed = 0;
  Nanoseconds pushed_at[kMost] = {};
};

/// Memory shared with a child.
class SharedProgress {
 public:
  SharedProgress() {
    void* at = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    progress_ = new (at) Progress;
  }
  ~SharedProgress() { ::munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress& operator*() const { return *progress_; }
  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

/// An event of about `n_bytes`.
Event numbered(int n, std::size_t n_bytes) {
  return Notice{.t = n, .text = std::string(n_bytes, 'x')};
}

/// Records one event every 4 ms with default options.
[[noreturn]] void record_steadily(const std::string& path,
                                  int ready,
                                  std::size_t n_bytes,
                                  Progress& progress) {
  Recorder recorder(path);
  for (int n = 0;; n = std::min(n + 1, Progress::kMost - 1)) {
    recorder.push(numbered(n, n_bytes));
    progress.pushed_at[n] = now_ns();
    progress.n_pushed = n + 1;
    if (n == 0) (void)!::write(ready, "", 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
}

struct Loss {
  double ms = 0;              // age of the oldest lost event when the kill was sent
  std::size_t n_bytes = 0;    // of all lost events
  std::size_t one_event = 0;  // bytes of one recorded event
};

/// One process of a batch and the time to kill it.
struct Recording {
  std::string path;
  std::size_t n_bytes = 0;
  Nanoseconds dies_at = 0, killed_at = 0;
  std::unique_ptr<SharedProgress> progress = std::make_unique<SharedProgress>();
  std::unique_ptr<Victim> victim;
};

Loss loss_of(const Recording& recording) {
  std::string body, frame;
  encode(numbered(1, recording.n_bytes), body);
  put_frame(frame, body);
  const std::string bytes = test::read_file(recording.path);
  const bool began = bytes.size() >= recording_header(0).size();
  const std::size_t n_read = began ? events_in(bytes).size() : 0;
  const auto n_pushed = static_cast<std::size_t>((*recording.progress)->n_pushed);
  Loss loss{.one_event = frame.size()};
  if (n_read >= n_pushed) return loss;
  loss.ms =
      static_cast<double>(recording.killed_at - (*recording.progress)->pushed_at[n_read]) / 1e6;
  loss.n_bytes = (n_pushed - n_read) * frame.size();
  return loss;
}

/// Kills recorders of small and of large events, 40 at a time to overlap their waits.
/// @param late_ms receives the largest delay with which this process was woken meanwhile
std::vector<Loss> losses_of_a_batch(const Folder& folder, std::mt19937& random, double& late_ms) {
  std::vector<Recording> batch(40);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Recording& one = batch[i];
    one.path = test::file_in_memory(folder, "loss" + std::to_string(i) + ".pdrun");
    one.n_bytes = i % 2 ? 16'000 : 40;  // 64 KiB are full after 5 events, or never
    one.victim = std::make_unique<Victim>(
        [&](int ready) { record_steadily(one.path, ready, one.n_bytes, **one.progress); });
  }
  const Nanoseconds begun = now_ns();
  for (Recording& one : batch) {
    EXPECT_TRUE(one.victim->wait_until_ready());
    one.dies_at = begun + 120'000'000 + static_cast<Nanoseconds>(random() % 200'000'000);
  }
  std::ranges::sort(batch, {}, &Recording::dies_at);
  late_ms = 0;
  for (Recording& one : batch) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(one.dies_at - now_ns()));
    one.killed_at = now_ns();
    late_ms = std::max(late_ms, static_cast<double>(one.killed_at - one.dies_at) / 1e6);
    one.victim->kill();
  }
  std::vector<Loss> losses;
  for (const Recording& one : batch) {
    losses.push_back(loss_of(one));
    ::unlink(one.path.c_str());
  }
  return losses;
}

// TR02.
TEST(Kills, a_kill_loses_only_events_after_the_last_flush) {
  const Folder folder;
  std::mt19937 random(23);
  const RecorderOptions promised;
  ASSERT_EQ(promised.flush_ms, 100);
  ASSERT_EQ(promised.flush_bytes, 64u << 10);
  int n_kills = 0, n_within = 0, n_lossy = 0;
  Loss most;
  while (n_kills < 1000) {
    double late_ms = 0;
    for (const Loss& loss : losses_of_a_batch(folder, random, late_ms)) {
      ++n_kills;
      n_lossy += loss.n_bytes > 0;
      most.ms = std::max(most.ms, loss.ms);
      most.n_bytes = std::max(most.n_bytes, loss.n_bytes);
      // A writer that is woken late writes late: allow 20 ms plus twice this process's own delay.
      const double grace_ms = 20 + 2 * late_ms;
      const auto grace_events = static_cast<std::size_t>(1 + grace_ms / 4);
      n_within += loss.ms <= promised.flush_ms + grace_ms &&
                  loss.n_bytes <= promised.flush_bytes + grace_events * loss.one_event;
    }
  }
  std::printf("%d kills, %d lost something; at most %.1f ms and %zu bytes; %d within the promise\n",
              n_kills, n_lossy, most.ms, most.n_bytes, n_within);
  EXPECT_GT(n_lossy, n_kills / 2) << "kills must come between flushes";
  EXPECT_GE(n_within, n_kills * 95 / 100);
}

/// A text of one repeated letter; the letter gives its length.
std::string version(int n) {
  const int letter = n % 26;
  return std::string(static_cast<std::size_t>(9'000 + 700 * letter),
                     static_cast<char>('a' + letter));
}

bool is_some_version(const std::string& text) {
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' && text == version(text[0] - 'a');
}

/// Saves one version after another, each in several writes with pauses.
[[noreturn]] void save_for_ever(const std::string& path, int ready, unsigned seed) {
  std::mt19937 random(seed);
  const auto pause = [&] {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
  };
  for (int n = static_cast<int>(seed % 26);; ++n) {
    const std::string text = version(n);
    std::size_t left = text.size();
    OutputFile file(path, [&](int fd, const void* bytes, std::size_t size) -> ssize_t {
      const ssize_t done = ::write(fd, bytes, std::min<std::size_t>(size, 1 + random() % 5'000));
      left -= static_cast<std::size_t>(std::max<ssize_t>(done, 0));
      if (left == 0 || random() % 3 == 0) pause();
      return done;
    });
    file.write(text);
    file.finish();
    (void)!::write(ready, "", 1);
    pause();
  }
}

// IO04.
TEST(Kills, a_kill_leaves_the_old_content_or_the_new) {
  const Folder folder;
  const std::string path = test::file_in_memory(folder, "saved");
  std::mt19937 random(5);
  int n_writing = 0, n_before_rename = 0, n_behind = 0;
  for (unsigned n = 0; n < 1000; ++n) {
    Victim victim([&](int ready) { save_for_ever(path, ready, n); });
    ASSERT_TRUE(victim.wait_until_ready());
    const std::string part = path + ".part" + std::to_string(victim.pid());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1'500));
    victim.kill();
    ASSERT_TRUE(is_some_version(test::read_file(path))) << "kill " << n;
    const bool renamed = ::access(part.c_str(), F_OK) != 0;
    (renamed ? n_behind : is_some_version(test::read_file(part)) ? n_before_rename : n_writing)++;
    ::unlink(part.c_str());
  }
  ::unlink(path.c_str());
  std::printf(
      "1000 kills: %d while writing, %d between the last write and the rename, %d after it\n",
      n_writing, n_before_rename, n_behind);
  EXPECT_GT(n_writing, 20);
  EXPECT_GT(n_before_rename, 20);
  EXPECT_GT(n_behind, 20);
}

}  // namespace
}  // namespace engine
