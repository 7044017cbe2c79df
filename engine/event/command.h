// What the window asks of the engine. Values only; answers come back as events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/event/event.h"

namespace engine {

struct LaneRequest {
  std::string decoder;
  std::map<std::string, std::string> options;
  std::string model = {};  // NAME or directory of a lane's own; empty: the run's
};

/// Of a race, at most: four to look at, and plain decoding by another model, which one of them is
/// measured against.
inline constexpr std::size_t kMaxLanes = 5;

/// One run (one lane) or a race (two lanes to kMaxLanes, one prompt, taking turns under the race
/// clock).
struct StartRun {
  std::string model;          // NAME or directory
  std::string scale = "1x1";  // or "auto"
  std::string dtype;          // empty: as stored
  std::string device = "auto";
  int context = 0;    // positions a sequence may fill; 0: what the model's files say
  std::string draft;  // NAME or directory of the draft model; empty: what the model's card names
  std::vector<std::string> heads;  // likewise of draft heads, at most one of a kind
  std::string prompt, prompt_id;
  std::vector<LaneRequest> lanes;
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  int max_tokens = 256;
  bool ignore_eos = false;
  bool no_special = false;                   // names of control symbols in the prompt are text
  bool start_held = false;                   // wait for StepOnce or Hold{false}
  std::vector<std::string> stop_texts = {};  // the text ends before the first of these
  std::vector<TokenId> stop_ids = {};        // each ends the text
};
/// Questions of a task, answered by chain of thought or searched by trees of thoughts: many texts,
/// each a run alone, that a scheduler completes.
struct StartReasoning {
  enum class What : std::uint8_t { Chain, Tree } what = What::Chain;
  std::string model, scale = "1x1", dtype, device = "auto", draft;  // as of StartRun
  std::vector<std::string> heads;                                   // likewise
  int context = 0;                                                  // likewise
  std::string task;
  int level = 0;           // of a generated task, from 1; 0: the task's own
  std::int64_t start = 0;  // number of the first question
  int count = 3;
  std::string data;  // a file of records, which say their task; empty: questions of the task
  std::string
      prompts;        // a file: a tree's prompts, a chain's worked examples; empty: the task's own
  int n_actions = 6;  // of plans for blocks: those whose shortest plan has so many; 0: any
  LaneRequest decoder;
  int batch = 1;  // texts in one forward; not of "seed", whose options say it
  // Of a chain, which is greedy.
  float repetition_penalty = 1;
  int max_tokens = 200;           // of a rationale
  int n_shots = -1;               // worked examples before each question; -1: as many as fit
  bool drop_approximate = false;  // ask for the answer behind the exact tokens alone
  // Of a tree.
  int depth = 0;  // levels, at most; 0: the task's own
  int n_thoughts = 3, beam = 1;
  float temperature = 1, value_temperature = 0;  // of thoughts, of their evaluations
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  bool start_held = false;  // as of StartRun
};
struct StopRun {
  RunId run = 0;  // 0: all
};
struct Hold {
  bool held = true;
};
/// One step of each lane that has one left, while held.
struct StepOnce {};
struct LoadModel {
  std::string model, scale = "1x1", dtype, device = "auto";
  int context = 0;  // as of StartRun
};
/// Runs plain autoregressive decoding on the run's prompt and settings, and compares.
struct CheckAgreement {
  RunId run = 0;
};
/// Writes everything from now on to a file; an empty path ends it.
struct RecordTo {
  std::string path;
};

using Command = std::
    variant<StartRun, StopRun, Hold, StepOnce, LoadModel, CheckAgreement, RecordTo, StartReasoning>;

}  // namespace engine
