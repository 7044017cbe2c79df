// Draft models read a prompt just before the first step that drafts; SEED's on the thread that drafts.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/rounds_scheduler.h"
#include "engine/run/scheduler.h"

namespace engine::test {
namespace {

ModelStore& store() {
  static ModelStore models(std::string(DECOSCOPE_SOURCE_DIR) + "/assets", 2);
  return models;
}

/// The bundled models. Times of steps are given, so they are not measured.
RunModels bundled() {
  RunModels models = models_for(store(), {}, {}, "seed", {});
  models.target.control =
      std::make_shared<StepControl>(CostModel([](int n_rows) { return 1 + 0.02 * n_rows; }));
  return models;
}

/// A request of at least `first` + 2 steps whose drafts (k_config=auto) begin at step `first`; -1: it
/// never drafts.
CompletionRequest request(int first, std::uint64_t seed) {
  CompletionRequest request;
  request.run.prompt = "Question:\nAnna has " + std::to_string(seed % 2 + 3) + " cups.\nAnswer:\n";
  request.run.prompt_tokens = tokenize_prompt(*bundled().target.model, request.run.prompt);
  request.run.decoder = "seed";
  request.run.max_tokens = 24;
  request.run.ignore_eos = true;
  request.run.sampling = {.temperature = 0.8f, .seed = seed};
  request.run.choices.assign(24, 0);
  for (int step = first; first >= 0 && step < 24; step++)
    request.run.choices[static_cast<std::size_t>(step)] = 1 + step % 4;
  return request;
}

std::vector<CompletionRequest> without_drafts(std::vector<CompletionRequest> requests) {
  for (CompletionRequest& one : requests) one.run.decoder = "ar", one.run.choices.clear();
  return requests;
}

/// How often the draft model read a run's prompt, and the steps that drafted, from its events.
struct Seen {
  int n_begun = 0, n_ended = 0;  // readings
  int first_read = -1;           // the step before which it was read
  std::vector<int> drafted;      // steps with forwards of the draft model
};

std::map<RunId, Seen> seen_in(const EventList& events) {
  std::map<RunId, Seen> all;
  std::map<RunId, int> next;  // step
  for (const Event& event : events.events) {
    if (const auto* e = std::get_if<StepEnded>(&event)) next[e->run] = e->step + 1;
    if (const auto* e = std::get_if<Drafted>(&event)) {
      Seen& seen = all[e->run];
      if (e->forwards.empty()) continue;
      seen.drafted.push_back(e->step);
      EXPECT_EQ(seen.n_ended, 1) << "the prompt is read before the first draft";
    }
    const auto* phase = std::get_if<Phase>(&event);
    if (!phase || phase->name != "draft prefill") continue;
    Seen& seen = all[phase->run];
    if (phase->done == 0) {
      seen.n_begun++;
      seen.first_read = next[phase->run];
    } else {
      EXPECT_EQ(phase->done, phase->total);
      seen.n_ended++;
    }
  }
  return all;
}

TEST(DraftPrompts, are_read_before_the_first_draft) {
  std::vector<CompletionRequest> requests;
  const int first[] = {-1, 3, 0, -1, 5, 0, 2};
  for (const int step : first) requests.push_back(request(step, requests.size() + 1));
  const RunModels models = bundled();
  const auto plain = BatchScheduler(models, 1).run(without_drafts(requests), {});
  for (const std::string& overlap : overlap_names()) {
    for (const int n : {1, 3}) {  // drafters, and branches in a verification
      EventList events;
      RoundsScheduler scheduler(models, {.n_branches = 3,
                                         .n_together = n,
                                         .overlap = overlap,
                                         .n_drafters = overlap == "never" ? 1 : n});
      const auto found = scheduler.run(requests, {.events = &events});
      ASSERT_EQ(found.size(), requests.size());
      auto seen = seen_in(events);
      for (std::size_t i = 0; i < requests.size(); i++) {
        EXPECT_EQ(found[i].result.tokens, plain[i].result.tokens) << i << overlap << n;
        const Seen& run = seen[static_cast<RunId>(i) + 1];
        const int n_readings = first[i] >= 0;
        EXPECT_EQ(run.n_begun, n_readings) << i << overlap << n;
        EXPECT_EQ(run.n_ended, n_readings);
        EXPECT_EQ(run.first_read, first[i]) << i << overlap << n;
        ASSERT_EQ(run.drafted.empty(), first[i] < 0) << i << overlap << n;
        if (first[i] >= 0) {
          EXPECT_EQ(run.drafted.front(), first[i]);
        }
      }
      const auto figures = scheduler.figures();
      EXPECT_GT(figures.at("draft_prefill_ms"), 0);
      EXPECT_LT(figures.at("draft_prefill_ms"), figures.at("prefill_ms"));
      Timeline timeline;
      timeline.apply(describe(models.target));
      timeline.apply(describe(*models.draft));
      for (const Event& event : events.events) timeline.apply(event);
      EXPECT_EQ(timeline.n_inconsistent(), 0);
    }
  }
}

TEST(DraftPrompts, are_not_read_without_drafts) {
  const RunModels models = bundled();
  std::vector<CompletionRequest> requests;
  for (int i = 0; i < 4; i++) requests.push_back(request(-1, 1 + static_cast<std::uint64_t>(i)));
  for (const int n_drafters : {1, 2}) {
    EventList events;
    RoundsScheduler scheduler(models,
                              {.n_branches = 2, .overlap = "always", .n_drafters = n_drafters});
    scheduler.run(requests, {.events = &events});
    for (const auto& [run, seen] : seen_in(events)) EXPECT_EQ(seen.n_begun, 0) << run;
    const auto figures = scheduler.figures();
    EXPECT_EQ(figures.at("draft_prefill_ms"), 0);
    EXPECT_EQ(figures.at("drafts"), 0);
    // The scheduler would keep the last prompt that its draft model has read.
    EXPECT_EQ(models.draft->model->cache_bytes(), 0) << n_drafters;
  }
}

// With a scheduler of whole steps the draft model shares the beginning of a prompt with the last one.
TEST(DraftPrompts, are_shared_by_the_sequences_of_a_batch) {
  const RunModels models = bundled();
  std::vector<CompletionRequest> requests{request(0, 1), request(0, 2), request(3, 1)};
  const auto plain = BatchScheduler(models, 1).run(without_drafts(requests), {});
  for (CompletionRequest& one : requests) one.run.decoder = "speculative";
  EXPECT_EQ(models.draft->model->cache_bytes(), 0);
  for (const int n_at_once : {1, 2}) {
    BatchScheduler scheduler(models, n_at_once);
    const auto found = scheduler.run(requests, {});
    ASSERT_EQ(found.size(), requests.size());
    for (std::size_t i = 0; i < requests.size(); i++)
      EXPECT_EQ(found[i].result.tokens, plain[i].result.tokens) << i;
    EXPECT_GT(models.draft->model->cache_bytes(), 0) << "of the last prompt";
  }
  EXPECT_EQ(models.draft->model->cache_bytes(), 0);
}

}  // namespace
}  // namespace engine::test
