// The figures of `compare --repeat N`: median and quartiles of a lane's repeats, and the load of the
// machine while the lane ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace app {

/// One repeat of a lane: sums over its prompts.
struct RepeatSums {
  double tokens = 0, steps = 0, decode_ms = 0;
  // of the runs that no bound ended, and of plain decoding for the same prompts
  double whole_decode_ms = 0, ar_decode_ms = 0;
};

/// The load of the machine over several periods.
class LoadOverTime {
 public:
  void begin();  ///< begins a period
  void end();    ///< ends it
  /// Stolen share of the processor time, in percent; -1: unknown.
  double stolen_percent() const;
  /// Mean load average; -1: unknown.
  double load_average() const;

 private:
  // clock ticks of all processors; -1: unknown
  std::int64_t begun_total_ = -1, begun_stolen_ = -1;
  std::int64_t total_ = 0, stolen_ = 0;
  double sum_of_loads_ = 0;
  int n_ = 0;
};

/// A lane and its repeats.
struct RepeatedLane {
  std::string name;
  std::vector<RepeatSums> repeats;
  double stolen_percent = -1, load_average = -1;
};

/// Adds the sums of further prompts; `sums` may be empty.
void add(std::vector<RepeatSums>& sums, const std::vector<RepeatSums>& more);
/// The member `repeats` of a lane's summary (docs/contracts.md).
nlohmann::json repeats_json(const RepeatedLane& lane);
/// A table with a line for each lane: "87.1 (85.0 to 88.2)".
std::string repeats_table(const std::vector<RepeatedLane>& lanes);

}  // namespace app
