// CUDA devices as devices: opened by name, refused in one line, out of memory, and every call that
// can fail made to fail once.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include <gmock/gmock.h>

#include "kernels/cpu/probe.h"
#include "kernels/cuda/emulate/emulation.h"
#include "kernels/cuda/side.h"
#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CudaDevices, the_emulated_one_is_here_and_says_what_it_is) {
  const auto all = list_cuda();
  ASSERT_GE(all.size(), 2u) << "a GPU, or why there is none, and the emulated one";
  EXPECT_EQ(all.front().name, "cuda:0");
  EXPECT_TRUE(all.front().available || !all.front().reason.empty());
  EXPECT_EQ(all.back().name, "cuda:emulated");
  EXPECT_TRUE(all.back().available);
  EXPECT_EQ(open_cuda("cuda:emulated")->name(), "cuda:emulated");
}

TEST(CudaDevices, CU03_those_that_are_not_here_are_refused_in_one_line_with_those_that_are) {
  for (const char* name : {"cuda:99", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999"}) {
    const std::string message = refusal([&] { open_cuda(name); }, ErrorCode::Device);
    EXPECT_THAT(message,
                AllOf(HasSubstr(std::string("device ") + name), HasSubstr("; here: cpu"),
                      HasSubstr(", cuda:emulated; `decoscope devices`"), Not(HasSubstr("\n"))));
  }
}

// As CUDA names a slice of a GPU (MIG), which is a device to it, with a memory of its own.
TEST(CudaDevices, CU03_a_slice_of_a_gpu_is_listed_by_its_own_name_and_memory) {
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

TEST(CudaDevices, CU01_a_driver_that_is_missing_or_too_old_is_named_with_both_versions) {
  EXPECT_EQ(driver_words(0, 12040),
            "no driver of NVIDIA's was found; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(11080, 12040),
            "the driver is too old, for CUDA 11.8; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(12040, 12040), "");
  EXPECT_EQ(driver_words(13010, 12040), "");
}

/// Why there is no device where these calls fail, each once.
std::string why_none(const std::set<std::string>& calls) {
  emulation::before_calls([&](const std::string& name) {
    if (calls.contains(name)) emulation::fail_call(1);
  });
  std::string reason;
  EXPECT_EQ(cuda_emulated::side().count(reason), 0);
  emulation::before_calls({});
  emulation::fail_call(0);
  EXPECT_EQ(cuda_emulated::side().count(reason), 1) << "no later call is blamed";
  return reason;
}

TEST(CudaDevices, CU01_a_call_that_counts_devices_and_fails_is_named_beside_the_drivers_version) {
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

TEST(CudaDevices, CU19_a_device_that_does_not_tell_what_it_is_is_refused_by_the_calls_name) {
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaGetDeviceProperties") emulation::fail_call(1);
  });
  EXPECT_EQ(refusal([] { open_cuda("cuda:emulated"); }, ErrorCode::Device),
            "cuda:emulated: cudaGetDeviceProperties: cudaErrorUnknown (unknown error); what was "
            "done before is kept; try --device cpu");
  emulation::before_calls({});
  emulation::fail_call(0);
}

TEST(CudaDevices, CU02_a_gpu_without_compiled_kernels_is_named_with_its_capability_and_the_list) {
  const std::string why = capability_words(7, 5, "80,90");
  EXPECT_EQ(why,
            "its compute capability is 7.5, and this program has kernels for sm_80, sm_90 and, as "
            "PTX, for later ones than the last; build it with -DDECOSCOPE_CUDA_ARCHS=75, or try "
            "--device cpu");
  EXPECT_EQ(capability_words(8, 0, "80,90"), "");
  EXPECT_EQ(capability_words(8, 9, "80,90"), "") << "code of the same major number";
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

TEST(CudaDevices, out_of_memory_says_how_much_was_asked_for_and_is_free) {
  const OpenedCuda device("cuda:emulated");
  emulation::limit_memory(emulation::memory_in_use() + 50'000'000);
  const std::int64_t before = emulation::memory_in_use();
  const std::string message =
      refusal([&] { DeviceBuffer(*device, 80'000'000); }, ErrorCode::Resources);
  EXPECT_THAT(message,
              AllOf(HasSubstr("cuda:emulated: 81 MB were asked for"),
                    HasSubstr(" are free; what was done before is kept; try a smaller model")));
  EXPECT_EQ(emulation::memory_in_use(), before);
  { const DeviceBuffer fits(*device, 40'000'000); }
  EXPECT_EQ(emulation::memory_in_use(), before) << "what fits is had, and given back";
  emulation::limit_memory(std::int64_t{4} << 30);
}

// What is not known is told with the call that did not tell it, and no later call is blamed.
TEST(CudaDevices, out_of_memory_names_the_call_that_does_not_say_what_is_free) {
  const OpenedCuda device("cuda:emulated");
  emulation::limit_memory(emulation::memory_in_use());
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaMemGetInfo") emulation::fail_call(1);
  });
  const std::string message = refusal([&] { DeviceBuffer(*device, 1000); }, ErrorCode::Resources);
  emulation::before_calls({});
  emulation::fail_call(0);
  emulation::limit_memory(std::int64_t{4} << 30);
  EXPECT_THAT(message,
              HasSubstr("asked for, how much is free is not known (cudaMemGetInfo: "
                        "cudaErrorUnknown (unknown error)); what was done before is kept; try"));
  EXPECT_EQ(emulation::cudaGetLastError(), emulation::cudaSuccess);
}

TEST(CudaDevices, CU05_memory_that_is_not_there_is_asked_for_once_more_without_the_graphs_kept) {
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
  device->ops().upload(*device, x.data(), normal_values(16, 2).data(), 64);  // under way
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
  EXPECT_THAT(message, HasSubstr("cuda:emulated: 1 MB were asked for, a test, 1 MB of "));
  for (int i = 0; i < 3; i++) four_norms();
  EXPECT_EQ(device->failure(), "");
}

TEST(CudaDevices, CU05_working_memory_that_does_not_fit_twice_is_asked_for_as_it_is_needed) {
  const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
  const auto values = normal_values(3000, 9);
  const DeviceFloats there(*device, values);
  // 12 bytes of working memory each.
  const auto gathered = [&](int n) {
    std::vector<std::int64_t> at(n);
    for (int i = 0; i < n; i++) at[i] = i % 3000;
    std::vector<float> found(n);
    device->ops().gather(*device, there.data(), at.data(), n, found.data());
    for (int i = 0; i < n; i++) ASSERT_EQ(found[i], values[i % 3000]);
  };
  gathered(100'000);
  emulation::limit_memory(emulation::memory_in_use() + 1'000'000);
  gathered(150'000);  // 2.4 MB would be twice as much, 1.8 MB fit where 1.2 MB were
  const std::string message = refusal([&] { gathered(300'000); }, ErrorCode::Resources);
  EXPECT_THAT(message, AllOf(HasSubstr("4 MB were asked for, a step's working memory"),
                             HasSubstr("are free")));
  gathered(1000);  // what is small is had again
  emulation::limit_memory(std::int64_t{4} << 30);
}

// They touch memory from the host, which a GPU's is out of reach of.
TEST(CudaDevices, are_refused_by_the_cpus_probes) {
  const OpenedCuda device("cuda:emulated");
  const std::int64_t memory = emulation::memory_in_use();
  EXPECT_FALSE(cpu::has_probes(*device));
  EXPECT_THROW(cpu::ReadProbe(*device, 1 << 20), ContractError);
  EXPECT_THROW(cpu::multiply_gflops(*device, DType::BF16), ContractError);
  EXPECT_EQ(emulation::memory_in_use(), memory);
}

/// Something of everything: memory, both halves of the staging, weights, products, a choice,
/// ranks, copies of rows; often enough for a graph that is told a number of rows.
int small_job() {
  const auto device = open_cuda("cuda:emulated");
  for (int i = 0; i < 2; i++) DeviceFloats(*device, std::vector<float>(1'300'000));
  const PackedThere w = pack_there(*device, normal_values(40 * 24, 1), 40, 24, DType::BF16);
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

/// Whether a call of this name only gives something back.
bool gives_back(const std::string& call) {
  static const std::set<std::string> all = {"cudaFree",          "cudaFreeHost",
                                            "cudaStreamDestroy", "cudaEventDestroy",
                                            "cudaGraphDestroy",  "cudaGraphExecDestroy"};
  return all.contains(call);
}

/// The small job with one of its calls failing, each in turn. Memory is as it was behind it, the
/// next attempt succeeds, and what was not given back is told: by a later call or, at the end, by a
/// note.
/// @param fail  makes the call of that number fail
/// @param each  is told the call and what was said of it; nothing: the job was done without it
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

TEST(CudaDevices, every_call_that_fails_is_named_and_leaves_nothing_behind) {
  int n_named = 0;
  std::set<std::string> all_failed, named;
  fail_each_call(emulation::fail_call, [&](const std::string& failed, const std::string& message) {
    all_failed.insert(failed);
    // What gives something back may be seen at the end alone. Without memory for a graph its
    // kernels are launched one by one. Memory is asked for once more.
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

// A graph may be done without, whatever call of it finds no memory.
TEST(CudaDevices, CU04_every_call_that_finds_no_memory_is_named_and_leaves_nothing_behind) {
  std::set<std::string> done_without, named;
  fail_each_call(emulation::fail_call_for_memory,
                 [&](const std::string& failed, const std::string& message) {
                   if (message.empty()) {
                     done_without.insert(failed);
                     return;
                   }
                   named.insert(failed);
                   EXPECT_THAT(message, AllOf(HasSubstr("cuda:emulated: "), Not(HasSubstr("\n"))));
                   EXPECT_THAT(failed, Not(HasSubstr("Graph")));
                 });
  EXPECT_THAT(done_without,
              testing::IsSupersetOf({"cudaGraphCreate", "cudaGraphAddKernelNode",
                                     "cudaGraphInstantiateWithFlags",
                                     "cudaGraphExecKernelNodeSetParams", "cudaGraphLaunch"}));
  EXPECT_TRUE(done_without.contains("cudaMalloc")) << "it is asked for once more";
  for (const char* call :
       {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaEventRecord"})
    EXPECT_FALSE(done_without.contains(call)) << call;
}

// Where pinned memory cannot grow, what there is of it serves: many rows, and rows larger than it.
TEST(CudaDevices, CU04_without_more_pinned_memory_rows_are_read_in_pieces_and_that_is_told_once) {
  emulation::forget_faults();
  for (const int width : {300'000, 1'500'000}) {  // floats; 4 MiB are pinned at first
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
    EXPECT_EQ(emulation::calls_of("cudaMallocHost"), asked + 1) << "no step asks in vain again";
    const std::vector<std::string> notes = take_notes_of(*device);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(notes[0], AllOf(HasSubstr("cuda:emulated: cudaMallocHost of"),
                                HasSubstr("cudaErrorMemoryAllocation"),
                                HasSubstr("in pieces of 5 MB"), Not(HasSubstr("\n"))));
    EXPECT_EQ(device->failure(), "");
  }
}

// ---- kernels are held back, and nobody sees it

/// Rows of 8, normed: alone on a device, with a wait behind it.
std::vector<float> normed(const std::vector<float>& values) {
  const auto device = open_cuda("cuda:emulated");
  const DeviceFloats x(*device, values), w(*device, std::vector<float>(8, 1)),
      y(*device, std::vector<float>(values.size()));
  device->ops().rms_norm(*device, x.data(), w.data(), y.data(), int(values.size()) / 8, 8, 1e-5f);
  return y.read();
}

class HeldBack : public ::testing::Test {
 protected:
  /// y = x normed, held back.
  void norm(const DeviceFloats& x, const DeviceFloats& y) {
    device_->ops().rms_norm(*device_, x.data(), ones_.data(), y.data(), 2, 8, 1e-5f);
  }
  OpenedCuda device_{"cuda:emulated"};
  const std::vector<float> a_ = normal_values(16, 1), b_ = normal_values(16, 2);
  const DeviceFloats ones_{*device_, std::vector<float>(8, 1)}, x_{*device_, a_},
      y_{*device_, std::vector<float>(16)}, z_{*device_, std::vector<float>(16)};
};

TEST_F(HeldBack, what_the_host_writes_comes_behind_the_kernels_that_read_what_was_there) {
  norm(x_, y_);
  device_->ops().upload(*device_, x_.data(), b_.data(), 16 * 4);
  norm(x_, z_);
  EXPECT_EQ(y_.read(), normed(a_));
  EXPECT_EQ(z_.read(), normed(b_));
}

TEST_F(HeldBack, what_the_host_writes_over_their_results_stays) {
  norm(x_, y_);
  device_->ops().upload(*device_, y_.data(), b_.data(), 16 * 4);
  EXPECT_EQ(y_.read(), b_);
}

// The device reads the host's memory late, where it may: at the wait. What was uploaded from is
// gone by then.
TEST_F(HeldBack, CU18_what_the_host_uploads_from_may_go_at_once) {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t n = 16 * sizeof(float);
  for (int i = 0; i < 40; i++) {
    void* const page =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const std::vector<float>& values = i % 2 == 0 ? b_ : a_;
    std::memcpy(page, values.data(), n);
    device_->ops().upload(*device_, x_.data(), page, n);
    ASSERT_EQ(munmap(page, bytes), 0);  // a read of it is a fault
    norm(x_, y_);
    EXPECT_EQ(y_.read(), normed(values));
  }
}

TEST_F(HeldBack, memory_is_given_back_behind_the_kernels_that_use_it) {
  {
    const DeviceFloats passing(*device_, b_);
    norm(passing, y_);
  }
  EXPECT_EQ(y_.read(), normed(b_));
}

TEST_F(HeldBack, other_copies_do_not_launch_them) {
  norm(x_, y_);
  const std::int64_t before = device_->n_launches();
  device_->ops().upload(*device_, z_.data(), b_.data(), 16 * 4);
  EXPECT_EQ(device_->n_launches(), before);
  float one = 0;
  device_->ops().download(*device_, &one, z_.data(), 4);
  EXPECT_EQ(one, b_[0]);
  EXPECT_EQ(device_->n_launches(), before + 1);
  EXPECT_EQ(open_cpu(1)->n_launches(), 0);
}

TEST_F(HeldBack, each_kernel_has_the_list_it_was_asked_with) {
  std::vector<float> rows(64 * 8);
  for (std::size_t i = 0; i < rows.size(); i++) rows[i] = float(i / 8);
  const PackedThere table = pack_there(*device_, rows, 64, 8, DType::F32);
  const std::int32_t ids[3][2] = {{3, 60}, {7, 9}, {3, 60}};
  const DeviceFloats out(*device_, std::vector<float>(3 * 16));
  for (int i = 0; i < 3; i++)
    device_->ops().embed(*device_, table.matrix, ids[i], 2, out.data() + i * 16);
  const auto found = out.read();
  for (std::size_t i = 0; i < 6; i++) EXPECT_EQ(found[i * 8 + 5], float(ids[i / 2][i % 2])) << i;
}

// Scratch memory that grows is another, and the smaller one is given back.
TEST_F(HeldBack, scratch_memory_may_grow_in_the_middle_of_a_step) {
  struct Product {
    int n, k;
    std::vector<float> y;
  };
  std::vector<Product> products = {{40, 24, {}}, {80, 500, {}}, {300, 2000, {}}, {40, 24, {}}};
  for (const bool waits : {true, false}) {
    const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
    std::vector<PackedThere> weights;
    std::vector<DeviceFloats> x, y;
    for (const auto& [n, k, expected] : products) {
      weights.push_back(
          pack_there(*device, normal_values(std::size_t(n) * k, 3), n, k, DType::BF16));
      x.emplace_back(*device, normal_values(std::size_t(3) * k, 4));
      y.emplace_back(*device, std::vector<float>(std::size_t(3) * n));
    }
    static_cast<void>(x[0].read());
    for (std::size_t i = 0; i < products.size(); i++) {
      const auto& [n, k, expected] = products[i];
      device->ops().matmul(*device, weights[i].matrix, x[i].data(), k, 3, y[i].data(), n, nullptr,
                           false);
      if (waits) products[i].y = y[i].read();
    }
    for (std::size_t i = 0; i < products.size(); i++) EXPECT_EQ(y[i].read(), products[i].y) << i;
  }
  EXPECT_EQ(products[0].y, products[3].y);
}

TEST_F(HeldBack, once_a_launch_fails_every_call_says_which_it_was) {
  norm(x_, y_);
  emulation::fail_call(1);
  const auto download = [&] { static_cast<void>(y_.read()); };
  const std::string message = refusal(download, ErrorCode::Device);
  emulation::fail_call(0);
  EXPECT_THAT(message, HasSubstr("cuda:emulated: rms_norm (grid 2 x 1 x 1, block 256 x 1 x 1, "));
  EXPECT_EQ(refusal(download, ErrorCode::Device), message) << "its result is lost";
}

TEST_F(HeldBack, a_launch_that_fails_while_memory_is_given_back_is_said_by_the_next_call) {
  {
    const DeviceFloats passing(*device_, b_);
    norm(passing, y_);
    emulation::fail_call(1);
  }
  emulation::fail_call(0);
  EXPECT_THAT(refusal([&] { static_cast<void>(y_.read()); }, ErrorCode::Device),
              HasSubstr("cuda:emulated: rms_norm (grid 2 x 1 x 1, block 256 x 1 x 1, "));
}

TEST_F(HeldBack, CU14_where_a_graph_cannot_be_had_kernels_go_one_by_one_and_that_is_told_once) {
  const auto four = [&] {
    for (int i = 0; i < 4; i++) norm(x_, y_);
    return y_.read();
  };
  four();
  for (int i = 0; i < 2; i++) {
    emulation::before_calls([](const std::string& name) {
      if (name == "cudaGraphLaunch") emulation::fail_call_for_memory(1);
    });
    EXPECT_EQ(four(), normed(a_));
    emulation::before_calls({});
    emulation::fail_call(0);
    const std::vector<std::string> notes = take_notes_of(*device_);
    ASSERT_EQ(notes.size(), i == 0 ? 1u : 0u);
    if (i == 0) {
      EXPECT_THAT(notes[0], AllOf(HasSubstr("cuda:emulated: cudaGraphLaunch of 4 kernels"),
                                  HasSubstr("cudaErrorMemoryAllocation"), HasSubstr("are free"),
                                  HasSubstr("one by one"), Not(HasSubstr("\n"))));
    }
    EXPECT_EQ(device_->failure(), "");
  }
  const std::int64_t before = device_->n_launches();
  EXPECT_EQ(four(), normed(a_));
  EXPECT_EQ(device_->n_launches(), before + 1) << "there is memory again";
  EXPECT_TRUE(take_notes_of(*open_cpu(1)).empty());
}

// Nothing of an earlier launch is launched again: every pointer comes with the kernels, and the
// graph is told those that differ. One that the caller kept too long is found.
TEST_F(HeldBack, CU15_memory_that_moved_is_told_to_the_graph_and_what_was_given_back_is_refused) {
  const auto four = [&](const float* from) {
    for (int i = 0; i < 4; i++)
      device_->ops().rms_norm(*device_, from, ones_.data(), y_.data(), 2, 8, 1e-5f);
    return y_.read();
  };
  std::optional<DeviceFloats> old(std::in_place, *device_, a_);
  const float* const stale = old->data();
  for (int i = 0; i < 2; i++) EXPECT_EQ(four(stale), normed(a_));
  const DeviceFloats moved(*device_, b_);
  old.reset();
  const std::int64_t before = emulation::calls_of("cudaGraphExecKernelNodeSetParams");
  const std::int64_t made = emulation::calls_of("cudaGraphInstantiateWithFlags");
  EXPECT_EQ(four(moved.data()), normed(b_));
  EXPECT_TRUE(emulation::calls_of("cudaGraphExecKernelNodeSetParams") == before + 4 ||
              emulation::calls_of("cudaGraphInstantiateWithFlags") == made + 1);
  try {
    four(stale);
    ADD_FAILURE() << "a kernel ran on memory that had been given back";
  } catch (const ContractError& e) {  // exit code 70
    EXPECT_THAT(e.what(), HasSubstr("cuda:emulated: rms_norm was asked for with memory that had "
                                    "been given back"));
  }
  EXPECT_THAT(refusal([&] { y_.read(); }, ErrorCode::Device), HasSubstr("had been given back"));
}

TEST_F(HeldBack, memory_that_is_given_back_waits_for_the_work_that_may_use_it) {
  const auto queries = [] { return emulation::calls_of("cudaStreamQuery"); };
  std::optional<DeviceFloats> passing(std::in_place, *device_, b_);
  norm(*passing, y_);
  std::int64_t before = queries();
  passing.reset();
  EXPECT_EQ(queries(), before + 1);
  EXPECT_EQ(y_.read(), normed(b_));
  passing.emplace(*device_, b_);
  static_cast<void>(passing->read());
  before = queries();
  passing.reset();
  EXPECT_EQ(queries(), before) << "nothing is at work";
  passing.emplace(*device_, b_);
  static_cast<void>(passing->read());
  before = queries();
  device_->ops().copy(*device_, y_.data(), passing->data(), 16 * 4);
  passing.reset();
  EXPECT_EQ(queries(), before + 1) << "a copy within the device is work, too";
  EXPECT_EQ(y_.read(), b_);
}

TEST(CudaDevices, memory_whose_work_never_ends_stays_taken_and_the_device_ends) {
  const std::int64_t in_use = emulation::memory_in_use();
  {
    const auto device = open_cuda("cuda:emulated");
    emulation::work_never_ends(true);
    { const DeviceFloats passing(*device, std::vector<float>(8)); }
    EXPECT_GT(emulation::memory_in_use(), in_use);
    EXPECT_THAT(device->failure(),
                AllOf(HasSubstr("cuda:emulated: cudaStreamQuery"), HasSubstr("cudaErrorNotReady")));
    EXPECT_THAT(refusal([&] { DeviceBuffer(*device, 4); }, ErrorCode::Device),
                HasSubstr("cudaErrorNotReady"));
  }
  emulation::work_never_ends(false);
}

TEST_F(HeldBack, CU10_a_fault_seen_at_a_steps_end_names_the_graph_and_how_to_find_the_kernel) {
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < 4; i++) norm(x_, y_);
    if (step == 0) static_cast<void>(y_.read());
  }
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaStreamSynchronize") emulation::fail_call(1);
  });
  const std::string message = refusal([&] { static_cast<void>(y_.read()); }, ErrorCode::Device);
  emulation::before_calls({});
  emulation::fail_call(0);
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("cuda:emulated: cudaStreamSynchronize: cudaErrorUnknown"),
            HasSubstr("launched since the last wait, the latest first: a graph of 4 "
                      "kernels (rms_norm)"),
            HasSubstr("CUDA_GRAPHS=off"), HasSubstr("CUDA_LAUNCH_BLOCKING=1"),
            HasSubstr("compute-sanitizer"), HasSubstr("--device cpu"), Not(HasSubstr("\n"))));
}

TEST(CudaGraphs, are_switched_off_by_the_environment_and_change_no_bit) {
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

// Two models on one GPU, as SEED's draft and target: what one waits for is its own work alone.
TEST(CudaDevices, each_that_is_opened_has_a_stream_of_its_own) {
  emulation::forget_faults();
  const auto first = open_cuda("cuda:emulated"), second = open_cuda("cuda:emulated");
  const auto norm = [](Device& device, const DeviceFloats& x, const DeviceFloats& y) {
    device.ops().rms_norm(device, x.data(), x.data(), y.data(), 1, 8, 1e-5f);
  };
  const std::vector<float> ones(8, 1), zeros(8);
  const DeviceFloats x(*first, ones), y(*first, zeros), other_x(*second, ones),
      other_y(*second, zeros);
  static_cast<void>(y.read());
  norm(*first, x, y);
  first->ops().upload(*first, x.data(), zeros.data(), 4);  // behind it in its stream
  norm(*second, other_x, other_y);
  EXPECT_NEAR(other_y.read()[0], 1, 1e-4);
  EXPECT_EQ(y.data()[0], 0) << "the second's wait is not for the first's kernel";
  EXPECT_NEAR(y.read()[0], 1, 1e-4);
}

TEST(CudaDevices, after_a_fault_every_call_says_what_it_was) {
  const auto device = open_cuda("cuda:emulated");
  emulation::forget_faults();
  const DeviceFloats w(*device, std::vector<float>(8, 1)), y(*device, std::vector<float>(16));
  const DeviceFloats few(*device, std::vector<float>(8));  // of 16 that are read
  device->ops().rms_norm(*device, few.data(), w.data(), y.data(), 2, 8, 1e-5f);
  float first = 0;
  const auto download = [&] { device->ops().download(*device, &first, y.data(), 4); };
  const std::string message = refusal(download, ErrorCode::Device);
  EXPECT_THAT(message, AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("kernel rms_norm"),
                             HasSubstr("launched since the last wait"), HasSubstr("--device cpu")));
  EXPECT_EQ(refusal(download, ErrorCode::Device), message);
  EXPECT_EQ(refusal([&] { DeviceBuffer(*device, 4); }, ErrorCode::Device), message);
  emulation::forget_faults();
}

}  // namespace
}  // namespace kernels::test
