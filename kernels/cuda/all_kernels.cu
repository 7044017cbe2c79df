// Every operation in one go: by nvcc for GPUs, by a C++ compiler with DECOSCOPE_CUDA_EMULATION for
// the emulated one. So names in these files' unnamed namespaces differ.
#include "kernels/cuda/attention.cu"
#include "kernels/cuda/cache.cu"
#include "kernels/cuda/cublas.cu"
#include "kernels/cuda/cuda_device.cu"
#include "kernels/cuda/graphs.cu"
#include "kernels/cuda/matmul.cu"
#include "kernels/cuda/pick.cu"
#include "kernels/cuda/products.cu"
#include "kernels/cuda/rows.cu"
#include "kernels/cuda/train_attention.cu"
#include "kernels/cuda/train_norms.cu"
#include "kernels/cuda/train_rows.cu"
