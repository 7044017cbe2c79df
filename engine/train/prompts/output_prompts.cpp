#include "engine/train/prompts/output_prompts.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/chat/chat_template.h"
#include "engine/chat/encode_chat.h"

namespace engine {

OutputPrompts::OutputPrompts(const OutputsPlan& plan, const std::string& data)
    : count_(plan.count) {
  if (!plan.chat) {
    stream_.emplace(plan.mixture, plan.seed, data, plan.split);
    return;
  }
  requests_.emplace(plan.mixture, plan.seed, data, plan.split);
  count_ = std::min(count_, std::ssize(requests_->list()));
  const EvaluationTexts evaluation(data);
  evaluation_sets_ = evaluation.sets();
  for (std::int64_t i = 0; i < count_; i++)
    if (evaluation.overlap(request(i))) excluded_.insert(i);
}

Record OutputPrompts::record(std::int64_t index) const {
  if (stream_) return stream_->record(index);
  Record record;
  record.level = 0;
  record.task = request(index).part;
  if (!excluded_.contains(index)) record.prompt = request(index).text;
  return record;
}

std::string OutputPrompts::summary() const {
  std::string sets;
  for (const std::string& set : evaluation_sets_) sets += (sets.empty() ? "" : ", ") + set;
  return fmt::format(
      "{} of {} distinct requests are used, without {} that overlap an evaluation question of {}",
      count_, requests_->list().size(), excluded_.size(), sets);
}

std::vector<TokenId> prompt_tokens(const Model& model, const std::string& prompt, bool chat) {
  const Tokenizer& tokenizer = *model.tokenizer();
  if (chat) {
    const std::vector<ChatMessage> messages = {{"user", prompt}};
    return encode_chat(tokenizer,
                       render_chat(model.chat_template(), messages, chat_settings_of(tokenizer)));
  }
  std::vector<TokenId> tokens;
  if (tokenizer.bos_id()) tokens.push_back(*tokenizer.bos_id());
  const auto ids = tokenizer.encode(prompt, false);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  return tokens;
}

void expect_chat_template(const Model& model, const std::string& name) {
  if (!model.chat_template().text.empty()) return;
  throw Error(ErrorCode::BadInput,
              name + ": chat template: found none, but the recipe has \"chat\": true");
}

}  // namespace engine
