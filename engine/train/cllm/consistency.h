// Lays out a collected trajectory as the rows of one forward pass: the text as causal rows, then
// points of its blocks as chains. A chain attends to the text before it and to itself, so one forward
// pass gives the predictions of every point and of the text at the same positions.
//   paper    Kou et al. 2024 (arXiv:2403.00835), section 3.2: the global loss trains the predictions
//            of a point towards those of its fixed point, the local loss towards those of the next
//            point; an autoregressive loss is added
//   rows     a chain starts at the first wrong token of its point. Before that token the point equals
//            the text, so the text's rows already train these predictions
//   ends     a block may continue after the end token; the loss covers only positions up to it
//   fresh    the points of a trajectory are the same in every epoch. So every step also adds fresh
//            chains, which start anywhere in the answer and have new random guesses
//   refined  the target's guesses in the trajectories differ from those of the model in training.
//            So Jacobi iterations of the current model may refine fresh chains before the update
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/random.h"
#include "engine/train/cllm/trajectories.h"
#include "engine/train/core/packing.h"
#include "engine/train/core/transformer.h"

namespace engine {

/// The part of the loss that a row belongs to. Each part is the mean loss of its rows in a step.
enum class LossPart : std::uint8_t { Autoregressive, Consistency, Replay };
inline constexpr int kLossParts = 3;
/// "ar", "consistency" or "replay".
const char* name_of(LossPart part);

/// The consistency loss and the autoregressive loss.
struct ConsistencyLoss {
  /// The teacher of a point's predictions: its fixed point (global loss) or the next point
  /// (local).
  enum class Towards : std::uint8_t { FixedPoint, NextPoint } towards = Towards::FixedPoint;
  /// The distance: KL(p || q) or KL(q || p) from the teacher's distribution p, or cross-entropy with
  /// the teacher's token.
  enum class By : std::uint8_t {
    ForwardKl,
    ReverseKl,
    JensenShannon,
    HardLabels
  } by = By::ForwardKl;
  double smoothing = 0.1;    // label smoothing of hard labels and of the autoregressive loss
  double chain_decay = 1;    // weight of a chain's row relative to the row before it
  double prompt_weight = 0;  // weight of prompt tokens in the autoregressive loss
  bool own_labels = true;    // true: the autoregressive loss is on the model's own answer
};

/// Rows of one segment. All vectors [n_rows].
struct GuidedRows {
  std::vector<TokenId> token, target;
  std::vector<std::int32_t> pos;
  std::vector<RowView> view;
  std::vector<RowGoal> goal;  // row numbers of teachers count from the segment's start
  std::vector<float> weight;  // weight of the row's loss within its part; 0: no loss
  std::vector<LossPart> part;
  std::vector<std::uint8_t> iterations;  // Jacobi iterations that the row's chain still needs

  /// Number of rows.
  int n_rows() const { return static_cast<int>(token.size()); }
  /// Appends a row.
  void add(TokenId input,
           TokenId output,
           std::int32_t position,
           RowView sees,
           RowGoal pulled,
           float counts,
           LossPart in);
};

/// The causal rows of a text, with a loss on each.
/// @param context  maximum number of rows; a longer text is cut
GuidedRows plain_rows(
    const TokenText& text, double prompt_weight, double smoothing, LossPart part, int context);
/// The causal rows of a trajectory's prompt and output; its chains attend to them.
GuidedRows rows_of(const Trajectory& trajectory, const ConsistencyLoss& loss);
/// The trajectory's prompt followed by the true answer of its text.
TokenText truth_of(const Trajectory& trajectory);

/// A point of a trajectory.
struct PointPlace {
  int block = 0, point = 0;
  bool operator==(const PointPlace&) const = default;
};
/// The points with training targets: all but the fixed points and those that equal the text.
std::vector<PointPlace> points_with_targets(const Trajectory& trajectory);
/// Number of rows of a point's chain; 0: the point has no training targets.
int chain_rows(const Trajectory& trajectory, PointPlace place);

/// Appends to the result of rows_of() the chains of these points, and the chains of the points that
/// are their teachers. Skips points that do not fit into the context.
/// @return  number of points added
int add_chains(GuidedRows& rows,
               const Trajectory& trajectory,
               const std::vector<PointPlace>& places,
               const ConsistencyLoss& loss,
               int max_rows);

/// Chains with new random guesses.
struct FreshChains {
  int n = 0;           // number of chains
  int block = 16;      // tokens of a chain; fewer at the end of the output
  int iterations = 0;  // Jacobi iterations that refine them
};
/// Appends chains that start anywhere in the output and are trained towards the text. Their guesses
/// are random tokens of the text before them, as `fill=prompt` draws them. In every second chain a
/// random share of the guesses is correct, as in the later points of a trajectory.
/// @return  number of chains added; skips those that do not fit or have no training targets
int add_fresh_chains(GuidedRows& rows,
                     const Trajectory& trajectory,
                     const FreshChains& wanted,
                     const ConsistencyLoss& loss,
                     int max_rows,
                     Random& rng);

/// True if at least one chain still needs Jacobi iterations.
bool has_chains_to_refine(const GuidedRows& rows);
/// One Jacobi iteration of the chains that still need one: each guess is replaced by the prediction
/// of the row before it, the first guess by the token of the text. A correct prefix of the chain then
/// equals the text, and its rows lose their weight.
/// @param picks  [n_rows] the token that each row predicts
void refine_chains(GuidedRows& rows, std::span<const TokenId> picks, const ConsistencyLoss& loss);

}  // namespace engine
