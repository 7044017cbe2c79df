#include "engine/event/run_rules.h"

#include <charconv>

namespace engine {
namespace {

bool has(const std::map<std::string, std::string>& options,
         const std::string& name,
         std::string_view value) {
  const auto found = options.find(name);
  return found != options.end() && found->second == value;
}

/// True if every node of the tree has one candidate: each count of k_config is 1.
bool is_chain(const std::map<std::string, std::string>& options) {
  const auto found = options.find("k_config");
  if (found == options.end()) return false;
  const std::string& counts = found->second;
  return counts.find_first_not_of("1,") == std::string::npos &&
         counts.find("11") == std::string::npos;
}

}  // namespace

bool rejects(std::string_view sampling, float temperature) {
  return sampling == kRejection && !is_greedy(temperature);
}

bool keeps_distribution(const std::map<std::string, std::string>& options,
                        bool by_rejection,
                        float temperature) {
  if (has(options, "verify", "typical") && !is_greedy(temperature)) return false;
  if (!by_rejection || !has(options, "as_released", "true")) return true;
  // With one candidate the softmax gives q = 1, which is correct, and the rule "naive" does not use
  // q.
  if (is_chain(options) || has(options, "rule", "naive")) return true;
  float own = -1;  // temperature option of the draft model; below 0: as the target
  if (const auto given = options.find("draft_temperature"); given != options.end())
    std::from_chars(given->second.data(), given->second.data() + given->second.size(), own);
  return !is_greedy(own >= 0 ? own : temperature);
}

int n_ranks_of(const std::map<std::string, std::string>& options) {
  int n = 1;
  if (const auto given = options.find("ranks"); given != options.end())
    std::from_chars(given->second.data(), given->second.data() + given->second.size(), n);
  return n;
}

bool takes_turns(std::string_view decoder) {
  return decoder == "seed";
}

bool has_draft_heads(std::string_view decoder) {
  return decoder == "medusa" || decoder == "chimera";
}

bool guesses_successors(std::string_view decoder) {
  return decoder == "recycling";
}

}  // namespace engine
