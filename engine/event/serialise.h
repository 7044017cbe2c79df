// Events as bytes: what a .pdrun recording frames.
//   layout  u16 kind (the alternative's place in Event), then its fields in the order they were
//           introduced, each as LEB128 length and that many bytes; numbers little endian
//   grows   new kinds go to the end of Event, new fields to the end of a kind: an older program
//           skips and counts what it does not know, a newer one finds defaults for what is missing
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/event/event.h"

namespace engine {

/// Appends one event to `bytes`.
void encode(const Event& event, std::string& bytes);

struct Decoded {
  std::optional<Event> event;  // nullopt: a kind this program does not know
  std::uint16_t kind = 0;
  int n_unknown_fields = 0;  // after the last known one
};

/// One event from exactly `bytes`.
/// @throws Error(BadInput)  a field longer than what is left, of the wrong width, or no value of
/// its enumeration; the message names kind, field number and what was found
Decoded decode(std::string_view bytes);

/// "StepBegun"; "kind 77" for one not known.
std::string kind_name(std::size_t kind);

}  // namespace engine
