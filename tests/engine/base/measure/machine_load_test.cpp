// Stolen processor time from a file in the format of /proc/stat.
#include <fstream>

#include <gtest/gtest.h>

#include "engine/base/measure/machine_load.h"

namespace engine {
namespace {

ProcessorTicks ticks_of(const std::string& text) {
  const std::string path = testing::TempDir() + "/stat";
  std::ofstream(path) << text;
  return processor_ticks(path);
}

TEST(MachineLoad, stolen_time_is_a_share_of_all_processor_time) {
  // guest (9) is a part of user (10), so it does not count again
  const ProcessorTicks before = ticks_of("cpu  10 0 5 80 1 0 1 3 9 0\ncpu0 1 2 3\n");
  EXPECT_EQ(before.total, 100);
  EXPECT_EQ(before.stolen, 3);
  const ProcessorTicks after = ticks_of("cpu  20 0 10 155 2 0 2 11 18 0\n");
  EXPECT_EQ(after.total, 200);
  EXPECT_DOUBLE_EQ(stolen_percent(before, after), 8);
}

TEST(MachineLoad, an_unreadable_file_is_unknown) {
  EXPECT_EQ(ticks_of("intr 5 6 7").total, -1);
  EXPECT_EQ(ticks_of("cpu  10 0 5").total, -1);
  EXPECT_EQ(processor_ticks("/no/such/file").total, -1);
  EXPECT_EQ(stolen_percent({}, {100, 3}), -1);
  EXPECT_EQ(stolen_percent({100, 3}, {100, 3}), -1) << "no tick passed";
}

TEST(MachineLoad, this_machine_has_both) {
  EXPECT_GE(load_average(), 0);
  const ProcessorTicks now = processor_ticks();
  EXPECT_GT(now.total, 0);
  EXPECT_GE(now.stolen, 0);
}

}  // namespace
}  // namespace engine
