#include "kernels/cuda/cuda.h"

#include <iomanip>
#include <sstream>

#include "kernels/cuda/side.h"
#include "kernels/error.h"

namespace kernels {
namespace {

const std::string kEmulatedName = "cuda:emulated";
const std::string kOn = "cuda on ";  // followed by the GPU's title

/// Compute capabilities that nvcc compiled for.
#if defined(DECOSCOPE_BUILT_ARCHS)
const std::string kBuiltArchs = DECOSCOPE_BUILT_ARCHS;
#else
const std::string kBuiltArchs;
#endif
const std::string kEmulatedArchs = "90";  // the emulation runs kernels as sm_90 does
constexpr int kOldestArch = 80;  // the oldest that they compile for (cmake/cuda_found.cmake)

std::string version_words(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Null: this build has no GPU code.
const CudaSide* gpus() {
#if defined(DECOSCOPE_HAS_CUDA)
  return &cuda::side();
#else
  return nullptr;
#endif
}
const CudaSide* emulated() {
#if defined(DECOSCOPE_HAS_CUDA_EMULATION)
  return &cuda_emulated::side();
#else
  return nullptr;
#endif
}

int count_gpus(std::string& reason) {
  if (gpus()) return gpus()->count(reason);
  reason = "this program was built without CUDA (WITH_CUDA)";
  return 0;
}

/// Why a device cannot run the kernels of this program; empty: it can.
std::string without_kernels(const CudaSide& side, const GpuProperties& found) {
  const bool is_gpu = &side == gpus();
  return capability_words(found.major, found.minor, is_gpu ? kBuiltArchs : kEmulatedArchs);
}

CudaDeviceInfo described(const CudaSide& side, const std::string& name, int ordinal) {
  CudaDeviceInfo info{.name = name, .available = false, .reason = {}, .memory_bytes = 0, .ops = {}};
  try {
    const GpuProperties properties = side.properties(ordinal);
    info.reason = without_kernels(side, properties);
    info.available = info.reason.empty();
    info.memory_bytes = properties.memory_bytes;
    info.ops = kOn + properties.title;
  } catch (const Error& e) {
    info.reason = e.what();
  }
  return info;
}

/// N of "cuda:N"; -1: not such a name.
int ordinal_of(const std::string& name) {
  const std::string digits = name.substr(std::string("cuda:").size());
  if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != digits.npos)
    return -1;
  return std::stoi(digits);
}

/// The driver's NVML library and the identity of a GPU.
GpuSource source_of(int ordinal) {
  return {.open = [](std::string& reason) { return Nvml::open(reason); },
          .identity = [ordinal] { return gpus()->properties(ordinal).identity; }};
}

}  // namespace

std::string driver_words(int driver, int runtime) {
  const std::string needed = "this program needs one for CUDA " + version_words(runtime);
  if (driver == 0) return "no NVIDIA driver was found; " + needed;
  if (driver < runtime)
    return "the driver is too old, for CUDA " + version_words(driver) + "; " + needed;
  return "";
}

std::string capability_words(int major, int minor, const std::string& built) {
  const int own = 10 * major + minor;
  std::string sm;
  bool runs = false;
  int last = 0;
  std::istringstream list(built);
  for (std::string one; std::getline(list, one, ',');) {
    last = std::stoi(one);
    runs = runs || (last / 10 == major && last <= own);
    sm += (sm.empty() ? "sm_" : ", sm_") + one;
  }
  if (runs || own >= last) return "";
  const std::string advice =
      own < kOldestArch
          ? "they need 8.0 at least; try --device cpu"
          : "build it with -DDECOSCOPE_CUDA_ARCHS=" + std::to_string(own) + ", or try --device cpu";
  return "its compute capability is " + std::to_string(major) + "." + std::to_string(minor) +
         ", and this program has kernels for " + sm + " and PTX for newer GPUs; " + advice;
}

std::vector<CudaDeviceInfo> list_cuda() {
  std::vector<CudaDeviceInfo> all;
  std::string reason;
  const int n = count_gpus(reason);
  for (int i = 0; i < n; i++) all.push_back(described(*gpus(), "cuda:" + std::to_string(i), i));
  if (n == 0)
    all.push_back(
        {.name = "cuda:0", .available = false, .reason = reason, .memory_bytes = 0, .ops = {}});
  if (emulated())
    all.push_back(described(*emulated(), kEmulatedName, 0));
  else
    all.push_back({.name = kEmulatedName,
                   .available = false,
                   .reason = "this program was built without the emulation (CUDA_EMULATION)",
                   .memory_bytes = 0,
                   .ops = {}});
  return all;
}

std::string device_words(const std::vector<CudaDeviceInfo>& devices) {
  std::ostringstream words;
  words << "cpu" << std::fixed << std::setprecision(1);
  for (const CudaDeviceInfo& device : devices) {
    if (!device.available) continue;
    words << ", " << device.name;
    if (device.name != kEmulatedName)
      words << " (" << device.ops.substr(kOn.size()) << ", "
            << static_cast<double>(device.memory_bytes) * 1e-9 << " GB)";
  }
  return words.str();
}

std::unique_ptr<Device> open_cuda(const std::string& name) {
  const auto refuse = [&](const std::string& why) -> Error {
    return Error(ErrorCode::Device, "device " + name + ": " + why +
                                        "; available: " + device_words(list_cuda()) +
                                        "; `decoscope devices` says more");
  };
  const auto with_kernels = [&](const CudaSide& side, int ordinal) {
    GpuProperties properties = side.properties(ordinal);
    const std::string why = without_kernels(side, properties);
    if (!why.empty()) throw refuse(why);
    return properties;
  };
  if (name == kEmulatedName) {
    if (!emulated()) throw refuse("this program was built without the emulation (CUDA_EMULATION)");
    static_cast<void>(with_kernels(*emulated(), 0));
    return emulated()->open(0);
  }
  const int ordinal = ordinal_of(name);
  if (ordinal < 0) throw refuse("expected cuda:N with a number, or cuda:emulated");
  std::string reason;
  const int n = count_gpus(reason);
  if (n == 0) throw refuse(reason);
  if (ordinal >= n) throw refuse("not on this machine, which has " + std::to_string(n));
  GpuProperties properties = with_kernels(*gpus(), ordinal);
  std::unique_ptr<Device> device = gpus()->open(ordinal);
  device->set_title(std::move(properties.title));
  device->set_monitor(std::make_shared<GpuMonitor>(source_of(ordinal)));
  return device;
}

bool is_cpu(const std::string& name) {
  return name == "auto" || name == "cpu";
}

std::unique_ptr<Device> open_gpu(const std::string& name) {
  if (!name.starts_with("cuda:"))
    throw Error(ErrorCode::Usage, "--device " + name +
                                      ": expected auto, cpu or cuda:N; `decoscope devices` lists "
                                      "the devices");
  return open_cuda(name);
}

std::vector<std::string> take_notes_of(Device& device) {
  if (!device.name().starts_with("cuda:")) return {};
  return (device.name() == kEmulatedName ? emulated() : gpus())->take_notes(device);
}

std::vector<std::string> take_notes_of_closed() {
  std::vector<std::string> all;
  for (const CudaSide* side : {gpus(), emulated()}) {
    if (!side) continue;
    for (std::string& note : side->take_notes_of_closed()) all.push_back(std::move(note));
  }
  return all;
}

const TrainKernels& train_kernels(const Device& device) {
  ensure(device.name().starts_with("cuda:"), "the training kernels need a CUDA device");
  return (device.name() == kEmulatedName ? emulated() : gpus())->training();
}

GpuLoad load_of_cuda(const CudaDeviceInfo& device) {
  GpuSource source = source_of(ordinal_of(device.name));
  if (!device.available)
    source.identity = [&]() -> GpuIdentity { throw Error(ErrorCode::Device, device.reason); };
  return gpu_load_once(source);
}

}  // namespace kernels
