// Texts of the open data sets that generated tasks mix into their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// A sentence that begins with the name of its subject.
struct OpenSentence {
  std::string text;     ///< "Natalia sold clips to her friends."
  std::string subject;  ///< "Natalia"
  std::string set;      ///< "gsm8k"
};

/// The name at the beginning of a sentence: its leading capitalised words.
/// @return  empty if there is no name, or the first word is a function word ("The")
std::string leading_name(std::string_view sentence);

/// The first sentences of questions of gsm8k and commonsenseqa, and the true claims of creak. All are
/// from the training parts, have 6 to 20 words and do not occur in an evaluation set.
/// @throws Error(BadInput)  if the folder lacks a data set
std::vector<OpenSentence> open_sentences(const std::string& data_dir);

/// Open texts that a task uses unchanged, each a given number of times among its generated texts.
class OpenPool {
 public:
  /// @param n_own  number of generated training texts that the open ones are mixed into
  explicit OpenPool(int n_own) : n_own_(n_own) {}

  /// Adds a text to the split that record.split names. @param n_times  how often it may occur
  void add(Record record, int n_times);

  /// Draws an open text with a probability equal to the share of open texts among all training texts; dev
  /// and test use the same share.
  /// @return  null if the draw is a generated text
  const Record* draw(Random& rng, Split split) const;

  /// The number of training texts after which each open text has occurred n_times; 0 if there is none.
  std::int64_t full_size() const;

 private:
  const std::vector<Record>& texts(Split split) const { return texts_[static_cast<int>(split)]; }
  const std::vector<int>& slots(Split split) const { return slots_[static_cast<int>(split)]; }

  int n_own_;
  std::vector<Record> texts_[3];  // by split
  std::vector<int> slots_[3];     // into texts_, n_times each
};

}  // namespace engine
