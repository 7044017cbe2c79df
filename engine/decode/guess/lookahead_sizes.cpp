#include "engine/decode/guess/lookahead_sizes.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/types.h"

namespace engine {
namespace {

// The assumed number of tokens per row of every column, guess and level before measurements, and
// the weight of this assumption in steps. The estimate is close to the tokens per row measured with
// the default sizes on the generated tasks.
constexpr double kExpected = 0.04;
constexpr double kExpectedSteps = 16;

}  // namespace

double LookaheadSizes::Part::tokens_per_row(int n_rows) const {
  return (n_tokens / n_rows + kExpected * kExpectedSteps) / (n_steps + kExpectedSteps);
}

LookaheadSizes::LookaheadSizes(LookaheadSize most)
    : most_(most),
      columns_(static_cast<std::size_t>(most.window)),
      guesses_(static_cast<std::size_t>(most.n_guesses)),
      levels_(static_cast<std::size_t>(most.ngram_size - 1)) {
  ensure(most.window >= 0 && most.n_guesses >= 0 && most.ngram_size >= 2,
         "an n-gram must have at least two tokens");
}

LookaheadSize LookaheadSizes::fitting(int n_rows) const {
  LookaheadSize size = most_;
  while (size.n_rows() > std::max(1, n_rows)) {
    // If a column and a guess have the same rate, drops the column if more columns than guesses are
    // left, else the guess, because the paper has W = G. A level is dropped only if its rate is
    // lower than both.
    int* least = nullptr;
    double least_tokens = 0;
    const auto consider = [&](int& part, const std::vector<Part>& parts, int at, int rows) {
      if (at < 0) return;
      const double tokens = parts[static_cast<std::size_t>(at)].tokens_per_row(rows);
      if (least != nullptr && tokens >= least_tokens) return;
      least = &part;
      least_tokens = tokens;
    };
    const int depth = size.ngram_size - 1;
    const auto consider_column = [&] { consider(size.window, columns_, size.window - 1, depth); };
    const auto consider_guess = [&] {
      consider(size.n_guesses, guesses_, size.n_guesses - 1, depth);
    };
    if (size.window >= size.n_guesses)
      consider_column(), consider_guess();
    else
      consider_guess(), consider_column();
    if (depth > 1) consider(size.ngram_size, levels_, depth - 1, size.window + size.n_guesses);
    (*least)--;
  }
  return size;
}

void LookaheadSizes::count(const LookaheadSize& sent, const LookaheadGain& gain) {
  if (sent.window + sent.n_guesses == 0) return;  // only the last token's row was sent
  for (int i = 0; i < sent.window; i++) columns_[static_cast<std::size_t>(i)].n_steps++;
  for (int i = 0; i < sent.n_guesses; i++) {
    Part& guess = guesses_[static_cast<std::size_t>(i)];
    guess.n_steps++;
    guess.n_tokens += gain.n_by_rank[static_cast<std::size_t>(i)];
  }
  for (int i = 0; i < sent.ngram_size - 1; i++) {
    Part& level = levels_[static_cast<std::size_t>(i)];
    level.n_steps++;
    level.n_tokens += i < gain.n_tokens;
  }
  if (gain.column >= 0) columns_[static_cast<std::size_t>(gain.column)].n_tokens += gain.n_tokens;
}

void LookaheadSizes::halve_statistics() {
  for (std::vector<Part>* parts : {&columns_, &guesses_, &levels_}) {
    for (Part& part : *parts) part = {part.n_steps / 2, part.n_tokens / 2};
  }
}

}  // namespace engine
