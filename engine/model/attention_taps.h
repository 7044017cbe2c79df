// Attention weights of selected rows (BatchItem::attention_of): the mean over all heads of the last
// quarter of the layers, whose attention depends more on the question than on the token itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "engine/model/rows_plan.h"
#include "kernels/device.h"

namespace engine {

/// The taps of one model. The object is kept between forwards to reuse its memory.
class AttentionTaps {
 public:
  /// @param device  outlives the taps
  AttentionTaps(kernels::Device& device, int n_layers);
  /// Starts a forward: one tap for each item with attention_of.
  void begin(std::span<const BatchItem> items, const ForwardPlan& plan);
  /// True if layer l has weights to record.
  bool records(int l) const { return !taps_.empty() && l >= n_layers_ - n_tapped_; }
  /// Computes the weights of layer l on the device.
  /// @param plan  the rows of this layer
  /// @param q     [rows, q_stride] queries after RoPE
  void record(int l,
              const kernels::KvLayer& layer,
              const kernels::RowsPlan& plan,
              const float* q,
              std::int64_t q_stride,
              const void* staged_k,
              int n_heads,
              const kernels::Scores& scores);
  /// Requests the recorded weights from the device.
  void download();
  /// Weights of an item that has a tap, after the downloads are finished.
  /// @return  [n_rows of its tree] mean weights; 0 for rows that the tapped row does not see
  std::vector<float> weights_of(std::size_t item_index,
                                const BatchItem& item,
                                const ForwardPlan& plan) const;

 private:
  struct Tap {
    int row;             // of the batch
    std::int64_t begin;  // in on_device_, in floats
    std::size_t n_chain;
    std::vector<float> of_layers;  // [n_tapped_, n_chain]
  };
  kernels::Device& device_;
  int n_layers_, n_tapped_;
  std::vector<Tap> taps_;
  kernels::DeviceBuffer on_device_;  // the taps one after another, each [n_tapped_, n_chain]
  std::vector<void*> row_to_;        // host addresses for one download
};

}  // namespace engine
