// What is going on, in a few words: "slow or stuck?" always has an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace ui {

struct Status {
  enum class Level { Quiet, Good, Amber, Bad } level = Level::Quiet;
  std::string text;
  double share = -1;     // of a phase with a known end, 0 to 1; else -1
  bool working = false;  // something is expected to happen
};

/// @param run          the run shown, or nullptr
/// @param since_event  seconds since the last event arrived, samples of the machine apart
/// @param recorded     an opened recording: nothing more will come
Status status_of(const engine::Timeline& timeline,
                 const engine::RunRecord* run,
                 double since_event,
                 bool recorded);
/// A model on its way.
struct Loading {
  std::string name;
  double done = 0, total = 0;  // bytes
  double per_second = 0;       // bytes, over this loading so far; 0: not known yet
  double seconds_left() const { return per_second > 0 ? (total - done) / per_second : -1; }
};
/// Nothing while no model is being loaded.
std::optional<Loading> loading_of(const engine::Timeline& timeline);
/// "0.09 of 0.18 GB, 1.20 GB/s, 3 s left"; speed and time only where they are known.
std::string loading_facts(const Loading& loading);
/// A sentence while a model is being loaded: "Loading demo-target: 0.09 of ..."; else empty.
std::string loading_words(const engine::Timeline& timeline);
/// The same, and a sentence for the seconds before and after in which nothing is told of it.
/// @param waiting  seconds since a model or a run was asked for; -1: nothing is awaited
std::string awaited_words(const engine::Timeline& timeline, double waiting);
/// A chain or tree of thoughts under way.
struct Reasoning {
  std::string words;  // "question 1 of 3, level 2 of 4, values 2 of 3"
  double share = 0;
};
/// Nothing while none is.
std::optional<Reasoning> reasoning_of(const engine::Timeline& timeline);
/// Whether the engine has something to do: a run, or a chain or tree between two of its runs.
bool is_going(const engine::Timeline& timeline);
/// A run's name where lanes stand side by side: "C lookahead"; alone "lookahead".
std::string name_of(const engine::RunRecord& run);
/// Where the lanes of a race stand at the playhead: own compute used, and how many have ended by
/// it.
/// @param at     the playhead, ns of own compute
/// @param n_over lanes that have ended by then
std::string race_words(double at, std::size_t n_over, std::size_t n_lanes);
/// "same as plain decoding" and its like, for beside the Run button; empty where there is
/// nothing to say.
Status agreement_of(const engine::RunRecord* run);

/// What the bar at the window's foot tells. Only what is there is said: no counts of nothing.
struct BarFacts {
  std::string source;         // the opened recording's file name; empty: this session
  std::int64_t n_events = 0;  // of what is shown
  std::int64_t n_inconsistent = 0, n_dropped = 0;
  bool running = false, held = false;  // the engine
  bool quiet = false;                  // the window draws seldom, for the engine's sake
  std::string device;                  // "cpu 97 % busy"
  double draw_ms = 0;
  int scale_percent = 100;
  std::string range;  // measured; empty: none
};
std::string bar_words(const BarFacts& facts);

/// What a picture of these runs has to say by itself: program, model, settings, and what the small
/// letters behind figures mean.
std::string caption_words(const std::string& app_version,
                          const engine::Timeline& timeline,
                          const std::vector<const engine::RunRecord*>& runs);

}  // namespace ui
