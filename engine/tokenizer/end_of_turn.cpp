#include "engine/tokenizer/end_of_turn.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace engine {
namespace {

// clang-format off
constexpr std::array<std::string_view, 31> kNames = {
    "<|eot_id|>", "<|eot|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<|eom|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<reponame>", "<|file_sep|>",
};
// clang-format on

}  // namespace

bool names_end_of_turn(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end();
}

std::vector<TokenId> ends_of_turn_by_name(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, TokenId>> found;
  for (TokenId id = 0; id < tokenizer.vocab_size(); id++) {
    if (!tokenizer.is_special(id)) continue;
    std::string name = tokenizer.piece(id);
    if (names_end_of_turn(name)) found.emplace_back(std::move(name), id);
  }
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(found, [&](const auto& one) { return one.first == name; });
  };
  const bool end_is_within = (has("<|return|>") && has("<|call|>")) ||
                             (has("<|flush|>") && (has("<|call|>") || has("<|calls|>")));
  const bool s_is_ordinary = has("<|tool_response>");
  std::vector<TokenId> ids;
  for (const auto& [name, id] : found) {
    if (end_is_within && name == "<|end|>") continue;
    if (s_is_ordinary && name == "</s>") continue;
    ids.push_back(id);
  }
  return ids;
}

std::vector<TokenId> Tokenizer::end_of_turn_ids() const {
  std::vector<TokenId> ids = ends_of_turn_by_name(*this);
  const std::optional<TokenId> eos = eos_id();
  if (eos && std::ranges::find(ids, *eos) == ids.end()) ids.push_back(*eos);
  std::ranges::sort(ids);
  return ids;
}

}  // namespace engine
