#include "ui/prepare/failure_words.h"

#include <string_view>
#include <utility>

namespace ui {

std::string in_window(const std::string& message) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"--device cpu", "cpu as the device in Setup"},
      {"--dtype bf16", "bf16 weights"},
      {"--scale ", "scale "},
      {"--scale,", "scale,"}};
  std::string text = message;
  for (const auto& [typed, shown] : kWords) {
    for (std::size_t at = text.find(typed); at != text.npos; at = text.find(typed, at))
      text.replace(at, typed.size(), shown);
  }
  return text;
}

}  // namespace ui
