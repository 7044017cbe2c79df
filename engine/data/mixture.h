// The input of a training run: an endless stream of texts, mixed from generated and open texts by a
// recipe. Text i is a function of (recipe, seed, i), so a run can resume at any text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// One text of the stream.
struct TrainingText {
  std::string prompt;      ///< may be empty (plain text)
  std::string completion;  ///< follows the prompt without a separator; no end token
  std::string part;        ///< "arith", .., or the real set's name
  /// The place of the short answer in the completion ("8" after "#### ", "C" after "answer is ("), in
  /// bytes. answer_size is 0 if the completion has no such phrase.
  std::size_t answer_begin = 0, answer_size = 0;
};

/// Finds the short answer of the completion: the letters or digits after the last "answer is", "####"
/// or "Score:". Sets answer_begin and answer_size.
void find_answer(TrainingText& text);

/// The stream of texts of one recipe and seed.
class TrainingStream {
 public:
  /// @param recipe_json  object of parts: {"arith": {"weight": 0.25, "levels": [2, 5, 3]}, ..,
  ///                     "real": {"weight": 0.1, "sets": ["gsm8k", ..]}}. Weights are shares of
  ///                     characters and need not add up to 1; "levels" are shares of texts of level
  ///                     1, 2, 3 (default [2, 5, 3]); "sets" defaults to default_training_sets().
  ///                     "open_texts": true lets write, chat or plain draw texts of the open data
  ///                     sets; chat and plain stop doing so after full_size() texts, when each open
  ///                     text has occurred as often as allowed.
  /// @param data_dir     the folder of the open data sets; only "real" and "open_texts" need it
  /// @param split        Train, or Dev or Test for texts that no training reads
  /// @throws Error(BadInput)  naming the field of the recipe
  /// @throws Error(Resources, BadInput)  if the folder lacks a data set
  TrainingStream(std::string_view recipe_json,
                 std::uint64_t seed,
                 std::string data_dir = {},
                 Split split = Split::Train);
  ~TrainingStream();
  /// A moved-from stream may only be destroyed.
  TrainingStream(TrainingStream&&) noexcept;

  /// Text `index` (0 or more) of the stream. Several threads may call it at once.
  TrainingText text(std::int64_t index) const;
  /// The record of text `index`, with the checker's input.
  Record record(std::int64_t index) const;

  /// A part of the mixture, for logs.
  struct Share {
    std::string part;
    double share_of_texts = 0;
    double mean_chars = 0;
  };
  /// The share of each part, in the order of the recipe.
  std::vector<Share> shares() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace engine
