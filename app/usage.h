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

/// One line for what CLI11 found wrong, with the nearest word that exists.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace app
