#include "app/commands/generation.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/paths.h"
#include "app/cli/prompt_file.h"
#include "app/cli/terminal.h"
#include "engine/base/closest_name.h"
#include "engine/base/text.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/decode/draft/option_trees.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/guess/pool_text.h"
#include "engine/decode/ranks/mpi_processes.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/stop_rules.h"
#include "engine/run/prompt_text.h"
#include "engine/run/race_models.h"
#include "engine/run/recorded/repeat.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"

namespace app {

using engine::Error;
using engine::ErrorCode;

engine::ModelRequest model_request(const ModelOptions& options) {
  return {.model = options.model,
          .scale = options.scale,
          .dtype = options.dtype,
          .cache_type = options.cache_type,
          .device = options.device,
          .allow_external_shards = options.allow_external_shards,
          .limits = options.limits,
          .context = options.context,
          .generation = options.model_defaults ? engine::GenerationUse::Applied
                                               : engine::GenerationUse::NotApplied};
}

namespace {

engine::LoadProgress shown_on(ProgressLine& line) {
  return [&line](std::int64_t done, std::int64_t total) {
    line.show(done / 1'000'000, total / 1'000'000, "MB");
    return !interrupted();
  };
}

void print_notices(const engine::LoadedModel& loaded) {
  for (const std::string& notice : loaded.files.notices) print_error("note: " + notice);
}

std::vector<std::string> notices_of(const engine::RunModels& models) {
  std::vector<std::string> notices = models.target.files.notices;
  const auto add = [&](const std::vector<std::string>& more) {
    notices.insert(notices.end(), more.begin(), more.end());
  };
  if (models.draft) add(models.draft->files.notices);
  add(engine::pair_notices(models));
  for (const engine::LoadedHeads* heads : {models.medusa, models.chimera})
    if (heads) add(heads->files.notices);
  return notices;
}

void print_notices(const engine::RunModels& models) {
  for (const std::string& notice : notices_of(models)) print_error("note: " + notice);
}

/// Refuses a draft model or heads that no decoder of the command needs.
/// @param needs  true for a decoder that needs them; true for at least one
template <typename Needs>
void check_use(const std::string& option,
               const std::vector<std::string>& decoders,
               const Needs& needs) {
  std::vector<std::string> able;
  for (const engine::DecoderInfo& info : engine::decoders())
    if (needs(info)) able.push_back(info.name);
  const bool used = std::any_of(decoders.begin(), decoders.end(), [&](const std::string& name) {
    return needs(engine::decoder_named(name));
  });
  if (used) return;
  const std::string all_but_last = fmt::format("{}", fmt::join(able.begin(), able.end() - 1, ", "));
  throw Error(ErrorCode::Usage,
              fmt::format("{}: not used by {}; used by {}{}{}", option, fmt::join(decoders, ", "),
                          all_but_last, able.size() > 1 ? " and " : "", able.back()));
}

}  // namespace

const std::string& model_of(const LaneOption& lane, const GenerationOptions& options) {
  return lane.model.empty() ? options.model.model : lane.model;
}

engine::DraftResources draft_resources_of(const ModelOptions& options) {
  return {options.draft, options.heads, options.draft_scale};
}

engine::LoadedModel& load(engine::ModelStore& store, const engine::ModelRequest& request) {
  ProgressLine line("loading " + request.model);
  engine::LoadedModel& loaded = store.get(request, shown_on(line));
  line.finish();
  print_notices(loaded);
  return loaded;
}

engine::RunModels load(engine::ModelStore& store,
                       const engine::ModelRequest& request,
                       const engine::DraftResources& draft_resources,
                       const std::vector<std::string>& decoders) {
  const bool drafts = std::any_of(decoders.begin(), decoders.end(), [](const std::string& name) {
    return engine::decoder_named(name).needs_draft;
  });
  ProgressLine line("loading " + request.model + (drafts ? " and its draft model" : ""));
  const engine::RunModels models =
      store.get_for(request, draft_resources, decoders, shown_on(line));
  line.finish();
  print_notices(models);
  return models;
}

std::vector<engine::RunModels> load_lanes(engine::ModelStore& store,
                                          const GenerationOptions& options,
                                          std::span<const LaneOption> lanes,
                                          bool several_texts) {
  std::vector<engine::LaneRequest> requests;
  for (const LaneOption& lane : lanes)
    requests.push_back({.decoder = lane.decoder,
                        .options = options_for(lane.decoder, options.decoders, options.set),
                        .model = lane.model});
  std::unique_ptr<ProgressLine> line;  // the progress of the model that is being loaded
  return engine::models_of_lanes(
      store, model_request(options.model), draft_resources_of(options.model), requests,
      [&line](const std::string& model) {
        line = std::make_unique<ProgressLine>("loading " + model);
        return shown_on(*line);
      },
      [&](const engine::RunModels& models) {
        line->finish();
        print_once(notices_of(models));  // lanes may share models
      },
      several_texts);
}

engine::RunModels load_scheduled(engine::ModelStore& store,
                                 const engine::ModelRequest& request,
                                 const engine::DraftResources& draft_resources,
                                 const std::string& decoder,
                                 const engine::OptionValues& options) {
  ProgressLine line("loading " + request.model);
  const engine::RunModels models =
      engine::models_for(store, request, draft_resources, decoder, options, shown_on(line));
  line.finish();
  print_notices(models);
  return models;
}

void load_ranks(engine::ModelStore& store,
                engine::RunModels& models,
                const std::string& decoder,
                const engine::OptionValues& options) {
  ProgressLine line("loading " + models.target.request.model + " for every rank");
  engine::add_ranks(store, models, decoder, options, shown_on(line));
  line.finish();
}

Leading lead_processes(const engine::RunModels& models,
                       const std::string& decoder,
                       const engine::OptionValues& options) {
  if (!engine::parse_options(decoder, options)->shares_over_mpi())
    return std::make_shared<const bool>(true);
  auto processes = std::make_shared<engine::MpiProcesses>();
  if (processes->n_processes() == 1)
    print_error("note: ranks=mpi: there is one process; start several: mpirun -n 2 decoscope ...");
  if (processes->leads()) return processes;
  const engine::LoadedModel& target = models.target;
  processes->follow_runs(*target.model, target.weights_hash, models.texts);
  return nullptr;
}

void check_draft_resources(const engine::DraftResources& draft_resources,
                           const std::vector<std::string>& decoders) {
  if (!draft_resources.draft.empty())
    check_use("--draft " + draft_resources.draft, decoders,
              [](const engine::DecoderInfo& info) { return info.needs_draft; });
  if (!draft_resources.heads.empty())
    check_use(fmt::format("--heads {}", fmt::join(draft_resources.heads, ",")), decoders,
              [](const engine::DecoderInfo& info) { return info.needs_heads; });
  for (const std::string& name : draft_resources.heads) {
    const auto kind = engine::heads_kind(engine::find_model(name, assets_dir()));
    if (kind && std::ranges::find(decoders, engine::name_of(*kind)) == decoders.end())
      throw Error(ErrorCode::Usage,
                  fmt::format("--heads {}: heads of {}, not used by {}", engine::escaped(name),
                              engine::name_of(*kind), fmt::join(decoders, ", ")));
  }
}

void check_pool(const std::string& pool, const std::vector<std::string>& decoders) {
  if (!pool.empty())
    check_use("--pool " + pool, decoders,
              [](const engine::DecoderInfo& info) { return info.reads_pool; });
}

std::shared_ptr<const engine::PoolFile> read_pool(const std::string& pool,
                                                  const engine::Model& model) {
  if (pool.empty()) return nullptr;
  const ReadingInput reading(pool, "the text of --pool");
  return engine::read_pool_text(pool, model);
}

std::vector<Prompt> prompts_of(const GenerationOptions& options) {
  if (options.repeated)
    return {{.id = options.repeated->started.prompt_id,
             .text = options.repeated->started.prompt,
             .place = {},
             .seed = std::nullopt}};
  if (options.has_prompt)
    return {{.id = "prompt", .text = options.prompt, .place = {}, .seed = std::nullopt}};
  const ReadingInput reading(options.prompt_file, "prompts, one {\"prompt\": \"...\"} per line,");
  return read_prompts(options.prompt_file, options.model.limits);
}

engine::OptionValues options_for(const std::string& decoder,
                                 const std::vector<std::string>& all,
                                 const std::vector<std::string>& set) {
  const auto knows = [](const std::string& name, const std::string& option) {
    for (const engine::OptionInfo& info : engine::decoder_named(name).options) {
      if (info.name == option) return true;
    }
    return false;
  };
  engine::OptionValues values;
  for (const std::string& pair : set) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::Usage, fmt::format("--set {}: expected name=value", pair));
    const std::string name = pair.substr(0, equals);
    bool known_elsewhere = false;
    for (const std::string& other : all)
      known_elsewhere = known_elsewhere || (other != decoder && knows(other, name));
    if (knows(decoder, name) || !known_elsewhere) values[name] = pair.substr(equals + 1);
  }
  return values;
}

void check_options(const std::string& decoder, const engine::OptionValues& set) {
  const engine::DecoderInfo& info = engine::decoder_named(decoder);
  engine::check_trees(info, engine::complete_options(info, set), trees_dir());
}

std::string trees_dir() {
  return assets_dir() + "/trees";
}

namespace {

/// Refuses a --set that is an option of no decoder; suggests the nearest name.
void check_set(const GenerationOptions& options) {
  for (const std::string& pair : options.set) {
    const std::string name = pair.substr(0, pair.find('='));
    std::vector<std::string> known;
    for (const std::string& decoder : options.decoders) {
      for (const engine::OptionInfo& info : engine::decoder_named(decoder).options)
        known.push_back(info.name);
    }
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string hint = engine::did_you_mean(name, known);
    std::vector<std::string> owners;
    for (const engine::DecoderInfo& other : engine::decoders()) {
      const bool has =
          std::any_of(other.options.begin(), other.options.end(),
                      [&](const engine::OptionInfo& info) { return info.name == name; });
      if (has) owners.push_back(other.name);
    }
    if (!owners.empty()) hint = fmt::format("; it is an option of {}", fmt::join(owners, ", "));
    if (hint.empty() && known.empty()) hint = "; there are none";
    if (hint.empty()) hint = fmt::format("; there are {}", fmt::join(known, ", "));
    throw Error(
        ErrorCode::Usage,
        fmt::format("--set {}: {} {} no option '{}'{}", pair, fmt::join(options.decoders, ", "),
                    options.decoders.size() > 1 ? "have" : "has", name, hint));
  }
}

engine::Sampling sampling_of(const GenerationOptions& options) {
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .repetition_penalty = options.repetition_penalty,
          .seed = options.seed,
          .mode = engine::sampling_mode(options.sampling)};
}

/// Refuses options that the decoder does not support, whatever the model.
void check_decoder(const GenerationOptions& options, const std::string& decoder) {
  const engine::DecoderInfo& info = engine::decoder_named(decoder);
  const engine::OptionValues set = options_for(decoder, options.decoders, options.set);
  check_options(decoder, set);
  if (const auto reason = engine::refusal(info, sampling_of(options), set)) {
    const bool raced = options.decoders.size() > 1;
    throw Error(ErrorCode::Usage, *reason + (raced ? ", or leave it out of --decoders" : ""));
  }
}

/// Refuses options of sampling if decoding is greedy.
void check_drawing(const GenerationOptions& options) {
  const bool by_model = options.model.model_defaults && !options.given.contains("--temperature");
  if (options.temperature > 0 || by_model) return;
  std::vector<std::string> idle;
  if (options.top_k != 0) idle.push_back("--top-k");
  if (options.top_p != 1) idle.push_back("--top-p");
  if (options.min_p != 0) idle.push_back("--min-p");
  if (options.sampling == engine::kRejection) idle.push_back("--sampling rejection");
  if (idle.empty()) return;
  const bool one = idle.size() == 1;
  throw Error(ErrorCode::Usage,
              fmt::format("{}: {} no effect at temperature 0 (greedy decoding); add --temperature "
                          "0.8, or remove {}",
                          fmt::join(idle, ", "), one ? "has" : "have", one ? "it" : "them"));
}

/// Prints a note, once per model, on options that have no effect because the model's files request
/// greedy decoding.
void note_idle_options(const GenerationOptions& options, const engine::LoadedModel& loaded) {
  static std::set<std::string> noted;  // models
  std::vector<std::string> idle;
  for (const char* option : {"--top-k", "--top-p", "--min-p"})
    if (options.given.contains(option)) idle.emplace_back(option);
  if (idle.empty() || !noted.insert(loaded.files.path).second) return;
  print_error(
      fmt::format("note: {}: no effect: generation_config.json of {} has no do_sample, so decoding "
                  "is greedy; --temperature 0.8 samples",
                  fmt::join(idle, ", "), loaded.files.name));
}

/// Copies the model's generation defaults to `request`, except for options that were given.
void take_defaults(const GenerationOptions& options,
                   const engine::LoadedModel& loaded,
                   engine::RunRequest& request) {
  const engine::GenerationDefaults& defaults = loaded.files.generation;
  const engine::Sampling own = sampling_by_model(defaults);
  engine::Sampling& sampling = request.sampling;
  const auto open = [&](const char* option) { return !options.given.contains(option); };
  if (open("--max-tokens"))
    request.max_tokens = defaults.max_new_tokens.value_or(options.max_tokens);
  if (open("--repetition-penalty")) sampling.repetition_penalty = own.repetition_penalty;
  if (open("--temperature")) sampling.temperature = own.temperature;
  if (sampling.greedy()) return note_idle_options(options, loaded);
  if (open("--top-k")) sampling.top_k = own.top_k;
  if (open("--top-p")) sampling.top_p = own.top_p;
  if (open("--min-p")) sampling.min_p = own.min_p;
}

void check_stop_counts(const GenerationOptions& options) {
  const auto check = [](const char* option, std::size_t n) {
    if (n > engine::kMaxStops)
      throw Error(ErrorCode::Usage,
                  fmt::format("{}: found {}, expected at most {}", option, n, engine::kMaxStops));
  };
  check("--stop", options.stop_texts.size());
  check("--stop-id", options.stop_ids.size());
}

/// The tokens of a prompt. Errors name the file, line and id of a prompt from a file.
engine::PromptTokens tokens_of(const Prompt& prompt,
                               const engine::Model& model,
                               const GenerationOptions& options) {
  try {
    return engine::prompt_tokens_of(model, {.text = prompt.text,
                                            .messages = prompt.messages,
                                            .chat = options.chat,
                                            .system = options.system,
                                            .symbols = !options.no_special});
  } catch (const Error& error) {
    if (prompt.place.empty()) throw;
    throw Error(error.code(),
                fmt::format("{}: {}: {}", prompt.place, engine::escaped(prompt.id), error.what()));
  }
}

/// With -v, prints a rendered prompt, once for each prompt and model.
void show_rendered(const GenerationOptions& options,
                   const engine::RunRequest& request,
                   const engine::LoadedModel& loaded) {
  static std::set<std::pair<std::string, std::string>> shown;
  if (!options.verbose || request.rendered_prompt.empty() ||
      !shown.emplace(loaded.files.path, request.prompt_id).second)
    return;
  print_error(fmt::format("{}, as the chat template of {} renders it:",
                          engine::escaped(request.prompt_id), loaded.files.name));
  const std::string text = for_terminal(request.rendered_prompt) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

engine::Sampling sampling_by_model(const engine::GenerationDefaults& defaults) {
  constexpr int kTopK = 50;  // the default of transformers
  engine::Sampling own;
  own.repetition_penalty = defaults.repetition_penalty.value_or(1.0f);
  if (!defaults.do_sample) return own;
  own.temperature = defaults.temperature.value_or(1.0f);
  own.top_k = defaults.top_k.value_or(kTopK);
  own.top_p = defaults.top_p.value_or(1.0f);
  own.min_p = defaults.min_p.value_or(0.0f);
  return own;
}

engine::RunRequest request_for(const GenerationOptions& options,
                               const Prompt& prompt,
                               const std::string& decoder,
                               const engine::LoadedModel& loaded) {
  if (options.repeated) return engine::request_of(*options.repeated, *loaded.model);
  engine::RunRequest request;
  request.prompt_id = prompt.id;
  request.prompt = prompt.text;
  request.no_special = options.no_special;
  engine::set_prompt(request, tokens_of(prompt, *loaded.model, options));
  show_rendered(options, request, loaded);
  request.decoder = decoder;
  request.options = options_for(decoder, options.decoders, options.set);
  request.sampling = sampling_of(options);
  request.sampling.seed = prompt.seed.value_or(options.seed);
  request.max_tokens = options.max_tokens;
  request.ignore_eos = options.ignore_eos;
  if (options.model.model_defaults) take_defaults(options, loaded, request);
  request.stop_texts = options.stop_texts;
  request.stop_ids = options.stop_ids;
  if (const auto notice = engine::notice_of_sizes(request)) print_once({notice->text});
  return request;
}

GenerationOptions repeating(GenerationOptions options) {
  std::vector<std::string> notices;
  const auto recorded = std::make_shared<const engine::RecordedRun>(
      engine::read_recorded_run(options.repeat_file, options.repeat_run, notices));
  for (const std::string& notice : notices)
    print_error(fmt::format("note: {}: {}", options.repeat_file, notice));
  const engine::RunStarted& started = recorded->started;
  options.decoders = {started.decoder};
  for (const auto& [name, value] : started.options) options.set.push_back(name + "=" + value);
  options.temperature = started.temperature;
  options.sampling = started.sampling;
  if (!options.model.model_given) options.model.model = recorded->model.name;
  if (!options.model.scale_given && !recorded->model.scale.empty())
    options.model.scale = recorded->model.scale;
  if (options.model.draft_scale.empty() && recorded->draft)
    options.model.draft_scale = recorded->draft->scale;
  if (options.pool.empty()) options.pool = started.pool;
  options.repeated = recorded;
  return options;
}

void check_repeated(const GenerationOptions& options, const engine::RunModels& models) {
  if (options.repeated) engine::check_models(*options.repeated, models);
}

void compare_with_recording(const GenerationOptions& options, engine::RunResult& result) {
  if (options.repeated && result.stop_reason != "stopped")
    result.repetition = engine::compared(*options.repeated, result);
}

void check_usage(const GenerationOptions& options) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorCode::Usage, message); };
  if (!options.has_prompt && options.prompt_file.empty() && !options.repeated)
    refuse("missing prompt; give --prompt TEXT or --prompt-file F.jsonl");
  if (options.decoders.empty())
    refuse("--decoders: found none, expected names separated by commas");
  for (std::size_t i = 0; i < options.lanes.size(); i++) {
    const auto same = [&](const LaneOption& other) {
      return other.decoder == options.lanes[i].decoder &&
             model_of(other, options) == model_of(options.lanes[i], options);
    };
    const auto before = options.lanes.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find_if(options.lanes.begin(), before, same) != before)
      refuse(fmt::format("--decoders: {} is given twice", options.lanes[i].name));
  }
  for (const LaneOption& lane : options.lanes)
    if (!lane.model.empty()) engine::find_model(lane.model, assets_dir());
  if (options.model.scale != "auto") engine::scale_from(options.model.scale);
  if (!options.model.draft_scale.empty()) engine::scale_from(options.model.draft_scale);
  for (const std::string& decoder : options.decoders) engine::decoder_named(decoder);
  check_drawing(options);
  check_stop_counts(options);
  check_set(options);
  check_draft_resources(draft_resources_of(options.model), options.decoders);
  check_pool(options.pool, options.decoders);
  for (const std::string& decoder : options.decoders) check_decoder(options, decoder);
}

}  // namespace app
