// Compiles all operations as one translation unit: nvcc compiles it for GPUs, and a C++ compiler
// with DECOSCOPE_CUDA_EMULATION for the emulated device. Therefore names in the unnamed namespaces
// of these files must differ.
#include "kernels/cuda/attention.cu"
#include "kernels/cuda/cache.cu"
#include "kernels/cuda/cublas.cu"
#include "kernels/cuda/cuda_device.cu"
#include "kernels/cuda/distributions.cu"
#include "kernels/cuda/graphs.cu"
#include "kernels/cuda/matmul.cu"
#include "kernels/cuda/pick.cu"
#include "kernels/cuda/prompts.cu"
#include "kernels/cuda/rows.cu"
#include "kernels/cuda/train/attention.cu"
#include "kernels/cuda/train/heads.cu"
#include "kernels/cuda/train/norms.cu"
#include "kernels/cuda/train/products.cu"
#include "kernels/cuda/train/rows.cu"
#include "kernels/cuda/transfers.cu"
