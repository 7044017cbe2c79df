// Checks a trace in Perfetto's format, independently of the writer.
#pragma once

#include <functional>
#include <streambuf>

#include "engine/trace/trace_check.h"

namespace engine {

/// Reads the packets of an untrusted trace one by one (at most 16 MB each) and checks them. The rules:
///   format     a packet is not a protocol buffer, or the file ends within one
///   no-events  the file has no packet
///   track      an event of a track that was not declared before
///   order      an event before the previous one of its track
///   nesting    the end of a slice that did not begin, or a slice without end
///   flow       not one start and one end of a flow, or the end before the start
/// @throws Error(Cancelled)  `stop` returned true
TraceCheck check_perfetto(std::streambuf& from, const std::function<bool()>& stop = {});

}  // namespace engine
