// Provides Ctrl+C as an atomic flag, for long work in the engine that checks such a flag.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "app/cli/terminal.h"

namespace app {

/// Sets a flag after Ctrl+C, from a thread that checks interrupted() every 50 ms.
class StopFlag {
 public:
  /// Starts the thread.
  StopFlag()
      : watcher_([this] {
          while (!ended_) {
            if (interrupted()) flag = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}
  ~StopFlag() {
    ended_ = true;
    watcher_.join();
  }
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  /// True after Ctrl+C.
  std::atomic<bool> flag{false};

 private:
  std::atomic<bool> ended_{false};
  std::thread watcher_;
};

}  // namespace app
