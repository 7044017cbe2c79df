// Jacobi trajectories, the training data of a consistency model: every state of every block of a
// model's own answers, from the first guess to the fixed point.
//   paper    Kou et al. 2024 (arXiv:2403.00835), section 3.1, "Jacobi trajectory collection"
//   engine   the states of textbook Jacobi decoding (decode/guess/textbook_jacobi.h). A forward computes
//            only the tokens that are not final yet, of many prompts at once; prompts do not affect each
//            other's trajectories
//   differs  an answer ends when its end token is final, or at max_new_tokens; the states of its last
//            block end there. augment() changes a copy, so the collected points stay unchanged
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

/// The states of a block, all of one length: the random first guess, .., the fixed point.
using BlockPoints = std::vector<std::vector<TokenId>>;

/// The answer to a prompt, and the trajectories of its blocks.
struct Trajectory {
  std::int64_t index = 0;           // index of the text in its stream
  std::string part;                 // part of the mixture that the text is from: "arith"
  std::vector<TokenId> prompt;      // bos included
  std::vector<TokenId> output;      // the model's answer with its end token
  bool ended = false;               // true: by its end token; false: by max_new_tokens
  std::vector<TokenId> truth;       // the true answer of the text, with an end token
  std::vector<BlockPoints> blocks;  // consecutive, from the first token of the output; the last one
                                    // may continue after the end token; may be empty
};

/// A prompt to answer.
struct TrajectoryPrompt {
  std::int64_t index = 0;
  std::string part;
  std::vector<TokenId> tokens;  // bos included
  std::vector<TokenId> truth;
};

/// Settings of collect_trajectories().
struct CollectSettings {
  int block = 16;            // tokens refined together
  int max_new_tokens = 256;  // of an answer
  int n_lanes = 32;          // prompts in one forward pass
  bool keep_points = true;   // false: autoregressive decoding, answers without blocks
  std::uint64_t seed = 1;    // seed of the random first guesses
  std::vector<TokenId> eos_ids;
};

/// Answers the prompts of `next` and passes each trajectory to `done`. Skips prompts that fill the
/// model's context.
/// @param next  fills in a prompt; returns false if there are no more
/// @param done  receives a trajectory when its answer ends
/// @param stop  called before every forward pass; true stops and discards unfinished answers. May be
///              empty
/// @return  number of prompts skipped
int collect_trajectories(LanguageModel& model,
                         const CollectSettings& settings,
                         const std::function<bool(TrajectoryPrompt&)>& next,
                         const std::function<void(Trajectory)>& done,
                         const std::function<bool()>& stop = {});

/// True if a token occurs `n` times in a row before an end token; the authors drop such answers.
bool repeats_a_token(std::span<const TokenId> tokens, int n, std::span<const TokenId> eos_ids);
/// True if a sentence or line of three words or more occurs `n` times in a row.
bool repeats_a_sentence(std::string_view text, int n);

/// The data augmentation of the CLLM authors, which makes "correct, wrong, correct" patterns. For a
/// point with n wrong positions it draws n / 2 of these, with replacement, and corrects them. It
/// never draws the first wrong position. The last two points of a block stay unchanged.
/// @return  number of changed positions
int augment(BlockPoints& points, Random& rng);

/// Length of the common prefix of a point and its fixed point.
int n_correct_prefix(std::span<const TokenId> point, std::span<const TokenId> fixed_point);

}  // namespace engine
