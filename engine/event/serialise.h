// Events as bytes, the content of the frames of a .pdrun recording.
//   layout  u16 kind (index of the alternative in Event), then its fields in the order in which
//           they were introduced, each as a LEB128 length and that many bytes. Numbers are little
//           endian
//   grows   new kinds go to the end of Event, new fields to the end of a kind. An older program
//           skips and counts kinds and fields that it does not know; a newer program uses defaults
//           for missing fields
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

/// One decoded event.
struct Decoded {
  std::optional<Event> event;  // nullopt: an unknown kind
  std::uint16_t kind = 0;
  int n_unknown_fields = 0;  // number of fields after the last known one
};

/// Decodes one event from exactly `bytes`.
/// @throws Error(BadInput)  for a field that is longer than the remaining bytes, has the wrong
///                          width or a value that its enumeration does not have; the message names
///                          kind and field number
Decoded decode(std::string_view bytes);

/// "StepBegun"; "kind 77" for an unknown kind.
std::string kind_name(std::size_t kind);

}  // namespace engine
