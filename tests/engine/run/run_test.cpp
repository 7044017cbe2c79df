// run_to_end(), with which the command line decodes.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/completion_job.h"
#include "engine/run/run.h"

namespace engine {
namespace {

struct Kept : EventSink {
  void push(Event event) override { events.push_back(std::move(event)); }
  std::vector<Event> events;
};

TEST(RunToEnd, only_texts_that_are_copied_from_are_kept) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  RunModels models(store.get({}));
  models.texts = std::make_shared<EarlierTexts>();
  RunRequest request{.prompt_tokens = {5, 6, 7}, .max_tokens = 12, .ignore_eos = true};
  run_to_end(models, request, 1, nullptr);
  EXPECT_EQ(models.texts->n_texts(), 0);
  request.decoder = "suffix";
  request.options = {{"n_tokens", "12"}};
  Kept kept;
  const RunResult first = run_to_end(models, request, 2, &kept);
  EXPECT_EQ(models.texts->n_texts(), 1);
  const auto match = models.texts->runs().longest_suffix(first.tokens);
  EXPECT_EQ(match.length, 12);
  EXPECT_EQ(models.texts->source_in_runs(models.texts->runs().newest(match.state)).run, 2U);
  EXPECT_EQ(std::get<RunStarted>(kept.events.front()).pool, "");
  request.options["keep_tokens"] = "0";
  run_to_end(models, request, 3, nullptr);
  EXPECT_EQ(models.texts->n_texts(), 1);
  models.texts = nullptr;  // as in bench
  request.options = {{"n_tokens", "12"}};
  EXPECT_EQ(run_to_end(models, request, 4, nullptr).n_steps, first.n_steps);
}

TEST(RunToEnd, a_file_of_text_is_named_by_the_runs_that_read_it) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  RunModels models(store.get({}));
  RunRequest request{.prompt_tokens = {5, 6, 7}, .max_tokens = 24, .ignore_eos = true};
  const RunResult ar = run_to_end(models, request, 1, nullptr);
  models.texts =
      std::make_shared<EarlierTexts>(std::make_shared<PoolFile>("answers.txt", ar.tokens));
  for (const char* decoder : {"suffix", "lookahead", "ar"}) {
    request.decoder = decoder;
    request.options = {};
    if (request.decoder == "suffix") request.options = {{"n_tokens", "12"}};
    if (request.decoder == "lookahead") request.options = {{"window", "5"}, {"n_guesses", "5"}};
    Kept kept;
    const RunResult result = run_to_end(models, request, 2, &kept);
    const bool reads = result.request.decoder != "ar";
    EXPECT_EQ(std::get<RunStarted>(kept.events.front()).pool, reads ? "answers.txt" : "");
    EXPECT_EQ(result.tokens, ar.tokens) << decoder;
    EXPECT_EQ(result.n_steps < 20, reads) << decoder;
  }
}

TEST(RunToEnd, a_run_stopped_in_prefill_is_reported_as_stopped) {
  if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
    FAIL() << "assets/models/demo-target is not in this tree";
  }
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  LoadedModel& loaded = store.get({});
  RunRequest request;
  request.prompt_tokens.assign(600, 5);
  Kept kept;
  try {
    run_to_end(loaded, request, 7, &kept, [] { return true; });
    FAIL() << "expected a cancellation";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
  ASSERT_FALSE(kept.events.empty());
  const auto* finished = std::get_if<RunFinished>(&kept.events.back());
  ASSERT_NE(finished, nullptr);
  EXPECT_EQ(finished->run, 7u);
  EXPECT_EQ(finished->stop_reason, "stopped");
}

// Even a run that is much shorter than the sampling period of a tenth of a second reports it.
TEST(RunToEnd, even_a_short_run_reports_its_processor_load) {
  if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
    FAIL() << "assets/models/demo-target is not in this tree";
  }
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 2);
  LoadedModel& loaded = store.get({});
  RunRequest request{.max_tokens = 3, .ignore_eos = true};
  request.prompt_tokens.assign(5, 5);
  Kept kept;
  kept.push(describe(loaded));
  run_to_end(loaded, request, 1, &kept);
  Timeline timeline;
  for (const Event& event : kept.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  ASSERT_FALSE(timeline.samples().empty());
  const Sampled& sample = timeline.samples().front();
  EXPECT_EQ(sample.device, loaded.model->device().name());
  EXPECT_EQ(sample.thread_busy_percent.size(), 2u);
  EXPECT_GT(sample.memory_bytes, 0);
  for (const double percent : {sample.busy_percent, sample.engine_busy_percent}) {
    EXPECT_GT(percent, 0);
    EXPECT_LE(percent, 100);
  }
  // Exports assign a sample to the run that contains its period.
  EXPECT_GE(sample.t - sample.period, timeline.runs()[0].started.t);
  EXPECT_LE(sample.t, timeline.runs()[0].last_event);
  const auto decodes = [](const Phase& phase) { return phase.name == "decode"; };
  EXPECT_EQ(std::ranges::count_if(timeline.runs()[0].phases, decodes), 1);
}

// Any exception during the run.
// TH06.
TEST(RunToEnd, an_unexpected_exception_is_reported_and_rethrown) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  LoadedModel& loaded = store.get({});
  RunRequest request{.max_tokens = 3, .ignore_eos = true};
  request.prompt_tokens.assign(5, 5);
  const auto failed_by = [&](const std::function<void()>& thrower) {
    Kept kept;
    EXPECT_ANY_THROW(run_to_end(loaded, request, 2, &kept, {}, [&](const Lane&) { thrower(); }));
    const auto* failed = std::get_if<RunFailed>(&kept.events.back());
    return failed ? *failed : RunFailed{};
  };
  const RunFailed by_bug = failed_by([] { throw std::logic_error("an index of 7"); });
  EXPECT_EQ(by_bug.run, 2u);
  EXPECT_EQ(by_bug.code, 70);
  EXPECT_EQ(by_bug.message, "internal error: an index of 7; please report it");
  EXPECT_EQ(failed_by([] { throw std::bad_alloc(); }).code, 4);
  const RunFailed by_threads = failed_by([] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(by_threads.code, 4);
  EXPECT_EQ(by_threads.message.find("a thread cannot be started"), 0u) << by_threads.message;
  const auto misuse = std::make_error_code(std::errc::operation_not_permitted);
  EXPECT_EQ(failed_by([&] { throw std::system_error(misuse); }).code, 70);
  const RunFailed by_device = failed_by([] { throw Error(ErrorCode::Device, "cuda:0: gone"); });
  EXPECT_EQ(by_device.code, 5);
  EXPECT_EQ(by_device.message, "cuda:0: gone");
}

TEST(CompletionJob, an_invalid_prompt_fails_its_run) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const RunModels models = store.get({});
  CompletionRequest request;
  request.run.prompt_tokens.assign(5, 5);
  Kept kept;
  const auto begin = [&](const std::function<void()>& thrower) {
    return begin_job({&request, 1}, 0, models, 6, &kept, [&](RunId run) {
      thrower();
      return make_lane(models, request.run, run, nullptr);
    });
  };
  const auto failed = [&] {
    const auto* last = std::get_if<RunFailed>(&kept.events.back());
    return last ? *last : RunFailed{};
  };
  EXPECT_THROW(begin([] { throw Error(ErrorCode::Device, "cuda:0: gone"); }), Error);
  EXPECT_EQ(failed().run, 6u);
  EXPECT_EQ(failed().code, 5);
  EXPECT_EQ(failed().message, "cuda:0: gone");
  EXPECT_THROW(begin([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(failed().code, 4);
  EXPECT_EQ(begin([] { throw Error(ErrorCode::Cancelled, "stopped"); }), nullptr);
  const auto* finished = std::get_if<RunFinished>(&kept.events.back());
  ASSERT_NE(finished, nullptr);
  EXPECT_EQ(finished->stop_reason, "stopped");
}

}  // namespace
}  // namespace engine
