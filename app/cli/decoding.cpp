// generate, compare and bench: what may be said to them.
#include <algorithm>

#include "app/cli/subcommands.h"
#include "app/cli/options.h"
#include "app/cli/numbers.h"
#include "app/cli/usage.h"

namespace app {
namespace {

constexpr int kMaxBenchRows = 256;
constexpr int kMaxBenchTexts = 64;
constexpr int kMaxBenchSteps = 100000;  // behind a prompt

/// Whole numbers from 1 with commas between.
std::vector<int> counts_from(const char* option, const std::string& list, int most) {
  std::vector<int> counts;
  for (const std::string& word : split_commas(list)) {
    const auto n = whole_from(word, 1, most);
    if (!n)
      throw CLI::ValidationError(option,
                                 not_whole(word, 1, most) + ", or several with commas between");
    counts.push_back(static_cast<int>(*n));
  }
  if (counts.empty())
    throw CLI::ValidationError(option, "found none, expected numbers with commas between");
  return counts;
}

}  // namespace

void add_generate(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* c = app.add_subcommand(
      "generate", "Continue a prompt with one decoder; text appears as it is decoded");
  c->add_option("--decoder", p.decoder, "which decoder")
      ->check(one_of(decoder_names()))
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.generate);
  add_outputs(*c, p.generate);
  c->add_flag(
      "--check", p.generate.check,
      "run plain decoding (ar) afterwards, and say whether it wrote the same tokens and how "
      "much longer it took (always done with --json)");
  c->footer([&p] {
    return "Options of the decoder (--decoder NAME --help shows another's):\n" +
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
      "compare", "Run several decoders on the same prompts, in turns, and compare them with ar");
  c->add_option("--decoders", p.decoders,
                "names with commas between; NAME@MODEL decodes with another model than --model's, "
                "and is compared with ar of that model: ar,jacobi,jacobi@demo-cllm")
      ->type_name("LIST")
      ->capture_default_str()
      ->group("Decoder");
  add_generation_options(*c, p.compare);
  add_outputs(*c, p.compare);
  c->add_option("--repeat", p.compare.repeat, "run each so often and report medians")
      ->transform(whole_number(1, 100000))
      ->capture_default_str();
  c->add_flag(
      "--rows-alone", p.compare.rows_alone,
      "behind each text run its forwards once more without its decoder, and say of each "
      "lane how much of its speed-up its rows and drafts allow it has; takes twice as long");
  c->footer([] {
    return "Options of the decoders (--set goes to each that has the option):\n" +
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
                "probe: how fast this machine reads memory and multiplies; step: what a forward of "
                "1, 2, 4 ... rows costs, beside what the probes allow; decode: tokens a second of "
                "a decoder; kernels: single matrix multiplies")
      ->required()
      ->check(one_of(kBenches));
  c->footer(
      "Columns of bench step: \"of first\" is the time as a multiple of the first line's; "
      "\"roofline "
      "ms\" what reading the weights and multiplying them must take at least, by the probes; "
      "\"reached\" that divided by the time measured.\n"
      "Example: decoscope bench step --scale 4x2 --rows 1,8,16");
  add_model_options(*c, p.bench.model, false);
  add_draft_option(*c, p.bench.model);
  c->add_option("--decoder", p.bench.decoder,
                "of bench decode; bench step --behind: whose draft model or draft heads work "
                "between steps")
      ->check(one_of(decoder_names()))
      ->capture_default_str();
  c->add_option("--set", p.bench.set, "an option of that decoder; may be given several times")
      ->type_name("NAME=VALUE");
  c->add_option("--rows", p.rows,
                "tokens computed in one forward, counts with commas between (default "
                "1,2,4,8,16,24,32)")
      ->type_name("LIST");
  c->add_option("--behind", p.steps_after_prompt,
                "bench step: means of the first so many steps behind a prompt that is read anew, "
                "as a decoder has them, beside steps that go on and on; counts with commas between")
      ->type_name("LIST");
  c->add_option("--texts", p.bench.n_texts, "bench step: texts in a forward, --rows of each")
      ->capture_default_str()
      ->transform(whole_number(1, kMaxBenchTexts));
  c->add_option("--anew", p.bench.n_new_tokens,
                "bench step --behind: so many tokens of each prompt are read anew, the others are "
                "shared with the prompt before it; 0: all are read")
      ->capture_default_str()
      ->transform(whole_number(0));
  c->add_option("--draft-forwards", p.bench.n_draft_forwards,
                "bench step --behind: forwards of the draft before each step, or heads that are "
                "asked")
      ->capture_default_str()
      ->transform(whole_number(1, 100));
  c->add_option("--context", p.bench.context, "committed tokens before the rows")
      ->transform(whole_number(1))
      ->capture_default_str();
  c->add_option("--repeat", p.bench.repeat, "how often; medians are reported")
      ->capture_default_str()
      ->transform(whole_number(1, 100000));
  c->add_option("--max-tokens", p.bench.max_tokens, "tokens of bench decode")
      ->capture_default_str()
      ->transform(whole_number(1, 1000000));
  c->add_flag("--json", p.bench.json, kJsonHelp);
  c->callback([&] {
    if (!p.rows.empty()) p.bench.rows = counts_from("--rows", p.rows, kMaxBenchRows);
    if (!p.steps_after_prompt.empty()) {
      p.bench.steps_after_prompt = counts_from("--behind", p.steps_after_prompt, kMaxBenchSteps);
      std::ranges::sort(p.bench.steps_after_prompt);
      const auto twice = std::ranges::unique(p.bench.steps_after_prompt);
      p.bench.steps_after_prompt.erase(twice.begin(), twice.end());
    }
    run = [&p] { return bench(p.bench); };
  });
}

}  // namespace app
