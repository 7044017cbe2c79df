#include "engine/decode/prompt_lookup.h"

#include <algorithm>

#include "engine/decode/options.h"

namespace engine {
namespace {

LookupVariant variant_named(const std::string& name) {
  if (name == "paper") return LookupVariant::Paper;
  return name == "hf" ? LookupVariant::Hf : LookupVariant::Last;
}

/// Tokens that may be taken from `begin` on; 0: this occurrence does not serve.
int continuation(std::span<const TokenId> text,
                 int begin,
                 int ngram,
                 int n_tokens,
                 LookupVariant variant,
                 std::span<const TokenId> eos_ids) {
  const int n = static_cast<int>(text.size());
  if (variant == LookupVariant::Paper) {
    // Full length only, and begun before the suffix itself.
    return begin + n_tokens <= n && begin < n - ngram ? n_tokens : 0;
  }
  const int end = std::min(begin + n_tokens, n);
  const auto first = text.begin() + begin;
  return static_cast<int>(
      std::find_first_of(first, text.begin() + end, eos_ids.begin(), eos_ids.end()) - first);
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
    const int n_starts = n - ngram;  // the suffix itself is no occurrence
    for (int i = 0; i < n_starts; i++) {
      const int start = last ? n_starts - 1 - i : i;
      if (text[static_cast<std::size_t>(start)] != suffix[0]) continue;
      if (!std::equal(suffix.begin(), suffix.end(), text.begin() + start)) continue;
      const int begin = start + ngram;
      const int length = continuation(text, begin, ngram, n_tokens, variant, eos_ids);
      if (length > 0) return LookupMatch{begin, length, ngram};
    }
  }
  return std::nullopt;
}

PromptLookupDecoder::PromptLookupDecoder(const DecoderContext& context)
    : target_(context.target),
      limits_(context.limits),
      max_ngram_(int_option(context.options, "max_ngram")),
      n_tokens_(int_option(context.options, "n_tokens")),
      variant_(variant_named(text_option(context.options, "variant"))),
      verifier_(context.sampling, context.uniforms) {}

TokenTree PromptLookupDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  const std::span<const TokenId> text = prefix.tokens();
  const auto match = look_up(text, max_ngram_, n_tokens_, variant_, limits_.eos_ids);
  guessed_ = match.has_value();
  (guessed_ ? n_matches_ : n_misses_)++;
  if (!match) return tree;
  for (int j = 0; j < std::min(match->n_tokens, room); j++) {
    tree.add(text[static_cast<std::size_t>(match->begin + j)], j,
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

std::map<std::string, double> PromptLookupDecoder::metrics() const {
  return {{"lookup_matches", static_cast<double>(n_matches_)},
          {"lookup_misses", static_cast<double>(n_misses_)},
          {"lookup_hit_steps", static_cast<double>(n_hit_steps_)}};
}

}  // namespace engine
