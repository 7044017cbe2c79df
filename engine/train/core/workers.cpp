#include "engine/train/core/workers.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/base/types.h"

namespace engine {

struct Workers::Shared {
  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(int)>* task = nullptr;
  int n_parts = 0;
  int n_threads = 1;  // including the caller's
  int n_running = 0;
  std::uint64_t round = 0;
  bool stop = false;
  std::vector<std::exception_ptr> failures;
  std::vector<std::thread> threads;

  void work(int thread) {
    for (int part = thread; part < n_parts; part += n_threads) {
      try {
        (*task)(part);
      } catch (...) {
        failures[static_cast<std::size_t>(part)] = std::current_exception();
      }
    }
  }

  void loop(int thread) {
    std::uint64_t seen = 0;
    while (true) {
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return stop || round != seen; });
        if (stop) return;
        seen = round;
      }
      work(thread);
      const std::lock_guard lock(mutex);
      if (--n_running == 0) done.notify_one();
    }
  }
};

Workers::Workers(int n) : n_(1), shared_(std::make_unique<Shared>()) {
  ensure(n >= 1, "training needs at least one thread");
  try {
    for (; n_ < n; n_++)
      shared_->threads.emplace_back([shared = shared_.get(), i = n_] { shared->loop(i); });
  } catch (const std::system_error&) {
    // The system has no thread left. The result does not depend on the number of threads.
  }
  const std::lock_guard lock(shared_->mutex);
  shared_->n_threads = n_;
}

Workers::~Workers() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->start.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

void Workers::run(int n_parts, const std::function<void(int)>& task) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->task = &task;
    shared_->n_parts = n_parts;
    shared_->n_running = n_ - 1;
    shared_->failures.assign(static_cast<std::size_t>(n_parts), nullptr);
    shared_->round++;
  }
  shared_->start.notify_all();
  shared_->work(0);
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait(lock, [&] { return shared_->n_running == 0; });
  for (const std::exception_ptr& failure : shared_->failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace engine
