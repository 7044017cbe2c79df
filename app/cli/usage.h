// What is said where the command line is not understood: one line, and the nearest thing that is.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace app {

inline const std::vector<std::string> kBenches = {"probe", "step", "decode", "kernels"};
inline const std::vector<std::string> kTrainings = {"tokenizer", "target",  "draft",  "cllm",
                                                    "medusa",    "chimera", "outputs"};

/// The subcommand the arguments got to.
const CLI::App* deepest(const CLI::App& app);
/// "decoscope data generate".
std::string path_of(const CLI::App* at);

/// Refuses an option without a value: `--opt=`, `--opt ""`, an empty positional, and `--opt` before
/// another option, which CLI11 would take as the value. After "=" a value may be an option's name,
/// as in `--stop=--json`. A prompt may be empty and may be any text.
/// @param app  after it has parsed, or tried to
/// @throws Error(Usage)  naming the option
void refuse_missing_values(const CLI::App& app, int argc, const char* const* argv);

/// One line for what CLI11 found wrong, with the nearest word that exists.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace app
