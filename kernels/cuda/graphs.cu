#include <algorithm>
#include <utility>

#include "kernels/cuda/graphs.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// after this many refusals in a row, the next 1,024 lists are launched without an attempt
constexpr int kMostCounted = 13;

bool same_extent(const dim3& a, const dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

std::string names_of(const Launches& launches) {
  std::vector<const char*> names;
  for (std::size_t i = 0; i < launches.size(); i++) names.push_back(launches.name(i));
  return counted_names(names);
}

CallResult result_of(cudaError_t error, const char* call, const Launches& launches) {
  if (error == cudaSuccess) return {};
  return {error, std::string(call) + " of " + names_of(launches)};
}

}  // namespace

std::string counted_names(std::span<const char* const> names) {
  std::vector<std::string> listed;
  std::string text = std::to_string(names.size()) + " kernels (";
  for (const char* one : names) {
    if (std::find(listed.begin(), listed.end(), one) != listed.end()) continue;
    text += std::string(listed.empty() ? "" : ", ") + one;
    listed.emplace_back(one);
  }
  return text + ")";
}

bool is_permanent(cudaError_t error) {
  return error != cudaErrorMemoryAllocation && error != cudaErrorInvalidConfiguration &&
         error != cudaErrorInvalidValue;
}

void Launches::begin(
    const char* name, const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes) {
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
  all_.push_back({name, kernel, grid, block, static_cast<unsigned>(shared_bytes), bytes_.size(),
                  places_.size(), false});
}

void Launches::clear() {
  all_.clear();
  bytes_.clear();
  places_.clear();
}

std::string Launches::text(std::size_t i) const {
  const auto extent = [](const dim3& d) {
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
  };
  const One& one = all_[i];
  return std::string(one.name) + " (grid " + extent(one.grid) + ", block " + extent(one.block) +
         ", " + std::to_string(one.shared_bytes) + " bytes of shared memory)";
}

std::size_t Launches::bytes_end(std::size_t i) const {
  return i + 1 < all_.size() ? all_[i + 1].bytes : bytes_.size();
}

std::size_t Launches::places_end(std::size_t i) const {
  return i + 1 < all_.size() ? all_[i + 1].places : places_.size();
}

const cudaKernelNodeParams& Launches::params(std::size_t i) {
  const One& one = all_[i];
  argument_pointers_.clear();
  for (std::size_t at = one.places; at < places_end(i); at++)
    argument_pointers_.push_back(bytes_.data() + places_[at]);
  params_.func = const_cast<void*>(one.kernel);
  params_.gridDim = one.grid;
  params_.blockDim = one.block;
  params_.sharedMemBytes = one.shared_bytes;
  params_.kernelParams = argument_pointers_.data();
  return params_;
}

// FNV-1a, word by word.
std::uint64_t Launches::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const One& one : all_)
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(one.kernel)) * 0x100000001b3u;
  return hash;
}

bool Launches::same_kernels(const Launches& other) const {
  return std::equal(
      all_.begin(), all_.end(), other.all_.begin(), other.all_.end(),
      [](const One& a, const One& b) { return a.kernel == b.kernel && a.early == b.early; });
}

bool Launches::same_launch(const Launches& other, std::size_t i) const {
  const One &a = all_[i], &b = other.all_[i];
  return same_extent(a.grid, b.grid) && same_extent(a.block, b.block) &&
         a.shared_bytes == b.shared_bytes &&
         bytes_end(i) - a.bytes == other.bytes_end(i) - b.bytes &&
         std::memcmp(bytes_.data() + a.bytes, other.bytes_.data() + b.bytes,
                     bytes_end(i) - a.bytes) == 0;
}

// Pointers are 8 bytes and aligned, alone and within structures. A number with the value of such a pointer also counts.
bool Launches::point_into(const void* begin, std::int64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for (std::size_t at = 0; at + sizeof first <= bytes_.size(); at += sizeof first) {
    std::uintptr_t word;
    std::memcpy(&word, bytes_.data() + at, sizeof word);
    if (word - first < static_cast<std::uintptr_t>(bytes)) return true;
  }
  return false;
}

// The runtime lets a running graph finish.
KernelGraphs::Kept::~Kept() {
  if (exec) on_free(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  if (graph) on_free(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// Finds the cached graph of these kernels with the fewest different launches. A graph that differs in most launches
// belongs to another number of rows; it is used only if the cache is full.
KernelGraphs::Place KernelGraphs::nearest(const Launches& launches, std::uint64_t hash) {
  const std::size_t n = launches.size();
  std::size_t most = kept_.size() < kMostKept ? n / 2 : n;
  Place found = kept_.end();
  std::vector<std::size_t> differ;
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->hash != hash || !kept->launches.same_kernels(launches)) continue;
    differ.clear();
    for (std::size_t i = 0; i < n && differ.size() <= most; i++)
      if (!launches.same_launch(kept->launches, i)) differ.push_back(i);
    if (differ.size() > most) continue;
    found = kept;
    std::swap(differ_, differ);
    if (differ_.empty()) break;
    most = differ_.size() - 1;
  }
  return found;
}

// A list that is launched for the first time may never repeat (when a model is loaded, for
// example), so it gets no graph.
bool KernelGraphs::seen(std::uint64_t hash) {
  const auto found = std::find(seen_.begin(), seen_.end(), hash);
  const bool is_seen = found != seen_.end();
  if (is_seen) seen_.erase(found);
  seen_.push_front(hash);
  if (seen_.size() > kMostSeen) seen_.pop_back();
  return is_seen;
}

// Every kernel waits for the kernel before it, as in a stream: before it starts or, with a programmatic edge, in
// wait_for_earlier().
cudaError_t KernelGraphs::add_node(Kept& made, Launches& launches, std::size_t i) {
  const bool early = early_ && i > 0 && launches.is_early(i);
  const bool after = i > 0 && !early;
  cudaGraphNode_t node = nullptr;
  if (const cudaError_t error =
          cudaGraphAddKernelNode(&node, made.graph, after ? &made.nodes.back() : nullptr,
                                 after ? 1 : 0, &launches.params(i));
      error != cudaSuccess)
    return error;
  const cudaError_t error =
      early ? add_early_edge(made.graph, made.nodes.back(), node) : cudaSuccess;
  made.nodes.push_back(node);
  return error;
}

// The new graph becomes the first of kept_.
CallResult KernelGraphs::make(Launches& launches, std::uint64_t hash) {
  std::list<Kept> one;
  Kept& made = one.emplace_back(on_free_);
  cudaError_t error = cudaGraphCreate(&made.graph, 0);
  if (error != cudaSuccess) return result_of(error, "cudaGraphCreate", launches);
  for (std::size_t i = 0; i < launches.size(); i++) {
    error = add_node(made, launches, i);
    if (error != cudaSuccess)
      return {error, (made.nodes.size() > i ? "cudaGraphAddDependencies of "
                                            : "cudaGraphAddKernelNode of ") +
                         launches.text(i)};
  }
  error = cudaGraphInstantiateWithFlags(&made.exec, made.graph, 0);
  if (error != cudaSuccess) return result_of(error, "cudaGraphInstantiateWithFlags", launches);
  made.hash = hash;
  if (kept_.size() >= kMostKept) kept_.pop_back();
  kept_.splice(kept_.begin(), one);
  return {};
}

CallResult KernelGraphs::update(Kept& kept, Launches& launches) {
  for (const std::size_t i : differ_) {
    const cudaError_t error =
        cudaGraphExecKernelNodeSetParams(kept.exec, kept.nodes[i], &launches.params(i));
    if (error != cudaSuccess)
      return {error, "cudaGraphExecKernelNodeSetParams of " + launches.text(i)};
  }
  return {};
}

CallResult KernelGraphs::launch_singly(Launches& launches, cudaStream_t stream) {
  for (std::size_t i = 0; i < launches.size(); i++) {
    const cudaKernelNodeParams& params = launches.params(i);
    const cudaError_t error = cudaLaunchKernel(params.func, params.gridDim, params.blockDim,
                                               params.kernelParams, params.sharedMemBytes, stream);
    if (error != cudaSuccess) return {error, launches.text(i)};
    n_launched_++;
  }
  return {};
}

// A refused graph launch has added nothing to the stream.
CallResult KernelGraphs::launch(Launches& launches, cudaStream_t stream, bool comes_once) {
  if (!on_ || comes_once || launches.size() < kFewestKernels)
    return launch_singly(launches, stream);
  const std::uint64_t hash = launches.hash();
  CallResult answer;
  const Place found = nearest(launches, hash);
  const bool is_kept = found != kept_.end();
  if (is_kept) {
    kept_.splice(kept_.begin(), kept_, found);
    answer = update(kept_.front(), launches);
  } else {
    if (!seen(hash) || skips_attempt()) return launch_singly(launches, stream);
    answer = make(launches, hash);
    if (answer.error != cudaSuccess) return launch_without_graph(answer, launches, stream);
  }
  if (answer.error == cudaSuccess)
    answer = result_of(cudaGraphLaunch(kept_.front().exec, stream), "cudaGraphLaunch", launches);
  if (answer.error != cudaSuccess) {
    kept_.pop_front();  // its state is unknown, and its memory is needed
    return launch_without_graph(answer, launches, stream);
  }
  if (!is_kept) n_refused_ = 0;
  std::swap(kept_.front().launches, launches);
  n_launched_++;
  return {};
}

bool KernelGraphs::skips_attempt() {
  if (n_to_skip_ == 0) return false;
  n_to_skip_--;
  return true;
}

CallResult KernelGraphs::launch_without_graph(const CallResult& answer,
                                              Launches& launches,
                                              cudaStream_t stream) {
  if (is_permanent(answer.error)) return answer;
  static_cast<void>(cudaGetLastError());
  if (refused_.error == cudaSuccess) refused_ = answer;
  n_refused_ = std::min(n_refused_ + 1, kMostCounted);
  n_to_skip_ = (1 << n_refused_) / 8;
  return launch_singly(launches, stream);
}

}  // namespace kernels::DECOSCOPE_GPU
