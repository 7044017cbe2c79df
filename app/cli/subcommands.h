// The subcommands of the command line: each function adds one with its options to the parser.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"
#include "app/commands/reason/schedule.h"

namespace app {

/// The parsed options of all subcommands.
struct Parsed {
  GenerationOptions generate, compare;
  BenchOptions bench;
  DataOptions data;
  TrainOptions train;
  ModelCommandOptions model;
  ScoreOptions score;
  CotOptions cot;
  TotOptions tot;
  ScheduleOptions schedule;
  TraceOptions trace;
  LessonOptions lesson;
  WindowCommandOptions window;
  bool devices_json = false;
  std::string decoder = "ar", decoders = "ar,jacobi,lookahead,prompt-lookup", rows,
              steps_after_prompt;
};

/// Runs the selected subcommand after parsing. @return  the exit code
using Run = std::function<int()>;

// Subcommands that decode (decoding.cpp).
void add_generate(CLI::App& app, Parsed& p, Run& run);
void add_compare(CLI::App& app, Parsed& p, Run& run);
void add_bench(CLI::App& app, Parsed& p, Run& run);
// Chain of thought and tree of thoughts (reasoning.cpp).
void add_reason(CLI::App& app, Parsed& p, Run& run);
// Subcommands that read and write files (files.cpp).
void add_data(CLI::App& app, Parsed& p, Run& run);
void add_train(CLI::App& app, Parsed& p, Run& run);
void add_model(CLI::App& app, Parsed& p, Run& run);
/// Adds `model score`; call after add_model().
void add_score(CLI::App& app, Parsed& p, Run& run);
void add_trace(CLI::App& app, Parsed& p, Run& run);
void add_lesson(CLI::App& app, Parsed& p, Run& run);

}  // namespace app
