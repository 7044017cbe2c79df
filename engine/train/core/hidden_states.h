// Hidden states of a target, after its final norm, over texts that it wrote: the input of draft heads.
// Computed in batches of several texts and kept in bf16; computed again each time if all of them would
// need too much memory. Both ways give the same bits.
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
  std::vector<std::vector<Bf16>> states_;  // empty unless in memory
  std::vector<int> loaded_;                // unless all are kept
};

}  // namespace engine
