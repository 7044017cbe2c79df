#include "ui/files/saving.h"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "engine/base/types.h"
#include "engine/event/queue.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "engine/event/timeline/timeline.h"
#include "engine/event/timeline/timeline_events.h"

namespace ui {
namespace {

using namespace std::chrono_literals;

// The reader waits when it is this many bytes ahead of the disk.
constexpr std::size_t kMaxAheadBytes = 32u << 20;
// This limit is so large that nothing is dropped.
constexpr std::size_t kMaxPendingBytes = std::size_t{4} << 30;

engine::Error cancelled(const std::string& path) {
  return engine::Error(engine::ErrorCode::Cancelled, path + ": cancelled, not saved");
}

}  // namespace

// Writes events to the file until the user cancels.
class Saving::Outlet : public engine::EventSink {
 public:
  Outlet(engine::Recorder& recorder, Saving& saving) : recorder_(recorder), saving_(saving) {}
  void push(engine::Event event) override {
    if (saving_.given_up_) throw cancelled(saving_.path_);
    ++n_;
    if (n_events > 0) saving_.fraction_ = static_cast<double>(n_) / static_cast<double>(n_events);
    recorder_.push(std::move(event));
  }
  bool wait_for_disk() {
    while (recorder_.recording() && !saving_.given_up_ &&
           recorder_.n_bytes_pending() > kMaxAheadBytes)
      std::this_thread::sleep_for(1ms);
    return !saving_.given_up_;
  }

  // number of events to write; 0: unknown, and the reader reports progress
  std::int64_t n_events = 0;

 private:
  engine::Recorder& recorder_;
  Saving& saving_;
  std::int64_t n_ = 0;
};

Saving::Saving(const engine::Timeline& timeline, std::string path)
    : path_(std::move(path)), writer_(std::async(std::launch::async, [this, &timeline] {
        return write([&timeline](Outlet& outlet) {
          outlet.n_events = timeline.n_events();
          engine::replay_events(timeline, outlet);
        });
      })) {}

Saving::Saving(std::string source, std::string path)
    : source_(std::move(source)),
      path_(std::move(path)),
      writer_(std::async(std::launch::async, [this] {
        return write([this](Outlet& outlet) {
          engine::read_recording(source_, outlet, {}, [&](double fraction) {
            fraction_ = fraction;
            return outlet.wait_for_disk();
          });
        });
      })) {}

Saving::~Saving() {
  if (writer_.valid()) writer_.wait();
}

bool Saving::ended() const {
  return writer_.wait_for(0s) == std::future_status::ready;
}

std::string Saving::write(const std::function<void(Outlet&)>& content) {
  engine::Recorder recorder(path_, {.max_pending_payload_bytes = kMaxPendingBytes,
                                    .max_pending_bytes = kMaxPendingBytes,
                                    .if_failed = engine::RecorderOptions::IfFailed::Remove});
  try {
    Outlet outlet(recorder, *this);
    content(outlet);
    if (given_up_) throw cancelled(path_);
  } catch (...) {
    // An incomplete file is removed so that it cannot be mistaken for the whole recording.
    recorder.close();
    std::error_code ignored;
    std::filesystem::remove(recorder.path(), ignored);
    throw;
  }
  recorder.close();
  if (auto trouble = recorder.trouble())
    throw engine::Error(engine::ErrorCode::Resources, *trouble);
  return recorder.path();
}

}  // namespace ui
