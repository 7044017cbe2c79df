// Options of decoders with a draft model, and the names of the acceptance rules.
#pragma once

#include <optional>

#include "engine/decode/options.h"
#include "engine/decode/verify/draft_rules.h"

namespace engine {

struct DraftSettings;  // engine/decode/draft/drafter.h

/// Options of every decoder with a draft model. A value below 0 means the target's value.
struct DraftOptions : DecoderOptions {
  // a draft ends if the draft model's likeliest token has a lower probability
  double stop_below = 0;
  double draft_temperature = -1;
  int draft_top_k = -1;
  double draft_top_p = -1;
  double draft_min_p = -1;

  /// Sampling of the draft model: the target's, except for the values that these options set.
  Sampling draft_sampling(const Sampling& target) const;

 protected:
  /// Sets `info`: the decoder needs a draft model and supports rejection sampling.
  static void describe_needs(DecoderInfo& info);
  /// Declares these options.
  void bind_draft(OptionBinder& binder);
  /// Settings with the draft's sampling and stop_below. The caller sets the tree and the rule.
  DraftSettings draft_settings(const Sampling& target) const;
};

/// Options of a decoder that drafts a tree: `mcsd` and `seed`.
struct DraftTreeOptions : DraftOptions {
  DraftRule rule = DraftRule::Without;

 protected:
  /// Declares `rule` with this help text.
  void bind_rule(OptionBinder& binder, const char* help);
  /// @throws Error(Usage)  if the tree has more rows than a step may have
  void check_tree(const LevelCounts& counts) const;
};

}  // namespace engine
