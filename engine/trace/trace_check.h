// The result of checking a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace engine {

/// A violated rule.
struct TraceProblem {
  std::string rule;         // the rule's name in docs/contracts.md: "ts-missing"
  std::int64_t event = -1;  // index in traceEvents; -1: the file as a whole
  std::string what;         // text "found X, expected Y"
};

/// Counts of events by kind, summed over the lanes of all processes that have the same name.
struct TraceLane {
  std::int64_t n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0, n_flows = 0;
};

/// The result of a check: counts, metadata and problems.
struct TraceCheck {
  std::int64_t n_events = 0;
  std::int64_t n_metadata = 0, n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0;
  std::int64_t n_flows = 0, n_other = 0;
  std::int64_t n_processes = 0, n_lanes = 0;
  std::map<std::string, TraceLane> lanes;      // by name; "": lanes without a name
  double last_us = 0;                          // the latest end of an event
  std::string profile;                         // from the metadata; empty if absent
  std::map<std::string, std::string> weights;  // by model name: hash of its weights, if both known
  std::int64_t n_problems = 0;
  std::vector<TraceProblem> problems;  // the first kMaxTraceProblems of them
  /// True if no rule is violated.
  bool ok() const { return n_problems == 0; }
};

inline constexpr std::size_t kMaxTraceProblems = 100;

}  // namespace engine
