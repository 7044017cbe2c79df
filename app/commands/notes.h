// Sentences that go with figures where the figures alone would mislead: pure functions, so that
// their conditions are tested without a clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {
struct Difference;
}

namespace app {

/// Why none of these decoders was faster than AR, and what to try. Empty where one was, where
/// nothing raced against AR, where the model is scaled, or where its weights are not known to lie
/// in the processor's cache.
/// @param decoders     those that were compared with AR
/// @param scale        as given to the model, "1x1"
/// @param cache_bytes  of the last-level cache; 0: unknown
/// @param speedups     wall time of AR / own, of every decoder but AR
std::string why_no_speedup(std::span<const std::string> decoders,
                           const std::string& scale,
                           std::int64_t weight_bytes,
                           std::int64_t cache_bytes,
                           std::span<const double> speedups);

/// What is run of a decoder whose texts take turns where there is one prompt. Empty where none of
/// the decoders is one.
std::string why_alone(std::span<const std::string> decoders);

/// Where a run differs from plain decoding, and what to make of it; in one line.
std::string difference_words(const engine::Difference& difference);

/// Whether the memory's two probes differ by more than 15 %: what was measured between them is not
/// to be trusted.
/// @param read_gbps  before, and after
bool disturbed(double read_gbps, double read_gbps_after);
std::string why_disturbed(double read_gbps, double read_gbps_after);

/// Which scale a window began with that was given none, and why; ui::worthwhile_scale() chose it by
/// the model's size alone.
/// @param n_params  as stored; 0: unknown
std::string why_this_scale(const std::string& model,
                           std::int64_t n_params,
                           const std::string& scale);

/// Whether a step came so far under the time in which memory gives its weights that it cannot have
/// read them from there.
bool beats_memory(double roofline_fraction);
/// What ">1" in the column "reached" of `bench step` means.
std::string why_above_roofline(std::int64_t weight_bytes, std::int64_t cache_bytes);

}  // namespace app
