#include "engine/decode/lookahead.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

constexpr int kMaxRanks = 16;

/// The row below `parent` with this token, among the rows from `from` on; -1: there is none.
int find_child(const TokenTree& tree, int from, int parent, TokenId token) {
  for (int r = from; r < tree.n_rows(); r++) {
    const auto row = static_cast<std::size_t>(r);
    if (tree.parent[row] == parent && tree.token[row] == token) return r;
  }
  return -1;
}

}  // namespace

DecoderInfo LookaheadOptions::describe() {
  DecoderInfo info;
  info.name = "lookahead";
  info.title = "Lookahead";
  info.summary =
      "A moving window of guesses collects n-grams in a pool. In the same step, the model verifies "
      "n-grams of the pool that begin with the last token.";
  info.reference = "Fu et al. 2024, arXiv:2402.02057";
  info.supports_rejection = true;
  info.presets["paper"] = {{"window", "15"},         {"ngram_size", "5"}, {"n_guesses", "15"},
                           {"prompt_pool", "false"}, {"bonus", "false"},  {"merge", "false"},
                           {"advance", "one"}};
  return info;
}

void LookaheadOptions::bind(OptionBinder& binder) {
  binder.whole("window", window, 1, 64,
               "W: columns of the window. Each column yields one new n-gram per step; the window "
               "costs W (N - 1) rows per step.");
  binder.whole("ngram_size", ngram_size, 2, 16,
               "N: tokens of an n-gram; a step can emit at most N. Long n-grams help if the text "
               "is very predictable.");
  binder.whole("n_guesses", n_guesses, 0, 64,
               "G: n-grams kept for each first token and verified in one step. 0: verifies "
               "nothing, so it emits one token per step.");
  binder.flag("prompt_pool", prompt_pool,
              "Also collect n-grams from the prompt and the generated text. This helps if the "
              "answer repeats the question.");
  binder.flag("bonus", bonus,
              "Emit the model's own next token after a fully accepted n-gram (the published "
              "program drops it).");
  binder.choice("advance", advance, {{"one", Advance::One}, {"accepted", Advance::Accepted}},
                "Positions that the window moves after a step: 'one' as published, or the number "
                "of tokens that were 'accepted'; new slots get random tokens of the text.");
  binder.flag("merge", merge,
              "Guesses with the same first tokens share rows: the same output with fewer rows.");
  binder.real("adapt", adapt, 0, 100,
              "Above 0: a step may take at most this many times the time of a plain step. "
              "`window`, `ngram_size` and `n_guesses` are then upper limits, and the least "
              "productive rows are omitted; the output does not change.");
  binder.whole("ranks", ranks, 1, kMaxRanks,
               "Number of devices that share the rows of every step. Each holds all weights: the "
               "model's GPU and the next GPUs, or equal parts of the CPU's threads. The tokens and "
               "steps are the same; it is faster if each device has its own memory.");
  binder.choice(
      "preset", preset, {{"none", Preset::None}, {"paper", Preset::Paper}},
      "'paper' sets the published values: W 15, N 5, G 15, no prompt pool, no bonus, no merging, "
      "no verification while the window warms up. Options given by name take precedence.");
}

void LookaheadOptions::check() const {
  if (ranks == 1 || adapt <= 0) return;
  throw Error(ErrorCode::Usage,
              "lookahead: adapt depends on the time that each device measures, so the ranks would "
              "choose different sizes; use ranks=1 or adapt=0");
}

std::unique_ptr<Decoder> LookaheadOptions::make(const DecoderContext& context) const {
  return std::make_unique<LookaheadDecoder>(context, *this);
}

LookaheadDecoder::LookaheadDecoder(const DecoderContext& context, const LookaheadOptions& options)
    : target_(context.target),
      sampling_(context.sampling),
      limits_(context.limits),
      most_{options.window, options.ngram_size, options.n_guesses},
      size_(most_),
      n_ranks_(options.ranks),
      prompt_pool_(options.prompt_pool),
      bonus_(options.bonus),
      merge_(options.merge),
      verify_while_warming_(options.preset != LookaheadOptions::Preset::Paper),
      advance_accepted_(options.advance == LookaheadOptions::Advance::Accepted),
      whole_guesses_(options.preset == LookaheadOptions::Preset::Paper),
      verifier_(context.sampling, context.uniforms),
      sizes_(most_),
      pool_(most_.ngram_size - 1, most_.n_guesses) {
  if (options.adapt > 0)
    tuner_.emplace(most_.window + most_.n_guesses, std::max(1.0, options.adapt));
}

void LookaheadDecoder::begin(const Sequence& prefix) {
  // Level 0 begins with N - 2 cells more than it will keep: each warm-up step uses one.
  std::vector<TokenId> level(static_cast<std::size_t>(most_.window + most_.ngram_size - 3));
  const auto position = static_cast<std::uint32_t>(prefix.tokens().size());
  for (std::size_t i = 0; i < level.size(); i++) {
    level[i] = random_token(prefix.tokens(), sampling_.seed, kernels::RandomStream::WindowInit,
                            position, static_cast<std::uint32_t>(i));
  }
  levels_.assign(1, std::move(level));
  size_ = most_;
  if (!prompt_pool_) return;
  insert_text_ngrams(prefix.tokens(), 0, -1);
  pool_.collapse_changes();
}

/// True if the window is worth computing: it has columns, its deepest row fits the context, and a
/// later step of the run can still use its picks.
bool LookaheadDecoder::window_fits(const Sequence& prefix) const {
  const int last_pos = static_cast<int>(prefix.tokens().size()) - 1;
  const int n_columns = warm() ? size_.window : static_cast<int>(levels_[0].size()) + 1;
  if (n_columns == 0) return false;
  const int deepest = last_pos + n_columns - 1 + static_cast<int>(n_levels()) - 1;
  if (deepest >= context_of(limits_, target_.max_seq_len())) return false;
  return whole_guesses_ || room_left(prefix, limits_, target_.max_seq_len()) > 1;
}

TokenTree LookaheadDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  if (tuner_ && warm()) size_ = sizes_.fitting(tuner_->window() * (most_.ngram_size - 1));
  tree.add(prefix.last(), -1, RowTag{});
  window_sent_ = window_fits(prefix);
  if (window_sent_) add_window(tree);
  guesses_.clear();
  if (warm() || verify_while_warming_) add_guesses(tree, prefix);
  if (n_ranks_ > 1) assign_ranks(tree);
  proposed_ = std::chrono::steady_clock::now();
  return tree;
}

/// Reports the step's time to the tuner. Skips a step with far fewer rows than the size allows,
/// because the pool had too few guesses; at most eight such steps per size are skipped.
void LookaheadDecoder::measure_step(const TokenTree& tree) {
  if (!tuner_ || !warm()) return;
  constexpr int kWait = 8;
  if (4 * tree.n_rows() < 3 * size_.n_rows() && n_unfilled_++ < kWait) return;
  const int before = tuner_->window();
  const std::chrono::duration<double> cost = std::chrono::steady_clock::now() - proposed_;
  tuner_->measured(cost.count());
  if (tuner_->window() == before) return;
  n_unfilled_ = 0;
  if (tuner_->window() == 0) sizes_.halve_statistics();
}

void LookaheadDecoder::add_window(TokenTree& tree) {
  const auto tag = [](std::size_t level, std::size_t column) {
    return RowTag{RowTag::Kind::Window, static_cast<std::int16_t>(level),
                  static_cast<std::int16_t>(column)};
  };
  // While the window warms up, its levels have different lengths and all of them are sent.
  const auto n_columns = static_cast<std::size_t>(size_.window);
  // rows of [last token, level 0...], then the lowest row of each column
  std::vector<int> above{0};
  const std::size_t n_chain = warm() ? n_columns - 1 : levels_[0].size();
  for (std::size_t k = 0; k < n_chain; k++) {
    above.push_back(tree.add(levels_[0][k], above.back(), tag(0, k + 1)));
  }
  for (std::size_t level = 1; level < n_levels(); level++) {
    const std::size_t n_cells = warm() ? n_columns : levels_[level].size();
    for (std::size_t k = 0; k < n_cells; k++) {
      above[k] = tree.add(levels_[level][k], above[k], tag(level, k));
    }
  }
  // The picks for the last level's cells make the next level. While level 0 is the only level,
  // these are the picks after the chain's rows, without the pick after the last token.
  n_newest_ = warm() ? size_.window : static_cast<int>(levels_.back().size());
  // for 2-grams: every cell, including the last token
  newest_first_row_ = tree.n_rows() - n_newest_;
  n_window_rows_ += tree.n_rows() - 1;
}

void LookaheadDecoder::add_guesses(TokenTree& tree, const Sequence& prefix) {
  const int last_pos = static_cast<int>(prefix.tokens().size()) - 1;
  const int context = context_of(limits_, target_.max_seq_len());
  guess_depth_ = std::min(size_.ngram_size - 1, context - 1 - last_pos);
  if (!whole_guesses_) {
    guess_depth_ = std::min(guess_depth_, room_left(prefix, limits_, target_.max_seq_len()) - 1);
  }
  if (guess_depth_ < 1) return;
  std::span<const PoolNgram> found = pool_.find(prefix.last());
  found = found.last(std::min(found.size(), static_cast<std::size_t>(size_.n_guesses)));
  guesses_.assign(found.begin(), found.end());
  const int first_row = tree.n_rows();
  for (std::size_t g = 0; g < guesses_.size(); g++) {
    int parent = 0;
    const int n_tokens = std::min(guess_depth_, static_cast<int>(guesses_[g].rest.size()));
    for (int j = 0; j < n_tokens; j++) {
      const TokenId token = guesses_[g].rest[static_cast<std::size_t>(j)];
      const int merged = merge_ ? find_child(tree, first_row, parent, token) : -1;
      const RowTag tag{RowTag::Kind::Guess, static_cast<std::int16_t>(g),
                       static_cast<std::int16_t>(j)};
      parent = merged >= 0 ? merged : tree.add(token, parent, tag);
    }
  }
}

/// Assigns columns and guesses to the ranks in consecutive chunks. Rank 0 gets the last token and
/// the first chunk. A rank also computes the ancestors of its rows (lookahead_rank.h).
void LookaheadDecoder::assign_ranks(TokenTree& tree) const {
  const auto chunk = [this](int n) { return std::max(1, (n + n_ranks_ - 1) / n_ranks_); };
  const int columns = chunk(warm() ? size_.window : static_cast<int>(levels_[0].size()) + 1);
  const int guesses = chunk(static_cast<int>(guesses_.size()));
  for (const RowTag& tag : tree.tag) {
    int owner = 0;
    if (tag.kind == RowTag::Kind::Window) owner = tag.b / columns;
    if (tag.kind == RowTag::Kind::Guess) owner = tag.a / guesses;
    tree.owner.push_back(static_cast<std::uint8_t>(owner));
  }
}

Decision LookaheadDecoder::verify(const Sequence& prefix,
                                  const TokenTree& tree,
                                  const StepOutput& out) {
  newest_.clear();
  measure_step(tree);
  if (window_sent_) {
    for (int r = newest_first_row_; r < newest_first_row_ + n_newest_; r++) {
      newest_.push_back(out.picked[static_cast<std::size_t>(r)].id);
    }
  }
  return verifier_(prefix, tree, out, bonus_);
}

void LookaheadDecoder::committed(const Sequence& prefix, const Decision& cut) {
  const TokenId last = prefix.tokens()[prefix.tokens().size() - cut.emitted.size() - 1];
  bool hit_step = false;
  for (const PoolNgram& guess : guesses_) {
    const bool hit = guess.rest[0] == cut.emitted[0];
    pool_.count_try(guess.first, guess.rest, hit);
    n_tries_++;
    n_hits_ += hit;
    hit_step |= hit;
  }
  n_hit_steps_ += hit_step;
  if (tuner_ && warm()) count_gain(cut);
  if (window_sent_) {
    if (warm()) insert_window_ngrams(last, newest_);
    advance_window(newest_);
    if (advance_accepted_) shift_window(prefix, static_cast<int>(cut.emitted.size()) - 1);
  }
  if (prompt_pool_) {
    insert_text_ngrams(prefix.tokens(), prefix.tokens().size() - cut.emitted.size(), step_);
  }
  step_++;
}

/// Credits the guesses, levels and the column that yielded the tokens of this step.
void LookaheadDecoder::count_gain(const Decision& cut) {
  LookaheadGain gain;
  gain.n_by_rank.resize(static_cast<std::size_t>(most_.n_guesses));
  for (std::size_t rank = 0; rank < guesses_.size(); rank++) {
    const PoolNgram& guess = guesses_[guesses_.size() - 1 - rank];
    const auto differ = std::ranges::mismatch(guess.rest, cut.emitted);
    const int n_right = std::min(static_cast<int>(differ.in1 - guess.rest.begin()), guess_depth_);
    if (n_right <= gain.n_tokens) continue;
    gain.n_by_rank[rank] = n_right - gain.n_tokens;
    gain.n_tokens = n_right;
    std::vector<TokenId> ngram{guess.first};
    ngram.insert(ngram.end(), guess.rest.begin(), guess.rest.end());
    const auto column = column_of_.find(ngram);
    gain.column = column == column_of_.end() ? -1 : column->second;
  }
  LookaheadSize sent = size_;
  sent.n_guesses = static_cast<int>(guesses_.size());
  if (!window_sent_) sent.window = 0;
  sizes_.count(sent, gain);
}

/// Inserts one n-gram per column: its cell of [last token, level 0...], its cells down the levels,
/// and the newest pick.
void LookaheadDecoder::insert_window_ngrams(TokenId last, const std::vector<TokenId>& newest) {
  std::vector<TokenId> ngram;
  for (std::size_t k = 0; k < newest.size(); k++) {
    ngram.assign(1, k == 0 ? last : levels_[0][k - 1]);
    for (std::size_t level = 1; level < n_levels(); level++) ngram.push_back(levels_[level][k]);
    ngram.push_back(newest[k]);
    pool_.insert(ngram[0], std::span(ngram).subspan(1), step_);
    if (tuner_) column_of_[ngram] = static_cast<int>(k);
  }
}

/// Moves every column of this step by one position, independent of the number of accepted tokens.
void LookaheadDecoder::advance_window(const std::vector<TokenId>& newest) {
  if (warm()) {
    const std::size_t last_level = n_levels() - 1;
    for (std::size_t k = 0; k < newest.size(); k++) {
      if (k > 0) levels_[0][k - 1] = last_level > 0 ? levels_[1][k] : newest[k];
      for (std::size_t level = 2; level <= last_level; level++)
        levels_[level - 1][k] = levels_[level][k];
      if (last_level > 0) levels_[last_level][k] = newest[k];
    }
    return;
  }
  // Warm-up: every level loses its first cell, and the picks become a new level. The picks for
  // level 0 already start one position further right.
  const bool from_chain = levels_.size() == 1;
  for (std::vector<TokenId>& level : levels_) level.erase(level.begin());
  levels_.push_back(newest);
  if (!from_chain) levels_.back().erase(levels_.back().begin());
}

/// Drops `n` more columns on the left and appends random tokens of the sequence on the right, so
/// each remaining cell keeps the position that it was guessed for.
void LookaheadDecoder::shift_window(const Sequence& prefix, int n) {
  if (!warm()) return;
  std::uint32_t index = 0;
  const auto position = static_cast<std::uint32_t>(prefix.tokens().size());
  for (std::vector<TokenId>& level : levels_) {
    const auto size = level.size();
    const auto n_drop = std::min(size, static_cast<std::size_t>(n));
    level.erase(level.begin(), level.begin() + static_cast<std::ptrdiff_t>(n_drop));
    while (level.size() < size) {
      level.push_back(random_token(prefix.tokens(), sampling_.seed, kernels::RandomStream::Refill,
                                   position, index++));
    }
  }
}

/// Inserts the n-grams of `text` that end at `first_end` or later.
void LookaheadDecoder::insert_text_ngrams(std::span<const TokenId> text,
                                          std::size_t first_end,
                                          StepId born) {
  const auto n = static_cast<std::size_t>(most_.ngram_size);
  for (std::size_t end = std::max(first_end, n - 1); end < text.size(); end++) {
    const std::span<const TokenId> ngram = text.subspan(end + 1 - n, n);
    pool_.insert(ngram[0], ngram.subspan(1), born);
    // The prompt or output has this n-gram too, so the window column gets no credit for it.
    if (tuner_) column_of_.erase({ngram.begin(), ngram.end()});
  }
}

std::vector<Event> LookaheadDecoder::take_events() {
  PoolChanged changes = pool_.take_changes();
  std::vector<Event> events;
  if (!changes.added.empty() || !changes.evicted.empty() || !changes.tried.empty()) {
    events.emplace_back(std::move(changes));
  }
  return events;
}

std::map<std::string, std::int64_t> LookaheadDecoder::counts() const {
  return {{"pool_tries", n_tries_},
          {"pool_hits", n_hits_},
          {"pool_hit_steps", n_hit_steps_},
          {"window_rows", n_window_rows_}};
}

std::map<std::string, double> LookaheadDecoder::figures() const {
  std::map<std::string, double> figures{{"pool_ngrams", pool_.n_ngrams()},
                                        {"pool_keys", pool_.n_keys()}};
  if (tuner_) {
    figures["window"] = size_.window;
    figures["ngram_size"] = size_.ngram_size;
    figures["n_guesses"] = size_.n_guesses;
  }
  return figures;
}

}  // namespace engine
