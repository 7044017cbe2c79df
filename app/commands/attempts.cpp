#include "app/commands/attempts.h"

#include <utility>

#include "app/cli/terminal.h"
#include "engine/run/failure.h"

namespace app {
namespace {

bool is_closed_output(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const OutputClosed&) {
    return true;
  } catch (...) {
    return false;
  }
}

void print_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    print_error(engine::current_failure().message);
  }
}

}  // namespace

void Attempts::run(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (...) {
    add(std::current_exception());
  }
}

void Attempts::add(std::exception_ptr failure) {
  if (!failure) return;
  const bool closed = is_closed_output(failure);
  if (!first_ || (first_is_closed_output_ && !closed)) {
    first_ = std::move(failure);
    first_is_closed_output_ = closed;
  } else if (!closed) {
    print_failure(failure);
  }
}

void Attempts::rethrow() const {
  if (first_) std::rethrow_exception(first_);
}

}  // namespace app
