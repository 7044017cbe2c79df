// The products of a linear layer that a library computes: y = x W^T, dx = dy W, dW += dy^T x.
#pragma once

#include <memory>

#include "engine/train/ops/bf16.h"

namespace engine {

/// A matrix W [n_out, n_in] in the layout that products read. It is packed from the f32 master
/// weights once per step.
template <typename T>
class PackedLinear {
 public:
  virtual ~PackedLinear() = default;
};

/// The products that one thread computes, with their scratch memory. Not thread-safe.
template <typename T>
class LinearMath {
 public:
  virtual ~LinearMath() = default;
  /// Its name: "amx bf16", "oneDNN bf16", "oneDNN f32".
  virtual const char* name() const = 0;

  /// Allocates the packed form. The f32 form has no copy and reads `w`, so `w` must not move.
  virtual std::unique_ptr<PackedLinear<T>> make(const float* w, int n_out, int n_in) const = 0;
  /// Packs the master weights again.
  virtual void repack(PackedLinear<T>& packed) const = 0;

  /// y [rows, n_out] = x W^T
  virtual void forward(const PackedLinear<T>& w, const T* x, int rows, T* y) = 0;
  /// y [rows, n_out] f32 = x W^T, added to y if `add`.
  virtual void forward_f32(const PackedLinear<T>& w, const T* x, int rows, float* y, bool add) = 0;
  /// dx [rows, n_in] = dy W
  virtual void backward_input(const PackedLinear<T>& w, const T* dy, int rows, T* dx) = 0;
  /// dw [n_out, n_in] f32 += dy^T x
  virtual void backward_weight(
      const PackedLinear<T>& w, const T* dy, const T* x, int rows, float* dw) = 0;
};

}  // namespace engine
