// The engine on its own thread, as the window uses it: commands in, events out, with the bundled
// models.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/run/engine.h"

namespace engine::test {

/// An engine on its own thread, and all events that it has emitted.
class EngineThread : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
      FAIL() << "assets/models/demo-target is not in this tree";
    }
    thread = std::thread([this] {
      Engine engine(DECOSCOPE_SOURCE_DIR "/assets", 2, commands, sink);
      prepare(engine);
      engine.serve();
    });
  }
  /// Called on the engine's thread before it serves commands.
  virtual void prepare(Engine&) {}
  void TearDown() override {
    commands.close();
    if (thread.joinable()) thread.join();
  }

  static StartRun race(std::vector<std::string> decoders, int max_tokens = 24) {
    StartRun start;
    start.model = "demo-target";
    start.prompt =
        "Question:\nAnna has 11 stickers. Anna finds 33 more stickers. How many stickers does Anna "
        "have?\nAnswer:\n";
    start.max_tokens = max_tokens;
    start.ignore_eos = true;
    for (std::string& decoder : decoders)
      start.lanes.push_back({.decoder = std::move(decoder), .options = {}});
    return start;
  }
  /// Takes events until `enough` returns true. @return false after two minutes, which happens only if
  /// something hangs
  bool until(const std::function<bool()>& enough) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (true) {
      for (const Event& event : events.take()) {
        timeline.apply(event);
        all.push_back(event);
      }
      if (enough()) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Checks that a held engine does not step. Sends twenty Hold commands, each after the answer to
  /// the previous one; a step would emit events between two answers.
  bool answers_held() {
    for (int i = 0; i < 20; i++) {
      const int before = count<Held>();
      commands.push(Hold{true});
      if (!until([&] { return count<Held>() > before; })) return false;
    }
    return true;
  }
  int n_over() const {
    int n = 0;
    for (const RunRecord& run : timeline.runs()) n += run.over();
    return n;
  }
  template <typename E>
  int count() const {
    int n = 0;
    for (const Event& event : all) n += std::holds_alternative<E>(event);
    return n;
  }

  /// Calls `heard` on the engine's thread, then passes the event on.
  struct Sink : EventSink {
    explicit Sink(EventQueue& queue) : to(queue) {}
    void push(Event event) override {
      if (heard) heard(event);
      to.push(std::move(event));
    }
    EventQueue& to;
    std::function<void(const Event&)> heard;  // set before pushing a command
  };

  CommandQueue commands;
  EventQueue events;
  Sink sink{events};
  Timeline timeline;
  std::vector<Event> all;
  std::thread thread;
};

}  // namespace engine::test
