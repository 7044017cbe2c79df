// Models of every architecture with the logits and greedy tokens of Hugging Face transformers
// (tests/fixtures/make_architecture_fixtures.py).
#pragma once

#include <string>
#include <vector>

#include "tests/support/models/random_models.h"

namespace engine::test {

/// Greedy decoding after one prompt in f32.
struct OracleRun {
  std::vector<TokenId> prompt, tokens;
  std::vector<float> first_logits, last_logits;  // [vocab_size] before the first and the last token
};

/// One fixture.
struct ArchitectureFixture {
  TestModel model;
  std::vector<std::string> notices;  // of its config.json
  std::vector<OracleRun> runs;
};

/// All fixtures. A weight depends only on the fixture's seed, the tensor's name and the index.
std::vector<ArchitectureFixture> architecture_fixtures();

/// Decodes every run on a model: expects the same tokens, and logits within 1e-4 of the largest logit of their row.
/// @return  the largest difference, relative to the largest logit of its row
double expect_as_transformers(Model& model, const ArchitectureFixture& fixture);

}  // namespace engine::test
