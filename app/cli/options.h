// Options shared by several subcommands, and validators.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace app {

/// Help texts of options with the same meaning in several subcommands.
inline constexpr const char* kJsonHelp = "print a JSON document instead of text";
inline constexpr const char* kNoSpecialHelp =
    "read control symbols in a prompt (<s>, </s>, special added tokens) as text, not as their ids";
inline constexpr const char* kModelName = "NAME|DIR";

/// Accepts one of the given words; suggests the nearest for any other.
CLI::Validator one_of(const std::vector<std::string>& words);
/// The names of all decoders.
std::vector<std::string> decoder_names();
/// Splits at commas, without empty parts: "a,,b" gives {"a", "b"}.
std::vector<std::string> split_commas(const std::string& text);

/// Adds the option that raises limits on input files.
void add_limit_option(CLI::App& command, engine::FileLimits& limits);
/// Adds --run-code, for commands that verify answers.
void add_run_code_option(CLI::App& command, bool& run_code);
/// Adds the options of ModelOptions except --draft and --defaults.
/// @param with_context  adds --context; `bench` has another option of that name
void add_model_options(CLI::App& command, ModelOptions& o, bool with_context = true);
/// Adds --size, of the window.
/// @param standard  the initial values of width and height, for the help: "1600x1000"
void add_size_option(CLI::App& command, int& width, int& height, const std::string& standard);
/// Adds --pool.
void add_pool_option(CLI::App& command, std::string& pool);
/// Adds --chat and --system.
/// @return  the option --chat
CLI::Option* add_chat_options(CLI::App& command, engine::ChatMode& chat, std::string& system);
/// Adds --defaults.
void add_defaults_option(CLI::App& command, ModelOptions& o);
/// Adds --draft.
void add_draft_option(CLI::App& command, ModelOptions& o);
/// Adds the options for the model, prompt and sampling, --set and --json.
void add_generation_options(CLI::App& command, GenerationOptions& o);
/// Adds --trace and --record.
void add_outputs(CLI::App& command, GenerationOptions& o);
/// Parses lanes: "ar,jacobi@demo-cllm".
/// @throws CLI::ValidationError  decoder or model is missing before or after an '@'
/// @throws Error(Usage)          unknown decoder
std::vector<LaneOption> lanes_from(const std::string& text);
/// Help on the options that --set accepts.
/// @param decoder  empty: all
std::string options_help(const std::string& decoder);
/// An example command that selects the decoder and sets one of its options; for a decoder without
/// options, an example of lookahead.
std::string options_example(const std::string& decoder);

}  // namespace app
