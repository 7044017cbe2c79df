// Which parts of events are payload: what a panel shows beside the structure, may be large, and may
// be dropped if memory for it is spent. Everything else is structure and always kept.
//   probabilities  q of drafts; log probabilities, margins, draws, distributions and a probe's scores of a
//                  verification
//   trajectory     the states of a block (BlockRefined)
//   pool           n-grams added, evicted, tried (PoolChanged); its sizes are structure
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/event/event.h"

namespace engine {

enum class PayloadKind : std::uint8_t { Probabilities, Trajectory, Pool };
inline constexpr std::size_t kPayloadKinds = 3;
inline constexpr std::array<PayloadKind, kPayloadKinds> kAllPayloadKinds{
    PayloadKind::Probabilities, PayloadKind::Trajectory, PayloadKind::Pool};

/// "probabilities", "trajectory", "pool": what PayloadDropped::kind says.
const char* name_of(PayloadKind kind);

/// What an event's payload is and how much memory it takes; 0 bytes: it has none.
struct Payload {
  PayloadKind kind = PayloadKind::Probabilities;
  StepId step = 0;
  std::size_t n_bytes = 0;
};
Payload payload_of(const Event& event);

/// Takes the payload out and leaves the structure.
/// @return false  nothing is left to tell (a block's state is payload as a whole)
bool strip(Event& event);

/// The drop of one event's payload, with the time and run of the event.
PayloadDropped drop_of(const Event& event, const Payload& payload);

/// Widens `told` by a further drop of the same run and kind.
void widen(PayloadDropped& told, const PayloadDropped& more);

/// Adds a drop to a list in which neighbouring steps of a kind are told as one range.
void add_drop(std::vector<PayloadDropped>& told, const PayloadDropped& drop);

}  // namespace engine
