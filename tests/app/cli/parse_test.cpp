// The command line parser: subcommands and the window are replaced by functions that keep their
// arguments.
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/commands.h"
#include "app/cli/version.h"
#include "app/commands/reason/schedule.h"
#include "kernels/error.h"

namespace {

std::optional<app::WindowCommandOptions> window_options;
std::optional<app::GenerationOptions> generation_options;
std::optional<app::ModelCommandOptions> model_options;
std::optional<app::CotOptions> cot_options;
std::optional<app::TotOptions> tot_options;
std::optional<app::TraceOptions> trace_options;

}  // namespace

namespace app {

int window(const WindowCommandOptions& options) {
  window_options = options;
  return 0;
}
int generate(const GenerationOptions& options) {
  generation_options = options;
  return 0;
}
int compare(const GenerationOptions& options) {
  generation_options = options;
  return 0;
}
int bench(const BenchOptions&) {
  return 0;
}
int data(const DataOptions&) {
  return 0;
}
int train(const TrainOptions&) {
  return 0;
}
int model(const ModelCommandOptions& options) {
  model_options = options;
  return 0;
}
int score(const ScoreOptions&) {
  return 0;
}
int reason_cot(const CotOptions& options) {
  cot_options = options;
  return 0;
}
int reason_tot(const TotOptions& options) {
  tot_options = options;
  return 0;
}
int reason_schedule(const ScheduleOptions&) {
  return 0;
}
int lesson(const LessonOptions&) {
  return 0;
}
int trace(const TraceOptions& options) {
  trace_options = options;
  return 0;
}
int devices(bool) {
  return 0;
}

}  // namespace app

namespace {

void parse(std::vector<std::string> words) {
  window_options.reset();
  generation_options.reset();
  words.insert(words.begin(), "decoscope");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  app::run_command_line(static_cast<int>(argv.size()), argv.data());
}

TEST(CommandLine, an_explicit_default_scale_counts_for_the_window) {
  parse({});
  ASSERT_TRUE(window_options);
  EXPECT_FALSE(window_options->model.scale_given);
  parse({"--scale", "1x1"});
  EXPECT_TRUE(window_options->model.scale_given);
  EXPECT_EQ(window_options->model.scale, "1x1");
  parse({"generate", "--prompt", "a", "--scale", "4x2"});
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->model.scale, "4x2");
}

TEST(CommandLine, stop_strings_and_ids_are_taken_as_written) {
  const std::vector<std::string> texts{"[a,b]", "{}", "--", "-x", "\n\n", "a b", "x,y"};
  std::vector<std::string> words{"generate", "--prompt", "a", "--stop-id", "7", "--stop-id", "007"};
  for (const std::string& text : texts) {
    words.push_back("--stop");
    words.push_back(text);
  }
  parse(words);
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->stop_texts, texts);
  EXPECT_EQ(generation_options->stop_ids, (std::vector<std::int32_t>{7, 7}));
  parse({"compare", "--prompt", "a"});
  EXPECT_TRUE(generation_options->stop_texts.empty() && generation_options->stop_ids.empty());
}

TEST(CommandLine, a_value_after_equals_may_be_an_options_name) {
  parse({"generate", "--prompt=a", "--stop=--json", "--stop=--top-k=3", "--record=--seed"});
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->stop_texts, (std::vector<std::string>{"--json", "--top-k=3"}));
  EXPECT_EQ(generation_options->record, "--seed");
  EXPECT_FALSE(generation_options->json);
}

std::string refusal_of(std::vector<std::string> words) {
  try {
    parse(std::move(words));
  } catch (const kernels::Error& error) {
    EXPECT_EQ(error.code(), kernels::ErrorCode::Usage);
    return error.what();
  }
  return "expected an error, got none";
}

TEST(CommandLine, an_option_as_the_next_word_is_no_value) {
  EXPECT_TRUE(refusal_of({"generate", "--prompt", "a", "--stop", "--json"})
                  .starts_with("--stop: found the option --json after it"));
  EXPECT_TRUE(refusal_of({"generate", "--prompt", "a", "--stop=--json", "--record", "--seed"})
                  .starts_with("--record: found the option --seed after it"));
}

TEST(CommandLine, invalid_stop_strings_and_ids_are_refused) {
  for (const char* command : {"generate", "compare"}) {
    const auto refusal = [command](const char* option, const std::string& value) {
      return refusal_of({command, "--prompt", "a", option, value});
    };
    for (const char* option : {"--stop", "--stop-id"})
      EXPECT_TRUE(refusal(option, "").starts_with(std::string(option) + ": found nothing after it"))
          << refusal(option, "");
    EXPECT_TRUE(refusal("--stop", std::string(1025, 'x')).starts_with("--stop: found 1025 bytes"));
    EXPECT_TRUE(refusal("--stop", "\xC3").starts_with("--stop: found bytes that are not UTF-8"));
    for (const char* id : {"-1", "x", "1,2"})
      EXPECT_TRUE(refusal("--stop-id", id)
                      .starts_with(std::string("--stop-id: found '") + id +
                                   "', expected a whole number from 0"))
          << refusal("--stop-id", id);
  }
}

// CL01.
TEST(CommandLine, a_bad_number_is_reported_with_what_is_expected) {
  struct Case {
    std::string option, value, expected;
  };
  const std::string seed = "a whole number from 0 to 2^64 - 1";
  const std::string tokens = "a whole number from 1 to 2147483647";
  for (const Case& c : std::vector<Case>{
           {"--seed", "18446744073709551616", seed},
           {"--seed", "-1", seed},
           {"--seed", "1 ", seed},
           {"--max-tokens", "abc", tokens},
           {"--max-tokens", "0", tokens},
           {"--max-tokens", "0x10", tokens},
           {"--max-tokens", "2147483648", tokens},
           {"--max-tokens", "99999999999999999999999", tokens},
           {"--top-k", "1.5", "a whole number from 0 to 2147483647"},
           {"--threads", "1025", "a whole number from 0 to 1024"},
           {"--top-p", "1.01", "a number from 0 to 1"},
           {"--top-p", "0,5", "a number from 0 to 1"},
           {"--min-p", "nan", "a number from 0 to 1"},
           {"--repetition-penalty", "0", "a number above 0, at most 100"},
           {"--repetition-penalty", "1e-60", "a number above 0, at most 100"},
           {"--temperature", "warm", "a number from 0 to "},
           {"--temperature", "inf", "a number from 0 to "},
       }) {
    const std::string said = refusal_of({"generate", "--prompt", "a", c.option, c.value});
    EXPECT_TRUE(said.starts_with(c.option + ": found '" + c.value + "', expected " + c.expected))
        << said;
  }
  EXPECT_TRUE(refusal_of({"bench", "step", "--rows", "1,x"})
                  .starts_with("--rows: found 'x', expected a whole number from 1 to 256"));
  EXPECT_TRUE(
      refusal_of({"bench", "step", "--first-steps", "4,0"})
          .starts_with("--first-steps: found '0', expected a whole number from 1 to 100000"));
  EXPECT_TRUE(refusal_of({"data", "generate", "arith", "--count", "-1"})
                  .starts_with("--count: found '-1', expected a whole number from 0 to "));
  EXPECT_TRUE(
      refusal_of({"generate", "--max-tokens"}).starts_with("--max-tokens: found nothing after it"));
}

/// The options of a command that take a value, read from its help.
std::vector<std::string> options_with_a_value(std::vector<std::string> command) {
  command.push_back("--help");
  testing::internal::CaptureStdout();
  parse(command);
  std::istringstream help(testing::internal::GetCapturedStdout());
  std::vector<std::string> options;
  const std::regex option("^  (?:-.,)?(--[a-z-]+) (?!Excludes:|Needs:)[A-Z:{].*");
  std::smatch found;
  for (std::string line; std::getline(help, line);)
    if (std::regex_match(line, found, option)) options.push_back(found[1]);
  return options;
}

const std::vector<std::vector<std::string>> kCommands = {{},
                                                         {"generate"},
                                                         {"compare"},
                                                         {"bench", "step"},
                                                         {"data", "generate"},
                                                         {"data", "stats"},
                                                         {"train", "target"},
                                                         {"model", "info"},
                                                         {"model", "validate"},
                                                         {"model", "random"},
                                                         {"model", "tree"},
                                                         {"model", "scale"},
                                                         {"model", "tokenize"},
                                                         {"model", "chat"},
                                                         {"model", "convert"},
                                                         {"model", "score"},
                                                         {"reason", "cot"},
                                                         {"reason", "tot"},
                                                         {"reason", "schedule"},
                                                         {"lesson", "check"},
                                                         {"trace", "info"},
                                                         {"trace", "convert"}};

TEST(CommandLine, an_empty_value_is_refused_by_every_option) {
  int n_options = 0;
  for (const std::vector<std::string>& command : kCommands) {
    for (const std::string& option : options_with_a_value(command)) {
      if (option == "--prompt") continue;  // any text is valid, even an empty one
      n_options++;
      for (const std::vector<std::string>& empty :
           {std::vector<std::string>{option, ""}, {option + "="}, {option + "=", "--json"}}) {
        std::vector<std::string> words = command;
        words.insert(words.end(), empty.begin(), empty.end());
        EXPECT_TRUE(
            refusal_of(words).starts_with(option + ": found nothing after it, expected a value"))
            << testing::PrintToString(words) << " " << refusal_of(words);
      }
    }
  }
  EXPECT_GT(n_options, 100);
}

TEST(CommandLine, an_empty_word_is_refused) {
  EXPECT_TRUE(refusal_of({"model", "info", ""}).starts_with("path: found nothing after it"));
  EXPECT_TRUE(refusal_of({"trace", "convert", "a.pdrun", ""}).starts_with("out: found nothing"));
  EXPECT_TRUE(refusal_of({"data", "stats", ""}).starts_with("file: found nothing"));
  EXPECT_TRUE(refusal_of({"bench", "step", "--rows", ","}).starts_with("--rows: found none"));
}

TEST(CommandLine, a_system_message_needs_a_chat_template) {
  EXPECT_TRUE(
      refusal_of({"reason", "cot", "--system", "Short."}).starts_with("--system requires --chat"));
  EXPECT_TRUE(refusal_of({"generate", "--prompt", "a", "--raw", "--system", "Short."})
                  .starts_with("--system excludes --raw"));
}

TEST(CommandLine, an_option_is_not_the_value_of_another) {
  EXPECT_TRUE(refusal_of({"train", "target", "--recipe", "r.json", "--out", "--resume"})
                  .starts_with("--out: found the option --resume after it, expected a value"));
  EXPECT_TRUE(refusal_of({"generate", "--prompt", "a", "--heads", ",", "--json"})
                  .starts_with("--heads: found the option --json after it"));
  parse({"generate", "--prompt", "--json"});
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->prompt, "--json") << "a prompt is any text";
}

TEST(CommandLine, a_prompt_may_be_empty) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "--prompt", ""}, {"compare", "--prompt", ""}}) {
    parse(words);
    ASSERT_TRUE(generation_options);
    EXPECT_EQ(generation_options->prompt, "");
    EXPECT_TRUE(generation_options->has_prompt);
  }
}

TEST(CommandLine, every_command_that_opens_models_takes_file_limits) {
  parse({"generate", "--limit", "json_depth=70", "--prompt", "a", "--limit", "n_layers=5000"});
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->model.limits,
            (engine::FileLimits{.json_depth = 70, .n_layers = 5000}));
  parse({"--limit", "tensor_rank=9"});
  ASSERT_TRUE(window_options);
  EXPECT_EQ(window_options->model.limits, engine::FileLimits{.tensor_rank = 9});
  // The word after the value is not taken as another value.
  parse({"model", "info", "--limit", "json_depth=70", "demo-target"});
  ASSERT_TRUE(model_options);
  EXPECT_EQ(model_options->path, "demo-target");
  EXPECT_EQ(model_options->limits.json_depth, 70);
  parse({"data", "stats", "--limit", "n_pieces=5000000", "a.jsonl"});
  parse({"train", "target", "--recipe", "a.json", "--limit", "n_pieces=5000000"});
  parse({"trace", "info", "--limit", "n_tensors=2000000", "a.pdrun"});
  const std::string unknown = refusal_of({"bench", "step", "--limit", "layers=5"});
  EXPECT_NE(unknown.find("'layers=5'"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("n_layers"), std::string::npos) << unknown;
}

TEST(CommandLine, numbers_at_their_limits_are_kept_exactly) {
  parse({"generate", "--prompt", "a", "--seed", "18446744073709551615", "--max-tokens", "010",
         "--top-p", "0.25", "--temperature", "1e-3", "--repetition-penalty", "100"});
  ASSERT_TRUE(generation_options);
  EXPECT_EQ(generation_options->seed, 18446744073709551615u);
  EXPECT_EQ(generation_options->max_tokens, 10);
  EXPECT_EQ(generation_options->top_p, 0.25f);
  EXPECT_EQ(generation_options->temperature, 1e-3f);
  EXPECT_EQ(generation_options->repetition_penalty, 100);
}

TEST(CommandLine, the_window_starts_a_race_only_with_the_option) {
  parse({});
  ASSERT_TRUE(window_options);
  EXPECT_FALSE(window_options->start);
  parse({"--screen", "compare", "--start"});
  ASSERT_TRUE(window_options);
  EXPECT_TRUE(window_options->start);
  EXPECT_EQ(window_options->screen, "compare");
}

TEST(CommandLine, a_race_lane_may_have_its_own_model) {
  parse({"compare", "--prompt", "a", "--decoders", "ar,jacobi@some/model,jacobi"});
  ASSERT_TRUE(generation_options);
  ASSERT_EQ(generation_options->lanes.size(), 3u);
  EXPECT_EQ(generation_options->lanes[1].name, "jacobi@some/model");
  EXPECT_EQ(generation_options->lanes[1].decoder, "jacobi");
  EXPECT_EQ(generation_options->lanes[1].model, "some/model");
  EXPECT_EQ(generation_options->lanes[2].model, "");
  EXPECT_EQ(generation_options->decoders, (std::vector<std::string>{"ar", "jacobi"}));
  parse({"compare", "--prompt", "a", "--decoders", "jacobi@a@b"});
  EXPECT_EQ(generation_options->lanes[0].model, "a@b");
  for (const char* bad : {"ar,jacobi@", "@demo-cllm", "ar,@"}) {
    const std::string said = refusal_of({"compare", "--prompt", "a", "--decoders", bad});
    EXPECT_TRUE(said.starts_with("--decoders: found '")) << said;
    EXPECT_NE(said.find("DECODER@MODEL"), std::string::npos) << said;
  }
  const std::string misspelt =
      refusal_of({"compare", "--prompt", "a", "--decoders", "ar,jacoby@demo-cllm"});
  EXPECT_NE(misspelt.find("'jacoby'; did you mean 'jacobi'?"), std::string::npos) << misspelt;
}

TEST(CommandLine, tot_takes_the_shape_and_leaves_the_rest_to_the_task) {
  parse({"reason", "tot"});
  ASSERT_TRUE(tot_options);
  EXPECT_EQ(tot_options->task, "arith");
  EXPECT_EQ(tot_options->decoder, "ar");
  EXPECT_EQ(tot_options->depth, 0);
  EXPECT_EQ(tot_options->level, 0);
  EXPECT_EQ(tot_options->n_thoughts, 3);
  EXPECT_EQ(tot_options->beam, 1);
  parse({"reason", "tot", "--task", "blocks", "--depth", "5", "--thoughts", "4", "--beam", "2",
         "--decoder", "mcsd", "--temperature", "0.2", "--seed", "7", "--actions", "0"});
  EXPECT_EQ(tot_options->task, "blocks");
  EXPECT_EQ(tot_options->depth, 5);
  EXPECT_EQ(tot_options->n_thoughts, 4);
  EXPECT_EQ(tot_options->beam, 2);
  EXPECT_EQ(tot_options->decoder, "mcsd");
  EXPECT_EQ(tot_options->temperature, 0.2f);
  EXPECT_EQ(tot_options->seed, 7u);
  EXPECT_EQ(tot_options->n_actions, 0);
  const std::string misspelt = refusal_of({"reason", "tot", "--thought", "3"});
  EXPECT_NE(misspelt.find("--thoughts"), std::string::npos) << misspelt;
  EXPECT_TRUE(refusal_of({"reason", "tot", "--beam", "0"}).starts_with("--beam: found '0'"));
}

TEST(CommandLine, a_batch_is_refused_for_decoders_that_schedule_sequences) {
  for (const char* kind : {"cot", "tot"}) {
    const std::string refused = refusal_of({"reason", kind, "--decoder", "seed", "--batch", "4"});
    EXPECT_NE(refused.find("--batch"), std::string::npos) << refused;
    EXPECT_NE(refused.find("branches"), std::string::npos) << refused;
    EXPECT_NE(refused.find("batch_verify"), std::string::npos) << refused;
    // The order of options does not matter.
    EXPECT_EQ(refusal_of({"reason", kind, "--batch", "4", "--decoder", "seed"}), refused);
    EXPECT_EQ(refusal_of({"reason", kind, "--decoder", "seed"}), "expected an error, got none");
    EXPECT_EQ(refusal_of({"reason", kind, "--decoder", "mcsd", "--batch", "4"}),
              "expected an error, got none");
  }
}

TEST(CommandLine, cot_takes_examples_and_tot_takes_prompts) {
  parse({"reason", "cot"});
  ASSERT_TRUE(cot_options);
  EXPECT_EQ(cot_options->prompts, "");
  EXPECT_EQ(cot_options->n_shots, -1) << "as many as fit";
  parse({"reason", "cot", "--prompts", "shown.jsonl", "--shots", "2", "--data", "asked.jsonl"});
  EXPECT_EQ(cot_options->prompts, "shown.jsonl");
  EXPECT_EQ(cot_options->n_shots, 2);
  EXPECT_EQ(cot_options->data, "asked.jsonl");
  parse({"reason", "tot", "--prompts", "asked_in.jsonl"});
  EXPECT_EQ(tot_options->prompts, "asked_in.jsonl");
}

TEST(CommandLine, the_window_gets_its_size) {
  parse({"--size", "1280x720", "--ui-scale", "150"});
  ASSERT_TRUE(window_options);
  EXPECT_EQ(window_options->width, 1280);
  EXPECT_EQ(window_options->height, 720);
  EXPECT_EQ(window_options->ui_scale, 150);
  for (const char* size : {"1280", "1280x", "x720", "320x200", "1280x720x3", "99999x720"})
    EXPECT_THROW(parse({"--size", size}), kernels::Error) << size;
  EXPECT_THROW(parse({"--ui-scale", "20"}), kernels::Error);
}

TEST(CommandLine, the_window_gets_its_theme) {
  parse({"--theme", "light", "--open", "a.pdrun"});
  ASSERT_TRUE(window_options);
  EXPECT_EQ(window_options->theme, "light");
  EXPECT_EQ(window_options->open, "a.pdrun");
  parse({"--screen", "training", "--open", "run"});
  EXPECT_EQ(window_options->screen, "training");
  EXPECT_EQ(window_options->open, "run");
  parse({"--screen", "lab"});
  EXPECT_EQ(window_options->screen, "lab");
  EXPECT_THROW(parse({"--theme", "lihgt"}), kernels::Error);
}

TEST(CommandLine, exports_and_descriptions_need_no_window) {
  parse({"--describe", "a.pdrun"});
  EXPECT_FALSE(window_options);
  ASSERT_TRUE(trace_options);
  EXPECT_EQ(trace_options->what, "describe");
  EXPECT_EQ(trace_options->path, "a.pdrun");
  trace_options.reset();
  parse({"--open", "a.pdrun", "--export", "b.md"});
  EXPECT_FALSE(window_options);
  ASSERT_TRUE(trace_options);
  EXPECT_EQ(trace_options->what, "convert");
  EXPECT_EQ(trace_options->path, "a.pdrun");
  EXPECT_EQ(trace_options->out, "b.md");
  EXPECT_FALSE(trace_options->with_prompt);
  parse({"--open", "a.pdrun", "--export", "b.md", "--with-prompt"});
  EXPECT_TRUE(trace_options->with_prompt);
  try {
    parse({"--export", "b.md"});
    ADD_FAILURE() << "exported nothing";
  } catch (const kernels::Error& error) {
    EXPECT_EQ(error.code(), kernels::ErrorCode::Usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("--open RUN.pdrun"));
  }
  const std::vector<std::vector<std::string>> refused = {
      {"--describe", "a.pdrun", "--open", "b.pdrun"},
      {"--describe", "a.pdrun", "--start"},
      {"--describe", "a.pdrun", "--export", "b.md"},
      {"--open", "a.pdrun", "--export", "b.md", "--screenshot", "b.png"},
      {"--open", "a.pdrun", "--with-prompt"}};
  for (const std::vector<std::string>& words : refused)
    EXPECT_THROW(parse(words), kernels::Error) << words[2];
}

TEST(CommandLine, an_animation_gets_its_pace_and_size) {
  parse({"trace", "convert", "a.pdrun", "a.gif", "--by-time", "--seconds", "4", "--panel", "text",
         "--size", "800x600", "--last-step", "9", "--fps", "25"});
  ASSERT_TRUE(trace_options);
  EXPECT_EQ(trace_options->out, "a.gif");
  EXPECT_EQ(trace_options->fps, 25);
  EXPECT_TRUE(trace_options->by_time);
  EXPECT_EQ(trace_options->seconds, 4);
  EXPECT_EQ(trace_options->panel, "text");
  EXPECT_EQ(trace_options->width, 800);
  EXPECT_EQ(trace_options->height, 600);
  EXPECT_EQ(trace_options->last_step, 9);
  EXPECT_THROW(parse({"trace", "convert", "a.pdrun", "a.gif", "--fps", "0"}), kernels::Error);
  EXPECT_THROW(parse({"trace", "convert", "a.pdrun", "a.gif", "--ms-per-step", "5"}),
               kernels::Error);
  EXPECT_TRUE(refusal_of({"trace", "convert", "a.pdrun", "a.gif", "--seconds", "0"})
                  .starts_with("--seconds: found '0', expected a number from 1 to 120"));
  parse({"trace", "convert", "a.pdrun", "--clock", "compute"});
  EXPECT_EQ(trace_options->clock, "compute");
  EXPECT_TRUE(refusal_of({"trace", "convert", "a.pdrun", "--clock", "cpu"})
                  .starts_with("--clock: cpu: expected wall|compute"));
}

TEST(Processor, one_without_avx2_is_refused_by_name) {
  const std::string why = app::why_processor_is_refused("AVX2, FMA", nullptr);
  EXPECT_THAT(why, testing::StartsWith("this processor lacks AVX2, FMA; "));
  EXPECT_THAT(why, testing::HasSubstr("CPU_OPS=scalar"));
  EXPECT_FALSE(app::why_processor_is_refused("F16C", "avx2").empty());
  EXPECT_EQ(app::why_processor_is_refused("AVX2", "scalar"), "");
  EXPECT_EQ(app::why_processor_is_refused("", nullptr), "");
}

}  // namespace
