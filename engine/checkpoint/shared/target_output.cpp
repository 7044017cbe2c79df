#include "engine/checkpoint/shared/target_output.h"

#include <cstring>

#include <fmt/format.h>

#include "engine/base/refuse.h"

namespace engine {
namespace {

class WithTargetOutput final : public TensorSource {
 public:
  WithTargetOutput(std::shared_ptr<const TensorSource> heads,
                   std::span<const TokenId> tokens,
                   const ModelFiles& target)
      : heads_(std::move(heads)), tokens_(tokens.begin(), tokens.end()) {
    target_.config = target.config;
    target_.tensors = target.tensors;
  }
  bool has(const std::string& name) const override {
    return name == kTargetOutput || heads_->has(name);
  }
  Tensor read(const std::string& name) const override {
    return name == kTargetOutput ? output_rows(target_, tokens_) : heads_->read(name);
  }
  StoredTensor stored(const std::string& name) const override {
    if (name != kOutputTokens) return heads_->stored(name);
    const std::string_view bytes(reinterpret_cast<const char*>(tokens_.data()),
                                 tokens_.size() * sizeof(TokenId));
    return {"i32", {std::ssize(tokens_)}, bytes, nullptr};
  }
  std::vector<std::string> names() const override { return heads_->names(); }
  std::string path() const override { return heads_->path(); }
  void check() const override {
    heads_->check();
    target_.tensors->check();
  }

 private:
  std::shared_ptr<const TensorSource> heads_;
  std::vector<TokenId> tokens_;
  ModelFiles target_;  // only its shape and tensors
};

}  // namespace

kernels::DType guess_type(const ModelFiles& target) {
  using kernels::DType;
  ensure(target.quantised, "guess_type: the target must be quantised");
  const DType type = target.packed_type;
  return type == DType::Q8_0 || type == DType::Q8_G ? DType::Q8_0 : DType::Q4_0;
}

Tensor output_rows(const ModelFiles& model, std::span<const TokenId> tokens) {
  const bool tied = model.config.tied_embeddings;
  Tensor all = model.tensors->read(tied ? "model.embed_tokens.weight" : "lm_head.weight");
  if (tokens.empty()) return all;
  const auto row_bytes = static_cast<std::size_t>(all.shape[1]) *
                         static_cast<std::size_t>(kernels::bytes_of(all.dtype));
  const auto rows = std::make_shared<std::vector<std::byte>>(tokens.size() * row_bytes);
  for (std::size_t i = 0; i < tokens.size(); i++)
    std::memcpy(
        rows->data() + i * row_bytes,
        static_cast<const std::byte*>(all.data) + static_cast<std::size_t>(tokens[i]) * row_bytes,
        row_bytes);
  return {all.dtype, {std::ssize(tokens), all.shape[1]}, rows->data(), rows};
}

std::shared_ptr<const TensorSource> with_target_output(std::shared_ptr<const TensorSource> heads,
                                                       std::span<const TokenId> tokens,
                                                       const ModelFiles& target) {
  return std::make_shared<WithTargetOutput>(std::move(heads), tokens, target);
}

std::vector<TokenId> read_output_tokens(const SafetensorsFile& file,
                                        const TensorEntry& entry,
                                        int vocab_size) {
  const std::string field = "tensor " + in_quotes(entry.name);
  if (entry.dtype != "I32") refuse(file.path(), field + ": dtype", entry.dtype, "I32");
  if (entry.shape.size() != 1 || entry.shape[0] < 1 || entry.shape[0] > vocab_size)
    refuse(file.path(), field, shown_shape(entry.shape),
           fmt::format("[n] with 1 to {} tokens", vocab_size));
  std::vector<TokenId> tokens(static_cast<std::size_t>(entry.shape[0]));
  std::memcpy(tokens.data(), file.bytes_of(entry).data(), tokens.size() * sizeof(TokenId));
  for (std::size_t i = 0; i < tokens.size(); i++) {
    const TokenId least = i == 0 ? 0 : tokens[i - 1] + 1;
    if (tokens[i] < least || tokens[i] >= vocab_size)
      refuse(file.path(), fmt::format("{}: element {}", field, i), std::to_string(tokens[i]),
             fmt::format("an ascending token id of {} to {}", least, vocab_size - 1));
  }
  return tokens;
}

}  // namespace engine
