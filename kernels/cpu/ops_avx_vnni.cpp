// AVX-VNNI for quantised weights; everything else is AVX2.
#include "kernels/cpu/vec_avx2.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/vnni.h"

namespace kernels::cpu {

const CpuKernels& avx_vnni_kernels() {
  static const CpuKernels table = [] {
    CpuKernels made = avx2_kernels();
    add_quantised<VnniKernel>(made);
    return made;
  }();
  return table;
}

}  // namespace kernels::cpu
