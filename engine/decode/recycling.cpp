#include "engine/decode/recycling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr int kPairs = 1 << 15;
/// Limits of rows=auto: guesses of a step, their depth, and the least probability that the path to one is right.
constexpr int kMostGuesses = 31, kMostDepth = 12;
constexpr double kLeastRight = 0.02;

/// [depth][rank] assumed share of nodes whose token is right, of those whose parent was accepted: falling with the
/// rank, equal at every depth. Only their order decides a tree's shape.
const HeadAccuracies& assumed_shares() {
  static const HeadAccuracies shares = [] {
    const std::vector<double> first{.42, .10, .05, .03, .02, .015, .012, .01};
    return HeadAccuracies(8, first);
  }();
  return shares;
}

/// Number of ranks that the tree asks for.
int width_of(const RankTree& tree) {
  int width = 0;
  for (const int rank : tree.rank) width = std::max(width, rank + 1);
  return width;
}

RankTree tree_of(const RecyclingOptions& options, const std::string& trees_dir) {
  if (options.tree == "own") return recycling_tree(options.rows.value_or(1), options.k);
  RankTree tree = find_rank_tree(options.tree, trees_dir);
  const int width = width_of(tree);
  if (width <= options.k) return tree;
  throw Error(ErrorCode::Usage,
              fmt::format("recycling: tree {}: found rank {}, expected ranks below k={}; raise k "
                          "or name another tree",
                          tree.name, width - 1, options.k));
}

/// The table that all runs of the target share, or one of its own. Under rejection sampling the draws depend on the
/// guesses, so a run starts without knowledge and its seed gives the same text again.
std::shared_ptr<SuccessorTable> table_for(const DecoderContext& context,
                                          const RecyclingOptions& options) {
  const int n_vocab = context.target.vocab_size(), n_pairs = options.pairs ? kPairs : 0;
  if (options.keep && context.successors && !rejects(context.sampling))
    return context.successors->table(n_vocab, options.k, n_pairs);
  return std::make_shared<SuccessorTable>(n_vocab, options.k, n_pairs);
}

/// The token before the last one; -1: none.
TokenId second_last(const Sequence& prefix) {
  const auto tokens = prefix.tokens();
  return tokens.size() > 1 ? tokens[tokens.size() - 2] : -1;
}

}  // namespace

RankTree recycling_tree(int n_rows, int k) {
  HeadAccuracies shares = assumed_shares();
  for (std::vector<double>& ranks : shares)
    ranks.resize(std::min(ranks.size(), static_cast<std::size_t>(k)));
  RankTree tree = grow_rank_tree(shares, n_rows);
  tree.name = "own";
  return tree;
}

DecoderInfo RecyclingOptions::describe() {
  DecoderInfo info;
  info.name = "recycling";
  info.title = "Token recycling";
  info.summary =
      "Keeps the tokens that the model ranked highest after each token, and guesses a small tree "
      "of "
      "them in each step.";
  info.reference = "Luo et al. 2024, arXiv:2408.08696";
  info.supports_rejection = true;
  return info;
}

void RecyclingOptions::bind(OptionBinder& binder) {
  binder.whole_or_auto(
      "rows", rows, 1, kMaxTreeRows,
      "Rows of a step with tree=own: the last token and the guesses. More rows are accepted "
      "further and cost more; 1 is plain decoding. 'auto' guesses the successors that are worth "
      "the "
      "time of their rows, by the success of earlier guesses.");
  binder.whole("k", k, 1, 64,
               "Successors kept for each token. The memory is 4 k + 1 bytes for each token of the "
               "vocabulary.");
  std::vector<std::string> trees{"own"};
  trees.insert(trees.end(), bundled_trees().begin(), bundled_trees().end());
  trees.push_back("none");
  binder.tree("tree", tree, std::move(trees),
              "The tree of guesses, by rank: grown for `rows` rows from assumed shares of right "
              "guesses ('own'), a bundled one, or a .json file. 'none' is plain decoding.");
  binder.flag(
      "pairs", pairs,
      "Keeps successors of the last two tokens too, and guesses these if the pair was seen. "
      "Off: of the last token only, as published.");
  binder.flag(
      "prompt", prompt,
      "Before the first step, fills the table with the prompt's tokens and their successors.");
  binder.choice("learn", learn, {{"all", Learn::All}, {"accepted", Learn::Accepted}},
                "The rows from which the table learns: 'all' of a step (as published), or only the "
                "'accepted' ones.");
  binder.flag(
      "keep", keep,
      "Keeps the table for the next prompts of the same model, as published. Under rejection "
      "sampling every run starts with a new table, so that a seed gives the same tokens again "
      "(unless rows=auto).");
}

std::unique_ptr<Decoder> RecyclingOptions::make(const DecoderContext& context) const {
  return std::make_unique<RecyclingDecoder>(context, *this);
}

std::optional<TreeShape> RecyclingOptions::draft_shape() const {
  if (tree != "own" || !rows) return std::nullopt;
  const RankTree own = recycling_tree(*rows, k);
  return TreeShape{.n_tokens = own.n_nodes(), .depth = own.max_depth()};
}

RecyclingDecoder::RecyclingDecoder(const DecoderContext& context, const RecyclingOptions& options)
    : target_(context.target),
      limits_(context.limits),
      ranks_(tree_of(options, context.trees_dir)),
      learns_all_(options.learn == RecyclingOptions::Learn::All),
      reads_prompt_(options.prompt),
      knows_sureness_(!rejects(context.sampling)),
      table_(table_for(context, options)),
      verifier_(context.sampling, context.uniforms),
      control_(context.control, context.choices) {
  const bool chooses = options.chooses_sizes();
  if (chooses)
    known_ = &control_.knowledge<SuccessorKnowledge>("recycling", rejects(context.sampling));
  n_verified_.resize(static_cast<std::size_t>(chooses ? kMostDepth : ranks_.max_depth()));
  n_accepted_.resize(n_verified_.size());
  n_of_rank_.resize(static_cast<std::size_t>(chooses ? options.k : width_of(ranks_)));
}

void RecyclingDecoder::begin(const Sequence& prefix) {
  const auto tokens = prefix.tokens();
  for (std::size_t i = 1; reads_prompt_ && i < tokens.size(); i++)
    table_->observe(i > 1 ? tokens[i - 2] : -1, tokens[i - 1], tokens[i]);
}

Wants RecyclingDecoder::wants() const {
  Wants wants = verifier_.wants();
  if (known_ || ranks_.n_nodes() > 0) wants.n_top = std::min(table_->k(), target_.vocab_size());
  return wants;
}

TokenTree RecyclingDecoder::propose(const Sequence& prefix) {
  tree_.clear();
  tree_.add(prefix.last(), -1, RowTag{});
  const int max_depth = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  if (known_)
    add_likeliest(prefix, max_depth);
  else
    add_successors(tree_, {.ranks = ranks_,
                           .table = *table_,
                           .before = second_last(prefix),
                           .max_depth = max_depth,
                           .end_ids = end_ids()});
  n_guess_steps_ += tree_.n_rows() > 1;
  return tree_;
}

/// Tokens after which nothing is guessed.
std::span<const TokenId> RecyclingDecoder::end_ids() const {
  const std::span<const TokenId> ends = limits_.eos_ids;
  return limits_.ignore_eos ? ends.first(0) : ends;
}

/// Adds the likeliest successors, as many as are worth their time.
void RecyclingDecoder::add_likeliest(const Sequence& prefix, int max_depth) {
  const LikelyTree<SuccessorToken> found =
      likely_successors(*known_, *table_,
                        {.before = second_last(prefix),
                         .last = prefix.last(),
                         .max_tokens = kMostGuesses,
                         .max_depth = std::min(max_depth, kMostDepth),
                         .least = kLeastRight,
                         .end_ids = end_ids()});
  decision_ = known_->choose(found, control_);
  for (int i = 0; i < decision_.size; i++) {
    const SuccessorToken& node = found.node(i);
    tree_.add(node.token, node.parent + 1,  // row 0 is the last token
              RowTag{RowTag::Kind::Guess, static_cast<std::int16_t>(node.depth + 1),
                     static_cast<std::int16_t>(node.rank)});
  }
  candidates_ = found.candidates();
}

void RecyclingDecoder::learn(const Sequence& prefix,
                             const TokenTree& tree,
                             const StepOutput& out,
                             int row) {
  const auto at = static_cast<std::size_t>(row);
  const kernels::Picked& picked = out.picked[at];
  const bool is_known = knows_sureness_ && picked.id == out.top_of(row)[0];
  table_->set(token_before(tree, row, second_last(prefix)), tree.token[at], out.top_of(row),
              is_known ? sureness_of(std::exp(picked.logp)) : Sureness::Unknown);
}

// The accepted rows are learned last: of several lists for one token the text's own is kept.
Decision RecyclingDecoder::verify(const Sequence& prefix,
                                  const TokenTree& tree,
                                  const StepOutput& out) {
  Decision decision = verifier_(prefix, tree, out);
  if (out.top.empty()) return decision;
  for (int row = 0; learns_all_ && row < tree.n_rows(); row++) learn(prefix, tree, out, row);
  for (const int row : decision.path) learn(prefix, tree, out, row);
  return decision;
}

void RecyclingDecoder::committed(const Sequence& /*prefix*/, const Decision& cut) {
  if (known_) known_->learn(candidates_, cut.emitted, decision_);
  n_hit_steps_ += cut.emitted.size() > 1;
  const std::vector<RowFate> fate = fates_of(tree_, cut);
  std::vector<bool> has_guesses(fate.size());
  for (std::size_t row = 1; row < fate.size(); row++) {
    has_guesses[static_cast<std::size_t>(tree_.parent[row])] = true;
    if (fate[row] != RowFate::Accepted) continue;
    n_accepted_[static_cast<std::size_t>(tree_.tag[row].a - 1)]++;
    n_of_rank_[static_cast<std::size_t>(tree_.tag[row].b)]++;
  }
  for (const int row : cut.path) {
    const auto at = static_cast<std::size_t>(row);
    if (has_guesses[at]) n_verified_[static_cast<std::size_t>(tree_.tag[at].a)]++;
  }
}

std::map<std::string, std::int64_t> RecyclingDecoder::counts() const {
  std::map<std::string, std::int64_t> counts{{"guess_steps", n_guess_steps_},
                                             {"hit_steps", n_hit_steps_}};
  for (std::size_t depth = 0; depth < n_verified_.size(); depth++) {
    const std::string name = fmt::format("depth_{}", depth + 1);
    counts[name + "_verified"] = n_verified_[depth];
    counts[name + "_accepted"] = n_accepted_[depth];
  }
  for (std::size_t rank = 0; rank < n_of_rank_.size(); rank++)
    counts[fmt::format("rank_{}_accepted", rank)] = n_of_rank_[rank];
  return counts;
}

std::map<std::string, double> RecyclingDecoder::figures() const {
  return {{"table_tokens", table_->n_tokens()}};
}

}  // namespace engine
