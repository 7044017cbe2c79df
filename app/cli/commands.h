// The subcommands, each a function of its options. They return the exit code or throw Error, which
// main() turns into a message and an exit code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/event/chat_mode.h"

namespace kernels {
class Device;
}
namespace engine {
struct RecordedRun;  // engine/run/recorded/repeat.h
}

namespace app {

/// Options that select models and a device: --model, --draft, --heads, --scale, --device, --dtype,
/// --threads.
struct ModelOptions {
  std::string model = "demo-target";
  bool model_given = false;        // true if --model was given
  std::string draft;               // empty: the one of the model's card, or made for it
  std::vector<std::string> heads;  // empty: likewise
  std::string scale = "1x1";
  bool scale_given = false;  // true if --scale was given, even as 1x1
  std::string draft_scale;   // empty: as the model's
  std::string device = "auto";
  std::string dtype;
  std::string cache_type;
  int context = 0;              // maximum sequence length; 0: the length in the model's files
  bool model_defaults = false;  // use the defaults in generation_config.json
  int n_threads = 0;
  bool allow_external_shards = false;
  engine::FileLimits limits;
};

/// A lane of `compare`, such as "jacobi@demo-cllm": a decoder and, optionally, a model of its own.
struct LaneOption {
  std::string name;            // the lane as written on the command line
  std::string decoder, model;  // empty model: the one of --model
};

/// Model options without a default model.
inline ModelOptions no_model() {
  ModelOptions options;
  options.model.clear();
  return options;
}

/// Options of generate and compare.
struct GenerationOptions {
  ModelOptions model;
  std::vector<std::string> decoders = {"ar"};  // compare: the lanes' decoders without duplicates
  std::vector<LaneOption> lanes;               // compare
  std::string prompt;
  bool has_prompt = false;
  std::string prompt_file;
  int max_tokens = 256;
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
  bool ignore_eos = false;
  bool no_special = false;                         // --no-special
  engine::ChatMode chat = engine::ChatMode::Auto;  // --chat, --raw
  std::string system;                              // --system
  bool verbose = false;                            // -v: show rendered prompts
  std::vector<std::string> stop_texts;             // --stop
  std::vector<std::int32_t> stop_ids;              // --stop-id
  std::set<std::string> given;   // names of the numeric options above that were given
  std::vector<std::string> set;  // --set: options of decoders as name=value
  std::string pool;              // --pool: file of text to copy from; empty: none
  std::string trace, record;
  std::string repeat_file;       // --repeat of generate: a recording; empty: none
  std::uint32_t repeat_run = 0;  // number of the run in it; 0: the first
  std::shared_ptr<const engine::RecordedRun> repeated;  // that run, once the file is read
  bool check = false;                                   // compare the output with AR's
  int repeat = 1;
  bool rows_alone = false;  // compare: repeat and time the forwards of each run without its decoder
  bool json = false;
};

/// Options of `bench`.
struct BenchOptions {
  ModelOptions model;
  std::string what;              // probe, step, decode, kernels
  std::string decoder = "ar";    // decode: the decoder; step: the decoder that drafts between steps
  std::vector<std::string> set;  // name=value, options of that decoder
  std::vector<int> rows = {1, 2, 4, 8, 16, 24, 32};
  int context = 128;
  int repeat = 15;
  int max_tokens = 128;
  int n_texts = 1;                      // step: sequences per forward
  bool breakdown = false;               // step: time by kind of operation
  std::vector<int> steps_after_prompt;  // step: how many steps after a prompt to time; may be empty
  int n_draft_forwards = 4;             // step: draft forwards before each step after a prompt
  int n_new_tokens = 0;                 // prompt tokens not shared with the prompts before; 0: all
  bool json = false;
};

/// Options of `data`.
struct DataOptions {
  std::string what;  // generate, check, stats
  std::string task, split = "train", file;
  std::string tokenizer;  // directory; empty: the bundled target's
  std::string data;       // folder of the open texts; empty: $DECOSCOPE_DATA
  engine::FileLimits limits;
  int level = 1;
  std::int64_t start = 0, count = 10;
  bool run_code = false;  // check: run code even without isolation
  bool json = false;
};

/// Options of `train`.
struct TrainOptions {
  std::string what;  // one of kTrainings
  std::string recipe, out, tokenizer, data;
  std::string target;  // model that writes the training texts; empty: the model of the recipe
  std::string texts;   // file of texts that this model has written
  std::string device = "auto";
  int n_threads = 0;
  engine::FileLimits limits;
  std::string from;
  bool resume = false;
  bool export_only = false;
  bool run_code = false;  // run the code of answers even without isolation
  bool json = false;
};

/// Options of `model` except `model score`.
struct ModelCommandOptions {
  std::string
      what;  // list, list-architectures, info, validate, tokenize, chat, random, scale, tree, convert
  std::string path, out, config, scale = "4x2", dtype;
  std::string type;       // convert: of weights; empty: as stored
  std::string tokenizer;  // random: file, directory or bundled model; empty: none
  std::uint64_t seed = 1;
  // random --heads: kind of the heads, target model and number of heads
  std::string heads, base = "demo-target";
  int n_heads = 4;
  // tree: a number of rows or "auto"; a file of accuracies; a file of measured costs
  std::string rows = "16", accuracies, costs;
  ModelOptions target = no_model();  // tree: model whose steps are timed; empty: the heads' target
  std::optional<std::string> text;   // tokenize: the text; none: `file`
  std::string file;
  bool special = false;  // tokenize: with bos and eos, and names of special tokens as tokens
  bool scan = false;
  bool allow_external_shards = false;
  engine::FileLimits limits;
  bool json = false;
  // chat: a file of messages; a system message; texts and time that replace the model's
  std::string messages, system;
  std::optional<std::string> bos, eos;
  std::optional<std::int64_t> now;
  bool no_generation_prompt = false;
};

/// Options of `model score`.
struct ScoreOptions {
  ModelOptions model;
  std::vector<std::string> tasks;  // empty: all
  std::vector<int> levels;         // empty: 1 and 2
  int count = 500;                 // problems per task and level
  std::string split = "test";      // train, dev or test
  std::string resume;              // file that keeps each task's results; empty: none
  bool write = false;              // write the scores to the model's card
  bool run_code = false;           // run the code of answers even without isolation
  bool json = false;
};

/// Options of both `reason cot` and `reason tot`.
struct ReasonOptions {
  ModelOptions model;
  std::string task;
  std::string data;     // file of records, or folder of the open sets
  std::string prompts;  // file of prompts (tot) or worked examples (cot); empty: the task's
  std::string decoder, split = "test";
  std::vector<std::string> set;                   // name=value
  std::string pool;                               // --pool
  bool no_special = false;                        // --no-special
  engine::ChatMode chat = engine::ChatMode::Raw;  // cot: --chat
  std::string system;                             // cot: --system
  int level = 1, count = 100, batch = 1;
  std::int64_t start = 0;
  std::string trace, record;
  bool json = false;
};

/// Options of `reason cot`.
struct CotOptions : ReasonOptions {
  CotOptions() { task = "kb", decoder = "fastcot"; }
  int n_shots = -1, max_tokens = 200;
  float repetition_penalty = 1;
  bool penalty_given = false;  // --repetition-penalty was given
  bool drop_approximate = false, find_bound = false, reveal = false;
  std::vector<int> limits;        // of --reveal: steps of a rationale; empty: default ones
  double tolerance = 1;           // percentage points of accuracy
  std::uint64_t sample_seed = 1;  // selects the questions of --find-bound
};

/// Options of `reason tot`.
struct TotOptions : ReasonOptions {
  TotOptions() { task = "arith", decoder = "ar", level = 0, count = 10; }  // level 0: by the task
  int n_actions = 6;  // actions of the shortest plan of a block problem; 0: any number
  int depth = 0;      // 0: the default of the task
  int n_thoughts = 3, beam = 1;
  float temperature = 1;
  std::optional<float> value_temperature;  // unset: as `temperature`
  bool temperature_given = false;          // --temperature was given
  std::string value_source;                // --value; empty: as TotSettings
  bool evaluate_states = false;            // measure the state evaluator instead of searching
  std::uint64_t seed = 1;
  std::string sampling = "coupled";
};

/// Options of `trace`.
struct TraceOptions {
  std::string what;  // info, validate, convert, describe
  std::string path, out;
  std::string model;  // info: model to compare with; empty: bundled models of the recorded names
  engine::FileLimits limits;  // info: for opening those models
  bool with_prompt = false;
  bool used_tokens_only = false;  // convert to a recording: without the texts of other tokens
  bool for_spreadsheets = false;  // convert to tables: as engine::CsvOptions
  int page_mb = -1;               // limit of a page in megabytes; 0: none, -1: the default
  bool json = false;
  int run = 0;  // convert to a trace: number of the run to convert; 0: all runs
  int first_step = 0, last_step = 0x7FFF'FFFF;
  std::string clock;  // convert: wall or compute; empty: that of the format
  // For animations:
  bool by_time = false;   // frames at equal distances of own compute; false: one for each step
  int ms_per_step = 250;  // by step: how long a frame is shown
  double seconds = 10;    // by time: how long the animation takes
  int fps = 10;           // by time: frames a second
  std::string panel;      // panel that it shows; empty: the whole window
  int width = 1280, height = 720;  // of the window, pixels
};

/// Options of `lesson`.
struct LessonOptions {
  std::string what;  // check, queries
  std::string path;  // check: the lesson
  bool json = false;
};

/// Options of the window.
struct WindowCommandOptions {
  TraceOptions animation;  // write an animation to `out`, then exit; empty `out`: none
  ModelOptions model;
  std::string open;        // recording, or a training's folder or log
  std::string screenshot;  // PNG to write a picture of the window to, then exit
  std::string screen;      // welcome, live, compare, lesson, lab, training
  std::string panel;       // panel to take the picture of; empty: the whole window
  int step = -1;           // initially selected step; -1: none
  std::string theme;       // dark, light, monochrome, high-contrast; empty: the window's setting
  int width = 1600, height = 1000;  // of the window, pixels
  int ui_scale = 0;                 // percent; 0: the window's setting
  bool start = false;               // start the comparison as soon as the window is open
  std::string describe;   // recording to describe on standard output, without a window; empty: none
  std::string export_to;  // file to convert the recording of `open` to, without a window
  bool export_prompt = false;  // --with-prompt: with the prompts
};

// Each function runs the subcommand of its name.
// @return  the exit code

int generate(const GenerationOptions& options);
int compare(const GenerationOptions& options);
int bench(const BenchOptions& options);
int data(const DataOptions& options);
int train(const TrainOptions& options);
/// `train cllm`; train() calls it.
/// @param device  the opened options.device; null: the CPU
int train_cllm(const TrainOptions& options, std::unique_ptr<kernels::Device> device);
/// `train medusa` and `train chimera`.
int train_heads(const TrainOptions& options, std::unique_ptr<kernels::Device> device);
/// `train outputs`.
int train_outputs(const TrainOptions& options);
int model(const ModelCommandOptions& options);
int score(const ScoreOptions& options);
int reason_cot(const CotOptions& options);
int reason_tot(const TotOptions& options);
int trace(const TraceOptions& options);
int lesson(const LessonOptions& options);
int devices(bool json);
int window(const WindowCommandOptions& options);

/// Parses the command line and runs the subcommand.
int run_command_line(int argc, char** argv);

}  // namespace app
