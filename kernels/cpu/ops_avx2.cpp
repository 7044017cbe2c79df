#include "kernels/cpu/vec_avx2.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/table_body.h"

namespace kernels::cpu {

const CpuKernels& avx2_kernels() {
  static const CpuKernels table = table_of_bodies();
  return table;
}

}  // namespace kernels::cpu
