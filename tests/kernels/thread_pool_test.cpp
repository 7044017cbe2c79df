// The thread pool, the choice of CPU tables, memory, probes.
#include <time.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>

#include "kernels/cpu/probe.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/error.h"
#include "kernels/thread_sharing.h"
#include "tests/kernels/kernel_test_support.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kernels::test {
namespace {

// Threads may come to a task or not; this work ends only when all n have.
class AllThreads {
 public:
  explicit AllThreads(int n) : n_(n) {}
  void wait() {
    n_here_++;
    while (n_here_ < n_) std::this_thread::yield();
  }

 private:
  const int n_;
  std::atomic<int> n_here_{0};
};

TEST(ThreadPool, a_task_uses_the_given_number_of_threads) {
  cpu::ThreadPool pool(4);
  EXPECT_EQ(pool.n_made(), 4);
  for (int turn = 0; turn < 300; turn++) {
    const int n = 1 + turn * 7 % 4;
    if (turn % 3 == 0) pool.share_among(n);
    const int n_threads = pool.n_threads();
    std::atomic<int> done[4] = {};
    AllThreads all(n_threads);
    pool.run([&](int thread) {
      all.wait();
      done[thread]++;
    });
    for (int thread = 0; thread < 4; thread++) EXPECT_EQ(done[thread].load(), thread < n_threads);
    if (turn % 50 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the threads sleep
  }
  EXPECT_THROW(pool.share_among(5), ContractError);
  EXPECT_THROW(pool.share_among(0), ContractError);
}

TEST(ThreadPool, a_device_may_share_the_threads_of_another) {
  const auto lender = open_cpu(3), device = open_cpu(2);
  constexpr int kRows = 64, kHidden = 2048;
  const std::vector<float> x(static_cast<std::size_t>(kRows) * 2 * kHidden, 0.5f);
  const auto result = [&] {
    std::vector<float> y(static_cast<std::size_t>(kRows) * kHidden);
    device->ops().glu(*device, Gate::Silu, x.data(), y.data(), kRows, kHidden);
    return y;
  };
  const auto worked = [](const Device& one) {
    std::int64_t ns = 0;
    for (int thread = 0; thread < one.n_threads(); thread++) ns += one.busy_ns(thread);
    return ns;
  };
  const std::vector<float> alone = result();
  const std::int64_t before = worked(*device);
  EXPECT_GT(before, 0);
  EXPECT_EQ(worked(*lender), 0);

  borrow_threads(*device, *lender);
  set_active_threads(*device, 1);  // the device's own threads, which sleep
  EXPECT_EQ(result(), alone);
  EXPECT_EQ(worked(*device), before);
  EXPECT_GT(worked(*lender), 0);
  EXPECT_EQ(device->n_threads(), 2) << "the number it was created with";

  const std::int64_t lent = worked(*lender);
  borrow_threads(*device, *device);
  set_active_threads(*device, 2);
  EXPECT_EQ(result(), alone);
  EXPECT_GT(worked(*device), before);
  EXPECT_EQ(worked(*lender), lent);
}

TEST(ThreadPool, a_thread_runs_a_task_at_most_once_and_the_caller_always) {
  for (const int n_threads : {1, 2, 3, 40}) {
    cpu::ThreadPool pool(n_threads);
    for (int i = 0; i < 500; i++) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(n_threads));
      std::atomic<bool> returned{false};
      std::atomic<int> n_late{0};
      pool.run([&](int thread) {
        done[static_cast<std::size_t>(thread)]++;
        n_late += returned.load();
      });
      returned = true;
      EXPECT_EQ(done[0], 1);
      for (const auto& n : done) EXPECT_LE(n, 1);
      EXPECT_EQ(n_late, 0);
    }
  }
}

TEST(ThreadPool, pieces_of_a_task_are_done_once_by_any_threads) {
  cpu::ThreadPool pool(5);
  for (int turn = 0; turn < 300; turn++) {
    std::vector<int> done(100);  // each written by one thread
    std::atomic<int> next{0};
    pool.run([&](int) {
      for (int i = next++; i < 100; i = next++) done[static_cast<std::size_t>(i)]++;
    });
    EXPECT_THAT(done, testing::Each(1));
  }
}

// Only the caller can end the task that the other threads may not have entered.
TEST(ThreadPool, does_not_wait_for_threads_that_have_not_begun) {
  cpu::ThreadPool pool(64);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the threads sleep
  int n_alone = 0;
  for (int i = 0; i < 50; i++) {
    std::atomic<int> n{0};
    pool.run([&](int) { n++; });
    n_alone += n < 64;
  }
  EXPECT_GT(n_alone, 0) << "each task waited for 63 threads on the processors of this machine";
}

TEST(ThreadPool, a_phase_ends_before_the_next_begins) {
  cpu::ThreadPool pool(3);
  for (int i = 0; i < 300; i++) {
    std::vector<int> wrote(7);
    std::atomic<int> n_missing{0};
    cpu::PhaseParts parts(7);
    pool.run([&](int) {
      parts.finish([&](int part) { wrote[static_cast<std::size_t>(part)]++; });
      for (const int n : wrote) n_missing += n != 1;
    });
    ASSERT_EQ(n_missing, 0);
  }
}

TEST(ThreadPool, wakes_after_sleeping_and_costs_nothing_idle) {
  cpu::ThreadPool pool(2);
  std::atomic<int> n{0};
  for (int i = 0; i < 5; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    AllThreads all(2);
    pool.run([&](int) {
      all.wait();
      n++;
    });
  }
  EXPECT_EQ(n, 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double ms = (after.tv_sec - before.tv_sec) * 1e3 + (after.tv_nsec - before.tv_nsec) * 1e-6;
  EXPECT_LT(ms, 20);  // spinning would take 200
}

TEST(ThreadPool, counts_its_busy_time) {
  const auto device = open_cpu(2);
  EXPECT_EQ(device->busy_ns(1), 0);
  cpu::ThreadPool pool(2);
  AllThreads all(2);
  pool.run([&](int) {
    all.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  for (const int thread : {0, 1}) EXPECT_GE(pool.busy_ns(thread), 4'000'000);
  EXPECT_THROW(pool.busy_ns(2), ContractError);
}

TEST(CpuOps, scalar_is_first_and_names_are_unique) {
  const auto all = all_cpu_ops();
  ASSERT_FALSE(all.empty());
  EXPECT_STREQ(all[0]->name, "scalar");
  for (std::size_t i = 1; i < all.size(); i++) EXPECT_STRNE(all[i]->name, all[i - 1]->name);
}

#if defined(__x86_64__)
TEST(CpuOps, avx_vnni_is_offered_where_the_processor_has_it) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 4 & 1))
    GTEST_SKIP() << "this processor has no AVX-VNNI; no test runs these kernels";
  std::vector<std::string> names;
  for (const Ops* ops : all_cpu_ops()) names.emplace_back(ops->name);
  EXPECT_THAT(names, testing::Contains("avx_vnni"));
}
#endif

TEST(CpuOps, memory_is_aligned) {
  const auto device = open_cpu(1);
  for (const std::int64_t bytes :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{5} << 20}) {
    const DeviceBuffer buffer(*device, bytes, "a test");
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  }
}

TEST(Fenced, one_byte_past_the_end_is_a_fault) {
  const Fenced memory(100, 1);
  volatile char* data = memory.data();
  data[99] = 1;
  EXPECT_DEATH(static_cast<void>(data[100]), "");
}

// The device rounds memory up to whole cache lines, and Scratch doubles its size, but ASan must know the
// requested size.
TEST(CpuOps, memory_ends_for_asan_at_its_requested_size) {
#if defined(__SANITIZE_ADDRESS__)
  const auto device = open_cpu(1);
  const DeviceBuffer buffer(*device, 1001, "a test");
  volatile char* data = static_cast<char*>(buffer.data());
  data[1000] = 1;
  EXPECT_DEATH(data[1001] = 1, "use-after-poison");
#else
  GTEST_SKIP() << "not an ASan build";
#endif
}

TEST(CpuOps, a_failed_allocation_is_a_resource_error) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator aborts instead of returning null";
#endif
  const auto device = open_cpu(1);
  try {
    const DeviceBuffer buffer(*device, std::int64_t{1} << 60, "a test");
    ADD_FAILURE() << "2^60 bytes were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    EXPECT_THAT(error.what(), testing::HasSubstr("memory: "));
    EXPECT_THAT(error.what(), testing::HasSubstr(" MB could not be allocated for a test; "));
    EXPECT_THAT(error.what(), testing::HasSubstr("try "));
  }
}

// The choice is made once per process, so each name is tested in a child process.
void exit_with_what_is_chosen(const char* wanted) {
  setenv("CPU_OPS", wanted, 1);
  try {
    std::fputs(cpu_ops().name, stderr);
    std::_Exit(0);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(static_cast<int>(error.code()));
  }
}

TEST(CpuOps, CPU_OPS_selects_the_table_or_lists_the_available) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kUsage = static_cast<int>(ErrorCode::Usage);
  EXPECT_EXIT(exit_with_what_is_chosen("scalar"), testing::ExitedWithCode(0), "^scalar$");
  EXPECT_EXIT(exit_with_what_is_chosen(""), testing::ExitedWithCode(0), all_cpu_ops().back()->name);
  for (const char* unknown : {"sse9", "Scalar", " "})
    EXPECT_EXIT(exit_with_what_is_chosen(unknown), testing::ExitedWithCode(kUsage),
                std::string("CPU_OPS: found \"") + unknown + "\".* scalar");
}

TEST(Probe, measures_positive_bandwidth_and_flops) {
  const auto device = open_cpu(2);
  cpu::ReadProbe read(*device, 8 << 20);
  EXPECT_GT(read.gbps(1), 0);
  EXPECT_GT(cpu::multiply_gflops(*device, DType::BF16), 0);
  EXPECT_FALSE(cpu::processor_name().empty());
  EXPECT_TRUE(cpu::has_probes(*device));
}

}  // namespace
}  // namespace kernels::test
