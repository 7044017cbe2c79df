// Sentences that go with figures where the figures alone would mislead: pure functions, so that
// their conditions are tested without a clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace app {

/// Why no decoder of a race was faster than AR, and what to try. Empty where one was, where nothing
/// raced against AR, where the model is scaled, or where its weights are not known to lie in the
/// processor's cache.
/// @param scale        as given to the model, "1x1"
/// @param cache_bytes  of the last-level cache; 0: unknown
/// @param speedups     wall time of AR / own, of every decoder but AR
std::string why_no_speedup(const std::string& scale,
                           std::int64_t weight_bytes,
                           std::int64_t cache_bytes,
                           std::span<const double> speedups);

/// Whether a step came so far under the time in which memory gives its weights that it cannot have
/// read them from there.
bool beats_memory(double roofline_fraction);
/// What ">1" in the column "reached" of `bench step` means.
std::string why_above_roofline(std::int64_t weight_bytes, std::int64_t cache_bytes);

}  // namespace app
