#include "engine/event/run_rules.h"

#include <charconv>

namespace engine {

bool rejects(std::string_view sampling, float temperature) {
  return sampling == kRejection && !is_greedy(temperature);
}

bool keeps_law(const std::map<std::string, std::string>& options,
               bool by_rejection,
               float temperature) {
  const auto verify = options.find("verify");
  if (verify != options.end() && verify->second == "typical" && !is_greedy(temperature))
    return false;
  const auto released = options.find("as_released");
  if (!by_rejection || released == options.end() || released->second != "true") return true;
  float own = -1;  // below 0: it has none
  if (const auto given = options.find("draft_temperature"); given != options.end())
    std::from_chars(given->second.data(), given->second.data() + given->second.size(), own);
  return !is_greedy(own >= 0 ? own : temperature);
}

bool takes_turns(std::string_view decoder) {
  return decoder == "seed";
}

}  // namespace engine
