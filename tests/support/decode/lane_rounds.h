// Decoder lanes as the work of SEED's rounds, on several threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/event/clock.h"
#include "engine/seed/rounds_threads.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {

/// A sequence to generate.
struct Text {
  std::vector<TokenId> prompt;
  Job job;
};

/// An event sink that all threads may use.
class LockedList final : public EventSink {
 public:
  void push(Event event) override {
    const std::lock_guard lock(mutex_);
    list.push(std::move(event));
  }
  EventList list;

 private:
  std::mutex mutex_;
};

/// Runs lanes as the work of rounds; `draft_delay` and `verify_delay` are called before each stage,
/// draft_delay by several threads if there are several drafters.
class LaneRounds : public RoundsWork {
 public:
  LaneRounds(LanguageModel& target, const std::vector<Text>& texts, int n_branches, EventSink* sink)
      : target_(target),
        texts_(texts),
        events_(sink),
        places_(static_cast<std::size_t>(n_branches)),
        tokens(texts.size()),
        n_steps(texts.size()) {}

  std::optional<Admitted> begin(int branch) override {
    if (next_ == texts_.size()) return std::nullopt;
    const Text& text = texts_[next_++];
    DecoderContext context{
        .target = target_,
        .sampling = text.job.sampling,
        .limits = text.job.limits,
        .draft_model = drafts.empty() ? text.job.draft : drafts[static_cast<std::size_t>(branch)]};
    const auto run = static_cast<RunId>(next_);
    if (events_) events_->push(RunStarted{.t = now_ns(), .run = run, .prompt_tokens = text.prompt});
    Place& place = places_[static_cast<std::size_t>(branch)];
    place.index = next_ - 1;
    place.lane = std::make_unique<Lane>(make_lane(run, target_, text.prompt, text.job.decoder,
                                                  std::move(context), text.job.options));
    prefill(target_, place.lane->sequence);
    place.lane->decoder->begin(place.lane->sequence);
    return Admitted{.run = run, .value = static_cast<double>(next_ % 3)};
  }

  void draft(int branch) override {
    if (draft_delay) draft_delay();
    Stepper(target_, events_).propose(*places_[static_cast<std::size_t>(branch)].lane);
  }

  std::vector<VerifiedBranch> verify(std::span<const int> branches) override {
    if (verify_delay) verify_delay();
    std::vector<Lane*> lanes;
    std::vector<std::size_t> n_before;
    for (const int branch : branches) {
      lanes.push_back(places_[static_cast<std::size_t>(branch)].lane.get());
      n_before.push_back(lanes.back()->sequence.generated().size());
    }
    Stepper(target_, events_).verify(lanes);
    std::vector<VerifiedBranch> judged;
    for (std::size_t i = 0; i < lanes.size(); i++) {
      const Sequence& sequence = lanes[i]->sequence;
      judged.push_back({branches[i], static_cast<int>(sequence.generated().size() - n_before[i]),
                        sequence.finished()});
    }
    return judged;
  }

  void end(int branch) override {
    Place& place = places_[static_cast<std::size_t>(branch)];
    const auto generated = place.lane->sequence.generated();
    tokens[place.index].assign(generated.begin(), generated.end());
    n_steps[place.index] = place.lane->n_steps;
    over_.push_back(std::move(place.lane));  // both models release it after the threads have ended
  }

 private:
  struct Place {
    std::unique_ptr<Lane> lane;
    std::size_t index = 0;
  };
  LanguageModel& target_;
  const std::vector<Text>& texts_;
  EventSink* events_;
  std::vector<Place> places_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<Lane>> over_;

 public:
  std::function<void()> draft_delay, verify_delay;
  std::vector<LanguageModel*> drafts;  // by branch; empty: the job's draft model for all branches
  std::vector<std::vector<TokenId>> tokens;  // by sequence
  std::vector<int> n_steps;
};

}  // namespace engine::test
