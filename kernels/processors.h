// The processors that this process may use, and the numbers of threads that could be the fastest.
//   hyper-threads     two processors of one core share its units: memory-bound kernels gain little from
//                     the second one, and threads that wait for each other may lose
//   efficiency cores  threads that share an operation evenly wait for the slowest of them
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kernels::cpu {

/// Returns the instruction sets that the program needs and this processor lacks: "AVX2, FMA"; empty if it has all, or is no x86-64.
std::string missing_features();

/// A processor as the operating system counts it (a hyper-thread).
struct Processor {
  int package = 0, core = 0;
  long speed = 0;  // capacity or highest frequency, comparable within a machine; 0: unknown
};

/// Reads the processors from the system's files.
/// @param ids   numbers of the processors
/// @param root  folder with a folder cpuN for each; an unreadable file counts as one core of its own
std::vector<Processor> read_processors(std::span<const int> ids,
                                       const std::string& root = "/sys/devices/system/cpu");

/// The numbers of the processors that this process may use; empty if the system does not report them.
std::vector<int> usable_processor_ids();

/// Numbers of threads that could be the fastest, the largest first: one for every processor, one for
/// every core, and the same two for the fast cores alone. A core is fast if it has at least 80 % of
/// the highest speed.
std::vector<int> thread_counts(std::span<const Processor> processors);

}  // namespace kernels::cpu
