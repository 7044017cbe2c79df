// A target's hidden states after its final norm over texts that it wrote: what draft heads read.
// One forward a text, several texts together; kept as bf16, or made again each time where all of
// them would need too much memory. Their bits do not depend on which of the two it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/ops/bf16.h"
#include "engine/train/run/own_outputs.h"

namespace engine {

class HiddenStates {
 public:
  /// @param texts   owned by the caller, outlive this
  /// @param budget  bytes that all states may take
  HiddenStates(Model& model, std::span<const OwnOutput> texts, std::int64_t budget);

  /// Of all texts' states.
  std::int64_t n_bytes() const { return n_bytes_; }
  bool kept() const { return kept_; }
  /// Makes the states of these texts where they are not there.
  void load(std::span<const int> texts);
  /// Of a text that was among the last loaded: [tokens - 1, dim], row i after reading tokens 0 to
  /// i.
  std::span<const Bf16> of(int text) const;

 private:
  void compute(std::span<const int> texts);

  Model& model_;
  std::span<const OwnOutput> texts_;
  std::int64_t n_bytes_ = 0;
  bool kept_ = false;
  std::vector<std::vector<Bf16>> states_;  // empty where they are not there
  std::vector<int> loaded_;                // where they are not kept
};

}  // namespace engine
