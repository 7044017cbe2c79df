#include <algorithm>
#include <utility>

#include "kernels/cuda/graphs.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kMostCounted = 13;  // refusals: 1,024 lists without an attempt

bool same_extent(const dim3& a, const dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

std::string told(const Launches& launches) {
  std::vector<const char*> names;
  for (std::size_t i = 0; i < launches.size(); i++) names.push_back(launches.name(i));
  return counted_names(names);
}

Answer answered(cudaError_t error, const char* call, const Launches& launches) {
  if (error == cudaSuccess) return {};
  return {error, std::string(call) + " of " + told(launches)};
}

}  // namespace

std::string counted_names(std::span<const char* const> names) {
  std::vector<std::string> told;
  std::string text = std::to_string(names.size()) + " kernels (";
  for (const char* one : names) {
    if (std::find(told.begin(), told.end(), one) != told.end()) continue;
    text += std::string(told.empty() ? "" : ", ") + one;
    told.emplace_back(one);
  }
  return text + ")";
}

bool stays(cudaError_t error) {
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

std::string Launches::told(std::size_t i) const {
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
  told_arguments_.clear();
  for (std::size_t at = one.places; at < places_end(i); at++)
    told_arguments_.push_back(bytes_.data() + places_[at]);
  told_.func = const_cast<void*>(one.kernel);
  told_.gridDim = one.grid;
  told_.blockDim = one.block;
  told_.sharedMemBytes = one.shared_bytes;
  told_.kernelParams = told_arguments_.data();
  return told_;
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

// Pointers are 8 bytes and aligned, alone and within structures. A number that looks like one is
// taken for one.
bool Launches::point_into(const void* begin, std::int64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for (std::size_t at = 0; at + sizeof first <= bytes_.size(); at += sizeof first) {
    std::uintptr_t word;
    std::memcpy(&word, bytes_.data() + at, sizeof word);
    if (word - first < static_cast<std::uintptr_t>(bytes)) return true;
  }
  return false;
}

// A graph at work ends its work first.
KernelGraphs::Kept::~Kept() {
  if (exec) given_back(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  if (graph) given_back(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// The graph of these kernels that differs least. One that differs in most of them is of another
// number of rows, and taken only where there is no room for a further one.
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

// Lists that come for the first time may be those of a load, which are not worth a graph.
bool KernelGraphs::seen(std::uint64_t hash) {
  const auto found = std::find(seen_.begin(), seen_.end(), hash);
  const bool is_seen = found != seen_.end();
  if (is_seen) seen_.erase(found);
  seen_.push_front(hash);
  if (seen_.size() > kMostSeen) seen_.pop_back();
  return is_seen;
}

// Every kernel waits for the one before it, as in a stream: before it begins or, with an early
// edge, in wait_for_earlier().
cudaError_t KernelGraphs::add_node(Kept& made, Launches& launches, std::size_t i) {
  const bool early = early_ && i > 0 && launches.is_early(i);
  const bool behind = i > 0 && !early;
  cudaGraphNode_t node = nullptr;
  if (const cudaError_t error =
          cudaGraphAddKernelNode(&node, made.graph, behind ? &made.nodes.back() : nullptr,
                                 behind ? 1 : 0, &launches.params(i));
      error != cudaSuccess)
    return error;
  const cudaError_t error =
      early ? add_early_edge(made.graph, made.nodes.back(), node) : cudaSuccess;
  made.nodes.push_back(node);
  return error;
}

// In front of the others.
Answer KernelGraphs::make(Launches& launches, std::uint64_t hash) {
  std::list<Kept> one;
  Kept& made = one.emplace_back(given_back_);
  cudaError_t error = cudaGraphCreate(&made.graph, 0);
  if (error != cudaSuccess) return answered(error, "cudaGraphCreate", launches);
  for (std::size_t i = 0; i < launches.size(); i++) {
    error = add_node(made, launches, i);
    if (error != cudaSuccess)
      return {error, (made.nodes.size() > i ? "cudaGraphAddDependencies of "
                                            : "cudaGraphAddKernelNode of ") +
                         launches.told(i)};
  }
  error = cudaGraphInstantiateWithFlags(&made.exec, made.graph, 0);
  if (error != cudaSuccess) return answered(error, "cudaGraphInstantiateWithFlags", launches);
  made.hash = hash;
  if (kept_.size() >= kMostKept) kept_.pop_back();
  kept_.splice(kept_.begin(), one);
  return {};
}

Answer KernelGraphs::tell(Kept& kept, Launches& launches) {
  for (const std::size_t i : differ_) {
    const cudaError_t error =
        cudaGraphExecKernelNodeSetParams(kept.exec, kept.nodes[i], &launches.params(i));
    if (error != cudaSuccess)
      return {error, "cudaGraphExecKernelNodeSetParams of " + launches.told(i)};
  }
  return {};
}

Answer KernelGraphs::one_by_one(Launches& launches, cudaStream_t stream) {
  for (std::size_t i = 0; i < launches.size(); i++) {
    const cudaKernelNodeParams& params = launches.params(i);
    const cudaError_t error = cudaLaunchKernel(params.func, params.gridDim, params.blockDim,
                                               params.kernelParams, params.sharedMemBytes, stream);
    if (error != cudaSuccess) return {error, launches.told(i)};
    n_launched_++;
  }
  return {};
}

// A graph whose launch is refused has put nothing in the stream.
Answer KernelGraphs::launch(Launches& launches, cudaStream_t stream, bool comes_once) {
  if (!on_ || comes_once || launches.size() < kFewestKernels) return one_by_one(launches, stream);
  const std::uint64_t hash = launches.hash();
  Answer answer;
  const Place found = nearest(launches, hash);
  const bool is_kept = found != kept_.end();
  if (is_kept) {
    kept_.splice(kept_.begin(), kept_, found);
    answer = tell(kept_.front(), launches);
  } else {
    if (!seen(hash) || passes()) return one_by_one(launches, stream);
    answer = make(launches, hash);
    if (answer.error != cudaSuccess) return go_without(answer, launches, stream);
  }
  if (answer.error == cudaSuccess)
    answer = answered(cudaGraphLaunch(kept_.front().exec, stream), "cudaGraphLaunch", launches);
  if (answer.error != cudaSuccess) {
    kept_.pop_front();  // nobody knows what it was told, and its memory is wanted
    return go_without(answer, launches, stream);
  }
  if (!is_kept) n_refused_ = 0;
  std::swap(kept_.front().launches, launches);
  n_launched_++;
  return {};
}

bool KernelGraphs::passes() {
  if (to_pass_ == 0) return false;
  to_pass_--;
  return true;
}

Answer KernelGraphs::go_without(const Answer& answer, Launches& launches, cudaStream_t stream) {
  if (stays(answer.error)) return answer;
  static_cast<void>(cudaGetLastError());
  if (refused_.error == cudaSuccess) refused_ = answer;
  n_refused_ = std::min(n_refused_ + 1, kMostCounted);
  to_pass_ = (1 << n_refused_) / 8;
  return one_by_one(launches, stream);
}

}  // namespace kernels::DECOSCOPE_GPU
