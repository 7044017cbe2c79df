#include "engine/decode/seed.h"

#include "engine/decode/draft/draft_verify.h"

namespace engine {

DecoderInfo SeedOptions::describe() {
  DecoderInfo info;
  info.name = "seed";
  info.title = "SEED";
  info.summary =
      "Several texts at a time take turns at the model: while it verifies the draft of one, "
      "the draft model writes ahead for the others. A text alone is speculative decoding.";
  info.reference = "Wang et al. 2024, arXiv:2406.18200";
  describe_needs(info);
  return info;
}

void SeedOptions::bind(OptionBinder& binder) {
  binder.whole(
      "branches", branches, 1, 64,
      "Texts that decode at once. More hide the draft's time better and cost a cache each.");
  binder.choice<std::string>(
      "policy", policy, {{"fcfs", "fcfs"}, {"shortest", "shortest"}, {"priority", "priority"}},
      "Who is next, of the texts that wait for the draft model and of those whose "
      "draft waits for verification: first come first served, the shortest text, or the "
      "most valuable state (priority). It changes no token.");
  binder.whole(
      "batch_verify", batch_verify, 1, 64,
      "Drafts of different texts that the model may verify in one step. 1 is the published "
      "schedule; more share the reading of the weights.");
  binder.choice<std::string>(
      "overlap", overlap, {{"auto", "auto"}, {"always", "always"}, {"never", "never"}},
      "Whether the draft model works while the model verifies: 'auto' measures both and "
      "keeps the quicker, 'always' is the published schedule, 'never' takes turns, with all "
      "threads for the model that works. It changes no token.");
  binder.whole("draft_threads", draft_threads, 1, 1024,
               "Processor threads that draft, beside those of the model. In turn it has them all.");
  binder.whole(
      "target_threads", target_threads, 0, 1024,
      "Processor threads of the model while the draft works beside it; 0: all of them, which "
      "the drafting ones then share. Where drafting takes long, fewer may be faster.");
  binder.counts("k_config", k_config, 1, 64,
                "Candidates below each node, level by level: 1,1,1 is a chain of three; 2,2,1 a "
                "tree of 2 + 4 + 4 tokens (mcsd).");
  bind_rule(binder, "How candidates are drawn and verified under rejection sampling, as in mcsd.");
  bind_draft(binder);
}

void SeedOptions::check() const {
  check_tree(k_config);
}

std::unique_ptr<Decoder> SeedOptions::make(const DecoderContext& context) const {
  DraftSettings settings = draft_settings(context.sampling);
  settings.k_config = k_config;
  settings.rule = rule;
  return std::make_unique<DraftVerifyDecoder>(context, std::move(settings));
}

}  // namespace engine
