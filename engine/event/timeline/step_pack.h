// Packs a step into few bytes, for step_store.h. In memory only: no file has this layout.
//   numbers   variable length, signed ones zigzag; times and ids relative to the step's beginning
//   structure head, then drafted, verified, committed, pool without their payload
#pragma once

#include <string>
#include <string_view>

#include "engine/event/payload.h"
#include "engine/event/timeline/step_record.h"

namespace engine {

/// Appends the structure of a step to `bytes`.
void pack_structure(const StepRecord& step, std::string& bytes);
/// Appends the payload of one kind to `bytes`; nothing if the step has none.
void pack_payload(const StepRecord& step, PayloadKind kind, std::string& bytes);

/// Unpacks the head alone.
StepHead unpack_head(std::string_view structure);
/// Unpacks a step without its payload.
StepRecord unpack_structure(std::string_view structure);
/// Adds the payload of one kind to a step unpacked from the same structure.
void unpack_payload(StepRecord& step, PayloadKind kind, std::string_view bytes);

}  // namespace engine
