// Four given sentences and the passage that is written around them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/open_texts.h"
#include "engine/data/random.h"

namespace engine {

/// A sentence that a paragraph has to end in.
struct GivenSentence {
  std::string text;
  std::string subject;  ///< as it stands within a sentence: "the old farmer"
  std::string
      pronoun;         ///< "he"; of an open sentence the subject itself, for nobody says which fits
  std::string source;  ///< "grammar", or the open set
  int theme = 0;       ///< of its predicate, and of what is told around it
};

/// @param level  1: subject and predicate; 2: now and then an adverbial, first or last; 3: always
/// @param open   sentences of the open sets, of which three in ten are drawn; may be empty
/// @return  of two sentences of one subject nothing
std::optional<std::vector<GivenSentence>> draw_given_sentences(Random& rng,
                                                               int level,
                                                               int n_sentences,
                                                               std::span<const OpenSentence> open);

/// A sentence of the grammar about a subject: "The old farmer sold ten eggs."
std::string grammar_sentence(Random& rng, int level, const std::string& subject, int theme);

/// The two sentences of a paragraph before the one it ends in: the subject by its name behind a
/// link word, then by its pronoun; neither says what the sentence at the end says.
std::string own_sentences(Random& rng,
                          int level,
                          const GivenSentence& about,
                          const std::string& link);

/// A paragraph as it stands in a passage. An empty end is left away.
struct PassageParagraph {
  std::string link;  ///< "Then"
  std::string own;
  std::string end;
  std::string text() const { return end.empty() ? own : own + " " + end; }
};

/// "First", "Then", ..: what joins paragraph i of n to the one before. Four wordings a place.
std::string draw_link(Random& rng, int i, int n);

std::string passage_text(const std::vector<PassageParagraph>& paragraphs);

}  // namespace engine
