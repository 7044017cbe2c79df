// Ctrl+C as a flag, for work of minutes that looks at one.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "app/cli/terminal.h"

namespace app {

/// Sets a flag when Ctrl+C was pressed, for callees that take a flag.
class StopFlag {
 public:
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

  std::atomic<bool> flag{false};

 private:
  std::atomic<bool> ended_{false};
  std::thread watcher_;
};

}  // namespace app
