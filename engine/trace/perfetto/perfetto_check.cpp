#include "engine/trace/perfetto/perfetto_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_message.hpp>

#include "engine/base/types.h"
#include "engine/trace/perfetto/fields.h"

namespace engine {
namespace {

using protozero::pbf_message;
using protozero::tag_and_type;
using enum protozero::pbf_wire_type;

constexpr std::uint64_t kMostBytes = 16 << 20;
constexpr int kStopEvery = 1024;  // packets between calls of stop()

/// An event of a track.
struct TrackEvent {
  std::uint64_t t = 0, track = 0;  // ns, uuid
  int type = 0;                    // perfetto::EventType
  std::string category;
  std::vector<std::uint64_t> starts, ends;      // ids of flows
  std::map<std::string, std::string> settings;  // annotations with texts
};

/// The declaration of a track.
struct Declaration {
  std::uint64_t uuid = 0, parent = 0;
  std::string name;
  bool is_process = false;
};

Declaration declaration_in(pbf_message<perfetto::TrackField> message) {
  Declaration found;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case tag_and_type(perfetto::TrackField::Uuid, varint):
        found.uuid = message.get_uint64();
        break;
      case tag_and_type(perfetto::TrackField::ParentUuid, varint):
        found.parent = message.get_uint64();
        break;
      case tag_and_type(perfetto::TrackField::Name, length_delimited):
        found.name = message.get_string();
        break;
      case tag_and_type(perfetto::TrackField::Process, length_delimited): {
        found.is_process = true;
        pbf_message<perfetto::ProcessField> process = message.get_message();
        while (process.next()) {
          if (process.tag_and_type() ==
              tag_and_type(perfetto::ProcessField::Name, length_delimited))
            found.name = process.get_string();
          else
            process.skip();
        }
        break;
      }
      default:
        message.skip();
    }
  }
  return found;
}

void add_setting(pbf_message<perfetto::AnnotationField> message,
                 std::map<std::string, std::string>& settings) {
  std::string name, text;
  while (message.next()) {
    if (message.tag_and_type() == tag_and_type(perfetto::AnnotationField::Name, length_delimited))
      name = message.get_string();
    else if (message.tag_and_type() ==
             tag_and_type(perfetto::AnnotationField::String, length_delimited))
      text = message.get_string();
    else
      message.skip();
  }
  if (!text.empty()) settings[name] = text;
}

TrackEvent event_in(pbf_message<perfetto::EventField> message) {
  TrackEvent found;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case tag_and_type(perfetto::EventField::Type, varint):
        found.type = message.get_enum();
        break;
      case tag_and_type(perfetto::EventField::TrackUuid, varint):
        found.track = message.get_uint64();
        break;
      case tag_and_type(perfetto::EventField::Categories, length_delimited):
        found.category = message.get_string();
        break;
      case tag_and_type(perfetto::EventField::FlowIds, fixed64):
        found.starts.push_back(message.get_fixed64());
        break;
      case tag_and_type(perfetto::EventField::TerminatingFlowIds, fixed64):
        found.ends.push_back(message.get_fixed64());
        break;
      case tag_and_type(perfetto::EventField::DebugAnnotations, length_delimited):
        add_setting(message.get_message(), found.settings);
        break;
      default:
        message.skip();
    }
  }
  return found;
}

struct Track {
  std::string name;
  bool is_process = false;
  std::uint64_t last = 0;  // ns
  std::vector<bool> open;  // the open slices: true for one of a block
  TraceLane counts;
};

struct Flow {
  std::optional<std::uint64_t> start, end;  // ns
};

class Checker {
 public:
  explicit Checker(TraceCheck& check) : check_(check) {}

  /// @throws protozero::exception  not a protocol buffer
  void packet(const std::string& bytes) {
    ++index_;
    pbf_message<perfetto::PacketField> message(bytes);
    std::uint64_t t = 0;
    std::optional<TrackEvent> found;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case tag_and_type(perfetto::PacketField::Timestamp, varint):
          t = message.get_uint64();
          break;
        case tag_and_type(perfetto::PacketField::TrackDescriptor, length_delimited):
          declare(declaration_in(message.get_message()));
          break;
        case tag_and_type(perfetto::PacketField::TrackEvent, length_delimited):
          found = event_in(message.get_message());
          break;
        default:
          message.skip();
      }
    }
    if (!found) return;
    found->t = t;
    event(*found);
  }
  void problem(const char* rule, std::string what) {
    ++check_.n_problems;
    if (check_.problems.size() < kMaxTraceProblems)
      check_.problems.push_back({.rule = rule, .event = index_, .what = std::move(what)});
  }
  void finish() {
    if (index_ < 0) problem("no-events", "a trace without packets is not recognised");
    index_ = -1;
    for (const auto& [id, track] : tracks_) {
      if (!track.open.empty())
        problem("nesting", fmt::format("{}: {} slices do not end", track.name, track.open.size()));
      check_.n_processes += track.is_process ? 1 : 0;
      const TraceLane& n = track.counts;
      if (n.n_slices + n.n_async + n.n_instants + n.n_counters == 0) continue;
      ++check_.n_lanes;
      add(check_.lanes[track.name], n);
    }
    for (const auto& [id, flow] : flows_) {
      if (!flow.start || !flow.end)
        problem("flow", fmt::format("flow {} has no {}", id, flow.start ? "end" : "start"));
      else if (*flow.end < *flow.start)
        problem("flow", fmt::format("flow {} ends before it starts", id));
    }
    check_.n_events = check_.n_metadata + check_.n_slices + check_.n_async + check_.n_instants +
                      check_.n_counters + check_.n_flows;
  }

 private:
  static void add(TraceLane& sum, const TraceLane& n) {
    sum.n_slices += n.n_slices;
    sum.n_async += n.n_async;
    sum.n_instants += n.n_instants;
    sum.n_counters += n.n_counters;
    sum.n_flows += n.n_flows;
  }

  void declare(const Declaration& declaration) {
    ++check_.n_metadata;
    if (declaration.parent != 0 && !tracks_.contains(declaration.parent))
      problem("track", fmt::format("track {} has an unknown parent", declaration.uuid));
    Track& track = tracks_[declaration.uuid];
    track.is_process = declaration.is_process;
    track.name = declaration.name;
  }

  void event(const TrackEvent& event) {
    const auto found = tracks_.find(event.track);
    if (found == tracks_.end())
      return problem("track", fmt::format("track {} is unknown", event.track));
    Track& track = found->second;
    if (track.is_process) return settings(event);
    if (event.t < track.last)
      problem("order", fmt::format("{} ns after {} ns", event.t, track.last));
    track.last = std::max(track.last, event.t);
    check_.last_us = std::max(check_.last_us, static_cast<double>(event.t) / 1e3);
    count(track, event);
    for (const std::uint64_t id : event.starts) end_of(flows_[id].start, id, event.t);
    for (const std::uint64_t id : event.ends) end_of(flows_[id].end, id, event.t);
    const auto n = std::ssize(event.starts) + std::ssize(event.ends);
    track.counts.n_flows += n, check_.n_flows += n;
  }

  void count(Track& track, const TrackEvent& event) {
    const bool is_block = event.category == "block";
    switch (event.type) {
      case perfetto::kSliceBegin:
        track.open.push_back(is_block);
        ++(is_block ? track.counts.n_async : track.counts.n_slices);
        ++(is_block ? check_.n_async : check_.n_slices);
        break;
      case perfetto::kSliceEnd:
        if (track.open.empty()) return problem("nesting", "a slice ends that did not begin");
        track.counts.n_async += track.open.back() ? 1 : 0;
        check_.n_async += track.open.back() ? 1 : 0;
        track.open.pop_back();
        break;
      case perfetto::kInstant:
        ++track.counts.n_instants, ++check_.n_instants;
        break;
      case perfetto::kCounterValue:
        ++track.counts.n_counters, ++check_.n_counters;
        break;
      default:
        ++check_.n_other;
    }
  }

  void end_of(std::optional<std::uint64_t>& end, std::uint64_t id, std::uint64_t t) {
    if (end) problem("flow", fmt::format("flow {} has two starts or two ends", id));
    end = t;
  }

  void settings(const TrackEvent& event) {
    ++check_.n_metadata;
    const auto text = [&event](const char* name) {
      const auto found = event.settings.find(name);
      return found == event.settings.end() ? std::string() : found->second;
    };
    if (check_.profile.empty()) check_.profile = text("profile");
    if (!text("model").empty() && !text("weights_hash").empty())
      check_.weights.emplace(text("model"), text("weights_hash"));
  }

  TraceCheck& check_;
  std::int64_t index_ = -1;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, Flow> flows_;
};

/// Reads a variable-length number; nullopt at the end of the file or after 10 bytes.
std::optional<std::uint64_t> number_in(std::streambuf& from) {
  constexpr int kEnd = std::streambuf::traits_type::eof();
  std::string bytes;
  for (int byte = from.sbumpc(); byte != kEnd && std::ssize(bytes) < protozero::max_varint_length;
       byte = from.sbumpc()) {
    bytes += static_cast<char>(byte);
    if ((byte & 0x80) != 0) continue;
    const char* at = bytes.data();
    return protozero::decode_varint(&at, at + bytes.size());
  }
  return std::nullopt;
}

/// Reads one packet. Returns false at the end of the file.
/// @throws protozero::exception  not a packet, or cut off
bool read_packet(std::streambuf& from, std::string& bytes) {
  constexpr std::uint64_t kTag = tag_and_type(perfetto::TraceField::Packet, length_delimited);
  if (from.sgetc() == std::streambuf::traits_type::eof()) return false;
  if (number_in(from) != kTag) throw protozero::invalid_tag_exception();
  const std::optional<std::uint64_t> n_bytes = number_in(from);
  if (!n_bytes || *n_bytes > kMostBytes) throw protozero::invalid_length_exception();
  bytes.resize(*n_bytes);
  if (from.sgetn(bytes.data(), static_cast<std::streamsize>(*n_bytes)) !=
      static_cast<std::streamsize>(*n_bytes))
    throw protozero::end_of_buffer_exception();
  return true;
}

}  // namespace

TraceCheck check_perfetto(std::streambuf& from, const std::function<bool()>& stop) {
  TraceCheck check;
  Checker checker(check);
  try {
    std::string bytes;
    for (int n = 1; read_packet(from, bytes); ++n) {
      checker.packet(bytes);
      if (n % kStopEvery == 0 && stop && stop())
        throw Error(ErrorCode::Cancelled, "the trace was not read: cancelled");
    }
  } catch (const protozero::exception& error) {
    checker.problem("format", error.what());
  }
  checker.finish();
  return check;
}

}  // namespace engine
