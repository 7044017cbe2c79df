#include "ui/files/opening.h"

#include <chrono>
#include <thread>

namespace ui {
namespace {

using namespace std::chrono_literals;

// The reader waits when it is this many events ahead of the window, so that the recording is not in memory twice.
constexpr std::size_t kMaxAhead = 50'000;

}  // namespace

Opening::Opening(std::string path)
    : path_(std::move(path)), reader_(std::async(std::launch::async, [this] {
        return engine::read_recording(path_, events_, {}, [this](double fraction) {
          fraction_ = fraction;
          while (events_.size() > kMaxAhead && !given_up_) std::this_thread::sleep_for(1ms);
          return !given_up_;
        });
      })) {}

Opening::~Opening() {
  give_up();
  if (reader_.valid()) reader_.wait();
}

bool Opening::ended() const {
  return reader_.wait_for(0s) == std::future_status::ready;
}

}  // namespace ui
