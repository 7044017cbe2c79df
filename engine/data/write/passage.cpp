#include "engine/data/write/passage.h"

#include <algorithm>

#include "engine/data/text.h"

namespace engine {

int PassageCount::n_ends() const {
  return static_cast<int>(std::count(ends.begin(), ends.end(), true));
}

int PassageCount::n_subjects() const {
  return static_cast<int>(std::count(subjects.begin(), subjects.end(), true));
}

std::vector<std::string> paragraphs_of(std::string_view text) {
  constexpr std::string_view kPassage = "Passage:";
  if (const auto at = text.rfind(kPassage); at != std::string_view::npos)
    text = text.substr(at + kPassage.size());
  std::vector<std::string> paragraphs;
  for (const std::string& line : split_text(text, '\n'))
    if (!trimmed(line).empty()) paragraphs.emplace_back(trimmed(line));
  return paragraphs;
}

bool names_phrase(std::string_view text, std::string_view phrase) {
  const std::string wanted = normalised(phrase);
  return !wanted.empty() &&
         (" " + normalised(text) + " ").find(" " + wanted + " ") != std::string::npos;
}

PassageCount count_passage(std::string_view text,
                           const std::vector<std::string>& sentences,
                           const std::vector<std::string>& subjects) {
  const std::vector<std::string> paragraphs = paragraphs_of(text);
  PassageCount count;
  count.n_paragraphs = static_cast<int>(paragraphs.size());
  count.ends.assign(sentences.size(), false);
  count.subjects.assign(subjects.size(), false);
  for (std::size_t i = 0; i < std::min(paragraphs.size(), sentences.size()); i++) {
    std::string_view own = paragraphs[i];
    count.ends[i] = (" " + paragraphs[i]).ends_with(" " + sentences[i]);
    if (count.ends[i]) own.remove_suffix(std::min(own.size(), sentences[i].size()));
    if (i < subjects.size())
      count.subjects[i] = names_phrase(own.substr(0, own.find_first_of(".!?")), subjects[i]);
  }
  return count;
}

int coherency_score(const PassageCount& count) {
  const int n_other_ends = static_cast<int>(count.ends.size()) - count.n_ends();
  const int n_other_subjects = static_cast<int>(count.subjects.size()) - count.n_subjects();
  return std::max(1, 10 - 2 * n_other_ends - n_other_subjects);
}

}  // namespace engine
