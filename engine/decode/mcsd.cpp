#include "engine/decode/mcsd.h"

#include "engine/decode/options.h"
#include "engine/decode/verify/sampling.h"

namespace engine {
namespace {

DraftRule rule_named(const std::string& name) {
  if (name == "with") return DraftRule::With;
  if (name == "naive") return DraftRule::Naive;
  return name == "kseq" ? DraftRule::KSeq : DraftRule::Without;
}

DraftSettings tree_of_k(const DecoderContext& context) {
  DraftSettings settings = draft_settings(context.options, context.sampling);
  if (!is_auto(context.options, "k_config"))
    settings.k_config = counts_option(context.options, "k_config");
  settings.rule = rule_named(text_option(context.options, "rule"));
  settings.as_released =
      context.options.contains("as_released") && bool_option(context.options, "as_released");
  return settings;
}

}  // namespace

McsdDecoder::McsdDecoder(const DecoderContext& context)
    : DraftVerifyDecoder(context, tree_of_k(context), is_auto(context.options, "k_config")) {
  if (is_auto(context.options, "k_config") && rejects(context.sampling))
    throw Error(ErrorCode::Usage,
                "mcsd: k_config=auto chooses trees by measured time, and under sampling=rejection "
                "what a seed draws depends on the tree; name one (k_config=2,1,1), or use "
                "sampling=coupled");
}

}  // namespace engine
