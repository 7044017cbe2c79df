// The only channel between engine and window: commands in, events out. Both carry values; nothing
// is reachable from both sides.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/event/command.h"
#include "engine/event/event.h"

namespace engine {

/// Where the engine tells what happened. Called from the engine's thread only.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void push(Event event) = 0;
};

/// Keeps what it is told, for tests and one-shot runs.
class EventList : public EventSink {
 public:
  void push(Event event) override { events.push_back(std::move(event)); }
  std::vector<Event> events;
};

/// Events on their way to the window. Structure is never dropped; the engine never waits.
class EventQueue : public EventSink {
 public:
  void push(Event event) override;
  /// Everything that arrived since the last call, oldest first; at most `limit`.
  std::vector<Event> take(std::size_t limit = 1u << 20);
  std::size_t size() const;
  /// Called from the engine's thread after a push onto an empty queue (the window wakes its loop
  /// with it).
  void on_arrival(std::function<void()> wake);

 private:
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::function<void()> wake_;
};

class CommandQueue {
 public:
  void push(Command command);
  std::optional<Command> try_take();
  /// Waits until a command is there or close() was called (then nullopt).
  std::optional<Command> wait();
  void close();
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Command> commands_;
  bool closed_ = false;
};

}  // namespace engine
