// AVX-512 with VNNI for quantised weights; everything else is AVX-512.
#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/vnni.h"

namespace kernels::cpu {

const CpuKernels& avx512_vnni_kernels() {
  static const CpuKernels table = [] {
    CpuKernels made = avx512_kernels();
    add_quantised<VnniKernel>(made);
    return made;
  }();
  return table;
}

}  // namespace kernels::cpu
