// Adapters merged into models: values against a double loop, and refused files.
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/adapter/lora_adapter.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/support/models/model_files.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 3, "lora_alpha": 6,)"
    R"( "bias": "none", "modules_to_save": null, "target_modules": ["q_proj", "down_proj"]})";

/// A tensor of an adapter file in f32, with values that its name and an index determine.
struct AdapterTensor {
  std::string name;
  int n_rows = 0, n_cols = 0;
  std::vector<float> values() const {
    std::vector<float> all(static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n_cols));
    unsigned state = 7;
    for (const char c : name) state = state * 31 + static_cast<unsigned char>(c);
    for (float& value : all) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) / (1u << 24) - 0.5f;
    }
    return all;
  }
};

std::string adapter_file(const std::vector<AdapterTensor>& tensors) {
  std::string header = "{", data;
  for (const AdapterTensor& tensor : tensors) {
    const std::vector<float> values = tensor.values();
    const std::size_t n_bytes = values.size() * sizeof(float);
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{},{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", tensor.name, tensor.n_rows, tensor.n_cols,
                          data.size(), data.size() + n_bytes);
    data.append(reinterpret_cast<const char*>(values.data()), n_bytes);
  }
  return safetensors(header + "}", data);
}

/// The two tensors of an update.
std::vector<AdapterTensor> update_of(const std::string& module, int n_out, int rank, int n_in) {
  const std::string prefix = "base_model.model." + module;
  return {{prefix + ".lora_A.weight", rank, n_in}, {prefix + ".lora_B.weight", n_out, rank}};
}

const std::string kQuery = "model.layers.0.self_attn.q_proj",
                  kDown = "model.layers.1.mlp.down_proj";

/// A small model and an adapter of two of its matrices.
class LoraAdapterFiles : public testing::Test {
 protected:
  void SetUp() override {
    write_small_model(base);
    tensors = update_of(kQuery, config.dim, 3, config.dim);
    for (const AdapterTensor& tensor : update_of(kDown, config.dim, 2, config.hidden_dim))
      tensors.push_back(tensor);
    write();
  }
  void write() const {
    write_file(adapter / "adapter_config.json", settings);
    write_file(adapter / "adapter_model.safetensors", adapter_file(tensors));
  }
  std::string named() const { return base.path() + "+" + adapter.path(); }
  /// Expects a matrix of the merged model to be W + scale B A.
  void expect_merged(const ModelFiles& merged, const std::string& module, double scale) const {
    const auto of = [&](const char* part) {
      for (const AdapterTensor& tensor : tensors)
        if (tensor.name.find(module + part) != std::string::npos) return tensor;
      return AdapterTensor();
    };
    const AdapterTensor a = of(".lora_A"), b = of(".lora_B");
    const std::vector<float> w = f32_of(open_model(base.path()).tensors->read(module + ".weight"));
    const std::vector<float> found = f32_of(merged.tensors->read(module + ".weight"));
    const std::vector<float> va = a.values(), vb = b.values();
    const auto at = [](int row, int n_cols, int col) {
      return static_cast<std::size_t>(row) * static_cast<std::size_t>(n_cols) +
             static_cast<std::size_t>(col);
    };
    for (int row = 0; row < b.n_rows; row++)
      for (int col = 0; col < a.n_cols; col++) {
        double expected = w[at(row, a.n_cols, col)];
        for (int r = 0; r < a.n_rows; r++)
          expected += scale * vb[at(row, a.n_rows, r)] * va[at(r, a.n_cols, col)];
        ASSERT_NEAR(found[at(row, a.n_cols, col)], expected, 1e-6) << module << row << " " << col;
      }
  }

  ModelConfig config = small_config();
  std::string settings = kConfig;
  std::vector<AdapterTensor> tensors;
  Folder base, adapter;
};

TEST_F(LoraAdapterFiles, is_merged_into_its_matrices_only) {
  const ModelFiles plain = open_model(base.path()), merged = open_model(named());
  expect_merged(merged, kQuery, 6.0 / 3);
  expect_merged(merged, kDown, 6.0 / 2);
  for (const TensorSpec& spec : tensors_of(config)) {
    if (spec.name == kQuery + ".weight" || spec.name == kDown + ".weight") continue;
    const Tensor a = plain.tensors->read(spec.name), b = merged.tensors->read(spec.name);
    ASSERT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(f32_of(a), f32_of(b)) << spec.name;
  }
  EXPECT_THAT(merged.name,
              testing::EndsWith("+" + std::filesystem::path(adapter.path()).filename().string()));
  EXPECT_THAT(merged.notices, testing::Contains(HasSubstr("adapter of 2 matrices of org/base")));
}

TEST_F(LoraAdapterFiles, scales_follow_rank_root_and_patterns) {
  settings = replaced(kConfig, "\"r\": 3", "\"r\": 3, \"use_rslora\": true");
  write();
  expect_merged(open_model(named()), kQuery, 6.0 / std::sqrt(3.0));
  settings = replaced(kConfig, "\"r\": 3", R"("r": 3, "alpha_pattern": {"mlp.down_proj": 5})");
  write();
  expect_merged(open_model(named()), kQuery, 6.0 / 3);
  expect_merged(open_model(named()), kDown, 5.0 / 2);
  settings = replaced(kConfig, "\"r\": 3", R"("r": 3, "alpha_pattern": {".*_proj$": 5})");
  write();
  EXPECT_THAT(refusal([&] { open_model(named()); }), HasSubstr("alpha_pattern..*_proj$"));
}

TEST_F(LoraAdapterFiles, other_kinds_of_adapters_are_refused) {
  for (const auto& [from, to, part] :
       {std::tuple("LORA", "IA3", "peft_type: found \"IA3\", expected LORA"),
        std::tuple("\"none\"", "\"all\"", "bias: found \"all\""),
        std::tuple("\"r\": 3", "\"r\": 3, \"use_dora\": true", "use_dora: found true"),
        std::tuple("\"r\": 3", "\"r\": 3, \"fan_in_fan_out\": true", "fan_in_fan_out: found true"),
        std::tuple("null", "[\"lm_head\"]", "modules_to_save: found 1 modules"),
        std::tuple("\"lora_alpha\": 6", "\"lora_alpha\": \"x\"", "lora_alpha")}) {
    settings = replaced(kConfig, from, to);
    write();
    EXPECT_THAT(refusal([&] { open_model(named()); }), HasSubstr(part));
  }
}

TEST_F(LoraAdapterFiles, tensors_that_do_not_fit_are_refused) {
  const std::vector<AdapterTensor> good = tensors;
  const auto refused = [&](const std::vector<AdapterTensor>& other, const std::string& part) {
    tensors = other;
    write();
    EXPECT_THAT(refusal([&] { open_model(named()); }), HasSubstr(part));
  };
  refused({good[0]}, "found only lora_A, expected lora_A and lora_B");
  refused(update_of(kQuery, config.dim, 3, config.dim + 1), "[64, 65], expected [64, 64]");
  refused(update_of("model.layers.9.self_attn.q_proj", config.dim, 3, config.dim),
          "model.layers.9.self_attn.q_proj.weight\": found none");
  refused({{"base_model.model.lm_head.weight", 3, 3}}, "only lora_A and lora_B of matrices");
  refused({{good[0].name, 3, config.dim}, {good[1].name, config.dim, 2}}, "[r, in] and [out, r]");
  std::filesystem::remove(adapter / "adapter_model.safetensors");
  EXPECT_THAT(refusal([&] { open_model(named()); }), HasSubstr("no adapter_model.safetensors"));
}

TEST_F(LoraAdapterFiles, a_written_model_contains_it) {
  const ModelFiles merged = open_model(named());
  const Folder out;
  write_model(out.path(), merged.config, *merged.tensors, kernels::DType::F32, merged.path);
  const auto written = SafetensorsFile::open(out / "model.safetensors");
  for (const std::string& module : {kQuery, kDown})
    EXPECT_EQ(f32_of(written->read(module + ".weight")),
              f32_of(merged.tensors->read(module + ".weight")));
}

TEST_F(LoraAdapterFiles, alone_it_opens_the_base_that_it_names) {
  EXPECT_THAT(refusal([&] { find_model(adapter.path(), "assets"); }),
              HasSubstr("the base model \"org/base\", which is not here"));
  const Folder assets;
  std::filesystem::create_directories(assets / "models/base");
  write_file(assets / "models/base/config.json", "{}");
  EXPECT_EQ(find_model(adapter.path(), assets.path()), assets / "models/base+" + adapter.path());
  settings = replaced(kConfig, "org/base", base.path());
  write();
  EXPECT_EQ(find_model(adapter.path(), "assets"), named());
  EXPECT_EQ(find_model(named(), "assets"), named());
}

TEST(SplitAdapter, finds_the_adapter_after_any_plus) {
  const Folder folder;
  std::filesystem::create_directory(folder / "a+b");
  write_file(folder / "a+b/adapter_config.json", "{}");
  EXPECT_EQ(split_adapter("org/m+1+" + folder.path() + "/a+b"),
            std::pair(std::string("org/m+1"), folder / "a+b"));
  EXPECT_EQ(split_adapter("org/m+1"), std::pair(std::string("org/m+1"), std::string()));
  write_file(folder / "a+b/model.safetensors", "");
  EXPECT_FALSE(is_adapter(folder / "a+b")) << "a whole model";
}

}  // namespace
}  // namespace engine::test
