// Rounds-scheduled speculative execution: several branches that draft, one target that verifies.
//   paper    SEED, Wang et al. 2024 (arXiv:2406.18200), Algorithm 1
//   label    a branch that may draft has label 1; from its draft on, through the queue, until the
//            target has judged it, label 0. So it has one tree under way at most, and the queue is
//            never longer than there are branches
//   differs  which of the queue is next is a policy's word, first come first served unless told
//            otherwise; the target may take several at once, and then waits for drafts under way
//            while that costs less than the verification it saves
// This class is the bookkeeping alone: who may do what next, who waited for whom and how long. Two
// threads that do the work (rounds_threads.h) and a simulator with a clock of its own
// (rounds_simulator.h) run the same object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/event/queue.h"
#include "engine/seed/overlap.h"
#include "engine/seed/policy.h"

namespace engine {

/// A request that takes a place.
struct Admitted {
  RunId run = 0;
  double value = 0;
};

/// What one verification came to for a branch.
struct VerifiedNode {
  int branch = 0;
  int n_emitted = 0;
  bool over = false;  // its text has ended
};

/// Times of all branches together; the clock is the caller's.
struct RoundsTotals {
  std::int64_t n_drafts = 0;         // trees put into the queue
  std::int64_t n_verifications = 0;  // times the target worked
  std::int64_t n_overlapped = 0;     // of these: the draft might work meanwhile
  int longest_queue = 0;
  int most_branches = 0;            // under way at once
  Nanoseconds wait_for_target = 0;  // of branches, in the queue
  Nanoseconds wait_for_draft = 0;   // of branches with label 1 while the draft is at another's
  Nanoseconds drafting = 0;
  Nanoseconds verifying = 0;
  Nanoseconds target_idle = 0;  // for want of drafts
  Nanoseconds draft_idle = 0;   // no branch had label 1; one draft's, where there are several
};

class Rounds {
 public:
  /// @param n_branches  places; a request takes one until it is over
  /// @param policy      outlives the rounds
  /// @param n_together  branches that one verification may take at most
  /// @param events      told Queued, Dequeued and Waiting, or null. Their resource is "target" for
  ///                    the queue of Algorithm 1 and "draft" for branches that may draft; Waiting
  ///                    says that the resource stood idle since, until this branch came
  /// @param known       of rounds with the same models before these: how long stages take
  /// @param overlap     says whether both work at once, and is told what rounds take; outlives
  ///                    them. Null: they always do
  Rounds(int n_branches,
         const Policy& policy,
         int n_together,
         EventSink* events,
         const RoundsTotals& known = {},
         Overlap* overlap = nullptr);

  // What happens, at times that never go back.
  /// A request takes a free place and may draft.
  void admit(int branch, RunId run, double value, Nanoseconds t);
  /// Who drafts next; nullopt: nobody may. In turn: not while another drafts or the target works,
  /// nor until the queue that it has begun is empty: drafts that follow each other find the draft
  /// model's weights in the cache, which a verification takes from them.
  std::optional<int> draft_next(Nanoseconds t);
  /// Its tree is in the queue.
  void drafted(int branch, Nanoseconds t);
  /// Whom the target verifies next, together; empty: the queue is, or it pays to wait for more. In
  /// turn it waits until every branch has its draft, and then verifies them all.
  std::vector<int> verify_next(Nanoseconds t);
  /// All that verify_next gave are judged: they may draft again, or leave.
  void verified(std::span<const VerifiedNode> judged, Nanoseconds t);

  /// Whether draft and target work at the same time now, or in turn.
  bool at_once() const { return !overlap_ || overlap_->at_once(n_under_way_); }
  int n_branches() const { return static_cast<int>(places_.size()); }
  /// Neither drafted for, nor in the queue, nor being verified.
  bool may_draft(int branch) const { return place(branch).stage == Stage::Ready; }
  bool is_free(int branch) const { return place(branch).stage == Stage::Free; }
  /// In the order they came.
  std::span<const Waiter> queue() const { return queue_; }
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
  /// @return  the time spent in the stage before
  Nanoseconds move(int branch, Stage from, Stage to, Nanoseconds t);
  void line_up(std::vector<Waiter>& line, int branch, const char* resource, Nanoseconds t);
  /// In turn: whether there is a draft to wait for. At once: whether a fuller forward soon is
  /// better than one now, the drafts it lacks taking less time, by what stages took so far, than
  /// the verification that they would otherwise need. Before the first of either nobody knows, and
  /// nobody waits.
  bool pays_to_wait() const;
  std::ptrdiff_t n_in(Stage stage) const;
  /// Tells the overlap what a round of every text took, as often as one was made.
  void measure(int n_texts, Nanoseconds t);
  int take(std::vector<Waiter>& line, const char* resource, Nanoseconds t);
  /// Ends a time without work, if there was one.
  void busy(
      Nanoseconds& idle_since, Nanoseconds& idle, int branch, const char* what, Nanoseconds t);

  const Policy& policy_;
  int n_together_;
  EventSink* events_;
  RoundsTotals known_;
  Overlap* overlap_;
  std::vector<Place> places_;
  std::vector<Waiter> ready_, queue_;
  Nanoseconds target_idle_since_ = -1, draft_idle_since_ = -1;  // -1: at work, or not begun
  RoundsTotals totals_;
  bool empties_queue_ = false;  // the target has begun the queue and not come to its end
  int n_under_way_ = 0;  // branches, as the target last saw them; a place just left is taken again
  /// Rounds since the last were told, all of them made in the same way.
  struct Measuring {
    int n_branches = 0;
    bool at_once = false;
    int n_texts = 0;
    Nanoseconds spent = 0;  // without what the target took for prompts
    Nanoseconds drafting = 0;
  } measuring_;
  Nanoseconds measured_until_ = 0;
  Nanoseconds drafting_until_ = 0;  // totals_.drafting by then
};

/// What is done in rounds. A branch is in one hand at a time: what draft() and the others see of it
/// is not touched meanwhile. draft() may run beside the other calls, for another branch; calls of
/// it follow each other, on either thread.
class RoundsWork {
 public:
  virtual ~RoundsWork() = default;
  /// Said before draft() or verify(), on their thread: whether the other model may be at work
  /// meanwhile, or this one has the machine for itself.
  virtual void about_to_draft(bool /*at_once*/) {}
  virtual void about_to_verify(bool /*at_once*/) {}
  /// The next request takes a free place, its prompt read by the target. nullopt: there is none.
  virtual std::optional<Admitted> begin(int branch) = 0;
  /// The draft proposes a branch's next tree.
  virtual void draft(int branch) = 0;
  /// The target judges what these branches proposed, in one forward.
  virtual std::vector<VerifiedNode> verify(std::span<const int> branches) = 0;
  /// A branch that is over leaves its place.
  virtual void end(int branch) = 0;
};

/// The most that rounds can gain over drafting and verifying in turn: each branch needs
/// t_draft + t_verify a round, the target t_verify of it,
/// and `n_drafts` at once t_draft / n_drafts.
///     (t_draft + t_verify) / max((t_draft + t_verify) / n, t_verify, t_draft / n_drafts)
/// With a draft a branch this is the paper's min(n, (t_draft + t_verify) / t_verify); one thread
/// that drafts for all stops it at 2. Where a verification takes several texts each has its share
/// of it, in turn too, and the branch waits for all of it:
///     (t_draft + t_verify / m) / max((t_draft + t_verify) / n, t_verify / m, t_draft / n_drafts)
/// @param n_together  m: texts in a verification, on average; t_verify is all of it
double rounds_bound(
    int n_branches, int n_drafts, double t_draft, double t_verify, double n_together = 1);

}  // namespace engine
