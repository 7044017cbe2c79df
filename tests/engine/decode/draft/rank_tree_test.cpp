// Rank trees: counts of the published trees, file errors, and growth compared with every possible
// tree.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/decode/draft/rank_tree.h"
#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

const std::string kTrees = std::string(DECOSCOPE_SOURCE_DIR) + "/assets/trees";

class TreeFile : public testing::Test {
 protected:
  std::string with(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }
  test::Folder folder_;
  const std::string path_ = folder_ / "tree.json";
};

std::vector<int> counts_of(const RankTree& tree) {
  std::vector<int> counts(static_cast<std::size_t>(tree.max_depth()));
  for (const int depth : tree.depth) counts[static_cast<std::size_t>(depth) - 1]++;
  return counts;
}

// T11.
TEST(RankTree, published_trees_have_the_published_counts) {
  const std::map<std::string, std::vector<int>> counts{
      {"medusa_sim_7b_63", {10, 28, 23, 2}},
      {"medusa_vicuna_7b_63", {10, 23, 23, 7}},
      {"medusa_vicuna_13b_63", {10, 19, 25, 9}},
      {"medusa_vicuna_33b_63", {10, 24, 24, 5}},
      {"medusa_zephyr_63", {10, 27, 23, 3}},
      {"chimera_23", {4, 8, 8, 3}},
      {"medusa_vicuna_7b_stage1_63", {10, 32, 20, 1}},
      {"medusa_vicuna_13b_stage1_63", {10, 29, 23, 1}},
      {"medusa_vicuna_33b_stage1_63", {10, 34, 19}}};
  for (const auto& [name, expected] : counts)
    EXPECT_EQ(counts_of(find_rank_tree(name, kTrees)), expected) << name;
  for (const int rows : {8, 16, 24})
    EXPECT_EQ(find_rank_tree("rows" + std::to_string(rows), kTrees).n_nodes(), rows - 1);
}

TEST(RankTree, bundled_trees_have_parents_first_and_distinct_siblings) {
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTrees)) n_files += entry.exists();
  EXPECT_EQ(n_files, bundled_trees().size());
  for (const char* name : bundled_trees()) {
    const RankTree tree = find_rank_tree(name, kTrees);
    EXPECT_EQ(tree.name, name);
    std::set<std::vector<int>> seen;
    for (int node = 0; node < tree.n_nodes(); node++) {
      const auto i = static_cast<std::size_t>(node);
      EXPECT_LT(tree.parent[i], node);
      EXPECT_EQ(static_cast<int>(tree.path(node).size()), tree.depth[i]);
      EXPECT_LT(tree.rank[i], tree.width_at(tree.depth[i]));
      EXPECT_TRUE(seen.insert(tree.path(node)).second) << name;
    }
  }
}

TEST_F(TreeFile, may_list_paths_in_any_order) {
  const RankTree tree = read_rank_tree(
      with(R"({"paths": [[1], [0, 3], [0], [0, 3, 2]], "source": "by hand", "more": {"a": [1]}})"));
  EXPECT_EQ(tree.rank, (std::vector<int>{0, 1, 3, 2}));
  EXPECT_EQ(tree.parent, (std::vector<int>{-1, -1, 0, 2}));
  EXPECT_EQ(tree.path(3), (std::vector<int>{0, 3, 2}));
  EXPECT_EQ(tree.width_at(2), 4);
  const RankTree again = read_rank_tree(with(json_of(tree, "so \"it\" was")));
  EXPECT_EQ(again.rank, tree.rank);
  EXPECT_EQ(again.parent, tree.parent);
  const RankTree shallow = pruned(tree, 2);
  EXPECT_EQ(shallow.n_nodes(), 3);
  EXPECT_EQ(find_rank_tree("none", "").n_nodes(), 0);
}

TEST_F(TreeFile, an_invalid_file_is_refused_by_name_and_position) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "paths: found none"},
      {R"({"paths": 3})", "paths: found 3"},
      {R"({"paths": [0]})", "lists of ranks"},
      {R"({"paths": [[]]})", "at least one rank"},
      {R"({"paths": [[0, -1], [0]]})", "found -1"},
      {R"({"paths": [[0.5]]})", "found 0.5"},
      {R"({"paths": [["a"]]})", "ranks of 0.."},
      {R"({"paths": [[0], [1, 0]]})", "[1, 0] without [1]"},
      {R"({"paths": [[0], [0]]})", "[0] twice"}};
  for (const auto& [text, part] : cases) {
    const std::string path = with(text);
    const std::string message = test::refusal([&] { read_rank_tree(path); });
    EXPECT_THAT(message, HasSubstr(part));
    EXPECT_THAT(message, HasSubstr(path));
  }
  std::string many = R"({"paths": [)";
  for (int i = 0; i < 256; i++) many += "[" + std::to_string(i) + (i < 255 ? "]," : "]]}");
  EXPECT_THAT(test::refusal([&] { read_rank_tree(with(many)); }), HasSubstr("at most 255"));
  EXPECT_THAT(test::refusal([&] { find_rank_tree("rows15", kTrees); }), HasSubstr("rows16"));
}

TEST_F(TreeFile, an_accuracy_file_holds_rates_per_head) {
  const HeadAccuracies read = read_accuracies(
      with(R"({"heads": [[0.5, 0.25], [0.4]], "prompts": 200, "measured_on": "G1 dev"})"));
  EXPECT_EQ(read, read_accuracies(
                      with(R"({"heads": [[0.9], [0.9]], "after_right": [[0.5, 0.25], [0.4]]})")))
      << "the shares along chains of right guesses";
  EXPECT_EQ(read, (HeadAccuracies{{0.5, 0.25}, {0.4}}));
  for (const char* text : {R"({"heads": []})", R"({"heads": [[]]})", R"({"heads": [[0.7, 0.6]]})",
                           R"({"heads": [[1.5]]})", R"({"heads": [["a"]]})", R"({"prompts": 3})"})
    EXPECT_THAT(test::refusal([&] { read_accuracies(with(text)); }), HasSubstr("heads")) << text;
}

double chance(const std::vector<int>& path, const HeadAccuracies& accuracies) {
  double product = 1;
  for (std::size_t d = 0; d < path.size(); d++)
    product *= accuracies[d][static_cast<std::size_t>(path[d])];
  return product;
}

TEST(RankTree, the_grown_tree_is_optimal_for_its_size) {
  // Accuracies fall with the rank, so the best tree has the most probable paths.
  const HeadAccuracies accuracies{{.6, .2, .1}, {.5, .3, .05}, {.7, .1, .1}};
  std::vector<double> all;
  for (int a = 0; a < 3; a++) {
    all.push_back(chance({a}, accuracies));
    for (int b = 0; b < 3; b++) {
      all.push_back(chance({a, b}, accuracies));
      for (int c = 0; c < 3; c++) all.push_back(chance({a, b, c}, accuracies));
    }
  }
  std::ranges::sort(all, std::greater());
  double best = 1;
  for (int n_rows = 1; n_rows <= 40; n_rows++) {
    const RankTree tree = grow_rank_tree(accuracies, n_rows);
    EXPECT_EQ(tree.n_nodes() + 1, n_rows);
    EXPECT_NEAR(expected_tokens(tree, accuracies), best, 1e-12) << n_rows;
    if (n_rows <= 39) best += all[static_cast<std::size_t>(n_rows) - 1];
  }
  EXPECT_EQ(grow_rank_tree(accuracies, 100).n_nodes(), 39);  // all 39 paths
}

TEST(RankTree, expected_tokens_follow_the_head_accuracies) {
  // A chain of heads that are right with probability a gives 1 + a + a^2 + ... tokens per step.
  const RankTree chain = rank_tree_of({{0}, {0, 0}, {0, 0, 0}}, "chain");
  const double a = 0.8;
  EXPECT_NEAR(expected_tokens(chain, {{a}, {a}, {a}}), 1 + a + a * a + a * a * a, 1e-12);
}

TEST(RankTree, the_tree_size_maximises_tokens_per_time) {
  const HeadAccuracies accuracies{{.7, .1, .05}, {.6, .1, .05}, {.5, .1, .05}};
  const std::vector<StepCost> dear{{1, 1.0}, {2, 2.0}, {4, 4.0}, {32, 32.0}};
  EXPECT_EQ(best_rows(accuracies, dear, 0), 1) << "each row costs a whole step";
  const std::vector<StepCost> free_rows{{1, 1.0}, {32, 1.0}};
  EXPECT_EQ(best_rows(accuracies, free_rows, 0), 32);
  // Eight rows cost as much as one; the ninth doubles the cost.
  const std::vector<StepCost> tiles{{1, 1.0}, {8, 1.0}, {9, 2.0}, {16, 2.0}};
  EXPECT_EQ(best_rows(accuracies, tiles, 0), 8);
  EXPECT_EQ(best_rows(accuracies, tiles, 100), 1) << "heads cost more time than they save";
  // Costs between two measured row counts are interpolated: 3 rows take 1.5.
  const std::vector<StepCost> line{{1, 1.0}, {5, 2.0}};
  double most = 0;
  int expected = 0;
  for (int n = 1; n <= 5; n++) {
    const double gain =
        expected_tokens(grow_rank_tree(accuracies, n), accuracies) / (1 + 0.25 * (n - 1));
    if (gain > most) most = gain, expected = n;
  }
  EXPECT_EQ(best_rows(accuracies, line, 0), expected);
}

}  // namespace
}  // namespace engine::test
