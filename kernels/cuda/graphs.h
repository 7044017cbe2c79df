// Launches of collected kernels. If a list of kernels repeats, it becomes a CUDA graph. The graph is cached, and each
// later launch updates only the nodes whose grid or arguments differ. Other lists are launched kernel by kernel.
#pragma once

#include <cstring>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

/// A list of kernel launches with copies of their arguments, in order.
class Launches {
 public:
  /// Appends a launch.
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
  /// Marks the last launch: it may start while the previous launch still runs (programmatic
  /// dependent launch).
  void latest_is_early() { all_.back().early = true; }
  /// True if latest_is_early() marked launch i.
  bool is_early(std::size_t i) const { return all_[i].early; }
  /// Removes all launches.
  void clear();
  /// True without launches.
  bool empty() const { return all_.empty(); }
  /// Number of launches.
  std::size_t size() const { return all_.size(); }
  /// Name of the kernel of launch i, for messages.
  const char* name(std::size_t i) const { return all_[i].name; }
  /// "matmul (grid 4 x 4 x 1, block 128 x 1 x 1, 65536 bytes of shared memory)".
  std::string text(std::size_t i) const;
  /// Parameters of launch i for the runtime. They point into this list and are valid until the next call.
  const cudaKernelNodeParams& params(std::size_t i);
  /// Lists with the same kernels have the same hash.
  std::uint64_t hash() const;
  /// True if both lists have the same kernels with the same early marks.
  bool same_kernels(const Launches& other) const;
  /// True if launch i has the same grid, block, shared memory and arguments in both lists.
  bool same_launch(const Launches& other, std::size_t i) const;
  /// True if an argument points into these bytes.
  bool point_into(const void* begin, std::int64_t bytes) const;
  /// Name of the first launch with an argument word that may be a pointer and for which
  /// is_stale(word) is true. Null: there is none.
  template <class IsStale>
  const char* first_with_stale_pointer(const IsStale& is_stale) const {
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
    std::size_t bytes, places;  // begin of its arguments in bytes_ and places_
    bool early = false;
  };
  void begin(const char* name, const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes);
  // Launches are compared by bytes, so the padding of structures is set to 0.
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
  std::vector<std::size_t> places_;   // offset of each argument in bytes_
  cudaKernelNodeParams params_ = {};
  std::vector<void*> argument_pointers_;
};

/// "37 kernels (embed, rms_norm, matmul)": each name once.
std::string counted_names(std::span<const char* const> names);

/// True if the device refuses every call after this error.
bool is_permanent(cudaError_t error);

/// The result of a CUDA call.
struct CallResult {
  cudaError_t error = cudaSuccess;
  std::string call;  // the failed call, for messages
};

/// Receives the result of a call that frees something.
using OnFree = std::function<void(cudaError_t error, const char* call)>;

/// Launches lists of kernels, and caches CUDA graphs for those that repeat.
class KernelGraphs {
 public:
  static constexpr std::size_t kFewestKernels = 4;  // of a graph
  static constexpr std::size_t kMostKept = 24, kMostSeen = 64;

  /// @param on       false: launches every kernel by itself, for comparison
  /// @param on_free  receives the results when graphs are destroyed
  KernelGraphs(bool on, OnFree on_free) : on_(on), on_free_(std::move(on_free)) {}
  KernelGraphs(const KernelGraphs&) = delete;
  KernelGraphs& operator=(const KernelGraphs&) = delete;

  /// Launches the kernels in order. If the driver refuses a graph, most often for lack of memory,
  /// launches them one by one, with the same bits. Backs off after repeated refusals, because a refused
  /// attempt takes longer than the launches: from the third refusal in a row on, the next 1, 2, 4, ..,
  /// at most 1,024 lists without a graph are launched one by one without an attempt. A new graph ends
  /// the backoff.
  /// @param comes_once  true: the list will not repeat, so no graph is made
  CallResult launch(Launches& launches, cudaStream_t stream, bool comes_once = false);
  /// The first refused call for a graph; its error is cudaSuccess if there was none.
  const CallResult& refused() const { return refused_; }
  /// Launches of graphs and of single kernels.
  std::int64_t n_launched() const { return n_launched_; }
  /// Applies early marks in graphs that are made from now on.
  void let_begin_early(bool early) { early_ = early; }
  /// Destroys all cached graphs.
  void forget_all() noexcept { kept_.clear(); }
  /// Forgets all cached graphs without destroying them, for a stream whose work does not end.
  void abandon_all() noexcept {
    for (Kept& kept : kept_) kept.graph = nullptr, kept.exec = nullptr;
    kept_.clear();
  }

 private:
  struct Kept {
    explicit Kept(const OnFree& receiver) : on_free(receiver) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept();
    const OnFree& on_free;  // of the KernelGraphs that owns this
    std::uint64_t hash = 0;
    Launches launches;  // the last update of the graph
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    std::vector<cudaGraphNode_t> nodes;
  };
  using Place = std::list<Kept>::iterator;
  Place nearest(const Launches& launches, std::uint64_t hash);
  bool seen(std::uint64_t hash);
  CallResult make(Launches& launches, std::uint64_t hash);
  cudaError_t add_node(Kept& made, Launches& launches, std::size_t i);
  CallResult update(Kept& kept, Launches& launches);
  CallResult launch_singly(Launches& launches, cudaStream_t stream);
  CallResult launch_without_graph(const CallResult& answer,
                                  Launches& launches,
                                  cudaStream_t stream);
  bool skips_attempt();

  bool on_, early_ = false;
  OnFree on_free_;
  std::int64_t n_launched_ = 0;
  std::list<Kept> kept_;             // most recently used first
  std::vector<std::size_t> differ_;  // launches that differ in the graph of nearest()
  std::list<std::uint64_t> seen_;    // hashes of lists, latest first
  CallResult refused_;
  int n_refused_ = 0;  // consecutive refusals
  int n_to_skip_ = 0;  // lists to launch without an attempt at a graph
};

}  // namespace kernels::DECOSCOPE_GPU
