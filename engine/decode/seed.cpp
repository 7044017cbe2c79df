#include "engine/decode/seed.h"

#include <string>

#include "engine/base/types.h"
#include "engine/decode/draft/draft_verify.h"

namespace engine {
namespace {

constexpr int kMostThreads = 1024;

}  // namespace

DecoderInfo SeedOptions::describe() {
  DecoderInfo info;
  info.name = "seed";
  info.title = "SEED";
  info.summary =
      "Decodes several sequences at once: while the model verifies the draft of one sequence, the "
      "draft model drafts for the others. With a single sequence it is speculative decoding.";
  info.reference = "Wang et al. 2024, arXiv:2406.18200";
  describe_needs(info);
  return info;
}

void SeedOptions::bind(OptionBinder& binder) {
  binder.whole(
      "branches", branches, 1, 64,
      "Texts decoded at once. More of them hide the draft's time better, and each needs a cache.");
  binder.choice<std::string>(
      "policy", policy, {{"fcfs", "fcfs"}, {"shortest", "shortest"}, {"priority", "priority"}},
      "The next text to draft for, and the next draft to verify: first come, first served "
      "(fcfs), the shortest text, or the state of the highest value (priority). It changes no "
      "token.");
  binder.whole(
      "batch_verify", batch_verify, 1, 64,
      "Drafts of different texts that the model may verify in one step. 1 is the published "
      "schedule; with more, one pass over the weights verifies all of them.");
  binder.choice<std::string>(
      "overlap", overlap, {{"auto", "auto"}, {"always", "always"}, {"never", "never"}},
      "Drafting while the model verifies: 'auto' chooses the way that yields more tokens per "
      "time, 'always' is the published schedule, 'never' runs the two models in turn, each with "
      "all threads. It changes no token.");
  binder.whole(
      "drafters", drafters, 0, 64,
      "Sequences drafted at the same time while the model verifies, each on draft_threads threads. "
      "0: every sequence has its own drafter, as published. The drafters share the draft model's "
      "weights. Several drafters need spare processors. It changes no token.");
  binder.whole(
      "draft_threads", draft_threads, 1, kMostThreads,
      "Processor threads of each drafter, in addition to the model's. If the models run in turn, "
      "drafting uses all threads.");
  binder.whole(
      "target_threads", target_threads, 0, kMostThreads,
      "Processor threads of the model during drafting; 0: all, which the drafting threads then "
      "share. If drafting takes long, fewer may be faster.");
  binder.counts_or_auto(
      "k_config", k_config, 1, 64,
      "Candidates below each node, level by level: 1,1,1 is a chain of three; 2,2,1 a tree of 2 + "
      "4 + 4 tokens (mcsd). 'auto' chooses a tree or none in every step, as in mcsd; the time of a "
      "draft counts less while the model verifies another text.");
  bind_rule(binder, "How candidates are drawn and verified under rejection sampling, as in mcsd.");
  bind_draft(binder);
}

void SeedOptions::check() const {
  const auto refuse = [this](const std::string& why) {
    throw Error(ErrorCode::Usage, "seed: drafters=" + std::to_string(drafters) + " " + why);
  };
  if (drafters > branches)
    refuse("is more than branches=" + std::to_string(branches) +
           ", but a sequence has only one draft at a time; use fewer drafters or more branches");
  if (overlap == "never" && n_drafters() != 1)
    refuse(
        "needs drafting while the model verifies, but overlap=never drafts on the thread that "
        "verifies; use drafters=1, or overlap=auto or always");
  if (n_drafters() * draft_threads > kMostThreads)
    refuse("and draft_threads=" + std::to_string(draft_threads) + " make more than " +
           std::to_string(kMostThreads) + " threads; use fewer of either");
  if (k_config) check_tree(*k_config);
}

std::unique_ptr<Decoder> SeedOptions::make(const DecoderContext& context) const {
  DraftSettings settings = draft_settings(context.sampling);
  if (k_config) settings.k_config = *k_config;
  settings.rule = rule;
  return std::make_unique<DraftVerifyDecoder>(context, std::move(settings),
                                              k_config ? nullptr : &trees_to_choose());
}

}  // namespace engine
