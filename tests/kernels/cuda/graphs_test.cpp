// CUDA graphs. The emulation runs graphs and detects a missing dependency. The device makes graphs from
// lists of kernels and updates them where arguments differ.
#include "kernels/cuda/cuda_device.h"
//
#include <bit>

#include <gmock/gmock.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/side.h"
#include "tests/kernels/emulation/faults_kit.h"
#include "tests/support/in_environment.h"

namespace kernels::cuda_emulated {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

__global__ void add_to(int* x, int n) {
  *x += n;
}
__global__ void multiply_by(int* x, int n) {
  *x *= n;
}
__global__ void copy_int(const int* from, int* to) {
  *to = *from;
}

/// Two arguments of a kernel, in the runtime's format.
template <class A, class B>
class KernelParams {
 public:
  KernelParams(void (*kernel)(A, B), A a, B b) : a_(a), b_(b) {
    params_.func = const_cast<void*>(handle_of("tested", kernel));
    params_.kernelParams = places_;
  }
  KernelParams(const KernelParams&) = delete;
  KernelParams& operator=(const KernelParams&) = delete;
  cudaKernelNodeParams& operator*() { return params_; }

 private:
  A a_;
  B b_;
  void* places_[2] = {&a_, &b_};
  cudaKernelNodeParams params_ = {};
};

class EmulatedGraph : public Emulation {
 protected:
  EmulatedGraph() { EXPECT_EQ(cudaSuccess, cudaGraphCreate(&graph_, 0)); }
  ~EmulatedGraph() override {
    if (exec_) cudaGraphExecDestroy(exec_);
    if (graph_) cudaGraphDestroy(graph_);
  }
  template <class A, class B>
  cudaGraphNode_t add(KernelParams<A, B>&& updated, const std::vector<cudaGraphNode_t>& after) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess,
              cudaGraphAddKernelNode(&node, graph_, after.data(), after.size(), &*updated));
    return node;
  }
  void instantiate() { EXPECT_EQ(cudaSuccess, cudaGraphInstantiateWithFlags(&exec_, graph_, 0)); }
  cudaError_t launch_and_wait() {
    const cudaError_t error = cudaGraphLaunch(exec_, stream_);
    return error == cudaSuccess ? cudaStreamSynchronize(stream_) : error;
  }
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(EmulatedGraph, a_missing_dependency_is_detected) {
  for (const bool right : {true, false}) {
    const Memory<int> x(1, 1), copy(1, 0);
    const cudaGraphNode_t first = add(KernelParams(add_to, x.data(), 4), {});
    const cudaGraphNode_t then = add(KernelParams(multiply_by, x.data(), 3), {first});
    add(KernelParams(copy_int, static_cast<const int*>(x.data()), copy.data()),
        {right ? then : first});
    instantiate();
    EXPECT_EQ(launch_and_wait(), right ? cudaSuccess : cudaErrorLaunchFailure);
    if (right) {
      EXPECT_EQ(copy.read()[0], 15);
    } else {
      EXPECT_THAT(fault_text(), HasSubstr("a dependency is missing"));
    }
    forget_faults();
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
    exec_ = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphCreate(&graph_, 0));
  }
}

// Kernels run once, in an order that differs from their creation.
TEST_F(EmulatedGraph, nodes_run_as_late_as_their_dependencies_allow) {
  check_kernels(Watch::Once);
  const Memory<int> x(1, 1);
  add(KernelParams(add_to, x.data(), 4), {});
  add(KernelParams(multiply_by, x.data(), 3), {});
  instantiate();
  EXPECT_EQ(cudaSuccess, launch_and_wait());
  EXPECT_EQ(x.read()[0], 1 * 3 + 4);
}

TEST_F(EmulatedGraph, updates_apply_to_later_launches) {
  const Memory<int> x(1, 0);
  const cudaGraphNode_t node = add(KernelParams(add_to, x.data(), 1), {});
  instantiate();
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec_, stream_));
  KernelParams other(add_to, x.data(), 10);
  ASSERT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec_, node, &*other));
  EXPECT_EQ(cudaSuccess, launch_and_wait());
  EXPECT_EQ(x.read()[0], 11);
}

TEST_F(EmulatedGraph, invalid_nodes_are_refused) {
  const Memory<int> x(1, 0);
  const auto refused = [&](const auto& change) {
    KernelParams updated(add_to, x.data(), 1);
    change(*updated);
    cudaGraphNode_t node = nullptr;
    return cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &*updated);
  };
  EXPECT_EQ(refused([](auto& p) { p.gridDim.x = 0; }), cudaErrorInvalidConfiguration);
  EXPECT_EQ(refused([](auto& p) { p.blockDim.x = 1025; }), cudaErrorInvalidConfiguration);
  EXPECT_EQ(refused([](auto& p) { p.sharedMemBytes = (48 << 10) + 1; }), cudaErrorInvalidValue);
  EXPECT_EQ(refused([](auto& p) { p.kernelParams = nullptr; }), cudaErrorInvalidValue);
  EXPECT_EQ(refused([](auto& p) { p.kernelParams[1] = nullptr; }), cudaErrorInvalidValue);
  int no_kernel = 0;
  EXPECT_EQ(refused([&](auto& p) { p.func = &no_kernel; }), cudaErrorInvalidDeviceFunction);

  const cudaGraphNode_t node = add(KernelParams(add_to, x.data(), 1), {});
  instantiate();
  KernelParams another_kernel(multiply_by, x.data(), 1), same(add_to, x.data(), 2);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec_, node, &*another_kernel));
  (*same).gridDim.x = 0;
  EXPECT_EQ(cudaErrorInvalidConfiguration, cudaGraphExecKernelNodeSetParams(exec_, node, &*same));
  (*same).gridDim.x = 1;
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec_, node, &*same));
  cudaGraphDestroy(graph_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec_, node, &*same))
      << "nodes are destroyed with their graph";
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphDestroy(graph_));
  graph_ = nullptr;
}

// ---- lists of kernels

/// Calls made to the runtime.
struct Calls {
  std::int64_t kernels, made, updated, graphs;
  bool operator==(const Calls&) const = default;
};

class Graphs : public Emulation {
 protected:
  /// x = ((0 + first) * 2 + third) * 2 + ..., n kernels in all.
  Calls run(int first, int third, int n = 6) {
    const auto now = [] {
      return Calls{calls_of("cudaLaunchKernel"), calls_of("cudaGraphInstantiateWithFlags"),
                   calls_of("cudaGraphExecKernelNodeSetParams"), calls_of("cudaGraphLaunch")};
    };
    Launches launches;
    launches.add("copy_int", copy_int, 1, 1, 0, zero_.data(), x_.data());
    for (int i = 1; i < n; i++) {
      if (i % 2 == 0)
        launches.add("multiply_by", multiply_by, 1, 1, 0, x_.data(), 2);
      else
        launches.add("add_to", add_to, 1, 1, 0, x_.data(), i == 1 ? first : third);
    }
    const Calls before = now();
    const CallResult answer = graphs_.launch(launches, stream_);
    EXPECT_EQ(answer.error, cudaSuccess) << answer.call;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    const Calls after = now();
    return {after.kernels - before.kernels, after.made - before.made,
            after.updated - before.updated, after.graphs - before.graphs};
  }
  int x() const { return x_.read()[0]; }

  KernelGraphs graphs_{
      true, [](cudaError_t error, const char* call) { EXPECT_EQ(error, cudaSuccess) << call; }};
  const Memory<int> zero_{1, 0}, x_{1, -1};
};

TEST_F(Graphs, a_repeated_kernel_list_is_one_launch_with_updates) {
  EXPECT_EQ(run(3, 1), (Calls{.kernels = 6, .made = 0, .updated = 0, .graphs = 0}));
  EXPECT_EQ(x(), (3 * 2 + 1) * 2 + 1);
  EXPECT_EQ(run(3, 1), (Calls{.kernels = 0, .made = 1, .updated = 0, .graphs = 1}));
  EXPECT_EQ(x(), (3 * 2 + 1) * 2 + 1);
  EXPECT_EQ(run(5, 1), (Calls{.kernels = 0, .made = 0, .updated = 1, .graphs = 1}));
  EXPECT_EQ(x(), (5 * 2 + 1) * 2 + 1);
  EXPECT_EQ(run(5, 7), (Calls{.kernels = 0, .made = 0, .updated = 2, .graphs = 1}));
  EXPECT_EQ(x(), (5 * 2 + 7) * 2 + 7);
  EXPECT_EQ(run(5, 7), (Calls{.kernels = 0, .made = 0, .updated = 0, .graphs = 1}));
  EXPECT_EQ(graphs_.n_launched(), 6 + 4);
}

struct Padded {
  char of_char;
  int of_int;
  std::int64_t more[2];  // bytes that are copied unchanged
};
__global__ void add_padded(int* x, Padded by) {
  *x += by.of_char + by.of_int;
}

TEST_F(Graphs, padding_bytes_cause_no_update) {
  const auto told_for = [&](int between, int by) {
    Padded one;
    std::memset(&one, between, sizeof one);
    asm volatile("" : : "r"(&one) : "memory");  // keeps the stores: the value counts as read
    one.of_char = 1, one.of_int = by;
    one.more[0] = one.more[1] = 0;
    Launches launches;
    launches.add("add_padded", add_padded, 1, 1, 0, x_.data(), one);
    for (int i = 0; i < 4; i++) launches.add("add_to", add_to, 1, 1, 0, x_.data(), 1);
    const std::int64_t before = calls_of("cudaGraphExecKernelNodeSetParams");
    const int was = x();
    EXPECT_EQ(graphs_.launch(launches, stream_).error, cudaSuccess);
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(x(), was + 5 + by);
    return calls_of("cudaGraphExecKernelNodeSetParams") - before;
  };
  EXPECT_EQ(told_for(0xff, 2), 0) << "seen";
  EXPECT_EQ(told_for(0xff, 2), 0) << "made";
  EXPECT_EQ(told_for(0x5a, 2), 0);
  EXPECT_EQ(told_for(0x5a, 3), 1);
  EXPECT_EQ(graphs_.n_launched(), 5 + 3);
}

TEST_F(Graphs, short_and_single_use_lists_are_launched_one_by_one) {
  for (int i = 0; i < 3; i++)
    EXPECT_EQ(run(3, 1, 3), (Calls{.kernels = 3, .made = 0, .updated = 0, .graphs = 0}));
  for (int n = 4; n < 9; n++)
    EXPECT_EQ(run(3, 1, n), (Calls{.kernels = n, .made = 0, .updated = 0, .graphs = 0}));
}

// Another row count changes nearly every kernel's arguments in the same way.
TEST_F(Graphs, very_different_lists_have_separate_graphs) {
  const auto rows = [&](int n, std::int64_t made, std::int64_t updated) {
    Launches launches;
    for (int i = 0; i < 5; i++) launches.add("add_to", add_to, 1, 1, 0, x_.data(), n);
    const std::int64_t made_before = calls_of("cudaGraphInstantiateWithFlags"),
                       updated_before = calls_of("cudaGraphExecKernelNodeSetParams");
    const int before = x();
    EXPECT_EQ(graphs_.launch(launches, stream_).error, cudaSuccess);
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(x(), before + 5 * n);
    EXPECT_EQ(calls_of("cudaGraphInstantiateWithFlags") - made_before, made) << n;
    EXPECT_EQ(calls_of("cudaGraphExecKernelNodeSetParams") - updated_before, updated) << n;
  };
  rows(0, 0, 0);  // seen
  const int n_kept = static_cast<int>(KernelGraphs::kMostKept);
  for (int n = 1; n <= n_kept; n++) rows(n, 1, 0);
  for (int n = 1; n <= n_kept; n++) rows(n, 0, 0);
  rows(n_kept + 1, 0, 5);  // no room for another graph: one of the others is updated
  EXPECT_EQ(run(3, 1).made, 0);
  EXPECT_EQ(run(3, 1).made, 1) << "other kernels take the place of the graph used longest ago";
  EXPECT_EQ(run(3, 1).graphs, 1);
}

TEST_F(Graphs, short_memory_launches_kernels_one_by_one) {
  run(3, 1);
  fail_call(6 + 2);  // a graph, its six nodes, then its instantiation
  EXPECT_EQ(run(4, 1), (Calls{.kernels = 6, .made = 1, .updated = 0, .graphs = 0}));
  EXPECT_EQ(failed_call(), "cudaGraphInstantiateWithFlags");
  fail_call(0);
  EXPECT_EQ(x(), (4 * 2 + 1) * 2 + 1);
  EXPECT_EQ(run(4, 1).graphs, 1) << "memory is available at the next attempt";
}

// CU14.
TEST_F(Graphs, without_a_graph_kernels_give_the_same_result) {
  const auto expect_one_by_one = [&](std::int64_t n, const char* call, int first,
                                     std::int64_t made) {
    fail_call_for_memory(n);
    const Calls calls = run(first, 1);
    EXPECT_EQ(failed_call(), call);
    fail_call(0);
    EXPECT_EQ(calls.kernels, 6) << call;
    EXPECT_EQ(x(), (first * 2 + 1) * 2 + 1) << call;
    EXPECT_EQ(run(first, 1), (Calls{.kernels = 0, .made = made, .updated = 0, .graphs = 1}))
        << call << ": memory is available at the next attempt";
  };
  EXPECT_EQ(graphs_.refused().error, cudaSuccess);
  run(3, 1);
  // Each graph is destroyed after it was refused, and made again: a graph, its six nodes, its
  // instantiation.
  expect_one_by_one(1, "cudaGraphCreate", 3, 1);
  expect_one_by_one(1, "cudaGraphLaunch", 3, 1);
  expect_one_by_one(1, "cudaGraphExecKernelNodeSetParams", 4, 1);
  expect_one_by_one(2, "cudaGraphLaunch", 5, 1);
  EXPECT_EQ(graphs_.refused().error, cudaErrorMemoryAllocation);
  EXPECT_THAT(graphs_.refused().call, HasSubstr("cudaGraphCreate of 6 kernels"));
}

TEST_F(Graphs, failed_graphs_are_retried_with_backoff) {
  run(3, 1);
  std::vector<int> tried;
  before_calls([](const std::string& name) {
    if (name == "cudaGraphCreate") fail_call_for_memory(1);
  });
  for (int i = 0; i < 40; i++) {
    const std::int64_t before = calls_of("cudaGraphCreate");
    EXPECT_EQ(run(i, 1), (Calls{.kernels = 6, .made = 0, .updated = 0, .graphs = 0}));
    EXPECT_EQ(x(), (i * 2 + 1) * 2 + 1);
    if (calls_of("cudaGraphCreate") > before) tried.push_back(i);
    fail_call(0);
  }
  before_calls({});
  EXPECT_EQ(tried, (std::vector{0, 1, 2, 4, 7, 12, 21, 38}));
  int n_without = 0;
  while (run(3, 1).graphs == 0) ASSERT_LT(++n_without, 40);
  EXPECT_EQ(n_without, 31) << "of 32 attempts; memory is available again";
  graphs_.forget_all();
  for (int i = 0; i < 2; i++) {
    fail_call_for_memory(1);
    EXPECT_EQ(run(3, 1).graphs, 0);
    fail_call(0);
  }
  EXPECT_EQ(run(3, 1).graphs, 1) << "a success resets the count of refusals";
}

TEST_F(Graphs, a_failure_names_the_kernels_involved) {
  const auto failing = [&](int call) {
    Launches launches;
    launches.add("copy_int", copy_int, 1, 1, 0, zero_.data(), x_.data());
    for (int i = 0; i < 3; i++) launches.add("add_to", add_to, 1, 1, 0, x_.data(), call);
    fail_call(call);
    const CallResult answer = graphs_.launch(launches, stream_);
    fail_call(0);
    EXPECT_EQ(answer.error, call > 0 ? cudaErrorUnknown : cudaSuccess);
    return answer.call;
  };
  EXPECT_EQ(failing(2), "add_to (grid 1 x 1 x 1, block 1 x 1 x 1, 0 bytes of shared memory)");
  EXPECT_EQ(failing(1), "cudaGraphCreate of 4 kernels (copy_int, add_to)");
  EXPECT_EQ(failing(3),
            "cudaGraphAddKernelNode of add_to (grid 1 x 1 x 1, block 1 x 1 x 1, 0 bytes of shared "
            "memory)");
  EXPECT_EQ(failing(7), "cudaGraphLaunch of 4 kernels (copy_int, add_to)");
  EXPECT_EQ(failing(0), "");
}

TEST_F(Graphs, without_graphs_every_kernel_is_launched) {
  KernelGraphs off(false, [](cudaError_t, const char*) {});
  for (int i = 1; i <= 3; i++) {
    Launches launches;
    for (int n = 0; n < 8; n++) launches.add("add_to", add_to, 1, 1, 0, x_.data(), 1);
    EXPECT_EQ(off.launch(launches, stream_).error, cudaSuccess);
    EXPECT_EQ(off.n_launched(), 8 * i);
  }
}

struct Pointers {
  int first;
  const void *one, *other;
};
__global__ void takes_pointers(char, Pointers) {}

TEST_F(Graphs, arguments_name_the_memory_they_point_into) {
  const Memory<char> a(100), b(100), c(100);
  Launches launches;
  EXPECT_FALSE(launches.point_into(a.data(), 100));
  launches.add("takes_pointers", takes_pointers, 1, 1, 0, 'x',
               Pointers{1, a.data() + 99, b.data() + 100});
  EXPECT_TRUE(launches.point_into(a.data(), 100));
  EXPECT_FALSE(launches.point_into(a.data(), 99)) << "past the last byte";
  EXPECT_FALSE(launches.point_into(b.data(), 100)) << "past the last byte";
  EXPECT_FALSE(launches.point_into(c.data(), 100));
  launches.clear();
  EXPECT_FALSE(launches.point_into(a.data(), 100));
}

// CU11.
TEST_F(Graphs, an_invalid_launch_is_named_with_its_dimensions) {
  struct Refused {
    dim3 grid, block;
    std::size_t shared_bytes;
    const char* figures;
  };
  for (const auto& [grid, block, shared_bytes, figures] :
       {Refused{0, 32, 0, "(grid 0 x 1 x 1, block 32 x 1 x 1, 0 bytes of shared memory)"},
        Refused{dim3(3, 2), 2048, 0,
                "(grid 3 x 2 x 1, block 2048 x 1 x 1, 0 bytes of shared memory)"},
        Refused{1, 32, 1 << 20, "(grid 1 x 1 x 1, block 32 x 1 x 1, 1048576 bytes of shared"}}) {
    for (const bool in_graph : {false, true}) {
      const auto device = open_cuda("cuda:emulated");
      CudaDevice& cuda = cuda_of(*device);
      for (int i = 0; i < (in_graph ? 4 : 1); i++)
        cuda.launch("add_to", add_to, grid, block, shared_bytes, x_.data(), 1);
      int found = 0;
      try {
        cuda.download(&found, x_.data(), sizeof found);
        ADD_FAILURE() << figures << " was launched";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Device);
        EXPECT_THAT(error.what(), HasSubstr(std::string("cuda:emulated: add_to ") + figures));
      }
    }
  }
}

TEST_F(Graphs, memory_is_cleared_after_the_kernels_that_use_it) {
  const auto device = open_cuda("cuda:emulated");
  CudaDevice& cuda = cuda_of(*device);
  auto* number = static_cast<int*>(cuda.allocate(sizeof(int), "a test"));
  cuda.clear(number, sizeof(int));
  cuda.launch("add_to", add_to, 1, 1, 0, number, 5);
  cuda.clear(number, sizeof(int));
  int found = -1;
  cuda.download(&found, number, sizeof found);
  EXPECT_EQ(found, 0);
  cuda.release(number);
}

// ---- kernels that may start before the kernel before them has ended

__global__ void add_early(int* x, int n) {
  let_next_begin();
  wait_for_earlier();
  *x += n;
}
__global__ void multiply_early(int* x, int n) {
  let_next_begin();
  wait_for_earlier();
  *x *= n;
}
__global__ void one_does_not_wait(int* x, int n) {
  let_next_begin();
  if (threadIdx.x == 1) return;
  wait_for_earlier();
  if (threadIdx.x == 0) *x += n;
}

std::int64_t early_edges() {
  return calls_of("cudaGraphAddDependencies");
}

class EarlyKernels : public Emulation {
 protected:
  EarlyKernels() { graphs_.let_begin_early(true); }
  /// A plain kernel that sets x = 0, then n kernels that alternately add `by` and double x. Kernel
  /// i is launched early if bit i of `early` is 1.
  Launches launches_of(unsigned early, int n, int by) const {
    Launches launches;
    launches.add("copy_int", copy_int, 1, 1, 0, zero_.data(), x_.data());
    for (int i = 0; i < n; i++) {
      const bool is_early = early >> i & 1;
      if (i % 2 == 0)
        launches.add("add", is_early ? add_early : add_to, 1, 1, 0, x_.data(), by);
      else
        launches.add("multiply", is_early ? multiply_early : multiply_by, 1, 1, 0, x_.data(), 2);
      if (is_early) launches.latest_is_early();
    }
    return launches;
  }
  static int expected(int n, int by) {
    int x = 0;
    for (int i = 0; i < n; i++) x = i % 2 == 0 ? x + by : x * 2;
    return x;
  }
  /// Launches and waits for the stream. @return  the launch's result, or the error of the wait
  CallResult launch(Launches launches, KernelGraphs& graphs) {
    CallResult answer = graphs.launch(launches, stream_);
    if (answer.error == cudaSuccess) answer.error = cudaStreamSynchronize(stream_);
    return answer;
  }
  int x() const { return x_.read()[0]; }

  const OnFree given_back_ = [](cudaError_t error, const char* call) {
    EXPECT_EQ(error, cudaSuccess) << call;
  };
  KernelGraphs graphs_{true, given_back_};
  const Memory<int> zero_{1, 0}, x_{1, -1};
};

TEST_F(EarlyKernels, waiting_kernels_equal_serial_launches_in_a_graph) {
  KernelGraphs plain{true, given_back_};
  for (KernelGraphs* graphs : {&graphs_, &plain}) {
    const std::int64_t before = early_edges();
    for (int by = 1; by <= 4; by++) {
      const std::int64_t kernels = calls_of("cudaLaunchKernel"), all = calls_of("cudaGraphLaunch");
      EXPECT_EQ(launch(launches_of(0b11111, 5, by), *graphs).error, cudaSuccess) << fault_text();
      EXPECT_EQ(x(), expected(5, by));
      EXPECT_EQ(calls_of("cudaGraphLaunch") - all, by > 1);
      EXPECT_EQ(calls_of("cudaLaunchKernel") - kernels, by > 1 ? 0 : 6);
    }
    EXPECT_EQ(early_edges() - before, graphs == &graphs_ ? 5 : 0)
        << "edges of the graph, made once";
  }
}

TEST_F(EarlyKernels, early_and_serial_kernels_mix_in_one_graph) {
  for (unsigned early = 0; early < 32; early++) {
    KernelGraphs graphs{true, given_back_};
    graphs.let_begin_early(true);
    const std::int64_t before = early_edges();
    for (int by = 1; by <= 2; by++) {
      EXPECT_EQ(launch(launches_of(early, 5, by), graphs).error, cudaSuccess) << fault_text();
      EXPECT_EQ(x(), expected(5, by)) << early;
    }
    EXPECT_EQ(early_edges() - before, std::popcount(early)) << early;
  }
}

TEST_F(EarlyKernels, the_first_kernel_may_be_early) {
  for (int i = 0; i < 2; i++) {
    const std::int64_t before = early_edges();
    Launches launches;
    for (int n = 0; n < 4; n++) {
      launches.add("add_early", add_early, 1, 1, 0, x_.data(), 1);
      launches.latest_is_early();
    }
    EXPECT_EQ(launch(std::move(launches), graphs_).error, cudaSuccess) << fault_text();
    EXPECT_EQ(early_edges() - before, i == 0 ? 0 : 3);
  }
  EXPECT_EQ(x(), -1 + 8);
}

// A list with another kernel in one place is a different list and gets its own graph.
TEST_F(EarlyKernels, early_kernels_repeated_in_other_places_are_ordered) {
  const auto early_of = [&](bool early) {
    const std::int64_t before = early_edges();
    Launches launches;
    for (int n = 0; n < 4; n++) {
      launches.add("add_early", add_early, 1, 1, 0, x_.data(), 1);
      if (early) launches.latest_is_early();
    }
    const std::int64_t all = calls_of("cudaGraphLaunch");
    EXPECT_EQ(launch(std::move(launches), graphs_).error, cudaSuccess) << fault_text();
    EXPECT_EQ(calls_of("cudaGraphLaunch") - all, 1);
    return early_edges() - before;
  };
  Launches seen;
  for (int n = 0; n < 4; n++) seen.add("add_early", add_early, 1, 1, 0, x_.data(), 1);
  launch(std::move(seen), graphs_);
  const std::int64_t made = calls_of("cudaGraphInstantiateWithFlags");
  EXPECT_EQ(early_of(true), 3);
  EXPECT_EQ(early_of(false), 0);
  EXPECT_EQ(calls_of("cudaGraphInstantiateWithFlags") - made, 2) << "one graph per list";
  EXPECT_EQ(early_of(true), 0) << "the graph exists";
  EXPECT_EQ(calls_of("cudaGraphInstantiateWithFlags") - made, 2);
}

TEST_F(EarlyKernels, a_kernel_that_does_not_wait_is_named) {
  const auto faulty = [&](bool early, int by) {
    Launches launches = launches_of(0, 3, by);
    launches.add("one_does_not_wait", one_does_not_wait, 1, 4, 0, x_.data(), by);
    if (early) launches.latest_is_early();
    return launches;
  };
  for (int i = 0; i < 2; i++)
    EXPECT_EQ(launch(faulty(false, 1), graphs_).error, cudaSuccess) << "after the others";
  graphs_.forget_all();
  for (int by = 1; by <= 2; by++) {
    EXPECT_EQ(launch(faulty(true, by), graphs_).error, cudaErrorLaunchFailure);
    EXPECT_THAT(fault_text(), AllOf(HasSubstr("kernel one_does_not_wait, block (0, 0, 0), thread "
                                              "(1, 0, 0)"),
                                    HasSubstr("without waiting for the kernels before it")));
    forget_faults();
  }
}

// The list has one plain kernel and three early ones. The calls make a graph, a node, and three
// nodes with an edge each.
TEST_F(EarlyKernels, without_a_graph_early_kernels_run_one_by_one) {
  const std::vector<std::string> calls = {
      "cudaGraphCreate",          "cudaGraphAddKernelNode",   "cudaGraphAddKernelNode",
      "cudaGraphAddDependencies", "cudaGraphAddKernelNode",   "cudaGraphAddDependencies",
      "cudaGraphAddKernelNode",   "cudaGraphAddDependencies", "cudaGraphInstantiateWithFlags",
      "cudaGraphLaunch"};
  const char* const kernel_of_call[] = {"",         "copy_int", "add", "add", "multiply",
                                        "multiply", "add",      "add", "",    ""};
  for (std::size_t i = 0; i < calls.size(); i++) {
    KernelGraphs graphs{true, given_back_};
    graphs.let_begin_early(true);
    EXPECT_EQ(launch(launches_of(0b111, 3, 1), graphs).error, cudaSuccess);
    for (const bool for_memory : {true, false}) {
      const auto n = static_cast<std::int64_t>(i) + 1;
      const std::int64_t kernels = calls_of("cudaLaunchKernel");
      for_memory ? fail_call_for_memory(n) : static_cast<void>(fail_call(n));
      const CallResult answer = launch(launches_of(0b111, 3, 2), graphs);
      EXPECT_EQ(failed_call(), calls[i]);
      fail_call(0);
      const bool one_by_one = for_memory || calls[i] == "cudaGraphInstantiateWithFlags";
      EXPECT_EQ(answer.error, one_by_one ? cudaSuccess : cudaErrorUnknown) << calls[i];
      EXPECT_EQ(calls_of("cudaLaunchKernel") - kernels, one_by_one ? 4 : 0) << calls[i];
      if (one_by_one) {
        EXPECT_EQ(x(), expected(3, 2)) << calls[i];
      }
      const std::string updated = for_memory || one_by_one ? graphs.refused().call : answer.call;
      EXPECT_THAT(updated, HasSubstr(calls[i] + " of " + kernel_of_call[i])) << calls[i];
    }
    for (int more = 0; more < 4; more++)
      EXPECT_EQ(launch(launches_of(0b111, 3, 3), graphs).error, cudaSuccess) << fault_text();
    EXPECT_EQ(x(), expected(3, 3));
  }
}

// Runs the work on a device. @return the number of early edges in its graph
std::int64_t early_edges_of_device(int& result) {
  const auto device = side().open(0);  // works for all capabilities that this program is built for
  CudaDevice& cuda = cuda_of(*device);
  auto* x = static_cast<int*>(cuda.allocate(sizeof(int), "a test"));
  cuda.clear(x, sizeof(int));
  const std::int64_t before = early_edges();
  for (int i = 0; i < 3; i++) {
    cuda.launch("add_to", add_to, 1, 1, 0, x, 3);
    cuda.launch_early("multiply_early", multiply_early, 1, 1, 0, x, 2);
    cuda.launch_early("add_early", add_early, 1, 1, 0, x, i);
    cuda.launch("multiply_by", multiply_by, 1, 1, 0, x, 3);
    cuda.launch_early("add_early", add_early, 1, 1, 0, x, 7);
    cuda.download(&result, x, sizeof result);
  }
  cuda.release(x);
  return early_edges() - before;
}

TEST_F(EarlyKernels, are_used_on_request_if_the_gpu_supports_them) {
  const auto of_capability = [&](int major, int minor) {
    capability(major, minor);
    int found = 0, expected = 0;
    for (int i = 0; i < 3; i++) expected = ((expected + 3) * 2 + i) * 3 + 7;
    const std::int64_t n = early_edges_of_device(found);
    capability(9, 0);
    EXPECT_EQ(fault_text(), "");
    EXPECT_EQ(found, expected);
    return n;
  };
  unsetenv("CUDA_EARLY");
  EXPECT_EQ(of_capability(9, 0), 0) << "not requested";
  {
    const InEnvironment off("CUDA_EARLY", "off");
    EXPECT_EQ(of_capability(9, 0), 0);
  }
  const InEnvironment on("CUDA_EARLY", "on");
  EXPECT_EQ(of_capability(9, 0), 3);
  EXPECT_EQ(of_capability(12, 0), 3);
  EXPECT_EQ(of_capability(8, 6), 0) << "this GPU does not support it";
  EXPECT_EQ(of_capability(8, 9), 0) << "this GPU does not support it";
  const InEnvironment without("CUDA_GRAPHS", "off");
  EXPECT_EQ(of_capability(9, 0), 0) << "separate launches have no edges";
}

TEST_F(EarlyKernels, the_setting_accepts_only_on_or_off) {
  const auto refused = [](const std::string& word) -> std::string {
    const InEnvironment launches_of("CUDA_EARLY", word);
    try {
      open_cuda("cuda:emulated");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Usage);
      return error.what();
    }
    return "";
  };
  for (const char* word : {"on", "off", ""}) EXPECT_EQ(refused(word), "") << word;
  for (const std::string word : {"o", "On", "1"})
    EXPECT_THAT(refused(word), HasSubstr("CUDA_EARLY: found \"" + word + "\", expected on or off"));
}

// The device reports the fallback once, and every failing call is named.
TEST_F(EarlyKernels, refused_graph_edges_give_the_same_result_and_a_note) {
  const InEnvironment on("CUDA_EARLY", "on");
  const auto failing = [&](bool for_memory) {
    before_calls([for_memory](const std::string& name) {
      if (name != "cudaGraphAddDependencies") return;
      for_memory ? fail_call_for_memory(1) : static_cast<void>(fail_call(1));
    });
    std::string refusal;
    int found = -1;
    try {
      early_edges_of_device(found);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Device);
      refusal = error.what();
    }
    before_calls({});
    fail_call(0);
    int right = 0;
    for (int i = 0; i < 3; i++) right = ((right + 3) * 2 + i) * 3 + 7;
    if (refusal.empty()) {
      EXPECT_EQ(found, right);
    }
    return refusal;
  };
  static_cast<void>(CudaDevice::take_notes_of_closed());
  EXPECT_EQ(failing(true), "");
  const std::vector<std::string> notes = CudaDevice::take_notes_of_closed();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], AllOf(HasSubstr("cudaGraphAddDependencies of multiply_early (grid 1"),
                              HasSubstr("kernels are launched one by one")));
  EXPECT_THAT(failing(false), HasSubstr("cudaGraphAddDependencies of multiply_early (grid 1"));
}

}  // namespace
}  // namespace kernels::cuda_emulated
