// Reads passages whose paragraphs have to end in given sentences, and counts the paragraphs that do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// The result of count_passage().
struct PassageCount {
  int n_paragraphs = 0;
  std::vector<bool> ends;      ///< [sentences] paragraph i ends in sentence i
  std::vector<bool> subjects;  ///< [subjects] the first sentence of paragraph i names subject i

  int n_ends() const;      ///< number of true values in `ends`
  int n_subjects() const;  ///< number of true values in `subjects`
};

/// The lines that are not empty after the last "Passage:", or of the whole text if there is none.
std::vector<std::string> paragraphs_of(std::string_view text);

/// Compares paragraph i with sentence i and subject i. Looks for the subject only in the first sentence of
/// the paragraph, never in the sentence that it has to end in.
/// @param subjects  [sentences], or empty
PassageCount count_passage(std::string_view text,
                           const std::vector<std::string>& sentences,
                           const std::vector<std::string>& subjects);

/// True if the text contains the phrase as whole words. Ignores case and punctuation.
bool names_phrase(std::string_view text, std::string_view phrase);

/// The coherency score 1..10: 10, minus 2 for each paragraph that does not end in its sentence, minus 1 for
/// each that does not name its subject.
int coherency_score(const PassageCount& count);

}  // namespace engine
