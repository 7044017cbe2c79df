// What the generators take from the open sets, where the folder with them is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// A sentence that begins with the name of whom it speaks.
struct OpenSentence {
  std::string text;     ///< "Natalia sold clips to her friends."
  std::string subject;  ///< "Natalia"
  std::string set;      ///< "gsm8k"
};

/// The name that a sentence begins with: its leading words with large letters,
/// function words apart.
/// @return  empty if it begins otherwise
std::string leading_name(std::string_view sentence);

/// First sentences of the questions of gsm8k and commonsenseqa and the true claims of creak, all of
/// the training parts, of 6 to 20 words, without those that stand in an evaluation set as well.
/// @throws Error(BadInput)  for a folder that lacks a set
std::vector<OpenSentence> open_sentences(const std::string& data_dir);

/// Texts that stand in a task as they are, each so many times among the task's own.
class OpenPool {
 public:
  /// @param n_own  training texts of the task's own among which the open ones stand
  explicit OpenPool(int n_own) : n_own_(n_own) {}

  /// Into the split that record.split names.
  void add(Record record, int n_times);

  /// A text of the pool with its share of all training texts (the same share in dev and test).
  /// @return  null: one of the task's own is due
  const Record* draw(Random& rng, Split split) const;

  /// Training texts when each open one has stood as often as it was added; 0 of an empty pool.
  std::int64_t full_size() const;

 private:
  const std::vector<Record>& texts(Split split) const { return texts_[static_cast<int>(split)]; }
  const std::vector<int>& slots(Split split) const { return slots_[static_cast<int>(split)]; }

  int n_own_;
  std::vector<Record> texts_[3];  // by split
  std::vector<int> slots_[3];     // into texts_, n_times each
};

}  // namespace engine
