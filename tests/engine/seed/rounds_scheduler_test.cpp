// Completions in SEED's rounds equal those of each request alone; n branches cost n caches and one
// copy of the weights; events report every run and wait.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/event/clock.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/rounds_scheduler.h"
#include "engine/run/scheduler.h"
#include "tests/support/deadline.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

ModelStore& store() {
  static ModelStore models(kAssets, 2);
  return models;
}

RunModels bundled() {
  return models_for(store(), {}, {}, "seed", {});
}

CompletionRequest request(const std::string& prompt, int max_tokens, float temperature = 0) {
  CompletionRequest request;
  request.run.prompt = prompt;
  request.run.prompt_tokens = tokenize_prompt(*bundled().target.model, prompt);
  request.run.decoder = "seed";
  request.run.options = {{"k_config", "1,1,1"}};
  request.run.max_tokens = max_tokens;
  request.run.sampling.temperature = temperature;
  return request;
}

std::vector<CompletionRequest> several(float temperature,
                                       Sampling::Mode mode = Sampling::Mode::Coupled) {
  std::vector<CompletionRequest> requests{
      request("Question:\nAnna has 4 cups. She buys 3.\nAnswer:\n", 40, temperature),
      request("Question:\nAnna has 4 cups. She buys 3.\nAnswer:\n", 25, temperature),
      request("USER: How many are 3 and 4? ASSISTANT:", 8, temperature),
      request("Q: Would diesel be shorter lived than a maple?\nA:", 30, temperature),
      request("The", 1, temperature)};
  for (std::size_t i = 0; i < requests.size(); i++) {
    requests[i].run.sampling.seed = i + 1;
    requests[i].run.sampling.mode = mode;
    requests[i].value = static_cast<double>(i % 3);
  }
  return requests;
}

// Coupled output equals plain decoding's; with rejection sampling it equals the decoder that drafts
// and verifies in turn.
TEST(RoundsScheduler, gives_each_request_its_output_alone) {
  const std::tuple<float, Sampling::Mode, const char*> cases[] = {
      {0, Sampling::Mode::Coupled, "ar"},
      {0.8f, Sampling::Mode::Coupled, "ar"},
      {0.8f, Sampling::Mode::Rejection, "mcsd"}};
  std::size_t n_tried = 0;
  for (const auto& [temperature, mode, in_turn] : cases) {
    const auto requests = several(temperature, mode);
    auto plain = requests;
    for (CompletionRequest& one : plain) {
      one.run.decoder = in_turn;
      if (mode == Sampling::Mode::Coupled) one.run.options.clear();
    }
    const auto alone = BatchScheduler(bundled(), 1).run(plain, {});
    for (const char* policy : {"fcfs", "shortest", "priority"}) {
      for (const int n : {1, 2, 3}) {  // branches and drafters
        const std::string overlap = overlap_names()[n_tried++ % overlap_names().size()];
        RoundsScheduler scheduler(bundled(), {.n_branches = n,
                                              .n_together = n,
                                              .policy = policy,
                                              .overlap = overlap,
                                              .n_drafters = n});
        const auto found = scheduler.run(requests, {});
        ASSERT_EQ(found.size(), requests.size());
        for (std::size_t i = 0; i < requests.size(); i++) {
          EXPECT_EQ(found[i].result.tokens, alone[i].result.tokens) << i << policy << overlap;
          EXPECT_EQ(found[i].result.text, alone[i].result.text);
          EXPECT_EQ(found[i].result.stop_reason, alone[i].result.stop_reason);
          EXPECT_EQ(found[i].end.tokens().size(), alone[i].end.tokens().size());
        }
      }
    }
  }
}

/// The requests with an alternating decoder: SEED's chain of three equals speculative decoding and
/// mcsd's chain, draw by draw.
std::vector<CompletionRequest> without_rounds(std::vector<CompletionRequest> requests) {
  for (std::size_t i = 0; i < requests.size(); i++) {
    RunRequest& run = requests[i].run;
    const bool is_tree = run.options.at("k_config") != "1,1,1";
    run.decoder = is_tree || i % 2 ? "mcsd" : "speculative";
    if (run.decoder == "speculative") run.options = {{"gamma", "3"}};
  }
  return requests;
}

/// A model whose forwards take up to 0.3 ms longer, at random.
class Delayed final : public Model {
 public:
  explicit Delayed(std::unique_ptr<Model> of) : of_(std::move(of)) {}
  std::unique_ptr<Model> share_weights(kernels::Device& device) override {
    auto other = std::make_unique<Delayed>(of_->share_weights(device));
    other->begin(static_cast<std::uint64_t>(dice_(0, 1 << 20)));
    return other;
  }
  void begin(std::uint64_t seed) { dice_ = Dice(seed); }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    n_forwards++;
    if (before_forward) before_forward();
    std::this_thread::sleep_for(std::chrono::microseconds(dice_(0, 300)));
    return of_->forward(items, wants);
  }

  int vocab_size() const override { return of_->vocab_size(); }
  int max_seq_len() const override { return of_->max_seq_len(); }
  std::unique_ptr<SequenceCache> make_cache() override { return of_->make_cache(); }
  const ModelConfig& config() const override { return of_->config(); }
  kernels::DType dtype() const override { return of_->dtype(); }
  kernels::DType cache_type() const override { return of_->cache_type(); }
  kernels::DType matrix_type() const override { return of_->matrix_type(); }
  const std::string& weight_type() const override { return of_->weight_type(); }
  const ModelScale& scale() const override { return of_->scale(); }
  const std::string& name() const override { return of_->name(); }
  const Tokenizer* tokenizer() const override { return of_->tokenizer(); }
  const ChatTemplate& chat_template() const override { return of_->chat_template(); }
  std::int64_t weight_bytes() const override { return of_->weight_bytes(); }
  std::int64_t n_multiplied() const override { return of_->n_multiplied(); }
  std::int64_t cache_bytes() const override { return of_->cache_bytes(); }
  kernels::Device& device() const override { return of_->device(); }
  void read_cache(const SequenceCache& cache,
                  int layer,
                  std::vector<float>& k,
                  std::vector<float>& v) const override {
    of_->read_cache(cache, layer, k, v);
  }
  int n_forwards = 0;
  std::function<void()> before_forward;

 private:
  std::unique_ptr<Model> of_;
  Dice dice_{0};
};

Delayed& made_delayed(LoadedModel& loaded) {
  auto made = std::make_unique<Delayed>(std::move(loaded.model));
  Delayed& delayed = *made;
  loaded.model = std::move(made);
  return delayed;
}

// T10 with the real work: jobs, all prompt caches, finished decoders, and events from several threads.
TEST(RoundsScheduler, random_delays_change_no_token) {
  ModelStore own(kAssets, 2);
  const RunModels models = models_for(own, {}, {}, "seed", {});
  Delayed& target = made_delayed(models.target);
  Delayed& draft = made_delayed(*models.draft);
  const std::vector<std::string> policies = policy_names();
  std::uint64_t trial = 0;
  const std::pair<float, Sampling::Mode> samplings[] = {{0, Sampling::Mode::Coupled},
                                                        {0.8f, Sampling::Mode::Coupled},
                                                        {0.8f, Sampling::Mode::Rejection}};
  for (const auto& [temperature, mode] : samplings) {
    auto requests = several(temperature, mode);
    for (CompletionRequest& one : requests) one.run.max_tokens = std::min(one.run.max_tokens, 16);
    requests[1].run.options = {{"k_config", "2,2"}};
    auto plain = requests;
    for (CompletionRequest& one : plain) one.run.decoder = "ar", one.run.options.clear();
    if (mode == Sampling::Mode::Rejection) plain = without_rounds(requests);
    const auto alone = BatchScheduler(bundled(), 1).run(plain, {});
    for (const std::string& overlap : overlap_names()) {
      for (const int i :
           {0, 1, 2, 3, 4, 5, 6, 7}) {  // 1 to 4 branches, verified alone or three together
        const int n = 1 + i / 2, together = i % 2 ? 3 : 1;
        const int threads = 1 + static_cast<int>((trial + trial / 2) % 2);
        const int drafters = std::min(n, 1 + static_cast<int>(trial / 2 % 3));
        const std::string& policy = policies[trial % policies.size()];
        target.begin(100 + trial);
        draft.begin(200 + trial++);
        const Deadline deadline;
        EventList events;
        RoundsScheduler scheduler(models, {.n_branches = n,
                                           .n_together = together,
                                           .policy = policy,
                                           .overlap = overlap,
                                           .target_threads = threads,
                                           .draft_threads = 1 + i % 2,
                                           .n_drafters = drafters});
        const auto found = scheduler.run(requests, {.events = &events});
        ASSERT_EQ(found.size(), requests.size());
        for (std::size_t r = 0; r < requests.size(); r++)
          EXPECT_EQ(found[r].result.tokens, alone[r].result.tokens)
              << r << ": " << n << " branches, " << together << " together, " << threads
              << " threads, " << policy << " " << overlap << " " << static_cast<int>(mode) << " "
              << drafters << " drafters";
        Timeline timeline;
        timeline.apply(describe(models.target));
        timeline.apply(describe(*models.draft));
        for (const Event& event : events.events) timeline.apply(event);
        EXPECT_EQ(timeline.n_inconsistent(), 0);
      }
    }
  }
  EXPECT_GT(target.n_forwards, 100);
  EXPECT_GT(draft.n_forwards, 100) << "both models were delayed";
}

TEST(RoundsScheduler, continues_a_sequence_and_ends_at_a_stop_string) {
  CompletionRequest first = request("Question:\nAnna has 4 cups. She buys 3.\nAnswer:\n", 30);
  const auto scheduler = make_scheduler(bundled(), "seed", {{"branches", "2"}}, 1);
  ASSERT_NE(dynamic_cast<RoundsScheduler*>(scheduler.get()), nullptr);
  const auto begun = scheduler->run({&first, 1}, {});
  const std::vector<TokenId> more{5, 6, 7};
  const Sequence from = begun[0].end.restarted(more);
  std::vector<CompletionRequest> next(3, first);
  for (std::size_t i = 0; i < next.size(); i++) {
    next[i].run.prompt_tokens.assign(from.tokens().begin(), from.tokens().end());
    next[i].from = i == 1 ? nullptr : &from;
    next[i].stop_texts = {"never written", "\n"};
  }
  const auto expected = BatchScheduler(bundled(), 1).run(next, {});
  const auto found = scheduler->run(next, {});
  ASSERT_EQ(found.size(), 3u);
  double n_tokens = static_cast<double>(begun[0].result.tokens.size());
  for (const Completion& one : found) n_tokens += static_cast<double>(one.result.tokens.size());
  EXPECT_EQ(scheduler->figures().at("tokens"), n_tokens)
      << "tokens cut off by a stop string do not count";
  for (std::size_t i = 0; i < next.size(); i++) {
    EXPECT_EQ(found[i].result.tokens, expected[0].result.tokens);
    EXPECT_EQ(found[i].result.text, expected[0].result.text);
    EXPECT_EQ(found[i].result.stop_reason, expected[0].result.stop_reason);
  }
}

TEST(RoundsScheduler, reports_every_run_with_its_waits) {
  EventList events;
  const auto requests = several(0);
  RoundsScheduler scheduler(bundled(), {.n_branches = 2});
  int n_ended = 0;
  SchedulerWatch watch{.events = &events, .first_run = 7};
  watch.ended = [&](int done, int n) {
    EXPECT_EQ(done, ++n_ended);
    EXPECT_EQ(n, 5);
  };
  const auto done = scheduler.run(requests, watch);
  EXPECT_EQ(n_ended, 5);
  Timeline timeline;
  timeline.apply(describe(bundled().target));
  timeline.apply(describe(*bundled().draft));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0)
      << (timeline.inconsistencies().empty() ? "" : timeline.inconsistencies()[0]);
  for (std::size_t i = 0; i < requests.size(); i++) {
    const RunRecord* run = timeline.run(7 + static_cast<RunId>(i));
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run->started.decoder, "seed");
    EXPECT_NE(run->started.draft, 0u);
    ASSERT_TRUE(run->finished.has_value());
    EXPECT_EQ(run->tokens.size(), done[i].result.tokens.size());
    EXPECT_GE(std::ssize(run->queueing), 4 * done[i].result.n_steps);
  }
  ASSERT_FALSE(timeline.samples().empty());
  EXPECT_EQ(timeline.samples()[0].thread_busy_percent.size(), 4u) << "two threads per model";
  const auto figures = scheduler.figures();
  EXPECT_EQ(figures.at("runs"), 5);
  const auto n_drafted = std::ranges::count_if(events.events, [](const Event& event) {
    const auto* drafted = std::get_if<Drafted>(&event);
    return drafted && !drafted->forwards.empty();
  });
  EXPECT_EQ(figures.at("drafts"), static_cast<double>(n_drafted));
  EXPECT_LT(figures.at("drafts"), figures.at("steps"))
      << "a sequence's last step may have no room for a draft";
  EXPECT_LE(figures.at("longest_queue"), 2);
  EXPECT_GT(figures.at("target_busy"), 0);
  EXPECT_LE(figures.at("target_busy"), 1);
  // alpha divides accepted tokens by the draft's depth of 3 and the number of verified drafts.
  EXPECT_DOUBLE_EQ(figures.at("alpha"), figures.at("accepted") / (3 * figures.at("steps")));
  EXPECT_GE(figures.at("accepted_of_verified"), figures.at("alpha"));
  EXPECT_GE(figures.at("rounds_bound"), 1);
  EXPECT_LE(figures.at("rounds_bound"), 2);
}

/// Records events with their arrival times.
struct Arrivals final : EventSink {
  void push(Event event) override { events.emplace_back(now_ns(), std::move(event)); }
  std::vector<std::pair<Nanoseconds, Event>> events;
};

// The last reported event must name the work that hangs, so it must be reported before the work
// starts.
// CU12.
TEST(RoundsScheduler, a_turn_is_reported_before_its_model_runs) {
  const auto requests = several(0);
  for (const std::string& overlap : overlap_names()) {
    Arrivals arrivals;
    RoundsScheduler(bundled(), {.n_branches = 2, .overlap = overlap})
        .run(requests, {.events = &arrivals});
    std::map<std::pair<RunId, StepId>, Nanoseconds> begun, drafted;
    std::map<RunId, Nanoseconds> taken;
    int n_verified = 0;
    for (const auto& [at, event] : arrivals.events) {
      if (const auto* e = std::get_if<StepBegun>(&event)) begun[{e->run, e->step}] = at;
      const auto* dequeued = std::get_if<Dequeued>(&event);
      if (dequeued && dequeued->resource == "target") taken[dequeued->run] = at;
      if (const auto* e = std::get_if<Drafted>(&event)) {
        drafted[{e->run, e->step}] = at;
        ASSERT_TRUE(begun.contains({e->run, e->step})) << overlap;
        // While overlapping, the draft's turn is reported when the target waits or turns to the
        // next sequence.
        if (overlap == "never") {
          EXPECT_LE(begun.at({e->run, e->step}), e->t);
        }
      }
      if (const auto* e = std::get_if<Verified>(&event)) {
        EXPECT_LE(begun.at({e->run, e->step}), e->t) << overlap;
        EXPECT_LE(drafted.at({e->run, e->step}), e->t) << overlap;
        EXPECT_LE(taken.at(e->run), e->t) << overlap;
        n_verified++;
      }
    }
    EXPECT_GT(n_verified, 10);
  }
}

/// Counts the reported steps whose draft is not reported yet.
struct BegunSteps final : EventSink {
  void push(Event event) override {
    n += std::holds_alternative<StepBegun>(event) - std::holds_alternative<Drafted>(event);
  }
  std::atomic<int> n = 0;
};

// CU12.
TEST(RoundsScheduler, a_hanging_draft_is_reported_beside_a_busy_target) {
  const auto requests = several(0);
  for (const std::string& overlap : overlap_names()) {
    ModelStore own(kAssets, 2);
    const RunModels models = models_for(own, {}, {}, "seed", {});
    Delayed& draft = made_delayed(*models.draft);
    BegunSteps begun;
    bool is_told = false;
    draft.before_forward = [&] {
      if (draft.n_forwards != 8) return;  // the prompt's forwards are over, so a step drafts
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (begun.n == 0 && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      is_told = begun.n == 1;
    };
    RoundsScheduler(models, {.n_branches = 1, .overlap = overlap})
        .run({requests.data(), 1}, {.events = &begun});
    EXPECT_GT(draft.n_forwards, 8);
    EXPECT_TRUE(is_told) << overlap;
  }
}

// As in `reason cot`: drafted sequences, then their answers by plain decoding.
TEST(RoundsScheduler, branches_without_a_draft_do_not_count) {
  std::vector<CompletionRequest> requests = several(0);
  requests.resize(2);
  RoundsScheduler scheduler(bundled(), {.n_branches = 6});
  scheduler.run(requests, {});
  const auto drafted = scheduler.figures();
  EXPECT_EQ(drafted.at("branches"), 6);
  EXPECT_EQ(drafted.at("most_branches"), 2);
  EXPECT_EQ(drafted.at("drafts"), drafted.at("steps"));
  EXPECT_GT(drafted.at("round_draft_ms"), 0);

  std::vector<CompletionRequest> answers = requests;
  for (CompletionRequest& one : answers) one.run.decoder = "ar", one.run.options.clear();
  scheduler.run(answers, {});
  const auto both = scheduler.figures();
  EXPECT_GT(both.at("steps"), 2 * drafted.at("steps")) << "plain steps emit one token each";
  EXPECT_GT(both.at("verifications"), drafted.at("verifications"));
  for (const char* name : {"drafts", "round_draft_ms", "most_branches", "alpha"})
    EXPECT_EQ(both.at(name), drafted.at(name)) << name;
  EXPECT_DOUBLE_EQ(both.at("rounds_bound"),
                   speedup_bound(2, 1, both.at("round_draft_ms"), both.at("round_verify_ms"),
                                 both.at("steps") / both.at("verifications")));

  RoundsScheduler plain(bundled(), {.n_branches = 6});
  plain.run(answers, {});
  EXPECT_EQ(plain.figures().at("drafts"), 0);
  EXPECT_FALSE(plain.figures().contains("round_draft_ms"));
  EXPECT_FALSE(plain.figures().contains("rounds_bound"));
}

TEST(RoundsScheduler, reports_the_chosen_mode_and_its_times) {
  std::vector<CompletionRequest> requests(6, request("Question:\nAnna has 4 cups.\n", 60));
  EventList events;
  RoundsScheduler scheduler(bundled(), {.n_branches = 3});
  scheduler.run(requests, {.events = &events});
  const auto figures = scheduler.figures();
  EXPECT_GE(figures.at("overlap_looks"), 1);
  EXPECT_GT(figures.at("in_turn_round_ms"), 0);
  EXPECT_GT(figures.at("overlapped_round_ms"), 0);
  EXPECT_GT(figures.at("overlapped"), 0) << "it has probed";
  EXPECT_LT(figures.at("overlapped"), 1) << "it started in alternating mode";
  int n_told = 0;
  for (const Event& event : events.events) {
    const auto* notice = std::get_if<Notice>(&event);
    n_told += notice && notice->text.starts_with("seed: the draft model works ");
  }
  EXPECT_EQ(n_told, 1);
  for (const char* overlap : {"always", "never"}) {
    RoundsScheduler fixed(bundled(), {.n_branches = 3, .overlap = overlap});
    fixed.run(requests, {});
    EXPECT_EQ(fixed.figures().at("overlapped"), overlap == std::string("always"));
    EXPECT_FALSE(fixed.figures().contains("overlap_chosen"));
  }
}

// Both threads work; the trees are chosen on the target's thread (k_config=auto).
TEST(RoundsScheduler, chosen_trees_change_no_token) {
  bundled().target.control =
      std::make_shared<StepControl>(CostModel([](int n_rows) { return 1 + 0.02 * n_rows; }));
  int n_drafted = 0;
  for (const float temperature : {0.0f, 0.8f}) {
    std::vector<CompletionRequest> requests = several(temperature);
    std::vector<CompletionRequest> plain = requests;
    for (CompletionRequest& one : plain) one.run.decoder = "ar", one.run.options.clear();
    for (CompletionRequest& one : requests) one.run.options.clear();
    const auto alone = BatchScheduler(bundled(), 1).run(plain, {});
    for (const std::string& overlap : overlap_names()) {
      for (const int together : {1, 3}) {
        EventList events;
        RoundsScheduler scheduler(
            bundled(),
            {.n_branches = 3, .n_together = together, .overlap = overlap, .n_drafters = together});
        const auto found = scheduler.run(requests, {.events = &events});
        for (std::size_t i = 0; i < requests.size(); i++)
          EXPECT_EQ(found[i].result.tokens, alone[i].result.tokens) << i << overlap << together;
        int n_decisions = 0, n_steps = 0;
        for (const Event& event : events.events) {
          const auto* drafted = std::get_if<Drafted>(&event);
          if (!drafted) continue;
          n_steps++;
          n_decisions += drafted->decision.size >= 0 && drafted->decision.ms > 0;
          n_drafted += drafted->tree.n_rows() > 1;
          EXPECT_LE(drafted->tree.n_rows() - 1, drafted->decision.size);
        }
        EXPECT_EQ(n_decisions, n_steps) << "every step reports its decision";
      }
    }
  }
  EXPECT_GT(n_drafted, 0);
}

/// A prompt of some pages.
std::string long_prompt(int first) {
  std::string prompt = "Question " + std::to_string(first) + ":";
  for (int word = 0; word < 50; word++) prompt += " " + std::to_string(first + word);
  return prompt;
}

TEST(RoundsScheduler, branches_cost_a_cache_each_and_one_model) {
  std::vector<CompletionRequest> requests;
  for (int i = 1; i <= 8; i++) requests.push_back(request(long_prompt(i * 100), 24));
  std::map<int, std::map<std::string, double>> of;
  for (const int n : {1, 2, 4}) {
    RoundsScheduler scheduler(bundled(), {.n_branches = n});
    scheduler.run(requests, {});
    of[n] = scheduler.figures();
  }
  for (const char* name : {"weight_bytes", "draft_weight_bytes"}) {
    EXPECT_GT(of[1].at(name), 0);
    EXPECT_EQ(of[1].at(name), of[4].at(name));
  }
  // All prompts have one length: each further branch costs as much as the second.
  for (const char* name : {"branch_cache_bytes", "draft_cache_bytes"}) {
    const double second = of[2].at(name) - of[1].at(name);
    const double three_more = of[4].at(name) - of[1].at(name);
    EXPECT_GT(second, 0) << name;
    EXPECT_GT(three_more, 2.2 * second) << name;
    EXPECT_LT(three_more, 4 * second) << name;
  }
}

TEST(RoundsScheduler, a_prompt_of_several_branches_is_stored_once) {
  const std::vector<CompletionRequest> same(4, request(long_prompt(100), 8));
  std::map<std::size_t, double> cache;
  for (const std::size_t n : {1u, 4u}) {
    RoundsScheduler scheduler(bundled(), {.n_branches = 4});
    scheduler.run(std::span(same).first(n), {});
    cache[n] = scheduler.figures().at("cache_bytes");
  }
  EXPECT_LT(cache[4], 3 * cache[1]) << "only the last page of each differs";
  EXPECT_GT(cache[4], cache[1]);
}

TEST(RoundsScheduler, several_drafters_are_reported_and_share_the_weights) {
  const auto requests = several(0);
  EventList events;
  RoundsScheduler scheduler(bundled(), {.n_branches = 3, .overlap = "always", .n_drafters = 3});
  const auto first = scheduler.run(requests, {.events = &events});
  const auto figures = scheduler.figures();
  EXPECT_EQ(figures.at("drafters"), 3);
  EXPECT_GE(figures.at("most_drafting"), 1);
  EXPECT_LE(figures.at("most_drafting"), 3);
  EXPECT_DOUBLE_EQ(figures.at("rounds_bound"),
                   speedup_bound(3, 3, figures.at("round_draft_ms"), figures.at("round_verify_ms"),
                                 figures.at("steps") / figures.at("verifications")));
  EXPECT_EQ(bundled().draft->model->cache_bytes(), 0) << "the branches have models of their own";
  EXPECT_GT(figures.at("draft_cache_bytes"), 0);
  EXPECT_EQ(figures.at("draft_weight_bytes"),
            static_cast<double>(bundled().draft->model->weight_bytes()));
  Timeline timeline;
  timeline.apply(describe(bundled().target));
  timeline.apply(describe(*bundled().draft));
  int n_notices = 0;
  for (const Event& event : events.events) {
    timeline.apply(event);
    const auto* notice = std::get_if<Notice>(&event);
    n_notices += notice && notice->text.starts_with("seed: 3 drafters use 3 threads");
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_EQ(n_notices, std::thread::hardware_concurrency() <= 3 ? 1 : 0);
  ASSERT_FALSE(timeline.samples().empty());
  EXPECT_EQ(timeline.samples()[0].thread_busy_percent.size(), 6u)
      << "two of the target, two of the draft's device, one of each further drafter";
  // The prompts that a branch's model has read stay in its cache.
  const auto second = scheduler.run(requests, {});
  for (std::size_t i = 0; i < requests.size(); i++)
    EXPECT_EQ(second[i].result.tokens, first[i].result.tokens);
  EXPECT_THROW(RoundsScheduler(bundled(), {.n_branches = 2, .n_drafters = 3}), ContractError);
}

TEST(RoundsScheduler, drafters_that_cannot_work_are_refused) {
  const auto refusal = [](const OptionValues& options) -> std::string {
    try {
      parse_options("seed", options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({{"drafters", "3"}}), "");
  EXPECT_EQ(refusal({{"drafters", "0"}, {"branches", "6"}}), "");
  EXPECT_EQ(
      refusal({{"drafters", "4"}}),
      "seed: drafters=4 is more than branches=3, but a sequence has only one draft at a time; use "
      "fewer drafters or more branches");
  EXPECT_THAT(refusal({{"drafters", "0"}, {"overlap", "never"}}),
              testing::HasSubstr("overlap=never"));
  EXPECT_EQ(refusal({{"drafters", "1"}, {"overlap", "never"}}), "");
  EXPECT_THAT(refusal({{"drafters", "2"}, {"draft_threads", "600"}}),
              testing::HasSubstr("more than 1024 threads"));
}

TEST(RoundsScheduler, a_stop_returns_partial_output) {
  const auto requests = several(0);
  EventList events;
  int n_asked = 0;
  SchedulerWatch watch{.events = &events};
  watch.stop = [&] { return ++n_asked > 12; };
  RoundsScheduler scheduler(bundled(), {.n_branches = 2});
  const auto done = scheduler.run(requests, watch);
  ASSERT_GE(done.size(), 1u);
  ASSERT_LT(done.size(), requests.size());
  EXPECT_EQ(done.back().result.stop_reason, "stopped");
  Timeline timeline;
  timeline.apply(describe(bundled().target));
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  for (const RunRecord& run : timeline.runs()) EXPECT_TRUE(run.over());
}

TEST(RoundsScheduler, a_failure_between_steps_ends_every_started_run) {
  for (const char* overlap : {"always", "never"}) {
    const auto requests = several(0);
    EventList events;
    int n_asked = 0;
    SchedulerWatch watch{.events = &events};
    watch.stop = [&] {
      if (++n_asked > 12) throw Error(ErrorCode::Device, "the device is gone");
      return false;
    };
    RoundsScheduler scheduler(bundled(), {.n_branches = 2, .overlap = overlap});
    EXPECT_THROW(scheduler.run(requests, watch), Error);
    Timeline timeline;
    timeline.apply(describe(bundled().target));
    for (const Event& event : events.events) timeline.apply(event);
    EXPECT_EQ(timeline.n_inconsistent(), 0);
    ASSERT_GE(timeline.runs().size(), 2u);
    std::ptrdiff_t n_failed = 0;
    for (const RunRecord& run : timeline.runs()) {
      EXPECT_TRUE(run.over()) << overlap;
      if (!run.failed) continue;
      n_failed++;
      EXPECT_EQ(run.failed->message, "the device is gone");
    }
    EXPECT_GE(n_failed, 1) << overlap;
  }
}

TEST(RoundsScheduler, draft_and_target_run_on_separate_threads) {
  const RunModels models = models_for(store(), {}, {}, "seed", {{"overlap", "always"}});
  EXPECT_NE(&models.target.model->device(), &models.draft->model->device());
  EXPECT_EQ(models.target.model->device().n_threads(), 2);
  EXPECT_EQ(models.draft->model->device().n_threads(), 1);
  EXPECT_EQ(&bundled().target, &models.target) << "loaded once";
  EXPECT_EQ(&store().get({}), &models.target) << "plain decoding shares the weights";
  const RunModels split =
      models_for(store(), {}, {}, "seed", {{"overlap", "always"}, {"target_threads", "1"}});
  EXPECT_EQ(split.target.model->device().n_threads(), 1);
  EXPECT_NE(&split.target.model->device(), &split.draft->model->device());
  for (const char* overlap : {"auto", "never"}) {
    const RunModels both =
        models_for(store(), {}, {}, "seed", {{"overlap", overlap}, {"target_threads", "1"}});
    EXPECT_EQ(&both.target, &models.target) << "alternating uses all threads and one model";
    EXPECT_EQ(both.draft->model->device().n_threads(), 2) << "the draft uses all threads, too";
    EXPECT_NE(&both.target.model->device(), &both.draft->model->device());
  }
  const RunModels shared = store().get_with_draft({}, {}, "seed");
  EXPECT_THROW(RoundsScheduler(shared, {}), ContractError);
}

}  // namespace
}  // namespace engine::test
