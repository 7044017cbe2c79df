// CPU devices that share processors: the number of active threads, and threads lent from one device to another.
#pragma once

#include <vector>

#include "kernels/device.h"

namespace kernels {

// Call both functions only between two operations. They change no result and have no effect on a
// GPU.

/// Sets the number of threads that share each later operation, at most n_threads(). The other threads sleep.
void set_active_threads(Device& device, int n);
/// Number of threads that share each operation of the device's own threads.
int active_threads(const Device& device);
/// Numbers of threads of this device that could be the fastest, the largest first (hyper-threads and
/// efficiency cores may not help). One number if there is nothing to choose, as on a GPU.
std::vector<int> thread_counts_to_try(const Device& device);
/// Runs each later operation of `device` on the threads of `from`; if `from` is `device`, it uses
/// its own threads again. Two devices that work in turn avoid waking threads this way. While
/// `device` borrows, no operation of one device overlaps one of the other, and `from` stays alive.
void borrow_threads(Device& device, Device& from);

}  // namespace kernels
