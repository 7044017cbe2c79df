#include "app/cli/usage.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "engine/base/closest_name.h"
#include "engine/base/utf8.h"
#include "kernels/error.h"

namespace app {

const CLI::App* deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

std::string path_of(const CLI::App* at) {
  const CLI::App* parent = at->get_parent();
  return parent ? path_of(parent) + " " + at->get_name() : at->get_name();
}

namespace {

/// The word to name in the error. CLI11's message "... not expected: c --b a" lists the words from
/// last to first. Returns the first option or, if a command was expected, the first word.
std::string unexpected_word(const std::string& message, bool command_expected) {
  std::istringstream words(message.substr(std::min(message.rfind(": ") + 1, message.size())));
  std::string word, first, first_option;
  while (words >> word) {
    first = word;
    if (word.starts_with("-")) first_option = word;
  }
  return command_expected || first_option.empty() ? first : first_option;
}

/// Quotes a text for a shell; cuts it after at most 60 bytes, between characters.
std::string in_shell_quotes(std::string text) {
  const std::size_t end = engine::whole_characters(text, 60);
  const bool is_cut = end < text.size();
  text.resize(end);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + (is_cut ? "...\"" : "\"");
}

/// The message for unexpected words after generate or compare that look like a prompt whose option
/// or quotes were forgotten; empty if they do not.
std::string prompt_meant(const CLI::App& at) {
  if (at.get_name() != "generate" && at.get_name() != "compare") return "";
  std::vector<std::string> words = at.remaining();
  for (const std::string& word : words) {
    if (word.starts_with("-")) return "";
  }
  if (words.empty()) return "";
  if (words.size() == 1 && words[0].ends_with(".jsonl") && at.count("--prompt-file") == 0) {
    return fmt::format("{}: give a file of prompts with --prompt-file {}", words[0],
                       in_shell_quotes(words[0]));
  }
  std::string text;
  if (at.count("--prompt") > 0) text = at.get_option("--prompt")->as<std::string>();
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return fmt::format("{}: {}: --prompt {}", words[0],
                     at.count("--prompt") > 0 ? "put a prompt of several words in quotes"
                                              : "give a prompt with its option",
                     in_shell_quotes(text));
}

/// The words that a command accepts as its next one; empty if it needs none.
std::vector<std::string> words_after(const CLI::App& at) {
  std::vector<std::string> words;
  if (at.get_name() == "bench") words = kBenches;
  if (at.get_name() == "train") words = kTrainings;
  for (const CLI::App* sub : at.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(sub->get_name());
  const CLI::Option* what = at.get_option_no_throw("what");
  return what && what->count() > 0 ? std::vector<std::string>() : words;
}

/// Joins words: "probe, step, decode or kernels".
std::string listed(const std::vector<std::string>& words) {
  return fmt::format("{}{}{}", fmt::join(words.begin(), words.end() - 1, ", "),
                     words.size() > 1 ? " or " : "", words.back());
}

/// The message for a command whose next word is missing or unknown.
/// @param words  the valid words, at least one
std::string missing_word(const CLI::App& at, const std::vector<std::string>& words) {
  for (const std::string& given : at.remaining()) {
    if (given.starts_with("-")) continue;
    const std::string meant = engine::did_you_mean(given, words);
    return fmt::format("{}: no such command{}", given,
                       meant.empty() ? ", expected " + listed(words) : meant);
  }
  return fmt::format("{}: found nothing after it, expected {}", at.get_name(), listed(words));
}

/// True if a word is an option of the command, with or without "=VALUE".
bool is_option_of(const CLI::App& at, const std::string& word) {
  return word.starts_with("--") &&
         at.get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
}

std::string with_help(const std::string& message, const CLI::App* at) {
  return fmt::format("{}; see `{} --help`", message, path_of(at));
}

/// True if an option accepts any text, even an empty one.
bool takes_any_text(const CLI::Option& option) {
  return option.check_lname("prompt");
}

[[noreturn]] void refuse_missing_value(const CLI::App& at,
                                       const std::string& option,
                                       const std::string& found) {
  throw kernels::Error(kernels::ErrorCode::Usage,
                       with_help(option + ": found " + found + ", expected a value", &at));
}

/// True if the value follows "=" in the option's own word, where it may begin with dashes. A word of
/// its own that names an option means that the value was left out.
bool is_after_equals(const CLI::Option& option,
                     const std::string& value,
                     int argc,
                     const char* const* argv) {
  for (int i = 1; i < argc; i++) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) continue;
    if (option.check_lname(std::string(word.substr(2, equals - 2))) &&
        word.find(value, equals) != std::string_view::npos)
      return true;
  }
  return false;
}

/// Refuses "--name=", after which CLI11 would take the next word as the value.
void refuse_bare_equals(const CLI::App& at, int argc, const char* const* argv) {
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (std::string_view(argv[i - 1]) == "--prompt") continue;
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    const std::string name = word.substr(0, word.size() - 1);
    const CLI::Option* option = at.get_option_no_throw(name);
    if (option && option->get_items_expected_max() > 0 && !takes_any_text(*option))
      refuse_missing_value(at, name, "nothing after it");
  }
}

}  // namespace

void refuse_missing_values(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = deepest(app);
  refuse_bare_equals(*at, argc, argv);
  for (const CLI::App* command : {&app, at}) {
    for (const CLI::Option* option : command->get_options({})) {
      if (option->get_items_expected_max() == 0 || takes_any_text(*option)) continue;
      for (const std::string& value : option->results()) {
        if (value.empty()) refuse_missing_value(*at, option->get_name(), "nothing after it");
        const std::string name = value.substr(0, value.find('='));
        if (name.starts_with("--") && at->get_option_no_throw(name) &&
            !is_after_equals(*option, value, argc, argv))
          refuse_missing_value(*at, option->get_name(), "the option " + name + " after it");
      }
    }
  }
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = deepest(app);
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    if (const std::string meant = prompt_meant(*at); !meant.empty()) return meant;
    const std::string culprit = unexpected_word(message, at == &app);
    if (at == &app && culprit.ends_with(".pdrun"))
      return fmt::format("{}: give a recording with --open {}", culprit, in_shell_quotes(culprit));
    if (at != &app && is_option_of(*at, culprit))
      return fmt::format("{} is given before the command {}; put it after the command", culprit,
                         at->get_name());
    std::vector<std::string> known;
    for (const CLI::Option* option : at->get_options({})) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const auto subcommands = at->get_subcommands([](const CLI::App*) { return true; });
    for (const CLI::App* sub : subcommands) known.push_back(sub->get_name());
    if (subcommands.empty() && !culprit.starts_with("-"))
      message = fmt::format("{}: unexpected word after {}", culprit, path_of(at));
    else
      message =
          fmt::format("{}: no such {}{}", culprit, culprit.starts_with("-") ? "option" : "command",
                      engine::did_you_mean(culprit, known));
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch) &&
      message.ends_with(" missing")) {
    message = message.substr(0, message.find(": ")) + ": found nothing after it, expected a value";
  }
  // The position "what" of bench and train: names the command instead.
  if (message.starts_with("what: ")) message = at->get_name() + message.substr(4);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    const std::vector<std::string> words = words_after(*at);
    if (at != &app && !words.empty()) message = missing_word(*at, words);
  }
  return with_help(message, at);
}

}  // namespace app
