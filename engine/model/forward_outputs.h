// The outputs of a forward. Computes what each batch item requests from its logits and hidden
// states, and copies it from the device to the item's StepOutput. request() starts the operations;
// after one wait, collect() reads their results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/model/device_sampling.h"
#include "engine/model/language_model.h"
#include "engine/model/rows_plan.h"
#include "kernels/device.h"

namespace engine {

/// The outputs of one model. The object is kept between forwards to reuse its memory.
class ForwardOutputs {
 public:
  /// @param device   outlives the outputs
  /// @param n_valid  number of tokens that may be chosen; logits of tokens >= n_valid are ignored
  /// @param output_tokens  the token of each column of logits, ascending; empty: column i is token i. Outlives the outputs
  /// @param name     of the model, for error messages
  ForwardOutputs(kernels::Device& device,
                 const ModelConfig& config,
                 int n_valid,
                 std::span<const TokenId> output_tokens,
                 std::string name,
                 kernels::DType dtype);
  /// Runs the device's part of the outputs. The device defers downloads (kernels::BatchedDownloads).
  /// @param logits   [plan.n_picked(), config.n_outputs()] on the device
  /// @param hidden   [rows, dim] on the device, after the final norm
  /// @param outputs  [items]; must stay in place until collect()
  void request(std::span<const BatchItem> items,
               Wants wants,
               const ForwardPlan& plan,
               const float* logits,
               const float* hidden,
               std::vector<StepOutput>& outputs);
  /// Fills the outputs, after the downloads are finished.
  /// @throws Error(BadInput)  if the logits of a picked row are not finite
  void collect(std::span<const BatchItem> items,
               Wants wants,
               const ForwardPlan& plan,
               std::vector<StepOutput>& outputs);

 private:
  void describe_picks(std::span<const BatchItem> items, const ForwardPlan& plan);
  void request_tokens(std::span<const BatchItem> items,
                      Wants wants,
                      const ForwardPlan& plan,
                      const float* logits,
                      std::vector<StepOutput>& outputs);
  void request_top(const ForwardPlan& plan, int n_top, const float* logits);
  void request_row_p(std::span<const BatchItem> items,
                     const ForwardPlan& plan,
                     const float* logits,
                     std::vector<StepOutput>& outputs);
  void request_logits(std::span<const BatchItem> items,
                      const ForwardPlan& plan,
                      const float* logits,
                      std::vector<StepOutput>& outputs);
  void request_hidden(std::span<const BatchItem> items,
                      const ForwardPlan& plan,
                      const float* hidden,
                      std::vector<StepOutput>& outputs);
  void request_hidden_row(const float* hidden, StepOutput& output);
  void collect_picks(std::span<const BatchItem> items,
                     const ForwardPlan& plan,
                     std::vector<StepOutput>& outputs) const;
  void collect_draws(std::span<const BatchItem> items, std::vector<StepOutput>& outputs) const;
  void collect_ranks(std::span<const BatchItem> items,
                     const ForwardPlan& plan,
                     int k,
                     std::vector<StepOutput>& outputs) const;
  void collect_top(std::span<const BatchItem> items,
                   const ForwardPlan& plan,
                   int n_top,
                   std::vector<StepOutput>& outputs) const;
  void collect_row_p() const;
  [[noreturn]] void refuse_logits(int row, int bad_index) const;

  void add_to_history(TokenId token);
  /// Checks that a model with output tokens gets only requests that it supports.
  void check_output_tokens(std::span<const BatchItem> items, Wants wants) const;
  void scatter_logits(std::span<const BatchItem> items,
                      const ForwardPlan& plan,
                      std::vector<StepOutput>& outputs) const;
  /// The token of a column of logits.
  TokenId token_of(int column) const {
    return output_tokens_.empty() || column < 0 ? column
                                                : output_tokens_[static_cast<std::size_t>(column)];
  }

  kernels::Device& device_;
  const kernels::Ops& ops_;
  int n_valid_;                             // tokens that may be chosen
  int n_columns_, n_valid_columns_;         // columns of logits on the device, and those of tokens
  std::span<const TokenId> output_tokens_;  // the model's
  int dim_;
  std::string name_;
  kernels::DType dtype_;

  std::vector<kernels::PickRow> pick_rows_;   // [n_picked]
  std::vector<kernels::Picked> picked_;       // [n_picked]
  std::vector<kernels::Ranking> rankings_;    // [n_picked]
  std::vector<kernels::RankedToken> ranked_;  // [n_picked, k]
  std::vector<kernels::PickRow> top_rows_;    // [n_picked] without penalty and filters
  std::vector<kernels::RankedToken> top_;     // [n_picked, n_top]
  // the histories of all rows with a repetition penalty, concatenated
  std::vector<std::int32_t> history_;
  struct RowP {
    float* p;
    std::size_t parent;  // of the batch
  };
  std::vector<RowP> row_p_;             // rows whose probability is reported
  std::vector<std::int64_t> logit_at_;  // [row_p_] index of the row's own logit in its parent's row
  std::vector<float> logit_of_row_;     // [row_p_] that logit
  std::vector<float> column_logits_;    // [n_picked, output tokens]; empty without output tokens
  std::vector<void*> row_to_;           // host addresses for one download
  DeviceSampling distributions_;
};

}  // namespace engine
