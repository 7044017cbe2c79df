#include "app/cli/options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/numbers.h"
#include "engine/base/closest_name.h"
#include "engine/base/limits.h"
#include "engine/decode/registry.h"
#include "engine/event/run_rules.h"
#include "engine/event/stop_rules.h"

namespace app {

CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : "|") + word;
  return CLI::Validator(
      [words, list](const std::string& given) {
        if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
        return fmt::format("{}: expected {}{}", given, list, engine::did_you_mean(given, words));
      },
      list);
}

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const engine::DecoderInfo& info : engine::decoders()) names.push_back(info.name);
  return names;
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<LaneOption> lanes_from(const std::string& text) {
  std::vector<LaneOption> lanes;
  for (const std::string& part : split_commas(text)) {
    const std::size_t at = part.find('@');
    LaneOption lane{.name = part, .decoder = part.substr(0, at), .model = {}};
    if (at != std::string::npos) lane.model = part.substr(at + 1);
    if (lane.decoder.empty() || (at != std::string::npos && lane.model.empty()))
      throw CLI::ValidationError(
          "--decoders", fmt::format("found '{}', expected a decoder, or DECODER@MODEL with a "
                                    "model as in --model",
                                    part));
    engine::decoder_named(lane.decoder);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

void add_run_code_option(CLI::App& command, bool& run_code) {
  command.add_flag(
      "--run-code", run_code,
      "run Python answers (py, coding answers of chat, mbpp, humaneval) even if they "
      "cannot be isolated by bubblewrap (no network, no access to your files): then "
      "only time and memory are limited. Without this option such answers are not run");
}

void add_limit_option(CLI::App& command, engine::FileLimits& limits) {
  std::string names;
  for (const engine::FileLimit& limit : engine::file_limits())
    names += (names.empty() ? "" : ", ") + std::string(limit.name);
  command
      .add_option_function<std::vector<std::string>>(
          "--limit",
          [&limits](const std::vector<std::string>& given) {
            for (const std::string& one : given) engine::raise_limit(limits, one);
          },
          "raise a limit on input files; repeatable: " + names)
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_model_options(CLI::App& command, ModelOptions& o, bool with_context) {
  command
      .add_option(
          "--model", o.model,
          "bundled model, .gguf file, directory with config.json and *.safetensors, "
          "hf:ORG/NAME, ollama:NAME, or a unique part of a name that `decoscope model list` "
          "prints; MODEL+ADAPTER as with --adapter")
      ->each([&o](const std::string&) { o.model_given = true; })
      ->type_name(kModelName)
      ->capture_default_str();
  // After --model: callbacks run in the order of these lines.
  command
      .add_option_function<std::string>(
          "--adapter",
          [&o](const std::string& folder) {
            if (!std::filesystem::exists(folder + "/adapter_config.json"))
              throw CLI::ValidationError(
                  "--adapter",
                  folder + ": no adapter_config.json, expected the folder of a LoRA adapter");
            o.model += "+" + folder;
            o.model_given = true;
          },
          "merge a LoRA adapter (a folder that peft wrote) into the model")
      ->type_name("DIR");
  command
      .add_option_function<std::string>(
          "--scale",
          [&o](const std::string& scale) {
            o.scale = scale;
            o.scale_given = true;
          },
          "enlarge the model to W times the width (1, 4, 16, ...) and D times the depth: same "
          "tokens, but the step times of a larger model; auto: larger than the CPU's cache "
          "(default: 1x1; the window chooses)")
      ->type_name("WxD|auto");
  command
      .add_option("--device", o.device,
                  "auto (cpu), cpu, cuda:N or cuda:emulated; `decoscope devices` lists them")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option(
          "--dtype", o.dtype,
          "dtype of weights and KV cache (default: as stored; quantised weights stay quantised "
          "on the CPU, with an f16 cache)")
      ->check(one_of({"f32", "bf16", "f16"}));
  command
      .add_option(
          "--cache-type", o.cache_type,
          "type of the KV cache, only on the CPU (default: as --dtype); q8_0 takes half the "
          "memory of f16")
      ->check(one_of({"f32", "bf16", "f16", "q8_0"}));
  if (with_context)
    command
        .add_option("--context", o.context,
                    "maximum length of prompt and new tokens together (default: the model's, "
                    "extended by its RoPE scaling); output beyond it may be poor")
        ->transform(whole_number(2))
        ->type_name("N");
  command.add_option("--threads", o.n_threads, "CPU threads (0: as many as are fastest)")
      ->transform(whole_number(0, 1024));
  command.add_flag("--allow-external-shards", o.allow_external_shards,
                   "follow links to files outside the model's directory");
  add_limit_option(command, o.limits);
}

void add_defaults_option(CLI::App& command, ModelOptions& o) {
  command
      .add_option_function<std::string>(
          "--defaults", [&o](const std::string& source) { o.model_defaults = source == "model"; },
          "default values of options: program, as listed here; model: temperature, top_p, top_k, "
          "min_p, repetition_penalty, do_sample and max_new_tokens of its "
          "generation_config.json, as in transformers (default: program)")
      ->check(one_of({"program", "model"}))
      ->group("Sampling");
}

void add_draft_option(CLI::App& command, ModelOptions& o) {
  command
      .add_option("--draft", o.draft,
                  "draft model, for decoders that need one: as --model, with the same vocabulary "
                  "(default: the one named by the model's card or made for the model)")
      ->type_name(kModelName);
  command
      .add_option("--draft-scale", o.draft_scale,
                  "scale of the draft model (default: the model's); at 1x1 the drafts for an "
                  "enlarged model cost almost nothing")
      ->type_name("WxD");
  command
      .add_option(
          "--heads", o.heads,
          "draft heads, for decoders that need them: a bundled name or a directory; scaled with "
          "the model. For several decoders one of each kind, separated by commas (default: those "
          "named by the model's card or made for the model)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
}

namespace {

/// Adds an option that can be given several times and keeps each text unchanged. CLI11's own
/// conversion to a list would split "[a,b]" and drop "{}".
CLI::Option* add_texts_option(CLI::App& command,
                              const char* name,
                              std::vector<std::string>& values,
                              const std::string& help) {
  return command
      .add_option(
          name,
          [&values](const CLI::results_t& found) {
            values = found;
            return true;
          },
          help)
      ->take_all()
      ->allow_extra_args(false);
}

void add_stop_options(CLI::App& command, GenerationOptions& o) {
  add_texts_option(command, "--stop", o.stop_texts,
                   "stop string: the output ends before it; repeatable, the first one completed "
                   "ends it")
      ->type_name("TEXT")
      ->check(CLI::Validator([](std::string& text) { return engine::why_no_stop_text(text); }, "",
                             "stop string"));
  command
      .add_option("--stop-id", o.stop_ids,
                  "end the output at the token with this id, even with --ignore-eos; repeatable")
      ->type_name("ID")
      ->allow_extra_args(false)
      ->transform(whole_number(0));
}

}  // namespace

void add_generation_options(CLI::App& command, GenerationOptions& o) {
  add_model_options(command, o.model);
  add_draft_option(command, o.model);
  CLI::Option* prompt =
      command.add_option("--prompt", o.prompt, "text to continue")->group("Prompt");
  CLI::Option* file = command
                          .add_option("--prompt-file", o.prompt_file,
                                      "prompts, one per line: {\"id\": .., \"prompt\": .., "
                                      "\"seed\": optional}, or \"messages\": "
                                      "[{\"role\": .., \"content\": ..}, ..]; -: standard "
                                      "input; example: assets/prompts/bundled.jsonl")
                          ->type_name("FILE")
                          ->group("Prompt");
  prompt->excludes(file);
  CLI::Option* chat = add_chat_options(command, o.chat, o.system);
  command
      .add_flag_function(
          "--raw", [&o](std::int64_t) { o.chat = engine::ChatMode::Raw; },
          "take prompts as they are, also with a chat template")
      ->excludes(chat)
      ->excludes(command.get_option("--system"))
      ->group("Prompt");
  command.add_flag("-v,--verbose", o.verbose,
                   "print each prompt as the chat template renders it (--json always has it)");
  prompt->each([&o](const std::string&) { o.has_prompt = true; });
  const auto given = [&o](const char* option) {
    return [&o, option](const std::string&) { o.given.insert(option); };
  };
  command.add_option("--max-tokens", o.max_tokens, "maximum number of new tokens")
      ->transform(whole_number(1))
      ->each(given("--max-tokens"))
      ->capture_default_str();
  command
      .add_option("--temperature", o.temperature,
                  "0: greedy, the most likely token; 1: the model's probabilities")
      ->check(real_number(0))
      ->each(given("--temperature"))
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--top-k", o.top_k, "sample from the k most likely tokens (0: all)")
      ->transform(whole_number(0))
      ->each(given("--top-k"))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--top-p", o.top_p,
                  "sample from the most likely tokens up to this total probability")
      ->check(real_number(0, 1))
      ->each(given("--top-p"))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--min-p", o.min_p,
                  "sample from tokens with at least this fraction of the highest probability")
      ->check(real_number(0, 1))
      ->each(given("--min-p"))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--repetition-penalty", o.repetition_penalty,
                  "above 1: makes tokens less likely that occurred before")
      ->check(real_number(0, 100, Low::Excluded))
      ->each(given("--repetition-penalty"))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--seed", o.seed,
                  "the same seed gives the same text with every decoder (--sampling coupled)")
      ->transform(seed_number())
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option(
          "--sampling", o.sampling,
          "coupled: the same tokens as ar with this seed; rejection: the rule of the papers, "
          "the same distribution but other tokens, so --check does not apply")
      ->check(one_of({engine::kCoupled, engine::kRejection}))
      ->capture_default_str()
      ->group("Sampling");
  add_defaults_option(command, o.model);
  command.add_flag("--ignore-eos", o.ignore_eos, "continue after the end-of-sequence token");
  command.add_flag("--no-special", o.no_special, kNoSpecialHelp);
  add_stop_options(command, o);
  command.add_option("--set", o.set, "an option of the decoder, listed below; repeatable")
      ->type_name("NAME=VALUE")
      ->group("Decoder");
  add_pool_option(command, o.pool);
  command.add_flag("--json", o.json, kJsonHelp);
}

void add_pool_option(CLI::App& command, std::string& pool) {
  command
      .add_option(
          "--pool", pool,
          "a text file: suffix and lookahead also search it for the last tokens of the "
          "sequence and guess what follows them; chimera fills its cache with the file's k-grams")
      ->type_name("FILE")
      ->group("Decoder");
}

CLI::Option* add_chat_options(CLI::App& command, engine::ChatMode& chat, std::string& system) {
  CLI::Option* option =
      command
          .add_flag_function(
              "--chat", [&chat](std::int64_t) { chat = engine::ChatMode::Chat; },
              "make a message of the prompt, in the model's chat template; with `generate` and "
              "`compare` the default if the model has one and the prompt names no special tokens")
          ->group("Prompt");
  command
      .add_option("--system", system,
                  "system message, before prompts in a chat template that have none")
      ->type_name("TEXT")
      ->group("Prompt");
  return option;
}

void add_outputs(CLI::App& command, GenerationOptions& o) {
  command
      .add_option(
          "--trace", o.trace,
          "write a trace for ui.perfetto.dev (.json or .pftrace) or chrome://tracing (.json)")
      ->type_name("FILE");
  command
      .add_option("--record", o.record,
                  "write a recording (.pdrun), for `decoscope --open FILE` and `decoscope trace "
                  "convert`")
      ->type_name("FILE");
}

std::string options_help(const std::string& decoder) {
  std::string text;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    if (!decoder.empty() && info.name != decoder) continue;
    text += fmt::format("\n{}: {}\n  {}; {}\n", info.name, info.summary,
                        info.lossless ? "lossless" : "not lossless", info.reference);
    for (const engine::OptionInfo& option : info.options) {
      std::string range;
      const bool is_counts = option.type == engine::OptionInfo::Type::Counts;
      const bool is_number = is_counts || option.type == engine::OptionInfo::Type::Int;
      if (!option.choices.empty() && !is_number) {
        for (const std::string& choice : option.choices)
          range += (range.empty() ? "" : "|") + choice;
        if (option.type == engine::OptionInfo::Type::Tree) range += "|FILE.json";
      } else if (option.type == engine::OptionInfo::Type::Bool) {
        range = "on|off";
      } else {
        range = fmt::format("{} to {}", option.min, option.max);
        if (is_counts) range += " each, separated by commas";
        for (const std::string& choice : option.choices) range += ", or " + choice;
      }
      text += fmt::format("  --set {}={}  ({}) {}\n", option.name, option.default_value, range,
                          option.help);
    }
  }
  return text;
}

void add_size_option(CLI::App& command, int& width, int& height, const std::string& standard) {
  command
      .add_option_function<std::string>(
          "--size",
          [&width, &height](const std::string& size) {
            const std::size_t by = size.find('x');
            const auto wide = whole_from(size.substr(0, by), 640, 16384);
            const auto high =
                by == std::string::npos ? wide : whole_from(size.substr(by + 1), 400, 16384);
            if (by == std::string::npos || !wide || !high)
              throw CLI::ValidationError(
                  "--size", size + ": expected WIDTHxHEIGHT in pixels, 640x400 to 16384x16384");
            width = static_cast<int>(*wide), height = static_cast<int>(*high);
          },
          "size of the window (default: " + standard + ")")
      ->type_name("WxH");
}

std::string options_example(const std::string& decoder) {
  const engine::DecoderInfo& selected = engine::decoder_named(decoder);
  const engine::DecoderInfo& info =
      selected.options.empty() ? engine::decoder_named("lookahead") : selected;
  const engine::OptionInfo& option = info.options.front();
  // A decoder for concurrent prompts (SEED) has no advantage with one prompt, so its example has a
  // file.
  const char* prompt = engine::takes_turns(info.name) ? "--prompt-file assets/prompts/bundled.jsonl"
                                                      : "--prompt \"Question: ...\"";
  return fmt::format("--decoder {} --set {}={} {}", info.name, option.name, option.default_value,
                     prompt);
}

}  // namespace app
