// A draft model reads a prompt just before the first step of the sequence that drafts. Its drafts equal
// those of a draft model that read the prompt at the beginning.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/decode/draft/draft_verify.h"
#include "engine/decode/step/prompt_caches.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

constexpr ToyShape kShape{.vocab = 12, .context = 2, .seed = 3};
const std::vector<TokenId> kPrompt{1, 2, 3, 1, 2, 7, 5};
constexpr const char* kDecoders[] = {"speculative", "mcsd", "seed"};
constexpr int kFirst = 4;  // the first step that drafts, by drafts_late()

/// A prefilled lane whose steps draft the trees with these indices (gamma=auto, k_config=auto).
Lane lane_with(LanguageModel& model,
               LanguageModel& draft,
               const std::string& decoder,
               const Sampling& sampling,
               std::vector<std::int32_t> choices,
               PromptCaches* prompts = nullptr) {
  DecoderContext context{.target = model,
                         .sampling = sampling,
                         .limits = {.max_tokens = 30},
                         .draft_model = &draft,
                         .draft_prompts = prompts,
                         .choices = std::move(choices)};
  Lane lane = make_lane(1, model, kPrompt, decoder, std::move(context));
  prefill(model, lane.sequence);
  lane.decoder->begin(lane.sequence);
  return lane;
}

/// No drafts before step kFirst; then trees of several sizes, and plain steps between them.
std::vector<std::int32_t> drafts_late() {
  std::vector<std::int32_t> choices(30);
  for (std::size_t step = kFirst; step < choices.size(); step++)
    choices[step] = step % 5 == 1 ? 0 : static_cast<std::int32_t>(1 + step % 4);
  return choices;
}

std::vector<Phase> readings_of(const EventList& events) {
  std::vector<Phase> readings;
  for (const Event& event : events.events) {
    const auto* phase = std::get_if<Phase>(&event);
    if (phase && phase->name == "draft prefill") readings.push_back(*phase);
  }
  return readings;
}

/// Decodes the rest of the sequence. Returns the events of its steps.
EventList finish(ToyModel& model, Lane& lane) {
  EventList events;
  Stepper stepper(model, &events);
  Lane* const one = &lane;
  while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
  return events;
}

TEST(DraftPrompt, is_not_read_without_drafts) {
  ToyModel model(kShape);
  for (const char* decoder : kDecoders) {
    ToyModel draft(draft_of(kShape));
    Lane lane = lane_with(model, draft, decoder, {}, std::vector<std::int32_t>(30));
    const EventList events = finish(model, lane);
    EXPECT_EQ(lane.n_steps, 30);
    EXPECT_EQ(draft.n_forwards, 0) << decoder;
    EXPECT_TRUE(readings_of(events).empty());
    EXPECT_EQ(lane.draft_prefill_ns, 0);
  }
}

TEST(DraftPrompt, is_read_once_before_the_first_step_that_drafts) {
  ToyModel model(kShape);
  for (const char* decoder : kDecoders) {
    ToyModel draft(draft_of(kShape));
    Lane lane = lane_with(model, draft, decoder, {}, drafts_late());
    EventList events;
    Stepper stepper(model, &events);
    Lane* const one = &lane;
    for (int step = 0; step < kFirst; step++) stepper.step(std::span(&one, 1));
    EXPECT_EQ(draft.n_forwards, 0) << decoder;
    const std::size_t n_before = events.events.size();
    stepper.step(std::span(&one, 1));
    ASSERT_GT(draft.n_forwards, 1) << decoder;
    EXPECT_EQ(draft.n_rows[0], std::ssize(kPrompt) - 1);
    EXPECT_EQ(draft.n_rows[1], kFirst + 1) << "the tokens after the prompt, fed as rows";
    // The reading is reported before the step begins.
    const auto* first = std::get_if<Phase>(&events.events.at(n_before));
    const auto* last = std::get_if<Phase>(&events.events.at(n_before + 1));
    const auto* begun = std::get_if<StepBegun>(&events.events.at(n_before + 2));
    ASSERT_TRUE(first && last && begun) << decoder;
    EXPECT_EQ(first->done, 0);
    EXPECT_EQ(last->done, std::ssize(kPrompt) - 1);
    EXPECT_EQ(last->total, std::ssize(kPrompt) - 1);
    EXPECT_LE(last->t, begun->t);
    EXPECT_EQ(begun->step, kFirst);
    EXPECT_GT(lane.draft_prefill_ns, 0);
    while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
    EXPECT_EQ(readings_of(events).size(), 2u) << "it is read once";
  }
}

/// A draft model whose forward over a prompt takes long.
class SlowReader : public ToyModel {
 public:
  static constexpr std::chrono::milliseconds kReading{300};
  using ToyModel::ToyModel;
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    if (n_forwards == 0) std::this_thread::sleep_for(kReading);
    return ToyModel::forward(items, wants);
  }
};

TEST(DraftPrompt, its_time_is_not_a_part_of_the_step) {
  const std::int64_t reading = std::chrono::nanoseconds(SlowReader::kReading).count();
  ToyModel model(kShape);
  for (const char* decoder : kDecoders) {
    SlowReader draft(draft_of(kShape));
    Lane lane = lane_with(model, draft, decoder, {}, drafts_late());
    const EventList events = finish(model, lane);
    EXPECT_GE(lane.draft_prefill_ns, reading) << decoder;
    EXPECT_LT(lane.compute_ns, reading) << decoder;
    EXPECT_LT(lane.times.propose, reading) << decoder;
    const std::vector<Phase> readings = readings_of(events);
    ASSERT_EQ(readings.size(), 2u);
    EXPECT_GE(readings[1].t - readings[0].t, reading);
  }
}

// The draft model's keys and values are equal too, bit for bit.
TEST(DraftPrompt, late_drafts_equal_those_after_an_early_reading) {
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  const auto draft = tiny_draft(*device, kernels::DType::F32, 11);
  for (const char* decoder : kDecoders) {
    for (const Sampling& sampling :
         {Sampling{}, Sampling{.temperature = 0.8f},
          Sampling{.temperature = 0.8f, .mode = Sampling::Mode::Rejection}}) {
      Lane late = lane_with(*model, *draft, decoder, sampling, drafts_late());
      Lane early = lane_with(*model, *draft, decoder, sampling, drafts_late());
      early.decoder->read_prompt(early.sequence);
      Lane* lanes[] = {&late, &early};
      Stepper stepper(*model, nullptr);
      bool has_drafted = false;
      while (!late.sequence.finished()) {
        ASSERT_FALSE(early.sequence.finished());
        const int step = late.n_steps;
        stepper.step(lanes);
        ASSERT_EQ(late.tree.token, early.tree.token) << decoder << " step " << step;
        ASSERT_EQ(late.tree.parent, early.tree.parent);
        ASSERT_EQ(late.decoder->proposal_probabilities(), early.decoder->proposal_probabilities());
        auto& late_decoder = dynamic_cast<DraftVerifyDecoder&>(*late.decoder);
        auto& early_decoder = dynamic_cast<DraftVerifyDecoder&>(*early.decoder);
        has_drafted |= late.tree.n_rows() > 1;
        EXPECT_EQ(late_decoder.drafter().has_read(), step >= kFirst);
        if (!late_decoder.drafter().has_read()) continue;
        std::vector<float> k, v, early_k, early_v;
        draft->read_cache(*late_decoder.drafter().cache(), 0, k, v);
        draft->read_cache(*early_decoder.drafter().cache(), 0, early_k, early_v);
        ASSERT_EQ(k, early_k) << decoder << " step " << step;
        ASSERT_EQ(v, early_v);
      }
      EXPECT_TRUE(has_drafted);
      EXPECT_EQ(
          std::vector<TokenId>(late.sequence.tokens().begin(), late.sequence.tokens().end()),
          std::vector<TokenId>(early.sequence.tokens().begin(), early.sequence.tokens().end()));
    }
  }
}

TEST(DraftPrompt, is_shared_by_sequences_that_read_it_late) {
  ToyModel model(kShape), draft(draft_of(kShape));
  PromptCaches prompts(draft);
  std::vector<std::int32_t> at_once(30, 1);
  std::vector<Lane> lanes;
  for (const auto& choices : {at_once, drafts_late(), std::vector<std::int32_t>(30)})
    lanes.push_back(lane_with(model, draft, "seed", {}, choices, &prompts));
  Stepper stepper(model, nullptr);
  for (int step = 0; step <= kFirst; step++) {
    for (Lane& lane : lanes) {
      Lane* const one = &lane;
      stepper.step(std::span(&one, 1));
    }
  }
  EXPECT_EQ(prompts.n_computed(), std::ssize(kPrompt) - 1) << "by the first sequence";
  EXPECT_EQ(prompts.n_shared(), std::ssize(kPrompt) - 1)
      << "by the second; the third reads nothing";
}

// The choice of a tree includes the cost of reading: after sequences of two tokens no tree is worth it.
TEST(DraftPrompt, is_not_read_for_short_sequences) {
  for (const int n_tokens : {2, 200}) {
    DraftKnowledge known;
    StepControl control;
    for (int i = 0; i < 40; i++) {
      for (const int rows : {1, 2, 4, 8, 16}) control.costs().add(rows, 10 + 0.1 * rows);
      known.add_forward({.begun = 0, .ended = 500'000, .n_rows = 1});
      known.add_verified(1, i % 4 == 0 ? -1 : 0);
      known.add_reading(100, 60);
      known.sequence_ended(n_tokens, true);
    }
    const double reading_ms = known.reading_ms(100, 1000, control);
    EXPECT_NEAR(reading_ms, 60.0 / n_tokens, 1e-9);
    EXPECT_EQ(known.choose(known.plans(chains_to_choose(), control, reading_ms)).index > 0,
              n_tokens == 200);
    EXPECT_GT(known.choose(known.plans(chains_to_choose(), control)).index, 0u)
        << "a sequence whose prompt is read";
  }
}

}  // namespace
}  // namespace engine::test
