#include "engine/decode/prompt_lookup.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

/// The guess that starts at `begin`; empty if this occurrence yields none.
std::vector<TokenId> continuation(std::span<const TokenId> text,
                                  int begin,
                                  int ngram,
                                  int n_tokens,
                                  LookupVariant variant,
                                  std::span<const TokenId> eos_ids) {
  const int n = static_cast<int>(text.size());
  if (variant == LookupVariant::Paper) {
    // Accepts only a continuation of n_tokens tokens that begins before the suffix.
    if (begin + n_tokens > n || begin >= n - ngram) return {};
    return {text.begin() + begin, text.begin() + begin + n_tokens};
  }
  std::vector<TokenId> guess;
  for (int i = begin; static_cast<int>(guess.size()) < n_tokens; i++) {
    if (i >= n && variant == LookupVariant::Hf) break;
    const TokenId token =
        i < n ? text[static_cast<std::size_t>(i)] : guess[static_cast<std::size_t>(i - n)];
    if (std::ranges::find(eos_ids, token) != eos_ids.end()) break;
    guess.push_back(token);
  }
  return guess;
}

}  // namespace

std::optional<LookupMatch> look_up(std::span<const TokenId> text,
                                   int max_ngram,
                                   int n_tokens,
                                   LookupVariant variant,
                                   std::span<const TokenId> eos_ids) {
  const int n = static_cast<int>(text.size());
  const bool last = variant == LookupVariant::Last;
  for (int ngram = std::min(max_ngram, n - 1); ngram >= 1; ngram--) {
    const auto suffix = text.last(static_cast<std::size_t>(ngram));
    const int n_starts = n - ngram;  // excludes the suffix itself
    for (int i = 0; i < n_starts; i++) {
      const int start = last ? n_starts - 1 - i : i;
      if (text[static_cast<std::size_t>(start)] != suffix[0]) continue;
      if (!std::equal(suffix.begin(), suffix.end(), text.begin() + start)) continue;
      const int begin = start + ngram;
      auto guess = continuation(text, begin, ngram, n_tokens, variant, eos_ids);
      if (!guess.empty()) return LookupMatch{begin, ngram, std::move(guess)};
    }
  }
  return std::nullopt;
}

DecoderInfo PromptLookupOptions::describe() {
  DecoderInfo info;
  info.name = "prompt-lookup";
  info.title = "Prompt lookup";
  info.summary =
      "Searches the text for an earlier occurrence of its last few tokens and guesses that the "
      "tokens after it follow again.";
  info.reference = "Saxena 2023, prompt-lookup-decoding";
  info.supports_rejection = true;
  return info;
}

void PromptLookupOptions::bind(OptionBinder& binder) {
  binder.whole(
      "max_ngram", max_ngram, 1, 16,
      "Length of the longest n-gram to search for: the last tokens of the text. Shorter ones "
      "follow. Longer matches are rarer and more often right.");
  binder.whole(
      "n_tokens", n_tokens, 1, 128,
      "Tokens guessed after a match. Each costs a row; those after the first wrong one are "
      "wasted.");
  binder.choice(
      "variant", variant,
      {{"last", LookupVariant::Last}, {"hf", LookupVariant::Hf}, {"paper", LookupVariant::Paper}},
      "The match to use: the 'last' one; the first one, as in Hugging Face ('hf'); or the first "
      "one with n_tokens tokens after it ('paper').");
}

std::unique_ptr<Decoder> PromptLookupOptions::make(const DecoderContext& context) const {
  return std::make_unique<PromptLookupDecoder>(context, *this);
}

PromptLookupDecoder::PromptLookupDecoder(const DecoderContext& context,
                                         const PromptLookupOptions& options)
    : target_(context.target),
      limits_(context.limits),
      options_(options),
      verifier_(context.sampling, context.uniforms) {}

TokenTree PromptLookupDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  const auto match = look_up(prefix.tokens(), options_.max_ngram, options_.n_tokens,
                             options_.variant, limits_.eos_ids);
  guessed_ = match.has_value();
  (guessed_ ? n_matches_ : n_misses_)++;
  if (!match) return tree;
  for (int j = 0; j < std::min(static_cast<int>(match->tokens.size()), room); j++) {
    tree.add(match->tokens[static_cast<std::size_t>(j)], j,
             RowTag{RowTag::Kind::Guess, 0, static_cast<std::int16_t>(j)});
  }
  return tree;
}

Decision PromptLookupDecoder::verify(const Sequence& prefix,
                                     const TokenTree& tree,
                                     const StepOutput& out) {
  return verifier_(prefix, tree, out);
}

void PromptLookupDecoder::committed(const Sequence& /*prefix*/, const Decision& cut) {
  n_hit_steps_ += guessed_ && cut.emitted.size() > 1;
}

std::map<std::string, std::int64_t> PromptLookupDecoder::counts() const {
  return {{"lookup_matches", n_matches_},
          {"lookup_misses", n_misses_},
          {"lookup_hit_steps", n_hit_steps_}};
}

}  // namespace engine
