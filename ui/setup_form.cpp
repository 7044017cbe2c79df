#include "ui/setup_form.h"

#include <fmt/format.h>

namespace ui {

const char* worthwhile_scale(std::int64_t n_params) {
  // As bf16 128 MB: more than the last cache of most processors, read in some milliseconds.
  constexpr std::int64_t kEnough = 64'000'000;
  struct Choice {
    const char* name;
    std::int64_t times;  // parameters: width squared times depth
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
  form.model_error.clear();
  form.draft.clear();
  for (const CatalogModel& known : catalog.models)
    if (known.name == model) form.scale = worthwhile_scale(known.n_params);
}

std::string draft_of(const SetupForm& form, const Catalog& catalog) {
  if (!form.draft.empty()) return form.draft;
  const CatalogModel* target = catalog.model(form.model);
  return target ? target->draft : "";
}

std::string why_no_draft(const CatalogModel& target, const CatalogModel& draft) {
  if (!draft.unavailable.empty()) return draft.name + ": " + draft.unavailable;
  if (target.vocab_size == 0 || draft.vocab_size == 0) return "";
  if (target.vocab_size != draft.vocab_size)
    return fmt::format("draft vocabulary {} tokens, target {}; the two must be the same",
                       draft.vocab_size, target.vocab_size);
  if (target.vocabulary != draft.vocabulary)
    return fmt::format("draft and target have {} tokens each, but not the same ones",
                       draft.vocab_size);
  return "";
}

std::string why_no_draft(const SetupForm& form, const Catalog& catalog) {
  const CatalogModel* target = catalog.model(form.model);
  const std::string name = draft_of(form, catalog);
  if (name.empty())  // a model the catalog does not know may have a card that names one
    return target ? "no draft model chosen, and the card of " + form.model + " names none" : "";
  const CatalogModel* draft = catalog.model(name);
  return target && draft ? why_no_draft(*target, *draft) : "";
}

std::string why_unavailable(const CatalogDecoder& decoder,
                            const SetupForm& form,
                            const Catalog& catalog) {
  if (!decoder.unavailable.empty()) return decoder.unavailable;
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

SetupForm first_form(const Catalog& catalog, const std::string& preferred_model) {
  SetupForm form;
  for (const CatalogModel& model : catalog.models) {
    if (!model.unavailable.empty()) continue;
    if (form.model.empty() || model.name == preferred_model)
      choose_model(form, catalog, model.name);
  }
  if (!catalog.prompts.empty()) {
    form.prompt = catalog.prompts.front().text;
    form.prompt_id = catalog.prompts.front().id;
  }
  for (const CatalogDecoder& decoder : catalog.decoders)
    if (why_unavailable(decoder, form, catalog).empty() && form.lanes.size() < 4)
      form.lanes.push_back(lane_with(catalog, decoder.name));
  if (!form.lanes.empty()) form.live = form.lanes[form.lanes.size() > 2 ? 2 : 0];
  for (const LaneForm& lane : form.lanes)
    if (lane.decoder == "lookahead") form.live = lane;
  return form;
}

engine::StartRun command_of(const SetupForm& form, bool race) {
  engine::StartRun start;
  start.model = form.model;
  start.scale = form.scale;
  start.dtype = form.dtype;
  start.device = form.device;
  start.draft = form.draft;
  start.prompt = form.prompt;
  start.prompt_id = form.prompt_id;
  start.temperature = form.temperature;
  start.top_p = form.top_p;
  start.min_p = form.min_p;
  start.repetition_penalty = form.repetition_penalty;
  start.top_k = form.top_k;
  start.seed = form.seed;
  start.sampling = form.sampling;
  start.max_tokens = form.max_tokens;
  start.ignore_eos = form.ignore_eos;
  start.start_held = form.start_held;
  if (race)
    for (const LaneForm& lane : form.lanes) start.lanes.push_back({lane.decoder, lane.options});
  else
    start.lanes.push_back({form.live.decoder, form.live.options});
  return start;
}

std::string why_not(const LaneForm& lane, const SetupForm& form, const Catalog& catalog) {
  const CatalogDecoder* info = catalog.decoder(lane.decoder);
  if (!info) return "No decoder is chosen.";
  if (const std::string why = why_unavailable(*info, form, catalog); !why.empty())
    return info->title + ": " + why;
  if (info->refusal)
    if (const std::string why = info->refusal(lane.options); !why.empty()) return why;
  if (form.sampling == "rejection" && form.temperature > 0 && !info->supports_rejection)
    return info->title + " has no rejection sampling; choose coupled.";
  return "";
}

std::string why_not(const SetupForm& form, const Catalog& catalog, bool race) {
  if (form.model.empty()) return "No model is chosen.";
  for (const CatalogModel& model : catalog.models) {
    if (model.name != form.model) continue;
    if (!model.unavailable.empty()) return model.name + ": " + model.unavailable;
    if (!model.has_tokenizer) return model.name + " has no tokenizer, so it cannot read a prompt.";
  }
  if (form.prompt.empty()) return "The prompt is empty.";
  if (form.max_tokens < 1) return "max tokens must be at least 1.";
  if (!race) return why_not(form.live, form, catalog);
  if (form.lanes.size() < 2) return "A race needs two lanes or more.";
  for (const LaneForm& lane : form.lanes)
    if (std::string why = why_not(lane, form, catalog); !why.empty()) return why;
  return "";
}

}  // namespace ui
