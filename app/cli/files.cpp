// The command lines of data, train, model and trace.
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/subcommands.h"
#include "app/cli/usage.h"
#include "engine/data/data_tool.h"
#include "engine/data/record.h"

namespace app {

void add_data(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("data", "Generate and check training and evaluation problems");
  c->require_subcommand(1);
  c->footer(
      "Example: decoscope data generate arith --level 2 --count 100 > problems.jsonl\n"
      "         decoscope data check problems.jsonl\n"
      "Questions of an open data set, for generate and compare:\n"
      "         decoscope data generate gsm8k --split test --data DIR --count 20 > gsm8k.jsonl\n"
      "         decoscope compare --decoders ar,lookahead --prompt-file gsm8k.jsonl");
  const auto add = [&](const char* name, const char* help, const char* json = kJsonHelp) {
    CLI::App* sub = c->add_subcommand(name, help);
    sub->add_flag("--json", p.data.json, json);
    sub->callback([&p, &run, name] {
      p.data.what = name;
      run = [&p] { return data(p.data); };
    });
    return sub;
  };
  CLI::App* generate = add(
      "generate",
      "Problems of a task or open data set, one JSON object per line; an index always gives the "
      "same problem",
      "print one JSON document, the list of records, instead of lines");
  generate
      ->add_option(
          "task", p.data.task,
          "arith (word problems), kb (questions to a list of facts), sql (text to query), "
          "py (short functions), blocks (plans), write (passages that end in given "
          "sentences), chat (two turns, thirteen categories) or plain (text); or an open data set "
          "by name (gsm8k, humaneval, mbpp, mt_bench, ..), with --data; or rewriting and writing: "
          "requests to a chat model about texts of open data sets")
      ->required();
  generate
      ->add_option("--split", p.data.split,
                   "which problems, without overlap; an open data set has train and test")
      ->check(one_of({"train", "dev", "test"}))
      ->capture_default_str();
  generate->add_option("--level", p.data.level, "difficulty of a generated task, 1 to 3")
      ->transform(whole_number(1, 3))
      ->capture_default_str();
  generate->add_option("--start", p.data.start, "index of the first problem")
      ->transform(whole_number(0, engine::kMaxRecords))
      ->capture_default_str();
  generate->add_option("--count", p.data.count, "number of problems")
      ->transform(whole_number(0, engine::kMaxRecords))
      ->capture_default_str();
  generate->add_option("--data", p.data.data,
                       "folder of the open data sets (default: $DECOSCOPE_DATA); write, chat and "
                       "plain use texts of it as well if given");
  CLI::App* check =
      add("check",
          "Check each record's completion with the task's checker; exit code 3 if one is wrong, 4 "
          "if one could not be checked");
  check
      ->add_option("file", p.data.file,
                   "records, one per line, in the format of data generate; -: standard input")
      ->required();
  add_run_code_option(*check, p.data.run_code);
  CLI::App* stats = add("stats", "Lengths, forms, repeated n-grams, duplicates");
  stats
      ->add_option("file", p.data.file,
                   "records, one per line, in the format of data generate; -: standard input")
      ->required();
  stats->add_option("--tokenizer", p.data.tokenizer,
                    "tokenizer.model for counting tokens, its directory or a bundled model "
                    "(default: the bundled target's)");
  add_limit_option(*stats, p.data.limits);
}

void add_train(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "train", "Train a tokenizer or a model from a recipe; Ctrl+C saves, --resume continues");
  c->footer(
      "A recipe with `tokens` or `epochs` gives bit-identical weights even if stopped and resumed; "
      "one with\n"
      "`minutes` depends on the speed of the machine.\n"
      "Example, of some seconds: decoscope train target --recipe assets/recipes/tiny.json --out "
      "tiny\n"
      "                          decoscope generate --model tiny --prompt \"Question: \"\n"
      "         decoscope train cllm --recipe assets/recipes/cllm.json --data DIR\n"
      "Draft heads of the bundled target, in two steps or, without --texts, in one:\n"
      "         decoscope train outputs --recipe assets/recipes/medusa.json --out texts\n"
      "         decoscope train medusa --recipe assets/recipes/medusa.json --texts "
      "texts/own_outputs.jsonl");
  c->add_option(
       "what", p.train.what,
       "tokenizer; target: the target model; draft: a smaller model with the same tokenizer; "
       "cllm: a target after consistency training, for fewer steps with `jacobi`; medusa, "
       "chimera: draft heads for a target; outputs: texts generated by a target, to train heads "
       "and draft models on")
      ->required()
      ->check(one_of(kTrainings));
  c->add_option("--recipe", p.train.recipe,
                "data, hyperparameters and duration: a file like assets/recipes/tiny.json")
      ->type_name("FILE")
      ->required();
  c->add_option("--out", p.train.out,
                "output directory, new or empty; with --resume that of the training (default: the "
                "recipe's name, in the current directory)");
  c->add_option("--tokenizer", p.train.tokenizer,
                "directory with tokenizer.model (default: the bundled target's)");
  c->add_option(
      "--data", p.train.data,
      "folder of the open texts (default: $DECOSCOPE_DATA); required by recipes that use them");
  c->add_option(
       "--device", p.train.device,
       "cpu (the same as auto) or, except for tokenizer, cuda:N; `decoscope devices` lists "
       "devices")
      ->type_name("NAME")
      ->capture_default_str();
  c->add_option("--threads", p.train.n_threads, "CPU threads (0: all)")
      ->transform(whole_number(0, 1024));
  c->add_option(
      "--from", p.train.from,
      "initial model, with the recipe's hyperparameters (default: random weights; cllm: the "
      "recipe's target)");
  c->add_option("--target", p.train.target,
                "medusa, chimera, outputs, and draft with texts of a target: the target (default: "
                "the recipe's)")
      ->type_name(kModelName);
  c->add_option(
       "--texts", p.train.texts,
       "medusa, chimera, outputs, and draft with texts of a target: file of these texts, written "
       "by `train outputs` (default: own_outputs.jsonl in --out, generated first)")
      ->type_name("FILE");
  add_limit_option(*c, p.train.limits);
  c->add_flag("--resume", p.train.resume, "continue from the last checkpoint in --out");
  add_run_code_option(*c, p.train.run_code);
  c->add_flag("--export", p.train.export_only,
              "write the last checkpoint in --out as a model, without further training");
  c->add_flag("--json", p.train.json, "print one JSON document at the end instead of text");
  c->callback([&] { run = [&p] { return train(p.train); }; });
}

namespace {

/// Adds subcommands to `model`.
class ModelCommands {
 public:
  ModelCommands(CLI::App& app, Parsed& p, Run& run) : app_(app), parsed_(p), run_(run) {}

  /// A subcommand with --json.
  CLI::App* add(const char* name, const char* help) {
    CLI::App* sub = app_.add_subcommand(name, help);
    sub->add_flag("--json", options().json, kJsonHelp);
    sub->callback([&p = parsed_, &run = run_, name] {
      p.model.what = name;
      run = [&p] { return model(p.model); };
    });
    return sub;
  }
  /// The options of a subcommand that reads a model.
  void add_path(CLI::App* sub) {
    sub->add_option("path", options().path, "bundled model, model directory or GGUF file")
        ->type_name(kModelName)
        ->required();
    sub->add_flag("--allow-external-shards", options().allow_external_shards,
                  "follow links to files outside the model's directory");
    add_limit_option(*sub, options().limits);
  }
  /// The values of the options.
  ModelCommandOptions& options() { return parsed_.model; }

 private:
  CLI::App& app_;
  Parsed& parsed_;
  Run& run_;
};

void add_model_checks(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  add_limit_option(
      *commands.add(
          "list", "All models that --model can name: bundled ones and those found on this machine"),
      options.limits);
  commands.add_path(
      commands.add("info", "Hyperparameters, size, tokenizer and notices of a model"));
  CLI::App* validate = commands.add(
      "validate",
      "Check the files of a model for errors and consistency; exit code 3 if there are any");
  commands.add_path(validate);
  validate->add_flag("--scan", options.scan, "also check that all weights are finite");
}

void add_model_tokenize(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  CLI::App* tokenize = commands.add("tokenize", "Token ids and pieces of texts");
  tokenize->footer(
      "Example: decoscope model tokenize demo-target --text \"The cat\"\n"
      "         decoscope model tokenize model.gguf --file prompts.jsonl --special --json");
  tokenize
      ->add_option(
          "path", options.path,
          "bundled model, model directory, .gguf (also a vocabulary alone), tokenizer.json, "
          "tokenizer.model, .tiktoken or tekken.json")
      ->type_name("MODEL|FILE")
      ->required();
  CLI::Option* text = tokenize->add_option("--text", options.text, "the text")->type_name("TEXT");
  tokenize
      ->add_option("--file", options.file,
                   "texts, a line {\"prompt\": TEXT} each; - is standard input")
      ->type_name("FILE.jsonl")
      ->excludes(text);
  tokenize->add_flag(
      "--special", options.special,
      "add the begin and end tokens as the tokenizer's files say, and read names of special "
      "tokens in a text as tokens");
  add_limit_option(*tokenize, options.limits);
}

void add_model_random(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  CLI::App* random = commands.add(
      "random", "Write a model or draft heads with random weights, for tests and timing");
  random->footer(
      "Example: decoscope model random --config assets/shapes/M.json /tmp/m\n"
      "         decoscope bench step --model /tmp/m\n"
      "         decoscope model random --heads medusa /tmp/heads\n"
      "         decoscope generate --decoder medusa --heads /tmp/heads --prompt \"Question: \"");
  CLI::Option* config = random->add_option("--config", options.config,
                                           "for a model: a config.json, like assets/shapes/M.json");
  config->type_name("FILE");
  random
      ->add_option("--heads", options.heads,
                   "for draft heads of --model: the decoder that uses them")
      ->check(one_of({"medusa", "chimera"}))
      ->excludes(config);
  random->add_option("--model", options.base, "target model of the heads")
      ->type_name(kModelName)
      ->capture_default_str();
  random->add_option("--n-heads", options.n_heads, "number of heads")
      ->transform(whole_number(1, 64))
      ->capture_default_str();
  random->add_option("out", options.out, "output directory")->type_name("DIR")->required();
  random
      ->add_option("--tokenizer", options.tokenizer,
                   "tokenizer.model to copy, or a directory or bundled model with one; without a "
                   "tokenizer a model can only be timed")
      ->type_name("FILE|DIR");
  add_limit_option(*random, options.limits);
  random->add_option("--seed", options.seed, "seed of the weights")
      ->transform(seed_number())
      ->capture_default_str();
  random->add_option("--dtype", options.dtype, "f32, bf16 or f16 (default bf16)")
      ->check(one_of({"f32", "bf16", "f16"}));
}

void add_model_tree(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  CLI::App* tree =
      commands.add("tree", "Compute the best token tree for draft heads from their accuracies");
  tree->footer(
      "Example: decoscope model tree demo-medusa --rows auto --scale 4x2 --out tree.json\n"
      "         decoscope generate --decoder medusa --set tree=tree.json --scale 4x2 ...\n"
      "With costs measured before, of the same model at the same scale:\n"
      "         decoscope bench step --json --scale 4x2 --rows 1,2,4,8,16,24,32 > costs.json\n"
      "         decoscope model tree demo-medusa --rows auto --costs costs.json");
  tree->add_option("heads", options.path, "bundled draft heads, or a directory")
      ->type_name(kModelName)
      ->required();
  tree->add_option(
          "--rows", options.rows,
          "rows per step, including the last token's; auto: the number with the most tokens "
          "per second, timed on the heads' target (or --model) at --scale, or by --costs")
      ->type_name("R|auto")
      ->capture_default_str();
  tree->add_option(
          "--accuracies", options.accuracies,
          "accuracies of each head's tokens (default: accuracies.json of the heads, written "
          "by training)")
      ->type_name("FILE");
  tree->add_option("--costs", options.costs,
                   "for --rows auto: output of `bench step --json`, instead of measuring")
      ->type_name("FILE");
  tree->add_option(
          "--out", options.out,
          "output file; heads use a tree.json in their directory by default (default: print "
          "the tree)")
      ->type_name("FILE");
  add_model_options(*tree, options.target);
}

void add_model_chat(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  CLI::App* chat =
      commands.add("chat", "Print a conversation as the chat template of a model renders it");
  chat->footer(
      "Example: echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | decoscope model chat DIR "
      "--messages -");
  commands.add_path(chat);
  chat->get_option("path")->description("bundled model, model directory or GGUF file");
  chat->add_option("--messages", options.messages,
                   "a JSON array of {\"role\": .., \"content\": ..}, or an object with such "
                   "\"messages\"; -: standard input")
      ->type_name("FILE")
      ->required();
  chat->add_option("--system", options.system, "system message, if the messages have none")
      ->type_name("TEXT");
  chat->add_option("--bos", options.bos, "text of the begin token (default: the model's)")
      ->type_name("TEXT");
  chat->add_option("--eos", options.eos, "text of the end token (default: the model's)")
      ->type_name("TEXT");
  chat->add_option("--now", options.now,
                   "time for templates that write the date, in seconds since 1970 (default: now)")
      ->type_name("SECONDS");
  chat->add_flag("--no-generation-prompt", options.no_generation_prompt,
                 "without the beginning of the assistant's answer");
}

void add_model_copies(ModelCommands& commands) {
  ModelCommandOptions& options = commands.options();
  CLI::App* scale = commands.add("scale", "Write an enlarged model that generates the same tokens");
  commands.add_path(scale);
  scale->add_option("out", options.out, "output directory")->type_name("DIR")->required();
  scale->add_option("--scale", options.scale, "W times as wide (1, 4, 16, ...) and D times as deep")
      ->type_name("WxD")
      ->capture_default_str();
  CLI::App* convert =
      commands.add("convert", "Convert a model between a directory and a GGUF file");
  convert->footer(
      "Example: decoscope model convert SmolLM2.Q4_1.gguf /tmp/smollm2\n"
      "         decoscope model convert /tmp/smollm2 /tmp/smollm2-q8.gguf --type Q8_0");
  commands.add_path(convert);
  convert
      ->add_option("out", options.out,
                   "output: a GGUF file if the name ends in .gguf, else a directory")
      ->type_name("FILE.gguf|DIR")
      ->required();
  convert
      ->add_option("--type", options.type,
                   "type of matrices: F32, F16, BF16, and in a GGUF file Q8_0, Q4_0, Q4_1 "
                   "(default: as stored; quantised weights become F32 in a directory)")
      ->type_name("TYPE");
}

}  // namespace

void add_model(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("model", "Show, check, create and enlarge models");
  c->require_subcommand(1);
  ModelCommands commands(*c, p, run);
  add_model_checks(commands);
  add_model_tokenize(commands);
  add_model_random(commands);
  commands.add("list-architectures",
               "Which architectures are read, and how each differs from LLaMA");
  add_model_tree(commands);
  add_model_chat(commands);
  add_model_copies(commands);
}

void add_score(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.get_subcommand("model")->add_subcommand(
      "score", "Score a model on generated problems that it was not trained on");
  add_model_options(*c, p.score.model);
  c->add_option("--count", p.score.count, "problems per task and level")
      ->transform(whole_number(1, 100000))
      ->capture_default_str();
  CLI::Option* task =
      c->add_option("--task", p.score.tasks, "tasks, separated by commas (default: all)")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("LIST")
          ->check(one_of(engine::task_names()));
  CLI::Option* level = c->add_option("--level", p.score.levels,
                                     "difficulties, 1 to 3, separated by commas (default: 1,2)")
                           ->delimiter(',')
                           ->allow_extra_args(false)
                           ->type_name("LIST")
                           ->transform(whole_number(1, 3));
  CLI::Option* split = c->add_option("--split", p.score.split, "which problems, without overlap")
                           ->check(one_of({"train", "dev", "test"}))
                           ->capture_default_str();
  c->add_option("--resume", p.score.resume,
                "file that keeps the results of finished tasks; those of the same weights are not "
                "measured again")
      ->type_name("FILE");
  c->add_flag("--write", p.score.write, "write the results of all tasks to the model's card")
      ->excludes(task)
      ->excludes(level)
      ->excludes(split);
  add_run_code_option(*c, p.score.run_code);
  c->footer(
      "Example: decoscope model score --task arith,py --level 3 --count 100\n"
      "All tasks, written to the model's card; the same command continues after a stop:\n"
      "         decoscope model score --model my-target --resume figures.jsonl --write");
  c->add_flag("--json", p.score.json, kJsonHelp);
  c->callback([&] { run = [&p] { return score(p.score); }; });
}

void add_trace(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("trace", "Show, check and convert recordings and traces");
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
  CLI::App* info = add("info", "Contents: runs, steps, tokens, losses and weights");
  add_limit_option(*info, p.trace.limits);
  info->add_option("--model", p.trace.model,
                   "model to compare the weights with (default: the bundled model of the recorded "
                   "name)");
  add("validate", "Check a file against its format; exit code 3 if it is invalid");
  CLI::App* convert = add("convert", "Write a recording (.pdrun) in another format");
  convert->get_option("path")->description("the recording");
  convert
      ->add_option("out", p.trace.out,
                   "output file; its extension selects the format: .json or .json.gz (Chrome "
                   "trace, for Perfetto too), .pftrace (Perfetto's own format), .html (a page that "
                   "plays it in a browser), .md (report), .csv (four "
                   "tables), .txt (description), .pdrun (the intact part of a damaged recording), "
                   ".gif or .png (an animation of the window; needs a display) "
                   "(default: the recording's name with .json)")
      ->type_name("FILE");
  convert->add_flag(
      "--with-prompt", p.trace.with_prompt,
      "to a trace, page or report: include the text of the prompts; everyone who gets "
      "the file can read them");
  convert
      ->add_option("--page-mb", p.trace.page_mb,
                   "limit of a page in megabytes; a larger page omits the proposals of the steps, "
                   "then whole races and runs; 0: any number (default: 5)")
      ->transform(whole_number(0, 100'000));
  convert->add_flag("--for-spreadsheets", p.trace.for_spreadsheets,
                    "to tables: put ' before texts that a spreadsheet would take for formulas");
  convert->add_flag("--used-tokens-only", p.trace.used_tokens_only,
                    "to a recording: keep only the texts of tokens that occur, which makes a small "
                    "file of a short run");
  // These options export a part of a recording, because viewers cannot open a very long trace.
  convert->add_option("--run", p.trace.run, "to a trace or an animation: only this run")
      ->transform(whole_number(1));
  convert
      ->add_option("--first-step", p.trace.first_step,
                   "to a trace or an animation: steps from this one on")
      ->transform(whole_number(0));
  convert
      ->add_option("--last-step", p.trace.last_step,
                   "to a trace or an animation: steps up to this one")
      ->transform(whole_number(0));
  convert->add_flag("--by-time", p.trace.by_time,
                    "of an animation: frames at equal distances of compute time, not one for each "
                    "step");
  convert
      ->add_option("--ms-per-step", p.trace.ms_per_step,
                   "of an animation: milliseconds that a step is shown")
      ->transform(whole_number(20, 5000))
      ->capture_default_str();
  convert->add_option("--seconds", p.trace.seconds, "of an animation by time: its length")
      ->check(real_number(1, 120))
      ->capture_default_str();
  convert
      ->add_option("--fps", p.trace.fps,
                   "of an animation by time: frames a second; it has at most 600 frames")
      ->transform(whole_number(1, 50))
      ->capture_default_str();
  convert
      ->add_option("--clock", p.trace.clock,
                   "wall: time since the run began, with waits (default for a trace); compute: the "
                   "run's own compute, so all lanes of a race start at 0 (default for the timeline "
                   "of an animation)")
      ->check(one_of({"wall", "compute"}));
  convert->add_option("--panel", p.trace.panel, "of an animation: this panel only")
      ->type_name("NAME");
  add_size_option(*convert, p.trace.width, p.trace.height, "1280x720");
}

void add_lesson(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("lesson", "Check a lesson for the window");
  c->require_subcommand(1);
  CLI::App* check = c->add_subcommand(
      "check",
      "Compute the answers of a lesson from its recording; exit code 3 if the lesson is invalid");
  check->footer("Example: decoscope lesson check assets/lessons/2_draft_and_verify.json");
  check->add_option("path", p.lesson.path, "the lesson, with its recording in the same folder")
      ->type_name("FILE.json")
      ->required();
  check->add_flag("--json", p.lesson.json, kJsonHelp);
  check->callback([&] {
    p.lesson.what = "check";
    run = [&p] { return lesson(p.lesson); };
  });
  CLI::App* queries = c->add_subcommand("queries", "List the queries that a lesson can name");
  queries->add_flag("--json", p.lesson.json, kJsonHelp);
  queries->callback([&] {
    p.lesson.what = "queries";
    run = [&p] { return lesson(p.lesson); };
  });
}

}  // namespace app
