// Notes that explain results which could mislead on their own. Pure functions, testable without
// timing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {
struct Difference;
}

namespace app {

/// Why no decoder was faster than AR, and what to try. Empty if one was, if none was compared with
/// AR, if the model is scaled, or unless its weights are known to fit in the CPU's cache.
/// @param decoders     the decoders compared with AR
/// @param scale        as given to the model, "1x1"
/// @param cache_bytes  size of the last-level cache; 0: unknown
/// @param speedups     wall time of AR divided by the decoder's, for each decoder except AR
std::string why_no_speedup(std::span<const std::string> decoders,
                           const std::string& scale,
                           std::int64_t weight_bytes,
                           std::int64_t cache_bytes,
                           std::span<const double> speedups);

/// What a decoder for concurrent prompts (SEED) does with a single prompt. Empty if there is no such
/// decoder.
std::string why_alone(std::span<const std::string> decoders);

/// One line on where a run's output differs from plain decoding, and what that means.
std::string difference_words(const engine::Difference& difference);

/// Whether two measurements of memory bandwidth differ by more than 15 %: the timings between them
/// are unreliable.
/// @param read_gbps  measured before; read_gbps_after measured after
bool disturbed(double read_gbps, double read_gbps_after);
/// The note for unreliable timings.
std::string why_disturbed(double read_gbps, double read_gbps_after);

/// Which scale the window started with when none was given, and why. ui::worthwhile_scale() chooses
/// it by the model's size.
/// @param n_params  of the stored model; 0: unknown
std::string why_this_scale(const std::string& model,
                           std::int64_t n_params,
                           const std::string& scale);

/// Whether a step was so much faster than reading the weights from memory that they must have come
/// from cache.
bool beats_memory(double roofline_fraction);
/// The note on ">1" in the column "reached" of `bench step`.
std::string why_above_roofline(std::int64_t weight_bytes, std::int64_t cache_bytes);

}  // namespace app
