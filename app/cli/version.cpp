#include "app/cli/version.h"

#include <string_view>

namespace app {

std::string version_text() {
  std::string text = "decoscope " DECOSCOPE_VERSION;
  const auto add = [&text](std::string_view name, std::string_view value) {
    text += "\n" + std::string(name) + std::string(11 - name.size(), ' ') + std::string(value);
  };
  add("revision", DECOSCOPE_REVISION);
  add("compiler", DECOSCOPE_COMPILER);
  add("CUDA", DECOSCOPE_CUDA);
  add("window", DECOSCOPE_WINDOW);
  return text;
}

std::string why_processor_is_refused(const std::string& missing, const char* cpu_ops) {
  if (missing.empty() || (cpu_ops && std::string_view(cpu_ops) == "scalar")) return "";
  return "this processor lacks " + missing +
         "; Decoscope needs x86-64 with AVX2, FMA and F16C (Intel since 2013, AMD since 2015). "
         "CPU_OPS=scalar runs it without "
         "them, many times slower";
}

}  // namespace app
