// The rows of two packed texts, for tests of forwards and backwards.
#pragma once

#include <vector>

#include "engine/train/core/transformer.h"

namespace engine::test {

struct Texts {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;
  TrainRows rows() const { return {token, target, weight, pos, segments, {}}; }
};

/// 32 rows: texts of 13 and 15 tokens and four rows of padding.
inline Texts two_texts() {
  Texts t;
  for (int i = 0; i < 32; i++) {
    t.token.push_back((i * 37 + 5) % 64);
    t.target.push_back((i * 11 + 3) % 64);
    t.weight.push_back(i >= 28 ? 0.0f : i % 5 ? 0.04f : 0.004f);
    t.pos.push_back(i < 13 ? i : i < 28 ? i - 13 : 0);
  }
  t.segments = {{0, 13}, {13, 28}};
  return t;
}

}  // namespace engine::test
