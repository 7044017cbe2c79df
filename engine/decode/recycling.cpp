#include "engine/decode/recycling.h"

#include <algorithm>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr int kPairs = 1 << 15;

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
  if (options.tree == "own") return recycling_tree(options.rows, options.k);
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
  binder.whole(
      "rows", rows, 1, kMaxTreeRows,
      "Rows of a step with tree=own: the last token and the guesses. More rows are accepted "
      "further and cost more; 1 is plain decoding.");
  binder.whole("k", k, 1, 64,
               "Successors kept for each token. The memory is 4 k bytes for each token of the "
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
  binder.choice("learn", learn, {{"all", Learn::All}, {"accepted", Learn::Accepted}},
                "The rows from which the table learns: 'all' of a step (as published), or only the "
                "'accepted' ones.");
  binder.flag("keep", keep,
              "Keeps the table for the next texts of the same model, as published. Under rejection "
              "sampling every text starts with an empty table, so that a seed repeats its text.");
}

std::unique_ptr<Decoder> RecyclingOptions::make(const DecoderContext& context) const {
  return std::make_unique<RecyclingDecoder>(context, *this);
}

std::optional<TreeShape> RecyclingOptions::draft_shape() const {
  if (tree != "own") return std::nullopt;
  const RankTree own = recycling_tree(rows, k);
  return TreeShape{.n_tokens = own.n_nodes(), .depth = own.max_depth()};
}

RecyclingDecoder::RecyclingDecoder(const DecoderContext& context, const RecyclingOptions& options)
    : target_(context.target),
      limits_(context.limits),
      ranks_(tree_of(options, context.trees_dir)),
      learns_all_(options.learn == RecyclingOptions::Learn::All),
      table_(table_for(context, options)),
      verifier_(context.sampling, context.uniforms),
      n_verified_(static_cast<std::size_t>(ranks_.max_depth())),
      n_accepted_(n_verified_.size()),
      n_of_rank_(static_cast<std::size_t>(width_of(ranks_))) {}

Wants RecyclingDecoder::wants() const {
  Wants wants = verifier_.wants();
  if (ranks_.n_nodes() > 0) wants.n_top = std::min(table_->k(), target_.vocab_size());
  return wants;
}

TokenTree RecyclingDecoder::propose(const Sequence& prefix) {
  tree_.clear();
  tree_.add(prefix.last(), -1, RowTag{});
  const std::span<const TokenId> ends = limits_.eos_ids;
  add_successors(tree_, {.ranks = ranks_,
                         .table = *table_,
                         .before = second_last(prefix),
                         .max_depth = room_left(prefix, limits_, target_.max_seq_len()) - 1,
                         .end_ids = limits_.ignore_eos ? ends.first(0) : ends});
  n_guess_steps_ += tree_.n_rows() > 1;
  return tree_;
}

void RecyclingDecoder::learn(const Sequence& prefix,
                             const TokenTree& tree,
                             const StepOutput& out,
                             int row) {
  table_->set(token_before(tree, row, second_last(prefix)),
              tree.token[static_cast<std::size_t>(row)], out.top_of(row));
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
    counts[name + "_judged"] = n_verified_[depth];
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
