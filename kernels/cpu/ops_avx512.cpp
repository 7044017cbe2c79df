#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/table_body.h"

namespace kernels::cpu {

const CpuKernels& avx512_kernels() {
  static const CpuKernels table = table_of_bodies();
  return table;
}

}  // namespace kernels::cpu
