#include "engine/decode/draft/draft_verify.h"

#include <algorithm>
#include <utility>

#include "engine/base/types.h"
#include "engine/decode/verify/verify.h"
#include "engine/event/clock.h"
#include "kernels/device.h"

namespace engine {
namespace {

LanguageModel& draft_of(const DecoderContext& context) {
  ensure(context.draft_model != nullptr, "a decoder that drafts needs a draft model");
  return *context.draft_model;
}

/// True if the target's device can read distributions that the draft's device wrote. Device objects
/// of one GPU have the same name.
bool share_memory(LanguageModel& target, LanguageModel& draft) {
  const kernels::Device* verifying = target.distributions_device();
  const kernels::Device* drafting = draft.distributions_device();
  return verifying && drafting && verifying->name() == drafting->name() &&
         target.vocab_size() == draft.vocab_size();
}

DraftSettings with_distributions(DraftSettings settings, const DecoderContext& context) {
  settings.with_distributions = rejects(context.sampling);
  settings.distributions_stay = settings.with_distributions &&
                                share_memory(context.target, draft_of(context)) &&
                                (!context.uniforms || context.uniforms->is_threshold_independent());
  return settings;
}

/// After this many consecutive failed drafts, the run continues without drafts.
constexpr int kMaxFailures = 3;

/// True for errors after which the target still works (NaN logits, lack of memory); false for a
/// lost device.
bool costs_drafts_alone(const Error& error) {
  return error.code() == ErrorCode::BadInput || error.code() == ErrorCode::Resources;
}

}  // namespace

DraftVerifyDecoder::DraftVerifyDecoder(const DecoderContext& context,
                                       DraftSettings settings,
                                       const std::vector<LevelCounts>* trees)
    : target_(context.target),
      sampling_(context.sampling),
      limits_(context.limits),
      rule_(settings.rule),
      rejects_(rejects(context.sampling)),
      uniforms_(context.sampling.seed, context.uniforms),
      drafter_(draft_of(context),
               with_distributions(std::move(settings), context),
               context.draft_prompts),
      control_(context.control, context.choices),
      trees_(trees) {
  if (!trees) return;
  known_ =
      &control_.knowledge<DraftKnowledge>("draft " + std::to_string(context.draft_id), rejects_);
}

void DraftVerifyDecoder::begin(const Sequence& prefix) {
  kept_.clear();
  drafter_.begin();
  is_begun_ = true;
  if (trees_) choose_tree(prefix);
}

/// Tokens that may be drafted after the prefix: one fewer than the step may emit, because the last one is
/// the target's own.
int DraftVerifyDecoder::n_more(const Sequence& prefix) const {
  return room_left(prefix, limits_, target_.max_seq_len()) - 1;
}

int DraftVerifyDecoder::n_unread(const Sequence& prefix) const {
  const LevelCounts& tree = trees_ ? (*trees_)[next_.tree] : drafter_.tree();
  const bool drafts = !tree.empty() && n_more(prefix) >= 1 && is_begun_ &&
                      drafter_.has_room(prefix.tokens().size());
  return drafts && !drafter_.has_read() ? static_cast<int>(prefix.prompt().size()) - 1 : 0;
}

void DraftVerifyDecoder::read_prompt(const Sequence& prefix) {
  const Nanoseconds begun = now_ns();
  try {
    drafter_.read_prompt(prefix);
    reading_ms_ = static_cast<double>(now_ns() - begun) * 1e-6;
  } catch (const Error& error) {
    if (!costs_drafts_alone(error)) throw;
    report_failure(error.what());
  }
}

void DraftVerifyDecoder::report_failure(const std::string& why) {
  is_begun_ = false;
  n_failed_in_a_row_++;
  if (n_failed_in_a_row_ > 1 && n_failed_in_a_row_ < kMaxFailures) return;
  const char* what = n_failed_in_a_row_ < kMaxFailures ? "this step" : "the rest of this text";
  events_.push_back(Notice{.level = Notice::Level::Warning,
                           .text = "the draft model failed: " + why + "; " + what +
                                   " continues without drafts, one token per step"});
}

// A failed draft must not end the run, which can continue without drafts.
Drafts DraftVerifyDecoder::draft(const Sequence& prefix, int room) {
  if (n_failed_in_a_row_ >= kMaxFailures) return Drafts::none(prefix.last());
  try {
    if (!is_begun_) drafter_.begin_again(prefix);
    is_begun_ = true;
    Drafts drafts = drafter_.propose(prefix, room, *uniforms_);
    n_failed_in_a_row_ = 0;
    return drafts;
  } catch (const Error& error) {
    if (!costs_drafts_alone(error)) throw;
    report_failure(error.what());
  }
  return Drafts::none(prefix.last());
}

TokenTree DraftVerifyDecoder::propose(const Sequence& prefix) {
  commit_to_draft();
  const int room = n_more(prefix);
  if (!is_full_ && room > 0 && drafter_.is_full(prefix.tokens().size())) {
    is_full_ = true;
    events_.push_back(
        Notice{.level = Notice::Level::Warning,
               .text = "the draft model's context of " + std::to_string(drafter_.context()) +
                       " tokens is full: this text continues without drafts, one token per step"});
  }
  decision_ = next_.decision;
  if (trees_) drafter_.set_tree((*trees_)[next_.tree]);
  drafts_ = draft(prefix, room);
  int depth = 0;
  for (const RowTag& tag : drafts_.tree.tag) depth = std::max(depth, static_cast<int>(tag.a));
  n_depth_ += depth;
  return drafts_.tree;
}

void DraftVerifyDecoder::choose_tree(const Sequence& prefix) {
  const std::vector<SizePlan> plans = known_->plans(*trees_, *control_);
  double reading_ms = 0;
  if (!drafter_.has_read())
    reading_ms = known_->reading_ms(static_cast<int>(prefix.prompt().size()) - 1,
                                    n_more(prefix) + 1, *control_);
  // The choice includes the time of reading. The reported plan of the step does not.
  SizeChoice choice =
      known_->choose(reading_ms > 0 ? known_->plans(*trees_, *control_, reading_ms) : plans);
  choice.index = control_.decide(choice.index, plans.size());
  const int n_tokens = rows_of((*trees_)[choice.index]) - 1;
  next_ = {choice.index, decision_of(choice, plans, n_tokens)};
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
  if (!rejects_) return verify_exact_match(tree, out);
  return reject_drafted(prefix.tokens(), tree, drafts_.candidates, out, sampling_, rule_,
                        *uniforms_);
}

void DraftVerifyDecoder::committed(const Sequence& prefix, const Decision& cut) {
  // Counts accepted rows by their results. The path does not suffice: if the run ends within it,
  // the path lacks the row of the last emitted token.
  n_kept_ += std::ranges::count(fates_of(drafts_.tree, cut), RowFate::Accepted);
  kept_ = cut.path;
  if (!trees_) return;
  learn(prefix, cut);
  if (!prefix.finished()) choose_tree(prefix);
}

/// Counts which candidate of each node on the path was kept, the time of the draft's forwards and of
/// its prompt, and the length of a finished sequence.
void DraftVerifyDecoder::learn(const Sequence& prefix, const Decision& cut) {
  if (reading_ms_ > 0)
    known_->add_reading(static_cast<int>(prefix.prompt().size()) - 1,
                        std::exchange(reading_ms_, 0));
  if (prefix.finished())
    known_->sequence_ended(static_cast<int>(prefix.generated().size()), drafter_.has_read());
  for (const DraftForward& forward : drafts_.forwards)
    known_->add_forward(forward, control_->is_overlapped());
  known_->came(static_cast<int>(cut.emitted.size()), decision_.ms / decision_.plain_ms);
  for (std::size_t i = 0; i < cut.path.size(); i++) {
    const std::vector<int>& children =
        drafts_.candidates[static_cast<std::size_t>(cut.path[i])].rows;
    if (children.empty()) return;
    const auto kept = std::ranges::find(children, cut.emitted[i], [&](int row) {
      return drafts_.tree.token[static_cast<std::size_t>(row)];
    });
    known_->add_verified(static_cast<int>(children.size()),
                         kept == children.end() ? -1 : static_cast<int>(kept - children.begin()));
  }
}

void DraftVerifyDecoder::commit_to_draft() {
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
  if (trees_) figures["tree_tokens"] = decision_.size;
  return figures;
}

}  // namespace engine
