#include "engine/seed/schedule_figures.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/data/random.h"
#include "engine/seed/simulate_schedule.h"

namespace engine {
namespace {

/// A longer stage of a recording counts as this, so that no sum overflows.
constexpr Nanoseconds kLongestStage = 10'000'000'000;

/// The number of right tokens at the beginning of a drafted chain.
int right_tokens(Random& rng, const ChainTexts& texts) {
  const double limit = texts.right * 0x1p32;
  int n = 0;
  while (n < texts.depth && static_cast<double>(rng.bits()) < limit) n++;
  return n;
}

/// The runs of all searches, by stage.
struct StageRuns {
  std::vector<RunId> thoughts, evaluations;
};

StageRuns runs_by_stage(const Timeline& timeline) {
  StageRuns runs;
  const auto add = [&](const std::vector<RunId>& more) {
    runs.thoughts.insert(runs.thoughts.end(), more.begin(), more.end());
  };
  for (const SearchRecord& search : timeline.searches()) {
    for (const ThoughtRecord& thought : search.thoughts) {
      add(thought.made.runs);
      for (const ThoughtJudged& judged : thought.judged) add(judged.runs);
      if (thought.valued) runs.evaluations.push_back(thought.valued->by);
    }
  }
  return runs;
}

Schedule schedule_of_runs(const Timeline& timeline, std::vector<RunId> ids) {
  std::ranges::sort(ids);  // runs are numbered in the order of their beginning
  std::vector<const RunRecord*> runs;
  for (const RunId id : ids)
    if (const RunRecord* run = timeline.run(id)) runs.push_back(run);
  return schedule_of(runs);
}

Nanoseconds duration(Nanoseconds begin, Nanoseconds end) {
  return end < begin ? 0 : std::min(end - begin, kLongestStage);
}

RecordedStage stage_of(const char* name, const Schedule& schedule) {
  RecordedStage stage{.name = name, .texts = {.levels = scripted_levels(schedule)}};
  Nanoseconds drafting = 0, verifying = 0;
  std::int64_t n_drafts = 0;
  for (const ScheduleTurn& turn : schedule.turns) {
    if (turn.forwarded < 0) continue;
    stage.texts.n_proposed += turn.n_proposed;
    stage.texts.n_accepted += turn.n_accepted;
    if (turn.drafts < 0) continue;
    drafting += duration(turn.drafts, turn.queued);
    n_drafts++;
  }
  for (const ScheduleForward& forward : schedule.forwards)
    verifying += duration(forward.begin, forward.ended);
  if (n_drafts > 0) stage.draft = drafting / n_drafts;
  if (!schedule.forwards.empty()) stage.verify = verifying / std::ssize(schedule.forwards);
  return stage;
}

}  // namespace

double ScriptedLevels::acceptance_rate() const {
  return n_proposed > 0 ? static_cast<double>(n_accepted) / static_cast<double>(n_proposed) : 0;
}

ScriptedLevels chain_levels(const ChainTexts& texts, int n_texts) {
  ensure(texts.right >= 0 && texts.right <= 1 && texts.depth >= 1 && texts.n_tokens >= 1 &&
             texts.n_levels >= 1 && n_texts >= 1,
         "a probability is 0 to 1, and texts have tokens, drafts and levels");
  ScriptedLevels made;
  for (int level = 0; level < texts.n_levels; level++) {
    auto& requests = made.levels.emplace_back();
    for (int place = 0; place < n_texts; place++) {
      Random rng(fnv1a(std::to_string(texts.seed) + "/" + std::to_string(level) + "/" +
                       std::to_string(place)));
      ScriptedRequest request{.n_tokens = texts.n_tokens, .emitted = {}};
      for (int n = 0; n < texts.n_tokens; n += request.emitted.back()) {
        const int right = right_tokens(rng, texts);
        request.emitted.push_back(right + 1);
        made.n_proposed += texts.depth;
        made.n_accepted += right;
      }
      requests.push_back(std::move(request));
    }
  }
  return made;
}

ScheduleFigure schedule_figure(const ScriptedLevels& levels,
                               const FigureStages& stages,
                               int n_branches,
                               int n_drafters) {
  ensure(!levels.levels.empty() && n_branches >= 1 && stages.draft + stages.verify > 0,
         "a figure of a schedule needs texts, branches, and stages that take time");
  const int n_drafts = n_drafters > 0 ? std::min(n_drafters, n_branches) : n_branches;
  const FirstComeFirstServed policy;
  ScheduleFigure figure;
  Nanoseconds end = 0, drafting = 0, verifying = 0;
  for (const std::vector<ScriptedRequest>& level : levels.levels) {
    Rounds rounds(n_branches, policy, 1, nullptr, {}, nullptr, n_drafts);
    ScriptedWork work(level);
    end += simulate_rounds(rounds, work, fixed_times(stages.draft, stages.verify)).back().end;
    drafting += rounds.totals().drafting;
    verifying += rounds.totals().verifying;
    figure.n_rounds += work.n_rounds();
    for (const ScriptedRequest& request : level) figure.n_tokens += request.n_tokens;
  }
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double time = real(end);
  figure.speedup = real(figure.n_rounds * (stages.draft + stages.verify)) / time;
  figure.bound = speedup_bound(n_branches, n_drafts, real(stages.draft), real(stages.verify));
  figure.speedup_over_plain = real(figure.n_tokens * stages.step) / time;
  figure.target_busy = real(verifying) / time;
  figure.drafters_busy = real(drafting) / (time * n_drafts);
  return figure;
}

std::vector<RecordedStage> recorded_stages(const Timeline& timeline) {
  const StageRuns runs = runs_by_stage(timeline);
  std::vector<RecordedStage> stages;
  for (const auto& [name, ids] :
       {std::pair("thoughts", runs.thoughts), std::pair("evaluations", runs.evaluations)}) {
    RecordedStage stage = stage_of(name, schedule_of_runs(timeline, ids));
    if (stage.verify > 0) stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace engine
