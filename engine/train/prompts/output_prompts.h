// The prompts after which a target writes texts: those of the records of a mixture, or requests to a chat model.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "engine/data/chat_requests.h"
#include "engine/data/mixture.h"
#include "engine/data/record.h"
#include "engine/model/model.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// The prompts of a plan.
class OutputPrompts {
 public:
  /// @param data  folder of the open texts, for mixtures that name them
  /// @throws  as TrainingStream and ChatRequests
  OutputPrompts(const OutputsPlan& plan, const std::string& data);

  /// Number of prompts: plan.count, or the number of requests if it is smaller.
  std::int64_t count() const { return count_; }
  /// The record of a prompt. Its prompt is empty if it has none, or if it is a request that overlaps an evaluation question.
  Record record(std::int64_t index) const;
  /// A hash of all requests; empty for records of a mixture.
  std::string hash() const { return requests_ ? requests_->hash() : std::string(); }
  /// The share of each part, sorted by part for requests.
  std::vector<TrainingStream::Share> shares() const {
    return requests_ ? requests_->shares(count_) : stream_->shares();
  }
  /// A sentence on the number of requests.
  std::string summary() const;

 private:
  const ChatRequest& request(std::int64_t index) const {
    return requests_->list()[static_cast<std::size_t>(index)];
  }
  std::int64_t count_;
  std::optional<TrainingStream> stream_;
  std::optional<ChatRequests> requests_;
  std::set<std::int64_t> excluded_;
  std::vector<std::string> evaluation_sets_;
};

/// The tokens of a prompt, begin token included.
/// @param chat  true: the prompt is the only message of a conversation, in the model's chat template
std::vector<TokenId> prompt_tokens(const Model& model, const std::string& prompt, bool chat);
/// Checks that a model has a chat template. @param name  of the model, for the message
/// @throws Error(BadInput)
void expect_chat_template(const Model& model, const std::string& name);

}  // namespace engine
