// Measures a GPU for scripts/gpu_model.py: copy bandwidth, the cost of a launch and of a kernel in a
// graph, and the overlap of weight reads with the small kernels between products. For the overlap a
// graph repeats pairs of kernels: one reads 96 MiB, one does dependent reads one after another.
//   gpu_probe [ORDINAL]      one JSON document
//   pair_us                  microseconds of a pair
//     small_alone, weights_alone   one kernel without the other
//     plain                        each kernel starts when the one before it has ended
//     asked                        blocks of the small kernel prefetch the first 16 MiB of the weights
//     early_both                   each kernel triggers the next one at its start and reads weights
//                                  before it waits; early_weights: only the weight kernel starts early
//     early_both_late              each kernel triggers the next one at its end
//     early_both_asked             early_both with the prefetch
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/intrinsics.cuh"

namespace {

using namespace kernels::cuda;

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_probe: %s: %s\n", call, cudaGetErrorString(error));
  std::exit(5);
}

__global__ void nothing() {}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// Bandwidth of copies within device memory, bytes read plus bytes written; the best of many copies.
double copy_gbps(std::size_t bytes, cudaStream_t stream) {
  char *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, bytes), "cudaMalloc");
  check(cudaMalloc(&to, bytes), "cudaMalloc");
  check(cudaMemsetAsync(from, 1, bytes, stream), "cudaMemsetAsync");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  double best = 0;
  for (int i = 0; i < 20; i++) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    best = std::max(best, 2.0 * static_cast<double>(bytes) / ms * 1e-6);
  }
  check(cudaFree(from), "cudaFree");
  check(cudaFree(to), "cudaFree");
  return best;
}

/// Microseconds per launch in a stream of many.
double launch_us(cudaStream_t stream) {
  constexpr int kLaunches = 2000;
  std::vector<double> each;
  for (int i = 0; i < 7; i++) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const auto began = std::chrono::steady_clock::now();
    for (int launch = 0; launch < kLaunches; launch++) nothing<<<1, 32, 0, stream>>>();
    check(cudaGetLastError(), "a launch");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    each.push_back(took.count() / kLaunches);
  }
  return median(each);
}

/// Microseconds per kernel in a graph whose kernels wait for each other.
double node_us(cudaStream_t stream) {
  constexpr int kNodes = 350;
  cudaGraph_t graph;
  check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(nothing);
  params.gridDim = params.blockDim = dim3(1);
  void* no_arguments[1] = {};
  params.kernelParams = no_arguments;
  cudaGraphNode_t before{};
  for (int i = 0; i < kNodes; i++) {
    cudaGraphNode_t node;
    check(cudaGraphAddKernelNode(&node, graph, &before, i > 0 ? 1 : 0, &params),
          "cudaGraphAddKernelNode");
    before = node;
  }
  cudaGraphExec_t exec;
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiateWithFlags");
  std::vector<double> each;
  for (int i = 0; i < 50; i++) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const auto began = std::chrono::steady_clock::now();
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    each.push_back(took.count() / kNodes);
  }
  check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return median(each);
}

constexpr std::size_t kPairBytes = 96u << 20;
constexpr int kWide = 128, kLoads = 8;  // threads of a weight block; loads of 16 bytes
constexpr int kAskedBytes = 16 << 20, kAskedPart = 4096, kReads = 8;

struct Pair {
  bool asks = false;
  bool early_weights = false, early_small = false;  // starts before the previous kernel has ended
  bool lets_late = false;
  bool has_weights = true, has_small = true;
};

__global__ void __launch_bounds__(kWide)
    read_weights(const uint4* weights, unsigned* out, Pair pair) {
  if (!pair.lets_late) let_next_begin();
  uint4 kept[kLoads];
  const uint4* own = weights + std::size_t{blockIdx.x} * kWide * kLoads + threadIdx.x;
  for (int i = 0; i < kLoads; i++) kept[i] = load_streamed(own + i * kWide);
  wait_for_earlier();
  unsigned all = *static_cast<volatile unsigned*>(out);
  for (const uint4& one : kept) all ^= one.x ^ one.y ^ one.z ^ one.w;
  if (all == 1) out[1] = all;  // never true (all data is 0); keeps the loads
  if (pair.lets_late) let_next_begin();
}

/// Block 0 does dependent reads; the other blocks prefetch weights.
__global__ void __launch_bounds__(256) small_one(const uint4* weights, unsigned* out, Pair pair) {
  if (!pair.lets_late) let_next_begin();
  if (blockIdx.x > 0) {
    const std::size_t part = (std::size_t{blockIdx.x} - 1) * 256 + threadIdx.x;
    if (part < kAskedBytes / kAskedPart)
      prefetch_to_cache(reinterpret_cast<const char*>(weights) + part * kAskedPart, kAskedPart);
  }
  wait_for_earlier();
  if (blockIdx.x == 0) {
    unsigned at = 0;
    for (int i = 0; i < kReads; i++) at = static_cast<volatile unsigned*>(out)[at];
    if (threadIdx.x == 0) *out = at;
  }
  if (pair.lets_late) let_next_begin();
}

void add_kernel(cudaGraph_t graph,
                cudaGraphNode_t& last,
                const cudaKernelNodeParams& params,
                bool early) {
  const bool is_first = last == nullptr;
  cudaGraphNode_t node;
  check(cudaGraphAddKernelNode(&node, graph, &last, is_first || early ? 0 : 1, &params),
        "cudaGraphAddKernelNode");
  if (!is_first && early) check(add_early_edge(graph, last, node), "cudaGraphAddDependencies");
  last = node;
}

constexpr int kPairs = 64;
cudaGraph_t graph_of_pairs(const std::vector<uint4*>& weights, unsigned* out, Pair pair) {
  cudaGraph_t graph;
  check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaGraphNode_t last = nullptr;
  for (int i = 0; i < kPairs; i++) {
    const uint4* of_pair = weights[static_cast<std::size_t>(i) % weights.size()];
    void* arguments[] = {&of_pair, &out, &pair};
    cudaKernelNodeParams params{};
    params.kernelParams = arguments;
    params.func = reinterpret_cast<void*>(small_one);
    params.gridDim = dim3(pair.asks ? 1 + kAskedBytes / kAskedPart / 256 : 1);
    params.blockDim = dim3(256);
    if (pair.has_small) add_kernel(graph, last, params, pair.early_small);
    params.func = reinterpret_cast<void*>(read_weights);
    params.gridDim = dim3(kPairBytes / (kWide * kLoads * sizeof(uint4)));
    params.blockDim = dim3(kWide);
    if (pair.has_weights) add_kernel(graph, last, params, pair.early_weights);
  }
  return graph;
}

/// Microseconds per pair; the median of many graphs.
double pair_us(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t exec;
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiateWithFlags");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> each;
  for (int i = 0; i < 12; i++) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    each.push_back(1e3 * ms / kPairs);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  return median(each);
}

struct NamedPair {
  const char* name;
  Pair pair;
  bool early() const { return pair.early_weights || pair.early_small; }
};

void print_pairs(bool can_be_early, cudaStream_t stream) {
  std::vector<uint4*> weights(4);  // larger than the cache
  for (uint4*& one : weights) {
    check(cudaMalloc(&one, kPairBytes), "cudaMalloc");
    check(cudaMemsetAsync(one, 0, kPairBytes, stream), "cudaMemsetAsync");
  }
  unsigned* out = nullptr;
  check(cudaMalloc(&out, 2 * sizeof *out), "cudaMalloc");
  check(cudaMemsetAsync(out, 0, 2 * sizeof *out, stream), "cudaMemsetAsync");
  const NamedPair all[] = {
      {"small_alone", {.has_weights = false}},
      {"weights_alone", {.has_small = false}},
      {"plain", {}},
      {"asked", {.asks = true}},
      {"early_weights", {.early_weights = true}},
      {"early_both", {.early_weights = true, .early_small = true}},
      {"early_both_late", {.early_weights = true, .early_small = true, .lets_late = true}},
      {"early_both_asked", {.asks = true, .early_weights = true, .early_small = true}},
  };
  std::printf(", \"pair_bytes\": %zu, \"pair_us\": {", kPairBytes);
  const char* comma = "";
  for (const NamedPair& one : all) {
    if (one.early() && !can_be_early) continue;
    const cudaGraph_t graph = graph_of_pairs(weights, out, one.pair);
    std::printf("%s\"%s\": %.3f", comma, one.name, pair_us(graph, stream));
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    comma = ", ";
  }
  std::printf("}");
  for (uint4* one : weights) check(cudaFree(one), "cudaFree");
  check(cudaFree(out), "cudaFree");
}

}  // namespace

int main(int n_arguments, char** arguments) {
  const int ordinal = n_arguments > 1 ? std::atoi(arguments[1]) : 0;
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, ordinal), "cudaGetDeviceProperties");
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const double gbps = copy_gbps(std::size_t{2} << 30, stream);
  std::printf(
      "{\"gpu\": \"%s\", \"sm\": %d, \"memory_bytes\": %zu, \"copy_gbps\": %.1f, "
      "\"launch_us\": %.3f, \"node_us\": %.3f",
      gpu.name, gpu.major * 10 + gpu.minor, gpu.totalGlobalMem, gbps, launch_us(stream),
      node_us(stream));
  print_pairs(gpu.major >= 9, stream);
  std::printf("}\n");
}
