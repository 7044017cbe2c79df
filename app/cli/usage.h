// Messages for an invalid command line: one line, with the nearest valid word.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace app {

/// The benchmarks and trainings, as named on the command line.
inline const std::vector<std::string> kBenches = {"probe", "step", "decode", "kernels"};
inline const std::vector<std::string> kTrainings = {"tokenizer", "target",  "draft",  "cllm",
                                                    "medusa",    "chimera", "outputs"};

/// The innermost subcommand that was parsed.
const CLI::App* deepest(const CLI::App& app);
/// The command of a parser: "decoscope data generate".
std::string path_of(const CLI::App* at);

/// Refuses an option without a value: `--opt=`, `--opt ""`, an empty positional, and `--opt` before
/// another option, which CLI11 would take as the value. After "=" a value may be an option's name,
/// as in `--stop=--json`. A prompt may be empty and may be any text.
/// @param app  after parsing, successful or not
/// @throws Error(Usage)  the message names the option
void refuse_missing_values(const CLI::App& app, int argc, const char* const* argv);

/// A one-line message for an error of CLI11, with the nearest valid word.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace app
