// Compares logits and greedy tokens of every architecture with those of Hugging Face transformers in f32, in every CPU
// table; tests written directories, scaling and random weights where the architectures differ.
#include <gmock/gmock.h>

#include "engine/checkpoint/families/architectures.h"
#include "tests/support/files.h"
#include "tests/support/models/architecture_fixtures.h"
#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

using kernels::DType;

const std::vector<ArchitectureFixture>& fixtures() {
  static const std::vector<ArchitectureFixture> all = architecture_fixtures();
  return all;
}

TEST(Architectures, logits_and_tokens_equal_transformers) {
  double largest = 0;
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    for (const ArchitectureFixture& fixture : fixtures()) {
      SCOPED_TRACE(fixture.model.name + " " + ops->name);
      largest = std::max(
          largest, expect_as_transformers(*load(*device, fixture.model, DType::F32), fixture));
    }
  }
  RecordProperty("largest_relative_difference", std::to_string(largest));
}

TEST(Architectures, each_has_two_fixtures) {
  std::map<std::string, int> n;
  for (const ArchitectureFixture& fixture : fixtures()) {
    EXPECT_THAT(fixture.notices, testing::IsEmpty()) << fixture.model.name;
    n[fixture.model.config.model_type]++;
  }
  for (const Architecture& architecture : architectures()) {
    EXPECT_GE(n[architecture.model_type], 2) << architecture.model_type;
  }
}

TEST(Architectures, a_written_directory_holds_the_same_model) {
  const auto device = kernels::open_cpu(1);
  for (const ArchitectureFixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.model.name);
    const Folder dir;
    write_model(dir.path(), fixture.model.config, *fixture.model.tensors, DType::F32, "");
    const ModelFiles files = open_model(dir.path(), {.needs_tokenizer = false});
    EXPECT_THAT(files.notices, testing::IsEmpty());
    EXPECT_EQ(files.config.n_params(), fixture.model.config.n_params());
    const auto read = Model::load(*device, files, {.dtype = DType::F32});
    const auto direct = load(*device, fixture.model, DType::F32);
    const TokenTree tree = chain_tree(fixture.runs.back().prompt);
    const StepOutput a = Lane(*read).forward(tree), b = Lane(*direct).forward(tree);
    EXPECT_EQ(a.logits, b.logits);
  }
}

TEST(Architectures, enlarged_models_choose_the_same_tokens) {
  const auto device = kernels::open_cpu(2);
  for (const ArchitectureFixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.model.name);
    const auto plain = load(*device, fixture.model, DType::BF16),
               large = load(*device, fixture.model, DType::BF16, {.width = 4, .depth = 2});
    const TokenTree tree = chain_tree(fixture.runs.back().prompt);
    const StepOutput a = Lane(*plain).forward(tree), b = Lane(*large).forward(tree);
    for (int r = 0; r < tree.n_rows(); r++) expect_same_row(a, r, b, r);
  }
}

TEST(Architectures, widths_beyond_config_json_are_not_written) {
  for (const ArchitectureFixture& fixture : fixtures()) {
    const ModelConfig& config = fixture.model.config;
    const ModelConfig wide = scaled(config, {.width = 4}), deep = scaled(config, {.depth = 2});
    const auto write = [&](const ModelConfig& c, const ModelScale& scale) {
      const Folder dir;
      write_model(dir.path(), c, *scaled(fixture.model.tensors, config, scale), DType::F32, "");
      return open_model(dir.path(), {.needs_tokenizer = false}).config.n_layers;
    };
    EXPECT_EQ(write(deep, {.depth = 2}), 2 * config.n_layers) << fixture.model.name;
    const std::string type = config.model_type;
    if (!type.starts_with("gemma") && type != "qwen3")
      EXPECT_EQ(write(wide, {.width = 4}), config.n_layers) << fixture.model.name;
    else
      EXPECT_THROW(write(wide, {.width = 4}), Error) << fixture.model.name;
  }
}

TEST(Architectures, random_weights_have_norms_of_one) {
  for (const ArchitectureFixture& fixture : fixtures()) {
    const auto tensors = random_tensors(fixture.model.config, 3);
    EXPECT_EQ(f32_of(tensors->read("model.norm.weight")).front(),
              1 - fixture.model.config.norm_offset);
  }
}

}  // namespace
}  // namespace engine::test
