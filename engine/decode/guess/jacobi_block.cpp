#include "engine/decode/guess/jacobi_block.h"

#include "engine/decode/verify/sampling.h"
#include "engine/event/timeline/trajectory.h"

namespace engine {

TokenId BlockFiller::operator()(const Sequence& prefix, int position) const {
  switch (fill_) {
    case Fill::Pad:
      return 0;
    case Fill::Repeat:
      return prefix.last();
    case Fill::Prompt:
      break;
  }
  return random_token(prefix.tokens(), seed_, kernels::RandomStream::Refill,
                      static_cast<std::uint32_t>(position), 0);
}

void BlockCounts::open(const std::vector<TokenId>& state) {
  n_blocks_++;
  iteration_ = 0;
  if (whole_blocks_) points_.assign(1, state);
}

void BlockCounts::refine(const std::vector<TokenId>& state) {
  iteration_++;
  n_iterations_++;
  if (whole_blocks_) points_.push_back(state);
}

void BlockCounts::end_block(std::span<const TokenId> eos_ids) {
  if (!whole_blocks_) return;
  const TrajectoryCounts counts = count_trajectory(points_, eos_ids);
  n_ended_++;
  n_stationary_ += counts.n_stationary;
  fast_forward_sum_ += counts.fast_forward_mean;
  if (iteration_ > 0) proved_sum_ += static_cast<double>(counts.final_run.size()) / iteration_;
}

// The stepper fills in time, run and step.
BlockRefined BlockCounts::event(int first_pos,
                                const std::vector<TokenId>& state,
                                int n_final,
                                bool converged) const {
  return {.t = 0,
          .run = 0,
          .step = 0,
          .block = n_blocks_ - 1,
          .iteration = iteration_,
          .first_pos = first_pos,
          .tokens = state,
          .n_final = n_final,
          .converged = converged};
}

std::map<std::string, std::int64_t> BlockCounts::counts() const {
  if (!whole_blocks_) return {{"iterations", n_iterations_}};
  return {{"iterations", n_iterations_},
          {"blocks", n_blocks_},
          {"blocks_converged", n_ended_},
          {"stationary_tokens", n_stationary_}};
}

std::map<std::string, double> BlockCounts::figures() const {
  if (!whole_blocks_ || n_ended_ == 0) return {};
  const auto n = static_cast<double>(n_ended_);
  return {{"stationary_per_block", static_cast<double>(n_stationary_) / n},
          {"fast_forward_mean", fast_forward_sum_ / n},
          {"fast_forward_live", proved_sum_ / n}};
}

}  // namespace engine
