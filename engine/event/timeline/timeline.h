// The state of a session, built from its events. A live engine, a .pdrun file or a test supplies
// the events; panels and exporters read the timeline and do not depend on the source.
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
  StepId step = 0;  // the step that committed it
  TokenStatus status = TokenStatus::Plain;
  RowTag origin;
  float logp = 0;         // the target's log probability, if has_logp
  bool has_logp = false;  // false: the recording lacks the verification
};

inline constexpr std::size_t kRowKinds = 6;  // values of RowTag::Kind

/// Sums over the events of a run, updated with every event.
struct RunTotals {
  Nanoseconds compute = 0;    // own compute of complete steps
  std::int64_t n_steps = 0;   // complete steps
  std::int64_t n_tokens = 0;  // committed by complete steps
  std::int64_t n_rows = 0;    // rows of all begun steps
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  std::int64_t n_blocks = 0;                        // BlockRefined events
  std::int64_t n_pools = 0;                         // PoolChanged events
  std::array<std::int64_t, kRowKinds> n_rows_of{};  // rows of the trees, by kind

  /// Number of rows of a kind.
  std::int64_t rows_of(RowTag::Kind kind) const {
    return n_rows_of[static_cast<std::size_t>(kind)];
  }
};

/// One run: its events, and sums over them.
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
  std::vector<BlockRefined> early_blocks;  // initial guesses of blocks, before their step began
  std::optional<PoolChanged> early_pool;   // n-grams of the prompt, before the first step
  std::vector<std::variant<Queued, Dequeued, Waiting>> queueing;
  Nanoseconds last_event = 0;
  std::size_t counted_payload = 0;  // its steps' share of Timeline::payload_bytes()

  /// The number of the run.
  RunId id() const { return started.run; }
  /// True if the run ended or failed.
  bool over() const { return finished || failed; }
  /// True if the user stopped the run before its answer ended.
  bool was_stopped() const { return finished && finished->stop_reason == "stopped"; }
  /// Position of the first generated token, from the sequence's start.
  int first_generated() const { return static_cast<int>(started.prompt_tokens.size()); }
  /// True for a token of the prompt that an earlier run guessed without verification.
  bool is_approximate_in_prompt(int position) const {
    return position >= started.first_approximate &&
           position - started.first_approximate < started.n_approximate;
  }
  /// The tokens of the prompt that an earlier run guessed without verification.
  std::span<const TokenId> approximate_of_prompt() const {
    return std::span(started.prompt_tokens)
        .subspan(static_cast<std::size_t>(started.first_approximate),
                 static_cast<std::size_t>(started.n_approximate));
  }
  Nanoseconds decode_compute() const;  // own compute of all complete steps
  double tokens_per_second() const;    // committed tokens / own compute of steps; 0 if undefined
  double tokens_per_step() const;      // committed tokens / steps; 0 if undefined
  int n_proposed() const;              // rows
  int n_accepted() const;              // of them
  int n_rejected() const;              // of them
  int n_unused() const;                // of them: not verified
  double acceptance_rate() const;      // accepted / proposed; 0 without proposals
  std::int64_t n_rows() const;         // rows of all forward passes
  /// The report that a step's payload of this kind was dropped; nullptr: it was not.
  const PayloadDropped* dropped_at(PayloadKind kind, StepId step) const;
};

/// One node of a tree of thoughts.
struct ThoughtRecord {
  ThoughtMade made;
  std::optional<ThoughtValued> valued;
  // one for each level at which it took part in the selection; the last counts
  std::vector<ThoughtJudged> judged;
};

/// A tree of thoughts.
struct SearchRecord {
  SearchBegun begun;
  std::vector<ThoughtRecord> thoughts;  // by ascending node
  std::optional<SearchEnded> ended;

  /// A node; nullptr for an unknown node and for 0, the question.
  const ThoughtRecord* thought(int node) const;
  /// The nodes from the first thought to `node`.
  std::vector<const ThoughtRecord*> chain_to(int node) const;
};

/// Default payload budget in bytes: a window with a million events stays within 150 MB.
inline constexpr std::size_t kPayloadBudget = std::size_t{16} << 20;
/// Replaces a speed-up in texts and tables if Timeline::why_other_load() gives a reason.
inline constexpr const char* kOtherLoad = "baseline under other load";

/// True for a sample of a GPU; false for a CPU or the emulated device.
bool of_gpu(const Sampled& sample);

/// The runs, models, samples and notices of a session.
class Timeline {
 public:
  /// Applies the next event. An event that contradicts earlier ones (a step of an unknown run, a
  /// token id outside the vocabulary) is counted and ignored.
  void apply(const Event& event);

  /// All runs in the order of their beginning.
  std::span<const RunRecord> runs() const { return runs_; }
  /// A run; nullptr if it is unknown.
  const RunRecord* run(RunId id) const;
  /// A model; nullptr if it is unknown.
  const ModelLoaded* model(std::uint32_t id) const;
  /// All models by id.
  const std::map<std::uint32_t, ModelLoaded>& models() const { return models_; }
  /// Samples of device loads, oldest first.
  std::span<const Sampled> samples() const { return samples_; }
  /// Notices, oldest first.
  std::span<const Notice> notices() const { return notices_; }
  /// Phases without a run: loading a model.
  std::span<const Phase> phases() const { return phases_; }
  /// Trees of thoughts in the order of their beginning.
  std::span<const SearchRecord> searches() const { return searches_; }
  /// True while the engine is paused.
  bool held() const { return held_; }
  /// All pauses and resumptions.
  std::span<const Held> holds() const { return holds_; }
  /// Number of applied events, ignored ones included.
  std::int64_t n_events() const { return n_events_; }
  /// Number of ignored events.
  std::int64_t n_inconsistent() const { return n_inconsistent_; }
  /// The reasons why the first ignored events were ignored: "event 7 of run 1: token 99999 is
  /// outside the vocabulary of 512".
  std::span<const std::string> inconsistencies() const { return inconsistencies_; }
  /// Time of the last event.
  Nanoseconds last_event() const { return last_event_; }
  /// The runs of a race, by lane.
  std::vector<const RunRecord*> race(std::uint32_t id) const;
  /// Grows by one with every event; panels compare it to know whether their cache is valid.
  std::uint64_t version() const { return version_; }

  /// Sets the limit of packed payload (payload.h) in bytes. Above it the oldest is dropped, and
  /// RunRecord::dropped reports it; structure is always kept.
  void set_payload_budget(std::size_t bytes) { payload_budget_ = bytes; }
  /// The limit of packed payload in bytes.
  std::size_t payload_budget() const { return payload_budget_; }
  /// Bytes of packed payload.
  std::size_t payload_bytes() const { return payload_bytes_; }
  /// Bytes of memory in use.
  std::size_t bytes() const;

  /// Text of a token: printable UTF-8, spaces kept, control characters as symbols, partial UTF-8 as
  /// <0xF0>.
  std::string text_of(const RunRecord& run, TokenId id) const;
  /// Text of a sequence of tokens; characters are joined over token boundaries.
  std::string text_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// The same as text_of(), but keeps line feeds and tabs.
  std::string plain_text_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// Text of a token, or its name if it has no text: "</s>".
  std::string name_of(const RunRecord& run, TokenId id) const;
  /// Bytes of a sequence of tokens. Ids without a piece give "<token 7>".
  std::string bytes_of(const RunRecord& run, std::span<const TokenId> ids) const;
  /// True if generated token `index` is decoded without the space at the start of its piece: it
  /// begins the text, because the prompt has only control symbols.
  bool drops_space_of(const RunRecord& run, std::size_t index) const;
  /// The bytes that generated token `index` adds to the text.
  std::string generated_bytes(const RunRecord& run, std::size_t index) const;
  /// The text of n generated tokens from `first` on, in whole characters. A character split between
  /// tokens belongs to the token that completes it; one split between prompt and output belongs to
  /// the output; an incomplete one at the end of the run to the last token.
  std::string generated_text(const RunRecord& run, std::size_t first, std::size_t n) const;
  /// Own decode compute of the baseline / that of the run. nullopt without a baseline, if
  /// why_other_load() has a reason, and for a run that took turns with other sequences, because its
  /// own compute contains neither its waits nor the work of the others during them. An AR run gives 1.
  std::optional<double> speedup(const RunRecord& run) const;
  /// Says if this program got another share of the processor during the run than during its
  /// baseline, so that the two cannot be compared. Empty if they can. Lanes of one race share the load.
  std::string why_other_load(const RunRecord& run) const;
  /// A finished AR run with the same model, scale, prompt, sampling and limits: preferably one of
  /// the same race, otherwise the latest. nullptr if there is none.
  const RunRecord* baseline_of(const RunRecord& run) const;

 private:
  friend class TimelineIntake;  // timeline_intake.cpp applies events

  std::vector<RunRecord> runs_;
  std::map<RunId, std::size_t> run_index_;
  std::map<std::uint32_t, ModelLoaded> models_;
  std::int64_t n_absent_texts_ = 0;  // of all ModelLoaded events so far
  std::vector<Sampled> samples_;
  std::vector<Notice> notices_;
  std::vector<Phase> phases_;
  std::vector<SearchRecord> searches_;
  std::vector<Held> holds_;
  bool held_ = false;
  std::size_t payload_budget_ = kPayloadBudget, payload_bytes_ = 0;
  std::size_t oldest_payload_run_ = 0;  // earlier runs have none
  std::int64_t n_events_ = 0, n_inconsistent_ = 0;
  std::vector<std::string> inconsistencies_;
  std::uint64_t version_ = 0;
  Nanoseconds last_event_ = 0;
};

}  // namespace engine
