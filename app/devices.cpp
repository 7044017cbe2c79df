#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/report.h"
#include "app/terminal.h"
#include "engine/event/table.h"
#include "engine/schedule/model_store.h"

namespace app {

int devices(bool json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"device", "available", "memory", "kernels"}};
  for (const engine::DeviceInfo& device : engine::list_devices()) {
    list.push_back({{"name", device.name},
                    {"kind", device.kind},
                    {"available", device.available},
                    {"reason", device.reason},
                    {"memory_bytes", device.memory_bytes > 0 ? nlohmann::json(device.memory_bytes)
                                                             : nlohmann::json(nullptr)},
                    {"ops", device.ops}});
    rows.push_back({device.name, device.available ? "yes" : "no: " + device.reason,
                    device.memory_bytes
                        ? fmt::format("{:.1f} GB", static_cast<double>(device.memory_bytes) * 1e-9)
                        : "-",
                    device.ops.empty() ? "-" : device.ops});
  }
  print(json ? dumped(list) : engine::aligned_table(rows));
  return 0;
}

}  // namespace app
