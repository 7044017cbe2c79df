#include "engine/train/ops/amx_gemm.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace engine {

#if defined(__x86_64__) && defined(__linux__)
namespace {

bool processor_has_amx_bf16() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool bf16 = (d >> 22) & 1, tiles = (d >> 24) & 1;
  return bf16 && tiles;
}

// Linux grants the 8 KB of tile state only on request.
bool system_allows_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool amx_usable() {
  static const bool usable = processor_has_amx_bf16() && system_allows_tiles();
  return usable;
}
#else
bool amx_usable() {
  return false;
}
#endif

}  // namespace engine
