// The devices that the window can choose: the CPU from the start on, GPUs once their driver has
// said what there is. It is asked on a thread of its own, so that nobody waits for it who computes
// on the CPU.
#pragma once

#include <functional>
#include <future>
#include <vector>

#include "engine/store/model_store.h"
#include "ui/shell/catalog.h"

namespace app {

class WindowDevices {
 public:
  using List = std::function<std::vector<engine::DeviceInfo>()>;

  /// Puts the CPU into the catalog and asks for the others.
  /// @param catalog  outlives it; its health list begins with its devices
  /// @param list     tells all devices, the CPU first; called on another thread
  explicit WindowDevices(ui::Catalog& catalog, List list = engine::list_devices);
  /// Where the driver has not answered in the time that a window which closes gives the engine,
  /// ends the whole process, as EngineThread::end_within() does.
  ~WindowDevices();
  WindowDevices(const WindowDevices&) = delete;
  WindowDevices& operator=(const WindowDevices&) = delete;

  /// Puts the others into the catalog if they have been told, once; waits for nothing.
  /// @return  whether it did
  bool take();
  /// The same when they have been told.
  void wait_and_take();

 private:
  ui::Catalog& catalog_;
  std::future<std::vector<engine::DeviceInfo>> told_;  // not valid: they were taken
};

}  // namespace app
