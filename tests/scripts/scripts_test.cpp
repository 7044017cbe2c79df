// The scripts that measure, run with a program of known figures (small_program.py): what is asked,
// that nothing is asked twice, and that a run which pays for its rows alone shows as 1.00.
#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/measuring_scripts.h"

namespace {

namespace fs = std::filesystem;
using test::cell;
using test::MeasuringScripts;
using test::rows_of;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;

TEST_F(MeasuringScripts, a_race_of_reasoning_shows_what_its_targets_ask_for) {
  const std::string text = printed("", "reason_race.sh");
  for (const char* name :
       {"ar", "speculative", "speculative-3-texts", "speculative-6-texts", "speculative-slow-draft",
        "mcsd", "seed-1", "seed-3-together", "window-1", "window-5", "window-3-bound-24"})
    EXPECT_EQ(cell(text, name, "of its rows"), "1.00") << name << "\n" << text;
  // Both models work all the time: the bound, and twice what rows and drafts cost in turn.
  EXPECT_EQ(cell(text, "seed-3", "of its rows"), "2.00");
  EXPECT_EQ(cell(text, "seed-3", "against speculative"), "2.00x");
  for (const char* name :
       {"seed-3", "seed-3-own-core", "seed-3-slow-draft", "seed-3-slow-draft-own-core"}) {
    EXPECT_EQ(cell(text, name, "against own base"), "2.00x") << name;
    EXPECT_EQ(cell(text, name, "bound: paper"), "2.00") << name;
    EXPECT_EQ(cell(text, name, "of it"), "1.00") << name;
    EXPECT_EQ(cell(text, name, "bound: here"), "2.00") << name;
    EXPECT_EQ(cell(text, name, "of it here"), "1.00") << name;
  }
  // Three texts in a verification: 7.1 ms instead of 18.9, and nothing at the same time.
  EXPECT_EQ(cell(text, "seed-3-together", "against speculative"), "1.45x");
  EXPECT_EQ(cell(text, "seed-3-together", "against own base"), "1.00x");
  EXPECT_EQ(cell(text, "seed-6-together", "against own base"), "1.00x");
  EXPECT_EQ(cell(text, "seed-3-mcsd", "against own base"), "2.00x");
  EXPECT_EQ(cell(text, "speculative", "against own base"), "-");
  EXPECT_THAT(text, HasSubstr("\nSlower than its own base: none\n"));
  EXPECT_EQ(cell(text, "seed-1", "bound: paper"), "1.00");
  EXPECT_EQ(cell(text, "4", "branch_cache_bytes"), "4,000,000");
  EXPECT_EQ(cell(text, "4", "weight_bytes"), cell(text, "1", "weight_bytes"));
  EXPECT_EQ(cell(text, "window-3-bound-24", "right"), "495 of 500");
  EXPECT_EQ(cell(text, "window-3-bound-24", "points against ar"), "-1.0");
  // 40 steps of 6 ms and an answer of 8; 24 of 6.3, 10 ms to read what asks for the answer, and 8.
  EXPECT_EQ(cell(text, "window-3-bound-24", "against ar"), "1.38x");

  const auto calls = asked();
  EXPECT_THAT(calls, Contains("reason cot --task kb --json --split dev --count 400 --decoder "
                              "fastcot --set window=3 --find-bound --tolerance 1"));
  const std::string bound = " --decoder fastcot --set window=3 --set stop=bound --set bound=24";
  const std::string cot = "reason cot --task kb --json --split test --count ";
  EXPECT_THAT(calls, Contains(cot + "500" + bound));
  EXPECT_THAT(calls, Contains(cot + "15 --scale 4x2" + bound));
  // No bound was found for the other window.
  EXPECT_THAT(calls, Not(Contains(HasSubstr("window=5 --set stop=bound"))));
}

TEST_F(MeasuringScripts, windows_of_the_consistency_model_are_held_against_its_own_plain_decoding) {
  const std::string text = printed("HAS=demo-cllm", "reason_race.sh");
  for (const char* name : {"cllm-ar", "cllm-window-5", "cllm-window-9"})
    EXPECT_EQ(cell(text, name, "of its rows"), "1.00") << name << "\n" << text;
  EXPECT_EQ(cell(text, "cllm-window-5", "points against ar"), "+0.0");
  const auto calls = asked();
  const std::string cot = "reason cot --task kb --json --split test --count 15 --scale 4x2 ";
  EXPECT_THAT(calls, Contains(cot + "--decoder ar --model demo-cllm"));
  EXPECT_THAT(calls, Contains(cot + "--decoder fastcot --set window=9 --model demo-cllm"));
  EXPECT_THAT(calls, Contains("reason cot --task kb --json --split dev --count 400 --decoder "
                              "fastcot --set window=9 --model demo-cllm --find-bound "
                              "--tolerance 1"));
}

/// A step timed beside another model, as reason_race.sh keeps it.
void time_beside(const std::string& file, double one_row, double four_rows) {
  std::ofstream(file) << R"({"rows": [{"rows": 1, "ms": )" << one_row << R"(}, {"rows": 4, "ms": )"
                      << four_rows << R"(}, {"rows": 24, "ms": 12}]})";
}

TEST_F(MeasuringScripts, the_bound_here_counts_what_the_models_cost_each_other_alone) {
  const auto measured = [&](const char* name, double one_row, double four_rows) {
    time_beside(out() + "/" + name + ".json", one_row, four_rows);
  };
  fs::create_directory(out());
  // All threads: both a quarter slower beside each other. A core each: the target takes half as
  // long again, and what works beside it costs nothing.
  measured("target-shared-beside-draft", 7.5, 7.875);
  measured("draft-one-beside-shared", 2.625, 2.625);
  measured("target-own", 9, 9.45);
  measured("target-own-beside-draft", 9, 9.45);
  const std::string text = printed("", "reason_race.sh");
  // 6.3 ms to draft and 6.3 to verify in turn, in 6.3 x 1.25 at the same time.
  EXPECT_EQ(cell(text, "seed-3", "bound: here"), "1.60");
  EXPECT_EQ(cell(text, "seed-3", "of it here"), "1.25");
  EXPECT_EQ(cell(text, "seed-3", "bound: paper"), "2.00");
  EXPECT_EQ(cell(text, "seed-3-slow-draft", "bound: here"), "2.00");
  // A verification of 9.45 ms hides the drafts.
  EXPECT_EQ(cell(text, "seed-3-own-core", "bound: here"), "1.33");
  EXPECT_EQ(cell(text, "seed-3-slow-draft-own-core", "bound: here"), "1.33");
}

TEST_F(MeasuringScripts, a_schedule_that_never_takes_turns_can_have_a_bound_below_one) {
  fs::create_directory(out());
  // Both three times as slow beside each other.
  time_beside(out() + "/target-shared-beside-draft.json", 18, 18.9);
  time_beside(out() + "/draft-one-beside-shared.json", 6.3, 6.3);
  const std::string text = printed("DECOSCOPE_RR_CHAINS=", "reason_race.sh");
  EXPECT_EQ(cell(text, "seed-3", "bound: here"), "1.00");
  // 6.3 ms to draft and 6.3 to verify in turn, in 18.9 at the same time.
  EXPECT_EQ(cell(text, "seed-3-always", "bound: here"), "0.67");
  EXPECT_EQ(cell(text, "seed-3-always", "bound: paper"), "2.00");
  const auto calls = asked();
  const std::string slow = " --draft " + out() + "/slow-draft-16x1";
  const std::string always = " --set overlap=always" + slow;
  EXPECT_THAT(calls, Contains(HasSubstr("--decoder seed --set branches=3" + always)));
  EXPECT_THAT(calls, Contains(HasSubstr("--set branches=3 --set target_threads=1" + always)));
  EXPECT_THAT(calls, Not(Contains(HasSubstr("reason cot")))) << "FastCoT was left out";
}

TEST_F(MeasuringScripts, a_race_of_reasoning_goes_on_where_it_was_stopped) {
  const std::string first = printed("", "reason_race.sh");
  asked();
  fs::remove(out() + "/tree-seed-3.1.json");
  EXPECT_EQ(printed("", "reason_race.sh"), first);
  const auto calls = asked();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_THAT(calls[0], HasSubstr("reason tot --task arith"));
  EXPECT_THAT(calls[0], HasSubstr("--decoder seed --set branches=3"));
  EXPECT_EQ(calls[1], "model info demo-cllm");
}

TEST_F(MeasuringScripts, what_fails_or_is_stopped_half_way_leaves_nothing_and_ends_the_script) {
  // Within $(...), where bash would go on.
  EXPECT_EQ(code_of("FAILS=--find-bound", "reason_race.sh"), 6);
  EXPECT_THAT(told(), HasSubstr("bound-window-3.json was not made (status 6)"));
  EXPECT_FALSE(fs::exists(out() + "/bound-window-3.json"));
  EXPECT_THAT(parts(), SizeIs(0));
  // Beside what works meanwhile, which ends too; and at any other place.
  fs::remove(out() + "/target-own-beside-draft.json");
  EXPECT_EQ(code_of("FAILS='--json --threads 1'", "reason_race.sh"), 6)
      << "what is measured beside it";
  EXPECT_FALSE(fs::exists(out() + "/target-own-beside-draft.json"));
  fs::remove(out() + "/tree-seed-3.1.json");
  EXPECT_EQ(code_of("FAILS=branches=3", "reason_race.sh"), 6);
  EXPECT_THAT(parts(), SizeIs(0));
  // An empty file is no document.
  std::ofstream(out() + "/tree-mcsd.1.json").close();
  EXPECT_EQ(cell(printed("", "reason_race.sh"), "mcsd", "same trees"), "yes");
}

TEST_F(MeasuringScripts, another_tree_or_text_than_plain_decodings_fails_behind_the_tables) {
  EXPECT_EQ(code_of("DIFFERS=branches=3", "reason_race.sh"), 1);
  EXPECT_THAT(told(), HasSubstr("not what plain decoding writes: seed-3, seed-3-own-core"));
  fs::remove_all(out());
  EXPECT_EQ(code_of("DIFFERS='--scale 4x2 --decoder fastcot'", "reason_race.sh"), 1);
  EXPECT_THAT(told(), HasSubstr("not what plain decoding writes: window-1, window-2"));
}

TEST_F(MeasuringScripts, every_set_is_asked_by_plain_decoding_and_by_what_is_to_write_the_same) {
  const std::string twins = printed("DECOSCOPE_DATA=", "reason_sets.sh");
  EXPECT_THAT(rows_of(twins), SizeIs(1 + 3 * 2 + 2 * 3));
  EXPECT_THAT(told(), HasSubstr("tot creative_writing is passed over: DECOSCOPE_DATA names no"));
  EXPECT_THAT(asked(), Contains("reason cot --task arith --split test --count 1 --decoder fastcot "
                                "--json"));
  const std::string all = printed("DECOSCOPE_DATA=/sets", "reason_sets.sh");
  EXPECT_THAT(rows_of(all), SizeIs(1 + 6 * 2 + 5 * 3));
  EXPECT_THAT(asked(), SizeIs(3 * 2 + 3 * 3)) << "the twins were there";
  fs::remove_all(out());
  EXPECT_EQ(code_of("DIFFERS='--task gsm8k --split test --count 1 --decoder seed' DECOSCOPE_DATA=x",
                    "reason_sets.sh"),
            1);
  EXPECT_THAT(told(), HasSubstr("what plain decoding writes: tot gsm8k seed"));
  fs::remove_all(out());
  EXPECT_EQ(code_of("LOSES='--task blocks' DECOSCOPE_DATA=", "reason_sets.sh"), 1);
}

const std::string kAllModels = "HAS='demo-cllm demo-medusa demo-chimera' ";

TEST_F(MeasuringScripts, every_task_is_held_against_plain_decoding) {
  const std::string two = "DECOSCOPE_EXACT_COUNT=2 DECOSCOPE_EXACT_SCALED=0 ";
  const std::string text = printed(two, "exactness.sh");
  EXPECT_THAT(rows_of(text), SizeIs(1 + 8 * 4));
  EXPECT_EQ(cell(text, "plain", "seed"), "2 of 2");
  EXPECT_EQ(cell(text, "plain", "jacobi refill=slide"), "2 of 2");
  EXPECT_EQ(cell(text, "plain", "medusa"), "none");
  for (const char* what : {"demo-medusa is not there: medusa is passed over",
                           "demo-cllm is not there: its lanes are passed over"})
    EXPECT_THAT(told(), HasSubstr(what));
  fs::remove(out() + "/kb-greedy-bf16-seed.json");
  EXPECT_EQ(code_of(two + "LOSES=generate", "exactness.sh"), 1);
  EXPECT_THAT(told(), HasSubstr("outputs that were not made: " + out() +
                                "/kb-greedy-bf16 at 1x1: seed 1 of 2"));
  // Texts without a prompt go on from their beginning.
  std::ifstream file(out() + "/plain.jsonl");
  const std::string prompts(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(prompts, HasSubstr(R"("prompt": "Ravens are birds. They are black and they")"));
}

TEST_F(MeasuringScripts, heads_and_a_consistency_model_are_held_against_it_where_they_are_there) {
  const std::string some = kAllModels + "DECOSCOPE_EXACT_COUNT=2 DECOSCOPE_EXACT_TASKS=arith ";
  const std::string text = printed(some + "DECOSCOPE_EXACT_SCALED=1", "exactness.sh");
  EXPECT_THAT(rows_of(text), SizeIs(1 + 4 * 2));
  for (const char* lane :
       {"medusa", "chimera", "ar@demo-cllm", "jacobi@demo-cllm", "lookahead@demo-cllm",
        "mcsd k_config=auto", "chimera drafting=branch", "jacobi@demo-cllm refill=slide"})
    EXPECT_EQ(cell(text, "arith", lane), "2 of 2") << lane;
  EXPECT_EQ(rows_of(text)[2][3], "4x2");
  EXPECT_EQ(rows_of(text)[2][4], "1 of 1");
  const auto calls = asked();
  EXPECT_THAT(calls,
              Contains(HasSubstr("compare --decoders jacobi,mcsd,chimera --set refill=slide --set "
                                 "k_config=auto --set drafting=branch --prompt-file")));
  EXPECT_THAT(calls, Contains(HasSubstr("compare --decoders jacobi@demo-cllm --set refill=slide "
                                        "--prompt-file")));
  // What plain decoding writes at that scale, and other tokens than unscaled.
  fs::remove(out() + "/arith-coupled-f32-4x2.json");
  EXPECT_EQ(code_of(some + "DECOSCOPE_EXACT_SCALED=1 DIFFERS='--scale 4x2'", "exactness.sh"), 1);
  EXPECT_THAT(told(), HasSubstr("not what plain decoding writes, unscaled: " + out() +
                                "/arith-coupled-f32 at 4x2: ar, "));
}

TEST_F(MeasuringScripts, a_device_is_held_against_its_own_plain_decoding_in_a_folder_of_its_own) {
  const std::string some =
      "DECOSCOPE_EXACT_COUNT=1 DECOSCOPE_EXACT_SCALED=0 DECOSCOPE_EXACT_TASKS=arith ";
  printed(some, "exactness.sh");
  EXPECT_THAT(asked(), Not(Contains(HasSubstr("--device"))));
  EXPECT_EQ(code_of(some + "DECOSCOPE_EXACT_DEVICE=cuda:0", "exactness.sh"), 2);
  EXPECT_THAT(told(), HasSubstr("found results of device auto, expected those of cuda:0"));
  fs::remove_all(out());
  asked();
  const std::string text = printed(some + "DECOSCOPE_EXACT_DEVICE=cuda:0", "exactness.sh");
  EXPECT_EQ(cell(text, "arith", "seed"), "1 of 1");
  int n_runs = 0;
  for (const std::string& call : asked()) {
    if (call.find("--prompt-file") == std::string::npos) continue;
    EXPECT_THAT(call, HasSubstr(" --device cuda:0")) << call;
    n_runs++;
  }
  EXPECT_EQ(n_runs, 2 * 2 * 3) << "dtypes, samplings; lanes, variants and SEED's";
  EXPECT_EQ(code_of(some, "exactness.sh"), 2);
  EXPECT_THAT(told(), HasSubstr("found results of device cuda:0, expected those of auto"));
}

TEST_F(MeasuringScripts, shares_of_the_settings_held_against_plain_decoding_are_all_of_them) {
  const std::string two =
      "DECOSCOPE_EXACT_COUNT=1 DECOSCOPE_EXACT_SCALED=0 DECOSCOPE_EXACT_TASKS='arith kb' ";
  const auto rows = rows_of(printed(two, "exactness.sh"));
  std::vector<std::vector<std::string>> of_shares;
  for (const char* share : {"1/3", "2/3", "3/3"}) {
    const std::string text = printed(two + "DECOSCOPE_EXACT_SHARE=" + share, "exactness.sh");
    for (const auto& row : rows_of(text))
      if (row[0] != "task") of_shares.push_back(row);
  }
  EXPECT_THAT(of_shares, UnorderedElementsAreArray(rows.begin() + 1, rows.end()));
  for (const char* share : {"0/3", "4/3", "1", "two"}) {
    EXPECT_EQ(code_of(two + "DECOSCOPE_EXACT_SHARE=" + share, "exactness.sh"), 2) << share;
    EXPECT_THAT(told(), HasSubstr("DECOSCOPE_EXACT_SHARE: found"));
  }
  EXPECT_EQ(code_of(two + "DECOSCOPE_EXACT_SHARE=9/16", "exactness.sh"), 2);
  EXPECT_THAT(told(), HasSubstr("share 9/16 of 8 settings has none of them"));
}

// As gpu_check.sh runs them with --together.
TEST_F(MeasuringScripts, shares_at_once_in_one_folder_leave_each_other_their_prompts) {
  const auto share = [&](int i, const std::string& waits) {
    return "WAITS='" + waits +
           "' DECOSCOPE_EXACT_COUNT=3 DECOSCOPE_EXACT_SCALED=1 DECOSCOPE_EXACT_TASKS=arith "
           "DECOSCOPE_EXACT_DEVICE=cuda:0 DECOSCOPE_EXACT_SHARE=" +
           std::to_string(i) + "/4 ASKED=" + log() + "." + std::to_string(i) +
           " DECOSCOPE_PROGRAM=" DECOSCOPE_SOURCE_DIR
           "/tests/scripts/small_program.py " DECOSCOPE_SOURCE_DIR "/scripts/exactness.sh " +
           out() + " >" + log() + ".told." + std::to_string(i) + " 2>&1";
  };
  const auto code = [](const std::string& first, const std::string& between,
                       const std::string& second) {
    return WEXITSTATUS(std::system(
        ("(" + first + ") & " + between + second + "; there=$?; wait $! && exit $there").c_str()));
  };
  const auto told = [&] { return read(log() + ".told.1") + read(log() + ".told.2"); };
  // Both make the prompts.
  EXPECT_EQ(code(share(1, "data generate"), "", share(2, "data generate")), 0) << told();
  // One makes them anew while the other is about to read them.
  fs::remove_all(out());
  fs::remove(log() + ".1");
  EXPECT_EQ(
      code(share(1, "compare"), "until grep -qs compare " + log() + ".1; do sleep 0.02; done; ",
           share(2, "data generate")),
      0)
      << told();
  for (const auto& entry : fs::directory_iterator(out())) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name.ends_with(".json") || name.ends_with(".jsonl") || name == "device") << name;
  }
}

TEST_F(MeasuringScripts, prompts_that_cannot_be_made_end_the_script_and_leave_those_of_before) {
  const std::string one =
      "DECOSCOPE_EXACT_COUNT=2 DECOSCOPE_EXACT_SCALED=1 DECOSCOPE_EXACT_TASKS=arith ";
  printed(one, "exactness.sh");
  const std::string prompts = read(out() + "/arith.jsonl");
  EXPECT_NE(code_of(one + "FAILS='data generate'", "exactness.sh"), 0);
  EXPECT_EQ(read(out() + "/arith.jsonl"), prompts);
}

TEST_F(MeasuringScripts, shares_that_end_at_once_are_all_in_their_document) {
  const std::string document = log() + ".json";
  const std::string one =
      "DECOSCOPE_EXACT_COUNT=1 DECOSCOPE_EXACT_SCALED=0 DECOSCOPE_EXACT_TASKS=arith "
      "DECOSCOPE_EXACT_SHARE=1/4 DECOSCOPE_EXACT_JSON=" +
      document;
  printed(one, "exactness.sh");
  // Another's turn, which begins before this one's.
  const std::string other = "flock " + document + ".lock -c 'touch " + log() +
                            ".begun; sleep 2; echo \"{\\\"settings\\\": {\\\"other\\\": {}}}\" > " +
                            document + "' & until [ -e " + log() + ".begun ]; do sleep 0.01; done";
  ASSERT_EQ(std::system(other.c_str()), 0);
  const std::string table = "DECOSCOPE_EXACT_JSON=" + document +
                            " python3 " DECOSCOPE_SOURCE_DIR "/scripts/exactness_table.py " +
                            out() + " 1 0 ar jacobi arith-greedy-bf16 > " + log() + ".table";
  EXPECT_EQ(std::system(table.c_str()), 0);
  EXPECT_THAT(read(document), AllOf(HasSubstr("other"), HasSubstr("arith-greedy-bf16")));
}

TEST_F(MeasuringScripts, outputs_are_held_against_plain_decoding_in_the_dtypes_asked_for) {
  const std::string one =
      "DECOSCOPE_EXACT_COUNT=1 DECOSCOPE_EXACT_SCALED=0 DECOSCOPE_EXACT_TASKS=arith ";
  const auto rows = rows_of(printed(one + "DECOSCOPE_EXACT_DTYPES='f32 f16'", "exactness.sh"));
  ASSERT_THAT(rows, SizeIs(1 + 2 * 2));
  EXPECT_EQ(rows[1][2], "f32");
  EXPECT_EQ(rows[2][2], "f16");
  const auto calls = asked();
  EXPECT_THAT(calls, Contains(HasSubstr("--dtype f16 ")));
  EXPECT_THAT(calls, Not(Contains(HasSubstr("--dtype bf16 "))));
  EXPECT_EQ(code_of(one + "DECOSCOPE_EXACT_DTYPES='f32 f64'", "exactness.sh"), 2);
  EXPECT_THAT(told(),
              HasSubstr("DECOSCOPE_EXACT_DTYPES: found \"f64\", expected bf16, f16 or f32"));
}

TEST_F(MeasuringScripts, every_decoder_is_measured_on_tasks_and_sets_at_both_scales) {
  const std::string settings = kAllModels +
                               "DECOSCOPE_DATA=/sets DECOSCOPE_ALL_TASKS='arith plain' "
                               "DECOSCOPE_ALL_SETS=humaneval ";
  const std::string text = printed(settings, "all_decoders.sh");
  EXPECT_THAT(told(), HasSubstr("20 prompts at 4x2, 20 runs each, where a step takes 6 ms"));
  EXPECT_THAT(text, HasSubstr("\nFurther at 4x2 than a tenth from what the rows cost: none\n"));
  int n_lanes = 0;
  for (const auto& cells : rows_of(text)) {
    if (cells.size() != 13 || cells[0] == "task") continue;
    n_lanes++;
    EXPECT_EQ(cells[6], "1.00") << cells[0] << " " << cells[1];
    EXPECT_EQ(cells[10], "1.00") << cells[0] << " " << cells[1];
    EXPECT_EQ(cells[11], "98% of 50") << "all answers but one";
    EXPECT_EQ(cells[12], cells[0] == "humaneval" ? "14 of 14" : "44 of 44")
        << "of a task three races at 4x2";
  }
  EXPECT_EQ(n_lanes, 3 * 18);
  EXPECT_EQ(cell(text, "medusa", "speed-up"), "1.50x") << "what its heads take is paid";
  EXPECT_EQ(cell(text, "lookahead", "speed-up"), "1.82x");
  EXPECT_EQ(cell(text, "CLLM", "reached"), "no");
  EXPECT_EQ(cell(text, "CLLM", "lane"), "jacobi@demo-cllm sliding, sized");
  EXPECT_EQ(cell(text, "CLLM", "over"), "arith");
  EXPECT_EQ(cell(text, "Prompt lookup", "reached"), "yes");
  EXPECT_THAT(rows_of(text), Contains(std::vector<std::string>{"4x2", "12", "7.1", "1.18"}));

  const char* ours = "ours, tokens a step and speed-up";
  EXPECT_EQ(cell(text, "Medusa", ours),
            "medusa: 2.00 a step, 1.50x on tasks and 2.00 a step, 1.50x on open sets; medusa's "
            "first level right in 60% of steps");
  EXPECT_THAT(cell(text, "CLLM", ours), HasSubstr("; fast-forward tokens 4.0 times the target's"));
  EXPECT_THAT(cell(text, "CLLM", "the paper states"), HasSubstr("2.4x to 3.4x"));

  const auto calls = asked();
  const std::string prompts = " --prompt-file " + out() + "/arith-4x2.jsonl --scale 4x2";
  const std::string heads = out() + "/heads-4x2/demo-";
  EXPECT_THAT(calls,
              Contains(HasSubstr("seed,medusa,chimera,ar@demo-cllm,jacobi@demo-cllm --heads " +
                                 heads + "medusa," + heads + "chimera" + prompts)));
  EXPECT_THAT(calls, Contains(HasSubstr("lookahead@demo-cllm --heads " + heads +
                                        "chimera --set refill=slide --set k_config=auto --set "
                                        "drafting=branch --set block=16 --set n_tokens=8" +
                                        prompts)));
  EXPECT_THAT(calls, Contains("model tree demo-medusa --rows auto --scale 4x2 --out " + heads +
                              "medusa/tree.json --json"));
  EXPECT_TRUE(fs::exists(heads + "medusa/small_program.py")) << "the files of the bundled heads";
  EXPECT_THAT(calls, Contains("data generate humaneval --split test --data /sets --count 100000"));
  std::ifstream file(out() + "/humaneval.jsonl");
  const std::string asked_of_it(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(asked_of_it, Not(HasSubstr("humaneval/0/0\""))) << "its prompt is too long";

  fs::remove(out() + "/plain-1x1-sized.1.json");
  EXPECT_EQ(printed(settings, "all_decoders.sh"), text);
  std::vector<std::string> again;
  for (const std::string& call : asked())
    if (!call.starts_with("data generate") && !call.starts_with("model info"))
      again.push_back(call);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_THAT(again[0], HasSubstr("compare --decoders ar,jacobi,prompt-lookup,mcsd,chimera"));
  EXPECT_THAT(again[0], HasSubstr(" --rows-alone --json"));
}

TEST_F(MeasuringScripts, windows_are_as_wide_as_is_cheap_here) {
  const std::string settings =
      "HAS=demo-cllm DECOSCOPE_DATA= DECOSCOPE_ALL_TASKS=arith DECOSCOPE_ALL_REPEATS=1 ";
  fs::create_directory(out());
  const auto measured = [&](const std::string& name, const std::string& rows) {
    std::ofstream(out() + "/" + name + ".json") << R"({"rows": [)" << rows << "]}";
  };
  // The mean of the two: 10 rows cost 1.25 of one, 12 more.
  for (const char* turn : {"1", "2"})
    measured(
        std::string("steps-4x2-") + turn,
        std::string(R"({"rows": 1, "ms": 8}, {"rows": 6, "ms": 8.5}, {"rows": 8, "ms": 9}, )") +
            R"({"rows": 10, "ms": )" + (*turn == '1' ? "9.5" : "10.5") +
            R"(}, {"rows": 12, "ms": 10.5}, {"rows": 16, "ms": 13})");
  EXPECT_THAT(printed(settings, "all_decoders.sh"),
              HasSubstr("\nsized at 4x2: a block of 10, 5 tokens by prompt lookup\n"));
  EXPECT_THAT(asked(), Contains(HasSubstr("--set block=10 --set n_tokens=5 --prompt-file " + out() +
                                          "/arith-4x2.jsonl")));
  // Without the option for mcsd's tree, as for a program that does not have it.
  fs::remove_all(out());
  printed(settings + "DECOSCOPE_ALL_K_CONFIG= ", "all_decoders.sh");
  EXPECT_THAT(asked(), Contains(HasSubstr("compare --decoders ar,jacobi,prompt-lookup,ar@demo-cllm,"
                                          "jacobi@demo-cllm,lookahead@demo-cllm --set "
                                          "refill=slide --set block=16")));
}

TEST_F(MeasuringScripts,
       of_three_races_the_median_counts_and_what_pays_for_more_than_rows_is_told) {
  const std::string settings =
      kAllModels + "DECOSCOPE_DATA= DECOSCOPE_ALL_SETS= DECOSCOPE_ALL_TASKS=arith ";
  const std::string text = printed(settings, "all_decoders.sh");
  const auto change = [&](const std::string& name, const auto& how) {
    const std::string file = out() + "/" + name + ".json";
    nlohmann::json document;
    std::ifstream(file) >> document;
    how(document);
    std::ofstream(file) << document;
  };
  const auto quicker = [](nlohmann::json& race) {
    for (auto& lane : race["summary"])
      if (lane["lane"] == "medusa") lane["speedup"] = 3.0;
  };
  change("arith-4x2-all.3", quicker);
  EXPECT_EQ(printed(settings, "all_decoders.sh"), text) << "one of three";
  change("arith-4x2-all.1", quicker);
  EXPECT_EQ(cell(printed(settings, "all_decoders.sh"), "medusa", "speed-up"), "1.50x") << "at 1x1";
  EXPECT_THAT(printed(settings, "all_decoders.sh"),
              HasSubstr("| Medusa | medusa | arith | 1.8x | 3.00x | yes |"));

  EXPECT_THAT(text, HasSubstr("At 4x2, the rows of a step of the races and what drafts before it: "
                              "speculative 6.4 ms and 0.328 of that, "));
  const auto dearer = [](nlohmann::json& race) {
    for (auto& lane : race["summary"]) {
      if (lane["lane"] == "chimera") lane["of_its_rows"] = 0.85;
      if (lane["lane"] == "seed")
        for (const char* field : {"rows_ms", "drafting_ms", "of_its_rows"}) lane.erase(field);
    }
  };
  for (const char* repeat : {"1", "2"}) change(std::string("arith-4x2-all.") + repeat, dearer);
  const std::string paid = printed(settings, "all_decoders.sh");
  EXPECT_THAT(paid, HasSubstr("\nFurther at 4x2 than a tenth from what the rows cost: chimera on "
                              "arith 0.85\n"));
  for (const auto& cells : rows_of(paid)) {
    if (cells.size() != 13 || (cells[1] != "chimera" && cells[1] != "seed")) continue;
    EXPECT_EQ(cells[6], "1.00");
    EXPECT_EQ(cells[10], cells[1] == "seed" ? "-" : "0.85") << "not measured in two of three";
  }
}

TEST_F(MeasuringScripts, without_heads_sets_and_a_consistency_model_the_others_are_measured) {
  const std::string settings = "DECOSCOPE_DATA= DECOSCOPE_ALL_TASKS=arith ";
  const std::string text = printed(settings, "all_decoders.sh");
  EXPECT_EQ(cell(text, "medusa", "speed-up"), "none");
  EXPECT_EQ(cell(text, "seed", "speed-up"), "1.38x");
  EXPECT_THAT(text, Not(HasSubstr("demo-cllm")));
  for (const char* what :
       {"the open sets are passed over", "demo-chimera is not there", "demo-cllm is not there"})
    EXPECT_THAT(told(), HasSubstr(what));
  fs::remove(out() + "/arith-4x2-all.1.json");
  EXPECT_EQ(code_of(settings + "FAILS=ar,jacobi,lookahead", "all_decoders.sh"), 6);
  EXPECT_THAT(parts(), SizeIs(0));
  EXPECT_EQ(code_of(settings + "DIFFERS=ar,jacobi,lookahead", "all_decoders.sh"), 1);
  EXPECT_THAT(told(), HasSubstr("not what plain decoding writes: ar, fastcot, jacobi, lookahead"));
}

TEST_F(MeasuringScripts, the_first_race_has_the_lanes_whose_models_are_there) {
  const std::string few = "DECOSCOPE_RACE_COUNT=2 ";
  const std::string without = printed(few, "first_race.sh");
  EXPECT_THAT(rows_of(without), SizeIs(2 * (1 + 5 * 4)));
  EXPECT_EQ(cell(without, "py", "lane"), "ar");
  EXPECT_THAT(asked(), Contains(HasSubstr("compare --decoders ar,jacobi,lookahead,prompt-lookup "
                                          "--prompt-file")));
  fs::remove_all(out());
  const std::string with = printed(few + "HAS=demo-cllm", "first_race.sh");
  EXPECT_THAT(with, HasSubstr("| py | jacobi@demo-cllm | 2.00 |"));
  EXPECT_THAT(with, HasSubstr("| py | seed | 2.00 |"));
  EXPECT_THAT(asked(), Contains(HasSubstr("compare --decoders ar,lookahead,jacobi@demo-cllm,seed "
                                          "--set refill=slide --set block=10 --prompt-file")));
}

TEST_F(MeasuringScripts, the_first_races_recording_is_replaced_by_a_whole_one_or_not_at_all) {
  std::ofstream(out()) << "the one before";
  EXPECT_EQ(code_of("HAS=demo-cllm FAILS='trace validate'", "record_first_race.sh"), 6);
  EXPECT_EQ(read(out()), "the one before");
  asked();
  printed("HAS=demo-cllm", "record_first_race.sh");
  EXPECT_EQ(read(out()), "a recording");
  const auto calls = asked();
  EXPECT_THAT(calls, Contains(HasSubstr("compare --decoders ar,lookahead,jacobi@demo-cllm,seed,"
                                        "ar@demo-cllm --set refill=slide --set block=10")));
  EXPECT_THAT(calls, Contains(HasSubstr("--scale 4x2 --record")));
}

/// run.sh in a tree of its own, whose program is built already.
class RunScript : public MeasuringScripts {
 protected:
  void SetUp() override {
    MeasuringScripts::SetUp();
    if (IsSkipped()) return;
    const fs::path source = DECOSCOPE_SOURCE_DIR;
    for (const char* folder : {"scripts", "assets/prompts", "build/release/bin"})
      fs::create_directories(fs::path(out()) / folder);
    for (const char* script : {"run.sh", "lanes.sh"})
      fs::copy_file(source / "scripts" / script, fs::path(out()) / "scripts" / script);
    for (const char* done : {"setup.sh", "build.sh"})
      fs::create_symlink("/bin/true", fs::path(out()) / "scripts" / done);
    fs::create_symlink(source / "tests/scripts/small_program.py",
                       fs::path(out()) / "build/release/bin/decoscope");
    std::ofstream(out() + "/assets/prompts/bundled.jsonl") << R"({"id": "a", "prompt": "b"})"
                                                              "\n";
  }

  /// What the program is asked for where there is no display.
  std::string raced(const std::string& settings, const std::string& arguments) const {
    const std::string command = "DISPLAY= ASKED=" + log() + " " + settings + " " + out() +
                                "/scripts/run.sh " + arguments + " >/dev/null 2>&1";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << command;
    const auto calls = asked();
    return calls.empty() ? "" : calls.back();
  }
};

TEST_F(RunScript, without_a_display_races_the_lanes_whose_models_are_there) {
  const std::string rest =
      " --prompt-file " + out() + "/assets/prompts/bundled.jsonl --scale 4x2 --max-tokens 96";
  const std::string plain = "compare --decoders ar,jacobi,lookahead,prompt-lookup";
  const std::string with =
      "compare --decoders ar,lookahead,jacobi@demo-cllm,seed --set refill=slide --set block=10";
  EXPECT_EQ(raced("", ""), plain + rest);
  EXPECT_EQ(raced("HAS=demo-cllm", ""), with + rest);
  EXPECT_THAT(raced("HAS=demo-cllm", "--seed 3"), HasSubstr(with));
  EXPECT_THAT(raced("HAS=demo-cllm", "--model mine"), HasSubstr(plain)) << "any model has these";
  const std::string own = raced("HAS=demo-cllm", "--decoders ar,mcsd");
  EXPECT_THAT(own, HasSubstr("--decoders ar,mcsd"));
  EXPECT_THAT(own, Not(HasSubstr("refill")));
}

TEST_F(MeasuringScripts, draft_and_verify_measures_every_task_with_trees_sized_to_the_machine) {
  const std::string text = printed("", "draft_and_verify.sh");
  for (const auto& cells : rows_of(text)) {
    if (cells[0] == "task" || cells.size() < 10) continue;
    const std::string gain = cells[6].substr(0, cells[6].find('x'));
    EXPECT_EQ(cells[7], gain + " to " + gain) << text;
    EXPECT_EQ(cells[8], "1.00 (1.00, 1.00, 1.00)") << text;
  }
  EXPECT_THAT(rows_of(text), SizeIs((1 + 5) + (1 + 5 * 2))) << "what steps cost, and the decoders";
  EXPECT_THAT(text, HasSubstr("| kb | mcsd | 2.00 | 7.0 |"));
  EXPECT_THAT(text, HasSubstr("| blocks | mcsd | 2.00 | 7.0 |"));
  EXPECT_THAT(text, HasSubstr("| sql | 6 | 6.4 | 2.1 | 6.6 | 2.1 |")) << "rows, drafts";
  int n_races = 0;
  for (const std::string& call : asked()) {
    if (!call.starts_with("compare --decoders ar,speculative,mcsd")) continue;
    EXPECT_THAT(call, HasSubstr("--set k_config=auto"));
    EXPECT_THAT(call, HasSubstr("--scale 4x2 --max-tokens 128 --rows-alone --json"));
    n_races++;
  }
  EXPECT_EQ(n_races, 5 * 3);
}

TEST_F(MeasuringScripts, draft_and_verify_takes_a_tree_by_name_and_fewer_races) {
  const std::string text =
      printed("DECOSCOPE_DV_TREE=2,1,1 DECOSCOPE_DV_REPEATS=1 DECOSCOPE_DV_TASKS=sql",
              "draft_and_verify.sh");
  EXPECT_THAT(rows_of(text), SizeIs((1 + 1) + (1 + 2)));
  EXPECT_EQ(cell(text, "sql", "of its rows"), "1.00 (1.00)");
  EXPECT_THAT(asked(), Contains(HasSubstr("--set k_config=2,1,1")));
}

}  // namespace
