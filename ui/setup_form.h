// What the Setup panel has filled in, and the command it amounts to. No drawing here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/event/command.h"
#include "ui/catalog.h"

namespace ui {

struct LaneForm {
  std::string decoder;
  std::map<std::string, std::string> options;  // complete
};

struct SetupForm {
  std::string model;  // name in the catalog, or a directory
  std::string scale = "1x1", dtype, device = "auto";
  std::string prompt, prompt_id;
  LaneForm live;                // what Run starts on the Live screen
  std::vector<LaneForm> lanes;  // two to four, of a race
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  int seed = 1;
  std::string sampling = "coupled";
  int max_tokens = 128;
  bool ignore_eos = false, start_held = false;
};

/// The first model, prompt and decoders that are available; a race of up to four decoders.
SetupForm first_form(const Catalog& catalog, const std::string& preferred_model);
/// A lane with every option at its default.
LaneForm lane_with(const Catalog& catalog, const std::string& decoder);
/// The command of Run (one lane) or Run race (all lanes).
engine::StartRun command_of(const SetupForm& form, bool race);
/// Why Run cannot be pressed, as one sentence; empty: it can.
std::string why_not(const SetupForm& form, const Catalog& catalog, bool race);
/// Why one lane cannot run with the form's sampling; empty: it can.
std::string why_not(const LaneForm& lane, const SetupForm& form, const Catalog& catalog);

}  // namespace ui
