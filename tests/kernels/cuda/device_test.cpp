// CUDA devices: opening by name, refusals in one line, lack of memory, and a failure of each call
// that can fail.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include <gmock/gmock.h>

#include "kernels/cpu/probe.h"
#include "kernels/cuda/side.h"
#include "kernels/emulation/emulation.h"
#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"
#include "tests/support/gpu_here.h"

namespace kernels::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CudaDevices, the_emulated_device_is_listed_as_emulated) {
  const auto all = list_cuda();
  ASSERT_GE(all.size(), 2u) << "a GPU or the reason for its absence, and the emulated device";
  EXPECT_EQ(all.front().name, "cuda:0");
  EXPECT_TRUE(all.front().available || !all.front().reason.empty());
  EXPECT_EQ(all.back().name, "cuda:emulated");
  EXPECT_TRUE(all.back().available);
  EXPECT_EQ(open_cuda("cuda:emulated")->name(), "cuda:emulated");
}

TEST(Gpu, for_kernels_is_present_or_the_reason_is_reported) {
  expect_gpus_that_open();
}

// CU03.
TEST(CudaDevices, a_missing_device_is_refused_with_the_available_ones) {
  for (const char* name : {"cuda:99", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999"}) {
    const std::string message = refusal([&] { open_cuda(name); }, ErrorCode::Device);
    EXPECT_THAT(message,
                AllOf(HasSubstr(std::string("device ") + name), HasSubstr("; available: cpu"),
                      HasSubstr(", cuda:emulated; `decoscope devices`"), Not(HasSubstr("\n"))));
  }
}

// CUDA lists a slice of a GPU (MIG) as a device with its own memory.
// CU03.
TEST(CudaDevices, a_mig_slice_has_its_own_name_and_memory) {
  const auto gpu = [](const std::string& name, const std::string& title, std::int64_t bytes) {
    return CudaDeviceInfo{.name = name,
                          .available = true,
                          .reason = {},
                          .memory_bytes = bytes,
                          .ops = "cuda on " + title};
  };
  CudaDeviceInfo absent = gpu("cuda:1", "NVIDIA T4", 16'000'000'000);
  absent.available = false;
  EXPECT_EQ(device_words({gpu("cuda:0", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5'100'273'664), absent,
                          gpu("cuda:emulated", "this CPU, emulated", 1)}),
            "cpu, cuda:0 (NVIDIA A100-SXM4-40GB MIG 1g.5gb, 5.1 GB), cuda:emulated");
  EXPECT_EQ(device_words({}), "cpu");

  const std::int64_t before = list_cuda().back().memory_bytes;
  emulation::title("NVIDIA A100-SXM4-40GB MIG 1g.5gb");
  emulation::limit_memory(5'100'273'664);
  const CudaDeviceInfo listed = list_cuda().back();
  emulation::title("this CPU, emulated");
  emulation::limit_memory(before);
  EXPECT_TRUE(listed.available);
  EXPECT_EQ(listed.memory_bytes, 5'100'273'664);
  EXPECT_EQ(listed.ops, "cuda on NVIDIA A100-SXM4-40GB MIG 1g.5gb");
}

// CU01.
TEST(CudaDevices, a_missing_or_old_driver_is_named_with_both_versions) {
  EXPECT_EQ(driver_words(0, 12040),
            "no NVIDIA driver was found; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(11080, 12040),
            "the driver is too old, for CUDA 11.8; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(12040, 12040), "");
  EXPECT_EQ(driver_words(13010, 12040), "");
}

/// The reason why there is no device if each of these calls fails once.
std::string why_none(const std::set<std::string>& calls) {
  emulation::before_calls([&](const std::string& name) {
    if (calls.contains(name)) emulation::fail_call(1);
  });
  std::string reason;
  EXPECT_EQ(cuda_emulated::side().count(reason), 0);
  emulation::before_calls({});
  emulation::fail_call(0);
  EXPECT_EQ(cuda_emulated::side().count(reason), 1) << "no later call is named";
  return reason;
}

// CU01.
TEST(CudaDevices, a_failing_device_count_names_the_driver_version) {
  const std::string count = "cudaGetDeviceCount: cudaErrorUnknown (unknown error)";
  EXPECT_EQ(why_none({"cudaGetDeviceCount"}), count);
  for (const std::string call : {"cudaDriverGetVersion", "cudaRuntimeGetVersion"})
    EXPECT_EQ(why_none({"cudaGetDeviceCount", call}),
              count + "; " + call + ": cudaErrorUnknown (unknown error)");
  emulation::driver_version(11'080);
  EXPECT_EQ(
      why_none({"cudaGetDeviceCount"}),
      "the driver is too old, for CUDA 11.8; this program needs one for CUDA 13.0 (" + count + ")");
  emulation::driver_version(13'000);
}

// CU19.
TEST(CudaDevices, a_failing_device_query_is_named) {
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaGetDeviceProperties") emulation::fail_call(1);
  });
  EXPECT_EQ(refusal([] { open_cuda("cuda:emulated"); }, ErrorCode::Device),
            "cuda:emulated: cudaGetDeviceProperties: cudaErrorUnknown (unknown error); earlier "
            "results are kept; try --device cpu");
  emulation::before_calls({});
  emulation::fail_call(0);
}

// CU02.
TEST(CudaDevices, a_gpu_without_kernels_is_named_with_its_capability) {
  const std::string why = capability_words(7, 5, "80,90");
  EXPECT_EQ(why,
            "its compute capability is 7.5, and this program has kernels for sm_80, sm_90 and "
            "PTX for newer GPUs; they need 8.0 at least; try --device cpu");
  EXPECT_THAT(capability_words(8, 0, "90"),
              HasSubstr("; build it with -DDECOSCOPE_CUDA_ARCHS=80, or try --device cpu"));
  EXPECT_EQ(capability_words(8, 0, "80,90"), "");
  EXPECT_EQ(capability_words(8, 9, "80,90"), "") << "code of the same major capability";
  EXPECT_EQ(capability_words(10, 0, "80,90"), "") << "PTX of the last";
  EXPECT_EQ(capability_words(12, 0, "90,100,120"), "");
  EXPECT_THAT(capability_words(8, 6, "89,90"), HasSubstr("sm_89, sm_90"));

  emulation::capability(7, 5);
  EXPECT_THAT(refusal([] { open_cuda("cuda:emulated"); }, ErrorCode::Device),
              AllOf(HasSubstr("device cuda:emulated: its compute capability is 7.5"),
                    HasSubstr("sm_90"), HasSubstr("decoscope devices"), Not(HasSubstr("\n"))));
  const CudaDeviceInfo listed = list_cuda().back();
  emulation::capability(9, 0);
  EXPECT_FALSE(listed.available);
  EXPECT_THAT(listed.reason, HasSubstr("capability is 7.5"));
  EXPECT_TRUE(list_cuda().back().available);
}

TEST(CudaDevices, out_of_memory_reports_size_purpose_and_free_memory) {
  const OpenedCuda device("cuda:emulated");
  emulation::limit_memory(emulation::memory_in_use() + 50'000'000);
  const std::int64_t before = emulation::memory_in_use();
  const std::string message =
      refusal([&] { DeviceBuffer(*device, 80'000'000, "a test"); }, ErrorCode::Resources);
  EXPECT_THAT(message,
              AllOf(HasSubstr("cuda:emulated: 81 MB were needed for a test, "),
                    HasSubstr(" are free; earlier results are kept; try a smaller model")));
  EXPECT_EQ(emulation::memory_in_use(), before);
  { const DeviceBuffer fits(*device, 40'000'000, "a test"); }
  EXPECT_EQ(emulation::memory_in_use(), before) << "memory that fits is allocated and freed";
  emulation::limit_memory(std::int64_t{4} << 30);
}

// The message names the call that failed to report free memory, and no later call.
TEST(CudaDevices, out_of_memory_names_a_failing_memory_query) {
  const OpenedCuda device("cuda:emulated");
  emulation::limit_memory(emulation::memory_in_use());
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaMemGetInfo") emulation::fail_call(1);
  });
  const std::string message =
      refusal([&] { DeviceBuffer(*device, 1000, "a test"); }, ErrorCode::Resources);
  emulation::before_calls({});
  emulation::fail_call(0);
  emulation::limit_memory(std::int64_t{4} << 30);
  EXPECT_THAT(message,
              HasSubstr("needed for a test, how much is free is not known (cudaMemGetInfo: "
                        "cudaErrorUnknown (unknown error)); earlier results are kept; try"));
  EXPECT_EQ(emulation::cudaGetLastError(), emulation::cudaSuccess);
}

// CU05.
TEST(CudaDevices, a_failed_allocation_is_retried_without_cached_graphs) {
  const OpenedCuda device("cuda:emulated");
  const DeviceFloats x(*device, normal_values(16, 1)), w(*device, std::vector<float>(8, 1));
  const auto four_norms = [&] {
    for (int i = 0; i < 4; i++)
      device->ops().rms_norm(*device, x.data(), w.data(), x.data(), 2, 8, 1e-5f);
    x.read();
  };
  for (int i = 0; i < 2; i++) four_norms();  // the second time a graph
  const std::int64_t graphs = emulation::calls_of("cudaGraphExecDestroy"),
                     asked = emulation::calls_of("cudaMalloc"), memory = emulation::memory_in_use();
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaMalloc") emulation::limit_memory(1);
    if (name == "cudaGraphDestroy") emulation::limit_memory(std::int64_t{4} << 30);
    if (name == "cudaGraphDestroy") emulation::before_calls({});
  });
  device->ops().upload(*device, x.data(), normal_values(16, 2).data(), 64);  // pending
  { const DeviceBuffer fits(*device, 1000, "a test"); }
  emulation::before_calls({});
  EXPECT_EQ(emulation::calls_of("cudaMalloc"), asked + 2);
  EXPECT_EQ(emulation::calls_of("cudaGraphExecDestroy"), graphs + 1);
  EXPECT_EQ(emulation::memory_in_use(), memory);
  const std::string message = refusal(
      [&] {
        emulation::limit_memory(emulation::memory_in_use());
        DeviceBuffer(*device, 1000, "a test");
      },
      ErrorCode::Resources);
  emulation::limit_memory(std::int64_t{4} << 30);
  EXPECT_THAT(message, HasSubstr("cuda:emulated: 1 MB were needed for a test, 1 MB of "));
  for (int i = 0; i < 3; i++) four_norms();
  EXPECT_EQ(device->failure(), "");
}

// CU05.
TEST(CudaDevices, working_memory_that_does_not_fit_twice_grows_on_demand) {
  const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
  const auto values = normal_values(3000, 9);
  const DeviceFloats there(*device, values);
  // Gathers n values; each needs 12 bytes of working memory.
  const auto gathered = [&](int n) {
    std::vector<std::int64_t> at(n);
    for (int i = 0; i < n; i++) at[i] = i % 3000;
    std::vector<float> found(n);
    device->ops().gather(*device, there.data(), at.data(), n, found.data());
    for (int i = 0; i < n; i++) ASSERT_EQ(found[i], values[i % 3000]);
  };
  gathered(100'000);
  emulation::limit_memory(emulation::memory_in_use() + 1'000'000);
  gathered(150'000);  // twice the old size, 2.4 MB, does not fit; 1.8 MB fit in place of 1.2 MB
  const std::string message = refusal([&] { gathered(300'000); }, ErrorCode::Resources);
  EXPECT_THAT(message, AllOf(HasSubstr("4 MB were needed for a step's working memory"),
                             HasSubstr("are free")));
  gathered(1000);  // small memory is available again
  emulation::limit_memory(std::int64_t{4} << 30);
}

// CPU probes access memory from the host, which cannot reach a GPU's.
TEST(CudaDevices, are_refused_by_the_cpu_probes) {
  const OpenedCuda device("cuda:emulated");
  const std::int64_t memory = emulation::memory_in_use();
  EXPECT_FALSE(cpu::has_probes(*device));
  EXPECT_THROW(cpu::ReadProbe(*device, 1 << 20), ContractError);
  EXPECT_THROW(cpu::multiply_gflops(*device, DType::BF16), ContractError);
  EXPECT_EQ(emulation::memory_in_use(), memory);
}

/// Uses every kind of call: memory, both halves of the staging buffer, weights, products, a choice,
/// rankings, copies of rows; repeated until a graph with a variable row count exists.
int small_job() {
  const auto device = open_cuda("cuda:emulated");
  for (int i = 0; i < 2; i++) DeviceFloats(*device, std::vector<float>(1'300'000));
  const PackedOnDevice w = pack_on_device(*device, normal_values(40 * 24, 1), 40, 24, DType::BF16);
  const DeviceFloats x(*device, normal_values(3 * 24, 2)), y(*device, std::vector<float>(3 * 40));
  const DeviceFloats ones(*device, std::vector<float>(24, 1));
  const std::vector<PickRow> rows(3);
  std::vector<Picked> picked(3);
  for (const int n_normed : {3, 3, 3, 2}) {
    device->ops().rms_norm(*device, x.data(), ones.data(), x.data(), n_normed, 24, 1e-5f);
    device->ops().rms_norm(*device, x.data(), ones.data(), x.data(), 3, 24, 1e-5f);
    device->ops().matmul(*device, w.matrix, x.data(), 24, 3, y.data(), 40, nullptr, false);
    device->ops().pick(*device, y.data(), 40, 3, 40, 40, rows.data(), picked.data());
  }
  std::vector<Ranking> rankings(3);
  std::vector<RankedToken> tokens(3);
  device->ops().rank(*device, y.data(), 40, 3, 40, 40, rows.data(), 1, rankings.data(),
                     tokens.data());
  EXPECT_EQ(tokens[1].id, picked[1].id);
  std::vector<float> firsts(3);
  std::vector<void*> to = {&firsts[0], &firsts[1], &firsts[2]};
  device->ops().copy(*device, x.data(), y.data(), 24 * 4);
  device->ops().add(*device, x.data(), y.data(), 24);
  device->ops().download_rows(*device, to.data(), y.data(), 4, 40 * 4, 3);
  EXPECT_NE(firsts[0], firsts[1]);
  return picked[0].id * 10000 + picked[1].id * 100 + picked[2].id;
}

/// True if a call of this name only frees something.
bool gives_back(const std::string& call) {
  static const std::set<std::string> all = {"cudaFree",          "cudaFreeHost",
                                            "cudaStreamDestroy", "cudaEventDestroy",
                                            "cudaGraphDestroy",  "cudaGraphExecDestroy"};
  return all.contains(call);
}

/// Runs the small job with each of its calls failing in turn. Afterwards memory is as before, a
/// retry succeeds, and failed frees are reported: by a later call or, at the end, by a note.
/// @param fail  makes the call with that number fail
/// @param each  receives the call and the message; empty: the job succeeded without it
void fail_each_call(const std::function<void(std::int64_t)>& fail,
                    const std::function<void(const std::string&, const std::string&)>& each) {
  emulation::forget_faults();
  const std::int64_t in_use = emulation::memory_in_use();
  emulation::fail_call(0);
  const int expected = small_job();
  const std::int64_t n_calls = emulation::fail_call(0);
  ASSERT_GT(n_calls, 20);
  for (std::int64_t n = 1; n <= n_calls; n++) {
    fail(n);
    std::string message;
    try {
      EXPECT_EQ(small_job(), expected);
    } catch (const Error& e) {
      message = e.what();
    }
    const std::string failed = emulation::failed_call();
    emulation::fail_call(0);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed);
    std::vector<std::string> notes = take_notes_of_closed();
    if (gives_back(failed)) {
      const bool later = !message.empty();
      ASSERT_EQ(notes.size(), later ? 0u : 1u) << message;
      EXPECT_THAT(later ? message : notes[0], AllOf(HasSubstr("cuda:emulated: " + failed + ": "),
                                                    HasSubstr("cudaError"), Not(HasSubstr("\n"))));
    }
    each(failed, message);
    EXPECT_EQ(emulation::memory_in_use(), in_use);
    EXPECT_EQ(small_job(), expected) << "the next attempt succeeds";
  }
}

TEST(CudaDevices, every_failing_call_is_named_and_leaks_nothing) {
  int n_named = 0;
  std::set<std::string> all_failed, named;
  fail_each_call(emulation::fail_call, [&](const std::string& failed, const std::string& message) {
    all_failed.insert(failed);
    // A failed free may be reported only at the end. Without memory for a graph its kernels are
    // launched one by one. A failed allocation is retried.
    const bool done_without = failed == "cudaGraphInstantiateWithFlags" || failed == "cudaMalloc";
    if (gives_back(failed) && message.empty()) return;
    EXPECT_EQ(message.empty(), done_without) << message;
    if (done_without) return;
    named.insert(failed);
    EXPECT_THAT(message, HasSubstr("cuda:emulated: "));
    const bool by_name = failed == "cudaLaunchKernel";
    EXPECT_THAT(message, HasSubstr(by_name ? "" : failed));
    n_named++;
  });
  EXPECT_GT(n_named, 15);
  for (const char* call :
       {"cudaEventRecord", "cudaEventSynchronize", "cudaStreamQuery", "cudaGetDeviceProperties",
        "cudaLaunchKernel", "cudaGraphCreate", "cudaGraphAddKernelNode",
        "cudaGraphInstantiateWithFlags", "cudaGraphExecKernelNodeSetParams", "cudaGraphLaunch",
        "cudaGraphExecDestroy", "cudaGraphDestroy", "cudaMemcpy2DAsync"})
    EXPECT_TRUE(all_failed.contains(call)) << call;
}

// The program works without a graph, whichever call of its creation fails for lack of memory.
// CU04.
TEST(CudaDevices, every_failed_allocation_is_named_and_leaks_nothing) {
  std::set<std::string> done_without, named;
  fail_each_call(emulation::fail_call_for_memory,
                 [&](const std::string& failed, const std::string& message) {
                   if (message.empty()) {
                     done_without.insert(failed);
                     return;
                   }
                   named.insert(failed);
                   EXPECT_THAT(message, AllOf(HasSubstr("cuda:emulated: "), Not(HasSubstr("\n"))));
                   // No device is open yet whose free memory could be reported.
                   if (failed == "cudaGetDeviceProperties") return;
                   EXPECT_THAT(message, ContainsRegex("[0-9]+ MB of [0-9]+ MB are free"));
                   if (failed != "cudaMallocHost") return;
                   EXPECT_THAT(message, ContainsRegex("[0-9]+ MB of pinned memory were needed for "
                                                      "copies (to|from) the device, of the host's "
                                                      "memory [0-9]+ MB of "));
                   EXPECT_THAT(failed, Not(HasSubstr("Graph")));
                 });
  EXPECT_THAT(done_without,
              testing::IsSupersetOf({"cudaGraphCreate", "cudaGraphAddKernelNode",
                                     "cudaGraphInstantiateWithFlags",
                                     "cudaGraphExecKernelNodeSetParams", "cudaGraphLaunch"}));
  EXPECT_TRUE(done_without.contains("cudaMalloc")) << "a failed allocation is retried";
  for (const char* call :
       {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaEventRecord"})
    EXPECT_FALSE(done_without.contains(call)) << call;
}

// If pinned memory cannot grow, the existing buffer is reused: for many rows, and for rows larger
// than it.
// CU04.
TEST(CudaDevices, without_pinned_memory_rows_are_copied_in_pieces) {
  emulation::forget_faults();
  for (const int width : {300'000, 1'500'000}) {  // in floats; the first pinned buffer has 4 MiB
    const OpenedCuda device("cuda:emulated");
    const int n_rows = 5, stride = width + 24;
    std::vector<float> values(std::size_t(stride) * n_rows);
    for (std::size_t i = 0; i < values.size(); i++) values[i] = float(i % 65'521);
    const DeviceFloats there(*device, values);
    const auto read = [&] {
      std::vector<std::vector<float>> rows(n_rows, std::vector<float>(width, -1));
      std::vector<void*> to;
      for (std::vector<float>& row : rows) to.push_back(row.data());
      device->ops().download_rows(*device, to.data(), there.data(), std::int64_t{4} * width,
                                  std::int64_t{4} * stride, n_rows);
      for (int r = 0; r < n_rows; r++)
        EXPECT_TRUE(std::equal(rows[r].begin(), rows[r].end(), &values[std::size_t(stride) * r]));
    };
    const std::int64_t asked = emulation::calls_of("cudaMallocHost");
    emulation::before_calls([](const std::string& name) {
      if (name == "cudaMallocHost") emulation::fail_call_for_memory(1);
    });
    for (int i = 0; i < 2; i++) read();
    emulation::before_calls({});
    emulation::fail_call(0);
    EXPECT_EQ(emulation::calls_of("cudaMallocHost"), asked + 1) << "no further failing allocation";
    const std::vector<std::string> notes = take_notes_of(*device);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(
        notes[0],
        AllOf(HasSubstr("cuda:emulated: cudaMallocHost: cudaErrorMemoryAllocation"),
              HasSubstr(" MB of pinned memory were needed for copies from the device, of "
                        "the host's memory "),
              HasSubstr(" are free; rows are read in pieces of 5 MB"), Not(HasSubstr("\n"))));
    EXPECT_EQ(device->failure(), "");
  }
}

TEST(CudaGraphs, can_be_switched_off_and_change_no_bit) {
  const auto graphs_of = [](const char* wanted, int& result) {
    setenv("CUDA_GRAPHS", wanted, 1);
    const std::int64_t before = emulation::calls_of("cudaGraphLaunch");
    result = small_job();
    return emulation::calls_of("cudaGraphLaunch") - before;
  };
  int with = 0, without = 0;
  EXPECT_EQ(graphs_of("on", with), 2);
  EXPECT_EQ(graphs_of("off", without), 0);
  EXPECT_EQ(with, without);
  setenv("CUDA_GRAPHS", "of", 1);
  EXPECT_THAT(refusal([] { open_cuda("cuda:emulated"); }, ErrorCode::Usage),
              HasSubstr("CUDA_GRAPHS: found \"of\", expected on or off"));
  unsetenv("CUDA_GRAPHS");
}

}  // namespace
}  // namespace kernels::test
