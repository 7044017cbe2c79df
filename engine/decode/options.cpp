#include "engine/decode/options.h"

#include <charconv>
#include <sstream>

namespace engine {

const std::string& text_option(const OptionValues& options, const std::string& name) {
  const auto found = options.find(name);
  ensure(found != options.end(), "a decoder was made without one of its options");
  return found->second;
}

int int_option(const OptionValues& options, const std::string& name) {
  return std::stoi(text_option(options, name));
}

double float_option(const OptionValues& options, const std::string& name) {
  const std::string& text = text_option(options, name);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool bool_option(const OptionValues& options, const std::string& name) {
  return text_option(options, name) == "true";
}

bool is_auto(const OptionValues& options, const std::string& name) {
  return text_option(options, name) == kAuto;
}

std::vector<int> counts_option(const OptionValues& options, const std::string& name) {
  std::vector<int> counts;
  std::istringstream text(text_option(options, name));
  for (std::string count; std::getline(text, count, ',');) counts.push_back(std::stoi(count));
  return counts;
}

}  // namespace engine
