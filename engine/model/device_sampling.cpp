#include "engine/model/device_sampling.h"

#include <algorithm>

namespace engine {

void DeviceSampling::draw(const DeviceLogits& device_logits,
                          std::span<const BatchItem> items,
                          const ForwardPlan& plan) {
  rows_.clear(), drawing_.clear(), uniforms_.clear();
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].draw) continue;
    ensure(items[i].pick_rows, "forward: draw and verify need pick_rows");
    const DrawRequest& request = *items[i].draw;
    const int row = plan.row_begin(i) + items[i].tree->n_rows() - 1;
    rows_.push_back(device_logits.rows[row]);
    drawing_.push_back({.row = row,
                        .first = static_cast<int>(uniforms_.size()),
                        .n = static_cast<int>(request.uniforms.size()),
                        .again = request.again,
                        .distribution = request.distribution});
    uniforms_.insert(uniforms_.end(), request.uniforms.begin(), request.uniforms.end());
  }
  drawn_.resize(drawing_.size());
  tokens_.resize(uniforms_.size());
  device_logits.device.ops().draw(device_logits.device, device_logits.logits, device_logits.vocab,
                                  device_logits.vocab, device_logits.n_valid, rows_.data(),
                                  drawing_.data(), static_cast<int>(drawing_.size()),
                                  uniforms_.data(), drawn_.data(), tokens_.data());
}

void DeviceSampling::verify(const DeviceLogits& device_logits,
                            std::span<const BatchItem> items,
                            const ForwardPlan& plan) {
  rows_.clear(), nodes_.clear(), candidates_.clear();
  n_rejection_tokens_ = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].verify_request) continue;
    ensure(items[i].pick_rows, "forward: draw and verify need pick_rows");
    const VerifyRequest& request = *items[i].verify_request;
    if (items[i].shown)
      n_rejection_tokens_ = std::max(n_rejection_tokens_, request.n_rejection_tokens);
    for (kernels::VerifyNode node : request.nodes) {
      ensure(node.row >= 0 && node.row < items[i].tree->n_rows(),
             "forward: a VerifyNode must name a row of the tree");
      node.row += plan.row_begin(i);
      node.first += static_cast<int>(candidates_.size());
      rows_.push_back(device_logits.rows[node.row]);
      nodes_.push_back(node);
    }
    candidates_.insert(candidates_.end(), request.candidates.begin(), request.candidates.end());
  }
  verified_.resize(nodes_.size());
  of_candidates_.resize(candidates_.size());
  rejection_tokens_.resize(nodes_.size() * static_cast<std::size_t>(n_rejection_tokens_));
  device_logits.device.ops().verify(
      device_logits.device, device_logits.logits, device_logits.vocab, device_logits.vocab,
      device_logits.n_valid, rows_.data(), nodes_.data(), static_cast<int>(nodes_.size()),
      candidates_.data(), static_cast<int>(candidates_.size()), verified_.data(),
      of_candidates_.data(), n_rejection_tokens_, rejection_tokens_.data());
}

void DeviceSampling::deliver_verified(std::span<const BatchItem> items,
                                      std::span<StepOutput> outputs) const {
  auto verified = verified_.begin();
  auto of_candidate = of_candidates_.begin();
  auto rejection_tokens = rejection_tokens_.begin();
  // Copies the next n elements.
  const auto take = [](auto& from, auto& to, std::size_t n) {
    const auto end = from + static_cast<std::ptrdiff_t>(n);
    to.assign(from, end);
    from = end;
  };
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].verify_request) continue;
    const std::size_t n_nodes = items[i].verify_request->nodes.size();
    take(verified, outputs[i].verify_result.nodes, n_nodes);
    take(of_candidate, outputs[i].verify_result.candidates,
         items[i].verify_request->candidates.size());
    take(rejection_tokens, outputs[i].verify_result.rejection_tokens,
         n_nodes * static_cast<std::size_t>(n_rejection_tokens_));
  }
}

}  // namespace engine
