// The command line: what may be said, and what each thing means. One place, so that `--help`
// teaches.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli_parts.h"
#include "app/commands.h"
#include "app/numbers.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "engine/closest_name.h"
#include "engine/decode/registry.h"
#include "engine/model/config.h"
#include "engine/model/limits.h"

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

namespace {

constexpr const char* kModelName = "NAME|DIR";
constexpr int kMaxBenchRows = 256;

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
          "let a file ask for more before it is refused; may be given several times: " + names)
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& o) {
  command
      .add_option("--model", o.model,
                  "a bundled model, or a directory with config.json, *.safetensors and "
                  "tokenizer.model")
      ->type_name(kModelName)
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--scale",
          [&o](const std::string& scale) {
            o.scale = scale;
            o.scale_given = true;
          },
          "run the model W times as wide (1, 4, 16, ...) and D times as deep: same tokens, the "
          "step costs of a larger model; auto: too large for the processor's cache (default: 1x1, "
          "in the window its own choice)")
      ->type_name("WxD|auto");
  command.add_option("--device", o.device, "auto, cpu or cuda:N; `decoscope devices` lists them")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--dtype", o.dtype, "of weights and cache (default: as the model is stored)")
      ->check(one_of({"f32", "bf16", "f16"}));
  command.add_option("--threads", o.n_threads, "CPU threads (0: all)")
      ->transform(whole_number(0, 1024));
  command.add_flag("--allow-external-shards", o.allow_external_shards,
                   "follow links out of the model's directory");
  add_limit_option(command, o.limits);
}

void add_draft_option(CLI::App& command, ModelOptions& o) {
  command
      .add_option("--draft", o.draft,
                  "the model that drafts, for the decoders that need one: a bundled one or a "
                  "directory, of the same vocabulary; never scaled (default: what the model's card "
                  "names)")
      ->type_name(kModelName);
}

namespace {

void add_generation_options(CLI::App& command, GenerationOptions& o) {
  add_model_options(command, o.model);
  add_draft_option(command, o.model);
  CLI::Option* prompt =
      command.add_option("--prompt", o.prompt, "the text to continue")->group("Prompt");
  CLI::Option* file =
      command
          .add_option("--prompt-file", o.prompt_file,
                      "a line each: {\"id\": .., \"prompt\": .., \"seed\": optional}; "
                      "assets/prompts/bundled.jsonl is one")
          ->type_name("FILE")
          ->group("Prompt");
  prompt->excludes(file);
  prompt->each([&o](const std::string&) { o.has_prompt = true; });
  command.add_option("--max-tokens", o.max_tokens, "stop after so many new tokens")
      ->transform(whole_number(1))
      ->capture_default_str();
  command
      .add_option("--temperature", o.temperature,
                  "0: always the likeliest token (greedy); 1: as likely as the model says")
      ->check(real_number(0))
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--top-k", o.top_k, "keep the k likeliest tokens (0: all)")
      ->transform(whole_number(0))
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--top-p", o.top_p, "keep the likeliest tokens up to this probability")
      ->check(real_number(0, 1))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--min-p", o.min_p,
                  "keep tokens of at least this share of the likeliest one's probability")
      ->check(real_number(0, 1))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--repetition-penalty", o.repetition_penalty,
                  "above 1: tokens that stand in the text already become less likely")
      ->check(real_number(0, 100, Low::Excluded))
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--seed", o.seed, "the same seed gives the same text with every decoder")
      ->transform(seed_number())
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--sampling", o.sampling,
                  "coupled: token for token what ar samples with this seed; rejection: the papers' "
                  "rule, the same distribution but other tokens, so there is nothing to --check")
      ->check(one_of({"coupled", "rejection"}))
      ->capture_default_str()
      ->group("Sampling");
  command.add_flag("--ignore-eos", o.ignore_eos, "go on after the end token");
  command
      .add_option("--set", o.set,
                  "an option of the decoder, listed below; may be given several times")
      ->type_name("NAME=VALUE")
      ->group("Decoder");
  command.add_flag("--json", o.json, kJsonHelp);
}

}  // namespace

std::string options_help(const std::string& decoder) {
  std::string text;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    if (!decoder.empty() && info.name != decoder) continue;
    text += fmt::format("\n{}: {}\n  {}; {}\n", info.name, info.summary,
                        info.lossless ? "lossless" : "not lossless", info.reference);
    for (const engine::OptionInfo& option : info.options) {
      std::string range;
      if (!option.choices.empty()) {
        for (const std::string& choice : option.choices)
          range += (range.empty() ? "" : "|") + choice;
      } else if (option.type == engine::OptionInfo::Type::Bool) {
        range = "on|off";
      } else {
        range = fmt::format("{:g} to {:g}", option.min, option.max);
        if (option.type == engine::OptionInfo::Type::Counts) range += " each, commas between";
      }
      text += fmt::format("  --set {}={}  ({}) {}\n", option.name, option.default_value, range,
                          option.help);
    }
  }
  return text;
}

namespace {

struct Parsed {
  GenerationOptions generate, compare;
  BenchOptions bench;
  DataOptions data;
  TrainOptions train;
  ModelCommandOptions model;
  ScoreOptions score;
  CotOptions cot;
  TotOptions tot;
  TraceOptions trace;
  WindowCommandOptions window;
  bool devices_json = false;
  std::string decoder = "ar", decoders = "ar,jacobi,lookahead,prompt-lookup", rows;
};

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

void add_outputs(CLI::App& command, GenerationOptions& o) {
  command
      .add_option("--trace", o.trace,
                  "write a trace for ui.perfetto.dev or chrome://tracing (.json or .json.gz)")
      ->type_name("FILE");
  command
      .add_option("--record", o.record,
                  "write a recording (.pdrun): `decoscope --open FILE` shows it, `decoscope trace "
                  "convert` makes tables of it")
      ->type_name("FILE");
}

void add_generate(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "generate", "Continue a prompt with one decoder; text appears as it is decoded");
  c->add_option("--decoder", p.decoder, "which decoder")
      ->check(one_of(decoder_names()))
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.generate);
  add_outputs(*c, p.generate);
  c->add_flag(
      "--check", p.generate.check,
      "run plain decoding (ar) afterwards, and say whether it wrote the same tokens and how "
      "much longer it took (always done with --json)");
  c->footer([&p] {
    return "Options of the decoder (--decoder lookahead --help shows another's):\n" +
           options_help(p.decoder) +
           "\nExample: decoscope generate --decoder lookahead --set window=4 --prompt \"Question: "
           "...\" --check";
  });
  c->callback([&] {
    p.generate.decoders = {p.decoder};
    run = [&p] { return generate(p.generate); };
  });
}

void add_compare(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "compare", "Run several decoders on the same prompts, in turns, and compare them with ar");
  c->add_option("--decoders", p.decoders, "names with commas between")
      ->type_name("LIST")
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.compare);
  add_outputs(*c, p.compare);
  c->add_option("--repeat", p.compare.repeat, "run each so often and report medians")
      ->transform(whole_number(1, 100000))
      ->capture_default_str();
  c->footer([] {
    return "Options of the decoders (--set goes to each that has the option):\n" +
           options_help("") +
           "\nExample: decoscope compare --prompt-file assets/prompts/bundled.jsonl --scale 4x2";
  });
  c->callback([&] {
    p.compare.decoders = split_commas(p.decoders);
    run = [&p] { return compare(p.compare); };
  });
}

void add_bench(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("bench", "Measure this machine and this engine");
  c->add_option("what", p.bench.what,
                "probe: how fast this machine reads memory and multiplies; step: what a forward of "
                "1, 2, 4 ... rows costs, beside what the probes allow; decode: tokens a second of "
                "a decoder; kernels: single matrix multiplies")
      ->required()
      ->check(one_of(kBenches));
  c->footer(
      "Columns of bench step: \"of first\" is the time as a multiple of the first line's; "
      "\"roofline "
      "ms\" what reading the weights and multiplying them must take at least, by the probes; "
      "\"reached\" that divided by the time measured.\n"
      "Example: decoscope bench step --scale 4x2 --rows 1,8,16");
  add_model_options(*c, p.bench.model);
  add_draft_option(*c, p.bench.model);
  c->add_option("--decoder", p.bench.decoder, "of bench decode")
      ->check(one_of(decoder_names()))
      ->capture_default_str();
  c->add_option("--set", p.bench.set, "an option of that decoder; may be given several times")
      ->type_name("NAME=VALUE");
  c->add_option("--rows", p.rows,
                "tokens computed in one forward, counts with commas between (default "
                "1,2,4,8,16,24,32)")
      ->type_name("LIST");
  c->add_option("--context", p.bench.context, "committed tokens before the rows")
      ->transform(whole_number(1))
      ->capture_default_str();
  c->add_option("--repeat", p.bench.repeat, "how often; medians are reported")
      ->capture_default_str()
      ->transform(whole_number(1, 100000));
  c->add_option("--max-tokens", p.bench.max_tokens, "tokens of bench decode")
      ->capture_default_str()
      ->transform(whole_number(1, 1000000));
  c->add_flag("--json", p.bench.json, kJsonHelp);
  c->callback([&] {
    if (!p.rows.empty()) {
      p.bench.rows.clear();
      for (const std::string& rows : split_commas(p.rows)) {
        const auto n = whole_from(rows, 1, kMaxBenchRows);
        if (!n)
          throw CLI::ValidationError(
              "--rows", not_whole(rows, 1, kMaxBenchRows) + ", or several with commas between");
        p.bench.rows.push_back(static_cast<int>(*n));
      }
    }
    run = [&p] { return bench(p.bench); };
  });
}

void add_data(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("data", "Generate and check training and evaluation problems");
  c->require_subcommand(1);
  c->footer(
      "Example: decoscope data generate arith --level 2 --count 100 > problems.jsonl\n"
      "         decoscope data check problems.jsonl");
  const auto add = [&](const char* name, const char* help, const char* json = kJsonHelp) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_flag("--json", p.data.json, json);
    sub->callback([&p, &run, name] {
      p.data.what = name;
      run = [&p] { return data(p.data); };
    });
    return sub;
  };
  CLI::App* generate =
      add("generate",
          "Problems of one task, one JSON object a line; the same index gives the same problem for "
          "ever",
          "print one JSON document, the list of the records, instead of lines");
  generate
      ->add_option("task", p.data.task,
                   "arith (word problems), kb (questions to a list of facts), sql (text to query), "
                   "py (short functions) or blocks (plans)")
      ->required();
  generate->add_option("--split", p.data.split, "which problems: the three never share one")
      ->check(one_of({"train", "dev", "test"}))
      ->capture_default_str();
  generate->add_option("--level", p.data.level, "1 to 3, easy to hard")
      ->transform(whole_number(1, 3))
      ->capture_default_str();
  generate->add_option("--start", p.data.start, "index of the first")
      ->transform(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  generate->add_option("--count", p.data.count, "how many")
      ->transform(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  add("check", "Run the task's checker over each record's completion; exit code 3 if one is wrong")
      ->add_option("file", p.data.file, "a record a line, as data generate prints them")
      ->required();
  CLI::App* stats = add("stats", "Lengths, forms, repeated n-grams, duplicates");
  stats->add_option("file", p.data.file, "a record a line, as data generate prints them")
      ->required();
  stats->add_option("--tokenizer", p.data.tokenizer,
                    "directory with the tokenizer.model that counts (default: the bundled "
                    "target's)");
  add_limit_option(*stats, p.data.limits);
}

void add_train(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "train", "Train a tokenizer or a model from a recipe; Ctrl+C saves, --resume goes on");
  c->footer(
      "A recipe that says `tokens` trains the same bits however often it was stopped and resumed; "
      "one that says\n"
      "`minutes` follows the clock, so that two runs of it differ.\n"
      "Example, of some seconds: decoscope train target --recipe assets/recipes/tiny.json --out "
      "tiny\n"
      "                          decoscope generate --model tiny --prompt \"Question: \"");
  c->add_option("what", p.train.what,
                "tokenizer: the pieces that texts are cut into; target: the model that decides; "
                "draft: a smaller one with the same tokenizer")
      ->required()
      ->check(one_of(kTrainings));
  c->add_option("--recipe", p.train.recipe,
                "what is read, the shape and for how long: a file like assets/recipes/tiny.json")
      ->type_name("FILE")
      ->required();
  c->add_option("--out", p.train.out, "the directory to write (default: the recipe's name, here)");
  c->add_option("--tokenizer", p.train.tokenizer,
                "directory with tokenizer.model (default: the bundled target's)");
  c->add_option(
      "--data", p.train.data,
      "folder of the open texts (default: $DECOSCOPE_DATA); needed by recipes that name them");
  c->add_option("--threads", p.train.n_threads, "CPU threads (0: all)")
      ->transform(whole_number(0, 1024));
  c->add_option("--from", p.train.from,
                "a model of the recipe's shape to start from (default: random weights)");
  add_limit_option(*c, p.train.limits);
  c->add_flag("--resume", p.train.resume, "go on from the last checkpoint in --out");
  c->add_flag("--export", p.train.export_only,
              "write the last checkpoint in --out as a model, and train no further");
  c->add_flag("--json", p.train.json, "print one JSON document at the end and nothing else");
  c->callback([&] { run = [&p] { return train(p.train); }; });
}

void add_model(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("model", "Look at, check, make and enlarge models");
  c->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_flag("--json", p.model.json, kJsonHelp);
    sub->callback([&p, &run, name] {
      p.model.what = name;
      run = [&p] { return model(p.model); };
    });
    return sub;
  };
  const auto add_path = [&](CLI::App* sub) {
    sub->add_option("path", p.model.path, "a bundled model, or a model's directory")
        ->type_name(kModelName)
        ->required();
    sub->add_flag("--allow-external-shards", p.model.allow_external_shards,
                  "follow links out of the model's directory");
    add_limit_option(*sub, p.model.limits);
  };
  add_path(add("info", "Shape, size, tokenizer and notices of a model"));
  CLI::App* validate =
      add("validate", "Check every file of a model against every other; exit code 3 if one is bad");
  add_path(validate);
  validate->add_flag("--scan", p.model.scan, "also look for weights that are not finite");
  CLI::App* random =
      add("random", "Write a model of a given shape with random weights, to measure");
  random->footer(
      "Example: decoscope model random --config assets/shapes/M.json /tmp/m\n"
      "         decoscope bench step --model /tmp/m");
  random
      ->add_option("--config", p.model.config,
                   "the shape: a config.json, like assets/shapes/M.json")
      ->type_name("FILE")
      ->required();
  random->add_option("out", p.model.out, "the directory to write")->type_name("DIR")->required();
  random
      ->add_option(
          "--tokenizer", p.model.tokenizer,
          "a tokenizer.model, or a directory or bundled model with one, to copy beside the "
          "weights; without it the model has no text, only its speed")
      ->type_name("FILE|DIR");
  add_limit_option(*random, p.model.limits);
  random->add_option("--seed", p.model.seed, "of the weights")
      ->transform(seed_number())
      ->capture_default_str();
  random->add_option("--dtype", p.model.dtype, "f32, bf16 or f16 (default bf16)")
      ->check(one_of({"f32", "bf16", "f16"}));
  CLI::App* scale = add("scale", "Write an enlarged model that computes the same tokens");
  add_path(scale);
  scale->add_option("out", p.model.out, "the directory to write")->type_name("DIR")->required();
  scale->add_option("--scale", p.model.scale, "W times as wide (1, 4, 16, ...) and D times as deep")
      ->type_name("WxD")
      ->capture_default_str();
}

void add_score(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.get_subcommand("model")->add_subcommand(
      "score", "Decode unseen generated problems and score them with the tasks' own checkers");
  add_model_options(*c, p.score.model);
  c->add_option("--count", p.score.count, "problems of each task and level")
      ->transform(whole_number(1, 100000))
      ->capture_default_str();
  c->add_flag("--write", p.score.write, "put the table into the model's card");
  c->add_flag("--json", p.score.json, kJsonHelp);
  c->callback([&] { run = [&p] { return score(p.score); }; });
}

void add_trace(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("trace", "Look at, check and convert recordings and traces");
  c->require_subcommand(1);
  c->footer(
      "Example: decoscope generate --prompt \"Anna has\" --record run.pdrun\n"
      "         decoscope trace convert run.pdrun run.csv");
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_option("path", p.trace.path, "a .pdrun recording or a .json trace")
        ->type_name("FILE")
        ->required();
    sub->add_flag("--json", p.trace.json, kJsonHelp);
    sub->callback([&p, &run, name] {
      p.trace.what = name;
      run = [&p] { return trace(p.trace); };
    });
    return sub;
  };
  CLI::App* info =
      add("info", "What is in it: runs, steps, tokens, what was cut off, and whose weights");
  add_limit_option(*info, p.trace.limits);
  info->add_option("--model", p.trace.model,
                   "compare its weights with this model's (default: the bundled one of the name "
                   "recorded)");
  add("validate", "Check it against the rules of its format; exit code 3 if one is broken");
  CLI::App* convert = add("convert", "Write a recording (.pdrun) in another format");
  convert->get_option("path")->description("the recording");
  convert
      ->add_option(
          "out", p.trace.out,
          "the file to write; its ending says the format: .json or .json.gz (trace for "
          "Perfetto), .csv (four tables), .txt (words), .pdrun (what is whole of a damaged "
          "recording) (default: the recording's name with .json)")
      ->type_name("FILE");
  convert->add_flag("--with-prompt", p.trace.with_prompt,
                    "put the prompt's text into the result, not only its hash");
  // A part of a long recording, where a viewer would not take the whole.
  convert->add_option("--run", p.trace.run, "to a trace: this run alone")
      ->transform(whole_number(1));
  convert->add_option("--first-step", p.trace.first_step, "to a trace: steps from this one on")
      ->transform(whole_number(0));
  convert->add_option("--last-step", p.trace.last_step, "to a trace: steps up to this one")
      ->transform(whole_number(0));
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "Decoscope runs large language models with parallel decoders and shows what they do.\n"
      "Without a subcommand it opens the window; the options here are the window's.",
      "decoscope");
  app.set_version_flag("--version", "decoscope " DECOSCOPE_VERSION);
  app.require_subcommand(0, 1);
  Parsed p;
  Run run = [&p] {
    if (p.window.model.scale != "auto") engine::scale_from(p.window.model.scale);
    return window(p.window);
  };
  add_model_options(app, p.window.model);
  CLI::Option* open =
      app.add_option("--open", p.window.open, "show a recording (.pdrun)")->type_name("FILE");
  app.add_flag("--start", p.window.start,
               "start a race of four decoders on the first bundled prompt at once")
      ->excludes(open);
  app.add_option("--screen", p.window.screen,
                 "which screen to start with: welcome; live: one run; compare: a race (default: "
                 "that of last time)")
      ->check(one_of({"welcome", "live", "compare"}));
  app.add_option("--theme", p.window.theme, "colours of the window (default: those of last time)")
      ->check(one_of({"dark", "light", "monochrome"}));
  app.add_option(
         "--screenshot", p.window.screenshot,
         "run a race (or show what --open names), write a picture of the window (.png), and "
         "end")
      ->type_name("FILE");
  add_generate(app, p, run);
  add_compare(app, p, run);
  add_bench(app, p, run);
  add_data(app, p, run);
  add_train(app, p, run);
  add_model(app, p, run);
  add_score(app, p, run);
  add_reason(app, p.cot, p.tot, run);
  add_trace(app, p, run);
  CLI::App* devices_command = app.add_subcommand("devices", "List the devices models can run on");
  devices_command->add_flag("--json", p.devices_json, kJsonHelp);
  devices_command->callback([&] { run = [&p] { return devices(p.devices_json); }; });
  // Last: a subcommand inherits what is there when it is added.
  app.footer("`decoscope SUBCOMMAND --help` has the options of a subcommand, and examples.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    const CLI::App* at = deepest(app);
    const CLI::App* parent = at->get_parent();
    print(at->help(parent ? path_of(parent) : "", CLI::AppFormatMode::Normal));
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    print(app.help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::CallForVersion&) {
    print("decoscope " DECOSCOPE_VERSION "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    throw kernels::Error(kernels::ErrorCode::Usage, usage_message(app, error));
  }
  if (!app.get_subcommands().empty()) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() > 0) {
        throw kernels::Error(kernels::ErrorCode::Usage,
                             fmt::format("{} stands before {}; put it behind", option->get_name(),
                                         app.get_subcommands().front()->get_name()));
      }
    }
  }
  return run();
}

}  // namespace app
