// Checks a Chrome trace against every rule of docs/contracts.md, without knowing how it was
// written: what Perfetto drops or refuses, what chrome://tracing and Tracy cannot read, and what
// our profile PD-1 adds.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace engine {

struct TraceProblem {
  std::string rule;         // a short name, as docs/contracts.md lists them: "ts-missing"
  std::int64_t event = -1;  // index in traceEvents; -1: of the whole file
  std::string what;         // found X, expected Y
};

/// How many events of each kind there are on lanes of one name, those of all processes together.
struct TraceLane {
  std::int64_t n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0, n_flows = 0;
};

struct TraceCheck {
  std::int64_t n_events = 0;
  std::int64_t n_metadata = 0, n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0;
  std::int64_t n_flows = 0, n_other = 0;
  std::int64_t n_processes = 0, n_lanes = 0;
  std::map<std::string, TraceLane> lanes;      // by name; "": without one
  double last_us = 0;                          // the latest end
  std::string profile;                         // of the metadata; empty: not said
  std::map<std::string, std::string> weights;  // hash by model's name, where the metadata says both
  std::int64_t n_problems = 0;
  std::vector<TraceProblem> problems;  // the first kMaxTraceProblems of them
  bool ok() const { return n_problems == 0; }
};

inline constexpr std::size_t kMaxTraceProblems = 100;

/// Reads a file, unpacking it if its name ends in ".gz" and not otherwise.
/// @throws Error(Resources)  it cannot be read
/// @throws Error(BadInput)  it is not a regular file
/// @throws Error(Cancelled)  `stop`, asked now and then, said true
TraceCheck check_trace(const std::string& path, const std::function<bool()>& stop = {});

/// The same of text in memory.
TraceCheck check_trace_text(const std::string& text);

}  // namespace engine
