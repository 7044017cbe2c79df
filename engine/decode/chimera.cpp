#include "engine/decode/chimera.h"

#include <algorithm>
#include <numeric>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/step/prefill_blocks.h"
#include "engine/event/clock.h"

namespace engine {
namespace {

constexpr int kPromptRows = 256;  // rows of one forward over the prompt

ChimeraHeads& heads_of(const DecoderContext& context) {
  auto* heads = dynamic_cast<ChimeraHeads*>(context.heads);
  ensure(heads != nullptr, "chimera was created without its heads");
  return *heads;
}

/// The most frequent k-grams of texts, at most `n`, the most frequent last, so that a cache drops it last.
/// @return  [n, k]
std::vector<TokenId> frequent_grams(const SuffixAutomaton& texts, int k, int n) {
  std::vector<std::pair<int, std::vector<TokenId>>> found;
  std::vector<TokenId> gram;
  const auto walk = [&](const auto& deeper, int state) -> void {
    if (std::ssize(gram) == k) {
      found.emplace_back(texts.count(state), gram);
      return;
    }
    texts.for_each_next(state, [&](TokenId token, int next) {
      gram.push_back(token);
      deeper(deeper, next);
      gram.pop_back();
    });
  };
  walk(walk, 0);
  std::ranges::sort(found);
  const auto first = found.size() - std::min(found.size(), static_cast<std::size_t>(n));
  std::vector<TokenId> grams;
  for (std::size_t i = first; i < found.size(); ++i)
    grams.insert(grams.end(), found[i].second.begin(), found[i].second.end());
  return grams;
}

}  // namespace

DecoderInfo ChimeraOptions::describe() {
  DecoderInfo info;
  info.name = "chimera";
  info.title = "Chimera";
  info.summary =
      "Draft heads that also read the drafted tokens, through an encoder of k-grams and one "
      "transformer block. The model verifies their tree in one step.";
  info.reference = "Zeng et al. 2024, arXiv:2402.15758";
  info.reads_pool = true;
  describe_needs(info);
  return info;
}

void ChimeraOptions::bind(OptionBinder& binder) {
  bind_heads(binder);
  binder.choice("drafting", drafting, {{"chain", Drafting::Chain}, {"branch", Drafting::Branch}},
                "'chain' runs the heads once per level, after their most likely tokens, and all "
                "branches of the level get the same candidates; 'branch' runs them for each "
                "branch, which guesses better and costs more.");
  binder.whole("cache", cache, 0, 1 << 20,
               "Encoded k-grams kept in a cache; 0 keeps none. With a file of text (--pool) the "
               "cache is first filled with its most frequent ones. It changes no token.");
  binder.flag(
      "keep", keep,
      "Keeps the cache for the next prompts of the same model. A file (--pool) fills it only "
      "while it is empty.");
}

std::unique_ptr<Decoder> ChimeraOptions::make(const DecoderContext& context) const {
  return std::make_unique<ChimeraDecoder>(context, *this);
}

ChimeraDecoder::ChimeraDecoder(const DecoderContext& context, const ChimeraOptions& options)
    : HeadTreeDecoder(context, options, heads_of(context).n_heads()),
      target_(context.target),
      heads_(heads_of(context)),
      branches_(options.drafting == ChimeraOptions::Drafting::Branch),
      cache_(options.keep ? heads_.kept_cache(options.cache)
                          : std::make_shared<GramCache>(options.cache)),
      sequence_(heads_.make_sequence(cache_)) {
  const PoolFile* file = context.texts ? context.texts->file() : nullptr;
  if (file && options.cache > 0 && cache_->size() == 0)
    sequence_->fill_cache(frequent_grams(file->index, heads_.gram(), options.cache));
}

/// Appends the last k-gram of `tokens` followed by `drafted`; a position before the
/// sequence has the id -1.
void ChimeraDecoder::add_gram(std::vector<TokenId>& grams,
                              std::span<const TokenId> tokens,
                              std::span<const TokenId> drafted) const {
  const auto n = static_cast<std::ptrdiff_t>(tokens.size() + drafted.size());
  for (std::ptrdiff_t i = n - heads_.gram(); i < n; i++) {
    const auto at = static_cast<std::size_t>(i);
    if (i < 0)
      grams.push_back(-1);
    else
      grams.push_back(at < tokens.size() ? tokens[at] : drafted[at - tokens.size()]);
  }
}

/// Appends hidden states to the heads' cache.
/// @param tokens  the sequence up to the last of these states
/// @param hidden  [n, dim] the states of its last n tokens, those that the heads do not have yet
void ChimeraDecoder::append_states(std::span<const TokenId> tokens, std::span<const float> hidden) {
  std::vector<TokenId> grams;
  for (auto i = static_cast<std::size_t>(sequence_->length()); i < tokens.size(); i++)
    add_gram(grams, tokens.first(i + 1), {});
  sequence_->append(hidden, grams);
}

// prefill() keeps at most the last hidden state, because most lanes need none. Chimera's heads read
// all hidden states.
void ChimeraDecoder::begin(const Sequence& prefix) {
  const auto known = prefix.cached_tokens();
  const auto cache = target_.make_cache();
  const int n_known = static_cast<int>(known.size()), block = target_.prompt_block();
  for (std::size_t begin = 0, end = 0; begin < known.size(); begin = end) {
    TokenTree rows;
    const auto piece = next_prefill_chunk(static_cast<int>(begin), n_known, kPromptRows, block);
    end = begin + static_cast<std::size_t>(piece.n_rows);
    for (std::size_t i = begin; i < end; i++) rows.add(known[i], rows.n_rows() - 1, RowTag{});
    BatchItem item{.cache = cache.get(), .tree = &rows, .prefix = known.first(begin)};
    item.pick_rows = false;
    item.n_prompt = n_known + 1;
    item.in_blocks = piece.in_blocks;
    const auto out = target_.forward(std::span(&item, 1), {.hidden = true});
    std::vector<int> path(rows.token.size());
    std::iota(path.begin(), path.end(), 0);
    cache->commit(path);
    append_states(known.first(end), out.front().hidden);
  }
  // waits for the last chunk, because the heads read its states on the target's device
  if (!known.empty()) target_.finish();
}

bool ChimeraDecoder::begin_draft(const Sequence& prefix, int depth) {
  tokens_ = prefix.tokens();
  append_states(tokens_.first(tokens_.size() - 1), take_hidden());
  // With a prompt of one token, no state is known before the first step.
  if (depth == 0 || sequence_->length() == 0) return false;
  ensure(sequence_->length() + 1 == static_cast<int>(tokens_.size()),
         "the heads must have the hidden states of all tokens but the last");
  sequence_->begin_draft();
  chain_.clear();
  place_.clear();
  n_places_ = 0;
  return true;
}

std::vector<RankedTokens> ChimeraDecoder::level(std::span<const int> parents,
                                                std::span<const TokenId> grams,
                                                int width) {
  DraftForward forward{.begun = now_ns(), .n_rows = static_cast<int>(parents.size())};
  std::vector<RankedTokens> ranked = sequence_->ranked_level(parents, grams, width);
  forward.ended = now_ns();
  add_forward(forward);
  return ranked;
}

std::vector<RankedTokens> ChimeraDecoder::rank(const TokenTree& tree,
                                               int depth,
                                               std::span<const int> parents,
                                               int width) {
  std::vector<TokenId> grams;
  std::vector<int> above;
  if (!branches_) {
    add_gram(grams, tokens_, chain_);
    above.push_back(depth - 2);  // the row of the previous token of the chain
    std::vector<RankedTokens> ranked = level(above, grams, width);
    // If a head returns no tokens, the tree has no rows below and no further head runs.
    if (!ranked[0].token.empty()) chain_.push_back(ranked[0].token[0]);
    return ranked;
  }
  place_.resize(tree.token.size(), -1);
  for (const int row : parents) {
    std::vector<TokenId> drafted;
    const std::vector<int> path = chain_of(tree, row);
    for (std::size_t i = 1; i < path.size(); i++)
      drafted.push_back(tree.token[static_cast<std::size_t>(path[i])]);
    add_gram(grams, tokens_, drafted);
    const int parent = tree.parent[static_cast<std::size_t>(row)];
    above.push_back(parent < 0 ? -1 : place_[static_cast<std::size_t>(parent)]);
    place_[static_cast<std::size_t>(row)] = n_places_++;
  }
  return level(above, grams, width);
}

std::map<std::string, std::int64_t> ChimeraDecoder::counts() const {
  std::map<std::string, std::int64_t> counts = HeadTreeDecoder::counts();
  const GramCounts grams = sequence_->gram_counts();
  counts["gram_lookups"] = grams.n_looked_up;
  counts["gram_hits"] = grams.n_found;
  counts["gram_evictions"] = grams.n_evicted;
  return counts;
}

}  // namespace engine
