#include "engine/base/measure/machine_load.h"

#include <array>
#include <cstdlib>
#include <fstream>

namespace engine {

ProcessorTicks processor_ticks(const std::string& path) {
  std::ifstream in(path);
  std::string name;
  // user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of user and nice.
  std::array<std::int64_t, 8> ticks{};
  if (!(in >> name) || name != "cpu") return {};
  for (std::int64_t& value : ticks)
    if (!(in >> value)) return {};
  ProcessorTicks sum{0, ticks.back()};
  for (const std::int64_t value : ticks) sum.total += value;
  return sum;
}

double stolen_percent(const ProcessorTicks& before, const ProcessorTicks& after) {
  if (before.total < 0 || after.total <= before.total) return -1;
  return 100.0 * static_cast<double>(after.stolen - before.stolen) /
         static_cast<double>(after.total - before.total);
}

double load_average() {
  double average = 0;
  return getloadavg(&average, 1) == 1 ? average : -1;
}

}  // namespace engine
