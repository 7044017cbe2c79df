// The kinds of rows that a run's steps contain. Panels use them to decide whether they can show a run, for any decoder.
#pragma once

namespace engine {
struct RunRecord;
}

namespace ui {

/// Properties of a run's steps so far.
struct RunTraits {
  bool known = false;    // at least one step has reported its rows
  bool blocks = false;   // guesses are refined in place (Jacobi)
  bool window = false;   // window cells, from which later n-grams are read (Lookahead)
  bool guesses = false;  // proposals without a distribution: from a pool or by lookup
  bool pool = false;     // an n-gram pool
  bool drafts = false;   // proposals with a distribution

  /// Returns true if there are proposals.
  bool proposes() const { return blocks || guesses || drafts; }
  /// Returns true if the panel Trajectory can show the run.
  bool has_trajectory() const { return blocks || window; }
  /// Returns true if the panel Pool can show the run.
  bool has_pool_or_guesses() const { return pool || guesses; }
};

/// Returns the traits of a run.
RunTraits traits_of(const engine::RunRecord& run);

}  // namespace ui
