// The cache of encoded k-grams: entries that it finds and drops.
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/gram_cache.h"

namespace engine::test {
namespace {

TEST(GramCache, keeps_the_most_recently_used_within_its_limit) {
  GramCache cache(2);
  const std::vector<TokenId> a{1, 2, 3}, b{3, 2, 1}, c{1, 2, 4};
  const std::vector<float> one{1}, two{2}, three{3};
  EXPECT_TRUE(cache.find(a).empty());
  cache.put(a, one);
  cache.put(b, two);
  EXPECT_EQ(cache.find(a)[0], 1);  // now b is the least recently used
  cache.put(c, three);
  EXPECT_EQ(cache.size(), 2);
  EXPECT_EQ(cache.counts().n_evicted, 1);
  EXPECT_TRUE(cache.find(b).empty());
  EXPECT_EQ(cache.find(a)[0], 1);
  EXPECT_EQ(cache.find(c)[0], 3);
  GramCache none(0);
  none.put(a, one);
  EXPECT_EQ(none.size(), 0);
}

}  // namespace
}  // namespace engine::test
