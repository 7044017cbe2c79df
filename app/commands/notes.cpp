#include "app/commands/notes.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/event/run_rules.h"
#include "engine/run/run.h"

namespace app {
namespace {

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

}  // namespace

std::string why_no_speedup(std::span<const std::string> decoders,
                           const std::string& scale,
                           std::int64_t weight_bytes,
                           std::int64_t cache_bytes,
                           std::span<const double> speedups) {
  const bool any_faster =
      std::any_of(speedups.begin(), speedups.end(), [](double s) { return s > 1; });
  if (speedups.empty() || any_faster || scale != "1x1" || weight_bytes > cache_bytes) return "";
  return fmt::format(
      "{}: not faster than ar: this model's weights ({}) fit in the processor's cache\n({}), and "
      "then every further row makes a step longer. --scale auto gives the same tokens with\nthe "
      "step times of a model larger than that cache, where further rows cost little.\n",
      fmt::join(decoders, ", "), megabytes(weight_bytes), megabytes(cache_bytes));
}

std::string single_prompt_note(std::span<const std::string> decoders) {
  const auto found = std::ranges::find_if(decoders, engine::takes_turns);
  if (found == decoders.end()) return "";
  return fmt::format(
      "{}: with a single prompt it runs as one branch, which is mcsd with the same k_config. The "
      "prompts of a --prompt-file are its branches",
      *found);
}

std::string difference_words(const engine::Difference& difference) {
  const auto lead = [](std::optional<float> margin) {
    return margin ? fmt::format("{:.3g}", *margin) : std::string("none, it had ended");
  };
  return fmt::format(
      "first at token {}; lead of its choice {}, of ar's choice {} (near 0: rounding; else a bug)",
      difference.at, lead(difference.margin), lead(difference.margin_of_ar));
}

bool disturbed(double read_gbps, double read_gbps_after) {
  return std::min(read_gbps, read_gbps_after) < 0.85 * std::max(read_gbps, read_gbps_after);
}

std::string why_disturbed(double read_gbps, double read_gbps_after) {
  return fmt::format(
      "memory was read at {:.1f} GB/s before the steps and at {:.1f} GB/s after them: other "
      "programs were running, so these timings are unreliable; run it again",
      read_gbps, read_gbps_after);
}

std::string why_this_scale(const std::string& model,
                           std::int64_t n_params,
                           const std::string& scale) {
  const std::string size = fmt::format("{:.1f} M parameters", static_cast<double>(n_params) * 1e-6);
  std::string why = fmt::format("its {} do not fit in a processor's cache", size);
  if (n_params <= 0) why = "its size is not known";
  if (scale != "1x1") {
    why = fmt::format(
        "its {} would fit in the processor's cache, where parallel decoders are not faster", size);
  }
  return fmt::format("{} starts at scale {}: {}; --scale selects another", model, scale, why);
}

bool is_faster_than_memory(double roofline_fraction) {
  return roofline_fraction > 1.05;  // a tolerance, because the probe varies by some percent
}

std::string why_above_roofline(std::int64_t weight_bytes, std::int64_t cache_bytes) {
  const bool too_large = cache_bytes > 0 && weight_bytes > cache_bytes;
  const std::string cache = cache_bytes > 0 ? " (" + megabytes(cache_bytes) + ")" : "";
  const std::string why =
      too_large ? "the memory probe was disturbed; measure again without other programs"
                : fmt::format("these weights ({}) are in the processor's cache{}, not in memory",
                              megabytes(weight_bytes), cache);
  return "reached: minimum time by the memory and multiply probes / time measured. \">1\" is "
         "faster than\nreading from memory: " +
         why + ".\n";
}

}  // namespace app
