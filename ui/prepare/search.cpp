#include "ui/prepare/search.h"

#include <algorithm>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

char folded(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

// Returns the first occurrence of `part` from a place on; its end if there is none.
std::string_view::iterator found_from(std::string_view text,
                                      std::size_t from,
                                      std::string_view part) {
  return std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), part.begin(),
                     part.end(), [](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace

bool found_in(std::string_view text, std::string_view part) {
  return part.empty() || found_from(text, 0, part) != text.end();
}

std::vector<std::size_t> tokens_with(const engine::Timeline& timeline,
                                     const engine::RunRecord& run,
                                     std::string_view part) {
  std::string text;
  std::vector<std::size_t> ends;  // of the tokens, in `text`
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    const std::string bytes = timeline.generated_bytes(run, i);
    text += bytes.empty() ? timeline.name_of(run, run.tokens[i].id) : bytes;
    ends.push_back(text.size());
  }
  std::vector<std::size_t> tokens;
  if (part.empty()) return tokens;
  const std::string_view all = text;
  for (auto at = found_from(all, 0, part); at != all.end();) {
    const auto place = static_cast<std::size_t>(at - all.begin());
    const auto token =
        static_cast<std::size_t>(std::ranges::upper_bound(ends, place) - ends.begin());
    if (tokens.empty() || tokens.back() != token) tokens.push_back(token);
    at = found_from(all, place + 1, part);
  }
  return tokens;
}

}  // namespace ui
