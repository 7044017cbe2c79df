// The only channel between engine and window: commands in, events out. Both carry values; nothing
// is reachable from both sides.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/event/command.h"
#include "engine/event/event.h"
#include "engine/event/payload.h"

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

/// Of a queue that is not told otherwise.
inline constexpr std::size_t kQueuePayloadBudget = std::size_t{16} << 20;

/// Events on their way to the window. Structure is never dropped; the engine never waits. Payload
/// that the window has not taken is bounded.
class EventQueue : public EventSink {
 public:
  explicit EventQueue(std::size_t payload_budget = kQueuePayloadBudget)
      : payload_budget_(payload_budget) {}
  void push(Event event) override;
  /// Everything that arrived since the last call, oldest first; at most `limit`.
  std::vector<Event> take(std::size_t limit = 1u << 20);
  std::size_t size() const;
  /// Payload waiting now.
  std::size_t payload_bytes() const;
  /// Called from the engine's thread after a push onto an empty queue (the window wakes its loop
  /// with it). When this returns, what was to be called before is not at work any more, and is not
  /// called again; so nothing that is called may ask for another.
  void on_arrival(std::function<void()> wake);

 private:
  /// Puts the event without its payload, and tells the drop: in the last such report, if the
  /// window has not taken it and nothing of the kind was kept since.
  void push_stripped(Event event, const Payload& payload);

  std::size_t payload_budget_;
  /// Held while somebody is woken, so that who no longer listens is not called any more. Taken
  /// before the other.
  std::mutex ringing_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::uint64_t n_taken_ = 0;
  std::size_t payload_bytes_ = 0;
  /// Where the last report of a run and kind is, counted from the first event ever pushed.
  std::map<std::pair<RunId, PayloadKind>, std::uint64_t> reports_;
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
