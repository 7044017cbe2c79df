// The subcommands, each a function of plain options. They return the exit code and throw Error;
// main() turns what is thrown into a message and a code.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/limits.h"

namespace kernels {
class Device;
}

namespace app {

/// --model, --draft, --heads, --scale, --device, --dtype, --threads.
struct ModelOptions {
  std::string model = "demo-target";
  std::string draft;               // empty: what the model's card names
  std::vector<std::string> heads;  // likewise
  std::string scale = "1x1";
  bool scale_given = false;  // by the person, perhaps as 1x1
  std::string device = "auto";
  std::string dtype;
  int context = 0;              // positions a sequence may fill; 0: what the model's files say
  bool model_defaults = false;  // use the defaults in generation_config.json
  int n_threads = 0;
  bool allow_external_shards = false;
  engine::FileLimits limits;
};

/// A lane of compare, "jacobi@demo-cllm": a decoder, by a model of its own where one is named.
struct LaneOption {
  std::string name;            // as it was written
  std::string decoder, model;  // model empty: that of --model
};

/// The options of a model that another thing names where the person does not.
inline ModelOptions no_model() {
  ModelOptions options;
  options.model.clear();
  return options;
}

/// What generate and compare share.
struct GenerationOptions {
  ModelOptions model;
  std::vector<std::string> decoders = {"ar"};  // of compare those of its lanes, each once
  std::vector<LaneOption> lanes;               // of compare
  std::string prompt;
  bool has_prompt = false;
  std::string prompt_file;
  int max_tokens = 256;
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  bool ignore_eos = false;
  bool no_special = false;              // names of control symbols in a prompt are text
  std::vector<std::string> stop_texts;  // --stop
  std::vector<std::int32_t> stop_ids;   // --stop-id
  std::set<std::string> given;          // of the numbers above: the options that a person named
  std::vector<std::string> set;         // name=value
  std::string trace, record;
  bool check = false;  // compare with AR
  int repeat = 1;
  bool rows_alone = false;  // of compare: what each text's rows cost without its decoder
  bool json = false;
};

struct BenchOptions {
  ModelOptions model;
  std::string what;              // probe, step, decode, kernels
  std::string decoder = "ar";    // of decode; of step, whose drafts are made between steps
  std::vector<std::string> set;  // name=value, of that decoder
  std::vector<int> rows = {1, 2, 4, 8, 16, 24, 32};
  int context = 128;
  int repeat = 15;
  int max_tokens = 128;
  int n_texts = 1;           // in a forward of step
  std::vector<int> behind;   // of step: so many steps behind each prompt; none: they go on and on
  int n_draft_forwards = 4;  // before each of these, where the decoder drafts
  int n_anew = 0;            // tokens of each such prompt that are read anew; 0: all
  bool json = false;
};

struct DataOptions {
  std::string what;  // generate, check, stats
  std::string task, split = "train", file;
  std::string tokenizer;  // directory; empty: the bundled target's
  std::string data;       // folder of the open texts; empty: the environment's
  engine::FileLimits limits;
  int level = 1;
  std::int64_t start = 0, count = 10;
  bool run_code = false;  // check runs code even if it cannot be isolated
  bool json = false;
};

struct TrainOptions {
  std::string what;  // one of kTrainings
  std::string recipe, out, tokenizer, data;
  std::string target;  // who writes the texts that heads and drafts learn from; empty: the recipe's
  std::string texts;   // a file of these
  std::string device = "auto";
  int n_threads = 0;
  engine::FileLimits limits;
  std::string from;
  bool resume = false;
  bool export_only = false;
  bool run_code = false;  // runs the code of answers even if it cannot be isolated
  bool json = false;
};

struct ModelCommandOptions {
  std::string what;  // info, validate, random, scale, tree
  std::string path, out, config, scale = "4x2", dtype;
  std::string tokenizer;  // random: a file, a directory or a bundled model; empty: none
  std::uint64_t seed = 1;
  // random --heads: whose, of which model, how many
  std::string heads, base = "demo-target";
  int n_heads = 4;
  // tree: a count or auto, and files; whose steps are measured (model empty: the heads' own)
  std::string rows = "16", accuracies, costs;
  ModelOptions target = no_model();
  bool scan = false;
  bool allow_external_shards = false;
  engine::FileLimits limits;
  bool json = false;
};

struct ScoreOptions {
  ModelOptions model;
  std::vector<std::string> tasks;  // empty: all
  std::vector<int> levels;         // empty: 1 and 2, those of the model's card
  int count = 500;                 // problems a task and level
  std::string split = "test";      // train, dev or test
  std::string resume;              // file to keep each task's figures in; empty: none
  bool write = false;              // into the model's card
  bool run_code = false;           // runs the code of answers even if it cannot be isolated
  bool json = false;
};

/// What `reason cot` and `reason tot` share.
struct ReasonOptions {
  ModelOptions model;
  std::string task;
  std::string data;     // a file of records, or the folder of the open sets
  std::string prompts;  // a file: a tree's prompts, a chain's worked examples; empty: the task's
  std::string decoder, split = "test";
  std::vector<std::string> set;  // name=value
  bool no_special = false;       // names of control symbols in a prompt are text
  int level = 1, count = 100, batch = 1;
  std::int64_t start = 0;
  std::string trace, record;
  bool json = false;
};

struct CotOptions : ReasonOptions {
  CotOptions() { task = "kb", decoder = "fastcot"; }
  int n_shots = -1, max_tokens = 200;
  float repetition_penalty = 1;
  bool penalty_given = false;  // by the person
  bool drop_approximate = false, find_bound = false;
  double tolerance = 1;           // points of accuracy
  std::uint64_t sample_seed = 1;  // of the questions --find-bound draws
};

struct TotOptions : ReasonOptions {
  TotOptions() { task = "arith", decoder = "ar", level = 0, count = 10; }  // level 0: the task's
  int n_actions = 6;  // of block problems; 0: any
  int depth = 0;      // 0: the task's
  int n_thoughts = 3, beam = 1;
  float temperature = 1, value_temperature = 0;
  bool temperature_given = false;  // by the person
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
};

struct TraceOptions {
  std::string what;  // info, validate, convert
  std::string path, out;
  std::string model;  // info: compare with this one; empty: with the bundled ones of the same names
  engine::FileLimits limits;  // info: of the models it compares with
  bool with_prompt = false;
  bool json = false;
  int run = 0;  // convert to a trace: this one alone; 0: all
  int first_step = 0, last_step = 0x7FFF'FFFF;
};

struct WindowCommandOptions {
  ModelOptions model;
  std::string open;        // a recording, or a training's folder or log
  std::string screenshot;  // write a picture of the window to this PNG and end
  std::string screen;      // live, compare, training, welcome
  std::string panel;       // the picture is of it alone; empty: of the window
  int step = -1;           // selected at first; -1: none
  std::string theme;       // dark, light, monochrome; empty: as set in the window
  bool start = false;      // start the race of the form as soon as the window is there
};

int generate(const GenerationOptions& options);
int compare(const GenerationOptions& options);
int bench(const BenchOptions& options);
int data(const DataOptions& options);
int train(const TrainOptions& options);
/// Of train(), as are the two below it.
/// @param device  options.device, opened; null: the CPU
int train_cllm(const TrainOptions& options, std::unique_ptr<kernels::Device> device);
int train_heads(const TrainOptions& options, std::unique_ptr<kernels::Device> device);
int train_outputs(const TrainOptions& options);
int model(const ModelCommandOptions& options);
int score(const ScoreOptions& options);
int reason_cot(const CotOptions& options);
int reason_tot(const TotOptions& options);
int trace(const TraceOptions& options);
int devices(bool json);
int window(const WindowCommandOptions& options);

/// Reads the command line and runs what it names.
int run_command_line(int argc, char** argv);

}  // namespace app
