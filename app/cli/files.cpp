// data, train, model and trace: what may be said to them.
#include "app/cli/subcommands.h"
#include "app/cli/options.h"
#include "app/cli/numbers.h"
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
      "Questions of an open set, for generate and compare:\n"
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
  CLI::App* generate =
      add("generate",
          "Problems of one task or open set, one JSON object a line; the same index gives the same "
          "problem for ever",
          "print one JSON document, the list of the records, instead of lines");
  generate
      ->add_option(
          "task", p.data.task,
          "arith (word problems), kb (questions to a list of facts), sql (text to query), "
          "py (short functions), blocks (plans), write (passages that end in given "
          "sentences), chat (two turns, thirteen categories) or plain (text); or an open set "
          "by name (gsm8k, humaneval, mbpp, mt_bench, ..), with --data")
      ->required();
  generate
      ->add_option("--split", p.data.split,
                   "which problems: the three never share one; an open set has train and test")
      ->check(one_of({"train", "dev", "test"}))
      ->capture_default_str();
  generate->add_option("--level", p.data.level, "1 to 3, easy to hard; of a generated task")
      ->transform(whole_number(1, 3))
      ->capture_default_str();
  generate->add_option("--start", p.data.start, "index of the first")
      ->transform(whole_number(0, engine::kMaxRecords))
      ->capture_default_str();
  generate->add_option("--count", p.data.count, "how many")
      ->transform(whole_number(0, engine::kMaxRecords))
      ->capture_default_str();
  generate->add_option("--data", p.data.data,
                       "folder of the open sets (default: $DECOSCOPE_DATA), from which write, chat "
                       "and plain draw too; without it their own texts alone");
  CLI::App* check =
      add("check",
          "Run the task's checker over each record's completion; exit code 3 if one is wrong, 4 if "
          "one could not be checked");
  check
      ->add_option("file", p.data.file,
                   "a record a line, as data generate prints them; -: standard input")
      ->required();
  add_run_code_option(*check, p.data.run_code);
  CLI::App* stats = add("stats", "Lengths, forms, repeated n-grams, duplicates");
  stats
      ->add_option("file", p.data.file,
                   "a record a line, as data generate prints them; -: standard input")
      ->required();
  stats->add_option("--tokenizer", p.data.tokenizer,
                    "the tokenizer.model that counts, its directory or a bundled model "
                    "(default: the bundled target's)");
  add_limit_option(*stats, p.data.limits);
}

void add_train(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "train", "Train a tokenizer or a model from a recipe; Ctrl+C saves, --resume goes on");
  c->footer(
      "A recipe that says `tokens` or `epochs` trains the same bits however often it was stopped "
      "and resumed; "
      "one that says\n"
      "`minutes` follows the clock, so that two runs of it differ.\n"
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
       "tokenizer: the pieces that texts are cut into; target: the model that decides; "
       "draft: a smaller one with the same tokenizer; cllm: a target taught by consistency "
       "training, which `jacobi` decodes in fewer steps; medusa, chimera: heads that guess what a "
       "target says next; outputs: the target's own texts, which heads and drafts learn from")
      ->required()
      ->check(one_of(kTrainings));
  c->add_option("--recipe", p.train.recipe,
                "what is read, the shape and for how long: a file like assets/recipes/tiny.json")
      ->type_name("FILE")
      ->required();
  c->add_option("--out", p.train.out,
                "the directory to write, new or empty; with --resume that of the run (default: the "
                "recipe's name, here)");
  c->add_option("--tokenizer", p.train.tokenizer,
                "directory with tokenizer.model (default: the bundled target's)");
  c->add_option(
      "--data", p.train.data,
      "folder of the open texts (default: $DECOSCOPE_DATA); needed by recipes that name them");
  c->add_option("--device", p.train.device,
                "cpu (auto is the same); all but a tokenizer also on cuda:N; `decoscope devices` "
                "lists them")
      ->type_name("NAME")
      ->capture_default_str();
  c->add_option("--threads", p.train.n_threads, "CPU threads (0: all)")
      ->transform(whole_number(0, 1024));
  c->add_option("--from", p.train.from,
                "a model of the recipe's shape to start from (default: random weights; of cllm the "
                "target its recipe names)");
  c->add_option("--target", p.train.target,
                "of medusa, chimera, outputs and drafts that learn from a target's texts: that "
                "target (default: the one the recipe names)")
      ->type_name(kModelName);
  c->add_option("--texts", p.train.texts,
                "of the same: its texts, a file that `train outputs` wrote (default: "
                "own_outputs.jsonl in --out, written first)")
      ->type_name("FILE");
  add_limit_option(*c, p.train.limits);
  c->add_flag("--resume", p.train.resume, "go on from the last checkpoint in --out");
  add_run_code_option(*c, p.train.run_code);
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
      add("random", "Write a model or heads with random weights, to measure and to try");
  random->footer(
      "Example: decoscope model random --config assets/shapes/M.json /tmp/m\n"
      "         decoscope bench step --model /tmp/m\n"
      "         decoscope model random --heads medusa /tmp/heads\n"
      "         decoscope generate --decoder medusa --heads /tmp/heads --prompt \"Question: \"");
  CLI::Option* config = random->add_option("--config", p.model.config,
                                           "of a model: a config.json, like assets/shapes/M.json");
  config->type_name("FILE");
  random
      ->add_option("--heads", p.model.heads,
                   "draft heads for --model, of this decoder: what they guess is seldom right, and "
                   "the text stays that of the model")
      ->check(one_of({"medusa", "chimera"}))
      ->excludes(config);
  random->add_option("--model", p.model.base, "whose heads they are to be")
      ->type_name(kModelName)
      ->capture_default_str();
  random->add_option("--n-heads", p.model.n_heads, "of heads: how many")
      ->transform(whole_number(1, 64))
      ->capture_default_str();
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
  CLI::App* tree =
      add("tree", "Grow the tree that draft heads are asked for, from how often they are right");
  tree->footer(
      "Example: decoscope model tree demo-medusa --rows auto --scale 4x2 --out tree.json\n"
      "         decoscope generate --decoder medusa --set tree=tree.json --scale 4x2 ...\n"
      "Rows that were measured before, of the same model at the same scale:\n"
      "         decoscope bench step --json --scale 4x2 --rows 1,2,4,8,16,24,32 > costs.json\n"
      "         decoscope model tree demo-medusa --rows auto --costs costs.json");
  tree->add_option("heads", p.model.path, "bundled heads, or a directory of some")
      ->type_name(kModelName)
      ->required();
  tree->add_option("--rows", p.model.rows,
                   "rows a step may evaluate, the last token's included; auto: those that give the "
                   "most tokens for their time, which is measured here on the model the heads are "
                   "for (or --model) at --scale, or read from --costs")
      ->type_name("R|auto")
      ->capture_default_str();
  tree->add_option("--accuracies", p.model.accuracies,
                   "how often each head's tokens are right (default: accuracies.json beside the "
                   "heads, which training writes)")
      ->type_name("FILE");
  tree->add_option("--costs", p.model.costs,
                   "of --rows auto: what `bench step --json` printed, in place of measuring")
      ->type_name("FILE");
  tree->add_option("--out", p.model.out,
                   "the file to write; tree.json beside the heads is used by them from then on "
                   "(default: print it)")
      ->type_name("FILE");
  add_model_options(*tree, p.model.target);
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
  CLI::Option* task =
      c->add_option("--task", p.score.tasks, "of these alone, with commas between (default: all)")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("LIST")
          ->check(one_of(engine::task_names()));
  CLI::Option* level = c->add_option("--level", p.score.levels,
                                     "1 to 3, easy to hard, with commas between (default: 1,2)")
                           ->delimiter(',')
                           ->allow_extra_args(false)
                           ->type_name("LIST")
                           ->transform(whole_number(1, 3));
  CLI::Option* split =
      c->add_option("--split", p.score.split, "which problems: the three never share one")
          ->check(one_of({"train", "dev", "test"}))
          ->capture_default_str();
  c->add_option("--resume", p.score.resume,
                "keep each task's figures here as it is done, and measure none again that is here "
                "of the same weights")
      ->type_name("FILE");
  c->add_flag("--write", p.score.write, "put the table, of all tasks, into the model's card")
      ->excludes(task)
      ->excludes(level)
      ->excludes(split);
  add_run_code_option(*c, p.score.run_code);
  c->footer(
      "Example: decoscope model score --task arith,py --level 3 --count 100\n"
      "Of all tasks into the card; stopped, the same command goes on:\n"
      "         decoscope model score --model my-target --resume figures.jsonl --write");
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

}  // namespace app
