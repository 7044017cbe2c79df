// The field numbers of Perfetto's trace format (perfetto_trace.proto) that an exported trace needs.
// Types: times, ids and uuids are uint64 (flow ids fixed64), names are strings.
#pragma once

#include <protozero/types.hpp>

namespace engine::perfetto {

/// Fields of the file.
enum class TraceField : protozero::pbf_tag_type { Packet = 1 };

/// Fields of a packet.
enum class PacketField : protozero::pbf_tag_type {
  Timestamp = 8,    // ns
  SequenceId = 10,  // trusted_packet_sequence_id, uint32
  TrackEvent = 11,
  SequenceFlags = 13,  // uint32
  TrackDescriptor = 60,
};

/// Fields of a track.
enum class TrackField : protozero::pbf_tag_type {
  Uuid = 1,
  Name = 2,
  Process = 3,
  ParentUuid = 5,
  Counter = 8,
  ChildOrdering = 11,     // enum; 3: by sibling_order_rank
  SiblingOrderRank = 12,  // int32
};

/// Fields of a track's process.
enum class ProcessField : protozero::pbf_tag_type { Pid = 1 /* int32 */, Name = 6 };

/// Fields of a track's event.
enum class EventField : protozero::pbf_tag_type {
  DebugAnnotations = 4,
  Type = 9,  // EventType
  TrackUuid = 11,
  Categories = 22,
  Name = 23,
  DoubleCounterValue = 44,
  FlowIds = 47,
  TerminatingFlowIds = 48,
  CorrelationId = 52,
};

/// Types of events.
enum EventType : int { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4 };

/// Fields of a named value of an event.
enum class AnnotationField : protozero::pbf_tag_type {
  Bool = 2,
  Uint = 3,  // uint64
  Int = 4,   // int64
  Double = 5,
  String = 6,
  Name = 10,
  DictEntries = 11,  // Annotation
  ArrayValues = 12,  // Annotation
};

}  // namespace engine::perfetto
