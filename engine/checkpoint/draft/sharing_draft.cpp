#include "engine/checkpoint/draft/sharing_draft.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/shared/model_name.h"
#include "engine/checkpoint/shared/target_output.h"

namespace engine {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

/// The rows with these numbers.
template <class T>
std::vector<T> rows_of(std::span<const T> all, std::int64_t n_rows, std::span<const TokenId> rows) {
  const std::size_t width = all.size() / static_cast<std::size_t>(n_rows);
  std::vector<T> found;
  found.reserve(rows.size() * width);
  for (const TokenId row : rows) {
    const auto one = all.subspan(static_cast<std::size_t>(row) * width, width);
    found.insert(found.end(), one.begin(), one.end());
  }
  return found;
}

/// The draft's own tensors, the target's embedding, and rows of the target's output matrix.
class SharingTensors : public TensorSource {
 public:
  SharingTensors(std::shared_ptr<const TensorSource> own,
                 const ModelFiles& target,
                 std::vector<TokenId> output_tokens)
      : own_(std::move(own)),
        target_(target.tensors),
        output_(target.config.tied_embeddings ? kEmbedding : kOutput),
        is_quantised_(target.quantised),
        type_(is_quantised_ ? guess_type(target) : kernels::DType::F32),
        output_tokens_(std::move(output_tokens)) {}

  bool has(const std::string& name) const override { return is_shared(name) || own_->has(name); }
  std::vector<std::string> names() const override {
    std::vector<std::string> names = own_->names();
    names.insert(names.end(), {kEmbedding, kOutput});
    return names;
  }
  std::string path() const override { return own_->path(); }
  void check() const override {
    own_->check();
    target_->check();
  }

  Tensor read(const std::string& name) const override {
    return read_for(name, kernels::DType::F32);
  }
  Tensor read_for(const std::string& name, kernels::DType dtype) const override {
    if (!is_shared(name)) return own_->read_for(name, dtype);
    const Tensor all = target_->read_for(name_in_target(name), dtype);
    if (!is_cut(name)) return all;
    const auto n_bytes = static_cast<std::size_t>(all.n_elements() * kernels::bytes_of(all.dtype));
    const auto bytes = std::make_shared<const std::vector<char>>(rows_of(
        std::span(static_cast<const char*>(all.data), n_bytes), all.shape[0], output_tokens_));
    return {all.dtype, cut(all.shape), bytes->data(), bytes};
  }
  StoredTensor stored(const std::string& name) const override {
    if (!is_shared(name)) return own_->stored(name);
    const StoredTensor all = target_->stored(name_in_target(name));
    if (!is_cut(name)) return all;
    const auto bytes = std::make_shared<const std::vector<char>>(
        rows_of(std::span(all.bytes.data(), all.bytes.size()), all.shape[0], output_tokens_));
    return {all.type, cut(all.shape), {bytes->data(), bytes->size()}, bytes};
  }
  std::optional<kernels::DType> quantised_format(const std::string& name) const override {
    if (is_shared(name)) {
      const auto format = target_->quantised_format(name_in_target(name));
      return format && is_cut(name) ? type_ : format;
    }
    const std::vector<std::int64_t> shape = own_->stored(name).shape;
    if (!is_quantised_ || shape.size() != 2 || shape[1] % 32 != 0) return std::nullopt;
    return type_;
  }
  std::optional<QuantisedTensor> quantised(const std::string& name) const override {
    if (!quantised_format(name)) return std::nullopt;
    if (!is_shared(name)) return rounded(own_->read(name), type_);
    std::optional<QuantisedTensor> tensor = target_->quantised(name_in_target(name));
    if (!is_cut(name)) return tensor;
    const auto keep = [&](auto& values) {
      if (!values.empty())
        values = rows_of(std::span(std::as_const(values)), tensor->shape[0], output_tokens_);
    };
    keep(tensor->q), keep(tensor->scale), keep(tensor->minimum);
    tensor->shape = cut(tensor->shape);
    if (tensor->format == type_) return tensor;
    const std::vector<float> values = f32_of(*tensor);
    return rounded({kernels::DType::F32, tensor->shape, values.data(), nullptr}, type_);
  }

 private:
  static bool is_shared(const std::string& name) { return name == kEmbedding || name == kOutput; }
  std::string name_in_target(const std::string& name) const {
    return name == kOutput ? output_ : name;
  }
  bool is_cut(const std::string& name) const { return name == kOutput && !output_tokens_.empty(); }
  std::vector<std::int64_t> cut(std::vector<std::int64_t> shape) const {
    shape[0] = std::ssize(output_tokens_);
    return shape;
  }

  std::shared_ptr<const TensorSource> own_, target_;
  std::string output_;  // the target's output matrix
  bool is_quantised_;
  kernels::DType type_;  // of quantised matrices of the draft's own, and of its output rows
  std::vector<TokenId> output_tokens_;
};

}  // namespace

std::optional<std::string> named_target(const std::string& directory, const FileLimits& limits) {
  const std::string path = directory + "/config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const Json json = read_json_file(path, limits);
  if (!json.is(JsonReader::Kind::Object)) return std::nullopt;  // refused with the other members
  const std::optional<std::string> name = Fields(json, path).string("shares_embedding_of");
  return name && !name->empty() ? name : std::nullopt;
}

const ModelFiles* target_of_draft(const std::string& directory, const OpenOptions& options) {
  const std::optional<std::string> name = named_target(directory, options.limits);
  if (!name) return nullptr;
  if (!options.target)
    refuse(directory + "/config.json", "shares_embedding_of", in_quotes(*name),
           fmt::format("a whole model; this draft has no embedding, so it opens beside its target "
                       "only: --model TARGET --draft {}",
                       escaped(directory)));
  return options.target;
}

void share_embedding(const ModelFiles& target, const WeightFiles& weights, ModelFiles& draft) {
  ModelConfig& config = draft.config;
  const auto check = [&](const char* field, int found, int expected) {
    if (found != expected)
      refuse(draft.path + "/config.json", field, std::to_string(found),
             fmt::format("{} as in {}, whose embedding the draft shares", expected,
                         escaped(target.name)));
  };
  check("hidden_size", config.dim, target.config.dim);
  check("vocab_size", config.vocab_size, target.config.vocab_size);
  if (!is_same_model(config.shares_embedding_of, target.name))
    draft.notices.push_back(fmt::format(
        "{}/config.json: shares_embedding_of is {}, the target is {}: few drafts may be accepted",
        escaped(draft.path), in_quotes(config.shares_embedding_of), target.name));
  const int n_tokens = n_tokens_of(target);
  for (const auto& file : weights.files)
    if (const TensorEntry* entry = file->find(kOutputTokens))
      draft.output_tokens = read_output_tokens(*file, *entry, n_tokens);
  config.n_output_tokens = static_cast<int>(draft.output_tokens.size());
  config.tied_embeddings = target.config.tied_embeddings && draft.output_tokens.empty();
  config.bos_id = target.config.bos_id;
  config.eos_ids = target.config.eos_ids;
  draft.target_path = target.path;
  draft.tokenizer = target.tokenizer;
  draft.tensors = std::make_shared<SharingTensors>(draft.tensors, target, draft.output_tokens);
}

}  // namespace engine
