// What scripts/gpu_model.py holds steps against: how fast this GPU copies, what a launch costs, and
// a kernel of a graph.
//   gpu_probe [ORDINAL]      one JSON document
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

namespace {

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

/// Bytes read and written, by the time of one copy within the device's memory; the best of many.
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

/// Microseconds a launch when many follow each other in a stream.
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

/// Microseconds a kernel of a graph whose kernels wait for each other.
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
      "\"launch_us\": %.3f, \"node_us\": %.3f}\n",
      gpu.name, gpu.major * 10 + gpu.minor, gpu.totalGlobalMem, gbps, launch_us(stream),
      node_us(stream));
}
