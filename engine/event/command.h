// Commands from the window to the engine. Plain values; the engine answers with events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/event/chat_mode.h"
#include "engine/event/event.h"

namespace engine {

/// A decoder with its options, and the model of a lane.
struct LaneRequest {
  std::string decoder;
  std::map<std::string, std::string> options;
  std::string model = {};  // NAME or directory of the lane's model; empty: the model of the run
  std::vector<std::int32_t> choices = {};  // of the recorded run that this one repeats; else empty
};

/// Maximum number of lanes of a race: four that are shown, and plain decoding by another model as
/// the baseline of one of them.
inline constexpr std::size_t kMaxLanes = 5;

/// A prompt of a set.
struct SetPrompt {
  std::string id, text;
  std::string task = {};  // empty: none
  // role and content of each message of a conversation; empty: `text` is the prompt
  std::vector<std::pair<std::string, std::string>> messages = {};
  std::optional<std::uint64_t> seed = {};  // instead of the command's
};

/// Maximum number of repeats of each prompt.
inline constexpr int kMaxRepeats = 100;

/// Starts one run (one lane) or a race (2 to kMaxLanes lanes that decode the same prompt and take
/// turns); with several prompts or repeats, one race after the other. A prompt that cannot be read
/// is skipped with a notice.
struct StartRun {
  std::string model;          // NAME or directory
  std::string scale = "1x1";  // or "auto"
  std::string dtype;          // empty: as stored
  std::string device = "auto";
  std::string cache_type = {};  // dtype of the KV cache; empty: as dtype
  int context = 0;              // positions that a sequence may fill; 0: as the model's files say
  // NAME or directory of the draft model; empty: the one in the model's card or made for the model
  std::string draft;
  std::string draft_scale = {};  // WxD; empty: as `scale`
  // folders of draft heads, at most one per kind; empty: those in the model's card
  std::vector<std::string> heads;
  std::string prompt, prompt_id;
  std::vector<LaneRequest> lanes;
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  int max_tokens = 256;
  bool ignore_eos = false;
  bool no_special = false;                   // reads names of control symbols as text
  bool start_held = false;                   // begins on hold: waits for StepOnce or Hold{false}
  std::vector<std::string> stop_texts = {};  // the text ends before the first of these
  std::vector<TokenId> stop_ids = {};        // the run ends at any of them
  ChatMode chat = ChatMode::Auto;            // of each lane's model
  std::string system = {};              // system message; ignored by models without a chat template
  std::string pool = {};                // file of text that decoders may copy from; empty: none
  std::vector<SetPrompt> prompts = {};  // decoded in turn instead of `prompt`; empty: `prompt`
  int n_repeats = 1;                    // of each prompt, 1 to kMaxRepeats
};
/// Answers questions of a task by chain of thought or trees of thoughts: a scheduler completes many
/// sequences, each one a run.
struct StartReasoning {
  /// Chain of thought or tree of thoughts.
  enum class What : std::uint8_t { Chain, Tree } what = What::Chain;
  // as in StartRun
  std::string model, scale = "1x1", dtype, device = "auto", draft, draft_scale;
  std::vector<std::string> heads;
  std::string cache_type = {};
  int context = 0;
  std::string task;
  int level = 0;           // level of a generated task, from 1; 0: the task's default
  std::int64_t start = 0;  // number of the first question
  int count = 3;
  // a file of records, each of which names its task; empty: questions of `task` are used
  std::string data;
  /// A file with prompts (for a tree) or worked examples (for a chain); empty: those of the task.
  std::string prompts;
  int n_actions = 6;  // for block problems: length of the shortest plan; 0: any
  LaneRequest decoder;
  int batch = 1;  // sequences in one forward pass; ignored by "seed", which has options for it
  // Setting of a chain of thought, which is decoded greedily.
  float repetition_penalty = 1;
  int max_tokens = 200;           // maximum number of tokens of a rationale
  int n_shots = -1;               // worked examples before each question; -1: as many as fit
  bool drop_approximate = false;  // true: asks for the answer after the exact tokens only
  // Settings of a tree of thoughts.
  int depth = 0;  // maximum number of levels; 0: the task's default
  int n_thoughts = 3, beam = 1;
  float temperature = 1;                        // of the thoughts
  std::optional<float> value_temperature = {};  // of their evaluations; unset: `temperature`
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  bool start_held = false;  // as in StartRun
};
/// Stops a run.
struct StopRun {
  RunId run = 0;  // 0: all
};
/// Pauses the engine after the current step, or lets it continue.
struct Hold {
  bool held = true;
};
/// While the engine is paused, runs one step of each unfinished lane.
struct StepOnce {};
/// Loads a model before a run needs it.
struct LoadModel {
  std::string model, scale = "1x1", dtype, device = "auto";
  int context = 0;              // as in StartRun
  std::string cache_type = {};  // as in StartRun
};
/// Runs plain autoregressive decoding on the run's prompt and settings, and compares the outputs.
struct CheckAgreement {
  RunId run = 0;
};
/// Records all events from now on to a file; an empty path ends the recording.
struct RecordTo {
  std::string path;
};

using Command = std::
    variant<StartRun, StopRun, Hold, StepOnce, LoadModel, CheckAgreement, RecordTo, StartReasoning>;

}  // namespace engine
