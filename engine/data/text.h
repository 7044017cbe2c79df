// Text functions that several generators and checkers share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// Replaces each {i} of the pattern by values[i], i in 0..9. Other braces stay.
std::string fill(std::string_view pattern, std::initializer_list<std::string_view> values);

/// The text with its first letter in upper case.
std::string capitalised(std::string_view text);

/// {"a", "b", "c"} -> "a, b and c".
std::string enumerated(const std::vector<std::string>& items);

/// The items with the separator between them.
std::string joined(const std::vector<std::string>& items, std::string_view separator);

/// The text without spaces, tabs and line ends at both ends.
std::string_view trimmed(std::string_view text);

/// The parts between separators, empty ones included. "" gives one empty part.
std::vector<std::string> split_text(std::string_view text, char separator);

/// The text with every occurrence of `from` replaced. @param from  not empty
std::string replaced_all(std::string text, std::string_view from, std::string_view to);

/// The text in lower case; each run of characters other than letters and digits becomes one space.
/// Bytes of UTF-8 characters count as letters.
std::string normalised(std::string_view text);

/// The part of a completion that checkers read: without surrounding white space and a final "</s>".
std::string_view completion_body(std::string_view completion);

/// A prompt and the completion that follows it.
struct PromptAndCompletion {
  std::string prompt;
  std::string completion;
};
/// The chat form: prompt "USER: {question} ASSISTANT:", completion " {answer}".
PromptAndCompletion chat_form(std::string_view question, std::string_view answer);

}  // namespace engine
