// The training operations except attention. The files of each instruction set include it after
// train_vector.inl.

template <typename T>
void rms_norm(
    const float* x, const float* w, T* h, float* r, float* x_copy, int rows, int dim, float eps) {
  for (int row = 0; row < rows; row++) {
    const float* in = x + std::int64_t{row} * dim;
    T* out = h + std::int64_t{row} * dim;
    Lanes squares = splat(0);
    for (int i = 0; i < dim; i += 16) {
      const Lanes v = load(in + i);
      squares += v * v;
      if (x_copy) store(x_copy + std::int64_t{row} * dim + i, v);
    }
    const float scale = 1.0f / __builtin_sqrtf(sum_of(squares) / static_cast<float>(dim) + eps);
    r[row] = scale;
    for (int i = 0; i < dim; i += 16) store(out + i, load(in + i) * scale * load(w + i));
  }
}

// y_i = x_i r w_i with r = (mean(x^2) + eps)^(-1/2), so dr/dx_j = -r^3 x_j / dim and
// dx_j = r w_j dh_j - x_j r^3 mean(dh w x).
template <typename T>
void rms_norm_backward(const float* x,
                       const float* w,
                       const float* r,
                       const T* dh,
                       float* dx,
                       float* dw,
                       T* dx_copy,
                       int rows,
                       int dim) {
  for (int row = 0; row < rows; row++) {
    const std::int64_t at = std::int64_t{row} * dim;
    const float scale = r[row];
    Lanes dot = splat(0);
    for (int i = 0; i < dim; i += 16) {
      const Lanes product = load(dh + at + i) * load(x + at + i);
      dot += product * load(w + i);
      store(dw + i, load(dw + i) + product * scale);
    }
    const float back = scale * scale * scale * sum_of(dot) / static_cast<float>(dim);
    for (int i = 0; i < dim; i += 16) {
      const Lanes d =
          load(dx + at + i) + load(dh + at + i) * load(w + i) * scale - load(x + at + i) * back;
      store(dx + at + i, d);
      if (dx_copy) store(dx_copy + at + i, d);
    }
  }
}

template <typename T>
void rotate_wide(T* head, const float* cosines, const float* sines, int half, float direction) {
  for (int i = 0; i < half; i += 16) {
    const Lanes a = load(head + i), b = load(head + half + i);
    const Lanes c = load(cosines + i), s = load(sines + i) * direction;
    store(head + i, a * c - b * s);
    store(head + half + i, b * c + a * s);
  }
}

template <typename T>
void rotate_narrow(T* head, const float* cosines, const float* sines, int half, float direction) {
  for (int i = 0; i < half; i++) {
    const float a = load_one(head + i), b = load_one(head + half + i);
    const float c = cosines[i], s = sines[i] * direction;
    store_one(head + i, a * c - b * s);
    store_one(head + half + i, b * c + a * s);
  }
}

template <typename T>
void rope(T* x,
          const std::int32_t* pos,
          const float* cos_sin,
          int rows,
          int stride,
          int n_rotated,
          int head_dim,
          float direction) {
  const int half = head_dim / 2;
  for (int row = 0; row < rows; row++) {
    const float* cosines = cos_sin + std::int64_t{pos[row]} * head_dim;
    const float* sines = cosines + half;
    T* head = x + std::int64_t{row} * stride;
    for (int h = 0; h < n_rotated; h++, head += head_dim) {
      if (half % 16 == 0) {
        rotate_wide(head, cosines, sines, half, direction);
      } else {
        rotate_narrow(head, cosines, sines, half, direction);
      }
    }
  }
}

template <typename T>
void swiglu(const T* gate_up, T* act, int rows, int hidden_dim) {
  for (int row = 0; row < rows; row++) {
    const T* gate = gate_up + std::int64_t{row} * 2 * hidden_dim;
    const T* up = gate + hidden_dim;
    T* out = act + std::int64_t{row} * hidden_dim;
    for (int i = 0; i < hidden_dim; i += 16) {
      const Lanes g = load(gate + i);
      store(out + i, g * load(up + i) / (exp_of(-g) + 1.0f));
    }
  }
}

// silu'(g) = s (1 + g (1 - s)) with s the logistic function of g.
template <typename T>
void swiglu_backward(
    const T* gate_up, const T* d_act, T* d_gate_up, T* act, int rows, int hidden_dim) {
  for (int row = 0; row < rows; row++) {
    const std::int64_t wide = std::int64_t{row} * 2 * hidden_dim;
    const std::int64_t narrow = std::int64_t{row} * hidden_dim;
    for (int i = 0; i < hidden_dim; i += 16) {
      const Lanes g = load(gate_up + wide + i), u = load(gate_up + wide + hidden_dim + i);
      const Lanes d = load(d_act + narrow + i);
      const Lanes s = 1.0f / (exp_of(-g) + 1.0f);
      const Lanes silu = g * s;
      store(act + narrow + i, silu * u);
      store(d_gate_up + wide + i, d * u * s * (1.0f + g - silu));
      store(d_gate_up + wide + hidden_dim + i, d * silu);
    }
  }
}

template <typename T>
void ignore_row(T* d_logits, int vocab_size) {
  for (int i = 0; i < vocab_size; i += 16) store(d_logits + i, splat(0));
}

template <typename T>
void cross_entropy(float* logits,
                   const std::int32_t* target,
                   const float* weight,
                   T* d_logits,
                   float* loss,
                   int rows,
                   int vocab_size) {
  for (int row = 0; row < rows; row++) {
    float* z = logits + std::int64_t{row} * vocab_size;
    T* d = d_logits + std::int64_t{row} * vocab_size;
    loss[row] = 0;
    if (weight[row] == 0) {
      ignore_row(d, vocab_size);
      continue;
    }
    Lanes most = load(z);
    for (int i = 16; i < vocab_size; i += 16) most = larger(most, load(z + i));
    const float top = max_of(most);
    const float z_target = z[target[row]];
    Lanes total = splat(0);
    for (int i = 0; i < vocab_size; i += 16) {
      const Lanes e = exp_of(load(z + i) - top);
      total += e;
      store(z + i, e);
    }
    const float sum = sum_of(total);
    loss[row] = __builtin_logf(sum) - (z_target - top);
    const float scale = weight[row] / sum;
    const float p_target = z[target[row]] * scale;
    for (int i = 0; i < vocab_size; i += 16) store(d + i, load(z + i) * scale);
    store_one(d + target[row], p_target - weight[row]);
  }
}

// The log of the sum of e^z, so that z minus it is the log of the row's softmax.
INLINE float log_sum_of(const float* z, int n) {
  Lanes most = load(z);
  for (int i = 16; i < n; i += 16) most = larger(most, load(z + i));
  const float top = max_of(most);
  Lanes total = splat(0);
  for (int i = 0; i < n; i += 16) total += exp_of(load(z + i) - top);
  return top + __builtin_logf(sum_of(total));
}

template <typename T>
float smoothed_cross_entropy(const float* logits,
                             std::int32_t target,
                             float smoothing,
                             float weight,
                             T* d_logits,
                             int vocab_size) {
  const float log_sum = log_sum_of(logits, vocab_size);
  const float spread = smoothing / static_cast<float>(vocab_size);
  Lanes logp = splat(0);
  float p_target = 0;
  for (int i = 0; i < vocab_size; i += 16) {
    const Lanes l = load(logits + i) - log_sum;
    logp += l;
    const Lanes p = exp_of(l);
    if (target >= i && target < i + 16) p_target = lane_of(p, target - i);
    store(d_logits + i, (p - spread) * weight);
  }
  store_one(d_logits + target, (p_target - spread - (1.0f - smoothing)) * weight);
  return -(1.0f - smoothing) * (logits[target] - log_sum) - spread * sum_of(logp);
}

// log(q / m) for m = (p + q) / 2, from log q and log p.
INLINE Lanes log_above_mean(Lanes q, Lanes p) {
  float ratio[16];
  store(ratio, exp_of(p - q));
  for (float& r : ratio) r = -__builtin_logf(0.5f + 0.5f * r);
  return load(ratio);
}

// dD/dz = q - p for D = KL(p || q), and q (g - sum of q g) for the others, where g = log(q / p) for KL(q || p) and
// log(q / m) / 2 for the Jensen-Shannon divergence.
template <typename T>
float divergence(const float* logits,
                 const float* teacher,
                 Divergence by,
                 float weight,
                 T* d_logits,
                 int vocab_size) {
  const float log_q = log_sum_of(logits, vocab_size), log_p = log_sum_of(teacher, vocab_size);
  const bool is_mixed = by == Divergence::JensenShannon;
  const auto g_of = [is_mixed](Lanes q, Lanes p) {
    return is_mixed ? log_above_mean(q, p) * 0.5f : q - p;
  };
  Lanes sum = splat(0), mean = splat(0);
  for (int i = 0; i < vocab_size; i += 16) {
    const Lanes q = load(logits + i) - log_q, p = load(teacher + i) - log_p;
    if (by == Divergence::Forward) {
      const Lanes e = exp_of(p);
      sum += e * (p - q);
      store(d_logits + i, (exp_of(q) - e) * weight);
      continue;
    }
    const Lanes g = g_of(q, p);
    mean += exp_of(q) * g;
    if (is_mixed) sum += exp_of(p) * (g + (p - q) * 0.5f);
  }
  if (by == Divergence::Forward) return sum_of(sum);
  const float of_q = sum_of(mean);
  for (int i = 0; i < vocab_size; i += 16) {
    const Lanes q = load(logits + i) - log_q, p = load(teacher + i) - log_p;
    store(d_logits + i, exp_of(q) * (g_of(q, p) - of_q) * weight);
  }
  return of_q + sum_of(sum);
}

template <typename T>
void convert(const float* x, T* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(x + i));
  for (; i < n; i++) store_one(y + i, x[i]);
}

template <typename T>
void silu(const float* z, const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const Lanes g = load(z + i);
    const Lanes own = g / (exp_of(-g) + 1.0f);
    store(y + i, x ? own + load(x + i) : own);
  }
}

template <typename T>
void silu_backward(const float* z, const T* dy, T* dz, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const Lanes g = load(z + i);
    const Lanes s = 1.0f / (exp_of(-g) + 1.0f);
    store(dz + i, load(dy + i) * s * (1.0f + g * (1.0f - s)));
  }
}

template <typename T>
void column_sums(const T* x, float* sums, int rows, int width) {
  for (int row = 0; row < rows; row++) {
    const T* from = x + std::int64_t{row} * width;
    for (int i = 0; i < width; i += 16) store(sums + i, load(sums + i) + load(from + i));
  }
}

double reduce(float* const* parts, int n_parts, std::int64_t begin, std::int64_t end) {
  double squares = 0;
  // Squares are summed in f32 within a block and in double across blocks, which limits rounding
  // errors.
  for (std::int64_t block = begin; block < end; block += 4096) {
    const std::int64_t stop = block + 4096 < end ? block + 4096 : end;
    Lanes lanes = splat(0);
    float tail = 0;
    std::int64_t i = block;
    for (; i + 16 <= stop; i += 16) {
      Lanes sum = load(parts[0] + i);
      for (int p = 1; p < n_parts; p++) {
        sum += load(parts[p] + i);
        store(parts[p] + i, splat(0));
      }
      store(parts[0] + i, sum);
      lanes += sum * sum;
    }
    for (; i < stop; i++) {
      float sum = parts[0][i];
      for (int p = 1; p < n_parts; p++) {
        sum += parts[p][i];
        parts[p][i] = 0;
      }
      parts[0][i] = sum;
      tail += sum * sum;
    }
    squares += static_cast<double>(sum_of(lanes)) + static_cast<double>(tail);
  }
  return squares;
}

INLINE void adamw_lanes(float* w, float* m, float* v, float* g, const AdamStep& s) {
  const Lanes gradient = load(g) * s.gradient_scale;
  const Lanes mean = load(m) * s.beta1 + gradient * (1.0f - s.beta1);
  const Lanes square = load(v) * s.beta2 + gradient * gradient * (1.0f - s.beta2);
  const Lanes step = mean * s.correction1 / (root_of(square * s.correction2) + s.eps);
  const Lanes weight = load(w);
  store(w, weight - s.lr * (step + s.weight_decay * weight));
  store(m, mean);
  store(v, square);
  store(g, splat(0));
}

void adamw(float* w, float* m, float* v, float* g, std::int64_t n, const AdamStep& s) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) adamw_lanes(w + i, m + i, v + i, g + i, s);
  if (i == n) return;
  float tail[4][16] = {};
  float* const from[4] = {w + i, m + i, v + i, g + i};
  for (int part = 0; part < 4; part++) {
    for (std::int64_t j = 0; j < n - i; j++) tail[part][j] = from[part][j];
  }
  adamw_lanes(tail[0], tail[1], tail[2], tail[3], s);
  for (int part = 0; part < 4; part++) {
    for (std::int64_t j = 0; j < n - i; j++) from[part][j] = tail[part][j];
  }
}

void add(float* y, const float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load(y + i) + load(x + i));
  for (; i < n; i++) y[i] += x[i];
}
