// The window's list of devices while a driver responds slowly.
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/window/devices.h"
#include "engine/store/model_store.h"
#include "ui/shell/catalog.h"

namespace {

std::vector<std::string> names(const ui::Catalog& catalog) {
  std::vector<std::string> all;
  for (const ui::CatalogDevice& device : catalog.devices) all.push_back(device.name);
  return all;
}
std::vector<std::string> health(const ui::Catalog& catalog) {
  std::vector<std::string> all;
  for (const ui::HealthLine& line : catalog.health) all.push_back(line.name + ": " + line.value);
  return all;
}

// CU06.
TEST(WindowDevices, the_cpu_is_listed_before_the_driver_answers) {
  const std::vector<engine::DeviceInfo> all = {
      engine::cpu_info(),
      {.name = "cuda:0", .kind = "cuda", .available = true, .ops = "cuda on a GPU"},
      {.name = "cuda:1", .kind = "cuda", .reason = "it is too old"}};
  std::promise<void> answers;
  ui::Catalog catalog;
  catalog.health.push_back({.name = "models", .value = "3 ready to run"});
  app::WindowDevices devices(catalog, [&] {
    answers.get_future().wait();
    return all;
  });
  const std::string cpu = "CPU: ready, computes with " + all[0].ops;
  for (int frame = 0; frame < 3; frame++) {
    EXPECT_FALSE(devices.take());
    EXPECT_EQ(names(catalog), (std::vector<std::string>{"cpu"}));
    EXPECT_EQ(health(catalog), (std::vector<std::string>{cpu, "models: 3 ready to run"}));
  }
  answers.set_value();
  devices.wait_and_take();
  EXPECT_EQ(names(catalog), (std::vector<std::string>{"cpu", "cuda:0", "cuda:1"}));
  EXPECT_EQ(health(catalog),
            (std::vector<std::string>{cpu, "GPU (cuda:0): ready, computes with cuda on a GPU",
                                      "GPU (cuda:1): not used: it is too old",
                                      "models: 3 ready to run"}));
  EXPECT_EQ(catalog.devices[1].title, "cuda:0, cuda on a GPU");
  EXPECT_EQ(catalog.devices[2].unavailable, "it is too old");
  EXPECT_FALSE(catalog.health[2].needed);
  EXPECT_FALSE(devices.take()) << "already taken";
}

TEST(WindowDevices, messages_of_drivers_are_one_plain_line_with_details) {
  const auto line_of = [](const std::string& reason) {
    ui::Catalog catalog;
    app::WindowDevices devices(catalog, [&] {
      return std::vector<engine::DeviceInfo>{engine::cpu_info(),
                                             {.name = "cuda:0", .reason = reason}};
    });
    devices.wait_and_take();
    return catalog.health.back();
  };
  const std::string none =
      "cudaGetDeviceCount: cudaErrorInsufficientDriver (CUDA driver version is insufficient)";
  EXPECT_EQ(line_of(none).value, "not used: no NVIDIA driver was found");
  EXPECT_EQ(line_of(none).details, none);
  const std::string old = "the driver is for CUDA 12.0 (cudaGetDeviceCount: cudaErrorX (y))";
  EXPECT_EQ(line_of(old).value, "not used: the driver is for CUDA 12.0");
  EXPECT_EQ(line_of("cudaSetDevice: cudaErrorUnknown (unknown error)").value,
            "not used: its driver reports an error");
  EXPECT_EQ(line_of("no NVIDIA GPU was found").value, "not used: no NVIDIA GPU was found");
  EXPECT_EQ(line_of("no NVIDIA GPU was found").details, "");
}

TEST(WindowDevices, equal_those_of_decoscope_devices) {
  ui::Catalog catalog;
  app::WindowDevices devices(catalog);
  devices.wait_and_take();
  std::vector<std::string> listed;
  for (const engine::DeviceInfo& device : engine::list_devices()) listed.push_back(device.name);
  EXPECT_EQ(names(catalog), listed);
}

TEST(WindowDevices, a_driver_that_never_answers_does_not_block_closing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto close_window = [] {
    std::promise<void> never;
    ui::Catalog catalog;
    const app::WindowDevices devices(catalog, [&] {
      never.get_future().wait();
      return std::vector<engine::DeviceInfo>();
    });
  };
  EXPECT_EXIT(close_window(), testing::ExitedWithCode(5), "the GPU's driver did not respond");
}

}  // namespace
