// The NUMA nodes of the machine, and the node of each thread of a pool. A processor reads the memory of its own node faster than that
// of other nodes. Most machines have one node; then threads are not restricted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernels::cpu {

/// Reads a list of the system, such as "0-3,8\n".
/// @return  the numbers; empty if the text is empty or not such a list
std::vector<int> parse_cpulist(std::string_view text);

/// The processors of each NUMA node, from the system's files. Nodes without usable processors are left out.
/// @param ids   the processors that this process may use (usable_processor_ids())
/// @param root  folder with the list `online` of nodes, and a list nodeN/cpulist for each
/// @return  at least two nodes; empty if there are fewer, or more than Turns has room for, or if a processor is in no node
std::vector<std::vector<int>> read_numa_nodes(std::span<const int> ids,
                                              const std::string& root = "/sys/devices/system/node");

/// Spreads the threads of a pool over nodes.
class ThreadNodes {
 public:
  /// @param processors  of each node; with fewer than two nodes or threads, all threads are on node 0
  ThreadNodes(int n_threads, std::vector<std::vector<int>> processors);
  int n_nodes() const { return static_cast<int>(n_threads_.size()); }
  /// Number of threads on each node. The first n threads of the pool are spread in the same proportion.
  std::span<const int> n_threads() const { return n_threads_; }
  /// The node that the calling thread runs on at the moment.
  int current() const { return n_nodes() == 1 ? 0 : node_of_current_processor(); }
  /// Keeps the calling thread, which is thread `thread` of the pool, on the processors of its node.
  void keep_on_node(int thread) const;

 private:
  int node_of_current_processor() const;

  std::vector<std::vector<int>> processors_;  // empty with one node
  std::vector<int> n_threads_;
  std::vector<int> node_of_thread_, node_of_processor_;  // empty with one node
};

}  // namespace kernels::cpu
