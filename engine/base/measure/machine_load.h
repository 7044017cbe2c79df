// The load of the machine, of all its programs: processor time taken by the hypervisor, and the load
// average. Linux only; elsewhere unknown.
#pragma once

#include <cstdint>
#include <string>

namespace engine {

/// Processor time since the system started, in clock ticks over all processors; -1: unknown.
struct ProcessorTicks {
  std::int64_t total = -1;
  std::int64_t stolen = -1;  // time in which the hypervisor ran other machines
};

/// Reads the processor time.
/// @param path  a file in the format of /proc/stat
ProcessorTicks processor_ticks(const std::string& path = "/proc/stat");

/// The stolen share of the processor time between two readings, in percent; -1 if it is unknown or
/// if no tick passed.
double stolen_percent(const ProcessorTicks& before, const ProcessorTicks& after);

/// The number of runnable threads on average over the last minute; -1: unknown.
double load_average();

}  // namespace engine
