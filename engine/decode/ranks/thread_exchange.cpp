#include "engine/decode/ranks/thread_exchange.h"

#include <utility>

#include "engine/base/types.h"

namespace engine {

class ThreadExchange::End final : public Exchange {
 public:
  End(ThreadExchange& all, int rank) : all_(all), rank_(rank) {}
  int rank() const override { return rank_; }
  int n_ranks() const override { return all_.n_ranks_; }

  void broadcast(int from, Numbers& numbers) override {
    if (from != rank_) {
      numbers = all_.receive(from, rank_);
      return;
    }
    for (int to = 0; to < all_.n_ranks_; to++)
      if (to != rank_) all_.send(rank_, to, numbers);
  }

  std::vector<Numbers> all_gather(std::span<const std::int32_t> own) override {
    const Numbers numbers(own.begin(), own.end());
    for (int to = 0; to < all_.n_ranks_; to++)
      if (to != rank_) all_.send(rank_, to, numbers);
    std::vector<Numbers> all;
    for (int from = 0; from < all_.n_ranks_; from++)
      all.push_back(from == rank_ ? numbers : all_.receive(from, rank_));
    return all;
  }

 private:
  ThreadExchange& all_;
  int rank_;
};

ThreadExchange::ThreadExchange(int n_ranks) : n_ranks_(n_ranks) {
  ensure(n_ranks > 0, "n_ranks must be at least 1");
  queues_.resize(static_cast<std::size_t>(n_ranks) * static_cast<std::size_t>(n_ranks));
  for (int rank = 0; rank < n_ranks; rank++) ends_.push_back(std::make_unique<End>(*this, rank));
}

ThreadExchange::~ThreadExchange() = default;

Exchange& ThreadExchange::of(int rank) {
  return *ends_.at(static_cast<std::size_t>(rank));
}

void ThreadExchange::send(int from, int to, Numbers numbers) {
  {
    const std::lock_guard lock(mutex_);
    if (why_ended_) std::rethrow_exception(why_ended_);
    queue(from, to).push_back(std::move(numbers));
  }
  sent_.notify_all();
}

Numbers ThreadExchange::receive(int from, int to) {
  std::unique_lock lock(mutex_);
  std::deque<Numbers>& arrived = queue(from, to);
  sent_.wait(lock, [&] { return why_ended_ || !arrived.empty(); });
  if (why_ended_) std::rethrow_exception(why_ended_);
  Numbers numbers = std::move(arrived.front());
  arrived.pop_front();
  return numbers;
}

void ThreadExchange::end(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (why_ended_) return;
    why_ended_ = std::move(why);
  }
  sent_.notify_all();
}

void ThreadExchange::fail(std::exception_ptr why) {
  end(std::move(why));
}

void ThreadExchange::close() {
  end(std::make_exception_ptr(ExchangeClosed{}));
}

bool ThreadExchange::ended() const {
  const std::lock_guard lock(mutex_);
  return why_ended_ != nullptr;
}

void ThreadExchange::check() const {
  const std::lock_guard lock(mutex_);
  if (why_ended_) std::rethrow_exception(why_ended_);
}

}  // namespace engine
