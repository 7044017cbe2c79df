#include "engine/decode/speculative.h"

#include "engine/decode/options.h"

namespace engine {
namespace {

DraftSettings chain_of_gamma(const DecoderContext& context) {
  DraftSettings settings = draft_settings(context.options, context.sampling);
  settings.k_config.assign(static_cast<std::size_t>(int_option(context.options, "gamma")), 1);
  return settings;
}

}  // namespace

SpeculativeDecoder::SpeculativeDecoder(const DecoderContext& context)
    : DraftVerifyDecoder(context, chain_of_gamma(context)) {}

}  // namespace engine
