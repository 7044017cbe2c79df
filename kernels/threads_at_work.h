// Two devices that share processors: how many threads of each work, and whose.
#pragma once

#include "kernels/device.h"

namespace kernels {

// Both are called between two operations, by whoever calls them, change no result, and mean nothing
// where a device is no CPU.

/// Operations from the next one on are shared by so many of the device's own threads, n_threads()
/// at most; the others sleep.
void set_threads_at_work(Device& device, int n);
/// Operations from the next one on run on the threads of `from`, which outlives that; of `device`
/// itself: on its own again. Two devices that work in turn hand nothing over so: threads that have
/// just worked for one need not be woken for the other. While they are lent, operations of the two
/// follow each other.
void work_on_threads_of(Device& device, Device& from);

}  // namespace kernels
