// Passages whose paragraphs have to end in given sentences, read back and counted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace engine {

struct PassageCount {
  int n_paragraphs = 0;
  std::vector<bool> ends;      ///< [sentences] paragraph i ends in sentence i
  std::vector<bool> subjects;  ///< [subjects] the first sentence of paragraph i names subject i

  int n_ends() const;
  int n_subjects() const;
};

/// The lines with words in them behind the last "Passage:" (the whole text if there is none).
std::vector<std::string> paragraphs_of(std::string_view text);

/// A paragraph's own first sentence is looked at for its subject, never the sentence it has to end
/// in.
/// @param subjects  one a sentence, or none
PassageCount count_passage(std::string_view text,
                           const std::vector<std::string>& sentences,
                           const std::vector<std::string>& subjects);

/// Whether `phrase` stands in `text` as whole words, case and signs apart.
bool names_phrase(std::string_view text, std::string_view phrase);

/// 10, less 2 for each paragraph that ends otherwise, less 1 for each of another
/// subject; at least 1.
int coherency_score(const PassageCount& count);

}  // namespace engine
