// What this machine can do at most, by the simplest loops there are: the roofline that measured
// steps are held against. Each call takes some tenths of a second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/dtype.h"

namespace kernels::cpu {

class CpuDevice;

/// Whether this device is a CPU: the probes are its loops, and there are none for another.
bool has_probes(const Device& device);

/// Bytes read per nanosecond (GB/s) by all threads of a CPU device from a buffer that no cache
/// holds; the best of a few passes. The buffer lives as long as this object.
class ReadProbe {
 public:
  /// @param bytes  several times the last-level cache; rounded up to a whole number of MiB
  /// @throws Error(Resources)  if the memory is not there
  /// @throws ContractError  unless has_probes()
  explicit ReadProbe(Device& device, std::int64_t bytes = std::int64_t{1} << 30);
  double gbps(int n_passes = 3);
  /// The same by pieces of 8 MiB: the sum of each piece's least time over this and earlier calls.
  /// What the machine gives when nobody else is at work, even if somebody often is.
  double quiet_gbps();

 private:
  double read_ns(std::int64_t begin, std::int64_t end);

  CpuDevice& device_;
  DeviceBuffer buffer_;
  std::vector<double> least_ns_;  // by piece
};

/// Billions of floating point operations per second (a multiply-add is two) of all threads, in the
/// instruction that `matmul` over weights of this type uses.
/// @throws ContractError  unless has_probes()
double multiply_gflops(Device& device, DType dtype);

/// "Intel(R) Xeon(R) Processor", "AMD EPYC ...", or "unknown processor".
std::string processor_name();

}  // namespace kernels::cpu
