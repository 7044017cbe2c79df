#include "app/window/engine_thread.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "engine/event/queue.h"
#include "engine/reason/reasoner.h"
#include "engine/run/engine.h"
#include "engine/run/failure.h"
#include "kernels/error.h"

namespace app {
namespace {

std::atomic<EngineThread*> serving = nullptr;

// Ends the engine if a library calls exit(). exit() does not destroy the objects on the stack of main(), so the engine is still running, and
// it uses objects that exit() is about to destroy.
void end_the_engine_first() {
  EngineThread* thread = serving.exchange(nullptr);
  if (!thread) return;
  thread->end_within(EngineThread::kPatience, "the engine");
  print_error(
      "window: a library ended the process (is the display gone?); recordings are complete, "
      "a save in progress is not");
  std::fflush(nullptr);
  _exit(static_cast<int>(kernels::ErrorCode::Device));
}

// Returns true if the window waits for a response to this command.
bool awaits_answer(const engine::Command& command) {
  return std::holds_alternative<engine::StartRun>(command) ||
         std::holds_alternative<engine::StartReasoning>(command) ||
         std::holds_alternative<engine::LoadModel>(command);
}

// Reports a failure to the window or, if that is impossible, to the terminal.
void report(engine::EventQueue& events, const engine::Failure& failure) {
  try {
    events.push(engine::failed_event(failure, 0));
  } catch (const std::exception& error) {
    print_error(failure.message + "; the window cannot show it: " + error.what());
  }
}

void watch_for_exit() {
  static const int registered = std::atexit(end_the_engine_first);
  (void)registered;
}

}  // namespace

EngineThread::EngineThread(std::string assets_dir,
                           std::string data_dir,
                           const ModelOptions& options,
                           engine::CommandQueue& commands,
                           engine::EventQueue& events)
    : commands_(commands),
      thread_([assets = std::move(assets_dir), data = std::move(data_dir), options, &events, this] {
        serve(assets, data, options, events);
        ended_.set_value();
      }) {
  watch_for_exit();
  serving = this;
}

// Serves commands on the engine's thread. The engine reports failures of runs; this function reports a failure of the engine itself.
void EngineThread::serve(const std::string& assets_dir,
                         const std::string& data_dir,
                         const ModelOptions& options,
                         engine::EventQueue& events) {
  engine::Failure failure;
  try {
    engine::Engine engine(assets_dir, options.n_threads, commands_, events);
    engine.reason_with(engine::reasoner(assets_dir, data_dir));
    engine.allow_external_shards(options.allow_external_shards);
    engine.set_file_limits(options.limits);
    return engine.serve();
  } catch (...) {
    failure = engine::current_failure();
  }
  try {
    failure.message = "the engine has failed, recordings are complete: " + failure.message;
    report(events, failure);
    while (const std::optional<engine::Command> command = commands_.wait())
      if (awaits_answer(*command)) report(events, failure);
  } catch (...) {  // for example no memory for a message; the thread must report its end even then
  }
}

EngineThread::~EngineThread() {
  EngineThread* self = this;
  serving.compare_exchange_strong(self, nullptr);
  end();
}

void EngineThread::end() {
  commands_.close();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void EngineThread::end_within(std::chrono::milliseconds time,
                              const std::string& who,
                              const std::string& message) {
  commands_.close();
  if (has_ended_.wait_for(time) != std::future_status::timeout) return end();
  if (!message.empty()) print_error(message);
  print_error("window: " + who + " did not respond; the process ends without waiting for it");
  std::fflush(nullptr);
  _exit(static_cast<int>(kernels::ErrorCode::Device));
}

void EngineThread::beside(const std::function<int()>& window, std::chrono::milliseconds patience) {
  const char* who = "the engine";
  try {
    if (window() != 0) who = "the GPU";
  } catch (const std::exception& error) {
    end_within(patience, who, error.what());
    throw;
  }
  end_within(patience, who);
}

}  // namespace app
