// Payload: the parts of events that may be large and are dropped when their memory budget is spent.
// Everything else is structure and always kept.
//   probabilities  q of drafts; log probabilities, margins, draws, distributions and probe scores
//                  of verifications
//   trajectory     the states of a block (BlockRefined)
//   pool           n-grams added, evicted, tried (PoolChanged); the sizes of these lists are
//                  structure
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// The kinds of payload.
enum class PayloadKind : std::uint8_t { Probabilities, Trajectory, Pool };
inline constexpr std::size_t kPayloadKinds = 3;
inline constexpr std::array<PayloadKind, kPayloadKinds> kAllPayloadKinds{
    PayloadKind::Probabilities, PayloadKind::Trajectory, PayloadKind::Pool};

/// "probabilities", "trajectory", "pool": the value of PayloadDropped::kind.
const char* name_of(PayloadKind kind);

/// The kind and size of an event's payload; 0 bytes: no payload.
struct Payload {
  PayloadKind kind = PayloadKind::Probabilities;
  StepId step = 0;
  std::size_t n_bytes = 0;
};
/// Measures the payload of an event.
Payload payload_of(const Event& event);

/// Removes the payload of an event.
/// @return  false if no structure remains (a block's state is payload as a whole)
bool strip(Event& event);

/// Makes the report that one event's payload was dropped. The report has the time and run of the
/// event.
PayloadDropped drop_of(const Event& event, const Payload& payload);

/// Extends `report` by a further drop of the same run and kind.
void widen(PayloadDropped& report, const PayloadDropped& more);

/// Adds a drop to a list. Neighbouring steps with drops of one kind are joined to one range.
void add_drop(std::vector<PayloadDropped>& reports, const PayloadDropped& drop);

}  // namespace engine
