#include "engine/checkpoint/adapter/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/safetensors.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "/adapter_config.json";
constexpr const char* kWeights = "/adapter_model.safetensors";

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The scale of updates by the name of their module.
class Scales {
 public:
  explicit Scales(const Fields& config)
      : alpha_(config.real("lora_alpha", 0, 1e9)), by_root_(config.boolean("use_rslora", false)) {
    const Json* patterns = config.find("alpha_pattern");
    if (!patterns) return;
    const Fields fields(*patterns, config.file(), "alpha_pattern.");
    for (const auto& [module, value] : patterns->members) {
      if (module.find_first_of("\\^$*+?()[]{}|") != std::string::npos)
        fields.fail(module.c_str(), "a regular expression", "the end of a module's name");
      of_modules_.emplace_back("." + module, fields.real(module.c_str(), 0, 1e9));
    }
  }
  /// @param module  "model.layers.0.self_attn.q_proj"
  float of(const std::string& module, std::int64_t rank) const {
    const auto own = std::ranges::find_if(
        of_modules_, [&](const auto& one) { return ("." + module).ends_with(one.first); });
    const double alpha = own == of_modules_.end() ? alpha_ : own->second;
    const auto r = static_cast<double>(rank);
    return static_cast<float>(alpha / (by_root_ ? std::sqrt(r) : r));
  }

 private:
  double alpha_;
  bool by_root_;
  std::vector<std::pair<std::string, double>>
      of_modules_;  // by the end of the name; the first counts
};

/// Refuses settings with which an adapter is more than low-rank updates of matrices.
void check_kind(const Fields& config) {
  const std::string kind = config.string("peft_type").value_or("");
  if (kind != "LORA") config.fail("peft_type", in_quotes(kind), "LORA");
  const std::string bias = config.string("bias").value_or("none");
  if (bias != "none")
    config.fail("bias", in_quotes(bias), "none: trained biases are not supported");
  for (const char* name : {"use_dora", "fan_in_fan_out", "lora_bias"})
    if (config.boolean(name, false)) config.fail(name, "true", "false: it is not supported");
  const Json* saved = config.find("modules_to_save");
  if (saved && !saved->items.empty())
    config.fail("modules_to_save", fmt::format("{} modules", saved->items.size()),
                "none: only low-rank updates of matrices are supported");
}

enum class Part { A, B };
/// The matrix and the part of an adapter's tensor, such as
/// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
std::optional<std::pair<std::string, Part>> part_of(std::string_view tensor) {
  constexpr std::string_view kPrefix = "base_model.model.";
  if (tensor.starts_with(kPrefix)) tensor.remove_prefix(kPrefix.size());
  const std::size_t at = tensor.rfind(".lora_");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view end = tensor.substr(at);
  const auto is = [&](std::string_view part) {
    return end == fmt::format(".lora_{}.weight", part) ||
           end == fmt::format(".lora_{}.default.weight", part);
  };
  if (!is("A") && !is("B")) return std::nullopt;
  return std::pair(std::string(tensor.substr(0, at)), is("A") ? Part::A : Part::B);
}

/// @param module  the name of the matrix without ".weight"
void check_update(const std::string& file, const std::string& module, const LowRankUpdate& update) {
  const std::string tensors = "tensors of " + in_quotes(module);
  if (!update.a.data || !update.b.data)
    refuse(file, tensors, update.a.data ? "only lora_A" : "only lora_B", "lora_A and lora_B");
  const bool agree = update.a.shape.size() == 2 && update.b.shape.size() == 2 &&
                     update.a.shape[0] == update.b.shape[1] && update.a.shape[0] > 0;
  if (!agree)
    refuse(file, tensors, shown_shape(update.a.shape) + " and " + shown_shape(update.b.shape),
           "[r, in] and [out, r]");
}

/// Adds scale b a to w [out, in].
void add_update(const LowRankUpdate& update, std::vector<float>& w) {
  const std::vector<float> a = f32_of(update.a), b = f32_of(update.b);
  const auto rank = static_cast<std::size_t>(update.a.shape[0]);
  const auto n_in = static_cast<std::size_t>(update.a.shape[1]);
  for (std::size_t row = 0; row * n_in < w.size(); row++) {
    float* const to = w.data() + row * n_in;
    for (std::size_t r = 0; r < rank; r++) {
      const float factor = update.scale * b[row * rank + r];
      for (std::size_t i = 0; i < n_in; i++) to[i] += factor * a[r * n_in + i];
    }
  }
}

class MergedTensors : public TensorSource {
 public:
  MergedTensors(std::shared_ptr<const TensorSource> model, LoraAdapter adapter)
      : model_(std::move(model)), adapter_(std::move(adapter)) {}

  bool has(const std::string& name) const override { return model_->has(name); }
  std::vector<std::string> names() const override { return model_->names(); }
  std::string path() const override { return model_->path(); }
  void check() const override {
    model_->check();
    adapter_.tensors->check();
  }
  Tensor read(const std::string& name) const override {
    return is_changed(name) ? merged(name) : model_->read(name);
  }
  Tensor read_for(const std::string& name, kernels::DType dtype) const override {
    return is_changed(name) ? merged(name) : model_->read_for(name, dtype);
  }
  StoredTensor stored(const std::string& name) const override {
    return is_changed(name) ? TensorSource::stored(name) : model_->stored(name);
  }
  std::optional<kernels::DType> quantised_format(const std::string& name) const override {
    return is_changed(name) ? std::nullopt : model_->quantised_format(name);
  }
  std::optional<QuantisedTensor> quantised(const std::string& name) const override {
    return is_changed(name) ? std::nullopt : model_->quantised(name);
  }

 private:
  bool is_changed(const std::string& name) const { return adapter_.updates.contains(name); }
  Tensor merged(const std::string& name) const {
    const Tensor base = model_->read(name);
    const auto values = std::make_shared<std::vector<float>>(f32_of(base));
    add_update(adapter_.updates.at(name), *values);
    return {kernels::DType::F32, base.shape, values->data(), values};
  }

  std::shared_ptr<const TensorSource> model_;
  LoraAdapter adapter_;
};

}  // namespace

bool is_adapter(const std::string& folder) {
  return exists(folder + kConfig) && !exists(folder + "/model.safetensors") &&
         !exists(folder + "/model.safetensors.index.json");
}

std::pair<std::string, std::string> split_adapter(const std::string& model) {
  for (std::size_t at = model.find('+'); at != std::string::npos; at = model.find('+', at + 1)) {
    const std::string adapter = model.substr(at + 1);
    if (at > 0 && is_adapter(adapter)) return {model.substr(0, at), adapter};
  }
  return {model, ""};
}

std::string base_of_adapter(const std::string& folder) {
  const Json json = read_json_file(folder + kConfig, {});
  return Fields(json, folder + kConfig).string("base_model_name_or_path").value_or("");
}

LoraAdapter open_adapter(const std::string& folder, const FileLimits& limits) {
  const std::string path = folder + kWeights;
  if (!exists(path))
    refuse(folder, "adapter", "no adapter_model.safetensors",
           exists(folder + "/adapter_model.bin")
               ? "it; adapter_model.bin may contain code: save with save_pretrained(DIR, "
                 "safe_serialization=True) of peft"
               : "it");
  const Json json = read_json_file(folder + kConfig, limits);
  const Fields config(json, folder + kConfig);
  check_kind(config);
  const auto file = SafetensorsFile::open(path, limits);
  LoraAdapter adapter{folder, config.string("base_model_name_or_path").value_or(""), {}, file};
  for (const TensorEntry& entry : file->entries()) {
    const auto part = part_of(entry.name);
    if (!part || !entry.element())
      refuse(path, "tensor " + in_quotes(entry.name), part ? entry.dtype : "this name",
             "only lora_A and lora_B of matrices, in F32, F16 or BF16");
    LowRankUpdate& update = adapter.updates[part->first + ".weight"];
    (part->second == Part::A ? update.a : update.b) = file->read(entry.name);
  }
  const Scales scales(config);
  for (auto& [name, update] : adapter.updates) {
    const std::string module = name.substr(0, name.rfind('.'));
    check_update(path, module, update);
    update.scale = scales.of(module, update.a.shape[0]);
  }
  return adapter;
}

std::shared_ptr<const TensorSource> with_adapter(std::shared_ptr<const TensorSource> model,
                                                 const std::vector<TensorSpec>& specs,
                                                 LoraAdapter adapter) {
  const std::string file = adapter.path + kWeights;
  for (const auto& [name, update] : adapter.updates) {
    const auto spec = std::ranges::find(specs, name, &TensorSpec::name);
    if (spec == specs.end())
      refuse(file, "matrix " + in_quotes(name), "none in " + escaped(model->path()),
             "an adapter of this model");
    const std::vector<std::int64_t> shape{update.b.shape[0], update.a.shape[1]};
    if (spec->shape != shape)
      refuse(file, "matrix " + in_quotes(name), shown_shape(shape), shown_shape(spec->shape));
  }
  return std::make_shared<MergedTensors>(std::move(model), std::move(adapter));
}

}  // namespace engine
