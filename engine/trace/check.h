// Checks a trace against the rules of docs/contracts.md, independently of the exporter: the
// requirements of Perfetto, chrome://tracing and Tracy, and those of profile PD-1. A file in
// Perfetto's format has fewer rules (perfetto/perfetto_check.h).
#pragma once

#include <functional>
#include <string>

#include "engine/trace/trace_check.h"

namespace engine {

/// Checks a file; decompresses it if its name ends in ".gz".
/// @throws Error(Resources)  the file cannot be read
/// @throws Error(BadInput)  not a regular file
/// @throws Error(Cancelled)  `stop` returned true
TraceCheck check_trace(const std::string& path, const std::function<bool()>& stop = {});

/// Checks a trace given as text.
TraceCheck check_trace_text(const std::string& text);

}  // namespace engine
