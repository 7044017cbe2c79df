#include "engine/decode/draft/draft_options.h"

#include "engine/decode/draft/drafter.h"

namespace engine {
namespace {

constexpr int kMaxDraftTokens = 255;  // of one step

}  // namespace

void DraftOptions::describe_needs(DecoderInfo& info) {
  info.needs_draft = true;
  info.supports_rejection = true;
}

void DraftOptions::bind_draft(OptionBinder& binder) {
  constexpr const char* kTargets = "the target's";
  binder.real(
      "stop_below", stop_below, 0, 1,
      "Stops drafting when the draft model gives its token less than this probability: saves "
      "rows that would be rejected. It changes no token; under rejection sampling, not "
      "their distribution.");
  binder.real(
      "draft_temperature", draft_temperature, -1, 100,
      "Temperature of the draft; below 0: the target's; 0: proposes the most likely tokens.",
      kTargets);
  binder.whole("draft_top_k", draft_top_k, -1, 1 << 20,
               "The draft proposes only its k most likely tokens; 0: all; -1: the target's k.",
               kTargets);
  binder.real("draft_top_p", draft_top_p, -1, 1,
              "The draft proposes only its most likely tokens that together reach this probability "
              "(top-p); below 0: as the target.",
              kTargets);
  binder.real(
      "draft_min_p", draft_min_p, -1, 1,
      "The draft proposes only tokens with at least this fraction of its most likely token's "
      "probability (min-p); below 0: as the target.",
      kTargets);
}

Sampling DraftOptions::draft_sampling(const Sampling& target) const {
  Sampling sampling = target;
  if (draft_temperature >= 0) sampling.temperature = static_cast<float>(draft_temperature);
  if (draft_top_p >= 0) sampling.top_p = static_cast<float>(draft_top_p);
  if (draft_min_p >= 0) sampling.min_p = static_cast<float>(draft_min_p);
  if (draft_top_k >= 0) sampling.top_k = draft_top_k;
  return sampling;
}

DraftSettings DraftOptions::draft_settings(const Sampling& target) const {
  DraftSettings settings;
  settings.sampling = draft_sampling(target);
  settings.stop_below = static_cast<float>(stop_below);
  return settings;
}

void DraftTreeOptions::bind_rule(OptionBinder& binder, const char* help) {
  binder.choice("rule", rule,
                {{"without", DraftRule::Without},
                 {"with", DraftRule::With},
                 {"naive", DraftRule::Naive},
                 {"kseq", DraftRule::KSeq}},
                help);
}

void DraftTreeOptions::check_tree(const LevelCounts& counts) const {
  if (shape_of(counts).n_tokens <= kMaxDraftTokens) return;
  throw Error(ErrorCode::Usage, info().name + ": k_config: found '" + values().at("k_config") +
                                    "', a tree of more than " + std::to_string(kMaxDraftTokens) +
                                    " tokens; use smaller numbers or fewer");
}

}  // namespace engine
