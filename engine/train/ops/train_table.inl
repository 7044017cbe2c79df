// The table of the instruction set TABLE_NAME.

template <typename T>
constexpr RowOps<T> ops_table() {
  return {rms_norm<T>,
          rms_norm_backward<T>,
          rope<T>,
          swiglu<T>,
          swiglu_backward<T>,
          attention<T>,
          attention_backward<T>,
          cross_entropy<T>,
          smoothed_cross_entropy<T>,
          divergence<T>,
          convert<T>,
          silu<T>,
          silu_backward<T>,
          column_sums<T>};
}

constexpr TrainTable kTable = {
    TABLE_NAME, ops_table<float>(), ops_table<Bf16>(), {reduce, adamw, add}};
