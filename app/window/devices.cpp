#include "app/window/devices.h"

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/cli/terminal.h"
#include "app/window/engine_thread.h"
#include "engine/store/model_store.h"
#include "kernels/cuda/cuda.h"
#include "kernels/error.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

// Returns in plain words why a GPU cannot be used.
std::string plain_words(const std::string& reason) {
  if (reason.find("cudaErrorInsufficientDriver") != std::string::npos &&
      reason.starts_with("cudaGetDeviceCount"))
    return "no NVIDIA driver was found";
  if (reason.starts_with("cuda")) return "its driver reports an error";
  return reason.substr(0, reason.find(" (cuda"));
}

// Appends a device.
void add_device(ui::Catalog& catalog, const engine::DeviceInfo& device) {
  const bool is_cpu = kernels::is_cpu(device.name), emulated = device.name == "cuda:emulated";
  const std::string why = plain_words(device.reason);
  const auto place = static_cast<std::ptrdiff_t>(catalog.devices.size());
  catalog.devices.push_back(
      {.name = device.name,
       .title = device.available ? fmt::format("{}, {}", device.name, device.ops) : device.name,
       .unavailable = why});
  catalog.health.insert(catalog.health.begin() + place,
                        {.name = is_cpu     ? "CPU"
                                 : emulated ? "emulated GPU"
                                            : "GPU (" + device.name + ")",
                         .value = !device.available ? "not used: " + why
                                  : emulated ? "for tests: computes like a GPU on the CPU, slowly"
                                             : "ready, computes with " + device.ops,
                         .ok = device.available,
                         .fix = device.available ? "" : "Everything runs on the CPU.",
                         .needed = is_cpu,
                         .details = why == device.reason ? "" : device.reason});
}

}  // namespace

WindowDevices::WindowDevices(ui::Catalog& catalog)
    : WindowDevices(catalog, [] { return engine::list_devices(); }) {}

WindowDevices::WindowDevices(ui::Catalog& catalog, List list) : catalog_(catalog) {
  add_device(catalog, engine::cpu_info());
  listed_ = std::async(std::launch::async, std::move(list));
}

WindowDevices::~WindowDevices() {
  if (!listed_.valid() || listed_.wait_for(EngineThread::kPatience) != std::future_status::timeout)
    return;
  print_error("window: the GPU's driver did not respond; the process ends without waiting for it");
  std::fflush(nullptr);
  _exit(static_cast<int>(kernels::ErrorCode::Device));
}

bool WindowDevices::take() {
  if (!listed_.valid() || listed_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return false;
  for (const engine::DeviceInfo& device : listed_.get())
    if (!kernels::is_cpu(device.name)) add_device(catalog_, device);
  return true;
}

void WindowDevices::wait_and_take() {
  if (listed_.valid()) listed_.wait();
  take();
}

}  // namespace app
