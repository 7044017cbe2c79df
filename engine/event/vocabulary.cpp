#include "engine/event/vocabulary.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr int kMaxVocabulary = 4'000'000;

struct Collector {
  std::set<TokenId>& tokens;

  void add(std::span<const TokenId> ids) const { tokens.insert(ids.begin(), ids.end()); }
  void add(const std::vector<PoolNgram>& ngrams) const {
    for (const PoolNgram& ngram : ngrams) {
      tokens.insert(ngram.first);
      add(ngram.rest);
    }
  }
  void operator()(const ModelLoaded& e) const {
    add(e.eos_ids);
    add(e.special_ids);
  }
  void operator()(const RunStarted& e) const {
    add(e.prompt_tokens);
    add(e.stop_ids);
  }
  void operator()(const Drafted& e) const { add(e.tree.token); }
  void operator()(const BlockRefined& e) const { add(e.tokens); }
  void operator()(const Verified& e) const {
    add(e.picked);
    for (const RejectionDetail& detail : e.rejection_details) add(detail.token);
  }
  void operator()(const Committed& e) const { add(e.tokens); }
  void operator()(const PoolChanged& e) const {
    add(e.added);
    add(e.evicted);
    add(e.tried);
  }
  void operator()(const Agreement& e) const {
    tokens.insert(e.found);
    tokens.insert(e.expected);
  }
  void operator()(const RunFinished& e) const { add(e.approximate); }
  void operator()(const auto&) const {}
};

}  // namespace

void add_tokens_of(const Event& event, std::set<TokenId>& tokens) {
  std::visit(Collector{tokens}, event);
}

void keep_pieces(ModelLoaded& model, const std::set<TokenId>& tokens) {
  if (model.pieces.empty()) return;
  const ModelLoaded whole = model.piece_ids.empty() ? std::move(model) : with_all_pieces(model);
  model = whole;
  model.pieces.clear();
  model.piece_ids.clear();
  for (const TokenId id : tokens) {
    if (id < 0 || id >= std::ssize(whole.pieces)) continue;
    model.piece_ids.push_back(id);
    model.pieces.push_back(whole.pieces[static_cast<std::size_t>(id)]);
  }
}

std::string fault_of_pieces(const ModelLoaded& e) {
  const bool is_part = !e.piece_ids.empty();
  const auto n_expected = is_part ? std::ssize(e.piece_ids) : std::ptrdiff_t{e.vocab_size};
  if (e.vocab_size < 0 || (!e.pieces.empty() && std::ssize(e.pieces) != n_expected))
    return fmt::format("{} token texts for a vocabulary of {}", e.pieces.size(), n_expected);
  if (!is_part) return {};
  if (e.vocab_size > kMaxVocabulary)
    return fmt::format("a vocabulary of {}, expected {} at most", e.vocab_size, kMaxVocabulary);
  const auto outside =
      std::ranges::find_if(e.piece_ids, [&e](TokenId id) { return id < 0 || id >= e.vocab_size; });
  if (outside != e.piece_ids.end())
    return fmt::format("token {} is outside the vocabulary of {}", *outside, e.vocab_size);
  return {};
}

std::int64_t n_absent_texts(const ModelLoaded& model) {
  if (model.piece_ids.empty()) return 0;
  return std::max<std::int64_t>(0, model.vocab_size - std::ssize(model.piece_ids));
}

ModelLoaded with_all_pieces(const ModelLoaded& model) {
  ModelLoaded whole = model;
  if (model.piece_ids.empty()) return whole;
  whole.piece_ids.clear();
  whole.pieces.assign(static_cast<std::size_t>(model.vocab_size), "");
  for (std::size_t i = 0; i < model.pieces.size(); ++i)
    whole.pieces[static_cast<std::size_t>(model.piece_ids[i])] = model.pieces[i];
  return whole;
}

}  // namespace engine
