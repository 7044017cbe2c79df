// Ranking of tokens, and copies, in every instruction set.
#include "kernels/error.h"
#include "kernels/sampling.h"
#include "tests/kernels/rank_scene.h"

namespace kernels::test {
namespace {

TEST(Rank, likeliest_first_and_ties_by_lowest_id) {
  for_each_device(
      [](Device& device) {
        for (const int n_valid : {1, 2, 17, 64, 301, 1000})
          for (const int k : {1, 3, 64, 400})
            expect_naive_ranks(device, rank_scene(n_valid, k, std::uint32_t(n_valid + k)));
      },
      {1, 3});
}

TEST(Rank, tokens_alone_are_ranked_alike) {
  for_each_device(
      [](Device& device) {
        for (const int n_valid : {1, 17, 255, 256, 257, 1000, 5003})
          for (const int k : {1, 3, 8, 40})
            expect_naive_tokens(device, rank_scene(n_valid, k, std::uint32_t(n_valid + k)));
      },
      {1, 3});
}

TEST(Rank, a_probability_equals_the_filtered_distributions) {
  const auto device = open_cpu(1);
  const RankScene scene = rank_scene(301, 40, 5);
  const RanksFound found = ranks(*device, scene);
  int n_compared = 0;
  for (std::size_t r = 8; r < scene.rows.size(); r++) {  // the rows before them are greedy
    const auto distribution = filtered_distribution(scene.row(r), scene.n_valid, scene.rows[r]);
    const RankedToken* tokens = &found.tokens[r * std::size_t(scene.k)];
    for (int i = 0; i < found.rankings[r].n; i++, n_compared++)
      ASSERT_EQ(
          probability_of(tokens[i], tokens[0].logit, found.rankings[r], scene.rows[r].temperature),
          distribution[tokens[i].id]);
  }
  EXPECT_GT(n_compared, 200);
}

TEST(Rank, the_number_of_tokens_is_checked) {
  for_each_device(
      [](Device& device) {
        const std::vector<float> logits(4);
        const PickRow row;
        std::vector<RankedToken> tokens(kMaxRanked);
        Ranking ranking;
        const auto ask = [&](int k) {
          device.ops().rank(device, logits.data(), 4, 1, 4, 4, &row, k, &ranking, tokens.data());
        };
        EXPECT_THROW(ask(0), ContractError);
        EXPECT_THROW(ask(kMaxRanked + 1), ContractError);
        ask(kMaxRanked);
        EXPECT_EQ(ranking.n, 4);
      },
      {1});
}

TEST(Copies, leave_out_the_bytes_between_rows) {
  for_each_device([](Device& device) { expect_plain_copies(device); }, {1});
}

}  // namespace
}  // namespace kernels::test
