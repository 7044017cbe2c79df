// How busy the processor or the GPU is while runs go on, told as Sampled events: the same for the
// window's races and the command line's runs. A GPU's driver is asked by a thread of its own
// (kernels/cuda/monitor/gpu_monitor.h), and the latest it said is told; nobody waits for it here.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/event/queue.h"
#include "kernels/device.h"

namespace engine {

class LoadSampler {
 public:
  /// Begins to count, and starts the monitor of a GPU.
  /// @param device  what runs; outlives the sampler, as `events` does
  /// @param beside  a second device at work at the same time, whose threads count too; or null
  LoadSampler(const kernels::Device& device,
              EventSink& events,
              const kernels::Device* beside = nullptr);

  /// Tells a sample where the last is 100 ms old.
  /// @param own_compute  of all runs sampled, so far
  void step(Nanoseconds own_compute);
  /// Tells one where there is none yet: a run that is over sooner has its sample too.
  void end(Nanoseconds own_compute);

 private:
  /// Counters that only grow, at one moment.
  struct Counters {
    Nanoseconds at = 0;
    std::int64_t process_cpu_ns = 0;
    Nanoseconds own_compute = 0;
    std::vector<std::int64_t> thread_busy_ns;
  };

  Counters counters(Nanoseconds own_compute) const;
  void tell(Nanoseconds own_compute);

  const kernels::Device& device_;
  const kernels::Device* beside_;
  EventSink& events_;
  Counters last_;
  bool told_ = false;
};

}  // namespace engine
