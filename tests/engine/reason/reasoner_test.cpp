// Reasoning commands of the window on the engine thread. They give the same texts as a direct call, and
// share one event stream with the commands before and after them.
#include <atomic>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/reason/cot.h"
#include "engine/reason/reasoner.h"
#include "engine/reason/tot.h"
#include "tests/support/engine_thread.h"
#include "tests/support/files.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

StartReasoning chain(int count = 2) {
  StartReasoning start;
  start.model = "demo-target";
  start.task = "kb";
  start.count = count;
  start.decoder.decoder = "lookahead";
  return start;
}

StartReasoning tree(int count = 1) {
  StartReasoning start;
  start.what = StartReasoning::What::Tree;
  start.model = "demo-target";
  start.task = "arith";
  start.count = count;
  start.decoder = {"seed", {{"branches", "3"}}};
  start.depth = 2;
  start.n_thoughts = 2;
  start.seed = 3;
  return start;
}

class ReasoningThread : public EngineThread {
 protected:
  void prepare(Engine& engine) override { engine.reason_with(reasoner(kAssets, "")); }

  bool is_close(const Event& event) const {
    const auto* phase = std::get_if<Phase>(&event);
    return phase && phase->run == 0 && phase->name == "reason" && phase->done >= phase->total;
  }
  int n_ended() const {
    return static_cast<int>(
        std::ranges::count_if(all, [this](const Event& event) { return is_close(event); }));
  }
  std::vector<std::string> failures() const {
    std::vector<std::string> messages;
    for (const Event& event : all)
      if (const auto* failed = std::get_if<RunFailed>(&event)) messages.push_back(failed->message);
    return messages;
  }
  bool noticed(const std::string& part) const {
    return std::ranges::any_of(timeline.notices(), [&](const Notice& notice) {
      return notice.text.find(part) != std::string::npos;
    });
  }
};

/// The text of each run by its prompt id.
std::map<std::string, std::vector<TokenId>> texts_of(const Timeline& timeline) {
  std::map<std::string, std::vector<TokenId>> texts;
  for (const RunRecord& run : timeline.runs())
    for (const TokenRecord& token : run.tokens) texts[run.started.prompt_id].push_back(token.id);
  return texts;
}

/// The scheduler and models of a direct call without the engine thread, and their events.
struct Direct {
  explicit Direct(const StartReasoning& command)
      : models(models_for(
            store, {.model = command.model}, {}, command.decoder.decoder, command.decoder.options)),
        scheduler(make_scheduler(
            models, command.decoder.decoder, command.decoder.options, command.batch)) {
    events.push(describe(models.target));
    if (models.draft) events.push(describe(*models.draft));
  }
  Model& target() const { return *models.target.model; }
  Timeline timeline() const {
    Timeline all;
    for (const Event& event : events.events) all.apply(event);
    return all;
  }

  ModelStore store{kAssets, 2};
  RunModels models;
  std::unique_ptr<Scheduler> scheduler;
  EventList events;
};

TEST_F(ReasoningThread, a_chain_gives_the_texts_of_a_direct_call) {
  Direct direct(chain());
  CotSettings settings;
  settings.decoder = "lookahead";
  const CotReport report =
      answer(*direct.scheduler, direct.target(), cot_questions("kb", {.count = 2}, ""), settings,
             {.events = &direct.events});
  commands.push(chain());
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  EXPECT_EQ(texts_of(timeline), texts_of(direct.timeline()));
  EXPECT_GE(timeline.runs().size(), 2u);
  EXPECT_EQ(n_over(), std::ssize(timeline.runs()));
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_THAT(failures(), testing::IsEmpty());
  for (const CotItem& item : report.items)
    EXPECT_TRUE(noticed(item.id + ": " + (item.correct ? "right" : "wrong"))) << item.id;
  EXPECT_TRUE(noticed(std::to_string(report.n_correct()) + " of 2 right"));
}

TEST_F(ReasoningThread, an_answer_after_approximate_tokens_says_so) {
  StartReasoning cut = chain();
  cut.decoder = {.decoder = "fastcot", .options = {{"stop", "bound"}, {"bound", "4"}}};
  commands.push(cut);
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  EXPECT_TRUE(noticed("\", written after approximate tokens"));
  cut.drop_approximate = true;
  const std::size_t n_before = timeline.notices().size();
  commands.push(cut);
  ASSERT_TRUE(until([&] { return n_ended() == 2; }));
  for (std::size_t i = n_before; i < timeline.notices().size(); i++)
    EXPECT_THAT(timeline.notices()[i].text, testing::Not(testing::HasSubstr("approximate tokens")));
}

TEST_F(ReasoningThread, a_tree_with_seed_rounds_equals_a_direct_call) {
  Direct direct(tree());
  TotSettings settings;
  settings.thoughts = {.temperature = 1, .seed = 3};
  settings.depth = 2;
  settings.n_thoughts = 2;
  settings.decoder = "seed";
  settings.prompts = read_tot_prompts(tot_prompts_file(kAssets, tot_task_info("arith")));
  search(*direct.scheduler, direct.target(), tot_questions("arith", {.count = 1}, 0, ""), settings,
         {.events = &direct.events});
  commands.push(tree());
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  const Timeline expected = direct.timeline();
  EXPECT_EQ(texts_of(timeline), texts_of(expected));
  ASSERT_EQ(timeline.searches().size(), 1u);
  const SearchRecord &found = timeline.searches()[0], &alone = expected.searches()[0];
  ASSERT_EQ(found.thoughts.size(), alone.thoughts.size());
  ASSERT_FALSE(found.thoughts.empty());
  for (std::size_t i = 0; i < found.thoughts.size(); i++)
    EXPECT_EQ(found.thoughts[i].made.text, alone.thoughts[i].made.text);
  EXPECT_EQ(found.ended->answer, alone.ended->answer);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST_F(ReasoningThread, approximate_tokens_can_be_left_out) {
  StartReasoning start = chain(3);
  start.decoder = {"fastcot", {{"window", "5"}, {"stop", "bound"}, {"bound", "6"}}};
  const auto n_after_approximate = [&] {
    return std::ranges::count_if(timeline.runs(), [](const RunRecord& run) {
      return run.started.prompt_id.ends_with("/answer-behind-approximate");
    });
  };
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  const auto before = n_after_approximate();
  EXPECT_GT(before, 0);
  start.drop_approximate = true;
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_ended() == 2; }));
  EXPECT_THAT(failures(), testing::IsEmpty());
  EXPECT_EQ(n_after_approximate(), before) << "the second command used approximate tokens";
}

TEST_F(ReasoningThread, files_replace_the_tasks_questions_and_examples) {
  const Folder folder;
  std::string lines;
  const auto questions = cot_questions("kb", {.start = 40, .count = 3}, "");
  for (const Question& question : questions) lines += to_json_line(question.record) + "\n";
  write_file(folder / "questions.jsonl", lines);
  write_file(folder / "shown.jsonl",
             R"({"question": "Q: Is ice cold?\nA:", "rationale": "Ice is cold.", "answer": "yes"})"
             "\n");
  StartReasoning start = chain(1);
  start.task = "aqua";  // an open data set; there is no data folder
  start.data = folder / "questions.jsonl";
  start.start = 1;
  start.prompts = folder / "shown.jsonl";
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  EXPECT_THAT(failures(), testing::IsEmpty());
  const std::string& prompt = timeline.runs()[0].started.prompt;
  EXPECT_THAT(prompt, HasSubstr("Is ice cold?"));
  EXPECT_THAT(timeline.runs()[0].started.prompt_id, HasSubstr(questions[1].record.id));
  EXPECT_TRUE(noticed("Chain of thought, kb by lookahead"));
  start.n_shots = 0;
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_ended() == 2; }));
  EXPECT_THAT(timeline.runs().back().started.prompt, testing::Not(HasSubstr("Is ice cold?")));
  start.data = folder / "nothing.jsonl";
  commands.push(start);
  ASSERT_TRUE(until([&] { return failures().size() == 1; }));
  EXPECT_THAT(failures()[0], HasSubstr("nothing.jsonl"));
}

TEST_F(ReasoningThread, a_tree_uses_the_prompts_of_a_given_file) {
  const Folder folder;
  std::string text = read_file(tot_prompts_file(kAssets, tot_task_info("arith")));
  const std::string own = "Question: {problem}";
  ASSERT_NE(text.find(own), std::string::npos);
  for (std::size_t at = 0; (at = text.find(own, at)) != std::string::npos; at += own.size() + 6)
    text.replace(at, own.size(), "Asked: {problem}");
  write_file(folder / "prompts.jsonl", text);
  StartReasoning start = tree();
  start.depth = 1;
  start.prompts = folder / "prompts.jsonl";
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  EXPECT_THAT(failures(), testing::IsEmpty());
  EXPECT_THAT(timeline.runs()[0].started.prompt, testing::StartsWith("Asked: "));
}

TEST_F(ReasoningThread, runs_and_searches_are_numbered_without_reuse) {
  commands.push(tree(2));
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  const auto n_runs = timeline.runs().size();
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until(
      [&] { return timeline.runs().size() == n_runs + 1 && n_over() > static_cast<int>(n_runs); }));
  commands.push(chain(1));
  ASSERT_TRUE(until([&] { return n_ended() == 2; }));
  commands.push(tree(1));
  ASSERT_TRUE(until([&] { return n_ended() == 3; }));
  std::set<RunId> runs;
  for (const RunRecord& run : timeline.runs()) EXPECT_TRUE(runs.insert(run.id()).second);
  EXPECT_EQ(n_over(), std::ssize(timeline.runs()));
  ASSERT_EQ(timeline.searches().size(), 3u);
  for (SearchId i = 0; i < 3; i++) EXPECT_EQ(timeline.searches()[i].begun.search, i + 1);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_THAT(failures(), testing::IsEmpty());
}

TEST_F(ReasoningThread, a_stop_ends_within_a_step_and_is_no_failure) {
  std::atomic<bool> ask = true;
  sink.heard = [&](const Event& event) {
    if (std::holds_alternative<StepEnded>(event) && ask.exchange(false)) commands.push(StopRun{});
  };
  for (const StartReasoning& start : {chain(3), tree(3)}) {
    const int before = n_ended();
    const auto n_runs = timeline.runs().size();
    ask = true;
    commands.push(start);
    ASSERT_TRUE(until([&] { return n_ended() == before + 1; }));
    EXPECT_EQ(n_over(), std::ssize(timeline.runs()));
    EXPECT_LE(timeline.runs().size() - n_runs, 3u) << "runs started after the stop";
    EXPECT_EQ(timeline.runs().back().finished->stop_reason, "stopped");
  }
  EXPECT_THAT(failures(), testing::IsEmpty());
  EXPECT_TRUE(noticed("stopped with 0 of 3 questions done"));
  sink.heard = {};
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until([&] { return timeline.runs().back().tokens.size() == 4; }));
}

TEST_F(ReasoningThread, another_start_ends_a_reasoning_command) {
  commands.push(tree(3));
  ASSERT_TRUE(until([&] { return count<StepEnded>() > 0; }));
  commands.push(race({"ar"}, 4));
  ASSERT_TRUE(until([&] {
    return n_ended() == 1 && timeline.runs().back().started.max_tokens == 4 &&
           timeline.runs().back().over();
  }));
  EXPECT_EQ(n_over(), std::ssize(timeline.runs()));
  EXPECT_TRUE(timeline.searches()[0].ended->stopped);
}

TEST_F(ReasoningThread, on_hold_it_steps_only_on_command) {
  StartReasoning start = chain(1);
  start.start_held = true;
  commands.push(start);
  for (int step = 1; step <= 3; step++) {
    commands.push(StepOnce{});
    ASSERT_TRUE(until([&] { return count<StepEnded>() == step; }));
  }
  ASSERT_TRUE(answers_held());
  EXPECT_EQ(count<StepEnded>(), 3);
  EXPECT_EQ(n_ended(), 0);
  commands.push(Hold{false});
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  EXPECT_GT(count<StepEnded>(), 3);
}

// CU12: SEED can stop with or without a finished draft. Each stop has to be reported, or the window would
// take it for a hanging device.
TEST_F(ReasoningThread, on_hold_it_reports_each_stop) {
  StartReasoning start = tree(1);
  start.start_held = true;
  commands.push(start);
  const auto rests = [&](int n_steps) {
    return count<StepEnded>() >= n_steps && !all.empty() && timeline.held() &&
           std::holds_alternative<Held>(all.back());
  };
  ASSERT_TRUE(until([&] { return rests(0); })) << "before its first run";
  for (int step = 1; step <= 3; step++) {
    const int n = count<StepEnded>();
    commands.push(StepOnce{});
    ASSERT_TRUE(until([&] { return rests(n + 1); }));
    EXPECT_GE(timeline.runs().size(), 2u) << "branches of the tree";
    for (const RunRecord& run : timeline.runs())
      EXPECT_LE(run.last_event, timeline.holds().back().t);
  }
}

TEST_F(ReasoningThread, on_hold_it_can_be_stopped_and_ends_with_the_engine) {
  StartReasoning start = chain(1);
  start.start_held = true;
  commands.push(start);
  commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return count<StepEnded>() == 1; }));
  commands.push(StopRun{});
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  commands.push(start);
  commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return count<StepEnded>() == 2; }));
  TearDown();  // the engine ends while the command is on hold
}

TEST_F(ReasoningThread, a_refused_command_does_not_affect_the_next) {
  const auto refused = [&](const StartReasoning& start, const std::string& why) {
    const std::size_t n = failures().size();
    commands.push(start);
    ASSERT_TRUE(until([&] { return failures().size() > n; })) << why;
    EXPECT_THAT(failures().back(), HasSubstr(why));
  };
  StartReasoning start = chain();
  start.task = "kbb";
  refused(start, "'kbb'");
  start = tree();
  start.task = "gsm8k";
  refused(start, "open data set");
  start = tree();
  start.decoder.options["branches"] = "many";
  refused(start, "branches");
  start = chain();
  start.model = "no-such-model";
  refused(start, "no-such-model");
  start = chain();
  start.max_tokens = 100'000;
  refused(start, "context");
  start = tree();
  start.decoder = {"jacobi", {{"form", "textbook"}}};
  start.sampling = "rejection";
  refused(start, "rejection");
  commands.push(chain(1));
  ASSERT_TRUE(until([&] { return noticed("of 1 right"); }));
  EXPECT_EQ(n_over(), std::ssize(timeline.runs()));
}

TEST_F(ReasoningThread, its_runs_equal_plain_decoding) {
  commands.push(tree());
  ASSERT_TRUE(until([&] { return n_ended() == 1; }));
  for (const RunId run : {timeline.runs().front().id(), timeline.runs().back().id()}) {
    commands.push(CheckAgreement{run});
    ASSERT_TRUE(until([&] { return timeline.run(run)->agreement.has_value(); }));
    EXPECT_EQ(timeline.run(run)->agreement->first_difference, -1);
    EXPECT_GT(timeline.run(run)->agreement->n_compared, 0);
  }
}

}  // namespace
}  // namespace engine::test
