#include "kernels/cpu/op_times.h"

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/probe.h"

namespace kernels::cpu {
namespace {

std::int64_t ns_of_others(ThreadPool& pool) {
  std::int64_t ns = 0;
  for (int thread = 1; thread < pool.n_threads(); thread++) ns += pool.busy_ns(thread);
  return ns;
}

}  // namespace

const char* name_of(OpKind kind) {
  constexpr const char* kNames[kOpKinds] = {"products",   "norms", "rope",   "attention",
                                            "activation", "cache", "choice", "other"};
  return kNames[static_cast<int>(kind)];
}

OpTiming::OpTiming(Device& device) : device_(has_probes(device) ? &cpu_of(device) : nullptr) {
  if (device_) device_->times = times_.data();
}

OpTiming::~OpTiming() {
  if (device_) device_->times = nullptr;
}

OpTimes OpTiming::take() {
  const OpTimes times = times_;
  times_ = {};
  return times;
}

TimedOp::TimedOp(CpuDevice& device, OpKind kind) {
  if (!device.times) return;
  device_ = &device;
  to_ = device.times + static_cast<int>(kind);
  busy_ns_ = device.pool().busy_ns(0);
  others_ns_ = ns_of_others(device.pool());
  begin_ = Clock::now();
}

TimedOp::~TimedOp() {
  if (!device_) return;
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin_).count();
  ThreadPool& pool = device_->pool();
  const auto shared = static_cast<double>(pool.busy_ns(0) - busy_ns_);
  // An operation that no other thread shares is the caller's work from begin to end.
  const double worked =
      shared > 0 ? shared + static_cast<double>(ns_of_others(pool) - others_ns_) : ns;
  to_->ms += ns * 1e-6;
  to_->waiting_ms += (ns * pool.n_threads() - worked) * 1e-6;
  to_->n++;
}

}  // namespace kernels::cpu
