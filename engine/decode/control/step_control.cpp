#include "engine/decode/control/step_control.h"

#include <string>

#include "engine/base/types.h"

namespace engine {
namespace {

[[noreturn]] void refuse_recorded(const std::string& why) {
  throw Error(ErrorCode::BadInput, "the recorded sizes do not fit this run (" + why +
                                       "): the recorded run had another model, prompt or settings");
}

}  // namespace

std::size_t ControlUse::decide(std::size_t chosen, std::size_t n) {
  if (n_repeated_ < recorded_.size()) {
    const std::int32_t recorded = recorded_[n_repeated_++];
    if (recorded < 0 || static_cast<std::size_t>(recorded) >= n)
      refuse_recorded("choice " + std::to_string(recorded) + " of " + std::to_string(n));
    chosen = static_cast<std::size_t>(recorded);
  }
  made_.push_back(static_cast<std::int32_t>(chosen));
  return chosen;
}

std::vector<std::size_t> ControlUse::decide(std::vector<std::size_t> chosen, std::size_t n) {
  chosen.resize(decide(chosen.size(), n + 1));
  for (std::size_t& one : chosen) one = decide(one, n);
  if (std::ranges::adjacent_find(chosen, std::ranges::greater_equal()) != chosen.end())
    refuse_recorded("choices in the wrong order");
  return chosen;
}

}  // namespace engine
