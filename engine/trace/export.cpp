#include "engine/trace/export.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/describe.h"
#include "engine/trace/json_writer.h"
#include "engine/trace/lane.h"
#include "engine/trace/perfetto/perfetto_writer.h"
#include "engine/trace/run_trace.h"
#include "engine/trace/schedule.h"

namespace engine {
namespace {

/// Writes the schedule of SEED's runs as a separate process.
void write_schedule(const Timeline& timeline, int pid, TraceReport& report, TraceWriter& writer) {
  std::vector<ScheduleLane> lanes = schedule_lanes(timeline.runs());
  if (lanes.empty()) return;
  writer.process(pid, "schedule of all runs");
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const LaneChanges changes = sort_and_nest(lanes[i].items);
    report.n_nudges += changes.n_nudges;
    report.n_left_out += changes.n_left_out;
    const int tid = static_cast<int>(i) + 1;
    if (!lanes[i].items.empty()) writer.lane(pid, tid, tid, lanes[i].name);
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    for (std::size_t k = 0; k < lanes[i].items.size(); k++)
      writer.event(pid, static_cast<int>(i) + 1, lanes[i].items, k);
  }
}

[[noreturn]] void throw_cancelled() {
  throw Error(ErrorCode::Cancelled, "the trace was not exported: cancelled");
}

void write_runs(const Timeline& timeline,
                const TraceOptions& options,
                TraceReport& report,
                TraceWriter& writer) {
  int pid = 0;
  const double n_runs = options.run ? 1 : static_cast<double>(timeline.runs().size());
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    ++pid;
    const auto progress = [&options, pid, n_runs](double share) {
      if (options.progress && !options.progress((pid - 1 + share) / n_runs)) throw_cancelled();
    };
    write_run(timeline, run, options, pid, report, writer, progress);
  }
  if (!options.run && selects_all_steps(options) && !options.own_compute)
    write_schedule(timeline, pid + 1, report, writer);
  writer.finish();
}

}  // namespace

std::string TraceReport::summary() const {
  return fmt::format(
      "{} events: {} slices, {} block ends, {} instants, {} counters, {} flow ends, {} names; "
      "{} starts moved by 0.001 us, {} slices left out; {} bytes",
      n_events, n_slices, n_async, n_instants, n_counters, n_flows, n_metadata, n_nudges,
      n_left_out, n_bytes);
}

namespace {

/// The numbers of the runs, at most the first few.
std::string runs_words(const Timeline& timeline) {
  constexpr std::size_t kMostNamed = 12;
  const std::size_t n = timeline.runs().size();
  if (n == 0) return "a recording with runs; this one has none";
  std::string words;
  for (std::size_t i = 0; i < std::min(n, kMostNamed); ++i)
    words += fmt::format("{}{}", i > 0 ? ", " : "", timeline.runs()[i].id());
  return n > kMostNamed ? fmt::format("one of {} runs ({}, ...)", n, words) : "one of " + words;
}

/// "run 1 has steps 0 to 39".
std::string steps_words(const RunRecord& run) {
  std::optional<StepId> first;
  StepId last = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepHead step = run.steps.head(i);
    if (!step.complete) continue;
    if (!first) first = step.begun.step;
    last = step.begun.step;
  }
  return first ? fmt::format("run {} has steps {} to {}", run.id(), *first, last)
               : fmt::format("run {} has no steps", run.id());
}

bool has_step_within(const RunRecord& run, StepId first, StepId last) {
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepHead step = run.steps.head(i);
    if (step.complete && step.begun.step >= first && step.begun.step <= last) return true;
  }
  return false;
}

/// @throws Error(Usage)  for a run or a range of steps that the timeline does not have
void check_selection(const Timeline& timeline, const TraceOptions& options) {
  if (options.run && !timeline.run(*options.run)) {
    throw Error(ErrorCode::Usage,
                fmt::format("run: found {}, expected {}", *options.run, runs_words(timeline)));
  }
  if (options.first_step > options.last_step) {
    throw Error(ErrorCode::Usage,
                fmt::format("steps: found first {} and last {}, expected the first no later than "
                            "the last",
                            options.first_step, options.last_step));
  }
  if (selects_all_steps(options)) return;
  const RunRecord* longest = nullptr;
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    if (has_step_within(run, options.first_step, options.last_step)) return;
    if (!longest || run.steps.size() > longest->steps.size()) longest = &run;
  }
  throw Error(ErrorCode::Usage,
              fmt::format("steps: found none from {} to {}, expected some; {}", options.first_step,
                          options.last_step,
                          longest ? steps_words(*longest) : "the recording has no runs"));
}

}  // namespace

std::optional<TraceFormat> trace_format_of(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  if (path.ends_with(".pftrace")) return TraceFormat::Perfetto;
  return path.ends_with(".json") ? std::optional(TraceFormat::Json) : std::nullopt;
}

bool selects_all_steps(const TraceOptions& options) {
  return options.first_step <= 0 && options.last_step == TraceOptions{}.last_step;
}

TraceReport write_trace(const Timeline& timeline,
                        const TraceOptions& options,
                        const std::function<void(std::string_view)>& write) {
  check_selection(timeline, options);
  TraceReport report;
  const char* clock = options.own_compute ? "own_compute" : "engine_steady";
  std::unique_ptr<TraceWriter> writer;
  if (options.format == TraceFormat::Perfetto)
    writer = std::make_unique<PerfettoWriter>(report, clock, write);
  else
    writer = std::make_unique<JsonTraceWriter>(report, clock, write);
  write_runs(timeline, options, report, *writer);
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    for (const PayloadDropped& drop : run.dropped) {
      report.notices.push_back(fmt::format("run {}: {}", run.id(), describe(drop)));
    }
  }
  if (report.n_events > options.warn_above) {
    report.notices.push_back(fmt::format(
        "{} events are more than viewers take well ({}); export a range of steps or one "
        "run instead",
        report.n_events, options.warn_above));
  }
  return report;
}

namespace {

/// Reads the file again and checks that it holds the events written and keeps the profile's rules.
/// @throws Error(Cancelled)  options.progress returned false
void read_again(const TraceReport& report, const TraceOptions& options) {
  const TraceCheck found =
      check_trace(report.path, [&] { return options.progress && !options.progress(1); });
  ensure(found.problems.empty(), "an exported trace violates its own profile");
  ensure(found.n_events == report.n_events && found.n_slices == report.n_slices &&
             found.n_counters == report.n_counters && found.n_flows == report.n_flows,
         "an exported trace differs when it is read again");
}

}  // namespace

TraceReport export_trace(const Timeline& timeline,
                         const std::string& path,
                         const TraceOptions& options) {
  OutputFile file(path, options.write, options.if_exists);
  TraceOptions chosen = options;
  chosen.format = trace_format_of(path).value_or(TraceFormat::Json);
  TraceReport report =
      write_trace(timeline, chosen, [&](std::string_view bytes) { file.write(bytes); });
  file.finish();
  report.n_bytes = file.n_bytes();
  report.path = file.path();
  try {
    read_again(report, options);
  } catch (const Error& error) {
    std::error_code ignored;
    std::filesystem::remove(report.path, ignored);
    if (error.code() == ErrorCode::Cancelled) throw_cancelled();
    throw;
  }
  return report;
}

}  // namespace engine
