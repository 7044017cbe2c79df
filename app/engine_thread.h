// The engine on a thread of its own, ended and joined however the window ends: closed, by an
// exception, or by a library that ends the whole process under it, as Xlib does when the connection
// to the display breaks.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "app/commands.h"
#include "engine/event/queue.h"

namespace app {

class EngineThread {
 public:
  /// With a GPU that was at work when the window closed.
  static constexpr std::chrono::seconds kPatience{5};

  /// Serves commands from the start on. At most one at a time.
  /// @param data_dir          of the open sets; empty: there are none
  /// @param options           of its device (how many threads) and of files of models
  /// @param commands, events  outlive it
  EngineThread(std::string assets_dir,
               std::string data_dir,
               const ModelOptions& options,
               engine::CommandQueue& commands,
               engine::EventQueue& events);
  /// end().
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Closes the command queue and waits until the engine has let go of everything.
  void end();
  /// The same for an engine that may hang in a call of its device: where it has not ended in time,
  /// says so and ends the whole process with the code of a failed device, without it.
  void end_within(std::chrono::milliseconds time);

 private:
  engine::CommandQueue& commands_;
  std::promise<void> ended_;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace app
