// Collecting trajectories from toy models with known greedy texts, and the file of trajectories.
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/guess/textbook_jacobi.h"
#include "engine/decode/step/stepper.h"
#include "engine/train/cllm/trajectories.h"
#include "engine/train/cllm/trajectory_file.h"
#include "tests/support/models/toy_model.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using test::ToyModel;

constexpr TokenId kEos = 5;

TrajectoryPrompt prompt_of(std::int64_t index) {
  TrajectoryPrompt prompt{.index = index, .part = "toy", .tokens = {}, .truth = {3, kEos}};
  for (int i = 0; i < 2 + index % 4; i++)
    prompt.tokens.push_back(static_cast<TokenId>((index * 7 + i * 3) % 5));
  return prompt;
}

std::map<std::int64_t, Trajectory> collected(LanguageModel& model,
                                             const CollectSettings& settings,
                                             int n_prompts) {
  std::map<std::int64_t, Trajectory> all;
  int handed = 0;
  const int passed = collect_trajectories(
      model, settings,
      [&](TrajectoryPrompt& prompt) {
        if (handed == n_prompts) return false;
        prompt = prompt_of(handed++);
        return true;
      },
      [&](Trajectory t) { all.emplace(t.index, std::move(t)); });
  EXPECT_EQ(passed, 0);
  return all;
}

std::vector<TokenId> greedy(ToyModel& model, std::vector<TokenId> prompt, int max_tokens) {
  Limits limits{.max_tokens = max_tokens, .eos_ids = {kEos}};
  Lane lane = make_lane(1, model, std::move(prompt), "ar", {model, {}, limits, {}});
  prefill(model, lane.sequence);
  lane.decoder->begin(lane.sequence);
  Stepper stepper(model, nullptr);
  Lane* const one = &lane;
  while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
  const auto text = lane.sequence.generated();
  return {text.begin(), text.end()};
}

TEST(Trajectories, answers_equal_autoregressive_decoding) {
  for (const int block : {1, 2, 5, 16}) {
    for (std::uint64_t seed = 0; seed < 6; seed++) {
      ToyModel model({.vocab = 6, .context = 2, .seed = seed});
      const CollectSettings settings{
          .block = block, .max_new_tokens = 23, .n_lanes = 4, .eos_ids = {kEos}};
      for (const auto& [index, t] : collected(model, settings, 9)) {
        EXPECT_EQ(t.prompt, prompt_of(index).tokens);
        EXPECT_EQ(t.output, greedy(model, t.prompt, 23));
        EXPECT_EQ(t.ended, t.output.back() == kEos);
        EXPECT_EQ(t.truth, (std::vector<TokenId>{3, kEos}));
        std::vector<TokenId> joined;
        for (const BlockPoints& points : t.blocks) {
          // The first guess, and at most one more state for each position.
          ASSERT_GE(points.size(), 1u);
          EXPECT_LE(points.size(), points[0].size() + 1);
          int front = 0;
          for (const auto& point : points) {
            ASSERT_EQ(point.size(), points[0].size());
            const int right = n_correct_prefix(point, points.back());
            EXPECT_GE(right, front) << "leading right tokens stay right";
            if (&point != &points[0]) {
              EXPECT_GT(right, front) << "each iteration fixes at least one more token";
            }
            front = right;
          }
          joined.insert(joined.end(), points.back().begin(), points.back().end());
        }
        ASSERT_GE(joined.size(), t.output.size());
        joined.resize(t.output.size());
        EXPECT_EQ(joined, t.output);
        EXPECT_EQ(t.blocks.size(), (t.output.size() + static_cast<std::size_t>(block) - 1) /
                                       static_cast<std::size_t>(block));
      }
    }
  }
}

TEST(Trajectories, states_are_those_of_the_textbook) {
  int n_blocks = 0;
  for (std::uint64_t seed = 0; seed < 6; seed++) {
    ToyModel model({.vocab = 6, .context = 3, .seed = seed});
    const CollectSettings settings{
        .block = 7, .max_new_tokens = 24, .n_lanes = 4, .eos_ids = {kEos}};
    for (const auto& [index, t] : collected(model, settings, 9)) {
      std::vector<TokenId> text = t.prompt;
      for (const BlockPoints& points : t.blocks) {
        Sequence prefix(text, model.make_cache());
        prefill(model, prefix);
        JacobiTrajectory expected = textbook_jacobi(model, prefix, points.front(), {});
        // The states of the last block end when the end token is final.
        if (t.ended && &points == &t.blocks.back()) {
          ASSERT_LE(points.size(), expected.points.size());
          expected.points.resize(points.size());
        }
        ASSERT_EQ(points, expected.points);
        text.insert(text.end(), points.back().begin(), points.back().end());
        n_blocks++;
      }
    }
  }
  EXPECT_GT(n_blocks, 60);
}

TEST(Trajectories, do_not_depend_on_other_prompts_in_the_batch) {
  ToyModel model({.vocab = 6, .context = 3, .seed = 3});
  const auto alone =
      collected(model, {.block = 4, .max_new_tokens = 30, .n_lanes = 1, .eos_ids = {kEos}}, 8);
  const auto together =
      collected(model, {.block = 4, .max_new_tokens = 30, .n_lanes = 8, .eos_ids = {kEos}}, 8);
  ASSERT_EQ(alone.size(), together.size());
  for (const auto& [index, t] : alone) EXPECT_EQ(t.blocks, together.at(index).blocks);
}

TEST(Trajectories, answers_without_blocks_are_the_same) {
  for (std::uint64_t seed = 0; seed < 6; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    CollectSettings settings{.block = 5, .max_new_tokens = 23, .n_lanes = 4, .eos_ids = {kEos}};
    const auto whole = collected(model, settings, 9);
    settings.keep_points = false;
    const auto alone = collected(model, settings, 9);
    ASSERT_EQ(alone.size(), whole.size());
    for (const auto& [index, t] : alone) {
      EXPECT_EQ(t.output, whole.at(index).output);
      EXPECT_EQ(t.ended, whole.at(index).ended);
      EXPECT_EQ(t.truth, whole.at(index).truth);
      EXPECT_TRUE(t.blocks.empty());
    }
  }
}

TEST(Trajectories, prompts_share_a_forward_pass) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 1});
  collected(model, {.block = 4, .max_new_tokens = 20, .n_lanes = 1, .eos_ids = {}}, 8);
  const int one_by_one = std::exchange(model.n_forwards, 0);
  collected(model, {.block = 4, .max_new_tokens = 20, .n_lanes = 8, .eos_ids = {}}, 8);
  EXPECT_LT(model.n_forwards, one_by_one / 3);
}

TEST(Trajectories, stop_discards_unfinished_answers) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 1});
  int n_done = 0, n_asked = 0;
  collect_trajectories(
      model, {.block = 4, .max_new_tokens = 20, .n_lanes = 2, .eos_ids = {}},
      [](TrajectoryPrompt& prompt) {
        prompt = prompt_of(1);
        return true;
      },
      [&](const Trajectory&) { n_done++; }, [&] { return n_done >= 3 && ++n_asked > 0; });
  EXPECT_GE(n_done, 3);
  EXPECT_LE(n_done, 4) << "both lanes may end in one forward";
  EXPECT_EQ(n_asked, 1);
}

TEST(Trajectories, prompts_without_room_are_skipped) {
  ToyModel model({.vocab = 6, .context = 2, .max_seq_len = 8});
  int handed = 0;
  const int passed = collect_trajectories(
      model, {.block = 4, .max_new_tokens = 20, .n_lanes = 2, .eos_ids = {}},
      [&](TrajectoryPrompt& prompt) {
        prompt.tokens.assign(handed == 0 ? 8 : 6, 1);
        return handed++ < 2;
      },
      [&](const Trajectory& t) {
        EXPECT_EQ(t.prompt.size(), 6u);
        EXPECT_EQ(t.output.size(), 2u) << "to the context's end";
        EXPECT_FALSE(t.ended);
      });
  EXPECT_EQ(passed, 1);
}

class TrajectoryFiles : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() /
             ("trajectories_" + std::to_string(::getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()))
                .string();
    fs::remove(path_);
  }
  void TearDown() override { fs::remove(path_); }
  std::string path_;
};

std::vector<CollectedText> some_texts() {
  ToyModel model({.vocab = 6, .context = 2, .seed = 2});
  std::vector<CollectedText> texts;
  for (auto& [index, t] :
       collected(model, {.block = 4, .max_new_tokens = 11, .n_lanes = 3, .eos_ids = {kEos}}, 5))
    texts.push_back({.drop = Drop::None, .checked = index % 2 == 0, .trajectory = t});
  texts[1].drop = Drop::Wrong;
  texts[3].drop = Drop::TokenRun;
  return texts;
}

void expect_same(const std::vector<CollectedText>& found,
                 const std::vector<CollectedText>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); i++) {
    const Trajectory &a = found[i].trajectory, &b = expected[i].trajectory;
    EXPECT_EQ(found[i].drop, expected[i].drop);
    EXPECT_EQ(found[i].checked, expected[i].checked);
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.part, b.part);
    EXPECT_EQ(a.prompt, b.prompt);
    EXPECT_EQ(a.output, b.output);
    EXPECT_EQ(a.ended, b.ended);
    EXPECT_EQ(a.truth, b.truth);
    EXPECT_EQ(a.blocks, b.blocks);
  }
}

TEST_F(TrajectoryFiles, reopened_file_has_all_texts_by_index) {
  const auto texts = some_texts();
  {
    TrajectoryFile file(path_, "how");
    for (const std::size_t i : {4, 0, 2, 1, 3}) file.add(texts[i]);
    EXPECT_TRUE(file.has(4));
    EXPECT_FALSE(file.has(5));
    expect_same(file.texts(), texts);
  }
  TrajectoryFile again(path_, "how");
  expect_same(again.texts(), texts);
  EXPECT_EQ(again.size(), 5u);
}

TEST_F(TrajectoryFiles, truncated_file_keeps_whole_texts) {
  const auto texts = some_texts();
  std::vector<std::uintmax_t> sizes;
  {
    TrajectoryFile file(path_, "how");
    for (const CollectedText& text : texts) {
      file.add(text);
      sizes.push_back(fs::file_size(path_));
    }
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t cut = 8; cut < bytes.size(); cut += 7) {
    std::ofstream(path_, std::ios::binary) << bytes.substr(0, cut);
    TrajectoryFile file(path_, "how");
    const auto whole = static_cast<std::size_t>(
        std::ranges::count_if(sizes, [&](std::uintmax_t size) { return size <= cut; }));
    ASSERT_EQ(file.size(), whole) << cut;
    for (std::size_t i = whole; i < texts.size(); i++) file.add(texts[i]);
    expect_same(file.texts(), texts);
    ASSERT_EQ(fs::file_size(path_), bytes.size()) << cut;
  }
}

TEST_F(TrajectoryFiles, file_of_another_recipe_is_refused) {
  TrajectoryFile(path_, "how").add(some_texts()[0]);
  try {
    TrajectoryFile(path_, "otherwise");
    FAIL() << "accepted another recipe's trajectories";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("collected with another recipe or model"));
  }
  std::ofstream(path_, std::ios::binary) << "a text of something else";
  EXPECT_THROW(TrajectoryFile(path_, "how"), Error);
  EXPECT_EQ(fs::file_size(path_), 24u) << "the file is unchanged";
}

TEST(CollectCounts, count_kept_texts_and_reasons_of_drops) {
  const auto texts = some_texts();
  const CollectCounts counts = counts_of(texts);
  EXPECT_EQ(counts.n_texts, 5);
  EXPECT_EQ(counts.n_kept, 3);
  EXPECT_EQ(counts.n_wrong, 1);
  EXPECT_EQ(counts.n_token_runs, 1);
  EXPECT_EQ(counts.n_unchecked, 0);
  std::int64_t points = 0;
  for (const std::size_t i : {0, 2, 4})
    for (const BlockPoints& block : texts[i].trajectory.blocks)
      points += static_cast<std::int64_t>(block.size());
  EXPECT_EQ(counts.n_points, points);
  EXPECT_THAT(words_of(counts), testing::HasSubstr("5 answers, 3 kept"));
}

}  // namespace
}  // namespace engine
