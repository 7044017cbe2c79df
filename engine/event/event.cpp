#include "engine/event/event.h"

#include <type_traits>

namespace engine {
namespace {

template <typename T>
concept OfARun = requires(const T& event) {
  event.run;
};

}  // namespace

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
