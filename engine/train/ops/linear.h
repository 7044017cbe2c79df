// The three products of a linear layer on the CPU: y = x W^T, dx = dy W, dW += dy^T x. bf16 on AMX
// tiles uses this project's kernel, everything else oneDNN (AMX is disabled in oneDNN: version 2.6
// executes an illegal instruction there for plain layouts).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/train/ops/bf16.h"

namespace engine {

/// W [n_out, n_in] in the form that products read; packed from the f32 master once a step.
template <typename T>
class PackedLinear {
 public:
  virtual ~PackedLinear() = default;
};

/// The products of one thread, with their scratch memory. Not thread-safe.
template <typename T>
class LinearMath {
 public:
  virtual ~LinearMath() = default;
  /// Its name: "amx bf16", "oneDNN bf16", "oneDNN f32".
  virtual const char* name() const = 0;

  /// Allocates the packed form. `w` must stay in place, since the f32 form reads it there.
  virtual std::unique_ptr<PackedLinear<T>> make(const float* w, int n_out, int n_in) const = 0;
  /// Packs the master again.
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

/// The type of activations and the library of products; the last two on a GPU.
enum class Compute { F32, Bf16Amx, Bf16OneDnn, F32Cuda, Bf16Cuda };
/// "f32", "bf16-amx", "bf16-onednn", "f32-cuda" or "bf16-cuda".
const char* name_of(Compute compute);

/// Products in f32.
std::unique_ptr<LinearMath<float>> linear_math_f32();
/// Products in bf16.
/// @throws Error(Device)  for Bf16Amx on a processor without AMX
std::unique_ptr<LinearMath<Bf16>> linear_math_bf16(Compute compute);

/// The fastest CPU mode of this machine: AMX if it has it; else bf16 if its products are faster than
/// those in f32, measured once (Intel's AVX-512 BF16 is slower than its f32).
Compute fastest_compute();

}  // namespace engine
