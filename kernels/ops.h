// The operations a transformer needs, as a table each kind of device fills. Nothing above this
// header asks which device it is on.
//
//   sums       f32, each output element in one fixed order
//   invariance row r of every result has the same bits whatever rows stand beside it, however many
//              they are, in whatever order, on any number of threads
//   pointers   device memory, made by `allocate`, unless a comment says "host"
//   answers    what `gather`, `download_rows`, `pick`, `rank`, `draw` and `judge` bring to the host
//              is there when they return, unless the device was asked to hold answers
//              (kernels/device.h)
//   types      activations are f32 between operations; weights and caches are f32, f16 or bf16. An
//              operation over weights of a half type may round its activations to that type, to
//              nearest even
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace kernels {

class Device;

/// Positions that one page of a KV cache holds; also the chunk of attention's sums. Chunk c is
/// positions [kPageSize * c, kPageSize * (c + 1)) wherever they are stored.
inline constexpr int kPageSize = 64;

/// Weights [n, k] (n outputs, k inputs) in the layout `pack` chose for the device.
struct PackedMatrix {
  const void* data = nullptr;
  int n = 0;
  int k = 0;
  DType dtype = DType::F32;
};

/// One layer's part of a paged KV cache. Page p of the keys begins at k + p * page_bytes, likewise
/// v. The layout inside a page belongs to the operations; the engine only counts pages.
struct KvLayer {
  void* k = nullptr;
  void* v = nullptr;
  std::int64_t page_bytes = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  DType dtype = DType::F32;
};

/// One layer's rows of a forward, rounded to the cache's type.
struct StagedLayer {
  const void* k = nullptr;  // [n_rows, n_kv_heads, head_dim], as v
  const void* v = nullptr;
};

/// Who sees what in one forward: rows of several sequences, each over its own prefix of cached
/// positions and its own chain of ancestors among the rows. The same for every layer.
struct RowsPlan {
  int n_rows = 0;
  int n_seqs = 0;
  const int* seq = nullptr;  // [n_rows]      which sequence a row belongs to
  const int* pos = nullptr;  // [n_rows]      position of the row: prefix_len + chain length - 1
  const int* prefix_len = nullptr;   // [n_seqs]      cached positions, 0 .. prefix_len - 1
  const int* page_begin = nullptr;   // [n_seqs + 1]  into pages
  const int* pages = nullptr;        //               page ids of each sequence, in position order
  const int* chain_begin = nullptr;  // [n_rows + 1]  into chain
  const int* chain = nullptr;  //               rows from the oldest ancestor to the row itself;
                               //               element j stands at position prefix_len + j
  int sliding_window = 0;      // a row at pos sees positions > pos - sliding_window; 0: all
  // Another number each time a plan is made: where it is the same, so are the rows and their lists,
  // of which n_rows may be fewer and sliding_window another. 0: not known.
  std::uint64_t version = 0;
};

/// How the next token of one row is chosen. Plain data, host memory.
struct PickRow {
  float temperature = 0;         // below 1e-5: the largest logit
  int top_k = 0;                 // 0 or >= vocabulary: off
  float top_p = 1;               // keeps the token that crosses the threshold
  float min_p = 0;               // of the largest probability
  float repetition_penalty = 1;  // on tokens in history: score < 0 ? * : /
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;               // see kernels/philox.h
  std::uint32_t position = 0;             // of the token being predicted, from the sequence's start
  const std::int32_t* history = nullptr;  // [n_history] distinct or not; used by the penalty only
  int n_history = 0;
};

/// What was chosen for one row. Host memory.
struct Picked {
  std::int32_t id = -1;  // -1: no choice, the logits were not finite
  float score = 0;       // the winning logit, perturbed when sampling
  float margin = 0;      // score minus the second best score; near 0 is a near tie
  float logp =
      0;  // natural log of the token's probability under the filtered distribution (T as asked; T =
          // 1 if greedy)
  std::int32_t bad_index = -1;  // first index of a logit that is NaN or +inf, when id is -1
  float logit = 0;              // the token's own, behind the repetition penalty
};

/// Tokens that `rank` may be asked for.
inline constexpr int kMaxRanked = 5120;

/// One of a row's likeliest tokens. Host memory.
struct RankedToken {
  std::int32_t id = -1;
  float logit = 0;  // behind the repetition penalty
};

/// Tokens of a node that `judge` tells of, at most.
inline constexpr int kMaxRejectionTokens = 16;

/// What the distribution of one ranked row is: a token's probability is
/// exp((logit - the first one's) / temperature) / sum, temperature 1 where that is greedy's.
struct Ranking {
  int n = 0;                    // tokens ranked; 0: none, the logits were not finite
  std::int32_t bad_index = -1;  // first index of a logit that is NaN or +inf
  double sum = 0;               // over all tokens that the filters keep
};

/// How the candidates for the token behind a row are judged. `left` is the row's distribution p at first; of
/// what candidates in turn were refused for it is what is left, scaled to sum 1. Formulas, and the
/// papers they are from: engine/decode/verify/draft_rules.h, typical.h.
enum class AcceptanceRule : std::int32_t {
  Without,  // x is kept with chance left(x) / q(x), else left = (left - q)+ and q(x) = 0
  With,     // the same, and q stays
  KSeq,     // p(x) / (rho q(x)); what is left is made once, behind all refusals
  Naive,    // none is kept, and nothing taken from p
  Typical,  // every one is judged: the chance is 1 where p(x) > min(epsilon, delta exp(-H(p)))
};

/// How the token behind a row is taken where no candidate is kept.
enum class TakeLeft : std::int32_t {
  Draw,          // from what is left, in order of ids, with the row's uniform number
  Likeliest,     // of equals the lowest id
  LikelyEnough,  // drawn from those that Typical would keep, of p where there is none
};

/// A row whose distribution judges candidates. Plain data, host memory.
struct VerifyNode {
  int row = 0;  // of the logits
  AcceptanceRule rule = AcceptanceRule::Without;
  TakeLeft take = TakeLeft::Draw;
  int first = 0, n = 0;  // its candidates in the list of all, in the order in which they are judged
  double uniform = 0;    // in (0, 1), for the token that is drawn
  double epsilon = 0, delta = 0;  // of typical acceptance
  /// [n_valid] the distribution that the candidates were drawn from, in the device's memory, written by
  /// `draw` of this device or of another of the same GPU, whose answer has come. Null: they were
  /// proposed without one, q is one at the candidate that is judged: it is kept with chance left(x),
  /// else left(x) = 0. Naive and Typical judge without it; it is told of all the same.
  const double* q = nullptr;
};
struct Candidate {
  std::int32_t token = 0;
  /// In (0, 1); the i-th of the row's numbers is compared with the i-th chance. A candidate that was
  /// proposed without q and of which nothing is left takes none.
  double uniform = 0;
};

/// What was found of a node. Host memory.
struct VerifiedNode {
  std::int32_t kept = -1;   // which of the node's candidates; -1: none
  std::int32_t token = -1;  // that follows the row: the one kept, or taken; -1: the logits were not
                            // finite
  double p = 0;             // its probability, before anything was judged
};
struct VerifiedCandidate {
  double p = 0;        // its probability, before anything was judged
  double chance = -1;  // to keep it; -1: it was not judged
};
/// A token that is told of, with what was weighed for it.
struct RejectionToken {
  std::int32_t id = -1;  // -1: none
  float p = 0, q = 0, left = 0;
};

/// A row from whose distribution candidates are drawn. Plain data, host memory.
struct DrawNode {
  int row = 0;             // of the logits
  int first = 0, n = 0;    // its candidates in the list of all, and its numbers in that of numbers
  std::int32_t again = 0;  // not 0: each is drawn from all of the distribution; else none twice
  double* distribution = nullptr;  // [n_valid], in the device's memory: becomes the distribution
};
/// What was drawn for a node. Host memory.
struct Drawn {
  std::int32_t n = 0;           // fewer than asked for where no more have a probability
  std::int32_t bad_index = -1;  // where the logits are not finite, n is 0: the first NaN or +inf
  double largest = 0;           // probability of the distribution; 0: the logits were not finite
};
struct DrawnToken {
  std::int32_t id = -1;
  double p = 0;
};

/// The table. Every function throws Error(Resources or Device) when the device refuses.
struct Ops {
  const char* name;  // "scalar", "avx2", "avx512", "avx512_bf16", "amx_bf16", ...

  // Memory, 64-byte aligned. `download` waits for what was asked before it, of 0 bytes too.
  /// @param what  it is for, in words for a message: "the weights"
  void* (*allocate)(Device&, std::int64_t bytes, const char* what);
  void (*release)(Device&, void* data);
  void (*upload)(Device&, void* to, const void* from_host, std::int64_t bytes);
  void (*download)(Device&, void* to_host, const void* from, std::int64_t bytes);
  /// Row r's first row_bytes go to to_host[r], with one wait for all of them; the rows begin
  /// stride_bytes apart.  to_host [n_rows] and what it points to: host
  void (*download_rows)(Device&,
                        void* const* to_host,
                        const void* from,
                        std::int64_t row_bytes,
                        std::int64_t stride_bytes,
                        int n_rows);
  /// Copies within the device's memory, without a wait. The two do not overlap.
  void (*copy)(Device&, void* to, const void* from, std::int64_t bytes);
  /// to_host[i] = from[at[i]], with one wait for all of them.  at, to_host: host, [n]
  void (*gather)(Device&, const float* from, const std::int64_t* at, int n, float* to_host);

  // Weights. `pack` reads row-major host memory [n, k] of type `from`.
  std::int64_t (*packed_bytes)(DType dtype, int n, int k);
  void (*pack)(Device&, const void* w_host, DType from, int n, int k, DType to, void* packed);

  /// y[r, i] = sum_j x[r, j] w[i, j], j in order; then + bias[i] if bias; then + y[r, i] if add.
  ///   x [n_rows, k] with x_stride, y [n_rows, n] with y_stride (in elements), bias [n] or null
  void (*matmul)(Device&,
                 const PackedMatrix& w,
                 const float* x,
                 std::int64_t x_stride,
                 int n_rows,
                 float* y,
                 std::int64_t y_stride,
                 const float* bias,
                 bool add);
  /// The same for whole blocks of a prompt: n_rows is a multiple of the device's prompt_block(). A
  /// row's bits depend on its place in its block and on nothing beside it, and are not matmul's.
  /// Null: the device has no such blocks.
  void (*matmul_blocks)(Device&,
                        const PackedMatrix& w,
                        const float* x,
                        std::int64_t x_stride,
                        int n_rows,
                        float* y,
                        std::int64_t y_stride,
                        const float* bias,
                        bool add);
  /// y[r, :] = row ids[r] of the packed table [vocab, dim], as f32.  ids: host memory
  void (*embed)(Device&, const PackedMatrix& table, const std::int32_t* ids, int n_rows, float* y);
  /// y = x / sqrt(mean(x^2) + eps) * w, row by row; y may be x.  x, y [n_rows, dim], w [dim] f32
  void (*rms_norm)(
      Device&, const float* x, const float* w, float* y, int n_rows, int dim, float eps);
  /// Rotates pairs (i, i + head_dim / 2) of each head in place.
  ///   x [n_rows, x_stride], heads side by side from x;  table [max_pos, head_dim / 2, 2] (cos,
  ///   sin)
  void (*rope)(Device&,
               float* x,
               std::int64_t x_stride,
               int n_rows,
               int n_heads,
               int head_dim,
               const int* pos,
               const float* table);
  /// y[r, i] = silu(x[r, i]) * x[r, hidden + i].  x [n_rows, 2 hidden], y [n_rows, hidden]
  void (*swiglu)(Device&, const float* x, float* y, int n_rows, int hidden);
  /// y[i] += x[i], n of them.
  void (*add)(Device&, const float* x, float* y, std::int64_t n);

  // The KV cache. `staged` holds this forward's rows of one layer, rounded to the cache's type:
  // [n_rows, n_kv_heads, head_dim] row-major; attention and commit read it, so a row that becomes
  // prefix keeps its bits.
  std::int64_t (*page_bytes)(DType dtype, int n_kv_heads, int head_dim);
  void (*kv_stage)(Device&,
                   const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   int n_kv_heads,
                   int head_dim,
                   DType dtype,
                   void* staged);
  /// Copies rows src[i] of the staged keys and values to slot[i] of page[i], in every layer.
  ///   layers, staged [n_layers], the layers of one shape;  src, page, slot [n], no slot twice: host
  void (*kv_commit)(Device&,
                    const KvLayer* layers,
                    const StagedLayer* staged,
                    int n_layers,
                    const int* src,
                    const int* page,
                    const int* slot,
                    int n);
  /// Copies page `from` to page `to`, keys and values.
  void (*kv_copy_page)(Device&, const KvLayer&, int from, int to);
  /// Reads positions [0, n) of a sequence back as f32, [n, n_kv_heads, head_dim].  pages, k, v:
  /// host
  void (*kv_read)(Device&, const KvLayer&, const int* pages, int n, float* k, float* v);

  /// out[r, h, :] = softmax(q[r, h] . k * scale) v over what row r sees, chunk of positions by
  /// chunk, in an order that is the device's own. Query head h reads kv head h / (n_heads / n_kv_heads).
  ///   q, out [n_rows, n_heads, head_dim] with strides in elements; plan's arrays in host memory
  void (*attention)(Device&,
                    const KvLayer&,
                    const RowsPlan& plan,
                    const float* q,
                    std::int64_t q_stride,
                    const void* staged_k,
                    const void* staged_v,
                    int n_heads,
                    float scale,
                    float* out,
                    std::int64_t out_stride);

  /// What one row attends to among the rows of its chain: mean[j] is the mean over the heads of
  /// softmax(q[row] . k * scale) at the chain's element j; what is left to 1 went to the prefix.
  ///   q [n_heads, head_dim] of that row;  mean [chain length]
  void (*attention_weights)(Device&,
                            const KvLayer&,
                            const RowsPlan& plan,
                            int row,
                            const float* q,
                            const void* staged_k,
                            int n_heads,
                            float scale,
                            float* mean);

  /// Chooses a token for each row. Greedy: the largest logit. Sampling: the largest of
  /// logit / temperature + Gumbel(seed, stream, position, token) over the tokens the filters keep
  /// (kernels/sampling.h). Ties go to the lowest id. Tokens >= n_valid are never chosen.
  ///   logits [n_rows, vocab] with stride;  rows, out [n_rows] host
  void (*pick)(Device&,
               const float* logits,
               std::int64_t stride,
               int n_rows,
               int vocab,
               int n_valid,
               const PickRow* rows,
               Picked* out);

  /// The k likeliest tokens of each row among those that the filters keep, the likeliest first;
  /// ties go to the lowest id. A greedy row has no filters. No noise is made: seed, stream and
  /// position mean nothing. Tokens >= n_valid and of logit -inf are not ranked.
  ///   logits [n_rows, vocab] with stride;  rows, out [n_rows] host
  ///   tokens [n_rows, k] host: those of row r, out[r].n of them, from tokens + r k;  k is 1 to
  ///   kMaxRanked
  void (*rank)(Device&,
               const float* logits,
               std::int64_t stride,
               int n_rows,
               int vocab,
               int n_valid,
               const PickRow* rows,
               int k,
               Ranking* out,
               RankedToken* tokens);

  // Distributions, in double. Null where the host makes them of logits (kernels::filtered_distribution): on the CPU.
  /// Draws candidates from rows' distributions, which stay on the device.
  ///   logits [.., vocab] with stride;  rows, nodes, out [n_nodes] host: rows[i] is what shapes the
  ///   distribution of node i, no seed, stream or position
  ///   uniforms, tokens: host, as long as the nodes' `first` and `n` say
  void (*draw)(Device&,
               const float* logits,
               std::int64_t stride,
               int vocab,
               int n_valid,
               const PickRow* rows,
               const DrawNode* nodes,
               int n_nodes,
               const double* uniforms,
               Drawn* out,
               DrawnToken* tokens);
  /// Judges candidates by rows' distributions. A node's result does not depend on the others.
  ///   logits, rows, nodes, out as of `draw`;  candidates, of_candidates [n_candidates] host
  ///   weighed [n_nodes, n_weighed] host: the token that follows, the candidates', then the
  ///   likeliest under p or q, each once; n_weighed is 0 to kMostWeighed
  void (*verify)(Device&,
                 const float* logits,
                 std::int64_t stride,
                 int vocab,
                 int n_valid,
                 const PickRow* rows,
                 const VerifyNode* nodes,
                 int n_nodes,
                 const Candidate* candidates,
                 int n_candidates,
                 VerifiedNode* out,
                 VerifiedCandidate* of_candidates,
                 int n_rejection_tokens,
                 RejectionToken* rejection_tokens);
};

}  // namespace kernels
