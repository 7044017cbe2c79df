#include "tests/support/models/architecture_fixtures.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/config_file.h"
#include "tests/support/files.h"
#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

// The upper 24 bits of a number of SplitMix64, as a fraction.
double uniform(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  state ^= state >> 31;
  return static_cast<double>(state >> 40) / (1 << 24);
}

std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

struct Spread {
  double mean, deviation;
};

Spread spread_of(const TensorSpec& tensor, const ModelConfig& config) {
  const bool is_gemma = config.model_type.starts_with("gemma");
  if (tensor.name.ends_with("norm.weight")) return {is_gemma ? 0.0 : 1.0, 0.4};
  if (tensor.name.ends_with("bias")) return {0, 0.5};
  if (tensor.name.find("embed") != std::string::npos) return {0, is_gemma ? 0.12 : 0.5};
  return {0, 2 / std::sqrt(static_cast<double>(tensor.shape[1]))};
}

/// The weights of a model. SplitMix64 of the name's FNV-1a hash, the seed and the index gives uniform numbers; their mean and
/// deviation depend on the kind of the tensor.
std::shared_ptr<MemoryTensors> formula_weights(const ModelConfig& config, std::uint64_t seed) {
  auto tensors = std::make_shared<MemoryTensors>();
  for (const TensorSpec& tensor : tensors_of(config)) {
    std::int64_t n = 1;
    for (const std::int64_t size : tensor.shape) n *= size;
    const auto [mean, deviation] = spread_of(tensor, config);
    std::vector<float> values(static_cast<std::size_t>(n));
    std::uint64_t state = hash_of(tensor.name) + seed;
    for (float& value : values)
      value =
          static_cast<float>(mean + deviation * (2 * uniform(state += 0x9e3779b97f4a7c15u) - 1));
    tensors->entries[tensor.name] = {tensor.shape, std::move(values)};
  }
  return tensors;
}

OracleRun run_of(const nlohmann::json& run) {
  return {run.at("prompt"), run.at("tokens"), run.at("first_logits"), run.at("last_logits")};
}

ArchitectureFixture fixture_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  const nlohmann::json fixture = nlohmann::json::parse(in);
  const Folder dir;
  write_file(dir / "config.json", fixture.at("config").dump());
  const ConfigFile file = read_config(dir / "config.json", true);
  ArchitectureFixture out{{path.stem().string(), file.config,
                           formula_weights(file.config, fixture.at("seed").get<std::uint64_t>())},
                          file.notices,
                          {}};
  for (const nlohmann::json& run : fixture.at("runs")) out.runs.push_back(run_of(run));
  return out;
}

double difference_of(std::span<const float> found, const std::vector<float>& expected) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); i++) {
    largest = std::max(largest, std::fabs(double{expected[i]}));
    difference = std::max(difference, std::fabs(double{found[i]} - double{expected[i]}));
  }
  return difference / largest;
}

}  // namespace

std::vector<ArchitectureFixture> architecture_fixtures() {
  std::vector<ArchitectureFixture> all;
  const auto folder = std::filesystem::path(DECOSCOPE_SOURCE_DIR) / "tests/fixtures/architectures";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    all.push_back(fixture_of(entry.path()));
  return all;
}

double expect_as_transformers(Model& model, const ArchitectureFixture& fixture) {
  double difference = 0;
  for (const OracleRun& run : fixture.runs) {
    Lane lane(model);
    lane.n_prompt = static_cast<int>(run.prompt.size());
    lane.append(std::span(run.prompt).first(run.prompt.size() - 1), 16);
    std::vector<TokenId> tokens;
    for (TokenId token = run.prompt.back(); tokens.size() < run.tokens.size();
         token = tokens.back()) {
      const TokenTree tree = chain_tree(std::span(&token, 1));
      const StepOutput out = lane.forward(tree);
      if (tokens.empty())
        difference = std::max(difference, difference_of(out.logits, run.first_logits));
      if (tokens.size() + 1 == run.tokens.size())
        difference = std::max(difference, difference_of(out.logits, run.last_logits));
      tokens.push_back(out.picked.front().id);
      lane.commit(tree, {0});
    }
    EXPECT_EQ(tokens, run.tokens) << "after a prompt of " << run.prompt.size();
  }
  EXPECT_LT(difference, 1e-4);
  return difference;
}

}  // namespace engine::test
