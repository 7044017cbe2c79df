#include "engine/decode/suffix.h"

#include <algorithm>
#include <utility>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/verify/sampling.h"
#include "engine/event/drafted_by.h"

namespace engine {
namespace {

/// Most tokens that n_tokens=auto guesses, and the least probability that the path to one is right.
constexpr int kMostTokens = 31;
constexpr double kLeastRight = 0.02;

}  // namespace

DecoderInfo SuffixOptions::describe() {
  DecoderInfo info;
  info.name = "suffix";
  info.title = "Suffix decoding";
  info.summary =
      "Searches the prompt, the output so far and earlier outputs for the last tokens of the "
      "sequence, and guesses the tokens that most often followed them.";
  info.reference = "Oliaro et al. 2024, arXiv:2411.04975";
  info.supports_rejection = true;
  info.reads_pool = true;
  return info;
}

void SuffixOptions::bind(OptionBinder& binder) {
  binder.whole_or_auto(
      "n_tokens", n_tokens, 1, 256,
      "Most tokens guessed in a step. Each costs a row. 'auto' guesses those that are worth the "
      "time of their rows, by the success of earlier guesses.");
  binder.real("factor", factor, 0.1, 100,
              "Alpha: tokens guessed per token of the match. A long match predicts more tokens "
              "than a short one. Not used with n_tokens=auto.");
  binder.real("min_p", min_p, 0, 1,
              "Least share of a guess: how often the tokens followed there, of all times that "
              "anything followed. Not used with n_tokens=auto.");
  binder.choice("shape", shape, {{"tree", Shape::Tree}, {"chain", Shape::Chain}},
                "'tree': several continuations of a match if they are likely enough; 'chain': the "
                "most frequent one.");
  binder.flag("earlier", earlier,
              "Also search the outputs of earlier runs with this decoder (not under rejection "
              "sampling).");
  binder.whole("keep_tokens", keep_tokens, 0, 16'777'216,
               "Tokens of earlier outputs that are kept in memory, some 150 bytes each; the oldest "
               "outputs are dropped first. 0: keeps none.");
}

std::unique_ptr<Decoder> SuffixOptions::make(const DecoderContext& context) const {
  return std::make_unique<SuffixDecoder>(context, *this);
}

// A rejection sampler keeps the distribution only if its proposals are independent of its uniform
// numbers. An earlier run with the same seed has used the same numbers, so its text is not.
SuffixDecoder::SuffixDecoder(const DecoderContext& context, const SuffixOptions& options)
    : target_(context.target),
      limits_(context.limits),
      options_(options),
      texts_(context.texts),
      copies_runs_(options.earlier && !rejects(context.sampling)),
      verifier_(context.sampling, context.uniforms),
      control_(context.control, context.choices) {
  if (options.chooses_sizes())
    known_ = &control_.knowledge<SuffixKnowledge>("suffix", rejects(context.sampling));
}

void SuffixDecoder::begin(const Sequence& prefix) {
  n_prompt_ = static_cast<int>(prefix.tokens().size());
  for (const TokenId token : prefix.tokens()) own_.append(token);
}

/// The texts that are searched, and the longest end of the sequence that occurs in each.
std::vector<SearchedText> SuffixDecoder::matches(const Sequence& prefix) const {
  std::vector<SearchedText> texts{{&own_, own_.repeated_suffix(), GuessSource::Kind::Text}};
  if (!texts_) return texts;
  const auto search = [&](const SuffixAutomaton& index, GuessSource::Kind kind) {
    texts.push_back({&index, index.longest_suffix(searched_end(prefix.tokens())), kind});
  };
  if (copies_runs_) search(texts_->runs(), GuessSource::Kind::Earlier);
  if (const PoolFile* file = texts_->file()) search(file->index, GuessSource::Kind::File);
  return texts;
}

SuffixDraftLimits SuffixDecoder::draft_limits(const Sequence& prefix) const {
  return {.factor = options_.factor,
          .max_tokens = options_.n_tokens.value_or(kMostTokens),
          .max_depth = room_left(prefix, limits_, target_.max_seq_len()) - 1,
          .min_p = known_ ? kLeastRight : options_.min_p,
          .chain = options_.shape == SuffixOptions::Shape::Chain,
          .never = limits_.eos_ids};
}

/// Adds the draft with the highest score of all texts.
void SuffixDecoder::add_best_draft(TokenTree& tree, const Sequence& prefix) {
  SuffixDraft best;
  GuessSource::Kind kind = GuessSource::Kind::None;
  for (const SearchedText& text : matches(prefix)) {
    SuffixDraft draft = suffix_draft(*text.index, text.match, draft_limits(prefix));
    if (draft.score > best.score) best = std::move(draft), kind = text.kind;
  }
  for (const SuffixDraftNode& node : best.nodes) add_row(tree, node, kind);
  n_matched_ += best.match_length;
}

/// Adds the likeliest tokens of all texts, as many as are worth their time.
void SuffixDecoder::add_chosen(TokenTree& tree, const Sequence& prefix) {
  const std::vector<SearchedText> texts = matches(prefix);
  const LikelyTree<SuffixToken> found = suffix_tree(*known_, texts, draft_limits(prefix));
  decision_ = known_->choose(found, control_);
  for (int i = 0; i < decision_.size; i++) {
    const SuffixToken& node = found.node(i);
    add_row(tree, {node.token, node.parent, node.state, node.n_seen, node.n_context, node.right},
            texts[node.text].kind);
  }
  if (decision_.size > 0)
    n_matched_ += std::ranges::max(texts, {}, [](const SearchedText& text) {
                    return text.match.length;
                  }).match.length;
  candidates_ = found.candidates();
}

GuessSource SuffixDecoder::source_of(const SuffixDraftNode& node, GuessSource::Kind kind) const {
  GuessSource source;
  if (kind == GuessSource::Kind::Earlier) {
    source = texts_->source_in_runs(texts_->runs().newest(node.state));
  } else if (kind == GuessSource::Kind::File) {
    source.kind = kind;
    source.pos = texts_->file()->index.newest(node.state);
  } else {
    source.pos = own_.newest(node.state);
    source.kind = source.pos < n_prompt_ ? GuessSource::Kind::Prompt : GuessSource::Kind::Text;
  }
  source.n_seen = node.n_seen;
  source.n_context = node.n_context;
  return source;
}

void SuffixDecoder::add_row(TokenTree& tree, const SuffixDraftNode& node, GuessSource::Kind kind) {
  const int parent = node.parent + 1;  // row 0 is the last token
  const int depth = parent == 0 ? 0 : tree.tag[static_cast<std::size_t>(parent)].b + 1;
  sources_.push_back(source_of(node, kind));
  tree.add(node.token, parent, copied_tag(sources_.back().kind, depth));
}

TokenTree SuffixDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  sources_.assign(1, GuessSource{});
  if (known_)
    add_chosen(tree, prefix);
  else
    add_best_draft(tree, prefix);
  (tree.n_rows() == 1 ? n_misses_ : n_drafts_)++;
  tree_ = tree;
  return tree;
}

Decision SuffixDecoder::verify(const Sequence& prefix,
                               const TokenTree& tree,
                               const StepOutput& out) {
  return verifier_(prefix, tree, out);
}

void SuffixDecoder::committed(const Sequence& prefix, const Decision& cut) {
  if (known_) known_->learn(candidates_, cut.emitted, decision_);
  for (const TokenId token : prefix.tokens().subspan(static_cast<std::size_t>(own_.n_tokens())))
    own_.append(token);
  const std::vector<RowFate> fates = fates_of(tree_, cut);
  bool hit = false;
  for (std::size_t row = 0; row < fates.size(); row++) {
    if (fates[row] != RowFate::Accepted) continue;
    n_accepted_[static_cast<std::size_t>(sources_[row].kind)]++;
    hit = true;
  }
  n_hit_steps_ += hit;
}

std::map<std::string, std::int64_t> SuffixDecoder::counts() const {
  const auto of = [this](GuessSource::Kind kind) {
    return n_accepted_[static_cast<std::size_t>(kind)];
  };
  return {{"suffix_drafts", n_drafts_},
          {"suffix_misses", n_misses_},
          {"suffix_hit_steps", n_hit_steps_},
          {"copied_from_prompt", of(GuessSource::Kind::Prompt)},
          {"copied_from_text", of(GuessSource::Kind::Text)},
          {"copied_from_earlier", of(GuessSource::Kind::Earlier)},
          {"copied_from_file", of(GuessSource::Kind::File)}};
}

std::map<std::string, double> SuffixDecoder::figures() const {
  if (n_drafts_ == 0) return {};
  return {
      {"suffix_match_length", static_cast<double>(n_matched_) / static_cast<double>(n_drafts_)}};
}

}  // namespace engine
