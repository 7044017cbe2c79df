#include "engine/event/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace engine {

void EventQueue::push(Event event) {
  const Payload payload = payload_of(event);
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = events_.empty();
    if (payload_bytes_ + payload.n_bytes > payload_budget_ && payload.n_bytes > 0) {
      push_stripped(std::move(event), payload);
    } else {
      if (payload.n_bytes > 0 && !reports_.empty()) {
        reports_.erase({run_of(event), payload.kind});
      }
      payload_bytes_ += payload.n_bytes;
      events_.push_back(std::move(event));
    }
  }
  if (!is_first) return;
  // Calls wake without holding the events' lock, because wake may take other locks or call size().
  const std::lock_guard hold(wake_mutex_);
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    wake = wake_;
  }
  if (wake) wake();
}

void EventQueue::push_stripped(Event event, const Payload& payload) {
  const PayloadDropped drop = drop_of(event, payload);
  if (strip(event)) events_.push_back(std::move(event));
  const auto [report, is_new] = reports_.try_emplace({drop.run, payload.kind}, 0);
  if (!is_new && report->second >= n_taken_) {
    widen(std::get<PayloadDropped>(events_[report->second - n_taken_]), drop);
    return;
  }
  report->second = n_taken_ + events_.size();
  events_.push_back(drop);
}

std::vector<Event> EventQueue::take(std::size_t limit) {
  std::vector<Event> taken;
  std::deque<Event> all;
  {
    const std::lock_guard lock(mutex_);
    if (events_.size() > limit) {
      const auto end = events_.begin() + static_cast<std::ptrdiff_t>(limit);
      taken.assign(std::make_move_iterator(events_.begin()), std::make_move_iterator(end));
      events_.erase(events_.begin(), end);
      n_taken_ += limit;
      for (const Event& event : taken) payload_bytes_ -= payload_of(event).n_bytes;
      return taken;
    }
    all.swap(events_);  // swaps the lists instead of copying, so the lock is held only briefly
    n_taken_ += all.size();
    payload_bytes_ = 0;
    reports_.clear();
  }
  taken.assign(std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
  return taken;
}

std::size_t EventQueue::payload_bytes() const {
  const std::lock_guard lock(mutex_);
  return payload_bytes_;
}

std::size_t EventQueue::size() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

void EventQueue::on_arrival(std::function<void()> wake) {
  const std::lock_guard hold(wake_mutex_);
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void CommandQueue::push(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  arrived_.notify_one();
}

std::optional<Command> CommandQueue::try_take() {
  const std::lock_guard lock(mutex_);
  if (commands_.empty()) return std::nullopt;
  std::optional<Command> command = std::move(commands_.front());
  commands_.pop_front();
  return command;
}

std::optional<Command> CommandQueue::wait() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return closed_ || !commands_.empty(); });
  if (closed_) return std::nullopt;
  std::optional<Command> command = std::move(commands_.front());
  commands_.pop_front();
  return command;
}

void CommandQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
}

bool CommandQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace engine
