// The devices that the window offers: the CPU immediately, GPUs as soon as their driver has listed
// them. A separate thread queries the driver, so that users of the CPU do not wait for it.
#pragma once

#include <functional>
#include <future>
#include <vector>

namespace engine {
struct DeviceInfo;
}
namespace ui {
struct Catalog;
}

namespace app {

/// Lists the devices.
class WindowDevices {
 public:
  /// Returns all devices, the CPU first.
  using List = std::function<std::vector<engine::DeviceInfo>()>;

  /// Adds the CPU to the catalog and starts to list the other devices with engine::list_devices.
  /// @param catalog  outlives this object. A device has the same index in `devices` and `health`
  explicit WindowDevices(ui::Catalog& catalog);
  /// The same with another function to list devices, which is called on another thread.
  WindowDevices(ui::Catalog& catalog, List list);
  /// Waits for the driver. If it does not respond within EngineThread::kPatience, ends the process
  /// as EngineThread::end_within() does.
  ~WindowDevices();
  WindowDevices(const WindowDevices&) = delete;
  WindowDevices& operator=(const WindowDevices&) = delete;

  /// Adds the other devices to the catalog if they have been listed and were not added before. Does
  /// not wait. @return  true if it added them
  bool take();
  /// Waits until the other devices are listed and adds them.
  void wait_and_take();

 private:
  ui::Catalog& catalog_;
  std::future<std::vector<engine::DeviceInfo>> listed_;  // not valid() after the devices were added
};

}  // namespace app
