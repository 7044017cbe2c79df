// Small helpers on text that several generators and checkers share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// "a {0} of {1}" with {i} replaced by values[i]. Braces not around a digit stay.
std::string fill(std::string_view pattern, std::initializer_list<std::string_view> values);

/// `text` with the first letter in upper case.
std::string capitalised(std::string_view text);

/// {"a", "b", "c"} -> "a, b and c".
std::string enumerated(const std::vector<std::string>& items);

std::string joined(const std::vector<std::string>& items, std::string_view separator);

std::string_view trimmed(std::string_view text);

std::vector<std::string> split_text(std::string_view text, char separator);

std::string replaced_all(std::string text, std::string_view from, std::string_view to);

/// Lower case, runs of anything but letters and digits become one space.
std::string normalised(std::string_view text);

/// A completion as a checker reads it: without surrounding space and a closing "</s>".
std::string_view completion_body(std::string_view completion);

/// A question and its completion in the chat form.
struct PromptAndCompletion {
  std::string prompt;
  std::string completion;
};
/// "USER: {question} ASSISTANT:" and " {answer}".
PromptAndCompletion chat_form(std::string_view question, std::string_view answer);

}  // namespace engine
