// The events that the engine emits: plain data with ids and times. An event states what happened,
// not how to display it. A saved stream of events can replace a live engine.
//   clock  every event has a time `t` in nanoseconds since the session began, by one steady clock
//          of the engine
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/base/types.h"

namespace engine {

using RunId = std::uint32_t;  // from 1 in this stream; 0: no run
using StepId = std::int32_t;  // from 0 in each run
using Nanoseconds = std::int64_t;

/// A model is loaded. The event holds its vocabulary, so a recording shows text on any machine.
struct ModelLoaded {
  Nanoseconds t = 0;
  std::uint32_t model = 0;  // id in this stream
  std::string name, dtype, device, ops, scale;
  std::int64_t n_params = 0;  // number of weights as run, after scaling
  std::int64_t weight_bytes = 0;
  int n_layers = 0, dim = 0, vocab_size = 0, max_seq_len = 0, n_threads = 0;
  std::vector<std::string> pieces;  // [vocab_size] bytes of each token, not always UTF-8 by itself
  std::vector<TokenId> eos_ids;
  std::string
      weights_hash;  // of the tensors as stored (engine/store/weights_hash.h); empty: unknown
  std::int64_t kv_bytes_per_token = 0;  // keys and values of one position, all layers; 0: unknown
  // Control symbols have an empty piece; these are their names ("</s>").
  std::vector<TokenId> special_ids;
  std::vector<std::string> special_names;  // [special_ids]
  bool drops_first_space = false;          // the first word of a text is decoded without its space
  std::string cache_type;                  // dtype of keys and values; empty: unknown
  // [pieces] the ids of `pieces`, if a recording keeps only those of its own tokens; empty: `pieces`
  // has every token. Timeline fills in the others with empty texts.
  std::vector<TokenId> piece_ids;
};

/// How a model read the text of a prompt.
enum class ReadAs : std::uint8_t {
  Unknown,  ///< in recordings of programs that did not record it
  Chat,     ///< as a message, through the model's chat template
  Raw,      ///< as it is
};

/// The place of a run in a set: the races that one command starts, one after the other. A set has
/// several prompts, or repeats each of them.
struct PlaceInSet {
  std::uint32_t set = 0;          // from 1 in this stream; 0: the run is in no set
  int prompt = 0, n_prompts = 1;  // index of the prompt, and number of prompts
  int repeat = 0, n_repeats = 1;  // index of the repeat of the prompt, and number of repeats
  std::string task;               // of the prompt, as its file names it; empty: none
};

/// A run began: one prompt decoded by one decoder, with all settings that its output depends on.
struct RunStarted {
  Nanoseconds t = 0;
  RunId run = 0;
  std::uint32_t race = 0;  // number of the race; 0: the run is in no race
  int lane = 0;            // from 0 in its race: A, B, C, D
  std::uint32_t model = 0;
  std::string decoder;
  std::map<std::string, std::string> options;  // of the decoder, with the defaults filled in
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 0;
  std::string sampling;  // "coupled", "rejection"
  int max_tokens = 0;
  std::string prompt;
  std::vector<TokenId> prompt_tokens;
  std::string prompt_id;
  bool ignore_eos = false;
  std::uint32_t draft = 0;  // id of the draft model or the draft heads; 0: none
  // Tokens of the prompt that an earlier run guessed without verification: index of the first one
  // in prompt_tokens, and their number.
  int first_approximate = 0, n_approximate = 0;
  std::vector<std::string> stop_texts;  // the text ends before the first of them
  std::vector<TokenId> stop_ids;        // the run ends at any of them
  bool no_special = false;              // names of control symbols in the prompt were read as text
  ReadAs read_as = ReadAs::Unknown;
  std::string system;  // the system message before the prompt; empty: none
  std::string pool;    // the file of text that the decoder may copy from (--pool); empty: none
  PlaceInSet place;
};

/// Progress of a phase: done of total.
struct Phase {
  Nanoseconds t = 0;
  RunId run = 0;     // 0: loading a model
  std::string name;  // load, prefill, draft prefill, decode, check, train
  std::int64_t done = 0, total = 0;
  std::string detail;
};

/// A step began. Each step is one forward pass of the target model.
struct StepBegun {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  Nanoseconds compute = 0;  // the run's own compute before this step
  int kv_len = 0;           // positions in the KV cache
  // of the token tree; 0 if a model drafts the tree: then Drafted has the number
  int n_rows = 0;
};

/// One forward pass of the draft model within a step.
struct DraftForward {
  Nanoseconds begun = 0, ended = 0;  // from the beginning of the step
  int n_rows = 0;
};

/// A decoder's choice of a step's size (engine/decode/control), with its expected result.
struct SizeDecision {
  /// In the decoder's unit: tokens of a guess, a block or a window; 0: none, plain decoding. -1: the
  /// size was given. The steps of one block or window have the same decision.
  int size = -1;
  float tokens = 0;    // expected tokens
  float ms = 0;        // expected time of the step
  float plain_ms = 0;  // expected time of a plain step
  bool probe = false;  // chosen to learn from it

  /// True if the decoder chose the size.
  bool is_chosen() const { return size >= 0 && plain_ms > 0; }
};

/// Where a decoder that copies found the token of a row (prompt-lookup, suffix, lookahead).
struct GuessSource {
  /// The kind of text that was copied.
  enum class Kind : std::uint8_t {
    None,     ///< the row was not copied from a text
    Prompt,   ///< the prompt of this run
    Text,     ///< the text that this run has generated
    Earlier,  ///< the text of an earlier run
    File,     ///< a file of text (--pool)
  };
  Kind kind = Kind::None;
  RunId run = 0;  // the earlier run; 0 for other kinds
  int pos = 0;    // of the copied token, from the start of that sequence or file
  // The token followed its context n_seen times, of n_context times that a token followed it.
  // 0: not counted.
  int n_seen = 0, n_context = 0;
};

/// The token tree of a step is complete: the rows of the target's forward pass.
struct Drafted {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  TokenTree tree;
  std::vector<float> q;                // [n_rows] draft probability of each token, or empty
  std::vector<DraftForward> forwards;  // of the draft model, in order; empty without one
  SizeDecision decision;
  std::vector<GuessSource> sources;  // [n_rows], or empty if the decoder copies no text
  // The decoder's choices for this step. With all choices of a run, in order, the run can be repeated
  // step by step (ControlUse::decide()). Empty if all sizes were given or the decoder does not report
  // its choices.
  std::vector<std::int32_t> choices;
};

/// The state of a Jacobi block or of a window level after an iteration.
struct BlockRefined {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  int block = 0;      // number of the block in the run
  int iteration = 0;  // within the block, 0 is the initial guess
  int first_pos = 0;  // position of tokens[0], from the sequence's start
  std::vector<TokenId> tokens;
  int n_final = 0;  // length of the prefix of `tokens` that can no longer change
  bool converged = false;
};

/// The result of verification for one row of the token tree.
enum class RowFate : std::uint8_t {
  Context,   ///< the row of a committed token, not a proposal
  Accepted,  ///< a proposal that verification accepted
  Rejected,  ///< a proposal that verification rejected
  Unused,    ///< a proposal after a rejection or beside the accepted path: not verified
  Window,    ///< not a proposal: a cell that only feeds later guesses
};

inline constexpr std::size_t kMaxRejectionTokens = 8;  // tokens of one RejectionDetail
/// Rejection sampling at one row (Leviathan et al. 2023, Algorithm 1; SpecInfer for several
/// children): the probabilities of a few tokens under target and draft, and the residual
/// distribution.
struct RejectionDetail {
  int row = 0;  // the row whose children were verified
  // the tokens of the children, the emitted token, the likeliest tokens
  std::vector<TokenId> token;
  std::vector<float> p, q;  // [token] target's and draft's probability; q empty: no draft model
  /// [token] the residual distribution from which the emitted token was drawn: p becomes
  /// norm(max(0, p - q)) at every rejection. Empty: a child was accepted.
  std::vector<float> residual;
};

/// The exchange between the ranks that shared the rows of a step (engine/decode/ranks).
struct RankExchange {
  std::int64_t n_bytes = 0;  // bytes that all ranks sent, without data sent only for display
  Nanoseconds time = 0;      // on rank 0, from the end of its forward to its last message
  std::vector<Nanoseconds> forward;  // [n_ranks] durations of the ranks' forwards, in whole us

  /// The time that a rank waited for the slowest rank's forward.
  Nanoseconds wait_of(std::size_t rank) const;
};

/// The target verified the rows of a step.
struct Verified {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  std::vector<RowFate> fate;    // [n_rows]
  std::vector<TokenId> picked;  // [n_rows] the target's choice after each row
  std::vector<float> logp;      // [n_rows] log probability of `picked`
  std::vector<float> margin;    // [n_rows] lead of `picked` over the second best token
  /// [n_rows] the uniform number drawn for each row, and the row's acceptance probability: the row
  /// is accepted if uniform < keep. -1 for a row without a draw; empty without rejection sampling
  /// (greedy and coupled sampling compare tokens).
  std::vector<float> uniform, keep;
  float last_uniform = -1;  // the number that drew the token after the accepted rows; -1: none
  int n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  /// [n_rows] the target's probability of the row's token, given its parent. -1: not computed;
  /// empty: not computed for any row.
  std::vector<float> p;
  // in the order of the rows; empty without rejection sampling
  std::vector<RejectionDetail> rejection_details;
  /// [n_rows] with FastCoT's stop=probe: the attention of the probe to each row of the window,
  /// divided by the mean over the window. -1 for other rows; empty: no probe.
  std::vector<float> probe;
  std::vector<RankExchange> exchange;  // one element if ranks shared the rows, else empty
};

/// The origin of a token of the output.
enum class TokenStatus : std::uint8_t {
  Accepted,     ///< an accepted proposal
  Bonus,        ///< the target's own token after the accepted proposals
  Plain,        ///< the target's own token of a step without proposals
  Approximate,  ///< a guess that was kept without verification
};

/// A step appended tokens to the output.
struct Committed {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  int first_pos = 0;  // from the sequence's start
  std::vector<TokenId> tokens;
  std::vector<TokenStatus> status;  // [tokens]
  std::vector<RowTag> origin;       // [tokens] the row that proposed it; Current: no row did
};

// PoolNgram::born of n-grams that no step added: from the prompt, a file (--pool), an earlier run.
inline constexpr StepId kBornInPrompt = -1, kBornInFile = -2, kBornInEarlierText = -3;

/// An n-gram of Lookahead's pool: `first`, then `rest`.
struct PoolNgram {
  TokenId first = 0;
  std::vector<TokenId> rest;
  StepId born = 0;            // step that added it, or one of the codes above
  std::uint32_t n_hits = 0;   // steps in which at least one of its tokens was accepted
  std::uint32_t n_tries = 0;  // steps in which it was verified
};

/// Changes of the n-gram pool in one step.
struct PoolChanged {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  std::vector<PoolNgram> added;
  std::vector<PoolNgram> evicted;
  std::vector<PoolNgram> tried;  // the candidates of this step, with their counters after it
  int n_keys = 0;
  int n_ngrams = 0;
};

/// A branch of SEED's schedule began to wait for a resource, "draft" or "target".
struct Queued {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
};
/// A branch left the queue: the resource works for it now.
struct Dequeued {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
};
/// The resource was idle from `since` until this branch arrived.
struct Waiting {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
  Nanoseconds since = 0;
};

/// A sample of the load of a device over a period.
struct Sampled {
  Nanoseconds t = 0;  // end of the period
  Nanoseconds period = 0;
  std::string device;
  double busy_percent = -1;                 // of the device; -1: unknown, `reason` says why
  std::vector<double> thread_busy_percent;  // [threads]
  std::int64_t memory_bytes = -1;
  double engine_busy_percent = -1;  // the runs' own compute / period
  std::string reason;
  // Values of a GPU, as its driver reports them. (For a GPU, `busy_percent` is the share of time in
  // which a kernel ran.) -1: unknown; `absent` gives the reason by the field's name, or `reason` if
  // all values are unknown.
  double gpu_memory_busy_percent = -1;
  std::int64_t gpu_memory_used_bytes = -1, gpu_memory_total_bytes = -1;
  double gpu_clock_mhz = -1, gpu_memory_clock_mhz = -1;
  double gpu_power_w = -1;
  std::map<std::string, std::string> absent;
  // Share of the processors' time in which the hypervisor ran other machines; -1: unknown.
  double stolen_percent = -1;
  double load_average = -1;  // the system's, over the last minute; -1: unknown
};

/// The output of a run was compared with that of plain autoregressive decoding.
struct Agreement {
  Nanoseconds t = 0;
  RunId run = 0;
  // the run that it was compared with; 0: a run that was made for the check and is not in this
  // stream
  RunId baseline = 0;
  int n_compared = 0;
  int first_difference = -1;          // index among generated tokens; -1: none
  TokenId found = -1, expected = -1;  // at the first difference
  Nanoseconds cost = 0;               // time that the check took
};

/// A step is complete.
struct StepEnded {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  Nanoseconds propose = 0, forward = 0, verify = 0, commit = 0;  // parts of this step's own compute
  int kv_len = 0;
};

/// Payload (payload.h) of these steps was dropped because its memory budget was spent.
struct PayloadDropped {
  Nanoseconds t = 0;
  RunId run = 0;
  std::string kind;  // probabilities, trajectory, pool
  StepId first_step = 0, last_step = 0;
  std::int64_t n_bytes = 0;  // 0: unknown
};

/// A run ended by itself or was stopped.
struct RunFinished {
  Nanoseconds t = 0;
  RunId run = 0;
  std::string
      stop_reason;  // eos, length, context, stop_string, stop_id, bound, probe, text, stopped
  int n_tokens = 0;
  int n_steps = 0;
  Nanoseconds prefill = 0;  // own compute of reading the prompt, of the draft model too
  Nanoseconds decode = 0;   // own compute of the steps
  std::map<std::string, double> metrics;
  // guesses that follow the last token and were kept without verification
  std::vector<TokenId> approximate;
  std::string stop_string;  // the stop string that ended the text; empty: none
};

/// A run or a command failed.
struct RunFailed {
  Nanoseconds t = 0;
  RunId run = 0;  // 0: a command other than a run
  int code = 0;   // ErrorCode
  std::string message;
};

/// The engine paused (held) or continues. Reasoning emits the event again when it pauses, also
/// after a single step.
struct Held {
  Nanoseconds t = 0;
  bool held = false;
};

/// A message for the user.
struct Notice {
  Nanoseconds t = 0;
  /// Severity.
  enum class Level : std::uint8_t { Info, Warning, Error } level = Level::Info;
  std::string text;
};

using SearchId = std::uint32_t;  // from 1 in this stream

/// The search of a question by a tree of thoughts began (engine/reason/tot.h).
struct SearchBegun {
  Nanoseconds t = 0;
  SearchId search = 0;
  std::string id;  // of the question: "arith/1/test/4"
  std::string task;
  std::string question;
  int depth = 0;       // maximum number of levels
  int n_thoughts = 0;  // of each node
  int beam = 0;        // nodes kept of each level
};

/// A thought was written: a node of the tree.
struct ThoughtMade {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;    // from 1, ascending
  int parent = 0;  // an earlier node; 0: the question
  int depth = 0;   // from 1
  std::string text;
  std::vector<RunId> runs;  // the runs that wrote it, in order
  bool readable = true;     // false: the task cannot parse it, and it is not evaluated
  bool complete = false;    // its chain needs no further thought
};

/// The evaluation of a thought.
struct ThoughtValued {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;
  RunId by = 0;       // the run that wrote the evaluation
  double value = 0;   // 0 to 10
  bool read = false;  // false: no value was found, and value is 0
  std::string text;   // of the evaluation
};

/// The result of selecting a thought: in the beam, out of the beam, or not parsable.
enum class ThoughtFate : std::uint8_t { Kept, Pruned, Unreadable };

/// The selection of a thought for the beam of a level. Complete thoughts take part in the selection
/// again at later levels; the last result counts.
struct ThoughtJudged {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;
  ThoughtFate fate = ThoughtFate::Kept;
  // the state to which a kept thought leads; it is written after the selection
  std::string text;
  std::vector<RunId> runs;  // the runs that wrote `text`
  bool complete = false;    // its chain needs no further thought
};

/// The search of a question ended.
struct SearchEnded {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;  // the last node of the chain that leads to the answer; 0: no node was kept
  RunId by = 0;  // the run that wrote the answer; 0: the chain itself is the answer
  std::string answer;
  bool correct = false;
  std::string reason;    // why the answer is wrong
  bool stopped = false;  // the user stopped the search before it had an answer
};

using Event = std::variant<ModelLoaded,
                           RunStarted,
                           Phase,
                           StepBegun,
                           Drafted,
                           BlockRefined,
                           Verified,
                           Committed,
                           PoolChanged,
                           Queued,
                           Dequeued,
                           Waiting,
                           Sampled,
                           Agreement,
                           StepEnded,
                           PayloadDropped,
                           RunFinished,
                           RunFailed,
                           Held,
                           Notice,
                           SearchBegun,
                           ThoughtMade,
                           ThoughtValued,
                           ThoughtJudged,
                           SearchEnded>;

/// a + b, but at most the largest time. So the sum is defined even for durations from an untrusted
/// file.
Nanoseconds saturated_sum(Nanoseconds a, Nanoseconds b);

/// The time of any event.
Nanoseconds time_of(const Event& event);
/// The run of any event; 0 for events without a run.
RunId run_of(const Event& event);

}  // namespace engine
