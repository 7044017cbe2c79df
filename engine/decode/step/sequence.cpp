#include "engine/decode/step/sequence.h"

#include <algorithm>

#include "engine/decode/step/prefill_blocks.h"

namespace engine {

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::None:
      return "";
    case StopReason::Eos:
      return "eos";
    case StopReason::Length:
      return "length";
    case StopReason::Context:
      return "context";
    case StopReason::Bound:
      return "bound";
    case StopReason::Probe:
      return "probe";
    case StopReason::Text:
      return "text";
    case StopReason::StopString:
      return "stop_string";
    case StopReason::StopId:
      return "stop_id";
  }
  return "";
}

bool ended_by_token_or_limit(StopReason reason) {
  switch (reason) {
    case StopReason::Eos:
    case StopReason::Length:
    case StopReason::Context:
    case StopReason::StopString:
    case StopReason::StopId:
      return true;
    case StopReason::None:
    case StopReason::Bound:
    case StopReason::Probe:
    case StopReason::Text:
      break;
  }
  return false;
}

int room_left(const Sequence& sequence, const Limits& limits, int model_max_seq_len) {
  const int n = static_cast<int>(sequence.tokens().size());
  return std::min(limits.max_tokens - static_cast<int>(sequence.generated().size()),
                  context_of(limits, model_max_seq_len) - n);
}

int context_of(const Limits& limits, int model_max_seq_len) {
  return limits.max_seq_len > 0 ? std::min(limits.max_seq_len, model_max_seq_len)
                                : model_max_seq_len;
}

Sequence::Sequence(std::vector<TokenId> prompt, std::unique_ptr<SequenceCache> cache)
    : tokens_(std::move(prompt)),
      n_prompt_(tokens_.size()),
      n_rotated_(static_cast<int>(tokens_.size())),
      cache_(std::move(cache)) {
  ensure(n_prompt_ > 0, "a sequence needs a prompt of at least one token");
  ensure(cache_ != nullptr, "a sequence needs a cache");
}

void Sequence::commit(const Decision& decision, StopReason stop) {
  ensure(!finished(), "a finished sequence must not get more tokens");
  state_ = nullptr;
  cache_->commit(decision.path);
  tokens_.insert(tokens_.end(), decision.emitted.begin(), decision.emitted.end());
  ensure(cache_->length() + 1 == static_cast<int>(tokens_.size()),
         "after a step all tokens but the last must have keys and values");
  stop_ = stop;
}

Sequence Sequence::fork() const {
  Sequence copy = over(cache_->fork());
  copy.state_ = state_;
  return copy;
}

Sequence Sequence::over(std::unique_ptr<SequenceCache> cache) const {
  Sequence copy(tokens_, std::move(cache));
  copy.n_prompt_ = n_prompt_;
  copy.n_rotated_ = n_rotated_;
  copy.stop_ = stop_;
  return copy;
}

void Sequence::set_prompt_state(std::vector<float> state) {
  state_ = state.empty() ? nullptr : std::make_shared<const std::vector<float>>(std::move(state));
}

void Sequence::drop_other_rotation(const LanguageModel& model) {
  const auto n = static_cast<int>(n_prompt_);
  if (model.rotation_key(n_rotated_) != model.rotation_key(n) && cache_->length() > 0) {
    cache_->truncate(0);
    state_ = nullptr;
  }
  n_rotated_ = n;
}

void Sequence::share_prompt_state(const Sequence& other) {
  ensure(std::ranges::equal(cached_tokens(), other.cached_tokens()),
         "a prompt state must belong to one position of the same tokens");
  state_ = other.state_;
}

Sequence Sequence::restarted(std::span<const TokenId> more) const {
  std::vector<TokenId> tokens = tokens_;
  tokens.insert(tokens.end(), more.begin(), more.end());
  Sequence copy(std::move(tokens), cache_->fork());
  copy.n_rotated_ = n_rotated_;
  copy.state_ = state_;
  return copy;
}

Sequence Sequence::shortened(std::size_t n) const {
  ensure(n > 0 && n <= tokens_.size(), "the new length must be 1 to the sequence's length");
  Sequence copy({tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n)},
                cache_->fork());
  copy.n_rotated_ = n_rotated_;
  const int cached = static_cast<int>(n) - 1;
  if (copy.cache_->length() > cached)
    copy.cache_->truncate(cached);
  else
    copy.state_ = state_;
  return copy;
}

namespace {

/// The reason why a token's id ends the sequence, or None. An end token takes precedence over a
/// stop id.
StopReason reason_of(TokenId token, const Limits& limits) {
  const auto is_one_of = [token](const std::vector<TokenId>& ids) {
    return std::ranges::find(ids, token) != ids.end();
  };
  if (!limits.ignore_eos && is_one_of(limits.eos_ids)) return StopReason::Eos;
  return is_one_of(limits.stop_ids) ? StopReason::StopId : StopReason::None;
}

}  // namespace

StopReason cut(Decision& decision, const Sequence& sequence, const Limits& limits) {
  const int n_before = static_cast<int>(decision.emitted.size());
  if (n_before == 0) {
    ensure(decision.path.empty(), "a step that emits no token must not keep a row");
    return StopReason::None;
  }
  int keep = n_before;
  StopReason reason = StopReason::None;
  // The first end decides. At the same token the order of precedence is: stop string, end token or
  // stop id, length, context.
  if (limits.max_seq_len > 0) {
    const int room = limits.max_seq_len - static_cast<int>(sequence.tokens().size());
    if (room <= keep) keep = room, reason = StopReason::Context;
  }
  const int room = limits.max_tokens - static_cast<int>(sequence.generated().size());
  if (room <= keep) keep = room, reason = StopReason::Length;
  ensure(keep >= 1, "a finished sequence must not be stepped");
  for (int i = 0; i < keep; i++) {
    const StopReason own = reason_of(decision.emitted[static_cast<std::size_t>(i)], limits);
    if (own != StopReason::None) keep = i + 1, reason = own;
  }
  if (limits.text_end) {
    const int n =
        limits.text_end(std::span(decision.emitted).first(static_cast<std::size_t>(keep)));
    ensure(n >= 0 && n <= keep, "a stop string must end in one of the emitted tokens");
    if (n > 0) keep = n, reason = limits.text_reason;
  }
  const auto n_dropped = static_cast<std::size_t>(n_before - keep);
  ensure(decision.path.size() > n_dropped,
         "a decision's path must be longer than its number of dropped tokens");
  decision.emitted.resize(static_cast<std::size_t>(keep));
  decision.path.resize(decision.path.size() - n_dropped);
  if (decision.logp.size() > decision.emitted.size()) decision.logp.resize(decision.emitted.size());
  return reason == StopReason::None ? decision.wish : reason;
}

void prefill(LanguageModel& model,
             Sequence& sequence,
             int max_rows,
             const std::function<bool(int, int)>& progress,
             bool with_state) {
  ensure(max_rows > 0, "prefill needs room for a row");
  sequence.drop_other_rotation(model);
  const std::span<const TokenId> tokens = sequence.tokens();
  const int total = static_cast<int>(tokens.size()) - 1;
  const int block = model.prompt_block(), had = sequence.cache().length();
  const int first = n_reusable_positions(sequence.cache(), had, total, block);
  if (first < had) sequence.cache().truncate(first);
  TokenTree tree;
  std::vector<int> path;
  const auto report = [&](int done) {
    if (!progress || progress(done, total)) return;
    throw Error(ErrorCode::Cancelled, "prefill: stopped after " + std::to_string(done) + " of " +
                                          std::to_string(total) + " tokens");
  };
  int done = first;
  if (done < total) sequence.set_prompt_state({});
  if (done < total) report(done);
  while (done < total) {
    const auto [n, in_blocks] = next_prefill_chunk(done, total, max_rows, block);
    tree.clear();
    path.clear();
    for (int i = 0; i < n; i++) {
      path.push_back(tree.add(tokens[static_cast<std::size_t>(done + i)], i - 1, RowTag{}));
    }
    BatchItem item;
    item.cache = &sequence.cache();
    item.tree = &tree;
    item.prefix = sequence.cached_tokens();
    item.pick_rows = false;
    item.n_prompt = total + 1;
    item.in_blocks = in_blocks;
    if (with_state && done + n == total) item.hidden_of = n - 1;
    std::vector<StepOutput> out = model.forward(std::span(&item, 1), Wants{});
    sequence.cache().commit(path);
    model.finish();
    done += n;
    if (item.hidden_of >= 0) sequence.set_prompt_state(std::move(out.front().hidden));
    report(done);
  }
}

}  // namespace engine
