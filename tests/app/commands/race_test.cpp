// Races in the terminal: progress and the explanation of figures.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/commands/notes.h"
#include "engine/run/run.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/needs.h"
#include "tests/support/program.h"

namespace {

using nlohmann::json;

constexpr std::int64_t kMB = 1'000'000;
const std::vector<std::string> kRaced{"jacobi", "lookahead"};

TEST(Notes, a_race_without_speedup_names_the_cache_as_the_cause) {
  const std::vector<double> slower{0.4, 0.9};
  const std::string note = app::why_no_speedup(kRaced, "1x1", 6 * kMB, 30 * kMB, slower);
  EXPECT_TRUE(note.starts_with("jacobi, lookahead: not faster")) << note;
  for (const char* part : {"6.0 MB", "30.0 MB", "--scale auto"})
    EXPECT_NE(note.find(part), std::string::npos) << note;
  EXPECT_EQ(note.find("4x2"), std::string::npos)
      << "the scaled model may fit the cache too: " << note;
}

TEST(Notes, nothing_false_or_unknown_is_explained) {
  const std::vector<double> slower{0.4, 0.9}, one_faster{0.4, 1.2};
  EXPECT_EQ(app::why_no_speedup(kRaced, "1x1", 6 * kMB, 30 * kMB, one_faster), "");
  EXPECT_EQ(app::why_no_speedup(kRaced, "4x2", 6 * kMB, 30 * kMB, slower), "");
  EXPECT_EQ(app::why_no_speedup(kRaced, "1x1", 60 * kMB, 30 * kMB, slower), "");
  EXPECT_EQ(app::why_no_speedup(kRaced, "1x1", 6 * kMB, 0, slower), "");
  EXPECT_EQ(app::why_no_speedup({}, "1x1", 6 * kMB, 30 * kMB, {}), "");
}

TEST(Notes, a_step_faster_than_memory_is_explained) {
  EXPECT_FALSE(app::is_faster_than_memory(0.9));
  EXPECT_FALSE(app::is_faster_than_memory(1.02));
  EXPECT_TRUE(app::is_faster_than_memory(4.74));
  EXPECT_NE(
      app::why_above_roofline(6 * kMB, 30 * kMB).find("(6.0 MB) are in the processor's cache"),
      std::string::npos);
  EXPECT_EQ(app::why_above_roofline(60 * kMB, 30 * kMB).find("cache"), std::string::npos);
}

TEST(Notes, seed_with_one_prompt_runs_as_one_branch) {
  EXPECT_EQ(app::single_prompt_note(kRaced), "");
  const std::vector<std::string> raced{"ar", "seed"};
  const std::string note = app::single_prompt_note(raced);
  for (const char* part : {"seed: ", "one branch, which is mcsd", "--prompt-file"})
    EXPECT_NE(note.find(part), std::string::npos) << note;
  EXPECT_EQ(note.find('\n'), std::string::npos) << "one line";
}

TEST(Notes, a_difference_is_reported_with_both_margins) {
  const std::string words = app::difference_words({.at = 17, .margin = 0.00025f});
  for (const char* part :
       {"token 17", "lead of its choice 0.00025,", "of ar's choice none, it had ended"})
    EXPECT_NE(words.find(part), std::string::npos) << words;
}

TEST(Notes, probes_that_differ_by_15_percent_are_both_shown) {
  EXPECT_FALSE(app::disturbed(20, 20));
  EXPECT_FALSE(app::disturbed(20, 17.1));
  EXPECT_FALSE(app::disturbed(17.1, 20));
  EXPECT_TRUE(app::disturbed(20, 16.9));
  EXPECT_TRUE(app::disturbed(16.9, 20));
  const std::string note = app::why_disturbed(20, 16.9);
  for (const char* part : {"20.0 GB/s", "16.9 GB/s", "run it again"})
    EXPECT_NE(note.find(part), std::string::npos) << note;
}

TEST(Notes, an_automatic_scale_is_reported_with_its_reason) {
  const auto has = [](const std::string& note, const char* part) {
    EXPECT_NE(note.find(part), std::string::npos) << note;
    EXPECT_NE(note.find("--scale selects another"), std::string::npos) << note;
  };
  has(app::why_this_scale("m", 3'000'000, "4x2"), "its 3.0 M parameters would fit");
  has(app::why_this_scale("m", 90'000'000, "1x1"), "its 90.0 M parameters do not fit");
  has(app::why_this_scale("m", 0, "1x1"), "its size is not known");
}

/// A file with prompts "a" and "b".
class CliRace : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    prompts = folder + "/prompts.jsonl";
    std::ofstream(prompts) << R"({"id": "a", "prompt": "Anna has"})"
                           << "\n"
                           << R"({"id": "b", "prompt": "Question: Tom has 3 pens."})"
                           << "\n";
  }
  std::string prompts;
};

TEST_F(CliRace, progress_advances_within_a_prompt) {
  const std::optional<std::string> shown =
      run_on_terminal({"compare", "--decoders", "ar,lookahead", "--prompt-file", prompts,
                       "--max-tokens", "120", "--ignore-eos"},
                      100);
  NEEDS(shown.has_value(), "cannot make a pseudo-terminal");
  // The first and the complete progress line are always shown.
  EXPECT_NE(shown->find("prompt 1/2, ar, 0 tokens"), std::string::npos) << *shown;
  EXPECT_TRUE(std::regex_search(*shown, std::regex("prompt 2/2, (ar|lookahead), 120 tokens")))
      << *shown;
}

TEST_F(CliRace, load_progress_shows_the_size_of_the_weights) {
  const std::optional<std::string> shown =
      run_on_terminal({"generate", "--prompt", "a", "--max-tokens", "1"}, 100);
  NEEDS(shown.has_value(), "cannot make a pseudo-terminal");
  const json info = json::parse(run("model info --json demo-target").out);
  const auto mb = info["parameters"].get<std::int64_t>() * 2 / kMB;  // bf16
  const std::string whole = "/" + std::to_string(mb) + " MB";
  EXPECT_NE(shown->find(whole), std::string::npos) << whole << " in " << *shown;
}

TEST_F(CliRace, progress_is_cut_at_the_terminal_width) {
  const std::optional<std::string> shown =
      run_on_terminal({"compare", "--decoders", "ar,lookahead", "--prompt-file", prompts,
                       "--max-tokens", "4", "--ignore-eos"},
                      40);
  NEEDS(shown.has_value(), "cannot make a pseudo-terminal");
  const std::size_t begin = shown->find("compare ["), end = shown->find('\r', begin);
  ASSERT_NE(begin, std::string::npos) << *shown;
  ASSERT_NE(end, std::string::npos) << *shown;
  EXPECT_EQ(end - begin, 39u) << *shown;
}

/// Expects the note on slow races if the printed speedup is below 1 and the model fits the cache. A printed
/// 1.00 may be rounded from either side of 1, so it is not checked.
class CliNote : public CliRace {
 protected:
  void SetUp() override {
    CliRace::SetUp();
    const json document = json::parse(run("bench step --rows 1 --repeat 1 --context 4 --json").out);
    in_cache = document["weight_bytes"] <= document["machine"]["last_level_cache_bytes"];
  }
  void expect_note_if_lost(const std::string& shown, const std::regex& speedup) const {
    std::smatch match;
    ASSERT_TRUE(std::regex_search(shown, match, speedup)) << shown;
    const bool noted = shown.find(kNote) != std::string::npos;
    if (match[1] != "1.00") {
      EXPECT_EQ(noted, in_cache && std::stod(match[1]) < 1) << shown;
    }
  }
  static constexpr const char* kNote = "jacobi: not faster than ar:";
  bool in_cache = false;
};

// A block of 64 on a model in the CPU's cache costs 64 rows per step and gives a few tokens.
TEST_F(CliNote, a_slow_race_is_explained_in_text_output_only) {
  const std::string line =
      "compare --decoders jacobi --set block=64 --max-tokens 48 --ignore-eos --prompt-file " +
      prompts;
  const Outcome reported = run(line);
  EXPECT_EQ(reported.code, 0) << reported.err;
  expect_note_if_lost(reported.out, std::regex(R"(\njacobi +[0-9.]+ +([0-9.]+)x)"));
  EXPECT_EQ(run(line + " --scale 1x2").out.find(kNote), std::string::npos);
  const Outcome document = run(line + " --json");
  EXPECT_EQ(document.out.find(kNote), std::string::npos);
  EXPECT_TRUE(json::accept(document.out)) << document.out;
}

TEST_F(CliNote, a_slow_checked_run_is_explained_in_text_output_only) {
  const std::string line =
      "generate --decoder jacobi --set block=64 --max-tokens 48 --ignore-eos --check --prompt Anna";
  const Outcome reported = run(line);
  EXPECT_EQ(reported.code, 0) << reported.err;
  expect_note_if_lost(reported.err, std::regex("speedup ([0-9.]+)x"));
  EXPECT_EQ(reported.out.find(kNote), std::string::npos) << reported.out;
  EXPECT_EQ(run(line + " --scale 1x2").err.find(kNote), std::string::npos);
  EXPECT_EQ(run(line + " --json").err.find(kNote), std::string::npos);
}

TEST_F(CliRace, seed_with_one_prompt_reports_one_branch) {
  const std::string one = "compare --max-tokens 4 --prompt Anna --decoders ";
  const std::string kBranches = "The prompts of a --prompt-file are its branches";
  const Outcome reported = run(one + "ar,seed");
  EXPECT_EQ(reported.code, 0) << reported.err;
  EXPECT_NE(reported.err.find("note: seed: "), std::string::npos) << reported.err;
  EXPECT_NE(reported.err.find(kBranches), std::string::npos) << reported.err;
  EXPECT_EQ(reported.out.find("note"), std::string::npos) << reported.out;
  EXPECT_EQ(reported.out.find("at a time"), std::string::npos) << reported.out;
  const json document = json::parse(run(one + "ar,seed --json").out);
  ASSERT_EQ(document["notices"].size(), 1u);
  EXPECT_NE(document["notices"][0].get<std::string>().find(kBranches), std::string::npos);
  EXPECT_EQ(document["summary"][1]["branches"], 1);
  const Outcome several =
      run("compare --max-tokens 4 --decoders ar,seed,mcsd --json "
          "--prompt-file " +
          prompts);
  EXPECT_EQ(several.err.find("note: "), std::string::npos) << several.err;
  const json found = json::parse(several.out);
  EXPECT_TRUE(found["notices"].empty());
  EXPECT_EQ(found["summary"][1]["branches"], 2) << "three branches, but two prompts";
  EXPECT_FALSE(found["summary"][2].contains("branches"));
}

/// Five prompts, which SEED with two branches decodes in groups of two, two and one.
class CliRounds : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    file = folder + "/five.jsonl";
    std::ofstream five(file);
    for (const char* text : {"Anna has 11 stickers.", "Question: Tom has 3 pens.",
                             "def f(x):", "The", "USER: How many are 3 and 4? ASSISTANT:"})
      five << json{{"id", std::string("p") + std::to_string(++n_prompts)}, {"prompt", text}}.dump()
           << "\n";
  }
  json raced(const std::string& rest) const {
    const Outcome outcome = run("compare --json --ignore-eos --prompt-file " + file + " " + rest);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  /// Results of a lane in the order of the prompts.
  static std::vector<json> results_of(const json& document, const std::string& lane) {
    std::vector<json> results;
    for (const json& result : document["results"])
      if (result["lane"] == lane) results.push_back(result);
    return results;
  }
  static json summary_of(const json& document, const std::string& lane) {
    for (const json& one : document["summary"])
      if (one["lane"] == lane) return one;
    return {};
  }
  std::string file;
  int n_prompts = 0;
};

TEST_F(CliRounds, every_sequence_equals_ar_under_any_schedule) {
  const std::string race = "--decoders ar,mcsd,seed --max-tokens 20 --set branches=2 ";
  for (const char* schedule :
       {"", "--set overlap=always --temperature 0.8", "--set policy=shortest --set overlap=never",
        "--set batch_verify=2 --set policy=priority", "--set overlap=always --set target_threads=1",
        "--set overlap=always --set drafters=0", "--set drafters=2 --temperature 0.8",
        "--set k_config=2,1 --set batch_verify=2 --temperature 0.8 --top-p 0.9"}) {
    const bool has_tree = std::string(schedule).find("k_config") != std::string::npos;
    const json found = raced(race + (has_tree ? "" : "--set k_config=1,1,1 ") + schedule);
    const auto ar = results_of(found, "ar"), seed = results_of(found, "seed");
    ASSERT_EQ(ar.size(), 5u) << schedule;
    ASSERT_EQ(seed.size(), 5u) << schedule;
    int n_steps = 0;
    for (std::size_t i = 0; i < 5; i++) {
      EXPECT_EQ(seed[i]["id"], "p" + std::to_string(i + 1)) << schedule;
      EXPECT_EQ(seed[i]["tokens"], ar[i]["tokens"]) << schedule;
      EXPECT_EQ(seed[i]["identical_to_ar"], true) << schedule;
      n_steps += seed[i]["steps"].get<int>();
    }
    EXPECT_LT(n_steps, 5 * 20) << schedule;
    EXPECT_EQ(summary_of(found, "seed")["identical"], 5) << schedule;
    EXPECT_EQ(summary_of(found, "mcsd")["identical"], 5) << schedule;
  }
}

TEST_F(CliRounds, concurrent_sequences_are_charged_wall_time_once) {
  for (const char* repeats : {"1", "3"}) {
    const json found = raced("--decoders ar,seed --max-tokens 24 --set branches=2 --repeat " +
                             std::string(repeats));
    const auto ar = results_of(found, "ar"), seed = results_of(found, "seed");
    ASSERT_EQ(seed.size(), 5u);
    double charged = 0, plain = 0, tokens = 0;
    for (const auto& [first, n] : {std::pair{0u, 2u}, {2u, 2u}, {4u, 1u}}) {
      double plain_of_group = 0;
      for (std::size_t i = first; i < first + n; i++) {
        plain_of_group += ar[i]["decode_ms"].get<double>();
        tokens += static_cast<double>(seed[i]["tokens"].size());
        EXPECT_EQ(seed[i]["speedup"], seed[first]["speedup"]) << "of the whole batch";
      }
      plain += plain_of_group;
      charged += plain_of_group / seed[first]["speedup"].get<double>();
    }
    const json summary = summary_of(found, "seed");
    EXPECT_EQ(summary["branches"], 2);
    EXPECT_EQ(summary["n"], 5);
    EXPECT_NEAR(summary["decode_ms"].get<double>(), charged, 1e-6 * charged);
    EXPECT_NEAR(summary["speedup"].get<double>(), plain / charged, 1e-6);
    EXPECT_NEAR(summary["tokens_per_second"].get<double>(), tokens / charged * 1e3, 1e-3);
    EXPECT_DOUBLE_EQ(summary_of(found, "ar")["speedup"].get<double>(), 1);
  }
}

TEST_F(CliRounds, the_summary_names_concurrency_and_clock) {
  const Outcome reported = run("compare --decoders ar,seed --max-tokens 8 --prompt-file " + file);
  EXPECT_EQ(reported.code, 0) << reported.err;
  EXPECT_EQ(reported.err.find("one branch"), std::string::npos) << reported.err;
  for (const char* part : {"seed: 3 prompts at a time; ", "by elapsed time",
                           "seed: target busy: ", "5 prompts;", "5 of 5"})
    EXPECT_NE(reported.out.find(part), std::string::npos) << reported.out;
}

TEST_F(CliRounds, a_recording_has_each_sequence_and_the_round_lanes) {
  const std::string recording = folder + "/rounds.pdrun", trace = folder + "/rounds.json";
  raced("--decoders ar,seed --max-tokens 12 --set branches=2 --repeat 2 --record " + recording +
        " --trace " + trace);
  const json info = json::parse(run("trace info --json " + recording).out);
  ASSERT_EQ(info["runs"].size(), 20u) << "two lanes, five prompts, two repeats";
  for (const json& one : info["runs"]) {
    EXPECT_EQ(one["stop_reason"], "length") << one;
    if (one["decoder"] == "seed") {
      EXPECT_TRUE(one["speedup"].is_null()) << "compute time excludes waiting: " << one;
    }
  }
  EXPECT_EQ(run("trace validate " + recording).code, 0);
  EXPECT_EQ(run("trace validate " + trace).code, 0);
  std::map<std::string, int> lanes;
  const json traced = json::parse(read_file(trace));
  for (const json& event : traced["traceEvents"])
    if (event["name"] == "thread_name") lanes[event["args"]["name"]]++;
  for (const char* lane : {"target", "draft branch 0", "draft branch 1", "verify", "queue"})
    EXPECT_GT(lanes[lane], 0) << lane;
  EXPECT_FALSE(lanes.contains("draft branch 2"));
}

// The seventh prompt is in the second group. The program prints the results of the first group, and
// those of the second group before this prompt.
TEST_F(CliRounds, a_bad_prompt_fails_alone_after_finished_ones) {
  const std::string bad = folder + "/bad.jsonl";
  std::string too_long;
  for (int i = 0; i < 4000; i++) too_long += "Anna has ";
  std::ofstream(bad) << read_file(file) << json{{"id", "p6"}, {"prompt", "Tom"}}.dump() << "\n"
                     << json{{"id", "long"}, {"prompt", too_long}}.dump() << "\n"
                     << json{{"id", "p8"}, {"prompt", "Eve"}}.dump() << "\n";
  const Outcome failed =
      run("compare --json --decoders ar,seed --set branches=4 --max-tokens 6 "
          "--prompt-file " +
          bad);
  EXPECT_EQ(failed.code, 3) << failed.err;
  EXPECT_NE(failed.err.find("bad.jsonl:7: long: "), std::string::npos) << failed.err;
  const json found = json::parse(failed.out);
  EXPECT_EQ(summary_of(found, "ar")["n"], 6);
  EXPECT_EQ(summary_of(found, "seed")["n"], 6);
  EXPECT_EQ(summary_of(found, "seed")["identical"], 6);
}

TEST_F(CliRounds, lanes_of_two_models_have_separate_rounds) {
  const json found =
      raced("--decoders seed,seed@demo-draft --draft demo-draft --max-tokens 10 --set branches=3");
  ASSERT_EQ(found["summary"].size(), 2u);
  for (const json& lane : found["summary"]) {
    EXPECT_EQ(lane["identical"], 5) << lane;
    EXPECT_EQ(lane["branches"], 3) << lane;
  }
  EXPECT_EQ(found["summary"][1]["model"], "demo-draft");
}

TEST_F(CliRounds, rejection_compares_no_tokens_and_reports_lane_speedup) {
  const json found = raced(
      "--decoders ar,seed --max-tokens 10 --sampling rejection --temperature 0.8 --set branches=2");
  for (const json& result : results_of(found, "seed")) {
    EXPECT_TRUE(result["identical_to_ar"].is_null());
    EXPECT_TRUE(result["speedup"].is_null());
    EXPECT_EQ(result["lossless"], true);
  }
  EXPECT_TRUE(summary_of(found, "seed")["identical"].is_null());
  EXPECT_GT(summary_of(found, "seed")["speedup"], 0);
}

TEST_F(CliRounds, recorded_rows_are_timed_without_their_decoder) {
  const std::string race =
      "--decoders jacobi,speculative,seed --max-tokens 12 --set gamma=4 --set block=16 "
      "--set k_config=1,1,1 "
      "--rows-alone ";
  const auto plausible = [](const json& result) {
    return std::ranges::all_of(result["summary"], [](const json& lane) {
      const double share = lane["of_its_rows"].get<double>();
      return share > 0.3 && share < 3;
    });
  };
  json found = raced(race + "--repeat 2");
  // Another program may slow down one of the two measurements.
  for (int i = 0; i < 3 && !plausible(found); i++) found = raced(race + "--repeat 2");
  EXPECT_TRUE(plausible(found)) << found["summary"];
  for (const json& lane : found["summary"]) {
    EXPECT_EQ(lane["identical"], 5) << lane;
    EXPECT_GT(lane["rows_ms"].get<double>(), 0) << lane;
    EXPECT_EQ(lane["drafting_ms"].get<double>() > 0, lane["decoder"] != "jacobi") << lane;
  }
  // Rows of several sequences in one forward cannot be repeated one sequence at a time.
  const json together = raced(race + "--set branches=3 --set batch_verify=3");
  EXPECT_FALSE(summary_of(together, "seed").contains("of_its_rows"));
  EXPECT_TRUE(summary_of(together, "jacobi").contains("of_its_rows"));
  EXPECT_FALSE(summary_of(raced("--decoders jacobi --max-tokens 4"), "jacobi").contains("rows_ms"));
  const Outcome words = run("compare --ignore-eos --prompt-file " + file + " " + race);
  EXPECT_NE(words.out.find("  of its rows\n"), std::string::npos) << words.out;
}

// The second model has the vocabulary of the bundled target and gives other output.
TEST_F(CliRace, each_lane_is_compared_with_ar_of_its_own_model) {
  const std::string line =
      "compare --decoders ar,jacobi,jacobi@demo-draft --max-tokens 24 --ignore-eos --prompt-file " +
      prompts;
  const std::string recording = folder + "/two.pdrun";
  const Outcome raced = run(line + " --json --record " + recording);
  ASSERT_EQ(raced.code, 0) << raced.err;
  const json found = json::parse(raced.out);
  ASSERT_EQ(found["summary"].size(), 3u) << "plain decoding of the other model is not requested";
  const json& other = found["summary"][2];
  EXPECT_EQ(other["lane"], "jacobi@demo-draft");
  EXPECT_EQ(other["decoder"], "jacobi");
  EXPECT_EQ(other["model"], "demo-draft");
  EXPECT_EQ(found["summary"][0]["model"], "demo-target");
  EXPECT_EQ(found["summary"][0]["lane"], "ar");
  for (const json& lane : found["summary"]) {
    EXPECT_EQ(lane["identical"], 2) << lane;
    EXPECT_GT(lane["speedup"].get<double>(), 0) << lane;
  }
  ASSERT_EQ(found["results"].size(), 6u);
  EXPECT_EQ(found["results"][2]["lane"], "jacobi@demo-draft");
  EXPECT_EQ(found["results"][2]["model"], "demo-draft");
  EXPECT_NE(found["results"][2]["tokens"], found["results"][0]["tokens"])
      << "both models give equal output: nothing is tested";
  const json alone = json::parse(
      run("generate --model demo-draft --decoder ar --max-tokens 24 --ignore-eos --json --prompt "
          "'Anna has'")
          .out);
  EXPECT_EQ(found["results"][2]["tokens"], alone["tokens"]);
  const json info = json::parse(run("trace info --json " + recording).out);
  EXPECT_EQ(info["runs"].size(), 8u) << "four lanes, two prompts";
  const Outcome words = run(line);
  EXPECT_NE(words.out.find("AR of the same model"), std::string::npos) << words.out;
  EXPECT_NE(words.out.find("\njacobi@demo-draft "), std::string::npos) << words.out;
  EXPECT_EQ(words.out.find("\nar@demo-draft "), std::string::npos) << words.out;
}

TEST_F(CliRace, an_impossible_lane_is_refused_before_loading) {
  const auto refused = [&](const std::string& decoders, int code, const std::string& part) {
    const Outcome outcome = run("compare --prompt a --decoders " + decoders);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  refused("ar,jacobi@", 2, "DECODER@MODEL");
  refused("ar,jacobi@demo-clm", 3, "demo-clm");
  refused("jacobi,jacobi@demo-target", 2, "is given twice");
  refused("ar,mcsd@demo-draft", 2, "mcsd");
}

TEST_F(CliRace, lookahead_ranks_give_equal_tokens_and_steps) {
  const std::string common =
      " --prompt 'Anna has 3 apples.' --max-tokens 24 --threads 2 --json --set window=2 --set "
      "ngram_size=3 --set n_guesses=4";
  for (const char* sampling : {"", " --temperature 0.8"}) {
    const auto generated = [&](const std::string& more) {
      const Outcome outcome = run("generate --decoder lookahead" + common + sampling + more);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return json::parse(outcome.out);
    };
    const json one = generated(""), two = generated(" --set ranks=2"),
               three = generated(" --set ranks=3");
    for (const json* shared : {&two, &three}) {
      EXPECT_EQ((*shared)["tokens"], one["tokens"]);
      EXPECT_EQ((*shared)["steps"], one["steps"]);
      EXPECT_TRUE((*shared)["identical_to_ar"].get<bool>());
      EXPECT_EQ((*shared)["metrics"]["rows"], one["metrics"]["rows"]);
    }
    EXPECT_EQ(two["metrics"]["ranks"], 2);
    EXPECT_TRUE(three["metrics"].contains("rank_rows_2"));
    EXPECT_FALSE(one["metrics"].contains("ranks"));
  }
}

TEST_F(CliRace, processes_of_mpirun_give_the_tokens_and_steps_of_one) {
  NEEDS(std::system("mpirun --version >/dev/null 2>&1") == 0, "mpirun (openmpi-bin) is missing");
  std::ofstream(folder + "/prompts.jsonl")
      << R"({"id": "a", "prompt": "Anna has 3 apples."})" << '\n'
      << R"({"id": "b", "prompt": "Question: "})" << '\n';
  const std::string common = " generate --decoder lookahead --prompt-file " + folder +
                             "/prompts.jsonl --max-tokens 24 --threads 1 --json --set window=2 "
                             "--set ngram_size=3 --set n_guesses=4 ";
  const std::string mpirun =
      "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "
      "OMPI_MCA_plm_rsh_agent= mpirun --allow-run-as-root -n ";
  const Outcome probe = shell(mpirun + "2 true");
  NEEDS(probe.code == 0, "mpirun cannot start processes here: " + probe.err);
  for (const char* sampling : {"", "--temperature 0.8"}) {
    const Outcome alone = run(common + sampling);
    ASSERT_EQ(alone.code, 0) << alone.err;
    const json one = json::parse(alone.out);
    for (const char* n : {"2", "3"}) {
      const std::string record = folder + "/mpi.pdrun";
      const Outcome shared = shell(mpirun + n + " $DECOSCOPE" + common + sampling +
                                   " --set ranks=mpi --record " + record);
      ASSERT_EQ(shared.code, 0) << shared.err;
      const json all = json::parse(shared.out);  // of rank 0 alone
      ASSERT_EQ(all.size(), 2u);
      for (std::size_t i = 0; i < all.size(); i++) {
        EXPECT_EQ(all[i]["tokens"], one[i]["tokens"]);
        EXPECT_EQ(all[i]["steps"], one[i]["steps"]);
        EXPECT_TRUE(all[i]["identical_to_ar"].get<bool>());
        EXPECT_EQ(all[i]["metrics"]["ranks"], std::stoi(n));
        EXPECT_GT(all[i]["metrics"]["rank_rows_1"], 0);
        EXPECT_GT(all[i]["metrics"]["exchanged_numbers"], 0);
      }
      const std::string trace = folder + "/mpi.json";
      EXPECT_EQ(run("trace convert " + record + " " + trace).code, 0);
      const std::string events = read_file(trace);
      for (const char* name : {"\"name\":\"exchange\"", "\"exchanged_bytes\"", "\"rank_wait_ms\""})
        EXPECT_NE(events.find(name), std::string::npos) << name;
      std::filesystem::remove(record), std::filesystem::remove(trace);
    }
  }
  const Outcome other = run("compare --decoders ar,lookahead --set ranks=mpi --prompt a");
  EXPECT_EQ(other.code, 0) << other.err;  // one process
  const Outcome wrong = shell(mpirun +
                              "2 $DECOSCOPE compare --decoders ar,lookahead --set "
                              "ranks=mpi --prompt a");
  EXPECT_NE(wrong.code, 0);
  EXPECT_NE(wrong.err.find("only `decoscope generate`"), std::string::npos) << wrong.err;
}

TEST_F(CliRace, ranks_race_with_other_lanes_and_are_recorded) {
  const std::string record = folder + "/ranks.pdrun";
  const Outcome outcome = run(
      "compare --decoders ar,jacobi,lookahead --set ranks=2 --prompt 'Anna has' --max-tokens 16 "
      "--json --record " +
      record);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const json& lane : json::parse(outcome.out)["summary"]) EXPECT_EQ(lane["identical"], 1);
  EXPECT_EQ(run("trace convert " + record + " " + folder + "/ranks.json").code, 0);
  EXPECT_NE(read_file(folder + "/ranks.json").find("\"exchanged_bytes\""), std::string::npos);
  const Outcome valid = run("trace validate " + folder + "/ranks.json");
  EXPECT_EQ(valid.code, 0) << valid.out << valid.err;
}

TEST_F(CliRace, ranks_with_differing_output_are_refused_before_loading) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome =
        run("generate --decoder lookahead --model /nonexistent --prompt a " + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  refused("--set ranks=2 --sampling rejection --temperature 1", "ranks=2");
  refused("--set ranks=17", "between 1 and 16");
  refused("--set rank=2", "did you mean ranks?");
}

TEST_F(CliRace, rejection_is_not_compared_and_reports_it) {
  const std::string sampling = " --sampling rejection --temperature 0.8 --max-tokens 8 ";
  const Outcome checked =
      run("generate --decoder prompt-lookup --prompt 'Anna has' --check" + sampling);
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.err.find("prompt-lookup with --sampling rejection is not compared"),
            std::string::npos)
      << checked.err;
  EXPECT_NE(checked.err.find("same distribution"), std::string::npos) << checked.err;
  const Outcome raced = run("compare --decoders ar,prompt-lookup --prompt 'Anna has'" + sampling);
  EXPECT_NE(raced.out.find("not compared with AR: --sampling rejection"), std::string::npos)
      << raced.out;
  for (const char* coupled : {"generate --decoder prompt-lookup --prompt a --max-tokens 4 --check",
                              "compare --decoders ar,prompt-lookup --prompt a --max-tokens 4"}) {
    const Outcome outcome = run(coupled);
    EXPECT_EQ((outcome.out + outcome.err).find("rejection"), std::string::npos) << outcome.err;
  }
}

TEST_F(CliRace, bench_step_shows_no_share_above_the_roofline) {
  const Outcome outcome = run("bench step --rows 1 --context 16 --repeat 5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::smatch row;
  ASSERT_TRUE(std::regex_search(outcome.out, row, std::regex(R"(\n1 .* ([>0-9.]+)\n)")))
      << outcome.out;
  const bool above = row[1] == ">1";
  EXPECT_EQ(outcome.out.find("is faster than\nreading") != std::string::npos, above) << outcome.out;
  if (!above) {
    EXPECT_LE(std::stod(row[1]), 1.05) << outcome.out;
  }
}

TEST_F(CliRace, approximate_tokens_are_separate_and_exact_ones_checked) {
  const std::string command =
      "generate --decoder fastcot --set stop=bound --set bound=7 --prompt 'Q: What does a piano "
      "have? Answer Choices: sound (A), strings (B)\nA:'";
  const Outcome words = run(command + " --check"), document = run(command + " --json");
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_NE(words.err.find("identical to AR"), std::string::npos) << words.err;
  const auto found = nlohmann::json::parse(document.out);
  EXPECT_EQ(found.at("stop_reason"), "bound");
  EXPECT_EQ(found.at("steps"), 7);
  EXPECT_EQ(found.at("identical_to_ar"), true);
  EXPECT_TRUE(found.at("speedup").is_null());  // the output is only a part of ar's
  EXPECT_FALSE(found.at("approximate_tokens").empty());
  const std::string text = found.at("text"), guessed = found.at("approximate");
  EXPECT_EQ(words.out, text + " ~" + guessed + "~\n");
  // A recording has them too, and so has its CSV table.
  const std::string recording = folder + "/bound.pdrun";
  ASSERT_EQ(run(command + " --record '" + recording + "'").code, 0);
  ASSERT_EQ(run("trace convert '" + recording + "' '" + folder + "/bound.csv'").code, 0);
  std::ifstream table(folder + "/bound-tokens.csv");
  std::size_t n_marked = 0;
  for (std::string line; std::getline(table, line);)
    n_marked += line.find(",approximate,") != std::string::npos;
  EXPECT_EQ(n_marked, found.at("approximate_tokens").size());
}

TEST_F(CliRace, reason_prints_answers_and_their_cost) {
  const Outcome outcome = run("reason cot --task kb --count 3 --batch 3 --set window=10 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(found.at("n"), 3);
  EXPECT_EQ(found.at("data"), "generated");
  EXPECT_EQ(found.at("items").size(), 3U);
  EXPECT_GT(found.at("tokens"), 30);
  EXPECT_GT(found.at("metrics").at("window_slots"), 100);
  int n_correct = 0;
  for (const auto& item : found.at("items")) n_correct += item.at("correct").get<bool>();
  EXPECT_EQ(found.at("n_correct"), n_correct);
  const auto& counts = found.at("metrics");
  const auto share = [&](const char* name) {
    const double of_all = counts.at(name).get<double>() / counts.at("window_slots").get<double>();
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * of_all);
    return std::string(text);
  };
  EXPECT_NE(share("guesses_in_text"), share("text_in_guesses"))
      << "the two shares cannot be distinguished";
  const std::string words = run("reason cot --task kb --count 3 --batch 3 --set window=10").out;
  EXPECT_NE(words.find("in the window's text: " + share("guesses_in_text")), std::string::npos);
  EXPECT_NE(words.find("guessed anywhere: " + share("text_in_guesses")), std::string::npos);
  // Each question is above the output, its right answer below.
  for (const auto& item : found.at("items")) {
    const std::string question = item.at("question"), expected = item.at("expected");
    const std::string verdict = item.at("correct") ? "right" : "wrong";
    const std::size_t asked = words.find(question.substr(0, question.find('\n')));
    EXPECT_NE(asked, std::string::npos) << question << "\n" << words;
    EXPECT_NE(words.find("\n  " + verdict + ", expected: " + expected + "\n", asked),
              std::string::npos)
        << words;
  }
  EXPECT_NE(words.find(" approximate ones used\n"), std::string::npos) << words;
  const std::string plain = run("reason cot --task kb --count 1 --decoder ar --max-tokens 8").out;
  EXPECT_NE(plain.find(" steps, "), std::string::npos) << plain;
  EXPECT_EQ(plain.find("approximate"), std::string::npos) << plain;
  EXPECT_EQ(run("reason cot --task kbb").code, 2);
  EXPECT_EQ(run("reason cot --data nosuch.jsonl").code, 3);
  EXPECT_EQ(run("reason cot --decoder ar --find-bound --count 1").code, 2);
  EXPECT_EQ(run("reason tot --decoder fastcot --set stop=bound --count 1").code, 2);
}

TEST_F(CliRace, a_bound_is_found_on_questions_drawn_by_seed) {
  const std::string asked = folder + "/asked.jsonl";
  std::ofstream(asked) << run("data generate kb --count 40").out;
  const std::string ask =
      "reason cot --find-bound --tolerance 100 --max-tokens 8 --count 3 --json --data " + asked;
  const auto drawn = nlohmann::json::parse(run(ask + " --sample-seed 7").out);
  EXPECT_EQ(drawn.at("n"), 3);
  EXPECT_EQ(drawn.at("sample_seed"), 7);
  // Only records that are questions for a chain of thought count.
  EXPECT_GT(drawn.at("drawn_from"), 3);
  EXPECT_LE(drawn.at("drawn_from"), 40);
  EXPECT_EQ(drawn.at("bound"), 1);
  std::vector<nlohmann::json> tried;
  for (const auto& trial : drawn.at("trials")) tried.push_back(trial.at("bound"));
  EXPECT_EQ(tried, (std::vector<nlohmann::json>{nullptr, 2, 1}));
  const auto generated = nlohmann::json::parse(
      run("reason cot --find-bound --tolerance 100 --max-tokens 4 --count 1 --json").out);
  EXPECT_TRUE(generated.at("drawn_from").is_null());
  EXPECT_TRUE(generated.at("sample_seed").is_null());
}

}  // namespace
