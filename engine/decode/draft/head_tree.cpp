#include "engine/decode/draft/head_tree.h"

#include <algorithm>
#include <utility>

#include "engine/decode/verify/verify.h"

namespace engine {
namespace {

using Rule = HeadTreeOptions::Rule;

/// The tree named by the options. "own" is the tree in the heads' folder, or rows16 if that has
/// none.
RankTree tree_of(const DecoderContext& context, const std::string& name, int n_heads) {
  if (name == "own") {
    const std::string& own = context.heads_tree;
    return pruned(own.empty() ? find_rank_tree("rows16", context.trees_dir) : read_rank_tree(own),
                  n_heads);
  }
  RankTree tree = find_rank_tree(name, context.trees_dir);
  if (tree.max_depth() > n_heads) {
    throw Error(ErrorCode::Usage, "tree " + tree.name + ": found paths of " +
                                      std::to_string(tree.max_depth()) +
                                      " tokens, expected at most " + std::to_string(n_heads) +
                                      ", the number of heads; name another tree");
  }
  return tree;
}

}  // namespace

void HeadTreeOptions::describe_needs(DecoderInfo& info) {
  info.needs_heads = true;
  info.supports_rejection = true;
}

void HeadTreeOptions::bind_heads(OptionBinder& binder) {
  using Root = TypicalSettings::Root;
  std::vector<std::string> trees{"own"};
  trees.insert(trees.end(), bundled_trees().begin(), bundled_trees().end());
  trees.push_back("none");
  binder.tree("tree", tree, std::move(trees),
              "The tree of guesses, by rank and head: the one in the heads' folder, or rows16 if "
              "it has none ('own'), a bundled one, or a .json file. Each node costs a row, and "
              "more nodes are accepted further; 'none' is plain decoding.");
  binder.real("stop_below", stop_below, 0, 1,
              "Omits guesses whose path has a lower probability under the heads, and runs no head "
              "below them: saves rows that would be rejected. It changes no token; under rejection "
              "sampling, not their distribution.");
  binder.choice("verify", verify,
                {{"greedy", Rule::Greedy}, {"typical", Rule::Typical}, {"sample", Rule::Sample}},
                "The guesses to accept: those equal to the model's own choice ('greedy'), those it "
                "finds likely enough ('typical', NOT lossless with a temperature), or those equal "
                "to a token sampled from the model at each node ('sample').");
  binder.real("epsilon", typical.epsilon, 0, 1,
              "For verify=typical: a token with a higher probability is always accepted.");
  binder.real("delta", typical.delta, 0, 1000,
              "For verify=typical: a token with a probability above delta exp(-H) is accepted too, "
              "where H is the entropy of the model's distribution.");
  binder.choice("root", typical.root,
                {{"argmax", Root::Argmax}, {"typical", Root::Typical}, {"sample", Root::Sample}},
                "For verify=typical: the token after the accepted ones is the most likely one "
                "('argmax', as published), or sampled from the tokens likely enough ('typical') or "
                "from all tokens ('sample').");
}

// At temperature 0 typical acceptance accepts only the likeliest token, so it keeps the
// distribution.
bool HeadTreeOptions::keeps_distribution(const Sampling& sampling) const {
  return verify != Rule::Typical || sampling.greedy();
}

HeadTreeDecoder::HeadTreeDecoder(const DecoderContext& context,
                                 const HeadTreeOptions& options,
                                 int n_heads)
    : target_(context.target),
      sampling_(context.sampling),
      limits_(context.limits),
      ranks_(tree_of(context, options.tree, n_heads)),
      stop_below_(options.stop_below),
      rule_(options.verify),
      typical_(options.typical),
      uniforms_(context.sampling.seed, context.uniforms) {
  needs_distributions_ = rule_ == Rule::Typical || rejects(sampling_);
  n_verified_.resize(static_cast<std::size_t>(ranks_.max_depth()));
  n_accepted_.resize(n_verified_.size());
}

TokenTree HeadTreeDecoder::propose(const Sequence& prefix) {
  forwards_.clear();
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  candidates_.assign(1, {});
  q_.assign(1, 1);
  path_p_.assign(1, 1);
  depth_of_row_.assign(1, 0);
  row_of_.assign(static_cast<std::size_t>(ranks_.n_nodes()), -1);
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  const int depth = std::min(ranks_.max_depth(), room);
  const bool can_draft = begin_draft(prefix, std::max(depth, 0));
  for (int d = 1; can_draft && d <= depth; d++) add_level(tree, d);
  tree_ = tree;
  return tree;
}

void HeadTreeDecoder::add_level(TokenTree& tree, int depth) {
  std::vector<std::size_t> nodes;
  std::vector<int> parents;  // rows, each once
  for (std::size_t node = 0; node < row_of_.size(); node++) {
    if (ranks_.depth[node] != depth) continue;
    const int above = ranks_.parent[node];
    const int parent = above < 0 ? 0 : row_of_[static_cast<std::size_t>(above)];
    if (parent < 0) continue;
    nodes.push_back(node);
    if (parents.empty() || parents.back() != parent) parents.push_back(parent);
  }
  if (nodes.empty()) return;
  const auto ranked = rank(tree, depth, parents, ranks_.width_at(depth));
  ensure(ranked.size() == 1 || ranked.size() == parents.size(),
         "the heads must rank tokens once for all parents or once for each parent");
  for (const std::size_t node : nodes) {
    const int above = ranks_.parent[node];
    const int parent = above < 0 ? 0 : row_of_[static_cast<std::size_t>(above)];
    const auto place =
        static_cast<std::size_t>(std::ranges::find(parents, parent) - parents.begin());
    const RankedTokens& candidates = ranked[ranked.size() == 1 ? 0 : place];
    const auto r = static_cast<std::size_t>(ranks_.rank[node]);
    if (r >= candidates.token.size()) continue;  // the vocabulary has no more tokens
    const double path_p = path_p_[static_cast<std::size_t>(parent)] * candidates.p[r];
    if (path_p < stop_below_) continue;
    const RowTag tag{RowTag::Kind::Draft, static_cast<std::int16_t>(depth),
                     static_cast<std::int16_t>(r)};
    row_of_[node] = tree.add(candidates.token[r], parent, tag);
    candidates_[static_cast<std::size_t>(parent)].rows.push_back(row_of_[node]);
    candidates_.emplace_back();
    q_.push_back(static_cast<float>(candidates.p[r]));
    path_p_.push_back(path_p);
    depth_of_row_.push_back(depth);
  }
}

const VerifyRequest* HeadTreeDecoder::verify_request(const Sequence& prefix,
                                                     const TokenTree& tree) {
  if (!needs_distributions_ || !uniforms_->is_threshold_independent()) return nullptr;
  verify_request_ =
      rule_ == Rule::Typical
          ? typical_verify_request(prefix.tokens(), tree, sampling_, typical_, *uniforms_)
          : drafted_verify_request(prefix.tokens(), tree, candidates_, draft_rule(), *uniforms_);
  return &verify_request_;
}

Decision HeadTreeDecoder::verify(const Sequence& prefix,
                                 const TokenTree& tree,
                                 const StepOutput& out) {
  hidden_ = out.hidden;
  if (rule_ == Rule::Typical)
    return accept_typical(prefix.tokens(), tree, out, sampling_, typical_, *uniforms_);
  if (!rejects(sampling_)) return verify_exact_match(tree, out);
  return reject_drafted(prefix.tokens(), tree, candidates_, out, sampling_, draft_rule(),
                        *uniforms_);
}

void HeadTreeDecoder::committed(const Sequence& /*prefix*/, const Decision& cut) {
  const std::size_t dim = state_dim_ = hidden_.size() / depth_of_row_.size();
  for (std::size_t i = 0; i < cut.path.size(); i++) {
    const auto row = static_cast<std::size_t>(cut.path[i]);
    const auto state = hidden_.begin() + static_cast<std::ptrdiff_t>(row * dim);
    kept_hidden_.insert(kept_hidden_.end(), state, state + static_cast<std::ptrdiff_t>(dim));
    // the head that fills the row's children
    const auto head = static_cast<std::size_t>(depth_of_row_[row]);
    if (!candidates_[row].rows.empty()) n_verified_[head]++;
  }
  const std::vector<RowFate> fate = fates_of(tree_, cut);
  for (std::size_t row = 1; row < fate.size(); row++)
    if (fate[row] == RowFate::Accepted)
      n_accepted_[static_cast<std::size_t>(depth_of_row_[row]) - 1]++;
}

std::vector<float> HeadTreeDecoder::take_hidden() {
  return std::exchange(kept_hidden_, {});
}

void HeadTreeDecoder::begin_with_hidden(std::span<const float> states, std::size_t dim) {
  kept_hidden_.assign(states.begin(), states.end());
  state_dim_ = dim;
}

std::map<std::string, std::int64_t> HeadTreeDecoder::counts() const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t head = 0; head < n_verified_.size(); head++) {
    const std::string name = "head_" + std::to_string(head + 1);
    counts[name + "_judged"] = n_verified_[head];
    counts[name + "_accepted"] = n_accepted_[head];
  }
  return counts;
}

}  // namespace engine
