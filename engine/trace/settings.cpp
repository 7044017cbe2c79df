#include "engine/trace/settings.h"

#include <iterator>

#include <fmt/format.h>

#include "engine/base/text.h"

namespace engine {

std::string_view without_folders(std::string_view value) {
  const std::size_t end = value.find_last_not_of('/');
  if (end == std::string_view::npos) return value;
  value = value.substr(0, end + 1);
  return value.substr(value.find_last_of('/') + 1);
}

std::string decoder_options(const RunStarted& started, std::string_view separator) {
  std::string text;
  for (const auto& [name, value] : started.options)
    text += fmt::format("{}{}={}", text.empty() ? "" : separator, name, without_folders(value));
  return text;
}

std::string run_settings(const RunStarted& s) {
  std::string text = s.temperature > 0
                         ? fmt::format("temperature {}, top-p {}, seed {}, {} sampling",
                                       s.temperature, s.top_p, s.seed, s.sampling)
                         : fmt::format("greedy, seed {}", s.seed);
  if (s.repetition_penalty != 1) text += fmt::format(", penalty {}", s.repetition_penalty);
  return text + fmt::format(", at most {}, prompt of {}", counted(s.max_tokens, "token"),
                            counted(std::ssize(s.prompt_tokens), "token"));
}

}  // namespace engine
