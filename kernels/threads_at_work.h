// A device whose threads another one needs for a while: how many of them work.
#pragma once

#include "kernels/device.h"

namespace kernels {

/// Operations from the next one on are shared by so many of the device's threads, n_threads() at
/// most; the others sleep. Called between two operations, by whoever calls them. Changes no result,
/// and means nothing where a device is no CPU.
void set_threads_at_work(Device& device, int n);

}  // namespace kernels
