// A step as few bytes, for step_store.h. In memory only: no file holds this layout.
//   numbers   variable length, signed ones zigzag; times and ids relative to the step's beginning
//   structure head, then drafted, verified, committed, pool without their payload
#pragma once

#include <string>
#include <string_view>

#include "engine/event/payload.h"
#include "engine/event/timeline/step_record.h"

namespace engine {

/// Appends a step's structure.
void pack_structure(const StepRecord& step, std::string& bytes);
/// Appends its payload of one kind; nothing where it has none.
void pack_payload(const StepRecord& step, PayloadKind kind, std::string& bytes);

StepHead unpack_head(std::string_view structure);
StepRecord unpack_structure(std::string_view structure);
/// Puts payload back into a record unpacked from the same step's structure.
void unpack_payload(StepRecord& step, PayloadKind kind, std::string_view bytes);

}  // namespace engine
