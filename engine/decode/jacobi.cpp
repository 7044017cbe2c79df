#include "engine/decode/jacobi.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/types.h"
#include "engine/decode/guess/textbook_jacobi.h"
#include "engine/decode/verify/draft_rules.h"
#include "engine/decode/verify/verify.h"

namespace engine {

using Refill = JacobiOptions::Refill;

namespace {

constexpr int kTextbookBlock = 16;  // of form=textbook with block=auto

}  // namespace

DecoderInfo JacobiOptions::describe() {
  DecoderInfo info;
  info.name = "jacobi";
  info.title = "Jacobi";
  info.summary =
      "Guesses a whole block and refines all of its tokens in every step. The first tokens that "
      "a step leaves unchanged are final.";
  info.reference =
      "Song et al. 2021, arXiv:2002.03629; Kou et al. 2024, arXiv:2403.00835 (CLLM); Teng et al. "
      "2024, arXiv:2410.01699 (rejection sampling)";
  info.supports_rejection = true;
  return info;
}

void JacobiOptions::bind(OptionBinder& binder) {
  binder.whole_or_auto(
      "block", block, 1, 256,
      "Tokens refined at once: a longer block can finish more in one step, but each step computes "
      "that many rows. 1 is plain decoding; 'auto' chooses the block that yields the most tokens "
      "per time.");
  binder.choice("refill", refill, {{"block", Refill::Block}, {"slide", Refill::Slide}},
                "The rest of the block after tokens become final: 'block' shrinks it until all are "
                "final and then starts the next block (CLLM); 'slide' appends new guesses in "
                "every step (FastCoT).");
  binder.choice("fill", fill,
                {{"prompt", BlockFiller::Fill::Prompt},
                 {"pad", BlockFiller::Fill::Pad},
                 {"repeat", BlockFiller::Fill::Repeat}},
                "First guesses of a block: 'prompt' draws random tokens of the text so far, 'pad' "
                "takes token 0, 'repeat' repeats the last token.");
  binder.choice("form", form, {{"kv", Form::Kv}, {"textbook", Form::Textbook}},
                "'kv' caches keys and values of final tokens, so the block shrinks; 'textbook' "
                "computes the whole block in every step until nothing changes: the same tokens, "
                "more work, for demonstration.");
}

void JacobiOptions::check() const {
  if (form != Form::Textbook || refill != Refill::Slide) return;
  throw Error(ErrorCode::Usage,
              "jacobi: refill is slide, but form=textbook computes a block until all of it is "
              "final and has nothing to slide; use refill=block or form=kv");
}

std::optional<std::string> JacobiOptions::why_no_rejection() const {
  if (form == Form::Kv) return std::nullopt;
  return "jacobi cannot run with sampling=rejection and form=textbook, which iterates to a fixed "
         "point; use form=kv, or sampling=coupled";
}

std::unique_ptr<Decoder> JacobiOptions::make(const DecoderContext& context) const {
  if (form == Form::Textbook)
    return std::make_unique<TextbookJacobiDecoder>(context, block.value_or(kTextbookBlock), fill);
  return std::make_unique<JacobiDecoder>(context, *this);
}

JacobiDecoder::JacobiDecoder(const DecoderContext& context, const JacobiOptions& options)
    : target_(context.target),
      limits_(context.limits),
      sampling_(context.sampling),
      rejects_(rejects(context.sampling)),
      uniforms_(context.sampling.seed, context.uniforms),
      block_(options.block.value_or(1)),
      refill_(options.refill),
      filler_(options.fill, context.sampling.seed),
      control_(context.control, context.choices),
      counts_(refill_ == Refill::Block) {
  if (options.block) return;
  const bool slides = refill_ == Refill::Slide;
  const std::string fill = std::to_string(static_cast<int>(options.fill));
  chosen_.emplace(control_, (slides ? "jacobi slide " : "jacobi block ") + fill,
                  slides ? LastingSize::Kind::Window : LastingSize::Kind::Block, rejects_);
}

void JacobiDecoder::begin(const Sequence& prefix) {
  open_block(prefix);
}

/// The most rows that can still yield a token.
int JacobiDecoder::size_for(const Sequence& prefix) const {
  return std::min(block_, room_left(prefix, limits_, target_.max_seq_len()));
}

/// Appends first guesses to cur_ up to the size of a block.
void JacobiDecoder::fill(const Sequence& prefix) {
  const int first = static_cast<int>(prefix.tokens().size()) - 1;
  const int size = size_for(prefix);
  cur_.reserve(static_cast<std::size_t>(size));
  while (static_cast<int>(cur_.size()) < size) {
    cur_.push_back(filler_(prefix, first + static_cast<int>(cur_.size())));
  }
  cur_.resize(static_cast<std::size_t>(size));
  drawn_from_.resize(cur_.size());
}

void JacobiDecoder::open_block(const Sequence& prefix) {
  if (chosen_) block_ = chosen_->choose();
  cur_.assign(1, prefix.last());
  drawn_from_.clear();
  fill(prefix);
  state_ = cur_;
  first_pos_ = static_cast<int>(prefix.tokens().size()) - 1;
  counts_.open(state_);
  events_.push_back(counts_.event(first_pos_, state_, 1, false));
}

TokenTree JacobiDecoder::propose(const Sequence& /*prefix*/) {
  TokenTree tree;
  const auto n_settled = state_.size() - cur_.size();
  for (std::size_t i = 0; i < cur_.size(); i++) {
    const auto slot = static_cast<std::int16_t>(n_settled + i);
    const RowTag tag = i == 0 ? RowTag{} : RowTag{RowTag::Kind::Block, slot, 0};
    tree.add(cur_[i], static_cast<int>(i) - 1, tag);
  }
  return tree;
}

// One Jacobi iteration refines every position at once and keeps the tokens that can no longer
// change. refined_[i] was computed from cur_[0..i]. If all of those came back unchanged, they are
// AR's tokens, so the unchanged positions and the one position after them are final. On a chain
// this is exactly the path of verify_exact_match().
Decision JacobiDecoder::verify(const Sequence& prefix,
                               const TokenTree& tree,
                               const StepOutput& out) {
  if (rejects_) return verify_drawn(prefix, tree, out);
  refined_.clear();
  for (const kernels::Picked& picked : out.picked) refined_.push_back(picked.id);
  Decision decision = verify_exact_match(tree, out);
  n_kept_ = static_cast<int>(decision.path.size());
  return decision;
}

// Under rejection sampling a guess was drawn from the distribution after the guesses of the
// iteration before. It does not depend on the guesses drawn beside it, so given the tokens that are
// now before it, it still has that distribution q, and speculative sampling applies. Every guess
// after the first rejected one is drawn again, with a new random number: a kept guess would depend on
// the rejected ones.
Decision JacobiDecoder::verify_drawn(const Sequence& prefix,
                                     const TokenTree& tree,
                                     const StepOutput& out) {
  const std::size_t n_rows = cur_.size();
  std::vector<Candidates> candidates(n_rows);
  for (std::size_t i = 0; i + 1 < n_rows; i++) {
    candidates[i].rows = {static_cast<int>(i) + 1};
    candidates[i].distribution = std::move(drawn_from_[i + 1]);
  }
  Decision decision = reject_drafted(prefix.tokens(), tree, candidates, out, sampling_,
                                     DraftRule::Without, *uniforms_);
  n_kept_ = static_cast<int>(decision.path.size());
  refined_ = decision.emitted;
  refined_from_.assign(refined_.size(), {});
  // A block is not extended, so nothing is drawn after its last row.
  const std::size_t n_refined = refill_ == Refill::Slide ? n_rows : n_rows - 1;
  std::vector<TokenId> history(prefix.tokens().begin(), prefix.tokens().end());
  for (std::size_t i = 0; i < n_refined; i++) {
    if (i > 0) history.push_back(cur_[i]);
    if (i < refined_.size()) continue;
    std::vector<double> next =
        token_distribution(out.logits_of(static_cast<int>(i)), sampling_, history);
    const double u =
        uniforms_->proposal(static_cast<std::uint32_t>(history.size()), n_drawn_, next);
    refined_.push_back(draw(next, u));
    refined_from_.push_back(std::move(next));
  }
  n_drawn_++;
  return decision;
}

std::vector<float> JacobiDecoder::proposal_probabilities() const {
  if (!rejects_) return {};
  std::vector<float> q(cur_.size(), 1.0f);
  for (std::size_t i = 0; i < q.size(); i++)
    if (!drawn_from_[i].empty())
      q[i] = static_cast<float>(drawn_from_[i][static_cast<std::size_t>(cur_[i])]);
  return q;
}

void JacobiDecoder::committed(const Sequence& prefix, const Decision& cut) {
  const auto n_rows = cur_.size();
  const auto n_settled = state_.size() - n_rows;
  const bool converged = static_cast<std::size_t>(n_kept_) == n_rows;
  // The block's new state: position i + 1 becomes the pick after row i.
  for (std::size_t i = 0; i + 1 < n_rows; i++) state_[n_settled + i + 1] = refined_[i];
  counts_.refine(state_);
  const auto n_final = std::min(n_settled + cut.emitted.size() + 1, state_.size());
  events_.push_back(counts_.event(first_pos_, state_, static_cast<int>(n_final), converged));
  const bool at_eos = prefix.stop_reason() == StopReason::Eos;
  if (chosen_) chosen_->came(static_cast<int>(n_rows), static_cast<int>(cut.emitted.size()));
  const bool is_block = refill_ == Refill::Block;
  if (chosen_ && is_block && (converged || prefix.finished()))
    chosen_->block_ended(static_cast<int>(state_.size()));
  if (converged || at_eos) counts_.end_block(at_eos ? limits_.eos_ids : std::vector<TokenId>{});
  if (prefix.finished()) return;

  if (refill_ == Refill::Slide) {
    // The window moves by the number of emitted tokens and stays full.
    if (chosen_) block_ = chosen_->choose();
    keep_refined(refined_.size());
    fill(prefix);
    state_ = cur_;
    first_pos_ = static_cast<int>(prefix.tokens().size()) - 1;
  } else if (converged) {
    open_block(prefix);
  } else {
    // The block becomes shorter; its first token is now final.
    keep_refined(n_rows - 1);
  }
}

/// The next step's rows: the last emitted token and the refined guesses after it, up to `end`.
void JacobiDecoder::keep_refined(std::size_t end) {
  const auto first = static_cast<std::ptrdiff_t>(n_kept_) - 1;
  const auto last = static_cast<std::ptrdiff_t>(end);
  cur_.assign(refined_.begin() + first, refined_.begin() + last);
  drawn_from_.clear();
  if (rejects_)
    drawn_from_.assign(std::make_move_iterator(refined_from_.begin() + first),
                       std::make_move_iterator(refined_from_.begin() + last));
  drawn_from_.resize(cur_.size());
}

std::vector<Event> JacobiDecoder::take_events() {
  return std::exchange(events_, {});
}

std::map<std::string, std::int64_t> JacobiDecoder::counts() const {
  return counts_.counts();
}

std::map<std::string, double> JacobiDecoder::figures() const {
  return counts_.figures();
}

}  // namespace engine
