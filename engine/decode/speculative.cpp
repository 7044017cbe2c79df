#include "engine/decode/speculative.h"

#include "engine/decode/draft/draft_verify.h"

namespace engine {

DecoderInfo SpeculativeOptions::describe() {
  DecoderInfo info;
  info.name = "speculative";
  info.title = "Speculative";
  info.summary =
      "A small draft model proposes a few tokens. The model verifies all of them in one step and "
      "accepts those that agree with it.";
  info.reference = "Leviathan et al. 2023, arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318";
  describe_needs(info);
  return info;
}

void SpeculativeOptions::bind(OptionBinder& binder) {
  binder.whole_or_auto(
      "gamma", gamma, 0, 64,
      "Tokens drafted per step. With more, a step can emit more, but the drafts after the first "
      "rejected one are wasted. 0 is plain decoding; 'auto' chooses the number in every step, by "
      "the measured time of rows and drafts and the acceptance of earlier drafts.");
  bind_draft(binder);
}

std::unique_ptr<Decoder> SpeculativeOptions::make(const DecoderContext& context) const {
  DraftSettings settings = draft_settings(context.sampling);
  settings.k_config.assign(static_cast<std::size_t>(gamma.value_or(1)), 1);
  return std::make_unique<DraftVerifyDecoder>(context, std::move(settings),
                                              gamma ? nullptr : &chains_to_choose());
}

std::optional<TreeShape> SpeculativeOptions::draft_shape() const {
  return gamma ? std::optional(TreeShape{*gamma, *gamma}) : std::nullopt;
}

}  // namespace engine
