// The engine thread's loop as the window uses it: commands in, events out, with the bundled model.
#include <atomic>

#include "engine/event/clock.h"
#include "engine/event/recording/recording.h"
#include "engine/event/timeline/run_slices.h"
#include "engine/run/engine.h"
#include "tests/support/engine_thread.h"
#include "tests/support/files.h"
#include "tests/support/models/heads_folder.h"
#include "tests/support/work_time.h"

namespace engine {
namespace {

using namespace std::chrono_literals;
using test::EngineThread;

TEST_F(EngineThread, a_race_of_four_lanes_agrees_with_ar) {
  commands.push(race({"ar", "jacobi", "lookahead", "prompt-lookup"}));
  ASSERT_TRUE(until([&] { return n_over() == 4 && count<Agreement>() == 3; }));
  for (const RunRecord& run : timeline.runs()) {
    EXPECT_EQ(run.tokens.size(), 24u) << run.started.decoder;
    if (run.started.decoder != "ar") {
      ASSERT_TRUE(run.agreement) << run.started.decoder;
      EXPECT_EQ(run.agreement->first_difference, -1) << run.started.decoder;
      EXPECT_TRUE(timeline.speedup(run)) << run.started.decoder;
    }
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST_F(EngineThread, a_run_copies_from_earlier_runs_and_no_lane_beside_it) {
  StartRun first = race({"suffix", "ar", "suffix"});
  first.lanes[0].options = first.lanes[2].options = {{"n_tokens", "12"}};
  commands.push(first);
  ASSERT_TRUE(until([&] { return n_over() == 3 && count<Agreement>() == 2; }));
  EXPECT_EQ(timeline.run(1)->steps.size(), timeline.run(3)->steps.size());
  StartRun second = race({"ar", "suffix"});
  second.lanes[1].options = {{"n_tokens", "12"}};
  commands.push(second);
  ASSERT_TRUE(until([&] { return n_over() == 5 && count<Agreement>() == 3; }));
  const RunRecord& later = *timeline.run(5);
  EXPECT_LT(later.steps.size(), timeline.run(3)->steps.size());
  EXPECT_EQ(later.agreement->first_difference, -1);
  int n_earlier = 0;
  for (const StepRecord& step : later.steps) {
    for (std::size_t row = 0; row < step.drafted.sources.size(); row++) {
      const GuessSource& source = step.drafted.sources[row];
      if (source.kind != GuessSource::Kind::Earlier) continue;
      n_earlier++;
      const RunRecord& from = *timeline.run(source.run);
      EXPECT_EQ(from.started.decoder, "suffix");
      std::vector<TokenId> sequence = from.started.prompt_tokens;
      for (const TokenRecord& token : from.tokens) sequence.push_back(token.id);
      EXPECT_EQ(sequence.at(static_cast<std::size_t>(source.pos)), step.drafted.tree.token[row]);
    }
  }
  EXPECT_GT(n_earlier, 0);
}

TEST_F(EngineThread, a_race_with_drafts_agrees_with_ar) {
  StartRun start = race({"ar", "speculative", "mcsd"});
  start.lanes[1].options = {{"gamma", "4"}};
  start.lanes[2].options = {{"k_config", "2,1,1"}};
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 3 && count<Agreement>() == 2; }));
  for (const RunRecord& run : timeline.runs()) {
    EXPECT_FALSE(run.failed) << run.failed->message;
    const ModelLoaded* model = timeline.model(run.started.model);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->name, "demo-target");
    const ModelLoaded* draft = timeline.model(run.started.draft);
    if (run.started.decoder == "ar") {
      EXPECT_EQ(draft, nullptr);
      continue;
    }
    ASSERT_NE(draft, nullptr);
    EXPECT_EQ(draft->name, "demo-draft");
    ASSERT_TRUE(run.agreement);
    EXPECT_EQ(run.agreement->first_difference, -1) << run.started.decoder;
    EXPECT_GT(run.n_accepted(), 0) << run.started.decoder;
    // Drafted tokens are reported with their probabilities; the draft's time is part of the step.
    for (const StepRecord& step : run.steps) {
      EXPECT_EQ(step.drafted.q.size(), step.drafted.tree.token.size());
      if (step.drafted.tree.n_rows() > 1) {
        EXPECT_GT(step.ended.propose, 0);
      }
    }
  }
  EXPECT_EQ(count<ModelLoaded>(), 2);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST_F(EngineThread, each_lane_is_compared_with_ar_of_its_own_model) {
  // The output of each model alone.
  std::map<std::string, std::vector<TokenId>> alone;
  for (const char* model : {"demo-target", "demo-draft"}) {
    StartRun one = race({"ar"});
    one.model = model;
    commands.push(one);
    const auto n = static_cast<int>(alone.size()) + 1;
    ASSERT_TRUE(until([&] { return n_over() == n; }));
    for (const auto& token : timeline.runs().back().tokens) alone[model].push_back(token.id);
  }
  ASSERT_NE(alone.at("demo-target"), alone.at("demo-draft"));

  StartRun start = race({"jacobi", "jacobi", "ar", "ar", "lookahead"});
  start.lanes[1].model = start.lanes[3].model = "demo-draft";
  commands.push(start);
  ASSERT_EQ(start.lanes.size(), kMaxLanes);
  ASSERT_TRUE(until([&] { return n_over() == 7 && count<Agreement>() == 3; }));
  EXPECT_EQ(count<ModelLoaded>(), 2) << "both stay in memory";
  for (const RunRecord& run : timeline.runs()) {
    if (run.started.race == 0) continue;
    const ModelLoaded* model = timeline.model(run.started.model);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->name, run.started.lane % 2 ? "demo-draft" : "demo-target");
    std::vector<TokenId> tokens;
    for (const auto& token : run.tokens) tokens.push_back(token.id);
    EXPECT_EQ(tokens, alone.at(model->name));
    if (run.started.decoder == "ar") continue;
    ASSERT_TRUE(run.agreement);
    EXPECT_EQ(run.agreement->first_difference, -1);
    const RunRecord* baseline = timeline.baseline_of(run);
    ASSERT_NE(baseline, nullptr);
    EXPECT_EQ(baseline->started.model, run.started.model);
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST_F(EngineThread, a_run_reports_how_its_prompt_was_read) {
  const test::Folder folder;
  const std::string chatty = folder / "chatty";
  std::filesystem::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", chatty);
  test::write_file(chatty + "/chat_template.jinja",
                   "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}");
  StartRun start = race({"ar", "jacobi", "ar"});
  start.model = chatty;
  start.lanes[2].model = "demo-target";
  start.system = "Short.";
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  const std::vector<const RunRecord*> lanes = timeline.race(1);
  ASSERT_EQ(lanes.size(), 3u);
  for (const RunRecord* run : lanes) {
    const bool is_chat = run->started.lane < 2;
    EXPECT_EQ(run->started.read_as, is_chat ? ReadAs::Chat : ReadAs::Raw) << run->started.lane;
    EXPECT_EQ(run->started.system, is_chat ? "Short." : "") << run->started.lane;
  }
  EXPECT_EQ(lanes[0]->started.prompt_tokens, lanes[1]->started.prompt_tokens);
}

TEST_F(EngineThread, chosen_heads_draft_only_for_the_races_model) {
  const test::HeadsFolder medusa(HeadsKind::Medusa, 3);
  StartRun start = race({"ar", "medusa"});
  start.heads = {medusa.path()};
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 2 && count<Agreement>() == 1; }));
  const RunRecord& drafted = timeline.runs().back();
  ASSERT_TRUE(drafted.agreement);
  EXPECT_EQ(drafted.agreement->first_difference, -1);
  const ModelLoaded* asked = timeline.model(drafted.started.draft);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->name, std::filesystem::path(medusa.path()).filename());
  // A lane with another model looks for heads in that model's card, which names none.
  start.lanes[1].model = "demo-draft";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  for (const Event& event : all) {
    if (const auto* failed = std::get_if<RunFailed>(&event)) {
      EXPECT_NE(failed->message.find("the card of demo-draft names none"), std::string::npos)
          << failed->message;
    }
  }
}

TEST_F(EngineThread, a_lane_with_a_missing_model_fails_the_race) {
  StartRun start = race({"ar", "ar"});
  start.lanes[1].model = "no-such-model";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  commands.push(race({"ar"}));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
}

TEST_F(EngineThread, a_decoder_without_its_draft_fails_only_that_run) {
  StartRun start = race({"ar", "mcsd"});
  start.model = "demo-draft";  // its card names no draft
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  for (const Event& event : all) {
    const auto* failed = std::get_if<RunFailed>(&event);
    if (!failed) continue;
    EXPECT_EQ(failed->code, 2);
    EXPECT_NE(failed->message.find("mcsd needs a draft model"), std::string::npos)
        << failed->message;
  }
  start.draft = "demo-draft";  // the model itself
  start.lanes[1].options = {{"k_config", "2,1,1"}};
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_EQ(timeline.runs().back().acceptance_rate(),
            0.5);  // accepts 3 of the 2 + 2 + 2 drafted tokens
}

TEST_F(EngineThread, every_lane_records_the_prefill_with_its_length) {
  StartRun start = race({"ar", "jacobi", "lookahead"}, 4);
  for (int i = 0; i < 100; i++)
    start.prompt += "more words ";  // for a prefill of many milliseconds
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  for (const RunRecord& run : timeline.runs()) {
    const std::vector<Slice> slices = phase_slices(run, Clock::Wall);
    const auto prefill = std::ranges::find(slices, SliceKind::Prefill, &Slice::kind);
    ASSERT_NE(prefill, slices.end()) << run.started.decoder;
    const Nanoseconds length = prefill->end - prefill->start;
    ASSERT_TRUE(run.finished);
    EXPECT_LE(length, run.finished->prefill) << run.started.decoder;
    EXPECT_GE(length, run.finished->prefill / 2) << run.started.decoder;
  }
}

TEST_F(EngineThread, lanes_take_turns_by_compute_time) {
  commands.push(race({"ar", "jacobi"}, 64));
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  // Whenever a lane starts a step, every unfinished lane has used at least as much time.
  std::map<RunId, Nanoseconds> compute;
  std::map<RunId, bool> over;
  for (const Event& event : all) {
    if (const auto* begun = std::get_if<StepBegun>(&event)) {
      for (const auto& [run, spent] : compute) {
        if (run == begun->run || over[run]) continue;
        EXPECT_GE(spent, begun->compute) << "run " << begun->run;
      }
      compute[begun->run] = begun->compute;
    }
    if (const auto* ended = std::get_if<StepEnded>(&event)) {
      compute[ended->run] += ended->propose + ended->forward + ended->verify + ended->commit;
    }
    if (const auto* finished = std::get_if<RunFinished>(&event)) over[finished->run] = true;
  }
}

TEST_F(EngineThread, while_held_it_steps_only_on_command) {
  StartRun start = race({"ar"}, 8);
  start.start_held = true;
  commands.push(start);
  ASSERT_TRUE(until([&] { return timeline.runs().size() == 1 && timeline.held(); }));
  ASSERT_TRUE(answers_held());
  EXPECT_EQ(count<StepEnded>(), 0);
  for (int step = 1; step <= 3; step++) {
    commands.push(StepOnce{});
    ASSERT_TRUE(until([&] { return count<StepEnded>() == step; }));
  }
  ASSERT_TRUE(answers_held());
  EXPECT_EQ(count<StepEnded>(), 3);
  commands.push(Hold{false});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  EXPECT_EQ(timeline.runs()[0].tokens.size(), 8u);
}

TEST_F(EngineThread, hold_does_not_carry_over_to_the_next_run) {
  commands.push(Hold{true});
  commands.push(StepOnce{});
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  EXPECT_FALSE(timeline.held());
}

TEST_F(EngineThread, stop_ends_the_run_within_a_step_and_keeps_tokens) {
  commands.push(race({"ar"}, 900));
  ASSERT_TRUE(until([&] { return count<StepEnded>() > 5; }));
  commands.push(StopRun{});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const RunRecord& run = timeline.runs()[0];
  ASSERT_TRUE(run.finished);
  EXPECT_EQ(run.finished->stop_reason, "stopped");
  EXPECT_GT(run.tokens.size(), 5u);
  EXPECT_LT(run.tokens.size(), 900u);
}

TEST_F(EngineThread, a_single_run_is_compared_on_request) {
  commands.push(race({"lookahead"}));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  EXPECT_EQ(count<Agreement>(), 0);
  commands.push(CheckAgreement{timeline.runs()[0].id()});
  ASSERT_TRUE(until([&] { return count<Agreement>() == 1; }));
  EXPECT_EQ(timeline.runs()[0].agreement->first_difference, -1);
  EXPECT_GT(timeline.runs()[0].agreement->cost, 0);
}

TEST_F(EngineThread, a_comparison_can_be_stopped_at_any_time) {
  std::atomic<bool> ask = false;
  sink.heard = [&](const Event& event) {
    const auto* phase = std::get_if<Phase>(&event);
    if (phase && phase->name == "check" && ask.exchange(false)) commands.push(StopRun{});
  };
  commands.push(race({"lookahead"}, 80));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  for (int again = 0; again < 2; again++) {
    ask = true;
    commands.push(CheckAgreement{timeline.runs()[0].id()});
    ASSERT_TRUE(until([&] { return !ask; }));
  }
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_EQ(count<Agreement>(), 0);
  EXPECT_EQ(count<RunFailed>(), 0);
}

TEST_F(EngineThread, rejection_sampling_is_never_reported_as_different) {
  StartRun start = race({"ar", "lookahead"});
  start.temperature = 1;
  start.sampling = "rejection";
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  commands.push(CheckAgreement{timeline.runs()[1].id()});
  ASSERT_TRUE(until([&] { return count<Notice>() == 1; }));
  EXPECT_EQ(count<Agreement>(), 0);
}

TEST_F(EngineThread, a_failure_is_reported_and_the_next_run_works) {
  StartRun start = race({"ar"});
  start.model = "no-such-model";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  start = race({"lookahead"});
  start.lanes[0].options["window"] = "-3";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 2; }));
  start = race({"ar"});
  for (int i = 0; i < 4000; i++) start.prompt += "more words ";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 3; }));
  commands.push(race({"ar"}));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
}

TEST_F(EngineThread, closing_during_decoding_ends_at_once) {
  commands.push(race({"ar", "lookahead"}, 900));
  ASSERT_TRUE(until([&] { return count<StepEnded>() > 3; }));
  const auto begun = std::chrono::steady_clock::now();
  commands.close();
  thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s * ::test::kSlower);
}

TEST_F(EngineThread, a_recording_of_a_race_opens_and_shows_the_same_runs) {
  const test::Folder folder;
  const std::string path = folder / "race.pdrun";
  commands.push(RecordTo{path});
  commands.push(race({"ar", "jacobi"}));
  ASSERT_TRUE(until([&] { return n_over() == 2 && count<Agreement>() == 1; }));
  commands.push(RecordTo{});
  TearDown();
  Timeline again;
  const RecordingReport report = load_recording(path, again);
  EXPECT_TRUE(report.closed);
  ASSERT_EQ(again.runs().size(), 2u);
  for (std::size_t i = 0; i < 2; i++) {
    EXPECT_EQ(again.runs()[i].tokens.size(), timeline.runs()[i].tokens.size());
    EXPECT_EQ(again.runs()[i].steps.size(), timeline.runs()[i].steps.size());
  }
}

TEST_F(EngineThread, samples_report_the_load_of_each_thread) {
  commands.push(race({"jacobi"}, 900));
  ASSERT_TRUE(until([&] { return count<Sampled>() > 0 || n_over() == 1; }));
  commands.push(StopRun{});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  ASSERT_GT(count<Sampled>(), 0);
  std::vector<double> most(2, 0);
  for (const Event& event : all) {
    const auto* sample = std::get_if<Sampled>(&event);
    if (!sample) continue;
    ASSERT_EQ(sample->thread_busy_percent.size(), 2u);
    for (std::size_t i = 0; i < 2; i++) {
      const double busy = sample->thread_busy_percent[i];
      EXPECT_GE(busy, 0);
      EXPECT_LE(busy, 100);
      most[i] = std::max(most[i], busy);
    }
  }
  EXPECT_GT(most[0], 1);
  EXPECT_GT(most[1], 1);
}

// KV02.
TEST_F(EngineThread, a_model_that_does_not_fit_is_refused_with_sizes) {
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  StartRun too_large = race({"ar"}, 4);
  too_large.scale = "64x64";
  commands.push(too_large);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  const auto& failed = std::get<RunFailed>(*std::find_if(
      all.begin(), all.end(), [](auto& e) { return std::holds_alternative<RunFailed>(e); }));
  EXPECT_EQ(failed.code, static_cast<int>(ErrorCode::Resources));
  for (const char* part : {"64x64", "TB of memory are needed", "are available"})
    EXPECT_NE(failed.message.find(part), std::string::npos) << failed.message;
  commands.push(race({"ar"}, 4));
  EXPECT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_EQ(count<ModelLoaded>(), 1);
}

class FailingReasoning : public EngineThread {
 protected:
  void prepare(Engine& engine) override {
    engine.reason_with([](const StartReasoning&, const ReasoningSite& site) {
      const RunId first = site.watch.first_run;
      for (const RunId run : {first, first + 1})
        site.watch.events->push(RunStarted{.t = now_ns(), .run = run});
      site.watch.events->push(RunFailed{now_ns(), first, 5, "cuda:0: gone"});
      throw Error(ErrorCode::Device, "cuda:0: gone");
    });
  }
};

TEST_F(FailingReasoning, each_active_run_is_reported_as_failed_once) {
  StartReasoning start;
  start.model = "demo-target";
  start.decoder.decoder = "ar";
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 2 && n_over() == 2; }));
  for (const RunRecord& run : timeline.runs()) EXPECT_EQ(run.failed->message, "cuda:0: gone");
  ASSERT_TRUE(answers_held());
  EXPECT_EQ(count<RunFailed>(), 2);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

}  // namespace
}  // namespace engine
