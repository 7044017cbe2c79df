// What multiplies the matrices of training on a GPU, and of prompts where that is asked for:
// cuBLAS, opened when it is wanted, or kernels of this project, which the emulation has in its
// place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "kernels/cuda/platform.h"
#include "kernels/train_ops.h"

namespace kernels::DECOSCOPE_GPU {

class CudaDevice;

/// A product as BLAS has it, column by column: C [m, n] = op(A) op(B), plus C if `add`. op(A) is
/// [m, k]; element (i, j) of a matrix lies at i + j ld.
struct Gemm {
  const void* a;
  const void* b;
  void* c;
  int m, n, k;
  int lda, ldb, ldc;
  bool a_turned, b_turned;
  DType in, out;
  bool add;
  std::uint8_t none[3] = {};  // a graph compares launches byte by byte: no byte is left unset
};
static_assert(std::has_unique_object_representations_v<Gemm>);
/// Row-major C = A B is column-major C^T = B^T A^T.
Gemm gemm_of(const TrainProduct& product);

class Products {
 public:
  virtual ~Products() = default;
  virtual std::string name() const = 0;
  virtual void multiply(CudaDevice& device, const Gemm& gemm) = 0;
};

/// Whose products they are: what a message says to do without them.
enum class ProductsOf { Training, Prompts };

/// By DECOSCOPE_CUBLAS in the environment: a file's path, or "own"; without it the first cuBLAS
/// that is found. In the emulation always its own.
/// @throws Error(Device)  in one line, if it is not here or refuses
std::unique_ptr<Products> open_products(CudaDevice& device, ProductsOf whose);
/// Why they cannot be had here, by whatever device; empty: they can. In the emulation a file that
/// is named is none.
std::string why_no_products();

/// cuBLAS (cublas.cu).
/// @param named  the library's file; empty: the first that is found
std::unique_ptr<Products> open_cublas(CudaDevice& device,
                                      const std::string& named,
                                      ProductsOf whose);
std::string why_no_cublas(const std::string& named);

}  // namespace kernels::DECOSCOPE_GPU
