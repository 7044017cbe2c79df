// Compares a run with plain decoding under the same settings.
#pragma once

#include <span>

#include "engine/base/types.h"
#include "engine/event/event.h"
#include "engine/run/run.h"

namespace engine {

/// True if two lossless runs with these settings must agree token for token. Under rejection
/// sampling only their distribution is the same.
bool comparable(const Sampling& sampling);

/// The tokens of one run.
struct Ending {
  std::span<const TokenId> tokens;
  bool whole = true;  // true: the run ended by itself, so its length is compared too
};

/// Compares the tokens of two runs. If one of them was stopped, compares only up to its length. The
/// caller sets `run`, `baseline`, `t` and `cost`.
Agreement agreement_of(Ending found, Ending expected);

/// Compares a run with plain decoding on the same request, and sets identical_to_ar and difference
/// in `result`.
Agreement agree(RunResult& result, const RunResult& ar);

}  // namespace engine
