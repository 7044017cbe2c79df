#include "engine/event/trace_tool.h"

#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/event/describe.h"
#include "engine/event/output_file.h"
#include "engine/event/recorder.h"
#include "engine/event/serialise.h"
#include "engine/event/text.h"

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

/// A recording's timeline and how often each kind occurs.
struct Opened {
  Timeline timeline;
  RecordingReport report;
  std::map<std::string, std::int64_t> kinds;
};

Opened open_recording(const std::string& path) {
  Opened opened;
  class Into : public EventSink {
   public:
    explicit Into(Opened& o) : opened_(o) {}
    void push(Event event) override {
      ++opened_.kinds[kind_name(event.index())];
      opened_.timeline.apply(event);
    }

   private:
    Opened& opened_;  // outlives the reading
  } into(opened);
  // A tool reads one file and ends: nothing has to be let go.
  opened.timeline.set_payload_budget(std::numeric_limits<std::size_t>::max());
  opened.report = read_recording(path, into);
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
  json["race"] = run.started.race;
  json["seed"] = run.started.seed;
  json["prompt_tokens"] = run.started.prompt_tokens.size();
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
  return json;
}

std::string line_of(const Timeline& timeline, const RunRecord& run) {
  const std::optional<double> speedup = timeline.speedup(run);
  return fmt::format(
      "  run {}: {}, {} steps, {} tokens, {:.3g} tokens/step, {:.4g} tokens/s, speedup {}, {}\n",
      run.id(), printable(run.started.decoder), run.totals.n_steps, run.totals.n_tokens,
      run.tokens_per_step(), run.tokens_per_second(),
      speedup ? fmt::format("{:.3g}", *speedup) : "-", state_of(run));
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

TraceAnswer recording_answer(const std::string& path,
                             bool judge,
                             const WeightsHere& weights_here = {}) {
  const Opened opened = open_recording(path);
  const RecordingReport& report = opened.report;
  const Timeline& timeline = opened.timeline;
  std::vector<std::string> notices = report.notices();
  if (timeline.n_inconsistent() > 0) {
    notices.push_back(fmt::format("{} events contradict others and are kept out of statistics",
                                  timeline.n_inconsistent()));
    for (const std::string& why : timeline.inconsistencies()) {
      if (notices.size() < 20) notices.push_back(printable(why));
    }
  }
  for (const auto& [id, model] : timeline.models()) {
    compare_weights(model.name, model.weights_hash, weights_here, notices);
  }
  TraceAnswer answer;
  answer.ok = !judge || notices.empty();
  // Told, but no fault of the file: what was recorded is whole.
  for (const RunRecord& run : timeline.runs()) {
    for (const PayloadDropped& drop : run.dropped) {
      notices.push_back(fmt::format("run {}: {}", run.id(), describe(drop)));
    }
  }
  const double seconds = static_cast<double>(timeline.last_event()) / 1e9;
  answer.text =
      fmt::format("{}: recording, version {}, by decoscope {}, {} bytes, {} events, {:.3f} s\n",
                  quoted_for_message(path), report.version, printable(report.program_version),
                  report.file_bytes, report.n_events, seconds);
  for (const RunRecord& run : timeline.runs()) answer.text += line_of(timeline, run);
  for (const std::string& notice : notices) answer.text += "  note: " + notice + "\n";
  if (judge) answer.text += answer.ok ? "  valid\n" : "  not whole\n";

  Json json{{"path", as_utf8(path)},
            {"type", "recording"},
            {"version", report.version},
            {"program_version", as_utf8(report.program_version)},
            {"unix_seconds", report.unix_seconds},
            {"bytes", report.file_bytes},
            {"events", report.n_events},
            {"kinds", opened.kinds},
            {"seconds", seconds},
            {"closed", report.closed},
            {"incomplete_bytes", report.incomplete_bytes},
            {"damaged", report.n_damaged},
            {"unknown_kinds", report.n_unknown_kinds},
            {"unknown_fields", report.n_unknown_fields},
            {"inconsistent", timeline.n_inconsistent()},
            {"runs", Json::array()},
            {"notices", notices}};
  for (const RunRecord& run : timeline.runs()) json["runs"].push_back(json_of(timeline, run));
  if (judge) json["ok"] = answer.ok;
  answer.json = dumped(json);
  return answer;
}

TraceAnswer trace_answer(const std::string& path,
                         bool judge,
                         const WeightsHere& weights_here = {}) {
  const TraceCheck check = check_trace(path);
  TraceAnswer answer;
  answer.ok = !judge || check.ok();
  answer.text = fmt::format("{}: Chrome trace{}, {}\n", quoted_for_message(path),
                            check.profile.empty() ? "" : ", profile " + printable(check.profile),
                            check.summary());
  Json problems = Json::array();
  for (const TraceProblem& problem : check.problems) {
    const std::string where = problem.event < 0 ? "file" : fmt::format("event {}", problem.event);
    answer.text += fmt::format("  {}: {}: {}\n", where, problem.rule, problem.what);
    problems.push_back({{"rule", problem.rule}, {"event", problem.event}, {"what", problem.what}});
  }
  std::vector<std::string> notices;
  for (const auto& [model, hash] : check.weights) {
    compare_weights(model, hash, weights_here, notices);
  }
  for (const std::string& notice : notices) answer.text += "  note: " + notice + "\n";
  if (judge) answer.text += answer.ok ? "  valid\n" : "  not valid\n";
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

TraceAnswer answer_for(const std::string& path, bool judge, const WeightsHere& weights_here = {}) {
  return is_trace_name(path) ? trace_answer(path, judge, weights_here)
                             : recording_answer(path, judge, weights_here);
}

std::uint64_t write_whole(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
  return file.n_bytes();
}

std::vector<std::string> write_tables(const Timeline& timeline,
                                      const std::string& to,
                                      const CsvOptions& options) {
  const std::string stem = to.substr(0, to.size() - std::string_view(".csv").size());
  using Make = std::string (*)(const Timeline&, const CsvOptions&);
  const std::array<std::pair<const char*, Make>, 4> tables{{{"steps", steps_csv},
                                                            {"tokens", tokens_csv},
                                                            {"acceptance", acceptance_csv},
                                                            {"lanes", lanes_csv}}};
  std::vector<std::string> names;
  for (const auto& [name, make] : tables) {
    names.push_back(fmt::format("{}-{}.csv", stem, name));
    write_whole(names.back(), make(timeline, options));
  }
  return names;
}

/// What is whole in a recording, as a recording. @return the name it took
std::string repaired(const std::string& from, const std::string& to) {
  Recorder recorder(to, {.if_exists = RecorderOptions::IfExists::Refuse});
  read_recording(from, recorder);
  recorder.close();
  if (const std::optional<std::string> trouble = recorder.trouble()) {
    throw Error(ErrorCode::Resources, *trouble);
  }
  return recorder.path();
}

}  // namespace

TraceAnswer trace_info(const std::string& path, const WeightsHere& weights_here) {
  return answer_for(path, false, weights_here);
}

TraceAnswer trace_validate(const std::string& path) {
  return answer_for(path, true);
}

TraceAnswer trace_convert(const std::string& from,
                          const std::string& to,
                          const ConvertOptions& options) {
  const bool known = is_trace_name(to) || ends_with(to, ".csv") || ends_with(to, ".txt") ||
                     ends_with(to, ".pdrun");
  if (!known) {
    throw Error(ErrorCode::Usage,
                quoted_for_message(to) +
                    ": found an unknown ending, expected .json, .json.gz, .csv, .txt or .pdrun");
  }
  if (is_trace_name(from)) {
    throw Error(ErrorCode::Usage,
                quoted_for_message(from) +
                    ": found an exported trace, expected a recording (.pdrun); a trace holds less "
                    "than the run, so nothing is made from it");
  }
  const Opened opened = open_recording(from);
  std::vector<std::string> files{to};
  std::vector<std::string> notices = opened.report.notices();
  TraceAnswer answer;
  if (is_trace_name(to)) {
    const TraceReport report = export_trace(opened.timeline, to, options.trace);
    answer.text = report.summary() + "; read again: no rule broken\n";
    notices.insert(notices.end(), report.notices.begin(), report.notices.end());
  } else if (ends_with(to, ".csv")) {
    files = write_tables(opened.timeline, to, options.csv);
  } else if (ends_with(to, ".txt")) {
    write_whole(to, describe(opened.timeline));
  } else {
    files = {repaired(from, to)};
  }
  Json json{{"from", as_utf8(from)}, {"files", Json::array()}, {"notices", notices}};
  for (const std::string& file : files) {
    answer.text += "wrote " + quoted_for_message(file) + "\n";
    json["files"].push_back(as_utf8(file));
  }
  for (const std::string& notice : notices) answer.text += "note: " + notice + "\n";
  answer.json = dumped(json);
  return answer;
}

}  // namespace engine
