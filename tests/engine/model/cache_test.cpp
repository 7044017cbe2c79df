// A row has the same bits however it is computed: as a tree node or alone, in any order, in any
// batch, after a shared prefix or its own (T6, T7, T9 of docs/testing.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

using kernels::DType;

constexpr int kVocab = 101;

// Grouped-query attention, biases, and a sliding window that spans three pages.
ModelConfig grouped_config() {
  ModelConfig c = odd_config();
  c.n_kv_heads = 2;
  c.qkv_bias = true;
  c.sliding_window = 150;
  c.layer_kinds = global_then_local(2, c.n_layers);
  return c;
}

std::vector<int> chain_of_row(const TokenTree& tree, int row) {
  std::vector<int> chain;
  for (int r = row; r >= 0; r = tree.parent[static_cast<std::size_t>(r)])
    chain.insert(chain.begin(), r);
  return chain;
}

// The row's result when its chain is fed one token per forward on a fork of the prefix.
StepOutput alone(const Lane& prefix, const TokenTree& tree, int row) {
  Lane lane(prefix);
  StepOutput out;
  for (const int r : chain_of_row(tree, row)) {
    const TokenId token = tree.token[static_cast<std::size_t>(r)];
    const TokenTree one = chain_tree(std::span(&token, 1));
    out = lane.forward(one);
    lane.commit(one, {0});
  }
  return out;
}

TEST(Cache, tree_rows_equal_the_same_rows_fed_one_by_one) {
  const TestModel model = random_model("m", grouped_config(), 11);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    for (const int n_prefix : {0, 1, 60, 63, 64, 65, 130}) {
      Lane lane(*loaded);
      lane.append(random_tokens(n_prefix, kVocab, 21));
      const TokenTree tree = random_tree(14, kVocab, 31 + static_cast<std::uint64_t>(n_prefix));
      const StepOutput out = lane.forward(tree);
      for (const int row : {0, 1, 5, 9, 13}) expect_same_row(out, row, alone(lane, tree, row), 0);
    }
  });
}

TEST(Cache, chunked_prefill_gives_the_same_bits) {
  const TestModel model = random_model("m", grouped_config(), 12);
  const std::vector<TokenId> tokens = random_tokens(131, kVocab, 5);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    Lane whole(*loaded);
    whole.append(tokens);
    const auto bits = whole.bits();
    for (std::size_t chunk = 1; chunk <= 17; chunk++) {
      Lane lane(*loaded);
      lane.append(tokens, chunk);
      EXPECT_EQ(lane.bits() == bits, true) << "chunks of " << chunk;
    }
  });
}

// T7.
TEST(Cache, a_committed_path_equals_a_fresh_prefill) {
  const TestModel model = random_model("m", grouped_config(), 13);
  TokenTree tree;  // 0 -> {1, 2}, 1 -> 3, 2 -> {4, 5}: the path 0, 2, 5 skips rows
  tree.token = {7, 8, 9, 10, 11, 12};
  tree.parent = {-1, 0, 0, 1, 2, 2};
  tree.tag.resize(6);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    for (const int n_prefix : {0, 5, 61, 62, 63, 64, 65, 127}) {
      for (const std::vector<int>& path :
           {std::vector<int>{0, 2, 5}, std::vector<int>{0}, std::vector<int>{}}) {
        Lane lane(*loaded);
        lane.append(random_tokens(n_prefix, kVocab, 3));
        lane.forward(tree, {});
        lane.commit(tree, path);
        ASSERT_EQ(lane.cache().length(), n_prefix + static_cast<int>(path.size()));
        Lane fresh(*loaded);
        fresh.append(lane.tokens());
        EXPECT_EQ(lane.bits() == fresh.bits(), true)
            << n_prefix << " and " << path.size() << " positions";
        // The next forward equals the fresh one's, too.
        const TokenTree next = random_tree(3, kVocab, 77);
        expect_same_row(lane.forward(next), 2, fresh.forward(next), 2);
      }
    }
  });
}

TEST(Cache, forks_share_a_prefix_and_are_independent) {
  const TestModel model = random_model("m", grouped_config(), 14);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    const std::int64_t page = [&] {
      Lane one(*loaded);
      one.append(random_tokens(1, kVocab, 1));
      return loaded->cache_bytes();
    }();
    EXPECT_EQ(loaded->cache_bytes(), 0);
    for (const int n_prefix : {1, 63, 64, 65, 128}) {
      Lane lane(*loaded);
      lane.append(random_tokens(n_prefix, kVocab, 3));
      const std::int64_t n_pages = (n_prefix + 63) / 64;
      EXPECT_EQ(loaded->cache_bytes(), n_pages * page);
      EXPECT_EQ(lane.cache().own_bytes(), n_pages * page);
      {
        Lane left(lane), right(lane);
        EXPECT_EQ(loaded->cache_bytes(), n_pages * page);  // nothing was copied
        EXPECT_EQ(lane.cache().own_bytes(), 0);
        const auto shared_bits = lane.bits();
        left.append(random_tokens(70, kVocab, 4), 3);
        right.append(random_tokens(70, kVocab, 5), 7);
        EXPECT_EQ(lane.bits() == shared_bits, true);
        for (Lane* each : {&left, &right}) {
          Lane fresh(*loaded);
          fresh.append(each->tokens());
          EXPECT_EQ(each->bits() == fresh.bits(), true) << "after a prefix of " << n_prefix;
        }
      }
      EXPECT_EQ(loaded->cache_bytes(), n_pages * page);
      EXPECT_EQ(lane.cache().own_bytes(), n_pages * page);
    }
    EXPECT_EQ(loaded->cache_bytes(), 0);
  });
}

TEST(Cache, a_truncated_and_regrown_one_equals_a_fresh_prefill) {
  const TestModel model = random_model("m", grouped_config(), 16);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    for (const auto& [n_long, n_kept] : {std::pair{5, 2},
                                         {64, 63},
                                         {65, 64},
                                         {130, 60},
                                         {130, 64},
                                         {129, 128},
                                         {70, 0},
                                         {70, 70}}) {
      const std::vector<TokenId> text = random_tokens(n_long, kVocab, 3);
      Lane lane(*loaded);
      lane.append(text);
      const Lane fork(lane);  // made before: it shares the pages that are released
      const auto fork_bits = fork.bits();
      lane.truncate(n_kept);
      EXPECT_EQ(lane.cache().length(), n_kept);
      lane.append(random_tokens(70, kVocab, 4), 9);
      Lane fresh(*loaded);
      fresh.append(lane.tokens());
      EXPECT_EQ(lane.bits() == fresh.bits(), true) << n_long << " cut to " << n_kept;
      EXPECT_EQ(fork.bits() == fork_bits, true) << n_long << " cut to " << n_kept;
    }
    EXPECT_EQ(loaded->cache_bytes(), 0);
  });
}

// The next forward writes the committed rows of all sequences together. Operations in between must
// change no bit.
TEST(Cache, forks_truncations_and_releases_equal_a_fresh_prefill) {
  const TestModel model = random_model("m", grouped_config(), 20);
  const TokenTree tree = chain_tree(random_tokens(5, kVocab, 9));
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    Lane cut(*loaded), shares(*loaded);
    auto gone = std::make_unique<Lane>(*loaded);
    cut.append(random_tokens(61, kVocab, 1));
    shares.append(random_tokens(62, kVocab, 2));
    gone->append(random_tokens(64, kVocab, 3));
    Lane before(shares);
    const std::vector<BatchItem> items{cut.item(tree), gone->item(tree), shares.item(tree)};
    loaded->forward(items, {});
    cut.commit(tree, {0, 1, 2, 3, 4});
    Lane after(cut);  // uses a page that `cut` releases, and one that it continues in
    cut.truncate(62);
    gone->commit(tree, {0, 1, 2, 3});
    gone.reset();
    shares.commit(tree, {0, 1, 2});  // copies the shared page to the page that is free now
    EXPECT_EQ(shares.cache().own_bytes(), 2 * before.cache().own_bytes());

    const std::vector<BatchItem> next{before.item(tree), shares.item(tree), after.item(tree),
                                      cut.item(tree)};
    loaded->forward(next, {});
    for (Lane* lane : {&cut, &before, &after, &shares}) lane->commit(tree, {0, 1});
    for (const Lane* lane : {&cut, &before, &after, &shares}) {
      Lane fresh(*loaded);
      fresh.append(lane->tokens());
      EXPECT_EQ(lane->bits() == fresh.bits(), true) << lane->tokens().size() << " positions";
    }
  });
}

// A slot is written once: rows that a destroyed sequence had committed are dropped with its page.
TEST(Cache, a_freed_page_is_reused_within_the_same_forward) {
  const TestModel model = random_model("m", grouped_config(), 20);
  const TokenTree tree = chain_tree(random_tokens(5, kVocab, 9));
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    Lane next(*loaded);
    auto gone = std::make_unique<Lane>(*loaded);
    next.append(random_tokens(64, kVocab, 1));
    gone->append(random_tokens(64, kVocab, 3));
    const std::vector<BatchItem> items{gone->item(tree), next.item(tree)};
    loaded->forward(items, {});
    gone->commit(tree, {0, 1, 2, 3});
    gone.reset();
    next.commit(tree, {0, 1});
    Lane fresh(*loaded);
    fresh.append(next.tokens());
    EXPECT_EQ(next.bits() == fresh.bits(), true);
  });
}

TEST(Cache, rows_of_a_forward_do_not_survive_truncation) {
  const TestModel model = random_model("m", grouped_config(), 16);
  const auto device = kernels::open_cpu(1);
  const auto loaded = load(*device, model, DType::F32);
  Lane lane(*loaded);
  lane.append(random_tokens(9, kVocab, 3));
  const TokenTree tree = random_tree(2, kVocab, 5);
  lane.forward(tree);
  lane.truncate(4);
  EXPECT_THROW(lane.commit(tree, {0}), ContractError);  // their parent is gone
  EXPECT_THROW(lane.truncate(5), ContractError);
}

// T9.
TEST(Cache, a_ragged_batch_equals_its_sequences_alone) {
  const TestModel model = random_model("m", grouped_config(), 15);
  const std::vector<int> n_prefixes{70, 0, 64, 3, 129};
  const std::vector<int> n_rows{6, 1, 40, 2, 13};
  const std::size_t n = n_rows.size();
  std::vector<TokenTree> trees;
  for (std::size_t i = 0; i < n; i++) trees.push_back(random_tree(n_rows[i], kVocab, 50 + i));

  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    const auto make_lanes = [&] {
      std::vector<Lane> lanes;
      lanes.reserve(n);
      for (std::size_t i = 0; i < n; i++) {
        lanes.emplace_back(*loaded);
        lanes.back().append(random_tokens(n_prefixes[i], kVocab, i));
      }
      return lanes;
    };
    std::vector<StepOutput> single;
    std::vector<std::vector<std::uint32_t>> bits;
    for (std::size_t i = 0; i < n; i++) {
      std::vector<Lane> lanes = make_lanes();
      single.push_back(lanes[i].forward(trees[i]));
      lanes[i].commit(trees[i], {0});
      bits.push_back(lanes[i].bits());
    }
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{0, 1, 2, 3, 4}, std::vector<std::size_t>{4, 2, 0, 3, 1}}) {
      std::vector<Lane> lanes = make_lanes();
      std::vector<BatchItem> items;
      // One item is a prefill, which has another place among the rows and changes no other item.
      for (const std::size_t i : order) items.push_back(lanes[i].item(trees[i], i != 2));
      const std::vector<StepOutput> out = loaded->forward(items, {.logits = true});
      ASSERT_EQ(out.size(), n);
      for (std::size_t at = 0; at < n; at++)
        for (std::size_t r = 0; r < out[at].picked.size(); r++)
          expect_same_row(out[at], static_cast<int>(r), single[order[at]], static_cast<int>(r));
      for (std::size_t at = 0; at < n; at++)
        EXPECT_EQ(out[at].picked.size(), order[at] == 2 ? 0 : trees[order[at]].token.size());
      for (std::size_t i = 0; i < n; i++) {
        lanes[i].commit(trees[i], {0});
        EXPECT_EQ(lanes[i].bits() == bits[i], true) << "sequence " << i;
      }
    }
  });
}

// The same forest with its rows in another topological order.
TokenTree reordered(const TokenTree& tree, std::vector<int>& new_index) {
  std::vector<std::pair<std::size_t, int>> keys;  // by depth, then from the back
  for (int r = 0; r < tree.n_rows(); r++) keys.push_back({chain_of_row(tree, r).size(), -r});
  std::sort(keys.begin(), keys.end());
  TokenTree out;
  new_index.assign(tree.token.size(), -1);
  for (const auto& key : keys) {
    const auto r = static_cast<std::size_t>(-key.second);
    new_index[r] = out.n_rows();
    out.token.push_back(tree.token[r]);
    out.parent.push_back(tree.parent[r] < 0 ? -1
                                            : new_index[static_cast<std::size_t>(tree.parent[r])]);
    out.tag.push_back({});
  }
  return out;
}

// T6.
TEST(Cache, row_order_changes_nothing) {
  const TestModel model = random_model("m", grouped_config(), 16);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    Lane lane(*loaded);
    lane.append(random_tokens(59, kVocab, 1));
    const TokenTree tree = random_tree(23, kVocab, 2);
    std::vector<int> new_index;
    const TokenTree other = reordered(tree, new_index);
    ASSERT_NE(other.token, tree.token);
    const StepOutput a = lane.forward(tree), b = lane.forward(other);
    for (int r = 0; r < tree.n_rows(); r++)
      expect_same_row(a, r, b, new_index[static_cast<std::size_t>(r)]);
  });
}

// T6. A token with a NaN embedding gives NaN keys and values. They are in sibling rows, in another
// sequence of the batch, in a freed page and past the end of a shared page: all masked.
TEST(Cache, masked_rows_have_no_influence) {
  TestModel model = random_model("m", grouped_config(), 17);
  constexpr TokenId kPoison = 50;
  for (int j = 0; j < model.config.dim; j++)
    model.tensors->entries.at("model.embed_tokens.weight")
        .data[static_cast<std::size_t>(kPoison * model.config.dim + j)] =
        std::numeric_limits<float>::quiet_NaN();
  std::vector<TokenId> clean = random_tokens(70, kVocab, 8);
  for (TokenId& t : clean) t = t == kPoison ? 49 : t;

  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    Lane plain(*loaded);
    plain.append(clean);
    const TokenTree one = chain_tree(std::vector<TokenId>{4});
    const StepOutput expected = plain.forward(one, {.hidden = true});
    plain.commit(one, {0});
    const auto bits = plain.bits();

    std::vector<TokenId> poison(130, kPoison);
    {
      Lane used(*loaded);  // its freed pages are full of NaN
      used.append(poison);
    }
    Lane lane(*loaded), neighbour(*loaded);
    lane.append(clean);
    neighbour.append(poison);
    Lane fork(lane);
    fork.append(std::span(poison).first(3));
    TokenTree tree;
    tree.token = {kPoison, 4, kPoison, kPoison};
    tree.parent = {-1, -1, 1, 0};
    tree.tag.resize(4);
    const TokenTree other = chain_tree(std::span(poison).first(9));
    const std::vector<BatchItem> items{neighbour.item(other, false), lane.item(tree, false)};
    const std::vector<StepOutput> out = loaded->forward(items, {.hidden = true});
    const auto dim = static_cast<std::size_t>(model.config.dim);
    for (std::size_t j = 0; j < dim; j++) {
      EXPECT_EQ(out[1].hidden[dim + j], expected.hidden[j]);
      EXPECT_TRUE(std::isnan(out[1].hidden[j]));  // the NaN does propagate
    }
    lane.commit(tree, {1});
    EXPECT_EQ(lane.bits() == bits, true);
  });
}

TEST(Cache, sampled_and_penalised_choices_are_batch_invariant) {
  const TestModel model = random_model("m", grouped_config(), 18);
  for_every_table_and_type([&](kernels::Device& device, DType dtype) {
    const auto loaded = load(device, model, dtype);
    int n_changed = 0;
    for (std::uint64_t seed = 1; seed <= 6; seed++) {
      Lane lane(*loaded);
      lane.append(random_tokens(30, kVocab, 1));
      lane.sampling = {.temperature = seed % 2 ? 0.9f : 0.0f,
                       .top_k = 20,
                       .top_p = 0.95f,
                       .repetition_penalty = 1.5f,
                       .seed = seed};
      const TokenTree tree = random_tree(14, kVocab, seed);
      const StepOutput out = lane.forward(tree);
      Lane greedy(lane);
      greedy.sampling = {};
      const StepOutput plain = greedy.forward(tree);
      for (int row = 0; row < 14; row++) {
        expect_same_row(out, row, alone(lane, tree, row), 0);
        n_changed += out.picked[static_cast<std::size_t>(row)].id !=
                     plain.picked[static_cast<std::size_t>(row)].id;
      }
    }
    EXPECT_GT(n_changed, 10);  // penalty and noise had an effect
  });
}

TEST(Cache, pages_are_reused_by_many_sequences) {
  const auto device = kernels::open_cpu(2);
  const auto loaded = load(*device, random_model("m", grouped_config(), 19), DType::F32);
  std::int64_t most = 0;
  for (int round = 0; round < 2; round++) {
    std::vector<Lane> lanes;
    lanes.reserve(9);
    for (std::uint64_t i = 0; i < 9; i++) {
      lanes.emplace_back(*loaded);
      lanes.back().append(random_tokens(200, kVocab, i));
    }
    for (std::uint64_t i = 0; i < 9; i++) {
      Lane fresh(*loaded);
      fresh.append(random_tokens(200, kVocab, i));
      EXPECT_EQ(fresh.bits() == lanes[i].bits(), true);
    }
    if (round == 0) most = loaded->cache_bytes();
    EXPECT_EQ(loaded->cache_bytes(), most);
  }
  EXPECT_EQ(loaded->cache_bytes(), 0);
}

TEST(Cache, a_cache_may_outlive_its_model) {
  const auto device = kernels::open_cpu(2);
  auto loaded = load(*device, random_model("m", grouped_config(), 19), DType::F32);
  Lane lane(*loaded);
  lane.append(random_tokens(65, kVocab, 1));
  const auto fork = lane.cache().fork();
  loaded.reset();
  EXPECT_EQ(fork->length(), 65);
}

TEST(Cache, invalid_commits_are_refused) {
  const auto device = kernels::open_cpu(2);
  const TestModel model = random_model("m", grouped_config(), 19);
  const auto loaded = load(*device, model, DType::F32), other = load(*device, model, DType::F32);
  Lane lane(*loaded);
  TokenTree tree;
  tree.token = {1, 2, 3};
  tree.parent = {-1, 0, 0};
  tree.tag.resize(3);
  const auto commit = [&](std::vector<int> path) { lane.cache().commit(path); };
  EXPECT_THROW(commit({0}), ContractError);  // no forward yet
  lane.forward(tree);
  EXPECT_THROW(commit({1}), ContractError);        // does not start at the prefix
  EXPECT_THROW(commit({0, 1, 2}), ContractError);  // 2 is not 1's child
  EXPECT_THROW(commit({3}), ContractError);
  EXPECT_EQ(lane.cache().length(), 0);
  commit({0, 2});
  EXPECT_THROW(commit({0}), ContractError);  // already committed
  EXPECT_EQ(lane.cache().length(), 2);

  EXPECT_THROW(lane.forward(tree), ContractError);  // its prefix no longer matches the lane
  Lane stranger(*other);
  BatchItem item = stranger.item(tree);
  EXPECT_THROW(loaded->forward(std::span(&item, 1), {}), ContractError);
  const std::vector<BatchItem> twice{stranger.item(tree), stranger.item(tree)};
  EXPECT_THROW(other->forward(twice, {}), ContractError);
  tree.parent = {-1, 1, 0};
  EXPECT_THROW(stranger.forward(tree), ContractError);
  tree.parent = {-1, 0, 0};
  tree.token[1] = kVocab;
  EXPECT_THROW(stranger.forward(tree), ContractError);
}

}  // namespace
}  // namespace engine::test
