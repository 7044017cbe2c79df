#include "kernels/cuda/monitor/gpu_monitor.h"

#include <exception>
#include <system_error>
#include <utility>

namespace kernels {
namespace {

GpuLoad unknown_load(const std::string& reason) {
  GpuLoad load{.reason = reason, .values = {}, .absent = {}};
  load.values.fill(-1);
  return load;
}

GpuLoad load_of(const Nvml& nvml, const NvmlAnswers& answers) {
  GpuLoad load = unknown_load({});
  for (std::size_t i = 0; i < kGpuValues; i++) {
    load.values[i] = answers[i].value;
    if (answers[i].code != 0)
      load.absent[name_of(static_cast<GpuValue>(i))] = nvml.error_text(answers[i].code);
  }
  return load;
}

/// NVML and its device; null: `reason`.
void* opened(const GpuSource& source, std::unique_ptr<Nvml>& nvml, std::string& reason) {
  nvml = source.open(reason);
  if (!nvml) return nullptr;
  try {
    return nvml->find(source.identity(), reason);
  } catch (const std::exception& e) {
    reason = e.what();
    return nullptr;
  }
}

}  // namespace

GpuLoad gpu_load_once(const GpuSource& source) {
  std::unique_ptr<Nvml> nvml;
  std::string reason;
  void* const gpu = opened(source, nvml, reason);
  return gpu ? load_of(*nvml, nvml->ask(gpu)) : unknown_load(reason);
}

GpuMonitor::GpuMonitor(GpuSource source, std::chrono::nanoseconds period)
    : source_(std::move(source)), period_(period) {}

GpuMonitor::~GpuMonitor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GpuMonitor::start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable() || failed_) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    reason_ = std::string("no thread could be started to ask the driver: ") + error.what();
    failed_ = true;
  }
}

void GpuMonitor::run() {
  void* const gpu = opened(source_, nvml_, reason_);
  if (!gpu) {
    failed_ = true;
    return;
  }
  do publish(nvml_->ask(gpu));
  while (waits_on());
}

bool GpuMonitor::waits_on() {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, period_, [this] { return stop_; });
}

void GpuMonitor::publish(const NvmlAnswers& answers) {
  version_++;
  for (std::size_t i = 0; i < kGpuValues; i++) {
    latest_[i].value = answers[i].value;
    latest_[i].code = answers[i].code;
  }
  version_++;
}

NvmlAnswers GpuMonitor::published() const {
  NvmlAnswers answers;
  std::uint64_t before = 0;
  do {
    before = version_;
    for (std::size_t i = 0; i < kGpuValues; i++)
      answers[i] = {.value = latest_[i].value, .code = latest_[i].code};
  } while (before % 2 != 0 || version_ != before);
  return answers;
}

GpuLoad GpuMonitor::latest() const {
  if (failed_) return unknown_load(reason_);
  if (n_samples() == 0) return unknown_load("the driver has not answered yet");
  return load_of(*nvml_, published());
}

}  // namespace kernels
