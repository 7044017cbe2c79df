#include "engine/decode/mcsd.h"

#include <algorithm>

#include "engine/decode/draft/draft_verify.h"
#include "engine/decode/verify/sampling.h"

namespace engine {

DecoderInfo McsdOptions::describe() {
  DecoderInfo info;
  info.name = "mcsd";
  info.title = "Multi-candidate";
  info.summary =
      "A draft model proposes a tree with several candidates per position. The model verifies the "
      "whole tree in one step and accepts the path that agrees with it.";
  info.reference =
      "Yang et al. 2024, arXiv:2401.06706; SpecInfer, arXiv:2305.09781; SpecTr, "
      "arXiv:2310.15141";
  describe_needs(info);
  return info;
}

void McsdOptions::bind(OptionBinder& binder) {
  binder.counts_or_auto(
      "k_config", k_config, 1, 64,
      "Candidates below each node, level by level: 2,2,1 is 2 + 4 + 4 tokens, three deep. Width "
      "helps if the draft is often wrong, depth if it is often right. 'auto' chooses a tree or "
      "none "
      "in every step, by the measured time of rows and the acceptance of earlier candidates.");
  bind_rule(binder,
            "How candidates are drawn and verified under rejection sampling: drawn 'without' "
            "replacement (MCSD) or 'with' replacement (SpecInfer); 'naive': a candidate is "
            "accepted if it equals a token sampled from the model; 'kseq': K-Seq (SpecTr). The "
            "output has the same distribution.");
  bind_draft(binder);
  binder.flag(
      "as_released", as_released,
      "As the published program at draft temperature 0: verifies the candidates against a softmax "
      "that they were not drawn from. NOT lossless under rejection sampling; for demonstration.");
}

void McsdOptions::check() const {
  if (k_config) check_tree(*k_config);
}

std::unique_ptr<Decoder> McsdOptions::make(const DecoderContext& context) const {
  DraftSettings settings = draft_settings(context.sampling);
  if (k_config) settings.k_config = *k_config;
  settings.rule = rule;
  settings.as_released = as_released;
  return std::make_unique<DraftVerifyDecoder>(context, std::move(settings),
                                              k_config ? nullptr : &trees_to_choose());
}

// As released, deterministic candidates are verified against a softmax that they were not drawn
// from. This changes the distribution only if rejection sampling compares with q (not under
// "naive"), and if a node has several candidates: a softmax over one is 1.
bool McsdOptions::keeps_distribution(const Sampling& sampling) const {
  if (!as_released || !rejects(sampling) || rule == DraftRule::Naive) return true;
  const bool is_chain = k_config && std::ranges::all_of(*k_config, [](int k) { return k == 1; });
  return is_chain || !draft_sampling(sampling).greedy();
}

std::optional<TreeShape> McsdOptions::draft_shape() const {
  return k_config ? std::optional(shape_of(*k_config)) : std::nullopt;
}

}  // namespace engine
