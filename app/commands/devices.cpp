#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/commands/report.h"
#include "engine/base/table.h"
#include "engine/store/model_store.h"
#include "kernels/cuda/monitor/gpu_monitor.h"

namespace app {
namespace {

/// The driver's figures on a GPU, by name; unknown values are null.
nlohmann::json gpu_json(const kernels::GpuLoad& load) {
  nlohmann::json out = {{"reason", load.reason}, {"absent", load.absent}};
  for (std::size_t i = 0; i < kernels::kGpuValues; i++) {
    const double value = load.values[i];
    out[name_of(static_cast<kernels::GpuValue>(i))] =
        value >= 0 ? number_json(value) : nlohmann::json(nullptr);
  }
  return out;
}

/// "cuda:0: 87 % busy, 12.3 GB used, 1980 MHz, memory 2619 MHz, 512 W", or why there are
/// no figures.
std::string gpu_line(const std::string& name, const kernels::GpuLoad& load) {
  using kernels::GpuValue;
  if (!load.reason.empty()) return fmt::format("{}: utilisation unknown: {}\n", name, load.reason);
  std::vector<std::string> parts;
  const auto add = [&](GpuValue of, const char* form, double unit = 1) {
    if (load[of] >= 0) parts.push_back(fmt::format(fmt::runtime(form), load[of] * unit));
  };
  add(GpuValue::Busy, "{:.0f} % busy");
  add(GpuValue::MemoryUsed, "{:.1f} GB used", 1e-9);
  add(GpuValue::Clock, "{:.0f} MHz");
  add(GpuValue::MemoryClock, "memory {:.0f} MHz");
  add(GpuValue::Power, "{:.0f} W");
  for (const auto& [field, why] : load.absent) parts.push_back(fmt::format("{}: {}", field, why));
  return fmt::format("{}: {}\n", name, fmt::join(parts, ", "));
}

}  // namespace

int devices(bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  std::string lines;
  std::vector<std::vector<std::string>> rows = {{"device", "available", "memory", "kernels"}};
  for (const engine::DeviceInfo& device : engine::list_devices()) {
    const bool gpu = device.kind == "cuda" && device.name != "cuda:emulated";
    const std::optional<kernels::GpuLoad> load =
        gpu ? std::optional(engine::load_of(device)) : std::nullopt;
    if (!device.available)
      lines += fmt::format("{}: {}\n", device.name, device.reason);
    else if (load)
      lines += gpu_line(device.name, *load);
    list.push_back({{"name", device.name},
                    {"kind", device.kind},
                    {"available", device.available},
                    {"reason", device.reason},
                    {"memory_bytes", device.memory_bytes > 0 ? nlohmann::json(device.memory_bytes)
                                                             : nlohmann::json(nullptr)},
                    {"ops", device.ops},
                    {"gpu", load ? gpu_json(*load) : nlohmann::json(nullptr)}});
    rows.push_back({device.name, device.available ? "yes" : "no",
                    device.memory_bytes
                        ? fmt::format("{:.1f} GB", static_cast<double>(device.memory_bytes) * 1e-9)
                        : "-",
                    device.ops.empty() ? "-" : device.ops});
  }
  print(as_json ? dumped(list) : engine::aligned_table(rows) + lines);
  return 0;
}

}  // namespace app
