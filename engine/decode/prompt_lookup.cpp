#include "engine/decode/prompt_lookup.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/decode/control/rate.h"
#include "engine/decode/control/size_choice.h"

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

/// Guessed tokens of n_tokens=auto at most.
constexpr int kMostTokens = 32;
constexpr int kPaperTokens = 10;  // the published variant takes no match with fewer
constexpr int kLongestMatch = 16;

/// Length of the equal texts before `begin` and at the end.
int match_length(std::span<const TokenId> text, int begin) {
  const auto same = std::mismatch(text.rbegin(), text.rbegin() + std::min(begin, kLongestMatch),
                                  text.rend() - begin);
  return static_cast<int>(same.first - text.rbegin());
}

}  // namespace

class LookupKnowledge final : public Learned {
 public:
  Rate& after(int length) { return rates_[bucket(length)]; }
  void fade() {
    for (Rate& rate : rates_) rate.fade();
  }
  SizeChooser chooser;

 private:
  /// Lengths 1, 2, 3, 4 to 5, 6 to 9, and 10 or more.
  static std::size_t bucket(int length) {
    if (length <= 3) return static_cast<std::size_t>(std::max(length, 1) - 1);
    return length <= 5 ? 3 : length <= 9 ? 4 : 5;
  }
  std::array<Rate, 6> rates_{Rate(0.2), Rate(0.35), Rate(0.5), Rate(0.6), Rate(0.7), Rate(0.8)};
};

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
      "Length of the longest n-gram to search for: the last tokens of the text. If it is not "
      "found, shorter ones are tried. Longer matches are rarer and more often right.");
  binder.whole_or_auto(
      "n_tokens", n_tokens, 1, 128,
      "Tokens guessed after a match. Each costs a row; those after the first wrong one are wasted. "
      "'auto' chooses the number in every step, by the measured time of rows and the success of "
      "earlier guesses.");
  binder.choice(
      "variant", variant,
      {{"last", LookupVariant::Last}, {"hf", LookupVariant::Hf}, {"paper", LookupVariant::Paper}},
      "The match to use: the 'last' one; the first one, as in Hugging Face ('hf'); or the first "
      "one with n_tokens tokens after it ('paper').");
}

std::unique_ptr<Decoder> PromptLookupOptions::make(const DecoderContext& context) const {
  return std::make_unique<PromptLookupDecoder>(context, *this);
}

namespace {

/// Where token `i` of a guess was copied from. A guess that reaches the end of the sequence starts
/// over.
GuessSource source_of(const LookupMatch& match, int i, const Sequence& prefix) {
  const auto n = static_cast<int>(prefix.tokens().size());
  const auto n_prompt = static_cast<int>(prefix.prompt().size());
  const int pos = match.begin + i % (n - match.begin);
  return {.kind = pos < n_prompt ? GuessSource::Kind::Prompt : GuessSource::Kind::Text, .pos = pos};
}

}  // namespace

PromptLookupDecoder::PromptLookupDecoder(const DecoderContext& context,
                                         const PromptLookupOptions& options)
    : target_(context.target),
      limits_(context.limits),
      options_(options),
      verifier_(context.sampling, context.uniforms),
      control_(context.control, context.choices) {
  if (!options.n_tokens)
    known_ = &control_.knowledge<LookupKnowledge>(
        "prompt-lookup " + std::to_string(static_cast<int>(options.variant)),
        rejects(context.sampling));
}

TokenTree PromptLookupDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  const int most = options_.variant == LookupVariant::Paper ? kPaperTokens : kMostTokens;
  auto match = look_up(prefix.tokens(), options_.max_ngram, options_.n_tokens.value_or(most),
                       options_.variant, limits_.eos_ids);
  (match ? n_matches_ : n_misses_)++;
  match_ = match ? *std::move(match) : LookupMatch();
  int size = std::min(static_cast<int>(match_.tokens.size()), room);
  if (known_) {
    match_length_ = match_.tokens.empty() ? 0 : match_length(prefix.tokens(), match_.begin);
    size = choose_size(size);
  }
  guessed_ = size > 0;
  sources_.assign(1, GuessSource{});
  for (int j = 0; j < size; j++) {
    tree.add(match_.tokens[static_cast<std::size_t>(j)], j,
             RowTag{RowTag::Kind::Guess, 0, static_cast<std::int16_t>(j)});
    sources_.push_back(source_of(match_, j, prefix));
  }
  return tree;
}

/// @param most  tokens that the match and the room allow
int PromptLookupDecoder::choose_size(int most) {
  std::vector<SizePlan> plans{{1, 1, control_->ms(1)}};
  double right = 1;  // probability that all tokens so far are right
  for (int n = 1; n <= most; n++) {
    right *= known_->after(match_length_ + n - 1).mean();
    const double tokens = plans.back().tokens + right;
    plans.push_back({tokens, tokens, control_->ms(1 + n)});  // learned without probes
  }
  SizeChoice choice = known_->chooser.choose(plans);
  choice.index = control_.decide(choice.index, plans.size());
  decision_ = decision_of(choice, plans, static_cast<int>(choice.index));
  return decision_.size;
}

/// Counts the guessed tokens that were right or wrong. The target's own token also shows whether the
/// next guessed token would have been right, even if that token had no row.
void PromptLookupDecoder::learn(const Decision& cut) {
  const auto& guess = match_.tokens;
  for (std::size_t i = 0; i < std::min(guess.size(), cut.emitted.size()); i++) {
    const bool is_right = guess[i] == cut.emitted[i];
    known_->after(match_length_ + static_cast<int>(i)).add(is_right);
    if (!is_right) break;
  }
  known_->fade();
  known_->chooser.came(static_cast<int>(cut.emitted.size()), decision_.ms / decision_.plain_ms);
}

Decision PromptLookupDecoder::verify(const Sequence& prefix,
                                     const TokenTree& tree,
                                     const StepOutput& out) {
  return verifier_(prefix, tree, out);
}

void PromptLookupDecoder::committed(const Sequence& /*prefix*/, const Decision& cut) {
  if (known_) learn(cut);
  n_hit_steps_ += guessed_ && cut.emitted.size() > 1;
}

std::map<std::string, std::int64_t> PromptLookupDecoder::counts() const {
  return {{"lookup_matches", n_matches_},
          {"lookup_misses", n_misses_},
          {"lookup_hit_steps", n_hit_steps_}};
}

}  // namespace engine
