// What the Setup panel has filled in, and the command it amounts to. No drawing here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/command.h"
#include "ui/shell/catalog.h"

namespace ui {

struct LaneForm {
  std::string decoder;
  std::map<std::string, std::string> options;  // complete
  std::string model = {};                      // of a race's lane alone; empty: the form's
};

struct ModelChoice {
  std::string model;  // name in the catalog, or a directory
  std::string scale = "1x1", dtype, device = "auto";
  int context = 0;  // positions a sequence may fill; 0: what the model's files say
  bool operator==(const ModelChoice&) const = default;
};

/// What Run starts on the Live screen.
enum class SetupMode { Prompt, Chain, Tree };

/// Which questions of a task.
struct QuestionsForm {
  std::string task;
  int level = 1;           // of a generated task
  std::int64_t start = 0;  // number of the first
  int count = 3;
  std::string data;     // a file of records in place of these; empty: none
  std::string prompts;  // a file of prompts, of a chain of worked examples; empty: the task's own
};

/// A chain or a tree of thoughts, beside what it shares with one prompt.
struct ReasoningForm {
  QuestionsForm chain, tree;
  LaneForm decoder;
  int batch = 1;         // texts in one forward, for decoders without branches of their own
  int max_tokens = 200;  // of a rationale
  int n_shots = -1;      // worked examples before each question; -1: as many as fit
  bool drop_approximate = false;  // from what asks for a chain's answer
  int n_actions = 6;              // of plans; 0: any
  int depth = 1, n_thoughts = 3, beam = 1;
  float temperature = 1, value_temperature = 0;  // of a tree's thoughts, of their evaluations
};

struct SetupForm : ModelChoice {
  std::string draft;  // the model that drafts, by name or path; empty: the card's
  std::map<std::string, std::string> heads;  // by kind, the draft heads chosen; absent: the card's
  std::string model_error;  // why the model asked for last is not the one above; empty: it is
  std::string prompt, prompt_id;
  LaneForm live;                // what Run starts on the Live screen
  std::vector<LaneForm> lanes;  // two to engine::kMaxLanes, of a race
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  int max_tokens = 128;
  bool ignore_eos = false, no_special = false, start_held = false;
  std::string stop_texts;  // stop strings, one a line (engine::stop_texts_from)
  std::string stop_ids;    // with commas between (engine::stop_ids_from)
  SetupMode mode = SetupMode::Prompt;
  ReasoningForm reasoning;
};

/// The smallest scale at which a model is large enough that its steps cost what reading its weights
/// costs, as a real model's do; parallel decoders gain nothing where the weights fit a cache.
/// @param n_params  as stored; 0 (unknown) gives "1x1"
const char* worthwhile_scale(std::int64_t n_params);
/// Chooses a model, at the scale worth its while if the catalog has it, else as it is; the draft is
/// the one its card names.
void choose_model(SetupForm& form, const Catalog& catalog, const std::string& model);

/// Sets the sampling to the model's generation_config.json; changes nothing if it has none.
void choose_model_sampling(SetupForm& form, const Catalog& catalog);
/// Whether the model's generation_config.json sets any of it.
bool has_model_sampling(const SetupForm& form, const Catalog& catalog);

/// The model that would draft: the one chosen, or the card's; empty where nothing names one.
std::string draft_of(const SetupForm& form, const Catalog& catalog);
/// Why a model cannot draft for another, with both counts where the vocabularies differ; empty: it
/// can, as far as the catalog knows.
std::string why_no_draft(const CatalogModel& target, const CatalogModel& draft);
/// Why nothing can draft for the form's model; empty: something can.
std::string why_no_draft(const SetupForm& form, const Catalog& catalog);
/// The heads of a kind ("medusa") that would be asked: those chosen, or the card's; empty where
/// nothing names any.
std::string heads_of(const SetupForm& form, const Catalog& catalog, const std::string& kind);
/// Why heads cannot be asked for a model; empty: they can, as far as the catalog knows.
std::string why_no_heads(const std::string& model, const CatalogHeads& heads);
/// Why no heads of a kind can be asked for the form's model; empty: some can.
std::string why_no_heads(const SetupForm& form, const Catalog& catalog, const std::string& kind);
/// The same of all heads there are, whatever is chosen: nothing is left to choose.
std::string why_none_to_choose(const SetupForm& form,
                               const Catalog& catalog,
                               const std::string& kind);
/// Why a decoder cannot be chosen, whatever its options; empty: it can.
std::string why_unavailable(const CatalogDecoder& decoder,
                            const SetupForm& form,
                            const Catalog& catalog);

/// The first model, prompt and decoders that are available. The race: where a consistency model was
/// made of the model, what each kind of decoder gains (ar, lookahead, jacobi by the consistency
/// model, seed), and plain decoding by that model, which it is measured against; else the first
/// four.
SetupForm first_form(const Catalog& catalog, const std::string& preferred_model);
/// A lane with every option at its default.
LaneForm lane_with(const Catalog& catalog, const std::string& decoder);
/// Two models of the catalog, the second made of the first by consistency training.
struct ConsistencyPair {
  std::string before, after;
};
/// The pair that the form's model is one of, else the first there is.
std::optional<ConsistencyPair> consistency_pair(const SetupForm& form, const Catalog& catalog);
/// A race of both: Jacobi by the one and by the other, and plain decoding by each beside it.
void choose_before_and_after(SetupForm& form, const Catalog& catalog, const ConsistencyPair& pair);
/// The tasks a mode can ask; none of One prompt.
const std::vector<CatalogTask>& tasks_of(SetupMode mode, const Catalog& catalog);
/// The form's questions of a mode that asks some, and the catalog's task of theirs or nullptr.
QuestionsForm& questions_of(SetupForm& form, SetupMode mode);
const CatalogTask* task_of(const SetupForm& form, SetupMode mode, const Catalog& catalog);
/// Chooses a task, at the level and depth it is asked with first.
void choose_task(SetupForm& form, SetupMode mode, const CatalogTask& task);
/// Why a file that was named cannot be read; empty: it can, or none was named.
std::string why_no_file(const std::string& path);
/// Why the form's own choice of task, level and first question does not count; empty: it does.
std::string why_no_choice(const QuestionsForm& questions);
/// Why a chain by this decoder leaves no approximate tokens that could be dropped; empty: it may.
std::string why_none_approximate(const LaneForm& lane);
/// Whether a decoder's options say how many texts are under way at once.
bool has_branches(const LaneForm& lane);

/// The command of Run (one lane) or Run race (all lanes).
engine::StartRun command_of(const SetupForm& form, bool race);
/// The command of Run where a chain or a tree of thoughts is chosen.
engine::StartReasoning reasoning_command(const SetupForm& form);
/// What Run asks for: whatever is chosen, a race of the lanes or one of the two above.
engine::Command next_command(const SetupForm& form, bool race);
/// Why Run cannot be pressed, as one sentence; empty: it can.
std::string why_not(const SetupForm& form, const Catalog& catalog, bool race);
/// Why one lane cannot run with the form's sampling; empty: it can.
std::string why_not(const LaneForm& lane, const SetupForm& form, const Catalog& catalog);

}  // namespace ui
