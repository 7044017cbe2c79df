// Attention and its backward, for one segment and one key head at a time. Keys and values are
// converted to f32 once and stored in two layouts: [head_dim, n_pad] to compute scores, [n,
// head_dim] to compute outputs. Every load of a key or value serves four query rows.

// Columns of a tile. Its four rows of sums and their operands fit into registers.
constexpr int kTileColumns = kRegisterBytes == 64 ? 32 : 16;

struct AttentionScratch {
  float* q;         // [n_pad, head_dim]
  float* k;         // [n_pad, head_dim]
  float* v;         // [n_pad, head_dim]
  float* k_across;  // [head_dim, n_pad]
  float* v_across;  // [head_dim, n_pad]
  float* d_out;     // [n_pad, head_dim]
  float* d_k;       // [n_pad, head_dim], summed over the query heads of a key head
  float* d_v;       // [n_pad, head_dim]
  float* p;         // [n_pad, n_pad] probabilities
  float* d_s;       // [n_pad, n_pad] gradients of scores
};

INLINE int padded(int n) {
  return (n + 15) / 16 * 16;
}

INLINE AttentionScratch divide_scratch(float* at, int n_pad, int head_dim) {
  AttentionScratch s;
  const std::int64_t narrow = std::int64_t{n_pad} * head_dim;
  float** const parts[] = {&s.q,     &s.k,   &s.v,   &s.k_across, &s.v_across,
                           &s.d_out, &s.d_k, &s.d_v, &s.p};
  for (float** part : parts) {
    *part = at;
    at += narrow;
  }
  s.d_s = s.p + std::int64_t{n_pad} * n_pad;
  return s;
}

// Copies the rows of one head as f32, and zeros after the last row.
template <typename T>
void widen(const T* x, int stride, int n, int n_pad, int head_dim, float* y) {
  for (int row = 0; row < n; row++) {
    for (int d = 0; d < head_dim; d += 16) {
      store(y + row * head_dim + d, load(x + std::int64_t{row} * stride + d));
    }
  }
  for (int i = n * head_dim; i < n_pad * head_dim; i += 16) store(y + i, splat(0));
}

INLINE void turn(const float* x, int n_pad, int head_dim, float* y) {
  for (int block = 0; block < n_pad; block += 16) {
    for (int d = 0; d < head_dim; d++) {
      for (int j = 0; j < 16; j++) y[d * n_pad + block + j] = x[(block + j) * head_dim + d];
    }
  }
}

// s[r][j] = a[r] . b[j] for four rows a and columns [0, n_columns), b given as [head_dim, n_pad].
INLINE void four_rows_of_scores(const float* const* a,
                                const float* b_across,
                                int head_dim,
                                int n_pad,
                                int n_columns,
                                float* const* s) {
  int j = 0;
  for (; kTileColumns == 32 && j + 32 <= n_columns; j += 32) {
    Lanes sum[4][2] = {};
    for (int d = 0; d < head_dim; d++) {
      const Lanes b0 = load(b_across + d * n_pad + j), b1 = load(b_across + d * n_pad + j + 16);
      for (int r = 0; r < 4; r++) {
        sum[r][0] += b0 * a[r][d];
        sum[r][1] += b1 * a[r][d];
      }
    }
    for (int r = 0; r < 4; r++) {
      store(s[r] + j, sum[r][0]);
      store(s[r] + j + 16, sum[r][1]);
    }
  }
  for (; j < n_columns; j += 16) {
    Lanes sum[4] = {};
    for (int d = 0; d < head_dim; d++) {
      const Lanes b0 = load(b_across + d * n_pad + j);
      for (int r = 0; r < 4; r++) sum[r] += b0 * a[r][d];
    }
    for (int r = 0; r < 4; r++) store(s[r] + j, sum[r]);
  }
}

// y[r][:] = sum over t in [first, last) of c[r][t step] x[t][:], for four rows r. It computes the
// columns of one tile at a time.
INLINE void four_rows_of_sums(const float* const* c,
                              std::int64_t step,
                              const float* x,
                              int first,
                              int last,
                              int head_dim,
                              float* const* y) {
  int d = 0;
  for (; kTileColumns == 32 && d + 32 <= head_dim; d += 32) {
    Lanes sum[4][2] = {};
    for (int t = first; t < last; t++) {
      const Lanes x0 = load(x + t * head_dim + d), x1 = load(x + t * head_dim + d + 16);
      for (int r = 0; r < 4; r++) {
        sum[r][0] += x0 * c[r][t * step];
        sum[r][1] += x1 * c[r][t * step];
      }
    }
    for (int r = 0; r < 4; r++) {
      store(y[r] + d, sum[r][0]);
      store(y[r] + d + 16, sum[r][1]);
    }
  }
  for (; d < head_dim; d += 16) {
    Lanes sum[4] = {};
    for (int t = first; t < last; t++) {
      const Lanes x0 = load(x + t * head_dim + d);
      for (int r = 0; r < 4; r++) sum[r] += x0 * c[r][t * step];
    }
    for (int r = 0; r < 4; r++) store(y[r] + d, sum[r]);
  }
}

INLINE IntLanes visible(int first_column, const RowView& view, int row) {
  const IntLanes j = splat_int(first_column) + lane_index();
  return (j < view.prefix_end) | ((j >= view.own_begin) & (j <= row));
}

// Replaces the scores of a row by probabilities. @return the log of the sum of e^score
INLINE float online_softmax_update(
    float* s, int n_columns, const RowView& view, int row, float scale) {
  Lanes most = splat(-3.0e38f);
  for (int j = 0; j < n_columns; j += 16) {
    const Lanes z = choose(visible(j, view, row), load(s + j) * scale, splat(-3.0e38f));
    most = larger(most, z);
    store(s + j, z);
  }
  const float top = max_of(most);
  Lanes total = splat(0);
  for (int j = 0; j < n_columns; j += 16) {
    const Lanes e = choose(visible(j, view, row), exp_of(load(s + j) - top), splat(0));
    total += e;
    store(s + j, e);
  }
  const float sum = sum_of(total);
  for (int j = 0; j < n_columns; j += 16) store(s + j, load(s + j) * (1.0f / sum));
  return top + __builtin_logf(sum);
}

struct FourRows {
  int row[4];  // the last row is repeated if there are fewer than four
  int n_columns;
};

INLINE FourRows four_rows_from(int first, int n) {
  FourRows four;
  for (int r = 0; r < 4; r++) four.row[r] = first + r < n ? first + r : n - 1;
  four.n_columns = padded(four.row[3] + 1);
  return four;
}

template <typename T>
void attention(const T* qkv,
               const Segment* segments,
               int n_segments,
               const RowView* views,
               T* out,
               float* lse,
               const AttentionShape& shape,
               float* scratch) {
  const int head_dim = shape.head_dim, stride = shape.qkv_width(), out_stride = shape.out_width();
  const int n_shared = shape.n_heads / shape.n_kv_heads;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  for (int g = 0; g < n_segments; g++) {
    const int begin = segments[g].begin, n = segments[g].end - begin, n_pad = padded(n);
    const AttentionScratch s = divide_scratch(scratch, n_pad, head_dim);
    const T* rows = qkv + std::int64_t{begin} * stride;
    for (int kv = 0; kv < shape.n_kv_heads; kv++) {
      widen(rows + (shape.n_heads + kv) * head_dim, stride, n, n_pad, head_dim, s.k);
      widen(rows + (shape.n_heads + shape.n_kv_heads + kv) * head_dim, stride, n, n_pad, head_dim,
            s.v);
      turn(s.k, n_pad, head_dim, s.k_across);
      for (int head = kv * n_shared; head < (kv + 1) * n_shared; head++) {
        widen(rows + head * head_dim, stride, n, n_pad, head_dim, s.q);
        for (int first = 0; first < n; first += 4) {
          const FourRows four = four_rows_from(first, n);
          const float* q[4];
          float *p[4], *o[4];
          for (int r = 0; r < 4; r++) {
            q[r] = s.q + four.row[r] * head_dim;
            p[r] = s.p + r * n_pad;
            o[r] = s.d_out + r * head_dim;
          }
          four_rows_of_scores(q, s.k_across, head_dim, n_pad, four.n_columns, p);
          for (int r = 0; r < 4; r++) {
            const RowView view = views ? views[begin + four.row[r]] : RowView{};
            lse[std::int64_t{begin + four.row[r]} * shape.n_heads + head] =
                online_softmax_update(p[r], four.n_columns, view, four.row[r], scale);
          }
          four_rows_of_sums(p, 1, s.v, 0, four.row[3] + 1, head_dim, o);
          for (int r = 0; r < 4; r++) {
            T* to = out + std::int64_t{begin + four.row[r]} * out_stride + head * head_dim;
            for (int d = 0; d < head_dim; d += 16) store(to + d, load(o[r] + d));
          }
        }
      }
    }
  }
}

// Computes a row of dS = P (dP - sum(dO O)) scale. P is computed again from the scores and lse.
INLINE void soften_backward(float* p,
                            float* d_p,
                            int n_columns,
                            const RowView& view,
                            int row,
                            float scale,
                            float lse,
                            float dot) {
  for (int j = 0; j < n_columns; j += 16) {
    const Lanes e = exp_of(load(p + j) * scale - lse);
    const Lanes prob = choose(visible(j, view, row), e, splat(0));
    store(p + j, prob);
    store(d_p + j, prob * (load(d_p + j) - dot) * scale);
  }
}

// dV[j] += sum over i of P[i][j] dO[i]; dK[j] likewise from dS and Q. Rows before j do not attend to j.
INLINE void sums_over_queries(
    const float* c, const float* x, int n, int n_pad, int head_dim, float* y) {
  float block[4 * 256];
  for (int j = 0; j < n; j += 4) {
    const float* from[4];
    float* to[4];
    for (int r = 0; r < 4; r++) {
      from[r] = c + j + r;
      to[r] = block + r * head_dim;
    }
    four_rows_of_sums(from, n_pad, x, j, n, head_dim, to);
    for (int i = 0; i < 4 * head_dim; i += 16) {
      store(y + j * head_dim + i, load(y + j * head_dim + i) + load(block + i));
    }
  }
}

template <typename T>
void backward_of_head(const T* out,
                      int out_stride,
                      const RowView* views,
                      const float* lse,
                      int lse_stride,
                      int n,
                      int n_pad,
                      int head_dim,
                      T* d_q,
                      int stride,
                      const AttentionScratch& s) {
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  for (int first = 0; first < n; first += 4) {
    const FourRows four = four_rows_from(first, n);
    const float *q[4], *d_o[4];
    float *p[4], *d_s[4], *to[4];
    float block[4 * 256];
    for (int r = 0; r < 4; r++) {
      q[r] = s.q + four.row[r] * head_dim;
      d_o[r] = s.d_out + four.row[r] * head_dim;
      p[r] = s.p + std::int64_t{first + r} * n_pad;
      d_s[r] = s.d_s + std::int64_t{first + r} * n_pad;
      to[r] = block + r * head_dim;
    }
    four_rows_of_scores(q, s.k_across, head_dim, n_pad, four.n_columns, p);
    four_rows_of_scores(d_o, s.v_across, head_dim, n_pad, four.n_columns, d_s);
    for (int r = 0; r < 4; r++) {
      const int row = four.row[r];
      Lanes dot = splat(0);
      for (int d = 0; d < head_dim; d += 16) {
        dot += load(out + std::int64_t{row} * out_stride + d) * load(d_o[r] + d);
      }
      const RowView view = views ? views[row] : RowView{};
      soften_backward(p[r], d_s[r], four.n_columns, view, row, scale,
                      lse[std::int64_t{row} * lse_stride], sum_of(dot));
    }
    four_rows_of_sums(d_s, 1, s.k, 0, four.row[3] + 1, head_dim, to);
    for (int r = 0; r < 4 && first + r < n; r++) {
      T* row = d_q + std::int64_t{first + r} * stride;
      for (int d = 0; d < head_dim; d += 16) store(row + d, load(to[r] + d));
    }
  }
}

template <typename T>
void attention_backward(const T* qkv,
                        const Segment* segments,
                        int n_segments,
                        const RowView* views,
                        const T* out,
                        const T* d_out,
                        const float* lse,
                        T* d_qkv,
                        const AttentionShape& shape,
                        float* scratch) {
  const int head_dim = shape.head_dim, stride = shape.qkv_width(), out_stride = shape.out_width();
  const int n_shared = shape.n_heads / shape.n_kv_heads;
  for (int g = 0; g < n_segments; g++) {
    const int begin = segments[g].begin, n = segments[g].end - begin, n_pad = padded(n);
    const AttentionScratch s = divide_scratch(scratch, n_pad, head_dim);
    const T* rows = qkv + std::int64_t{begin} * stride;
    T* d_rows = d_qkv + std::int64_t{begin} * stride;
    const std::int64_t out_at = std::int64_t{begin} * out_stride;
    for (int kv = 0; kv < shape.n_kv_heads; kv++) {
      const int k_at = (shape.n_heads + kv) * head_dim;
      const int v_at = (shape.n_heads + shape.n_kv_heads + kv) * head_dim;
      widen(rows + k_at, stride, n, n_pad, head_dim, s.k);
      widen(rows + v_at, stride, n, n_pad, head_dim, s.v);
      turn(s.k, n_pad, head_dim, s.k_across);
      turn(s.v, n_pad, head_dim, s.v_across);
      for (int i = 0; i < n_pad * head_dim; i += 16) {
        store(s.d_k + i, splat(0));
        store(s.d_v + i, splat(0));
      }
      for (int head = kv * n_shared; head < (kv + 1) * n_shared; head++) {
        widen(rows + head * head_dim, stride, n, n_pad, head_dim, s.q);
        widen(d_out + out_at + head * head_dim, out_stride, n, n_pad, head_dim, s.d_out);
        backward_of_head(out + out_at + head * head_dim, out_stride,
                         views ? views + begin : nullptr,
                         lse + std::int64_t{begin} * shape.n_heads + head, shape.n_heads, n, n_pad,
                         head_dim, d_rows + head * head_dim, stride, s);
        sums_over_queries(s.p, s.d_out, n, n_pad, head_dim, s.d_v);
        sums_over_queries(s.d_s, s.q, n, n_pad, head_dim, s.d_k);
      }
      for (int row = 0; row < n; row++) {
        for (int d = 0; d < head_dim; d += 16) {
          store(d_rows + std::int64_t{row} * stride + k_at + d, load(s.d_k + row * head_dim + d));
          store(d_rows + std::int64_t{row} * stride + v_at + d, load(s.d_v + row * head_dim + d));
        }
      }
    }
  }
}
