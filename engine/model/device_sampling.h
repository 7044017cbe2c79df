// One forward's questions to distributions on the device, of all its items together: one operation to draw,
// one to judge.
#pragma once

#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "engine/model/rows_plan.h"
#include "kernels/device.h"

namespace engine {

/// The logits that distributions are made of.
struct DeviceLogits {
  kernels::Device& device;
  const float* logits;  // [rows of the batch, vocab] in the device's memory
  int vocab, n_valid;
  const kernels::PickRow* rows;  // [rows of the batch] how each is filtered
};

/// Kept between forwards for its memory. What is asked for is there when answers were delivered.
class DeviceSampling {
 public:
  void draw(const DeviceLogits& there, std::span<const BatchItem> items, const ForwardPlan& plan);
  void verify(const DeviceLogits& there, std::span<const BatchItem> items, const ForwardPlan& plan);

  /// Gives every item what was drawn for it.
  /// @param refuse  is called with an item's row whose logits make no distribution and the first index of one
  /// that is NaN or +inf; throws
  template <class Refuse>
  void deliver_drawn(std::span<const BatchItem> items,
                     std::span<StepOutput> outputs,
                     const Refuse& refuse) const {
    std::size_t node = 0;
    for (std::size_t i = 0; i < items.size(); i++) {
      if (!items[i].draw) continue;
      const kernels::Drawn& found = drawn_[node];
      if (!(found.largest > 0)) refuse(items[i].tree->n_rows() - 1, found.bad_index);
      const auto begin = tokens_.begin() + drawing_[node++].first;
      outputs[i].drawn = {{begin, begin + found.n}, found.largest};
    }
  }
  void deliver_verified(std::span<const BatchItem> items, std::span<StepOutput> outputs) const;

 private:
  std::vector<kernels::PickRow> rows_;  // of the nodes asked last
  std::vector<kernels::DrawNode> drawing_;
  std::vector<double> uniforms_;
  std::vector<kernels::Drawn> drawn_;
  std::vector<kernels::DrawnToken> tokens_;
  std::vector<kernels::VerifyNode> judging_;
  std::vector<kernels::Candidate> candidates_;
  std::vector<kernels::VerifiedNode> judged_;
  std::vector<kernels::VerifiedCandidate> of_candidates_;
  std::vector<kernels::RejectionToken> rejection_tokens_;
  int n_rejection_tokens_ = 0;
};

}  // namespace engine
