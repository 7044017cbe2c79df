#include "kernels/processors.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kernels::cpu {
namespace {

/// The number in a file; `otherwise` if there is none.
long number_in(const std::string& path, long otherwise) {
  std::ifstream file(path);
  long number = 0;
  return file >> number ? number : otherwise;
}

int n_cores(std::span<const Processor> processors) {
  std::set<std::pair<int, int>> cores;
  for (const Processor& one : processors) cores.emplace(one.package, one.core);
  return static_cast<int>(cores.size());
}

}  // namespace

std::vector<Processor> read_processors(std::span<const int> ids, const std::string& root) {
  std::vector<Processor> processors;
  for (const int id : ids) {
    const std::string folder = root + "/cpu" + std::to_string(id);
    const long frequency = number_in(folder + "/cpufreq/cpuinfo_max_freq", 0);
    processors.push_back({static_cast<int>(number_in(folder + "/topology/physical_package_id", 0)),
                          static_cast<int>(number_in(folder + "/topology/core_id", 1'000'000 + id)),
                          number_in(folder + "/cpu_capacity", frequency)});
  }
  return processors;
}

std::string missing_features() {
  std::string missing;
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  const auto need = [&missing](bool is_there, const char* name) {
    if (!is_there) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  need(__builtin_cpu_supports("avx2"), "AVX2");
  need(__builtin_cpu_supports("fma"), "FMA");
  need(has_f16c, "F16C");
#endif
  return missing;
}

std::vector<int> usable_processor_ids() {
  std::vector<int> ids;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return ids;
  for (int id = 0; id < CPU_SETSIZE; id++)
    if (CPU_ISSET(id, &set)) ids.push_back(id);
#endif
  return ids;
}

std::vector<int> thread_counts(std::span<const Processor> processors) {
  long highest = 0;
  for (const Processor& one : processors) highest = std::max(highest, one.speed);
  std::vector<Processor> fast;
  for (const Processor& one : processors)
    if (5 * one.speed >= 4 * highest) fast.push_back(one);
  std::set<int, std::greater<>> counts;
  for (const int n : {static_cast<int>(processors.size()), n_cores(processors),
                      static_cast<int>(fast.size()), n_cores(fast)})
    if (n > 0) counts.insert(n);
  return {counts.begin(), counts.end()};
}

}  // namespace kernels::cpu
