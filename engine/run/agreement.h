// Whether a run wrote what plain decoding writes with the same settings.
#pragma once

#include <span>

#include "engine/decode/verify/sampling.h"
#include "engine/event/event.h"
#include "engine/run/run.h"
#include "engine/base/types.h"

namespace engine {

/// Whether two runs of these settings must agree token for token. Under rejection sampling they
/// have one distribution, but not the same tokens.
bool comparable(const Sampling& sampling);

/// The tokens of one run, and whether it ended by itself (then its end counts too).
struct Ending {
  std::span<const TokenId> tokens;
  bool whole = true;
};

/// Compares as far as a run that was stopped goes; `run`, `t` and `cost` are the caller's to fill.
Agreement agreement_of(Ending found, Ending expected);

/// The same of a run and plain decoding on its request; keeps in `result` what it came to.
Agreement agree(RunResult& result, const RunResult& ar);

}  // namespace engine
