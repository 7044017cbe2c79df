#include "kernels/cpu/cpu_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/checks.h"
#include "kernels/cpu/memory/block_pool.h"
#include "kernels/cpu/memory/numa_nodes.h"
#include "kernels/error.h"
#include "kernels/processors.h"
#include "kernels/thread_sharing.h"
#include "kernels/unfused.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace kernels::cpu {
namespace {

constexpr std::int64_t kHugePage = 2 << 20;

// AddressSanitizer finds an access to freed memory only if its own allocator freed it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPoolsBlocks = false;
#else
constexpr bool kPoolsBlocks = true;
#endif

BlockPool& pool() {
  // Never destroyed: a model that lives until the program ends still frees its memory here.
  static auto& blocks = *new BlockPool;
  return blocks;
}

int usable_processors() {
  const auto n = static_cast<int>(usable_processor_ids().size());
  return n > 0 ? n : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Tells AddressSanitizer that only the first `used` of `had` bytes are valid, so that it finds
/// accesses to the bytes that were added by rounding up. Does nothing without AddressSanitizer.
void fence([[maybe_unused]] void* data,
           [[maybe_unused]] std::int64_t used,
           [[maybe_unused]] std::int64_t had) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(data, used);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(data) + used, had - used);
#endif
}

void* allocate(Device&, std::int64_t bytes, const char* what) {
  return allocate_bytes(bytes, what);
}
void release(Device&, void* data) {
  free_bytes(data);
}
void gather(Device&, const float* from, const std::int64_t* at, int n, float* to_host) {
  for (int i = 0; i < n; i++) to_host[i] = from[at[i]];
}
void copy_rows_in(Device&,
                  void* const* to_host,
                  const void* from,
                  std::int64_t row_bytes,
                  std::int64_t stride_bytes,
                  int n_rows) {
  check_download_rows(row_bytes, stride_bytes, n_rows);
  for (int r = 0; r < n_rows; r++)
    std::memcpy(to_host[r], static_cast<const char*>(from) + r * stride_bytes, row_bytes);
}
void copy_in(Device&, void* to, const void* from_host, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from_host, bytes);
}

}  // namespace

void* allocate_bytes(std::int64_t bytes, const char* what) {
  ensure(bytes >= 0, "allocate: bytes is negative");
  const bool pooled = bytes >= BlockPool::kLeast && bytes <= BlockPool::kMost;
  const std::int64_t align = bytes >= kHugePage && !pooled ? kHugePage : 64;
  const std::int64_t rounded = std::max<std::int64_t>(align, (bytes + align - 1) / align * align);
  void* data = pooled && kPoolsBlocks ? pool().take(rounded) : nullptr;
  if (!data) data = std::aligned_alloc(align, rounded);
  if (!data) {
    throw Error(ErrorCode::Resources, "memory: " + std::to_string(bytes / 1'000'000 + 1) +
                                          " MB could not be allocated" +
                                          (*what ? std::string(" for ") + what : "") +
                                          "; try a smaller model, a shorter context or bf16");
  }
  if (align == kHugePage) {
    // The first write to a huge page allocates all of it. If at least half of the last huge page
    // would be empty, ordinary pages are used for that part.
    const std::int64_t whole = bytes / kHugePage * kHugePage;
    madvise(data, bytes - whole > kHugePage / 2 ? rounded : whole, MADV_HUGEPAGE);
  }
  fence(data, bytes, rounded);
  return data;
}

void free_bytes(void* data) {
  if (!kPoolsBlocks || !pool().give_back(data)) std::free(data);
}

void drop_huge_pages(void* data, std::int64_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (at + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (at + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Scratch::~Scratch() {
  free_bytes(data_);
}

char* Scratch::at_least(std::int64_t bytes) {
  if (bytes > bytes_) {
    const std::int64_t wanted = std::max(bytes, bytes_ * 2);
    void* data = allocate_bytes(wanted);
    free_bytes(data_);
    data_ = static_cast<char*>(data);
    bytes_ = wanted;
  }
  if (bytes > 0) fence(data_, bytes, bytes_);
  return data_;
}

RecentWeights::RecentWeights() {
  std::int64_t bytes = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (bytes <= 0) bytes = 16 << 20;
  cache_bytes_ = bytes / 4 * 3;
}

bool RecentWeights::use(const void* weights, std::int64_t bytes) {
  n_used_ += bytes;
  const auto [last, is_new] = used_until_.try_emplace(weights, 0);
  const bool recent = !is_new && n_used_ - last->second <= cache_bytes_;
  last->second = n_used_;
  return recent;
}

CpuDevice::CpuDevice(int n_threads, const InstructionSet& set, std::vector<std::vector<int>> nodes)
    : Device(set.ops),
      kernels(*set.kernels),
      own(n_threads),
      own_pool_(n_threads, std::move(nodes)) {}

void CpuDevice::borrow_threads(CpuDevice& from) {
  const auto n = static_cast<std::size_t>(from.own_pool_.n_made());
  while (own.size() < n) own.emplace_back();
  pool_ = &from.own_pool_;
}

void add_memory_ops(Ops& ops) {
  ops.allocate = allocate;
  ops.release = release;
  ops.upload = copy_in;
  ops.download = copy_in;
  ops.download_rows = copy_rows_in;
  ops.copy = copy_in;
  ops.gather = gather;
}

Ops make_ops(const char* name) {
  Ops ops = {};
  ops.name = name;
  add_memory_ops(ops);
  add_matrix_ops(ops);
  add_row_ops(ops);
  add_cache_ops(ops);
  add_attention_ops(ops);
  add_attention_weights_ops(ops);
  add_pick_ops(ops);
  unfused::add_ops(ops);
  return ops;
}

}  // namespace kernels::cpu

namespace kernels {

void set_active_threads(Device& device, int n) {
  auto* cpu = dynamic_cast<cpu::CpuDevice*>(&device);
  if (cpu && cpu->own_pool().n_threads() != n) cpu->own_pool().share_among(n);
}

int active_threads(const Device& device) {
  const auto* cpu = dynamic_cast<const cpu::CpuDevice*>(&device);
  return cpu ? cpu->own_pool().n_threads() : device.n_threads();
}

std::vector<int> thread_counts_to_try(const Device& device) {
  std::vector<int> counts{device.n_threads()};
  if (!dynamic_cast<const cpu::CpuDevice*>(&device)) return counts;
  const std::vector<int> ids = cpu::usable_processor_ids();
  for (const int n : cpu::thread_counts(cpu::read_processors(ids)))
    if (n < counts.back()) counts.push_back(n);
  return counts;
}

void borrow_threads(Device& device, Device& from) {
  auto* cpu = dynamic_cast<cpu::CpuDevice*>(&device);
  auto* lender = dynamic_cast<cpu::CpuDevice*>(&from);
  if (cpu && lender) cpu->borrow_threads(*lender);
}

std::unique_ptr<Device> open_cpu(int n_threads, const Ops& ops) {
  ensure(n_threads >= 0 && n_threads <= 1024, "open_cpu: n_threads must be 0 to 1024");
  const int n = n_threads ? n_threads : cpu::usable_processors();
  return std::make_unique<cpu::CpuDevice>(n, cpu::set_of(ops),
                                          cpu::read_numa_nodes(cpu::usable_processor_ids()));
}

}  // namespace kernels
