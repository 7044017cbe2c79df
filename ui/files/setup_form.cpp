#include "ui/files/setup_form.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/run_rules.h"
#include "engine/event/stop_rules.h"
#include "ui/files/prompt_file.h"
#include "ui/shell/catalog.h"

namespace ui {

const char* worthwhile_scale(std::int64_t n_params) {
  // 128 MB as bf16: more than the last-level cache of most processors.
  constexpr std::int64_t kEnough = 64'000'000;
  struct Choice {
    const char* name;
    // factor by which the scale multiplies the parameters: width squared times depth
    std::int64_t times;
  };
  static constexpr Choice kChoices[] = {{"1x1", 1}, {"1x2", 2}, {"4x1", 16}, {"4x2", 32}};
  if (n_params <= 0) return "1x1";
  for (const Choice& choice : kChoices)
    if (n_params * choice.times >= kEnough) return choice.name;
  return kChoices[3].name;
}

void choose_model(SetupForm& form, const Catalog& catalog, const std::string& model) {
  form.model = model;
  form.scale = "1x1";
  form.context = 0;
  form.model_error.clear();
  form.draft.clear();
  form.draft_scale.clear();
  form.heads.clear();
  const CatalogModel* known = catalog.model(model);
  if (!known) return;
  form.scale = worthwhile_scale(known->n_params);
  if (form.chat == engine::ChatMode::Chat && known->has_no_template())
    form.chat = engine::ChatMode::Auto;
}

std::string draft_of(const SetupForm& form, const Catalog& catalog) {
  if (!form.draft.empty()) return form.draft;
  const CatalogModel* target = catalog.model(form.model);
  return target ? target->draft : "";
}

std::string why_no_draft(const CatalogModel& target, const CatalogModel& draft) {
  if (!draft.shares_with.empty()) return "";  // checked when it is opened beside the target
  if (!draft.unavailable.empty()) return draft.name + ": " + draft.unavailable;
  if (target.vocab_size == 0 || draft.vocab_size == 0) return "";
  if (target.vocab_size != draft.vocab_size)
    return fmt::format("the draft has {} tokens, the target {}; the vocabularies must be equal",
                       draft.vocab_size, target.vocab_size);
  if (target.vocabulary != draft.vocabulary)
    return fmt::format("draft and target have {} tokens each, but different vocabularies",
                       draft.vocab_size);
  return "";
}

std::string why_no_draft(const SetupForm& form, const Catalog& catalog) {
  const CatalogModel* target = catalog.model(form.model);
  const std::string name = draft_of(form, catalog);
  if (name.empty())  // the card of a model outside the catalog is unknown here and may name one
    return target ? "no draft model chosen, and there is none of " + form.model : "";
  const CatalogModel* draft = catalog.model(name);
  return target && draft ? why_no_draft(*target, *draft) : "";
}

std::string heads_of(const SetupForm& form, const Catalog& catalog, const std::string& kind) {
  if (const auto chosen = form.heads.find(kind); chosen != form.heads.end()) return chosen->second;
  const CatalogModel* target = catalog.model(form.model);
  if (!target) return "";
  const auto named = target->heads.find(kind);
  return named == target->heads.end() ? "" : named->second;
}

std::string why_no_heads(const std::string& model, const CatalogHeads& heads) {
  if (!heads.unavailable.empty()) return heads.name + ": " + heads.unavailable;
  const auto why = heads.unfit.find(model);
  return why == heads.unfit.end() ? "" : why->second;
}

std::string why_no_heads(const SetupForm& form, const Catalog& catalog, const std::string& kind) {
  const std::string name = heads_of(form, catalog, kind);
  if (name.empty()) {
    // A model outside the catalog may have a card that names heads; this program has not read it.
    if (!catalog.model(form.model)) return "";
    const std::string none = why_none_to_choose(form, catalog, kind);
    return none.empty() ? "no heads chosen, and the card of " + form.model + " names none" : none;
  }
  for (const CatalogHeads& heads : catalog.heads)
    if (heads.name == name && heads.kind == kind) return why_no_heads(form.model, heads);
  return "";
}

std::string why_none_to_choose(const SetupForm& form,
                               const Catalog& catalog,
                               const std::string& kind) {
  std::size_t n_others = 0;
  if (!catalog.model(form.model) || !heads_of(form, catalog, kind).empty()) return "";
  for (const CatalogHeads& heads : catalog.heads) {
    if (heads.kind != kind) continue;
    if (why_no_heads(form.model, heads).empty()) return "";
    ++n_others;
  }
  return fmt::format("the card of {} names no heads for it, and {}", form.model,
                     n_others > 0
                         ? "the available heads belong to other models"
                         : "none are available; `decoscope train " + kind + "` trains some");
}

std::string why_unavailable(const CatalogDecoder& decoder,
                            const SetupForm& form,
                            const Catalog& catalog) {
  if (!decoder.unavailable.empty()) return decoder.unavailable;
  if (decoder.needs_heads) return why_no_heads(form, catalog, decoder.name);
  return decoder.needs_draft ? why_no_draft(form, catalog) : "";
}

LaneForm lane_with(const Catalog& catalog, const std::string& decoder) {
  LaneForm lane;
  lane.decoder = decoder;
  if (const CatalogDecoder* info = catalog.decoder(decoder))
    for (const CatalogOption& option : info->options)
      lane.options[option.name] = option.default_value;
  return lane;
}

std::optional<ConsistencyPair> consistency_pair(const SetupForm& form, const Catalog& catalog) {
  for (const CatalogModel& after : catalog.models) {
    const CatalogModel* before = catalog.model(after.before);
    if (!before || !before->unavailable.empty() || !after.unavailable.empty()) continue;
    if (form.model == before->name || form.model == after.name)
      return ConsistencyPair{before->name, after.name};
  }
  return std::nullopt;
}

void choose_before_and_after(SetupForm& form, const Catalog& catalog, const ConsistencyPair& pair) {
  if (form.model != pair.before) choose_model(form, catalog, pair.before);
  form.lanes.clear();
  for (const char* decoder : {"jacobi", "ar"}) {
    for (const std::string& model : {std::string(), pair.after}) {
      LaneForm lane = lane_with(catalog, decoder);
      lane.model = model;
      form.lanes.push_back(std::move(lane));
    }
  }
}

bool has_example(const SetupForm& form, const Catalog& catalog, const Example& example) {
  const CatalogDecoder* decoder = catalog.decoder(example.decoder);
  const auto is_available = [](const CatalogTask& task) { return task.unavailable.empty(); };
  return decoder && why_unavailable(*decoder, form, catalog).empty() &&
         std::ranges::any_of(tasks_of(example.mode, catalog), is_available);
}

void choose_example(SetupForm& form, const Catalog& catalog, const Example& example) {
  form.mode = example.mode;
  form.reasoning.decoder = lane_with(catalog, example.decoder);
}

const std::vector<CatalogTask>& tasks_of(SetupMode mode, const Catalog& catalog) {
  static const std::vector<CatalogTask> none;
  if (mode == SetupMode::Chain) return catalog.chain_tasks;
  return mode == SetupMode::Tree ? catalog.tree_tasks : none;
}

QuestionsForm& questions_of(SetupForm& form, SetupMode mode) {
  return mode == SetupMode::Tree ? form.reasoning.tree : form.reasoning.chain;
}

const CatalogTask* task_of(const SetupForm& form, SetupMode mode, const Catalog& catalog) {
  const QuestionsForm& questions =
      mode == SetupMode::Tree ? form.reasoning.tree : form.reasoning.chain;
  for (const CatalogTask& task : tasks_of(mode, catalog))
    if (task.name == questions.task) return &task;
  return nullptr;
}

void choose_task(SetupForm& form, SetupMode mode, const CatalogTask& task) {
  QuestionsForm& questions = questions_of(form, mode);
  questions.task = task.name;
  questions.level = task.level;
  if (mode == SetupMode::Tree) form.reasoning.depth = task.depth;
}

std::string why_no_file(const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_regular_file(path, error)) return "";
  if (std::filesystem::is_directory(path, error)) return path + ": is a folder, expected a file.";
  return path + ": does not exist.";
}

std::string why_no_choice(const QuestionsForm& questions) {
  return questions.data.empty() ? "" : "The file of records determines task and level.";
}

bool has_branches(const LaneForm& lane) {
  return lane.options.contains("branches");
}

namespace {

// Chooses the first available task; SEED if there is a draft model, else Lookahead.
void begin_reasoning(SetupForm& form, const Catalog& catalog) {
  for (const SetupMode mode : {SetupMode::Chain, SetupMode::Tree}) {
    const auto& tasks = tasks_of(mode, catalog);
    const auto first = std::ranges::find_if(
        tasks, [](const CatalogTask& task) { return task.unavailable.empty(); });
    if (first != tasks.end()) choose_task(form, mode, *first);
  }
  form.reasoning.decoder = form.live;
  for (const char* name : {"lookahead", "seed"}) {
    const CatalogDecoder* decoder = catalog.decoder(name);
    if (decoder && why_unavailable(*decoder, form, catalog).empty())
      form.reasoning.decoder = lane_with(catalog, name);
  }
}

// Returns the lanes of first_form() with the consistency model; empty if none was trained from the form's model, or if a lane cannot run.
std::vector<LaneForm> race_with_consistency(const SetupForm& form, const Catalog& catalog) {
  const auto pair = consistency_pair(form, catalog);
  if (!pair || pair->before != form.model) return {};
  std::vector<LaneForm> lanes;
  for (const char* decoder : {"ar", "lookahead", "jacobi", "seed", "ar"})
    lanes.push_back(lane_with(catalog, decoder));
  lanes[2].model = lanes[4].model = pair->after;
  // The widest block whose rows are cheap on two cores (docs/results.md); the default block of 16 computes too many rows.
  for (const auto& [name, value] : {std::pair("refill", "slide"), std::pair("block", "10")})
    if (const auto option = lanes[2].options.find(name); option != lanes[2].options.end())
      option->second = value;
  for (const LaneForm& lane : lanes)
    if (!why_not(lane, form, catalog).empty()) return {};
  return lanes;
}

// The race of an assistant: decoders that need no training, then those whose draft or heads there are.
std::vector<LaneForm> race_of_assistant(const SetupForm& form, const Catalog& catalog) {
  std::vector<LaneForm> trained;
  for (const char* name : {"speculative", "medusa", "chimera"})
    if (const CatalogDecoder* decoder = catalog.decoder(name);
        decoder && why_unavailable(*decoder, form, catalog).empty())
      trained.push_back(lane_with(catalog, name));
  std::vector<LaneForm> lanes;
  for (const char* name : {"ar", "lookahead", "prompt-lookup", "suffix"})
    if (catalog.decoder(name) && (trained.empty() || name != std::string_view("prompt-lookup")))
      lanes.push_back(lane_with(catalog, name));
  for (LaneForm& lane : trained)
    if (lanes.size() < engine::kMaxLanes) lanes.push_back(std::move(lane));
  return lanes;
}

std::vector<LaneForm> first_available(const SetupForm& form, const Catalog& catalog) {
  constexpr std::size_t kMost = 4;
  std::vector<LaneForm> lanes;
  for (const CatalogDecoder& decoder : catalog.decoders)
    if (lanes.size() < kMost && why_unavailable(decoder, form, catalog).empty())
      lanes.push_back(lane_with(catalog, decoder.name));
  return lanes;
}

void choose_default_lanes(SetupForm& form, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(form.model);
  form.lanes = race_with_consistency(form, catalog);
  if (form.lanes.empty() && model && (model->chat || !model->is_read))
    form.lanes = race_of_assistant(form, catalog);
  if (form.lanes.size() < 2) form.lanes = first_available(form, catalog);
  if (!form.lanes.empty()) form.live = form.lanes[form.lanes.size() > 2 ? 2 : 0];
  for (const LaneForm& lane : form.lanes)
    if (lane.decoder == "lookahead") form.live = lane;
}

void choose_default_prompt(SetupForm& form, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(form.model);
  const bool wants_message = model && model->chat;
  const auto fits = [&](const CatalogPrompt& prompt) { return prompt.is_message == wants_message; };
  const auto current = std::ranges::find(catalog.prompts, form.prompt_id, &CatalogPrompt::id);
  const bool is_own = current == catalog.prompts.end() && !form.prompt.empty();
  if (is_own || (current != catalog.prompts.end() && fits(*current))) return;
  auto first = std::ranges::find_if(catalog.prompts, fits);
  if (first == catalog.prompts.end() && form.prompt.empty()) first = catalog.prompts.begin();
  if (first == catalog.prompts.end()) return;
  form.prompt = first->text;
  form.prompt_id = first->id;
}

}  // namespace

void fit_to_model(SetupForm& form, const Catalog& catalog) {
  const bool in_pair = consistency_pair(form, catalog).has_value();
  const auto cannot_run = [&](const LaneForm& lane) {
    const CatalogDecoder* decoder = catalog.decoder(lane.decoder);
    return !decoder || !why_unavailable(*decoder, form, catalog).empty() ||
           (!lane.model.empty() && !in_pair);
  };
  if (std::ranges::any_of(form.lanes, cannot_run)) choose_default_lanes(form, catalog);
  choose_default_prompt(form, catalog);
}

SetupForm first_form(const Catalog& catalog, const std::string& preferred_model) {
  SetupForm form;
  for (const CatalogModel& model : catalog.models) {
    if (!model.unavailable.empty()) continue;
    if (form.model.empty() || model.name == preferred_model)
      choose_model(form, catalog, model.name);
  }
  choose_default_prompt(form, catalog);
  choose_default_lanes(form, catalog);
  begin_reasoning(form, catalog);
  return form;
}

namespace {

std::vector<std::string> heads_chosen(const SetupForm& form) {
  std::vector<std::string> heads;
  for (const auto& [kind, name] : form.heads) heads.push_back(name);
  return heads;
}

}  // namespace

bool has_model_sampling(const SetupForm& form, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(form.model);
  return model && model->sampling != CatalogSampling{};
}

void choose_model_sampling(SetupForm& form, const Catalog& catalog) {
  if (!has_model_sampling(form, catalog)) return;
  const CatalogSampling& own = catalog.model(form.model)->sampling;
  form.temperature = own.temperature;
  form.top_p = own.top_p;
  form.min_p = own.min_p;
  form.top_k = own.top_k;
  form.repetition_penalty = own.repetition_penalty;
  if (own.max_tokens > 0) form.max_tokens = own.max_tokens;
}

const CatalogModel* chat_model(const SetupForm& form, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(form.model);
  return model && model->chat && form.chat != engine::ChatMode::Raw ? model : nullptr;
}

void read_prompt_file(SetupForm& form, const Catalog& catalog) {
  if (form.prompt_file == form.prompt_file_read) return;
  form.prompt_file_read = form.prompt_file;
  form.prompts.clear();
  form.prompt_file_error = why_no_file(form.prompt_file);
  if (form.prompt_file.empty() || !form.prompt_file_error.empty()) return;
  CatalogPromptFile file{.prompts = {}, .unusable = "This program cannot read prompt files."};
  if (catalog.read_prompts) file = catalog.read_prompts(form.prompt_file);
  form.prompts = std::move(file.prompts);
  form.prompt_file_error = std::move(file.unusable);
}

std::string prompts_words(const std::vector<engine::SetPrompt>& prompts) {
  std::string text = engine::counted(std::ssize(prompts), "prompt");
  std::vector<std::pair<std::string, int>> tasks;  // in the order of the file
  for (const engine::SetPrompt& prompt : prompts) {
    if (prompt.task.empty()) continue;
    auto known = std::ranges::find(tasks, prompt.task, &std::pair<std::string, int>::first);
    if (known == tasks.end()) known = tasks.insert(tasks.end(), {prompt.task, 0});
    ++known->second;
  }
  for (std::size_t i = 0; i < tasks.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", tasks[i].first, tasks[i].second);
  return text;
}

bool reads_pool(const SetupForm& form, const Catalog& catalog, bool race) {
  const auto reads = [&](const LaneForm& lane) {
    const CatalogDecoder* decoder = catalog.decoder(lane.decoder);
    return decoder && decoder->reads_pool;
  };
  return race ? std::ranges::any_of(form.lanes, reads) : reads(form.live);
}

engine::StartRun command_of(const SetupForm& form, bool race) {
  engine::StartRun start;
  start.model = form.model;
  start.scale = form.scale;
  start.dtype = form.dtype;
  start.cache_type = form.cache_type;
  start.device = form.device;
  start.context = form.context;
  start.draft = form.draft;
  start.draft_scale = form.draft_scale;
  start.heads = heads_chosen(form);
  start.prompt = form.prompt;
  start.prompt_id = form.prompt_id;
  start.chat = form.chat;
  if (form.chat != engine::ChatMode::Raw) start.system = form.system;
  start.temperature = form.temperature;
  start.top_p = form.top_p;
  start.min_p = form.min_p;
  start.repetition_penalty = form.repetition_penalty;
  start.top_k = form.top_k;
  start.seed = form.seed;
  start.sampling = form.sampling;
  start.max_tokens = form.max_tokens;
  start.ignore_eos = form.ignore_eos;
  start.no_special = form.no_special;
  start.stop_texts = engine::stop_texts_from(form.stop_texts);
  start.stop_ids = engine::stop_ids_from(form.stop_ids).value_or(std::vector<engine::TokenId>());
  start.start_held = form.start_held;
  start.pool = form.pool;
  start.n_repeats = form.n_repeats;
  if (race && !form.prompt_file.empty()) start.prompts = form.prompts;
  if (race)
    for (const LaneForm& lane : form.lanes)
      start.lanes.push_back({lane.decoder, lane.options, lane.model, lane.choices});
  else
    start.lanes.push_back({form.live.decoder, form.live.options, "", form.live.choices});
  return start;
}

std::string why_none_approximate(const LaneForm& lane) {
  const auto stop = lane.options.find("stop");
  if (lane.decoder != "fastcot" || stop == lane.options.end())
    return "this decoder verifies all tokens; only FastCoT may leave approximate tokens";
  return stop->second == "none" ? "with stop=none a rationale continues to its end, and no "
                                  "approximate tokens are left"
                                : "";
}

engine::StartReasoning reasoning_command(const SetupForm& form) {
  const ReasoningForm& reasoning = form.reasoning;
  const bool tree = form.mode == SetupMode::Tree;
  const QuestionsForm& questions = tree ? reasoning.tree : reasoning.chain;
  using What = engine::StartReasoning::What;
  return {.what = tree ? What::Tree : What::Chain,
          .model = form.model,
          .scale = form.scale,
          .dtype = form.dtype,
          .device = form.device,
          .draft = form.draft,
          .draft_scale = form.draft_scale,
          .heads = heads_chosen(form),
          .cache_type = form.cache_type,
          .context = form.context,
          .task = questions.task,
          .level = questions.level,
          .start = questions.start,
          .count = questions.count,
          .data = questions.data,
          .prompts = questions.prompts,
          .n_actions = reasoning.n_actions,
          .decoder = {reasoning.decoder.decoder, reasoning.decoder.options},
          .batch = has_branches(reasoning.decoder) ? 1 : reasoning.batch,
          .repetition_penalty = form.repetition_penalty,
          .max_tokens = reasoning.max_tokens,
          .n_shots = reasoning.n_shots,
          .drop_approximate =
              reasoning.drop_approximate && why_none_approximate(reasoning.decoder).empty(),
          .depth = reasoning.depth,
          .n_thoughts = reasoning.n_thoughts,
          .beam = reasoning.beam,
          .temperature = reasoning.temperature,
          .value_temperature = reasoning.value_temperature,
          .seed = form.seed,
          .sampling = form.sampling,
          .start_held = form.start_held};
}

engine::Command next_command(const SetupForm& form, bool race) {
  if (race || form.mode == SetupMode::Prompt) return command_of(form, race);
  return reasoning_command(form);
}

namespace {

// Checks options and sampling of an available decoder.
std::string why_not_with(const Catalog& catalog,
                         const CatalogDecoder& info,
                         const LaneForm& lane,
                         SetupMode mode,
                         bool rejection) {
  const auto& refusal = mode == SetupMode::Chain  ? info.refusal_in_chain
                        : mode == SetupMode::Tree ? info.refusal_in_tree
                                                  : info.refusal;
  if (refusal)
    if (const std::string why = refusal(lane.options); !why.empty()) return why;
  for (const CatalogOption& option : info.options) {
    const auto given = lane.options.find(option.name);
    if (!catalog.tree || !is_tree(option) || given == lane.options.end()) continue;
    const TreeNote note = catalog.tree(info.name, option, given->second);
    if (!note.refusal.empty()) return note.refusal;
  }
  if (rejection && !info.supports_rejection)
    return info.title + " has no rejection sampling; choose coupled.";
  if (rejection && engine::n_ranks_of(lane.options) > 1)
    return info.title + " has no rejection sampling with ranks; choose coupled, or 1 rank.";
  return "";
}

std::string why_not_reason(const SetupForm& form, const Catalog& catalog) {
  const ReasoningForm& reasoning = form.reasoning;
  const QuestionsForm& questions = form.mode == SetupMode::Tree ? reasoning.tree : reasoning.chain;
  const CatalogTask* task = task_of(form, form.mode, catalog);
  if (questions.data.empty()) {
    if (!task) return "No task is chosen.";
    if (!task->unavailable.empty()) return task->name + ": " + task->unavailable + ".";
  }
  for (const std::string& path : {questions.data, questions.prompts})
    if (const std::string why = why_no_file(path); !why.empty()) return why;
  const CatalogDecoder* info = catalog.decoder(reasoning.decoder.decoder);
  if (!info) return "No decoder is chosen.";
  if (const std::string why = why_unavailable(*info, form, catalog); !why.empty())
    return info->title + ": " + why;
  const bool sampled = form.mode == SetupMode::Tree && reasoning.samples();
  return why_not_with(catalog, *info, reasoning.decoder, form.mode,
                      sampled && form.sampling == engine::kRejection);
}

}  // namespace

namespace {

// Returns why a lane's own model cannot be used; empty if it can, or if the lane has none.
std::string why_not_model(const LaneForm& lane, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(lane.model);
  if (!model) return "";
  if (!model->unavailable.empty()) return model->name + ": " + model->unavailable;
  return model->has_tokenizer ? "" : model->name + " has no tokenizer, so it cannot read a prompt.";
}

}  // namespace

std::string why_not(const LaneForm& lane, const SetupForm& form, const Catalog& catalog) {
  if (!lane.model.empty() && lane.model != form.model) {
    if (std::string why = why_not_model(lane, catalog); !why.empty()) return why;
    SetupForm own = form;
    own.model = lane.model;
    own.heads.clear();  // the chosen heads belong to the race's model
    LaneForm plain = lane;
    plain.model.clear();
    return why_not(plain, own, catalog);
  }
  const CatalogDecoder* info = catalog.decoder(lane.decoder);
  if (!info) return "No decoder is chosen.";
  if (const std::string why = why_unavailable(*info, form, catalog); !why.empty())
    return info->title + ": " + why;
  return why_not_with(catalog, *info, lane, SetupMode::Prompt,
                      engine::rejects(form.sampling, form.temperature));
}

namespace {

// Returns why stop strings or stop ids are invalid; empty if they are valid.
std::string why_no_stops(const SetupForm& form, const Catalog& catalog) {
  const std::vector<std::string> texts = engine::stop_texts_from(form.stop_texts);
  const auto ids = engine::stop_ids_from(form.stop_ids);
  if (!ids) return "stop ids: expected whole numbers from 0, commas between.";
  for (const auto& [name, n] : {std::pair("stop strings", texts.size()), {"stop ids", ids->size()}})
    if (n > engine::kMaxStops)
      return fmt::format("{}: found {}, expected at most {}.", name, n, engine::kMaxStops);
  for (const std::string& text : texts)
    if (const std::string why = engine::why_no_stop_text(text); !why.empty())
      return "stop strings: " + why + ".";
  for (const CatalogModel& model : catalog.models) {
    if (model.name != form.model || model.vocab_size == 0) continue;
    for (const engine::TokenId id : *ids)
      if (id >= model.vocab_size)
        return fmt::format("stop id {}: {} has {} tokens, the last is {}.", id, model.name,
                           model.vocab_size, model.vocab_size - 1);
  }
  return "";
}

}  // namespace

std::string why_not(const SetupForm& form, const Catalog& catalog, bool race) {
  if (form.model.empty()) return "No model is chosen.";
  for (const CatalogModel& model : catalog.models) {
    if (model.name != form.model) continue;
    if (!model.unavailable.empty()) return model.name + ": " + model.unavailable;
    if (!model.has_tokenizer) return model.name + " has no tokenizer, so it cannot read a prompt.";
  }
  if (!race && form.mode != SetupMode::Prompt) return why_not_reason(form, catalog);
  if (race && !form.prompt_file.empty()) {
    if (!form.prompt_file_error.empty()) return form.prompt_file_error;
    if (form.prompts.empty()) return "The prompt file has not been read.";
  } else if (form.prompt.empty()) {
    return "The prompt is empty.";
  }
  if (form.max_tokens < 1) return "max tokens must be at least 1.";
  if (std::string why = why_no_stops(form, catalog); !why.empty()) return why;
  if (reads_pool(form, catalog, race))
    if (std::string why = why_no_file(form.pool); !why.empty()) return why;
  if (!race) return why_not(form.live, form, catalog);
  if (form.lanes.size() < 2) return "A race needs two lanes or more.";
  for (const LaneForm& lane : form.lanes)
    if (std::string why = why_not(lane, form, catalog); !why.empty()) return why;
  return "";
}

}  // namespace ui
