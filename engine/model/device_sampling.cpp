#include "engine/model/device_sampling.h"

#include <algorithm>

namespace engine {

void DeviceSampling::draw(const DeviceLogits& there,
                          std::span<const BatchItem> items,
                          const ForwardPlan& plan) {
  rows_.clear(), drawing_.clear(), uniforms_.clear();
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].draw) continue;
    ensure(items[i].pick_rows, "a distribution is of a row that has logits");
    const DrawRequest& asked = *items[i].draw;
    const int row = plan.row_begin(i) + items[i].tree->n_rows() - 1;
    rows_.push_back(there.rows[row]);
    drawing_.push_back({.row = row,
                        .first = static_cast<int>(uniforms_.size()),
                        .n = static_cast<int>(asked.uniforms.size()),
                        .again = asked.again,
                        .distribution = asked.distribution});
    uniforms_.insert(uniforms_.end(), asked.uniforms.begin(), asked.uniforms.end());
  }
  drawn_.resize(drawing_.size());
  tokens_.resize(uniforms_.size());
  there.device.ops().draw(there.device, there.logits, there.vocab, there.vocab, there.n_valid,
                          rows_.data(), drawing_.data(), static_cast<int>(drawing_.size()),
                          uniforms_.data(), drawn_.data(), tokens_.data());
}

void DeviceSampling::verify(const DeviceLogits& there,
                            std::span<const BatchItem> items,
                            const ForwardPlan& plan) {
  rows_.clear(), judging_.clear(), candidates_.clear();
  n_rejection_tokens_ = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].verify_request) continue;
    ensure(items[i].pick_rows, "a distribution is of a row that has logits");
    const VerifyRequest& asked = *items[i].verify_request;
    if (items[i].shown)
      n_rejection_tokens_ = std::max(n_rejection_tokens_, asked.n_rejection_tokens);
    for (kernels::VerifyNode node : asked.nodes) {
      ensure(node.row >= 0 && node.row < items[i].tree->n_rows(), "a question is of a tree's row");
      node.row += plan.row_begin(i);
      node.first += static_cast<int>(candidates_.size());
      rows_.push_back(there.rows[node.row]);
      judging_.push_back(node);
    }
    candidates_.insert(candidates_.end(), asked.candidates.begin(), asked.candidates.end());
  }
  judged_.resize(judging_.size());
  of_candidates_.resize(candidates_.size());
  rejection_tokens_.resize(judging_.size() * static_cast<std::size_t>(n_rejection_tokens_));
  there.device.ops().verify(there.device, there.logits, there.vocab, there.vocab, there.n_valid,
                            rows_.data(), judging_.data(), static_cast<int>(judging_.size()),
                            candidates_.data(), static_cast<int>(candidates_.size()),
                            judged_.data(), of_candidates_.data(), n_rejection_tokens_,
                            rejection_tokens_.data());
}

void DeviceSampling::deliver_verified(std::span<const BatchItem> items,
                                      std::span<StepOutput> outputs) const {
  auto judged = judged_.begin();
  auto of_candidate = of_candidates_.begin();
  auto rejection_tokens = rejection_tokens_.begin();
  // The next n elements, and on.
  const auto take = [](auto& from, auto& to, std::size_t n) {
    const auto end = from + static_cast<std::ptrdiff_t>(n);
    to.assign(from, end);
    from = end;
  };
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].verify_request) continue;
    const std::size_t n_nodes = items[i].verify_request->nodes.size();
    take(judged, outputs[i].verify_result.nodes, n_nodes);
    take(of_candidate, outputs[i].verify_result.candidates,
         items[i].verify_request->candidates.size());
    take(rejection_tokens, outputs[i].verify_result.rejection_tokens,
         n_nodes * static_cast<std::size_t>(n_rejection_tokens_));
  }
}

}  // namespace engine
