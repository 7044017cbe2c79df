#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "tests/ui/support/schedule_stream.h"
#include "tests/ui/support/streams.h"

namespace streams {
namespace {

using namespace engine;

class Scheduled {
 public:
  Scheduled(int n_runs, int n_branches, int n_tokens)
      : story_(story(n_tokens)), n_runs_(n_runs), places_(static_cast<std::size_t>(n_branches)) {}

  std::vector<Event> events() {
    put(story_.model);
    for (int branch = 0; branch < static_cast<int>(places_.size()); ++branch) admit(branch);
    for (begin_what_can(); drafting_ || verifying_; begin_what_can()) pass();
    return std::move(events_);
  }

 private:
  struct Place {
    RunId run = 0;
    std::vector<Step> steps;
    std::size_t next = 0;
  };
  struct Work {
    int branch = 0;
    Nanoseconds ends = 0;
  };

  Place& at(int branch) { return places_[static_cast<std::size_t>(branch)]; }
  const Step& step_of(int branch) { return at(branch).steps[at(branch).next]; }

  void put(Event event) {
    std::visit([this](auto& e) { e.t = t_; }, event);
    events_.push_back(std::move(event));
  }

  void admit(int branch) {
    if (static_cast<int>(last_run_) == n_runs_) return;
    const RunId run = ++last_run_;
    at(branch) = {run, steps_of(story_, "speculative", run)};
    RunStarted started{.run = run, .model = 1, .decoder = "seed"};
    started.options = {{"branches", std::to_string(places_.size())}};
    started.prompt = story_.prompt;
    started.prompt_tokens = story_.prompt_tokens;
    started.max_tokens = static_cast<int>(story_.answer.size());
    put(std::move(started));
    line_up(branch);
  }

  void line_up(int branch) {
    put(Queued{.run = at(branch).run, .branch = branch, .resource = "draft"});
    ready_.push_back(branch);
  }

  void begin_what_can() {
    if (!drafting_ && !ready_.empty()) {
      const int branch = ready_.front();
      ready_.pop_front();
      put(Dequeued{.run = at(branch).run, .branch = branch, .resource = "draft"});
      put(step_of(branch).events[0]);  // StepBegun
      drafting_ = Work{branch, t_ + kScheduledDraft};
    }
    if (verifying_) return;
    if (queue_.empty()) {
      if (idle_since_ < 0) idle_since_ = t_;
      return;
    }
    const int branch = queue_.front();
    queue_.pop_front();
    const RunId run = at(branch).run;
    put(Dequeued{.run = run, .branch = branch, .resource = "target"});
    if (idle_since_ >= 0 && idle_since_ < t_)
      put(Waiting{.run = run, .branch = branch, .resource = "target", .since = idle_since_});
    idle_since_ = -1;
    const auto& ended = std::get<StepEnded>(step_of(branch).events.back());
    verifying_ = Work{branch, t_ + ended.forward + ended.verify + ended.commit};
  }

  void pass() {
    if (drafting_ && (!verifying_ || drafting_->ends <= verifying_->ends)) {
      const int branch = drafting_->branch;
      t_ = std::exchange(drafting_, std::nullopt)->ends;
      put(step_of(branch).events[1]);  // Drafted
      put(Queued{.run = at(branch).run, .branch = branch, .resource = "target"});
      queue_.push_back(branch);
      return;
    }
    const int branch = verifying_->branch;
    t_ = std::exchange(verifying_, std::nullopt)->ends;
    Place& place = at(branch);
    std::vector<Event> reported = place.steps[place.next++].events;
    std::get<StepEnded>(reported.back()).propose = kScheduledDraft;
    for (std::size_t i = 2; i < reported.size(); ++i) put(std::move(reported[i]));
    if (place.next < place.steps.size()) return line_up(branch);
    put(RunFinished{.run = place.run,
                    .stop_reason = "length",
                    .n_tokens = static_cast<int>(story_.answer.size()),
                    .n_steps = static_cast<int>(place.steps.size())});
    admit(branch);
  }

  Story story_;
  int n_runs_;
  std::vector<Place> places_;
  std::deque<int> ready_, queue_;
  std::optional<Work> drafting_, verifying_;
  Nanoseconds t_ = 3'000'000, idle_since_ = -1;
  RunId last_run_ = 0;
  std::vector<Event> events_;
};

}  // namespace

std::vector<Event> schedule(int n_runs, int n_branches, int n_tokens) {
  return Scheduled(n_runs, n_branches, n_tokens).events();
}

}  // namespace streams
