// The three products of a linear layer on the CPU: y = x W^T, dx = dy W, dW += dy^T x. Compute mode
// Bf16Amx uses this project's kernel, the other CPU modes use oneDNN. AMX is disabled in oneDNN,
// because version 2.6 executes an illegal AMX instruction for plain layouts.
#pragma once

#include <cstdint>
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

/// The type of activations and the library for products; the last two modes are for a GPU.
enum class Compute { F32, Bf16Amx, Bf16OneDnn, F32Cuda, Bf16Cuda };
/// "f32", "bf16-amx", "bf16-onednn", "f32-cuda" or "bf16-cuda".
const char* name_of(Compute compute);

/// Products in f32.
std::unique_ptr<LinearMath<float>> linear_math_f32();
/// Products in bf16.
/// @throws Error(Device)  for Bf16Amx on a processor without AMX
std::unique_ptr<LinearMath<Bf16>> linear_math_bf16(Compute compute);

/// The fastest CPU mode on this machine: Bf16Amx if the processor has AMX. Otherwise products in
/// bf16 and f32 are timed once (with Intel's AVX-512 BF16 bf16 is slower than f32).
Compute fastest_compute();

}  // namespace engine
