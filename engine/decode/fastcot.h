// FastCoT: beside the next exact token every forward guesses a window of approximate ones, which
// the next forward confirms or replaces. Where a run may end early, the window's last guesses stand
// in for the rest of a rationale (engine/reason/cot.h).
//   paper     Zhang et al. 2023 (arXiv:2311.08263)
//   lossless  its exact tokens are: token for token, greedy and coupled. What stop=bound or
//             stop=probe leaves in the window is approximate and marked so
//   needs     nothing; stop=probe a model that tells its attention, and a question's options
//   cost      1 target step of at most window + 1 rows (and the probe's) per iteration; never more
//             steps than AR
//   differs   the window is filled up in every step; the repetition penalty of a row counts the
//             guesses before it, without which exact tokens would not be AR's; `adapt` chooses the
//             window by measured cost; the paper gives no formula for its probe: ours is in
//             attention_score()
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"
#include "engine/decode/guess/window_tuner.h"

namespace engine {

/// How well an iteration's guesses foresaw the text, counted when it is known (FastCoT, section
/// 5.4 and table 3).
struct WindowHits {
  std::int64_t n_windows = 0;        ///< windows with a slot inside the text
  std::int64_t n_slots = 0;          ///< slots inside the text
  std::int64_t n_first = 0;          ///< windows whose first guess is the token there ("FH")
  std::int64_t n_token = 0;          ///< guesses that are the token there ("TH")
  std::int64_t n_guess_in_text = 0;  ///< guesses found anywhere in their window's text (TO, PD*/AD)
  std::int64_t n_text_in_guess =
      0;  ///< tokens of a window's text that it guessed anywhere (TO, AD/PD*)
};

/// A window as it stood after an iteration.
struct GuessedWindow {
  int first = 0;  // index of guess[0]'s token among the generated ones
  std::vector<TokenId> guess;
};

WindowHits count_hits(std::span<const GuessedWindow> windows, std::span<const TokenId> text);

/// The probe's score of each window row: its attention from the probe's last token, over the mean
/// of the window's. 1 everywhere if there is no attention at all.
std::vector<double> attention_score(std::span<const float> attention);

class FastCotDecoder : public Decoder {
 public:
  /// @throws Error(Usage)  stop=probe without a question
  explicit FastCotDecoder(const DecoderContext& context);
  void begin(const Sequence& prefix) override;
  Wants wants() const override;
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<TokenId> approximate() const override;
  std::vector<Event> take_events() override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  enum class Stop { Never, Bound, Probe };

  int room_for_window(const Sequence& prefix) const;
  void fill(const Sequence& prefix);
  void tell(const Sequence& prefix);
  std::vector<float> probe_scores(const TokenTree& tree, const StepOutput& out) const;
  bool answer_is_seen(std::span<const float> scores);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int widest_;
  bool skip_;
  Stop stop_;
  int bound_;
  double probe_threshold_;
  ProbeSettings probe_;
  BlockFiller filler_;
  std::optional<WindowTuner> tuner_;

  std::vector<TokenId> window_;  // guesses behind the last exact token
  int n_guessed_ = 0;            // of window_: the model's; fillers follow
  std::vector<TokenId> picks_;   // of the step under way, after row 0 and each row of the window
  int probe_row_ = -1;           // the probe's last row in the step under way
  int n_seen_ = 0;               // iterations in a row in which the probe saw an answer
  bool ended_early_ = false;
  int n_iterations_ = 0;
  std::int64_t n_skipped_ = 0;  // tokens emitted beyond the first of their iteration
  std::chrono::steady_clock::time_point proposed_;
  std::vector<GuessedWindow> windows_;
  std::vector<TokenId> text_;  // generated so far
  std::vector<Event> events_;
};

}  // namespace engine
