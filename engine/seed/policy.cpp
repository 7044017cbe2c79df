#include "engine/seed/policy.h"

#include <algorithm>

#include "engine/base/types.h"

namespace engine {

// If several elements are equal, min_element and max_element both return the first one.
std::size_t ShortestFirst::next(std::span<const Waiter> waiting) const {
  const auto shortest = std::ranges::min_element(waiting, {}, &Waiter::n_verified);
  return static_cast<std::size_t>(shortest - waiting.begin());
}

std::size_t HighestValueFirst::next(std::span<const Waiter> waiting) const {
  const auto highest = std::ranges::max_element(waiting, {}, &Waiter::value);
  return static_cast<std::size_t>(highest - waiting.begin());
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"fcfs", "shortest", "priority"};
  return names;
}

std::unique_ptr<Policy> policy_named(const std::string& name) {
  if (name == "shortest") return std::make_unique<ShortestFirst>();
  if (name == "priority") return std::make_unique<HighestValueFirst>();
  ensure(name == "fcfs", "there is no policy of this name");
  return std::make_unique<FirstComeFirstServed>();
}

}  // namespace engine
