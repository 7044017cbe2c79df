#include "engine/seed/rounds.h"

#include <algorithm>

namespace engine {

Rounds::Rounds(int n_branches,
               const Policy& policy,
               int n_together,
               EventSink* events,
               const RoundsTotals& known,
               Overlap* overlap,
               int n_drafters)
    : policy_(policy),
      n_together_(n_together),
      n_drafters_(n_drafters),
      events_(events),
      known_(known),
      overlap_(overlap),
      places_(static_cast<std::size_t>(n_branches)) {
  ensure(n_branches >= 1, "rounds need at least one branch");
  ensure(n_together >= 1, "a verification needs at least one branch");
  ensure(n_drafters >= 1, "rounds need at least one drafter");
}

Nanoseconds Rounds::move(int branch, Stage from, Stage to, Nanoseconds t) {
  ensure(branch >= 0 && branch < n_branches(), "there is no such branch");
  Place& moved = place(branch);
  ensure(moved.stage == from, "a branch must be in the stage that the transition starts from");
  ensure(t >= moved.since, "the time must not decrease");
  const Nanoseconds spent = t - moved.since;
  moved.stage = to;
  moved.since = t;
  return spent;
}

void Rounds::line_up(std::vector<Waiter>& line, int branch, const char* resource, Nanoseconds t) {
  const Place& own = place(branch);
  line.push_back({.branch = branch, .n_verified = own.n_verified, .value = own.value});
  if (events_) events_->push(Queued{t, own.run, branch, resource});
}

int Rounds::take(std::vector<Waiter>& line, const char* resource, Nanoseconds t) {
  const std::size_t i = policy_.next(line);
  ensure(i < line.size(), "a policy must pick a waiting branch");
  const int branch = line[i].branch;
  line.erase(line.begin() + static_cast<std::ptrdiff_t>(i));
  if (events_) events_->push(Dequeued{t, place(branch).run, branch, resource});
  return branch;
}

void Rounds::busy(
    Nanoseconds& idle_since, Nanoseconds& idle, int branch, const char* what, Nanoseconds t) {
  if (idle_since < 0) return;
  if (t > idle_since && events_)
    events_->push(Waiting{t, place(branch).run, branch, what, idle_since});
  idle += t - idle_since;
  idle_since = -1;
}

void Rounds::admit(int branch, RunId run, double value, Nanoseconds t) {
  move(branch, Stage::Free, Stage::Ready, t);
  Place& own = place(branch);
  own.run = run;
  own.n_verified = 0;
  own.value = value;
  line_up(ready_, branch, "draft", t);
  const int n_taken = n_branches() - static_cast<int>(n_in(Stage::Free));
  n_active_ = std::max(n_active_, n_taken);
  totals_.most_branches = std::max(totals_.most_branches, n_taken);
  measured_until_ = t;
  drafting_until_ = totals_.drafting;
}

std::ptrdiff_t Rounds::n_in(Stage stage) const {
  return std::ranges::count(places_, stage, &Place::stage);
}

std::optional<int> Rounds::draft_next(Nanoseconds t) {
  const auto n_drafting = static_cast<int>(n_in(Stage::Drafting));
  const bool is_busy = empties_queue_ || n_drafting + n_in(Stage::Verifying) > 0;
  if (!at_once() && is_busy) return std::nullopt;
  if (n_drafting >= n_drafters_) return std::nullopt;
  if (ready_.empty()) {
    if (draft_idle_since_ < 0 && n_drafting == 0) draft_idle_since_ = t;
    return std::nullopt;
  }
  const int branch = take(ready_, "draft", t);
  totals_.wait_for_draft += move(branch, Stage::Ready, Stage::Drafting, t);
  busy(draft_idle_since_, totals_.draft_idle, branch, "draft", t);
  totals_.most_drafting = std::max(totals_.most_drafting, n_drafting + 1);
  return branch;
}

void Rounds::drafted(int branch, Nanoseconds t) {
  totals_.drafting += move(branch, Stage::Drafting, Stage::Queued, t);
  totals_.n_drafts++;
  line_up(queue_, branch, "target", t);
  totals_.longest_queue = std::max(totals_.longest_queue, static_cast<int>(queue_.size()));
}

// Called while no branch is being verified, so every branch outside the queue is drafting or about
// to draft.
bool Rounds::pays_to_wait() const {
  if (!at_once()) return !empties_queue_ && (n_in(Stage::Drafting) > 0 || !ready_.empty());
  const auto n_missing = std::min(n_together_, n_active_) - std::ssize(queue_);
  const std::int64_t n_drafts = known_.n_drafts + totals_.n_drafts;
  const std::int64_t n_verifications = known_.n_verifications + totals_.n_verifications;
  if (n_missing <= 0 || n_drafts == 0 || n_verifications == 0) return false;
  const auto mean = [](Nanoseconds all, std::int64_t n) {
    return static_cast<double>(all) / static_cast<double>(n);
  };
  const auto n_in_a_row = (n_missing + n_drafters_ - 1) /
                          n_drafters_;  // drafts that one drafter makes one after another
  return static_cast<double>(n_in_a_row) * mean(known_.drafting + totals_.drafting, n_drafts) <
         mean(known_.verifying + totals_.verifying, n_verifications);
}

std::vector<int> Rounds::verify_next(Nanoseconds t) {
  std::vector<int> branches;
  n_active_ = n_branches() - static_cast<int>(n_in(Stage::Free));
  if (queue_.empty() || pays_to_wait()) {
    if (target_idle_since_ < 0) target_idle_since_ = t;
    return branches;
  }
  while (!queue_.empty() && std::ssize(branches) < n_together_) {
    branches.push_back(take(queue_, "target", t));
    totals_.wait_for_target += move(branches.back(), Stage::Queued, Stage::Verifying, t);
  }
  empties_queue_ = !queue_.empty();
  busy(target_idle_since_, totals_.target_idle, branches.front(), "target", t);
  totals_.n_verifications++;
  totals_.n_overlapped += at_once();
  return branches;
}

void Rounds::verified(std::span<const VerifiedBranch> branches, Nanoseconds t) {
  measure(branches, t);
  Nanoseconds spent = 0;  // the same time for all branches, because one forward verified them
  for (const VerifiedBranch& one : branches) {
    spent = move(one.branch, Stage::Verifying, one.over ? Stage::Free : Stage::Ready, t);
    place(one.branch).n_verified += one.n_emitted;
    if (!one.over) line_up(ready_, one.branch, "draft", t);
  }
  totals_.verifying += spent;
}

// Does not count the time in which prompts are read, because admit() restarts the clock. Skips
// rounds in which the mode or the number of branches changed.
void Rounds::measure(std::span<const VerifiedBranch> branches, Nanoseconds t) {
  if (!overlap_) return;
  const Nanoseconds spent = t - measured_until_;
  const Nanoseconds drafting = totals_.drafting - drafting_until_;
  measured_until_ = t;
  drafting_until_ = totals_.drafting;
  if (measuring_.n_branches != n_active_ || measuring_.at_once != at_once()) {
    measuring_ = {.n_branches = n_active_, .at_once = at_once()};
    return;
  }
  measuring_.n_texts += static_cast<int>(branches.size());
  for (const VerifiedBranch& one : branches) measuring_.tokens += one.expected;
  measuring_.spent += spent;
  measuring_.drafting += drafting;
  if (measuring_.n_texts < n_active_) return;
  overlap_->measured(n_active_, {.whole = measuring_.spent / measuring_.n_texts,
                                 .drafting = measuring_.drafting / measuring_.n_texts,
                                 .tokens = measuring_.tokens / measuring_.n_texts});
  measuring_ = {.n_branches = measuring_.n_branches, .at_once = measuring_.at_once};
}

double speedup_bound(
    int n_branches, int n_drafts, double t_draft, double t_verify, double n_together) {
  const double share = t_verify / n_together;
  const double period = std::max({(t_draft + t_verify) / n_branches, share, t_draft / n_drafts});
  return (t_draft + share) / period;
}

}  // namespace engine
