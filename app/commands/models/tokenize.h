// `model tokenize`: token ids and pieces of texts.
#pragma once

#include "app/cli/commands.h"

namespace app {

/// Prints the tokens of options.text, or of each text of options.file. With options.json prints a
/// line {"tokens": [ids], "pieces": [texts]} for each text, with bytes that are not UTF-8 as
/// <0xF0>.
int tokenize(const ModelCommandOptions& options);

}  // namespace app
