#include "app/commands/train/gpu_failure.h"

#include <algorithm>
#include <filesystem>

#include "kernels/cuda/cuda.h"

namespace app {

kernels::Error with_advice(const kernels::Error& error,
                           const std::string& device,
                           const std::vector<KeptFile>& kept) {
  const std::string message = error.what();
  if (kernels::is_cpu(device) || !message.starts_with(device + ": ")) return error;
  const auto found = std::ranges::find_if(kept, [](const KeptFile& file) {
    std::error_code unknown;
    return std::filesystem::exists(file.path, unknown);
  });
  return kernels::Error(
      error.code(), message + (found == kept.end() ? "; nothing had been saved"
                                                   : "; --resume continues from " +
                                                         found->description + ", on the CPU too"));
}

}  // namespace app
