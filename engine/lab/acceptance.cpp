#include "engine/lab/acceptance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"

namespace engine {
namespace {

// Adds the bounds of one place; ignored without q.
void add_bounds(Alpha& alpha, const RejectionDetail& detail) {
  if (detail.q.size() != detail.p.size() || detail.q.empty()) return;
  double overlap = 0, rest_p = 1, rest_q = 1;
  for (std::size_t i = 0; i < detail.p.size(); ++i) {
    overlap += std::min(detail.p[i], detail.q[i]);
    rest_p -= detail.p[i];
    rest_q -= detail.q[i];
  }
  alpha.sum_low += std::min(1.0, overlap);
  alpha.sum_high += std::min(1.0, overlap + std::max(0.0, std::min(rest_p, rest_q)));
  ++alpha.n_bounded;
}

void add(Alpha& to, const Alpha& more) {
  to.sum += more.sum, to.n += more.n;
  to.sum_low += more.sum_low, to.sum_high += more.sum_high, to.n_bounded += more.n_bounded;
}

DepthAcceptance& at_depth(Acceptance& acceptance, int depth) {
  if (std::ssize(acceptance.by_depth) < depth)
    acceptance.by_depth.resize(static_cast<std::size_t>(depth));
  return acceptance.by_depth[static_cast<std::size_t>(depth) - 1];
}

// Counts the proposals of a step. @return the depth of its deepest proposal
int add_rows(Acceptance& acceptance, const StepRecord& step) {
  const TokenTree& tree = step.drafted.tree;
  std::vector<int> n_at;  // [depth] proposals
  int deepest_accepted = 0;
  const int n = std::min(tree.n_rows(), static_cast<int>(step.verified.fate.size()));
  std::vector<bool> has_child(static_cast<std::size_t>(tree.n_rows()) + 1);  // [parent + 1]
  for (int row = 0; row < n; ++row) {
    if (!is_proposal(tree.tag[row].kind)) continue;
    const int depth = depth_of(tree, row);
    if (std::ssize(n_at) <= depth) n_at.resize(static_cast<std::size_t>(depth) + 1);
    acceptance.is_chain = acceptance.is_chain && n_at[depth] == 0;
    ++n_at[depth];
    // A later sibling is verified against the residual distribution instead of p.
    const bool is_first = !has_child[tree.parent[row] + 1];
    has_child[tree.parent[row] + 1] = true;
    const RowFate fate = step.verified.fate[row];
    if (fate != RowFate::Accepted && fate != RowFate::Rejected) continue;
    DepthAcceptance& at = at_depth(acceptance, depth);
    ++at.verified;
    at.accepted += fate == RowFate::Accepted;
    if (const float keep = value_at(step.verified.keep, row); is_first && keep >= 0) {
      at.alpha.sum += keep;
      ++at.alpha.n;
    }
    if (fate == RowFate::Accepted) deepest_accepted = std::max(deepest_accepted, depth);
  }
  const int deepest = std::max(0, static_cast<int>(n_at.size()) - 1);
  for (int depth = 1; depth <= std::min(deepest, deepest_accepted + 1); ++depth) {
    DepthAcceptance& at = at_depth(acceptance, depth);
    ++at.reached;
    at.passed += depth <= deepest_accepted;
  }
  for (const RejectionDetail& detail : step.verified.rejection_details) {
    if (detail.row >= tree.n_rows()) continue;
    const int depth = depth_of(tree, detail.row) + 1;
    if (depth <= deepest) add_bounds(at_depth(acceptance, depth).alpha, detail);
  }
  return deepest;
}

// Returns the task of a run's prompt; empty without one.
std::string task_of(const RunRecord& run) {
  if (!run.started.place.task.empty()) return run.started.place.task;
  const std::size_t end = run.started.prompt_id.find('/');
  return end == std::string::npos ? "" : run.started.prompt_id.substr(0, end);
}

bool same_method(const RunStarted& a, const RunStarted& b) {
  return a.decoder == b.decoder && a.options == b.options && a.model == b.model &&
         a.draft == b.draft && a.temperature == b.temperature;
}

// Returns the number of generated tokens before the first rejection of a step, and the token that was committed there; {-1, -1} without one.
std::pair<std::int64_t, TokenId> committed_instead(const RunRecord& run, const StepRecord& step) {
  const auto n_accepted = static_cast<std::size_t>(std::max(0, step.verified.n_accepted));
  if (n_accepted >= step.committed.tokens.size()) return {-1, -1};
  return {std::int64_t{step.committed.first_pos} - run.first_generated() +
              static_cast<std::int64_t>(n_accepted),
          step.committed.tokens[n_accepted]};
}

// Returns the number of unverified proposals below a row.
int unused_below(const StepRecord& step, int row) {
  const TokenTree& tree = step.drafted.tree;
  std::vector<bool> below(step.verified.fate.size());
  int n = 0;
  for (int i = row + 1; i < std::min(tree.n_rows(), static_cast<int>(below.size())); ++i) {
    const int parent = tree.parent[i];
    below[i] = parent == row || (parent > row && below[parent]);
    n += below[i] && step.verified.fate[i] == RowFate::Unused;
  }
  return n;
}

std::string text_before(const Timeline& timeline, const RunRecord& run, std::int64_t index) {
  constexpr std::int64_t kTokens = 8;
  const std::int64_t first = std::max<std::int64_t>(0, index - kTokens);
  if (index <= 0 || index > std::ssize(run.tokens)) return "";
  std::vector<TokenId> ids;
  for (std::int64_t i = first; i < index; ++i)
    ids.push_back(run.tokens[static_cast<std::size_t>(i)].id);
  return timeline.text_of(run, ids);
}

}  // namespace

double Acceptance::rate() const {
  if (is_chain && alpha.n > 0) return alpha.mean();
  return reached > 0 ? static_cast<double>(passed) / reached : 0;
}

double expected_tokens(double rate, int depth) {
  if (rate >= 1) return depth + 1;
  return (1 - std::pow(rate, depth + 1)) / (1 - rate);
}

Acceptance acceptance_of(const RunRecord& run) {
  Acceptance all;
  std::vector<int> depths;
  for (const StepRecord& step : run.steps) {
    if (!step.complete) continue;
    ++all.n_steps;
    all.n_tokens += static_cast<int>(step.committed.tokens.size());
    all.proposed += step.verified.n_proposed;
    depths.push_back(add_rows(all, step));
  }
  for (const DepthAcceptance& at : all.by_depth) {
    all.verified += at.verified, all.accepted += at.accepted;
    all.reached += at.reached, all.passed += at.passed;
    add(all.alpha, at.alpha);
  }
  const double rate = all.rate();
  for (const int depth : depths)
    all.expected += expected_tokens(rate, depth) / static_cast<double>(depths.size());
  return all;
}

void Alpha::add(const Alpha& other) {
  sum += other.sum;
  n += other.n;
  sum_low += other.sum_low;
  sum_high += other.sum_high;
  n_bounded += other.n_bounded;
}

std::vector<TaskAcceptance> acceptance_by_task(const Timeline& timeline,
                                               const RunRecord& run,
                                               AlphaOfRuns& known) {
  std::map<std::string, TaskAcceptance> tasks;
  for (const RunRecord& other : timeline.runs()) {
    const std::string task = task_of(other);
    if (task.empty() || !same_method(run.started, other.started)) continue;
    TaskAcceptance& of = tasks[task];
    of.task = task;
    ++of.n_runs;
    of.accepted += other.totals.n_accepted;
    of.verified += other.totals.n_accepted + other.totals.n_rejected;
    of.proposed += other.totals.n_proposed;
    of.n_steps += other.totals.n_steps;
    of.n_tokens += other.totals.n_tokens;
    if (!other.over()) continue;
    const auto [alpha, is_new] = known.try_emplace(other.id());
    if (is_new) alpha->second = acceptance_of(other).alpha;
    of.alpha.add(alpha->second);
  }
  std::vector<TaskAcceptance> list;
  for (auto& [task, of] : tasks) list.push_back(std::move(of));
  return list;
}

std::vector<LostToken> lost_tokens(const Timeline& timeline, const RunRecord& run) {
  std::map<std::pair<TokenId, TokenId>, LostToken> lost;
  for (const StepRecord& step : run.steps) {
    const auto [index, instead] = committed_instead(run, step);
    if (!step.complete || index < 0) continue;
    const TokenTree& tree = step.drafted.tree;
    const int n = std::min(tree.n_rows(), static_cast<int>(step.verified.fate.size()));
    for (int row = 0; row < n; ++row) {
      if (step.verified.fate[row] != RowFate::Rejected ||
          depth_of(tree, row) != step.verified.n_accepted + 1)
        continue;
      LostToken& token = lost[{tree.token[row], instead}];
      token.proposed = tree.token[row];
      token.instead = instead;
      token.context = text_before(timeline, run, index);
      ++token.n;
      token.n_unused += unused_below(step, row);
      token.steps.push_back(step.begun.step);
    }
  }
  std::vector<LostToken> list;
  for (auto& [ids, token] : lost) {
    token.proposed_text = timeline.name_of(run, token.proposed);
    token.instead_text = timeline.name_of(run, token.instead);
    list.push_back(std::move(token));
  }
  std::ranges::stable_sort(list, [](const LostToken& a, const LostToken& b) {
    return std::pair(a.n, a.n_unused) > std::pair(b.n, b.n_unused);
  });
  return list;
}

}  // namespace engine
