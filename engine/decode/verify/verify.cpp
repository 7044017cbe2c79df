#include "engine/decode/verify/verify.h"

#include <algorithm>

#include "engine/decode/verify/draft_rules.h"

namespace engine {
namespace {

void check_leading(const TokenTree& tree, int leading_rows) {
  ensure(leading_rows >= 1 && leading_rows <= tree.n_rows(),
         "leading_rows must be 1 to the tree's number of rows");
  for (int r = 0; r < leading_rows; r++) {
    ensure(tree.parent[static_cast<std::size_t>(r)] == r - 1, "leading rows must be a chain");
  }
}

/// True for window cells and probe rows.
bool is_no_proposal(const TokenTree& tree, std::size_t row) {
  return tree.tag[row].kind == RowTag::Kind::Window || tree.tag[row].kind == RowTag::Kind::Probe;
}

bool is_proposal(RowTag::Kind kind) {
  return kind == RowTag::Kind::Guess || kind == RowTag::Kind::Draft || kind == RowTag::Kind::Block;
}

bool is_leaf(const TokenTree& tree, std::size_t row) {
  for (std::size_t r = row + 1; r < tree.parent.size(); r++) {
    if (tree.parent[r] == static_cast<int>(row) && !is_no_proposal(tree, r)) return false;
  }
  return true;
}

/// The proposals below each reachable row, in the order of verification. If equal proposals were
/// not merged, several rows have the same path; the first of these rows represents the others and
/// gets the children of all of them.
std::vector<Candidates> proposals_of(const TokenTree& tree) {
  const auto n = tree.token.size();
  std::vector<Candidates> proposals(n);
  std::vector<int> representative(n, -1);  // the first row of the same path; -1: no proposal
  representative[0] = 0;
  for (std::size_t r = 1; r < n; r++) {
    const int parent =
        tree.parent[r] < 0 ? -1 : representative[static_cast<std::size_t>(tree.parent[r])];
    if (parent < 0 || is_no_proposal(tree, r)) continue;
    std::vector<int>& rows = proposals[static_cast<std::size_t>(parent)].rows;
    const auto same = std::ranges::find(rows, tree.token[r], [&tree](int row) {
      return tree.token[static_cast<std::size_t>(row)];
    });
    representative[r] = same == rows.end() ? static_cast<int>(r) : *same;
    if (same == rows.end()) rows.push_back(static_cast<int>(r));
  }
  return proposals;
}

}  // namespace

Decision verify_exact_match(const TokenTree& tree,
                            const StepOutput& out,
                            int leading_rows,
                            bool bonus_at_end) {
  check_leading(tree, leading_rows);
  ensure(out.picked.size() == tree.token.size(), "a forward must return a pick for every row");
  const auto n = tree.token.size();
  const auto n_leading = static_cast<std::size_t>(leading_rows);
  // depth[r]: number of rows on the path to r if all of them match, else 0.
  std::vector<int> depth(n);
  std::size_t deepest = n_leading - 1;
  depth[deepest] = 1;
  for (std::size_t r = n_leading; r < n; r++) {
    if (tree.parent[r] < leading_rows - 1 || is_no_proposal(tree, r)) continue;
    const auto parent = static_cast<std::size_t>(tree.parent[r]);
    if (depth[parent] == 0 || out.picked[parent].id != tree.token[r]) continue;
    depth[r] = depth[parent] + 1;
    if (depth[r] > depth[deepest]) deepest = r;
  }
  Decision decision;
  decision.path = chain_of(tree, static_cast<int>(deepest));
  for (std::size_t i = n_leading - 1; i < decision.path.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[i]);
    decision.emitted.push_back(out.picked[row].id);
  }
  if (!bonus_at_end && deepest >= n_leading && is_leaf(tree, deepest)) {
    // The last accepted token gets no keys and values yet: it leads the next step.
    decision.path.pop_back();
    decision.emitted.pop_back();
  }
  return decision;
}

Decision reject(std::span<const TokenId> tokens,
                const TokenTree& tree,
                const StepOutput& out,
                const Sampling& sampling,
                UniformSource& uniforms,
                bool bonus_at_end) {
  return reject_drafted(tokens, tree, proposals_of(tree), out, sampling, DraftRule::Without,
                        uniforms, !bonus_at_end);
}

int leading_rows_of(const Decision& decision) {
  return static_cast<int>(std::ssize(decision.path) - std::ssize(decision.emitted)) + 1;
}

std::vector<RowFate> fates_of(const TokenTree& tree, const Decision& decision) {
  const auto n = tree.token.size();
  const int leading_rows = leading_rows_of(decision);
  std::vector<RowFate> fate(n, RowFate::Unused);
  // after[r]: the token emitted after row r, -1 if r is not on the path.
  std::vector<TokenId> after(n, -1);
  std::vector<bool> has_accepted_child(n);
  for (std::size_t i = 0; i < decision.path.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[i]);
    const int emitted = static_cast<int>(i) - (leading_rows - 1);
    if (emitted >= 0) after[row] = decision.emitted[static_cast<std::size_t>(emitted)];
    fate[row] = static_cast<int>(i) < leading_rows ? RowFate::Context : RowFate::Accepted;
    if (tree.parent[row] >= 0)
      has_accepted_child[static_cast<std::size_t>(tree.parent[row])] = true;
  }
  for (std::size_t r = 0; r < n; r++) {
    if (after[r] >= 0 || fate[r] == RowFate::Context) continue;  // on the path
    if (tree.tag[r].kind == RowTag::Kind::Current) {
      fate[r] = RowFate::Context;  // the step emitted nothing
      continue;
    }
    if (!is_proposal(tree.tag[r].kind)) {
      fate[r] = RowFate::Window;
      continue;
    }
    if (tree.parent[r] < 0) continue;
    const auto parent = static_cast<std::size_t>(tree.parent[r]);
    if (after[parent] < 0) continue;
    if (after[parent] != tree.token[r]) {
      fate[r] = RowFate::Rejected;
    } else if (!has_accepted_child[parent]) {
      fate[r] = RowFate::Accepted;  // the last emitted token, proposed but not yet in the cache
      has_accepted_child[parent] = true;
    }
  }
  return fate;
}

Verifier::Verifier(const Sampling& sampling, UniformSource* uniforms)
    : sampling_(sampling), rejects_(rejects(sampling)), uniforms_(sampling.seed, uniforms) {}

const VerifyRequest* Verifier::verify_request(const Sequence& prefix, const TokenTree& tree) {
  if (!rejects_ || !uniforms_->is_threshold_independent()) return nullptr;
  verify_request_ = drafted_verify_request(prefix.tokens(), tree, proposals_of(tree),
                                           DraftRule::Without, *uniforms_);
  return &verify_request_;
}

Decision Verifier::operator()(const Sequence& prefix,
                              const TokenTree& tree,
                              const StepOutput& out,
                              bool bonus_at_end) {
  if (rejects_) return reject(prefix.tokens(), tree, out, sampling_, *uniforms_, bonus_at_end);
  return verify_exact_match(tree, out, 1, bonus_at_end);
}

}  // namespace engine
