// SEED's options. SEED is a schedule over several sequences (engine/run/rounds_scheduler.h), not a
// decoder: each sequence alone is speculative decoding with a draft tree, so these options make the
// same decoder as `mcsd`.
//   paper     Wang et al. 2024 (arXiv:2406.18200)
//   lossless  as mcsd; the schedule changes no token
//   needs     a draft model with the target's vocabulary
#pragma once

#include <optional>
#include <string>

#include "engine/decode/draft/draft_options.h"

namespace engine {

/// The options of `seed`: those of the schedule, then those of each sequence's draft tree.
struct SeedOptions final : DraftTreeOptions {
  int branches = 3;             // sequences that decode at the same time
  std::string policy = "fcfs";  // which waiting branch is next (engine/seed/policy.h)
  int batch_verify = 1;         // branches in one forward of the target
  // whether both models work at the same time (engine/seed/overlap.h)
  std::string overlap = "auto";
  // branches that draft at the same time, each with a cache of its own; 0: all, as in the paper
  int drafters = 1;
  int draft_threads = 1;                // of each drafter
  int target_threads = 0;               // threads of the target while both models work; 0: all
  std::optional<LevelCounts> k_config;  // nullopt is "auto", as in mcsd

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  void check() const override;
  /// The number of drafters, at least 1.
  int n_drafters() const { return drafters == 0 ? branches : drafters; }
  bool chooses_sizes() const override { return !k_config; }
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  std::optional<TreeShape> draft_shape() const override {
    return k_config ? std::optional(shape_of(*k_config)) : std::nullopt;
  }
};

}  // namespace engine
