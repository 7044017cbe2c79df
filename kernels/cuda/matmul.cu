// y = x w^T for the rows of a step, and the embedding, which reads the same packed weights.
//   half types  tensor cores (matmul_halves.cuh, matmul_stream.cuh); weights lie in the order in which lanes read their
//               fragments, and activations are rounded to the weights' type
//   f32         fused multiply-adds, 8 or 32 rows at a time
//   sums        k is cut into chunks of 64. Chunk c belongs to partial sum c % 4, which adds its
//               chunks in order; the four are then added in order. The order does not depend on the
//               rows, their number or the device, and zeros appended to k add only zeros (batch
//               invariance)
//   many rows   are multiplied 128 at a time. A prompt's keys and values have the same bits as if
//               steps had computed them
//   fusion      the kernel that rounds rows can also compute them, by a norm, by a gate, or by
//               joining attention's chunks
#include <algorithm>
#include <variant>

#include "kernels/checks.h"
#include "kernels/cuda/attention_join.cuh"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/matmul_halves.cuh"
#include "kernels/cuda/matmul_stream.cuh"
#include "kernels/cuda/packed.cuh"
#include "kernels/cuda/row_kernels.cuh"
#include "kernels/unfused.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// Bytes of weights that are prefetched while the rows are made.
constexpr std::int64_t kBytesAhead = 16 << 20;
constexpr int kMaxRows = 128;
constexpr int kWideOutputs = 192 * kBlockOutputs;  // enough blocks without split-K
constexpr int kF32FewRows = 8, kF32MoreRows = 32;

__device__ inline float element_of(const void* data, DType type, std::int64_t i) {
  if (type == DType::F32) return static_cast<const float*>(data)[i];
  const std::uint16_t half = static_cast<const std::uint16_t*>(data)[i];
  return type == DType::BF16 ? StoreBf16::widen(half) : StoreF16::widen(half);
}

struct Raw {  // outputs [first, first + n) of a matrix on the device, row-major
  const void* data;
  DType type;
  int first, n, k;
};

// Packs weights in the order of fragments. A thread writes the eight elements of one lane's
// fragment.
template <class Store>
__global__ void __launch_bounds__(kMatThreads)
    pack_halves(Raw raw, int n_chunks, std::int64_t n_fragments, std::uint16_t* packed) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kMatThreads + threadIdx.x;
  if (at >= n_fragments) return;
  const auto lane = static_cast<int>(at % 32);
  const std::int64_t tile = at / 32, chunk = tile / 16;
  const auto output = static_cast<int>(chunk / n_chunks * kBlockOutputs + tile / 4 % 4 * 16);
  const int in_order = chunk_at(static_cast<int>(chunk % n_chunks), n_chunks);
  const auto j = static_cast<int>(in_order * kChunk + tile % 4 * 16);
  for (int e = 0; e < 8; e++) {
    const int row = output + lane / 4 + e / 2 % 2 * 8,
              column = j + lane % 4 * 2 + e / 4 * 8 + e % 2;
    const bool in_range = row < raw.n && column < raw.k;
    const float x =
        in_range ? element_of(raw.data, raw.type, std::int64_t{row} * raw.k + column) : 0;
    packed[at * 8 + e] = Store::narrow(x);
  }
}

__global__ void __launch_bounds__(kMatThreads) pack_f32(Raw raw, std::int64_t n, float* packed) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kMatThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t line = at / kF32Outputs;
  const auto row = static_cast<int>(line / raw.k * kF32Outputs + at % kF32Outputs);
  packed[at] =
      row < raw.n ? element_of(raw.data, raw.type, std::int64_t{row} * raw.k + line % raw.k) : 0;
}

// Thread 4 t + l reads columns 16 t + 2 l and 16 t + 2 l + 8 and the column after each: two words of one fragment.
// grid: (rows, blocks of threads)
__global__ void __launch_bounds__(kMatThreads)
    embed_rows(const void* packed, DType type, int k, const int* ids, float* y) {
  let_next_begin();
  wait_for_earlier();
  const int id = ids[blockIdx.x], thread = blockIdx.y * kMatThreads + threadIdx.x;
  const int first = thread / 4 * 16 + thread % 4 * 2;
  if (first >= k) return;
  Four own = {};
  if (type == DType::F32) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int j = first + e / 2 * 8 + e % 2;
      if (j < k) own.of[e] = static_cast<const float*>(packed)[place_of_f32(id, j, k)];
    }
  } else {
    const auto* words =
        static_cast<const unsigned*>(packed) + place_of_half(id, first, chunks_of(k)) / 2;
    const unsigned low = words[0], high = words[2];
    const auto widen = [&](unsigned half) {
      const auto bits = static_cast<std::uint16_t>(half);
      return type == DType::BF16 ? StoreBf16::widen(bits) : StoreF16::widen(bits);
    };
    own = {{widen(low & 0xffff), widen(low >> 16), widen(high & 0xffff), widen(high >> 16)}};
  }
  y += std::int64_t{blockIdx.x} * k;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const int j = first + e / 2 * 8 + e % 2;
    if (j < k) y[j] = own.of[e];
  }
}

// ---- products

// Rounds rows and stores them in the order of place_of_row. A thread handles four neighbouring
// elements of a row. grid: (chunks, tiles of 8 rows)
template <class Store>
__global__ void __launch_bounds__(kMatThreads)
    prepare_rows(const float* x, std::int64_t x_stride, int n_rows, int k, std::uint16_t* rows) {
  let_next_begin();
  wait_for_earlier();
  const int row = blockIdx.y * 8 + threadIdx.x / 16, i = blockIdx.x * kChunk + threadIdx.x % 16 * 4;
  const int n = row < n_rows ? k - i : 0;
  const Four own = load_four(x + row * x_stride + i, n, lie_in_fours(x_stride, x));
  store_prepared<Store>(rows, row, i, gridDim.y, own);
}

// The same for RMSNorm of x. Also writes the result of rms_norm_rows to y [n_rows, k].
// grid: one block of norm_threads(k) per row, the padding rows of the last tile included; then blocks that prefetch
template <class Store>
__global__ void __launch_bounds__(kNormThreads) norm_and_prepare(const float* x,
                                                                 const float* w,
                                                                 float* y,
                                                                 int n_rows,
                                                                 int k,
                                                                 float eps,
                                                                 std::uint16_t* rows,
                                                                 int n_tiles,
                                                                 Ahead ahead) {
  let_next_begin();
  const int row = blockIdx.x;
  prefetch_weights(ahead, row - 8 * n_tiles);
  wait_for_earlier();
  if (row >= 8 * n_tiles) return;
  const auto width = static_cast<int>(padded_to(k, kChunk));
  if (row >= n_rows) {
    for (int i = 4 * threadIdx.x; i < width; i += 4 * blockDim.x)
      store_prepared<Store>(rows, row, i, n_tiles, {});
    return;
  }
  const bool in_fours = lie_in_fours(k, x, w, y);
  x += std::int64_t{row} * k;
  y += std::int64_t{row} * k;
  for_normed({x, w, k, in_fours}, eps, width, [&](int i, int n, const Four& normed) {
    store_prepared<Store>(rows, row, i, n_tiles, normed);
    store_four(y + i, normed, n, in_fours);
  });
}

// The same for the gated linear unit of x. Also writes the result of glu_elements to y [n_rows, k].
// grid: as prepare_rows, with one more tile of blocks that prefetch
template <class Store>
__global__ void __launch_bounds__(kMatThreads) gate_and_prepare(
    Gate kind, const float* x, float* y, int n_rows, int k, std::uint16_t* rows, Ahead ahead) {
  const int n_tiles = gridDim.y - 1;
  let_next_begin();
  if (static_cast<int>(blockIdx.y) == n_tiles) prefetch_weights(ahead, blockIdx.x);
  wait_for_earlier();
  if (static_cast<int>(blockIdx.y) == n_tiles) return;
  const int row = blockIdx.y * 8 + threadIdx.x / 16, i = blockIdx.x * kChunk + threadIdx.x % 16 * 4;
  const int n = row < n_rows ? k - i : 0;
  Four own = {};
  if (n > 0) {
    const bool in_fours = lie_in_fours(k, x, y);
    const float* gate = x + std::int64_t{row} * 2 * k + i;
    own = gated(kind, load_four(gate, n, in_fours), load_four(gate + k, n, in_fours));
    store_four(y + std::int64_t{row} * k + i, own, n, in_fours);
  }
  store_prepared<Store>(rows, row, i, n_tiles, own);
}

// The same for attention: joins the chunks of a row as join_chunks does, and writes its result to call.out.
// grid: (rows, the padding rows of the last tile included, then blocks that prefetch; heads)
template <class Store>
__global__ void __launch_bounds__(kAttentionThreads) join_and_prepare(
    AttentionCall call, int n_rows, std::uint16_t* rows, int n_tiles, Ahead ahead) {
  const int listed = blockIdx.x, head = blockIdx.y;
  let_next_begin();
  prefetch_weights(ahead, (listed - 8 * n_tiles) * static_cast<int>(gridDim.y) + head);
  wait_for_earlier();
  if (listed >= 8 * n_tiles) return;
  const bool in_range = listed < n_rows;
  const int row = in_range ? call.rows[listed] : listed;
  const auto write = [&](int d, float value) {
    const int column = head * call.head_dim + d;
    if (in_range) call.out[row * call.out_stride + column] = value;
    rows[place_of_row(row, column, n_tiles)] = Store::narrow(value);
  };
  if (in_range)
    join(call, listed, head, write);
  else
    for (int d = threadIdx.x; d < call.head_dim; d += kAttentionThreads) write(d, 0.0f);
  if (head + 1 < call.n_heads) return;
  const int k = call.n_heads * call.head_dim;
  for (int i = k + static_cast<int>(threadIdx.x); i < padded_to(k, kChunk); i += kAttentionThreads)
    rows[place_of_row(row, i, n_tiles)] = Store::narrow(0.0f);
}

template <int kRows>
union F32Shared {
  float x[kPartials][kRows][kChunk];
  float sum[kPartials][kRows][kF32Outputs];
};

// A warp computes one of the four partial sums, a lane one output.
// grid: (blocks of 32 outputs, tiles of kRows rows, each of which reads the weights once)
template <int kRows>
__global__ void __launch_bounds__(kMatThreads) multiply_f32(MatmulCall call) {
  F32Shared<kRows>& shared = static_shared<F32Shared<kRows>>();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = blockIdx.y * kRows;
  const int rows_here = call.n_rows - first_row < kRows ? call.n_rows - first_row : kRows;
  const auto* weights = static_cast<const float*>(call.weights) +
                        std::int64_t{blockIdx.x} * call.k * kF32Outputs + lane;
  float sum[kRows] = {};
  for (int begin = warp * kChunk; begin < call.k; begin += kPartials * kChunk) {
    const int k_here = call.k - begin < kChunk ? call.k - begin : kChunk;
    __syncwarp();
    for (int i = lane; i < rows_here * kChunk; i += 32) {
      const int row = i / kChunk, j = i % kChunk;
      if (j < k_here)
        shared.x[warp][row][j] = call.x[(first_row + row) * call.x_stride + begin + j];
    }
    __syncwarp();
    for (int j = 0; j < k_here; j++) {
      const float w = weights[std::int64_t{begin + j} * kF32Outputs];
#pragma unroll
      for (int row = 0; row < kRows; row++)
        if (row < rows_here) sum[row] = fmaf(shared.x[warp][row][j], w, sum[row]);
    }
  }
  __syncthreads();  // sums replace the rows in shared memory
#pragma unroll
  for (int row = 0; row < kRows; row++) shared.sum[warp][row][lane] = sum[row];
  __syncthreads();
  const int output = static_cast<int>(blockIdx.x) * kF32Outputs + lane;
  if (output >= call.n) return;
  for (int row = warp; row < rows_here; row += kWarps) {
    float all = shared.sum[0][row][lane];
    for (int p = 1; p < kPartials; p++) all += shared.sum[p][row][lane];
    finish(call, first_row + row, output, all);
  }
}

// ---- host

std::int64_t packed_bytes(DType dtype, int n, int k) {
  if (dtype == DType::F32) return padded_to(n, kF32Outputs) * k * 4;
  return padded_to(n, kBlockOutputs) * padded_to(k, kChunk) * 2;
}

// Uploads row-major weights slab by slab; a kernel reorders each slab.
void pack(Device& device, const void* w_host, DType from, int n, int k, DType to, void* packed) {
  ensure(n > 0 && k > 0, "pack: n and k must be at least 1");
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t row_bytes = std::int64_t{k} * bytes_of(from);
  const int most = static_cast<int>(
      std::max<std::int64_t>(1, (16 << 20) / (row_bytes * kBlockOutputs)) * kBlockOutputs);
  auto* raw_rows = static_cast<char*>(
      cuda.scratch(Use::Rows, row_bytes * std::min<std::int64_t>(most, padded_to(n, 1))));
  for (int first = 0; first < n; first += most) {
    const Raw raw = {raw_rows, from, first, std::min(most, n - first), k};
    cuda.upload(raw_rows, static_cast<const char*>(w_host) + first * row_bytes, raw.n * row_bytes);
    void* slab = static_cast<char*>(packed) + packed_bytes(to, first, k);
    if (to == DType::F32) {
      const std::int64_t floats = packed_bytes(to, raw.n, k) / 4;
      cuda.launch("pack", pack_f32, blocks_for(floats, kMatThreads), kMatThreads, 0, raw, floats,
                  static_cast<float*>(slab));
    } else {
      const std::int64_t fragments = packed_bytes(to, raw.n, k) / 16;
      cuda.launch("pack", to == DType::F16 ? pack_halves<StoreF16> : pack_halves<StoreBf16>,
                  blocks_for(fragments, kMatThreads), kMatThreads, 0, raw, chunks_of(k), fragments,
                  static_cast<std::uint16_t*>(slab));
    }
  }
  cuda.skip_graph_cache();  // no kernel may start early after one that writes weights
}

void embed(
    Device& device, const PackedMatrix& table, const std::int32_t* ids, int n_rows, float* y) {
  for (int r = 0; r < n_rows; r++)
    ensure(ids[r] >= 0 && ids[r] < table.n, "embed: a token is outside the embedding matrix");
  if (n_rows == 0) return;
  CudaDevice& cuda = cuda_of(device);
  const int* device_ids = cuda.device_list(Use::Ids, {ids, static_cast<std::size_t>(n_rows)});
  const int fours = blocks_for(table.k, 16) * 4;
  cuda.launch_early("embed", embed_rows, dim3(n_rows, blocks_for(fours, kMatThreads)), kMatThreads,
                    0, table.data, table.dtype, table.k, device_ids, y);
}

/// The weights of a product that the kernel before it prefetches.
Ahead ahead_of(const MatmulCall& call, int n_parts) {
  const int n = blocks_for(call.n, kBlockOutputs) * n_parts;
  const auto n_prefetched =
      static_cast<int>(std::min<std::int64_t>(32, kBytesAhead / kChunkBytes / n));
  return {static_cast<const unsigned char*>(call.weights), chunks_of(call.k), n_parts, n,
          n_prefetched};
}

/// Rows of a fused product: RMSNorm of x. The kernel also writes them to y.
struct NormedRows {
  const float *x, *w;
  float* y;
  float eps;
};
/// Rows of a fused product: the gated linear unit of x. The kernel also writes them to y.
struct GatedRows {
  Gate kind;
  const float* x;
  float* y;
};
/// The source of a product's rows: memory (std::monostate), or a fused operation. An AttentionCall is one pass of
/// attention over all rows of the product, whose chunks are computed but not joined.
using RowSource = std::variant<std::monostate, NormedRows, GatedRows, AttentionCall>;

/// Scratch memory for the rounded rows of a product, in the order of place_of_row.
std::uint16_t* rows_of(CudaDevice& cuda, const MatmulCall& call, int n_row_tiles) {
  const std::int64_t bytes = std::int64_t{chunks_of(call.k)} * n_row_tiles * kRowTileBytes;
  return static_cast<std::uint16_t*>(cuda.scratch(Use::Rows, bytes));
}

/// Gives the call memory for the partial sums of n_blocks blocks of 64 outputs, `floats` each.
void share_partials(CudaDevice& cuda, MatmulCall& call, int n_blocks, std::int64_t floats) {
  call.partials =
      static_cast<float*>(cuda.scratch(Use::Partials, n_blocks * kPartials * floats * 4));
  call.done = static_cast<unsigned*>(cuda.scratch(Use::Done, std::int64_t{n_blocks} * 4, true));
}

/// Launches the kernel that makes the product's rows and rounds them, in the order of place_of_row.
template <class Store>
void launch_prepare(CudaDevice& cuda,
                    const MatmulCall& call,
                    const RowSource& source,
                    int n_tiles,
                    std::uint16_t* rows,
                    const Ahead& ahead) {
  const int n_prefetch_blocks = blocks_for(ahead.n, kPrefetchWarps);
  if (const auto* norm = std::get_if<NormedRows>(&source)) {
    cuda.launch_early("norm_and_prepare", norm_and_prepare<Store>, 8 * n_tiles + n_prefetch_blocks,
                      norm_threads(call.k), 0, norm->x, norm->w, norm->y, call.n_rows, call.k,
                      norm->eps, rows, n_tiles, ahead);
  } else if (const auto* gate = std::get_if<GatedRows>(&source)) {
    cuda.launch_early("gate_and_prepare", gate_and_prepare<Store>,
                      dim3(chunks_of(call.k), n_tiles + 1), kMatThreads, 0, gate->kind, gate->x,
                      gate->y, call.n_rows, call.k, rows, ahead);
  } else if (const auto* chunks = std::get_if<AttentionCall>(&source)) {
    cuda.launch_early(
        "join_and_prepare", join_and_prepare<Store>,
        dim3(8 * n_tiles + blocks_for(n_prefetch_blocks, chunks->n_heads), chunks->n_heads),
        kAttentionThreads, 0, *chunks, call.n_rows, rows, n_tiles, ahead);
  } else {
    cuda.launch_early("prepare_rows", prepare_rows<Store>, dim3(chunks_of(call.k), n_tiles),
                      kMatThreads, 0, call.x, call.x_stride, call.n_rows, call.k, rows);
  }
}

/// Launches the kernel of up to 16 rows.
template <class Store, int kRowTiles>
void launch_few(CudaDevice& cuda, MatmulCall call, const RowSource& source) {
  const int n_blocks = blocks_for(call.n, kBlockOutputs);
  const bool alone = call.n >= kWideOutputs;
  const int n_parts = alone ? 1 : kPartials;
  std::uint16_t* rows = rows_of(cuda, call, kRowTiles);
  launch_prepare<Store>(cuda, call, source, kRowTiles, rows, ahead_of(call, n_parts));
  call.rows = rows;
  if (!alone) share_partials(cuda, call, n_blocks, std::int64_t{call.n_rows} * kBlockOutputs);
  cuda.launch_early("matmul", multiply_few<Store, kRowTiles>,
                    dim3(static_cast<unsigned>(n_blocks), static_cast<unsigned>(n_parts)),
                    kMatThreads, 0, call);
}

/// Launches the persistent kernel of more rows. It gives every block the same number of tasks. If
/// the tiles keep at least three fifths of the GPU busy, one block sums over all of k: split-K
/// would use the rest of the GPU too, but the exchange of partial sums would cost more than that
/// gains.
template <class Store, int kRowTiles>
void launch_stream(CudaDevice& cuda, MatmulCall call, const RowSource& source) {
  constexpr int kGroups = kMostGroups, kStageBytes = Stages<kRowTiles, kGroups>::kBytes;
  const int n_blocks = blocks_for(call.n, kGroups * kBlockOutputs);
  const bool whole = 5 * n_blocks >= 3 * cuda.n_multiprocessors();
  call.n_whole = whole ? n_blocks : 0;
  call.n_tasks = whole ? n_blocks : n_blocks * kPartials;
  call.n_stages = std::clamp((cuda.most_shared() - 1024) / kStageBytes, kFewestStages,
                             kRowTiles == kWideTiles ? kMostStages : kMostStages - 1);
  std::uint16_t* rows = rows_of(cuda, call, kRowTiles);
  launch_prepare<Store>(cuda, call, source, kRowTiles, rows, ahead_of(call, whole ? 1 : kPartials));
  call.rows = rows;
  if (!whole)
    share_partials(cuda, call, n_blocks * kGroups, std::int64_t{kRowTiles} * 8 * kBlockOutputs);
  const int a_block = blocks_for(call.n_tasks, cuda.n_multiprocessors());
  cuda.launch_early("matmul", multiply_stream<Store, kRowTiles, kGroups>,
                    blocks_for(call.n_tasks, a_block), kGroups * kMatThreads + (kEmulated ? 0 : 32),
                    static_cast<std::size_t>(call.n_stages) * kStageBytes, call);
}

/// Multiplies kMaxRows rows at a time.
/// @param source  a fused operation only for at most kMaxRows rows
template <class Store>
void multiply_halves(CudaDevice& cuda, MatmulCall call, const RowSource& source) {
  const int n_rows = call.n_rows;
  for (int first = 0; first < n_rows; first += kMaxRows) {
    call.n_rows = std::min(kMaxRows, n_rows - first);
    const int tiles = (call.n_rows + 7) / 8;
    const auto multiply = tiles == 1   ? launch_few<Store, 1>
                          : tiles == 2 ? launch_few<Store, 2>
                          : tiles <= 4 ? launch_stream<Store, 4>
                          : tiles <= 8 ? launch_stream<Store, 8>
                                       : launch_stream<Store, 16>;
    multiply(cuda, call, source);
    call.x += kMaxRows * call.x_stride;
    call.y += kMaxRows * call.y_stride;
  }
}

template <int kRows>
void launch_f32(CudaDevice& cuda, const MatmulCall& call) {
  cuda.launch("matmul_f32", multiply_f32<kRows>,
              dim3(blocks_for(call.n, kF32Outputs), blocks_for(call.n_rows, kRows)), kMatThreads, 0,
              call);
}

MatmulCall call_of(const Projection& to, const float* x, std::int64_t x_stride, int n_rows) {
  return {to.w.data, x,       x_stride, to.y,    to.y_stride, to.bias, to.w.n, to.w.k, n_rows,
          to.add,    nullptr, nullptr,  nullptr, 0,           0,       0,      0};
}

void multiply(CudaDevice& cuda, DType dtype, const MatmulCall& call, const RowSource& source) {
  if (dtype == DType::F32)
    (call.n_rows <= kF32FewRows ? launch_f32<kF32FewRows> : launch_f32<kF32MoreRows>)(cuda, call);
  else if (dtype == DType::F16)
    multiply_halves<StoreF16>(cuda, call, source);
  else
    multiply_halves<StoreBf16>(cuda, call, source);
}

void matmul(Device& device,
            const PackedMatrix& w,
            const float* x,
            std::int64_t x_stride,
            int n_rows,
            float* y,
            std::int64_t y_stride,
            const float* bias,
            bool add) {
  check_matmul(w, n_rows, x_stride, y_stride);
  if (n_rows == 0) return;
  multiply(cuda_of(device), w.dtype, call_of({w, bias, y, y_stride, add}, x, x_stride, n_rows), {});
}

// ---- kernel fusion

void rms_norm_matmul(Device& device,
                     const float* x,
                     const float* norm,
                     float eps,
                     float* normed,
                     int n_rows,
                     const Projection& to) {
  if (!rounds_rows_once(to.w, n_rows))
    return unfused::rms_norm_matmul(device, x, norm, eps, normed, n_rows, to);
  check_rms_norm(n_rows, to.w.k);
  check_matmul(to.w, n_rows, to.w.k, to.y_stride);
  multiply(cuda_of(device), to.w.dtype, call_of(to, normed, to.w.k, n_rows),
           NormedRows{x, norm, normed, eps});
}

void glu_matmul(Device& device,
                Gate gate,
                const float* gate_up,
                float* gated,
                int n_rows,
                const Projection& to) {
  if (!rounds_rows_once(to.w, n_rows))
    return unfused::glu_matmul(device, gate, gate_up, gated, n_rows, to);
  check_matmul(to.w, n_rows, to.w.k, to.y_stride);
  multiply(cuda_of(device), to.w.dtype, call_of(to, gated, to.w.k, n_rows),
           GatedRows{gate, gate_up, gated});
}

}  // namespace

bool rounds_rows_once(const PackedMatrix& w, int n_rows) {
  return w.dtype != DType::F32 && n_rows > 0 && n_rows <= kMaxRows;
}

void multiply_joined(CudaDevice& cuda,
                     const AttentionCall& chunks,
                     int n_rows,
                     const Projection& to) {
  check_matmul(to.w, n_rows, to.w.k, to.y_stride);
  multiply(cuda, to.w.dtype, call_of(to, chunks.out, to.w.k, n_rows), chunks);
}

void add_matrix_ops(Ops& ops) {
  ops.packed_bytes = packed_bytes;
  ops.pack = pack;
  ops.matmul = matmul;
  ops.embed = embed;
  ops.rms_norm_matmul = rms_norm_matmul;
  ops.glu_matmul = glu_matmul;
}

}  // namespace kernels::DECOSCOPE_GPU
