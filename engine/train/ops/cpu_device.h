// The CPU as a device for training: one shard's products, scratch memory and table of operations.
// Its memory is the host's.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/train/ops/linear.h"
#include "engine/train/ops/train_ops.h"
#include "kernels/device.h"
#include "kernels/train_ops.h"

namespace engine {

/// Weights in the form that the CPU's products read, packed again from the f32 masters after every
/// update. TrainWeights::packed points to one.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  /// Packs matrix i of n_matrices again. Threads may share the matrices.
  virtual void repack(int i) = 0;
  /// Number of matrices.
  virtual int n_matrices() const = 0;
};
/// @param masters   stay in place while the packed weights exist
/// @param matrices  the matrices that products read
std::unique_ptr<PackedWeights> pack_weights(const float* masters,
                                            const std::vector<kernels::TrainMatrix>& matrices,
                                            Compute compute);

/// A device for one thread at a time: a shard of a training on the CPU.
/// @param compute  F32, Bf16Amx or Bf16OneDnn
/// @throws Error(Device)  for Bf16Amx without AMX
std::unique_ptr<kernels::Device> open_cpu_shard(Compute compute,
                                                const TrainTable& table = train_table());
/// The table of such devices.
const kernels::TrainOps& cpu_train_ops(Compute compute);

}  // namespace engine
