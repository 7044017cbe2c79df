// payload_fields(visit, e): calls visit for every payload field (payload.h) of an event. Measuring,
// dropping and packing share this list. BlockRefined is payload as a whole, so it is not in the
// list.
#pragma once

#include "engine/event/event_fields.h"

namespace engine {

/// An event without payload fields.
void payload_fields(auto& /*visit*/, auto& /*event*/) {}

/// Payload fields of Drafted.
void payload_fields(auto& visit, Is<Drafted> auto& e) {
  visit(e.q);
}

/// Payload fields of Verified.
void payload_fields(auto& visit, Is<Verified> auto& e) {
  visit(e.logp), visit(e.margin), visit(e.uniform), visit(e.keep);
  visit(e.p), visit(e.rejection_details), visit(e.probe);
}

/// Payload fields of PoolChanged.
void payload_fields(auto& visit, Is<PoolChanged> auto& e) {
  visit(e.added), visit(e.evicted), visit(e.tried);
}

}  // namespace engine
