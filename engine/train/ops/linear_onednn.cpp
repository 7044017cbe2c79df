#include "engine/train/ops/linear_onednn.h"

#include <algorithm>
#include <map>
#include <new>
#include <tuple>
#include <vector>

#include <dnnl.hpp>

#include "engine/base/types.h"
#include "engine/train/ops/aligned_vector.h"
#include "engine/train/ops/train_ops.h"

// Debian's oneDNN uses libgomp, which keeps the number of threads per calling thread. Every
// training thread sets it to one and multiplies its own rows. Declared here to avoid the flag
// -fopenmp.
extern "C" void omp_set_num_threads(int n);

namespace engine {
namespace {

using DataType = dnnl::memory::data_type;
using Dims = dnnl::memory::dims;

template <typename T>
constexpr DataType kType = DataType::f32;
template <>
constexpr DataType kType<Bf16> = DataType::bf16;

// The engine of the CPU. Its creation, before the first primitive, disables AMX (see linear.h).
const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = [] {
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

template <typename T>
struct OneDnnLinear : PackedLinear<T> {
  const float* master = nullptr;
  int n_out = 0, n_in = 0;
  AlignedVector<T> rounded;  // empty for f32, whose products read the master weights
  const T* data() const {
    if constexpr (std::is_same_v<T, float>)
      return master;
    else
      return rounded.data();
  }
};

// A product c [m, n] (+)= a [m, k] b [k, n]; a transposed operand is stored as [k, m] or [n, k].
struct Product {
  int m, k, n;
  bool a_transposed, b_transposed, f32_out, add;
  auto key() const { return std::tuple(m, k, n, a_transposed, b_transposed, f32_out, add); }
};

template <typename T>
class OneDnnMath : public LinearMath<T> {
 public:
  OneDnnMath() : stream_(cpu_engine()) {}
  const char* name() const override {
    return std::is_same_v<T, float> ? "oneDNN f32" : "oneDNN bf16";
  }

  std::unique_ptr<PackedLinear<T>> make(const float* w, int n_out, int n_in) const override {
    auto packed = std::make_unique<OneDnnLinear<T>>();
    packed->master = w;
    packed->n_out = n_out;
    packed->n_in = n_in;
    if constexpr (!std::is_same_v<T, float>) {
      packed->rounded.resize(static_cast<std::size_t>(n_out) * n_in);
    }
    return packed;
  }

  void repack(PackedLinear<T>& packed) const override {
    auto& w = static_cast<OneDnnLinear<T>&>(packed);
    if (w.rounded.empty()) return;
    train_table().ops<T>().convert(w.master, w.rounded.data(), std::int64_t{w.n_out} * w.n_in);
  }

  void forward(const PackedLinear<T>& packed, const T* x, int rows, T* y) override {
    const auto& w = of(packed);
    multiply({rows, w.n_in, w.n_out, false, true, false, false}, x, w.data(), y);
  }

  void forward_f32(
      const PackedLinear<T>& packed, const T* x, int rows, float* y, bool add) override {
    const auto& w = of(packed);
    multiply({rows, w.n_in, w.n_out, false, true, true, add}, x, w.data(), y);
  }

  void backward_input(const PackedLinear<T>& packed, const T* dy, int rows, T* dx) override {
    const auto& w = of(packed);
    multiply({rows, w.n_out, w.n_in, false, false, false, false}, dy, w.data(), dx);
  }

  void backward_weight(
      const PackedLinear<T>& packed, const T* dy, const T* x, int rows, float* dw) override {
    const auto& w = of(packed);
    if (w.n_out <= w.n_in) {
      multiply({w.n_out, rows, w.n_in, true, false, true, true}, dy, x, dw);
    } else {
      backward_tall_weight(w.n_out, w.n_in, dy, x, rows, dw);
    }
  }

 private:
  struct Prepared {
    dnnl::memory::desc a, b, c;
    dnnl::matmul primitive;
    dnnl::memory scratch;
  };

  static const OneDnnLinear<T>& of(const PackedLinear<T>& w) {
    return static_cast<const OneDnnLinear<T>&>(w);
  }

  // Computes x^T dy in chunks of rows whose operands stay in the L2 cache, then transposes the sum:
  // oneDNN is slow with a wide transposed left operand (34 GFLOP/s a core for 1,024 x 2,048 x 192,
  // 71 this way).
  void backward_tall_weight(int n_out, int n_in, const T* dy, const T* x, int rows, float* dw) {
    if (rows == 0) return;
    constexpr int kChunk = 512;
    const std::size_t n = static_cast<std::size_t>(n_out) * n_in;
    if (across_.size() < n) across_.resize(n);
    for (int first = 0; first < rows; first += kChunk) {
      multiply({n_in, std::min(kChunk, rows - first), n_out, true, false, true, first > 0},
               x + std::int64_t{first} * n_in, dy + std::int64_t{first} * n_out, across_.data());
    }
    constexpr int kTile = 16;
    for (int out = 0; out < n_out; out += kTile) {
      const int last = std::min(out + kTile, n_out);
      for (int in = 0; in < n_in; in++) {
        const float* from = across_.data() + std::int64_t{in} * n_out;
        for (int o = out; o < last; o++) dw[std::int64_t{o} * n_in + in] += from[o];
      }
    }
  }

  Prepared& prepare(const Product& p) {
    const auto found = prepared_.find(p.key());
    if (found != prepared_.end()) return found->second;
    const DataType out = p.f32_out ? DataType::f32 : kType<T>;
    const dnnl::memory::desc a({p.m, p.k}, kType<T>, p.a_transposed ? Dims{1, p.m} : Dims{p.k, 1});
    const dnnl::memory::desc b({p.k, p.n}, kType<T>, p.b_transposed ? Dims{1, p.k} : Dims{p.n, 1});
    const dnnl::memory::desc c({p.m, p.n}, out, Dims{p.n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p.add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes,
                                                   cpu_engine());
    Prepared made{a, b, c, dnnl::matmul(description),
                  dnnl::memory(description.scratchpad_desc(), cpu_engine())};
    return prepared_.emplace(p.key(), std::move(made)).first->second;
  }

  // Without rows there is nothing to compute or to add, and oneDNN would divide by zero.
  void multiply(const Product& p, const void* a, const void* b, void* c) {
    if (p.m == 0 || p.k == 0) return;
    omp_set_num_threads(1);
    try {
      Prepared& ready = prepare(p);
      ready.primitive.execute(stream_, {{DNNL_ARG_SRC, memory(ready.a, a)},
                                        {DNNL_ARG_WEIGHTS, memory(ready.b, b)},
                                        {DNNL_ARG_DST, memory(ready.c, c)},
                                        {DNNL_ARG_SCRATCHPAD, ready.scratch}});
      stream_.wait();
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
      throw Error(ErrorCode::Device,
                  std::string("oneDNN: matrix product refused: ") + error.what());
    }
  }

  static dnnl::memory memory(const dnnl::memory::desc& shape, const void* data) {
    return {shape, cpu_engine(), const_cast<void*>(data)};
  }

  dnnl::stream stream_;
  AlignedVector<float> across_;  // [n_in, n_out] a transposed gradient
  std::map<decltype(Product{}.key()), Prepared> prepared_;
};

}  // namespace

bool onednn_has_bf16() {
  cpu_engine();
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
}

std::unique_ptr<LinearMath<float>> onednn_math_f32() {
  return std::make_unique<OneDnnMath<float>>();
}

std::unique_ptr<LinearMath<Bf16>> onednn_math_bf16() {
  return std::make_unique<OneDnnMath<Bf16>>();
}

}  // namespace engine
