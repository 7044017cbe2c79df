#include "engine/run/load_sampler.h"

#include <sys/resource.h>
#include <time.h>
#include <algorithm>
#include <thread>
#include <utility>

#include "engine/base/measure/machine_load.h"
#include "engine/event/clock.h"
#include "kernels/cuda/monitor/gpu_monitor.h"

namespace engine {
namespace {

constexpr Nanoseconds kSamplePeriod = 100'000'000;

std::int64_t process_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

/// Copies a GPU's values into a sample.
void add_gpu_load(Sampled& sample, const kernels::GpuLoad& load) {
  using kernels::GpuValue;
  sample.reason = load.reason;
  sample.busy_percent = load[GpuValue::Busy];
  sample.gpu_memory_busy_percent = load[GpuValue::MemoryBusy];
  sample.gpu_memory_used_bytes = static_cast<std::int64_t>(load[GpuValue::MemoryUsed]);
  sample.gpu_memory_total_bytes = static_cast<std::int64_t>(load[GpuValue::MemoryTotal]);
  sample.gpu_clock_mhz = load[GpuValue::Clock];
  sample.gpu_memory_clock_mhz = load[GpuValue::MemoryClock];
  sample.gpu_power_w = load[GpuValue::Power];
  sample.absent = load.absent;
  if (const auto busy = load.absent.find(name_of(GpuValue::Busy)); busy != load.absent.end())
    sample.reason = busy->second;
}

}  // namespace

LoadSampler::LoadSampler(const kernels::Device& device,
                         EventSink& events,
                         std::vector<const kernels::Device*> beside)
    : devices_(std::move(beside)), events_(events) {
  devices_.insert(devices_.begin(), &device);
  last_ = counters(0);
  if (device.monitor()) device.monitor()->start();
}

void LoadSampler::step(Nanoseconds own_compute) {
  if (now_ns() - last_.at >= kSamplePeriod) emit(own_compute);
}

void LoadSampler::end(Nanoseconds own_compute) {
  if (!emitted_ && now_ns() > last_.at) emit(own_compute);
}

LoadSampler::Counters LoadSampler::counters(Nanoseconds own_compute) const {
  const ProcessorTicks ticks = processor_ticks();
  Counters now{now_ns(), process_cpu_ns(), own_compute, {}, ticks.total, ticks.stolen};
  for (const kernels::Device* device : devices_) {
    for (int thread = 0; thread < device->n_threads(); thread++)
      now.thread_busy_ns.push_back(device->busy_ns(thread));
  }
  return now;
}

void LoadSampler::emit(Nanoseconds own_compute) {
  const Counters now = counters(own_compute), before = std::exchange(last_, now);
  const auto percent = [&](std::int64_t ns, std::size_t n_threads = 1) {
    const double period = static_cast<double>(now.at - before.at);
    return std::min(100.0,
                    100.0 * static_cast<double>(ns) / period / static_cast<double>(n_threads));
  };
  Sampled sample;
  sample.t = now.at;
  sample.period = now.at - before.at;
  const kernels::Device& device = *devices_.front();
  sample.device = device.name();
  if (const kernels::GpuMonitor* monitor = device.monitor()) {
    add_gpu_load(sample, monitor->latest());
  } else {
    // Limits the sum: several devices may together have more threads than the machine has processors.
    const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
    sample.busy_percent = percent(now.process_cpu_ns - before.process_cpu_ns,
                                  std::min(now.thread_busy_ns.size(), processors));
  }
  sample.engine_busy_percent = percent(now.own_compute - before.own_compute);
  for (std::size_t i = 0; i < now.thread_busy_ns.size(); i++)
    sample.thread_busy_percent.push_back(percent(now.thread_busy_ns[i] - before.thread_busy_ns[i]));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) sample.memory_bytes = usage.ru_maxrss * 1024LL;
  sample.stolen_percent =
      stolen_percent({before.ticks, before.stolen_ticks}, {now.ticks, now.stolen_ticks});
  sample.load_average = load_average();
  emitted_ = true;
  events_.push(std::move(sample));
}

}  // namespace engine
