#include "engine/decode/lookahead.h"

#include <algorithm>
#include <utility>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/guess/suffix_draft.h"

namespace engine {
namespace {

constexpr int kMaxRanks = 16;
constexpr int kMostRows = 32;  // of a step whose guesses are chosen, beside a given window

/// The row below `parent` with this token, among the rows from `from` on; -1: there is none.
int find_child(const TokenTree& tree, int from, int parent, TokenId token) {
  for (int r = from; r < tree.n_rows(); r++) {
    const auto row = static_cast<std::size_t>(r);
    if (tree.parent[row] == parent && tree.token[row] == token) return r;
  }
  return -1;
}

/// The sizes of the options. Where they are "auto", the largest that a step may choose; ranks must
/// choose alike without measuring, so they use fixed ones.
LookaheadSize sizes_of(const LookaheadOptions& options) {
  const bool chooses = options.ranks == 1;
  return {.window = options.window.value_or(chooses ? 4 : 2),
          .window_size = options.ngram_size.value_or(3),
          .ngram_size = options.ngram_size.value_or(chooses ? 6 : 3),
          .n_guesses = options.n_guesses.value_or(chooses ? 8 : 4)};
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
  info.reads_pool = true;
  info.retired = {"adapt"};
  info.presets["paper"] = {{"window", "15"},         {"ngram_size", "5"}, {"n_guesses", "15"},
                           {"prompt_pool", "false"}, {"bonus", "false"},  {"merge", "false"},
                           {"advance", "one"}};
  return info;
}

void LookaheadOptions::bind(OptionBinder& binder) {
  binder.whole_or_auto(
      "window", window, 1, 64,
      "W: columns of the window. Each column yields one new n-gram per step; the window costs "
      "W (N - 1) rows per step. 'auto' computes as many columns as pay for their time, or none.");
  binder.whole_or_auto(
      "ngram_size", ngram_size, 2, 16,
      "N: tokens of an n-gram; a step can emit at most N. Long n-grams help if the text is very "
      "predictable. 'auto': 3 in the window, 6 in the pool.");
  binder.whole_or_auto(
      "n_guesses", n_guesses, 0, 64,
      "G: n-grams kept for each first token and verified in one step. 0: verifies nothing, so it "
      "emits one token per step. 'auto' verifies those of their tokens that are worth the time of "
      "a "
      "row.");
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
              "Guesses with the same first tokens share rows: the same output with fewer rows. "
              "With n_guesses=auto they always do.");
  binder.flag("keep", keep,
              "Keeps the output for the next prompts of the same model: its n-grams join their "
              "pools (not under rejection sampling).");
  binder.whole_or("mpi", "ranks", ranks, 1, kMaxRanks,
                  "Number of devices that share the rows of every step. Each holds all weights: "
                  "the model's GPU and the next GPUs, or equal parts of the CPU's threads. The "
                  "tokens and steps are the same; it is faster if each device has its own memory. "
                  "'mpi': the processes that mpirun started, on one machine or several.");
  binder.choice(
      "preset", preset, {{"none", Preset::None}, {"paper", Preset::Paper}},
      "'paper' sets the published values: W 15, N 5, G 15, no prompt pool, no bonus, no merging, "
      "no verification while the window warms up. Options given by name take precedence.");
}

void LookaheadOptions::check() const {
  if (!keep || ranks) return;
  throw Error(ErrorCode::Usage,
              "lookahead: keep=true with ranks=mpi: only rank 0 has the earlier texts, but all "
              "processes need the same pool; use ranks=N or keep=false");
}

std::unique_ptr<Decoder> LookaheadOptions::make(const DecoderContext& context) const {
  return std::make_unique<LookaheadDecoder>(context, *this);
}

LookaheadDecoder::LookaheadDecoder(const DecoderContext& context, const LookaheadOptions& options)
    : target_(context.target),
      sampling_(context.sampling),
      limits_(context.limits),
      most_(sizes_of(options)),
      chooses_columns_(!options.window && options.ranks == 1),
      chooses_guesses_(!options.n_guesses && options.ranks == 1),
      n_columns_(most_.window),
      n_ranks_(options.ranks.value_or(context.n_processes)),
      prompt_pool_(options.prompt_pool),
      bonus_(options.bonus),
      merge_(options.merge),
      verify_while_warming_(options.preset != LookaheadOptions::Preset::Paper),
      advance_accepted_(options.advance == LookaheadOptions::Advance::Accepted),
      whole_guesses_(options.preset == LookaheadOptions::Preset::Paper),
      texts_(context.texts),
      copies_runs_(options.keep && !rejects(context.sampling)),
      verifier_(context.sampling, context.uniforms),
      control_(context.control, context.choices),
      pool_(most_.ngram_size - 1, most_.n_guesses) {
  if (chooses_columns_ || chooses_guesses_)
    known_ = &control_.knowledge<PoolKnowledge>("lookahead", rejects(context.sampling));
}

void LookaheadDecoder::begin(const Sequence& prefix) {
  // Level 0 begins with N - 2 cells more than it will keep: each warm-up step uses one.
  std::vector<TokenId> level(static_cast<std::size_t>(most_.window + most_.window_size - 3));
  const auto position = static_cast<std::uint32_t>(prefix.tokens().size());
  for (std::size_t i = 0; i < level.size(); i++) {
    level[i] = random_token(prefix.tokens(), sampling_.seed, kernels::RandomStream::WindowInit,
                            position, static_cast<std::uint32_t>(i));
  }
  levels_.assign(1, std::move(level));
  n_columns_ = most_.window;
  if (!prompt_pool_) return;
  insert_text_ngrams(prefix.tokens(), 0, kBornInPrompt);
  pool_.collapse_changes();
}

/// True if the window is worth computing: it has columns, its deepest row fits the context, and a
/// later step of the run can still use its picks.
bool LookaheadDecoder::window_fits(const Sequence& prefix) const {
  const int last_pos = static_cast<int>(prefix.tokens().size()) - 1;
  if (n_columns_ == 0) return false;
  const int n_columns = warm() ? n_columns_ : static_cast<int>(levels_[0].size()) + 1;
  const int deepest = last_pos + n_columns - 1 + static_cast<int>(levels_.size()) - 1;
  if (deepest >= context_of(limits_, target_.max_seq_len())) return false;
  return whole_guesses_ || room_left(prefix, limits_, target_.max_seq_len()) > 1;
}

TokenTree LookaheadDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  find_guesses(prefix);
  if (chooses_columns_) choose_columns(1 + n_guess_rows_);
  window_sent_ = window_fits(prefix);
  if (window_sent_) add_window(tree);
  n_window_rows_now_ = tree.n_rows() - 1;
  if (chooses_guesses_)
    choose_guesses(tree);
  else
    add_guesses(tree);
  if (chooses_columns_ && !chooses_guesses_) decision_ = decision_for(tree);
  if (n_ranks_ > 1) assign_ranks(tree);
  find_sources(prefix, tree);
  return tree;
}

/// @param n_other  rows of the step without the window
void LookaheadDecoder::choose_columns(int n_other) {
  const bool is_plain = chooses_guesses_ && known_->chooser.plain_is_due();
  const int chosen =
      is_plain ? 0
               : known_->choose_columns(most_.window, most_.window_size - 1, n_other, *control_);
  n_columns_ = static_cast<int>(control_.decide_if_repeatable(
      static_cast<std::size_t>(chosen), static_cast<std::size_t>(most_.window) + 1));
}

void LookaheadDecoder::add_window(TokenTree& tree) {
  const auto tag = [](std::size_t level, std::size_t column) {
    return RowTag{RowTag::Kind::Window, static_cast<std::int16_t>(level),
                  static_cast<std::int16_t>(column)};
  };
  // While the window warms up, its levels have different lengths and all of them are sent.
  const auto n_columns = static_cast<std::size_t>(n_columns_);
  // rows of [last token, level 0...], then the lowest row of each column
  std::vector<int> above{0};
  const std::size_t n_chain = warm() ? n_columns - 1 : levels_[0].size();
  for (std::size_t k = 0; k < n_chain; k++) {
    above.push_back(tree.add(levels_[0][k], above.back(), tag(0, k + 1)));
  }
  for (std::size_t level = 1; level < levels_.size(); level++) {
    const std::size_t n_cells = warm() ? n_columns : levels_[level].size();
    for (std::size_t k = 0; k < n_cells; k++) {
      above[k] = tree.add(levels_[level][k], above[k], tag(level, k));
    }
  }
  // The picks for the last level's cells make the next level. While level 0 is the only level,
  // these are the picks after the chain's rows, without the pick after the last token.
  n_newest_ = warm() ? n_columns_ : static_cast<int>(levels_.back().size());
  // for 2-grams: every cell, including the last token
  newest_first_row_ = tree.n_rows() - n_newest_;
  n_window_rows_ += tree.n_rows() - 1;
}

/// Sets found_ to the n-grams that may be verified in this step, and guess_depth_ to the largest number
/// of their tokens.
void LookaheadDecoder::find_guesses(const Sequence& prefix) {
  guesses_.clear();
  found_.clear();
  const int last_pos = static_cast<int>(prefix.tokens().size()) - 1;
  const int context = context_of(limits_, target_.max_seq_len());
  guess_depth_ = std::min(most_.ngram_size - 1, context - 1 - last_pos);
  if (!whole_guesses_) {
    guess_depth_ = std::min(guess_depth_, room_left(prefix, limits_, target_.max_seq_len()) - 1);
  }
  if (guess_depth_ < 1 || !(warm() || verify_while_warming_)) return;
  insert_copied_ngrams(prefix);
  for (const PoolNgram& ngram : pool_.find(prefix.last())) {
    std::vector<TokenId> whole{ngram.first};
    if (known_) whole.insert(whole.end(), ngram.rest.begin(), ngram.rest.end());
    found_.push_back({&ngram, known_ && only_in_window_.contains(whole)});
  }
}

void LookaheadDecoder::add_guesses(TokenTree& tree) {
  for (const FoundNgram& found : found_) guesses_.push_back(*found.ngram);
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
  n_guess_rows_ = tree.n_rows() - first_row;
}

/// Adds the likeliest tokens of the found n-grams, as many as are worth their time.
void LookaheadDecoder::choose_guesses(TokenTree& tree) {
  const std::vector<PoolNode> nodes = known_->nodes(found_, guess_depth_);
  const int n_others = tree.n_rows();
  const int most_rows = chooses_columns_ ? kMostRows : kMostRows + n_window_rows_now_;
  std::vector<SizePlan> plans{{1, 1, control_->ms(n_others)}};
  for (const PoolNode& node : nodes) {
    const int n_rows = n_others + static_cast<int>(plans.size());
    if (n_rows > most_rows) break;
    const double tokens = plans.back().tokens + node.right;
    plans.push_back({tokens, tokens, control_->ms(n_rows)});  // learned without probes
  }
  SizeChoice choice = known_->chooser.choose(plans, control_->ms(1));
  choice.index = control_.decide_if_repeatable(choice.index, plans.size());
  decision_ = decision_of(choice, plans, static_cast<int>(choice.index));
  decision_.plain_ms = static_cast<float>(control_->ms(1));
  std::vector<int> guess_of(found_.size(), -1);  // its index in guesses_
  std::vector<int> row_of;
  for (const PoolNode& node : std::span(nodes).first(choice.index)) {
    int& guess = guess_of[static_cast<std::size_t>(node.guess)];
    if (guess < 0) {
      guess = static_cast<int>(guesses_.size());
      guesses_.push_back(*found_[static_cast<std::size_t>(node.guess)].ngram);
    }
    const int parent = node.parent < 0 ? 0 : row_of[static_cast<std::size_t>(node.parent)];
    row_of.push_back(tree.add(node.token, parent,
                              {RowTag::Kind::Guess, static_cast<std::int16_t>(guess),
                               static_cast<std::int16_t>(node.depth)}));
  }
  n_guess_rows_ = static_cast<int>(choice.index);
}

/// The decision of a step whose columns alone are chosen.
SizeDecision LookaheadDecoder::decision_for(const TokenTree& tree) const {
  double tokens = 1;
  for (const PoolNode& node : known_->nodes(found_, guess_depth_)) tokens += node.right;
  return {.size = tree.n_rows() - 1,
          .tokens = static_cast<float>(tokens),
          .ms = static_cast<float>(control_->ms(tree.n_rows())),
          .plain_ms = static_cast<float>(control_->ms(1))};
}

/// Assigns columns and guesses to the ranks in consecutive chunks. Rank 0 gets the last token and
/// the first chunk. A rank also computes the ancestors of its rows (lookahead_rank.h).
void LookaheadDecoder::assign_ranks(TokenTree& tree) const {
  const auto chunk = [this](int n) { return std::max(1, (n + n_ranks_ - 1) / n_ranks_); };
  const int columns = chunk(warm() ? n_columns_ : static_cast<int>(levels_[0].size()) + 1);
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
  if (window_sent_) {
    for (int r = newest_first_row_; r < newest_first_row_ + n_newest_; r++) {
      newest_.push_back(out.picked[static_cast<std::size_t>(r)].id);
    }
  }
  return verifier_(prefix, tree, out, bonus_);
}

void LookaheadDecoder::committed(const Sequence& prefix, const Decision& cut) {
  const TokenId last = prefix.tokens()[prefix.tokens().size() - cut.emitted.size() - 1];
  if (known_) learn(cut);
  bool hit_step = false;
  for (const PoolNgram& guess : guesses_) {
    const bool hit = guess.rest[0] == cut.emitted[0];
    pool_.count_try(guess.first, guess.rest, hit);
    n_tries_++;
    n_hits_ += hit;
    hit_step |= hit;
  }
  n_hit_steps_ += hit_step;
  for (const int row : cut.path) {
    if (sources_.empty()) break;
    const GuessSource::Kind kind = sources_[static_cast<std::size_t>(row)].kind;
    n_from_earlier_ += kind == GuessSource::Kind::Earlier;
    n_from_file_ += kind == GuessSource::Kind::File;
  }
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

void LookaheadDecoder::learn(const Decision& cut) {
  known_->learn(found_, cut.emitted);
  found_.clear();
  const auto n_tokens = static_cast<int>(cut.emitted.size());
  const int n_rows = 1 + n_window_rows_now_ + n_guess_rows_;
  known_->came(n_window_rows_now_, n_tokens, control_->ms(n_rows) / control_->ms(1));
}

/// Inserts one n-gram per column: its cell of [last token, level 0...], its cells down the levels,
/// and the newest pick.
void LookaheadDecoder::insert_window_ngrams(TokenId last, const std::vector<TokenId>& newest) {
  std::vector<TokenId> ngram;
  for (std::size_t k = 0; k < newest.size(); k++) {
    ngram.assign(1, k == 0 ? last : levels_[0][k - 1]);
    for (std::size_t level = 1; level < levels_.size(); level++) ngram.push_back(levels_[level][k]);
    ngram.push_back(newest[k]);
    pool_.insert(ngram[0], std::span(ngram).subspan(1), step_);
    if (known_) only_in_window_.insert(ngram);
  }
}

/// Moves every column of this step by one position, independent of the number of accepted tokens.
void LookaheadDecoder::advance_window(const std::vector<TokenId>& newest) {
  if (warm()) {
    const std::size_t last_level = levels_.size() - 1;
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
    // The prompt or output has this n-gram too, so the window gets no credit for it.
    for (std::size_t n_tokens = 2; known_ && n_tokens <= n; n_tokens++)
      only_in_window_.erase({ngram.begin(), ngram.begin() + static_cast<std::ptrdiff_t>(n_tokens)});
  }
}

/// Inserts the n-grams of earlier texts and of the file that most often followed the end of the
/// sequence there, as many as a step verifies. (Inserting all n-grams of these texts would keep the
/// last ones of each token, whatever came before it.)
void LookaheadDecoder::insert_copied_ngrams(const Sequence& prefix) {
  if (!texts_ || most_.n_guesses == 0) return;
  const int n_rest = most_.ngram_size - 1;
  const auto insert_from = [&](const SuffixAutomaton& index, StepId born) {
    const SuffixDraft draft =
        suffix_draft(index, index.longest_suffix(searched_end(prefix.tokens())),
                     {.factor = static_cast<double>(n_rest),
                      .max_tokens = most_.n_guesses * n_rest,
                      .max_depth = n_rest,
                      .min_p = 0});
    // The likeliest is inserted last: the pool tries the newest first.
    const std::vector<std::vector<TokenId>> paths = paths_of(draft);
    for (auto path = paths.rbegin(); path != paths.rend(); ++path)
      pool_.insert(prefix.last(), *path, born);
  };
  if (copies_runs_) insert_from(texts_->runs(), kBornInEarlierText);
  if (const PoolFile* file = texts_->file()) insert_from(file->index, kBornInFile);
}

/// The places from which the tokens of an n-gram after its first were read. None for n-grams that
/// only the window has found.
std::vector<GuessSource> LookaheadDecoder::sources_of(const PoolNgram& ngram,
                                                      const Sequence& prefix) const {
  std::vector<GuessSource> sources(ngram.rest.size());
  const auto tokens = prefix.tokens();
  if (ngram.born == kBornInFile || ngram.born == kBornInEarlierText) {
    const bool in_file = ngram.born == kBornInFile;
    const SuffixAutomaton& index = in_file ? texts_->file()->index : texts_->runs();
    SuffixAutomaton::Match match = index.longest_suffix(searched_end(tokens));
    for (std::size_t j = 0; j < sources.size(); j++) {
      match = index.after(match, ngram.rest[j]);
      // A shorter match does not contain the n-gram so far: its text was dropped.
      if (match.length < static_cast<int>(j) + 2) break;
      const int place = index.newest(match.state);
      sources[j] = in_file ? GuessSource{.kind = GuessSource::Kind::File, .pos = place}
                           : texts_->source_in_runs(place);
    }
    return sources;
  }
  std::vector<TokenId> whole{ngram.first};
  whole.insert(whole.end(), ngram.rest.begin(), ngram.rest.end());
  const auto found = std::find_end(tokens.begin(), tokens.end(), whole.begin(), whole.end());
  if (!prompt_pool_ || found == tokens.end()) return sources;
  const auto n_prompt = static_cast<int>(prefix.prompt().size());
  int pos = static_cast<int>(found - tokens.begin());
  for (GuessSource& source : sources) {
    source.pos = ++pos;
    source.kind = pos < n_prompt ? GuessSource::Kind::Prompt : GuessSource::Kind::Text;
  }
  return sources;
}

/// Sets sources_ to those of the tree's rows.
void LookaheadDecoder::find_sources(const Sequence& prefix, const TokenTree& tree) {
  sources_.clear();
  if (guesses_.empty()) return;
  std::vector<std::vector<GuessSource>> of_guess;
  for (const PoolNgram& guess : guesses_) of_guess.push_back(sources_of(guess, prefix));
  for (const RowTag& tag : tree.tag)
    sources_.push_back(
        tag.kind == RowTag::Kind::Guess
            ? of_guess[static_cast<std::size_t>(tag.a)][static_cast<std::size_t>(tag.b)]
            : GuessSource{});
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
  return {{"pool_tries", n_tries_},           {"pool_hits", n_hits_},
          {"pool_hit_steps", n_hit_steps_},   {"copied_from_earlier", n_from_earlier_},
          {"copied_from_file", n_from_file_}, {"window_rows", n_window_rows_}};
}

std::map<std::string, double> LookaheadDecoder::figures() const {
  std::map<std::string, double> figures{{"pool_ngrams", pool_.n_ngrams()},
                                        {"pool_keys", pool_.n_keys()}};
  if (known_) figures["tokens_per_window_row"] = known_->tokens_per_window_row();
  return figures;
}

}  // namespace engine
