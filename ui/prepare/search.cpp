#include "ui/prepare/search.h"

#include <algorithm>

namespace ui {
namespace {

char folded(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

}  // namespace

bool found_in(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return folded(a) == folded(b); }) != text.end() ||
         part.empty();
}

}  // namespace ui
