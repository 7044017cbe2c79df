// Hidden states of a target, after its final norm, for texts that it wrote: the input of draft
// heads. They are computed for several texts at a time and kept in memory as bf16. If all of them
// would need too much memory, every load() computes its own again, with the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/ops/bf16.h"
#include "engine/train/run/own_outputs.h"

namespace engine {

/// The hidden states of a set of texts.
class HiddenStates {
 public:
  /// @param texts   owned by the caller, outlive this
  /// @param budget  bytes that all states may take
  HiddenStates(Model& model, std::span<const OwnOutput> texts, std::int64_t budget);

  /// Bytes of the states of all texts.
  std::int64_t n_bytes() const { return n_bytes_; }
  /// True if all states stay in memory.
  bool kept() const { return kept_; }
  /// Computes the states of these texts unless they are in memory.
  void load(std::span<const int> texts);
  /// States of a text of the last load(), [tokens - 1, dim]: row i is the state after tokens 0 to i.
  std::span<const Bf16> of(int text) const;

 private:
  void compute(std::span<const int> texts);

  Model& model_;
  std::span<const OwnOutput> texts_;
  std::int64_t n_bytes_ = 0;
  bool kept_ = false;
  std::vector<std::vector<Bf16>> states_;  // by text; empty for a text that is not in memory
  std::vector<int> loaded_;                // texts of the last load(), if not all are kept
};

}  // namespace engine
