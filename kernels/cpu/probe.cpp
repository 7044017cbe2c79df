#include "kernels/cpu/probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/cpu/cpu_device.h"
#include "kernels/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

constexpr std::int64_t kBlock = 1 << 20;

CpuDevice& probed(Device& device) {
  ensure(has_probes(device), "bandwidth probes run only on the CPU");
  return cpu_of(device);
}

}  // namespace

bool has_probes(const Device& device) {
  return dynamic_cast<const CpuDevice*>(&device) != nullptr;
}

ReadProbe::ReadProbe(Device& device, std::int64_t bytes)
    : device_(probed(device)),
      buffer_(device, (bytes + kBlock - 1) / kBlock * kBlock, "a probe of memory") {
  char* data = static_cast<char*>(buffer_.data());
  // Writes the pages, so that they exist, with bytes that are ordinary floats.
  const auto n_blocks = static_cast<int>(buffer_.bytes() / kBlock);
  split(device_, n_blocks, buffer_.bytes(), [&](int begin, int end, int) {
    std::memset(data + begin * kBlock, 0x3c, (end - begin) * kBlock);
  });
}

double ReadProbe::read_ns(std::int64_t begin, std::int64_t end) {
  const char* data = static_cast<const char*>(buffer_.data());
  std::atomic<float> result{0};
  std::atomic<std::int64_t> next{begin};
  const Clock::time_point start = Clock::now();
  device_.pool().run([&](int) {
    for (auto i = next.fetch_add(kBlock); i < end; i = next.fetch_add(kBlock))
      result.store(device_.kernels.probe_read(data + i, kBlock), std::memory_order_relaxed);
  });
  return ns_since(start);
}

double ReadProbe::gbps(int n_passes) {
  double best = 0;
  for (int pass = 0; pass < n_passes; pass++)
    best = std::max(best, static_cast<double>(buffer_.bytes()) / read_ns(0, buffer_.bytes()));
  return best;
}

double ReadProbe::quiet_gbps() {
  constexpr std::int64_t kPiece = 8 << 20;
  double total = 0;
  for (std::int64_t begin = 0, i = 0; begin < buffer_.bytes(); begin += kPiece, i++) {
    const double ns = read_ns(begin, std::min(begin + kPiece, buffer_.bytes()));
    if (i == static_cast<std::int64_t>(least_ns_.size())) least_ns_.push_back(ns);
    least_ns_[i] = std::min(least_ns_[i], ns);
    total += least_ns_[i];
  }
  return static_cast<double>(buffer_.bytes()) / total;
}

double multiply_gflops(Device& device, DType dtype) {
  CpuDevice& cpu = probed(device);
  const auto probe = cpu.kernels.probe_multiply[static_cast<int>(dtype)];
  double best = 0;
  for (int pass = 0; pass < 5; pass++) {
    std::atomic<std::int64_t> n_multiplies{0};
    std::atomic<int> n_left{20 * cpu.pool().n_threads()};
    const Clock::time_point begin = Clock::now();
    cpu.pool().run([&](int) {
      float result = 0;
      while (n_left.fetch_sub(1) > 0) n_multiplies += probe(20000, &result);
    });
    best = std::max(best, 2.0 * static_cast<double>(n_multiplies.load()) / ns_since(begin));
  }
  return best;
}

std::string processor_name() {
#if defined(__x86_64__)
  unsigned words[12] = {};
  if (__get_cpuid_max(0x80000000u, nullptr) >= 0x80000004u) {
    for (unsigned i = 0; i < 3; i++)
      __get_cpuid(0x80000002u + i, words + 4 * i, words + 4 * i + 1, words + 4 * i + 2,
                  words + 4 * i + 3);
    char text[49] = {};
    std::memcpy(text, words, 48);
    std::string name(text);
    const auto first = name.find_first_not_of(' ');
    if (first != std::string::npos)
      return name.substr(first, name.find_last_not_of(' ') - first + 1);
  }
#endif
  return "unknown processor";
}

}  // namespace kernels::cpu
