#include "app/generation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "app/suggest.h"
#include "app/terminal.h"

namespace app {

using engine::Error;
using engine::ErrorCode;

engine::ModelRequest model_request(const ModelOptions& options) {
  return {.model = options.model,
          .scale = options.scale,
          .dtype = options.dtype,
          .device = options.device,
          .allow_external_shards = options.allow_external_shards};
}

engine::LoadedModel& load(engine::ModelStore& store, const engine::ModelRequest& request) {
  ProgressLine line("loading " + request.model);
  engine::LoadedModel& loaded = store.get(request, [&](std::int64_t done, std::int64_t total) {
    line.show(done >> 20, total >> 20, "MiB");
    return !interrupted();
  });
  line.finish();
  for (const std::string& notice : loaded.files.notices) print_error("note: " + notice);
  return loaded;
}

std::vector<Prompt> prompts_of(const GenerationOptions& options) {
  if (options.has_prompt) return {{.id = "prompt", .text = options.prompt, .seed = std::nullopt}};
  return read_prompts(options.prompt_file);
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

namespace {

/// Refuses a --set that no decoder of the run has, with the nearest name there is.
void check_set(const GenerationOptions& options) {
  for (const std::string& pair : options.set) {
    const std::string name = pair.substr(0, pair.find('='));
    std::vector<std::string> known;
    for (const std::string& decoder : options.decoders) {
      for (const engine::OptionInfo& info : engine::decoder_named(decoder).options)
        known.push_back(info.name);
    }
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string hint = did_you_mean(name, known);
    for (const engine::DecoderInfo& other : engine::decoders()) {
      const bool has =
          std::any_of(other.options.begin(), other.options.end(),
                      [&](const engine::OptionInfo& info) { return info.name == name; });
      if (has) hint = "; it is an option of " + other.name;
    }
    if (hint.empty() && known.empty()) hint = "; there are none";
    if (hint.empty()) hint = fmt::format("; there are {}", fmt::join(known, ", "));
    throw Error(
        ErrorCode::Usage,
        fmt::format("--set {}: {} {} no option '{}'{}", pair, fmt::join(options.decoders, ", "),
                    options.decoders.size() > 1 ? "have" : "has", name, hint));
  }
}

}  // namespace

engine::RunRequest request_for(const GenerationOptions& options,
                               const Prompt& prompt,
                               const std::string& decoder,
                               const engine::Model& model) {
  engine::RunRequest request;
  request.prompt_id = prompt.id;
  request.prompt = prompt.text;
  request.prompt_tokens = engine::tokenize_prompt(model, prompt.text);
  request.decoder = decoder;
  request.options = options_for(decoder, options.decoders, options.set);
  request.sampling.temperature = options.temperature;
  request.sampling.top_k = options.top_k;
  request.sampling.top_p = options.top_p;
  request.sampling.min_p = options.min_p;
  request.sampling.repetition_penalty = options.repetition_penalty;
  request.sampling.seed = prompt.seed.value_or(options.seed);
  request.sampling.mode = options.sampling == "rejection" ? engine::Sampling::Mode::Rejection
                                                          : engine::Sampling::Mode::Coupled;
  request.max_tokens = options.max_tokens;
  request.ignore_eos = options.ignore_eos;
  return request;
}

void check_usage(const GenerationOptions& options) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorCode::Usage, message); };
  if (!options.has_prompt && options.prompt_file.empty())
    refuse("a prompt is missing; give --prompt TEXT or --prompt-file F.jsonl");
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    refuse(fmt::format("--temperature {}: expected a number from 0", options.temperature));
  if (options.top_k < 0)
    refuse(fmt::format("--top-k {}: expected a whole number from 0 (0 is off)", options.top_k));
  if (!(options.top_p >= 0 && options.top_p <= 1))
    refuse(fmt::format("--top-p {}: expected a number from 0 to 1", options.top_p));
  if (!(options.min_p >= 0 && options.min_p <= 1))
    refuse(fmt::format("--min-p {}: expected a number from 0 to 1", options.min_p));
  if (!(options.repetition_penalty > 0 && options.repetition_penalty <= 100)) {
    refuse(fmt::format("--repetition-penalty {}: expected a number above 0, at most 100",
                       options.repetition_penalty));
  }
  if (options.max_tokens < 1)
    refuse(fmt::format("--max-tokens {}: expected a whole number from 1", options.max_tokens));
  if (options.repeat < 1)
    refuse(fmt::format("--repeat {}: expected a whole number from 1", options.repeat));
  if (options.decoders.empty())
    refuse("--decoders: found none, expected names with commas between");
  for (std::size_t i = 0; i < options.decoders.size(); i++) {
    const auto before = options.decoders.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(options.decoders.begin(), before, options.decoders[i]) != before) {
      refuse(fmt::format("--decoders: {} stands there twice", options.decoders[i]));
    }
  }
  if (options.model.scale != "auto") engine::scale_from(options.model.scale);
  for (const std::string& decoder : options.decoders) engine::decoder_named(decoder);
  check_set(options);
  for (const std::string& decoder : options.decoders) {
    engine::complete_options(engine::decoder_named(decoder),
                             options_for(decoder, options.decoders, options.set));
  }
}

}  // namespace app
