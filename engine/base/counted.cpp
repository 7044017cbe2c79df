#include "engine/base/counted.h"

#include <fmt/format.h>

namespace engine {

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  if (n != 1 && !many.empty()) return fmt::format("{} {}", n, many);
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

}  // namespace engine
