#include "engine/model/encode/first_layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace engine {
namespace {

constexpr std::size_t kRowsAtOnce = 256;  // of a text in one forward
constexpr const char* kFinalNorm = "model.norm.weight";

/// The tensors of a model with a final norm whose weights, with their offset, are 1.
class WithoutFinalNorm final : public TensorSource {
 public:
  WithoutFinalNorm(std::shared_ptr<const TensorSource> tensors, const ModelConfig& config)
      : tensors_(std::move(tensors)),
        norm_(std::make_shared<std::vector<float>>(static_cast<std::size_t>(config.dim),
                                                   1 - config.norm_offset)) {}
  bool has(const std::string& name) const override { return tensors_->has(name); }
  Tensor read(const std::string& name) const override {
    return name == kFinalNorm ? norm() : tensors_->read(name);
  }
  Tensor read_for(const std::string& name, kernels::DType dtype) const override {
    return name == kFinalNorm ? norm() : tensors_->read_for(name, dtype);
  }
  StoredTensor stored(const std::string& name) const override {
    return name == kFinalNorm ? TensorSource::stored(name) : tensors_->stored(name);
  }
  std::optional<kernels::DType> quantised_format(const std::string& name) const override {
    return name == kFinalNorm ? std::nullopt : tensors_->quantised_format(name);
  }
  std::optional<QuantisedTensor> quantised(const std::string& name) const override {
    return name == kFinalNorm ? std::nullopt : tensors_->quantised(name);
  }
  std::vector<std::string> names() const override { return tensors_->names(); }
  std::string path() const override { return tensors_->path(); }
  void check() const override { tensors_->check(); }

 private:
  Tensor norm() const { return {kernels::DType::F32, {std::ssize(*norm_)}, norm_->data(), norm_}; }
  std::shared_ptr<const TensorSource> tensors_;
  std::shared_ptr<const std::vector<float>> norm_;
};

TokenTree chain_of(std::span<const TokenId> tokens) {
  TokenTree rows;
  for (const TokenId token : tokens) rows.add(token, rows.n_rows() - 1, RowTag{});
  return rows;
}

}  // namespace

ModelConfig first_layer_of(ModelConfig config) {
  config.n_layers = 1;
  if (!config.layer_kinds.empty()) config.layer_kinds.resize(1);
  config.tied_embeddings = true;  // no logits are computed
  return config;
}

std::unique_ptr<Model> load_first_layer(kernels::Device& device,
                                        const ModelFiles& files,
                                        const LoadOptions& options) {
  ModelFiles layer = files;
  layer.config = first_layer_of(files.config);
  layer.output_tokens.clear();
  layer.tensors = std::make_shared<WithoutFinalNorm>(files.tensors, files.config);
  LoadOptions of_layer = options;
  of_layer.scale.depth = 1;
  of_layer.progress = {};
  return Model::load(device, layer, of_layer);
}

std::vector<float> EncodedText::forward(const TokenTree& rows) const {
  BatchItem item{.cache = cache_.get(), .tree = &rows, .prefix = tokens_};
  item.pick_rows = false;
  return std::move(layer_.forward(std::span(&item, 1), {.hidden = true}).front().hidden);
}

std::vector<float> EncodedText::append(std::span<const TokenId> tokens) {
  std::vector<float> encoded;
  for (std::size_t begin = 0; begin < tokens.size(); begin += kRowsAtOnce) {
    const auto part = tokens.subspan(begin, std::min(kRowsAtOnce, tokens.size() - begin));
    const std::vector<float> rows = forward(chain_of(part));
    encoded.insert(encoded.end(), rows.begin(), rows.end());
    std::vector<int> path(part.size());
    std::iota(path.begin(), path.end(), 0);
    cache_->commit(path);
    tokens_.insert(tokens_.end(), part.begin(), part.end());
  }
  return encoded;
}

void EncodedText::truncate(int length) {
  if (length >= std::ssize(tokens_)) return;
  cache_->truncate(length);
  tokens_.resize(static_cast<std::size_t>(length));
}

std::vector<float> EncodedText::draft(std::span<const int> parent,
                                      std::span<const TokenId> tokens) {
  for (std::size_t i = 0; i < parent.size(); i++) draft_.add(tokens[i], parent[i], RowTag{});
  std::vector<float> rows = forward(draft_);
  const std::size_t dim = rows.size() / draft_.token.size();
  rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(parent.size() * dim));
  return rows;
}

std::vector<std::vector<float>> FirstLayer::encode(std::span<const TokenTree> trees) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::vector<float>> encoded;
  for (const TokenTree& tree : trees) {
    const auto cache = layer_->make_cache();
    BatchItem item{.cache = cache.get(), .tree = &tree};
    item.pick_rows = false;
    encoded.push_back(
        std::move(layer_->forward(std::span(&item, 1), {.hidden = true}).front().hidden));
  }
  return encoded;
}

}  // namespace engine
