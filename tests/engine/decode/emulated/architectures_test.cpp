// Every architecture on CUDA devices against Hugging Face transformers in f32, and against the CPU in half types.
#include "kernels/cuda/cuda.h"
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

std::vector<std::string> devices() {
  std::vector<std::string> all;
  for (const kernels::CudaDeviceInfo& info : kernels::list_cuda())
    if (info.available) all.push_back(info.name);
  return all;
}
std::string name_of_device(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, ':', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         DeviceArchitectures,
                         testing::ValuesIn(devices()),
                         name_of_device);

}  // namespace
}  // namespace engine::test
