// Notes on results that could mislead. Pure functions of measured values, so that tests need no
// timing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {
struct Difference;
}

namespace app {

/// Explains why no decoder was faster than AR, and what to try. Empty if a decoder was faster, if
/// none was compared with AR, if the model is scaled, or if the weights may not fit in the CPU's
/// cache.
/// @param decoders     the decoders compared with AR
/// @param scale        as given to the model, "1x1"
/// @param cache_bytes  size of the last-level cache; 0: unknown
/// @param speedups     wall time of AR divided by the decoder's, for each decoder except AR
std::string why_no_speedup(std::span<const std::string> decoders,
                           const std::string& scale,
                           std::int64_t weight_bytes,
                           std::int64_t cache_bytes,
                           std::span<const double> speedups);

/// The note on a decoder for concurrent prompts (SEED) with a single prompt. Empty without such a
/// decoder.
std::string single_prompt_note(std::span<const std::string> decoders);

/// One line that says where a run's output differs from plain decoding, and what this means.
std::string difference_words(const engine::Difference& difference);

/// True if two measurements of memory bandwidth differ by more than 15 %. Then the timings made
/// between them are unreliable.
/// @param read_gbps  measured before the timings; read_gbps_after is measured after them
bool disturbed(double read_gbps, double read_gbps_after);
/// The note for unreliable timings.
std::string why_disturbed(double read_gbps, double read_gbps_after);

/// Says which scale the window chose because none was given, and why. ui::worthwhile_scale()
/// chooses the scale by the model's size.
/// @param n_params  of the stored model; 0: unknown
std::string why_this_scale(const std::string& model,
                           std::int64_t n_params,
                           const std::string& scale);

/// True if a step was clearly faster than reading the weights from memory, so that at least a part
/// of them must have come from the cache.
bool is_faster_than_memory(double roofline_fraction);
/// The note on ">1" in the column "reached" of `bench step`.
std::string why_above_roofline(std::int64_t weight_bytes, std::int64_t cache_bytes);

}  // namespace app
