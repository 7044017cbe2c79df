#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/maddubs.h"
#include "kernels/cpu/table_body.h"

namespace kernels::cpu {

const CpuKernels& avx512_kernels() {
  static const CpuKernels table = [] {
    CpuKernels made = table_of_bodies();
    add_quantised<MaddubsKernel>(made);
    return made;
  }();
  return table;
}

}  // namespace kernels::cpu
