#include "ui/prepare/use_again.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "engine/event/command.h"
#include "engine/event/stop_rules.h"
#include "engine/event/timeline/recorded_choices.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/setup_form.h"
#include "ui/shell/catalog.h"

namespace ui {
namespace {

// The last part of a path or name, without ".gguf".
std::string last_part(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

// Compares a choice with a loaded model. Events contain the name of the model's folder or file; the form may contain the whole path.
bool named(const std::string& choice, const engine::ModelLoaded& model) {
  return last_part(choice) == last_part(model.name);
}

void use_model(SetupForm& form, const Catalog& catalog, const engine::ModelLoaded& model) {
  if (!named(form.model, model)) {
    const auto found =
        std::find_if(catalog.models.begin(), catalog.models.end(),
                     [&](const CatalogModel& known) { return named(known.name, model); });
    if (found == catalog.models.end()) {
      form.model_error =
          "The run's model, " + model.name + ", is not listed here: open its folder.";
      return;
    }
    form.model = found->name;
  }
  form.model_error.clear();
  form.scale = model.scale.empty() ? "1x1" : model.scale;
  constexpr std::string_view kComputed[] = {"f32", "bf16", "f16"};
  const bool is_computed = std::ranges::find(kComputed, model.dtype) != std::end(kComputed);
  form.dtype = is_computed ? model.dtype : "";  // else as stored, quantised
  // Quantised weights have an f16 cache by default.
  form.cache_type = model.cache_type == (is_computed ? model.dtype : "f16") ? "" : model.cache_type;
  const bool here = std::any_of(
      catalog.devices.begin(), catalog.devices.end(),
      [&](const CatalogDevice& d) { return d.name == model.device && d.unavailable.empty(); });
  form.device = here ? model.device : "auto";
  const CatalogModel* known = catalog.model(form.model);
  const bool is_own = !known || known->context == 0 || known->context == model.max_seq_len;
  form.context = is_own ? 0 : model.max_seq_len;
}

// Chooses the draft model of the run, unless the model's card names it.
void use_draft(SetupForm& form, const Catalog& catalog, const engine::ModelLoaded& draft) {
  if (!draft.scale.empty() && draft.scale != form.scale) form.draft_scale = draft.scale;
  if (named(draft_of(form, catalog), draft)) return;
  const auto found = std::ranges::find_if(
      catalog.models, [&](const CatalogModel& known) { return named(known.name, draft); });
  if (found != catalog.models.end())
    form.draft = found->name;
  else
    form.model_error =
        "The run's draft model, " + draft.name + ", is not listed here: open its folder.";
}

// Chooses the heads of the run if the model's card does not name them.
void use_heads(SetupForm& form,
               const Catalog& catalog,
               const engine::Timeline& timeline,
               const engine::RunRecord& run) {
  const CatalogDecoder* decoder = catalog.decoder(run.started.decoder);
  const engine::ModelLoaded* recorded = timeline.model(run.started.draft);
  if (!decoder || !decoder->needs_heads || !recorded) return;
  if (named(heads_of(form, catalog, decoder->name), *recorded)) return;
  for (const CatalogHeads& known : catalog.heads)
    if (known.kind == decoder->name && named(known.name, *recorded))
      form.heads[known.kind] = known.name;
}

// Chooses how the prompt is read, from the lanes of a race or one run. A form keeps its choice if the recording does not have it.
void use_reading(SetupForm& form,
                 const Catalog& catalog,
                 const std::vector<const engine::RunRecord*>& lanes) {
  const auto n_read_as = [&](engine::ReadAs how) {
    return std::ranges::count_if(
        lanes, [&](const engine::RunRecord* lane) { return lane->started.read_as == how; });
  };
  if (n_read_as(engine::ReadAs::Unknown) > 0) return;
  const CatalogModel* known = catalog.model(form.model);
  const auto n_chat = n_read_as(engine::ReadAs::Chat);
  if (known && known->has_no_template())
    form.chat = engine::ChatMode::Auto;
  else if (n_chat == 0)
    form.chat = engine::ChatMode::Raw;
  else if (n_chat == std::ssize(lanes))
    form.chat = engine::ChatMode::Chat;  // also if the prompt names special tokens
  else
    form.chat = engine::ChatMode::Auto;  // only some of the models have a template
  form.system.clear();
  for (const engine::RunRecord* lane : lanes)
    if (form.system.empty()) form.system = lane->started.system;
}

}  // namespace

void use_again(SetupForm& form,
               const Catalog& catalog,
               const engine::Timeline& timeline,
               const engine::RunRecord& run) {
  const engine::RunStarted& s = run.started;
  if (const engine::ModelLoaded* model = timeline.model(s.model)) use_model(form, catalog, *model);
  form.draft.clear();
  form.draft_scale.clear();
  form.heads.clear();
  use_heads(form, catalog, timeline, run);
  const CatalogDecoder* decoder = catalog.decoder(s.decoder);
  const bool by_a_model = !decoder || decoder->needs_draft;  // false: draft heads propose
  if (const engine::ModelLoaded* draft = timeline.model(s.draft); draft && by_a_model)
    use_draft(form, catalog, *draft);
  form.mode = SetupMode::Prompt;  // a run of a chain or tree is repeated as one prompt
  form.prompt = s.prompt;
  form.prompt_id = s.prompt_id;
  form.prompt_file.clear();
  form.n_repeats = std::clamp(s.place.n_repeats, 1, engine::kMaxRepeats);
  use_reading(form, catalog, s.race != 0 ? timeline.race(s.race) : std::vector{&run});
  form.live = {s.decoder, s.options};
  if (s.race != 0) {
    form.lanes.clear();
    for (const engine::RunRecord* lane : timeline.race(s.race)) {
      form.lanes.push_back({lane->started.decoder, lane->started.options});
      const engine::ModelLoaded* own = timeline.model(lane->started.model);
      if (lane->started.model == s.model) use_heads(form, catalog, timeline, *lane);
      if (!own || lane->started.model == s.model) continue;
      for (const CatalogModel& known : catalog.models)
        if (named(known.name, *own)) form.lanes.back().model = known.name;
    }
  }
  form.temperature = s.temperature;
  form.top_p = s.top_p;
  form.top_k = s.top_k;
  form.min_p = s.min_p;
  form.repetition_penalty = s.repetition_penalty;
  form.seed = s.seed;
  form.sampling = s.sampling;
  form.max_tokens = s.max_tokens;
  form.ignore_eos = s.ignore_eos;
  form.no_special = s.no_special;
  form.stop_texts = engine::lines_of_stop_texts(s.stop_texts);
  form.stop_ids = engine::text_of_stop_ids(s.stop_ids);
  form.pool = s.pool;
}

bool has_recorded_sizes(const engine::Timeline& timeline, const engine::RunRecord& run) {
  if (run.started.race == 0) return !choices_of(run).empty();
  return std::ranges::any_of(timeline.race(run.started.race), [](const engine::RunRecord* lane) {
    return !choices_of(*lane).empty();
  });
}

void use_with_sizes(SetupForm& form,
                    const Catalog& catalog,
                    const engine::Timeline& timeline,
                    const engine::RunRecord& run) {
  use_again(form, catalog, timeline, run);
  form.n_repeats = 1;
  form.live.choices = choices_of(run);
  if (run.started.race == 0) return;
  const auto lanes = timeline.race(run.started.race);
  for (std::size_t i = 0; i < lanes.size(); ++i) form.lanes[i].choices = choices_of(*lanes[i]);
}

void forget_sizes(SetupForm& form) {
  form.live.choices.clear();
  for (LaneForm& lane : form.lanes) lane.choices.clear();
}

}  // namespace ui
