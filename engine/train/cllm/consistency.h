// From a collected trajectory to the rows of one forward: the text as plain rows, and beside it
// points of its blocks as chains. A chain sees the text before it and itself, so one forward gives
// what each point predicts and what the text predicts at the same places.
//   paper    Kou et al. 2024 (arXiv:2403.00835), section 3.2: the global loss pulls what a point
//            predicts to what its fixed point predicts, the local one to what the next point does;
//            beside it the autoregressive loss
//   rows     a chain begins at its first wrong token. Before it a point is the text itself, so what
//            it predicts up to and with that place has the same context: nothing to learn there,
//            and no row to compute
//   ends     of a block that goes on behind the end token only what the text has is predicted
//   fresh    chains of a trajectory's own points are met again in every epoch, the same noise in the
//            same places. Fresh ones begin anywhere in the answer, with guesses drawn anew
//   refined  what the target's guesses passed through is not what the model being trained passes
//            through; of fresh chains its own iterations are made
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/random.h"
#include "engine/train/core/packing.h"
#include "engine/train/cllm/trajectories.h"
#include "engine/train/core/transformer.h"

namespace engine {

/// Which loss a row counts in. Each is a mean of its own over all its rows of a step.
enum class LossPart : std::uint8_t { Autoregressive, Consistency, Replay };
inline constexpr int kLossParts = 3;
const char* name_of(LossPart part);  // "ar", "consistency", "replay"

struct ConsistencyLoss {
  enum class Towards : std::uint8_t { FixedPoint, NextPoint } towards = Towards::FixedPoint;
  enum class By : std::uint8_t { ForwardKl, ReverseKl, HardLabels } by = By::ForwardKl;
  double smoothing = 0.1;    // of hard labels and of the autoregressive loss
  double chain_decay = 1;    // a chain's row weighs so much of the one before it
  double prompt_weight = 0;  // of a prompt's tokens in the autoregressive loss
  bool own_labels = true;    // the autoregressive loss is of the model's own answer
};

/// Rows of one segment. All vectors [n_rows].
struct GuidedRows {
  std::vector<TokenId> token, target;
  std::vector<std::int32_t> pos;
  std::vector<RowView> view;
  std::vector<RowGoal> goal;  // teachers are rows of the segment
  std::vector<float> weight;  // within its part; 0: no loss
  std::vector<LossPart> part;
  std::vector<std::uint8_t> iterations;  // that the row's chain is still to be refined by

  int n_rows() const { return static_cast<int>(token.size()); }
  void add(TokenId input,
           TokenId output,
           std::int32_t position,
           RowView sees,
           RowGoal pulled,
           float counts,
           LossPart in);
};

/// The rows of a text in plain order, with a loss on each.
/// @param context  a longer text is cut there
GuidedRows plain_rows(
    const TokenText& text, double prompt_weight, double smoothing, LossPart part, int context);
/// The rows of a trajectory's prompt and output, which its chains hang on.
GuidedRows rows_of(const Trajectory& trajectory, const ConsistencyLoss& loss);
/// The text of the trajectory's prompt with the answer that is the truth.
TokenText truth_of(const Trajectory& trajectory);

struct PointPlace {
  int block = 0, point = 0;
  bool operator==(const PointPlace&) const = default;
};
/// All points but the fixed ones, of which something can be learnt.
std::vector<PointPlace> points_to_learn(const Trajectory& trajectory);
/// Rows a point's chain has; 0: nothing can be learnt from it.
int chain_rows(const Trajectory& trajectory, PointPlace place);

/// Adds the chains of these points behind rows_of(), and of those that teach them. Points for which
/// there is no room are left out.
/// @return  points added
int add_chains(GuidedRows& rows,
               const Trajectory& trajectory,
               const std::vector<PointPlace>& places,
               const ConsistencyLoss& loss,
               int max_rows);

struct FreshChains {
  int n = 0;           // chains
  int block = 16;      // tokens of one; at the output's end as many as are left
  int iterations = 0;  // by which they are to be refined
};
/// Adds chains of blocks that no trajectory has, pulled to the text: they begin anywhere in the
/// output, and hold first guesses as `fill=prompt` draws them, tokens of the text before them. In
/// every second chain a share of the guesses, drawn for it, is right, as in later points.
/// @return  chains added; those without room or with nothing to learn are left out
int add_fresh_chains(GuidedRows& rows,
                     const Trajectory& trajectory,
                     const FreshChains& wanted,
                     const ConsistencyLoss& loss,
                     int max_rows,
                     Random& rng);

bool has_chains_to_refine(const GuidedRows& rows);
/// One Jacobi iteration of the chains that are still to be refined: each guess becomes what the row
/// before it predicts, the first one what the text has. What is right in front then is the text
/// itself, and has no loss any more.
/// @param picks  [n_rows] what each row predicts
void refine_chains(GuidedRows& rows, std::span<const TokenId> picks, const ConsistencyLoss& loss);

}  // namespace engine
