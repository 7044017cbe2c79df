#include "engine/decode/options.h"

namespace engine {

const std::string& text_option(const OptionValues& options, const std::string& name) {
  const auto found = options.find(name);
  ensure(found != options.end(), "a decoder was made without one of its options");
  return found->second;
}

int int_option(const OptionValues& options, const std::string& name) {
  return std::stoi(text_option(options, name));
}

bool bool_option(const OptionValues& options, const std::string& name) {
  return text_option(options, name) == "true";
}

}  // namespace engine
