#include "engine/trace/tool.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/trace/describe.h"
#include "engine/base/output_file.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/serialise.h"
#include "engine/base/table.h"
#include "engine/base/text.h"

namespace engine {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() > ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool is_trace_name(const std::string& path) {
  return ends_with(path, ".json") || ends_with(path, ".json.gz");
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// A recording's timeline and how often each kind of event occurs, in all and of each decoder.
struct Opened {
  Timeline timeline;
  RecordingReport report;
  std::map<std::string, std::int64_t> kinds;
  std::map<std::string, std::map<std::string, std::int64_t>> kinds_of_decoders;
};

[[noreturn]] void give_up(const std::string& path, const char* left) {
  throw Error(ErrorCode::Cancelled,
              fmt::format("{}: cancelled; {}", escaped(path), left));
}

/// Reads a recording to its end. @throws Error(Cancelled)
RecordingReport read_whole(const std::string& path, EventSink& into, const StopAsked& stop) {
  bool stopped = false;
  RecordingReport report = read_recording(path, into, {}, [&](double) {
    stopped = stopped || (stop && stop());
    return !stopped;
  });
  if (stopped) give_up(path, "it was not read whole");
  return report;
}

Opened open_recording(const std::string& path, const StopAsked& stop) {
  Opened opened;
  class Into : public EventSink {
   public:
    explicit Into(Opened& o) : opened_(o) {}
    void push(Event event) override {
      const std::string kind = kind_name(event.index());
      ++opened_.kinds[kind];
      opened_.timeline.apply(event);
      if (const RunRecord* run = opened_.timeline.run(run_of(event)))
        ++opened_.kinds_of_decoders[run->started.decoder][kind];
    }

   private:
    Opened& opened_;  // outlives the reading
  } into(opened);
  // A tool reads one file and ends: nothing has to be let go.
  opened.timeline.set_payload_budget(std::numeric_limits<std::size_t>::max());
  opened.report = read_whole(path, into, stop);
  return opened;
}

/// How a run ended, in a word.
const char* state_of(const RunRecord& run) {
  if (run.failed) return "failed";
  if (!run.finished) return "cut off";
  return run.finished->stop_reason == "stopped" ? "cancelled" : "finished";
}

Json json_of(const Timeline& timeline, const RunRecord& run) {
  const ModelLoaded* model = timeline.model(run.started.model);
  Json json{{"run", run.id()}, {"decoder", as_utf8(run.started.decoder)}};
  if (model) json["model"] = as_utf8(model->name), json["scale"] = as_utf8(model->scale);
  if (model) json["dtype"] = as_utf8(model->dtype), json["device"] = as_utf8(model->device);
  if (model && !model->weights_hash.empty()) json["weights_hash"] = as_utf8(model->weights_hash);
  if (const ModelLoaded* draft = timeline.model(run.started.draft))
    json["draft"] = as_utf8(draft->name);
  json["race"] = run.started.race;
  json["seed"] = run.started.seed;
  json["prompt_tokens"] = run.started.prompt_tokens.size();
  json["approximate_prompt_tokens"] = run.started.n_approximate;
  json["steps"] = run.totals.n_steps;
  json["tokens"] = run.totals.n_tokens;
  json["tokens_per_step"] = run.tokens_per_step();
  json["tokens_per_second"] = run.tokens_per_second();
  json["decode_ms"] = static_cast<double>(run.decode_compute()) / 1e6;
  const std::optional<double> speedup = timeline.speedup(run);
  json["speedup"] = speedup ? Json(*speedup) : Json(nullptr);
  json["payload_dropped"] = Json::array();
  for (const PayloadDropped& drop : run.dropped) {
    json["payload_dropped"].push_back({{"kind", as_utf8(drop.kind)},
                                       {"first_step", drop.first_step},
                                       {"last_step", drop.last_step},
                                       {"bytes", drop.n_bytes}});
  }
  json["state"] = state_of(run);
  if (run.finished) json["stop_reason"] = as_utf8(run.finished->stop_reason);
  if (run.finished && run.finished->stop_reason == "stop_string")
    json["stop_string"] = as_utf8(run.finished->stop_string);
  return json;
}

/// Trees of thoughts; one without an answer was stopped or cut off.
Json searches_json(const Timeline& timeline) {
  Json list = Json::array();
  for (const SearchRecord& search : timeline.searches()) {
    const bool ended = search.ended && !search.ended->stopped;
    list.push_back({{"search", search.begun.search},
                    {"id", as_utf8(search.begun.id)},
                    {"task", as_utf8(search.begun.task)},
                    {"thoughts", search.thoughts.size()},
                    {"answer", ended ? Json(as_utf8(search.ended->answer)) : Json(nullptr)},
                    {"correct", ended ? Json(search.ended->correct) : Json(nullptr)}});
  }
  return list;
}

using Rows = std::vector<std::vector<std::string>>;

/// Runs told in one line: one run, or in a long recording all of a decoder.
using Lane = std::vector<const RunRecord*>;

constexpr std::size_t kMaxRunsTold = 12;

std::vector<Lane> lanes_by_decoder(const Timeline& timeline) {
  std::vector<Lane> lanes;
  for (const RunRecord& run : timeline.runs()) {
    const auto of_its_decoder = [&](const Lane& lane) {
      return lane.front()->started.decoder == run.started.decoder;
    };
    auto found = std::find_if(lanes.begin(), lanes.end(), of_its_decoder);
    if (found == lanes.end()) found = lanes.insert(lanes.end(), Lane());
    found->push_back(&run);
  }
  return lanes;
}

/// How the runs of a lane ended: "finished", "19 finished, 1 cut off".
std::string states_of(const Lane& lane) {
  if (lane.size() == 1) return state_of(*lane.front());
  std::map<std::string, int> n_of;
  for (const RunRecord* run : lane) ++n_of[state_of(*run)];
  std::string words;
  for (const char* state : {"finished", "cancelled", "failed", "cut off"}) {
    if (n_of[state] == 0) continue;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", n_of[state], state);
  }
  return words;
}

/// Its sums; the speed-up is that of the runs together where each has one.
std::vector<std::string> row_of(const Timeline& timeline, const Lane& lane, bool each) {
  double steps = 0, tokens = 0, own_ns = 0, baseline_ns = 0;
  bool all_compared = true;
  for (const RunRecord* run : lane) {
    const auto ns = static_cast<double>(run->decode_compute());
    const std::optional<double> speedup = timeline.speedup(*run);
    steps += run->totals.n_steps;
    tokens += static_cast<double>(run->totals.n_tokens);
    own_ns += ns;
    baseline_ns += speedup.value_or(0) * ns;
    all_compared = all_compared && speedup.has_value();
  }
  const std::size_t number = each ? lane.front()->id() : lane.size();
  return {printable(lane.front()->started.decoder),
          fmt::format("{}", number),
          fmt::format("{:.0f}", steps),
          fmt::format("{:.0f}", tokens),
          steps > 0 ? fmt::format("{:.2f}", tokens / steps) : "-",
          own_ns > 0 ? fmt::format("{:.1f}", tokens / own_ns * 1e9) : "-",
          all_compared && own_ns > 0 ? fmt::format("{:.2f}x", baseline_ns / own_ns) : "-",
          states_of(lane)};
}

/// A line a run; where they are many, a line a decoder.
std::string runs_table(const Timeline& timeline, const std::vector<Lane>& by_decoder) {
  const bool each = timeline.runs().size() <= kMaxRunsTold;
  Rows rows{{"decoder", each ? "run" : "runs", "steps", "tokens", "tokens/step", "tokens/s",
             "speedup", "ended"}};
  if (each) {
    for (const RunRecord& run : timeline.runs()) rows.push_back(row_of(timeline, {&run}, true));
  } else {
    for (const Lane& lane : by_decoder) rows.push_back(row_of(timeline, lane, false));
  }
  return aligned_table(rows) + (each ? "" : "--json lists every run\n");
}

/// How often each kind of event occurs, in all and for each decoder.
std::string kinds_table(const Opened& opened, const std::vector<Lane>& by_decoder) {
  Rows rows{{"events", "all"}};
  for (const Lane& lane : by_decoder)
    rows.front().push_back(printable(lane.front()->started.decoder));
  for (const auto& [kind, n] : opened.kinds) {
    rows.push_back({kind, fmt::format("{}", n)});
    for (const Lane& lane : by_decoder) {
      const auto& kinds = opened.kinds_of_decoders.at(lane.front()->started.decoder);
      const auto found = kinds.find(kind);
      rows.back().push_back(found == kinds.end() ? "" : fmt::format("{}", found->second));
    }
  }
  return aligned_table(rows);
}

/// What a recording holds, for people.
std::string recording_text(const std::string& path, const Opened& opened) {
  const RecordingReport& report = opened.report;
  const Timeline& timeline = opened.timeline;
  std::string text = fmt::format("{}: recording, version {}, by decoscope {}, {} bytes\n",
                                 escaped(path), report.version,
                                 printable(report.program_version), report.file_bytes);
  text += fmt::format("{} in {:.3f} s, {}\n", counted(report.n_events, "event"),
                      static_cast<double>(timeline.last_event()) / 1e9,
                      counted(std::ssize(timeline.runs()), "run"));
  for (const auto& [id, model] : timeline.models()) {
    text += fmt::format("model {} at {}, {} on {}\n", printable(model.name), printable(model.scale),
                        printable(model.dtype), printable(model.device));
  }
  if (const std::int64_t n = std::ssize(timeline.searches()); n > 0) {
    std::int64_t n_thoughts = 0;
    for (const SearchRecord& search : timeline.searches())
      n_thoughts += std::ssize(search.thoughts);
    text += fmt::format("{} of thoughts, {}\n", counted(n, "tree"), counted(n_thoughts, "thought"));
  }
  const std::vector<Lane> by_decoder = lanes_by_decoder(timeline);
  if (!by_decoder.empty()) text += "\n" + runs_table(timeline, by_decoder);
  if (!opened.kinds.empty()) text += "\n" + kinds_table(opened, by_decoder);
  return text;
}

/// A notice for a model that has other weights here.
void compare_weights(const std::string& model,
                     const std::string& hash,
                     const WeightsHere& weights_here,
                     std::vector<std::string>& notices) {
  const std::optional<std::string> here = weights_here ? weights_here(model) : std::nullopt;
  if (!here) return;
  if (auto sentence = other_weights(model, hash, "the model", *here)) {
    notices.push_back(std::move(*sentence));
  }
}

/// What is wrong with a recording, or with believing it here.
std::vector<std::string> faults_of(const Opened& opened, const WeightsHere& weights_here) {
  std::vector<std::string> faults = opened.report.notices();
  const Timeline& timeline = opened.timeline;
  if (timeline.n_inconsistent() > 0) {
    faults.push_back(fmt::format("{} events contradict others and are kept out of statistics",
                                 timeline.n_inconsistent()));
    for (const std::string& why : timeline.inconsistencies()) {
      if (faults.size() < 20) faults.push_back(printable(why));
    }
  }
  for (const auto& [id, model] : timeline.models()) {
    compare_weights(model.name, model.weights_hash, weights_here, faults);
  }
  return faults;
}

/// Told, but no fault of the file: what was recorded is whole.
std::vector<std::string> drops_of(const Timeline& timeline) {
  std::vector<std::string> drops;
  for (const RunRecord& run : timeline.runs()) {
    for (const PayloadDropped& drop : run.dropped) {
      drops.push_back(fmt::format("run {}: {}", run.id(), describe(drop)));
    }
  }
  return drops;
}

Json json_of(const std::string& path,
             const Opened& opened,
             const std::vector<std::string>& notices) {
  const RecordingReport& report = opened.report;
  const Timeline& timeline = opened.timeline;
  Json json{{"path", as_utf8(path)},
            {"type", "recording"},
            {"version", report.version},
            {"program_version", as_utf8(report.program_version)},
            {"unix_seconds", report.unix_seconds},
            {"bytes", report.file_bytes},
            {"events", report.n_events},
            {"kinds", opened.kinds},
            {"seconds", static_cast<double>(timeline.last_event()) / 1e9},
            {"closed", report.closed},
            {"incomplete_bytes", report.incomplete_bytes},
            {"damaged", report.n_damaged},
            {"unknown_kinds", report.n_unknown_kinds},
            {"unknown_fields", report.n_unknown_fields},
            {"inconsistent", timeline.n_inconsistent()},
            {"runs", Json::array()},
            {"notices", notices}};
  for (const RunRecord& run : timeline.runs()) json["runs"].push_back(json_of(timeline, run));
  if (!timeline.searches().empty()) json["searches"] = searches_json(timeline);
  return json;
}

TraceAnswer recording_answer(const std::string& path,
                             bool judge,
                             const WeightsHere& weights_here,
                             const StopAsked& stop) {
  const Opened opened = open_recording(path, stop);
  const std::vector<std::string> faults = faults_of(opened, weights_here);
  const std::vector<std::string> drops = drops_of(opened.timeline);
  TraceAnswer answer;
  answer.ok = !judge || faults.empty();
  const std::string name = escaped(path);
  if (!judge) {
    answer.text = recording_text(path, opened);
    if (!faults.empty() || !drops.empty()) answer.text += "\n";
  } else if (answer.ok) {
    answer.text =
        fmt::format("{}: valid: a recording of {} events and {}\n", name, opened.report.n_events,
                    counted(std::ssize(opened.timeline.runs()), "run"));
  } else {
    answer.text = name + ": not whole\n";
  }
  for (const std::string& fault : faults) answer.text += (judge ? "  " : "note: ") + fault + "\n";
  for (const std::string& drop : drops) answer.text += "note: " + drop + "\n";

  std::vector<std::string> notices = faults;
  notices.insert(notices.end(), drops.begin(), drops.end());
  Json json = json_of(path, opened, notices);
  if (judge) json["ok"] = answer.ok;
  answer.json = dumped(json);
  return answer;
}

constexpr std::size_t kMaxLanesTold = 20;

/// A line a name of lanes: how many events of each kind are there.
std::string trace_lanes_table(const TraceCheck& check) {
  Rows rows{{"lane", "slices", "async ends", "instants", "counters", "flow ends"}};
  const auto add = [&](const std::string& name, const TraceLane& lane) {
    rows.push_back({name});
    for (const std::int64_t n :
         {lane.n_slices, lane.n_async, lane.n_instants, lane.n_counters, lane.n_flows})
      rows.back().push_back(n > 0 ? fmt::format("{}", n) : "");
  };
  add("all", {check.n_slices, check.n_async, check.n_instants, check.n_counters, check.n_flows});
  const bool each = check.lanes.size() <= kMaxLanesTold;
  for (const auto& [name, lane] : check.lanes) {
    if (each) add(name.empty() ? "(no name)" : escaped(name), lane);
  }
  return aligned_table(rows) +
         (each ? "" : fmt::format("{} names of lanes, too many to list\n", check.lanes.size()));
}

/// What a Chrome trace holds, for people.
std::string trace_text(const std::string& path, const TraceCheck& check) {
  std::string text =
      fmt::format("{}: Chrome trace{}\n", escaped(path),
                  check.profile.empty() ? "" : ", profile " + printable(check.profile));
  text += fmt::format("{} in {:.3f} ms, {} in {}\n\n", counted(check.n_events, "event"),
                      check.last_us / 1e3, counted(check.n_lanes, "lane"),
                      counted(check.n_processes, "process", "processes"));
  text += trace_lanes_table(check);
  if (!check.ok())
    text += fmt::format("\nnote: breaks the rules of its format in {}; trace validate lists them\n",
                        counted(check.n_problems, "place"));
  return text;
}

/// That a trace is valid, or each place where it is not.
std::string trace_verdict(const std::string& path, const TraceCheck& check) {
  const std::string name = escaped(path);
  if (check.ok()) {
    return fmt::format("{}: valid: a Chrome trace of {} events{}\n", name, check.n_events,
                       check.profile.empty() ? "" : ", profile " + printable(check.profile));
  }
  std::string text = fmt::format("{}: not valid: {}\n", name, counted(check.n_problems, "problem"));
  for (const TraceProblem& problem : check.problems) {
    const std::string where = problem.event < 0 ? "file" : fmt::format("event {}", problem.event);
    text += fmt::format("  {}: {}: {}\n", where, problem.rule, problem.what);
  }
  const auto n_told = static_cast<std::int64_t>(check.problems.size());
  if (n_told < check.n_problems) text += fmt::format("  and {} more\n", check.n_problems - n_told);
  return text;
}

TraceAnswer trace_answer(const std::string& path,
                         bool judge,
                         const WeightsHere& weights_here,
                         const StopAsked& stop) {
  const TraceCheck check = check_trace(path, stop);
  TraceAnswer answer;
  answer.ok = !judge || check.ok();
  answer.text = judge ? trace_verdict(path, check) : trace_text(path, check);
  Json problems = Json::array();
  for (const TraceProblem& problem : check.problems) {
    problems.push_back({{"rule", problem.rule}, {"event", problem.event}, {"what", problem.what}});
  }
  std::vector<std::string> notices;
  for (const auto& [model, hash] : check.weights) {
    compare_weights(model, hash, weights_here, notices);
  }
  for (const std::string& notice : notices) answer.text += "note: " + notice + "\n";
  Json json{{"path", as_utf8(path)},
            {"type", "chrome-trace"},
            {"profile", as_utf8(check.profile)},
            {"events", check.n_events},
            {"processes", check.n_processes},
            {"lanes", check.n_lanes},
            {"slices", check.n_slices},
            {"async", check.n_async},
            {"instants", check.n_instants},
            {"counters", check.n_counters},
            {"flows", check.n_flows},
            {"metadata", check.n_metadata},
            {"milliseconds", check.last_us / 1e3},
            {"n_problems", check.n_problems},
            {"problems", problems},
            {"notices", notices}};
  if (judge) json["ok"] = answer.ok;
  answer.json = dumped(json);
  return answer;
}

TraceAnswer answer_for(const std::string& path,
                       bool judge,
                       const WeightsHere& weights_here,
                       const StopAsked& stop) {
  return is_trace_name(path) ? trace_answer(path, judge, weights_here, stop)
                             : recording_answer(path, judge, weights_here, stop);
}

constexpr std::string_view kTables = ".csv";

/// @return  the name it took
std::string write_whole(const std::string& path, std::string_view text) {
  OutputFile file(path, {}, OutputFile::IfExists::NewName);
  file.write(text);
  file.finish();
  return file.path();
}

/// What is whole in a recording, as a recording. @return the name it took
std::string repaired(const std::string& from, const std::string& to, const StopAsked& stop) {
  Recorder recorder(to, {.if_failed = RecorderOptions::IfFailed::Remove});
  try {
    read_whole(from, recorder, stop);
  } catch (const Error&) {
    recorder.close();
    std::error_code ignored;
    std::filesystem::remove(recorder.path(), ignored);
    throw;
  }
  recorder.close();
  if (const std::optional<std::string> trouble = recorder.trouble()) {
    throw Error(ErrorCode::Resources, *trouble);
  }
  return recorder.path();
}

/// Only a trace can be of a part, or hold the prompt's text.
void refuse_part(const std::string& to, const TraceOptions& asked) {
  const char* option = asked.run                    ? "--run"
                       : !asks_for_all_steps(asked) ? "--first-step and --last-step"
                       : asked.prompt_text          ? "--with-prompt"
                                                    : nullptr;
  if (!option || is_trace_name(to)) return;
  throw Error(
      ErrorCode::Usage,
      fmt::format("{}: found with {}, expected with a trace (.json or .json.gz) alone; leave "
                  "it out to convert the whole recording",
                  option, escaped(to)));
}

}  // namespace

TraceAnswer trace_info(const std::string& path,
                       const WeightsHere& weights_here,
                       const StopAsked& stop) {
  return answer_for(path, false, weights_here, stop);
}

TraceAnswer trace_validate(const std::string& path, const StopAsked& stop) {
  return answer_for(path, true, {}, stop);
}

TraceAnswer trace_convert(const std::string& from,
                          const std::string& to,
                          const ConvertOptions& options) {
  const bool known = is_trace_name(to) || ends_with(to, ".csv") || ends_with(to, ".txt") ||
                     ends_with(to, ".pdrun");
  if (!known) {
    throw Error(ErrorCode::Usage,
                escaped(to) +
                    ": found an unknown ending, expected .json, .json.gz, .csv, .txt or .pdrun");
  }
  if (is_trace_name(from)) {
    throw Error(ErrorCode::Usage,
                escaped(from) +
                    ": found an exported trace, expected a recording (.pdrun); a trace holds less "
                    "than the run, so nothing is made from it");
  }
  refuse_part(to, options.trace);
  const Opened opened = open_recording(from, options.stop);
  std::vector<std::string> files;
  std::vector<std::string> notices = opened.report.notices();
  TraceAnswer answer;
  if (is_trace_name(to)) {
    TraceOptions trace = options.trace;
    trace.if_exists = OutputFile::IfExists::NewName;
    trace.progress = [&options](double) { return !(options.stop && options.stop()); };
    const TraceReport report = export_trace(opened.timeline, to, trace);
    answer.text = report.summary() + "; read again: no rule broken\n";
    notices.insert(notices.end(), report.notices.begin(), report.notices.end());
    files = {report.path};
  } else if (ends_with(to, kTables)) {
    const auto go_on = [&] {
      if (options.stop && options.stop()) give_up(to, "no table was written");
    };
    files =
        write_tables(opened.timeline, to.substr(0, to.size() - kTables.size()), options.csv, go_on);
  } else if (ends_with(to, ".txt")) {
    const auto go_on = [&] {
      if (options.stop && options.stop()) give_up(to, "nothing was written");
    };
    files = {write_whole(to, describe(opened.timeline, go_on))};
  } else {
    files = {repaired(from, to, options.stop)};
  }
  const bool tables = ends_with(to, kTables);
  const std::string stem = to.substr(0, to.size() - (tables ? kTables.size() : 0));
  if (files.front() != (tables ? stem + "-steps.csv" : to)) {
    notices.push_back(fmt::format("{} exists; written to {}",
                                  escaped(tables ? stem + "-*.csv" : to),
                                  escaped(files.front())));
  }
  Json json{{"from", as_utf8(from)}, {"files", Json::array()}, {"notices", notices}};
  for (const std::string& file : files) {
    answer.text += "wrote " + escaped(file) + "\n";
    json["files"].push_back(as_utf8(file));
  }
  for (const std::string& notice : notices) answer.text += "note: " + notice + "\n";
  answer.json = dumped(json);
  return answer;
}

}  // namespace engine
