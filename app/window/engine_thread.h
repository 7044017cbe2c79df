// Runs the engine on a separate thread. The thread is ended and joined however the window ends: the
// user closes it, an exception ends it, or a library ends the process, as Xlib does when the
// connection to the display breaks.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

namespace engine {
class CommandQueue;
class EventQueue;
}  // namespace engine

namespace app {

struct ModelOptions;

/// The thread of the engine; at most one object at a time.
class EngineThread {
 public:
  /// Time that a closing window waits for the engine's current step or load.
  static constexpr std::chrono::seconds kPatience{5};

  /// Starts to serve commands. If the engine itself fails, the current and every later command are
  /// reported as failures that belong to no run.
  /// @param data_dir          folder of the open data sets; empty: there is none
  /// @param options           number of threads, and limits for model files
  /// @param commands, events  outlive this object
  EngineThread(std::string assets_dir,
               std::string data_dir,
               const ModelOptions& options,
               engine::CommandQueue& commands,
               engine::EventQueue& events);
  /// Calls end(), which may block. For a timeout call end_within() first.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Closes the command queue and blocks until the engine has ended.
  void end();
  /// Like end(), with a timeout, because the engine may hang in a call of its device. After the
  /// timeout it prints an error and ends the process with the exit code for device errors.
  /// @param who      the part that may hang, named in the error: "the GPU", "the engine"
  /// @param message  printed before the error, if the window has failed; or empty
  void end_within(std::chrono::milliseconds time,
                  const std::string& who = "the GPU",
                  const std::string& message = "");
  /// Shows the window, then calls end_within(), also after a failure of the window.
  /// @param window  shows the window on this thread; returns like ui::run_window
  void beside(const std::function<int()>& window, std::chrono::milliseconds patience = kPatience);

 private:
  void serve(const std::string& assets_dir,
             const std::string& data_dir,
             const ModelOptions& options,
             engine::EventQueue& events);

  engine::CommandQueue& commands_;
  std::promise<void> ended_;  // set when the thread ends
  std::future<void> has_ended_ = ended_.get_future();
  std::thread thread_;  // declared last, so that it starts after the other members exist
};

}  // namespace app
