// Options that several subcommands have, and their checks.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace app {

inline constexpr const char* kJsonHelp = "print one JSON document and nothing else";
inline constexpr const char* kNoSpecialHelp =
    "names of control symbols in a prompt (<s>, </s>, special added tokens) are text, not their "
    "ids";
inline constexpr const char* kModelName = "NAME|DIR";

/// Checks and converts to one of a few words, with a suggestion for a misspelt one.
CLI::Validator one_of(const std::vector<std::string>& words);
std::vector<std::string> decoder_names();
/// "a,,b" as {"a", "b"}.
std::vector<std::string> split_commas(const std::string& text);

void add_limit_option(CLI::App& command, engine::FileLimits& limits);
/// Adds --run-code, for commands that check answers.
void add_run_code_option(CLI::App& command, bool& run_code);
/// @param with_context  adds --context; `bench` has an option of that name with another meaning
void add_model_options(CLI::App& command, ModelOptions& o, bool with_context = true);
/// Adds --defaults.
void add_defaults_option(CLI::App& command, ModelOptions& o);
void add_draft_option(CLI::App& command, ModelOptions& o);
/// Model, prompt, sampling, --set and --json.
void add_generation_options(CLI::App& command, GenerationOptions& o);
/// --trace and --record.
void add_outputs(CLI::App& command, GenerationOptions& o);
/// "ar,jacobi@demo-cllm" as lanes.
/// @throws CLI::ValidationError  naming what is missing beside an '@'
/// @throws Error(Usage)          for a decoder that is none
std::vector<LaneOption> lanes_from(const std::string& text);
/// What --set takes, for one decoder or for all of them.
/// @param decoder  empty: all
std::string options_help(const std::string& decoder);
/// How a decoder and one of its options are chosen, with what it is to continue; of lookahead,
/// where there is nothing to set.
std::string options_example(const std::string& decoder);

}  // namespace app
