// Recorded runs are repeated with the sizes that they chose, whatever the machine's times are now.
#include <set>

#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/event/timeline/recorded_choices.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/recorded/repeat.h"
#include "engine/run/scheduler.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";
constexpr const char* kSizing[] = {"prompt-lookup", "speculative", "mcsd",   "seed",     "medusa",
                                   "chimera",       "lookahead",   "suffix", "recycling"};

RunModels models_of(ModelStore& store, const std::string& decoder) {
  return store.get_for({}, {}, {decoder});
}

RunRequest request_with(const RunModels& models, const std::string& decoder, Sampling::Mode mode) {
  RunRequest request;
  request.prompt = "Question:\nAnna has 4 cups. She buys 3 cups. How many cups?\nAnswer:\n";
  request.prompt_tokens = tokenize_prompt(*models.target.model, request.prompt);
  request.decoder = decoder;
  request.sampling = {.temperature = 0.9f, .seed = 5, .mode = mode};
  request.max_tokens = 80;
  request.ignore_eos = true;
  return request;
}

/// Teaches the control times by which each row costs `slope` of a step.
void set_times(const RunModels& models, double slope) {
  for (int i = 0; i < 30; i++)
    for (const int rows : {1, 2, 4, 8, 16, 32})
      models.target.control->costs().add(rows, 100 * (1 + slope * (rows - 1)));
}

/// Runs the request and applies its events to the timeline.
RunResult recorded(const RunModels& models, const RunRequest& request, RunId run, Timeline& into) {
  into.apply(describe(models.target));
  if (models.draft) into.apply(describe(*models.draft));
  into.apply(started_event(request, models, run));
  EventList events;
  RunResult result = run_to_end(models, request, run, &events);
  for (const Event& event : events.events)
    if (!std::holds_alternative<RunStarted>(event)) into.apply(event);
  return result;
}

TEST(Repeat, a_rejection_run_has_the_recorded_tokens_and_steps) {
  int n_differ = 0;  // runs that would have had other steps with their own choices
  for (const char* decoder : kSizing) {
    ModelStore first(kAssets, 1), later(kAssets, 1);
    const RunModels models = models_of(first, decoder), others = models_of(later, decoder);
    const RunRequest request = request_with(models, decoder, Sampling::Mode::Rejection);
    set_times(models, 0.01);
    Timeline timeline;
    const RunResult result = recorded(models, request, 7, timeline);
    const RunRecord& run = timeline.runs().front();
    EXPECT_FALSE(choices_of(run).empty()) << decoder;
    EXPECT_FALSE(lacks_choices(run));

    const RecordedRun found = recorded_run(timeline, 7);
    check_models(found, others);
    set_times(others, 1);
    RunRequest own = request_of(found, *others.target.model);
    Timeline repeated;
    const RunResult same = recorded(others, own, 8, repeated);
    EXPECT_EQ(same.tokens, result.tokens) << decoder;
    EXPECT_EQ(same.n_steps, result.n_steps) << decoder;
    EXPECT_TRUE(compared(found, same).same_tokens);
    EXPECT_TRUE(compared(found, same).same_steps);
    EXPECT_EQ(choices_of(repeated.runs().front()), found.choices) << decoder;
    for (std::size_t i = 0; i < run.steps.size(); i++)
      EXPECT_EQ(run.steps[i].drafted.tree.token,
                repeated.runs().front().steps[i].drafted.tree.token)
          << decoder << " step " << i;

    own.choices.clear();
    const RunResult free = run_to_end(others, own, 9, nullptr);
    n_differ += !compared(found, free).same_steps;
  }
  EXPECT_GE(n_differ, 3) << "the recorded sizes matter";
}

TEST(Repeat, a_longer_run_goes_on_with_its_own_choices) {
  ModelStore store(kAssets, 1);
  const RunModels models = models_of(store, "mcsd");
  RunRequest request = request_with(models, "mcsd", Sampling::Mode::Coupled);
  request.max_tokens = 20;
  Timeline timeline;
  const RunResult result = recorded(models, request, 1, timeline);
  RunRequest longer = request_of(recorded_run(timeline, 0), *models.target.model);
  longer.max_tokens = 60;
  const RunResult found = run_to_end(models, longer, 2, nullptr);
  ASSERT_EQ(found.tokens.size(), 60u);
  EXPECT_EQ(std::vector(found.tokens.begin(), found.tokens.begin() + 20), result.tokens);
}

TEST(Repeat, refuses_what_it_cannot_repeat) {
  ModelStore store(kAssets, 1);
  const RunModels models = models_of(store, "mcsd");
  RunRequest request = request_with(models, "mcsd", Sampling::Mode::Rejection);
  Timeline timeline;
  recorded(models, request, 3, timeline);
  EXPECT_THROW(recorded_run(Timeline(), 0), Error);
  EXPECT_THROW(recorded_run(timeline, 4), Error);
  RecordedRun found = recorded_run(timeline, 0);
  for (const std::int32_t broken : {-1, 1000}) {
    RunRequest wrong = request_of(found, *models.target.model);
    wrong.choices.front() = broken;
    EXPECT_THROW(run_to_end(models, wrong, 4, nullptr), Error);
  }
  found.model.weights_hash = "other";
  EXPECT_THROW(check_models(found, models), Error);
}

TEST(ControlUse, repeats_choices_in_order_then_makes_its_own) {
  ControlUse recorded(nullptr);
  EXPECT_EQ(recorded.decide(3, 4), 3u);
  EXPECT_EQ(recorded.decide(std::vector<std::size_t>{1, 4}, 6), (std::vector<std::size_t>{1, 4}));
  const std::vector<std::int32_t> made = recorded.take_choices();
  EXPECT_EQ(made, (std::vector<std::int32_t>{3, 2, 1, 4}));
  EXPECT_TRUE(recorded.take_choices().empty());

  ControlUse again(nullptr, made);
  EXPECT_EQ(again.decide(0, 4), 3u);
  EXPECT_EQ(again.decide(std::vector<std::size_t>{0, 1, 2}, 6), (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(again.decide(2, 4), 2u) << "nothing is left to repeat";
  ControlUse other(nullptr, made);
  EXPECT_THROW(other.decide(0, 3), Error) << "only three sizes are possible";
  ControlUse wrong(nullptr, {2, 4, 1});
  EXPECT_THROW(wrong.decide(std::vector<std::size_t>{}, 6), Error) << "not in ascending order";
}

}  // namespace
}  // namespace engine::test
