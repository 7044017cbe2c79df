#include "engine/decode/draft/draft_verify.h"

#include <algorithm>
#include <utility>

#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"
#include "engine/base/types.h"
#include "kernels/device.h"

namespace engine {
namespace {

LanguageModel& draft_of(const DecoderContext& context) {
  ensure(context.draft_model != nullptr, "a decoder that drafts was made without a draft model");
  return *context.draft_model;
}

/// Whether the target's device reads distributions that the draft's has written: device objects of one GPU
/// have one name.
bool share_memory(LanguageModel& target, LanguageModel& draft) {
  const kernels::Device* there = target.distributions_device();
  const kernels::Device* drafts = draft.distributions_device();
  return there && drafts && there->name() == drafts->name() &&
         target.vocab_size() == draft.vocab_size();
}

DraftSettings with_distributions(DraftSettings settings, const DecoderContext& context) {
  settings.with_distributions = rejects(context.sampling);
  settings.distributions_stay = settings.with_distributions &&
                                share_memory(context.target, draft_of(context)) &&
                                (!context.uniforms || context.uniforms->is_threshold_independent());
  return settings;
}

/// After so many steps in a row whose draft failed a text is asked no more drafts for.
constexpr int kGivenUp = 3;

/// Logits that are no numbers, or no memory; not a device that is lost to the target too.
bool costs_drafts_alone(const Error& error) {
  return error.code() == ErrorCode::BadInput || error.code() == ErrorCode::Resources;
}

}  // namespace

DraftSettings draft_settings(const OptionValues& options, const Sampling& target) {
  DraftSettings settings;
  settings.sampling = target;
  const auto set = [&](const char* name, float& value) {
    const double given = float_option(options, name);
    if (given >= 0) value = static_cast<float>(given);
  };
  set("draft_temperature", settings.sampling.temperature);
  set("draft_top_p", settings.sampling.top_p);
  set("draft_min_p", settings.sampling.min_p);
  set("stop_below", settings.stop_below);
  if (const int k = int_option(options, "draft_top_k"); k >= 0) settings.sampling.top_k = k;
  return settings;
}

DraftVerifyDecoder::DraftVerifyDecoder(const DecoderContext& context,
                                       DraftSettings settings,
                                       bool sized)
    : target_(context.target),
      sampling_(context.sampling),
      limits_(context.limits),
      rule_(settings.rule),
      rejects_(rejects(context.sampling)),
      uniforms_(context.sampling.seed, context.uniforms),
      drafter_(draft_of(context),
               with_distributions(std::move(settings), context),
               context.draft_prompts) {
  if (!sized) return;
  if (!context.tree_tuner) own_tuner_ = std::make_unique<TreeTuner>();
  tuner_ = context.tree_tuner ? context.tree_tuner : own_tuner_.get();
  drafter_.draft_by(tuner_->tree(tuner_->choose()));
}

void DraftVerifyDecoder::begin(const Sequence& prefix) {
  kept_.clear();
  try {
    drafter_.begin(prefix);
    is_begun_ = true;
  } catch (const Error& error) {
    if (!costs_drafts_alone(error)) throw;
    tell_failed(error.what());
  }
}

void DraftVerifyDecoder::tell_failed(const std::string& why) {
  is_begun_ = false;
  n_failed_in_a_row_++;
  if (n_failed_in_a_row_ > 1 && n_failed_in_a_row_ < kGivenUp) return;
  const char* what = n_failed_in_a_row_ < kGivenUp ? "this step" : "the rest of this text";
  events_.push_back(Notice{.level = Notice::Level::Warning,
                           .text = "the draft model failed: " + why + "; " + what +
                                   " goes on without drafts, a token a step"});
}

// What a draft may not cost is the text, which needs none.
Drafts DraftVerifyDecoder::drafted(const Sequence& prefix, int room) {
  if (n_failed_in_a_row_ >= kGivenUp) return Drafts::none(prefix.last());
  try {
    if (!is_begun_) drafter_.begin_again(prefix);
    is_begun_ = true;
    Drafts drafts = drafter_.propose(prefix, room, *uniforms_);
    n_failed_in_a_row_ = 0;
    return drafts;
  } catch (const Error& error) {
    if (!costs_drafts_alone(error)) throw;
    tell_failed(error.what());
  }
  return Drafts::none(prefix.last());
}

TokenTree DraftVerifyDecoder::propose(const Sequence& prefix) {
  settle();
  const int room = room_left(prefix, limits_, target_.max_seq_len()) - 1;
  if (!is_full_ && room > 0 && drafter_.is_full(prefix.tokens().size())) {
    is_full_ = true;
    events_.push_back(
        Notice{.level = Notice::Level::Warning,
               .text = "the draft model's context of " + std::to_string(drafter_.context()) +
                       " tokens is full: this text goes on without drafts, a token a step"});
  }
  if (tuner_) {
    sized_ = tuner_->choose();
    drafter_.draft_by(tuner_->tree(sized_));
    proposed_ = std::chrono::steady_clock::now();
  }
  drafts_ = drafted(prefix, room);
  int depth = 0;
  for (const RowTag& tag : drafts_.tree.tag) depth = std::max(depth, static_cast<int>(tag.a));
  n_depth_ += depth;
  return drafts_.tree;
}

const VerifyRequest* DraftVerifyDecoder::verify_request(const Sequence& prefix,
                                                        const TokenTree& tree) {
  const bool needs_host = std::ranges::any_of(
      drafts_.candidates, [](const Candidates& below) { return !below.distribution.empty(); });
  if (!rejects_ || needs_host || !uniforms_->is_threshold_independent()) return nullptr;
  verify_request_ =
      drafted_verify_request(prefix.tokens(), tree, drafts_.candidates, rule_, *uniforms_);
  return &verify_request_;
}

Decision DraftVerifyDecoder::verify(const Sequence& prefix,
                                    const TokenTree& tree,
                                    const StepOutput& out) {
  if (tuner_) learn_cost();
  if (!rejects_) return verify_exact_match(tree, out);
  return reject_drafted(prefix.tokens(), tree, drafts_.candidates, out, sampling_, rule_,
                        *uniforms_);
}

void DraftVerifyDecoder::committed(const Sequence& /*prefix*/, const Decision& cut) {
  // Not the path's rows: where the text ends in an accepted run, its last token has none.
  n_kept_ += std::ranges::count(fates_of(drafts_.tree, cut), RowFate::Accepted);
  kept_ = cut.path;
  if (tuner_) learn_kept(cut);
}

/// A tree cut short by the text's end, or by stop_below, has other costs than its own.
void DraftVerifyDecoder::learn_cost() {
  if (drafts_.tree.n_rows() != rows_of(tuner_->tree(sized_))) return;
  const std::chrono::duration<double> cost = std::chrono::steady_clock::now() - proposed_;
  tuner_->took(sized_, cost.count());
}

void DraftVerifyDecoder::learn_kept(const Decision& cut) {
  for (std::size_t i = 0; i < cut.path.size(); i++) {
    const std::vector<int>& children =
        drafts_.candidates[static_cast<std::size_t>(cut.path[i])].rows;
    if (children.empty()) return;
    const auto kept = std::ranges::find(children, cut.emitted[i], [&](int row) {
      return drafts_.tree.token[static_cast<std::size_t>(row)];
    });
    tuner_->judged(static_cast<int>(children.size()),
                   kept == children.end() ? -1 : static_cast<int>(kept - children.begin()));
  }
}

void DraftVerifyDecoder::settle() {
  if (!kept_.empty() && is_begun_) drafter_.committed(kept_);
  kept_.clear();
}

std::map<std::string, std::int64_t> DraftVerifyDecoder::counts() const {
  std::map<std::string, std::int64_t> counts = drafter_.counts();
  if (n_depth_ > 0) counts["draft_depth"] = n_depth_;
  return counts;
}

std::map<std::string, double> DraftVerifyDecoder::figures() const {
  std::map<std::string, double> figures;
  if (n_depth_ > 0)
    figures["depth_accepted"] = static_cast<double>(n_kept_) / static_cast<double>(n_depth_);
  if (tuner_) figures["tree_tokens"] = rows_of(tuner_->tree(tuner_->best())) - 1;
  return figures;
}

}  // namespace engine
