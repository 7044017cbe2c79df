// A linear layer's three products, y = x W^T, dx = dy W, dW += dy^T x, on the fastest engine the
// machine has for a type: bf16 tiles (AMX) by our own kernel, everything else by oneDNN (2.6 takes
// its AMX path for plain layouts into an illegal instruction, so it is held below that).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/train/ops/bf16.h"

namespace engine {

/// W [n_out, n_in] in the form the products read; made from the f32 master once a step.
template <typename T>
class PackedLinear {
 public:
  virtual ~PackedLinear() = default;
};

/// One thread's products. Not shared between threads; holds their scratch memory.
template <typename T>
class LinearMath {
 public:
  virtual ~LinearMath() = default;
  /// "amx bf16", "oneDNN bf16", "oneDNN f32".
  virtual const char* name() const = 0;

  /// Allocates the packed form; `w` must stay where it is (the f32 form reads it in place).
  virtual std::unique_ptr<PackedLinear<T>> make(const float* w, int n_out, int n_in) const = 0;
  /// Reads the master again.
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

/// How numbers are kept between operations, and which engine multiplies them; the last two on a
/// GPU.
enum class Compute { F32, Bf16Amx, Bf16OneDnn, F32Cuda, Bf16Cuda };
const char* name_of(Compute compute);

std::unique_ptr<LinearMath<float>> linear_math_f32();
/// @throws Error(Device)  for Bf16Amx where the machine has none
std::unique_ptr<LinearMath<Bf16>> linear_math_bf16(Compute compute);

/// The fastest of the three here: tiles where there are any; else bf16 where its products are
/// faster than f32's, measured once by multiplying (Intel's AVX-512 BF16 is slower than its f32).
Compute fastest_compute();

}  // namespace engine
