#include "engine/decode/verify.h"

#include <cmath>
#include <iterator>

namespace engine {
namespace {

void check_leading(const TokenTree& tree, int leading_rows) {
  ensure(leading_rows >= 1 && leading_rows <= tree.n_rows(), "a tree has a leading row");
  for (int r = 0; r < leading_rows; r++) {
    ensure(tree.parent[static_cast<std::size_t>(r)] == r - 1, "leading rows are a chain");
  }
}

/// A row that is no proposal: a window's cell, or a probe's.
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

/// Proposals that hang on a row of `alive`, in order.
std::vector<int> proposals_below(const TokenTree& tree,
                                 const std::vector<int>& alive,
                                 int leading_rows) {
  std::vector<int> children;
  for (int r = leading_rows; r < tree.n_rows(); r++) {
    const auto row = static_cast<std::size_t>(r);
    if (is_no_proposal(tree, row)) continue;
    for (const int parent : alive) {
      if (tree.parent[row] == parent) children.push_back(r);
    }
  }
  return children;
}

/// Judges proposals of one position, one after another, until one is kept.
/// @param left   the target's law there; what was refused is taken out of it
/// @param draws  gains a draw for each row judged
/// @return       the token kept, -1: none
TokenId first_kept(const std::vector<int>& children,
                   const TokenTree& tree,
                   std::uint32_t position,
                   UniformSource& uniforms,
                   std::vector<double>& left,
                   std::vector<Draw>& draws) {
  double sum = 1;
  std::uint32_t n_draws = 0;
  for (const int child : children) {
    const TokenId x = tree.token[static_cast<std::size_t>(child)];
    double& mass = left[static_cast<std::size_t>(x)];
    if (mass <= 0) continue;  // filtered out, or refused before
    const double threshold = mass >= sum ? 1.0 : mass / sum;
    const double u = uniforms.accept(position, n_draws++, threshold);
    draws.push_back(
        {.row = child, .uniform = static_cast<float>(u), .keep = static_cast<float>(threshold)});
    if (u < threshold) return x;
    mass = 0;
    sum = 0;
    for (const double p : left) sum += p;  // summed anew: subtracting would lose small parts
  }
  return -1;
}

}  // namespace

Decision walk(const TokenTree& tree, const StepOutput& out, int leading_rows, bool bonus_at_end) {
  check_leading(tree, leading_rows);
  ensure(out.picked.size() == tree.token.size(), "a forward answers every row");
  const auto n = tree.token.size();
  const auto n_leading = static_cast<std::size_t>(leading_rows);
  // depth[r]: agreeing rows down to r, 0 if r or an ancestor disagrees.
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
    // The last kept token stays without keys and values: it leads the next step.
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
                int leading_rows,
                bool bonus_at_end) {
  check_leading(tree, leading_rows);
  ensure(out.logits.size() == tree.token.size() * static_cast<std::size_t>(out.vocab_size),
         "rejection sampling needs every row's logits");
  std::vector<TokenId> history(tokens.begin(), tokens.end());
  Decision decision;
  bool last_row_leads = false;  // the last accepted row is not kept: its token leads the next step
  // Rows that stand for the path so far: several where equal proposals were not merged.
  std::vector<int> alive{leading_rows - 1};
  for (bool accepted = true; accepted;) {
    std::vector<int> children = proposals_below(tree, alive, leading_rows);
    last_row_leads = children.empty() && !bonus_at_end && !decision.emitted.empty();
    if (last_row_leads) break;
    const std::vector<double> law = token_law(out.logits_of(alive.front()), sampling, history);
    std::vector<double> left = law;
    const auto position = static_cast<std::uint32_t>(history.size());
    TokenId token = first_kept(children, tree, position, uniforms, left, decision.draws);
    accepted = token >= 0;
    if (accepted) {
      std::erase_if(children,
                    [&](int r) { return tree.token[static_cast<std::size_t>(r)] != token; });
      alive = std::move(children);
    } else {
      const double u = uniforms.residual(position, left);
      decision.last_uniform = static_cast<float>(u);
      token = draw(left, u);
    }
    decision.emitted.push_back(token);
    decision.logp.push_back(static_cast<float>(std::log(law[static_cast<std::size_t>(token)])));
    history.push_back(token);
  }
  decision.path = chain_of(tree, alive.front());
  if (last_row_leads) decision.path.pop_back();
  return decision;
}

int leading_rows_of(const Decision& decision) {
  return static_cast<int>(std::ssize(decision.path) - std::ssize(decision.emitted)) + 1;
}

std::vector<RowFate> fates_of(const TokenTree& tree, const Decision& decision) {
  const auto n = tree.token.size();
  const int leading_rows = leading_rows_of(decision);
  std::vector<RowFate> fate(n, RowFate::Unused);
  // after[r]: what was emitted after row r, -1 if r is not on the path.
  std::vector<TokenId> after(n, -1);
  std::vector<bool> answered(n);  // a child was accepted already
  for (std::size_t i = 0; i < decision.path.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[i]);
    const int emitted = static_cast<int>(i) - (leading_rows - 1);
    if (emitted >= 0) after[row] = decision.emitted[static_cast<std::size_t>(emitted)];
    fate[row] = static_cast<int>(i) < leading_rows ? RowFate::Context : RowFate::Accepted;
    if (tree.parent[row] >= 0) answered[static_cast<std::size_t>(tree.parent[row])] = true;
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
    } else if (!answered[parent]) {
      fate[r] = RowFate::Accepted;  // the last emitted token, proposed but not yet in the cache
      answered[parent] = true;
    }
  }
  return fate;
}

Verifier::Verifier(const Sampling& sampling, UniformSource* uniforms)
    : sampling_(sampling),
      rejects_(rejects(sampling)),
      philox_(sampling.seed),
      uniforms_(uniforms) {}

Decision Verifier::operator()(const Sequence& prefix,
                              const TokenTree& tree,
                              const StepOutput& out,
                              bool bonus_at_end) {
  if (rejects_) {
    return reject(prefix.tokens(), tree, out, sampling_, uniforms_ ? *uniforms_ : philox_, 1,
                  bonus_at_end);
  }
  return walk(tree, out, 1, bonus_at_end);
}

}  // namespace engine
