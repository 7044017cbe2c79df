#include "tests/support/decode/run_decoder.h"

#include <gtest/gtest.h>

#include "engine/decode/ranks/lookahead_ranks.h"
#include "engine/decode/registry.h"
#include "tests/support/assets_folder.h"

namespace engine::test {

namespace {

DecoderContext context_for(LanguageModel& model, const Job& job) {
  return {.target = model,
          .sampling = job.sampling,
          .limits = job.limits,
          .draft_model = job.draft,
          .probe = job.probe,
          .uniforms = job.uniforms,
          .control = job.control,
          .successors = job.successors,
          .heads = job.heads,
          .trees_dir = assets_folder() + "/trees",
          .heads_tree = job.heads_tree,
          .texts = job.texts};
}

/// Gives a prefilled lane the ranks that its job requests.
void share_rows(LanguageModel& model, Lane& lane, const Job& job) {
  const ParsedOptions options = parse_options(job.decoder, job.options);
  const auto n_others = static_cast<std::size_t>(options->n_ranks()) - 1;
  if (n_others == 0 || job.ranks.empty()) return;
  std::vector<RankPlace> others;
  for (const OtherRank& rank : std::span(job.ranks).first(n_others))
    others.push_back({*rank.model, *rank.at_work, "a device of the test"});
  const auto prompt = lane.sequence.tokens();
  auto ranks = std::make_unique<LookaheadRanks>(
      model, std::move(others),
      RankedRun{{prompt.begin(), prompt.end()}, options, context_for(model, job)});
  lane.sequence = ranks->attach(std::move(lane.sequence));
  ranks->wait_until_ready();
  lane.own_model = std::move(ranks);
}

Outcome run_to_end(LanguageModel& model, Lane& lane, const Job& job) {
  EventList events;
  Stepper stepper(model, &events);
  Lane* lanes[] = {&lane};
  Outcome outcome;
  while (!lane.sequence.finished()) {
    const auto n_before = lane.sequence.tokens().size();
    stepper.step(lanes);
    const auto n_emitted = lane.sequence.tokens().size() - n_before;
    if (!is_textbook(job)) {
      EXPECT_GE(n_emitted, 1u) << described(job);  // T5
    }
    EXPECT_EQ(lane.sequence.cache().length() + 1, static_cast<int>(lane.sequence.tokens().size()));
    outcome.emitted_per_step.push_back(static_cast<int>(n_emitted));
    if (lane.n_steps > 4000) throw std::runtime_error("the run does not end");
  }
  const auto generated = lane.sequence.generated();
  outcome.tokens.assign(generated.begin(), generated.end());
  outcome.facts = lane.facts;
  outcome.stop = lane.sequence.stop_reason();
  outcome.n_steps = lane.n_steps;
  outcome.approximate = lane.decoder->approximate();
  outcome.metrics = metrics_of(lane);
  std::erase_if(outcome.metrics, [](const auto& metric) { return metric.first.ends_with("_ms"); });
  outcome.counts = counts_of(lane);
  outcome.events = std::move(events.events);
  outcome.n_proposed = lane.n_proposed;
  outcome.n_accepted = lane.n_accepted;
  outcome.n_rejected = lane.n_rejected;
  return outcome;
}

}  // namespace

Lane start(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job, RunId run) {
  Lane lane = make_lane(run, model, prompt, job.decoder, context_for(model, job), job.options);
  prefill(model, lane.sequence, 7, {}, decoder_named(job.decoder).reads_prompt_state);
  share_rows(model, lane, job);
  lane.decoder->begin(lane.sequence);
  return lane;
}

Outcome run(LanguageModel& model, const std::vector<TokenId>& prompt, const Job& job) {
  Lane lane = start(model, prompt, job);
  return run_to_end(model, lane, job);
}

Outcome run_from(LanguageModel& model, const Sequence& prefilled, const Job& job) {
  const auto prompt = prefilled.prompt();
  Lane lane = make_lane(1, model, {prompt.begin(), prompt.end()}, job.decoder,
                        context_for(model, job), job.options);
  lane.sequence = prefilled.fork();
  share_rows(model, lane, job);
  lane.decoder->begin(lane.sequence);
  return run_to_end(model, lane, job);
}

Outcome run_ar(LanguageModel& model, const std::vector<TokenId>& prompt, Job job) {
  job.decoder = "ar";
  job.options.clear();
  return run(model, prompt, job);
}

std::vector<float> logp_of(const Outcome& outcome) {
  std::vector<float> logp;
  for (const TokenFacts& facts : outcome.facts) logp.push_back(facts.logp);
  return logp;
}

std::vector<float> scores_of(const Outcome& outcome) {
  std::vector<float> scores;
  TokenTree tree;
  Verified verified;
  for (const Event& event : outcome.events) {
    if (const auto* d = std::get_if<Drafted>(&event)) tree = d->tree;
    if (const auto* v = std::get_if<Verified>(&event)) verified = *v;
    const auto* committed = std::get_if<Committed>(&event);
    if (!committed) continue;
    // Follows the emitted tokens from the first row.
    std::size_t row = 0;
    for (std::size_t i = 0; i < committed->tokens.size(); i++) {
      EXPECT_EQ(verified.picked[row], committed->tokens[i]);
      scores.push_back(verified.logp[row]);
      scores.push_back(verified.margin[row]);
      for (std::size_t r = row + 1; i + 1 < committed->tokens.size() && r < tree.token.size();
           r++) {
        if (tree.parent[r] == static_cast<int>(row) && verified.fate[r] == RowFate::Accepted) {
          row = r;
          break;
        }
      }
    }
  }
  return scores;
}

std::vector<std::string> trace_of(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    std::string line = std::to_string(event.index()) + ":";
    const auto add = [&](const auto& values) {
      for (const auto& value : values) line += " " + std::to_string(value);
      line += ";";
    };
    if (const auto* e = std::get_if<Drafted>(&event)) {
      add(e->tree.token);
      add(e->tree.parent);
      for (const RowTag& tag : e->tree.tag) {
        add(std::vector<int>{static_cast<int>(tag.kind), tag.a, tag.b});
      }
    } else if (const auto* v = std::get_if<Verified>(&event)) {
      add(v->picked);
      add(v->logp);
      add(v->margin);
      for (const RowFate fate : v->fate) line += std::to_string(static_cast<int>(fate));
    } else if (const auto* c = std::get_if<Committed>(&event)) {
      add(c->tokens);
      line += std::to_string(c->first_pos);
    } else if (const auto* p = std::get_if<PoolChanged>(&event)) {
      for (const PoolNgram& ngram : p->added) add(ngram.rest);
      for (const PoolNgram& ngram : p->evicted) add(ngram.rest);
    } else if (const auto* b = std::get_if<BlockRefined>(&event)) {
      add(b->tokens);
    }
    lines.push_back(line);
  }
  return lines;
}

int Dice::operator()(int low, int high) {
  const std::uint64_t bits = kernels::random_bits(seed_, 99, 0, n_++);
  return low + static_cast<int>((bits * static_cast<std::uint64_t>(high - low + 1)) >> 32);
}

std::vector<TokenId> Dice::text(int length, int vocab) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; i++) tokens.push_back((*this)(0, vocab - 1));
  return tokens;
}

Job random_job(Dice& dice, LanguageModel* draft) {
  const auto pick = [&](std::vector<const char*> names) {
    return std::string(
        names[static_cast<std::size_t>(dice(0, static_cast<int>(names.size()) - 1))]);
  };
  const auto number = [&](int low, int high) { return std::to_string(dice(low, high)); };
  Job job;
  job.draft = draft;
  job.decoder =
      pick(draft ? std::vector<const char*>{"fastcot", "jacobi", "lookahead", "prompt-lookup",
                                            "suffix", "recycling", "speculative", "mcsd", "seed"}
                 : std::vector<const char*>{"fastcot", "jacobi", "lookahead", "lookahead",
                                            "prompt-lookup", "suffix", "recycling"});
  if (job.decoder == "jacobi") {
    job.options = {{"block", number(1, 12)},
                   {"refill", pick({"block", "slide"})},
                   {"fill", pick({"prompt", "pad", "repeat"})}};
    if (job.options["refill"] == "block") job.options["form"] = pick({"kv", "kv", "textbook"});
  } else if (job.decoder == "fastcot") {
    job.options = {{"window", number(0, 12)},
                   {"filler", pick({"pad", "prompt", "repeat"})},
                   {"skip", pick({"true", "true", "false"})}};
  } else if (job.decoder == "lookahead") {
    job.options = {{"window", number(1, 8)},
                   {"ngram_size", number(2, 6)},
                   {"n_guesses", number(0, 8)},
                   {"prompt_pool", pick({"true", "false"})},
                   {"bonus", pick({"true", "false"})},
                   {"merge", pick({"true", "false"})},
                   {"advance", pick({"one", "accepted"})},
                   {"preset", pick({"none", "paper"})}};
  } else if (job.decoder == "recycling") {
    job.options = {{"rows", dice(0, 2) ? number(1, 24) : "auto"},
                   {"k", number(1, 9)},
                   {"pairs", pick({"true", "false"})},
                   {"prompt", pick({"true", "false"})},
                   {"learn", pick({"all", "accepted"})}};
  } else if (job.decoder == "speculative" || job.decoder == "mcsd" || job.decoder == "seed") {
    job.options = {{"draft_temperature", pick({"-1", "-1", "0", "0.5", "2"})},
                   {"draft_top_k", pick({"-1", "0", "1", "3"})},
                   {"draft_top_p", pick({"-1", "1", "0.7"})},
                   {"stop_below", pick({"0", "0", "0.2", "0.6", "1"})}};
    if (job.decoder == "speculative") {
      job.options["gamma"] = number(1, 9);
    } else {
      job.options["k_config"] = pick({"1", "3", "1,1,1", "2,2,1", "4,2,2", "1,3", "2,1,1,1,1,1"});
      job.options["rule"] = pick({"without", "with", "naive", "kseq"});
    }
  } else if (job.decoder == "suffix") {
    job.options = {{"n_tokens", dice(0, 2) ? number(1, 16) : "auto"},
                   {"factor", pick({"0.5", "1", "2.5", "8"})},
                   {"min_p", pick({"0", "0.1", "0.4", "1"})},
                   {"shape", pick({"tree", "tree", "chain"})}};
  } else {
    job.options = {{"max_ngram", number(1, 4)},
                   {"n_tokens", number(1, 12)},
                   {"variant", pick({"paper", "hf", "last"})}};
  }
  return job;
}

bool is_textbook(const Job& job) {
  const auto form = job.options.find("form");
  return form != job.options.end() && form->second == "textbook";
}

std::string described(const Job& job) {
  std::string text = job.decoder;
  for (const auto& [name, value] : job.options) text += " " + name + "=" + value;
  return text + " T=" + std::to_string(job.sampling.temperature) +
         " seed=" + std::to_string(job.sampling.seed) +
         " max=" + std::to_string(job.limits.max_tokens);
}

}  // namespace engine::test
