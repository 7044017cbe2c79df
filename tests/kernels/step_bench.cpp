// Times the operations of one forward step on the shapes S and M with random bf16 weights, against
// the roofline of the same run: max(weight bytes / read probe, multiply-adds / multiply probe).
//   usage   kernels_step_bench [threads] [S|M] [repeats] [f32|f16|bf16]
//   output  per number of rows: ms of all matrices and of a whole step at context 128 (logits of
//           every row), the roofline, the reached shares of it, the ratio to one row
//   quiet   on a shared machine hardly any whole step is undisturbed, but single operations often are:
//           `quiet` adds the least time of each operation and of each piece of the read probe;
//           `median` is that of whole steps
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/probe.h"
#include "kernels/device.h"
#include "kernels/philox.h"

namespace {

using namespace kernels;
using Clock = std::chrono::steady_clock;

struct Shape {
  int dim, n_layers, n_heads, hidden, vocab;
};

constexpr int kMostRows = 64, kContext = 128, kHeadDim = 64;

class Step {
 public:
  Step(Device& device, const Shape& shape, DType dtype)
      : device_(device), ops_(device.ops()), shape_(shape), dtype_(dtype) {
    const std::vector<float> values =
        random_values(std::max(shape.vocab, 4 * shape.hidden) * shape.dim);
    for (int i = 0; i < shape.n_layers; i++) {
      Layer& layer = layers_.emplace_back();
      layer.qkv = weights(values, 3 * shape.dim, shape.dim);
      layer.out = weights(values, shape.dim, shape.dim);
      layer.up = weights(values, 2 * shape.hidden, shape.dim);
      layer.down = weights(values, shape.dim, shape.hidden);
      const std::int64_t page = ops_.page_bytes(dtype, shape.n_heads, kHeadDim);
      layer.pages = DeviceBuffer(device, 6 * page, "a layer's pages");
      std::fill_n(static_cast<std::uint16_t*>(layer.pages.data()), 3 * page, std::uint16_t{0x3c00});
      layer.kv = {layer.pages.data(),
                  static_cast<char*>(layer.pages.data()) + 3 * page,
                  page,
                  shape.n_heads,
                  kHeadDim,
                  dtype};
    }
    head_ = weights(values, shape.vocab, shape.dim);
    const auto floats = [&](std::int64_t n) {
      DeviceBuffer buffer(device, 4 * n, "a step's rows");
      std::fill_n(buffer.f32(), n, 0.01f);
      return buffer;
    };
    const int rows = kMostRows;
    x_ = floats(rows * shape.dim);
    normed_ = floats(rows * shape.dim);
    qkv_ = floats(rows * shape.dim * 3);
    attended_ = floats(rows * shape.dim);
    up_ = floats(rows * shape.hidden * 2);
    acted_ = floats(rows * shape.hidden);
    logits_ = floats(static_cast<std::int64_t>(rows) * shape.vocab);
    staged_k_ = floats(rows * shape.dim);
    staged_v_ = floats(rows * shape.dim);
    norm_ = floats(shape.dim);
    rope_ = floats(256 * kHeadDim);
    ids_.assign(rows, 7);
    pick_.resize(rows);
    picked_.resize(rows);
  }

  /// The least time of every operation since `begin_case`, by its place in the step.
  struct Least {
    std::vector<double> ms;
    std::vector<bool> is_matrix;
    double sum(bool matrices_only) const {
      double total = 0;
      for (std::size_t i = 0; i < ms.size(); i++)
        if (is_matrix[i] || !matrices_only) total += ms[i];
      return total;
    }
  };

  std::int64_t weight_bytes() const { return weight_bytes_; }
  std::int64_t multiplies() const { return multiplies_; }

  void whole(int n, Least& least) {
    const int dim = shape_.dim;
    least_ = &least;
    at_ = 0;
    plan(n);
    other([&] { ops_.embed(device_, head_.matrix, ids_.data(), n, x_.f32()); });
    for (const Layer& layer : layers_) {
      norm(n);
      multiply(layer.qkv, normed_, n, qkv_, false);
      float* q = qkv_.f32();
      other([&] {
        ops_.rope(device_, q, 3 * dim, n, shape_.n_heads, kHeadDim, pos_.data(), rope_.f32());
        ops_.rope(device_, q + dim, 3 * dim, n, shape_.n_heads, kHeadDim, pos_.data(), rope_.f32());
      });
      other([&] {
        ops_.kv_stage(device_, q + dim, 3 * dim, n, shape_.n_heads, kHeadDim, dtype_,
                      staged_k_.data());
        ops_.kv_stage(device_, q + 2 * dim, 3 * dim, n, shape_.n_heads, kHeadDim, dtype_,
                      staged_v_.data());
      });
      other([&] {
        ops_.attention(device_, layer.kv, plan_, q, 3 * dim, staged_k_.data(), staged_v_.data(),
                       shape_.n_heads, {.scale = 0.125f}, attended_.f32(), dim);
      });
      multiply(layer.out, attended_, n, x_, true);
      norm(n);
      multiply(layer.up, normed_, n, up_, false);
      other([&] { ops_.glu(device_, Gate::Silu, up_.f32(), acted_.f32(), n, shape_.hidden); });
      multiply(layer.down, acted_, n, x_, true);
    }
    norm(n);
    multiply(head_, normed_, n, logits_, false);
    other([&] {
      ops_.pick(device_, logits_.f32(), shape_.vocab, n, shape_.vocab, shape_.vocab, pick_.data(),
                picked_.data());
    });
  }

 private:
  struct Weights {
    DeviceBuffer buffer;
    PackedMatrix matrix;
  };
  struct Layer {
    Weights qkv, out, up, down;
    DeviceBuffer pages;
    KvLayer kv;
  };

  static std::vector<float> random_values(std::size_t n) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; i++)
      values[i] =
          float(uniform_from_bits(static_cast<std::uint32_t>(i * 2654435761u)) - 0.5) * 0.06f;
    return values;
  }
  Weights weights(const std::vector<float>& values, int n, int k) {
    Weights w;
    w.buffer = DeviceBuffer(device_, ops_.packed_bytes(dtype_, n, k), "the weights");
    ops_.pack(device_, values.data(), DType::F32, n, k, dtype_, w.buffer.data());
    w.matrix = {w.buffer.data(), n, k, dtype_};
    weight_bytes_ += std::int64_t{n} * k * bytes_of(dtype_);
    multiplies_ += std::int64_t{n} * k;
    return w;
  }
  template <class Work>
  void timed(bool is_matrix, const Work& work) {
    const auto begin = Clock::now();
    work();
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (at_ == least_->ms.size()) {
      least_->ms.push_back(ms);
      least_->is_matrix.push_back(is_matrix);
    }
    least_->ms[at_] = std::min(least_->ms[at_], ms);
    at_++;
  }
  template <class Work>
  void other(const Work& work) {
    timed(false, work);
  }
  void norm(int n) {
    other([&] {
      ops_.rms_norm(device_, x_.f32(), norm_.f32(), normed_.f32(), n, shape_.dim, 1e-5f);
    });
  }
  void multiply(const Weights& w, const DeviceBuffer& x, int n, const DeviceBuffer& y, bool add) {
    timed(true, [&] {
      ops_.matmul(device_, w.matrix, x.f32(), w.matrix.k, n, y.f32(), w.matrix.n, nullptr, add);
    });
  }
  // n rows in a chain after the context, as in a Jacobi block.
  void plan(int n) {
    seq_.assign(n, 0);
    pos_.resize(n);
    std::iota(pos_.begin(), pos_.end(), kContext);
    chain_begin_.assign(1, 0);
    chain_.clear();
    for (int r = 0; r < n; r++) {
      for (int i = 0; i <= r; i++) chain_.push_back(i);
      chain_begin_.push_back(static_cast<int>(chain_.size()));
    }
    plan_ = {n,           1,      seq_.data(),         pos_.data(),   &prefix_,
             page_begin_, pages_, chain_begin_.data(), chain_.data(), 0};
  }

  Device& device_;
  const Ops& ops_;
  Shape shape_;
  DType dtype_;
  std::vector<Layer> layers_;
  Weights head_;
  DeviceBuffer x_, normed_, qkv_, attended_, up_, acted_, logits_, staged_k_, staged_v_, norm_,
      rope_;
  std::vector<std::int32_t> ids_;
  std::vector<PickRow> pick_;
  std::vector<Picked> picked_;
  std::vector<int> seq_, pos_, chain_begin_, chain_;
  int prefix_ = kContext;
  int page_begin_[2] = {0, 2};
  int pages_[2] = {0, 1};
  RowsPlan plan_;
  std::int64_t weight_bytes_ = 0, multiplies_ = 0;
  Least* least_ = nullptr;
  std::size_t at_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int n_threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const bool small = argc > 2 && argv[2][0] == 'S';
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 15;
  const DType dtype = dtype_named(argc > 4 ? argv[4] : "bf16").value_or(DType::BF16);
  const Shape shape = small ? Shape{384, 8, 6, 1024, 4096} : Shape{768, 12, 12, 2048, 32000};
  const std::unique_ptr<Device> device = open_cpu(n_threads);
  Step step(*device, shape, dtype);
  cpu::ReadProbe probe(*device);
  const double gflops = cpu::multiply_gflops(*device, dtype);
  const int rows[] = {1, 2, 4, 8, 16, 24, 32, 48, 64};
  constexpr int kCases = 9;
  std::vector<double> gbps, step_ms[kCases];
  Step::Least least[kCases];
  double quiet_gbps = 0;
  for (int repeat = 0; repeat < repeats; repeat++) {
    if (repeat % 4 == 0) gbps.push_back(probe.gbps(1));
    quiet_gbps = probe.quiet_gbps();
    for (int c = 0; c < kCases; c++) {
      const auto begin = Clock::now();
      step.whole(rows[c], least[c]);
      step_ms[c].push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
  }
  std::printf(
      "%s, %s, %d threads, shape %c %s: read %.1f GB/s (quiet %.1f), multiply %.0f GFLOP/s\n",
      cpu::processor_name().c_str(), device->ops().name, n_threads, small ? 'S' : 'M',
      name_of(dtype), median(gbps), quiet_gbps, gflops);
  for (int c = 0; c < kCases; c++) {
    const double memory_ms = double(step.weight_bytes()) / quiet_gbps / 1e6;
    const double compute_ms = 2.0 * double(step.multiplies()) * rows[c] / gflops / 1e6;
    const double roof = std::max(memory_ms, compute_ms);
    const double matrices = least[c].sum(true), whole = least[c].sum(false);
    std::printf(
        "%2d rows  quiet: matrices %6.3f ms (%.2f)  step %6.3f ms (%.2f)  x%.2f  roofline %6.3f "
        "ms; "
        "least step %6.3f, median %6.3f ms\n",
        rows[c], matrices, roof / matrices, whole, roof / whole, whole / least[0].sum(false), roof,
        *std::min_element(step_ms[c].begin(), step_ms[c].end()), median(step_ms[c]));
    if (const char* detail = std::getenv("DETAIL"); detail && std::atoi(detail) == rows[c])
      for (std::size_t i = 0; i < 14 && i < least[c].ms.size(); i++)
        std::printf("    %s %8.1f us\n", least[c].is_matrix[i] ? "matrix" : "other ",
                    1e3 * least[c].ms[i]);
    if (std::getenv("DETAIL") && std::atoi(std::getenv("DETAIL")) == rows[c])
      for (std::size_t i = least[c].ms.size() - 3; i < least[c].ms.size(); i++)
        std::printf("    %s %8.1f us\n", least[c].is_matrix[i] ? "matrix" : "other ",
                    1e3 * least[c].ms[i]);
  }
}
