#include "engine/decode/draft/head_tree.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "engine/decode/verify/verify.h"

namespace engine {
namespace {

using Rule = HeadTreeOptions::Rule;

/// The nodes of both trees.
RankTree united(const RankTree& a, const RankTree& b) {
  std::set<std::vector<int>> paths;
  for (const RankTree* tree : {&a, &b})
    for (int node = 0; node < tree->n_nodes(); node++) paths.insert(tree->path(node));
  return rank_tree_of({paths.begin(), paths.end()}, "auto");
}

/// The tree named by the options. "own" is the tree in the heads' folder, or rows16 if that has
/// none; "auto" has its candidates and those of rows24.
RankTree tree_of(const DecoderContext& context, const std::string& name, int n_heads) {
  if (name == "auto") {
    const RankTree large = pruned(find_rank_tree("rows24", context.trees_dir), n_heads);
    return united(tree_of(context, "own", n_heads), large);
  }
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
  std::vector<std::string> trees{"auto", "own"};
  trees.insert(trees.end(), bundled_trees().begin(), bundled_trees().end());
  trees.push_back("none");
  binder.tree("tree", tree, std::move(trees),
              "The tree of guesses, by rank and head: the one in the heads' folder, or rows16 if "
              "it has none ('own'), a bundled one, or a .json file. Each node costs a row, and "
              "more nodes are accepted further; 'none' is plain decoding. 'auto' chooses in every "
              "step the guesses that are worth the time of their rows, or none.");
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
      ranks_(tree_of(context,
                     options.tree == "auto" && !options.chooses_sizes() ? "own" : options.tree,
                     n_heads)),
      stop_below_(options.stop_below),
      rule_(options.verify),
      typical_(options.typical),
      uniforms_(context.sampling.seed, context.uniforms),
      control_(context.control, context.choices) {
  if (options.chooses_sizes())
    known_ = &control_.knowledge<HeadKnowledge>("heads " + std::to_string(context.draft_id),
                                                rejects(sampling_));
  needs_distributions_ = rule_ == Rule::Typical || rejects(sampling_);
  n_verified_.resize(static_cast<std::size_t>(ranks_.max_depth()));
  n_accepted_.resize(n_verified_.size());
}

TokenTree HeadTreeDecoder::propose(const Sequence& prefix) {
  forwards_.clear();
  drafted_.clear();
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  const int depth = std::max(std::min(ranks_.max_depth(), room), 0);
  const bool drafts = !known_ || chooses_to_draft();
  tree_ = drafted_tree(prefix, drafts ? depth : 0);
  if (known_ && !forwards_.empty()) tree_ = pruned_by_choice(tree_);
  return tree_;
}

TokenTree HeadTreeDecoder::drafted_tree(const Sequence& prefix, int depth) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  candidates_.assign(1, {});
  q_.assign(1, 1);
  path_p_.assign(1, 1);
  depth_of_row_.assign(1, 0);
  row_of_.assign(static_cast<std::size_t>(ranks_.n_nodes()), -1);
  const bool can_draft = begin_draft(prefix, depth);
  for (int d = 1; can_draft && d <= depth; d++) add_level(tree, d);
  return tree;
}

bool HeadTreeDecoder::chooses_to_draft() {
  const std::vector<SizePlan> plans = known_->plans(*control_);
  SizeChoice choice = known_->choose(plans);
  choice.index = control_.decide(choice.index, plans.size());
  decision_ = decision_of(choice, plans, static_cast<int>(choice.index));
  return choice.index > 0;
}

/// The rows of the drafted tree that are worth their time.
TokenTree HeadTreeDecoder::pruned_by_choice(const TokenTree& all) {
  for (std::size_t row = 1; row < all.token.size(); row++)
    drafted_.push_back({all.parent[row], all.token[row], depth_of_row_[row], q_[row]});
  known_->rate(drafted_);
  std::vector<std::size_t> order(drafted_.size());  // likeliest first
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [this](auto i) { return drafted_[i].right; });
  std::vector<double> right;
  for (const std::size_t i : order) right.push_back(drafted_[i].right);
  order.resize(static_cast<std::size_t>(known_->choose_rows(right, *control_)));
  std::ranges::sort(order);  // in the order of the drafted tree
  order = control_.decide(std::move(order), drafted_.size());
  const auto n_rows = static_cast<int>(order.size());

  TokenTree kept;
  kept.add(all.token[0], -1, all.tag[0]);
  std::vector<int> row_of(all.token.size(), 0);
  candidates_.assign(1, {});
  const std::vector<float> q = std::exchange(q_, {1});
  const std::vector<int> depths = std::exchange(depth_of_row_, {0});
  double tokens = 1;
  for (const std::size_t i : order) {
    const std::size_t row = i + 1;
    const int parent = row_of[static_cast<std::size_t>(all.parent[row])];
    row_of[row] = kept.add(all.token[row], parent, all.tag[row]);
    candidates_[static_cast<std::size_t>(parent)].rows.push_back(row_of[row]);
    candidates_.emplace_back();
    q_.push_back(q[row]);
    depth_of_row_.push_back(depths[row]);
    tokens += drafted_[i].right;
  }
  decision_.size = n_rows;
  decision_.tokens = static_cast<float>(tokens);
  decision_.ms = static_cast<float>(control_->ms(1 + n_rows) + known_->drafting_ms(*control_));
  return kept;
}

void HeadTreeDecoder::learn(const Decision& cut) {
  known_->learn(drafted_, cut.emitted);
  double drafting = -1;
  if (!forwards_.empty()) {
    Nanoseconds sum = 0;
    for (const DraftForward& forward : forwards_) sum += forward.ended - forward.begun;
    // Times of the heads say nothing beside a target whose steps are not measured.
    drafting = control_->costs().n_measured() > 0
                   ? static_cast<double>(sum) * 1e-6 / decision_.plain_ms
                   : 0.1;
  }
  known_->came(static_cast<int>(cut.emitted.size()), decision_.ms, decision_.plain_ms, drafting);
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
  if (known_) learn(cut);
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
    counts[name + "_verified"] = n_verified_[head];
    counts[name + "_accepted"] = n_accepted_[head];
  }
  return counts;
}

}  // namespace engine
