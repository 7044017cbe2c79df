#include "engine/trace/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/trace/perfetto/perfetto_check.h"
#include "engine/trace/reader.h"
#include "engine/trace/trace_report.h"

namespace engine {
namespace {

constexpr double kMaxId = 4294967295.0;
constexpr std::size_t kMaxShown = 60;

using Lane = std::pair<std::int64_t, std::int64_t>;  // pid, tid

struct Span {
  std::int64_t start = 0, end = 0;  // ns
  std::int64_t event = 0;
};

struct FlowEnd {
  Lane lane;
  std::int64_t t = 0, event = 0;
};

struct Flow {
  std::vector<FlowEnd> starts, finishes;
};

std::string shown(const TraceValue& value) {
  return escaped(std::string_view(value.text).substr(0, kMaxShown));
}

/// Collects data for the rules that concern several events, and checks these rules at the end.
class Rules {
 public:
  explicit Rules(TraceCheck& check) : check_(check) {}

  void event(const RawTraceEvent& e) {
    at_ = e.index;
    if (!e.is_object) return problem("event-type", "found no object, expected an event");
    if (e.fields.empty()) return;  // {}: viewers ignore it
    ++check_.n_events;
    for (const std::string& key : e.duplicate_keys) {
      problem("duplicate-key", escaped(key));
    }
    const TraceValue* ph = field(e, "ph");
    if (!ph || ph->type != TraceValue::Type::String)
      return problem("ph-missing", "no phase letter");
    if (ph->text.size() != 1) return problem("ph-unknown", shown(*ph));
    const std::optional<Lane> lane = lane_of(e);
    if (!lane) return;
    if (ph->text == "M") return metadata(e, *lane);
    const std::optional<std::int64_t> t = time_of(e, "ts");
    if (!t) return;
    name_of(e);
    if (std::int64_t* n = count_of(used_lanes_[*lane], ph->text[0])) ++*n;
    by_lane_[*lane].push_back({.start = *t, .event = at_});
    check_.last_us = std::max(check_.last_us, static_cast<double>(*t) / 1e3);
    by_phase(ph->text[0], e, *lane, *t);
  }

  void finish(const RawTrace& trace) {
    at_ = -1;
    if (!trace.error.empty()) problem("json", trace.error);
    if (!trace.good_beginning) problem("beginning", "expected {\" or [{\" as the first characters");
    if (trace.escaped_surrogates)
      problem("surrogate", "a \\ud8xx escape; Perfetto refuses the file");
    if (trace.error.empty() && !trace.has_events) problem("no-list", "no traceEvents");
    if (check_.n_events == 0) problem("no-events", "a trace without events is not recognised");
    const auto profile = trace.metadata.find("profile");
    if (profile != trace.metadata.end()) check_.profile = profile->second.text;
    for (const auto& run : trace.runs) {
      const auto model = run.find("model"), hash = run.find("weights_hash");
      if (model == run.end() || hash == run.end()) continue;
      check_.weights.emplace(model->second.text, hash->second.text);
    }
    check_nesting();
    check_flows();
    check_async();
    check_begin_end();
    if (check_.profile == "PD-1") check_profile(trace);
    check_.n_processes = static_cast<std::int64_t>(processes_.size());
    check_.n_lanes = static_cast<std::int64_t>(used_lanes_.size());
    for (const auto& [lane, counts] : used_lanes_) {
      const auto name = lane_names_.find(lane);
      TraceLane& sum = check_.lanes[name == lane_names_.end() ? "" : name->second];
      sum.n_slices += counts.n_slices;
      sum.n_async += counts.n_async;
      sum.n_instants += counts.n_instants;
      sum.n_counters += counts.n_counters;
      sum.n_flows += counts.n_flows;
    }
  }

 private:
  void problem(const char* rule, std::string what) {
    ++check_.n_problems;
    if (check_.problems.size() < kMaxTraceProblems) {
      check_.problems.push_back({.rule = rule, .event = at_, .what = std::move(what)});
    }
  }

  static const TraceValue* field(const RawTraceEvent& e, const char* name) {
    const auto found = e.fields.find(name);
    return found == e.fields.end() ? nullptr : &found->second;
  }

  std::optional<std::int64_t> id_field(const RawTraceEvent& e, const char* name) {
    const TraceValue* value = field(e, name);
    if (!value || value->type != TraceValue::Type::Number || !value->integer || value->number < 0 ||
        value->number > kMaxId) {
      problem(
          name == std::string_view("pid") ? "pid" : "tid",
          value ? "found " + shown(*value) + ", expected a whole number of 32 bits" : "missing");
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value->number);
  }

  std::optional<Lane> lane_of(const RawTraceEvent& e) {
    const auto pid = id_field(e, "pid");
    const auto tid = id_field(e, "tid");
    if (!pid || !tid) return std::nullopt;
    if (*tid == 0) problem("tid-zero", "tid 0 becomes the process's number in Perfetto");
    processes_.insert(*pid);
    return Lane{*pid, *tid};
  }

  /// A time in nanoseconds, the resolution of viewers.
  std::optional<std::int64_t> time_of(const RawTraceEvent& e, const char* name) {
    const TraceValue* value = field(e, name);
    const std::string rule(name);
    if (!value) {
      problem(rule == "ts" ? "ts-missing" : "dur-missing", "viewers drop the event");
      return std::nullopt;
    }
    constexpr double kMaxUs = 9e12;
    if (value->type != TraceValue::Type::Number || !(value->number >= 0) ||
        value->number > kMaxUs) {
      problem(rule == "ts" ? "ts-value" : "dur-value",
              "found " + shown(*value) + ", expected microseconds from 0");
      return std::nullopt;
    }
    const std::size_t dot = value->text.find('.');
    const bool exponent = value->text.find_first_of("eE") != std::string::npos;
    const bool fine = dot != std::string::npos && value->text.size() - dot - 1 > 3;
    if (fine && !exponent) n_too_fine_.push_back(at_);
    return std::llround(value->number * 1e3);
  }

  void name_of(const RawTraceEvent& e) {
    const TraceValue* name = field(e, "name");
    const bool text = name && name->type == TraceValue::Type::String && !name->text.empty();
    const TraceValue* ph = field(e, "ph");
    if (!text && ph->text != "E") problem("name-missing", "expected a name");
  }

  static std::string text_field(const RawTraceEvent& e, const char* name) {
    const TraceValue* value = field(e, name);
    return value ? value->text : std::string();
  }

  void metadata(const RawTraceEvent& e, Lane lane) {
    ++check_.n_metadata;
    const std::string name = text_field(e, "name");
    const bool names = name == "process_name" || name == "thread_name";
    const bool sorts = name == "process_sort_index" || name == "thread_sort_index";
    if (!names && !sorts) return problem("metadata-name", escaped(name));
    const auto arg = e.args.find(names ? "name" : "sort_index");
    const TraceValue::Type wanted = names ? TraceValue::Type::String : TraceValue::Type::Number;
    if (arg == e.args.end() || arg->second.type != wanted) {
      return problem("metadata-args", "expected args.name as text or args.sort_index as a number");
    }
    if (name == "process_name") named_processes_.insert(lane.first);
    if (name == "thread_name") lane_names_.emplace(lane, arg->second.text);
  }

  /// The counter for events with this `ph`; null: none.
  static std::int64_t* count_of(TraceLane& lane, char ph) {
    switch (ph) {
      case 'X':
      case 'B':
      case 'E':
        return &lane.n_slices;
      case 'b':
      case 'n':
      case 'e':
        return &lane.n_async;
      case 'i':
      case 'I':
      case 'R':
        return &lane.n_instants;
      case 'C':
        return &lane.n_counters;
      case 's':
      case 't':
      case 'f':
        return &lane.n_flows;
      default:
        return nullptr;
    }
  }

  void by_phase(char ph, const RawTraceEvent& e, Lane lane, std::int64_t t) {
    switch (ph) {
      case 'X':
        return slice(e, lane, t);
      case 'B':
      case 'E':
        ++check_.n_slices;
        begin_end_[lane].emplace_back(t, ph == 'B' ? 1 : -1);
        return;
      case 'b':
      case 'n':
      case 'e':
        return async(ph, e, lane, t);
      case 'i':
      case 'I':
      case 'R':
        return instant(e);
      case 'C':
        return counter(e);
      case 's':
      case 't':
      case 'f':
        return flow(ph, e, lane, t);
      default:
        ++check_.n_other;
        return problem("ph-unknown", std::string(1, ph));
    }
  }

  void slice(const RawTraceEvent& e, Lane lane, std::int64_t t) {
    ++check_.n_slices;
    const std::optional<std::int64_t> dur = time_of(e, "dur");
    if (!dur) return;
    slices_[lane].push_back({.start = t, .end = t + *dur, .event = at_});
    check_.last_us = std::max(check_.last_us, static_cast<double>(t + *dur) / 1e3);
  }

  void instant(const RawTraceEvent& e) {
    ++check_.n_instants;
    const std::string scope = text_field(e, "s");
    const bool known = scope.empty() || scope == "g" || scope == "p" || scope == "t";
    if (!known) problem("instant-scope", escaped(scope));
  }

  void counter(const RawTraceEvent& e) {
    ++check_.n_counters;
    if (e.args.empty()) problem("counter-args", "a counter without args");
    for (const auto& [key, value] : e.args) {
      if (value.type != TraceValue::Type::Number) {
        problem("counter-args", escaped(key) + " is no number");
      }
    }
  }

  /// The id of a flow or an async pair; viewers read ids given as text as hexadecimal.
  std::optional<std::string> identity(const RawTraceEvent& e, const char* rule) {
    const TraceValue* id = field(e, "id");
    if (!id || id->type != TraceValue::Type::Number || !id->integer || id->number < 0) {
      problem(rule, "expected a decimal whole number");
      return std::nullopt;
    }
    return text_field(e, "cat") + '\x1F' + text_field(e, "name") + '\x1F' + id->text;
  }

  void async(char ph, const RawTraceEvent& e, Lane lane, std::int64_t t) {
    ++check_.n_async;
    const auto id = identity(e, "async-id");
    if (!id || ph == 'n') return;
    async_[*id].push_back({t, ph == 'b' ? 1 : -1, at_});
    async_lanes_[lane].push_back({t, ph == 'b', *id, at_});
  }

  void flow(char ph, const RawTraceEvent& e, Lane lane, std::int64_t t) {
    ++check_.n_flows;
    const auto id = identity(e, "flow-id");
    if (!id) return;
    if (ph == 'f' && text_field(e, "bp") != "e") {
      problem("flow-bp", "without \"bp\":\"e\" it binds to the next slice");
    }
    if (ph == 's') flows_[*id].starts.push_back({lane, t, at_});
    if (ph == 'f') flows_[*id].finishes.push_back({lane, t, at_});
  }

  void check_nesting() {
    for (auto& [lane, spans] : slices_) {
      std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
        return a.start != b.start ? a.start < b.start : a.end > b.end;
      });
      std::vector<std::int64_t> open;
      for (const Span& span : spans) {
        at_ = span.event;
        while (!open.empty() && open.back() <= span.start) open.pop_back();
        if (!open.empty() && span.end > open.back()) {
          problem("overlap", fmt::format("slice ends {} ns after the one around it on {}/{}",
                                         span.end - open.back(), lane.first, lane.second));
        }
        open.push_back(span.end);
      }
    }
  }

  /// True if t is strictly inside a slice of the lane, whose spans are sorted by start.
  bool slice_open_at(Lane lane, std::int64_t t) const {
    const auto found = slices_.find(lane);
    if (found == slices_.end()) return false;
    const std::vector<Span>& spans = found->second;
    auto after = std::ranges::upper_bound(spans, t, {}, &Span::start);
    // Slices are nested only a few deep, so the enclosing slice is one of the last few that
    // started.
    for (int depth = 0; depth < 64 && after != spans.begin(); ++depth) {
      --after;
      if (after->start < t && t < after->end) return true;
    }
    return false;
  }

  void check_flows() {
    for (const auto& [id, flow] : flows_) {
      for (const std::vector<FlowEnd>* ends : {&flow.starts, &flow.finishes}) {
        for (const FlowEnd& end : *ends) {
          at_ = end.event;
          if (!slice_open_at(end.lane, end.t)) problem("flow-no-slice", "no slice is open there");
        }
      }
      at_ = (flow.starts.empty() ? flow.finishes : flow.starts).front().event;
      if (flow.starts.size() > 1) problem("flow-duplicate", "this id began twice");
      if (flow.starts.empty()) problem("flow-no-start", "this id never began");
      if (flow.finishes.empty()) problem("flow-no-end", "this id never ended");
      const bool both = !flow.starts.empty() && !flow.finishes.empty();
      if (both && flow.finishes.front().t < flow.starts.front().t) {
        problem("flow-backwards", "it ends before it begins");
      }
    }
  }

  struct AsyncEnd {
    std::int64_t t = 0;
    int change = 0;
    std::int64_t event = 0;
  };
  struct AsyncMark {
    std::int64_t t = 0;
    bool begins = false;
    std::string id;
    std::int64_t event = 0;
  };

  void check_async() {
    for (auto& [id, ends] : async_) {
      std::ranges::stable_sort(ends, {}, &AsyncEnd::t);
      int n_open = 0;
      for (const AsyncEnd& end : ends) {
        at_ = end.event;
        n_open += end.change;
        if (n_open < 0) problem("async-no-begin", "an end without its begin");
        n_open = std::max(n_open, 0);
      }
      if (n_open > 0) problem("async-no-end", "a begin without its end");
    }
  }

  /// Tracy reads b and e as B and E, so pairs on one lane must nest.
  void check_async_nesting() {
    for (auto& [lane, marks] : async_lanes_) {
      std::ranges::stable_sort(marks, {}, &AsyncMark::t);
      std::vector<std::string> open;
      for (const AsyncMark& mark : marks) {
        at_ = mark.event;
        if (mark.begins) {
          open.push_back(mark.id);
        } else if (!open.empty() && open.back() == mark.id) {
          open.pop_back();
        } else {
          problem("pd1-async-nesting", "pairs of one lane cross");
        }
      }
    }
  }

  void check_begin_end() {
    for (auto& [lane, marks] : begin_end_) {
      std::ranges::stable_sort(marks, {}, &std::pair<std::int64_t, int>::first);
      int n_open = 0;
      for (const auto& [t, change] : marks) {
        n_open += change;
        if (n_open < 0) problem("end-no-begin", fmt::format("E on {}/{}", lane.first, lane.second));
        n_open = std::max(n_open, 0);
      }
      if (n_open > 0) problem("begin-no-end", fmt::format("B on {}/{}", lane.first, lane.second));
    }
  }

  void check_profile(const RawTrace& trace) {
    at_ = -1;
    if (trace.array_form) problem("pd1-form", "expected the object form");
    const auto clock = trace.metadata.find("clock");
    const std::string text = clock == trace.metadata.end() ? "" : clock->second.text;
    if (text != "engine_steady" && text != "own_compute") {
      problem("pd1-metadata", "expected \"clock\":\"engine_steady\" or \"own_compute\"");
    }
    const auto n_stated = trace.metadata.find("events");
    if (n_stated != trace.metadata.end() &&
        n_stated->second.number != static_cast<double>(check_.n_events)) {
      problem("pd1-count", fmt::format("found {} events, metadata says {}", check_.n_events,
                                       shown(n_stated->second)));
    }
    for (const std::int64_t pid : processes_) {
      if (!named_processes_.contains(pid)) problem("pd1-names", fmt::format("process {}", pid));
    }
    for (const auto& [lane, counts] : used_lanes_) {
      if (!lane_names_.contains(lane)) {
        problem("pd1-names", fmt::format("lane {}/{}", lane.first, lane.second));
      }
    }
    for (const std::int64_t event : n_too_fine_) {
      at_ = event;
      problem("pd1-decimals", "more than 3 decimals");
    }
    check_async_nesting();
    for (const auto& [lane, times] : by_lane_) {
      for (std::size_t i = 1; i < times.size(); ++i) {
        at_ = times[i].event;
        if (times[i].start <= times[i - 1].start) {
          problem("pd1-order", fmt::format("{} ns after {} ns on {}/{}", times[i].start,
                                           times[i - 1].start, lane.first, lane.second));
        }
      }
    }
  }

  TraceCheck& check_;
  std::int64_t at_ = -1;
  std::set<std::int64_t> processes_, named_processes_;
  std::map<Lane, TraceLane> used_lanes_;
  std::map<Lane, std::string> lane_names_;
  std::map<Lane, std::vector<Span>> slices_, by_lane_;
  std::map<Lane, std::vector<std::pair<std::int64_t, int>>> begin_end_;
  std::map<Lane, std::vector<AsyncMark>> async_lanes_;
  std::map<std::string, std::vector<AsyncEnd>> async_;
  std::map<std::string, Flow> flows_;
  std::vector<std::int64_t> n_too_fine_;
};

TraceCheck check(std::streambuf& from, const std::function<bool()>& stop) {
  TraceCheck found;
  Rules rules(found);
  const RawTrace trace = read_trace(
      from, [&rules](RawTraceEvent&& event) { rules.event(event); }, stop);
  rules.finish(trace);
  return found;
}

}  // namespace

TraceCheck check_trace(const std::string& path, const std::function<bool()>& stop) {
  const std::unique_ptr<std::streambuf> file = open_trace(path);
  return trace_format_of(path) == TraceFormat::Perfetto ? check_perfetto(*file, stop)
                                                        : check(*file, stop);
}

TraceCheck check_trace_text(const std::string& text) {
  std::stringbuf buffer(text);
  return check(buffer, {});
}

}  // namespace engine
