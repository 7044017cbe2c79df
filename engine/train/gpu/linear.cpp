#include "engine/train/gpu/linear.h"

namespace engine {

using kernels::DType;

const void* GpuLinear::rounded(const GpuWeights& w, const GpuMatrix& m) const {
  return static_cast<const char*>(w.rounded) + m.at * kernels::bytes_of(type_);
}

void GpuLinear::forward(
    const GpuWeights& w, const GpuMatrix& m, const void* x, int rows, void* y) const {
  kernels_.product(device_, {.a = x,
                             .b = rounded(w, m),
                             .c = y,
                             .b_turned = true,
                             .in = type_,
                             .out = type_,
                             .m = rows,
                             .n = m.n_out,
                             .k = m.n_in});
}

void GpuLinear::forward_f32(
    const GpuWeights& w, const GpuMatrix& m, const void* x, int rows, float* y, bool add) const {
  kernels_.product(device_, {.a = x,
                             .b = rounded(w, m),
                             .c = y,
                             .b_turned = true,
                             .in = type_,
                             .add = add,
                             .m = rows,
                             .n = m.n_out,
                             .k = m.n_in});
}

void GpuLinear::backward_input(
    const GpuWeights& w, const GpuMatrix& m, const void* dy, int rows, void* dx) const {
  kernels_.product(device_, {.a = dy,
                             .b = rounded(w, m),
                             .c = dx,
                             .in = type_,
                             .out = type_,
                             .m = rows,
                             .n = m.n_in,
                             .k = m.n_out});
}

void GpuLinear::backward_input_f32(
    const GpuWeights& w, const GpuMatrix& m, const void* dy, int rows, float* dx) const {
  kernels_.product(
      device_,
      {.a = dy, .b = rounded(w, m), .c = dx, .in = type_, .m = rows, .n = m.n_in, .k = m.n_out});
}

void GpuLinear::backward_weight(
    const GpuMatrix& m, const void* dy, const void* x, int rows, float* gradient) const {
  kernels_.product(device_, {.a = dy,
                             .b = x,
                             .c = gradient + m.at,
                             .a_turned = true,
                             .in = type_,
                             .add = true,
                             .m = m.n_out,
                             .n = m.n_in,
                             .k = rows});
}

}  // namespace engine
