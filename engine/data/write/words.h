// What the sentences of the write task are made of: 80 subjects, 120 predicates in 12 themes, 40
// adverbials, all in the plain past tense. Words are short and everyday, so that a small vocabulary
// has them in few pieces.
#pragma once

#include <span>
#include <string_view>

namespace engine {

struct WriteSubject {
  std::string_view phrase;   ///< "Anna", "the old farmer"
  std::string_view pronoun;  ///< "she", "he", "they"
};

constexpr int kWriteThemes = 12;

std::span<const WriteSubject> write_subjects();  ///< [80]
/// Predicates that belong together. [10]
/// @param theme  0..kWriteThemes-1
std::span<const std::string_view> write_predicates(int theme);
std::span<const std::string_view> write_adverbials();  ///< [40]; each can stand last or first

}  // namespace engine
