// NUMA nodes: the system's lists, threads of nodes, and the order in which they take the panels of a matrix. The nodes are simulated.
#include "kernels/cpu/memory/numa_nodes.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <utility>

#include <gmock/gmock.h>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/memory/turns.h"
#include "kernels/processors.h"
#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

using cpu::ThreadNodes;
using cpu::Turns;
using testing::ElementsAre;
using testing::IsEmpty;
using Lists = std::vector<std::vector<int>>;
using Ranges = std::vector<std::pair<int, int>>;

TEST(NumaNodes, reads_lists_of_processors) {
  EXPECT_THAT(cpu::parse_cpulist("0"), ElementsAre(0));
  EXPECT_THAT(cpu::parse_cpulist("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(cpu::parse_cpulist("5-5"), ElementsAre(5));
}

TEST(NumaNodes, a_damaged_list_is_empty) {
  for (const char* text : {"", "\n", "a", "1,", ",1", "1,,2", "1-", "-1", "3-1", "1--2", "1-2-3",
                           "0x3", "1 2", "0-99999999", "99999999999999999999"})
    EXPECT_THAT(cpu::parse_cpulist(text), IsEmpty()) << "\"" << text << "\"";
}

TEST(NumaNodes, reads_nodes_with_usable_processors) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / "decoscope_numa_nodes_test";
  std::filesystem::remove_all(root);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  const auto nodes = [&](const std::vector<int>& ids) {
    return cpu::read_numa_nodes(ids, root.string());
  };
  EXPECT_THAT(nodes({0, 1}), IsEmpty()) << "no files";
  write("online", "0-2,4\n");  // node 4 has no files
  write("node0/cpulist", "0-1,4-5\n");
  write("node1/cpulist", "2-3,6-7\n");
  write("node2/cpulist", "\n");  // memory only
  EXPECT_EQ(nodes({0, 1, 2, 3, 4, 5, 6, 7}), (Lists{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(nodes({1, 2, 3}), (Lists{{1}, {2, 3}}));
  EXPECT_THAT(nodes({0, 1, 4}), IsEmpty()) << "one node is left";
  EXPECT_THAT(nodes({0, 2, 8}), IsEmpty()) << "processor 8 is in no node";
  EXPECT_THAT(nodes({}), IsEmpty());
  write("online", "0\n");
  EXPECT_THAT(nodes({0, 1, 2, 3}), IsEmpty());
  write("online", "0-99\n");
  std::vector<int> many;
  for (int node = 0; node < 20; node++) {
    write("node" + std::to_string(node) + "/cpulist", std::to_string(node));
    many.push_back(node);
  }
  EXPECT_THAT(nodes(many), IsEmpty()) << "more nodes than Turns has room for";
  std::filesystem::remove_all(root);
}

TEST(NumaNodes, threads_are_spread_over_nodes) {
  const auto n_threads = [](int n, Lists processors) {
    const ThreadNodes nodes(n, std::move(processors));
    return std::vector<int>(nodes.n_threads().begin(), nodes.n_threads().end());
  };
  const Lists unequal = {{0, 1, 2, 3}, {4, 5}};
  EXPECT_THAT(n_threads(2, unequal), ElementsAre(1, 1));
  EXPECT_THAT(n_threads(3, unequal), ElementsAre(2, 1));
  EXPECT_THAT(n_threads(6, unequal), ElementsAre(4, 2));
  EXPECT_THAT(n_threads(12, unequal), ElementsAre(8, 4));
  EXPECT_THAT(n_threads(2, {{0}, {1}, {2}}), ElementsAre(1, 1, 0));
  EXPECT_THAT(n_threads(1, unequal), ElementsAre(1)) << "one thread needs no nodes";
  EXPECT_THAT(n_threads(4, {}), ElementsAre(4));
}

Ranges taken_by_one_thread(Turns& turns, int node) {
  Ranges ranges;
  for (int begin, end; turns.take(node, begin, end);) ranges.emplace_back(begin, end);
  return ranges;
}

TEST(Turns, one_node_gives_a_quarter_of_the_rest_to_two_threads) {
  const std::vector<int> one_node = {2};
  Turns turns(30, 64 << 10, 2, 1, one_node);  // at most 4 panels are 256 KiB
  EXPECT_THAT(
      taken_by_one_thread(turns, 0),
      ElementsAre(std::pair(0, 4), std::pair(4, 8), std::pair(8, 12), std::pair(12, 16),
                  std::pair(16, 19), std::pair(19, 21), std::pair(21, 23), std::pair(23, 24),
                  std::pair(24, 25), std::pair(25, 26), std::pair(26, 27), std::pair(27, 28),
                  std::pair(28, 29), std::pair(29, 30)));
}

TEST(Turns, own_panels_come_first_and_then_those_of_others) {
  const std::vector<int> nodes = {2, 1, 1};  // shares 0-7, 8-11, 12-15
  Turns turns(16, 128 << 10, 4, 2, nodes);   // 2 panels are 256 KiB
  EXPECT_THAT(taken_by_one_thread(turns, 1),
              ElementsAre(std::pair(8, 10), std::pair(10, 12), std::pair(12, 14), std::pair(14, 16),
                          std::pair(0, 2), std::pair(2, 4), std::pair(4, 6), std::pair(6, 8)));
}

/// Takes all panels with one thread for each of `nodes`' threads. @return  the ranges of each thread, by node
std::vector<std::pair<int, Ranges>> taken_by_threads(int n_panels, const std::vector<int>& nodes) {
  std::vector<std::pair<int, Ranges>> taken;
  for (int node = 0; node < static_cast<int>(nodes.size()); node++)
    taken.insert(taken.end(), static_cast<std::size_t>(nodes[node]), std::pair(node, Ranges()));
  Turns turns(n_panels, 1024, static_cast<int>(taken.size()), 1, nodes);
  std::atomic<std::size_t> n_ready{0};
  std::vector<std::thread> threads;
  for (auto& one : taken)
    threads.emplace_back([&turns, &n_ready, &taken, &one] {
      for (n_ready++; n_ready < taken.size();) std::this_thread::yield();
      one.second = taken_by_one_thread(turns, one.first);
    });
  for (std::thread& thread : threads) thread.join();
  return taken;
}

TEST(Turns, threads_take_each_panel_once_and_their_own_first) {
  for (const std::vector<int>& nodes : Lists{{3}, {2, 2}, {3, 1}, {2, 0, 1}, {1, 2, 3, 1}}) {
    const int n_threads = std::accumulate(nodes.begin(), nodes.end(), 0);
    for (const int n_panels : {1, 2, 7, 997, 2000}) {
      std::vector<int> n_taken(static_cast<std::size_t>(n_panels));
      for (const auto& [node, ranges] : taken_by_threads(n_panels, nodes)) {
        const int n_before = std::accumulate(nodes.begin(), nodes.begin() + node, 0);
        const int own_begin = n_panels * n_before / n_threads;
        const int own_end = n_panels * (n_before + nodes[node]) / n_threads;
        bool others = false;
        for (const auto& [begin, end] : ranges) {
          ASSERT_LT(begin, end);
          for (int panel = begin; panel < end; panel++) n_taken[panel]++;
          const bool own = begin >= own_begin && end <= own_end;
          ASSERT_TRUE(own || end <= own_begin || begin >= own_end) << "a range of two nodes";
          ASSERT_FALSE(own && others) << "own panels were left when it took those of others";
          others |= !own;
        }
      }
      ASSERT_THAT(n_taken, testing::Each(1)) << n_panels << " panels";
    }
  }
}

/// The first and the last processor as two nodes: the same if there is one.
Lists two_nodes() {
  const std::vector<int> ids = cpu::usable_processor_ids();
  return {{ids.front()}, {ids.back()}};
}

TEST(NumaNodes, a_pool_keeps_its_own_threads_on_their_nodes) {
  const std::vector<int> ids = cpu::usable_processor_ids();
  if (ids.size() < 2) GTEST_SKIP() << "needs two processors";
  std::vector<std::vector<int>> processors(4);
  std::vector<int> nodes(4, -1);
  cpu::ThreadPool pool(4, two_nodes());
  std::atomic<int> n_ready{0};
  pool.run([&](int thread) {
    for (n_ready++; n_ready < 4;) std::this_thread::yield();
    processors[thread] = cpu::usable_processor_ids();
    nodes[thread] = pool.nodes().current();
  });
  EXPECT_EQ(processors, (Lists{ids, {ids.back()}, {ids.front()}, {ids.back()}}));
  EXPECT_THAT(nodes, ElementsAre(testing::AnyOf(0, 1), 1, 0, 1));
}

TEST(NumaNodes, packing_and_products_have_the_same_bits) {
  const int n = 1100, k = 1024, n_rows = 3;  // in f32 4.5 MB: at least one whole huge page
  const auto w = normal_values(std::size_t(n) * k, 1);
  const auto x = normal_values(std::size_t(n_rows) * k, 2);
  cpu::CpuDevice one_node(4, cpu::set_of(cpu_ops()));
  cpu::CpuDevice several(4, cpu::set_of(cpu_ops()), two_nodes());
  ASSERT_EQ(several.pool().nodes().n_nodes(), 2);
  const std::vector<std::int8_t> q(w.size(), 3);
  const std::vector<float> scale(w.size() / 32, 0.5f);
  const QuantisedRows rows = {q.data(), scale.data(), nullptr, 32};
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16, DType::Q8_0}) {
    const std::int64_t bytes = one_node.ops().packed_bytes(dtype, n, k);
    std::vector<DeviceBuffer> packed;
    std::vector<std::vector<float>> y;
    for (cpu::CpuDevice* device : {&one_node, &several}) {
      packed.emplace_back(*device, bytes, "a test");
      void* data = packed.back().data();
      std::memset(data, 0x55, static_cast<std::size_t>(bytes));  // as memory that was used before
      if (is_quantised(dtype))
        device->ops().pack_quantised(*device, rows, n, k, dtype, data);
      else
        device->ops().pack(*device, w.data(), DType::F32, n, k, dtype, data);
      y.emplace_back(std::size_t(n_rows) * n);
      device->ops().matmul(*device, {data, n, k, dtype}, x.data(), k, n_rows, y.back().data(), n,
                           nullptr, false);
    }
    const auto n_bytes = static_cast<std::size_t>(bytes);
    EXPECT_EQ(std::memcmp(packed[0].data(), packed[1].data(), n_bytes), 0) << name_of(dtype);
    EXPECT_EQ(std::memcmp(y[0].data(), y[1].data(), y[0].size() * sizeof(float)), 0)
        << name_of(dtype);
  }
}

TEST(NumaNodes, only_whole_huge_pages_are_dropped) {
  constexpr std::int64_t kHuge = 2 << 20;
  const auto device = open_cpu(1);
  const DeviceBuffer buffer(*device, 5 * kHuge, "a test");  // aligned to huge pages
  char* data = static_cast<char*>(buffer.data());
  std::memset(data, 1, 5 * kHuge);
  cpu::drop_huge_pages(data + kHuge - 1, 3 * kHuge);  // pages 1 and 2 are whole
  for (int page = 0; page < 5; page++) {
    const bool dropped = page == 1 || page == 2;
    EXPECT_EQ(data[page * kHuge], dropped ? 0 : 1) << page;
    EXPECT_EQ(data[(page + 1) * kHuge - 1], dropped ? 0 : 1) << page;
  }
  cpu::drop_huge_pages(data + 1, kHuge);  // no whole one
  EXPECT_EQ(data[1], 1);
}

}  // namespace
}  // namespace kernels::test
