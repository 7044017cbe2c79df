// Logits of SmolLM2-135M-Instruct and Gemma 3 270M in f32 beside those of transformers 5.24 (tests/peers/greedy_parity.py logits). Skipped where
// scripts/get_model.sh has not put the model.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/downloaded_models.h"
#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

void expect_logits_of_transformers(const std::string& path, const std::string& fixture) {
  std::ifstream in(DECOSCOPE_SOURCE_DIR "/tests/fixtures/" + fixture + "/logits.json");
  const nlohmann::json expected = nlohmann::json::parse(in);
  const auto device = kernels::open_cpu(2);
  const ModelFiles files = open_model(path, {.context = 256});
  const auto model = Model::load(*device, files, {.dtype = kernels::DType::F32});
  const TokenTree tree = chain_tree(expected.at("prompt").get<std::vector<TokenId>>());
  const StepOutput out = Lane(*model).forward(tree);
  const auto n_vocab = out.logits.size() / static_cast<std::size_t>(tree.n_rows());
  const float* last = out.logits.data() + (out.logits.size() - n_vocab);
  double difference = 0;
  for (const auto& [id, logit] : expected.at("logits").items())
    difference = std::max(difference, std::abs(last[std::stoul(id)] - logit.get<double>()));
  EXPECT_LT(difference, 1e-4 * expected.at("largest").get<double>());
  EXPECT_GE(expected.at("logits").size(), 100u);
}

TEST(RealModels, logits_of_smollm2_are_those_of_transformers) {
  NEEDS_SMOLLM2();
  expect_logits_of_transformers(smollm2_path(), "smollm2");
}

TEST(RealModels, logits_of_gemma3_are_those_of_transformers) {
  const std::string path = downloaded("gemma-3-270m-q4_k_m.gguf");
  if (path.empty()) GTEST_SKIP() << "no Gemma 3: `scripts/get_model.sh gemma3-270m` downloads it";
  expect_logits_of_transformers(path, "gemma3");
}

}  // namespace
}  // namespace engine::test
