// What a training run reads: an endless stream of texts, mixed from the generators and the open
// texts by a recipe. Text i is a function of (recipe, seed, i) alone, so a run can resume anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

struct TrainingText {
  std::string prompt;      ///< may be empty (plain text)
  std::string completion;  ///< follows the prompt without a separator; no end token
  std::string part;        ///< "arith", .., or the real set's name
  /// Where the completion says what was asked ("8" after "#### ", "C" after "answer is ("), in
  /// bytes; answer_size is 0 where no such phrase is.
  std::size_t answer_begin = 0, answer_size = 0;
};

/// Fills answer_begin and answer_size from the completion: the letters or digits behind the last
/// "answer is", "####" or "Score:".
void find_answer(TrainingText& text);

class TrainingStream {
 public:
  /// @param recipe_json  object of parts: {"arith": {"weight": 0.25, "levels": [2, 5, 3]}, ..,
  ///                     "real": {"weight": 0.1, "sets": ["gsm8k", ..]}}. Weights are shares of
  ///                     characters and need not add up to 1; "levels" are shares of texts of level
  ///                     1, 2, 3 (default [2, 5, 3]); "sets" defaults to default_training_sets().
  ///                     "open_texts": true of write, chat or plain has them draw from the folder;
  ///                     of chat and plain up to so many texts as their full_size() says, behind
  ///                     which the open ones have stood as often as they may.
  /// @param data_dir     the folder of the open texts; needed by "real" and "open_texts" alone
  /// @param split        Train, or another for texts that no training reads
  /// @throws Error(BadInput)  naming the field of the recipe
  /// @throws Error(Resources, BadInput)  for a folder that lacks a set
  TrainingStream(std::string_view recipe_json,
                 std::uint64_t seed,
                 std::string data_dir = {},
                 Split split = Split::Train);
  ~TrainingStream();
  TrainingStream(TrainingStream&&) noexcept;

  /// May be called from several threads.
  TrainingText text(std::int64_t index) const;
  /// The record that text is made of, with what its checker needs.
  Record record(std::int64_t index) const;

  /// The parts and the share of texts each has, for logs.
  struct Share {
    std::string part;
    double share_of_texts = 0;
    double mean_chars = 0;
  };
  std::vector<Share> shares() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace engine
