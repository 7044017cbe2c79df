#include "engine/event/timeline/timeline_intake.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/event/vocabulary.h"

namespace engine {
namespace {

constexpr const char* kNoSuchRun = "no run with this number";
constexpr const char* kNoSuchSearch = "no search with this number is in progress";
constexpr const char* kNoSuchThought = "no thought with this number in a search in progress";
constexpr const char* kNotOpen = "no step with this number is in progress";

bool is_duration(Nanoseconds t) {
  return t >= 0 && t <= kMaxTime;
}

std::string outside_vocabulary(TokenId token, int vocab_size) {
  return fmt::format("token {} is outside the vocabulary of {}", token, vocab_size);
}

std::string check_shape(const Drafted& drafted) {
  const TokenTree& tree = drafted.tree;
  const std::size_t n_rows = tree.token.size();
  if (tree.parent.size() != n_rows || tree.tag.size() != n_rows)
    return "tokens, parents and tags of unequal length";
  if (!tree.owner.empty() && tree.owner.size() != n_rows)
    return "owners and tokens of unequal length";
  if (!drafted.q.empty() && drafted.q.size() != n_rows) return "q and tokens of unequal length";
  if (!drafted.sources.empty() && drafted.sources.size() != n_rows)
    return "sources and tokens of unequal length";
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (tree.parent[i] < -1 || tree.parent[i] >= static_cast<int>(i)) {
      return fmt::format("parent of row {} is {}, expected -1 or an earlier row", i,
                         tree.parent[i]);
    }
  }
  return {};
}

std::string check_counts(const Verified& e) {
  const std::int64_t n_resolved = std::int64_t{e.n_accepted} + e.n_rejected + e.n_unused;
  if (e.n_proposed < 0 || e.n_accepted < 0 || e.n_rejected < 0 || e.n_unused < 0) {
    return "a count is negative";
  }
  if (n_resolved > e.n_proposed) {
    return fmt::format("accepted {} + rejected {} + unused {} exceed the {} proposed", e.n_accepted,
                       e.n_rejected, e.n_unused, e.n_proposed);
  }
  return {};
}

std::string check_sizes(const Verified& e) {
  const std::size_t n_rows = e.fate.size();
  const auto fits = [&](std::size_t n) { return n == n_rows || n == 0; };
  if (!fits(e.picked.size()) || !fits(e.logp.size()) || !fits(e.margin.size()) ||
      !fits(e.uniform.size()) || e.keep.size() != e.uniform.size() || !fits(e.p.size()) ||
      !fits(e.probe.size())) {
    return "arrays of the rows have unequal lengths";
  }
  const auto is_nan = [](float x) { return std::isnan(x); };
  for (const auto* xs : {&e.logp, &e.margin, &e.uniform, &e.keep, &e.p, &e.probe}) {
    if (std::ranges::any_of(*xs, is_nan)) return "a probability is not a number";
  }
  if (is_nan(e.last_uniform)) return "a probability is not a number";
  for (const RejectionDetail& w : e.rejection_details) {
    const auto fits_tokens = [&](const std::vector<float>& distribution) {
      return distribution.empty() || distribution.size() == w.token.size();
    };
    if (w.row < 0 || w.row >= std::ssize(e.fate)) {
      return fmt::format("distributions after row {}, but there are {} rows", w.row, n_rows);
    }
    if (w.p.size() != w.token.size() || !fits_tokens(w.q) || !fits_tokens(w.residual)) {
      return "tokens and probabilities of unequal length";
    }
    for (const auto* xs : {&w.p, &w.q, &w.residual}) {
      if (std::ranges::any_of(*xs, is_nan)) return "a probability is not a number";
    }
  }
  return {};
}

std::string check_exchange(const Verified& e) {
  if (e.exchange.size() > 1) return "a step has more than one exchange";
  for (const RankExchange& one : e.exchange) {
    if (one.n_bytes < 0 || !is_duration(one.time) || one.forward.empty() ||
        !std::ranges::all_of(one.forward, is_duration))
      return "bytes or a duration of the exchange between ranks is out of range";
  }
  return {};
}

std::string check_forwards(const Drafted& e) {
  for (const DraftForward& forward : e.forwards) {
    if (forward.begun < 0 || forward.ended < forward.begun || forward.n_rows < 0) {
      return "a forward of the draft model ends before it begins";
    }
  }
  return {};
}

void join(std::optional<PoolChanged>& pool, const PoolChanged& e) {
  if (!pool) {
    pool = e;
    return;
  }
  pool->added.insert(pool->added.end(), e.added.begin(), e.added.end());
  pool->evicted.insert(pool->evicted.end(), e.evicted.begin(), e.evicted.end());
  pool->tried.insert(pool->tried.end(), e.tried.begin(), e.tried.end());
  pool->t = e.t, pool->n_keys = e.n_keys, pool->n_ngrams = e.n_ngrams;
}

/// Changes a step, packed or not.
void change(RunRecord& run, StepId step, const auto& how) {
  const auto i = static_cast<std::size_t>(step);
  StepRecord* open = run.steps.open();
  if (open && i + 1 == run.steps.size()) return how(*open);
  StepRecord record = run.steps[i];
  how(record);
  run.steps.replace(i, std::move(record));
}

template <typename E>
std::string add_queueing(RunRecord* run, const E& e) {
  if (!run) return kNoSuchRun;
  run->queueing.emplace_back(e);
  return {};
}

// Gives metrics of earlier recordings their present names: head_1_judged is now head_1_verified.
void rename_old_metrics(std::map<std::string, double>& metrics) {
  constexpr std::string_view kOld = "_judged", kPresent = "_verified";
  for (auto at = metrics.begin(); at != metrics.end();) {
    const auto next = std::next(at);
    if (at->first.ends_with(kOld)) {
      auto metric = metrics.extract(at);
      metric.key().replace(metric.key().size() - kOld.size(), kOld.size(), kPresent);
      metrics.insert(std::move(metric));
    }
    at = next;
  }
}

// Corrects the metrics of a finished run. Removes metrics that are not finite. acceptance_rate is
// computed from the steps, because the first recordings hold accepted / verified under that name.
void settle_metrics(RunRecord& run) {
  auto& metrics = run.finished->metrics;
  std::erase_if(metrics, [](const auto& m) { return !std::isfinite(m.second); });
  rename_old_metrics(metrics);
  const auto rate = metrics.find("acceptance_rate");
  if (rate == metrics.end()) return;
  if (run.n_proposed() > 0) {
    rate->second = run.acceptance_rate();
  } else {
    metrics.erase(rate);
  }
}

}  // namespace

// Finds the row after which each token was chosen, by following the picked tokens from the last
// context row.
std::vector<int> answering_rows(const StepRecord& step, std::span<const TokenId> tokens) {
  std::vector<int> rows(tokens.size(), -1);
  const TokenTree& tree = step.drafted.tree;
  const Verified& v = step.verified;
  if (!step.has_drafted || !step.has_verified || v.picked.size() != tree.token.size()) return rows;
  const auto context = std::find_if(v.fate.rbegin(), v.fate.rend(),
                                    [](RowFate fate) { return fate == RowFate::Context; });
  int row = static_cast<int>(v.fate.rend() - context) - 1;
  for (std::size_t i = 0; i < tokens.size() && row >= 0; ++i) {
    if (v.picked[static_cast<std::size_t>(row)] != tokens[i]) break;
    rows[i] = row;
    int child = -1;
    for (int r = row + 1; r < tree.n_rows() && child < 0; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const bool on_path = v.fate[at] == RowFate::Accepted;
      if (on_path && tree.parent[at] == row && tree.token[at] == tokens[i]) child = r;
    }
    row = child;
  }
  return rows;
}

void Timeline::apply(const Event& event) {
  TimelineIntake(*this).apply(event);
}

void TimelineIntake::apply(const Event& event) {
  ++timeline_.n_events_;
  ++timeline_.version_;
  std::string reason = check_time(event);
  if (reason.empty()) {
    reason = std::visit([this](const auto& e) { return take(e); }, event);
  }
  const Nanoseconds t = time_of(event);
  if (reason.empty()) {
    timeline_.last_event_ = std::max(timeline_.last_event_, t);
    if (RunRecord* run = find(run_of(event))) run->last_event = std::max(run->last_event, t);
    return;
  }
  ++timeline_.n_inconsistent_;
  if (timeline_.inconsistencies_.size() < kMaxReasons) {
    timeline_.inconsistencies_.push_back(fmt::format(
        "event {} of run {}: {}", timeline_.n_events_ - 1, run_of(event), std::move(reason)));
  }
}

std::string TimelineIntake::check_time(const Event& event) {
  const Nanoseconds t = time_of(event);
  if (t < 0 || t > kMaxTime) return fmt::format("time is {} ns, expected 0 to {}", t, kMaxTime);
  const RunRecord* run = find(run_of(event));
  // The time of an Agreement event may be the start of the check, which is earlier than other
  // events of its run.
  if (!run || std::holds_alternative<Agreement>(event)) return {};
  if (t < run->last_event) {
    return fmt::format("time {} ns is before the run's last event at {} ns", t, run->last_event);
  }
  return {};
}

RunRecord* TimelineIntake::find(RunId id) {
  const auto found = timeline_.run_index_.find(id);
  return found == timeline_.run_index_.end() ? nullptr : &timeline_.runs_[found->second];
}

void TimelineIntake::keep_budget(RunRecord& grown) {
  // Only the size of `grown` has changed since the last call, so only its part of the sum is
  // updated.
  std::size_t& held = timeline_.payload_bytes_;
  held += grown.steps.payload_bytes() - grown.counted_payload;
  grown.counted_payload = grown.steps.payload_bytes();
  std::size_t& oldest = timeline_.oldest_payload_run_;
  for (std::size_t i = oldest; held > timeline_.payload_budget_ && i < timeline_.runs_.size();) {
    RunRecord& run = timeline_.runs_[i];
    std::vector<PayloadDropped> drops = run.steps.drop_oldest_payload();
    if (drops.empty()) {
      if (i == oldest && run.over()) ++oldest;
      ++i;
      continue;
    }
    held -= run.counted_payload - run.steps.payload_bytes();
    run.counted_payload = run.steps.payload_bytes();
    for (PayloadDropped& drop : drops) {
      drop.run = run.id();
      drop.t = run.last_event;
      add_drop(run.dropped, drop);
    }
  }
}

StepRecord* TimelineIntake::open_step(RunId id, StepId step) {
  RunRecord* run = find(id);
  StepRecord* last = run ? run->steps.open() : nullptr;
  return last && last->begun.step == step && !last->complete ? last : nullptr;
}

int TimelineIntake::vocab_size(const RunRecord& run) const {
  const ModelLoaded* model = timeline_.model(run.started.model);
  return model && model->vocab_size > 0 ? model->vocab_size : std::numeric_limits<int>::max();
}

TokenId TimelineIntake::foreign(const RunRecord& run, std::span<const TokenId> tokens) const {
  const int n = vocab_size(run);
  const auto found = std::ranges::find_if(tokens, [n](TokenId id) { return id < 0 || id >= n; });
  return found == tokens.end() ? -1 : (*found < 0 ? std::numeric_limits<TokenId>::max() : *found);
}

std::string TimelineIntake::take(const ModelLoaded& e) {
  if (std::string fault = fault_of_pieces(e); !fault.empty()) return fault;
  timeline_.n_absent_texts_ += n_absent_texts(e);
  if (timeline_.n_absent_texts_ > kMaxAbsentTexts)
    return fmt::format("models leave out the texts of {} tokens, expected {} at most",
                       timeline_.n_absent_texts_, kMaxAbsentTexts);
  timeline_.models_[e.model] = with_all_pieces(e);
  return {};
}

std::string TimelineIntake::take(const RunStarted& e) {
  if (e.run == 0) return "run number is 0, expected 1 or more";
  if (find(e.run)) return "the run has already started";
  if (e.lane < 0) return fmt::format("lane is {}, expected 0 or more", e.lane);
  const PlaceInSet& place = e.place;
  if (place.prompt < 0 || place.prompt >= place.n_prompts || place.repeat < 0 ||
      place.repeat >= place.n_repeats)
    return fmt::format("prompt {} of {}, repeat {} of {}: out of range", place.prompt,
                       place.n_prompts, place.repeat, place.n_repeats);
  RunRecord record{.started = e, .last_event = e.t};
  if (const TokenId bad = foreign(record, e.prompt_tokens); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(record));
  }
  const auto n_prompt = std::ssize(e.prompt_tokens);
  if (e.first_approximate < 0 || e.n_approximate < 0 || e.first_approximate > n_prompt ||
      e.n_approximate > n_prompt - e.first_approximate) {
    return fmt::format("{} approximate tokens from index {} on, in a prompt of {} tokens",
                       e.n_approximate, e.first_approximate, n_prompt);
  }
  timeline_.run_index_[e.run] = timeline_.runs_.size();
  timeline_.runs_.push_back(std::move(record));
  return {};
}

std::string TimelineIntake::take(const Phase& e) {
  if (e.done < 0 || e.total < 0)
    return fmt::format("progress is {} of {}, expected no negative number", e.done, e.total);
  if (e.run == 0) {
    timeline_.phases_.push_back(e);
    return {};
  }
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  run->phases.push_back(e);
  return {};
}

std::string TimelineIntake::take(const StepBegun& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  if (run->over()) return "the run has already ended";
  if (!is_duration(e.compute) || e.kv_len < 0 || e.n_rows < 0)
    return "a duration or size is out of range";
  const auto next = static_cast<StepId>(run->steps.size());
  if (e.step < next) return fmt::format("step {} is out of order, expected step {}", e.step, next);
  if (e.step - next > kMaxMissingSteps)
    return fmt::format("step {} skips too many steps, expected step {}", e.step, next);
  for (StepId missing = next; missing < e.step; ++missing) {
    run->steps.push_back({.begun = {.t = e.t, .run = e.run, .step = missing},
                          .ended = {.t = e.t, .run = e.run, .step = missing}});
  }
  StepRecord step{.begun = e};
  step.blocks = std::exchange(run->early_blocks, {});
  step.pool = std::exchange(run->early_pool, std::nullopt);
  run->steps.push_back(std::move(step));
  run->totals.n_rows += e.n_rows;
  keep_budget(*run);
  return {};
}

std::string TimelineIntake::take(const Drafted& e) {
  StepRecord* step = open_step(e.run, e.step);
  if (!step) return kNotOpen;
  if (std::string reason = check_shape(e); !reason.empty()) return reason;
  if (std::string reason = check_forwards(e); !reason.empty()) return reason;
  RunRecord& run = *find(e.run);
  if (const TokenId bad = foreign(run, e.tree.token); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(run));
  }
  if (step->begun.n_rows == 0) {  // the step began before the draft
    step->begun.n_rows = e.tree.n_rows();
    run.totals.n_rows += e.tree.n_rows();
  }
  if (!step->has_drafted) {
    for (const RowTag tag : e.tree.tag) ++run.totals.n_rows_of[static_cast<std::size_t>(tag.kind)];
  }
  step->drafted = e;
  step->has_drafted = true;
  return {};
}

std::string TimelineIntake::take(const BlockRefined& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  if (e.n_final < 0 || e.n_final > std::ssize(e.tokens)) {
    return fmt::format("{} final tokens in a block of {}", e.n_final, e.tokens.size());
  }
  if (e.iteration < 0 || e.first_pos < 0) return "iteration or position is negative";
  if (const TokenId bad = foreign(*run, e.tokens); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(*run));
  }
  const auto n_steps = static_cast<StepId>(run->steps.size());
  if (e.step < -1 || e.step > n_steps) return kNotOpen;
  ++run->totals.n_blocks;
  if (e.step == -1 || e.step == n_steps) {
    run->early_blocks.push_back(e);
  } else {
    change(*run, e.step, [&e](StepRecord& step) { step.blocks.push_back(e); });
    keep_budget(*run);
  }
  return {};
}

std::string TimelineIntake::take(const Verified& e) {
  StepRecord* step = open_step(e.run, e.step);
  if (!step) return kNotOpen;
  if (step->has_verified) return "the step has already been verified";
  if (std::string reason = check_sizes(e); !reason.empty()) return reason;
  if (std::string reason = check_counts(e); !reason.empty()) return reason;
  if (std::string reason = check_exchange(e); !reason.empty()) return reason;
  if (step->has_drafted && e.fate.size() != step->drafted.tree.token.size()) {
    return fmt::format("{} fates for {} drafted rows", e.fate.size(), step->drafted.tree.n_rows());
  }
  RunRecord& run = *find(e.run);
  if (const TokenId bad = foreign(run, e.picked); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(run));
  }
  for (const RejectionDetail& rejection_details : e.rejection_details) {
    if (const TokenId bad = foreign(run, rejection_details.token); bad >= 0) {
      return outside_vocabulary(bad, vocab_size(run));
    }
  }
  step->verified = e;
  step->has_verified = true;
  run.totals.n_proposed += e.n_proposed;
  run.totals.n_accepted += e.n_accepted;
  run.totals.n_rejected += e.n_rejected;
  run.totals.n_unused += e.n_unused;
  return {};
}

std::string TimelineIntake::take(const Committed& e) {
  StepRecord* step = open_step(e.run, e.step);
  if (!step) return kNotOpen;
  if (step->has_committed) return "the step has already committed";
  if (e.status.size() != e.tokens.size() || e.origin.size() != e.tokens.size()) {
    return "tokens, statuses and origins of unequal length";
  }
  RunRecord& run = *find(e.run);
  if (const TokenId bad = foreign(run, e.tokens); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(run));
  }
  const int next = run.tokens.empty() ? run.first_generated() : run.tokens.back().pos + 1;
  if (e.first_pos < next || e.first_pos > std::numeric_limits<int>::max() / 2) {
    return fmt::format("first position is {}, expected at least {}", e.first_pos, next);
  }
  const std::vector<int> rows = answering_rows(*step, e.tokens);
  for (std::size_t i = 0; i < e.tokens.size(); ++i) {
    const bool known = rows[i] >= 0 && !step->verified.logp.empty();
    run.tokens.push_back(
        {.id = e.tokens[i],
         .pos = e.first_pos + static_cast<int>(i),
         .step = e.step,
         .status = e.status[i],
         .origin = e.origin[i],
         .logp = known ? step->verified.logp[static_cast<std::size_t>(rows[i])] : 0,
         .has_logp = known});
  }
  step->committed = e;
  step->has_committed = true;
  return {};
}

std::string TimelineIntake::take(const PoolChanged& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  const auto n_steps = static_cast<StepId>(run->steps.size());
  if (e.step < -1 || e.step > n_steps) return kNotOpen;
  for (const auto* ngrams : {&e.added, &e.evicted, &e.tried}) {
    for (const PoolNgram& ngram : *ngrams) {
      const TokenId bad = std::max(foreign(*run, {&ngram.first, 1}), foreign(*run, ngram.rest));
      if (bad >= 0) return outside_vocabulary(bad, vocab_size(*run));
    }
  }
  ++run->totals.n_pools;
  if (e.step == -1 || e.step == n_steps) {
    join(run->early_pool, e);
  } else {
    change(*run, e.step, [&e](StepRecord& step) { join(step.pool, e); });
    keep_budget(*run);
  }
  return {};
}

std::string TimelineIntake::take(const Queued& e) {
  return add_queueing(find(e.run), e);
}

std::string TimelineIntake::take(const Dequeued& e) {
  return add_queueing(find(e.run), e);
}

std::string TimelineIntake::take(const Waiting& e) {
  return add_queueing(find(e.run), e);
}

std::string TimelineIntake::take(const Sampled& e) {
  const auto odd = [](double x) { return !std::isfinite(x); };
  if (odd(e.busy_percent) || odd(e.engine_busy_percent) || odd(e.gpu_memory_busy_percent) ||
      odd(e.gpu_clock_mhz) || odd(e.gpu_memory_clock_mhz) || odd(e.gpu_power_w) ||
      odd(e.stolen_percent) || odd(e.load_average) ||
      std::ranges::any_of(e.thread_busy_percent, odd) || !is_duration(e.period)) {
    return "a sample has a value that is not finite, or a period out of range";
  }
  timeline_.samples_.push_back(e);
  return {};
}

std::string TimelineIntake::take(const Agreement& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  if (e.n_compared < 0 || e.first_difference < -1 || !is_duration(e.cost))
    return "a count or the duration is out of range";
  run->agreement = e;
  return {};
}

std::string TimelineIntake::take(const StepEnded& e) {
  StepRecord* step = open_step(e.run, e.step);
  if (!step) return kNotOpen;
  if (!is_duration(e.propose) || !is_duration(e.forward) || !is_duration(e.verify) ||
      !is_duration(e.commit) || e.kv_len < 0) {
    return "a duration or the cache length is out of range";
  }
  RunTotals& totals = find(e.run)->totals;
  totals.compute = saturated_sum(totals.compute, e.propose + e.forward + e.verify + e.commit);
  ++totals.n_steps;
  totals.n_tokens += std::ssize(step->committed.tokens);
  step->ended = e;
  step->complete = true;
  return {};
}

std::string TimelineIntake::take(const PayloadDropped& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  if (e.n_bytes < 0 || e.first_step > e.last_step) return "bytes or steps are out of range";
  add_drop(run->dropped, e);
  return {};
}

std::string TimelineIntake::take(const RunFinished& e) {
  RunRecord* run = find(e.run);
  if (!run) return kNoSuchRun;
  if (run->over()) return "the run has already ended";
  if (!is_duration(e.prefill) || !is_duration(e.decode) || e.n_tokens < 0 || e.n_steps < 0) {
    return "a duration or count is out of range";
  }
  if (const TokenId bad = foreign(*run, e.approximate); bad >= 0) {
    return outside_vocabulary(bad, vocab_size(*run));
  }
  run->finished = e;
  run->steps.settle();
  keep_budget(*run);
  settle_metrics(*run);
  return {};
}

std::string TimelineIntake::take(const RunFailed& e) {
  RunRecord* run = find(e.run);
  if (!run) {
    // A failure without a run, or of a run that was refused before it began (because of an option
    // or memory), is shown as a notice.
    timeline_.notices_.push_back({.t = e.t, .level = Notice::Level::Error, .text = e.message});
    return {};
  }
  if (run->over()) return "the run has already ended";
  run->failed = e;
  run->steps.settle();
  keep_budget(*run);
  return {};
}

std::string TimelineIntake::take(const Held& e) {
  timeline_.held_ = e.held;
  timeline_.holds_.push_back(e);
  return {};
}

std::string TimelineIntake::take(const Notice& e) {
  timeline_.notices_.push_back(e);
  return {};
}

SearchRecord* TimelineIntake::open_search(SearchId id) {
  auto& searches = timeline_.searches_;
  const auto found =
      std::ranges::lower_bound(searches, id, {}, [](const auto& s) { return s.begun.search; });
  const bool open = found != searches.end() && found->begun.search == id && !found->ended;
  return open ? &*found : nullptr;
}

ThoughtRecord* TimelineIntake::thought_of(SearchId id, int node) {
  SearchRecord* search = open_search(id);
  const ThoughtRecord* found = search ? search->thought(node) : nullptr;
  return found ? &search->thoughts[static_cast<std::size_t>(found - search->thoughts.data())]
               : nullptr;
}

std::string TimelineIntake::take(const SearchBegun& e) {
  const auto& searches = timeline_.searches_;
  const SearchId last = searches.empty() ? 0 : searches.back().begun.search;
  if (e.search <= last)
    return fmt::format("search {} is out of order, expected a number above {}", e.search, last);
  if (e.depth < 0 || e.n_thoughts < 0 || e.beam < 0) return "a size is negative";
  timeline_.searches_.push_back({.begun = e});
  return {};
}

// If a node was lost with a damaged frame, the nodes below it are refused too.
std::string TimelineIntake::take(const ThoughtMade& e) {
  SearchRecord* search = open_search(e.search);
  if (!search) return kNoSuchSearch;
  const int last = search->thoughts.empty() ? 0 : search->thoughts.back().made.node;
  if (e.node <= last)
    return fmt::format("thought {} is out of order, expected a number above {}", e.node, last);
  const ThoughtRecord* parent = search->thought(e.parent);
  if (e.parent != 0 && !parent) return fmt::format("the parent of thought {} is unknown", e.node);
  if (e.depth != (parent ? parent->made.depth : 0) + 1)
    return fmt::format("thought {} is at depth {}, expected its parent's depth + 1", e.node,
                       e.depth);
  search->thoughts.push_back({.made = e});
  return {};
}

std::string TimelineIntake::take(const ThoughtValued& e) {
  ThoughtRecord* thought = thought_of(e.search, e.node);
  if (!thought) return kNoSuchThought;
  if (!std::isfinite(e.value)) return "the value is not finite";
  thought->valued = e;
  return {};
}

std::string TimelineIntake::take(const ThoughtJudged& e) {
  ThoughtRecord* thought = thought_of(e.search, e.node);
  if (!thought) return kNoSuchThought;
  thought->judged.push_back(e);
  return {};
}

std::string TimelineIntake::take(const SearchEnded& e) {
  SearchRecord* search = open_search(e.search);
  if (!search) return kNoSuchSearch;
  if (e.node != 0 && !search->thought(e.node)) return kNoSuchThought;
  search->ended = e;
  return {};
}

}  // namespace engine
