// Compares the bytes and waits of every kind of step on a GPU with the formulas of docs/cuda.md
// ("What crosses the bus").
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/decode/draft/rank_tree.h"
#include "engine/event/queue.h"
#include "kernels/cuda/cuda.h"
#include "tests/engine/decode/emulated/cuda_calls.h"
#include "tests/support/assets_folder.h"
#include "tests/support/decode/catalogue.h"

namespace engine::test {
namespace {

class EmulatedGpuBus : public testing::Test {
 protected:
  /// Option values and sampling for one row of the document's table.
  static Job job_of(const std::string& decoder, const OptionValues& options, bool rejects) {
    Job job;
    job.decoder = decoder;
    job.options = options;
    job.limits.max_tokens = 24;
    if (rejects) job.sampling = {.temperature = 0.8f, .mode = Sampling::Mode::Rejection};
    job.draft = &on().draft();
    job.heads = on().heads(decoder);
    return job;
  }
  static Loaded& on() {
    static Loaded loaded(Subject{Subject::Kind::Tiny, kernels::DType::BF16}, 0, {},
                         kernels::open_cuda("cuda:emulated"));
    return loaded;
  }
  /// The CUDA calls of one step, and the counts that the formulas use.
  struct Step {
    CudaCalls asked;
    int n_rows = 0, n_with_parent = 0;  // of the target
    int n_verified = 0;                 // rows outside Lookahead's window
    std::vector<DraftForward> drafted;
    std::int64_t n_encoded = 0;  // new k-grams
  };
  static std::vector<Step> steps_of(const Job& job, bool shown = false) {
    engine::Lane lane = start(on().model(), std::vector<TokenId>{3, 7, 1, 9, 2, 9, 5}, job);
    lane.decoder->read_prompt(lane.sequence);  // not a part of the first step
    EventList events;
    Stepper stepper(on().model(), shown ? &events : nullptr);
    engine::Lane* const lanes[] = {&lane};
    std::vector<Step> steps;
    while (!lane.sequence.finished()) {
      auto counts = counts_of(lane);
      const std::int64_t before = counts["gram_lookups"] - counts["gram_hits"];
      Step step;
      step.asked = cuda_calls_of([&] { stepper.step(lanes); });
      counts = counts_of(lane);
      step.n_encoded = counts["gram_lookups"] - counts["gram_hits"] - before;
      step.n_rows = lane.tree.n_rows();
      for (const int parent : lane.tree.parent) step.n_with_parent += parent >= 0;
      for (const RowTag& tag : lane.tree.tag) step.n_verified += tag.kind != RowTag::Kind::Window;
      step.drafted = lane.decoder->draft_forwards();
      steps.push_back(step);
    }
    return steps;
  }
  static std::int64_t dim() { return on().transformer()->config().dim; }
  /// Bytes of the results of n verified nodes; each node except row 0 is a candidate of another.
  static std::int64_t verify_result(int n) {
    return 16 * std::int64_t{n} + 16 * std::int64_t{n - 1};
  }
  /// Bytes of one row's ranking.
  static std::int64_t ranking(int width) { return 16 + 8 * std::int64_t{width}; }
};

TEST_F(EmulatedGpuBus, without_drafts_only_choices_are_copied_with_one_wait) {
  for (const char* decoder :
       {"ar", "jacobi", "fastcot", "lookahead", "prompt-lookup", "suffix", "recycling"}) {
    for (const bool rejects : {false, true}) {
      const std::string name = decoder;
      if (rejects && (name == "jacobi" || name == "fastcot"))
        continue;  // these refuse rejection sampling
      SCOPED_TRACE(std::string(decoder) + (rejects ? " by rejection" : ""));
      for (const Step& step : steps_of(job_of(decoder, {}, rejects))) {
        EXPECT_EQ(step.asked.waits, 1);
        const std::int64_t successors = name == "recycling" ? step.n_rows * 8 * 8 : 0;
        EXPECT_EQ(step.asked.to_host,
                  step.n_rows * 24 + successors + (rejects ? verify_result(step.n_verified) : 0));
      }
    }
  }
}

TEST_F(EmulatedGpuBus, a_draft_model_waits_once_per_forward) {
  for (const bool rejects : {false, true}) {
    SCOPED_TRACE(rejects);
    int n_drafted = 0;
    for (const Step& step : steps_of(job_of("speculative", {{"gamma", "4"}}, rejects))) {
      std::int64_t bytes = step.n_rows * 24 + (rejects ? verify_result(step.n_rows)
                                                       : 4 * std::int64_t{step.n_with_parent});
      for (const DraftForward& one : step.drafted) bytes += rejects ? 16 + 16 : one.n_rows * 24;
      EXPECT_EQ(step.asked.waits, 1 + std::ssize(step.drafted));
      EXPECT_EQ(step.asked.to_host, bytes);
      EXPECT_LT(step.asked.to_device, 4000);
      n_drafted += step.drafted.size() == 4;
    }
    EXPECT_GT(n_drafted, 2);
  }
}

// A recorded step also copies the eight likeliest tokens of every node, 16 bytes each.
TEST_F(EmulatedGpuBus, a_recorded_step_copies_its_distributions_too) {
  const Job job = job_of("speculative", {{"gamma", "4"}}, true);
  const std::vector<Step> shown = steps_of(job, true), unseen = steps_of(job);
  ASSERT_EQ(shown.size(), unseen.size());
  for (std::size_t i = 0; i < shown.size(); i++) {
    EXPECT_EQ(shown[i].asked.to_host, unseen[i].asked.to_host + 128 * shown[i].n_rows);
    EXPECT_EQ(shown[i].asked.waits, unseen[i].asked.waits);
  }
}

// Each node that is sampled from costs a header of 16 bytes, and each candidate 16 bytes.
TEST_F(EmulatedGpuBus, a_sampled_tree_copies_only_its_candidates) {
  int n_drafted = 0;
  for (const char* rule : {"without", "with", "kseq", "naive"}) {
    const Job job = job_of("mcsd", {{"k_config", "3,2,1"}, {"rule", rule}}, true);
    for (const Step& step : steps_of(job)) {
      EXPECT_EQ(step.asked.waits, 1 + std::ssize(step.drafted));
      if (step.drafted.size() != 3) continue;
      if (step.n_rows < 1 + 3 + 6 + 6) continue;  // a token drawn twice has one row
      EXPECT_EQ(step.asked.to_host, step.n_rows * 24 + verify_result(step.n_rows) + (16 + 3 * 16) +
                                        3 * (16 + 2 * 16) + 6 * (16 + 16));
      n_drafted++;
    }
  }
  EXPECT_GT(n_drafted, 4);
}

// Levels with one candidate per node need the argmax, wider ones a ranking; coupled sampling ranks
// 64 tokens for the noise.
TEST_F(EmulatedGpuBus, a_wide_draft_level_copies_its_ranking) {
  const std::vector<int> k_config = {3, 2, 1};
  for (const float temperature : {0.0f, 0.8f}) {
    Job job = job_of("mcsd", {{"k_config", "3,2,1"}}, false);
    job.sampling.temperature = temperature;
    int n_drafted = 0;
    for (const Step& step : steps_of(job)) {
      std::int64_t bytes = 24 * step.n_rows + 4 * step.n_with_parent;
      for (std::size_t level = 0; level < step.drafted.size(); level++) {
        const int k = k_config[level], ranked = temperature > 0 ? 64 : k;
        bytes += step.drafted[level].n_rows * (k == 1 ? 24 : ranking(ranked));
      }
      EXPECT_EQ(step.asked.waits, 1 + std::ssize(step.drafted));
      EXPECT_EQ(step.asked.to_host, bytes);
      n_drafted += step.drafted.size() == 3;
    }
    EXPECT_GT(n_drafted, 2);
  }
}

TEST_F(EmulatedGpuBus, medusa_copies_states_row_by_row_and_waits_twice) {
  const RankTree tree = find_rank_tree("rows16", assets_folder() + "/trees");
  int widest = 1;
  for (int d = 1; d <= tree.max_depth(); d++) widest = std::max(widest, tree.width_at(d));
  for (const std::string verify : {"greedy", "typical"}) {
    SCOPED_TRACE(verify);
    Job job = job_of("medusa", {{"tree", "rows16"}, {"verify", verify}}, false);
    if (verify == "typical") job.sampling.temperature = 0.8f;
    int n_drafted = 0;
    for (const Step& step : steps_of(job)) {
      const std::int64_t more =
          verify == "typical" ? verify_result(step.n_rows) : 4 * std::int64_t{step.n_with_parent};
      const std::int64_t target = step.n_rows * (24 + 4 * dim()) + more;
      EXPECT_EQ(step.asked.waits, 1 + std::ssize(step.drafted));
      if (step.n_rows < 16) continue;  // fewer heads are used near the end
      EXPECT_EQ(step.asked.to_host, target + tree.max_depth() * ranking(widest));
      n_drafted++;
    }
    EXPECT_GT(n_drafted, 2);
  }
}

TEST_F(EmulatedGpuBus, chimera_waits_once_per_level_and_for_new_k_grams) {
  const RankTree tree = find_rank_tree("rows16", assets_folder() + "/trees");
  for (const char* cache : {"0", "1024"}) {
    for (const char* drafting : {"chain", "branch"}) {
      SCOPED_TRACE(std::string(drafting) + ", cache " + cache);
      const Job job =
          job_of("chimera", {{"tree", "rows16"}, {"drafting", drafting}, {"cache", cache}}, false);
      std::int64_t n_new = 0, n_known = 0;
      for (const Step& step : steps_of(job)) {
        std::int64_t bytes =
            step.n_rows * (24 + 4 * dim()) + 4 * step.n_with_parent + 4 * dim() * step.n_encoded;
        for (std::size_t level = 0; level < step.drafted.size(); level++)
          bytes += step.drafted[level].n_rows * ranking(tree.width_at(static_cast<int>(level) + 1));
        EXPECT_EQ(step.asked.to_host, bytes);
        const std::int64_t levels = std::ssize(step.drafted);
        // Encoding the tokens that the last step accepted takes one wait. Each level with new
        // k-grams takes another.
        const std::int64_t again = step.asked.waits - 1 - levels;
        EXPECT_GE(again, step.n_encoded > 0);
        EXPECT_LE(again, std::min<std::int64_t>(step.n_encoded, 1 + levels));
        (step.n_encoded > 0 ? n_new : n_known)++;
      }
      EXPECT_GT(n_new, 2);
      if (cache == std::string("0")) {
        EXPECT_EQ(n_known, 0);
      } else if (drafting == std::string("chain")) {
        EXPECT_GT(n_known, 0) << "every step had a new k-gram";
      }
    }
  }
}

}  // namespace
}  // namespace engine::test
