// Kernels that are held back and launched together. A list of kernels that came before is a CUDA
// graph, kept for each number of rows and told only what differs from its last time (a grid, a
// number, a pointer); another is launched kernel by kernel.
#pragma once

#include <cstring>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

/// Kernels in the order in which they were asked for, with their arguments as they were then.
class Launches {
 public:
  template <class... P, class... A>
  void add(const char* name,
           void (*kernel)(P...),
           dim3 grid,
           dim3 block,
           std::size_t shared_bytes,
           A... arguments) {
    begin(name, handle_of(name, kernel), grid, block, shared_bytes);
    (add_argument<P>(static_cast<P>(arguments)), ...);
  }
  /// Removes the latest and returns its arguments, if it is a launch of this kernel and
  /// fits(grid, arguments...).
  template <class... P, class Fits>
  std::optional<std::tuple<P...>> take_back(void (*kernel)(P...), const Fits& fits) {
    if (all_.empty() || all_.back().kernel != reinterpret_cast<const void*>(kernel)) return {};
    std::tuple<P...> arguments;
    std::size_t place = all_.back().places;
    const auto read = [&](auto& argument) {
      std::memcpy(&argument, bytes_.data() + places_[place++], sizeof argument);
    };
    const dim3 grid = all_.back().grid;
    std::apply([&](P&... each) { (read(each), ...); }, arguments);
    if (!std::apply([&](const P&... each) { return fits(grid, each...); }, arguments)) return {};
    bytes_.resize(all_.back().bytes);
    places_.resize(all_.back().places);
    all_.pop_back();
    return arguments;
  }
  /// The latest may begin before the one before it has ended: its threads wait for that.
  void latest_is_early() { all_.back().early = true; }
  bool is_early(std::size_t i) const { return all_[i].early; }
  void clear();
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const char* name(std::size_t i) const { return all_[i].name; }
  /// "matmul (grid 4 x 4 x 1, block 128 x 1 x 1, 65536 bytes of shared memory)".
  std::string told(std::size_t i) const;
  /// What the runtime is told of launch i; it points into this list, until the next call.
  const cudaKernelNodeParams& params(std::size_t i);
  /// Equal where the kernels are.
  std::uint64_t hash() const;
  /// And whether those that begin early do in both.
  bool same_kernels(const Launches& other) const;
  bool same_launch(const Launches& other, std::size_t i) const;
  /// Whether an argument points to one of these bytes.
  bool point_into(const void* begin, std::int64_t bytes) const;
  /// The name of the first launch of which is_stale(word) holds for a word of its arguments that
  /// may be a pointer; null: of none.
  template <class IsStale>
  const char* first_that_holds(const IsStale& is_stale) const {
    for (std::size_t i = 0; i < all_.size(); i++) {
      for (std::size_t at = all_[i].bytes; at + sizeof(const char*) <= bytes_end(i);
           at += sizeof(const char*)) {
        const char* word;
        std::memcpy(&word, bytes_.data() + at, sizeof word);
        if (is_stale(word)) return all_[i].name;
      }
    }
    return nullptr;
  }

 private:
  struct One {
    const char* name;
    const void* kernel;
    dim3 grid, block;
    unsigned shared_bytes;
    std::size_t bytes, places;  // where its arguments begin
    bool early = false;
  };
  void begin(const char* name, const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes);
  // Launches are compared by bytes: those of a structure that are nobody's are zeros.
  template <class T>
  void add_argument(T value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    __builtin_clear_padding(&value);
    const std::size_t at = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    places_.push_back(at);
  }
  std::size_t bytes_end(std::size_t i) const;
  std::size_t places_end(std::size_t i) const;

  static constexpr std::size_t kAlignment = 16;
  std::vector<One> all_;
  std::vector<unsigned char> bytes_;  // of all arguments
  std::vector<std::size_t> places_;   // of each argument, in bytes_
  cudaKernelNodeParams told_ = {};
  std::vector<void*> told_arguments_;
};

/// "37 kernels (embed, rms_norm, matmul)": each name once.
std::string counted_names(std::span<const char* const> names);

/// Whether the device answers no further call after this error.
bool stays(cudaError_t error);

/// What a call returned and, unless it succeeded, which it was.
struct Answer {
  cudaError_t error = cudaSuccess;
  std::string call;
};

/// Is told what a call that gives something back returned.
using GivenBack = std::function<void(cudaError_t error, const char* call)>;

class KernelGraphs {
 public:
  static constexpr std::size_t kFewestKernels = 4;  // of a graph
  static constexpr std::size_t kMostKept = 24, kMostSeen = 64;

  /// @param on          off: kernels are launched one by one, to compare
  /// @param given_back  for graphs that go
  KernelGraphs(bool on, GivenBack given_back) : on_(on), given_back_(std::move(given_back)) {}
  KernelGraphs(const KernelGraphs&) = delete;
  KernelGraphs& operator=(const KernelGraphs&) = delete;

  /// Puts the kernels in the stream, each after the one before it. Where a graph of them cannot be
  /// had, most often for want of memory, they go one by one, with the same bits. Of the lists that
  /// want one the next two try again; then 1, 2, 4, .. go without, for an attempt takes longer than
  /// these kernels' launches. Of those that come once none is made.
  Answer launch(Launches& launches, cudaStream_t stream, bool comes_once = false);
  /// The first call for a graph that was refused so; none was: its error is cudaSuccess.
  const Answer& refused() const { return refused_; }
  /// Graphs and single kernels that were launched.
  std::int64_t n_launched() const { return n_launched_; }
  /// Kernels that can begin before the one before them has ended do, in graphs made from now on.
  void let_begin_early(bool early) { early_ = early; }
  void forget_all() noexcept { kept_.clear(); }
  /// Leaves the graphs to the process's end: those of a stream whose work does not end.
  void abandon_all() noexcept {
    for (Kept& kept : kept_) kept.graph = nullptr, kept.exec = nullptr;
    kept_.clear();
  }

 private:
  struct Kept {
    explicit Kept(const GivenBack& told) : given_back(told) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept();
    const GivenBack& given_back;  // of the KernelGraphs that it is in
    std::uint64_t hash = 0;
    Launches launches;  // as the graph was told last
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    std::vector<cudaGraphNode_t> nodes;
  };
  using Place = std::list<Kept>::iterator;
  Place nearest(const Launches& launches, std::uint64_t hash);
  bool seen(std::uint64_t hash);
  Answer make(Launches& launches, std::uint64_t hash);
  cudaError_t add_node(Kept& made, Launches& launches, std::size_t i);
  Answer tell(Kept& kept, Launches& launches);
  Answer one_by_one(Launches& launches, cudaStream_t stream);
  Answer go_without(const Answer& answer, Launches& launches, cudaStream_t stream);
  bool passes();

  bool on_, early_ = false;
  GivenBack given_back_;
  std::int64_t n_launched_ = 0;
  std::list<Kept> kept_;             // the one used last is first
  std::vector<std::size_t> differ_;  // launches, of the graph that nearest() found
  std::list<std::uint64_t> seen_;    // hashes of lists, the latest first
  Answer refused_;
  int n_refused_ = 0;  // in a row, none that was made having run
  int to_pass_ = 0;    // lists, before a graph is tried again
};

}  // namespace kernels::DECOSCOPE_GPU
