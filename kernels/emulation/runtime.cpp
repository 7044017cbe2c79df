// The runtime's calls: device memory with inaccessible pages, streams that work when the host waits, permanent errors.
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/emulation/emulation_checks.h"
#include "kernels/emulation/launched.h"
#include "kernels/emulation/watch.h"

namespace kernels::emulation {

struct Stream {
  std::atomic<std::thread::id> owner;       // thread that added the last work
  std::vector<std::function<void()>> work;  // in order; done when the host waits
  void add(std::function<void()> item) {
    owner = std::this_thread::get_id();
    work.push_back(std::move(item));
  }
};
struct Event {
  Stream* stream = nullptr;
};

namespace {

constexpr std::int64_t kMemoryBytes = std::int64_t{4} << 30;
constexpr int kVersion = 13'000;  // of CUDA

/// A registered kernel.
struct Kernel {
  const char* name = nullptr;
  std::size_t n_arguments = 0;
  Bind bind = nullptr;           // null: unknown kernel
  std::size_t static_bytes = 0;  // largest use in a run
  std::size_t allowed = 0;       // dynamic memory that its attribute allows; 0: not set
  bool takes(std::size_t dynamic) const {
    const std::size_t both = static_bytes + dynamic;
    return allowed > 0 ? dynamic <= allowed && both <= kMaxShared : both <= kPlainShared;
  }
};

std::int64_t call_to_fail() {
  const char* text = std::getenv("DECOSCOPE_FAIL_CALL");
  return text ? std::atoll(text) : 0;
}

// The state that host threads share, with one lock.
struct Runtime {
  std::mutex lock;
  std::map<char*, Allocation> allocations;  // key: data
  std::int64_t in_use = 0, peak = 0, limit = kMemoryBytes;
  bool host_off = false;
  int n_at_work = 0;  // threads in kernels and copies
  std::string fault;
  std::vector<Stream*> streams;
  std::map<const void*, Kernel> kernels;
  std::int64_t n_calls = 0, fail_at = call_to_fail();
  cudaError_t fails_for_good = cudaSuccess;  // the permanent error of fail_call_for_good
  bool fails_for_memory = false;
  bool never_ends = false;   // of streams' work
  int major = 9, minor = 0;  // compute capability
  int n_multiprocessors = 132;
  int driver = kVersion;
  std::string title = "this CPU, emulated";
  std::shared_ptr<const std::function<void(const std::string&)>> before_call;
  std::map<std::string, std::int64_t, std::less<>> calls;
  std::string failed;
  std::atomic<cudaError_t> sticky{cudaSuccess};
};
Runtime& runtime() {
  // Never destroyed: a model that lives until the program ends still frees its memory here.
  static Runtime& all = *new Runtime;
  return all;
}
thread_local cudaError_t last_error = cudaSuccess;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

auto before_call() {
  const std::lock_guard hold(runtime().lock);
  return runtime().before_call;
}

void set_access(const Runtime& all, int access) {
  for (const auto& [data, allocation] : all.allocations)
    mprotect(allocation.mapped, allocation.mapped_bytes, access);
}

/// Makes device memory accessible during the lifetime of an object.
class AtWork {
 public:
  AtWork() {
    Runtime& all = runtime();
    const std::lock_guard hold(all.lock);
    if (all.n_at_work++ == 0 && all.host_off) set_access(all, PROT_READ | PROT_WRITE);
  }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() {
    Runtime& all = runtime();
    const std::lock_guard hold(all.lock);
    if (--all.n_at_work == 0 && all.host_off) set_access(all, PROT_NONE);
  }
};

void stay(const Fault& fault) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.fault = fault.what();
  all.sticky = fault.error;
}

/// Does the work of a stream. A failure sets the permanent error and drops the remaining work.
cudaError_t drain(Stream& stream) {
  Runtime& all = runtime();
  const auto work = std::exchange(stream.work, {});
  if (work.empty()) return all.sticky;
  const AtWork at_work;
  for (const auto& item : work) {
    if (all.sticky != cudaSuccess) break;
    try {
      item();
    } catch (const Fault& fault) {
      stay(fault);
    }
  }
  return all.sticky;
}

void drain_own() {
  Runtime& all = runtime();
  std::vector<Stream*> own;
  {
    const std::lock_guard hold(all.lock);
    for (Stream* stream : all.streams)
      if (stream->owner == std::this_thread::get_id()) own.push_back(stream);
  }
  for (Stream* stream : own) drain(*stream);
}

cudaError_t invalid() {
  return refused(cudaErrorInvalidValue);
}

bool fits(const dim3& grid, const dim3& block) {
  const auto n_threads = std::uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y < 65536 && grid.z < 65536 &&
         n_threads > 0 && n_threads <= kMaxThreads;
}

}  // namespace

cudaError_t begin_call(const char* name, cudaError_t refusal) {
  Runtime& all = runtime();
  if (const auto work = before_call()) (*work)(name);
  if (const cudaError_t error = all.sticky) return last_error = error;
  const std::lock_guard hold(all.lock);
  all.calls[name]++;
  if (++all.n_calls != all.fail_at) return cudaSuccess;
  all.failed = name;
  if (all.fails_for_good != cudaSuccess) all.sticky = refusal = all.fails_for_good;
  if (all.fails_for_memory) refusal = cudaErrorMemoryAllocation;
  return last_error = refusal;
}

cudaError_t refused(cudaError_t error) {
  return last_error = error;
}

void with_each_allocation(const std::function<void(Allocation&)>& work) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  for (auto& [data, allocation] : all.allocations) work(allocation);
}

bool on_device(const void* data, std::size_t bytes) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  auto* at = const_cast<char*>(static_cast<const char*>(data));
  auto found = all.allocations.upper_bound(at);
  if (found == all.allocations.begin()) return false;
  const Allocation& allocation = std::prev(found)->second;
  return at + bytes <= allocation.data + allocation.bytes;
}

void add_to_stream(cudaStream_t stream, std::function<void()> item) {
  stream->add(std::move(item));
}

cudaError_t read_launch(const cudaKernelNodeParams& params, Launched& launched) {
  if (!fits(params.gridDim, params.blockDim)) return refused(cudaErrorInvalidConfiguration);
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  const Kernel& kernel = all.kernels[params.func];
  if (!kernel.bind) return refused(cudaErrorInvalidDeviceFunction);
  if (params.extra || !kernel.takes(params.sharedMemBytes)) return invalid();
  for (std::size_t i = 0; i < kernel.n_arguments; i++)
    if (!params.kernelParams || !params.kernelParams[i]) return invalid();
  launched = {kernel.name,           params.func,
              params.gridDim,        params.blockDim,
              params.sharedMemBytes, kernel.bind(params.func, params.kernelParams)};
  return cudaSuccess;
}

void know_kernel(const void* handle, const char* name, std::size_t n_arguments, Bind bind) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  Kernel& kernel = all.kernels[handle];
  kernel.name = name;
  kernel.n_arguments = n_arguments;
  kernel.bind = bind;
}

// nvcc knows a kernel's static objects before the first launch; the emulation learns them during
// the first run. So it refuses a kernel's first launch with too much memory while the launch runs,
// and later launches before they run, as a GPU does.
void count_static(const Launched& launched, std::size_t static_bytes) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  Kernel& own = all.kernels[launched.kernel];
  own.static_bytes = std::max(own.static_bytes, static_bytes);
  if (own.takes(launched.shared_bytes)) return;
  throw Fault("kernel " + launched.name + ": " + std::to_string(own.static_bytes) +
                  " bytes of static and " + std::to_string(launched.shared_bytes) +
                  " of dynamic shared memory are more than a block may have",
              cudaErrorInvalidValue);
}

std::string place_of(const void* address) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  const auto* at = static_cast<const char*>(address);
  for (const auto& [data, allocation] : all.allocations) {
    const std::string of = std::to_string(allocation.bytes) + " bytes of device memory";
    const char* data_end = data + allocation.bytes;
    const auto page = static_cast<std::ptrdiff_t>(page_bytes());
    if (at >= data_end && at < allocation.end() + page)
      return std::to_string(at - data_end) + " bytes past the end of " + of;
    if (at < data && at >= allocation.mapped - page)
      return std::to_string(data - at) + " bytes before the start of " + of;
  }
  return "an address where there is no device memory";
}

void fence_host_off(bool on) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.host_off = on;
  set_access(all, on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

std::string fault_text() {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  return all.fault;
}

void forget_faults() {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.fault.clear();
  all.sticky = cudaSuccess;
  for (Stream* stream : all.streams) stream->work.clear();
}

std::int64_t fail_call(std::int64_t n) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  const std::int64_t made = std::exchange(all.n_calls, 0);
  all.fail_at = n;
  all.fails_for_good = cudaSuccess;
  all.fails_for_memory = false;
  all.failed.clear();
  return made;
}

void fail_call_for_good(std::int64_t n, int error) {
  fail_call(n);
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.fails_for_good = static_cast<cudaError_t>(error);
}

void fail_call_for_memory(std::int64_t n) {
  fail_call(n);
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.fails_for_memory = true;
}

void work_never_ends(bool on) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.never_ends = on;
}

void title(const std::string& name) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.title = name;
}

void driver_version(int version) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.driver = version;
}

void multiprocessors(int n) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.n_multiprocessors = n;
}

void capability(int major, int minor) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.major = major;
  all.minor = minor;
}

void before_calls(std::function<void(const std::string&)> work) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.before_call =
      work ? std::make_shared<const std::function<void(const std::string&)>>(std::move(work))
           : nullptr;
}

std::int64_t calls_of(const std::string& name) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  const auto found = all.calls.find(name);
  return found == all.calls.end() ? 0 : found->second;
}

std::string failed_call() {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  return all.failed;
}

void limit_memory(std::int64_t bytes) {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.limit = bytes;
}

std::int64_t memory_in_use() {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  return all.in_use;
}

std::int64_t memory_peak() {
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  return std::exchange(all.peak, all.in_use);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  if (const cudaError_t error = begin_call("cudaDriverGetVersion")) return error;
  *version = runtime().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  if (const cudaError_t error = begin_call("cudaRuntimeGetVersion")) return error;
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = begin_call("cudaGetDeviceCount")) return error;
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = begin_call("cudaGetDeviceProperties")) return error;
  if (device != 0) return last_error = cudaErrorInvalidDevice;
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  *properties = {{}, static_cast<std::size_t>(all.limit), all.major, all.minor, 1, 0, 0, 0, {}};
  all.title.copy(properties->name, sizeof properties->name - 1);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = begin_call("cudaSetDevice")) return error;
  return device == 0 ? cudaSuccess : last_error = cudaErrorInvalidDevice;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = nullptr;
  if (const cudaError_t error = begin_call("cudaMalloc", cudaErrorMemoryAllocation)) return error;
  if (bytes == 0) return cudaSuccess;
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  if (all.in_use + static_cast<std::int64_t>(bytes) > all.limit)
    return last_error = cudaErrorMemoryAllocation;
  const std::size_t page = page_bytes(), rounded = (bytes + 15) / 16 * 16;
  const std::size_t usable = (rounded + page - 1) / page * page;
  void* mapped = mmap(nullptr, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return last_error = cudaErrorMemoryAllocation;
  char* const begin = static_cast<char*>(mapped) + page;
  const Allocation allocation{
      .mapped = begin, .mapped_bytes = usable, .data = begin + usable - rounded, .bytes = bytes};
  mprotect(allocation.mapped, usable, PROT_READ | PROT_WRITE);
  fill_marks(allocation);
  std::memset(allocation.data, 0xff, bytes);
  if (all.host_off && all.n_at_work == 0) mprotect(allocation.mapped, usable, PROT_NONE);
  all.in_use += static_cast<std::int64_t>(bytes);
  all.peak = std::max(all.peak, all.in_use);
  *data = allocation.data;
  all.allocations.emplace(allocation.data, allocation);
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  drain_own();
  Runtime& all = runtime();
  {
    const std::lock_guard hold(all.lock);
    const auto found = all.allocations.find(static_cast<char*>(data));
    if (found == all.allocations.end()) return invalid();
    const Allocation allocation = found->second;
    all.allocations.erase(found);
    all.in_use -= static_cast<std::int64_t>(allocation.bytes);
    munmap(allocation.mapped - page_bytes(), allocation.mapped_bytes + 2 * page_bytes());
  }
  return begin_call("cudaFree");
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  *data = nullptr;
  if (const cudaError_t error = begin_call("cudaMallocHost", cudaErrorMemoryAllocation))
    return error;
  *data = std::malloc(bytes);
  return *data ? cudaSuccess : last_error = cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* data) {
  drain_own();
  std::free(data);
  return begin_call("cudaFreeHost");
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = 0;
  if (const cudaError_t error = begin_call("cudaMemGetInfo")) return error;
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  *total = static_cast<std::size_t>(all.limit);
  *free = static_cast<std::size_t>(std::max<std::int64_t>(0, all.limit - all.in_use));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  if (const cudaError_t error = begin_call("cudaStreamCreateWithFlags")) return error;
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  all.streams.push_back(new Stream{{std::this_thread::get_id()}, {}});
  *stream = all.streams.back();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  drain(*stream);
  {
    Runtime& all = runtime();
    const std::lock_guard hold(all.lock);
    std::erase(all.streams, stream);
    delete stream;
  }
  return begin_call("cudaStreamDestroy");
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaStreamSynchronize")) return error;
  return last_error = drain(*stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaStreamQuery")) return error;
  {
    Runtime& all = runtime();
    const std::lock_guard hold(all.lock);
    if (all.never_ends) return last_error = cudaErrorNotReady;
  }
  return last_error = drain(*stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  if (const cudaError_t error = begin_call("cudaEventCreateWithFlags")) return error;
  *event = new Event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return begin_call("cudaEventDestroy");
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaEventRecord")) return error;
  event->stream = stream;
  return cudaSuccess;
}

// Does all work of the stream, not only the work before the event.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = begin_call("cudaEventSynchronize")) return error;
  return event->stream ? last_error = drain(*event->stream) : cudaSuccess;
}

cudaError_t cudaGetLastError() {
  if (runtime().sticky != cudaSuccess) return runtime().sticky;
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = begin_call("cudaDeviceGetAttribute")) return error;
  if (device != 0) return last_error = cudaErrorInvalidDevice;
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? runtime().major
           : attribute == cudaDevAttrMultiProcessorCount  ? runtime().n_multiprocessors
                                                          : static_cast<int>(kMaxShared);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (const cudaError_t error = begin_call("cudaFuncGetAttributes")) return error;
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  attributes->sharedSizeBytes = all.kernels[kernel].static_bytes;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (const cudaError_t error = begin_call("cudaFuncSetAttribute")) return error;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;  // a hint
  Runtime& all = runtime();
  const std::lock_guard hold(all.lock);
  Kernel& own = all.kernels[kernel];
  if (value < 0 || own.static_bytes + static_cast<std::size_t>(value) > kMaxShared)
    return invalid();
  own.allowed = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             std::size_t shared_bytes,
                             cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaLaunchKernel")) return error;
  Launched launched;
  const cudaKernelNodeParams params = {const_cast<void*>(kernel),           grid,      block,
                                       static_cast<unsigned>(shared_bytes), arguments, nullptr};
  if (const cudaError_t error = read_launch(params, launched)) return error;
  stream->add([launched = std::move(launched)] { run_watched(launched); });
  return cudaSuccess;
}

}  // namespace kernels::emulation
