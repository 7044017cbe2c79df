// `trace info` and `trace validate`: a recording or a Chrome trace as tables and as a document.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/trace/recording.h"
#include "app/commands/trace/tool.h"
#include "engine/base/table.h"
#include "engine/base/text.h"
#include "engine/trace/check.h"
#include "engine/trace/describe.h"
#include "engine/trace/trace_report.h"

namespace app {
namespace {

using Json = nlohmann::ordered_json;

std::string document_text(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// How a run ended, in a word.
const char* state_of(const engine::RunRecord& run) {
  if (run.failed) return "failed";
  if (!run.finished) return "cut off";
  return run.finished->stop_reason == "stopped" ? "cancelled" : "finished";
}

Json json_of(const engine::Timeline& timeline, const engine::RunRecord& run) {
  const engine::ModelLoaded* model = timeline.model(run.started.model);
  Json object{{"run", run.id()}, {"decoder", engine::as_utf8(run.started.decoder)}};
  if (model)
    object["model"] = engine::as_utf8(model->name), object["scale"] = engine::as_utf8(model->scale);
  if (model)
    object["dtype"] = engine::as_utf8(model->dtype),
    object["device"] = engine::as_utf8(model->device);
  if (model && !model->weights_hash.empty())
    object["weights_hash"] = engine::as_utf8(model->weights_hash);
  if (const engine::ModelLoaded* draft = timeline.model(run.started.draft))
    object["draft"] = engine::as_utf8(draft->name);
  object["race"] = run.started.race;
  object["seed"] = run.started.seed;
  object["prompt_tokens"] = run.started.prompt_tokens.size();
  object["approximate_prompt_tokens"] = run.started.n_approximate;
  object["steps"] = run.totals.n_steps;
  object["tokens"] = run.totals.n_tokens;
  object["tokens_per_step"] = run.tokens_per_step();
  object["tokens_per_second"] = run.tokens_per_second();
  object["decode_ms"] = static_cast<double>(run.decode_compute()) / 1e6;
  const std::optional<double> speedup = timeline.speedup(run);
  object["speedup"] = speedup ? Json(*speedup) : Json(nullptr);
  object["payload_dropped"] = Json::array();
  for (const engine::PayloadDropped& drop : run.dropped) {
    object["payload_dropped"].push_back({{"kind", engine::as_utf8(drop.kind)},
                                         {"first_step", drop.first_step},
                                         {"last_step", drop.last_step},
                                         {"bytes", drop.n_bytes}});
  }
  object["state"] = state_of(run);
  if (run.finished) object["stop_reason"] = engine::as_utf8(run.finished->stop_reason);
  if (run.finished && run.finished->stop_reason == "stop_string")
    object["stop_string"] = engine::as_utf8(run.finished->stop_string);
  return object;
}

/// The trees of thoughts of a recording. A tree without an answer was stopped or cut off.
Json searches_json(const engine::Timeline& timeline) {
  Json list = Json::array();
  for (const engine::SearchRecord& search : timeline.searches()) {
    const bool ended = search.ended && !search.ended->stopped;
    list.push_back({{"search", search.begun.search},
                    {"id", engine::as_utf8(search.begun.id)},
                    {"task", engine::as_utf8(search.begun.task)},
                    {"thoughts", search.thoughts.size()},
                    {"answer", ended ? Json(engine::as_utf8(search.ended->answer)) : Json(nullptr)},
                    {"correct", ended ? Json(search.ended->correct) : Json(nullptr)}});
  }
  return list;
}

using Rows = std::vector<std::vector<std::string>>;

/// The runs of one line of the table: a single run, or in a long recording all runs of a decoder.
using RunGroup = std::vector<const engine::RunRecord*>;

constexpr std::size_t kMaxRunsListed = 12;

std::vector<RunGroup> groups_by_decoder(const engine::Timeline& timeline) {
  std::vector<RunGroup> lanes;
  for (const engine::RunRecord& run : timeline.runs()) {
    const auto of_its_decoder = [&](const RunGroup& lane) {
      return lane.front()->started.decoder == run.started.decoder;
    };
    auto found = std::find_if(lanes.begin(), lanes.end(), of_its_decoder);
    if (found == lanes.end()) found = lanes.insert(lanes.end(), RunGroup());
    found->push_back(&run);
  }
  return lanes;
}

/// How the runs of a lane ended: "finished", "19 finished, 1 cut off".
std::string states_of(const RunGroup& lane) {
  if (lane.size() == 1) return state_of(*lane.front());
  std::map<std::string, int> n_of;
  for (const engine::RunRecord* run : lane) ++n_of[state_of(*run)];
  std::string words;
  for (const char* state : {"finished", "cancelled", "failed", "cut off"}) {
    if (n_of[state] == 0) continue;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", n_of[state], state);
  }
  return words;
}

/// The totals of a row; a speed-up only if each run has one.
std::vector<std::string> row_of(const engine::Timeline& timeline, const RunGroup& lane, bool each) {
  double steps = 0, tokens = 0, own_ns = 0, baseline_ns = 0;
  bool all_compared = true;
  for (const engine::RunRecord* run : lane) {
    const auto ns = static_cast<double>(run->decode_compute());
    const std::optional<double> speedup = timeline.speedup(*run);
    steps += static_cast<double>(run->totals.n_steps);
    tokens += static_cast<double>(run->totals.n_tokens);
    own_ns += ns;
    baseline_ns += speedup.value_or(0) * ns;
    all_compared = all_compared && speedup.has_value();
  }
  const std::size_t number = each ? lane.front()->id() : lane.size();
  return {engine::printable(lane.front()->started.decoder),
          fmt::format("{}", number),
          fmt::format("{:.0f}", steps),
          fmt::format("{:.0f}", tokens),
          steps > 0 ? fmt::format("{:.2f}", tokens / steps) : "-",
          own_ns > 0 ? fmt::format("{:.1f}", tokens / own_ns * 1e9) : "-",
          all_compared && own_ns > 0 ? fmt::format("{:.2f}x", baseline_ns / own_ns) : "-",
          states_of(lane)};
}

/// One line per run or, if there are many runs, per decoder.
std::string runs_table(const engine::Timeline& timeline, const std::vector<RunGroup>& by_decoder) {
  const bool each = timeline.runs().size() <= kMaxRunsListed;
  Rows rows{{"decoder", each ? "run" : "runs", "steps", "tokens", "tokens/step", "tokens/s",
             "speedup", "ended"}};
  if (each) {
    for (const engine::RunRecord& run : timeline.runs())
      rows.push_back(row_of(timeline, {&run}, true));
  } else {
    for (const RunGroup& lane : by_decoder) rows.push_back(row_of(timeline, lane, false));
  }
  return engine::aligned_table(rows) + (each ? "" : "--json lists every run\n");
}

/// How often each kind of event occurs, in all and for each decoder.
std::string kinds_table(const OpenedRecording& opened, const std::vector<RunGroup>& by_decoder) {
  Rows rows{{"events", "all"}};
  for (const RunGroup& lane : by_decoder)
    rows.front().push_back(engine::printable(lane.front()->started.decoder));
  for (const auto& [kind, n] : opened.kinds) {
    rows.push_back({kind, fmt::format("{}", n)});
    for (const RunGroup& lane : by_decoder) {
      const auto& kinds = opened.kinds_by_decoder.at(lane.front()->started.decoder);
      const auto found = kinds.find(kind);
      rows.back().push_back(found == kinds.end() ? "" : fmt::format("{}", found->second));
    }
  }
  return engine::aligned_table(rows);
}

/// The description of a recording as text.
std::string recording_text(const std::string& path, const OpenedRecording& opened) {
  const engine::RecordingReport& report = opened.report;
  const engine::Timeline& timeline = opened.timeline;
  std::string text =
      fmt::format("{}: recording, version {}, by decoscope {}, {} bytes\n", engine::escaped(path),
                  report.version, engine::printable(report.program_version), report.file_bytes);
  text += fmt::format("{} in {:.3f} s, {}\n", engine::counted(report.n_events, "event"),
                      static_cast<double>(timeline.last_event()) / 1e9,
                      engine::counted(std::ssize(timeline.runs()), "run"));
  for (const auto& [id, model] : timeline.models()) {
    text += fmt::format("model {} at {}, {} on {}\n", engine::printable(model.name),
                        engine::printable(model.scale), engine::printable(model.dtype),
                        engine::printable(model.device));
  }
  if (const std::int64_t n = std::ssize(timeline.searches()); n > 0) {
    std::int64_t n_thoughts = 0;
    for (const engine::SearchRecord& search : timeline.searches())
      n_thoughts += std::ssize(search.thoughts);
    text += fmt::format("{} of thoughts, {}\n", engine::counted(n, "tree"),
                        engine::counted(n_thoughts, "thought"));
  }
  const std::vector<RunGroup> by_decoder = groups_by_decoder(timeline);
  if (!by_decoder.empty()) text += "\n" + runs_table(timeline, by_decoder);
  if (!opened.kinds.empty()) text += "\n" + kinds_table(opened, by_decoder);
  return text;
}

/// Adds a notice if the model on this machine has other weights than the recorded one.
void compare_weights(const std::string& model,
                     const std::string& hash,
                     const LocalWeights& local_weights,
                     std::vector<std::string>& notices) {
  const std::optional<std::string> here = local_weights ? local_weights(model) : std::nullopt;
  if (!here) return;
  if (auto sentence = engine::other_weights(model, hash, "the model", *here)) {
    notices.push_back(std::move(*sentence));
  }
}

/// Messages on the faults of a recording, and on other reasons not to trust it.
std::vector<std::string> faults_of(const OpenedRecording& opened,
                                   const LocalWeights& local_weights) {
  std::vector<std::string> faults = opened.report.notices();
  const engine::Timeline& timeline = opened.timeline;
  if (timeline.n_inconsistent() > 0) {
    faults.push_back(fmt::format("{} events contradict others and are excluded from statistics",
                                 timeline.n_inconsistent()));
    for (const std::string& why : timeline.inconsistencies()) {
      if (faults.size() < 20) faults.push_back(engine::printable(why));
    }
  }
  for (const auto& [id, model] : timeline.models()) {
    compare_weights(model.name, model.weights_hash, local_weights, faults);
  }
  return faults;
}

/// Notices on payload that was dropped while recording, and on baselines measured under other load.
/// They are no faults of the file.
std::vector<std::string> remarks_of(const engine::Timeline& timeline) {
  std::vector<std::string> remarks;
  for (const engine::RunRecord& run : timeline.runs()) {
    for (const engine::PayloadDropped& drop : run.dropped)
      remarks.push_back(fmt::format("run {}: {}", run.id(), engine::describe(drop)));
    if (const std::string why = timeline.why_other_load(run); !why.empty())
      remarks.push_back(
          fmt::format("run {}: no speedup, {}. {}", run.id(), engine::kOtherLoad, why));
  }
  return remarks;
}

Json json_of(const std::string& path,
             const OpenedRecording& opened,
             const std::vector<std::string>& notices) {
  const engine::RecordingReport& report = opened.report;
  const engine::Timeline& timeline = opened.timeline;
  Json object{{"path", engine::as_utf8(path)},
              {"type", "recording"},
              {"version", report.version},
              {"program_version", engine::as_utf8(report.program_version)},
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
  for (const engine::RunRecord& run : timeline.runs())
    object["runs"].push_back(json_of(timeline, run));
  if (!timeline.searches().empty()) object["searches"] = searches_json(timeline);
  return object;
}

TraceAnswer recording_answer(const std::string& path,
                             bool validate,
                             const LocalWeights& local_weights,
                             const StopRequested& stop) {
  const OpenedRecording opened = open_recording(path, stop);
  const std::vector<std::string> faults = faults_of(opened, local_weights);
  const std::vector<std::string> remarks = remarks_of(opened.timeline);
  TraceAnswer answer;
  answer.ok = !validate || faults.empty();
  const std::string name = engine::escaped(path);
  if (!validate) {
    answer.text = recording_text(path, opened);
    if (!faults.empty() || !remarks.empty()) answer.text += "\n";
  } else if (answer.ok) {
    answer.text =
        fmt::format("{}: valid: a recording of {} events and {}\n", name, opened.report.n_events,
                    engine::counted(std::ssize(opened.timeline.runs()), "run"));
  } else {
    answer.text = name + ": damaged\n";
  }
  for (const std::string& fault : faults)
    answer.text += (validate ? "  " : "note: ") + fault + "\n";
  for (const std::string& remark : remarks) answer.text += "note: " + remark + "\n";

  std::vector<std::string> notices = faults;
  notices.insert(notices.end(), remarks.begin(), remarks.end());
  Json object = json_of(path, opened, notices);
  if (validate) object["ok"] = answer.ok;
  answer.json = document_text(object);
  return answer;
}

constexpr std::size_t kMaxLanesListed = 20;

/// One line per name of lanes, with the number of events of each kind.
std::string trace_lanes_table(const engine::TraceCheck& check) {
  Rows rows{{"lane", "slices", "async ends", "instants", "counters", "flow ends"}};
  const auto add = [&](const std::string& name, const engine::TraceLane& lane) {
    rows.push_back({name});
    for (const std::int64_t n :
         {lane.n_slices, lane.n_async, lane.n_instants, lane.n_counters, lane.n_flows})
      rows.back().push_back(n > 0 ? fmt::format("{}", n) : "");
  };
  add("all", {check.n_slices, check.n_async, check.n_instants, check.n_counters, check.n_flows});
  const bool each = check.lanes.size() <= kMaxLanesListed;
  for (const auto& [name, lane] : check.lanes) {
    if (each) add(name.empty() ? "(no name)" : engine::escaped(name), lane);
  }
  return engine::aligned_table(rows) +
         (each ? "" : fmt::format("{} names of lanes, too many to list\n", check.lanes.size()));
}

bool is_perfetto(const std::string& path) {
  return engine::trace_format_of(path) == engine::TraceFormat::Perfetto;
}
const char* kind_of(const std::string& path) {
  return is_perfetto(path) ? "Perfetto trace" : "Chrome trace";
}

/// The description of a trace as text.
std::string trace_text(const std::string& path, const engine::TraceCheck& check) {
  std::string text =
      fmt::format("{}: {}{}\n", engine::escaped(path), kind_of(path),
                  check.profile.empty() ? "" : ", profile " + engine::printable(check.profile));
  text += fmt::format("{} in {:.3f} ms, {} in {}\n\n", engine::counted(check.n_events, "event"),
                      check.last_us / 1e3, engine::counted(check.n_lanes, "lane"),
                      engine::counted(check.n_processes, "process", "processes"));
  text += trace_lanes_table(check);
  if (!check.ok())
    text += fmt::format("\nnote: violates its format in {}; trace validate lists them\n",
                        engine::counted(check.n_problems, "place"));
  return text;
}

/// The result of validating a trace: valid, or a list of problems.
std::string trace_verdict(const std::string& path, const engine::TraceCheck& check) {
  const std::string name = engine::escaped(path);
  if (check.ok()) {
    return fmt::format(
        "{}: valid: a {} of {} events{}\n", name, kind_of(path), check.n_events,
        check.profile.empty() ? "" : ", profile " + engine::printable(check.profile));
  }
  std::string text =
      fmt::format("{}: not valid: {}\n", name, engine::counted(check.n_problems, "problem"));
  for (const engine::TraceProblem& problem : check.problems) {
    const std::string where = problem.event < 0 ? "file" : fmt::format("event {}", problem.event);
    text += fmt::format("  {}: {}: {}\n", where, problem.rule, problem.what);
  }
  const auto n_listed = static_cast<std::int64_t>(check.problems.size());
  if (n_listed < check.n_problems)
    text += fmt::format("  and {} more\n", check.n_problems - n_listed);
  return text;
}

TraceAnswer trace_answer(const std::string& path,
                         bool validate,
                         const LocalWeights& local_weights,
                         const StopRequested& stop) {
  const engine::TraceCheck check = engine::check_trace(path, stop);
  TraceAnswer answer;
  answer.ok = !validate || check.ok();
  answer.text = validate ? trace_verdict(path, check) : trace_text(path, check);
  Json problems = Json::array();
  for (const engine::TraceProblem& problem : check.problems) {
    problems.push_back({{"rule", problem.rule}, {"event", problem.event}, {"what", problem.what}});
  }
  std::vector<std::string> notices;
  for (const auto& [model, hash] : check.weights) {
    compare_weights(model, hash, local_weights, notices);
  }
  for (const std::string& notice : notices) answer.text += "note: " + notice + "\n";
  Json object{{"path", engine::as_utf8(path)},
              {"type", is_perfetto(path) ? "perfetto-trace" : "chrome-trace"},
              {"profile", engine::as_utf8(check.profile)},
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
  if (validate) object["ok"] = answer.ok;
  answer.json = document_text(object);
  return answer;
}

TraceAnswer answer_for(const std::string& path,
                       bool validate,
                       const LocalWeights& local_weights,
                       const StopRequested& stop) {
  return is_trace_name(path) ? trace_answer(path, validate, local_weights, stop)
                             : recording_answer(path, validate, local_weights, stop);
}

}  // namespace

TraceAnswer trace_info(const std::string& path,
                       const LocalWeights& local_weights,
                       const StopRequested& stop) {
  return answer_for(path, false, local_weights, stop);
}

TraceAnswer trace_validate(const std::string& path, const StopRequested& stop) {
  return answer_for(path, true, {}, stop);
}

}  // namespace app
