// Every architecture on CUDA devices: compares logits and tokens with those of Hugging Face transformers in f32, and tests
// batch invariance in bf16.
#include "kernels/cuda/cuda.h"
#include "tests/support/gpu_here.h"
#include "tests/support/models/architecture_fixtures.h"
#include "tests/support/models/lane.h"

namespace engine::test {
namespace {

class DeviceArchitectures : public testing::TestWithParam<std::string> {};

TEST_P(DeviceArchitectures, logits_and_tokens_equal_transformers) {
  const auto device = kernels::open_cuda(GetParam());
  for (const ArchitectureFixture& fixture : architecture_fixtures()) {
    SCOPED_TRACE(fixture.model.name);
    expect_as_transformers(*load(*device, fixture.model, kernels::DType::F32), fixture);
  }
}

// Rows of a tree have the bits that they have alone. In bf16 the products use the fused kernels.
TEST_P(DeviceArchitectures, are_batch_invariant) {
  const auto device = kernels::open_cuda(GetParam());
  for (const ArchitectureFixture& fixture : architecture_fixtures()) {
    SCOPED_TRACE(fixture.model.name);
    const auto model = load(*device, fixture.model, kernels::DType::BF16);
    Lane lane(*model);
    lane.append(fixture.runs.back().prompt, 40);
    const TokenTree tree = random_tree(9, fixture.model.config.vocab_size, 4);
    const StepOutput all = lane.forward(tree);
    for (int r = 0; r < tree.n_rows(); r += 4) {
      std::vector<TokenId> chain;
      for (int i = r; i >= 0; i = tree.parent[static_cast<std::size_t>(i)])
        chain.insert(chain.begin(), tree.token[static_cast<std::size_t>(i)]);
      Lane alone(lane);
      alone.append(std::span(chain).first(chain.size() - 1));
      expect_same_row(all, r, alone.forward(chain_tree(std::span(chain).last(1))), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         DeviceArchitectures,
                         testing::ValuesIn(kernels::test::cuda_devices_here()),
                         kernels::test::name_of_device);

}  // namespace
}  // namespace engine::test
