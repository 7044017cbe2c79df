// Training operations for one instruction set; CMakeLists.txt has its flags.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "engine/train/ops/train_ops.h"

namespace engine {
namespace {

#define TABLE_NAME "avx512"
// The order matters: later files use earlier ones.
// clang-format off
#include "engine/train/ops/train_vector.inl"
#include "engine/train/ops/train_ops_body.inl"
#include "engine/train/ops/train_attention.inl"
#include "engine/train/ops/train_table.inl"
// clang-format on

}  // namespace

extern const TrainTable train_table_avx512;
const TrainTable train_table_avx512 = kTable;

}  // namespace engine
