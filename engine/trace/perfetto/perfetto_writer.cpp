#include "engine/trace/perfetto/perfetto_writer.h"

#include <limits>

#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>

#include "engine/event/recording/recording_format.h"
#include "engine/trace/perfetto/fields.h"

namespace engine {
namespace {

using Json = nlohmann::ordered_json;
using perfetto::AnnotationField;
using perfetto::EventField;
using protozero::pbf_builder;

constexpr std::uint32_t kSequence = 1, kStateCleared = 1;
constexpr int kByRank = 3;           // TrackField::ChildOrdering
constexpr int kFirstCounter = 1000;  // tid of the tracks of counters

std::uint64_t process_track(int pid) {
  return static_cast<std::uint64_t>(pid) << 32;
}
std::uint64_t lane_track(int pid, int tid) {
  return process_track(pid) + static_cast<std::uint64_t>(tid);
}

void add_value(pbf_builder<AnnotationField>& to, const Json& value) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      pbf_builder<AnnotationField> entry(to, AnnotationField::DictEntries);
      entry.add_string(AnnotationField::Name, name);
      add_value(entry, member);
    }
  } else if (value.is_array()) {
    for (const Json& item : value) {
      pbf_builder<AnnotationField> entry(to, AnnotationField::ArrayValues);
      add_value(entry, item);
    }
  } else if (value.is_boolean()) {
    to.add_bool(AnnotationField::Bool, value.get<bool>());
  } else if (value.is_number_unsigned()) {
    to.add_uint64(AnnotationField::Uint, value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    to.add_int64(AnnotationField::Int, value.get<std::int64_t>());
  } else if (value.is_number()) {
    to.add_double(AnnotationField::Double, value.get<double>());
  } else {
    to.add_string(AnnotationField::String,
                  value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void add_annotations(pbf_builder<EventField>& event, const Json& args) {
  for (const auto& [name, value] : args.items()) {
    pbf_builder<AnnotationField> entry(event, EventField::DebugAnnotations);
    entry.add_string(AnnotationField::Name, name);
    add_value(entry, value);
  }
}

/// The id of a flow in the file.
std::uint64_t flow_id(int pid, std::int64_t id) {
  return process_track(pid) + static_cast<std::uint64_t>(id);
}

}  // namespace

template <typename Fill>
void PerfettoWriter::put(Fill fill) {
  bytes_.clear();
  pbf_builder<perfetto::TraceField> trace(bytes_);
  {
    pbf_builder<perfetto::PacketField> packet(trace, perfetto::TraceField::Packet);
    packet.add_uint32(perfetto::PacketField::SequenceId, kSequence);
    if (is_empty_) packet.add_uint32(perfetto::PacketField::SequenceFlags, kStateCleared);
    fill(packet);
  }
  is_empty_ = false;
  write_(bytes_);
}

template <typename Fill>
void PerfettoWriter::put_track(std::uint64_t uuid, Fill fill) {
  count_name();
  put([&](pbf_builder<perfetto::PacketField>& packet) {
    pbf_builder<perfetto::TrackField> track(packet, perfetto::PacketField::TrackDescriptor);
    track.add_uint64(perfetto::TrackField::Uuid, uuid);
    fill(track);
  });
}

template <typename Fill>
void PerfettoWriter::put_event(Nanoseconds t, std::uint64_t track, int type, Fill fill) {
  put([&](pbf_builder<perfetto::PacketField>& packet) {
    packet.add_uint64(perfetto::PacketField::Timestamp, static_cast<std::uint64_t>(t));
    pbf_builder<EventField> event(packet, perfetto::PacketField::TrackEvent);
    event.add_enum(EventField::Type, type);
    event.add_uint64(EventField::TrackUuid, track);
    fill(event);
  });
}

void PerfettoWriter::process(int pid, const std::string& title) {
  put_track(process_track(pid), [&](auto& track) {
    track.add_enum(perfetto::TrackField::ChildOrdering, kByRank);
    pbf_builder<perfetto::ProcessField> process(track, perfetto::TrackField::Process);
    process.add_int32(perfetto::ProcessField::Pid, pid);
    process.add_string(perfetto::ProcessField::Name, title);
  });
}

void PerfettoWriter::lane(int pid, int tid, int place, const std::string& name) {
  put_track(lane_track(pid, tid), [&](auto& track) {
    track.add_uint64(perfetto::TrackField::ParentUuid, process_track(pid));
    track.add_string(perfetto::TrackField::Name, name);
    track.add_int32(perfetto::TrackField::SiblingOrderRank, place);
  });
}

void PerfettoWriter::about(int pid, const std::string& object) {
  count_name();
  put_event(0, process_track(pid), perfetto::kInstant, [&](auto& event) {
    event.add_string(EventField::Name, "settings");
    add_annotations(event, {{"profile", "PD-1"},
                            {"app", "decoscope"},
                            {"app_version", program_version()},
                            {"clock", clock_}});
    add_annotations(event, Json::parse(object));
  });
}

void PerfettoWriter::finish() {
  if (is_empty_) process(1, "no run");  // viewers do not recognise a trace without packets
}

void PerfettoWriter::end_slices(std::uint64_t track, Nanoseconds t) {
  for (; !open_.empty() && open_.back() <= t; open_.pop_back())
    put_event(open_.back(), track, perfetto::kSliceEnd, [](auto&) {});
}

void PerfettoWriter::begin_slice(std::uint64_t track,
                                 int pid,
                                 std::span<const TraceItem> lane,
                                 std::size_t i) {
  const TraceItem& item = lane[i];
  put_event(item.ts, track, perfetto::kSliceBegin, [&](auto& event) {
    event.add_string(EventField::Name, item.name);
    if (!item.cat.empty()) event.add_string(EventField::Categories, item.cat);
    if (!item.args.empty()) {
      const Json args = Json::parse(item.args);
      add_annotations(event, args);
      if (const auto step = args.find("step"); step != args.end())
        event.add_uint64(EventField::CorrelationId,
                         process_track(pid) + step->template get<std::uint64_t>() + 1);
    }
    // The flows whose innermost slice this is.
    Nanoseconds inner_end = item.ts;
    for (std::size_t k = i + 1; k < lane.size() && lane[k].ts < item.end; ++k) {
      const TraceItem& inside = lane[k];
      if (inside.ts < inner_end) continue;
      if (inside.ph == 'X') inner_end = inside.end;
      if (inside.ph == 's') event.add_fixed64(EventField::FlowIds, flow_id(pid, inside.id));
      if (inside.ph == 'f')
        event.add_fixed64(EventField::TerminatingFlowIds, flow_id(pid, inside.id));
    }
  });
  open_.push_back(item.end);
}

std::uint64_t PerfettoWriter::counter_track(int pid, const std::string& name) {
  const auto n = static_cast<int>(counters_.size());
  const auto [at, is_new] = counters_.try_emplace({pid, name}, lane_track(pid, kFirstCounter + n));
  if (!is_new) return at->second;
  put_track(at->second, [&](auto& track) {
    track.add_uint64(perfetto::TrackField::ParentUuid, process_track(pid));
    track.add_string(perfetto::TrackField::Name, name);
    track.add_message(perfetto::TrackField::Counter, std::string());
    track.add_int32(perfetto::TrackField::SiblingOrderRank, kFirstCounter + n);
  });
  return at->second;
}

void PerfettoWriter::write_counters(int pid, const TraceItem& item) {
  const Json args = Json::parse(item.args);
  count_series(static_cast<std::int64_t>(args.size()) - 1);
  for (const auto& [series, value] : args.items()) {
    const std::string name = args.size() > 1 ? item.name + " " + series : item.name;
    put_event(item.ts, counter_track(pid, name), perfetto::kCounterValue, [&value](auto& event) {
      event.add_double(EventField::DoubleCounterValue, value.template get<double>());
    });
  }
}

void PerfettoWriter::write_event(int pid, int tid, std::span<const TraceItem> lane, std::size_t i) {
  const std::uint64_t track = lane_track(pid, tid);
  const TraceItem& item = lane[i];
  end_slices(track, item.ts);
  if (item.ph == 'X') begin_slice(track, pid, lane, i);
  if (item.ph == 'C') write_counters(pid, item);
  if (item.ph == 'e') put_event(item.ts, track, perfetto::kSliceEnd, [](auto&) {});
  if (item.ph == 'b' || item.ph == 'i') {
    put_event(item.ts, track, item.ph == 'b' ? perfetto::kSliceBegin : perfetto::kInstant,
              [&item](auto& event) {
                event.add_string(EventField::Name, item.name);
                if (!item.cat.empty()) event.add_string(EventField::Categories, item.cat);
                if (!item.args.empty()) add_annotations(event, Json::parse(item.args));
              });
  }
  if (i + 1 == lane.size()) end_slices(track, std::numeric_limits<Nanoseconds>::max());
}

}  // namespace engine
