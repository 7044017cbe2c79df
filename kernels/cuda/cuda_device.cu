#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/side.h"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr std::size_t kReportedLaunches = 6;

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// True if the device keeps a record of freed memory and refuses kernels whose arguments point into
/// it. This is always on in the emulation, and on for GPUs in debug builds (other builds pass
/// NDEBUG to nvcc: cmake/nvcc.cmake).
constexpr bool kRemembersFreed =
#if defined(NDEBUG)
    kEmulated;
#else
    true;
#endif

/// The value of an environment variable that may be one of two words; empty if unset.
std::string one_of(const char* variable, const std::string& one, const std::string& other) {
  const char* named = std::getenv(variable);
  const std::string found = named ? named : "";
  if (!found.empty() && found != one && found != other)
    throw Error(ErrorCode::Usage, std::string(variable) + ": found \"" + found + "\", expected " +
                                      one + " or " + other);
  return found;
}

// CUDA_GRAPHS=off launches every kernel by itself, for comparison.
bool graphs_wanted() {
  return one_of("CUDA_GRAPHS", "on", "off") != "off";
}

// Off by default: on an H100 it costs more than it gains (docs/cuda.md, "Speed on an H100").
bool early_wanted() {
  return one_of("CUDA_EARLY", "on", "off") == "on";
}

// These products differ in the last bits from a step's, so they are off by default.
bool prompts_by_products_wanted() {
  return one_of("CUDA_PROMPTS", "own", "cublas") == "cublas";
}

std::string name_of(int ordinal) {
  return kEmulated ? "cuda:emulated" : "cuda:" + std::to_string(ordinal);
}

void* allocate(Device& device, std::int64_t bytes, const char* what) {
  return cuda_of(device).allocate(bytes, what);
}
void release(Device& device, void* data) {
  cuda_of(device).release(data);
}
void upload(Device& device, void* to, const void* from_host, std::int64_t bytes) {
  cuda_of(device).upload(to, from_host, bytes);
}
void download(Device& device, void* to_host, const void* from, std::int64_t bytes) {
  cuda_of(device).download(to_host, from, bytes);
}

void download_rows(Device& device,
                   void* const* to_host,
                   const void* from,
                   std::int64_t row_bytes,
                   std::int64_t stride_bytes,
                   int n_rows) {
  check_download_rows(row_bytes, stride_bytes, n_rows);
  CudaDevice& cuda = cuda_of(device);
  cuda.request_rows(to_host, from, row_bytes, stride_bytes, n_rows);
  cuda.finish_unless_deferred();
}
void copy_within(Device& device, void* to, const void* from, std::int64_t bytes) {
  cuda_of(device).copy(to, from, bytes);
}

/// Name and error of a failed call. Clears the error, so that no later call returns it.
std::string failed_call_text(const char* call, cudaError_t error) {
  static_cast<void>(cudaGetLastError());
  return std::string(call) + ": " + error_text(error);
}

/// The reason why the devices cannot be counted. If the driver's version is known and explains it,
/// this is the reason.
std::string why_not_counted(cudaError_t error) {
  const std::string count = failed_call_text("cudaGetDeviceCount", error);
  int driver = 0, runtime = 0;  // as CUDA numbers them; 0: none
  if (const cudaError_t refused = cudaDriverGetVersion(&driver); refused != cudaSuccess)
    return count + "; " + failed_call_text("cudaDriverGetVersion", refused);
  if (const cudaError_t refused = cudaRuntimeGetVersion(&runtime); refused != cudaSuccess)
    return count + "; " + failed_call_text("cudaRuntimeGetVersion", refused);
  const std::string old = driver_words(driver, runtime);
  return old.empty() ? count : old + " (" + count + ")";
}

int count_devices(std::string& reason) {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess && n > 0) return n;
  reason = error == cudaSuccess ? "no NVIDIA GPU was found" : why_not_counted(error);
  return 0;
}

// Formats UUID and bus id as NVML does. The emulated device has neither.
GpuIdentity identity_of(const cudaDeviceProp& found) {
  if (kEmulated) return {};
  std::string uuid = "GPU";
  for (std::size_t i = 0; i < sizeof found.uuid.bytes; i++) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", found.uuid.bytes[i] & 0xFF);
    const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    if (begins_group) uuid += '-';
    uuid += digits;
  }
  char bus[40];
  std::snprintf(bus, sizeof bus, "%08X:%02X:%02X.0", static_cast<unsigned>(found.pciDomainID),
                static_cast<unsigned>(found.pciBusID), static_cast<unsigned>(found.pciDeviceID));
  return {uuid, bus};
}

GpuProperties properties_of(int ordinal) {
  cudaDeviceProp found = {};
  if (const cudaError_t error = cudaGetDeviceProperties(&found, ordinal); error != cudaSuccess)
    throw Error(ErrorCode::Device, name_of(ordinal) + ": " +
                                       failed_call_text("cudaGetDeviceProperties", error) +
                                       kKeptWords + "; try --device cpu");
  return {found.name, static_cast<std::int64_t>(found.totalGlobalMem), found.major, found.minor,
          identity_of(found)};
}

const Ops& table() {
  static const Ops ops = [] {
    Ops filled = {};
    filled.name = kEmulated ? "cuda emulated" : "cuda";
    add_memory_ops(filled);
    add_matrix_ops(filled);
    add_row_ops(filled);
    add_cache_ops(filled);
    add_attention_ops(filled);
    add_pick_ops(filled);
    add_distribution_ops(filled);
    add_prompt_ops(filled);
    return filled;
  }();
  return ops;
}

const TrainKernels& training() {
  static const TrainKernels kernels = [] {
    TrainKernels filled = {};
    add_train_norm_kernels(filled);
    add_train_row_kernels(filled);
    add_train_head_kernels(filled);
    add_train_attention_kernels(filled);
    add_train_products(filled);
    return filled;
  }();
  return kernels;
}

std::unique_ptr<Device> open_device(int ordinal) {
  return std::make_unique<CudaDevice>(ordinal, table());
}

std::vector<std::string> take_notes_of_device(Device& device) {
  return cuda_of(device).take_notes();
}

/// Pending warnings of closed devices.
struct ClosedNotes {
  std::mutex lock;
  std::vector<std::string> all;
};
ClosedNotes& closed_notes() {
  static ClosedNotes& all = *new ClosedNotes;  // a device may close when the program ends
  return all;
}

}  // namespace

void add_memory_ops(Ops& ops) {
  ops.allocate = allocate;
  ops.release = release;
  ops.upload = upload;
  ops.download = download;
  ops.download_rows = download_rows;
  ops.copy = copy_within;
}

CudaDevice::CudaDevice(int ordinal, const Ops& ops)
    : Device(ops),
      name_(name_of(ordinal)),
      ordinal_(ordinal),
      prompts_by_products_(prompts_by_products_wanted()),
      graphs_(graphs_wanted(),
              [this](cudaError_t error, const char* call) { note_free(error, call); }) {
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

void CudaDevice::open() {
  expect_usable();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  for (Half& half : halves_) {
    half.data = pinned(kHalfBytes, "copies to the device");
    check(cudaEventCreateWithFlags(&half.copied, cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
  }
  download_buffer_ = pinned(kHalfBytes, kForCopiesBack);
  download_buffer_bytes_ = kHalfBytes;
  graphs_.let_begin_early(early_wanted() && can_begin_early());
  most_shared_ = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  n_multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount);
}

/// Programmatic edges need compute capability 9 and a driver of CUDA 12.3.
bool CudaDevice::can_begin_early() {
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return driver >= 12'030 && attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
}

int CudaDevice::attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal_), "cudaDeviceGetAttribute");
  return value;
}

CudaDevice::~CudaDevice() {
  close();
}

// If the device's work does not end, it may still use the memory. The memory then stays allocated
// until the process ends.
void CudaDevice::close() noexcept {
  if (stream_finishes()) {
    free_all();
  } else {
    static_cast<void>(products_.release());
    graphs_.abandon_all();
  }
  if (!broken_.empty() && !is_reported_) notes_.push_back(broken_);
  ClosedNotes& closed = closed_notes();
  const std::lock_guard hold(closed.lock);
  for (std::string& note : notes_) closed.all.push_back(std::move(note));
}

void CudaDevice::free_all() {
  products_.reset();
  for (ScratchMemory& grown : scratch_)
    if (grown.data) note_free(cudaFree(grown.data), "cudaFree");
  graphs_.forget_all();
  if (stream_) note_free(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  for (Half& half : halves_) {
    if (half.copied) note_free(cudaEventDestroy(half.copied), "cudaEventDestroy");
    if (half.data) note_free(cudaFreeHost(half.data), "cudaFreeHost");
  }
  if (download_buffer_) note_free(cudaFreeHost(download_buffer_), "cudaFreeHost");
}

// The caller of a free cannot handle its error. So a permanent error is thrown by the next call,
// and any other error becomes a warning.
void CudaDevice::note_free(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  if (!broken_.empty()) return;  // its memory is lost with the device
  if (is_permanent(error))
    broken_ = failure_of(error, call);
  else
    note(std::string(call) + ": " + text_with_memory(error) +
         "; its memory stays allocated until the program ends");
}

void CudaDevice::expect_usable() {
  if (!broken_.empty()) {
    is_reported_ = true;
    throw Error(ErrorCode::Device, broken_);
  }
  static thread_local int current = 0;  // CUDA's current device of this thread
  if (current == ordinal_) return;
  check(cudaSetDevice(ordinal_), "cudaSetDevice");
  current = ordinal_;
}

cudaStream_t CudaDevice::stream_for(const char* name) {
  launch_pending();
  expect_usable();
  begin_work();
  at_work_ = true;
  launched_.push_back(name);
  return stream_;
}

void CudaDevice::check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(error, call, is_permanent(error));
}

/// "a graph of 37 kernels (embed, rms_norm), matmul": the last launches, latest first.
std::string CudaDevice::launched_text() const {
  std::string text;
  std::size_t end = launched_.size(), n_graphs = in_graphs_.size();
  for (std::size_t n = 0; end > 0 && n < kReportedLaunches; n++) {
    const bool in_graph = n_graphs > 0 && in_graphs_[n_graphs - 1].end == end;
    const std::size_t begin = in_graph ? in_graphs_[--n_graphs].begin : end - 1;
    const auto names = std::span(launched_).subspan(begin, end - begin);
    text += (n ? ", " : "") + (in_graph ? "a graph of " + counted_names(names) : names.front());
    end = begin;
  }
  return text + (end > 0 ? " and others" : "");
}

// A later call returns the fault of a kernel, and CUDA does not say which kernel it was.
std::string CudaDevice::failure_of(cudaError_t error, const std::string& call) const {
  std::string message = name_ + ": " + call + ": " + text_with_memory(error);
  const std::string details = fault_details();
  if (!details.empty()) message += ": " + details;
  if (!launched_.empty()) {
    message += "; launched since the last wait, the latest first: " + launched_text();
    if (is_permanent(error) && launched_.size() > 1)
      message +=
          "; to find the kernel, run again with CUDA_GRAPHS=off and CUDA_LAUNCH_BLOCKING=1, "
          "or under compute-sanitizer";
  }
  return message + kKeptWords + "; try --device cpu";
}

void CudaDevice::fail(cudaError_t error, const std::string& call, bool for_good) {
  static_cast<void>(cudaGetLastError());  // so that no later call returns it
  const std::string message = failure_of(error, call);
  if (for_good) broken_ = message, is_reported_ = true;
  throw Error(error == cudaErrorMemoryAllocation ? ErrorCode::Resources : ErrorCode::Device,
              message);
}

std::vector<std::string> CudaDevice::take_notes() {
  return std::exchange(notes_, {});
}

std::vector<std::string> CudaDevice::take_notes_of_closed() {
  ClosedNotes& closed = closed_notes();
  const std::lock_guard hold(closed.lock);
  return std::exchange(closed.all, {});
}

std::optional<std::int64_t> CudaDevice::free_bytes() {
  expect_usable();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

std::string CudaDevice::memory_text() const {
  std::size_t free = 0, total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess)
    return "how much is free is not known (" + failed_call_text("cudaMemGetInfo", error) + ")";
  return free_memory_text(static_cast<std::int64_t>(free), static_cast<std::int64_t>(total));
}

/// The error; for lack of memory, also the free memory of the device.
std::string CudaDevice::text_with_memory(cudaError_t error) const {
  return error_text(error) + (error == cudaErrorMemoryAllocation ? ", " + memory_text() : "");
}

void* CudaDevice::allocate(std::int64_t bytes, const char* what) {
  void* data = try_allocate(bytes);
  if (!data && stream_finishes()) {
    graphs_.forget_all();
    data = try_allocate(bytes);
  }
  if (data) return data;
  throw Error(ErrorCode::Resources, name_ + ": " + megabytes(bytes) + " were needed for " + what +
                                        ", " + memory_text() + kKeptWords +
                                        "; try a smaller model, a shorter context, bf16 or "
                                        "--device cpu");
}

void* CudaDevice::try_allocate(std::int64_t bytes) {
  ensure(bytes >= 0, "allocate: bytes is negative");
  expect_usable();
  void* data = nullptr;
  const cudaError_t error =
      cudaMalloc(&data, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check(error, "cudaMalloc");
  const char* const begin = static_cast<char*>(data);
  allocated_[begin] = std::max<std::int64_t>(bytes, 1);
  // Freed memory at this address is in use again.
  std::erase_if(freed_, [&](const auto& one) {
    return one.first < begin + allocated_[begin] && begin < one.first + one.second;
  });
  return data;
}

// Most drivers let cudaFree wait for running kernels, but CUDA does not promise it, so this waits first.
void CudaDevice::release(void* data) {
  if (!data) return;
  const bool was_reported = is_reported_;
  try {
    launch_pending_that_use(data);
  } catch (const std::exception&) {
    is_reported_ = was_reported;  // the next call throws this failure
  }
  const auto found = allocated_.find(static_cast<char*>(data));
  if (found != allocated_.end()) {
    if constexpr (kRemembersFreed) freed_.insert(*found);
    allocated_.erase(found);
  }
  if (stream_finishes()) note_free(cudaFree(data), "cudaFree");
}

// Waits until the stream has finished its work or has failed. @return  false: it still works after kWorkPatience
bool CudaDevice::stream_finishes() {
  if (hangs_ || !at_work_) return !hangs_;
  const auto begun = std::chrono::steady_clock::now();
  cudaError_t error = cudaStreamQuery(stream_);
  while (error == cudaErrorNotReady && std::chrono::steady_clock::now() - begun < kWorkPatience) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    error = cudaStreamQuery(stream_);
  }
  if (error == cudaSuccess) {
    at_work_ = false;
    return true;
  }
  static_cast<void>(cudaGetLastError());
  hangs_ = error == cudaErrorNotReady;
  if (broken_.empty()) broken_ = failure_of(error, "cudaStreamQuery");
  return !hangs_;
}

// Each launch of a cached graph updates its arguments, so no graph keeps a pointer of an earlier step. A stale pointer
// therefore comes from the caller: a bug in this program.
void CudaDevice::check_memory_of_pending() {
  if (freed_.empty()) return;
  const char* const name = pending_.first_with_stale_pointer([&](const char* word) {
    const auto found = freed_.lower_bound(word);
    return found != freed_.end() && word < found->first + found->second;
  });
  if (!name) return;
  broken_ = name_ + ": " + name + " was launched with freed memory";
  is_reported_ = true;
  pending_.clear();
  throw ContractError(broken_);
}

// A failed launch loses the results of all collected kernels, so the device refuses every later call.
void CudaDevice::launch_pending() {
  if (pending_.empty()) return;
  expect_usable();
  if constexpr (kRemembersFreed) check_memory_of_pending();
  begin_work();
  const std::size_t begin = launched_.size(), n = pending_.size();
  for (std::size_t i = 0; i < n; i++) launched_.push_back(pending_.name(i));
  n_kernels_ += static_cast<std::int64_t>(n);
  const std::int64_t before = graphs_.n_launched();
  const CallResult answer =
      graphs_.launch(pending_, stream_, std::exchange(skips_graph_cache_, false));
  pending_.clear();
  at_work_ = true;
  if (answer.error != cudaSuccess) {
    launched_.resize(begin);
    fail(answer.error, answer.call, /*for_good=*/true);
  }
  if (n > 1 && graphs_.n_launched() == before + 1) in_graphs_.push_back({begin, begin + n});
  if (reported_graphs_ || graphs_.refused().error == cudaSuccess) return;
  reported_graphs_ = true;
  note(graphs_.refused().call + ": " + error_text(graphs_.refused().error) + ", " + memory_text() +
       "; kernels are launched one by one without a graph: the same tokens, but slower");
}

/// Launches all collected kernels if one of them uses the memory in which `place` lies.
void CudaDevice::launch_pending_that_use(const void* place) {
  if (pending_.empty()) return;
  const auto found = allocated_.lower_bound(static_cast<const char*>(place));
  const bool known =
      found != allocated_.end() && static_cast<const char*>(place) < found->first + found->second;
  if (!known || pending_.point_into(found->first, found->second)) launch_pending();
}

void CudaDevice::wait() {
  expect_usable();
  launch_pending();
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  launched_.clear();
  in_graphs_.clear();
  at_work_ = false;
  if (begun_ns_ > 0) busy_ns_ += now_ns() - begun_ns_;
  begun_ns_ = 0;
}

void CudaDevice::begin_work() {
  if (begun_ns_ == 0) begun_ns_ = now_ns();
}

// A launch with more than 48 KiB of shared memory, static objects included, needs this attribute.
// Every kernel gets the maximum, because another device object of the same GPU may need more than
// this one. All kernels request the same split between shared memory and cache, so a kernel can
// start beside another one without waiting for the split to change.
void CudaDevice::prepare(const void* kernel) {
  if (prepared_.contains(kernel)) return;
  cudaFuncAttributes found = {};
  check(cudaFuncGetAttributes(&found, kernel), "cudaFuncGetAttributes");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most_shared_ - static_cast<int>(found.sharedSizeBytes)),
        "cudaFuncSetAttribute");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        "cudaFuncSetAttribute");
  prepared_.insert(kernel);
}

void CudaDevice::clear(void* data, std::int64_t bytes) {
  expect_usable();
  launch_pending_that_use(data);
  at_work_ = true;
  check(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), stream_), "cudaMemsetAsync");
}

void* CudaDevice::scratch(Use use, std::int64_t bytes, bool cleared) {
  ScratchMemory& grown = scratch_[static_cast<int>(use)];
  // The memory may hold results that are still to be downloaded.
  const auto* begin = static_cast<const char*>(grown.data);
  if (std::ranges::any_of(requested_, [&](const Requested& one) {
        return begin <= one.from && one.from < begin + grown.bytes;
      }))
    download_requested();
  if (bytes <= grown.bytes) return grown.data;
  std::int64_t taken = std::max(bytes, 2 * grown.bytes);
  void* larger = try_allocate(taken);
  release(std::exchange(grown, {}).data);  // waits for the kernels that use it
  if (!larger) {                           // tries the exact size, now that the old memory is free
    taken = bytes;
    larger = allocate(taken, "a step's working memory");
  }
  grown = {larger, 0, {}};
  if (cleared) clear(larger, taken);  // if this throws, the memory stays allocated but unused
  grown.bytes = taken;
  return larger;
}

const int* CudaDevice::device_list(Use use, std::span<const int> list) {
  const auto bytes = static_cast<std::int64_t>(list.size_bytes());
  auto* data = static_cast<int*>(scratch(use, std::max<std::int64_t>(bytes, 4)));
  std::vector<int>& last = scratch_[static_cast<int>(use)].host;
  if (!std::equal(list.begin(), list.end(), last.begin(), last.end())) {
    last.clear();  // in case the upload throws
    upload(data, list.data(), bytes);
    last.assign(list.begin(), list.end());
  }
  return data;
}

const CudaSide& side() {
  static const CudaSide own = {count_devices,
                               properties_of,
                               open_device,
                               take_notes_of_device,
                               CudaDevice::take_notes_of_closed,
                               training};
  return own;
}

}  // namespace kernels::DECOSCOPE_GPU
