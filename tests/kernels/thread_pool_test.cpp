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

namespace kernels::test {
namespace {

TEST(ThreadPool, a_task_uses_the_given_number_of_threads) {
  cpu::ThreadPool pool(4);
  EXPECT_EQ(pool.n_made(), 4);
  for (int turn = 0; turn < 300; turn++) {
    const int n = 1 + turn * 7 % 4;
    if (turn % 3 == 0) pool.share_among(n);
    const int n_threads = pool.n_threads();
    std::atomic<int> done[4] = {};
    std::atomic<int> n_before{0}, n_early{0};
    pool.run([&](int thread) {
      n_before++;
      pool.barrier();
      n_early += n_before.load() != n_threads;
      done[thread]++;
    });
    EXPECT_EQ(n_early.load(), 0);
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

TEST(ThreadPool, every_thread_runs_each_task_once) {
  for (const int n_threads : {1, 2, 3, 5}) {
    cpu::ThreadPool pool(n_threads);
    std::vector<int> done(n_threads * 64);  // each written by one thread
    for (int i = 0; i < 500; i++) pool.run([&](int thread) { done[thread * 64]++; });
    for (int thread = 0; thread < n_threads; thread++) EXPECT_EQ(done[thread * 64], 500);
  }
}

TEST(ThreadPool, a_barrier_holds_until_all_threads_arrive) {
  cpu::ThreadPool pool(3);
  for (int i = 0; i < 200; i++) {
    std::vector<int> wrote(3 * 64);
    std::atomic<int> n_seen{0};
    pool.run([&](int thread) {
      wrote[thread * 64] = 1;
      pool.barrier();
      for (int other = 0; other < 3; other++) n_seen += wrote[other * 64];
      pool.barrier();
      wrote[thread * 64] = 2;
    });
    ASSERT_EQ(n_seen, 9);
  }
}

TEST(ThreadPool, wakes_after_sleeping_and_costs_nothing_idle) {
  cpu::ThreadPool pool(2);
  std::atomic<int> n{0};
  for (int i = 0; i < 5; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool.run([&](int) { n++; });
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
  pool.run([](int) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  for (const int thread : {0, 1}) EXPECT_GE(pool.busy_ns(thread), 4'000'000);
  EXPECT_THROW(pool.busy_ns(2), ContractError);
}

TEST(CpuOps, scalar_is_first_and_names_are_unique) {
  const auto all = all_cpu_ops();
  ASSERT_FALSE(all.empty());
  EXPECT_STREQ(all[0]->name, "scalar");
  for (std::size_t i = 1; i < all.size(); i++) EXPECT_STRNE(all[i]->name, all[i - 1]->name);
}

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
