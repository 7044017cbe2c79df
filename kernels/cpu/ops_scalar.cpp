#include "kernels/cpu/vec_scalar.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/reference.h"
#include "kernels/cpu/table_body.h"

namespace kernels::cpu {

const CpuKernels& scalar_kernels() {
  static const CpuKernels table = [] {
    CpuKernels made = table_of_bodies();
    add_quantised<ReferenceKernel>(made);
    return made;
  }();
  return table;
}

}  // namespace kernels::cpu
