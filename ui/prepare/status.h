// What is going on, in a few words: "slow or stuck?" always has an answer.
#pragma once

#include <string>

#include "engine/event/timeline.h"

namespace ui {

struct Status {
  enum class Level { Quiet, Good, Amber, Bad } level = Level::Quiet;
  std::string text;
  double share = -1;     // of a phase with a known end, 0 to 1; else -1
  bool working = false;  // something is expected to happen
};

/// @param run          the run shown, or nullptr
/// @param since_event  seconds since the last event arrived
/// @param recorded     an opened recording: nothing more will come
Status status_of(const engine::Timeline& timeline,
                 const engine::RunRecord* run,
                 double since_event,
                 bool recorded);
/// A sentence while a model is being loaded: "Loading demo-target: 43 %. ..."; else empty.
std::string loading_words(const engine::Timeline& timeline);
/// "✓ identical to AR" and its like, for beside the Run button; empty where there is nothing to
/// say.
Status agreement_of(const engine::RunRecord* run);

}  // namespace ui
