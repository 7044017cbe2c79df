#include "engine/checkpoint/shared/model_name.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace engine {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "q4_1", "iq2_xs", "bf16", "f16", "f32".
bool is_number_type(std::string_view name) {
  if (name == "bf16" || name == "f16" || name == "f32") return true;
  if (name.starts_with("i")) name.remove_prefix(1);
  return name.size() > 1 && name[0] == 'q' && is_digit(name[1]);
}

std::string plain_name(std::string_view name) {
  if (name.ends_with("/")) name.remove_suffix(1);
  std::string plain(name.substr(name.find_last_of('/') + 1));
  std::ranges::transform(plain, plain.begin(), [](unsigned char c) { return std::tolower(c); });
  if (plain.ends_with(".gguf")) plain.resize(plain.size() - 5);
  const std::size_t end = plain.find_last_of(".-");
  if (end != std::string::npos && end > 0 &&
      is_number_type(std::string_view(plain).substr(end + 1)))
    plain.resize(end);
  return plain;
}

}  // namespace

bool is_same_model(std::string_view a, std::string_view b) {
  return plain_name(a) == plain_name(b);
}

}  // namespace engine
