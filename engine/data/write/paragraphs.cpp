#include "engine/data/write/paragraphs.h"

#include <algorithm>
#include <set>

#include "engine/data/text.h"
#include "engine/data/write/words.h"

namespace engine {

namespace {

constexpr int kOpenShare = 30;  // percent of the sentences, if there are open ones

bool with_adverbial(Random& rng, int level) {
  return level == 3 || (level == 2 && rng.chance(50));
}

std::string sentence_of(Random& rng,
                        int level,
                        const std::string& subject,
                        std::string_view predicate,
                        const std::string& link) {
  const std::string core = subject + " " + std::string(predicate);
  const std::string before = link.empty() ? "" : link + " ";
  if (!with_adverbial(rng, level)) return capitalised(before + core) + ".";
  const std::string adverbial(rng.pick(write_adverbials()));
  if (link.empty() && rng.chance(30)) return capitalised(adverbial) + ", " + core + ".";
  return capitalised(before + core) + " " + adverbial + ".";
}

// Level 1 has only short sentences with short names, because a record repeats a name four times.
bool fits_level(const OpenSentence& sentence, int level) {
  if (level == 1) return sentence.text.size() <= 42 && sentence.subject.size() <= 8;
  return level == 3 || split_text(sentence.text, ' ').size() <= 14;
}

GivenSentence grammar_given(Random& rng, int level) {
  const WriteSubject& subject = rng.pick(write_subjects());
  GivenSentence given;
  given.subject = subject.phrase;
  given.pronoun = subject.pronoun;
  given.source = "grammar";
  given.theme = rng.below(kWriteThemes);
  given.text = grammar_sentence(rng, level, given.subject, given.theme);
  return given;
}

GivenSentence open_given(Random& rng, int level, std::span<const OpenSentence> open) {
  for (int i = 0; i < 200; i++) {
    const OpenSentence& sentence = rng.pick(open);
    if (fits_level(sentence, level))
      return {sentence.text, sentence.subject, sentence.subject, sentence.set,
              rng.below(kWriteThemes)};
  }
  return grammar_given(rng, level);  // no open sentence is short enough
}

}  // namespace

std::string grammar_sentence(Random& rng, int level, const std::string& subject, int theme) {
  return sentence_of(rng, level, subject, rng.pick(write_predicates(theme)), {});
}

std::optional<std::vector<GivenSentence>> draw_given_sentences(Random& rng,
                                                               int level,
                                                               int n_sentences,
                                                               std::span<const OpenSentence> open) {
  std::vector<GivenSentence> given;
  std::set<std::string> subjects;
  for (int i = 0; i < n_sentences; i++) {
    const bool from_open = !open.empty() && rng.chance(kOpenShare);
    given.push_back(from_open ? open_given(rng, level, open) : grammar_given(rng, level));
    if (!subjects.insert(normalised(given.back().subject)).second) return std::nullopt;
  }
  return given;
}

std::string own_sentences(Random& rng,
                          int level,
                          const GivenSentence& about,
                          const std::string& link) {
  const auto predicates = write_predicates(about.theme);
  std::vector<std::string_view> drawn;
  while (drawn.size() < 2) {
    const std::string_view predicate = rng.pick(predicates);
    const bool is_used = about.text.find(predicate) != std::string::npos ||
                         std::find(drawn.begin(), drawn.end(), predicate) != drawn.end();
    if (!is_used) drawn.push_back(predicate);
  }
  const std::string first = sentence_of(rng, 1, about.subject, drawn[0], link);
  return first + " " + sentence_of(rng, level, about.pronoun, drawn[1], {});
}

std::string draw_link(Random& rng, int i, int n) {
  if (i == 0) return std::string(rng.one_of({"First", "At first", "One day", "One morning"}));
  if (i == n - 1)
    return std::string(rng.one_of({"At last", "In the end", "Last of all", "Finally"}));
  if (i == 1) return std::string(rng.one_of({"Then", "Next", "After that", "Soon"}));
  return std::string(rng.one_of({"Later", "A day later", "After this", "Later on"}));
}

std::string passage_text(const std::vector<PassageParagraph>& paragraphs) {
  std::vector<std::string> lines;
  for (const PassageParagraph& paragraph : paragraphs) lines.push_back(paragraph.text());
  return joined(lines, "\n");
}

}  // namespace engine
