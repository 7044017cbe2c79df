// Everything the engine tells: plain data with ids and nanoseconds. An event says what happened,
// never how to draw it. A saved stream of these opens in place of a live engine.
//   clock  one steady clock, nanoseconds since the session began, taken by the engine
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/base/types.h"

namespace engine {

using RunId = std::uint32_t;
using StepId = std::int32_t;  // from 0 in each run
using Nanoseconds = std::int64_t;

/// A model became usable. Its vocabulary travels with the stream, so a recording shows text
/// anywhere.
struct ModelLoaded {
  Nanoseconds t = 0;
  std::uint32_t model = 0;  // id in this stream
  std::string name, dtype, device, ops, scale;
  std::int64_t n_params = 0;  // as run, scaled
  std::int64_t weight_bytes = 0;
  int n_layers = 0, dim = 0, vocab_size = 0, max_seq_len = 0, n_threads = 0;
  std::vector<std::string> pieces;  // [vocab_size] bytes of each token, not always UTF-8 by itself
  std::vector<TokenId> eos_ids;
  std::string
      weights_hash;  // of the tensors as stored (engine/store/weights_hash.h); empty: unknown
  std::int64_t kv_bytes_per_token = 0;  // keys and values of one position, all layers; 0: not told
  // Tokens that are no text have an empty piece; these are their names ("</s>").
  std::vector<TokenId> special_ids;
  std::vector<std::string> special_names;  // [special_ids]
  bool drops_first_space = false;          // the first word of a text is decoded without its space
};

struct RunStarted {
  Nanoseconds t = 0;
  RunId run = 0;
  std::uint32_t race = 0;  // runs of one race share it; 0: a run alone
  int lane = 0;            // 0.. in its race: A, B, C, D
  std::uint32_t model = 0;
  std::string decoder;
  std::map<std::string, std::string> options;  // complete
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  std::uint64_t seed = 0;
  std::string sampling;  // "coupled", "rejection"
  int max_tokens = 0;
  std::string prompt;
  std::vector<TokenId> prompt_tokens;
  std::string prompt_id;
  bool ignore_eos = false;  // of the limits: a baseline must have run under the same
  std::uint32_t draft = 0;  // id of the model that drafts, 0: none does
  // Tokens of the prompt that a run before this one guessed and nothing verified: the first of
  // them, an index of prompt_tokens, and how many.
  int first_approximate = 0, n_approximate = 0;
  std::vector<std::string> stop_texts;  // the first of them in the text ends the run
  std::vector<TokenId> stop_ids;        // each ends the text
  bool no_special = false;  // names of control symbols in the prompt were read as text
};

struct Phase {
  Nanoseconds t = 0;
  RunId run = 0;     // 0: not of a run (loading a model)
  std::string name;  // load, prefill, decode, check, train
  std::int64_t done = 0, total = 0;
  std::string detail;
};

struct StepBegun {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  Nanoseconds compute = 0;  // the run's own compute before this step
  int kv_len = 0;
  int n_rows = 0;  // of the tree; 0 where a model drafts it: Drafted has it then
};

/// One forward of the draft model while a step was proposed.
struct DraftForward {
  Nanoseconds begun = 0, ended = 0;  // since the step began
  int n_rows = 0;
};

/// The rows of the step (structure).
struct Drafted {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  TokenTree tree;
  std::vector<float> q;                // [n_rows] probability each was drawn with, or empty
  std::vector<DraftForward> forwards;  // of the draft model, in order; empty where there is none
};

/// The whole state of a Jacobi block or a window level after an iteration.
struct BlockRefined {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  int block = 0;      // which block of the run
  int iteration = 0;  // within the block, 0 is the initial guess
  int first_pos = 0;  // position of tokens[0], from the sequence's start
  std::vector<TokenId> tokens;
  int n_final = 0;  // of these, proved final
  bool converged = false;
};

enum class RowFate : std::uint8_t {
  Context,   ///< a committed token's own row
  Accepted,  ///< proposed, and the target agreed
  Rejected,  ///< proposed, judged, and the target disagreed
  Unused,    ///< behind a rejection or beside the path: never judged
  Window,    ///< not a proposal: a cell that only feeds later guesses
};

/// What rejection sampling weighed behind one row: a few tokens of both distributions.
struct RejectionDetail {
  int row = 0;  // those judged are its children
  std::vector<TokenId>
      token;                // at most kMaxWeighed: the children's, the one emitted, the likeliest
  std::vector<float> p,
      q;  // [token] the target's distribution and the draft's; q empty: proposed without
  std::vector<float>
      left;  // [token] the distribution the emitted token was drawn from after every refusal;
             // empty: a child was kept
};
inline constexpr std::size_t kMaxRejectionTokens = 8;

struct Verified {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  std::vector<RowFate> fate;    // [n_rows]
  std::vector<TokenId> picked;  // [n_rows] the target's choice after each row
  std::vector<float> logp;      // [n_rows] its log probability
  std::vector<float> margin;    // [n_rows] distance to the second best
  /// [n_rows] the uniform number drawn to judge the row and the chance to keep it that the number
  /// was compared with: kept if uniform < keep. -1 where none was drawn; empty if none was at all
  /// (greedy and coupled choices compare tokens).
  std::vector<float> uniform, keep;
  float last_uniform = -1;  // drawn for the token behind the kept rows; -1: none
  int n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  /// [n_rows] the target's probability of the row's own token behind its parent, -1 where it was
  /// not told; empty: of none.
  std::vector<float> p;
  std::vector<RejectionDetail> rejection_details;  // of rejection sampling, from the first row down
  /// [n_rows] how much a probe behind the window attends to each of its rows, over the window's
  /// mean (FastCoT's stop=probe); -1 for other rows; empty: no probe was there.
  std::vector<float> probe;
};

enum class TokenStatus : std::uint8_t { Accepted, Bonus, Plain, Approximate };

struct Committed {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  int first_pos = 0;  // from the sequence's start
  std::vector<TokenId> tokens;
  std::vector<TokenStatus> status;  // [tokens]
  std::vector<RowTag> origin;      // [tokens] the row that had proposed it; Current where none had
};

struct PoolNgram {
  TokenId first = 0;
  std::vector<TokenId> rest;
  StepId born = 0;            // -1: from the prompt
  std::uint32_t n_hits = 0;   // times it gave at least one accepted token
  std::uint32_t n_tries = 0;  // times it was verified
};

struct PoolChanged {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  std::vector<PoolNgram> added;
  std::vector<PoolNgram> evicted;
  std::vector<PoolNgram> tried;  // this step's candidates, counters after it
  int n_keys = 0;
  int n_ngrams = 0;
};

struct Queued {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
};
struct Dequeued {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
};
struct Waiting {
  Nanoseconds t = 0;
  RunId run = 0;
  int branch = 0;
  std::string resource;
  Nanoseconds since = 0;
};

struct Sampled {
  Nanoseconds t = 0;
  Nanoseconds period = 0;
  std::string device;
  double busy_percent = -1;  // of the device; -1: not available, `reason` says why
  std::vector<double> thread_busy_percent;
  std::int64_t memory_bytes = -1;
  double engine_busy_percent = -1;
  std::string reason;
  // Of a GPU, as its driver tells, whose `busy_percent` is the time in which a kernel ran. -1: not
  // known, `absent` says why by the field's name; or all of them, then `reason` does.
  double gpu_memory_busy_percent = -1;
  std::int64_t gpu_memory_used_bytes = -1, gpu_memory_total_bytes = -1;
  double gpu_clock_mhz = -1, gpu_memory_clock_mhz = -1;
  double gpu_power_w = -1;
  std::map<std::string, std::string> absent;
};

struct Agreement {
  Nanoseconds t = 0;
  RunId run = 0;
  RunId baseline = 0;  // the run it was compared with; 0: a check made for it
  int n_compared = 0;
  int first_difference = -1;  // index among generated tokens; -1: none
  TokenId found = -1, expected = -1;
  Nanoseconds cost = 0;
};

struct StepEnded {
  Nanoseconds t = 0;
  RunId run = 0;
  StepId step = 0;
  Nanoseconds propose = 0, forward = 0, verify = 0, commit = 0;  // parts of this step's own compute
  int kv_len = 0;
};

/// Payload (payload.h) of these steps was let go because memory for it was spent.
struct PayloadDropped {
  Nanoseconds t = 0;
  RunId run = 0;
  std::string kind;  // probabilities, trajectory, pool
  StepId first_step = 0, last_step = 0;
  std::int64_t n_bytes = 0;  // 0: not told
};

struct RunFinished {
  Nanoseconds t = 0;
  RunId run = 0;
  std::string
      stop_reason;  // eos, length, context, stop_string, stop_id, bound, probe, text, stopped
  int n_tokens = 0;
  int n_steps = 0;
  Nanoseconds prefill = 0;
  Nanoseconds decode = 0;  // own compute of the steps
  std::map<std::string, double> metrics;
  std::vector<TokenId> approximate;  // guesses behind the text, kept though nothing verified them
  std::string stop_string;           // the one that ended the text; empty: none did
};

struct RunFailed {
  Nanoseconds t = 0;
  RunId run = 0;  // 0: a command that is no run
  int code = 0;
  std::string message;
};

/// The engine stopped stepping (held) or goes on. A reasoning that is held tells it again where it
/// comes to rest, behind a step that was asked for too.
struct Held {
  Nanoseconds t = 0;
  bool held = false;
};

struct Notice {
  Nanoseconds t = 0;
  enum class Level : std::uint8_t { Info, Warning, Error } level = Level::Info;
  std::string text;
};

using SearchId = std::uint32_t;  // from 1 in this stream

/// A question began to be searched by a tree of thoughts (engine/reason/tot.h).
struct SearchBegun {
  Nanoseconds t = 0;
  SearchId search = 0;
  std::string id;  // of the question: "arith/1/test/4"
  std::string task;
  std::string question;
  int depth = 0;       // levels, at most
  int n_thoughts = 0;  // of each node
  int beam = 0;        // nodes kept of each level
};

/// A thought was written: a node below another one.
struct ThoughtMade {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;    // from 1, rising
  int parent = 0;  // a node made before; 0: the question
  int depth = 0;   // from 1
  std::string text;
  std::vector<RunId> runs;  // that wrote it, in order
  bool readable = true;     // false: the task could make nothing of it, and it is judged no further
  bool complete = false;    // its chain needs no thought more
};

/// What the evaluator said of a thought.
struct ThoughtValued {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;
  RunId by = 0;       // the run that wrote it
  double value = 0;   // 0 to 10
  bool read = false;  // false: no score stood in the text, and value is 0
  std::string text;   // what it wrote
};

enum class ThoughtFate : std::uint8_t { Kept, Pruned, Unreadable };

/// Whether a thought stays in the beam of a level. A complete one stands in later levels again, and
/// is judged again: the last fate counts.
struct ThoughtJudged {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;
  ThoughtFate fate = ThoughtFate::Kept;
  std::string text;         // written of it since, where it was kept: the state it leads to
  std::vector<RunId> runs;  // that wrote this text
  bool complete = false;    // as known now
};

struct SearchEnded {
  Nanoseconds t = 0;
  SearchId search = 0;
  int node = 0;  // whose chain is the answer's; 0: none was kept
  RunId by = 0;  // the run that wrote the answer; 0: the chain itself is it
  std::string answer;
  bool correct = false;
  std::string reason;    // why it is not
  bool stopped = false;  // by a person, without an answer
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

/// a + b, at most the largest time: the sum stays defined for durations from an untrusted file.
Nanoseconds saturated_sum(Nanoseconds a, Nanoseconds b);

/// The time of any event.
Nanoseconds time_of(const Event& event);
/// The run of any event; 0 for those of no run.
RunId run_of(const Event& event);

}  // namespace engine
