// The two queues between engine and window: commands in, events out. They carry values, so engine
// and window share no other data.
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

/// Receiver of the engine's events. Only the engine's thread calls it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Takes one event; events arrive in the order of their times.
  virtual void push(Event event) = 0;
};

/// Keeps all events, for tests and short runs.
class EventList : public EventSink {
 public:
  void push(Event event) override { events.push_back(std::move(event)); }
  std::vector<Event> events;
};

/// Default limit of the payload that waits in a queue, bytes.
inline constexpr std::size_t kQueuePayloadBudget = std::size_t{16} << 20;

/// The queue of events from the engine to the window. push() never waits. Structure (payload.h) is
/// never dropped; payload beyond the budget is dropped and reported (PayloadDropped).
class EventQueue : public EventSink {
 public:
  /// @param payload_budget  bytes of payload that may wait
  explicit EventQueue(std::size_t payload_budget = kQueuePayloadBudget)
      : payload_budget_(payload_budget) {}
  void push(Event event) override;
  /// Takes the events that arrived since the last call, oldest first, at most `limit`.
  std::vector<Event> take(std::size_t limit = 1u << 20);
  /// Number of waiting events.
  std::size_t size() const;
  /// Bytes of payload that wait.
  std::size_t payload_bytes() const;
  /// Sets a function that the engine's thread calls after a push onto an empty queue; the window
  /// wakes its loop with it. When this returns, the previous function does not run any more. `wake`
  /// must not call on_arrival().
  void on_arrival(std::function<void()> wake);

 private:
  /// Queues the event without its payload and reports the drop. Extends the last report if the
  /// window has not taken it and no payload of the kind was kept since.
  void push_stripped(Event event, const Payload& payload);

  std::size_t payload_budget_;
  /// Held while wake_ runs, so that on_arrival() can wait for its end. Locked before mutex_.
  std::mutex wake_mutex_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::uint64_t n_taken_ = 0;
  std::size_t payload_bytes_ = 0;
  /// Sequence number of the last report of each run and kind. The first event ever pushed has
  /// number 0.
  std::map<std::pair<RunId, PayloadKind>, std::uint64_t> reports_;
  std::function<void()> wake_;
};

/// The queue of commands from the window to the engine. Any thread may call it.
class CommandQueue {
 public:
  /// Adds a command at the end.
  void push(Command command);
  /// The oldest command; nullopt if there is none.
  std::optional<Command> try_take();
  /// Blocks until a command arrives; nullopt after close().
  std::optional<Command> wait();
  /// Ends every wait(), now and later.
  void close();
  /// True after close().
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Command> commands_;
  bool closed_ = false;
};

}  // namespace engine
