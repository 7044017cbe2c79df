#include "engine/checkpoint/tensor_source.h"

#include <cstring>
#include <utility>

#include "engine/base/text.h"

namespace engine {
namespace {

float load(const Tensor& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case kernels::DType::F32:
      return static_cast<const float*>(tensor.data)[i];
    case kernels::DType::F16:
      return kernels::f32_from_f16(static_cast<const std::uint16_t*>(tensor.data)[i]);
    case kernels::DType::BF16:
      return kernels::f32_from_bf16(static_cast<const std::uint16_t*>(tensor.data)[i]);
    default:
      break;
  }
  return 0;
}

class StoppableTensors : public TensorSource {
 public:
  StoppableTensors(std::shared_ptr<const TensorSource> tensors,
                   std::function<bool()> stop,
                   std::string left)
      : tensors_(std::move(tensors)), stop_(std::move(stop)), left_(std::move(left)) {}

  bool has(const std::string& name) const override { return tensors_->has(name); }
  std::vector<std::string> names() const override { return tensors_->names(); }
  std::string path() const override { return tensors_->path(); }
  void check() const override { tensors_->check(); }

  Tensor read(const std::string& name) const override {
    check_stop();
    return tensors_->read(name);
  }
  Tensor read_for(const std::string& name, kernels::DType dtype) const override {
    check_stop();
    return tensors_->read_for(name, dtype);
  }
  StoredTensor stored(const std::string& name) const override {
    check_stop();
    return tensors_->stored(name);
  }
  std::optional<kernels::DType> quantised_format(const std::string& name) const override {
    return tensors_->quantised_format(name);
  }
  std::optional<QuantisedTensor> quantised(const std::string& name) const override {
    check_stop();
    return tensors_->quantised(name);
  }

 private:
  void check_stop() const {
    if (stop_()) throw Error(ErrorCode::Cancelled, escaped(path()) + ": cancelled; " + left_);
  }

  std::shared_ptr<const TensorSource> tensors_;
  std::function<bool()> stop_;
  std::string left_;
};

}  // namespace

Tensor TensorSource::read_for(const std::string& name, kernels::DType) const {
  return read(name);
}

StoredTensor TensorSource::stored(const std::string& name) const {
  const Tensor tensor = read(name);
  const std::int64_t n_bytes = tensor.n_elements() * kernels::bytes_of(tensor.dtype);
  return {kernels::name_of(tensor.dtype),
          tensor.shape,
          {static_cast<const char*>(tensor.data), static_cast<std::size_t>(n_bytes)},
          tensor.hold};
}

std::optional<kernels::DType> TensorSource::quantised_format(const std::string&) const {
  return std::nullopt;
}

std::optional<QuantisedTensor> TensorSource::quantised(const std::string&) const {
  return std::nullopt;
}

void convert_elements(
    const Tensor& tensor, std::int64_t first, std::int64_t n, kernels::DType dtype, void* out) {
  ensure(first >= 0 && n >= 0 && first + n <= tensor.n_elements(),
         "the elements must be inside the tensor");
  if (dtype == tensor.dtype) {
    const int size = kernels::bytes_of(dtype);
    if (n == 0) return;
    std::memcpy(out, static_cast<const char*>(tensor.data) + first * size,
                static_cast<std::size_t>(n * size));
    return;
  }
  auto* f32 = static_cast<float*>(out);
  auto* bits = static_cast<std::uint16_t*>(out);
  for (std::int64_t i = 0; i < n; i++) {
    const float x = load(tensor, first + i);
    if (dtype == kernels::DType::F32) f32[i] = x;
    if (dtype == kernels::DType::BF16) bits[i] = kernels::bf16_from_f32(x);
    if (dtype == kernels::DType::F16) bits[i] = kernels::f16_from_f32(x);
  }
}

std::vector<float> f32_of(const Tensor& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.n_elements()));
  convert_elements(tensor, 0, tensor.n_elements(), kernels::DType::F32, out.data());
  return out;
}

std::vector<float> f32_of(const QuantisedTensor& matrix) {
  const auto group = static_cast<std::size_t>(matrix.group);
  std::vector<float> out(matrix.q.size());
  for (std::size_t i = 0; i < out.size(); i++) {
    out[i] = matrix.scale[i / group] * static_cast<float>(matrix.q[i]);
    if (!matrix.minimum.empty()) out[i] += matrix.minimum[i / group];
  }
  return out;
}

std::shared_ptr<const TensorSource> stoppable(std::shared_ptr<const TensorSource> tensors,
                                              std::function<bool()> stop,
                                              std::string left) {
  return std::make_shared<StoppableTensors>(std::move(tensors), std::move(stop), std::move(left));
}

}  // namespace engine
