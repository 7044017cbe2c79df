// The engine on a thread of its own, ended and joined however the window ends: closed, by an
// exception, or by a library that ends the whole process under it, as Xlib does when the connection
// to the display breaks.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "app/cli/commands.h"
#include "engine/event/queue.h"

namespace app {

class EngineThread {
 public:
  /// How long a window that closes waits for what the engine is at: a step, or a load.
  static constexpr std::chrono::seconds kPatience{5};

  /// Serves commands from the start on. At most one at a time. Where the engine itself fails, it
  /// is gone: that is told as a failure of no run, and so is every later command.
  /// @param data_dir          of the open sets; empty: there are none
  /// @param options           of its device (how many threads) and of files of models
  /// @param commands, events  outlive it
  EngineThread(std::string assets_dir,
               std::string data_dir,
               const ModelOptions& options,
               engine::CommandQueue& commands,
               engine::EventQueue& events);
  /// end(): whoever must not wait for ever says end_within() before.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Closes the command queue and waits until the engine has let go of everything.
  void end();
  /// The same for an engine that may hang in a call of its device: where it has not ended in time,
  /// says so and ends the whole process with the code of a failed device, without it.
  /// @param who   may hang: "the GPU", "the engine"
  /// @param said  told before that, where the window ended by a failure; or empty
  void end_within(std::chrono::milliseconds time,
                  const std::string& who = "the GPU",
                  const std::string& said = "");
  /// Shows the window, then end_within(), whether it was closed or failed: beside a run's step a
  /// load may hang, or a check that no run tells of.
  /// @param window  runs it on this thread; returns what ui::run_window does
  void beside(const std::function<int()>& window, std::chrono::milliseconds patience = kPatience);

 private:
  void serve(const std::string& assets_dir,
             const std::string& data_dir,
             const ModelOptions& options,
             engine::EventQueue& events);

  engine::CommandQueue& commands_;
  std::promise<void> ended_;  // the last thing the thread does
  std::future<void> has_ended_ = ended_.get_future();
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace app
