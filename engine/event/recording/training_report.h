// A line of training.jsonl, the log that every training run writes beside its checkpoint: one JSON
// object a report, for the window, for plots and for people. A run that is under way is read like
// one that is over.
//   {"step":10,"tokens":40960,"seconds":2.5,"seconds_left":60,"tokens_per_second":16000,
//    "lr":0.0004,"gradient_norm":1.2,"loss":3.1,"losses":{"completion":2.9},"probes":{}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine {

/// Figures by name, in the order in which they shall be shown.
using NamedFigures = std::vector<std::pair<std::string, double>>;

struct TrainingReport {
  std::int64_t step = 0;         // updates so far
  std::int64_t tokens = 0;       // rows that were learnt from, so far
  double seconds = 0;            // of training so far, resumed parts included
  double seconds_left = 0;       // about
  double tokens_per_second = 0;  // of the last steps
  double lr = 0;
  double gradient_norm = 0;  // before clipping
  double loss = 0;           // what is minimised, mean of this step
  NamedFigures losses;       // its parts, nats a token unless the name says otherwise: "completion"
  NamedFigures probes;  // measured on texts not learnt from: "head 1 top-1", 0 to 1; often none

  bool operator==(const TrainingReport&) const = default;
};

/// One line, without the newline. What is no finite number is null, and read back 0.
std::string to_json_line(const TrainingReport& report);
/// @param where  "file:line" for messages
/// @throws Error(BadInput)  naming the field
TrainingReport training_report_from(std::string_view line, const std::string& where);

/// All reports of a log, oldest first. A last line that has no end yet is left for the next look.
/// @throws Error(BadInput)   for a line that is no report, or if `path` is not a regular file
/// @throws Error(Resources)  if it cannot be read
std::vector<TrainingReport> read_training_reports(const std::string& path);

}  // namespace engine
