#include "engine/event/timeline/timeline_events.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <queue>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace engine {
namespace {

/// Generates events in order of time.
class Source {
 public:
  virtual ~Source() = default;
  /// Appends the next events; appends none at the end.
  virtual void fill(std::deque<Event>& ready) = 0;
};

template <typename T>
class ListSource : public Source {
 public:
  explicit ListSource(std::span<const T> list) : left_(list) {}
  void fill(std::deque<Event>& ready) override {
    if (left_.empty()) return;
    if constexpr (std::is_constructible_v<Event, T>) {
      ready.emplace_back(left_.front());
    } else {
      std::visit([&](const auto& e) { ready.emplace_back(e); }, left_.front());
    }
    left_ = left_.subspan(1);
  }

 private:
  std::span<const T> left_;
};

std::vector<Event> events_of(StepRecord step) {
  std::vector<Event> events;
  events.emplace_back(step.begun);
  if (step.has_drafted) events.emplace_back(std::move(step.drafted));
  if (step.has_verified) events.emplace_back(std::move(step.verified));
  for (BlockRefined& block : step.blocks) events.emplace_back(std::move(block));
  if (step.pool) events.emplace_back(std::move(*step.pool));
  if (step.has_committed) events.emplace_back(std::move(step.committed));
  if (step.complete) events.emplace_back(step.ended);
  // An initial guess of a block is older than the beginning of its step.
  std::ranges::stable_sort(events, {}, time_of);
  return events;
}

/// The events of a run: beginning, steps, end.
class RunSource : public Source {
 public:
  explicit RunSource(const RunRecord& run) : run_(run) {}
  void fill(std::deque<Event>& ready) override {
    const std::size_t at = next_++;
    if (at == 0) {
      ready.emplace_back(run_.started);
    } else if (at <= run_.steps.size()) {
      for (Event& event : events_of(run_.steps[at - 1])) ready.push_back(std::move(event));
    } else if (at == run_.steps.size() + 1) {
      for (const BlockRefined& block : run_.early_blocks) ready.emplace_back(block);
      if (run_.early_pool) ready.emplace_back(*run_.early_pool);
      if (run_.finished) ready.emplace_back(*run_.finished);
      if (run_.failed) ready.emplace_back(*run_.failed);
      if (run_.agreement) ready.emplace_back(*run_.agreement);
    }
  }

 private:
  const RunRecord& run_;  // of the timeline
  // next part of the run: 0 is the beginning, then the steps follow, then the end
  std::size_t next_ = 0;
};

/// The events of a tree of thoughts, by time.
std::vector<Event> events_of(const SearchRecord& search) {
  std::vector<Event> events = {search.begun};
  for (const ThoughtRecord& thought : search.thoughts) {
    events.emplace_back(thought.made);
    if (thought.valued) events.emplace_back(*thought.valued);
    for (const ThoughtJudged& judged : thought.judged) events.emplace_back(judged);
  }
  if (search.ended) events.emplace_back(*search.ended);
  std::ranges::stable_sort(events, {}, time_of);
  return events;
}

class SearchSource : public Source {
 public:
  explicit SearchSource(const SearchRecord& search) : search_(search) {}
  void fill(std::deque<Event>& ready) override {
    if (done_) return;
    done_ = true;
    for (Event& event : events_of(search_)) ready.push_back(std::move(event));
  }

 private:
  const SearchRecord& search_;  // of the timeline
  bool done_ = false;
};

std::vector<std::unique_ptr<Source>> sources_of(const Timeline& timeline,
                                                std::span<const ModelLoaded> models) {
  std::vector<std::unique_ptr<Source>> sources;
  const auto add = [&]<typename T>(std::span<const T> list) {
    if (!list.empty()) sources.push_back(std::make_unique<ListSource<T>>(list));
  };
  add(models);
  add(timeline.holds());
  add(timeline.phases());
  add(timeline.notices());
  add(timeline.samples());
  for (const RunRecord& run : timeline.runs()) {
    sources.push_back(std::make_unique<RunSource>(run));
    add(std::span(run.phases));
    add(std::span(run.queueing));
    add(std::span(run.dropped));
  }
  for (const SearchRecord& search : timeline.searches())
    sources.push_back(std::make_unique<SearchSource>(search));
  return sources;
}

}  // namespace

void replay_events(const Timeline& timeline, EventSink& into) {
  std::vector<ModelLoaded> models;
  for (const auto& [id, model] : timeline.models()) models.push_back(model);
  std::ranges::stable_sort(models, {}, &ModelLoaded::t);
  const auto sources = sources_of(timeline, models);
  std::vector<std::deque<Event>> ready(sources.size());
  // At equal times the earlier source comes first: a model before its runs, a run before its
  // phases.
  using Next = std::pair<Nanoseconds, std::size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto refill = [&](std::size_t i) {
    if (ready[i].empty()) sources[i]->fill(ready[i]);
    if (!ready[i].empty()) next.emplace(time_of(ready[i].front()), i);
  };
  for (std::size_t i = 0; i < sources.size(); ++i) refill(i);
  while (!next.empty()) {
    const std::size_t i = next.top().second;
    next.pop();
    Event event = std::move(ready[i].front());
    ready[i].pop_front();
    refill(i);
    into.push(std::move(event));
  }
}

}  // namespace engine
