// The form of the panel Setup and the commands that it describes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/command.h"

namespace ui {

struct Catalog;
struct CatalogDecoder;
struct CatalogHeads;
struct CatalogModel;
struct CatalogTask;

/// A decoder with its options.
struct LaneForm {
  std::string decoder;
  std::map<std::string, std::string> options;  // a value for every option
  std::string model = {};  // only for a lane of a race; empty: the model of the form
  std::vector<std::int32_t> choices = {};  // of the recorded run that the next run repeats
};

/// The model and the settings with which it is loaded.
struct ModelChoice {
  std::string model;  // name in the catalog, or a directory
  std::string scale = "1x1", dtype, device = "auto";
  int context = 0;              // maximum number of positions; 0: the model's own value
  std::string cache_type = {};  // dtype of the KV cache; empty: as dtype
  bool operator==(const ModelChoice&) const = default;
};

/// The mode of Setup on the screen Live: one prompt, a chain of thought or a tree of thoughts.
enum class SetupMode { Prompt, Chain, Tree };

/// The questions of a task.
struct QuestionsForm {
  std::string task;
  int level = 1;           // difficulty of a generated task
  std::int64_t start = 0;  // number of the first question
  int count = 3;
  std::string data;     // a file of questions instead of the task's; empty: none
  std::string prompts;  // a file of prompts or worked examples; empty: the bundled ones
};

/// Settings of a chain or a tree of thoughts.
struct ReasoningForm {
  QuestionsForm chain, tree;
  LaneForm decoder;
  int batch = 1;                  // sequences per forward, for decoders without branches
  int max_tokens = 200;           // maximum length of a rationale
  int n_shots = -1;               // worked examples before each question; -1: as many as fit
  bool drop_approximate = false;  // leave FastCoT's unverified tokens out of the answer's prompt
  int n_actions = 6;              // number of actions of the plans; 0: any
  int depth = 1, n_thoughts = 3, beam = 1;
  float temperature = 1;                   // of the thoughts
  std::optional<float> value_temperature;  // of the texts that value them; unset: `temperature`

  /// Returns true if texts of a tree are sampled.
  bool samples() const { return temperature > 0 || value_temperature.value_or(0) > 0; }
};

/// Everything that Setup describes.
struct SetupForm : ModelChoice {
  std::string draft;  // the draft model, by name or path; empty: the model's own (CatalogModel)
  std::string draft_scale;  // WxD; empty: as `scale`
  std::map<std::string, std::string>
      heads;                // draft heads by kind; without an entry: as the card says
  std::string model_error;  // why the requested model could not be loaded; empty if it could
  std::string prompt, prompt_id;
  std::string prompt_error;  // why the last run refused the prompt; empty if it did not
  engine::ChatMode chat = engine::ChatMode::Auto;
  std::string system;           // the system message, for a model with a chat template
  LaneForm live;                // the decoder that Run starts on the screen Live
  std::vector<LaneForm> lanes;  // the lanes of a race, 2 to engine::kMaxLanes
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  int max_tokens = 128;
  bool ignore_eos = false, no_special = false, start_held = false;
  std::string stop_texts;   // stop strings, one per line (engine::stop_texts_from)
  std::string stop_ids;     // stop ids, separated by commas (engine::stop_ids_from)
  std::string pool;         // a file of text that decoders may copy from; empty: none
  int n_repeats = 1;        // of the run or race, 1 to engine::kMaxRepeats
  std::string prompt_file;  // whose prompts a race decodes in turn instead of `prompt`; empty: none
  std::vector<engine::SetPrompt> prompts;  // of that file
  std::string prompt_file_read;            // the path that they were read from
  std::string prompt_file_error;           // why it cannot be used; empty if it can
  SetupMode mode = SetupMode::Prompt;
  ReasoningForm reasoning;
};

/// Returns the smallest scale at which reading the weights dominates the time of a step, as in a real model. Parallel decoders gain nothing while the
/// weights fit into a cache.
/// @param n_params  stored parameters; 0 (unknown) gives "1x1"
const char* worthwhile_scale(std::int64_t n_params);
/// Chooses a model at its worthwhile_scale(), with the draft that its card names; a model that is not in the catalog gets scale 1x1.
void choose_model(SetupForm& form, const Catalog& catalog, const std::string& model);

/// After a choice of model: if a lane of the race cannot run with it, replaces the lanes by the default ones; if the prompt
/// is a bundled one of the other kind (message or text to continue), replaces it by the first of the right kind.
void fit_to_model(SetupForm& form, const Catalog& catalog);

/// Copies the sampling settings of the model's generation_config.json, if it has any.
void choose_model_sampling(SetupForm& form, const Catalog& catalog);
/// Returns true if the model's generation_config.json contains sampling settings.
bool has_model_sampling(const SetupForm& form, const Catalog& catalog);

/// Returns the draft model: the chosen one, or the one that the card names; empty if there is none.
std::string draft_of(const SetupForm& form, const Catalog& catalog);
/// Returns why a model cannot draft for another, as far as the catalog knows; empty if it can.
std::string why_no_draft(const CatalogModel& target, const CatalogModel& draft);
/// Returns why the form's model has no usable draft; empty if it has one.
std::string why_no_draft(const SetupForm& form, const Catalog& catalog);
/// Returns the draft heads of a kind ("medusa"): the chosen ones, or those that the card names; empty if there are none.
std::string heads_of(const SetupForm& form, const Catalog& catalog, const std::string& kind);
/// Returns why draft heads do not fit a model, as far as the catalog knows; empty if they do.
std::string why_no_heads(const std::string& model, const CatalogHeads& heads);
/// Returns why the form's model has no usable heads of a kind; empty if it has some.
std::string why_no_heads(const SetupForm& form, const Catalog& catalog, const std::string& kind);
/// Returns why no heads of a kind can be chosen at all; empty if some can.
std::string why_none_to_choose(const SetupForm& form,
                               const Catalog& catalog,
                               const std::string& kind);
/// Returns why a decoder cannot be chosen, whatever its options are; empty if it can.
std::string why_unavailable(const CatalogDecoder& decoder,
                            const SetupForm& form,
                            const Catalog& catalog);

/// Returns the initial form: the first available model, prompt and decoders. If a consistency model was trained from the model, the race compares one
/// decoder of each kind (ar, lookahead, jacobi with the consistency model, seed) and plain decoding with that model as its baseline;
/// otherwise, if the model has a chat template, ar, lookahead, prompt-lookup and suffix,
/// which need no further model; else the first four decoders.
SetupForm first_form(const Catalog& catalog, const std::string& preferred_model);
/// Returns a lane with the default options of a decoder.
LaneForm lane_with(const Catalog& catalog, const std::string& decoder);
/// Two models of the catalog; the second was trained from the first by consistency training.
struct ConsistencyPair {
  std::string before, after;
};
/// Returns the pair that contains the form's model, if there is one and both can be loaded.
std::optional<ConsistencyPair> consistency_pair(const SetupForm& form, const Catalog& catalog);
/// Sets up a race with Jacobi and plain decoding by each of the two models.
void choose_before_and_after(SetupForm& form, const Catalog& catalog, const ConsistencyPair& pair);
/// A mode and a decoder that suits it, offered as a link in Setup: a tree of thoughts with SEED, a chain of thought with FastCoT.
struct Example {
  SetupMode mode;
  std::string decoder;
};
/// Returns true if the example's decoder can run with the form's model and there is a task.
bool has_example(const SetupForm& form, const Catalog& catalog, const Example& example);
/// Sets up an example; the task stays as it is.
void choose_example(SetupForm& form, const Catalog& catalog, const Example& example);
/// Returns the tasks of a mode; empty for SetupMode::Prompt.
const std::vector<CatalogTask>& tasks_of(SetupMode mode, const Catalog& catalog);
/// Returns the questions of a mode.
QuestionsForm& questions_of(SetupForm& form, SetupMode mode);
/// Returns the catalog's task of a mode's questions, or nullptr.
const CatalogTask* task_of(const SetupForm& form, SetupMode mode, const Catalog& catalog);
/// Chooses a task with its initial level and depth.
void choose_task(SetupForm& form, SetupMode mode, const CatalogTask& task);
/// Returns why a file cannot be read; empty if it can, or if the path is empty.
std::string why_no_file(const std::string& path);
/// Returns why the choice of task, level and first question has no effect; empty if it has one.
std::string why_no_choice(const QuestionsForm& questions);
/// Returns why a chain of this decoder has no approximate tokens; empty if it may have some.
std::string why_none_approximate(const LaneForm& lane);
/// Returns true if the decoder has an option for the number of sequences.
bool has_branches(const LaneForm& lane);

/// The form's model if prompts go through its chat template, else nullptr.
const CatalogModel* chat_model(const SetupForm& form, const Catalog& catalog);
/// Reads the prompt file if its path has changed since it was read.
void read_prompt_file(SetupForm& form, const Catalog& catalog);
/// Returns the number of prompts and the tasks that they belong to: "12 prompts: arith 8, kb 4".
std::string prompts_words(const std::vector<engine::SetPrompt>& prompts);
/// Returns true if a decoder that Run would start copies from a file of text.
bool reads_pool(const SetupForm& form, const Catalog& catalog, bool race);
/// Returns the command of Run (one lane) or Run race (all lanes).
engine::StartRun command_of(const SetupForm& form, bool race);
/// Returns the command of Run if a chain or a tree of thoughts is chosen.
engine::StartReasoning reasoning_command(const SetupForm& form);
/// Returns the command of Run for the chosen mode, or of Run race.
engine::Command next_command(const SetupForm& form, bool race);
/// Returns why Run is disabled, as a sentence; empty if it is not.
std::string why_not(const SetupForm& form, const Catalog& catalog, bool race);
/// Returns why a lane cannot run with the sampling settings of the form; empty if it can.
std::string why_not(const LaneForm& lane, const SetupForm& form, const Catalog& catalog);

}  // namespace ui
