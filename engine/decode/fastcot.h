// FastCoT: every forward computes the next exact token and guesses a window of approximate tokens,
// which the next forward confirms or replaces. A run may end early; then the last window is used
// as the rest of the rationale (engine/reason/cot.h).
//   paper     Zhang et al. 2023 (arXiv:2311.08263)
//   lossless  greedy and coupled: the exact tokens equal AR's, token for token. The tokens that
//             stop=bound or stop=probe leaves in the window are approximate and marked as such
//   needs     nothing; stop=probe needs a model that returns its attention, and the answer options
//             of a question
//   cost      1 target step of at most window + 1 rows (and the probe's) per iteration; never more
//             steps than AR
//   differs   the window is refilled in every step; a row's repetition penalty counts the guesses
//             before it (without them exact tokens could differ from AR's); the paper gives no
//             formula for its probe, so ours is in attention_score()
//   sized     window=auto, our addition: the window that yields the most tokens per time, or none
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/control/size_choice.h"
#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"
#include "engine/decode/options.h"

namespace engine {

/// Compares guessed windows with the tokens that the run later emitted at the same positions
/// (FastCoT, section 5.4 and table 3).
struct WindowHits {
  std::int64_t n_windows = 0;  ///< windows with at least one slot that an emitted token fills
  std::int64_t n_slots = 0;    ///< slots of these windows that an emitted token fills
  std::int64_t n_first = 0;    ///< windows whose first guess equals the emitted token ("FH")
  std::int64_t n_token = 0;    ///< guesses that equal the token at their position ("TH")
  /// guesses that equal a token anywhere in the range of their window (TO, PD*/AD)
  std::int64_t n_guess_in_text = 0;
  /// emitted tokens in a window's range that equal any guess of the window (TO, AD/PD*)
  std::int64_t n_text_in_guess = 0;
};

/// A window's guesses after an iteration.
struct GuessedWindow {
  int first = 0;  // index of guess[0] among the generated tokens
  std::vector<TokenId> guess;
};

/// Compares windows with the tokens that the run emitted.
/// @param text  the generated tokens
WindowHits count_hits(std::span<const GuessedWindow> windows, std::span<const TokenId> text);

/// The probe's score of each window row: the attention it gets from the probe's last token, divided
/// by the window's mean.
/// @param attention  [window]
/// @return           [window]; all 1 if the attention sums to 0
std::vector<double> attention_score(std::span<const float> attention);

/// The options of `fastcot`.
struct FastCotOptions final : DecoderOptions {
  /// When a run may end early: never, after `bound` steps, or when the probe sees an answer.
  enum class Stop { Never, Bound, Probe };
  enum class Preset { None, Paper };

  std::optional<int> window;  // the paper's c; nullopt is "auto"
  BlockFiller::Fill filler = BlockFiller::Fill::Pad;
  bool skip = true;
  Stop stop = Stop::Never;
  int bound = 64;
  double probe_threshold = 3;
  Preset preset = Preset::None;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  std::string early_stop() const override;
  std::optional<float> preset_penalty() const override;
  /// The tokens that an early stop leaves approximate must not depend on measured times.
  bool chooses_sizes() const override { return !window && stop == Stop::Never; }
};

/// FastCoT with its window of approximate tokens.
class FastCotDecoder : public Decoder {
 public:
  /// @throws Error(Usage)  for stop=probe without a question (DecoderContext::probe)
  FastCotDecoder(const DecoderContext& context, const FastCotOptions& options);
  void begin(const Sequence& prefix) override;
  Wants wants() const override;
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<TokenId> approximate() const override;
  std::vector<Event> take_events() override;
  SizeDecision size_decision() const override {
    return chosen_ ? chosen_->decision() : SizeDecision();
  }
  std::map<std::string, std::int64_t> counts() const override;

 private:
  int room_for_window(const Sequence& prefix) const;
  void fill(const Sequence& prefix);
  void add_event(const Sequence& prefix);
  std::vector<float> probe_scores(const TokenTree& tree, const StepOutput& out) const;
  bool answer_is_seen(std::span<const float> scores);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int widest_;
  bool skip_;
  FastCotOptions::Stop stop_;
  int bound_;
  double probe_threshold_;
  ProbeSettings probe_;
  BlockFiller filler_;
  ControlUse control_;
  std::optional<LastingSize> chosen_;  // with a choice of the window

  std::vector<TokenId> window_;  // guesses after the last exact token
  int n_guessed_ = 0;            // leading tokens of window_ that the model guessed; fillers follow
  // the target's picks in the current step: after row 0, then after each row of the window
  std::vector<TokenId> picks_;
  int probe_row_ = -1;  // the probe's last row in the current step
  int n_seen_ = 0;      // consecutive iterations in which the probe saw an answer
  bool ended_early_ = false;
  int n_iterations_ = 0;
  std::int64_t n_skipped_ = 0;  // tokens emitted beyond the first of their iteration
  std::vector<GuessedWindow> windows_;
  std::vector<TokenId> text_;  // generated so far
  std::vector<Event> events_;
};

}  // namespace engine
