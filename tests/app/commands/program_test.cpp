// The program as a user or another program runs it: exit codes, one-line errors, the JSON contract.
#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/commands/notes.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/needs.h"

namespace {

using nlohmann::json;

TEST_F(Cli, help_shows_examples_and_succeeds) {
  for (const char* arguments :
       {"--help", "generate --help", "compare --help", "bench --help", "data --help",
        "train --help", "model --help", "trace --help", "devices --help"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_GT(outcome.out.size(), 100u) << arguments;
  }
}

TEST_F(Cli, decoder_help_lists_its_options) {
  const Outcome outcome = run("generate --decoder lookahead --help");
  for (const char* name :
       {"window", "ngram_size", "n_guesses", "prompt_pool", "bonus", "advance", "preset"}) {
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
  }
}

TEST_F(Cli, decoder_help_has_its_own_example_and_whole_numbers) {
  const std::string help = run("generate --decoder mcsd --help").out;
  EXPECT_NE(help.find("generate --decoder mcsd --set k_config=auto --prompt"), std::string::npos)
      << help;
  EXPECT_NE(help.find("(-1 to 1048576)"), std::string::npos) << help;
  EXPECT_NE(run("generate --decoder ar --help").out.find("--decoder lookahead --set window="),
            std::string::npos);
  // With one prompt SEED would show no schedule.
  const std::string seed = run("generate --decoder seed --help").out;
  EXPECT_NE(seed.find("--decoder seed --set branches=3 --prompt-file"), std::string::npos) << seed;
}

TEST_F(Cli, bench_step_help_explains_the_columns) {
  const std::string help = run("bench --help").out;
  for (const char* column : {"\"vs first\"", "\"roofline ms\"", "\"reached\""})
    EXPECT_NE(help.find(column), std::string::npos) << help;
}

TEST_F(Cli, wrong_usage_is_one_line_and_exit_2) {
  for (const char* arguments :
       {"generate --promt hello", "generte", "generate --prompt a --prompt-file b",
        "generate --prompt a --max-tokens x", "generate --prompt a --max-tokens",
        "generate --prompt a --decoder lookahed", "generate --prompt a --set window",
        "generate --prompt a --set wndow=3 --decoder lookahead",
        "generate --prompt a --temperature -1", "generate --prompt a --top-p 2", "bench stp",
        "bench step --rows 1,x", "generate", "devices --jsn", "generate --prompt a --scale 3x1",
        "generate --prompt a --dtype f64"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << arguments;
  }
}

TEST_F(Cli, a_misspelt_command_gets_a_suggestion) {
  EXPECT_NE(run("generate --promt hello").err.find("--prompt"), std::string::npos);
  EXPECT_NE(run("generate --prompt a --decoder lookahed").err.find("lookahead"), std::string::npos);
  EXPECT_NE(run("generate --prompt a --set wndow=3 --decoder lookahead").err.find("window"),
            std::string::npos);
  EXPECT_NE(run("compre").err.find("compare"), std::string::npos);
}

TEST_F(Cli, a_misspelt_model_decoder_or_task_gets_a_suggestion) {
  const auto expect_message = [&](const std::string& arguments, int code, const std::string& hint) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("did you mean " + hint + "?"), std::string::npos) << outcome.err;
  };
  for (const char* command : {"generate --prompt a --model ", "compare --prompt a --model ",
                              "bench step --model ", "model info ", "model validate "})
    expect_message(std::string(command) + "demo-targt", 3, "demo-target");
  expect_message("compare --prompt a --decoders ar,lokahead", 2, "'lookahead'");
  expect_message("generate --prompt a --decoder promt-lookup", 2, "prompt-lookup");
  expect_message("data generate blcks", 2, "blocks");
  EXPECT_EQ(run("data generate zzzzzz").err.find("did you mean"), std::string::npos);
}

TEST_F(Cli, a_missing_recipe_is_bad_input_in_one_line) {
  for (const std::string what : {"tokenizer", "target", "draft", "cllm"}) {
    const Outcome outcome = run("train " + what + " --recipe " + folder + "/nosuch.json");
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("nosuch.json: cannot be opened"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Cli, training_on_an_unusable_device_is_refused) {
  const std::string recipe = " --recipe " DECOSCOPE_SOURCE_DIR "/assets/recipes/tiny.json --out " +
                             folder + "/model --device ";
  const auto refused = [&](const std::string& what, const std::string& device, int code,
                           const std::string& expect_message) {
    const Outcome outcome = run("train " + what + recipe + device);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(expect_message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder + "/model"));
  };
  for (const std::string what : {"target", "draft", "medusa", "chimera", "cllm", "outputs"}) {
    refused(what, "cuda:99", 5, "`decoscope devices`");
    refused(what, "tpu", 2, "expected auto, cpu or cuda:N");
  }
  for (const std::string device : {"cuda:0", "cuda:emulated", "cuda:99"})
    refused("tokenizer", device, 2, "a tokenizer is trained on the CPU only");
}

// The decoders of a race have different options: each --set must belong to one of them.
TEST_F(Cli, a_misspelt_decoder_option_gets_a_suggestion) {
  const auto refused = [&](const std::string& arguments, const std::string& hint) {
    const Outcome outcome = run(arguments + " --model /nonexistent --prompt a");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(hint), std::string::npos) << outcome.err;
  };
  refused("compare --set blok=5", "did you mean block?");
  refused("compare --decoders ar,lookahead --set wndow=5", "did you mean window?");
  refused("generate --decoder jacobi --set blok=5", "did you mean block?");
  refused("generate --set block=5", "it is an option of jacobi");
  refused("generate --set window=3", "it is an option of lookahead, fastcot");
  refused("compare --decoders ar --set zzz=1", "there are none");
  EXPECT_EQ(run("compare --set block=5 --model /nonexistent --prompt a").code, 3);
}

TEST_F(Cli, window_options_are_refused_without_a_window) {
  const std::string model = " --model /nonexistent --prompt a";
  const auto expect_message = [&](const std::string& arguments, const std::string& what) {
    const Outcome outcome = run(arguments + model);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(what + " no effect at temperature 0 (greedy decoding)"),
              std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("--temperature 0.8"), std::string::npos) << outcome.err;
  };
  expect_message("generate --top-k 5", "--top-k: has");
  expect_message("generate --top-p 0.9", "--top-p: has");
  expect_message("compare --min-p 0.1 --temperature 0", "--min-p: has");
  expect_message("compare --sampling rejection", "--sampling rejection: has");
  expect_message("generate --top-k 5 --top-p 0.9", "--top-k, --top-p: have");
  // Valid without a window, or with one: only the model is missing.
  for (const char* fine :
       {"generate --top-k 0 --top-p 1 --min-p 0 --sampling coupled",
        "generate --top-k 5 --temperature 0.8", "compare --repetition-penalty 1.2"})
    EXPECT_EQ(run(fine + model).code, 3) << fine;
}

TEST_F(Cli, a_partial_score_is_not_a_table_for_the_card) {
  const auto expect_message = [&](const std::string& arguments, const std::string& what) {
    const Outcome outcome = run("model score " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
  };
  expect_message("--task arth", "did you mean arith?");
  expect_message("--level 1,4", "found '4', expected a whole number from 1 to 3");
  expect_message("--write --level 3", "--level");
  expect_message("--write --task py,arith", "--task");
}

TEST_F(Cli, a_command_group_lists_its_subcommands) {
  const auto expect_message = [&](const std::string& command, const std::string& words) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_message("bench", "probe, step, decode or kernels");
  expect_message("bench --json", "probe, step, decode or kernels");
  expect_message("data", "generate, check or stats");
  expect_message("train", "tokenizer, target, draft, cllm, medusa, chimera or outputs");
  expect_message("model",
                 "list, info, validate, tokenize, random, list-architectures, tree, chat, scale, "
                 "convert or score");
  expect_message("trace", "info, validate or convert");
  expect_message("train target", "--recipe is required");
  expect_message("reason", "reason: found nothing after it, expected cot");
  // An unknown word is named with the nearest known one.
  expect_message("model inf", "inf: no such command; did you mean info?");
  expect_message("trace infoo x", "infoo: no such command; did you mean info?");
  expect_message("data generat arith", "generat: no such command; did you mean generate?");
  expect_message("reason cto", "cto: no such command; did you mean cot?");
  expect_message("bench stepp", ": bench: stepp: expected probe|step|decode|kernels; did you mean");
  expect_message("model fly --json",
                 "fly: no such command, expected list, info, validate, tokenize, random, "
                 "list-architectures, tree, chat, scale, convert or score");
}

TEST_F(Cli, a_misplaced_option_or_unknown_task_is_named) {
  const auto expect_message = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_message("--prompt a generate", "--prompt is given before the command generate; put it");
  expect_message("data --split=test generate arith", "--split=test is given before the command");
  expect_message("reason cot --task gsm8k", "task: found 'gsm8k', expected one of kb, arith");
}

TEST_F(Cli, a_recording_without_its_option_gets_a_hint) {
  const Outcome outcome = run("run.pdrun");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("--open \"run.pdrun\""), std::string::npos) << outcome.err;
}

TEST_F(Cli, a_prompt_without_its_option_gets_a_hint) {
  const auto expect_message = [&](const std::string& arguments, const std::string& hint) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_NE(outcome.err.find(hint), std::string::npos) << outcome.err;
  };
  expect_message("generate 'some prompt'", "--prompt \"some prompt\"");
  expect_message("generate --max-tokens 3 'What is 2 + 3?'", "--prompt \"What is 2 + 3?\"");
  expect_message("compare tell me", "--prompt \"tell me\"");
  expect_message("generate --prompt tell me more", "in quotes: --prompt \"tell me more\"");
  expect_message("generate 'cost: $3 \"net\"'", R"(--prompt "cost: \$3 \"net\"")");
  expect_message("generate prompts.jsonl", "--prompt-file \"prompts.jsonl\"");
  expect_message("generate '" + std::string(300, 'x') + "'", std::string(60, 'x') + "...\"");
  // A misspelt option is the reported error.
  expect_message("generate --promt hello", "--promt: no such option");
  expect_message("model scale demo-target out 4x2",
                 "4x2: unexpected word after decoscope model scale");
}

/// Runs scripts/run.sh with a program that prints its arguments, and with no display except one of
/// Wayland, which Debian's GLFW cannot open.
class RunScript : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    namespace fs = std::filesystem;
    fs::create_directories(folder + "/scripts");
    fs::create_directories(folder + "/build/release/bin");
    for (const std::string script :
         {"/scripts/run.sh", "/scripts/lanes.sh", "/scripts/get_model.sh", "/scripts/get_model.py"})
      fs::copy_file(DECOSCOPE_SOURCE_DIR + script, folder + script);
    executable("scripts/setup.sh", "exit 0");
    executable("scripts/build.sh", "exit 0");
    executable("build/release/bin/decoscope",
               "[ \"$1\" != model ] || exit 3  # no other model is there\n"
               "printf '%s\\n' \"$*\"");
  }
  void executable(const std::string& name, const std::string& body) const {
    std::ofstream(folder + "/" + name) << "#!/usr/bin/env bash\n" << body << "\n";
    std::filesystem::permissions(folder + "/" + name, std::filesystem::perms::owner_all);
  }
  Outcome script(const std::string& arguments, const std::string& display = "") const {
    const std::string out = folder + "/out", err = folder + "/err";
    const int status =
        std::system(("DECOSCOPE_OFFLINE=1 XDG_DATA_HOME=" + folder + "/none DISPLAY=" + display +
                     " WAYLAND_DISPLAY=wayland-4242 bash " + folder + "/scripts/run.sh " +
                     arguments + " >" + out + " 2>" + err)
                        .c_str());
    return {WEXITSTATUS(status), read_file(out), read_file(err)};
  }
};

TEST_F(RunScript, without_a_display_it_races_with_the_given_options) {
  const std::string prompts = " --prompt-file " + folder + "/assets/prompts/bundled.jsonl";
  const std::string all = "compare --decoders ar,jacobi,lookahead,prompt-lookup";
  EXPECT_EQ(script("").out, all + prompts + " --scale 4x2 --max-tokens 96\n");
  EXPECT_NE(script("").err.find("DISPLAY is empty: running the race"), std::string::npos);
  EXPECT_EQ(script("--scale 4x1 --threads 2").out,
            all + prompts + " --max-tokens 96 --scale 4x1 --threads 2\n");
  EXPECT_EQ(script("--dtype=f32 --max-tokens=9").out,
            all + prompts + " --scale 4x2 --dtype=f32 --max-tokens=9\n");
  EXPECT_EQ(script("--decoders ar").out,
            "compare" + prompts + " --scale 4x2 --max-tokens 96 --decoders ar\n");
  EXPECT_EQ(script("--prompt 'a b' --decoders ar").out,
            "compare --scale 4x2 --max-tokens 96 --prompt a b --decoders ar\n");
  // 4x2 suits the bundled model; another model runs unscaled.
  EXPECT_EQ(script("--model mine").out, all + prompts + " --max-tokens 96 --model mine\n");
}

TEST_F(RunScript, without_a_display_window_options_are_refused) {
  for (const char* arguments : {"--open a.pdrun", "--screenshot=a.png", "--screen live", "--start",
                                "--theme light", "--panel tree", "--step=3"}) {
    const Outcome outcome = script(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("needs a display, and DISPLAY is empty"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(RunScript, subcommands_and_help_go_to_the_program_unchanged) {
  EXPECT_EQ(script("--version").out, "--version\n");
  EXPECT_EQ(script("--help").out, "--help\n");
  EXPECT_EQ(script("devices --json").out, "devices --json\n");
  EXPECT_EQ(script("--open a.pdrun", ":7").out, "--open a.pdrun\n");
  EXPECT_EQ(script("--theme light", ":7").out, "--theme light\n");
}

TEST_F(RunScript, alone_it_starts_a_race_in_the_window) {
  EXPECT_EQ(script("", ":7").out, "--screen compare --start\n");
}

TEST_F(Cli, a_hint_names_the_whole_command) {
  EXPECT_NE(run("data generate arith --level 9").err.find("`decoscope data generate --help`"),
            std::string::npos);
  EXPECT_NE(run("model info").err.find("`decoscope model info --help`"), std::string::npos);
  EXPECT_NE(run("generte").err.find("`decoscope --help`"), std::string::npos);
  EXPECT_NE(run("data generate --help").out.find("Usage: decoscope data generate"),
            std::string::npos);
  EXPECT_NE(run("compare --help").out.find("Usage: decoscope compare"), std::string::npos);
}

TEST_F(Cli, a_bad_scale_is_wrong_usage_for_the_window_too) {
  const Outcome outcome = run("--scale banana");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
}

TEST_F(Cli, data_stats_counts_tokens) {
  ASSERT_EQ(run("data generate kb --count 30").code, 0);
  std::filesystem::copy_file(folder + "/out", folder + "/kb.jsonl");
  const json stats = json::parse(run("data stats --json " + folder + "/kb.jsonl").out);
  EXPECT_GT(stats["mean_tokens"], 20);
  EXPECT_GE(stats["max_tokens"], stats["mean_tokens"]);
  EXPECT_EQ(stats["over_512_tokens"], 0);
  EXPECT_NE(run("data stats " + folder + "/kb.jsonl").out.find("tokens, longest"),
            std::string::npos);
}

TEST_F(Cli, open_texts_are_read_from_the_data_folder) {
  const Outcome missing = run("data generate write --data " + folder + "/none");
  EXPECT_EQ(missing.code, 3) << missing.err;
  EXPECT_NE(missing.err.find("none/gsm8k/"), std::string::npos) << missing.err;
  const Outcome none_read = run("data generate arith --count 2 --data " + folder + "/none");
  EXPECT_EQ(none_read.code, 0) << none_read.err;
  EXPECT_EQ(none_read.out, run("data generate arith --count 2").out);
  const Outcome alone = shell("DECOSCOPE_DATA= $DECOSCOPE data generate write --count 2");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.out.find("\"sources\":[\"grammar\",\"grammar\",\"grammar\",\"grammar\"]"),
            std::string::npos)
      << alone.out;
}

// UI03.
TEST_F(Cli, a_missing_display_is_exit_2_and_a_broken_one_exit_5) {
  const Outcome none = shell("DISPLAY= WAYLAND_DISPLAY=wayland-4242 $DECOSCOPE");
  EXPECT_EQ(none.code, 2) << none.err;
  EXPECT_EQ(lines(none.err), 1) << none.err;
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(shell("env -u DISPLAY -u WAYLAND_DISPLAY $DECOSCOPE").code, 2);
  const Outcome broken = shell("DISPLAY=:4242 $DECOSCOPE");
#ifdef DECOSCOPE_WITH_UI
  EXPECT_NE(none.err.find("DISPLAY is empty; set DISPLAY"), std::string::npos) << none.err;
  EXPECT_EQ(broken.code, 5);
#else
  EXPECT_NE(none.err.find("WITH_UI=OFF"), std::string::npos) << none.err;
  EXPECT_EQ(broken.code, 2);
#endif
}

#ifdef DECOSCOPE_WITH_UI
TEST_F(Cli, a_window_usage_error_precedes_the_display_check) {
  const auto blamed = [&](const std::string& arguments, int code, const std::string& what) {
    const Outcome outcome = shell("DISPLAY= WAYLAND_DISPLAY= $DECOSCOPE " + arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("DISPLAY"), std::string::npos) << outcome.err;
  };
  blamed("--open " + folder + "/nosuch.pdrun", 3, "nosuch.pdrun: cannot be opened: No such file");
  blamed("--open " + folder + "/nosuch.jsonl", 3, "nosuch.jsonl: not found");
  std::filesystem::create_directory(folder + "/nothing");
  blamed("--open " + folder + "/nothing", 3, "found no training.jsonl");
  std::ofstream(folder + "/other.jsonl") << "{}\n";
  blamed("--open " + folder + "/other.jsonl", 3, "other.jsonl:1: step: expected a whole number");
  std::ofstream(folder + "/no.pdrun") << "no recording";
  blamed("--open " + folder + "/no.pdrun", 3, "no.pdrun");
  blamed("--model demo-targt", 3, "did you mean demo-target?");
  blamed("--device cuda:99", 5, "cuda:99");
  blamed("--device gpu", 2, "expected auto, cpu or cuda:N");
  blamed("--screenshot " + folder + "/a.jpg", 2, "ending in .png");
  const std::string picture = "--screenshot " + folder + "/a.png --panel ";
  blamed(picture + "tre", 2, "did you mean tree?");
  blamed(picture + "zzzzzz", 2, "there are setup, ");
  blamed("--screenshot " + folder + "/absent/a.png", 4, "absent/a.png");
}
#endif

TEST_F(Cli, a_missing_device_is_exit_5) {
  const Outcome outcome = run("generate --prompt a --device cuda:9");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(lines(outcome.err), 1);
  EXPECT_NE(outcome.err.find("; available: cpu"), std::string::npos) << outcome.err;
}

TEST_F(Cli, a_missing_model_is_exit_3) {
  const auto expect_message = [&](const std::string& model, const std::string& words) {
    const Outcome outcome = run("generate --prompt a --model " + model);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(lines(outcome.err), 1);
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_message("/nonexistent/model", "found nothing at this path");
  expect_message("nonexistent", "found no model, directory or file of this name");
  expect_message("hf:none/such", "found no model, directory or file of this name");
}

TEST_F(Cli, devices_lists_the_cpu_as_json) {
  const json list = json::parse(run("devices --json").out);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(list[0]["name"], "cpu");
  EXPECT_EQ(list[0]["available"], true);
  for (const char* field : {"name", "kind", "available", "reason", "memory_bytes", "ops"})
    EXPECT_TRUE(list[0].contains(field)) << field;
}

TEST_F(Cli, model_random_info_scale_and_validate_agree) {
  const std::string tiny = tiny_model();
  const json info = json::parse(run("model info --json " + tiny).out);
  EXPECT_EQ(info["dim"], 64);
  EXPECT_EQ(info["n_layers"], 2);
  EXPECT_EQ(run("model validate " + tiny).code, 0);
  ASSERT_EQ(run("model scale " + tiny + " " + folder + "/big --scale 4x2").code, 0);
  const json big = json::parse(run("model info --json " + folder + "/big").out);
  EXPECT_EQ(big["dim"], 256);
  EXPECT_EQ(big["n_layers"], 4);
}

// A step needs a position per row, and the context is limited.
TEST_F(Cli, bench_step_measures_up_to_the_context_length) {
  const std::string tiny = tiny_model();
  const int longest = json::parse(run("model info --json " + tiny).out)["max_seq_len"];
  const auto code = [&](int context) {
    return run("bench step --model " + tiny +
               " --rows 1,1,4 --repeat 2 --first-steps 1,9 --context " + std::to_string(context))
        .code;
  };
  EXPECT_EQ(code(longest - 4), 0);
  EXPECT_EQ(code(longest - 3), 4);
}

TEST_F(Cli, bench_step_keeps_its_json_contract) {
  const Outcome outcome =
      run("bench step --model " + tiny_model() + " --rows 1,4 --context 16 --repeat 3 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  for (const char* field : {"machine", "model", "dtype", "context", "weight_bytes", "rows"})
    EXPECT_TRUE(document.contains(field)) << field;
  for (const char* field :
       {"cpu", "threads", "read_gbps", "read_gbps_after", "gflops", "last_level_cache_bytes"})
    EXPECT_TRUE(document["machine"].contains(field)) << field;
  ASSERT_EQ(document["rows"].size(), 2u);
  for (const char* field : {"rows", "ms", "ratio", "roofline_ms"})
    EXPECT_TRUE(document["rows"][1].contains(field)) << field;
  EXPECT_EQ(document["rows"][0]["ratio"], 1.0);
  const double cache_read = document["cache_read_bytes"], weights = document["weight_bytes"];
  EXPECT_EQ(cache_read, 16 * document["cache_bytes_per_token"].get<double>());
  const double before = document["machine"]["read_gbps"];
  const double after = document["machine"]["read_gbps_after"];
  EXPECT_GE(document["rows"][0]["roofline_ms"].get<double>(),
            0.999e-6 * (weights + cache_read) / ((before + after) / 2));
  EXPECT_EQ(document["disturbed"], app::disturbed(before, after));
  EXPECT_EQ(outcome.err.find("are unreliable") != std::string::npos, app::disturbed(before, after))
      << outcome.err;
}

TEST_F(Cli, a_full_disk_is_reported) {
  NEEDS(std::filesystem::exists("/dev/full"), "/dev/full is missing");
  const int status = std::system(
      (std::string(program_path()) + " devices --json >/dev/full 2>" + folder + "/err").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_EQ(lines(read_file(folder + "/err")), 1);
}

// IO10.
TEST_F(Cli, no_free_descriptors_is_exit_4_and_one_line) {
  const std::string model = tiny_model();
  // The program reads this card while the weights are open, which needs a second descriptor.
  std::ofstream(model + "/decoscope.json") << R"({"draft": "other"})";
  std::set<int> codes;
  int code = -1;
  // At first there are too few descriptors for the program's libraries, then too few for its files,
  // then enough. The boundaries depend on this process's open files.
  for (int n = 3; n < 64 && code != 0; n++) {
    const std::string limited = "(ulimit -n " + std::to_string(n) + " && exec ";
    const int status = std::system((limited + program_path() + " model info " + model + ") >" +
                                    folder + "/out 2>" + folder + "/err </dev/null")
                                       .c_str());
    ASSERT_TRUE(WIFEXITED(status));
    code = WEXITSTATUS(status);
    codes.insert(code);
    if (code != 4) continue;
    const std::string err = read_file(folder + "/err");
    EXPECT_EQ(lines(err), 1) << err;
    EXPECT_NE(err.find("Too many open files"), std::string::npos) << err;
    EXPECT_TRUE(read_file(folder + "/out").empty());
  }
  codes.erase(127);  // the exit code of the loader and of the shell
  codes.erase(2);
  EXPECT_EQ(codes, (std::set<int>{0, 4}));
}

TEST_F(CliModel, generate_keeps_its_json_contract) {
  const Outcome outcome =
      run("generate --decoder lookahead --set window=2 --set n_guesses=4 --prompt 'USER: hello "
          "ASSISTANT:' --max-tokens 24 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  for (const char* field :
       {"id", "decoder", "model", "device", "dtype", "seed", "prompt_tokens", "tokens", "text",
        "stop_reason", "steps", "tokens_per_step", "prefill_ms", "decode_ms", "tokens_per_second",
        "identical_to_ar", "speedup", "metrics"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
  EXPECT_EQ(result["identical_to_ar"], true);
  EXPECT_LE(result["tokens"].size(), 24u);
  const json& metrics = result["metrics"];
  const double proposed = metrics["proposed"], accepted = metrics["accepted"];
  const double verified = accepted + metrics["rejected"].get<double>();
  ASSERT_GT(verified, 0);
  EXPECT_DOUBLE_EQ(metrics["acceptance_rate"], accepted / proposed);
  EXPECT_DOUBLE_EQ(metrics["accepted_of_verified"], accepted / verified);
}

TEST_F(CliModel, one_prompt_gives_one_result_and_several_give_a_list) {
  const std::string one = R"({"id": "a", "prompt": "Anna has"})", two = R"({"prompt": "def"})";
  std::ofstream(folder + "/one.jsonl") << one << "\n";
  std::ofstream(folder + "/two.jsonl") << one << "\n" << two << "\n";
  const auto answer = [&](const std::string& file) {
    return json::parse(
        run("generate --max-tokens 4 --json --prompt-file " + folder + "/" + file).out);
  };
  EXPECT_EQ(answer("one.jsonl")["id"], "a");
  ASSERT_TRUE(answer("two.jsonl").is_array());
  EXPECT_EQ(answer("two.jsonl")[0]["id"], "a");
  EXPECT_EQ(answer("two.jsonl")[1]["id"], "p2");
  // In text output several results are labelled, and so are their figures.
  const auto words = [&](const std::string& file) {
    return run("generate --max-tokens 4 --prompt-file " + folder + "/" + file);
  };
  const std::string first = answer("two.jsonl")[0]["text"], second = answer("two.jsonl")[1]["text"];
  EXPECT_EQ(words("one.jsonl").out, first + "\n");
  const Outcome both = words("two.jsonl");
  EXPECT_EQ(both.out, "a:\n" + first + "\np2:\n" + second + "\n");
  for (const char* line : {"decoscope: a, ar: ", "decoscope: p2, ar: "})
    EXPECT_NE(both.err.find(line), std::string::npos) << both.err;
}

TEST_F(CliModel, both_jacobi_forms_give_the_output_of_ar) {
  for (const char* options : {"", " --set form=textbook --set block=6"}) {
    const Outcome outcome =
        run(std::string("generate --decoder jacobi --prompt 'Anna has' --max-tokens 20 --json") +
            options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out)["identical_to_ar"], true) << options;
  }
  EXPECT_NE(run("generate --decoder jacobi --help").out.find("form=kv  (kv|textbook)"),
            std::string::npos);
  const Outcome refused =
      run("generate --decoder jacobi --prompt a --set form=textbook --set refill=slide");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(lines(refused.err), 1) << refused.err;
}

TEST_F(CliModel, every_decoder_gives_the_output_of_ar) {
  for (const char* sampling : {"", " --temperature 0.8 --top-p 0.95 --seed 7"}) {
    std::string expected;
    for (const char* decoder : {"ar", "jacobi", "lookahead", "prompt-lookup"}) {
      const Outcome outcome =
          run(std::string("generate --decoder ") + decoder +
              " --prompt 'Question: Anna has 3 pens and buys 4 more.' --max-tokens 40 --json" +
              sampling);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const json result = json::parse(outcome.out);
      EXPECT_EQ(result["identical_to_ar"], true) << decoder << sampling;
      if (expected.empty()) expected = result["tokens"].dump();
      EXPECT_EQ(result["tokens"].dump(), expected) << decoder << sampling;
    }
  }
}

TEST_F(CliModel, a_prompt_longer_than_the_context_is_refused) {
  std::string words;
  for (int i = 0; i < 20000; i++) words += "word ";
  std::ofstream(folder + "/long.jsonl") << "\n"
                                        << json{{"id", "short"}, {"prompt", "Anna"}}.dump() << "\n"
                                        << json{{"id", "of words"}, {"prompt", words}}.dump();
  for (const std::string command : {"generate", "compare --decoders ar"}) {
    const Outcome outcome =
        run(command + " --max-tokens 1 --prompt-file " + folder + "/long.jsonl");
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_NE(outcome.err.find("/long.jsonl:3: of words: prompt: "), std::string::npos)
        << outcome.err;
  }
}

// Sends the signal during decoding, when the first tokens have been printed.
TEST_F(CliModel, ctrl_c_keeps_the_decoded_tokens) {
  std::ofstream(folder + "/press.sh")
      << "\"$@\" > " << folder << "/out 2> " << folder << "/err &\n"
      << "until [ -s " << folder << "/out ] || ! kill -0 $!; do sleep 0.02; done\n"
      << "kill -INT $!\nwait $!\n";
  const int status = std::system(("sh " + folder + "/press.sh " + program_path() +
                                  " generate --prompt 'Anna has' --max-tokens 1000 --ignore-eos "
                                  "--scale 1x8 --record " +
                                  folder + "/a.pdrun")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6) << read_file(folder + "/err");
  EXPECT_FALSE(read_file(folder + "/out").empty());
  EXPECT_EQ(run("trace validate " + folder + "/a.pdrun").code, 0);
  const json info = json::parse(run("trace info --json " + folder + "/a.pdrun").out);
  EXPECT_EQ(info["runs"][0]["state"], "cancelled") << info.dump();
}

TEST_F(CliModel, compare_keeps_its_json_contract) {
  std::ofstream(folder + "/prompts.jsonl") << R"({"id": "a", "prompt": "Anna has"})"
                                           << "\n"
                                           << R"({"id": "b", "prompt": "def f(x):", "seed": 3})"
                                           << "\n";
  const Outcome outcome =
      run("compare --decoders ar,lookahead --max-tokens 16 --repeat 2 --json --prompt-file " +
          folder + "/prompts.jsonl");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["results"].size(), 4u);
  ASSERT_EQ(document["summary"].size(), 2u);
  for (const char* field :
       {"decoder", "tokens_per_second", "speedup", "tokens_per_step", "identical", "n"}) {
    EXPECT_TRUE(document["summary"][1].contains(field)) << field;
  }
  EXPECT_EQ(document["summary"][1]["identical"], 2);
}

TEST_F(Cli, a_prompt_file_with_a_bad_line_names_the_line) {
  std::ofstream(folder + "/bad.jsonl") << R"({"id": "a", "prompt": "x"})"
                                       << "\n{oops\n";
  const Outcome outcome =
      run("generate --model " + tiny_model() + " --prompt-file " + folder + "/bad.jsonl");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("bad.jsonl:2"), std::string::npos) << outcome.err;
}

}  // namespace
