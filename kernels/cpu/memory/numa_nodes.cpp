#include "kernels/cpu/memory/numa_nodes.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "kernels/cpu/memory/turns.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace kernels::cpu {
namespace {

constexpr int kMostProcessors = 1 << 16;  // more are a damaged list

std::vector<int> list_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return parse_cpulist(line);
}

/// The node of each of n_threads threads. The next thread goes to the node with the fewest threads for its processors.
std::vector<int> spread(int n_threads, std::span<const std::vector<int>> processors) {
  std::vector<std::size_t> n_on(processors.size());
  std::vector<int> node_of_thread;
  for (int thread = 0; thread < n_threads; thread++) {
    std::size_t best = 0;
    for (std::size_t node = 1; node < n_on.size(); node++)
      if (n_on[node] * processors[best].size() < n_on[best] * processors[node].size()) best = node;
    n_on[best]++;
    node_of_thread.push_back(static_cast<int>(best));
  }
  return node_of_thread;
}

}  // namespace

std::vector<int> parse_cpulist(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> numbers;
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc() && value >= 0 && value < kMostProcessors;
  };
  while (at != end) {
    int first = 0;
    if (!number(first)) return {};
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return {};
    }
    for (int i = first; i <= last; i++) numbers.push_back(i);
    if (at == end) break;
    if (*at++ != ',' || at == end) return {};
  }
  return numbers;
}

std::vector<std::vector<int>> read_numa_nodes(std::span<const int> ids, const std::string& root) {
  const std::vector<int> online = list_in(root + "/online");
  if (online.size() < 2) return {};
  std::vector<std::vector<int>> nodes;
  std::size_t n_found = 0;
  for (const int number : online) {
    std::vector<int> usable = list_in(root + "/node" + std::to_string(number) + "/cpulist");
    std::erase_if(usable, [&](int id) { return std::ranges::find(ids, id) == ids.end(); });
    n_found += usable.size();
    if (!usable.empty()) nodes.push_back(std::move(usable));
  }
  if (nodes.size() < 2 || nodes.size() > Turns::kMostNodes || n_found != ids.size()) return {};
  return nodes;
}

ThreadNodes::ThreadNodes(int n_threads, std::vector<std::vector<int>> processors)
    : n_threads_{n_threads} {
  if (n_threads < 2 || processors.size() < 2) return;
  processors_ = std::move(processors);
  node_of_thread_ = spread(n_threads, processors_);
  n_threads_.assign(processors_.size(), 0);
  for (const int node : node_of_thread_) n_threads_[node]++;
  for (int node = 0; node < n_nodes(); node++)
    for (const std::size_t id : processors_[node]) {
      if (id >= node_of_processor_.size()) node_of_processor_.resize(id + 1);
      node_of_processor_[id] = node;
    }
}

int ThreadNodes::node_of_current_processor() const {
#if defined(__linux__)
  const auto id = static_cast<std::size_t>(sched_getcpu());  // -1 becomes the largest number
  if (id < node_of_processor_.size()) return node_of_processor_[id];
#endif
  return 0;
}

void ThreadNodes::keep_on_node([[maybe_unused]] int thread) const {
#if defined(__linux__)
  if (n_nodes() == 1) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int id : processors_[node_of_thread_[thread]])
    if (id < CPU_SETSIZE) CPU_SET(id, &set);
  sched_setaffinity(0, sizeof set, &set);  // only a hint: every thread may take every panel
#endif
}

}  // namespace kernels::cpu
