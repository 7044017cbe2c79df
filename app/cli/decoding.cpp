// The command lines of generate, compare and bench.
#include <algorithm>

#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/subcommands.h"
#include "app/cli/usage.h"

namespace app {
namespace {

constexpr int kMaxBenchRows = 256;
constexpr int kMaxBenchTexts = 64;
constexpr int kMaxBenchSteps = 100000;  // after a prompt

/// Parses whole numbers from 1 to `most`, separated by commas.
std::vector<int> counts_from(const char* option, const std::string& list, int most) {
  std::vector<int> counts;
  for (const std::string& word : split_commas(list)) {
    const auto n = whole_from(word, 1, most);
    if (!n)
      throw CLI::ValidationError(option,
                                 not_whole(word, 1, most) + ", or several separated by commas");
    counts.push_back(static_cast<int>(*n));
  }
  if (counts.empty())
    throw CLI::ValidationError(option, "found none, expected numbers separated by commas");
  return counts;
}

/// Adds --repeat and --repeat-run, which exclude what the recorded run determines.
void add_repeat(CLI::App& command, GenerationOptions& o) {
  CLI::Option* repeat =
      command
          .add_option(
              "--repeat", o.repeat_file,
              "repeat a recorded run: its prompt, decoder, options, sampling and seed, with "
              "the sizes that it chose")
          ->type_name("RUN.pdrun")
          ->group("Prompt");
  for (const char* determined : {"--prompt",
                                 "--prompt-file",
                                 "--system",
                                 "--chat",
                                 "--raw",
                                 "--decoder",
                                 "--set",
                                 "--max-tokens",
                                 "--temperature",
                                 "--top-k",
                                 "--top-p",
                                 "--min-p",
                                 "--repetition-penalty",
                                 "--seed",
                                 "--sampling",
                                 "--defaults",
                                 "--ignore-eos",
                                 "--no-special",
                                 "--stop",
                                 "--stop-id"})
    repeat->excludes(command.get_option(determined));
  command
      .add_option("--repeat-run", o.repeat_run, "number of the recorded run (default: the first)")
      ->transform(whole_number(1))
      ->needs(repeat)
      ->group("Prompt");
}

}  // namespace

void add_generate(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "generate", "Continue a prompt with one decoder; prints text as it is decoded");
  c->add_option("--decoder", p.decoder, "the decoder")
      ->check(one_of(decoder_names()))
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.generate);
  add_outputs(*c, p.generate);
  add_repeat(*c, p.generate);
  c->add_flag("--check", p.generate.check,
              "run plain decoding (ar) afterwards; report whether its tokens are the same and how "
              "much longer it took (always with --json)");
  c->footer([&p] {
    return "Options of the decoder (--decoder NAME --help lists those of another):\n" +
           options_help(p.decoder) + "\nExample: decoscope generate " + options_example(p.decoder) +
           " --check";
  });
  c->callback([&] {
    p.generate.decoders = {p.decoder};
    run = [&p] { return generate(p.generate); };
  });
}

void add_compare(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "compare", "Run several decoders on the same prompts, alternating, and compare them with ar");
  c->add_option(
       "--decoders", p.decoders,
       "names separated by commas; NAME@MODEL decodes with MODEL in place of --model, and is "
       "compared with ar of MODEL: ar,jacobi,jacobi@demo-cllm")
      ->type_name("LIST")
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.compare);
  add_outputs(*c, p.compare);
  c->add_option("--repeat", p.compare.repeat,
                "number of runs of each; medians and quartiles are reported")
      ->transform(whole_number(1, 100000))
      ->capture_default_str();
  c->add_flag("--rows-alone", p.compare.rows_alone,
              "repeat the forwards of each run without its decoder, and report the speed-up "
              "divided by that which rows and drafts alone allow; takes twice as long");
  c->footer([] {
    return "Options of the decoders (--set applies to each that has the option):\n" +
           options_help("") +
           "\nExample: decoscope compare --prompt-file assets/prompts/bundled.jsonl --scale 4x2";
  });
  c->callback([&] {
    p.compare.lanes = lanes_from(p.decoders);
    p.compare.decoders.clear();
    for (const LaneOption& lane : p.compare.lanes)
      if (std::ranges::find(p.compare.decoders, lane.decoder) == p.compare.decoders.end())
        p.compare.decoders.push_back(lane.decoder);
    run = [&p] { return compare(p.compare); };
  });
}

void add_bench(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand("bench", "Measure this machine and this engine");
  c->add_option("what", p.bench.what,
                "probe: memory bandwidth and arithmetic speed of this machine; step: time of a "
                "forward of 1, 2, 4 ... rows, and the minimum by the probes; decode: tokens per "
                "second of a decoder; kernels: single matrix multiplications")
      ->required()
      ->check(one_of(kBenches));
  c->footer(
      "Columns of bench step: \"vs first\" is the time divided by that of the first line; "
      "\"roofline ms\" the minimum time to read and multiply the weights, keys and values, by the "
      "probes; "
      "\"reached\" this minimum divided by the time. With --first-steps, \"vs steady\" is the time "
      "of the first steps divided by that of later steps.\n"
      "Example: decoscope bench step --scale 4x2 --rows 1,8,16");
  add_model_options(*c, p.bench.model, false);
  add_draft_option(*c, p.bench.model);
  c->add_option(
       "--decoder", p.bench.decoder,
       "bench decode: the decoder; bench step --first-steps: the decoder whose draft model or "
       "draft heads run between steps")
      ->check(one_of(decoder_names()))
      ->capture_default_str();
  c->add_option("--set", p.bench.set, "an option of that decoder; repeatable")
      ->type_name("NAME=VALUE");
  c->add_option("--rows", p.rows,
                "tokens computed in one forward, numbers separated by commas (default "
                "1,2,4,8,16,24,32)")
      ->type_name("LIST");
  c->add_option("--first-steps", p.steps_after_prompt,
                "bench step: also time the first N steps after the prefill of a prompt, as in "
                "generation; numbers N separated by commas")
      ->type_name("LIST");
  c->add_option("--texts", p.bench.n_texts,
                "bench step: sequences per forward, with --rows rows each")
      ->capture_default_str()
      ->transform(whole_number(1, kMaxBenchTexts));
  c->add_option(
       "--new-prompt-tokens", p.bench.n_new_tokens,
       "bench step --first-steps: prompt tokens to prefill; the first tokens are shared with "
       "the previous prompt; 0: prefill all")
      ->capture_default_str()
      ->transform(whole_number(0));
  c->add_option(
       "--draft-forwards", p.bench.n_draft_forwards,
       "bench step --first-steps: forwards of the draft model, or heads evaluated, before each "
       "step")
      ->capture_default_str()
      ->transform(whole_number(1, 100));
  c->add_flag("--breakdown", p.bench.breakdown,
              "bench step: also the share of each kind of operation, and of the waiting of threads "
              "for each other (CPU only)");
  c->add_option("--context", p.bench.context, "committed tokens before the timed rows")
      ->transform(whole_number(1))
      ->capture_default_str();
  c->add_option("--repeat", p.bench.repeat, "number of measurements; medians are reported")
      ->capture_default_str()
      ->transform(whole_number(1, 100000));
  c->add_option("--max-tokens", p.bench.max_tokens, "bench decode: tokens to generate")
      ->capture_default_str()
      ->transform(whole_number(1, 1000000));
  c->add_flag("--json", p.bench.json, kJsonHelp);
  c->callback([&] {
    if (!p.rows.empty()) p.bench.rows = counts_from("--rows", p.rows, kMaxBenchRows);
    if (!p.steps_after_prompt.empty()) {
      p.bench.steps_after_prompt =
          counts_from("--first-steps", p.steps_after_prompt, kMaxBenchSteps);
      std::ranges::sort(p.bench.steps_after_prompt);
      const auto twice = std::ranges::unique(p.bench.steps_after_prompt);
      p.bench.steps_after_prompt.erase(twice.begin(), twice.end());
    }
    run = [&p] { return bench(p.bench); };
  });
}

}  // namespace app
