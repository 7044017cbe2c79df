// Speculative sampling on the device: one operation samples the candidates of all items of a forward, one verifies them.
#pragma once

#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "engine/model/rows_plan.h"
#include "kernels/device.h"

namespace engine {

/// The logits of a forward on the device.
struct DeviceLogits {
  kernels::Device& device;
  const float* logits;  // [rows of the batch, vocab] device memory
  int vocab, n_valid;
  const kernels::PickRow* rows;  // [rows of the batch] filters of each row; host memory
};

/// Requests and results of one forward. The object is kept between forwards to reuse its memory.
/// Results are complete when the device has finished its downloads.
class DeviceSampling {
 public:
  /// Samples the candidates of all items with a DrawRequest.
  void draw(const DeviceLogits& device_logits,
            std::span<const BatchItem> items,
            const ForwardPlan& plan);
  /// Verifies the candidates of all items with a VerifyRequest.
  void verify(const DeviceLogits& device_logits,
              std::span<const BatchItem> items,
              const ForwardPlan& plan);

  /// Copies the sampled candidates to the outputs of their items.
  /// @param refuse  called if a row has no distribution, as refuse(row of the item, index of its
  ///                first logit that is NaN or +inf); must throw
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
  /// Copies the results of verification to the outputs of their items.
  void deliver_verified(std::span<const BatchItem> items, std::span<StepOutput> outputs) const;

 private:
  std::vector<kernels::PickRow> rows_;  // of the nodes of the last request
  std::vector<kernels::DrawNode> drawing_;
  std::vector<double> uniforms_;
  std::vector<kernels::Drawn> drawn_;
  std::vector<kernels::DrawnToken> tokens_;
  std::vector<kernels::VerifyNode> nodes_;
  std::vector<kernels::Candidate> candidates_;
  std::vector<kernels::VerifiedNode> verified_;
  std::vector<kernels::VerifiedCandidate> of_candidates_;
  std::vector<kernels::RejectionToken> rejection_tokens_;
  int n_rejection_tokens_ = 0;
};

}  // namespace engine
