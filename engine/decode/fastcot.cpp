#include "engine/decode/fastcot.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "engine/decode/verify/verify.h"

namespace engine {
namespace {

using Stop = FastCotOptions::Stop;

// Consecutive iterations in which the probe must see an answer.
constexpr int kProbePatience = 2;
constexpr int kPaperWindow = 10;
constexpr float kPaperPenalty = 1.2f;

/// Counts tokens of `some` that are also in `among`.
std::int64_t n_found(std::span<const TokenId> some, std::span<const TokenId> among) {
  const std::unordered_set<TokenId> known(among.begin(), among.end());
  return std::ranges::count_if(some, [&](TokenId token) { return known.contains(token); });
}

}  // namespace

WindowHits count_hits(std::span<const GuessedWindow> windows, std::span<const TokenId> text) {
  WindowHits hits;
  for (const GuessedWindow& window : windows) {
    const auto first = static_cast<std::size_t>(window.first);
    if (first >= text.size() || window.guess.empty()) continue;
    const auto n = std::min(window.guess.size(), text.size() - first);
    const auto guess = std::span(window.guess).first(n);
    const auto region = text.subspan(first, n);
    hits.n_windows++;
    hits.n_slots += static_cast<std::int64_t>(n);
    hits.n_first += guess[0] == region[0];
    for (std::size_t i = 0; i < n; i++) hits.n_token += guess[i] == region[i];
    hits.n_guess_in_text += n_found(guess, region);
    hits.n_text_in_guess += n_found(region, guess);
  }
  return hits;
}

std::vector<double> attention_score(std::span<const float> attention) {
  const double sum = std::accumulate(attention.begin(), attention.end(), 0.0);
  std::vector<double> score(attention.size(), 1);
  if (sum <= 0) return score;
  const double mean = sum / static_cast<double>(attention.size());
  for (std::size_t i = 0; i < score.size(); i++) score[i] = attention[i] / mean;
  return score;
}

DecoderInfo FastCotOptions::describe() {
  DecoderInfo info;
  info.name = "fastcot";
  info.title = "FastCoT";
  info.summary =
      "Every step computes one exact token and guesses a window of approximate tokens, which the "
      "next step confirms or replaces. A rationale may end early; the guesses then replace its "
      "rest.";
  info.reference = "Zhang et al. 2023, arXiv:2311.08263";
  info.retired = {"adapt"};
  info.presets["paper"] = {
      {"window", std::to_string(kPaperWindow)}, {"filler", "pad"}, {"skip", "true"}};
  return info;
}

void FastCotOptions::bind(OptionBinder& binder) {
  using Fill = BlockFiller::Fill;
  binder.whole_or_auto("window", window, 0, 255,
                       "c: number of approximate tokens guessed in every step. Each costs a row. 0 "
                       "is plain decoding. "
                       "'auto' chooses the window that yields the most tokens per time; with an "
                       "early stop it is 10.");
  binder.choice("filler", filler,
                {{"pad", Fill::Pad}, {"prompt", Fill::Prompt}, {"repeat", Fill::Repeat}},
                "First guess of a new slot of the window: token 0 ('pad'), a random token of the "
                "text so far ('prompt') or the last token ('repeat').");
  binder.flag("skip", skip,
              "Emit all confirmed guesses of a step. If off, a step emits one token, as in plain "
              "decoding: the paper's ablation.");
  binder.choice("stop", stop,
                {{"none", Stop::Never}, {"bound", Stop::Bound}, {"probe", Stop::Probe}},
                "End a rationale early: never ('none'), after `bound` steps ('bound'), or as soon "
                "as the window contains an answer ('probe', only in `reason cot`, which knows the "
                "possible answers).");
  binder.whole("bound", bound, 1, 100000,
               "Number of steps after which stop=bound ends a run; `reason cot --find-bound` finds "
               "a good number.");
  binder.real("probe_threshold", probe_threshold, 0, 1000,
              "For stop=probe: an answer counts as found if its attention exceeds this many times "
              "the window's mean in two consecutive steps.");
  binder.choice("preset", preset, {{"none", Preset::None}, {"paper", Preset::Paper}},
                "'paper' sets the published values: a window of 10 and, in `reason cot`, a "
                "repetition penalty of 1.2. Options given by name take precedence.");
}

std::unique_ptr<Decoder> FastCotOptions::make(const DecoderContext& context) const {
  return std::make_unique<FastCotDecoder>(context, *this);
}

std::string FastCotOptions::early_stop() const {
  if (stop == Stop::Never) return {};
  return stop == Stop::Bound ? "bound" : "probe";
}

std::optional<float> FastCotOptions::preset_penalty() const {
  return preset == Preset::Paper ? std::optional(kPaperPenalty) : std::nullopt;
}

FastCotDecoder::FastCotDecoder(const DecoderContext& context, const FastCotOptions& options)
    : target_(context.target),
      limits_(context.limits),
      widest_(options.window.value_or(kPaperWindow)),
      skip_(options.skip),
      stop_(options.stop),
      bound_(options.bound),
      probe_threshold_(options.probe_threshold),
      probe_(context.probe),
      filler_(options.filler, context.sampling.seed),
      control_(context.control) {
  if (stop_ == Stop::Probe && probe_.trigger.empty())
    throw Error(ErrorCode::Usage,
                "fastcot: stop=probe needs the possible answers of a question, which only "
                "`decoscope reason cot` provides; use that command, or stop=bound");
  if (!options.chooses_sizes()) return;
  const std::string filler = std::to_string(static_cast<int>(options.filler));
  chosen_.emplace(control_, "fastcot " + filler, LastingSize::Kind::Window);
  widest_ = chosen_->choose() - 1;
}

void FastCotDecoder::begin(const Sequence& prefix) {
  fill(prefix);
  add_event(prefix);
}

/// The number of guesses that the run can still emit. Row i of the window yields the token after
/// it.
int FastCotDecoder::room_for_window(const Sequence& prefix) const {
  return std::clamp(room_left(prefix, limits_, target_.max_seq_len()) - 1, 0, widest_);
}

void FastCotDecoder::fill(const Sequence& prefix) {
  const auto size = static_cast<std::size_t>(room_for_window(prefix));
  n_guessed_ = static_cast<int>(std::min(window_.size(), size));
  const int first = static_cast<int>(prefix.tokens().size());
  while (window_.size() < size)
    window_.push_back(filler_(prefix, first + static_cast<int>(window_.size())));
  window_.resize(size);
}

/// Adds an event with the last exact token and the window after it.
void FastCotDecoder::add_event(const Sequence& prefix) {
  BlockRefined event;
  event.iteration = n_iterations_;
  event.first_pos = static_cast<int>(prefix.tokens().size()) - 1;
  event.tokens.push_back(prefix.last());
  event.tokens.insert(event.tokens.end(), window_.begin(), window_.end());
  event.n_final = 1;
  events_.push_back(std::move(event));
}

Wants FastCotDecoder::wants() const {
  Wants wants;
  wants.attention_of = probe_row_;
  return wants;
}

TokenTree FastCotDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  int row = tree.add(prefix.last(), -1, RowTag{});
  for (std::size_t i = 0; i < window_.size(); i++)
    row = tree.add(window_[i], row, {RowTag::Kind::Block, static_cast<std::int16_t>(i + 1), 0});
  probe_row_ = -1;
  const int room = context_of(limits_, target_.max_seq_len()) -
                   static_cast<int>(prefix.tokens().size() + window_.size());
  if (stop_ == Stop::Probe && !window_.empty() && room >= static_cast<int>(probe_.trigger.size())) {
    for (std::size_t i = 0; i < probe_.trigger.size(); i++)
      row =
          tree.add(probe_.trigger[i], row, {RowTag::Kind::Probe, static_cast<std::int16_t>(i), 0});
    probe_row_ = row;
  }
  return tree;
}

/// The score of each row, -1 outside the window; empty if the step has no probe.
/// @throws Error(Usage)  if the model does not return its attention
std::vector<float> FastCotDecoder::probe_scores(const TokenTree& tree,
                                                const StepOutput& out) const {
  if (probe_row_ < 0) return {};
  if (out.attention.size() != tree.token.size())
    throw Error(ErrorCode::Usage,
                "fastcot: stop=probe needs a model that returns its attention, and this one does "
                "not; use stop=bound");
  std::vector<float> scores(tree.token.size(), -1);
  std::ranges::copy(attention_score(std::span(out.attention).subspan(1, window_.size())),
                    scores.begin() + 1);
  return scores;
}

/// True if the probe has attended to an answer in the window in enough consecutive iterations.
bool FastCotDecoder::answer_is_seen(std::span<const float> scores) {
  bool seen = false;
  for (std::size_t i = 0; i < window_.size() && !scores.empty(); i++)
    seen |= scores[i + 1] > probe_threshold_ &&
            std::ranges::find(probe_.keywords, window_[i]) != probe_.keywords.end();
  n_seen_ = seen ? n_seen_ + 1 : 0;
  return n_seen_ >= kProbePatience;
}

Decision FastCotDecoder::verify(const Sequence& /*prefix*/,
                                const TokenTree& tree,
                                const StepOutput& out) {
  picks_.clear();
  for (std::size_t i = 0; i <= window_.size(); i++) picks_.push_back(out.picked[i].id);
  Decision decision;
  if (skip_) {
    decision = verify_exact_match(tree, out);
  } else {
    decision.path = {0};
    decision.emitted = {picks_[0]};
  }
  n_iterations_++;
  if (stop_ == Stop::Bound && n_iterations_ >= bound_) decision.wish = StopReason::Bound;
  if (stop_ == Stop::Probe) {
    decision.probe = probe_scores(tree, out);
    if (answer_is_seen(decision.probe)) decision.wish = StopReason::Probe;
  }
  return decision;
}

void FastCotDecoder::committed(const Sequence& prefix, const Decision& cut) {
  const auto n = static_cast<std::ptrdiff_t>(cut.emitted.size());
  n_skipped_ += n - 1;
  text_.insert(text_.end(), cut.emitted.begin(), cut.emitted.end());
  if (chosen_) {
    chosen_->came(static_cast<int>(window_.size()) + 1, static_cast<int>(n));
    widest_ = chosen_->choose() - 1;
  }
  window_.assign(picks_.begin() + n, picks_.end());
  ended_early_ =
      prefix.stop_reason() == StopReason::Bound || prefix.stop_reason() == StopReason::Probe;
  GuessedWindow guessed{static_cast<int>(text_.size()), window_};
  fill(prefix);
  // Records the window for the accuracy counters: the refined guesses, including those that fill()
  // removed for lack of room, and the fillers that it appended, which the next step feeds as guesses.
  const auto n_known = static_cast<std::ptrdiff_t>(std::min(guessed.guess.size(), window_.size()));
  guessed.guess.insert(guessed.guess.end(), window_.begin() + n_known, window_.end());
  windows_.push_back(std::move(guessed));
  add_event(prefix);
}

std::vector<TokenId> FastCotDecoder::approximate() const {
  if (!ended_early_) return {};
  return {window_.begin(), window_.begin() + n_guessed_};
}

std::vector<Event> FastCotDecoder::take_events() {
  return std::exchange(events_, {});
}

std::map<std::string, std::int64_t> FastCotDecoder::counts() const {
  const WindowHits hits = count_hits(windows_, text_);
  return {{"iterations", n_iterations_},
          {"skipped", n_skipped_},
          {"windows", hits.n_windows},
          {"window_slots", hits.n_slots},
          {"first_hits", hits.n_first},
          {"token_hits", hits.n_token},
          {"guesses_in_text", hits.n_guess_in_text},
          {"text_in_guesses", hits.n_text_in_guess}};
}

}  // namespace engine
