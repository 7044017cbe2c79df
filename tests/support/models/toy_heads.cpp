#include "tests/support/models/toy_heads.h"

#include <algorithm>
#include <limits>

namespace engine::test {
namespace {

constexpr std::size_t kDim = ToyModel::kHiddenDim;

std::vector<TokenId> known(std::span<const TokenId> tokens) {
  std::vector<TokenId> some(tokens.begin(), tokens.end());
  std::erase(some, -1);
  return some;
}

/// Sets the logits of tokens that are not ranked to -inf.
std::vector<float> of_ranked(std::vector<float> logits, int n_ranked) {
  if (n_ranked > 0)
    std::fill(logits.begin() + n_ranked, logits.end(), -std::numeric_limits<float>::infinity());
  return logits;
}

class ToySequence : public ChimeraSequence {
 public:
  explicit ToySequence(const ToyChimera& heads) : heads_(heads) {}
  int length() const override { return static_cast<int>(last_tokens_.size()); }
  void append(std::span<const float> hidden, std::span<const TokenId> grams) override {
    ensure(hidden.size() % kDim == 0, "toy heads: incomplete hidden state");
    for (std::size_t i = 0; i < hidden.size(); i += kDim) {
      ensure(static_cast<int>(hidden[i]) == length() + 1,
             "toy heads: hidden state of another position");
      last_tokens_.push_back(static_cast<TokenId>(hidden[i + kDim - 1]));
    }
    const auto n = static_cast<std::size_t>(heads_.gram());
    ensure(grams.size() == n * (hidden.size() / kDim),
           "toy heads: hidden state without its k-gram");
    for (std::size_t from_end = 0; from_end < grams.size() / n; from_end++)
      check_committed(grams.last(n * (from_end + 1)).first(n), from_end);
  }
  void truncate(int length) override { last_tokens_.resize(static_cast<std::size_t>(length)); }
  void begin_draft() override {
    ensure(length() > 0, "toy heads: draft after an empty sequence");
    parent_.clear();
    n_levels_ = 0;
  }
  std::vector<float> level(std::span<const int> parent, std::span<const TokenId> grams) override {
    ensure(n_levels_++ < heads_.n_heads(), "toy heads: more levels than heads");
    const auto n = static_cast<std::size_t>(heads_.gram());
    ensure(grams.size() == n * parent.size(), "toy heads: row without its k-gram");
    const auto first = parent_.size();
    std::vector<float> logits;
    for (std::size_t i = 0; i < parent.size(); i++) {
      const auto gram = grams.subspan(i * n, n);
      check_gram(parent[i], gram, first);
      gram_of_.resize(parent_.size());
      gram_of_.emplace_back(gram.begin(), gram.end());
      parent_.push_back(parent[i]);
      const std::vector<float> own =
          of_ranked(heads_.toy().logits_after(known(gram)), heads_.n_ranked());
      logits.insert(logits.end(), own.begin(), own.end());
    }
    return logits;
  }
  void fill_cache(std::span<const TokenId> /*grams*/) override {}
  GramCounts gram_counts() const override { return {}; }

 private:
  // Checks the tokens before one of the last positions; positions before the beginning are unknown.
  void check_committed(std::span<const TokenId> gram, std::size_t from_end) const {
    for (std::size_t back = 0; back < gram.size(); back++) {
      const std::size_t behind = from_end + back + 1;
      const TokenId token =
          behind > last_tokens_.size() ? -1 : last_tokens_[last_tokens_.size() - behind];
      ensure(gram[gram.size() - 1 - back] == token, "toy heads: k-gram differs from the sequence");
    }
  }
  // A row's k-gram is its parent's shifted by one token; the first row's is the end of the
  // sequence.
  void check_gram(int parent, std::span<const TokenId> gram, std::size_t first) const {
    if (parent < 0) {
      ensure(first == 0, "toy heads: only the first level follows the sequence");
      std::vector<TokenId> before = known(gram.first(gram.size() - 1));
      ensure(before.size() <= last_tokens_.size() &&
                 std::equal(before.rbegin(), before.rend(), last_tokens_.rbegin()),
             "toy heads: k-gram differs from the sequence");
      return;
    }
    ensure(static_cast<std::size_t>(parent) < first, "toy heads: parent on the same level");
    const auto& of_parent = gram_of_[static_cast<std::size_t>(parent)];
    ensure(std::equal(gram.begin(), gram.end() - 1, of_parent.begin() + 1),
           "toy heads: a k-gram is not its parent's shifted by one token");
  }

  const ToyChimera& heads_;
  std::vector<TokenId> last_tokens_;  // of every position with a hidden state
  std::vector<int> parent_;
  std::vector<std::vector<TokenId>> gram_of_;
  int n_levels_ = 0;
};

}  // namespace

std::vector<float> ToyMedusa::logits(std::span<const float> hidden, int n_heads) {
  ensure(hidden.size() == kDim, "toy heads: hidden is not one hidden state");
  std::vector<TokenId> text;
  for (const float token : hidden.subspan(1))
    if (token >= 0) text.push_back(static_cast<TokenId>(token));
  std::vector<float> logits;
  for (int k = 0; k < n_heads; k++) {
    const std::vector<float> next = toy_.logits_after(text);
    text.push_back(static_cast<TokenId>(std::ranges::max_element(next) - next.begin()));
    const std::vector<float> own = of_ranked(toy_.logits_after(text), n_ranked_);
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

std::unique_ptr<ChimeraSequence> ToyChimera::make_sequence(std::shared_ptr<GramCache> /*cache*/) {
  return std::make_unique<ToySequence>(*this);
}

}  // namespace engine::test
