// Matrix products of training (and of prompts if requested) on a GPU. cuBLAS computes them; it is
// opened at the first use. The emulation uses this project's kernels instead.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "kernels/cuda/platform.h"
#include "kernels/train_ops.h"

namespace kernels::DECOSCOPE_GPU {

class CudaDevice;

/// A product in BLAS's column-major form: C [m, n] = op(A) op(B), plus C if `add`. op(A) is [m, k];
/// element (i, j) of a matrix is at index i + j ld.
struct Gemm {
  const void* a;
  const void* b;
  void* c;
  int m, n, k;
  int lda, ldb, ldc;
  bool a_transposed, b_transposed;
  DType in, out;
  bool add;
  std::uint8_t none[3] = {};  // graphs compare launches byte by byte, so all bytes are initialised
};
static_assert(std::has_unique_object_representations_v<Gemm>);
/// Row-major C = A B is column-major C^T = B^T A^T.
Gemm gemm_of(const TrainProduct& product);

/// A library of products.
class Products {
 public:
  virtual ~Products() = default;
  /// "cuBLAS 130002", "own products".
  virtual std::string name() const = 0;
  /// Adds the product to the device's stream.
  virtual void multiply(CudaDevice& device, const Gemm& gemm) = 0;
};

/// The user of the products, for the message if they are not available.
enum class ProductsOf { Training, Prompts };

/// Opens the library that DECOSCOPE_CUBLAS in the environment names: a file's path, or "own"; if it
/// is unset, the first cuBLAS found. The emulation always uses this project's kernels.
/// @throws Error(Device)  with a message of one line, if the library is not available or refuses
std::unique_ptr<Products> open_products(CudaDevice& device, ProductsOf whose);
/// Reason why products are not available on any device; empty if they are. In the emulation, a named
/// file is not available.
std::string why_no_products();

/// Opens cuBLAS (cublas.cu).
/// @param named  the library's file; empty: the first one found
std::unique_ptr<Products> open_cublas(CudaDevice& device,
                                      const std::string& named,
                                      ProductsOf whose);
/// Reason why cuBLAS is not available; empty if it is.
std::string why_no_cublas(const std::string& named);

}  // namespace kernels::DECOSCOPE_GPU
