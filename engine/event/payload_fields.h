// The payload of each kind of event, field by field: the one list that measuring, dropping and
// packing share. A block's state (BlockRefined) is payload as a whole and not in it.
#pragma once

#include "engine/event/event_fields.h"

namespace engine {

void payload_fields(auto& /*visit*/, auto& /*event*/) {}

void payload_fields(auto& visit, Is<Drafted> auto& e) {
  visit(e.q);
}

void payload_fields(auto& visit, Is<Verified> auto& e) {
  visit(e.logp), visit(e.margin), visit(e.uniform), visit(e.keep);
  visit(e.p), visit(e.rejection_details), visit(e.probe);
}

void payload_fields(auto& visit, Is<PoolChanged> auto& e) {
  visit(e.added), visit(e.evicted), visit(e.tried);
}

}  // namespace engine
