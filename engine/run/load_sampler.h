// Samples the load of the processor or the GPU during runs and emits Sampled events, both for the
// window and for the command line. A separate thread queries the GPU's driver
// (kernels/cuda/monitor/gpu_monitor.h); the sampler reads its latest values and never waits.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/event/queue.h"
#include "kernels/device.h"

namespace engine {

/// Emits a load sample every 100 ms while runs make steps.
class LoadSampler {
 public:
  /// Starts the counters, and the monitor thread if the device is a GPU.
  /// @param device  the device of the runs; outlives the sampler, and so does `events`
  /// @param beside  devices that work at the same time and whose threads are counted too; they
  ///                outlive the sampler
  LoadSampler(const kernels::Device& device,
              EventSink& events,
              std::vector<const kernels::Device*> beside = {});

  /// Emits a sample if the last one is 100 ms old.
  /// @param own_compute  total compute of the sampled runs so far
  void step(Nanoseconds own_compute);
  /// Emits a sample if none was emitted yet. Thus a short run has one too.
  void end(Nanoseconds own_compute);

 private:
  /// Counters at one moment; they only grow.
  struct Counters {
    Nanoseconds at = 0;
    std::int64_t process_cpu_ns = 0;
    Nanoseconds own_compute = 0;
    std::vector<std::int64_t> thread_busy_ns;
    std::int64_t ticks = -1, stolen_ticks = -1;  // of the machine's processors; -1: unknown
  };

  Counters counters(Nanoseconds own_compute) const;
  void emit(Nanoseconds own_compute);

  std::vector<const kernels::Device*> devices_;  // the device of the runs first
  EventSink& events_;
  Counters last_;
  bool emitted_ = false;
};

}  // namespace engine
