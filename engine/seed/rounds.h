// Rounds-scheduled speculative execution: several branches that draft, one target that verifies.
//   paper    SEED, Wang et al. 2024 (arXiv:2406.18200), Algorithm 1
//   label    a branch that may draft has label 1. From its draft until the target has verified it,
//            it has label 0. So a branch has at most one unverified tree, and the queue is never
//            longer than the number of branches
//   differs  a policy chooses the next branch of the queue, by default first come, first served;
//            the target may verify several branches in one forward; it then waits for unfinished
//            drafts if waiting costs less than the extra verification that it saves. Fewer drafters
//            than branches may work; a free one takes the next branch by the policy
// Rounds only does the bookkeeping: which branch may do what next, and how long branches and models
// waited. Threads (rounds_threads.h) and a simulator with its own clock (rounds_simulator.h) both
// use this class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/event/queue.h"
#include "engine/seed/overlap.h"
#include "engine/seed/policy.h"

namespace engine {

/// A request that starts in a free place.
struct Admitted {
  RunId run = 0;
  double value = 0;
};

/// The result of a verification for one branch.
struct VerifiedBranch {
  int branch = 0;
  int n_emitted = 0;
  bool over = false;    // true: the sequence has ended
  double expected = 1;  // expected tokens of its tree; 1 if all trees are equal
};

/// Counters and times of all branches together, on the caller's clock.
struct RoundsTotals {
  std::int64_t n_drafts = 0;         // trees put into the queue
  std::int64_t n_verifications = 0;  // forwards of the target
  std::int64_t n_overlapped = 0;     // verifications during which the draft was allowed to work
  int longest_queue = 0;
  int most_branches = 0;            // largest number of branches active at the same time
  int most_drafting = 0;            // largest number of branches in their drafts at the same time
  Nanoseconds wait_for_target = 0;  // of branches in the queue
  Nanoseconds wait_for_draft = 0;   // of branches with label 1 while all drafters work for others
  Nanoseconds drafting = 0;         // sum over the drafts, also of those at the same time
  Nanoseconds verifying = 0;
  Nanoseconds target_idle = 0;  // time in which the target had no drafts to verify
  // time in which no drafter worked and no branch waited for one: from a draft_next() that returned
  // none to the next draft
  Nanoseconds draft_idle = 0;
};

/// The schedule's state.
class Rounds {
 public:
  /// @param n_branches  number of places; a request takes one until it ends
  /// @param policy      outlives the rounds
  /// @param n_together  most branches in one verification
  /// @param events      receives Queued, Dequeued and Waiting events, or null. Their resource is
  ///                    "target" for the queue of Algorithm 1, and "draft" for branches that may
  ///                    draft. A Waiting event reports that the resource was idle until this branch
  ///                    arrived; for "draft", that no drafter worked
  /// @param known       totals of earlier rounds with the same models, from which the durations of
  ///                    stages are estimated
  /// @param overlap     decides whether both models work at the same time, and receives round
  ///                    times; outlives the rounds. Null: always
  /// @param n_drafters  most branches that draft at the same time; at least 1
  Rounds(int n_branches,
         const Policy& policy,
         int n_together,
         EventSink* events,
         const RoundsTotals& known = {},
         Overlap* overlap = nullptr,
         int n_drafters = 1);

  // State transitions. Each call passes the current time t, which never decreases.
  /// A request takes the free place `branch`, which may draft from then on.
  void admit(int branch, RunId run, double value, Nanoseconds t);
  /// The branch that drafts next; nullopt: none may, because none is ready or all drafters work. If
  /// the models work in turn, no branch drafts
  /// while another branch drafts, while the target works, or before the target has emptied the
  /// queue. Thus drafts follow each other and find the draft model's weights in the processor's
  /// cache; a verification would evict them.
  std::optional<int> draft_next(Nanoseconds t);
  /// The branch's draft is finished. The branch enters the queue.
  void drafted(int branch, Nanoseconds t);
  /// The branches that the target verifies next, in one forward. Empty: the queue is empty, or it
  /// is faster to wait for more drafts. If the models work in turn, the target waits until every
  /// branch has a draft, and then verifies all of them.
  std::vector<int> verify_next(Nanoseconds t);
  /// All branches of verify_next() are verified. Each may draft again, or leaves if its sequence
  /// has ended.
  void verified(std::span<const VerifiedBranch> branches, Nanoseconds t);

  /// True if draft and target work at the same time now, false if in turn.
  bool at_once() const { return !overlap_ || overlap_->at_once(n_active_); }
  /// Most branches that draft at the same time.
  int n_drafters() const { return n_drafters_; }
  /// Number of branches that may draft.
  int n_ready() const { return static_cast<int>(ready_.size()); }
  /// Number of places.
  int n_branches() const { return static_cast<int>(places_.size()); }
  /// True if the branch is active and neither drafting, nor in the queue, nor being verified (label
  /// 1).
  bool may_draft(int branch) const { return place(branch).stage == Stage::Ready; }
  /// True if no request has this place.
  bool is_free(int branch) const { return place(branch).stage == Stage::Free; }
  /// The branches that wait for the target, in order of arrival.
  std::span<const Waiter> queue() const { return queue_; }
  /// Counters and times so far.
  const RoundsTotals& totals() const { return totals_; }

 private:
  enum class Stage : std::uint8_t { Free, Ready, Drafting, Queued, Verifying };
  struct Place {
    Stage stage = Stage::Free;
    Nanoseconds since = 0;  // of the stage
    RunId run = 0;
    int n_verified = 0;
    double value = 0;
  };

  Place& place(int branch) { return places_[static_cast<std::size_t>(branch)]; }
  const Place& place(int branch) const { return places_[static_cast<std::size_t>(branch)]; }
  /// Moves a branch to another stage. @return  the time spent in the stage before
  Nanoseconds move(int branch, Stage from, Stage to, Nanoseconds t);
  void line_up(std::vector<Waiter>& line, int branch, const char* resource, Nanoseconds t);
  /// True if the target should wait for more drafts. In turn: true if any draft is missing.
  /// Overlapped: true if the missing drafts would take less time than the extra verification that
  /// they would otherwise need; both times are estimated by the means so far. False if there are no
  /// means yet.
  bool pays_to_wait() const;
  std::ptrdiff_t n_in(Stage stage) const;
  /// Reports a round time to overlap_ each time that every branch has made a round.
  void measure(std::span<const VerifiedBranch> branches, Nanoseconds t);
  int take(std::vector<Waiter>& line, const char* resource, Nanoseconds t);
  /// Ends an idle time of a resource, if there was one.
  void busy(
      Nanoseconds& idle_since, Nanoseconds& idle, int branch, const char* what, Nanoseconds t);

  const Policy& policy_;
  int n_together_;
  int n_drafters_;
  EventSink* events_;
  RoundsTotals known_;
  Overlap* overlap_;
  std::vector<Place> places_;
  std::vector<Waiter> ready_, queue_;
  // -1: the resource is busy, or the rounds have not started
  Nanoseconds target_idle_since_ = -1, draft_idle_since_ = -1;
  RoundsTotals totals_;
  // if the models work in turn: the target has begun to empty the queue
  bool empties_queue_ = false;
  // number of active branches when verify_next() last ran. A place that became free since then
  // still counts, because the next request takes it
  int n_active_ = 0;
  /// Rounds since the last report, all in the same mode.
  struct Measuring {
    int n_branches = 0;
    bool at_once = false;
    int n_texts = 0;
    Nanoseconds spent = 0;  // duration, without the time in which the target reads prompts
    Nanoseconds drafting = 0;
    double tokens = 0;  // expected
  } measuring_;
  Nanoseconds measured_until_ = 0;
  Nanoseconds drafting_until_ = 0;  // totals_.drafting at measured_until_
};

/// The work that rounds schedule. Only one call at a time uses a branch. draft() may run at the
/// same time as another member function for another branch, and as further calls of draft(): at most
/// Rounds::n_drafters() of them overlap.
class RoundsWork {
 public:
  virtual ~RoundsWork() = default;
  // Called before draft() or verify(), on their thread.
  /// @param drafter  number of the drafter that will draft, from 0. At most one call at a time uses
  ///                 a drafter, on any thread
  /// @param at_once  true: the target and other drafters may work at the same time; false: only
  ///                 this draft
  virtual void about_to_draft(int /*drafter*/, int /*branch*/, bool /*at_once*/) {}
  /// @param at_once  true: the draft may work at the same time; false: only the target works
  virtual void about_to_verify(bool /*at_once*/) {}
  /// Starts the next request in a free place and reads its prompt with the target. nullopt: there
  /// are no more requests.
  virtual std::optional<Admitted> begin(int branch) = 0;
  /// The draft proposes a branch's next tree.
  virtual void draft(int branch) = 0;
  /// The target verifies these branches' trees in one forward.
  virtual std::vector<VerifiedBranch> verify(std::span<const int> branches) = 0;
  /// A finished branch leaves its place.
  virtual void end(int branch) = 0;
};

/// Upper bound of the speed-up of rounds over drafting and verifying in turn. A round of a branch
/// takes t_draft + t_verify. It occupies the target for t_verify, and each of `n_drafts` parallel
/// drafts for t_draft / n_drafts on average, so the bound is
///   (t_draft + t_verify) / max((t_draft + t_verify) / n, t_verify, t_draft / n_drafts)
/// With one draft per branch this is the paper's min(n, (t_draft + t_verify) / t_verify). With one
/// drafter for all branches it is at most 2. If one verification covers m branches, each
/// branch bears 1/m of its cost (also in turn), but waits for the whole verification:
///   (t_draft + t_verify / m) / max((t_draft + t_verify) / n, t_verify / m, t_draft / n_drafts)
/// @param t_draft, t_verify  durations of a draft and of a whole verification
/// @param n_together         m, the mean number of branches in a verification
double speedup_bound(
    int n_branches, int n_drafts, double t_draft, double t_verify, double n_together = 1);

}  // namespace engine
