// The words of the write task: 80 subjects, 120 predicates in 12 themes and 40 adverbials, in the past
// tense. The words are short and common, so that a small vocabulary splits them into few tokens.
#pragma once

#include <span>
#include <string_view>

namespace engine {

/// A subject of sentences.
struct WriteSubject {
  std::string_view phrase;   ///< "Anna", "the old farmer"
  std::string_view pronoun;  ///< "she", "he", "they"
};

constexpr int kWriteThemes = 12;

/// All subjects, the 40 names first. [80]
std::span<const WriteSubject> write_subjects();
/// The predicates of one theme. [10] @param theme  0..kWriteThemes-1
std::span<const std::string_view> write_predicates(int theme);
/// All adverbials; each fits the beginning and the end of a sentence. [40]
std::span<const std::string_view> write_adverbials();

}  // namespace engine
