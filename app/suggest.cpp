#include "app/suggest.h"

#include "engine/decode/closest_name.h"

namespace app {

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  const std::string nearest = engine::closest_name(given, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace app
