#include "engine/run/row_cost.h"

#include <utility>
#include <variant>

#include "engine/event/clock.h"

namespace engine {
namespace {

/// Duration of a forward over the tree's rows.
Nanoseconds forward_ns(LanguageModel& model,
                       Sequence& text,
                       const TokenTree& tree,
                       const Sampling& sampling) {
  std::vector<std::uint8_t> greedy_rows;  // as in a step
  for (const RowTag& tag : tree.tag) greedy_rows.push_back(tag.kind == RowTag::Kind::Window);
  BatchItem item{.cache = &text.cache(), .tree = &tree, .prefix = text.cached_tokens()};
  item.sampling = sampling;
  if (!sampling.greedy()) item.greedy_rows = greedy_rows;
  const Nanoseconds begun = now_ns();
  model.forward({&item, 1}, {});
  return now_ns() - begun;
}

/// The tokens that get keys and values in this step.
std::vector<TokenId> newly_cached(const Sequence& text, const std::vector<TokenId>& emitted) {
  const std::size_t n_cached = text.cached_tokens().size();
  std::vector<TokenId> tokens(text.tokens().begin() + static_cast<std::ptrdiff_t>(n_cached),
                              text.tokens().end());
  tokens.insert(tokens.end(), emitted.begin(), emitted.end());
  tokens.pop_back();
  return tokens;
}

}  // namespace

void StepRecorder::push(Event event) {
  if (const auto* drafted = std::get_if<Drafted>(&event)) {
    Text& text = texts_[drafted->run];
    text.steps.push_back({.tree = drafted->tree, .emitted = {}});
    for (const DraftForward& forward : drafted->forwards)
      text.drafting += forward.ended - forward.begun;
  } else if (const auto* committed = std::get_if<Committed>(&event)) {
    texts_[committed->run].steps.back().emitted = committed->tokens;
  }
  if (next_) next_->push(std::move(event));
}

double row_cost_ms(LanguageModel& model,
                   const RunRequest& request,
                   const StepRecorder::Text& text,
                   const std::function<bool()>& stop) {
  Sequence again(request.prompt_tokens, model.make_cache());
  prefill(model, again);
  Nanoseconds sum = 0;
  for (const StepRecorder::Step& step : text.steps) {
    if (stop && stop()) break;
    sum += forward_ns(model, again, step.tree, request.sampling);
    Decision decision;
    decision.emitted = step.emitted;
    if (!step.emitted.empty())
      decision.path = rows_along(step.tree, newly_cached(again, step.emitted));
    again.commit(decision, StopReason::None);
  }
  return static_cast<double>(sum) * 1e-6;
}

std::vector<int> rows_along(const TokenTree& tree, std::span<const TokenId> tokens) {
  if (tokens.empty()) return {};
  // [rows] length of the chain of rows that ends with this row, if its tokens are the first ones of
  // `tokens`; else 0
  std::vector<std::size_t> held;
  for (int row = 0; row < tree.n_rows(); row++) {
    const int parent = tree.parent[static_cast<std::size_t>(row)];
    const std::size_t before = parent < 0 ? 0 : held[static_cast<std::size_t>(parent)];
    const bool matches =
        (parent < 0 || before > 0) && tree.token[static_cast<std::size_t>(row)] == tokens[before];
    held.push_back(matches ? before + 1 : 0);
    if (held.back() == tokens.size()) return chain_of(tree, row);
  }
  kernels::throw_contract_error("no chain of rows has the tokens that a step kept");
}

}  // namespace engine
