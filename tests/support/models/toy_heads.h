// Draft heads for a toy model. They compute the toy's own rule, or a similar one, so tests choose
// how well they guess. The toy's hidden state holds its last few tokens (ToyModel::hidden_of).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/model/draft_heads.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {

/// Head k predicts what the toy would choose after its own k + 1 argmax tokens.
class ToyMedusa : public MedusaHeads {
 public:
  /// @param shape  the toy's own shape: the heads predict its greedy output exactly; draft_of(shape):
  ///   the heads are sometimes right
  /// @param n_ranked  the heads rank only the first n_ranked tokens; 0: all
  ToyMedusa(const ToyShape& shape, int n_heads, int n_ranked = 0)
      : toy_(shape), n_heads_(n_heads), n_ranked_(n_ranked) {}
  int n_heads() const override { return n_heads_; }
  int vocab_size() const override { return toy_.vocab_size(); }
  std::vector<float> logits(std::span<const float> hidden, int n_heads) override;

 private:
  ToyModel toy_;
  int n_heads_, n_ranked_;
};

/// Predicts what the toy would choose after each row's tokens, and checks how it is called.
class ToyChimera : public ChimeraHeads {
 public:
  /// @param n_ranked  as ToyMedusa
  ToyChimera(const ToyShape& shape, int n_heads, int gram = 3, int n_ranked = 0)
      : toy_(shape), n_heads_(n_heads), gram_(gram), n_ranked_(n_ranked) {}
  int n_heads() const override { return n_heads_; }
  int vocab_size() const override { return toy_.vocab_size(); }
  int gram() const override { return gram_; }
  std::unique_ptr<ChimeraSequence> make_sequence(std::shared_ptr<GramCache> cache) override;

  const ToyModel& toy() const { return toy_; }
  int n_ranked() const { return n_ranked_; }

 private:
  ToyModel toy_;
  int n_heads_, gram_, n_ranked_;
};

}  // namespace engine::test
