// Requests to a chat model, as a person would write them, made of the training parts of the open
// data sets. A target answers them, and draft heads are trained on the answers.
//   Parts    an open set with training texts: its questions
//            rewriting: tasks on passages of gsm8k and tinyshakespeare; writing: texts about creak's claims
//   Splits   by the content key of the question, so that a passage is in one split in every part
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/data/mixture.h"

namespace engine {

/// The question of a record of an open data set, without its prompt form ("Question: ..", few-shot
/// markers, choices). Texts without a prompt: the text itself.
std::string question_of(const Record& record);

/// The open data sets that a part of requests reads; empty if there is no such part.
std::vector<std::string> sets_of_request_part(std::string_view part);

/// A request.
struct ChatRequest {
  std::string part;
  std::string text;      // the message of the user
  std::string question;  // the part of it that is from the data set
};

/// The distinct requests of a recipe, in an order drawn from the seed: each beginning of the list is a
/// sample of the mixture.
class ChatRequests {
 public:
  /// @param recipe_json  object of parts: {"gsm8k": {"weight": 0.2}, "rewriting": {"weight": 0.1}, ..}.
  ///                     Weights are shares of requests, as long as a part has requests left.
  /// @param data_dir     the folder of the open data sets
  /// @param split        Train has nine tenths of the requests; none is from an evaluation part
  /// @throws Error(BadInput)  naming the field of the recipe; or if the folder lacks a data set
  ChatRequests(std::string_view recipe_json,
               std::uint64_t seed,
               const std::string& data_dir,
               Split split);

  /// All requests in their order.
  const std::vector<ChatRequest>& list() const { return list_; }
  /// A hash of all requests in their order, 16 hexadecimal digits.
  std::string hash() const;
  /// The share of each part in the first `count` requests, sorted by part.
  std::vector<TrainingStream::Share> shares(std::int64_t count) const;

 private:
  std::vector<ChatRequest> list_;
};

/// The questions of the evaluation parts of the open data sets that a folder has.
class EvaluationTexts {
 public:
  /// Reads them. @throws Error  as read_real_set() for a malformed file
  explicit EvaluationTexts(const std::string& data_dir);

  /// True if the normalised text or question of a request equals an evaluation question, or has 13
  /// consecutive words in common with one.
  bool overlap(const ChatRequest& request) const;
  /// The names of the data sets read.
  const std::vector<std::string>& sets() const { return sets_; }

 private:
  bool overlap(std::string_view text) const;

  std::unordered_set<std::uint64_t> hashes_;  // of whole questions, and of all runs of 13 words
  std::vector<std::string> sets_;
};

}  // namespace engine
