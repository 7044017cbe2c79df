#include "engine/seed/rounds_simulator.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

class Simulation {
 public:
  Simulation(Rounds& rounds, RoundsWork& work, const StageTimes& times)
      : rounds_(rounds), work_(work), times_(times) {}

  std::vector<StageSlice> run() {
    for (int branch = 0; branch < rounds_.n_branches(); branch++) admit(branch);
    for (start_stages(); !drafting_.empty() || !verifying_.empty(); start_stages()) advance();
    return std::move(slices_);
  }

 private:
  using Stage = StageSlice::Stage;

  void admit(int branch) {
    if (const std::optional<Admitted> request = work_.begin(branch))
      rounds_.admit(branch, request->run, request->value, now_);
  }

  void start_stages() {
    while (const std::optional<int> branch = rounds_.draft_next(now_))
      drafting_.push_back({Stage::Draft, *branch, now_, now_ + times_.draft(*branch)});
    if (!verifying_.empty()) return;
    const std::vector<int> branches = rounds_.verify_next(now_);
    if (branches.empty()) return;
    const Nanoseconds end = now_ + times_.verify(branches);
    for (const int branch : branches) verifying_.push_back({Stage::Verify, branch, now_, end});
  }

  /// Advances to the next end of a stage. A draft that ends at the same time as the verification
  /// goes first.
  void advance() {
    const auto first = std::ranges::min_element(drafting_, {}, &StageSlice::end);
    const bool is_draft =
        first != drafting_.end() && (verifying_.empty() || first->end <= verifying_[0].end);
    if (is_draft) {
      const StageSlice done = *first;
      drafting_.erase(first);
      now_ = done.end;
      slices_.push_back(done);
      work_.draft(done.branch);
      rounds_.drafted(done.branch, now_);
      return;
    }
    const std::vector<StageSlice> done = std::exchange(verifying_, {});
    now_ = done[0].end;
    std::vector<int> branches;
    for (const StageSlice& one : done) {
      slices_.push_back(one);
      branches.push_back(one.branch);
    }
    const std::vector<VerifiedBranch> verified = work_.verify(branches);
    rounds_.verified(verified, now_);
    for (const VerifiedBranch& one : verified) {
      if (!one.over) continue;
      work_.end(one.branch);
      admit(one.branch);
    }
  }

  Rounds& rounds_;
  RoundsWork& work_;
  const StageTimes& times_;
  Nanoseconds now_ = 0;
  std::vector<StageSlice> drafting_, verifying_;
  std::vector<StageSlice> slices_;
};

}  // namespace

StageTimes fixed_times(Nanoseconds t_draft, Nanoseconds t_verify) {
  return {.draft = [t_draft](int) { return t_draft; },
          .verify = [t_verify](std::span<const int>) { return t_verify; }};
}

std::vector<StageSlice> simulate_rounds(Rounds& rounds, RoundsWork& work, const StageTimes& times) {
  return Simulation(rounds, work, times).run();
}

ScriptedWork::ScriptedWork(std::vector<ScriptedRequest> requests)
    : requests_(std::move(requests)), places_(requests_.size()) {
  for (const ScriptedRequest& request : requests_) {
    ensure(
        request.n_tokens >= 1 && !request.emitted.empty() && std::ranges::min(request.emitted) >= 1,
        "every round of a scripted request must emit at least one token");
  }
}

std::optional<Admitted> ScriptedWork::begin(int branch) {
  if (next_ == requests_.size()) return std::nullopt;
  places_[static_cast<std::size_t>(branch)] = {.request = static_cast<int>(next_)};
  const ScriptedRequest& request = requests_[next_++];
  return Admitted{.run = static_cast<RunId>(next_), .value = request.value};
}

void ScriptedWork::draft(int branch) {
  ensure(places_.at(static_cast<std::size_t>(branch)).request >= 0,
         "the place has no request to draft for");
}

std::vector<VerifiedBranch> ScriptedWork::verify(std::span<const int> branches) {
  std::vector<VerifiedBranch> verified;
  for (const int branch : branches) {
    Place& place = places_[static_cast<std::size_t>(branch)];
    const ScriptedRequest& request = requests_[static_cast<std::size_t>(place.request)];
    const auto round = static_cast<std::size_t>(place.n_rounds++) % request.emitted.size();
    const int n = std::min(request.emitted[round], request.n_tokens - place.n_tokens);
    place.n_tokens += n;
    verified.push_back({branch, n, place.n_tokens == request.n_tokens});
  }
  return verified;
}

void ScriptedWork::end(int branch) {
  Place& place = places_[static_cast<std::size_t>(branch)];
  ended_.push_back(std::exchange(place.request, -1));
}

int ScriptedWork::n_rounds() const {
  int n = 0;
  for (const ScriptedRequest& request : requests_) {
    int n_tokens = 0;
    for (std::size_t round = 0; n_tokens < request.n_tokens; round++, n++)
      n_tokens += request.emitted[round % request.emitted.size()];
  }
  return n;
}

}  // namespace engine
