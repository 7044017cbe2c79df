#include "engine/train/ops/linear.h"

#include <chrono>
#include <vector>

#include "engine/base/types.h"
#include "engine/train/ops/aligned_vector.h"
#include "engine/train/ops/amx_gemm.h"
#include "engine/train/ops/linear_onednn.h"

namespace engine {
namespace {

#if defined(__x86_64__)
struct AmxLinear : PackedLinear<Bf16> {
  const float* master = nullptr;
  int n_out = 0, n_in = 0;
  AlignedVector<Bf16> for_forward;   // B [n_in, n_out]
  AlignedVector<Bf16> for_backward;  // B [n_out, n_in]
};

const AmxLinear& amx(const PackedLinear<Bf16>& w) {
  return static_cast<const AmxLinear&>(w);
}

class AmxMath : public LinearMath<Bf16> {
 public:
  const char* name() const override { return "amx bf16"; }

  std::unique_ptr<PackedLinear<Bf16>> make(const float* w, int n_out, int n_in) const override {
    ensure(n_out % 32 == 0 && n_in % 32 == 0,
           "AMX tiles need layer widths that are multiples of 32");
    auto packed = std::make_unique<AmxLinear>();
    packed->master = w;
    packed->n_out = n_out;
    packed->n_in = n_in;
    packed->for_forward.resize(static_cast<std::size_t>(n_out) * n_in);
    packed->for_backward.resize(static_cast<std::size_t>(n_out) * n_in);
    return packed;
  }

  void repack(PackedLinear<Bf16>& packed) const override {
    auto& w = static_cast<AmxLinear&>(packed);
    amx_pack_transposed(w.master, w.n_out, w.n_in, w.for_forward.data());
    amx_pack_plain(w.master, w.n_out, w.n_in, w.for_backward.data());
  }

  void forward(const PackedLinear<Bf16>& w, const Bf16* x, int rows, Bf16* y) override {
    amx_gemm(x, amx(w).for_forward.data(), y, rows, amx(w).n_in, amx(w).n_out, AmxOut::StoreBf16);
  }

  void forward_f32(
      const PackedLinear<Bf16>& w, const Bf16* x, int rows, float* y, bool add) override {
    amx_gemm(x, amx(w).for_forward.data(), y, rows, amx(w).n_in, amx(w).n_out,
             add ? AmxOut::AddF32 : AmxOut::StoreF32);
  }

  void backward_input(const PackedLinear<Bf16>& w, const Bf16* dy, int rows, Bf16* dx) override {
    amx_gemm(dy, amx(w).for_backward.data(), dx, rows, amx(w).n_out, amx(w).n_in,
             AmxOut::StoreBf16);
  }

  // Works in chunks of rows, so that both packed operands stay in the L2 cache.
  void backward_weight(
      const PackedLinear<Bf16>& w, const Bf16* dy, const Bf16* x, int rows, float* dw) override {
    const int n_out = amx(w).n_out, n_in = amx(w).n_in;
    constexpr int kChunk = 512;
    grow(left_, std::int64_t{kChunk} * n_out);
    grow(right_, std::int64_t{kChunk} * n_in);
    for (int first = 0; first < rows; first += kChunk) {
      const int n = std::min(kChunk, rows - first);
      amx_pack_left_transposed(dy + std::int64_t{first} * n_out, n, n_out, left_.data());
      amx_pack_plain(x + std::int64_t{first} * n_in, n, n_in, right_.data());
      amx_gemm_packed(left_.data(), right_.data(), dw, n_out, n, n_in, AmxOut::AddF32);
    }
  }

 private:
  static void grow(AlignedVector<Bf16>& v, std::int64_t n) {
    if (static_cast<std::int64_t>(v.size()) < n) v.resize(static_cast<std::size_t>(n));
  }
  AlignedVector<Bf16> left_, right_;  // packed operands of a chunk
};
#endif

template <typename T>
double seconds_of_product(LinearMath<T>& math) {
  constexpr int kRows = 512, kOut = 512, kIn = 192;
  const std::vector<float> w(static_cast<std::size_t>(kOut) * kIn, 0.5f);
  const std::vector<T> x(static_cast<std::size_t>(kRows) * kIn, T{});
  std::vector<T> y(static_cast<std::size_t>(kRows) * kOut);
  const auto packed = math.make(w.data(), kOut, kIn);
  math.repack(*packed);
  double best = 1e9;
  for (int trial = 0; trial < 5; trial++) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; i++) math.forward(*packed, x.data(), kRows, y.data());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

Compute measured_compute() {
#if defined(__x86_64__)
  if (amx_usable()) return Compute::Bf16Amx;
#endif
  if (!onednn_has_bf16()) return Compute::F32;
  const auto f32 = linear_math_f32();
  const auto bf16 = linear_math_bf16(Compute::Bf16OneDnn);
  return seconds_of_product(*bf16) < seconds_of_product(*f32) ? Compute::Bf16OneDnn : Compute::F32;
}

}  // namespace

const char* name_of(Compute compute) {
  switch (compute) {
    case Compute::F32:
      return "f32";
    case Compute::Bf16Amx:
      return "bf16-amx";
    case Compute::Bf16OneDnn:
      return "bf16-onednn";
    case Compute::F32Cuda:
      return "f32-cuda";
    case Compute::Bf16Cuda:
      return "bf16-cuda";
  }
  return "";
}

std::unique_ptr<LinearMath<float>> linear_math_f32() {
  return onednn_math_f32();
}

std::unique_ptr<LinearMath<Bf16>> linear_math_bf16(Compute compute) {
  ensure(compute == Compute::Bf16Amx || compute == Compute::Bf16OneDnn,
         "linear_math_bf16: compute must be bf16-amx or bf16-onednn");
  if (compute == Compute::Bf16OneDnn) return onednn_math_bf16();
#if defined(__x86_64__)
  if (amx_usable()) return std::make_unique<AmxMath>();
#endif
  throw Error(ErrorCode::Device,
              "compute: bf16-amx needs bf16 tiles (AMX), which this processor lacks or the "
              "system forbids; use \"compute\": \"auto\"");
}

Compute fastest_compute() {
  static const Compute compute = measured_compute();
  return compute;
}

}  // namespace engine
