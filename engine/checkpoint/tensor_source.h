// Named tensors, wherever they come from: files mapped into memory, a scaled model, a test's
// vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "kernels/dtype.h"

namespace engine {

/// One tensor in host memory, row-major. `hold` keeps `data` alive (a mapping, a vector).
struct Tensor {
  kernels::DType dtype = kernels::DType::F32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  std::shared_ptr<const void> hold;

  std::int64_t n_elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

/// Names are Hugging Face's ("model.layers.0.self_attn.q_proj.weight"), whatever the file's format.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual bool has(const std::string& name) const = 0;
  /// @throws Error(BadInput)  if there is none of that name, or it cannot be read
  virtual Tensor read(const std::string& name) const = 0;
  virtual std::vector<std::string> names() const = 0;
  /// Where it came from, for messages.
  virtual std::string path() const = 0;
  /// To be called after the last read: were the files still whole while their tensors were used?
  /// @throws Error(BadInput)  naming the file that was cut or changed meanwhile
  virtual void check() const {}
};

/// Writes elements [first, first + n) of `tensor` to `out` as `dtype`, rounded to nearest even.
/// The same dtype is a copy: no bit changes.
void convert_elements(
    const Tensor& tensor, std::int64_t first, std::int64_t n, kernels::DType dtype, void* out);

/// All elements as f32.
std::vector<float> f32_of(const Tensor& tensor);

/// The same tensors; before each read `stop` is asked.
/// @param left  what a pass that ends there leaves, for the message: "nothing was written"
/// read() then @throws Error(Cancelled)  once it says true
std::shared_ptr<const TensorSource> stoppable(std::shared_ptr<const TensorSource> tensors,
                                              std::function<bool()> stop,
                                              std::string left);

}  // namespace engine
