// Numbers of threads that could be the fastest, from descriptions of machines.
#include "kernels/processors.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>

#include "kernels/thread_sharing.h"

namespace kernels::test {
namespace {

using cpu::Processor;
using testing::ElementsAre;

std::vector<Processor> cores(int n, int n_threads, long speed, int first_core = 0) {
  std::vector<Processor> processors;
  for (int core = 0; core < n; core++)
    for (int thread = 0; thread < n_threads; thread++)
      processors.push_back({0, first_core + core, speed});
  return processors;
}

TEST(Processors, one_number_where_all_are_equal_cores) {
  EXPECT_THAT(cpu::thread_counts(cores(2, 1, 0)), ElementsAre(2));
  EXPECT_THAT(cpu::thread_counts(cores(8, 1, 3'500'000)), ElementsAre(8));
  EXPECT_THAT(cpu::thread_counts({}), ElementsAre());
}

TEST(Processors, hyper_threads_may_be_left_out) {
  EXPECT_THAT(cpu::thread_counts(cores(8, 2, 4'000'000)), ElementsAre(16, 8));
  std::vector<Processor> two_packages = cores(4, 2, 0);
  for (Processor other : cores(4, 2, 0)) {
    other.package = 1;
    two_packages.push_back(other);
  }
  EXPECT_THAT(cpu::thread_counts(two_packages), ElementsAre(16, 8));
}

TEST(Processors, efficiency_cores_may_be_left_out) {
  // 6 fast cores with two threads each, one of them favoured, and 8 efficiency cores
  std::vector<Processor> hybrid = cores(6, 2, 5'000'000);
  hybrid[0].speed = hybrid[1].speed = 5'200'000;
  for (const Processor& slow : cores(8, 1, 3'800'000, 6)) hybrid.push_back(slow);
  EXPECT_THAT(cpu::thread_counts(hybrid), ElementsAre(20, 14, 12, 6));
}

TEST(Processors, reads_the_files_of_the_system) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / "decoscope_processors_test";
  std::filesystem::remove_all(root);
  for (int id = 0; id < 4; id++) {
    const auto folder = root / ("cpu" + std::to_string(id));
    std::filesystem::create_directories(folder / "topology");
    std::filesystem::create_directories(folder / "cpufreq");
    std::ofstream(folder / "topology/physical_package_id") << "0\n";
    std::ofstream(folder / "topology/core_id") << (id < 2 ? 0 : id) << "\n";
    std::ofstream(folder / "cpufreq/cpuinfo_max_freq") << (id < 2 ? 5'000'000 : 3'000'000) << "\n";
  }
  const std::vector<int> ids{0, 1, 2, 3, 7};  // nothing is known about the last one
  const std::vector<Processor> found = cpu::read_processors(ids, root.string());
  std::filesystem::remove_all(root);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].core, found[1].core);
  EXPECT_EQ(found[0].speed, 5'000'000);
  EXPECT_EQ(found[4].speed, 0);
  EXPECT_THAT(cpu::thread_counts(found), ElementsAre(5, 4, 2, 1));
}

TEST(Processors, a_device_begins_with_all_its_threads) {
  const auto device = open_cpu(3);
  EXPECT_EQ(active_threads(*device), 3);
  const std::vector<int> counts = thread_counts_to_try(*device);
  EXPECT_EQ(counts.front(), 3);
  EXPECT_TRUE(std::is_sorted(counts.rbegin(), counts.rend()));
  EXPECT_GE(counts.back(), 1);
  set_active_threads(*device, 2);
  EXPECT_EQ(active_threads(*device), 2);
  EXPECT_EQ(device->n_threads(), 3);
  EXPECT_GE(cpu::usable_processor_ids().size(), 1u);
}

}  // namespace
}  // namespace kernels::test
