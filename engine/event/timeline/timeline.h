// The store of everything that happened, fed by a live engine, a .pdrun file or a test. Panels and
// exporters read it and cannot tell which.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/timeline/step_store.h"

namespace engine {

/// One generated token of a run.
struct TokenRecord {
  TokenId id = 0;
  int pos = 0;      // from the sequence's start
  StepId step = 0;  // that committed it
  TokenStatus status = TokenStatus::Plain;
  RowTag origin;
  float logp = 0;         // the target's log probability of it, where has_logp
  bool has_logp = false;  // false: the verification that gave it was not told
};

inline constexpr std::size_t kRowKinds = 6;  // of RowTag::Kind

/// Sums over what a run told, kept up to date with every event.
struct RunTotals {
  Nanoseconds compute = 0;    // own compute of complete steps
  std::int64_t n_steps = 0;   // complete
  std::int64_t n_tokens = 0;  // committed by complete steps
  std::int64_t n_rows = 0;    // of begun steps, as far as they are told
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  std::int64_t n_blocks = 0;                        // states of blocks
  std::int64_t n_pools = 0;                         // reports of an n-gram pool
  std::array<std::int64_t, kRowKinds> n_rows_of{};  // of the trees, by kind

  std::int64_t rows_of(RowTag::Kind kind) const {
    return n_rows_of[static_cast<std::size_t>(kind)];
  }
};

struct RunRecord {
  RunStarted started;
  StepStore steps;
  std::vector<TokenRecord> tokens;
  std::vector<Phase> phases;
  std::optional<Agreement> agreement;
  std::optional<RunFinished> finished;
  std::optional<RunFailed> failed;
  std::vector<PayloadDropped> dropped;
  RunTotals totals;
  std::vector<BlockRefined> early_blocks;  // told before their step began: a block's initial guess
  std::optional<PoolChanged> early_pool;   // likewise: n-grams of the prompt
  std::vector<std::variant<Queued, Dequeued, Waiting>> queueing;
  Nanoseconds last_event = 0;
  std::size_t counted_payload = 0;  // of its steps, as the timeline last counted it

  RunId id() const { return started.run; }
  bool over() const { return finished || failed; }
  /// Position of the first generated token, from the sequence's start.
  int first_generated() const { return static_cast<int>(started.prompt_tokens.size()); }
  /// Of the prompt's tokens: guessed by a run before this one, and not verified.
  bool is_approximate_in_prompt(int position) const {
    return position >= started.first_approximate &&
           position - started.first_approximate < started.n_approximate;
  }
  std::span<const TokenId> approximate_of_prompt() const {
    return std::span(started.prompt_tokens)
        .subspan(static_cast<std::size_t>(started.first_approximate),
                 static_cast<std::size_t>(started.n_approximate));
  }
  Nanoseconds decode_compute() const;  // own compute of all complete steps
  double tokens_per_second() const;    // committed tokens / own compute of steps; 0 if undefined
  double tokens_per_step() const;      // 0 if undefined
  int n_proposed() const;
  int n_accepted() const;
  int n_rejected() const;
  int n_unused() const;
  double acceptance_rate() const;  // accepted / proposed; 0 if nothing was proposed
  std::int64_t n_rows() const;
  /// The report that a step's payload of this kind was let go; nullptr: it was not.
  const PayloadDropped* dropped_at(PayloadKind kind, StepId step) const;
};

/// A thought of a search: what was told of one node.
struct ThoughtRecord {
  ThoughtMade made;
  std::optional<ThoughtValued> valued;
  std::vector<ThoughtJudged> judged;  // one for each level it stood in; the last counts
};

/// A tree of thoughts.
struct SearchRecord {
  SearchBegun begun;
  std::vector<ThoughtRecord> thoughts;  // by node, rising
  std::optional<SearchEnded> ended;

  /// nullptr: no such node, or 0, the question.
  const ThoughtRecord* thought(int node) const;
  /// From the first thought below the question to this one.
  std::vector<const ThoughtRecord*> chain_to(int node) const;
};

/// Of a timeline that is not told otherwise: it leaves a window of a million events within 150 MB.
inline constexpr std::size_t kPayloadBudget = std::size_t{16} << 20;

class Timeline {
 public:
  /// Takes the next event. Events that contradict what came before (a step of no run, a token id
  /// outside the vocabulary) are counted and kept out of statistics.
  void apply(const Event& event);

  std::span<const RunRecord> runs() const { return runs_; }
  const RunRecord* run(RunId id) const;
  const ModelLoaded* model(std::uint32_t id) const;
  const std::map<std::uint32_t, ModelLoaded>& models() const { return models_; }
  std::span<const Sampled> samples() const { return samples_; }
  std::span<const Notice> notices() const { return notices_; }
  std::span<const Phase> phases() const { return phases_; }  // of no run: loading a model
  std::span<const SearchRecord> searches() const { return searches_; }
  bool held() const { return held_; }
  std::span<const Held> holds() const { return holds_; }
  std::int64_t n_events() const { return n_events_; }
  std::int64_t n_inconsistent() const { return n_inconsistent_; }
  /// Why the first of them were: "run 1 step 4: token 99999 is outside the vocabulary of 512".
  std::span<const std::string> inconsistencies() const { return inconsistencies_; }
  Nanoseconds last_event() const { return last_event_; }
  /// Runs of a race, by lane.
  std::vector<const RunRecord*> race(std::uint32_t id) const;
  /// Grows by one with every applied event: panels that cache what they prepared compare it.
  std::uint64_t version() const { return version_; }

  /// Payload of past steps (payload.h) is kept up to this many bytes, packed; then the oldest goes,
  /// and RunRecord::dropped says so. Structure is always kept.
  void set_payload_budget(std::size_t bytes) { payload_budget_ = bytes; }
  std::size_t payload_budget() const { return payload_budget_; }
  /// Held of it now.
  std::size_t payload_bytes() const { return payload_bytes_; }
  /// Memory of everything here.
  std::size_t bytes() const;

  /// Text of a token of a run's model: printable UTF-8, spaces kept, control characters as symbols,
  /// partial UTF-8 as <0xF0>.
  std::string text_of(const RunRecord& run, TokenId id) const;
  /// Text of a row of tokens as a whole (characters joined over token boundaries).
  std::string text_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// The same with line feeds and tabs left as they are: an answer as its reader wants it.
  std::string plain_text_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// A token by itself as a person reads it: its text, or its name where it is no text: "</s>".
  std::string name_of(const RunRecord& run, TokenId id) const;
  /// Bytes of a row of tokens, joined. Ids without a piece give "<token 7>".
  std::string bytes_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// Whether generated token `index` is the word that begins the whole text, after a prompt of
  /// control symbols alone, and is decoded without the space that its piece begins with.
  bool drops_space_of(const RunRecord& run, std::size_t index) const;
  /// The bytes that generated token `index` adds to the text: its piece's, without such a space.
  std::string generated_bytes(const RunRecord& run, std::size_t index) const;
  /// The text that n generated tokens from `first` on add, in whole characters: a character they
  /// leave open is part of what completes it, and after the run's last token of what is there. One
  /// that the prompt leaves open is part of the text if it is completed.
  std::string generated_text(const RunRecord& run, std::size_t first, std::size_t n) const;
  /// wall(baseline) / wall(run) in own decode compute, if a finished AR run with the same model,
  /// scale, prompt, sampling and limits is here. The AR run of the same race goes before others, a
  /// later one before an earlier one; an AR run compared with itself gives 1. None of a run that
  /// took turns with other texts: its own compute leaves out what it waited for, and what went on
  /// beside it.
  std::optional<double> speedup(const RunRecord& run) const;
  /// That AR run; nullptr if there is none.
  const RunRecord* baseline_of(const RunRecord& run) const;

 private:
  friend class TimelineIntake;  // timeline_intake.cpp: what each kind of event changes

  std::vector<RunRecord> runs_;
  std::map<RunId, std::size_t> run_index_;
  std::map<std::uint32_t, ModelLoaded> models_;
  std::vector<Sampled> samples_;
  std::vector<Notice> notices_;
  std::vector<Phase> phases_;
  std::vector<SearchRecord> searches_;
  std::vector<Held> holds_;
  bool held_ = false;
  std::size_t payload_budget_ = kPayloadBudget, payload_bytes_ = 0;
  std::size_t oldest_payload_run_ = 0;  // runs before it have none
  std::int64_t n_events_ = 0, n_inconsistent_ = 0;
  std::vector<std::string> inconsistencies_;
  std::uint64_t version_ = 0;
  Nanoseconds last_event_ = 0;
};

}  // namespace engine
