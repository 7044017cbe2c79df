#include "engine/train/core/hidden_states.h"

#include <memory>

#include "kernels/dtype.h"

namespace engine {
namespace {

constexpr int kRowsAtOnce = 2048;  // approximate rows of one forward pass

int rows_of(const OwnOutput& text) {
  return static_cast<int>(text.tokens.size()) - 1;
}

TokenTree chain_of(const OwnOutput& text) {
  TokenTree tree;
  for (int i = 0; i < rows_of(text); i++)
    tree.add(text.tokens[static_cast<std::size_t>(i)], i - 1, RowTag{});
  return tree;
}

}  // namespace

HiddenStates::HiddenStates(Model& model, std::span<const OwnOutput> texts, std::int64_t budget)
    : model_(model), texts_(texts), states_(texts.size()) {
  for (const OwnOutput& text : texts)
    n_bytes_ += std::int64_t{rows_of(text)} * model.config().dim * std::int64_t{sizeof(Bf16)};
  kept_ = n_bytes_ <= budget;
}

void HiddenStates::load(std::span<const int> texts) {
  if (!kept_) {
    for (const int text : loaded_) states_[static_cast<std::size_t>(text)] = {};
    loaded_.assign(texts.begin(), texts.end());
  }
  std::vector<int> missing;
  int rows = 0;
  for (const int text : texts) {
    if (!states_[static_cast<std::size_t>(text)].empty()) continue;
    missing.push_back(text);
    rows += rows_of(texts_[static_cast<std::size_t>(text)]);
    if (rows < kRowsAtOnce) continue;
    compute(missing);
    missing.clear();
    rows = 0;
  }
  if (!missing.empty()) compute(missing);
}

void HiddenStates::compute(std::span<const int> texts) {
  std::vector<TokenTree> trees;
  std::vector<std::unique_ptr<SequenceCache>> caches;
  for (const int text : texts) {
    trees.push_back(chain_of(texts_[static_cast<std::size_t>(text)]));
    caches.push_back(model_.make_cache());
  }
  std::vector<BatchItem> items(texts.size());
  for (std::size_t i = 0; i < texts.size(); i++) {
    items[i].cache = caches[i].get();
    items[i].tree = &trees[i];
    items[i].pick_rows = false;
  }
  const auto outputs = model_.forward(items, Wants{.logits = false, .hidden = true});
  for (std::size_t i = 0; i < texts.size(); i++) {
    std::vector<Bf16>& states = states_[static_cast<std::size_t>(texts[i])];
    states.reserve(outputs[i].hidden.size());
    for (const float value : outputs[i].hidden) states.push_back({kernels::bf16_from_f32(value)});
  }
}

std::span<const Bf16> HiddenStates::of(int text) const {
  const std::vector<Bf16>& states = states_[static_cast<std::size_t>(text)];
  ensure(!states.empty(), "hidden states must be loaded before they are read");
  return states;
}

}  // namespace engine
