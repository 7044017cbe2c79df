// A line of training.jsonl, the log that every training writes beside its checkpoint: one JSON
// object for each report. The log can be read while the training runs.
//   {"step":10,"tokens":40960,"seconds":2.5,"seconds_left":60,"tokens_per_second":16000,
//    "lr":0.0004,"gradient_norm":1.2,"loss":3.1,"losses":{"completion":2.9},"probes":{}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine {

/// Figures by name, in the order of display.
using NamedFigures = std::vector<std::pair<std::string, double>>;

/// The progress of a training after a step.
struct TrainingReport {
  std::int64_t step = 0;    // number of updates
  std::int64_t tokens = 0;  // training rows processed
  // duration of the training, including the time before it was resumed
  double seconds = 0;
  double seconds_left = 0;       // estimate
  double tokens_per_second = 0;  // speed in the last steps
  double lr = 0;
  double gradient_norm = 0;  // before clipping
  double loss = 0;           // the loss that is minimised; mean over this step
  NamedFigures losses;       // parts of the loss in nats per token, unless the name says otherwise
  NamedFigures probes;  // measured on held-out texts: "head 1 top-1", 0 to 1; empty between probes

  bool operator==(const TrainingReport&) const = default;
};

/// One line, without the newline. A number that is not finite is written as null, and null is read
/// as 0.
std::string to_json_line(const TrainingReport& report);
/// Parses one line.
/// @param where  "file:line" for messages
/// @throws Error(BadInput)  naming the field
TrainingReport training_report_from(std::string_view line, const std::string& where);

/// All reports of a log, oldest first. A last line without a line end is ignored.
/// @throws Error(BadInput)   for a line that is not a report, or if `path` is not a regular file
/// @throws Error(Resources)  if it cannot be read
std::vector<TrainingReport> read_training_reports(const std::string& path);

}  // namespace engine
