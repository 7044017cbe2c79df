// The command line: what may be said, and what each thing means. One place, so that `--help`
// teaches.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/suggest.h"
#include "app/terminal.h"
#include "engine/decode/registry.h"
#include "engine/model/config.h"

namespace app {
namespace {

/// Checks and converts to one of a few words, with a suggestion for a misspelt one.
CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : "|") + word;
  return CLI::Validator(
      [words, list](const std::string& given) {
        if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
        return fmt::format("{}: expected {}{}", given, list, did_you_mean(given, words));
      },
      list);
}

/// A whole number from 0 to 2^64 - 1, and no sign.
CLI::Validator seed_value() {
  return CLI::Validator(
      [](const std::string& given) {
        const bool digits =
            !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
        return digits && given.size() <= 20
                   ? std::string()
                   : given + ": expected a whole number from 0 to 2^64 - 1";
      },
      "SEED");
}

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const engine::DecoderInfo& info : engine::decoders()) names.push_back(info.name);
  return names;
}

void add_model_options(CLI::App& command, ModelOptions& o) {
  command.add_option("--model", o.model, "a bundled model's name, or a Hugging Face directory")
      ->capture_default_str();
  command
      .add_option("--scale", o.scale,
                  "enlarge the model without changing what it computes: WxD or auto")
      ->capture_default_str();
  command.add_option("--device", o.device, "auto, cpu or cuda:N")->capture_default_str();
  command.add_option("--dtype", o.dtype, "f32, bf16 or f16 (default: as the model is stored)")
      ->check(one_of({"f32", "bf16", "f16"}));
  command.add_option("--threads", o.n_threads, "CPU threads (0: all)")->check(CLI::Range(0, 1024));
  command.add_flag("--allow-external-shards", o.allow_external_shards,
                   "follow links out of the model's directory");
}

void add_generation_options(CLI::App& command, GenerationOptions& o) {
  add_model_options(command, o.model);
  CLI::Option* prompt =
      command.add_option("--prompt", o.prompt, "the text to continue")->group("Prompt");
  CLI::Option* file =
      command
          .add_option("--prompt-file", o.prompt_file,
                      "JSON Lines: {\"id\": .., \"prompt\": .., \"seed\": optional}")
          ->group("Prompt");
  prompt->excludes(file);
  prompt->each([&o](const std::string&) { o.has_prompt = true; });
  command.add_option("--max-tokens", o.max_tokens, "stop after so many new tokens")
      ->capture_default_str();
  command.add_option("--temperature", o.temperature, "0: greedy")
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--top-k", o.top_k, "keep the k likeliest tokens (0: all)")
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--top-p", o.top_p, "keep the likeliest tokens up to this probability")
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--min-p", o.min_p,
                  "keep tokens of at least this share of the likeliest one's probability")
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--repetition-penalty", o.repetition_penalty, "1: none")
      ->capture_default_str()
      ->group("Sampling");
  command.add_option("--seed", o.seed, "the same seed gives the same text with every decoder")
      ->check(seed_value())
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option("--sampling", o.sampling,
                  "coupled: token for token what AR samples; rejection: the paper's rule, same "
                  "distribution")
      ->check(one_of({"coupled", "rejection"}))
      ->capture_default_str()
      ->group("Sampling");
  command.add_flag("--ignore-eos", o.ignore_eos, "go on after the end token");
  command.add_option("--set", o.set, "a decoder's option, name=value; may be given several times")
      ->group("Decoder");
  command.add_flag("--json", o.json, "print one JSON document and nothing else");
}

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
      }
      text += fmt::format("  --set {}={}  ({}) {}\n", option.name, option.default_value, range,
                          option.help);
    }
  }
  return text;
}

struct Parsed {
  GenerationOptions generate, compare;
  BenchOptions bench;
  DataOptions data;
  TrainOptions train;
  ModelCommandOptions model;
  ScoreOptions score;
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

using Run = std::function<int()>;

void add_outputs(CLI::App& command, GenerationOptions& o) {
  command.add_option("--trace", o.trace, "write a Chrome/Perfetto trace (.json or .json.gz)");
  command.add_option("--record", o.record, "write a recording the window opens (.pdrun)");
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
  c->add_flag("--check", p.generate.check,
              "compare with plain decoding afterwards (always done with --json)");
  c->footer([&p] { return "Options of the decoder:\n" + options_help(p.decoder); });
  c->callback([&] {
    p.generate.decoders = {p.decoder};
    run = [&p] { return generate(p.generate); };
  });
}

void add_compare(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "compare", "Run several decoders on the same prompts, interleaved, and compare them");
  c->add_option("--decoders", p.decoders, "names with commas between")
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.compare);
  add_outputs(*c, p.compare);
  c->add_option("--repeat", p.compare.repeat, "run each so often and report medians")
      ->capture_default_str();
  c->footer([] { return "Options of the decoders:\n" + options_help(""); });
  c->callback([&] {
    p.compare.decoders = split_commas(p.decoders);
    run = [&p] { return compare(p.compare); };
  });
}

void add_bench(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("bench", "Measure this machine and this engine");
  c->add_option("what", p.bench.what,
                "probe: memory and multiplies; step: a forward's cost by rows; decode: plain "
                "decoding; kernels: single multiplies")
      ->required()
      ->check(one_of({"probe", "step", "decode", "kernels"}));
  add_model_options(*c, p.bench.model);
  c->add_option("--rows", p.rows, "row counts with commas between (default 1,2,4,8,16,24,32)");
  c->add_option("--context", p.bench.context, "committed tokens before the rows")
      ->capture_default_str();
  c->add_option("--repeat", p.bench.repeat, "medians over so many rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  c->add_option("--max-tokens", p.bench.max_tokens, "tokens of bench decode")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  c->add_flag("--json", p.bench.json, "print one JSON document and nothing else");
  c->callback([&] {
    if (!p.rows.empty()) {
      p.bench.rows.clear();
      for (const std::string& rows : split_commas(p.rows)) {
        std::size_t used = 0;
        int n = 0;
        try {
          n = std::stoi(rows, &used);
        } catch (const std::exception&) {
        }
        if (used != rows.size())
          throw kernels::Error(
              kernels::ErrorCode::Usage,
              fmt::format("--rows {}: expected whole numbers with commas between", p.rows));
        p.bench.rows.push_back(n);
      }
    }
    run = [&p] { return bench(p.bench); };
  });
}

void add_data(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("data", "Generate and check training and evaluation problems");
  c->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_flag("--json", p.data.json, "print one JSON document and nothing else");
    sub->callback([&p, &run, name] {
      p.data.what = name;
      run = [&p] { return data(p.data); };
    });
    return sub;
  };
  CLI::App* generate =
      add("generate",
          "JSON Lines of one task's problems; the same index gives the same problem for ever");
  generate->add_option("task", p.data.task, "arith, kb, sql, py or blocks")->required();
  generate->add_option("--split", p.data.split, "which problems: the three never share one")
      ->check(one_of({"train", "dev", "test"}))
      ->capture_default_str();
  generate->add_option("--level", p.data.level, "1 to 3, easy to hard")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  generate->add_option("--start", p.data.start, "index of the first")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  generate->add_option("--count", p.data.count, "how many")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add("check", "Run the task's checker over each record's completion")
      ->add_option("file", p.data.file, "JSON Lines")
      ->required();
  CLI::App* stats = add("stats", "Lengths, forms, repeated n-grams, duplicates");
  stats->add_option("file", p.data.file, "JSON Lines")->required();
  stats->add_option("--tokenizer", p.data.tokenizer,
                    "directory with the tokenizer.model that counts (default: the bundled "
                    "target's)");
}

void add_train(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "train", "Train a tokenizer or a model from a recipe; Ctrl+C saves, --resume goes on");
  c->add_option("what", p.train.what, "tokenizer, target or draft")
      ->required()
      ->check(one_of({"tokenizer", "target", "draft"}));
  c->add_option("--recipe", p.train.recipe, "a file like assets/recipes/target-t3.json")
      ->required();
  c->add_option("--out", p.train.out, "the directory to write (default: the recipe's name, here)");
  c->add_option("--tokenizer", p.train.tokenizer,
                "directory with tokenizer.model (default: the bundled target's)");
  c->add_option(
      "--data", p.train.data,
      "folder of the open texts (default: $DECOSCOPE_DATA); needed by recipes that name them");
  c->add_option("--threads", p.train.n_threads, "CPU threads (0: all)")->check(CLI::Range(0, 1024));
  c->add_option("--from", p.train.from,
                "a model of the recipe's shape to start from (default: random weights)");
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
    sub->add_flag("--json", p.model.json, "print one JSON document and nothing else");
    sub->add_flag("--allow-external-shards", p.model.allow_external_shards,
                  "follow links out of the model's directory");
    sub->callback([&p, &run, name] {
      p.model.what = name;
      run = [&p] { return model(p.model); };
    });
    return sub;
  };
  add("info", "Shape, size, tokenizer and notices of a model")
      ->add_option("path", p.model.path, "name or directory")
      ->required();
  CLI::App* validate = add("validate", "Check every file of a model against every other");
  validate->add_option("path", p.model.path, "name or directory")->required();
  validate->add_flag("--scan", p.model.scan, "also look for weights that are not finite");
  CLI::App* random = add("random", "Write a model of random weights of a given shape");
  random->add_option("--config", p.model.config, "a config.json, like assets/shapes/M.json")
      ->required();
  random->add_option("out", p.model.out, "the directory to write")->required();
  random->add_option("--seed", p.model.seed, "of the weights")
      ->check(seed_value())
      ->capture_default_str();
  random->add_option("--dtype", p.model.dtype, "f32, bf16 or f16 (default bf16)")
      ->check(one_of({"f32", "bf16", "f16"}));
  CLI::App* scale = add("scale", "Write an enlarged model that computes the same tokens");
  scale->add_option("path", p.model.path, "name or directory")->required();
  scale->add_option("out", p.model.out, "the directory to write")->required();
  scale->add_option("--scale", p.model.scale, "width x depth, width a power of four")
      ->capture_default_str();
}

void add_score(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.get_subcommand("model")->add_subcommand(
      "score", "Decode unseen generated problems and score them with the tasks' own checkers");
  add_model_options(*c, p.score.model);
  c->add_option("--count", p.score.count, "problems a task and level")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  c->add_flag("--write", p.score.write, "put the table into the model's card");
  c->add_flag("--json", p.score.json, "print one JSON document and nothing else");
  c->callback([&] { run = [&p] { return score(p.score); }; });
}

void add_trace(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("trace", "Look at, check and convert recordings and traces");
  c->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_option("path", p.trace.path, "a .pdrun recording or a .json trace")->required();
    sub->add_flag("--json", p.trace.json, "print one JSON document and nothing else");
    sub->callback([&p, &run, name] {
      p.trace.what = name;
      run = [&p] { return trace(p.trace); };
    });
    return sub;
  };
  add("info", "What is in it: runs, steps, tokens, what was cut off, and whose weights")
      ->add_option("--model", p.trace.model,
                   "compare its weights with this model's (default: the bundled one of the name "
                   "recorded)");
  add("validate", "Check it against the rules of its format");
  CLI::App* convert = add("convert", "Write it as .json, .json.gz, .csv or .txt");
  convert->add_option("out", p.trace.out, "the file to write; its ending says the format")
      ->required();
  convert->add_flag("--with-prompt", p.trace.with_prompt,
                    "put the prompt's text into the result, not only its hash");
  // A part of a long recording, where a viewer would not take the whole.
  convert->add_option("--run", p.trace.run, "to a trace: this run alone")
      ->check(CLI::Range(1, 0x7FFF'FFFF));
  convert->add_option("--first-step", p.trace.first_step, "to a trace: steps from this one on")
      ->check(CLI::Range(0, 0x7FFF'FFFF));
  convert->add_option("--last-step", p.trace.last_step, "to a trace: steps up to this one")
      ->check(CLI::Range(0, 0x7FFF'FFFF));
}

/// The subcommand the arguments got to.
const CLI::App* deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

/// "decoscope data generate".
std::string path_of(const CLI::App* at) {
  const CLI::App* parent = at->get_parent();
  return parent ? path_of(parent) + " " + at->get_name() : at->get_name();
}

/// Of "... not expected: c --b a", which lists the words last to first: the first option, or the
/// first word where a command was expected.
std::string unexpected_word(const std::string& message, bool command_expected) {
  std::istringstream words(message.substr(std::min(message.rfind(": ") + 1, message.size())));
  std::string word, first, first_option;
  while (words >> word) {
    first = word;
    if (word.starts_with("-")) first_option = word;
  }
  return command_expected || first_option.empty() ? first : first_option;
}

/// A text as a shell takes it: at most 60 bytes of it, cut between characters.
std::string in_shell_quotes(std::string text) {
  std::size_t end = std::min<std::size_t>(text.size(), 60);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    end--;
  const bool is_cut = end < text.size();
  text.resize(end);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + (is_cut ? "...\"" : "\"");
}

/// What is meant by words where generate and compare expect none: a prompt without its option, or
/// one whose quotes are missing. Empty: something else.
std::string prompt_meant(const CLI::App& at) {
  if (at.get_name() != "generate" && at.get_name() != "compare") return "";
  std::vector<std::string> words = at.remaining();
  for (const std::string& word : words) {
    if (word.starts_with("-")) return "";
  }
  if (words.empty()) return "";
  if (words.size() == 1 && words[0].ends_with(".jsonl") && at.count("--prompt-file") == 0) {
    return fmt::format("{}: a file of prompts has its option: --prompt-file {}", words[0],
                       in_shell_quotes(words[0]));
  }
  std::string text;
  if (at.count("--prompt") > 0) text = at.get_option("--prompt")->as<std::string>();
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return fmt::format("{}: {}: --prompt {}", words[0],
                     at.count("--prompt") > 0 ? "a prompt of several words needs quotes"
                                              : "a prompt is given with its option",
                     in_shell_quotes(text));
}

/// One line for what CLI11 found wrong, with the nearest word that exists.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = deepest(app);
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    if (const std::string meant = prompt_meant(*at); !meant.empty()) return meant;
    const std::string culprit = unexpected_word(message, at == &app);
    std::vector<std::string> known;
    for (const CLI::Option* option : at->get_options({})) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
    message =
        fmt::format("{}: no such {}{}", culprit, culprit.starts_with("-") ? "option" : "command",
                    did_you_mean(culprit, known));
  }
  return fmt::format("{}; `{} --help` lists what there is", message, path_of(at));
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "Decoscope runs large language models with parallel decoders and shows what they do.\n"
      "Without a subcommand it opens the window.",
      "decoscope");
  app.set_version_flag("--version", "decoscope " DECOSCOPE_VERSION);
  app.require_subcommand(0, 1);
  Parsed p;
  Run run = [&p] {
    if (p.window.model.scale != "auto") engine::scale_from(p.window.model.scale);
    return window(p.window);
  };
  add_model_options(app, p.window.model);
  app.add_option("--open", p.window.open, "open a recording (.pdrun) in the window");
  app.add_option("--screen", p.window.screen, "which screen to start with")
      ->check(one_of({"welcome", "live", "compare"}));
  app.add_option("--screenshot", p.window.screenshot,
                 "run the first race, write a picture of the window (.png), and end");
  add_generate(app, p, run);
  add_compare(app, p, run);
  add_bench(app, p, run);
  add_data(app, p, run);
  add_train(app, p, run);
  add_model(app, p, run);
  add_score(app, p, run);
  add_trace(app, p, run);
  CLI::App* devices_command = app.add_subcommand("devices", "List the devices models can run on");
  devices_command->add_flag("--json", p.devices_json, "print one JSON document and nothing else");
  devices_command->callback([&] { run = [&p] { return devices(p.devices_json); }; });

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
