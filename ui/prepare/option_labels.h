// Short names of the decoders' options for people, beside the names that commands and files use.
#pragma once

#include <string>

namespace ui {

/// Returns the label of a decoder's option, at most 24 characters: "n-grams verified" for n_guesses. An option that is not known here (of a
/// newer recording) has its own name as the label.
std::string option_label(const std::string& decoder, const std::string& option);

/// Returns the label with the option's name: "n-grams verified (n_guesses)".
std::string label_with_name(const std::string& decoder, const std::string& option);

}  // namespace ui
