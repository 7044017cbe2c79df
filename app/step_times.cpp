#include "app/step_times.h"

#include <algorithm>
#include <chrono>

#include "app/report.h"
#include "app/terminal.h"
#include "engine/schedule/run.h"

namespace app {
namespace {

double step_clock_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A chain of rows after `context` committed tokens, as a decoder would propose it.
engine::TokenTree chain_of_rows(int n_rows, int vocab_size) {
  engine::TokenTree tree;
  for (int row = 0; row < n_rows; row++) tree.add((7 * row + 3) % vocab_size, row - 1, {});
  return tree;
}

/// Runs and times something timing.repeat times, behind two times that do not count.
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

constexpr int kRanks = 10;  // that trees ask a head for, about

double time_medusa(engine::MedusaHeads& heads, int dim, const StepTiming& timing) {
  const std::vector<float> hidden(static_cast<std::size_t>(dim), 0.5f);
  return median_ms_of(timing, [&] { heads.ranked(hidden, heads.n_heads(), kRanks); });
}

double time_chimera(engine::ChimeraHeads& heads, int dim, const StepTiming& timing) {
  const auto text = heads.make_text(0);
  const auto n_states = static_cast<std::size_t>(std::max(1, timing.context));
  text->append(std::vector<float>(n_states * static_cast<std::size_t>(dim), 0.5f),
               std::vector<engine::TokenId>(n_states * static_cast<std::size_t>(heads.gram()), 0));
  engine::TokenId next = 0;
  return median_ms_of(timing, [&] {
    text->begin_draft();
    for (int level = 0; level < heads.n_heads(); level++) {
      const std::vector<engine::TokenId> gram(static_cast<std::size_t>(heads.gram()),
                                              next++ % heads.vocab_size());
      const int parent = level - 1;
      text->ranked_level({&parent, 1}, gram, kRanks);
    }
  });
}

}  // namespace

StepTimes time_steps(engine::Model& model,
                     const StepTiming& timing,
                     const std::function<void(int done)>& progress) {
  std::vector<engine::TokenId> prompt(static_cast<std::size_t>(timing.context) + 1);
  for (std::size_t i = 0; i < prompt.size(); i++)
    prompt[i] = static_cast<engine::TokenId>((5 * i + 1) % model.vocab_size());
  engine::Sequence sequence = engine::prefilled(model, prompt);
  std::vector<std::vector<double>> ms(timing.rows.size());
  StepTimes times;
  for (int repeat = -2; repeat < timing.repeat && !interrupted(); repeat++) {
    for (std::size_t i = 0; i < timing.rows.size() && !interrupted(); i++) {
      const engine::TokenTree tree = chain_of_rows(timing.rows[i], model.vocab_size());
      const engine::BatchItem item{
          .cache = &sequence.cache(), .tree = &tree, .prefix = sequence.cached_tokens()};
      const std::int64_t launched = model.device().n_launches(),
                         kernels = model.device().n_kernels();
      const double start = step_clock_ms();
      model.forward(std::span(&item, 1), {});
      if (repeat >= 0) ms[i].push_back(step_clock_ms() - start);
      if (i == 0) {
        times.n_launches = model.device().n_launches() - launched;
        times.n_kernels = model.device().n_kernels() - kernels;
      }
      sequence.cache().commit({});
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

double time_heads(engine::DraftHeads& heads, int dim, const StepTiming& timing) {
  if (auto* medusa = dynamic_cast<engine::MedusaHeads*>(&heads))
    return time_medusa(*medusa, dim, timing);
  auto* chimera = dynamic_cast<engine::ChimeraHeads*>(&heads);
  engine::ensure(chimera != nullptr, "heads are Medusa's or Chimera's");
  return time_chimera(*chimera, dim, timing);
}

}  // namespace app
