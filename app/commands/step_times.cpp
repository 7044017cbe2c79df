#include "app/commands/step_times.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "app/cli/terminal.h"
#include "app/commands/report.h"
#include "engine/model/draft_heads.h"
#include "engine/model/model.h"
#include "engine/run/run.h"
#include "kernels/cpu/probe.h"

namespace app {
namespace {

double step_clock_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A chain of rows after `context` committed tokens, as a decoder proposes it.
engine::TokenTree chain_of_rows(int n_rows, int vocab_size) {
  engine::TokenTree tree;
  for (int row = 0; row < n_rows; row++) tree.add((7 * row + 3) % vocab_size, row - 1, {});
  return tree;
}

/// Times `run` timing.repeat times, after two runs for warm-up.
template <typename Work>
double median_ms_of(const StepTiming& timing, Work work) {
  std::vector<double> ms;
  for (int repeat = -2; repeat < timing.repeat && !interrupted(); repeat++) {
    const double start = step_clock_ms();
    work();
    if (repeat >= 0) ms.push_back(step_clock_ms() - start);
  }
  return median(std::move(ms));
}

constexpr int kRanks = 10;  // candidates per head, typical of trees

/// Returns a function that evaluates Chimera's heads along a chain after a number of tokens. Each
/// call also processes the last token again, as decoding processes the accepted tokens of a step.
std::function<void()> chimera_evaluation(engine::ChimeraHeads& heads,
                                         int dim,
                                         int context,
                                         int depth) {
  const std::shared_ptr<engine::ChimeraSequence> text = heads.make_sequence(nullptr);
  const int n_states = std::max(1, context);
  const auto append = [text, dim, gram = heads.gram()](int n) {
    text->append(
        std::vector<float>(static_cast<std::size_t>(n) * static_cast<std::size_t>(dim), 0.5f),
        std::vector<engine::TokenId>(static_cast<std::size_t>(n) * static_cast<std::size_t>(gram),
                                     0));
  };
  append(n_states);
  return [&heads, text, append, n_states, depth, next = engine::TokenId{0}]() mutable {
    text->truncate(n_states - 1);
    append(1);
    text->begin_draft();
    for (int level = 0; level < depth; level++) {
      const std::vector<engine::TokenId> gram(static_cast<std::size_t>(heads.gram()),
                                              next++ % heads.vocab_size());
      const int parent = level - 1;
      text->ranked_level({&parent, 1}, gram, kRanks);
    }
  };
}

/// Returns a function that evaluates the first `depth` heads once, after a number of tokens.
/// @param dim  hidden size of the target
std::function<void()> heads_evaluation(engine::DraftHeads& heads, int dim, int context, int depth) {
  if (auto* medusa = dynamic_cast<engine::MedusaHeads*>(&heads))
    return [medusa, hidden = std::vector<float>(static_cast<std::size_t>(dim), 0.5f), depth] {
      medusa->ranked(hidden, depth, kRanks);
    };
  auto* chimera = dynamic_cast<engine::ChimeraHeads*>(&heads);
  engine::ensure(chimera != nullptr, "the heads must be Medusa's or Chimera's");
  return chimera_evaluation(*chimera, dim, context, depth);
}

std::vector<engine::TokenId> bench_prompt(const engine::Model& model, int n_tokens) {
  std::vector<engine::TokenId> prompt(static_cast<std::size_t>(n_tokens));
  for (std::size_t i = 0; i < prompt.size(); i++)
    prompt[i] =
        static_cast<engine::TokenId>((5 * i + 1) % static_cast<std::size_t>(model.vocab_size()));
  return prompt;
}

/// A prompt of n_tokens + 1 tokens; all but the last have keys and values.
engine::Sequence read_bench_prompt(engine::Model& model, int n_tokens) {
  return engine::prefilled(model, bench_prompt(model, n_tokens + 1));
}

/// Sequences of the same length; makes and times steps that follow them.
class BenchTexts {
 public:
  BenchTexts(engine::Model& model, std::vector<engine::Sequence> texts)
      : model_(model), texts_(std::move(texts)) {
    for (engine::Sequence& text : texts_) {
      const std::span<const engine::TokenId> cached = text.cached_tokens();
      tokens_.emplace_back(cached.begin(), cached.end());
    }
    n_begun_ = tokens_.front().size();
  }

  /// Runs a forward of a chain of rows for each sequence and commits the first row, which every
  /// decoding step commits. @return  time in ms
  double step(int n_rows) {
    if (static_cast<int>(tokens_.front().size()) + n_rows > model_.max_seq_len()) go_back();
    const engine::TokenTree tree = chain_of_rows(n_rows, model_.vocab_size());
    std::vector<engine::BatchItem> items;
    for (std::size_t i = 0; i < texts_.size(); i++)
      items.push_back({.cache = &texts_[i].cache(), .tree = &tree, .prefix = tokens_[i]});
    const int first = 0;
    const double start = step_clock_ms();
    model_.forward(items, {});
    for (engine::Sequence& text : texts_) text.cache().commit({&first, 1});
    const double ms = step_clock_ms() - start;
    for (auto& tokens : tokens_) tokens.push_back(tree.token.front());
    return ms;
  }

  /// Rolls the sequences back to their start.
  void go_back() {
    for (engine::Sequence& text : texts_) text.cache().truncate(static_cast<int>(n_begun_));
    for (auto& tokens : tokens_) tokens.resize(n_begun_);
  }

 private:
  engine::Model& model_;
  std::vector<engine::Sequence> texts_;
  std::vector<std::vector<engine::TokenId>>
      tokens_;  // [sequences] the tokens that have keys and values
  std::size_t n_begun_;
};

/// Makes prompts with a shared beginning.
class RacePrompts {
 public:
  RacePrompts(engine::Model& model, int context, int n_new_tokens)
      : model_(model), context_(context), n_new_tokens_(n_new_tokens) {
    if (shares()) shared_.emplace(read_bench_prompt(model, context - n_new_tokens));
  }

  /// Starts the next prompt; prefill is not timed.
  std::vector<engine::Sequence> read(int n_texts) {
    std::vector<engine::Sequence> texts;
    for (int text = 0; text < n_texts; text++) {
      if (shares()) {
        const std::vector<engine::TokenId> all = bench_prompt(model_, context_ + 1);
        texts.push_back(
            shared_->restarted(std::span(all).last(static_cast<std::size_t>(n_new_tokens_))));
        engine::prefill(model_, texts.back());
      } else {
        texts.push_back(read_bench_prompt(model_, context_));
      }
    }
    return texts;
  }

 private:
  bool shares() const { return n_new_tokens_ > 0 && n_new_tokens_ < context_; }

  engine::Model& model_;
  int context_, n_new_tokens_;
  std::optional<engine::Sequence> shared_;
};

/// The drafting before each step, on a sequence of its own.
class RaceDrafts {
 public:
  RaceDrafts(const engine::Model& target, const StepTiming& timing, const RaceTiming& race)
      : timing_(timing), race_(race), dim_(target.config().dim) {
    if (race.draft) prompts_.emplace(*race.draft, timing.context, race.n_new_tokens);
  }

  /// Starts the next prompt.
  std::function<void()> begin() {
    if (race_.draft) {
      const auto text = std::make_shared<BenchTexts>(*race_.draft, prompts_->read(1));
      return [text, n = race_.n_forwards] {
        for (int i = 0; i < n; i++) text->step(1);
        text->go_back();
      };
    }
    if (!race_.heads) return [] {};
    const int depth = std::min(race_.n_forwards, race_.heads->n_heads());
    return heads_evaluation(*race_.heads, dim_, timing_.context, depth);
  }

 private:
  const StepTiming& timing_;
  const RaceTiming& race_;
  int dim_;
  std::optional<RacePrompts> prompts_;
};

/// Times the steps after one prompt; returns the mean so far at each of race.steps.
/// @param draft  called before each step
std::vector<MeanSteps> steps_after_prompt(BenchTexts texts,
                                          const std::function<void()>& draft,
                                          const std::vector<int>& steps,
                                          int n_rows) {
  std::vector<MeanSteps> means;
  double ms = 0, draft_ms = 0;
  for (int step = 1; means.size() < steps.size() && !interrupted(); step++) {
    const double start = step_clock_ms();
    draft();
    draft_ms += step_clock_ms() - start;
    ms += texts.step(n_rows);
    if (step == steps[means.size()]) means.push_back({step, ms / step, draft_ms / step});
  }
  return means;
}

/// The median of each value separately.
MeanSteps median_of(const std::vector<MeanSteps>& each) {
  std::vector<double> ms, draft_ms;
  for (const MeanSteps& one : each) {
    ms.push_back(one.ms);
    draft_ms.push_back(one.draft_ms);
  }
  return {each.front().steps, median(std::move(ms)), median(std::move(draft_ms))};
}

/// Adds one of n_repeats steps to the means.
void add_to(StepBreakdown& mean, double ms, const kernels::cpu::OpTimes& ops, int n_repeats) {
  mean.ms += ms / n_repeats;
  for (std::size_t kind = 0; kind < ops.size(); kind++) {
    mean.ops[kind].ms += ops[kind].ms / n_repeats;
    mean.ops[kind].waiting_ms += ops[kind].waiting_ms / n_repeats;
    mean.ops[kind].n = ops[kind].n;
  }
}

}  // namespace

StepTimes time_steps(engine::Model& model,
                     const StepTiming& timing,
                     const std::function<void(int done)>& progress) {
  std::vector<engine::Sequence> sequences;
  for (int text = 0; text < timing.n_texts; text++)
    sequences.push_back(read_bench_prompt(model, timing.context));
  BenchTexts texts(model, std::move(sequences));
  std::vector<std::vector<double>> ms(timing.rows.size());
  StepTimes times;
  std::optional<kernels::cpu::OpTiming> ops;
  if (timing.breakdown && kernels::cpu::has_probes(model.device())) {
    ops.emplace(model.device());
    times.breakdown.resize(timing.rows.size());
  }
  for (int repeat = -2; repeat < timing.repeat && !interrupted(); repeat++) {
    texts.go_back();
    for (std::size_t i = 0; i < timing.rows.size() && !interrupted(); i++) {
      const std::int64_t launched = model.device().n_launches(),
                         kernels = model.device().n_kernels();
      if (ops) ops->take();
      const double took = texts.step(timing.rows[i]);
      if (repeat >= 0) ms[i].push_back(took);
      if (repeat >= 0 && ops) add_to(times.breakdown[i], took, ops->take(), timing.repeat);
      if (i == 0) {
        times.n_launches = model.device().n_launches() - launched;
        times.n_kernels = model.device().n_kernels() - kernels;
      }
    }
    if (progress && repeat >= 0) progress(repeat + 1);
  }
  times.cache_bytes = model.cache_bytes();
  for (const auto& values : ms) {
    if (values.empty()) break;
    times.ms.push_back(median(values));
  }
  return times;
}

std::vector<std::vector<MeanSteps>> time_race_steps(engine::Model& model,
                                                    const StepTiming& timing,
                                                    const RaceTiming& race,
                                                    const std::function<void(int done)>& progress) {
  RacePrompts prompts(model, timing.context, race.n_new_tokens);
  RaceDrafts drafts(model, timing, race);
  // [rows][steps][repeats]
  std::vector<std::vector<std::vector<MeanSteps>>> each(
      timing.rows.size(), std::vector<std::vector<MeanSteps>>(race.steps.size()));
  for (int repeat = 0; repeat < timing.repeat && !interrupted(); repeat++) {
    for (std::size_t i = 0; i < timing.rows.size() && !interrupted(); i++) {
      const std::function<void()> draft = drafts.begin();
      const std::vector<MeanSteps> means = steps_after_prompt(
          BenchTexts(model, prompts.read(timing.n_texts)), draft, race.steps, timing.rows[i]);
      for (std::size_t n = 0; n < means.size(); n++) each[i][n].push_back(means[n]);
    }
    if (progress) progress(repeat + 1);
  }
  std::vector<std::vector<MeanSteps>> of_rows;
  for (const auto& by_steps : each) {
    std::vector<MeanSteps>& means = of_rows.emplace_back();
    for (const std::vector<MeanSteps>& repeats : by_steps)
      if (!repeats.empty()) means.push_back(median_of(repeats));
  }
  return of_rows;
}

std::optional<double> read_gbps(kernels::Device& device) {
  if (interrupted() || !kernels::cpu::has_probes(device)) return std::nullopt;
  return kernels::cpu::ReadProbe(device).gbps();
}

double time_heads(engine::DraftHeads& heads, int dim, const StepTiming& timing) {
  return median_ms_of(timing, heads_evaluation(heads, dim, timing.context, heads.n_heads()));
}

}  // namespace app
