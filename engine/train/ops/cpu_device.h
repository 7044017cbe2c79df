// The CPU as a device for training. Each shard has its own device object, with products, scratch
// memory and a table of operations. The memory of the device is the host's memory.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/train/ops/linear.h"
#include "engine/train/ops/train_ops.h"
#include "kernels/device.h"
#include "kernels/train_ops.h"

namespace engine {

/// Weights in the layout that the CPU's products read. After every update they are packed again
/// from the f32 master weights. TrainWeights::packed points to an object of this class.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  /// Packs matrix i, 0 <= i < n_matrices(), again. Threads may pack different matrices
  /// concurrently.
  virtual void repack(int i) = 0;
  /// Number of matrices.
  virtual int n_matrices() const = 0;
};
/// @param masters   the f32 weights; their address must not change while the result exists
/// @param matrices  the matrices that products read
std::unique_ptr<PackedWeights> pack_weights(const float* masters,
                                            const std::vector<kernels::TrainMatrix>& matrices,
                                            Compute compute);

/// Opens a device for one shard of a training on the CPU. Only one thread at a time may use it.
/// @param compute  F32, Bf16Amx or Bf16OneDnn
/// @throws Error(Device)  for Bf16Amx without AMX
std::unique_ptr<kernels::Device> open_cpu_shard(Compute compute,
                                                const TrainTable& table = train_table());
/// The table of operations of such devices.
const kernels::TrainOps& cpu_train_ops(Compute compute);

}  // namespace engine
