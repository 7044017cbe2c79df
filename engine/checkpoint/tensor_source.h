// Named tensors from any source: mapped files, a scaled model, vectors in a test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

  /// The product of the shape's dimensions.
  std::int64_t n_elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

/// A tensor as its file stores it, row-major. `hold` keeps `bytes` alive.
struct StoredTensor {
  std::string type;  // "bf16", "Q4_1"
  std::vector<std::int64_t> shape;
  std::string_view bytes;
  std::shared_ptr<const void> hold;
};

/// A quantised matrix of shape [n, k] as integers: element (r, j) is, in f32,
/// scale[(r k + j) / group] * q[r k + j] + minimum[(r k + j) / group].
struct QuantisedTensor {
  kernels::DType format;  // packed weights of this type have the same values
  std::vector<std::int64_t> shape;
  int group = 32;  // elements that share a scale: 16 or 32
  std::vector<std::int8_t> q;
  std::vector<float> scale, minimum;  // minimum: empty means 0
};

/// Provides tensors by name, as Hugging Face names them: "model.layers.0.self_attn.q_proj.weight".
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// True if there is a tensor of this name.
  virtual bool has(const std::string& name) const = 0;
  /// Reads a tensor.
  /// @throws Error(BadInput)  if no tensor has this name or it cannot be read
  virtual Tensor read(const std::string& name) const = 0;
  /// Reads a tensor that will be used in `dtype`. One that must be decoded may have been rounded to
  /// it, which takes less memory; others are as read() returns them.
  /// @throws Error(BadInput)  as read()
  virtual Tensor read_for(const std::string& name, kernels::DType dtype) const;
  /// Reads a tensor as its file stores it: read() for all but quantised files.
  /// @throws Error(BadInput)  as read()
  virtual StoredTensor stored(const std::string& name) const;
  /// The format of packed weights that has the values of a quantised matrix; nullopt: the tensor is
  /// not quantised.
  /// @throws Error(BadInput)  if no tensor has this name
  virtual std::optional<kernels::DType> quantised_format(const std::string& name) const;
  /// Unpacks a quantised matrix; nullopt: the tensor is not quantised.
  /// @throws Error(BadInput)  as read()
  virtual std::optional<QuantisedTensor> quantised(const std::string& name) const;
  /// The names of all tensors.
  virtual std::vector<std::string> names() const = 0;
  /// The path of the file or directory, for messages.
  virtual std::string path() const = 0;
  /// Checks that no file was changed while its tensors were used; call after the last use.
  /// @throws Error(BadInput)  if a file was truncated or modified; the message names the file
  virtual void check() const {}
};

/// Writes elements [first, first + n) of `tensor` to `out` as `dtype`, rounded to nearest even.
/// If the dtype is the tensor's own, the bits are copied unchanged.
void convert_elements(
    const Tensor& tensor, std::int64_t first, std::int64_t n, kernels::DType dtype, void* out);

/// All elements, converted to float.
std::vector<float> f32_of(const Tensor& tensor);

/// The elements of a quantised matrix.
std::vector<float> f32_of(const QuantisedTensor& matrix);

/// Wraps a source so that read() throws Error(Cancelled) once `stop` returns true.
/// @param left  text for the error message: the state after the cancellation, such as "nothing was
///              written"
std::shared_ptr<const TensorSource> stoppable(std::shared_ptr<const TensorSource> tensors,
                                              std::function<bool()> stop,
                                              std::string left);

}  // namespace engine
