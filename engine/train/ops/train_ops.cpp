#include "engine/train/ops/train_ops.h"

namespace engine {

extern const TrainTable train_table_base;
#if defined(__x86_64__)
extern const TrainTable train_table_avx2;
extern const TrainTable train_table_avx512;
#endif

std::int64_t attention_scratch(const AttentionShape& shape, int max_rows) {
  const std::int64_t n_pad = (max_rows + 15) / 16 * 16;
  return 8 * n_pad * shape.head_dim + 2 * n_pad * n_pad + 16 * n_pad;
}

int all_train_tables(const TrainTable** tables) {
  int n = 0;
  tables[n++] = &train_table_base;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tables[n++] = &train_table_avx2;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    tables[n++] = &train_table_avx512;
  }
#endif
  return n;
}

const TrainTable& train_table() {
  static const TrainTable* const best = [] {
    const TrainTable* tables[3];
    return tables[all_train_tables(tables) - 1];
  }();
  return *best;
}

}  // namespace engine
