// Lookahead decoding: a window of Jacobi states feeds an n-gram pool, and the same forward verifies
// guesses from the pool.
//   paper     Fu, Bailis, Stoica, Zhang 2024 (arXiv:2402.02057); W = window, N = ngram_size, G =
//             n_guesses
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; gains where text repeats itself or is locally predictable
//   cost      1 target step of at most (W + G)(N - 1) rows. Guesses that share prefixes share rows.
//             If W < N - 2, the window's part has up to (W + N - 1)^2 / 4 rows while it fills. The
//             option `ranks` divides the rows among devices (lookahead_rank.h)
//   kept      keep=true and --pool, our additions: n-grams of earlier texts and of a file join the
//             pool. Every guessed token names its source
//   differs   keeps the bonus token after a full match, merges common prefixes of guesses, verifies
//             while the window warms up, and looks up n-grams of prompt and text correctly;
//             preset=paper turns the first three off
//   sized     window=auto and n_guesses=auto, our addition: columns and guessed tokens of every step
//             follow from the time of rows and the success of earlier guesses (pool_choice.h)
//
// The window has N - 1 levels. Level 0 is a chain after the last token; column k of the higher
// levels is a branch below cell k of [last token, level 0...]:
//
//     last - L0[0] - L0[1] ...        Each level holds the picks for the level above it,
//      |      |       |               one step earlier. So a column followed by its newest
//     L1[0]  L1[1]   L1[2]            pick is an n-gram: the key is cell k, the rest is the
//      |      |       |               column from top to bottom.
//     L2[0]  L2[1]   L2[2]
//
// With window=auto a step may use only the leftmost columns, or none. The other cells keep their
// tokens until a later step uses them. Each column moves independently, so an unused column still
// holds an n-gram of the model's picks, for a later position. (The same happens to all cells when a
// step accepts several tokens.)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/decode/control/step_control.h"
#include "engine/decode/decoder.h"
#include "engine/decode/guess/ngram_pool.h"
#include "engine/decode/guess/pool_choice.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// The options of `lookahead`.
struct LookaheadOptions final : DecoderOptions {
  /// How far the window moves in a step. One: by one token. Accepted: by the number of emitted
  /// tokens.
  enum class Advance { One, Accepted };
  /// Paper: decodes like the authors' program.
  enum class Preset { None, Paper };

  // nullopt is "auto"
  std::optional<int> window;      // W
  std::optional<int> ngram_size;  // N
  std::optional<int> n_guesses;   // G
  bool prompt_pool = true;
  bool bonus = true;
  Advance advance = Advance::One;
  bool merge = true;
  bool keep = false;
  std::optional<int> ranks = 1;  // nullopt is "mpi"
  Preset preset = Preset::None;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  void check() const override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  int n_kept_tokens() const override { return keep ? 65'536 : 0; }
  int n_ranks() const override { return ranks.value_or(1); }
  bool shares_over_mpi() const override { return !ranks; }
  bool chooses_sizes() const override { return ranks == 1 && (!window || !n_guesses); }
};

/// The sizes of a run.
struct LookaheadSize {
  int window = 0;       // W: columns, at most
  int window_size = 2;  // N of the window: a column has N - 1 rows
  int ngram_size = 2;   // N of the pool: a guess has at most N - 1 tokens
  int n_guesses = 0;    // G: n-grams of a first token
};

/// Lookahead decoding with its window and pool.
class LookaheadDecoder : public Decoder {
 public:
  /// Starts with an empty pool; begin() fills the window.
  LookaheadDecoder(const DecoderContext& context, const LookaheadOptions& options);
  void begin(const Sequence& prefix) override;
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  std::vector<GuessSource> guess_sources() const override { return sources_; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

  /// The n-grams collected so far.
  const NgramPool& pool() const { return pool_; }
  /// The N - 1 levels of the window, of W cells each. While the window warms up there are fewer
  /// levels, and they have more cells.
  const std::vector<std::vector<TokenId>>& levels() const { return levels_; }

 private:
  bool warm() const { return static_cast<int>(levels_.size()) == most_.window_size - 1; }
  bool window_fits(const Sequence& prefix) const;
  void choose_columns(int n_other);
  void add_window(TokenTree& tree);
  void find_guesses(const Sequence& prefix);
  void add_guesses(TokenTree& tree);
  void choose_guesses(TokenTree& tree);
  SizeDecision decision_for(const TokenTree& tree) const;
  void learn(const Decision& cut);
  void assign_ranks(TokenTree& tree) const;
  void advance_window(const std::vector<TokenId>& newest);
  void shift_window(const Sequence& prefix, int n);
  void insert_window_ngrams(TokenId last, const std::vector<TokenId>& newest);
  void insert_copied_ngrams(const Sequence& prefix);
  std::vector<GuessSource> sources_of(const PoolNgram& ngram, const Sequence& prefix) const;
  void find_sources(const Sequence& prefix, const TokenTree& tree);
  void insert_text_ngrams(std::span<const TokenId> text, std::size_t first_end, StepId born);

  LanguageModel& target_;  // owned by the engine
  Sampling sampling_;
  Limits limits_;
  LookaheadSize most_;
  bool chooses_columns_;  // window=auto
  bool chooses_guesses_;  // n_guesses=auto
  int n_columns_;         // of this step
  int n_ranks_;
  bool prompt_pool_;
  bool bonus_;
  bool merge_;
  bool verify_while_warming_;
  bool advance_accepted_;
  // as in the published program: a guess may be longer than the number of tokens that may still be
  // emitted
  bool whole_guesses_;
  std::shared_ptr<const EarlierTexts> texts_;  // null: there are none
  bool copies_runs_;                           // the texts of earlier runs too, beside the file
  Verifier verifier_;
  ControlUse control_;
  PoolKnowledge* known_ = nullptr;  // if sizes are chosen
  /// With a choice of sizes: the window's n-grams that neither prompt nor output has. Grows by at most
  /// one entry per column and step.
  std::set<std::vector<TokenId>> only_in_window_;
  std::vector<FoundNgram> found_;  // for the current step, in the pool
  SizeDecision decision_;
  int n_window_rows_now_ = 0;  // of the current step
  int n_guess_rows_ = 0;       // chosen in the current or the last step

  NgramPool pool_;
  std::vector<std::vector<TokenId>> levels_;
  std::vector<PoolNgram> guesses_;    // of the current step
  std::vector<GuessSource> sources_;  // [rows of the current step], or empty without guesses
  int guess_depth_ = 0;               // length of the longest guess in the current step
  bool window_sent_ = false;
  int newest_first_row_ = 0;  // the first of the rows whose picks form the next level
  int n_newest_ = 0;
  std::vector<TokenId> newest_;  // those picks
  StepId step_ = 0;
  std::int64_t n_tries_ = 0;
  std::int64_t n_hits_ = 0;  // guesses of which at least one token was accepted
  std::int64_t n_hit_steps_ = 0;
  std::int64_t n_window_rows_ = 0;
  std::int64_t n_from_earlier_ = 0, n_from_file_ = 0;  // accepted tokens
};

}  // namespace engine
