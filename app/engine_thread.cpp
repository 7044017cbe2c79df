#include "app/engine_thread.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "app/terminal.h"
#include "engine/reason/reasoner.h"
#include "engine/schedule/engine.h"
#include "kernels/error.h"

namespace app {
namespace {

std::atomic<EngineThread*> serving = nullptr;

// exit() was called beneath the window: nothing on main's stack is destroyed any more, and the
// engine still works with objects that exit() is about to destroy.
void end_the_engine_first() {
  EngineThread* thread = serving.exchange(nullptr);
  if (!thread) return;
  thread->end_within(EngineThread::kPatience);
  print_error(
      "window: ended from beneath (is the display gone?); what was recorded is whole, "
      "a save under way is not");
  std::fflush(nullptr);
  _exit(static_cast<int>(kernels::ErrorCode::Device));
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
      thread_([assets = std::move(assets_dir),
               data = std::move(data_dir),
               options,
               &commands,
               &events,
               this] {
        {
          engine::Engine engine(assets, options.n_threads, commands, events);
          engine.reason_with(engine::reasoner(assets, data));
          engine.allow_external_shards(options.allow_external_shards);
          engine.set_file_limits(options.limits);
          engine.serve();
        }
        ended_.set_value();
      }) {
  watch_for_exit();
  serving = this;
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

void EngineThread::end_within(std::chrono::milliseconds time) {
  commands_.close();
  if (ended_.get_future().wait_for(time) != std::future_status::timeout) return end();
  print_error("window: the GPU did not answer; ended without waiting for it");
  std::fflush(nullptr);
  _exit(static_cast<int>(kernels::ErrorCode::Device));
}

}  // namespace app
