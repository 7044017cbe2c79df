// What the screen Training shows of a training's history: its curves, how far it is in words, and
// how the answer to one unseen prompt changes from probe to probe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/recording/training_history.h"
#include "ui/prepare/time/curves.h"

namespace ui {

/// What the curves run over: all three are of the training so far, resumed parts included.
enum class TrainingAxis { Steps, Tokens, Minutes };
inline constexpr int kTrainingAxes = 3;
constexpr const char* axis_name(TrainingAxis axis) {
  return axis == TrainingAxis::Steps    ? "steps"
         : axis == TrainingAxis::Tokens ? "tokens"
                                        : "minutes";
}

/// The curves of a training by chart. A name that only some reports have has values there alone.
struct TrainingCurves {
  std::vector<Curve> losses;           // what is minimised, then its parts
  std::vector<Curve> shares;           // probes between 0 and 1: accuracies
  std::vector<Curve> counts;           // the other probes: tokens a step
  std::vector<Curve> speed, lr, norm;  // one each
};
TrainingCurves curves_of(const engine::TrainingHistory& history, TrainingAxis axis);

/// How far it is: "training, step 420", "collecting the target's answers".
struct TrainingStatus {
  std::string words;
  double share = -1;     // done, 0 to 1; -1: not known
  bool is_over = false;  // nothing more is expected
  std::string silence;   // "told 3 s ago", "nothing for 12 min: stopped, or ..."; empty: over
};
TrainingStatus status_of(const engine::TrainingHistory& history);

/// Rows of a label and a value: steps, tokens, time, speed, the newest losses and probes.
std::vector<std::pair<std::string, std::string>> facts_of(const engine::TrainingHistory& history);

/// "1 h 04 min", "3 min 20 s", "12 s".
std::string duration_words(double seconds);

/// What is counted on the blocks of one probe, in hindsight (engine/event/timeline/trajectory.h).
struct ProbeCounts {
  std::int64_t step = 0;
  int n_tokens = 0, n_iterations = 0;  // of the whole answer, its end token included
  double fast_forward = 0;             // mean of the blocks' means
  int n_stationary = 0;
  double tokens_per_iteration() const {
    return n_iterations > 0 ? static_cast<double>(n_tokens) / n_iterations : 0;
  }
};
std::vector<ProbeCounts> counts_of(const engine::TrainingHistory& history);
/// One curve a figure over the probes' steps.
std::vector<Curve> curves_of(std::span<const ProbeCounts> counts);

/// A token as a cell shows it.
std::string piece_text(const engine::TrainingHistory& history, engine::TokenId token);
/// A probe's whole answer, to its end token.
std::string answer_text(const engine::TrainingHistory& history,
                        const engine::ProbeTrajectory& probe);

/// What a picture of the screen has to say by itself.
std::string caption_words(const std::string& app_version, const engine::TrainingHistory& history);

}  // namespace ui
