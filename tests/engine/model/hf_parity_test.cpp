// Compares greedy tokens in f32 with those of Hugging Face transformers for the same directories.
// make_hf_fixtures.py made both; every chosen token leads by a margin of at least 1e-3, far above
// f32's rounding.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

const std::filesystem::path kFixtures =
    std::filesystem::path(DECOSCOPE_SOURCE_DIR) / "tests/fixtures/hf";

TEST(HuggingFace, greedy_tokens_in_f32_equal_transformers) {
  int n_models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    SCOPED_TRACE(entry.path().filename().string());
    const ModelFiles files = open_model(entry.path().string(), {.needs_tokenizer = false});
    std::ifstream in(entry.path() / "expected_tokens.json");
    const nlohmann::json expected = nlohmann::json::parse(in);
    for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
      SCOPED_TRACE(ops->name);
      const auto device = kernels::open_cpu(2, *ops);
      const auto model = Model::load(*device, files, {.dtype = kernels::DType::F32});
      for (const nlohmann::json& run : expected.at("runs")) {
        const auto prompt = run.at("prompt").get<std::vector<TokenId>>();
        const auto tokens = run.at("tokens").get<std::vector<TokenId>>();
        Lane lane(*model);
        lane.n_prompt = static_cast<int>(prompt.size());
        lane.append(std::span(prompt).first(prompt.size() - 1), 16);
        EXPECT_EQ(decode_one_by_one(lane, prompt.back(), static_cast<int>(tokens.size())), tokens)
            << "after a prompt of " << prompt.size();
      }
    }
    n_models++;
  }
  EXPECT_GE(n_models, 17);
}

}  // namespace
}  // namespace engine::test
