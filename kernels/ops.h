// The operations of a transformer, as one table of function pointers for each kind of device. Code above this
// header does not depend on the kind of device.
//
//   sums        f32; each output element is summed in one fixed order
//   invariance  batch invariance: row r of every result has the same bits for any other rows in the
//               call, any number and order of rows, and any number of threads
//   pointers    device memory made by `allocate`, unless a comment says "host"
//   results     `gather`, `download_rows`, `pick`, `rank`, `draw` and `verify` have written their host results
//               when they return, unless the device defers downloads (kernels/device.h)
//   types       activations are f32 between operations; weights are of any DType, caches f32, f16 or bf16. An
//               operation with weights of a half type may round its activations to that type, to nearest even.
//               A product with quantised weights quantises each row of activations in blocks of 32: int8, scale
//               max |x| / 127, to nearest even; a block with NaN or infinity gives NaN in every output of its row
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/gate.h"

namespace kernels {

class Device;

/// Positions in one page of a paged KV cache. Attention also works in chunks of this size: chunk c is positions
/// [kPageSize * c, kPageSize * (c + 1)), wherever they are stored.
inline constexpr int kPageSize = 64;

/// Weights [n, k] (n outputs, k inputs) in the device's own layout, which `pack` writes.
struct PackedMatrix {
  const void* data = nullptr;
  int n = 0;
  int k = 0;
  DType dtype = DType::F32;
};

/// Quantised weights [n, k] in host memory. Weight (i, j) is
/// scale[i, j / group] * q[i, j] + minimum[i, j / group], product and sum rounded to f32 one after the other.
struct QuantisedRows {
  const std::int8_t* q =
      nullptr;  // [n, k]; Q4_0: -8 to 7; Q4_1, Q4_K: 0 to 15; Q8_0, Q8_G: -128 to 127
  const float* scale = nullptr;    // [n, k / group]
  const float* minimum = nullptr;  // [n, k / group] or null: 0. Null for Q4_0 and Q8_0
  int group = 32;                  // 32; for Q8_G also 16
};

/// One layer's part of a paged KV cache. Page p of the keys begins at k + p * page_bytes; the values likewise.
/// Each device has its own layout inside a page.
struct KvLayer {
  void* k = nullptr;
  void* v = nullptr;
  std::int64_t page_bytes = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  DType dtype = DType::F32;
};

/// Keys and values of one layer for the rows of the current forward, rounded to the cache's type.
struct StagedLayer {
  const void* k = nullptr;  // [n_rows, n_kv_heads, head_dim], as v
  const void* v = nullptr;
};

/// The attention mask of one forward, the same for every layer. A row sees its sequence's cached prefix, its
/// ancestors in the token tree, and itself (tree attention). The forward may hold rows of several sequences.
struct RowsPlan {
  int n_rows = 0;
  int n_seqs = 0;
  const int* seq = nullptr;  // [n_rows]      sequence of the row
  const int* pos = nullptr;  // [n_rows]      position of the row: prefix_len + chain length - 1
  const int* prefix_len = nullptr;   // [n_seqs]      cached positions 0 .. prefix_len - 1
  const int* page_begin = nullptr;   // [n_seqs + 1]  into pages
  const int* pages = nullptr;        //               page ids of each sequence, in position order
  const int* chain_begin = nullptr;  // [n_rows + 1]  into chain
  /// Rows from the oldest ancestor to the row itself; element j has position prefix_len + j
  const int* chain = nullptr;
  int sliding_window = 0;  // a row at pos sees positions > pos - sliding_window; 0: all
  /// If two plans have the same nonzero version, their rows and lists are the same; only n_rows
  /// (fewer of these rows) and sliding_window may differ. 0: no version.
  std::uint64_t version = 0;
};

/// How attention turns a product into a score: scale * (q . k), then, if softcap c is not 0, c * tanh(score / c).
struct Scores {
  float scale = 1;
  float softcap = 0;
};

/// How to choose the next token of one row. Plain data, host memory.
struct PickRow {
  float temperature = 0;  // below 1e-5: greedy, the largest logit
  int top_k = 0;          // 0 or >= vocabulary: off
  float top_p = 1;        // also keeps the token at which the sum reaches top_p
  float min_p = 0;        // relative to the largest probability
  /// for tokens in `history`: negative logits are multiplied by it, other logits are divided by it
  float repetition_penalty = 1;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;    // a RandomStream (kernels/philox.h)
  std::uint32_t position = 0;  // of the predicted token, counted from the sequence's start
  /// [n_history] may repeat tokens; only the penalty reads it
  const std::int32_t* history = nullptr;
  int n_history = 0;
};

/// The token chosen for one row. Host memory.
struct Picked {
  std::int32_t id = -1;  // -1: none, a logit was not finite
  float score = 0;       // the winning logit, with Gumbel noise when sampling
  float margin = 0;      // score minus the second best score; near 0 means a near tie
  /// Natural log of the token's probability in the filtered distribution; greedy: at T = 1
  float logp = 0;
  std::int32_t bad_index = -1;  // if id is -1: the first index of a logit that is NaN or +inf
  float logit = 0;              // the token's own logit after the repetition penalty
};

/// Largest k of `rank`.
inline constexpr int kMaxRanked = 5120;

/// One of the most likely tokens of a row. Host memory.
struct RankedToken {
  std::int32_t id = -1;
  float logit = 0;  // after the repetition penalty
};

/// Largest number of tokens that `verify` reports for a node.
inline constexpr int kMaxRejectionTokens = 16;

/// The distribution of one ranked row. The probability of a token is
/// exp((logit - first token's logit) / temperature) / sum; a greedy row has temperature 1 here.
struct Ranking {
  int n = 0;                    // tokens ranked; 0: a logit was not finite
  std::int32_t bad_index = -1;  // first index of a logit that is NaN or +inf
  double sum = 0;               // over all tokens that the filters keep
};

/// How `verify` accepts or rejects the candidates for the token after a row. The residual distribution starts as
/// the row's distribution p; each rejection removes mass from it and scales the rest to sum 1.
/// Formulas and papers: engine/decode/verify/draft_rules.h, typical.h.
enum class AcceptanceRule : std::int32_t {
  Without,  // draws without replacement: accepts x with probability residual(x) / q(x); a rejection sets
            // residual = (residual - q)+ and q(x) = 0
  With,  // draws with replacement: the same, but q stays unchanged
  KSeq,  // accepts x with probability p(x) / (rho q(x)); makes the residual once, after all rejections
  Naive,  // accepts none and leaves p unchanged
  Typical,  // typical acceptance: verifies every candidate; accepts x if p(x) > min(epsilon, delta exp(-H(p)))
};

/// How `verify` chooses the token after a row if it accepted no candidate.
enum class ResidualChoice : std::int32_t {
  Sample,   // samples the residual distribution in order of ids, with the row's uniform number
  Argmax,   // the most likely token; ties go to the lowest id
  Typical,  // samples the tokens that typical acceptance would keep, or p if there is none
};

/// A row whose distribution accepts or rejects candidates. Plain data, host memory.
struct VerifyNode {
  int row = 0;  // of the logits
  AcceptanceRule rule = AcceptanceRule::Without;
  ResidualChoice choice = ResidualChoice::Sample;
  int first = 0, n = 0;  // this node's part of the list of candidates, in the order of verification
  double uniform = 0;    // in (0, 1), for the sampled token
  double epsilon = 0, delta = 0;  // of typical acceptance
  /// [n_valid] the distribution that proposed the candidates, in device memory. An earlier `draw` of this device,
  /// or of another device object of the same GPU, wrote it and has returned its results. Null: the candidates
  /// have no draft distribution, so q(x) is 1 for the candidate itself: `verify` accepts x with probability
  /// residual(x), and a rejection sets residual(x) = 0. Naive and Typical do not use it; `verify` only reports it.
  const double* q = nullptr;
};
/// A proposed token. Host memory.
struct Candidate {
  std::int32_t token = 0;
  /// In (0, 1). `verify` compares the i-th number of a row with its i-th acceptance probability. A
  /// candidate without q whose residual probability is 0 consumes no number.
  double uniform = 0;
};

/// The result of one node. Host memory.
struct VerifiedNode {
  std::int32_t kept = -1;  // index of the accepted candidate within the node; -1: none
  /// The token after the row: accepted or chosen from the residual; -1: a logit was not finite
  std::int32_t token = -1;
  double p = 0;  // its probability in p
};
/// The result of one candidate. Host memory.
struct VerifiedCandidate {
  double p = 0;        // its probability in p
  double chance = -1;  // its acceptance probability; -1: not verified
};
/// A reported token with its probabilities in p, in q and in the residual distribution. Host memory.
struct RejectionToken {
  std::int32_t id = -1;  // -1: none
  float p = 0, q = 0, residual = 0;
};

/// A row whose distribution proposes candidates. Plain data, host memory.
struct DrawNode {
  int row = 0;             // of the logits
  int first = 0, n = 0;    // its part of the list of candidates and of the list of uniform numbers
  std::int32_t again = 0;  // 1: with replacement; 0: no token is drawn twice
  double* distribution = nullptr;  // [n_valid] device memory; receives the distribution
};
/// The result of one DrawNode. Host memory.
struct Drawn {
  // number of candidates drawn; fewer than requested if no further token has a positive probability
  std::int32_t n = 0;
  std::int32_t bad_index = -1;  // if n is 0 for a logit that is NaN or +inf: its first index
  double largest = 0;  // largest probability of the distribution; 0: a logit was not finite
};
/// A candidate that `draw` sampled. Host memory.
struct DrawnToken {
  std::int32_t id = -1;
  double p = 0;
};

/// The product at the end of a fused operation: y[r] = x[r] W^T + bias, plus y[r] if `add`.
struct Projection {
  const PackedMatrix& w;        // [n, k]; owned by the caller, valid during the call
  const float* bias = nullptr;  // [n] or null
  float* y = nullptr;           // [n_rows, n]
  std::int64_t y_stride = 0;    // elements between rows of y
  bool add = false;
};

/// The table. Every function throws Error(Resources or Device) if the device fails.
struct Ops {
  const char* name;  // "scalar", "avx2", "avx512", "avx512_bf16", "amx_int8", ...

  // ---- memory
  /// 64-byte aligned device memory.
  /// @param what  purpose, for error messages: "the weights"
  void* (*allocate)(Device&, std::int64_t bytes, const char* what);
  /// Frees memory of `allocate`. Null is allowed.
  void (*release)(Device&, void* data);
  /// Copies host memory to the device. The host memory may change when the call returns.
  void (*upload)(Device&, void* to, const void* from_host, std::int64_t bytes);
  /// Waits for all earlier operations (even if bytes is 0) and copies device memory to the host.
  void (*download)(Device&, void* to_host, const void* from, std::int64_t bytes);
  /// Copies the first row_bytes of row r to to_host[r], with one wait for all rows. Rows begin stride_bytes apart.
  ///   to_host [n_rows] and its targets: host
  void (*download_rows)(Device&,
                        void* const* to_host,
                        const void* from,
                        std::int64_t row_bytes,
                        std::int64_t stride_bytes,
                        int n_rows);
  /// Copies within device memory, without a wait. The ranges do not overlap.
  void (*copy)(Device&, void* to, const void* from, std::int64_t bytes);
  /// to_host[i] = from[at[i]], with one wait for all of them.  at, to_host: host, [n]
  void (*gather)(Device&, const float* from, const std::int64_t* at, int n, float* to_host);

  // ---- matrices
  /// Bytes of weights [n, k] in the packed layout.  k is a multiple of 32 for a quantised type
  std::int64_t (*packed_bytes)(DType dtype, int n, int k);
  /// Converts row-major host weights [n, k] of type `from` to the packed layout in type `to`. Neither is quantised.
  void (*pack)(Device&, const void* w_host, DType from, int n, int k, DType to, void* packed);
  /// Converts quantised host weights [n, k], k a multiple of 32, to the packed layout of the quantised type `to`. The
  /// packed weights are exact: scales and minima that `to` stores in f16 must be f16 values (or NaN).
  /// Null: the device computes no quantised weights (CUDA, emulation).
  void (*pack_quantised)(
      Device&, const QuantisedRows& w_host, int n, int k, DType to, void* packed);
  /// y[r, i] = sum_j x[r, j] w[i, j], in an order of j that is fixed for each device; plus bias[i] if bias is not
  /// null; plus y[r, i] if add.
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
  /// `matmul` for whole blocks of a prompt: n_rows is a multiple of Device::prompt_block(). The
  /// bits of a row depend on its place in its block but not on other rows. They may differ from
  /// those of `matmul`. Null: the device has no such blocks.
  void (*matmul_blocks)(Device&,
                        const PackedMatrix& w,
                        const float* x,
                        std::int64_t x_stride,
                        int n_rows,
                        float* y,
                        std::int64_t y_stride,
                        const float* bias,
                        bool add);
  /// y[r, :] = row ids[r] of the packed table [vocab, dim], as f32.  ids: host
  void (*embed)(Device&, const PackedMatrix& table, const std::int32_t* ids, int n_rows, float* y);

  // ---- rows
  /// RMSNorm: y = x / sqrt(mean(x^2) + eps) * w, row by row; y may be x.  x, y [n_rows, dim], w [dim] f32
  void (*rms_norm)(
      Device&, const float* x, const float* w, float* y, int n_rows, int dim, float eps);
  /// RoPE: rotates the pairs (i, i + head_dim / 2) of each head in place.
  ///   x [n_rows, x_stride], heads side by side from x;  table [max_pos, head_dim / 2, 2] (cos, sin);  pos [n_rows]
  void (*rope)(Device&,
               float* x,
               std::int64_t x_stride,
               int n_rows,
               int n_heads,
               int head_dim,
               const int* pos,
               const float* table);
  /// RMSNorm of single heads in place: queries by w[0], keys by w[1].
  ///   x [n_rows, x_stride]: n_heads queries, then n_kv_heads keys side by side;  w [2, head_dim]
  void (*head_norm)(Device&,
                    float* x,
                    std::int64_t x_stride,
                    int n_rows,
                    int n_heads,
                    int n_kv_heads,
                    int head_dim,
                    const float* w,
                    float eps);
  /// Gated linear unit: y[r, i] = gate(x[r, i]) * x[r, hidden + i].  x [n_rows, 2 hidden], y [n_rows, hidden]
  void (*glu)(Device&, Gate gate, const float* x, float* y, int n_rows, int hidden);
  /// x[i] = scale * x[i], then, if softcap c is not 0, c * tanh(x[i] / c).  x [n]
  void (*scale_and_cap)(Device&, float* x, std::int64_t n, float scale, float softcap);
  /// y[i] += x[i].  x, y [n]
  void (*add)(Device&, const float* x, float* y, std::int64_t n);

  // ---- KV cache. Staged rows are the keys or values of one layer of this forward, rounded to the cache's type:
  // [n_rows, n_kv_heads, head_dim] row-major. Attention and commit both read them, so a row keeps its bits when it
  // joins the prefix.
  /// Bytes of one page of one layer's keys, or of its values.
  std::int64_t (*page_bytes)(DType dtype, int n_kv_heads, int head_dim);
  /// Rounds rows of keys or values to staged rows.  x [n_rows, n_kv_heads, head_dim] with x_stride in elements
  void (*kv_stage)(Device&,
                   const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   int n_kv_heads,
                   int head_dim,
                   DType dtype,
                   void* staged);
  /// Copies rows src[i] of the staged keys and values to slot[i] of page[i], in every layer.
  ///   layers, staged [n_layers], all of one shape;  src, page, slot [n] host, no slot twice
  void (*kv_commit)(Device&,
                    const KvLayer* layers,
                    const StagedLayer* staged,
                    int n_layers,
                    const int* src,
                    const int* page,
                    const int* slot,
                    int n);
  /// Copies the keys and values of page `from` to page `to`.
  void (*kv_copy_page)(Device&, const KvLayer&, int from, int to);
  /// Reads positions [0, n) of a sequence as f32, [n, n_kv_heads, head_dim].  pages, k, v: host
  void (*kv_read)(Device&, const KvLayer&, const int* pages, int n, float* k, float* v);

  // ---- attention
  /// out[r, h, :] = softmax(scores of q[r, h]) v over the positions that row r sees, computed in chunks of
  /// kPageSize positions with online softmax (as FlashAttention does) and combined in an order fixed for each device.
  /// Grouped-query attention (GQA): query head h reads kv head h / (n_heads / n_kv_heads).
  ///   q, out [n_rows, n_heads, head_dim] with strides in elements; the arrays of plan: host
  void (*attention)(Device&,
                    const KvLayer&,
                    const RowsPlan& plan,
                    const float* q,
                    std::int64_t q_stride,
                    const void* staged_k,
                    const void* staged_v,
                    int n_heads,
                    const Scores& scores,
                    float* out,
                    std::int64_t out_stride);
  /// Attention weights of one row over the rows of its chain: mean[j] is the mean over the heads of
  /// softmax(scores of q[row]) at element j of the chain. The weights of the chain and of the
  /// prefix sum to 1.
  ///   q [n_heads, head_dim] of that row;  mean [chain length]
  void (*attention_weights)(Device&,
                            const KvLayer&,
                            const RowsPlan& plan,
                            int row,
                            const float* q,
                            const void* staged_k,
                            int n_heads,
                            const Scores& scores,
                            float* mean);

  // ---- fused operations (kernel fusion). Each has the bits of the sequence of operations that it names
  // (kernels/unfused.h). A GPU runs fewer kernels for it; the CPU runs the sequence.
  /// `rms_norm` of x into `normed`, then `matmul` of `normed`.
  ///   x, normed [n_rows, to.w.k] without gaps, not the same memory;  norm [to.w.k]
  void (*rms_norm_matmul)(Device&,
                          const float* x,
                          const float* norm,
                          float eps,
                          float* normed,
                          int n_rows,
                          const Projection& to);
  /// `glu` of gate_up into `gated`, then `matmul` of `gated`.
  ///   gate_up [n_rows, 2 to.w.k];  gated [n_rows, to.w.k]
  void (*glu_matmul)(
      Device&, Gate gate, const float* gate_up, float* gated, int n_rows, const Projection& to);
  /// `rope` of queries and keys in place, then `kv_stage` of keys and of values.
  ///   qkv [n_rows, (n_heads + 2 n_kv_heads) head_dim] with stride: queries, keys, values;  pos, table as of `rope`
  void (*rope_kv_stage)(Device&,
                        float* qkv,
                        std::int64_t stride,
                        int n_rows,
                        int n_heads,
                        int n_kv_heads,
                        int head_dim,
                        const int* pos,
                        const float* table,
                        DType dtype,
                        void* staged_k,
                        void* staged_v);
  /// `attention` into `attended`, then `matmul` of `attended`, for all rows of the plan.
  ///   attended [n_rows, n_heads head_dim] without gaps, n_heads head_dim = to.w.k
  void (*attention_matmul)(Device&,
                           const KvLayer&,
                           const RowsPlan& plan,
                           const float* q,
                           std::int64_t q_stride,
                           const void* staged_k,
                           const void* staged_v,
                           int n_heads,
                           const Scores& scores,
                           float* attended,
                           const Projection& to);

  // ---- choice of tokens
  /// Chooses a token for each row. Greedy: the largest logit. Sampling: the Gumbel-max trick, the largest of
  /// logit / temperature + Gumbel(seed, stream, position, token) over the tokens that the filters keep
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
  /// The k most likely tokens of each row that the filters keep, the most likely first; ties go to
  /// the lowest id. A greedy row has no filters. No noise is added: seed, stream and position have
  /// no effect. Leaves out tokens >= n_valid and tokens of logit -inf.
  ///   logits [n_rows, vocab] with stride;  rows, out [n_rows] host
  ///   tokens [n_rows, k] host, row r holds out[r].n of them;  k is 1 to kMaxRanked
  ///   out may be null if only tokens are needed, which is cheaper: the rest of a row of `tokens` then
  ///   has id -1, and so has a whole row with a logit that is NaN or +inf
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

  // ---- distributions on the device, in double. Null on the CPU, where the host makes distributions from logits
  // (kernels::filtered_distribution).
  /// Samples candidates from the distributions of rows. The distributions stay on the device.
  ///   logits [.., vocab] with stride;  rows, nodes, out [n_nodes] host: rows[i] gives temperature, filters and
  ///   penalty of node i; its seed, stream and position have no effect
  ///   uniforms, tokens: host, as long as `first` and `n` of the nodes require
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
  /// Accepts or rejects candidates by the distributions of rows (speculative sampling, Leviathan et al. 2023, and its
  /// variants). The result of a node does not depend on the other nodes.
  ///   logits, rows, nodes, out as of `draw`;  candidates, of_candidates [n_candidates] host
  ///   rejection_tokens [n_nodes, n_rejection_tokens] host: the chosen token, the candidates, then the most likely
  ///   tokens of p or q, each once; n_rejection_tokens is 0 to kMaxRejectionTokens
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
