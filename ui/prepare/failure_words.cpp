#include "ui/prepare/failure_words.h"

#include <string_view>
#include <utility>

namespace ui {

std::string for_window(const std::string& message) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"--device cpu", "cpu as the device in Setup"},
      {"--device ", "device "},
      {"--dtype bf16", "bf16 weights"},
      {"--dtype ", "dtype "},
      {"--scale ", "scale "},
      {"--scale,", "scale,"},
      {"--scale:", "scale:"},
      {"name one with --draft NAME|DIR", "choose one as the draft in Setup"},
      {"name one (--draft NAME|DIR)", "choose one as the draft in Setup"},
      {"name another with --draft", "choose another as the draft in Setup"},
      {"name them with --heads NAME|DIR", "choose them as the heads in Setup"},
      {"name some (--heads NAME|DIR)", "choose some as the heads in Setup"},
      {"set a longer context with --context N", "set a longer context in Setup"},
      {"--defaults model applies them", "a button of Setup's sampling applies them"},
      {"--max-tokens or --shots", "max tokens or examples shown"},
      {"with --data DIR or in DECOSCOPE_DATA", "in DECOSCOPE_DATA, before the program starts"},
      {"give --data or set DECOSCOPE_DATA", "set DECOSCOPE_DATA before the program starts"},
      {"--chat: not possible", "read as chat: not possible"},
      {"--system: not possible", "a system message: not possible"},
      {"--chat makes a message of it", "symbols as text in Setup makes a message of it"},
      {"--raw takes the prompt as it is", "raw in Setup takes the prompt as it is"},
      {"--split ", "split "},
      {"--level:", "level:"}};
  std::string text = message;
  for (const auto& [typed, shown] : kWords) {
    for (std::size_t at = text.find(typed); at != text.npos; at = text.find(typed, at))
      text.replace(at, typed.size(), shown);
  }
  return text;
}

}  // namespace ui
