// Pieces that several subcommands of the command line are made of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/commands.h"

namespace app {

/// What the command line asks for, to be called once it is read.
using Run = std::function<int()>;

inline constexpr const char* kJsonHelp = "print one JSON document and nothing else";

/// Checks and converts to one of a few words, with a suggestion for a misspelt one.
CLI::Validator one_of(const std::vector<std::string>& words);
std::vector<std::string> decoder_names();
void add_model_options(CLI::App& command, ModelOptions& o);
void add_draft_option(CLI::App& command, ModelOptions& o);
/// The options of a decoder, or of all, for --help.
std::string options_help(const std::string& decoder);

/// `reason cot` and `reason tot` (cli_reason.cpp).
void add_reason(CLI::App& app, CotOptions& cot, TotOptions& tot, Run& run);

}  // namespace app
