// Finds the instruction sets that this processor and its operating system support.
#include <cstdlib>
#include <iterator>
#include <list>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/error.h"
#include "kernels/processors.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace kernels {
namespace cpu {
namespace {

#if defined(__x86_64__)
bool has_bit(unsigned leaf, unsigned subleaf, char reg, int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d)) return false;
  const unsigned value = reg == 'a' ? a : reg == 'b' ? b : reg == 'c' ? c : d;
  return (value >> bit) & 1;
}

/// Linux enables the large AMX registers only for a process that requests them.
bool may_use_tiles() {
  if (!has_bit(7, 0, 'd', 24) || !has_bit(7, 0, 'd', 22)) return false;  // AMX-TILE, AMX-BF16
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

std::list<InstructionSet> find_sets() {
  std::list<InstructionSet> sets;
  const auto add = [&](const char* name, const CpuKernels& kernels) {
    sets.push_back({make_ops(name), &kernels});
  };
  add("scalar", scalar_kernels());
#if defined(__x86_64__)
  if (!missing_features().empty()) return sets;
  add("avx2", avx2_kernels());
  if (has_bit(7, 1, 'a', 4)) add("avx_vnni", avx_vnni_kernels());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return sets;
  add("avx512", avx512_kernels());
  if (!has_bit(7, 0, 'c', 11)) return sets;  // AVX512-VNNI
  add("avx512_vnni", avx512_vnni_kernels());
  if (!has_bit(7, 1, 'a', 5)) return sets;  // AVX512-BF16
  add("avx512_bf16", avx512_bf16_kernels());
  if (!may_use_tiles()) return sets;
  add("amx_bf16", amx_bf16_kernels());
  if (has_bit(7, 0, 'd', 25)) add("amx_int8", amx_int8_kernels());  // AMX-INT8
#endif
  return sets;
}

std::list<InstructionSet>& sets() {
  // Never destroyed: a model that lives until the program ends still frees its memory here.
  static auto& found = *new std::list<InstructionSet>(find_sets());
  return found;
}

const Ops& chosen() {
  const char* wanted = std::getenv("CPU_OPS");
  if (!wanted || !*wanted) return sets().back().ops;
  std::string names;
  for (const InstructionSet& set : sets()) {
    if (set.ops.name == std::string(wanted)) return set.ops;
    names += (names.empty() ? "" : ", ") + std::string(set.ops.name);
  }
  throw Error(ErrorCode::Usage, "CPU_OPS: found \"" + std::string(wanted) +
                                    "\", expected one that this processor runs: " + names);
}

}  // namespace

const InstructionSet& set_of(const Ops& ops) {
  for (const InstructionSet& set : sets())
    if (&set.ops == &ops || set.ops.name == std::string(ops.name)) return set;
  throw_contract_error("open_cpu: not a CPU table of this processor");
}

void add_changed_set(const char* name, void (*change)(CpuKernels& kernels)) {
  auto& kernels = *new CpuKernels(*sets().back().kernels);
  change(kernels);
  sets().insert(std::next(sets().begin()), InstructionSet{make_ops(name), &kernels});
}

}  // namespace cpu

const Ops& cpu_ops() {
  static const Ops& ops = cpu::chosen();
  return ops;
}

std::span<const Ops* const> all_cpu_ops() {
  static const std::vector<const Ops*> all = [] {
    std::vector<const Ops*> tables;
    for (const cpu::InstructionSet& set : cpu::sets()) tables.push_back(&set.ops);
    return tables;
  }();
  return all;
}

}  // namespace kernels
