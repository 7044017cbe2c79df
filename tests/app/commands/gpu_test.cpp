// The command line on the emulated GPU: a device like the CPU, launches, training, faults.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"
#include "tests/support/needs.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(CliModel, the_emulated_gpu_is_a_device_like_the_cpu) {
  const auto on = [&](const std::string& device) {
    const Outcome outcome =
        run("generate --decoder lookahead --prompt 'USER: hello ASSISTANT:' --max-tokens 6 --dtype "
            "f32 --json --device " +
            device);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result["device"], device);
    EXPECT_EQ(result["identical_to_ar"], true);
    return result["tokens"];
  };
  const json list = json::parse(run("devices --json").out);
  EXPECT_TRUE(std::any_of(list.begin(), list.end(), [](const json& device) {
    return device["name"] == "cuda:emulated" && device["available"] == true;
  })) << list;
  EXPECT_EQ(on("cuda:emulated"), on("cpu"));
}

TEST_F(CliModel, a_gpu_step_is_one_launch_that_reuses_the_last_choice) {
  const std::string tiny = tiny_model();
  const std::string step =
      "bench step --json --device cuda:emulated --rows 1,3 --context 4 --repeat 2 --model " + tiny;
  const int n_layers = json::parse(run("model info --json " + tiny).out)["n_layers"];
  const json as_graph = json::parse(run(step).out);
  EXPECT_EQ(as_graph["launches_per_step"], 1);
  EXPECT_EQ(as_graph["kernels_per_step"], 10 * n_layers + 5)
      << "plus commit, embedding, norm, logits, choice";
  setenv("CUDA_GRAPHS", "off", 1);
  const json alone = json::parse(run(step).out);
  EXPECT_GT(alone["launches_per_step"], 20);
  EXPECT_EQ(alone["launches_per_step"], alone["kernels_per_step"]);
  EXPECT_EQ(as_graph["kernels_per_step"], alone["kernels_per_step"]);
  unsetenv("CUDA_GRAPHS");
}

// Whole blocks are prefilled by cuBLAS; every decoder emits the same tokens after them.
TEST_F(CliModel, cuda_prompts_cublas_prefills_in_blocks) {
  const std::string bench =
      "bench decode --json --device cuda:emulated --context 300 --max-tokens 4 --repeat 1 "
      "--model " +
      tiny_model();
  EXPECT_EQ(json::parse(run(bench).out)["prompts"], nullptr);
  setenv("CUDA_PROMPTS", "cublas", 1);
  const Outcome report = run(bench);
  EXPECT_EQ(json::parse(report.out)["prompts"], "own products") << report.err;
  setenv("DECOSCOPE_CUBLAS", "/none.so", 1);
  const Outcome without = run(bench);
  unsetenv("DECOSCOPE_CUBLAS");
  EXPECT_EQ(json::parse(without.out)["prompts"], nullptr);
  EXPECT_THAT(without.err, HasSubstr("CUDA_PROMPTS=cublas: cuBLAS is not available"));
  setenv("CUDA_PROMPTS", "fast", 1);
  const Outcome refused = run(bench);
  unsetenv("CUDA_PROMPTS");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("CUDA_PROMPTS: found \"fast\", expected own or cublas"));
}

TEST_F(CliModel, training_continues_on_the_cpu_after_the_emulated_gpu) {
  const auto recipe = [&](int tokens) {
    std::ofstream(folder + "/small.json")
        << R"({"name": "small", "mixture": {"arith": {"weight": 1}},
        "model": {"layers": 1, "dim": 32, "hidden_dim": 64, "heads": 1, "max_seq_len": 64},
        "context": 64, "batch_tokens": 128, "tokens": )"
        << tokens << "}";
  };
  const auto trained = [&](const std::string& more) {
    const Outcome outcome = run("train target --json --recipe " + folder + "/small.json --out " +
                                folder + "/small " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  recipe(200);
  const json first = trained("--device cuda:emulated");
  EXPECT_EQ(first["finished"], true);
  EXPECT_EQ(first["compute"], "bf16-cuda");
  recipe(400);
  const json second = trained("--resume --device cpu");
  EXPECT_GT(second["steps"], first["steps"]);
  EXPECT_NE(second["compute"], "bf16-cuda");
  EXPECT_EQ(run("generate --prompt a --max-tokens 2 --model " + folder + "/small").code, 0);
}

TEST_F(CliModel, head_training_continues_on_the_cpu) {
  const std::string target = folder + "/small";
  std::ofstream(folder + "/small.json") << R"({"name": "small", "mixture": {"arith": {"weight": 1}},
      "model": {"layers": 1, "dim": 32, "hidden_dim": 64, "heads": 1, "max_seq_len": 64},
      "context": 64, "batch_tokens": 128, "tokens": 200})";
  ASSERT_EQ(run("train target --recipe " + target + ".json --out " + target).code, 0);
  for (const std::string kind : {"medusa", "chimera"}) {
    SCOPED_TRACE(kind);
    const std::string out = folder + "/" + kind;
    const auto trained = [&](int epochs, const std::string& more) {
      std::ofstream(out + ".json")
          << R"({"heads_of": ")" << kind << R"(", "own_outputs": {"mixture": {"arith":
          {"weight": 1, "levels": [1, 0, 0]}}, "count": 3, "max_tokens": 5, "lanes": 2},
          "probe_texts": 2, "heads": 2, "batch_texts": 3, "shards": 1, "epochs": )"
          << epochs << "}";
      const Outcome outcome = run("train " + kind + " --json --target " + target + " --recipe " +
                                  out + ".json --out " + out + " " + more);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return json::parse(outcome.out, nullptr, false);
    };
    const json first = trained(2, "--device cuda:emulated");
    EXPECT_EQ(first["finished"], true);
    EXPECT_EQ(first["compute"], "bf16-cuda");
    EXPECT_EQ(first["accuracies"].size(), 2u);
    const json second = trained(4, "--resume --device cpu");
    EXPECT_GT(second["steps"], first["steps"]);
    EXPECT_NE(second["compute"], "bf16-cuda");
    EXPECT_EQ(run("generate --prompt a --max-tokens 2 --decoder " + kind + " --model " + target +
                  " --heads " + out)
                  .code,
              0);
  }
}

/// A recipe for outputs of the bundled draft model, a small target.
std::string texts_recipe(const std::string& folder, const std::string& more) {
  const std::string path = folder + "/texts.json";
  std::ofstream(path) << R"({"name": "texts", "own_outputs": {"mixture": {"arith": {"weight": 1,
      "levels": [1, 0, 0]}}, "count": 4, "max_tokens": 8, "lanes": 2}, "target": "demo-draft")"
                      << more << "}";
  return path;
}

TEST_F(CliModel, writing_target_outputs_continues_on_the_cpu) {
  const std::string train = "train outputs --json --recipe " +
                            texts_recipe(folder, R"(, "heads_of": "medusa", "epochs": 1)") +
                            " --out " + folder;
  const auto written = [&](const std::string& more) {
    const Outcome outcome = run(train + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result["finished"], true);
    EXPECT_EQ(result["texts"], 4);
    return read_file(result["file"].get<std::string>());
  };
  const std::string whole = written("/whole --device cuda:emulated");
  // In each run a later call fails, until a run has written some outputs before it. The CPU writes
  // the rest.
  std::string failed;
  int n_good = 0;  // runs that retried the allocation or ended before the failing call
  for (int call = 200; n_good < 3 && failed.find("--resume continues") == std::string::npos;
       call += call / 2) {
    std::filesystem::remove_all(folder + "/parts");
    const Outcome outcome = shell("DECOSCOPE_FAIL_CALL=" + std::to_string(call) + " $DECOSCOPE " +
                                  train + "/parts --device cuda:emulated");
    if (outcome.code == 0 && ++n_good) continue;
    EXPECT_TRUE(outcome.code == 5 || outcome.code == 4) << outcome.err;
    failed = outcome.err.substr(outcome.err.find("decoscope: cuda:emulated: "));
    EXPECT_EQ(lines(failed), 1) << failed;
  }
  EXPECT_THAT(failed, HasSubstr("continues from the texts written so far, on the CPU too"));
  written("/parts --resume");
  EXPECT_EQ(written("/again --device cuda:emulated"), whole);
}

TEST_F(CliModel, a_draft_is_distilled_on_the_emulated_gpu) {
  const std::string recipe =
      texts_recipe(folder, R"(, "model": {"layers": 1, "dim": 32, "hidden_dim": 64, "heads": 1,
      "max_seq_len": 128}, "context": 128, "batch_tokens": 256, "tokens": 200, "probe_minutes": 1e-9,
      "probe_problems": 1)");
  const Outcome outcome = run("train draft --json --device cuda:emulated --recipe " + recipe +
                              " --out " + folder + "/small");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["compute"], "bf16-cuda");
  EXPECT_THAT(outcome.err, HasSubstr("demo-draft writes its own texts on 4 prompts"));
}

TEST_F(CliModel, consistency_training_continues_on_the_cpu) {
  const auto recipe = [&](int epochs) {
    std::ofstream(folder + "/taught.json") << R"({"name": "taught", "target": "demo-draft",
      "mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]}}, "block": 4, "prompts": 3,
      "max_new_tokens": 8, "drop_wrong": false, "token_run": 0, "sentence_run": 0, "points": 2,
      "fresh_points": 2, "fresh_iterations": 1, "batch_texts": 2, "replay_texts": 1,
      "context": 256, "probe_minutes": 0, "score_problems": 1, "epochs": )"
                                           << epochs << "}";
  };
  const std::string train =
      "train cllm --json --recipe " + folder + "/taught.json --out " + folder + "/taught ";
  recipe(1);
  // Each run makes a later call fail, until one has kept some trajectories.
  std::string failed;
  int n_good = 0;
  for (int call = 400; n_good < 3 && failed.find("--resume continues") == std::string::npos;
       call += call / 2) {
    std::filesystem::remove_all(folder + "/taught");
    const Outcome outcome = shell("DECOSCOPE_FAIL_CALL=" + std::to_string(call) + " $DECOSCOPE " +
                                  train + "--device cuda:emulated");
    if (outcome.code == 0 && ++n_good) continue;
    failed = outcome.err.substr(outcome.err.find("decoscope: cuda:emulated: "));
    EXPECT_EQ(lines(failed), 1) << failed;
  }
  EXPECT_THAT(failed, HasSubstr("continues from the answers collected so far, on the CPU too"));
  const auto trained = [&](const std::string& more) {
    const Outcome outcome = run(train + "--resume " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result["finished"], true);
    return result;
  };
  const json first = trained("--device cuda:emulated");
  EXPECT_EQ(first["compute"], "bf16-cuda");
  EXPECT_EQ(first["collected"]["answers"], 3);
  EXPECT_EQ(first["steps"], 2);
  const Outcome jacobi =
      run("generate --check --json --decoder jacobi --prompt Anna --max-tokens 6 "
          "--device cuda:emulated --model " +
          folder + "/taught");
  EXPECT_EQ(json::parse(jacobi.out)["identical_to_ar"], true) << jacobi.err;
  recipe(2);
  const json second = trained("--device cpu");
  EXPECT_EQ(second["steps"], 3);
  EXPECT_NE(second["compute"], "bf16-cuda");
}

// Each run makes a later CUDA call fail: during loading, prefill, decoding.
// CU08.
TEST_F(CliModel, a_failing_gpu_is_exit_5_and_the_output_is_recorded) {
  const std::string record = folder + "/failed.pdrun";
  const auto timed = [&](int call) {
    const auto begun = std::chrono::steady_clock::now();
    const Outcome outcome = shell("DECOSCOPE_FAIL_CALL=" + std::to_string(call) +
                                  " $DECOSCOPE generate --prompt Anna --max-tokens 8 --ignore-eos "
                                  "--device cuda:emulated --record " +
                                  record);
    return std::pair(outcome, std::chrono::steady_clock::now() - begun);
  };
  const auto [sound, sound_took] = timed(0);
  ASSERT_EQ(sound.code, 0) << sound.err;
  int n_failed = 0, n_with_text = 0, n_good = 0;
  for (int call = 32; n_failed < 20; call += call / 2) {
    std::filesystem::remove(record);
    const auto [outcome, took] = timed(call);
    if (outcome.code == 0) {  // the allocation was retried, or the run makes fewer calls
      if (++n_good == 3) break;
      continue;
    }
    n_failed++;
    SCOPED_TRACE(std::to_string(call) + ": " + outcome.err);
    EXPECT_TRUE(outcome.code == 5 || outcome.code == 4);
    // The failing run takes no longer than a whole run on an equally busy machine.
    EXPECT_LT(took, sound_took + std::chrono::seconds(5));
    const auto at = outcome.err.find("decoscope: cuda:emulated: ");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(lines(outcome.err.substr(at)), 1);
    EXPECT_NE(outcome.err.find("--device cpu", at), std::string::npos);
    if (!std::filesystem::exists(record)) continue;  // it failed while loading
    const json info = json::parse(run("trace info --json " + record).out);
    for (const json& report : info["runs"]) {
      EXPECT_EQ(report["state"], "failed");
      n_with_text += report["tokens"] > 0;
      if (report["tokens"] > 0 && outcome.code == 5) {
        EXPECT_NE(outcome.err.find("; at step ", at), std::string::npos);
      }
    }
  }
  EXPECT_GT(n_failed, 3);
  EXPECT_LT(n_failed, 20) << "the program makes fewer calls";
  EXPECT_GT(n_with_text, 0);
}

// Raises a memory limit step by step, from the least with which the program starts, so allocations
// fail during loading, prefill, steps and recording. A failed allocation ends the program with exit
// code 4 and one line, never a crash, and the recording is readable.
// CU07.
TEST_F(CliModel, without_pinned_memory_it_exits_with_4_and_one_line) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited under a sanitizer";
#endif
  const std::string record = folder + "/short.pdrun";
  std::string prompt = "Anna";
  for (int i = 1; i < 150; i++) prompt += " " + std::to_string(i);
  int n_refused = 0, n_recorded = 0;
  const auto limited = [&](int kib, const std::string& device, int n_tokens) {
    std::filesystem::remove(record);
    return shell("ulimit -c 0; ulimit -v " + std::to_string(kib) +
                 "; exec $DECOSCOPE generate --prompt \"" + prompt + "\" --max-tokens " +
                 std::to_string(n_tokens) + " --ignore-eos --device " + device + " --record " +
                 record);
  };
  const auto begins = [&](int kib) {
    return shell("ulimit -c 0; ulimit -v " + std::to_string(kib) + "; exec $DECOSCOPE --version")
               .code == 0;
  };
  // With less memory the system's loader or a library (OpenMP) fails before the program's own code.
  int least = 20'000;
  while (least < 400'000 && !begins(least)) least += 1'000;
  for (const std::string device : {"cpu", "cuda:emulated"}) {
    const int step = device == "cpu" ? 1'000 : 16'000, n_tokens = device == "cpu" ? 200 : 3;
    int n_good = 0;
    for (int kib = least; n_good < 3 && kib < 4'000'000; kib += step) {
      const Outcome outcome = limited(kib, device, n_tokens);
      SCOPED_TRACE(device + " with " + std::to_string(kib) + " KiB: " + outcome.err);
      if (outcome.code == 127) continue;
      if (outcome.code == 0) {
        n_good++;
        continue;
      }
      ASSERT_EQ(outcome.code, 4);
      n_refused++;
      // The output also names the recording.
      EXPECT_TRUE(outcome.err.starts_with("decoscope: "));
      EXPECT_LE(lines(outcome.err), 2);
      if (!std::filesystem::exists(record) || std::filesystem::file_size(record) == 0) continue;
      const json info = json::parse(run("trace info --json " + record).out);
      for (const json& one : info["runs"]) EXPECT_EQ(one["state"], "failed");
      n_recorded++;
    }
    EXPECT_EQ(n_good, 3) << device;
  }
  EXPECT_GT(n_refused, 10);
  EXPECT_GT(n_recorded, 0) << "no run failed during decoding";
}

// Stops the process repeatedly, as a suspended system does.
// CU17.
TEST_F(CliModel, a_suspended_run_continues_and_loses_no_tokens) {
  const std::string record = folder + "/slept.pdrun";
  const std::vector<std::string> arguments = {
      "generate",     "--prompt", "Anna has 3 pens and", "--max-tokens", "30",
      "--ignore-eos", "--device", "cuda:emulated",       "--json"};
  Program awake(arguments, folder);
  const ProgramEnd expected = awake.wait(std::chrono::seconds(120));
  ASSERT_EQ(expected.code, 0) << expected.err;
  std::vector<std::string> recorded = arguments;
  recorded.insert(recorded.end(), {"--record", record});
  Program program(recorded, folder);
  const auto size = [&] {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(record, none);
    return none ? 0 : bytes;
  };
  int n_suspended = 0;
  for (int i = 0; i < 5; i++) {
    const auto before = size();
    if (!program.until([&] { return size() > before; }, std::chrono::seconds(60))) break;
    program.suspend();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    program.resume();
    n_suspended++;
  }
  const ProgramEnd end = program.wait(std::chrono::seconds(120));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_GT(n_suspended, 0);
  const json slept = json::parse(end.out), plain = json::parse(expected.out);
  EXPECT_EQ(slept["tokens"], plain["tokens"]);
  EXPECT_EQ(slept["text"], plain["text"]);
  const json info = json::parse(run("trace info --json " + record).out);
  EXPECT_EQ(info["runs"][0]["state"], "finished");
}

}  // namespace
