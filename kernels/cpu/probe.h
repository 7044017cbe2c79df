// The roofline of this machine, measured with the simplest loops: memory bandwidth and arithmetic throughput, to compare
// step times with. Each call takes some tenths of a second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/dtype.h"

namespace kernels::cpu {

class CpuDevice;

/// True for a CPU. Other devices have no probes.
bool has_probes(const Device& device);

/// Memory bandwidth: bytes read per nanosecond (GB/s) by all threads of a CPU device from a buffer that is larger than any
/// cache. The object owns the buffer.
class ReadProbe {
 public:
  /// @param bytes  several times the last-level cache; rounded up to a whole number of MiB
  /// @throws Error(Resources)  if there is not enough memory
  /// @throws ContractError  unless has_probes()
  explicit ReadProbe(Device& device, std::int64_t bytes = std::int64_t{1} << 30);
  /// The best of n_passes, in GB/s.
  double gbps(int n_passes = 3);
  /// GB/s if every piece of 8 MiB took the shortest time it took in any call so far. This estimates
  /// the bandwidth of an idle machine even if other programs run now and then.
  double quiet_gbps();

 private:
  double read_ns(std::int64_t begin, std::int64_t end);

  CpuDevice& device_;
  DeviceBuffer buffer_;
  std::vector<double> least_ns_;  // of each piece
};

/// Billions of floating point operations per second of all threads (a multiply-add counts as two), with the instruction that
/// `matmul` uses for weights of this type.
/// @throws ContractError  unless has_probes()
double multiply_gflops(Device& device, DType dtype);

/// "Intel(R) Xeon(R) Processor", "AMD EPYC ...", or "unknown processor".
std::string processor_name();

}  // namespace kernels::cpu
