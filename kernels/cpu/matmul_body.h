// y = x w^T over panels of 16 outputs. A SIMD lane is an output, k runs in order, and each row has its own registers, so no sum
// depends on other rows, on the number of panels in a pass or on threads (batch invariance). Activations are prepared in
// blocks of rows, [k, rows of the block], so that the values of one k are adjacent.
//   tile    the rows of one block times some panels, with all sums in registers
//   pieces  several blocks share a piece of a panel, some 200 values of k that stay in the L1 cache; between two pieces the
//           sums of the other blocks wait in memory, which changes neither their order nor their bits
//   U       a register of outputs; a panel has kUnits of them (vec_*.h)
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

// Weights from memory are read fastest as one sequential stream of panels. (AMD EPYC, family 25: two or four panels side by side
// read 20 to 30 % less a second.) With few multiplications a line, the processor itself reads far enough ahead, and prefetches
// slow it down; with more they are needed, into L2, because L1 is too small for the distance.
constexpr int kPrefetchBytes = 16384;
constexpr int kPieceLines = 96;
constexpr int kRowsTogether = 48;  // rows that share a piece
constexpr int kMostSums = 64 * kPanel;
constexpr int kLineBytes = 64;

inline int n_blocks_of(int n_rows) {
  return (n_rows + kMaxBlockRows - 1) / kMaxBlockRows;
}
inline int block_begin(int block, int n_blocks, int n_rows) {
  return static_cast<int>(static_cast<std::int64_t>(n_rows) * block / n_blocks);
}

// A multiplication rule: a line of 64 bytes of a panel holds kSteps steps of k for 16 outputs. X is a row's input to a step, and
// a step spans kSpan values of k.
struct MulF32 {
  using X = float;
  static constexpr int kSteps = 1, kSpan = 1;
  template <int kStep, int kSums>
  static U weights(const char* line, int unit) {
    return u_load(reinterpret_cast<const float*>(line) + unit * kUnitLanes);
  }
  static U broadcast(X x) { return u_set(x); }
  static U step(U sum, U w, U x) { return f_fma(x, w, sum); }
  static F prepared(F x) { return x; }
};
struct MulF16 {
  using X = float;
  static constexpr int kSteps = 2, kSpan = 1;
  template <int kStep, int kSums>
  static U weights(const char* line, int unit) {
    return u_load_f16(reinterpret_cast<const std::uint16_t*>(line) + kStep * kPanel +
                      unit * kUnitLanes);
  }
  static U broadcast(X x) { return u_set(x); }
  static U step(U sum, U w, U x) { return f_fma(x, w, sum); }
  static F prepared(F x) { return x; }
};
struct MulBF16 {
  using X = float;
  static constexpr int kSteps = 2, kSpan = 1;
  template <int kStep, int kSums>
  static U weights(const char* line, int unit) {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(line) + unit * kUnitLanes;
    return kStep == 0 ? u_low_bf16(pairs) : u_high_bf16<kSums>(pairs);
  }
  static U broadcast(X x) { return u_set(x); }
  static U step(U sum, U w, U x) { return f_fma(x, w, sum); }
  static F prepared(F x) { return rounded_to_bf16(x); }
};

template <class Mul>
inline int n_lines_of(int k) {
  constexpr int kPerLine = Mul::kSteps * Mul::kSpan;
  return (k + kPerLine - 1) / kPerLine;
}

template <class Mul>
std::int64_t prepared_bytes(int n_rows, int k) {
  return static_cast<std::int64_t>(n_lines_of<Mul>(k)) * Mul::kSteps * n_rows *
         static_cast<int>(sizeof(typename Mul::X));
}

inline void write_sums(const MatmulCall& call, int row, int panel, F sum) {
  const int first = panel * kPanel;
  const int n = call.n - first;
  float* y = call.y + row * call.y_stride + first;
  if (call.bias) sum = f_add(sum, f_load_part(call.bias + first, n));
  if (call.add) sum = f_add(sum, f_load_part(y, n));
  if (n >= kPanel)
    f_store(y, sum);
  else
    f_store_part(y, sum, n);
}

// A tile's pass over a piece of its panels.
template <class X>
struct Pass {
  const char* weights;  // the first line of the first panel's piece
  std::int64_t panel_bytes;
  const X* x;
  // [rows][panels][16], the sums before and after the pass
  float* sums;
  bool first;  // sums start at 0
  int n_lines;
  int ahead_bytes;  // the distance of prefetches; 0: none
};

template <class Mul, int kStep, int kRows, int kPanels>
inline void add_step(const char* line,
                     std::int64_t panel_bytes,
                     const typename Mul::X* x,
                     U (&sum)[kRows][kPanels * kUnits]) {
  const auto weights = [&](int i) {
    return Mul::template weights<kStep, kRows * kPanels * kUnits>(line + i / kUnits * panel_bytes,
                                                                  i % kUnits);
  };
  // Whichever is fewer is held in registers: the weights or the activations.
  if constexpr (kPanels * kUnits <= kRows) {
    decltype(weights(0)) w[kPanels * kUnits];
#pragma GCC unroll 8
    for (int i = 0; i < kPanels * kUnits; i++) w[i] = weights(i);
#pragma GCC unroll 24
    for (int r = 0; r < kRows; r++) {
      const auto value = Mul::broadcast(x[r]);
#pragma GCC unroll 8
      for (int i = 0; i < kPanels * kUnits; i++) sum[r][i] = Mul::step(sum[r][i], w[i], value);
    }
  } else {
    decltype(Mul::broadcast(x[0])) value[kRows];
#pragma GCC unroll 24
    for (int r = 0; r < kRows; r++) value[r] = Mul::broadcast(x[r]);
#pragma GCC unroll 8
    for (int i = 0; i < kPanels * kUnits; i++) {
      const auto w = weights(i);
#pragma GCC unroll 24
      for (int r = 0; r < kRows; r++) sum[r][i] = Mul::step(sum[r][i], w, value[r]);
    }
  }
}

template <class Mul, int kRows, int kPanels>
void multiply_tile(const Pass<typename Mul::X>& pass) {
  const std::int64_t panel_bytes = pass.panel_bytes;
  const char* line = pass.weights;
  const auto* x = pass.x;
  U sum[kRows][kPanels * kUnits];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 8
    for (int i = 0; i < kPanels * kUnits; i++)
      sum[r][i] =
          pass.first ? u_set(0) : u_load(pass.sums + (r * kPanels * kUnits + i) * kUnitLanes);
  [[maybe_unused]] const std::int64_t ahead = pass.ahead_bytes;
  for (const char* end = line + pass.n_lines * kLineBytes; line < end; line += kLineBytes) {
    if constexpr (kPanels == 1 && kRows * Mul::kSteps > kFewMultiplications)
      prefetch_to_l2(line + ahead);
    add_step<Mul, 0, kRows, kPanels>(line, panel_bytes, x, sum);
    x += kRows;
    if constexpr (Mul::kSteps == 2) {
      add_step<Mul, 1, kRows, kPanels>(line, panel_bytes, x, sum);
      x += kRows;
    }
  }
#pragma GCC unroll 24
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 8
    for (int i = 0; i < kPanels * kUnits; i++)
      u_store(pass.sums + (r * kPanels * kUnits + i) * kUnitLanes, sum[r][i]);
}

template <class Mul>
using TileFunction = void (*)(const Pass<typename Mul::X>&);

// Selects the instance for n_rows rows and n_panels panels: one, two, or all that fit in registers.
template <class Mul, int kRows = kMaxBlockRows>
TileFunction<Mul> tile_function(int n_rows, int n_panels) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) return tile_function<Mul, kRows - 1>(n_rows, n_panels);
  }
  if (n_panels == 1) return multiply_tile<Mul, kRows, 1>;
  if constexpr (panels_per_pass(kRows) > 2)
    if (n_panels == 2) return multiply_tile<Mul, kRows, 2>;
  return multiply_tile<Mul, kRows, panels_per_pass(kRows)>;
}

// Blocks [first, last) of rows times some adjacent panels.
template <class Mul>
class RowsTimesPanels {
 public:
  RowsTimesPanels(const MatmulCall& call, int first_block, int last_block)
      : call_(call),
        n_lines_(n_lines_of<Mul>(call.k)),
        n_blocks_(n_blocks_of(call.n_rows)),
        first_(first_block),
        last_(last_block),
        n_pieces_(last_block - first_block == 1 ? 1 : (n_lines_ + kPieceLines / 2) / kPieceLines) {
    if (n_pieces_ < 1) n_pieces_ = 1;
  }

  void multiply(int panel, int n_panels) {
    for (int piece = 0; piece < n_pieces_; piece++)
      for (int block = first_; block < last_; block++)
        multiply_piece(panel, n_panels, piece, block);
    const int begin = row_of(first_);
    for (int block = first_; block < last_; block++)
      for (int row = row_of(block); row < row_of(block + 1); row++)
        for (int p = 0; p < n_panels; p++)
          write_sums(call_, row, panel + p,
                     f_load(sums_ + ((row - begin) * n_panels + p) * kPanel));
  }

 private:
  int row_of(int block) const { return block_begin(block, n_blocks_, call_.n_rows); }
  int line_of(int piece) const {
    return static_cast<int>(static_cast<std::int64_t>(n_lines_) * piece / n_pieces_);
  }

  void multiply_piece(int panel, int n_panels, int piece, int block) {
    const int begin = line_of(piece), n_lines = line_of(piece + 1) - begin;
    const int row = row_of(block), rows = row_of(block + 1) - row;
    Pass<typename Mul::X> pass;
    pass.weights = static_cast<const char*>(call_.panels) + panel * call_.panel_bytes +
                   static_cast<std::int64_t>(begin) * kLineBytes;
    pass.panel_bytes = call_.panel_bytes;
    pass.x = static_cast<const typename Mul::X*>(call_.prepared) +
             static_cast<std::int64_t>(n_lines_) * Mul::kSteps * row +
             static_cast<std::int64_t>(begin) * Mul::kSteps * rows;
    pass.sums = sums_ + (row - row_of(first_)) * n_panels * kPanel;
    pass.first = piece == 0;
    pass.n_lines = n_lines;
    pass.ahead_bytes = block == first_ ? kPrefetchBytes : 0;
    tile_function<Mul>(rows, n_panels)(pass);
  }

  const MatmulCall& call_;
  const int n_lines_, n_blocks_, first_, last_;
  int n_pieces_;
  alignas(64) float sums_[kMostSums];
};

template <class Mul>
void multiply_panels(const MatmulCall& call, int first, int last) {
  const int n_blocks = n_blocks_of(call.n_rows);
  const int most_rows = (call.n_rows + n_blocks - 1) / n_blocks;
  // The blocks' rows differ by one at most.
  const bool alike = n_blocks == 1 || panels_per_pass(most_rows) == panels_per_pass(most_rows - 1);
  const int group = alike && call.cached ? panels_per_pass(most_rows) : 1;
  const int together = kRowsTogether / kMaxBlockRows;
  for (int block = 0; block < n_blocks; block += together) {
    RowsTimesPanels<Mul> rows(call, block,
                              n_blocks - block < together ? n_blocks : block + together);
    int panel = first;
    for (; panel + group <= last; panel += group) rows.multiply(panel, group);
    if (group > 2)
      for (; panel + 2 <= last; panel += 2) rows.multiply(panel, 2);
    for (; panel < last; panel++) rows.multiply(panel, 1);
  }
}

// Writes one row's input to n steps of k, at most 16, into a block of rows. `to` is the place of the first.
template <class X>
inline void store_column(const X (&lanes)[16], int n, int n_rows, X* to) {
  if (n < 16) {
    for (int j = 0; j < n; j++) to[j * n_rows] = lanes[j];
    return;
  }
#pragma GCC unroll 16
  for (int j = 0; j < 16; j++) to[j * n_rows] = lanes[j];
}

// Prepares activations block by block. The parts divide k among them, so they share few cache lines.
// chunk(from, i, lanes) computes a row's input to steps [i, i + 16)
template <class X, class Chunk>
inline void prepare_blocks(const float* x,
                           std::int64_t x_stride,
                           int n_rows,
                           int n_steps,
                           int part,
                           int n_parts,
                           X* to,
                           const Chunk& chunk) {
  const int n_chunks = (n_steps + 15) / 16, n_blocks = n_blocks_of(n_rows);
  const int first = 16 * block_begin(part, n_parts, n_chunks);
  const int last = 16 * block_begin(part + 1, n_parts, n_chunks);
  for (int block = 0; block < n_blocks; block++) {
    const int begin = block_begin(block, n_blocks, n_rows);
    const int rows = block_begin(block + 1, n_blocks, n_rows) - begin;
    X* block_to = to + static_cast<std::int64_t>(begin) * n_steps;
    for (int r = 0; r < rows; r++)
      for (int i = first; i < last; i += 16) {
        alignas(64) X lanes[16];
        chunk(x + (begin + r) * x_stride, i, lanes);
        store_column(lanes, n_steps - i < 16 ? n_steps - i : 16, rows,
                     block_to + static_cast<std::int64_t>(i) * rows + r);
      }
  }
}

// 16 values from x + i, of which those from x + k are 0.
inline F load_below(const float* x, int i, int k) {
  return i + 16 <= k ? f_load(x + i) : f_load_part(x + i, k > i ? k - i : 0);
}

template <class Mul>
void prepare_rows(const float* x,
                  std::int64_t x_stride,
                  int n_rows,
                  int k,
                  int part,
                  int n_parts,
                  void* prepared) {
  prepare_blocks(x, x_stride, n_rows, n_lines_of<Mul>(k) * Mul::kSteps, part, n_parts,
                 static_cast<float*>(prepared), [k](const float* from, int i, float(&lanes)[16]) {
                   f_store(lanes, Mul::prepared(load_below(from, i, k)));
                 });
}

template <class Mul>
MatmulKernel matmul_kernel() {
  return {prepared_bytes<Mul>, prepare_rows<Mul>, multiply_panels<Mul>};
}

}  // namespace
}  // namespace kernels::cpu
