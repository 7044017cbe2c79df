#include "kernels/cuda/monitor/nvml.h"

#include <dlfcn.h>
#include <utility>

namespace kernels {
namespace {

constexpr int kNoSuchFunction = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
constexpr int kClockOfSm = 1, kClockOfMemory = 2;

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

NvmlTable table_of(void* library) {
  NvmlTable table;
  look_up(library, "nvmlInit_v2", table.init);
  look_up(library, "nvmlShutdown", table.shutdown);
  look_up(library, "nvmlErrorString", table.error_text);
  look_up(library, "nvmlDeviceGetHandleByUUID", table.by_uuid);
  look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", table.by_bus);
  look_up(library, "nvmlDeviceGetUtilizationRates", table.busy);
  look_up(library, "nvmlDeviceGetMemoryInfo", table.memory);
  look_up(library, "nvmlDeviceGetClockInfo", table.clock);
  look_up(library, "nvmlDeviceGetPowerUsage", table.power);
  return table;
}

template <class... P, class... A>
int called(int (*function)(P...), A... arguments) {
  return function ? function(arguments...) : kNoSuchFunction;
}

template <class Number>
NvmlAnswer answer(int code, Number value, double unit = 1) {
  return code == 0 ? NvmlAnswer{.value = static_cast<double>(value) * unit, .code = 0}
                   : NvmlAnswer{.value = -1, .code = code};
}

}  // namespace

const char* name_of(GpuValue value) {
  constexpr std::array<const char*, kGpuValues> kNames{"gpu_busy_percent",
                                                       "gpu_memory_busy_percent",
                                                       "gpu_memory_used_bytes",
                                                       "gpu_memory_total_bytes",
                                                       "gpu_clock_mhz",
                                                       "gpu_memory_clock_mhz",
                                                       "gpu_power_w"};
  return kNames[static_cast<std::size_t>(value)];
}

std::unique_ptr<Nvml> Nvml::open(std::string& reason, const std::string& library) {
  Library opened(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!opened) {
    reason = library + " was not found; it comes with NVIDIA's driver";
    return nullptr;
  }
  const NvmlTable table = table_of(opened.get());
  std::unique_ptr<Nvml> nvml = open(table, reason);
  if (nvml)
    nvml->library_ = std::move(opened);
  else
    reason = library + ": " + reason;
  return nvml;
}

std::unique_ptr<Nvml> Nvml::open(const NvmlTable& table, std::string& reason) {
  if (!table.init || !table.shutdown) {
    reason = "nvmlInit_v2 or nvmlShutdown is missing; the driver is too old";
    return nullptr;
  }
  const int code = table.init();
  std::unique_ptr<Nvml> nvml(new Nvml(table, Library(nullptr, dlclose)));
  if (code == 0) return nvml;
  reason = "nvmlInit_v2: " + nvml->error_text(code);
  nvml->table_.shutdown = nullptr;  // the initialisation failed, so nothing must be shut down
  return nullptr;
}

Nvml::Nvml(const NvmlTable& table, Library library) : library_(std::move(library)), table_(table) {}

Nvml::~Nvml() {
  if (table_.shutdown) table_.shutdown();
}

void* Nvml::find(const GpuIdentity& gpu, std::string& reason) const {
  void* found = nullptr;
  int code = 0;
  if (!gpu.uuid.empty()) {
    code = called(table_.by_uuid, gpu.uuid.c_str(), &found);
    if (code == 0) return found;
  }
  if (!gpu.bus_id.empty()) {
    code = called(table_.by_bus, gpu.bus_id.c_str(), &found);
    if (code == 0) return found;
  }
  reason = "NVML has no device " + gpu.uuid + (gpu.bus_id.empty() ? "" : " at " + gpu.bus_id) +
           (code == 0 ? "" : ": " + error_text(code));
  return nullptr;
}

NvmlAnswers Nvml::ask(void* gpu) const {
  NvmlUtilization busy;
  NvmlMemory memory;
  unsigned clock = 0, memory_clock = 0, milliwatt = 0;
  const int busy_code = called(table_.busy, gpu, &busy);
  const int memory_code = called(table_.memory, gpu, &memory);
  const int clock_code = called(table_.clock, gpu, kClockOfSm, &clock);
  const int memory_clock_code = called(table_.clock, gpu, kClockOfMemory, &memory_clock);
  const int power_code = called(table_.power, gpu, &milliwatt);
  return {answer(busy_code, busy.gpu),        answer(busy_code, busy.memory),
          answer(memory_code, memory.used),   answer(memory_code, memory.total),
          answer(clock_code, clock),          answer(memory_clock_code, memory_clock),
          answer(power_code, milliwatt, 1e-3)};
}

std::string Nvml::error_text(int code) const {
  const char* text = table_.error_text ? table_.error_text(code) : nullptr;
  return text ? text : "error " + std::to_string(code) + " of NVML";
}

}  // namespace kernels
