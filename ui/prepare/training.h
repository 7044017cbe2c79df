// The content of the screen Training: curves, the state in words, and the answer to one unseen prompt at every probe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/types.h"
#include "ui/prepare/time/curves.h"

namespace engine {
struct ProbeTrajectory;
struct TrainingHistory;
}  // namespace engine

namespace ui {

/// The x axis of the curves; all three count from the start of training, including resumed parts.
enum class TrainingAxis { Steps, Tokens, Minutes };
inline constexpr int kTrainingAxes = 3;
/// Returns the name of an axis.
constexpr const char* axis_name(TrainingAxis axis) {
  return axis == TrainingAxis::Steps    ? "steps"
         : axis == TrainingAxis::Tokens ? "tokens"
                                        : "minutes";
}

/// The curves by chart. A curve has values only for reports that contain its name.
struct TrainingCurves {
  std::vector<Curve> losses;           // the loss, then its parts
  std::vector<Curve> shares;           // probes between 0 and 1: accuracies
  std::vector<Curve> counts;           // other probes: tokens per step
  std::vector<Curve> speed, lr, norm;  // one curve each
};
/// Returns the curves of a training run.
TrainingCurves curves_of(const engine::TrainingHistory& history, TrainingAxis axis);

/// The state of a training run.
struct TrainingStatus {
  std::string words;     // the stage: "training, step 420", "collecting the target's answers"
  double share = -1;     // progress, 0 to 1; -1: unknown
  bool is_over = false;  // the run has finished
  std::string silence;   // time since the last report: "last report 3 s ago"; empty: finished
};
/// Returns the state in words.
TrainingStatus status_of(const engine::TrainingHistory& history);

/// Returns the labels and values: steps, tokens, time, speed, the newest losses and probes.
std::vector<std::pair<std::string, std::string>> facts_of(const engine::TrainingHistory& history);

/// Returns a duration in words: "1 h 04 min", "3 min 20 s", "12 s".
std::string duration_words(double seconds);

/// Counts over the blocks of one probe, in hindsight (engine/event/timeline/trajectory.h).
struct ProbeCounts {
  std::int64_t step = 0;
  int n_tokens = 0, n_iterations = 0;  // counts of the whole answer including its end token
  double fast_forward = 0;             // mean over the blocks of each block's mean
  int n_stationary = 0;
  /// Returns the tokens per iteration; 0 without iterations.
  double tokens_per_iteration() const {
    return n_iterations > 0 ? static_cast<double>(n_tokens) / n_iterations : 0;
  }
};
/// Returns the counts of all probes.
std::vector<ProbeCounts> counts_of(const engine::TrainingHistory& history);
/// Returns the counts as curves over the steps of the probes.
std::vector<Curve> curves_of(std::span<const ProbeCounts> counts);

/// Returns the text of a token as cells show it.
std::string piece_text(const engine::TrainingHistory& history, engine::TokenId token);
/// Returns the answer of a probe, up to its end token.
std::string answer_text(const engine::TrainingHistory& history,
                        const engine::ProbeTrajectory& probe);

/// Returns the forms of the caption of a picture of the screen, longest first.
std::vector<std::string> caption_forms(const std::string& app_version,
                                       const engine::TrainingHistory& history);

}  // namespace ui
