// The command line of `reason`: chain of thought and tree of thoughts.
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/subcommands.h"
#include "engine/event/reasoning_bounds.h"
#include "engine/event/run_rules.h"
#include "engine/reason/state_value.h"

namespace app {
namespace {

namespace bounds = engine::reasoning;

/// A validator for a range of the engine, which the window's form uses too.
CLI::Validator within(engine::Bounds of) {
  return whole_number(of.low, of.high);
}

/// Refuses --batch for a decoder whose own options set the number of concurrent sequences.
void refuse_batch(const CLI::App& c, const ReasonOptions& o) {
  if (!engine::takes_turns(o.decoder) || c.count("--batch") == 0) return;
  throw CLI::ValidationError(
      "--batch", "has no effect with " + o.decoder +
                     ", which decodes sequences concurrently; --set branches=N sets how many, "
                     "--set batch_verify=N how many of them one forward verifies");
}

/// Adds the options of both commands: questions, decoder and output.
void add_common(CLI::App& c, ReasonOptions& o) {
  add_model_options(c, o.model);
  add_draft_option(c, o.model);
  c.add_option("--data", o.data,
               "folder of the open data sets (default: $DECOSCOPE_DATA), or a file of records in "
               "the format of `data generate`")
      ->type_name("DIR|FILE");
  c.add_option("--split", o.split, "split of a generated task")
      ->check(one_of({"train", "dev", "test"}))
      ->capture_default_str();
  c.add_option("--start", o.start, "index of the first question")
      ->transform(within(bounds::kStart))
      ->capture_default_str();
  c.add_option("--count", o.count, "number of questions")
      ->transform(within(bounds::kCount))
      ->capture_default_str();
  c.add_option("--decoder", o.decoder, "the decoder")
      ->check(one_of(decoder_names()))
      ->capture_default_str()
      ->group("Decoder");
  c.add_option("--set", o.set, "an option of the decoder; repeatable")
      ->type_name("NAME=VALUE")
      ->group("Decoder");
  add_pool_option(c, o.pool);
  c.add_option("--trace", o.trace, "write a trace of all runs (.json or .pftrace)")
      ->type_name("FILE");
  c.add_option("--record", o.record, "write a recording of all runs (.pdrun)")->type_name("FILE");
  c.add_flag("--no-special", o.no_special, kNoSpecialHelp);
  c.add_flag("--json", o.json, kJsonHelp);
}

void add_cot(CLI::App& group, CotOptions& o, Run& run) {
  CLI::App* c = group.add_subcommand(
      "cot",
      "Chain of thought: a rationale by any decoder, then the answer. fastcot may end the "
      "rationale early and answer from its approximate tokens");
  add_common(*c, o);
  c->add_option("--task", o.task,
                "kb, arith (generated) or commonsenseqa, strategyqa, aqua (open data sets; --data)")
      ->capture_default_str();
  c->add_option("--level", o.level, "level of a generated task, 1 to 3")
      ->transform(within(bounds::kLevel))
      ->capture_default_str();
  c->add_option("--shots", o.n_shots,
                "worked examples before each question (default: as many as fit)")
      ->transform(whole_number(0, 100));
  c->add_option("--prompts", o.prompts,
                "file of worked examples (default: the task's in assets/prompts/cot/)")
      ->type_name("FILE");
  c->add_option("--batch", o.batch, "questions per forward")
      ->transform(within(bounds::kBatch))
      ->capture_default_str();
  c->add_option("--max-tokens", o.max_tokens,
                "maximum number of tokens of a rationale; with --decoder ar this is Truncated-CoT")
      ->transform(within(bounds::kMaxTokens))
      ->capture_default_str();
  c->add_option(
       "--repetition-penalty", o.repetition_penalty,
       "above 1: makes tokens less likely that occurred before; 1 suits the bundled models, "
       "--set preset=paper of fastcot sets the paper's 1.2")
      ->check(real_number(0, 100, Low::Excluded))
      ->each([&o](const std::string&) { o.penalty_given = true; })
      ->capture_default_str();
  add_defaults_option(*c, o.model);
  CLI::Option* chat = add_chat_options(*c, o.chat, o.system);
  c->get_option("--system")->needs(chat);
  c->add_flag("--drop-approximate", o.drop_approximate, "answer from the exact tokens only");
  c->add_flag("--find-bound", o.find_bound,
              "find the fewest steps (stop=bound) that keep the accuracy on --count questions; "
              "those of an open set or a file are drawn at random");
  CLI::Option* reveal = c->add_flag("--reveal", o.reveal,
                                    "print how many answers of fastcot and of Truncated-CoT are "
                                    "right, for several limits on the steps of a rationale");
  c->add_option("--limits", o.limits,
                "limits of --reveal, separated by commas (default: 10,20,40,60,80,100,120, up to "
                "--max-tokens)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST")
      ->transform(within(bounds::kMaxTokens))
      ->needs(reveal);
  c->add_option("--sample-seed", o.sample_seed, "seed for the questions of --find-bound")
      ->transform(seed_number())
      ->capture_default_str();
  c->add_option("--tolerance", o.tolerance,
                "percentage points of accuracy that --find-bound may lose")
      ->check(real_number(0, 100))
      ->capture_default_str();
  c->footer([&o] {
    return "Options of the decoder:\n" + options_help(o.decoder) +
           "\nExample: decoscope reason cot --task kb --count 20\n"
           "         decoscope reason cot --task kb --count 40 --find-bound\n"
           "         decoscope reason cot --task kb --count 100 --reveal";
  });
  c->callback([c, &o, &run] {
    refuse_batch(*c, o);
    run = [&o] { return reason_cot(o); };
  });
}

void add_tot(CLI::App& group, TotOptions& o, Run& run) {
  CLI::App* c = group.add_subcommand(
      "tot",
      "Tree of thoughts: at each level, generates several thoughts per node, evaluates them and "
      "keeps the best. The decoder changes the time, not the tree");
  add_common(*c, o);
  c->add_option("--task", o.task,
                "arith, blocks, write (generated) or gsm8k, blocksworld, creative_writing (open "
                "data sets; --data)")
      ->capture_default_str();
  c->add_option("--level", o.level,
                "level of a generated task, 1 to 3 (default: arith and write 1, blocks 2)")
      ->transform(within(bounds::kLevel));
  c->add_option("--actions", o.n_actions,
                "blocks and blocksworld: number of actions of the shortest plan (0: any)")
      ->transform(within(bounds::kActions))
      ->capture_default_str();
  c->add_option(
       "--depth", o.depth,
       "maximum number of levels (default: arith and gsm8k 4, blocks and blocksworld 7, write and "
       "creative_writing 2)")
      ->transform(within(bounds::kDepth))
      ->group("Tree");
  c->add_option("--thoughts", o.n_thoughts, "thoughts generated per node")
      ->transform(within(bounds::kThoughts))
      ->capture_default_str()
      ->group("Tree");
  c->add_option("--beam", o.beam, "thoughts kept per level")
      ->transform(within(bounds::kBeam))
      ->capture_default_str()
      ->group("Tree");
  c->add_option("--prompts", o.prompts,
                "file of prompts (default: the task's in assets/prompts/tot/)")
      ->type_name("FILE")
      ->group("Tree");
  c->add_option("--temperature", o.temperature,
                "temperature of the thoughts; at 0 all thoughts of a node are equal")
      ->check(real_number(0))
      ->each([&o](const std::string&) { o.temperature_given = true; })
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--value-temperature", o.value_temperature,
                "temperature of the evaluations (default: that of the thoughts)")
      ->check(real_number(0))
      ->group("Sampling");
  c->add_option(
       "--value", o.value_source,
       "value of a thought. written: the score in its evaluation; expected: the mean of the scores "
       "by their probabilities; likelihood (default): the probability of the thought's tokens")
      ->check(one_of(engine::value_source_names()))
      ->group("Tree");
  c->add_flag("--evaluate-states", o.evaluate_states,
              "evaluate --count states that are known to be good or bad (arith, blocks, write) and "
              "print how well each kind of value separates them");
  c->add_option("--seed", o.seed, "seed of the tree; the seed of each text is derived from it")
      ->transform(seed_number())
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--sampling", o.sampling,
                "coupled: the same tree with every decoder; rejection: the rule of the papers")
      ->check(one_of({engine::kCoupled, engine::kRejection}))
      ->capture_default_str()
      ->group("Sampling");
  add_defaults_option(*c, o.model);
  c->add_option("--batch", o.batch, "sequences per forward")
      ->transform(within(bounds::kBatch))
      ->capture_default_str();
  c->footer([&o] {
    return "Options of the decoder:\n" + options_help(o.decoder) +
           "\nExample: decoscope reason tot --count 1\n"
           "         decoscope reason tot --task blocks --count 5 --beam 2 --decoder speculative";
  });
  c->callback([c, &o, &run] {
    refuse_batch(*c, o);
    run = [&o] { return reason_tot(o); };
  });
}

/// A time of a stage: at least this, as schedules count nanoseconds; at most ten seconds.
CLI::Validator stage_ms(float low) {
  return real_number(low, 10'000);
}
constexpr float kOneNs = 1e-6F;  // in ms

void add_schedule(CLI::App& group, ScheduleOptions& o, Run& run) {
  CLI::App* c = group.add_subcommand(
      "schedule",
      "What SEED's schedule gains, from the simulator: speed-up by acceptance and by number n of "
      "branches, and how busy the models are (the paper's Figures 5 to 7). Needs no model");
  CLI::Option* recording =
      c->add_option(
           "--recording", o.recording,
           "trees of thoughts that seed decoded: simulates their thoughts and evaluations, "
           "with the times that were recorded")
          ->type_name("RUN.pdrun");
  c->add_option("--draft-ms", o.draft_ms, "time of a draft (default: 30, or as recorded)")
      ->check(stage_ms(0));
  c->add_option("--verify-ms", o.verify_ms, "time of a verification (default: 10, or as recorded)")
      ->check(stage_ms(kOneNs));
  c->add_option("--step-ms", o.step_ms,
                "time of a step of plain decoding (default: that of a verification)")
      ->check(stage_ms(kOneNs));
  const auto add_list = [c](const char* name, auto& values, const char* help) {
    return c->add_option(name, values, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("LIST");
  };
  add_list("--branches", o.branches,
           "numbers n of sequences in progress, separated by commas (default: 1,2,3,4,5,6)")
      ->transform(whole_number(1, 16));
  c->add_option("--drafters", o.n_drafters, "drafts at the same time; 0: a draft model per branch")
      ->transform(whole_number(0, 16))
      ->capture_default_str();
  std::vector<CLI::Option*> drawn{
      add_list("--right", o.rights,
               "probabilities that a drafted token is right if those before it were, separated by "
               "commas (default: 0,0.2,0.4,0.6,0.8,1)")
          ->check(real_number(0, 1)),
      c->add_option("--depth", o.depth, "drafted tokens per round")
          ->transform(whole_number(1, 64))
          ->capture_default_str(),
      c->add_option("--tokens", o.n_tokens, "tokens of a sequence")
          ->transform(whole_number(1, 4096))
          ->capture_default_str(),
      c->add_option("--levels", o.n_levels,
                    "levels of n sequences; a level begins when the previous one has ended")
          ->transform(whole_number(1, 1000))
          ->capture_default_str(),
      c->add_option("--seed", o.seed, "seed of the drawn tokens")
          ->transform(seed_number())
          ->capture_default_str()};
  for (CLI::Option* option : drawn) option->excludes(recording);
  CLI::Option* json = c->add_flag("--json", o.json, kJsonHelp);
  c->add_flag("--csv", o.csv, "print a table of comma-separated values")->excludes(json);
  c->footer(
      "Example: decoscope reason schedule --draft-ms 3 --verify-ms 10\n"
      "         decoscope reason tot --decoder seed --count 2 --record tree.pdrun\n"
      "         decoscope reason schedule --recording tree.pdrun");
  c->callback([&o, &run] { run = [&o] { return reason_schedule(o); }; });
}

}  // namespace

void add_reason(CLI::App& app, Parsed& p, Run& run) {
  CLI::App* group = app.add_subcommand("reason", "Answer questions by reasoning, and score them");
  group->require_subcommand(1);
  add_cot(*group, p.cot, run);
  add_tot(*group, p.tot, run);
  add_schedule(*group, p.schedule, run);
}

}  // namespace app
