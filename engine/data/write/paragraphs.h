// Draws the given sentences of a writing problem, and the passage around them.
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
  std::string subject;  ///< "the old farmer"
  std::string pronoun;  ///< "he"; for an open sentence the subject itself: its pronoun is not known
  std::string source;   ///< "grammar", or the name of the open data set
  int theme = 0;        ///< of its predicate and of the paragraph: write_predicates()
};

/// Draws sentences with different subjects.
/// @param level  1: subject and predicate; 2: half of the sentences have an adverbial; 3: all have one
/// @param open   sentences of the open data sets, for three in ten of the drawn ones; may be empty
/// @return  nothing if two sentences have the same subject
std::optional<std::vector<GivenSentence>> draw_given_sentences(Random& rng,
                                                               int level,
                                                               int n_sentences,
                                                               std::span<const OpenSentence> open);

/// Draws a sentence about a subject: "The old farmer sold ten eggs."
std::string grammar_sentence(Random& rng, int level, const std::string& subject, int theme);

/// Draws the two sentences of a paragraph before its given end sentence. The first has the link word and
/// the subject, the second the pronoun. Their predicates differ from each other and from the end's.
std::string own_sentences(Random& rng,
                          int level,
                          const GivenSentence& about,
                          const std::string& link);

/// A paragraph of a passage.
struct PassageParagraph {
  std::string link;  ///< "Then"
  std::string own;   ///< own_sentences(), with the link
  std::string end;   ///< the end sentence; may be empty
  /// The sentences of the paragraph.
  std::string text() const { return end.empty() ? own : own + " " + end; }
};

/// Draws the link word of paragraph i of n: "First", "Then", ..
std::string draw_link(Random& rng, int i, int n);

/// The paragraphs, one a line.
std::string passage_text(const std::vector<PassageParagraph>& paragraphs);

}  // namespace engine
