// The tensors of GGUF files under Hugging Face's names and with Hugging Face's values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// The tensors of a model. read() decodes quantised tensors to f32, puts rotary pairs back into
/// Hugging Face's order and subtracts norm offsets. F32, F16 and BF16 tensors that need none of this
/// are views of the mapping.
class GgufTensors : public TensorSource {
 public:
  /// Checks that the files have every tensor of the model in a readable type and the right shape.
  /// @param files   the parts of one model, not empty
  /// @param config  of the model; its tensors_of() are the names
  /// @throws Error(BadInput)  naming the tensor as in the file
  GgufTensors(std::vector<std::shared_ptr<const GgufFile>> files, const ModelConfig& config);

  bool has(const std::string& name) const override;
  Tensor read(const std::string& name) const override;
  Tensor read_for(const std::string& name, kernels::DType dtype) const override;
  std::vector<std::string> names() const override;
  std::string path() const override { return files_.front()->path(); }
  void check() const override;
  StoredTensor stored(const std::string& name) const override;
  std::optional<kernels::DType> quantised_format(const std::string& name) const override;
  std::optional<QuantisedTensor> quantised(const std::string& name) const override;

  /// The files.
  const std::vector<std::shared_ptr<const GgufFile>>& parts() const { return files_; }
  /// The type that most of the model's elements have.
  const GgmlTypeInfo& main_type() const;
  /// The names of tensors in the files that the model does not read.
  std::vector<std::string> unused() const;

 private:
  struct Entry {
    std::string name;  // Hugging Face's
    std::shared_ptr<const GgufFile> file;
    const GgufTensor* tensor;
    int n_interleaved_heads;
    float offset;
  };
  const Entry& entry(const std::string& name) const;

  std::vector<std::shared_ptr<const GgufFile>> files_;
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace engine
