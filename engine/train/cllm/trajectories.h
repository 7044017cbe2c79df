// What a consistency model learns from: how blocks of a model's own answers converge under Jacobi
// iteration, every state of every block.
//   paper    Kou et al. 2024 (arXiv:2403.00835), section 3.1, "Jacobi trajectory collection"
//   engine   the textbook form (decode/textbook_jacobi.h), keys and values of what is final kept,
//            many prompts in one forward; a prompt's trajectory does not depend on the others
//   differs  an answer ends at its end token and at the length asked for, and the last block is cut
//            there; points are kept as they were, augment() changes a copy
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/random.h"
#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"

namespace engine {

/// One block's states, all of one length: [0] the random guess it began with ... the fixed point.
using BlockPoints = std::vector<std::vector<TokenId>>;

/// One prompt's answer and how it came to be.
struct Trajectory {
  std::int64_t index = 0;           // of the text in its stream
  std::string part;                 // of the mixture: "arith"
  std::vector<TokenId> prompt;      // bos included
  std::vector<TokenId> output;      // the model's own answer, its end token included
  bool ended = false;               // by its end token; false: by the length
  std::vector<TokenId> truth;       // the text's own answer, with an end token
  std::vector<BlockPoints> blocks;  // one behind the other from the output's first token on; the
                                    // last may go on behind the end token; or none
};

/// A prompt to be answered.
struct TrajectoryPrompt {
  std::int64_t index = 0;
  std::string part;
  std::vector<TokenId> tokens;  // bos included
  std::vector<TokenId> truth;
};

struct CollectSettings {
  int block = 16;            // tokens refined together
  int max_new_tokens = 256;  // of an answer
  int n_lanes = 32;          // prompts in one forward
  bool keep_points = true;   // false: answers alone, by plain decoding; no blocks
  std::uint64_t seed = 1;    // of the first guesses
  std::vector<TokenId> eos_ids;
};

/// Answers prompts `next` hands out until it has none, telling each as it is done. Prompts that
/// leave no room for a token in the model's context are passed over.
/// @param next  fills in a prompt; false: there are no more
/// @param done  takes a whole trajectory, in the order in which answers end
/// @param stop  asked before every forward; true ends it, and what is under way is let go. Or empty
/// @return  prompts passed over
int collect_trajectories(LanguageModel& model,
                         const CollectSettings& settings,
                         const std::function<bool(TrajectoryPrompt&)>& next,
                         const std::function<void(Trajectory)>& done,
                         const std::function<bool()>& stop = {});

/// Of the answer: the same token `n` times in a row before an end token, as the authors clean.
bool repeats_a_token(std::span<const TokenId> tokens, int n, std::span<const TokenId> eos_ids);
/// The same sentence or line, of three words or more, `n` times in a row.
bool repeats_a_sentence(std::string_view text, int n);

/// Makes "right, wrong, right" patterns, as the authors do: of every point but the last two, half
/// as many draws as it has wrong positions are made among these, the first left out, and what is
/// drawn becomes right. Nothing else changes, so no first wrong position moves.
/// @return  positions that changed
int augment(BlockPoints& points, Random& rng);

/// Positions of a point before the first that differs from the fixed point; its length: none does.
int n_right_in_front(std::span<const TokenId> point, std::span<const TokenId> fixed_point);

}  // namespace engine
