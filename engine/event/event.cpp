#include "engine/event/event.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace engine {
namespace {

template <typename T>
concept OfARun = requires(const T& event) {
  event.run;
};

}  // namespace

Nanoseconds RankExchange::wait_of(std::size_t rank) const {
  return *std::ranges::max_element(forward) - forward.at(rank);
}

Nanoseconds saturated_sum(Nanoseconds a, Nanoseconds b) {
  constexpr Nanoseconds kMax = std::numeric_limits<Nanoseconds>::max();
  return a > kMax - b ? kMax : a + b;
}

Nanoseconds time_of(const Event& event) {
  return std::visit([](const auto& e) { return e.t; }, event);
}

RunId run_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> RunId {
        if constexpr (OfARun<std::decay_t<decltype(e)>>) return e.run;
        return 0;
      },
      event);
}

}  // namespace engine
