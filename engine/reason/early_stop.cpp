#include "engine/reason/early_stop.h"

#include "engine/decode/registry.h"

namespace engine {

void refuse_early_stop(const std::string& decoder, const OptionValues& options) {
  const std::string stop = parse_options(decoder, options)->early_stop();
  if (stop.empty()) return;
  throw Error(ErrorCode::Usage, decoder + ": stop is " + stop +
                                    ", which ends a text early, but a tree of thoughts needs whole "
                                    "texts; use stop=none, or a chain of thought");
}

}  // namespace engine
